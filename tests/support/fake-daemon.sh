# SPDX-License-Identifier: BSD-2-Clause
# Sourced by golden tests whose commands ask a daemon: fake_daemon.py in its place. Sets DCPI_RUN.

export DCPI_RUN=run
mkdir run

# answer_from ANSWERS [WORKLOADS]: until the test ends; what is asked goes to the file "asked".
answer_from()
{
	local i
	python3 "$DCPI_SRC/tests/support/fake_daemon.py" run/control "$@" >asked &
	daemon=$!
	trap 'kill $daemon 2>/dev/null || :; wait $daemon 2>/dev/null || :; rm -rf "$work"' EXIT
	for ((i = 0; i < 300; i++)); do
		[ ! -S run/control ] || break
		sleep 0.1
	done
}
