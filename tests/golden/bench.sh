#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The benches' library: a figure is ok only when it is a number that lies where it should; each figure is short when
# the bench ends early. Then the benches themselves: none prints "ok" where nothing was built, nor calls a figure that
# it did not announce.
set -eu
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "$*" >&2; exit 1; }

# judged VERDICT VALUE LIMIT [OP]
judged()
{
	local want=$1 said
	shift
	said=$(bash -c '. "$DCPI_SRC/bench/lib.sh"; figure some "$1" unit "$2" "${3:-<=}"' bash "$@")
	case $said in
	*" $want") ;;
	*) fail "a value of '$1' with the limit '$2' ${3:-<=}: $said" ;;
	esac
}

judged ok 1 2
judged ok 2 2
judged ok 0 0
judged ok 1.5e-3 0.1
judged ok 2 1 '>='
judged short 3 2
judged short 0.5 1 '>='
for op in '<=' '>='; do
	for value in nan -nan inf -inf NaN Infinity '' ' ' - none 0x10 '1 2' 1e -0.045 -1; do
		judged short "$value" 2 "$op"
	done
	for limit in nan inf '' none; do judged short 1 "$limit" "$op"; done
done

# ---- intervals ------------------------------------------------------------------------------------

# with NAME FUNCTION VALUE…: the function's answer on these measurements.
with()
{
	local name=$1
	shift
	bash -c '. "$DCPI_SRC/bench/lib.sh"
		raw=. name=$1 f=$2
		shift 2
		printf "%s\n" "$@" >"$name"
		"$f" "$name"' bash "$name" "$@"
}

[ "$(with clear cost_of 4 5 6)" = 5 ] || fail "a cost that is larger than its noise is its median"
[ "$(with noisy cost_of -4 -1 3)" = 3 ] || fail "a cost that is smaller than its noise is its upper end"
[ "$(with clear base_of 4 5 6)" = 5 ] || fail "a base that is larger than its noise is its median"
[ -z "$(with noisy base_of -4 1 3)" ] || fail "a base that is smaller than its noise is nothing"

# ---- ends -----------------------------------------------------------------------------------------

cat >early <<'END'
set -euo pipefail
. "$DCPI_SRC/bench/lib.sh"
bench_cleanup() { echo cleaned; }
bench_figures first second third
figure first 1 ns 2
need_at_least samples 0 1
figure second 1 ns 2
figure third 1 ns 2
figures_end
END
! bash early >said 2>err || fail "a bench without samples succeeds"
cat >expected <<'END'
figure: first 1 ns reach <= 2 ok
figure: second none - reach - - short
figure: third none - reach - - short
figures: 1 ok, 2 short
cleaned
END
diff expected said
grep -q 'samples: 0, at least 1' err || fail "$(cat err)"
sed 's/need_at_least samples 0 1/need_at_least samples 5 1/' early >whole
bash whole >said
[ "$(tail -n 2 said)" = "figures: 3 ok, 0 short
cleaned" ] || fail "$(cat said)"

# One that another's broken tool leaves open is neither ok nor short.
sed 's/figure third.*/not_judged third "perf inject: exit status 139"/' whole >open
bash open >said
cat >expected <<'END'
figure: first 1 ns reach <= 2 ok
figure: second 1 ns reach <= 2 ok
figure: third none - reach - - not-judged (perf inject: exit status 139)
figures: 2 ok, 0 short, 1 not judged
cleaned
END
diff expected said

# ---- the benches ----------------------------------------------------------------------------------
# Where nothing can be built there is no profiler, and no figure is ok.
mkdir bin tree
printf '#!/bin/sh\nexit 1\n' >bin/cmake
printf '#!/bin/sh\necho "install ok installed"\n' >bin/dpkg-query
for tool in perf javac node gcc apt-get; do cp bin/cmake bin/$tool; done
chmod +x bin/*
cp -r "$DCPI_SRC/bench" "$DCPI_SRC/scripts" tree/
mkdir -p tree/tests
cp -r "$DCPI_SRC/tests/support" tree/tests/
for bench in tree/bench/*; do
	[ -f "$bench" ] && [ -x "$bench" ] || continue
	grep -q '^bench_figures' "$bench" || fail "$bench does not announce its figures"
	! PATH=$work/bin:$PATH bash "$bench" >said 2>err || fail "$bench succeeds without anything to measure"
	! grep -q '^figure: .* ok$' said || fail "$bench: $(grep ok said)"
	grep -q '^figure: .* short$' said || fail "$bench prints no figure: $(cat said err)"
done
