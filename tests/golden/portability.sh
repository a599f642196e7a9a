#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# lib/, dbgdyn/, pseudoimg/ and tools/ include no header that is Linux's own, directly or through another one, but for
# the files named *_linux.c. The build's own records tell what each object was made from.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
linux='/(linux/(perf_event|memfd|seccomp|filter|audit|futex|fs|userfaultfd|bpf|prctl|capability|magic)|'
linux+='sys/(epoll|prctl|syscall|signalfd|timerfd|eventfd|inotify|xattr|sendfile|fanotify|personality|memfd))\.h$'

# included: lines "SOURCE HEADER" for what was compiled from the portable folders.
included()
{
	ninja -C "$DCPI_BUILD" -t deps | awk -v src="$DCPI_SRC/" '
		/^[^ ]/ { source = "" }
		/^ / {
			file = $1
			if (index(file, src) == 1) file = substr(file, length(src) + 1)
			sub(/^(\.\.\/)+/, "", file)
			if (source == "") source = file
			else if (source ~ /^(lib|dbgdyn|pseudoimg|tools)\/.*\.c$/) print source, file
		}' | sort -u
}

included >"$work/all"
cut -d' ' -f1 "$work/all" | sort -u >"$work/sources"
(cd "$DCPI_SRC" && find lib dbgdyn pseudoimg tools -name '*.c' ! -name '*_linux.c' | sort) >"$work/wanted"
bad=$(grep -vE '^[^ ]*_linux\.c ' "$work/all" | grep -E "$linux" | tee /dev/stderr | wc -l)
echo "$(wc -l <"$work/wanted") files, $bad with Linux's own headers"
[ "$bad" = 0 ]
# Nothing is left out, but for what stands in for a library that is there; what is looked for is found where it may be.
comm -13 "$work/sources" "$work/wanted" | grep -vx tools/live_noscreen.c | sed 's/^/not built: /' | tee "$work/left"
[ ! -s "$work/left" ]
[ -s "$work/wanted" ]
grep -cE "$linux" "$work/all"
