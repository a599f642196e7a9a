# SPDX-License-Identifier: BSD-2-Clause
# Sourced by tests that know how many samples there must be.
# programs: counted
. /src/tests/support/daemon.sh

# samples_of IMAGE: of the database's only event.
samples_of()
{
	dcpiprof -i -no_header 2>/dev/null | awk -v image="$1" '$NF == image { print $1 }'
}

# begin EVENT…: a fresh database, each period as asked for.
begin()
{
	rm -rf "$db"
	start_daemon -source "${source:-bpf}" -fixed_period "$@"
}

# end WHEN [SEVERAL]: no sample is lost, and the accounts hold; of one event all are on disk.
end()
{
	account_holds "$1"
	[ "$lost" = 0 ] || fail "$1: $lost samples are lost"
	stop_daemon
	[ $# -gt 1 ] || [ "$(total_on_disk)" -ge "$received" ] || fail "$1: $(total_on_disk) of $received samples are on disk"
}
