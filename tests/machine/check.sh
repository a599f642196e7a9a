# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64
# The reports are true on Linux 6.1: sources and events that work are listed, and what dcpid(8) says this kernel lacks is
# refused with the version that has it, and nothing else is.
. /src/tests/support/daemon.sh
"$DCPI_BIN/dcpid" -check >"$work/check" || fail "-check"
"$DCPI_BIN/dcpid" -list-events >"$work/events" || fail "-list-events"
cat "$work/check" "$work/events"
grep -q '^  bpf  *ok: ' "$work/check" || fail "no source bpf"
grep -q '^  perf  *ok: ' "$work/check" || fail "no source perf"
grep -q '^  tick  *yes' "$work/check" || fail "no tick"
grep -q '^ *traces  *no: no traces on Linux .6\.1' "$work/check" || fail "traces"
grep -q 'from Linux 6\.2 on' "$work/check" || fail "no version that has traces"
if [ "$(uname -m)" = aarch64 ]; then
	grep -q '^  cycles ' "$work/events" || fail "no cycles"
	! grep 'has no counters' "$work/events" || fail "there are counters"
	! grep '^  cycles:p  *at' "$work/events" || fail "nothing is precise here"
fi

# refused OPTION…: with the reason and the remedy.
refused()
{
	if "$DCPI_BIN/dcpid" -source bpf "$@" "$db" 2>"$work/err"; then
		fail "$* is not refused"
	fi
	cat "$work/err"
	grep -q "on Linux '6\.1" "$work/err" && grep -q '^hint: .*from Linux 6\.2 on' "$work/err" || fail "$* is refused otherwise"
}
refused -callpaths 10
refused -wait
refused -vwindows 10
refused -vprof

# All else works, together.
start_daemon -source bpf -event cpu-clock+tick -bypid hello
"$DCPI_BIN/examples/hello" 2 || fail "hello"
account_holds "all else"
stop_daemon
dcpiprof 2>/dev/null >"$work/prof"
for routine in sixty thirty ten; do
	grep -q " $routine  *hello\[" "$work/prof" || fail "no routine '$routine': $(cat "$work/prof")"
done
