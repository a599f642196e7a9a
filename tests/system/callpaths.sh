#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Call paths of a real daemon: programs without frame pointers and symbols, whose chain of calls through
# an executable and a library is known; one of them short-lived, one in the kernel most of its time.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root

cat >"$work/lib.c" <<'END'
#include <stdint.h>

#define CALLED __attribute__((noinline, noclone))

CALLED uint64_t spin(uint64_t n)
{
	volatile uint64_t x = n | 1;

	for (uint64_t i = 1; i < n; i++)
		x = x / i + n;
	return x;
}

CALLED uint64_t twice(uint64_t n)
{
	volatile uint64_t space[33] = { n };

	return spin(n) + space[n % 33];
}

/* Its frame has a length that only its frame pointer tells. */
CALLED uint64_t once(uint64_t (*fn)(uint64_t), uint64_t n)
{
	volatile uint64_t space[n % 7 + 1];

	space[0] = n;
	return fn(n) + space[0];
}
END
cat >"$work/prog.c" <<'END'
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CALLED __attribute__((noinline, noclone))

uint64_t once(uint64_t (*fn)(uint64_t), uint64_t n);
uint64_t twice(uint64_t n);
volatile uint64_t sink = NUMBER;

CALLED uint64_t back(uint64_t n) { return twice(n) + sink; }
CALLED uint64_t run(uint64_t n) { return once(back, n) + sink; }

/* Most of its time is the kernel's. */
CALLED uint64_t drain(int fd)
{
	static char to[1 << 20];

	return (uint64_t)read(fd, to, sizeof(to)) + sink;
}

