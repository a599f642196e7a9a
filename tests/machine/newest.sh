# SPDX-License-Identifier: BSD-2-Clause
# machine: x86-64 newest
# The main job by dcpid's defaults on the newest kernel of the release, whatever of them it takes.
. /src/tests/support/daemon.sh
dcpid -background -log "$work/log" "$db" || fail "dcpid does not start"
daemon=$(status_field pid)
cat "$work/log"
calc -time 8 /src/examples/jit/calc/demo.calc || fail "calc"
account_holds "the defaults"
stop_daemon
dcpiprof >"$work/prof" 2>&1 || fail "dcpiprof: $(cat "$work/prof")"
head -n 12 "$work/prof"
for routine in escape sieve matrix fib; do
	grep -q " $routine  *calc\[" "$work/prof" || fail "no routine '$routine'"
done
