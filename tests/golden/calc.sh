#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# calc: the programs that come with it, its options, its messages and exit statuses.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export DCPI_RUN=$work/none DCPI_QUEUE=/dcpi-none # no daemon of this machine is disturbed
cp "$DCPI_SRC"/examples/jit/calc/*.calc .

run()
{
	echo "\$ $*"
	# A program's own output, then messages, without what differs from run to run.
	"$DCPI_BIN/$1" "${@:2}" >stdout 2>stderr
	status=$?
	sed -E 's/^(share [^ ]+) +[0-9.]+ %$/\1 N %/' stdout
	sed -E 's/[0-9]+ rounds in [0-9.]+ s/N rounds in S s/' stderr
	[ $status = 0 ] || echo "exit $status"
}

cat >status.calc <<'END'
func main(): int {
    print("status ", 300 + round(), "\n");
    return 300;
}
END
cat >hello.calc <<'END'
extern "puts"(string): int32;
extern "printf"(string, ...): int32;
extern "hypot" length(double, double): double;

func main() {
    print("print\n");
    puts("puts");
    printf("%s %ld %.3f\n", "printf", 42, length(3, 4) / 3);
}
END
cat >syntax.calc <<'END'
func main() {
    var x = 1 +;
}
END
cat >runtime.calc <<'END'
func share(total: int, heads: int): int {
    return total / heads;
}
func main() {
    print("each gets ", share(12, 4), "\n");
    print("each gets ", share(12, 0), "\n");
}
END
cat >tree.calc <<'END'
extern "sqrt"(double): double;
var limit = 10;
func f(n: int, x: double): double {
    for var i = 0; i < n; i += 1 {
        if i == 3 || !n { continue; } else { x *= i; }
    }
    return sqrt(x) - -1;
}
func main() { var a = int[limit]; a[1] = int(f(2, 0.5)); print("a\t", a[1]); }
END

{
	run calc demo.calc
	run calc shares.calc
	run calc --shares shares.calc
	run calc hello.calc
	run calc status.calc
	run calc -ast tree.calc
	run calc syntax.calc
	run calc runtime.calc
	run calc missing.calc
	run calc
	run calc -time
	run calc -time no demo.calc
	run calc -fast demo.calc
	run calc -profile
	run calc -profile missing.json hello.calc
	run calc demo.calc shares.calc
	run calc -help
	# main runs again and again, on fresh variables
	run calc -time 0.1 -shares shares.calc
} >out

# Measured shares are what the program makes them. While a host runs something else on a virtual machine's CPU
# the CPU time of whatever was running goes on: not in each of five runs, as with shares that are wrong.
measured()
{
	"$DCPI_BIN/calc" -time 0.5 -shares shares.calc 2>stderr | awk '
	$1 == "share" { off = $3 - want[$2]; if (off < -5 || off > 5) { print; bad = 1 } nr++ }
	BEGIN { want["sixty"] = 60; want["thirty"] = 30; want["ten"] = 10; want["-"] = 0 }
	END { if (nr != 4) print nr " shares"; exit bad || nr != 4 }'
}
measured || measured || measured || measured || measured || exit 1

# What cannot be written is a failure.
if [ -w /dev/full ]; then
	for command in "calc -help" "calc -ast tree.calc" "calc -dump tree.calc" "calc hello.calc" "examples/hello 0" "examples/dst 0"; do
		# shellcheck disable=SC2086
		"$DCPI_BIN"/$command >/dev/full 2>stderr && { echo "$command >/dev/full exits 0"; exit 1; }
		grep -q "No space left on device" stderr || { echo "$command >/dev/full says:"; cat stderr; exit 1; }
	done
fi

diff -u "$DCPI_SRC/tests/golden/calc.expected" out
