#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# docs/TOUR.md: the commands that read the databases of its session, which tests/data/tour has, print what it says.
# DCPI_UPDATE=1 writes it there.
set -eu -o pipefail
data=$DCPI_SRC/tests/data/tour tour=$DCPI_SRC/docs/TOUR.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$data"/*.db "$work"
cd "$work"
# The session's folder; its programs and sources are found under their paths.
mkdir -p root/srv/tour
cp -r "$DCPI_SRC/examples/tour/"* root/srv/tour
for version in slow fast; do
	cp "$data/$version.words" root/srv/tour/$version/words
done
if command -v cc >/dev/null; then
	cc -fsyntax-only -Wall -Wextra -Werror root/srv/tour/*/words.c
fi
export DCPI_DEBUG_PATH=$work/root PATH=$DCPI_BIN:$PATH
unset DEBUGINFOD_URLS DCPIDB

# Commands that sample, compile or install are for the reader.
is_checked()
{
	case $1 in
	*/var/lib/dcpi*) return 1 ;;
	"diff "*) return 0 ;;
	dcpiprof* | dcpitopcounts* | dcpilist* | dcpiwhatcg* | dcpidiff* | dcpireport*) return 0 ;;
	esac
	return 1
}

# What diff finds is its success.
run_one()
{
	case $1 in
	"diff "*) (cd root/srv/tour && bash -c "$1") || true ;;
	*) bash -c "$1" 2>errors || { cat errors >&2; exit 1; } ;;
	esac
}

# The page with the outputs of now.
skip=
while IFS= read -r line; do
	case $line in
	'$ '* | '```')
		skip=
		printf '%s\n' "$line"
		if is_checked "${line#??}"; then
			run_one "${line#??}"
			skip=1
		fi
		;;
	*) [ "$skip" ] || printf '%s\n' "$line" ;;
	esac
done <"$tour" >page
[ -s words.html ]
if [ "${DCPI_UPDATE:-}" ]; then
	cp page "$tour"
fi
diff -u "$tour" page
