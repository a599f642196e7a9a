#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Every program that is installed for users has a page; every page is well-formed, has its sections,
# names every option of its program, and refers to pages that exist. What the installed headers declare
# stands in the pages of their libraries.
set -eu -o pipefail
cd "$DCPI_BUILD/man"
texts=$(mktemp -d)
trap 'rm -rf "$texts"' EXIT
bad=0
complain()
{
	echo "$*"
	bad=$((bad + 1))
}

# text_of PAGE: the page as it is read, made once.
text_of()
{
	[ -f "$texts/$1" ] || mandoc -T ascii "$1" | sed 's/.\x08//g' >"$texts/$1"
	cat "$texts/$1"
}

# words_of PAGE PATTERN: what the page as it is read has of that.
words_of() { text_of "$1" | grep -oE -- "$2" | sort -u; }

for program in "$DCPI_BUILD"/bin/dcpi*; do
	name=${program##*/}
	case $name in
	dcpid-*) continue ;; # helpers, started by dcpid alone
	esac
	ls "$name".[0-9] >/dev/null 2>&1 || { complain "$name has no page"; continue; }
	words_of "$name".[0-9] '-[[:alnum:]_-]*' >.told
	for option in $("$program" -help-options | sort -u | comm -23 - .told); do
		complain "$name's page lacks $option"
	done
done

# Each option that is known of the original is here, or its page says what became of it.
while read -r name options; do
	words_of "$name".[0-9] '-[[:alnum:]_-]*' >.told
	# shellcheck disable=SC2086
	for option in $(printf -- '-%s\n' $options | sort -u | comm -23 - .told); do
		complain "$name's page does not say what became of $option"
	done
done <<-END
	dcpi V
	dcpid event t mux bypid map forkid unknown epoch merge flush hash chunk device log quiet verbose status logmaps
	dcpid nodaemon socket slot b gc vprof vreplay vtrace vcontext
	dcpiprof i s keep p m no_header full_output csl label
	dcpilist asm both order vprof
	dcpicalc procedures print_opcode cutoff conf_low conf_med conf_high cross_procedure tab xct
	dcpiflow samesize v
	dcpisource src map
	dcpicc map_dir tok_dir compiler
	dcpiwhatcg pr stall conf_low conf_med conf_high cross_procedure
	dcpitopstalls conf_low conf_med conf_high cross_procedure
	dcpitopcounts n s st sp
	dcpidiff set source_line compare verbose conf_low conf_med conf_high cross_procedure
	dcpistats set factor i norm cutoff show_images event keep range v
	dcpix conservative
	dcpisumxct o
	dcpi2pix scale conf_low conf_med conf_high cross_procedure
	dcpi2bb make_bbdb counts pm load_lat scale
	dcpicoverage one_line no_header
	dcpivlst allprocs vprof vconcise vcutoff vshow
	dcpivarg arg_full arg_terse ret_full ret_terse ret_save inv_blocks top_loads
END

for page in *.[0-9]; do
	if grep -q "^\.so " "$page"; then # another name of a page
		[ -f "$(sed "s|^\.so man[0-9]/||" "$page")" ] || complain "$page leads nowhere"
		continue
	fi
	# Pages have no date of their own.
	found=$(mandoc -T lint -W warning "$page" | grep -v 'WARNING: missing date' || true)
	[ -z "$found" ] || complain "$found"
	needed=(NAME DESCRIPTION "SEE ALSO")
	case $page in
	*.[18]) needed+=(SYNOPSIS OPTIONS EXAMPLES LIMITATIONS "KNOWN BUGS") ;;
	esac
	sections=$'\n'$(sed -nE 's/^\.S[Hh] "?([^"]*)"?$/\1/p' "$page")$'\n'
	for section in "${needed[@]}"; do
		[[ $sections == *$'\n'"$section"$'\n'* ]] || complain "$page has no section $section"
	done
	# "dcpilist(1)" and the like must be there.
	words_of "$page" '\bdcpi[a-z0-9]*\([0-9]\)|\b(dbgdyn|sprofil|uvprof)\([0-9]\)' |
		while read -r ref; do
			file=${ref/'('/.}
			[ -f "${file%')'}" ] || echo "$page refers to $ref"
		done >>"$DCPI_BUILD/man/.dangling"
