#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Every program that is installed for users has a page; every page is well-formed, has its sections,
# names every option of its program, and refers to pages that exist.
set -eu -o pipefail
cd "$DCPI_BUILD/man"
bad=0
complain()
{
	echo "$*"
	bad=$((bad + 1))
}

for program in "$DCPI_BUILD"/bin/dcpi*; do
	name=${program##*/}
	case $name in
	dcpid-*) continue ;; # helpers, started by dcpid alone
	esac
	ls "$name".[0-9] >/dev/null 2>&1 || complain "$name has no page"
done

for page in *.[0-9]; do
	if grep -q "^\.so " "$page"; then # another name of a page
		[ -f "$(sed "s|^\.so man[0-9]/||" "$page")" ] || complain "$page leads nowhere"
		continue
	fi
	# Pages have no date of their own.
	found=$(mandoc -T lint -W warning "$page" | grep -v 'WARNING: missing date' || true)
	[ -z "$found" ] || complain "$found"
	for section in NAME DESCRIPTION "SEE ALSO"; do
		grep -qE "^\.S[Hh] \"?$section\"?\$" "$page" || complain "$page has no section $section"
	done
	case $page in
	*.[18])
		for section in SYNOPSIS OPTIONS EXAMPLES LIMITATIONS "KNOWN BUGS"; do
			grep -qE "^\.S[Hh] \"?$section\"?\$" "$page" || complain "$page has no section $section"
		done
		;;
	esac
	# "dcpilist(1)" and the like must be there.
	mandoc -T ascii "$page" | sed 's/.\x08//g' | grep -oE '\bdcpi[a-z0-9]*\([0-9]\)|\b(dbgdyn|sprofil)\([0-9]\)' | sort -u |
		while read -r ref; do
			[ -f "$(echo "$ref" | sed 's/(/./; s/)//')" ] || echo "$page refers to $ref"
		done >>"$DCPI_BUILD/man/.dangling"
done
if [ -s .dangling ]; then
	cat .dangling
	bad=$((bad + 1))
fi
rm -f .dangling
# What the service reads is where the pages say.
config=$(sed -n 's/^ExecStart=.* -config //p' "$DCPI_BUILD/packaging/dcpid.service")
for page in dcpid.8 dcpid.json.5 dcpiexclusions.5; do
	grep -qF "$(dirname "${config:-?}")/" "$page" || complain "$page does not say where the service's '$config' is"
done
echo "$(ls ./*.[0-9] | wc -l) pages, $bad complaints"
[ "$bad" = 0 ]
