# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64 newest
# On the newest kernel in the archive (Linux 6.12 when this was written) nothing is refused: call paths, waiting threads,
# instruction traces and values together, and what they say of a JIT program is true.
. /src/tests/support/daemon.sh
. /test/limits.sh
uname -r
"$DCPI_BIN/dcpid" -check >"$work/check" || fail "-check"
[ "$(grep -cE '^ +(bpf|perf|traces|call paths|waits|tick) +(yes|ok)' "$work/check")" = 6 ] ||
	fail "a part is refused: $(cat "$work/check")"
grep " $(uname -r | cut -d. -f1,2)[, ].*have taken all of them" /src/man/dcpid.8.in || echo "dcpid(8) does not name this kernel"
# A path of each sample takes an emulated CPU nearly a millisecond.
start_daemon -source bpf -event cpu-clock+tick -rate 250 -callpaths 1 -wait -vwindows 10 -vprof
# has_paths: of dcpid, whose parts are compiled, from their first instruction on, and of the JIT where code of no file is walked.
has_paths()
{
	dcpicalltree >"$work/tree" 2>&1 || fail "dcpicalltree"
	grep -A 3 ' _start  \[dcpid\]$' "$work/tree" >"$work/start" && grep ' main  \[dcpid\]$' "$work/start" || return 1
	[ "$(uname -m)" != x86_64 ] || grep ' _start  \[hello\]$' "$work/tree"
}
# A busy host reads files and makes their tables late.
for ((try = 0; try < 30; try++)); do
	"$DCPI_BIN/examples/hello" 0.5 >/dev/null || fail "hello"
	dcpiflush >/dev/null || fail "dcpiflush"
	! has_paths || break
done
[ $try -lt 30 ] || fail "no path of dcpid, or of the JIT: $(cat "$work/tree")"
dcpiepoch >/dev/null || fail "dcpiepoch"
# The tables of this machine's files have used up the time that dcpid takes for tables; a minute brings all of it back.
sleep 60
"$DCPI_BIN/examples/hello" 4 >"$work/told" || fail "hello"
account_holds "all together"
programs_within_limits
dcpictl status | grep -A 12 '^call paths' || fail "dcpictl status"
stop_daemon
cat "$work/log"
grep -qE 'call paths: ([0-9]+) of \1 samples stored, 0 lost' "$work/log" || fail "no call paths, or lost ones"
grep -qE 'waiting and running threads: .* stored, 0 lost' "$work/log" || fail "nothing of waiting threads, or lost"

ls "$db"/*/*/hello-*.values || fail "no values of the JIT code"

dcpicalltree -comm hello >"$work/tree" 2>&1 || fail "dcpicalltree"
head -n 24 "$work/tree"
[ "$(uname -m)" = x86_64 ] || exit 0 # code of no file is walked there alone
# Callers: beneath main the routines have the shares that the program told, within five standard errors and what samples
# have no path to main: those of code that is a moment old.
dcpiprof -event cpu-clock -comm hello >"$work/prof" 2>&1 || fail "dcpiprof"
awk 'NF < 2 { next }
	FILENAME ~ /told$/ { share[$1] = $2; next }
	!($(NF - 1) in share && $NF ~ /^\[?hello\[/) { beneath = beneath && !/no unwind rows/ || / main  \[hello\]$/; next }
	FILENAME ~ /prof$/ { samples += $1; next }
	beneath { n[$(NF - 1)] = $2; all += $2 }
	END {
		for (r in share) {
			off = 100 * n[r] / (all ? all : 1) - share[r]
			most = 5 * sqrt(share[r] * (100 - share[r]) / (all + 1)) + 100 * (samples - all) / (samples + 1)
			print r, n[r] + 0, "off by", off, "points, at most", most
			bad += off > most || off < -most
		}
		print all, "of", samples, "beneath main"
		exit bad || all < 100 || all < samples / 2
	}' "$work/told" "$work/prof" "$work/tree" || fail "callers"
