#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# lib/, dbgdyn/, pseudoimg/ and tools/ compile where Linux's own headers are errors, but for the
# files named *_linux.c.
set -eu
cd "$DCPI_SRC"
shim=$(mktemp -d)
trap 'rm -rf "$shim"' EXIT
mkdir -p "$shim/linux" "$shim/sys"
for h in linux/{perf_event,memfd,seccomp,filter,audit,futex,fs,userfaultfd,bpf,prctl,capability,magic} \
	sys/{epoll,prctl,syscall,signalfd,timerfd,eventfd,inotify,xattr,sendfile,fanotify,personality,memfd}; do
	echo "#error \"<$h.h> is Linux's own\"" >"$shim/$h.h"
done
bad=0 nr=0
mapfile -t folders < <(find lib -type d -printf '-I%p\n')
for f in $(find lib dbgdyn pseudoimg tools -name '*.c' ! -name '*_linux.c' | sort); do
	nr=$((nr + 1))
	if ! gcc -std=gnu17 -D_GNU_SOURCE -DDCPI_VERSION='""' -DDCPI_REVISION='""' \
		-DDCPI_MANIFEST='""' -DDCPI_PREFIX='""' -fsyntax-only -I"$shim" -Iinclude -Iinclude/dcpi \
		"${folders[@]}" -Ipseudoimg -Idriver \
		-Idbgdyn -Itools -I/usr/include/json-c "$f" 2>"$shim/err"; then
		head -n 5 "$shim/err"
		bad=$((bad + 1))
	fi
done
echo "$nr files compiled, $bad with Linux's own headers"
[ "$nr" -gt 10 ]
[ "$bad" = 0 ]
