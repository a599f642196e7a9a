#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpijson(5) names each member that a tool prints with -json, and no other. What the tools print is what the expected
# texts beside this file have; members that these lack must at least be named in the tools' sources, and the reverse.
set -eu -o pipefail
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
page=$DCPI_SRC/man/dcpijson.5.in

# Each member that the page tells of, as "FORM PATH", without what marks lists. A path that ends with "..." has all of the
# group that the line behind it names.
awk '
	function expand(form, group, before,    i, n, ways, at) {
		n = split(has[group], ways)
		for (i = 1; i <= n; i++) {
			at = index(ways[i], "@")
			if (at)
				expand(form, substr(ways[i], at + 1), before substr(ways[i], 1, at - 1))
			else
				print form, before ways[i]
		}
	}
	function key(text) { gsub(/"/, "", text); gsub(/ /, "_", text); return text }
	/^\.S[SH] / { group = ""; }
	/^\.SS / { group = key(substr($0, 5)); if (group ~ /\/[0-9]/) forms[group] }
	group && last == ".TP" && /^\.B / {
		ways = substr($0, 4)
		gsub(/[",]|\[\]/, "", ways)
		if (sub(/ ?\.\.\.$/, "", ways)) {
			getline
			sub(/, above.*/, "")
			ways = ways "@" key($0)
		}
		has[group] = has[group] " " ways
	}
	{ last = $0 }
	END {
		for (group in forms) {
			n = split(group, each, /,_/)
			for (i = 1; i <= n; i++)
				expand(each[i], group, "")
		}
	}' "$page" | sort -u >told

# Those of the JSON texts. dcpidis prints the elements of its list at the margin.
{
	cat "$DCPI_SRC"/tests/golden/*.expected
	"$DCPI_BIN/dcpiversion" -json
} | awk '
	/^\{$/ && !depth { form = "" }
	/^\{$/ { base = depth++ ? "procedures" : ""; next }
	/^\},?$/ || /^ *\]\}$/ { if (depth) depth--; if (depth == 1) base = ""; next }
	!depth { next }
	{ match($0, /^ */); level = RLENGTH / 2 }
	/^ *"[^"]*":/ {
		split($0, part, "\"")
		name[level] = part[2]
		if (part[2] == "schema") { form = level == 1 && !base ? part[4] : form; next }
		way = base
		for (i = 1; i <= level; i++)
			way = way (way == "" || name[i] == "" ? "" : ".") name[i]
		if (form != "")
			print form, way
		next
	}
	{ name[level] = "" }' | sort -u >seen

# Names from outside, and what only holds others, stand on the page otherwise.
awk '
	NR == FNR {
		told[$0]
		for (way = $0; sub(/\.[^.]*$/, "", way);)
			holds[way]
		next
	}
	($0 in told) || ($0 in holds) { print; next }
	{
		n = split($2, part, ".")
		for (i = 1; i <= n; i++) {
			split("EVENT CAUSE PART BIT COUNTER", outside, " ")
			for (k = 1; k <= 5; k++) {
				way = $1 " "
				for (j = 1; j <= n; j++)
					way = way (j > 1 ? "." : "") (j == i ? outside[k] : part[j])
				if ((way in told) || (way in holds)) { print way; next }
			}
		}
		print $0 " is not told"
	}' told seen | sort -u >met
grep ' is not told$' met >complaints || true

# What the sources name; those of requests to the daemon are another page's.
find "$DCPI_SRC/tools" -name '*.[ch]' ! -name control.c ! -name dcpictl.c -exec cat {} + | tr -s ' \n\t' ' ' >sources
grep -oE '\b(json_object_object_add|add|add_count|add_known)\([a-z_>.-]+, "[a-z0-9_]+"' sources |
	sed 's/.*, "//; s/"$//' | sort -u >named
[ "$(wc -l <named)" -gt 100 ]
cut -d ' ' -f 2 told | tr . '\n' | sort -u | comm -13 - named | grep -vx schema |
	sed 's/$/ is named in the sources, and not told/' >>complaints || true
comm -23 told met | sed 's/.*[. ]//' | grep -vxE 'EVENT|CAUSE|PART|BIT|COUNTER' | sort -u | while read -r name; do
	grep -qF "\"$name\"" sources || echo "$name is told, and nowhere printed"
done >>complaints
cat complaints
[ ! -s complaints ]
