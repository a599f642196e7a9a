#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Waiting and running threads (dcpid -wait): a program of known sleeps, locks, pipes and disk reads, whose threads
# tell by their own clocks how long they waited, ran and lived.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root

cc -O2 -o "$work/waits" "$DCPI_SRC/tests/support/waits.c" -lpthread
[ "$(uname -r | cut -d. -f1)" -ge 6 ] || {
	echo "skip: needs call paths"
	exit 77
}

# Some file systems read past their cache, some do not.
head -c 16777216 /dev/urandom >"$work/file"
sync "$work/file"
direct=$(dd if="$work/file" of="$work/copied" iflag=direct bs=64k count=1 2>"$work/err" && echo yes || true)
[ -n "$direct" ] || echo "skipped: the disk, as files in $work cannot be read past the cache"

rounds=100

# stolen_ms: what the host took from all CPUs, as the kernel counts it.
stolen_ms() { awk -v hz="$(getconf CLK_TCK)" '/^cpu / { printf "%.0f\n", $9 * 1000 / hz }' /proc/stat; }

# measure: run the program under a daemon of its own; its truth, and what the database says of it, to files.
measure()
{
	local stolen
	start_daemon -wait -drain 700
	stolen=$(stolen_ms)
	"$work/waits" $rounds "${direct:+$work/file}" >"$work/truth" &
	program=$!
	wait $program
	stolen=$(($(stolen_ms) - stolen))

	# balanced: every nanosecond is stored, pending or lost by one name.
	"$DCPI_BIN/dcpictl" status -json >"$work/status"
	tr ',{}' '\n\n\n' <"$work/status" | awk -F: '
		{ gsub(/"/, "", $1) }
		$1 == "ns_losses" { inside = 1; next }
		$1 == "ns_by_kind" { inside = 2; next }
		$1 ~ /^ns_/ { v[$1] = $2; inside = 0 }
		inside == 1 && $2 != "" { lost += $2 }
		inside == 2 && $2 != "" { kinds += $2 }
		END {
			printf "waits: received %.0f, stored %.0f, pending %.0f, lost %.0f ns; by kind %.0f\n", v["ns_received"],
				v["ns_stored"], v["ns_pending"], lost, kinds
			exit !(v["ns_received"] > 0 && v["ns_balanced"] == "true" && kinds == v["ns_stored"] &&
				lost == v["ns_lost"])
		}' || fail "the account of waits"
	account_holds "beside waits"
	still=$(missed)
	echo "missed: $still samples, a millisecond each; stolen: $stolen ms"
	[ "$still" -gt "$stolen" ] || still=$stolen
	"$DCPI_BIN/dcpictl" status | sed -n '/^waits/,/^workloads/p'
	flush_holds "beside waits"
	stop_daemon
	cat "$work/truth"

	# A line for each thread and kind: "THREAD KIND NS". A kind that no thread of the machine had has no image.
	for kind in sleep disk lock "pipe or socket" "page fault" "run queue" other unknown; do
		{ "$DCPI_BIN/dcpiprof" -by thread -s wait -csl -exe "$work/waits" "waiting, $kind" 2>>"$work/err" || :; } |
			awk -F, -v kind="$kind" '
				NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^"?wait"?$/) at = i; next }
				{ name = $NF; gsub(/"/, "", name); if (name ~ /^w-/ && $at > 0) printf "%s\t%s\t%.0f\n", name, kind, $at }'
	done >"$work/waited"
	"$DCPI_BIN/dcpiprof" -by thread -s run -csl -exe "$work/waits" 2>>"$work/err" | awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^"?run"?$/) at = i; next }
		{ name = $NF; gsub(/"/, "", name); if (name ~ /^w-/ && $at > 0) printf "%s\trun\t%.0f\n", name, $at }' >>"$work/waited"
	cat "$work/waited"
}

# judge: each thread against its own clock, which goes on around a wait while the thread waits for a CPU. A read is work
# of the kernel, too. Where a switch begins for the kernel's account of CPU time differs by the microseconds that it
# takes. Where the host takes a CPU away, a thread on it runs by our clock and not by its own, a tenth of a millisecond
# for each read of a virtual disk: the kernel counts what was stolen in all, where the host tells it, and samples that
# were missed tell what was taken for a millisecond or more.
judge()
{
	awk -F'\t' -v direct="$direct" -v still="$still" '
		function near(what, least, most, truth, slack) {
			printf "%s: %.3f to %.3f ms, truth %.3f ms, slack %.3f ms\n", what, least / 1e6, most / 1e6, truth / 1e6,
				slack / 1e6
			if (most + slack < truth || truth + slack < least)
				failed = failed "; " what
		}
		NR == FNR { ns[$1, $2] += $3; all[$1] += $3; next }
		{
			split($0, f, " ")
			n = f[1]
			kind = ""
			if (n == "w-sleep") kind = "sleep"
			if (n == "w-lock") kind = "lock"
			if (n == "w-read") kind = "pipe or socket"
			if (n == "w-disk" && direct) kind = "disk"
			most = ns[n, kind] + ns[n, "run queue"] + (n == "w-disk" ? ns[n, "run"] : 0)
			if (kind)
				near(n ", " kind, ns[n, kind], most, f[2], f[2] / 100 + still * 1000000)
			# Switches are ours, and only in part its own.
			near(n ", run", ns[n, "run"], ns[n, "run"], f[3], f[3] / 100 + f[5] * 20000 + 1000000 + still * 1000000)
			near(n ", life", all[n], all[n], f[4], f[4] / 100)
			threads++
		}
		END {
			if (failed != "" || threads != 7)
				printf "FAILED: %d threads%s\n", threads, failed
		}' "$work/waited" "$work/truth" | tee "$work/judged"
	! grep -q FAILED "$work/judged"
}

# A host that holds our CPUs for longer than these two tell spoils the measurement: it is made again.
for try in 1 2 3 4; do
	db=$work/db$try DCPIDB=$work/db$try
	measure
	! judge || break
	[ $try -lt 4 ] || fail "sums of waits: $(sed -n 's/^FAILED: //p' "$work/judged")"
done

# Who waits stands above its wait, in the program by its name.
"$DCPI_BIN/dcpicalltree" -s wait -up -cut 0 "(waiting, lock)" >"$work/tree" 2>>"$work/err"
grep -q locks "$work/tree" || fail "the tree does not tell who waits for locks"
"$DCPI_BIN/dcpiprof" -i -s wait | sed -n 1,20p
