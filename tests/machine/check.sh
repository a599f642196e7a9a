# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64
# shows: x86-64 6
# The reports are true on Linux 6.1: sources and events that work are listed, what "-check" says is missing is what dcpid(8)
# lists for this kernel, an option for it is refused, and all else works, together.
. /src/tests/support/daemon.sh
. /test/limits.sh
"$DCPI_BIN/dcpid" -check >"$work/check" || fail "-check"
"$DCPI_BIN/dcpid" -list-events >"$work/events" || fail "-list-events"
uname -rv
cat "$work/check" "$work/events"
grep -q '^  bpf  *ok: ' "$work/check" || fail "no source bpf"
grep -q '^  perf  *ok: ' "$work/check" || fail "no source perf"
grep -q '^  tick  *yes' "$work/check" || fail "no tick"
if [ "$(uname -m)" = aarch64 ]; then
	grep -q '^  cycles ' "$work/events" || fail "no cycles"
	! grep 'has no counters' "$work/events" || fail "there are counters"
	! grep '^  cycles:p  *at' "$work/events" || fail "nothing is precise here"
fi

check_is_page "$(uname -m | tr _ -), Linux 6.1"

# option PART OPTION…: asked for, if it is there; else refused.
options=()
option()
{
	local part=$1
	shift
	if [[ ", $lacks," != *", $part,"* ]]; then
		options+=("$@")
		return
	fi
	refused -source bpf "$@"
}
option "call paths" -callpaths 10
option waits -wait
option traces -vwindows 10

start_daemon -source bpf -event cpu-clock+tick -bypid hello "${options[@]}"
"$DCPI_BIN/examples/hello" 2 || fail "hello"
account_holds "all together"
programs_within_limits
stop_daemon
dcpiprof 2>/dev/null >"$work/prof"
for routine in sixty thirty ten; do
	grep -q " $routine  *hello\[" "$work/prof" || fail "no routine '$routine': $(cat "$work/prof")"
done
