# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64
# shows: x86-64 4
# Values of instructions on Linux 6.1: those of a JIT program are kept, and its loops' counters take many.
. /src/tests/support/daemon.sh
uname -rv
start_daemon -source bpf -event cpu-clock -callpaths 0 -vwindows 1 -vprof
"$DCPI_BIN/examples/hello" 4 || fail "hello"
"$DCPI_BIN/dcpiflush" >/dev/null || fail "flush"
account_holds "values"
stop_daemon
ls "$db"/*/*/hello-*.values || fail "no values of the JIT code"
"$DCPI_BIN/dcpivcat" -image hello -profiler values >"$work/values" || fail "dcpivcat"
head -n 20 "$work/values"
awk '$1 == "name" { dynamic = $2 ~ /^hello\[/ }
	dynamic && $1 ~ /^0x/ { n += $4; nr++; many += $5 > 9; one += $5 == 1 } END {
		print n + 0 " values at " nr + 0 " instructions, of which " many + 0 " make many, " one + 0 " one"
		exit !(n > 100 && nr == 6 && many == 3 && one == 3)
	}' "$work/values" || fail "values of the JIT code"
