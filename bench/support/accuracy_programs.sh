# SPDX-License-Identifier: BSD-2-Clause
# Sourced: the eleven programs of bench/accuracy, with two inputs each that do not overlap. Everything is
# made from files of this repository and of Debian's packages, so that equal systems have equal runs.

ACCURACY_PACKAGES="valgrind gcc libc6-dev gzip bzip2 xz-utils zstd coreutils perl-base lua5.4 python3.11"
ACCURACY_PROGRAMS="gzip bzip2 xz zstd sort perl lua python cc1 num lex"
# Four that nothing was chosen by, for bench/values: estimates from windows were made without them.
UNSEEN_PACKAGES="mawk jq bc sqlite3"
UNSEEN_PROGRAMS="mawk jq bc sqlite"
accuracy_source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# The same routines of libc under valgrind as without: its CPU has no AVX-512 and no RTM. Where RTM is there,
# libc does without VZEROUPPER, and would take none of AVX2. Hashes without chance.
export LC_ALL=C PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0
export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-ERMS,-RTM,-Prefer_No_VZEROUPPER

# accuracy_prepare DIR: inputs and the two C programs, into DIR.
accuracy_prepare()
{
	# Each routine stays a procedure of its own, as a library's do; main would be the whole program.
	local dir=$1 letter flags=(-O2 -fno-inline-functions-called-once -g -D_GNU_SOURCE)
	mkdir -p "$dir"
	# Every other module of Python's library: text like text, and none of it in both.
	LC_ALL=C find /usr/lib/python3.11 -name '*.py' -type f | LC_ALL=C sort >"$dir/modules"
	awk 'NR % 2 == 1' "$dir/modules" | xargs -d '\n' cat >"$dir/text.A"
	awk 'NR % 2 == 0' "$dir/modules" | xargs -d '\n' cat >"$dir/text.B"
	for letter in A B; do
		truncate -s '<4500000' "$dir/text.$letter"
		[ "$(wc -c <"$dir/text.$letter")" -ge 3000000 ] || {
			echo "$0: Python's library is too small for inputs: $(wc -l <"$dir/modules") modules" >&2
			return 1
		}
		head -c 1200000 "$dir/text.$letter" >"$dir/short.$letter"
		head -c 2000000 "$dir/text.$letter" >"$dir/middle.$letter"
	done
	cc "${flags[@]}" -o "$dir/num" "$accuracy_source/accuracy_num.c" -lm
	cc "${flags[@]}" -o "$dir/lex" "$accuracy_source/accuracy_lex.c"
	cc -E -O2 -D_GNU_SOURCE -o "$dir/code.A.i" "$accuracy_source/accuracy_num.c"
	cc -E -O2 -D_GNU_SOURCE -o "$dir/code.B.i" "$accuracy_source/accuracy_lex.c"
}

# unseen_prepare DIR: what UNSEEN_PROGRAMS need besides, into DIR.
unseen_prepare()
{
	local dir=$1 letter
	for letter in A B; do
		tr -c 'A-Za-z0-9 \n' _ <"$dir/short.$letter" | awk 'NF {
			printf "{\"line\":%d,\"first\":\"%s\",\"words\":[", NR, $1
			for (i = 1; i <= NF; i++) printf "%s\"%s\"", (i > 1 ? "," : ""), $i
			print "]}"
		}' >"$dir/words.$letter.json"
		awk 'NF { printf "insert into w values(%d, %s, %d);\n", NR, "\047" $1 "\047", length($0) }' \
			<(tr -c 'A-Za-z0-9 \n' _ <"$dir/short.$letter") >"$dir/words.$letter.rows"
		{
			echo 'create table w(n integer primary key, word text, len integer); begin;'
			cat "$dir/words.$letter.rows"
			echo 'commit; create index i on w(word);'
			echo 'select word, count(*), sum(len) from w group by word order by 2 desc, 1 limit 9;'
			echo 'select count(*) from w a join w b on a.word = b.word and a.len < b.len where a.n % 97 = 0;'
			echo 'select sum(length(replace(upper(word), "E", ""))) from w;'
		} >"$dir/words.$letter.sql"
	done
	printf '%s\n' 'scale=700' '4*a(1)' 'e(2.5)' quit >"$dir/pi.A.bc"
	printf '%s\n' 'scale=300' 'for (i = 3; i < 9; i++) l(i)' quit >"$dir/pi.B.bc"
	echo '{ for (i = 1; i <= NF; i++) { n[$i]++; if ($i ~ /^[a-z_]+\(/) calls++; s += length($i) } }
END { for (w in n) if (n[w] > most) { most = n[w]; which = w } gsub(/[aeiou]/, "-", which); print which, most, calls, s }' >"$dir/words.awk"
}

# accuracy_command PROGRAM INPUT DIR: its command line in the array "command". INPUT is A or B.
accuracy_command()
{
	local input=$2 dir=$3
	case $1 in
	gzip) command=(/usr/bin/gzip -6 -c "$dir/text.$input") ;;
	bzip2) command=(/usr/bin/bzip2 -c "$dir/middle.$input") ;;
	xz) command=(/usr/bin/xz -2 -T1 -c "$dir/middle.$input") ;;
	zstd) command=(/usr/bin/zstd -10 --single-thread -q -c "$dir/text.$input") ;;
	sort) command=(/usr/bin/sort --parallel=1 -S 100M "$dir/text.$input" "$dir/middle.$input") ;;
	perl) command=(/usr/bin/perl "$accuracy_source/accuracy_work.pl" "$dir/short.$input") ;;
	lua) command=(/usr/bin/lua5.4 "$accuracy_source/accuracy_work.lua" "$dir/short.$input") ;;
	python) command=(/usr/bin/python3.11 -I "$accuracy_source/accuracy_work.py" "$dir/short.$input") ;;
	cc1) command=("$(cc -print-prog-name=cc1)" -fpreprocessed -quiet -O2 -o /dev/null "$dir/code.$input.i") ;;
	num) command=("$dir/num" "$([ "$input" = A ] && echo 1 || echo 4)") ;;
	lex) command=("$dir/lex" "$dir/text.$input" 3) ;;
	mawk) command=(/usr/bin/mawk -f "$dir/words.awk" "$dir/text.$input") ;;
	jq) command=(/usr/bin/jq -n '[inputs | select(.words | length > 2) | .words | map(length) | add] | add' "$dir/words.$input.json") ;;
	bc) command=(/usr/bin/bc -lq "$dir/pi.$input.bc") ;;
	sqlite) command=(/usr/bin/sqlite3 :memory: ".read $dir/words.$input.sql") ;;
	*)
		echo "$0: no program '$1'" >&2
		return 1
		;;
	esac
}
