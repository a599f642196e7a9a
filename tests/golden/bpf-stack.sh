#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Each BPF program, with all functions that it calls in turn, has enough of the 512 bytes of stack that a kernel gives to
# them together, unless it gives each a stack of its own (Linux 6.13 and later on x86-64), as this machine's may.
set -eu
objects=("$DCPI_BUILD"/driver/bpf/skel/*.bpf.o)
[ -f "${objects[0]}" ] || { echo "built without BPF programs"; exit 77; }
[ ${#objects[@]} = 6 ]
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$DCPI_SRC/tests/support/bpf_stack.py" "${objects[@]}" >"$work/programs"
cat "$work/programs"
for program in sample_event sample_tick wait_switch; do
	grep -q "^[0-9]* $program [0-9]* > " "$work/programs"
done
awk '$1 > 512 { bad = 1 } END { exit bad }' "$work/programs"