int main(int argc, char **argv)
{
	clock_t end = clock() + atof(argv[1]) * CLOCKS_PER_SEC;
	int fd = argc > 2 ? open(argv[2], O_RDONLY) : -1;

	while (clock() < end)
		sink += fd < 0 ? run(20000) : drain(fd);
	return 0;
}
END
flags="-O2 -fomit-frame-pointer -fno-optimize-sibling-calls"
cc $flags -fPIC -shared -o "$work/libcalled.so" "$work/lib.c"
for name in long short kernelly; do
	cc $flags -DNUMBER=${#name} -o "$work/$name" "$work/prog.c" -L"$work" -lcalled -Wl,-rpath,"$work"
done

# symbols FILE: "NAME ROUTINE START END", as offsets in the file.
symbols()
{
	local text
	text=$(readelf -SW "$1" | awk '{ sub(/^ *\[ *[0-9]+\] */, "") } $1 == ".text" { print $3, $4 }')
	nm -S "$1" | awk -v text="$text" -v name="${1##*/}" '
		function number(hex,  i, v) {
			for (i = 1; i <= length(hex); i++)
				v = v * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
			return v
		}
		BEGIN { split(text, t, " "); less = number(t[1]) - number(t[2]) }
		NF == 4 && tolower($3) == "t" { print name, $4, number($1) - less, number($1) + number($2) - less }'
}
for name in libcalled.so long short kernelly; do
	symbols "$work/$name"
	strip "$work/$name"
done >"$work/symbols"

# paths_account: each sample whose turn it was is stored, or lost by one name, and each path has an end.
paths_account()
{
	"$DCPI_BIN/dcpictl" status -json | tr ',{}' '\n\n\n' | awk -F: '
		{ gsub(/"/, "", $1) }
		$1 ~ /^callpath_/ { inside = $1; next }
		$1 == "frames" { inside = "" }
		inside != "" && $2 != "" { sum[inside] += $2 }
		$1 ~ /^callpaths_/ { v[$1] = $2 }
		END { print v["callpaths_received"] + 0, v["callpaths_stored"] + 0, v["callpaths_pending"] + 0,
			sum["callpath_losses"] + 0, sum["callpath_ends"] + 0 }' >"$work/account"
	read -r received stored pending lost ended <"$work/account"
	echo "call paths: received $received, stored $stored, pending $pending, lost $lost; $ended ended"
	[ "$received" -gt 0 ] || fail "no call path was received"
	[ "$received" = $((stored + pending + lost)) ] || fail "call paths are missing"
	[ "$ended" -ge "$stored" ] && [ "$ended" -le "$received" ] || fail "ends are missing"
}

# chains NAME: "COUNT END CHAIN" of the paths through program NAME, the sampled routine first. "?" is a routine
# of another file, and several of them are one.
chains()
{
	"$DCPI_BIN/dcpicat" "$(ls -d "$db"/*/*/callpaths | tail -n 1)" | awk -v of="$1" '
		function number(hex,  i, v) {
			for (i = 3; i <= length(hex); i++)
				v = v * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
			return v
		}
		function name_of(i,  s) {
			if (kind[i] == "kernel")
				return "kernel"
			for (s = 1; s <= nr[image[i]]; s++)
				if (off >= from[image[i], s] && off < to[image[i], s])
					return routine[image[i], s]
			return "?"
		}
		FILENAME == "-" && $1 == "image" && NF > 2 { kind[$2] = $3; n = split($5, part, "/"); image[$2] = part[n]; next }
		FILENAME == "-" && $1 == "paths" { end = $2; begun = 1; low = 0; next }
		FILENAME != "-" { k = ++nr[$1]; routine[$1, k] = $2; from[$1, k] = $3; to[$1, k] = $4; next }
		!begun { next }
		# Below it stand the paths of one workload.
		$1 == "workload" { low = 1; next }
		{
			match($0, /^ */)
			level = RLENGTH
			off = number($2)
			at[level] = name_of($1)
			file[level] = image[$1]
			if (!$3)
				next
			chain = last = ""
			for (l = level; l > low; l--) {
				is = is || file[l] == of
				if (at[l] != last || at[l] != "?" && at[l] != "kernel")
					chain = chain (chain ? " " : "") at[l]
				last = at[l]
			}
			if (is)
				print $3, end, chain
			is = 0
		}' "$work/symbols" -
}

# share_holds NAME FIRST CHAIN: of the samples of NAME whose chain begins with routine FIRST, 95 % or more have a
# complete path that begins with that CHAIN, a regular expression.
share_holds()
{
	chains "$1" >"$work/chains.$1"
	awk -v name="$1" -v first="$2" -v chain="$3" '
		{ count = $1; end = $2; $1 = $2 = ""; sub(/^ +/, "") }
		index($0 " ", first " ") == 1 {
			sum += count
			if (end == "complete" && $0 ~ "^" chain " ")
				good += count
		}
		END {
			printf "%s: %d of %d call paths are complete and right\n", name, good, sum
			exit !(sum > 20 && good >= 0.95 * sum)
		}' "$work/chains.$1" || {
		sort -rn "$work/chains.$1" | sed -n 1,20p
		fail "the call paths of $1"
	}
}

# Tables are made of files that were met: this is about what comes behind that.
start_daemon -callpaths 4
"$work/long" 0.5
"$work/kernelly" 0.5 /dev/zero
for _ in $(seq 20); do "$work/short" 0.02; done
for _ in $(seq 30); do
	"$DCPI_BIN/dcpictl" flush >/dev/null
	[ "$(status_field tables_waiting)" != 0 ] || break
	sleep 1
done
paths_account
"$DCPI_BIN/dcpictl" epoch >/dev/null

"$work/long" 2
"$work/kernelly" 1 /dev/zero
for _ in $(seq 200); do "$work/short" 0.01; done
"$DCPI_BIN/dcpictl" flush >/dev/null
paths_account
"$DCPI_BIN/dcpictl" status | sed -n '/^call paths/,/^last/p'
share_holds long spin "spin twice back once run main"
share_holds short spin "spin twice back once run main"
# main calls nothing else but clock().
share_holds kernelly kernel "kernel [?] (drain )?main"
stop_daemon

# Paths of one program have its own frames alone, and its samples.
for name in long short; do
	"$DCPI_BIN/dcpiprof" -comm $name -json 2>/dev/null >"$work/flat"
	want=$(sed -n '/"events":/,/\]/s/^ *"samples":\([0-9]*\),*$/\1/p' "$work/flat" | sed -n 1p)
	"$DCPI_BIN/dcpiexport" folded -comm $name -o "$work/folded" 2>"$work/err" || fail "dcpiexport: $(cat "$work/err")"
	got=$(awk '{ sum += $NF } END { print sum + 0 }' "$work/folded")
	"$DCPI_BIN/dcpicalltree" -comm $name -cut 0 2>/dev/null >"$work/tree"
	echo "$name: $got of $want samples with call paths of its own"
	[ "$got" = "$want" ] || fail "paths of $name lack samples"
	grep -q "/$name\]\|\[$name\]" "$work/tree" || fail "no path of $name"
	for other in long short kernelly; do
		[ $other = $name ] || ! grep "\[$other\]\|/$other\]" "$work/tree" || fail "a path of $other in those of $name"
	done
done

# All samples leave in the formats of others, and what these read adds up to what dcpiprof has.
"$DCPI_BIN/dcpiprof" -epoch all -json 2>/dev/null >"$work/flat" || fail "dcpiprof"
want=$(sed -n '/"events":/,/\]/s/^ *"samples":\([0-9]*\),*$/\1/p' "$work/flat" | sed -n 1p)
for format in pprof folded speedscope firefox callgrind perf otlp; do
	"$DCPI_BIN/dcpiexport" $format -epoch all -o "$work/exported" 2>"$work/err" || fail "dcpiexport $format: $(cat "$work/err")"
	"$DCPI_SRC/tests/support/export_read.py" $format "$work/exported" || fail "$format cannot be read"
	got=$(awk '$1 != "tags:" { sum += $2 } END { print sum + 0 }' "$work/exported.read")
	echo "$format: $got of $want samples in $(wc -l <"$work/exported.read") rows, $(stat -c %s "$work/exported") bytes"
	[ "$got" = "$want" ] || fail "$format lacks samples"
done