done
if [ -s .dangling ]; then
	cat .dangling
	bad=$((bad + 1))
fi
rm -f .dangling
# tells PAGE BUT HEADER…: the page has the functions, constants and members that the headers declare, but for BUT.
tells()
{
	words_of "$1" '[[:alnum:]_$]+' >.told
	cat "${@:3}" | sed 's,/\*.*\*/,,; /\/\*/,/\*\//{ s,/\*.*,,; t
		d }' >.code
	{
		grep -oE '\b(dbgdyn|DBGDYN|sprofil|SPROFIL|PROF|uvprof|UVPROF|trace|TRACE|VSAMPLE)_\w+|\b(DBG|SS)\$\w+' .code
		sed -nE '/struct.*\{$/,/^\}/ { s/\(\*(\w+)\).*/\1;/; s/, /;\n/; p }' .code | sed -nE 's/.*\b(\w+);$/\1/p'
	} | grep -vxE "$2" | sort -u >.words
	[ -s .words ] || complain "${*:3} declare nothing"
	for word in $(comm -23 .words .told); do
		complain "$1 does not tell of $word"
	done
	rm .told .code .words
}
include=$DCPI_SRC/include
tells dbgdyn.3 'DBGDYN_(API|H|VERSION_.*)|dbgdyn_(kind|result)' "$include/dbgdyn.h"
# What records hold is told by the header alone.
tells dbgdyn.3 '[^$]*' "$include/dbgdyn_vms.h"
tells sprofil.3 'SPROFIL_(API|H)' "$include/sprofil.h"
tells uvprof.3 'UVPROF_(API|H)' "$include/uvprof.h"
# Of the classes, the header's list is the one.
tells dcpivprofiler.5 'TRACE_OP_.*|TRACE_NR_.*|TRACE_REGISTERS|trace_(vlist|vlist_table|parser)(_t)?|trace_value_t|word' \
	"$include"/dcpi/*.h
# What becomes of samples, by the names that 'dcpictl status' prints.
for name in LOST:dcpictl.1 BUCKET:dcpid.8; do
	text=$(text_of "${name#*:}" | tr -s ' \n' ' ')
	names=$(sed -n "s/.*X(${name%:*}_[A-Z_]*, \"\([^\"]*\)\".*/\1/p" "$DCPI_SRC/daemon/images/images.h")
	[ -n "$names" ] || complain "no ${name%:*}"
	while read -r what; do
		[[ $text == *"$what"* ]] || complain "${name#*:} does not tell of '$what'"
	done <<<"$names"
done
# What the service reads is where the pages say.
config=$(sed -n 's/^ExecStart=.* -config //p' "$DCPI_BUILD/packaging/dcpid.service")
for page in dcpid.8 dcpid.json.5 dcpiexclusions.5; do
	grep -qF "$(dirname "${config:-?}")/" "$page" || complain "$page does not say where the service's '$config' is"
done
# So are the programs whose paths they tell.
sbin=$(sed -n 's|^ExecStart=\(.*\)/dcpid .*|\1|p' "$DCPI_BUILD/packaging/dcpid.service")
for path in $(grep -hoE '/[^ ]*bin/dcpi[a-z]*' ./*.[0-9]); do
	case $path in
	"${sbin%/*}"/bin/* | "$sbin"/*) ;;
	*) complain "a page tells of '$path', which is not installed there" ;;
	esac
done
echo "$(ls ./*.[0-9] | wc -l) pages, $bad complaints"
[ "$bad" = 0 ]
