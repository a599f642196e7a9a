# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64 back
# shows: aarch64 6, x86-64 1
# The main job, as scripts/demo has it: a JIT under dcpid, which has ended when its routines are shown by name, line and
# instruction; here, and where the database is handed back to.
. /src/tests/support/daemon.sh
: "${event:=cpu-clock}"
start_daemon -source bpf -event "$event"
calc -time 4 /src/examples/jit/calc/demo.calc || fail "calc"
account_holds "$event"
stop_daemon
dcpiprof >"$work/prof" 2>&1 || fail "dcpiprof: $(cat "$work/prof")"
head -n 12 "$work/prof"
for routine in escape sieve matrix fib; do
	grep -q " $routine  *calc\[" "$work/prof" || fail "$event: no routine '$routine'"
done
image=$(awk '$NF ~ /^calc\[/ { print $NF; exit }' "$work/prof")
dcpilist -both escape "$image" >"$work/list" || fail "dcpilist"
head -n 12 "$work/list"
[ "$(awk '$1 > 0 && $2 ~ /%$/ { n++ } END { print n + 0 }' "$work/list")" -ge 5 ] || fail "$event: few instructions"
grep -q 'demo.calc:' "$work/list" || fail "$event: no line"
grep -q ' vmlinux' "$work/prof" || fail "$event: no kernel"

dcpiprof -i -no_header 2>/dev/null >/out/images || fail "dcpiprof -i"
dcpilist -asm -no_header escape "$image" >/out/listing || fail "dcpilist -asm"
echo "$image" >/out/image
cp -r "$db" /out/db
