# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the benches: options, statistics, figures.
#
# Each measurement is appended as a number to $raw/NAME, a line each; a figure is the median of such a
# file with its 95 % interval by order statistics (distribution-free: no assumption about the noise).

bench_ok=0 bench_short=0 raw=

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

# need_number NAME VALUE: what failed to measure gives none, and would pass as little.
need_number()
{
	[[ $2 =~ ^[-+]?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?$ ]] || {
		echo "$0: $1: '$2' is no number" >&2
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

# figure NAME VALUE UNIT LIMIT [OP]: reached at or below the limit, with OP ">=" at or above.
figure()
{
	local verdict op=${5:-<=}
	verdict=$(awk -v v="$2" -v l="$4" -v op="$op" \
		'BEGIN { print (v != "" && (op == ">=" ? v >= l : v <= l)) ? "ok" : "short" }')
	printf 'figure: %s %s %s reach %s %s %s\n' "$1" "$2" "$3" "$op" "$4" "$verdict"
	if [ $verdict = ok ]; then
		bench_ok=$((bench_ok + 1))
	else
		bench_short=$((bench_short + 1))
	fi
}

figures_end()
{
	printf 'figures: %d ok, %d short\n' $bench_ok $bench_short
}

calc() { awk "BEGIN { printf \"%.6g\\n\", $* }"; }
