# SPDX-License-Identifier: BSD-2-Clause
# Sourced by system tests about dynamic code, after daemon.sh.

# share WORD IMAGE…: percent of the images' samples, over all rows of procedures whose name begins with that word.
share()
{
	local name=$1
	shift
	"$DCPI_BIN/dcpiprof" -epoch all "$@" | awk -v name="$name" '
		$NF == "total" { all += $1 }
		{ n = $1 }
		sub(/^ *[0-9]+ +[0-9.]+% +[0-9.]+% +([0-9]+[.][0-9]+ +)?/, "") && $1 == name { sum += n }
		END { printf "%.2f\n", all ? 100 * sum / all : 0 }'
}

# samples IMAGE…: all of them.
samples()
{
	"$DCPI_BIN/dcpiprof" -epoch all "$@" | awk '$NF == "total" { print $1 }'
}

# truth FILE NAME: what the program measured itself.
truth()
{
	awk -v name="$2" '$1 == name { print $2 }' "$1"
}

# share_holds PROCEDURE IMAGE: its share of the samples is that of its CPU time, which the program has
# printed to $work/truth.
#
# Of N samples a routine's number is binomial at worst (a sampler with a period is steadier): five standard
# deviations, sqrt(p (1 - p) / N) each, are exceeded once in 1.7 million tries. One point more: the program's
# clock goes on while the machine's host runs something else, samples do not.
share_holds()
{
	within "share of $1" "$(share "$1" "$2")" "$(truth "$work/truth" "$1")" \
		"$(awk -v p="$(truth "$work/truth" "$1")" -v n="$(samples "$2")" 'BEGIN {
			p /= 100
			printf "%.2f", (n > 0 ? 500 * sqrt(p * (1 - p) / n) + 1 : 0) }')"
}

# image FACILITY: the one pseudo-image of it.
image()
{
	local found=("$db"/dyn/"$1"-*.dyn)
	[ -f "${found[0]}" ] && [ ${#found[@]} = 1 ] || fail "not one image of '$1': ${found[*]}"
	echo "${found[0]}"
}

# lint_image FILE: a pseudo-image that eu-elflint accepts. Functions of an interpreter are code of no machine, which
# it calls an unknown one: that alone may be said of them.
lint_image()
{
	eu-elflint --gnu-ld "$1" >"$work/lint" 2>&1 && return
	[ "$(readelf -h "$1" | grep -c '^ *Machine: *None$')" = 1 ] &&
		[ "$(cat "$work/lint")" = "unknown machine type 0" ] || fail "$1: eu-elflint: $(cat "$work/lint")"
}

# check_elf FILE ROUTINE BYTES: every tool accepts it; the routine has just these bytes (hex).
check_elf()
{
	local file=$1 name=$2 bytes=$3 got addr
	lint_image "$file"
	readelf -SsW "$file" 2>&1 | grep -q "FUNC .* $name\$" || fail "readelf shows no '$name'"
	got=$(objdump -d --disassemble="$name" "$file" |
		awk -F'\t' '/^ / { gsub(/ /, "", $2); printf "%s", $2 }')
	[ "$got" = "$bytes" ] || fail "$name: bytes $got in the image, $bytes in memory"
	addr=$(nm "$file" | awk -v name="$name" '$3 == name { print $1 }')
	[ "$(addr2line -f -e "$file" "0x$addr" | head -n 1)" = "$name" ] || fail "addr2line: $name"
	gdb -nx -batch -ex "disassemble $name" "$file" 2>&1 |
		grep -q "Dump of assembler code for function $name" || fail "gdb: $name"
}
