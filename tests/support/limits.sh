# SPDX-License-Identifier: BSD-2-Clause
# Sourced by what samples at a high rate: there the kernel would lower its own limit for good.
limits=/proc/sys/kernel
limits_percent=
limits_rate=

# raise_limits: 100 kHz at least, and whatever time that takes. Set the trap that restores first.
raise_limits()
{
	limits_rate=$(cat $limits/perf_event_max_sample_rate)
	limits_percent=$(cat $limits/perf_cpu_time_max_percent)
	limits_write $((limits_rate < 100000 ? 100000 : limits_rate)) 0
}

# restore_limits: as they were; nothing where they were not raised.
restore_limits()
{
	[ -z "$limits_percent" ] || limits_write "$limits_rate" "$limits_percent"
}

# limits_write RATE PERCENT: the rate cannot be written while the percentage is 0 or 100.
limits_write()
{
	echo 25 >$limits/perf_cpu_time_max_percent
	echo "$1" >$limits/perf_event_max_sample_rate
	echo "$2" >$limits/perf_cpu_time_max_percent
}
