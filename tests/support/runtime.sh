# SPDX-License-Identifier: BSD-2-Clause
# Sourced after daemon.sh by the tests with real runtimes, whose programs print "NAME SECONDS" lines: CPU
# time of each of their hot routines by their own clock.

# need_runtime PROGRAM: without it there is nothing to try.
need_runtime()
{
	command -v "$1" >/dev/null || {
		echo "skip: needs $1"
		exit 77
	}
}

# rows IMAGE: "SAMPLES PROCEDURE" of an image.
rows()
{
	"$DCPI_BIN/dcpiprof" -json "$1" >"$work/rows.json" || fail "dcpiprof $1"
	awk '
		sub(/^ *"procedure":"/, "") { sub(/",$/, ""); name = $0 }
		/^ *"samples":/ && name != "" { getline; sub(/.*:/, ""); print $0 + 0, name; name = "" }' \
		"$work/rows.json"
}

# hottest IMAGE PATTERN: address of the first procedure whose name matches; a name may stand for several.
hottest()
{
	"$DCPI_BIN/dcpiprof" -json -pids "$1" | awk -v pattern="$2" '
		sub(/^ *"procedure":"/, "") { mine = !found && $0 ~ pattern }
		mine && sub(/^ *"address":"/, "") { sub(/".*/, ""); found = $0; mine = 0 }
		END { print found }'
}

# image_samples NAME [OPTION…]: of all images whose name, without its process, is NAME.
image_samples()
{
	"$DCPI_BIN/dcpiprof" "${@:2}" -i -no_header | awk -v name="$1" '
		{ n = $1; sub(/^ *[^ ]+ +[^ ]+ +[^ ]+ +([0-9]+[.][0-9]+ +)?/, ""); sub(/\[[^]]*\]$/, "") }
		$0 == name { sum += n }
		END { print sum + 0 }'
}

# shares_hold IMAGE TRUTH: the parts of the samples that the routines of TRUTH ("NAME SECONDS") have among
# themselves are those of their CPU time. NAME is found as a word of the procedure's name.
#
# Of N samples a routine's number is binomial at worst (a sampler with a period is steadier): standard
# deviation sqrt(p (1 - p) / N). 4.5 of these are exceeded once in 150,000 tries. 2 points more: the
# program's clock goes on while the machine's host runs something else, samples do not.
shares_hold()
{
	rows "$1" >"$work/rows"
	awk '
		NR == FNR { seconds[$1] = $2; all += $2; next }
		{
			n = $1
			sub(/^[0-9]+ /, "")
			gsub(/[^A-Za-z0-9_$]/, " ")
			k = split($0, word, " ")
			for (i = 1; i <= k; i++) if (word[i] in seconds) { got[word[i]] += n; sum += n; break }
		}
		END {
			for (i in seconds) {
				p = seconds[i] / all
				q = sum ? got[i] / sum : 0
				off = q > p ? q - p : p - q
				allowed = 4.5 * sqrt(p * (1 - p) / (sum ? sum : 1)) + 0.02
				printf "%s: %.2f %% of the samples, %.2f %% of the time (at most %.2f off)\n",
					i, 100 * q, 100 * p, 100 * allowed
				bad += off > allowed
			}
			exit bad > 0 || sum < 500
		}' "$2" "$work/rows" || { cat "$work/rows" >&2; fail "shares of $1 are not as its clock says"; }
}

# mostly_named IMAGE UNNAMED PERCENT: of the samples in code that a program made at run time so many have a
# routine: those in IMAGE against those in image UNNAMED ("PROGRAM: …") and under names that say "not known". Of that
# program alone: others on the machine have some of the latter, too.
mostly_named()
{
	local named unnamed image program=${2%%:*}
	named=$(image_samples "$1" -exe "$program")
	unnamed=0
	for image in "$2" "(reused, time unknown)" "(dynamic, unknown)"; do
		unnamed=$((unnamed + $(image_samples "$image" -exe "$program")))
	done
	echo "$1: $named samples named, $unnamed not"
	[ $((named * 100)) -ge $(((named + unnamed) * $3)) ] || fail "$1: less than $3 % of its samples are named"
}

# same_code PROCEDURE IMAGE TRUTH: the listing's instructions are those that the runtime printed itself:
# TRUTH has lines "ADDRESS BYTES" (hexadecimal). Each address that both have has the same bytes.
same_code()
{
	"$DCPI_BIN/dcpilist" -asm -bytes -no_header "$1" "$2" >"$work/listing" || fail "dcpilist '$1'"
	awk '
		NR == FNR { bytes[$1] = $2; next }
		{
			for (i = 1; i <= NF && $i !~ /^0x[0-9a-f]+$/; i++) ;
			a = substr($i, 3)
			if (i > NF || !(a in bytes)) next
			b = $(i + 2)
			n++
			if (b != bytes[a]) { print "at " a ": " b ", it says " bytes[a]; bad++ }
		}
		END { printf "%d instructions compared, %d differ\n", n, bad; exit n < 10 || bad }' \
		"$3" "$work/listing" || { cat "$work/listing" >&2; fail "$1: not the code that its runtime printed"; }
}

# as_compiled PROCEDURE IMAGE OBJECT NR: the listing's instructions, more than NR, have the bytes and the lines
# that the same compiler puts into OBJECT (of code without addresses that could differ).
as_compiled()
{
	local begin
	"$DCPI_BIN/dcpilist" -asm -bytes -no_header "$1" "$2" | awk '
		/ ; / { sub(/.*:/, ""); line = $1 }
		match($0, /0x[0-9a-f]+ [+]0x/) { $0 = substr($0, RSTART); sub(/^[+]0x/, "", $2); print $2, $3, line }' \
		>"$work/listed"
	begin=$(nm "$3" | awk -v name="$1" '$3 == name { print $1 }')
	objdump -d -l --insn-width=16 --disassemble="$1" "$3" | awk -v begin="$begin" '
		function hex(s, i, n) {
			for (i = 1; i <= length(s); i++) n = 16 * n + index("0123456789abcdef", substr(s, i, 1)) - 1
			return n
		}
		/:[0-9]+$/ { sub(/.*:/, ""); line = $1 }
		/^ +[0-9a-f]+:\t/ {
			split($0, part, "\t")
			gsub(/[ :]/, "", part[1])
			gsub(/ /, "", part[2])
			printf "%x %s %s\n", hex(part[1]) - hex(begin), part[2], line
		}' | head -n "$(wc -l <"$work/listed")" >"$work/compiled"
	echo "$1: $(wc -l <"$work/listed") instructions"
	[ "$(wc -l <"$work/listed")" -gt "$4" ] || fail "$1 has no instructions"
	diff "$work/listed" "$work/compiled" || fail "$1: not the instructions and lines that the compiler made"
}
