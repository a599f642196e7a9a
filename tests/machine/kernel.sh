# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64
# Samples of the kernel's work for a program stand at its procedures, and these can be listed by instruction.
. /src/tests/support/daemon.sh
start_daemon -source bpf
dd if=/dev/zero of=/dev/null bs=1 count=300000 2>/dev/null
account_holds kernel
stop_daemon
dcpiprof -no_header 2>/dev/null >"$work/prof"
grep ' vmlinux' "$work/prof" >"$work/kernel" || fail "no samples in the kernel"
head -n 8 "$work/kernel"
grep -qE ' (vfs_read|vfs_write|ksys_read|ksys_write|read_zero|__fget_light|__fdget_pos|el0_svc_common.*|do_syscall_64) ' "$work/kernel" ||
	fail "no procedure of reading and writing"
read -r procedure image < <(awk '{ print $(NF - 1), $NF; exit }' "$work/kernel")
dcpilist -asm "$procedure" "$image" >"$work/list" 2>"$work/err" || fail "dcpilist $procedure $image: $(cat "$work/err")"
[ "$(grep -cF ' +0x' "$work/list")" -ge 3 ] || fail "no instructions: $(cat "$work/list")"
head -n 12 "$work/list"
