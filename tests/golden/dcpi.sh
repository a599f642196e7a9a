#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpi: verbs are commands, a wrong one is answered with the nearest; a report that cannot be written
# is a failure.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

{
	run dcpi prof -no_header -keep 20
	run dcpi dcpiprof -no_header -keep 20
	run dcpi porf
	run dcpi dcpilits
	run dcpi something-else
	run dcpi help quit
	run dcpi help porf
	run dcpi help quit now
	run dcpi run ls
	run dcpi -nonsense
} >out
compare dcpi

# Every command has help, options for completion and the text of its page, and is listed.
"$DCPI_BIN/dcpi" -help >help
"$DCPI_BIN/dcpi" help | diff - help
# None of its lines wraps in a terminal.
awk 'length > 80 { print; bad = 1 } END { exit bad }' help || { echo "lines of 'dcpi' are too long"; exit 1; }
commands=$(sed -n 's|^	X(\(dcpi[a-z0-9]*\)).*|\1|p' "$DCPI_SRC/tools/tools.h")
[ "$(echo "$commands" | wc -l)" -ge 8 ]
for c in $commands; do
	grep -q "^  $c " help || { echo "$c is not listed"; exit 1; }
	"$DCPI_BIN/dcpi" "$c" -help >told || { echo "$c -help fails"; exit 1; }
	grep -q "^usage: $c" told || { echo "$c has no help"; exit 1; }
	"$DCPI_BIN/$c" -help-man | grep -q '^\.SH OPTIONS' || { echo "$c has no page"; exit 1; }
	"$DCPI_BIN/$c" -help-options | grep -qx -- -help || { echo "$c has no options"; exit 1; }
done
# bash completes commands and options of all of them.
complete_words() # complete_words WORD…: what may stand for the last one
{
	bash -c '. "$DCPI_BUILD/packaging/bash/dcpi"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_dcpi
		echo "${COMPREPLY[*]}"' - "$@"
}
export PATH=$DCPI_BIN:$PATH
completes() # completes WANT WORD…
{
	[ "$(complete_words "${@:2}")" = "$1" ] || { echo "'${*:2}' becomes '$(complete_words "${@:2}")'"; exit 1; }
}
completes "flow flush" dcpi fl
completes "help" dcpi hel
completes "topcounts top topstalls" dcpi help top
completes "-help" dcpi -hel
completes "-keep" dcpi prof -ke
completes "-event" dcpid -ev
completes "-no_freq -no_header" dcpilist -both main -no
completes "" dcpilist -both ma
for c in $commands dcpid dcpirun dcpiship dcpifetch; do
	bash -c '. "$DCPI_BUILD/packaging/bash/dcpi"; complete -p "$1"' - "$c" >completion || { echo "$c is not completed"; exit 1; }
done
[ -w /dev/full ] || exit 0
for command in "dcpiprof" "dcpiprof -json" "dcpitopcounts -json" "dcpi -help" "dcpid -help" "dcpid -list-events" \
	"dcpirun -version" "dcpiregress -set -set" "dcpiregress -json -set -set" "dcpiregress -help" "dcpix -help" \
	"dcpilabel -help"; do
	# An emulator has no events to list.
	[ "$command" != "dcpid -list-events" ] || "$DCPI_BIN"/$command >list 2>&1 || continue
	code=0 fails=1
	case ${command%% *} in
		dcpirun | dcpix | dcpilabel) fails=125 ;; # 1 would be its program's
		dcpiregress) fails=2 ;; # 1 is "slower"
	esac
	"$DCPI_BIN"/$command >/dev/full 2>err || code=$?
	echo "${command%% *}: cannot write the output: No space left on device" >want
	grep 'cannot' err | diff want - || { echo "$command >/dev/full"; exit 1; }
	[ "$code" = $fails ] || { echo "$command >/dev/full exits $code"; exit 1; }
done
# Every program; some helpers have no help.
for program in "$DCPI_BIN"/dcpi*; do
	name=${program##*/}
	"$program" -help >/dev/full 2>err </dev/null && { echo "$name -help >/dev/full exits 0"; exit 1; }
	grep -qxE "$name: (cannot write the output: No space left on device|not for use by hand: dcpid starts it)" err ||
		{ echo "$name -help >/dev/full says:"; cat err; exit 1; }
done
if "$DCPI_BIN/dcpiprof" >&- 2>err; then
	echo "no output, and no failure"
	exit 1
fi
grep -q "^dcpiprof: cannot write the output: Bad file descriptor" err
# Without a database newcomers are told how to make one, or where the service's is.
mkdir empty
code=0
(cd empty && env -u DCPIDB "$DCPI_BIN/dcpiprof") 2>err || code=$?
[ "$code" = 2 ]
sed -n 1p err | grep -qx 'dcpiprof: no database given'
sed -n 2p err | grep -qE "^hint: use '-db DIR' or set DCPIDB; ('dcpirun PROGRAM' samples a program into 'dcpi.db' here|the service's is '/var/lib/dcpi')$"
# dcpirun's database is found in the current folder.
ln -s "$(realpath "$DCPIDB")" empty/dcpi.db
"$DCPI_BIN/dcpi" prof -keep 20 -no_header >named
(cd empty && env -u DCPIDB DCPI_DEBUG_PATH="$PWD/../root" "$DCPI_BIN/dcpi" prof -keep 20 -no_header) | diff named - || { echo "dcpi.db is not found"; exit 1; }
# A helper that says more than a pipe holds is read to its end. An emulator tells a program another place of its own.
[ -z "${DCPI_EMULATOR:-}" ] || exit 0
mkdir fetch
cp "$DCPI_BIN/dcpi" fetch/dcpiprof
printf '%s\n' '#!/bin/sh' 'echo "dcpifetch: no such store" >&2' 'head -c 200000 /dev/zero >&2' 'exit 1' >fetch/dcpifetch
chmod +x fetch/dcpifetch
code=0
fetch/dcpiprof -db clickhouse://127.0.0.1:1/x >out 2>err || code=$?
[ "$code" = 1 ]
grep -qx 'dcpiprof: no such store' err || { cat err; exit 1; }
