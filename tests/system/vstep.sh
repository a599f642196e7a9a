#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A program stepped by the processor: what it computes in floating point is in its value profile, and
# nothing else. Whoever steps it is killed, and it goes on. Whom one cannot step is said.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
[ "$(uname -m)" = x86_64 ] || {
	echo "skip: programs are stepped on x86-64 only"
	exit 77
}
reachable_programs

cat >"$work/fp.c" <<'END'
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

double factors[4] = { 0.1, 0.1, 0.7, 0.1 }, by = 3, sum;

__attribute__((noinline)) void forever(pid_t parent)
{
	do {
		for (long i = 0; i < 1000000; i++) {
			double x = factors[i & 3];

			__asm__ volatile(".globl times\ntimes: mulsd %1, %0" : "+x"(x) : "x"(by));
			sum += x;
		}
	} while (getppid() == parent);
}

/* "known": the products, as a value profile has them. */
int main(int argc, char **argv)
{
	for (int i = 1; i < 3 && argc > 1; i++) {
		union {
			double d;
			uint64_t u;
		} v = { factors[i] * by };

		printf("0x%llx\n", (unsigned long long)v.u);
	}
	if (argc == 1)
		forever(getppid());
	return argv[0] == 0;
}
END
cc -O1 -o "$work/fp" "$work/fp.c"
"$work/fp" known | sort >"$work/known"
[ "$(wc -l <"$work/known")" = 2 ] || fail "the truth"
"$work/fp" &
fp=$!

# refused TEXT PID
refused()
{
	! "$DCPI_BIN/dcpid" -vprof -vstep "$2" "$db" 2>"$work/err" || fail "process $2 can be stepped"
	cat "$work/err"
	grep -q -- "$1" "$work/err" || fail "no '$1'"
	[ -z "$(ls -A "$db")" ] || fail "a database was made"
}
sh -c 'exit 0' &
gone=$!
wait "$gone"
refused "cannot step process $gone: there is none" "$gone"
kernel=$(ps -eo pid=,vsz= --ppid 2 | awk '$2 == 0 { print $1; exit }' || :)
[ -z "$kernel" ] || refused "a kernel thread" "$kernel"

start_daemon -vprof -vstep "$fp" -drain 100
for ((i = 0; i < 300 && $(status_field stepped_stored) < 20; i++)); do sleep 0.1; done
"$DCPI_BIN/dcpictl" status -json >"$work/status"
"$DCPI_BIN/dcpictl" status | grep "^steps  *of process $fp: " || fail "dcpictl status"
[ "$(status_field stepped_stored)" -ge 20 ] || fail "no windows of steps: $(cat "$work/status")"

# Whatever becomes of who steps.
running_time() { awk '{ print $14 + $15 }' "/proc/$fp/stat"; }
kill -KILL "$(pgrep -P "$daemon" -x dcpid-step)"
for ((i = 0; i < 600; i++)); do
	! grep -q 'stepping ends' "$work/log" || break
	sleep 0.1
done
grep 'stepping ends: dcpid-step was ended' "$work/log" || fail "nobody says that stepping has ended"
before=$(running_time)
for ((i = 0; i < 600 && $(running_time) < before + 5; i++)); do sleep 0.1; done
[ "$(running_time)" -ge $((before + 5)) ] || fail "the program stands: $(cat "/proc/$fp/stat")"

account_of_steps() # each that came is stored, waits, or is lost by name
{
	tr ',{}' '\n\n\n' <"$1" | awk -F'[": ]+' '
		/"stepped_losses"/ { inside = 1; next }
		/"stepped_ends"/ { inside = 0 }
		/"stepped_(received|stored|pending|lost)"/ { n[$2] = $3 }
		inside && NF > 2 { lost += $3; names++ }
		END {
			printf "steps: received %d, stored %d, pending %d, lost %d (%d)\n", n["stepped_received"],
				n["stepped_stored"], n["stepped_pending"], n["stepped_lost"], lost
			exit !(names && n["stepped_received"] && lost == n["stepped_lost"] &&
				n["stepped_received"] == n["stepped_stored"] + n["stepped_pending"] + lost)
		}'
}
"$DCPI_BIN/dcpictl" status -json >"$work/status"
account_of_steps "$work/status" || fail "the account of steps: $(cat "$work/status")"
stop_daemon
kill "$fp"

# The instruction's place in the file, and its values.
text=$(readelf -SW "$work/fp" | awk '{ sub(/^ *\[ *[0-9]+\] */, "") } $1 == ".text" { print "0x" $3, "0x" $4 }')
at=0x$(nm "$work/fp" | awk '$3 == "times" { print $1 }')
read -r start off <<<"$text"
"$DCPI_BIN/dcpivcat" -db "$db" -image fp -profiler values >"$work/values"
place=$(printf '0x%012x' $((at - start + off)))
grep "^$place" "$work/values" || fail "no values at $place: $(cat "$work/values")"
awk -v place="$place" '$1 == place { for (i = 7; i <= NF; i++) { sub(/:.*/, "", $i); print $i } }' \
	"$work/values" | sort >"$work/seen"
diff "$work/known" "$work/seen" || fail "these are not the products"
