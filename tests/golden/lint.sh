#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The rule of the modules and the figures of scripts/lint: a copy of the tree passes; each thing that the table does not
# allow fails, with the file, the line and the rule. (Format, clang-tidy and shellcheck are tools of others.)
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "$*"; cat "$tmp/out"; exit 1; }

# fresh: a copy of the product, as it is in the tree.
fresh()
{
	rm -rf "$tmp/tree"
	mkdir -p "$tmp/tree"
	cp -r "$DCPI_SRC"/{adapters,daemon,dbgdyn,driver,examples,include,lib,profilers,pseudoimg,scripts,tools,uvprof} "$tmp/tree"
	cd "$tmp/tree"
}

# lint [ARG...]: the rule and the figures of the copy, with the objects of the build.
lint() { python3 scripts/lint.d/structure.py "$@" >"$tmp/out" 2>&1; }

# must_fail [ARG...]: the lint of the copy finds something.
must_fail() { ! lint "$@" || fail "passes"; }

# found FINDING: by the last lint.
found() { grep -qF "$1" "$tmp/out" || fail "not found: $1"; }

# last FILE: the number of its last line.
last() { wc -l <"$1"; }

# compiled FILE: its object, made from the copy, as an option.
compiled()
{
	gcc -D_GNU_SOURCE -I"$(dirname "$1")" -c "$1" -o "$tmp/${1##*/}.o" || fail "cannot compile $1"
	echo "--object=$1=$tmp/${1##*/}.o"
}

fresh
lint . "$DCPI_BUILD" || fail "the tree itself does not pass"
[ "$(grep -c '^figure: ' "$tmp/out")" = 6 ] || fail "not six figures"
tail -n 1 "$tmp/out" | grep -qE '^figures: [0-9]+ ok, [0-9]+ short$' || fail "no count at the end"

# -- modules: an include, a header that is internal, a struct that is only named, a folder that is not in the table
echo '#include "profdb.h"' >>lib/base/buf.c
echo '#include "profdb_internal.h"' >>tools/dcpix.c
echo 'struct profdb;' >>lib/base/map.c
mkdir lib/new
printf '/* SPDX-License-Identifier: BSD-2-Clause */\n/* A file of a new module. */\n#include "base.h"\n' >lib/new/new.c

# -- modules: a call without an include, and one by address in a struct of callbacks
cat >>lib/base/clock.c <<'END'
int profdb_close(void *db);
int base_clock_forbidden(void);
int base_clock_forbidden(void) { return profdb_close(0); }
END
cat >>lib/base/hash.c <<'END'
int profdb_close(void *db);
const struct base_calls { int (*close)(void *); } base_calls = { .close = profdb_close };
END

# -- modules: a call upwards, through a struct or a pointer that the upper module fills
cat >>lib/base/base.h <<'END'
struct base_hooks { int (*full)(void *ctx); void *ctx; };
extern struct base_hooks base_hooks;
extern int (*base_hook)(void *ctx);
END
echo 'static struct base_hooks hooks = { list_full, NULL };' >>tools/dcpilist.c
echo 'void cat_hook(void) { base_hooks.full = cat_full; }' >>tools/dcpicat.c
echo 'void diff_hook(void) { base_hook = diff_full; }' >>tools/dcpidiff.c

# -- a prefetch that a compiler may drop
echo 'void dot_prefetch(void *at) { __builtin_prefetch(at); }' >>tools/dcpi2pix.c

