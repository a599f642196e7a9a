# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the benches: options, statistics, figures.
#
# Each measurement is appended as a number to $raw/NAME, a line each; a figure is the median of such a
# file with its 95 % interval by order statistics (distribution-free: no assumption about the noise).

bench_ok=0 bench_short=0 bench_not_judged=0 bench_names=' ' raw=

# bench_options ARG…: --raw DIR keeps the raw measurements; DIR is of the folder that the bench was called in, which
# each leaves once before.
bench_options()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--raw)
			raw=${2:?"--raw needs a folder"}
			[[ $raw = /* ]] || raw=$OLDPWD/$raw
			shift 2
			;;
		*)
			echo "usage: $0 [--raw DIR]" >&2
			exit 2
			;;
		esac
	done
	raw=${raw:-$bench_work/raw}
	mkdir -p "$raw"
}

# is_number VALUE: in decimal digits; nan and inf are no numbers.
is_number() { [[ $1 =~ ^[-+]?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?$ ]]; }

# need_number NAME VALUE: a measurement that failed gives no number, and would pass as little.
need_number()
{
	is_number "$2" || {
		echo "$0: $1: '$2' is no number" >&2
		exit 1
	}
}

# need_at_least WHAT IS LEAST: the subject of a measurement worked (so many samples were recorded, names found).
# Where it did not, the bench ends, and all its figures are short.
need_at_least()
{
	need_number "$1" "$2"
	awk -v is="$2" -v least="$3" 'BEGIN { exit !(is >= least) }' || {
		echo "$0: $1: $2, at least $3 are needed" >&2
		exit 1
	}
}

# put NAME VALUE: one measurement.
put()
{
	need_number "$1" "$2"
	echo "$2" >>"$raw/$1"
}

# median NAME: "MEDIAN LOW HIGH N" of the measurements; with fewer than six the interval is their range.
median()
{
	sort -g "$raw/$1" | awk '
		{ v[NR] = $1 }
		END {
			n = NR
			if (!n) exit 1
			m = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
			# the largest k with 2 P(Bin(n, 1/2) < k) <= 0.05
			k = 0; p = 2 ^ -n; sum = p
			while (2 * sum <= 0.05) { k++; p = p * (n - k + 1) / k; sum += p }
			if (k < 1) k = 1
			printf "%.6g %.6g %.6g %d\n", m, v[k], v[n + 1 - k], n
		}'
}

mid() { median "$1" | cut -d' ' -f1; }

# cost_of NAME: the median of a difference that is a cost; where it is smaller than its noise (the interval reaches
# down to 0) the interval's upper end, which is certain.
cost_of() { median "$1" | awk '{ printf "%.6g\n", ($2 > 0 ? $1 : $3) }'; }

# base_of NAME: the same of a difference that others are divided by: where it is smaller than its noise, nothing can
# be said.
base_of() { median "$1" | awk '$2 > 0 { print $1 }'; }

# tree_ns PID: the CPU time so far of a sampler and of the helpers that it has now.
tree_ns()
{
	local pid
	for pid in "$1" $(cat "/proc/$1/task/"*/children 2>/dev/null || :); do
		cat "/proc/$pid/task/"*/schedstat 2>/dev/null || : # a thread that ends meanwhile
	done |
		awk '{ s += $1 } END { printf "%.0f\n", s }'
}

# bench_figures NAME…: all figures of a bench. One that is not printed when the bench ends, because its subject or
# the bench itself failed, is short.
bench_figures()
{
	bench_names=" $* "
	trap 'bench_end $?' EXIT
}

bench_cleanup() { rm -rf "$bench_work"; }

# bench_end STATUS: at the end of each bench; bench_cleanup may be the bench's own.
bench_end()
{
	local name
	trap - EXIT
	set +e
	for name in $bench_names; do
		printf 'figure: %s none - reach - - short\n' "$name"
		bench_short=$((bench_short + 1))
	done
	[ "$bench_names" = " " ] || figures_end
	bench_cleanup
	exit "$1"
}

# figure NAME VALUE UNIT LIMIT [OP]: reached at or below the limit, with OP ">=" at or above. A value that is no
# number, or below 0 (which no cost, ratio, count or share is), is short, and so is one whose limit is no number.
figure()
{
	local verdict=short op=${5:-<=}
	if is_number "$2" && is_number "$4"; then
		verdict=$(awk -v v="$2" -v l="$4" -v op="$op" \
			'BEGIN { print (v >= 0 && (op == ">=" ? v >= l : v <= l)) ? "ok" : "short" }')
	fi
	printf 'figure: %s %s %s reach %s %s %s\n' "$1" "${2:-none}" "$3" "$op" "${4:-none}" "$verdict"
	bench_names=${bench_names/ $1 / }
	if [ "$verdict" = ok ]; then
		bench_ok=$((bench_ok + 1))
	else
		bench_short=$((bench_short + 1))
	fi
}

# not_judged NAME REASON: a figure that compares with another's tool, which does not work on this machine.
not_judged()
{
	printf 'figure: %s none - reach - - not-judged (%s)\n' "$1" "$2"
	bench_names=${bench_names/ $1 / }
	bench_not_judged=$((bench_not_judged + 1))
}

figures_end()
{
	printf 'figures: %d ok, %d short' $bench_ok $bench_short
	[ $bench_not_judged = 0 ] || printf ', %d not judged' $bench_not_judged
	echo
}

calc() { awk "BEGIN { printf \"%.6g\\n\", $* }"; }
