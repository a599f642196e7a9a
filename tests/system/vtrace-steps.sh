#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Windows of 64 instructions from wherever eight real programs happen to be: what the interpreter
# calls known equals, to the bit, what the processor does step by step. Needs no root.
#   DCPI_COUNT: windows of each program (scripts/test --long vtrace-steps)
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
steps=$DCPI_BUILD/tests/vtrace_steps
[ -x "$steps" ] || {
	echo "skip: there is no single-stepping of this machine's instructions"
	exit 77
}
count=${DCPI_COUNT:-60} seed=${DCPI_SEED:-$RANDOM}
echo "seed $seed"

# Text with words that come again, and an endless job for each interpreter.
awk -v seed="$seed" 'BEGIN { srand(seed); for (i = 0; i < 300000; i++) print i, int(rand() * 1000), "word" i % 977 }' \
	>"$work/text"
cat >"$work/work.sh" <<'EOF'
i=0; while :; do i=$((i+1)); x="a${i}b"; case $x in *9b) y=$((i%7));; esac; z=${x#a}; done
EOF
cat >"$work/work.pl" <<'EOF'
while (1) { my %h; for my $i (1..20000) { my $k = ($i*7919)%1000; $h{$k} .= $i; $h{$k} =~ s/12/3/g } my @s = sort keys %h }
EOF
cat >"$work/work.lua" <<'EOF'
while true do
	local t = {} for i = 1, 5000 do t[i] = (i*7919) % 1009 end table.sort(t)
	local s = "" for i = 1, 200 do s = s .. t[i] end
end
EOF
for i in $(seq 300); do
	echo "int f$i(int a, char *s) { int x = a * $i; for (int i = 0; i < a; i++) x += s[i] * i ^ $i; return x / ($i + a); }"
done >"$work/work.c"

# windows PROGRAM…: none may differ, and most of them reach their end.
windows()
{
	echo "== ${1##*/}"
	timeout 300 "$steps" "$count" 64 "$seed" "$@" >"$work/out" || {
		tail -n 60 "$work/out"
		echo "FAILED: $*"
		exit 1
	}
	cat "$work/out"
	awk '/^traces/ { exit !($6 >= 14 && $8 == 0 && $10 >= 50) }' "$work/out" || {
		echo "FAILED: too little is known of $1"
		exit 1
	}
	cat "$work/out" >>"$work/all"
}

windows gzip -9 -c "$work/text"
windows xz -c "$work/text"
windows sort --parallel=1 "$work/text"
windows awk '{ n[$3] += $2; s = s substr($0, 3, 1); if (length(s) > 99) s = "" } END { while (1) n["x"]++ }' "$work/text"
windows perl "$work/work.pl"
windows sh "$work/work.sh"
windows "$(gcc -print-prog-name=cc1)" -quiet -O2 "$work/work.c" -o /dev/null
windows luajit "$work/work.lua"
awk '/^traces/ { n++; w += $2; i += $4; bad += $8; full += $10 }
	END {
		printf "%d programs: %d windows, %d instructions, %d differ; %.1f %% ran to their end (mean)\n", n, w, i, bad, full / n
		exit n != 8 || bad
	}' "$work/all"
