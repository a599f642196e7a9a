#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A daemon that root started by hand has the capabilities that SECURITY.md says, and each of its helpers the user, the
# capabilities and the filter of the table there, as the kernel tells of the running process.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/rights.sh"
need_root
reachable_programs

# nobody_ends PID NAME: programs of other services, many of which are the user nobody, may not end or stop it.
nobody_ends()
{
	! setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'kill -0 "$1"' sh "$1" 2>/dev/null ||
		fail "the user nobody may end $2"
}

sh -c 'while :; do :; done' &
busy=$!
at_end 'kill $busy'
start_daemon -vprof -vstep $busy -drain 100
row=dcpid
set=$(mask "$(sed -n '/^Started by root by hand, dcpid keeps/,/^$/p' "$DCPI_SRC/SECURITY.md" | grep -o 'CAP_[A-Z_]*')")
[ "$set" != 0 ] || fail "SECURITY.md does not say what dcpid keeps"
is "$daemon" Uid 0
# Root itself may lack some of them on this machine.
own=$((16#$(awk '$1 == "CapBnd:" { print $2 }' /proc/self/status)))
for field in CapEff CapPrm CapBnd; do is "$daemon" $field $((set & own)); done
for field in CapInh CapAmb; do is "$daemon" $field 0; done
[ $((own & ~set)) != 0 ] || fail "root has nothing here that dcpid could drop"
is "$daemon" NoNewPrivs 1
echo "dcpid: capabilities $(printf %x "$set")"
# Root may be without the right to raise priorities on this machine.
[ $((own & 1 << 23)) = 0 ] || {
	[ "$(ps -o ni= -p "$daemon" | tr -d ' ')" = -10 ] || fail "dcpid has no priority"
	[ ! -e "/proc/$daemon/autogroup" ] || grep -q 'nice -10$' "/proc/$daemon/autogroup" ||
		fail "dcpid's session has no priority: $(cat "/proc/$daemon/autogroup")"
}
for name in dcpid-reader dcpid-parse dcpid-translate dcpid-values dcpid-step; do
	helper=$(helper_of $name)
	row_holds "$helper" $name
	nobody_ends "$helper" $name
done
step=$(helper_of dcpid-step)
row_holds "$(helper_of dcpid-step "$step")" "dcpid-step's child"
nobody_ends "$(helper_of dcpid-step "$step")" "dcpid-step's child"
stop_daemon
# One that waits for its job.
mkfifo "$work/job"
"$DCPI_BIN/dcpid-pseudoimg" <"$work/job" >"$work/image" 2>"$work/answer" &
image=$!
exec 9>"$work/job"
row_holds $image dcpid-pseudoimg
nobody_ends $image dcpid-pseudoimg
exec 9>&-
wait $image || :
