# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64
# shows: x86-64 3
# programs: moves
# Instruction traces on Linux 6.1: each that was received is stored, or lost by one name, and those of a JIT program, whose
# routines are one loop each, go round these.
. /src/tests/support/daemon.sh
uname -rv
start_daemon -source bpf -event cpu-clock -callpaths 0 -vwindows 1
"$DCPI_BIN/examples/hello" 4 || fail "hello"
"$DCPI_BIN/dcpiflush" >/dev/null || fail "flush"
account_holds "traces"
"$DCPI_BIN/dcpictl" status -json | tr ',{}' '\n\n\n' | awk -F: '
	{ gsub(/"/, "", $1) }
	$1 == "window_losses" { inside = 1; next }
	$1 == "window_ends" { inside = 0 }
	inside && $2 != "" { lost += $2 }
	$1 ~ /^windows_/ { v[$1] = $2 }
	END {
		print "traces: received", v["windows_received"] + 0 ", stored", v["windows_stored"] + 0 ", pending",
			v["windows_pending"] + 0 ", lost", lost + 0
		exit v["windows_stored"] < 100 ||
			v["windows_received"] != v["windows_stored"] + v["windows_pending"] + lost
	}' || fail "the account of traces"
"$DCPI_BIN/../tests/moves" "$db" hello >"$work/dyn" || fail "moves"
stop_daemon
back=3 # the loop's branch, behind its first instruction
[ "$(uname -m)" = x86_64 ] || back=4
awk -v back=$back '$2 != "-" && $3 != "-" {
		sum += $4 + $5
		if (substr($2, length($2)) == back && substr($3, length($3)) == "0") round += $4 + $5
	}
	END { print round + 0 " of " sum + 0 " edges of dynamic code go round"; exit !(sum > 100 && round > 0.99 * sum) }' \
	"$work/dyn" || fail "the way of dynamic code: $(cat "$work/dyn")"
