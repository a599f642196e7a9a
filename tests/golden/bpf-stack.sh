#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Each BPF program, with all functions that it calls in turn, has enough of the 512 bytes of stack that Linux before
# 6.13 gives to them together. This machine's kernel may give more.
set -eu
objects=("$DCPI_BUILD"/driver/bpf/skel/*.bpf.o)
[ -f "${objects[0]}" ] || { echo "built without BPF programs"; exit 77; }
[ ${#objects[@]} = 3 ]
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$DCPI_SRC/tests/support/bpf_stack.py" "${objects[@]}" | sort -rn >"$work/programs"
cat "$work/programs"
grep -q ' callpath_of_tick \| trace_of_tick ' "$work/programs"
! awk '$1 > 512' "$work/programs" | grep .