clock=$(compiled lib/base/clock.c) hash=$(compiled lib/base/hash.c)
must_fail "$clock" "$hash" . "$DCPI_BUILD"
found "lib/base/buf.c:$(last lib/base/buf.c): include: \"profdb.h\": lib/base may not use lib/profdb"
found "tools/dcpix.c:$(last tools/dcpix.c): include: \"profdb_internal.h\" is internal to lib/profdb"
found "lib/base/map.c:$(last lib/base/map.c): name: \"struct profdb\": lib/base may not use lib/profdb"
found 'lib/new/new.c:3: include: "base.h": lib/new may not use lib/base'
found 'scripts/lint.d/modules:1: table: "lib/new": no row'
found "lib/base/clock.c:$(($(last lib/base/clock.c) - 2)): call: \"profdb_close\": lib/base may not use lib/profdb"
found "lib/base/hash.c:$(($(last lib/base/hash.c) - 1)): call: \"profdb_close\": lib/base may not use lib/profdb"
found "tools/dcpi2pix.c:$(last tools/dcpi2pix.c): prefetch: \"__builtin_prefetch\": base_prefetch is kept by compilers"
found "tools/dcpilist.c:$(last tools/dcpilist.c): callbacks: fills \"base_hooks\", through which lib/base calls tools"
found "tools/dcpicat.c:$(last tools/dcpicat.c): callbacks: fills \"base_hooks\", through which lib/base calls tools"
found "tools/dcpidiff.c:$(last tools/dcpidiff.c): callbacks: fills \"base_hook\", through which lib/base calls tools"

# -- words: comments without a subject, and a file that does not say what it is for, beyond the state
fresh
seq 4000 | sed 's|.*|/* Of those: & */|' >>lib/base/buf.c
state=$(sed -n 's/^files_without_purpose //p' scripts/lint.d/state 2>/dev/null || :)
for i in $(seq 0 "${state:-0}"); do
	printf '/* SPDX-License-Identifier: BSD-2-Clause */\n#include <time.h>\n' >"lib/base/new$i.c"
done
must_fail . "$DCPI_BUILD" lib/base/buf.c lib/base/new0.c
found "lib/base/buf.c:$(($(last lib/base/buf.c) - 3999)): comments_without_subject: opens with \"Of\""
found 'lib/base/new0.c:1: files_without_purpose: no comment says what the file is for'

# -- documents: a table of the life of a sample names a function that is not in its file, and has a row too many
fresh
mkdir docs
life=docs/LIFE-OF-A-SAMPLE.md
cp "$DCPI_SRC/$life" docs
git init -q . && git add docs/LIFE-OF-A-SAMPLE.md
scripts/lint.d/pages.py >"$tmp/out" || :
[ "$(grep -cE ' no function |functions and|is row' "$tmp/out")" = 0 ] || fail "the life of a sample is not as it says"
sed -i '0,/`counts_count`/s//`counts_gone`/; s/^| 2 | dbgdyn .*/&\n&/' $life
if scripts/lint.d/pages.py >"$tmp/out"; then
	fail "passes"
fi
found "$life:$(grep -n counts_gone $life | cut -d: -f1): no function 'counts_gone' in 'daemon/core/counts.c'"
found 'row 2 is row 3'
found "way 3 has $(($(grep -cE '^\| [0-9]+ \| .*: `' <(sed -n '/^### Table 3/,/^### Table 4/p' $life)))) functions"

# -- POSIX: a call that is Linux's own, in a portable file; one that POSIX has; and a file that says that it is Linux's
fresh
mkdir -p lib/new b/bin
: >.clang-tidy
printf '#!/bin/sh\necho stand-in\n' >b/bin/clang-tidy
chmod 755 b/bin/clang-tidy
sed "s/^\t//; s|TREE|$PWD|" >b/build.ninja <<'END'
	rule cc
	 command = gcc -D_GNU_SOURCE -MD -MF $out.d -c $in -o $out
	 deps = gcc
	 depfile = $out.d
	build new.o: cc TREE/lib/new/new.c
	build new_linux.o: cc TREE/lib/new/new_linux.c
END

# posix CALL: what the lint says of a program that makes it.
posix()
{
	local name
	for name in new new_linux; do
		printf '#include <unistd.h>\nlong new(void);\nlong new(void)\n{\n\treturn %s;\n}\n' "$1" >lib/new/$name.c
	done
	(cd b && ninja >"$tmp/out" && ninja -t compdb >compile_commands.json) || fail "cannot build"
	PATH=$PWD/b/bin:$PATH python3 scripts/lint.d/check.py b lib/new/new.c lib/new/new_linux.c >"$tmp/out" 2>&1
}
if posix 'gettid()'; then
	fail "passes"
fi
found "lib/new/new.c:5:"
found "gettid"
[ "$(grep -c 'new_linux' "$tmp/out")" = 0 ] || fail "a file of Linux's is found"
posix 'getpid()' || fail "POSIX does not pass"
