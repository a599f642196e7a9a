# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64 of-bullseye
# On a kernel too old for much (Linux 5.10, Debian 11), "-check" says what is missing and why, as dcpid(8) has it; an option
# that asks for it is refused with the reason and the remedy; and what is left works.
. /src/tests/support/daemon.sh
. /test/limits.sh
"$DCPI_BIN/dcpid" -check >"$work/check" || fail "-check"
uname -rv
cat "$work/check"
check_is_page "$(uname -m | tr _ -), Linux 5.10"
refused -source bpf
refused -callpaths 10
refused -wait
refused -vwindows 10

start_daemon -bypid hello
status_field source | grep '^perf: .*(bpf refused: ' || fail "the source does not say why"
"$DCPI_BIN/examples/hello" 2 || fail "hello"
account_holds "samples"
stop_daemon
dcpiprof 2>/dev/null >"$work/prof"
head -n 20 "$work/prof"
for routine in sixty thirty ten; do
	grep -q " $routine  *hello\[" "$work/prof" || fail "no routine '$routine': $(cat "$work/prof")"
done
grep -q ' vmlinux-5.10' "$work/prof" || fail "no kernel"
