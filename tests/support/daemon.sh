# SPDX-License-Identifier: BSD-2-Clause
# Sourced by system tests: a dcpid of the test's own (run folder, queue, database), stopped at the end
# by its pid. Sets $work, $db, DCPI_RUN, DCPI_QUEUE, DCPIDB; start_daemon and stop_daemon do the rest.

work=$(mktemp -d)
db=$work/db
export DCPI_RUN=$work/run DCPI_QUEUE=/dcpi-test-$$ DCPIDB=$db
daemon=

fail()
{
	echo "FAILED: $*" >&2
	exit 1
}

need_root()
{
	[ "$(id -u)" = 0 ] || {
		echo "skip: needs root to sample the system"
		exit 77
	}
}

# From here on use copies of the programs that any user can reach, wherever the build is; and a database that any user
# may read, as one that an administrator has made.
reachable_programs()
{
	chmod 755 "$work"
	mkdir -p "$db"
	chmod 755 "$db"
	mkdir "$work/bin" "$work/bin/examples"
	cp -P "$DCPI_BIN"/dcpi* "$work/bin"
	cp "$DCPI_BIN/examples/hello" "$work/bin/examples"
	DCPI_BIN=$work/bin
}

# start_daemon [OPTION…]: the bounds of the tests suppose 1000 samples a second, not the tick's few.
start_daemon()
{
	case " $* " in
	*" -event "* | *" -slot "*) ;;
	*) set -- -event cpu-clock "$@" ;;
	esac
	"$DCPI_BIN/dcpid" -background -log "$work/log" "$@" "$db" || fail "dcpid does not start"
	daemon=$(status_field pid)
	[ -n "$daemon" ] || fail "dcpid's status names no pid"
}

# To its end: its socket, queue and database may be another's then. Law 1 has held, or it says so.
stop_daemon()
{
	"$DCPI_BIN/dcpictl" quit || fail "dcpictl quit"
	wait_for_end "$daemon" || fail "the daemon does not end"
	daemon=
	! grep -s 'do not balance' "$work/log" || fail "the accounts"
}

# status_field NAME: a number or word of "dcpictl status -json".
status_field()
{
	"$DCPI_BIN/dcpictl" status -json | tr ',{}' '\n\n\n' |
		sed -nE "s/^[[:space:]]*\"$1\"[[:space:]]*:[[:space:]]*\"?([^\"]*)\"?\$/\\1/p" | head -n 1
}

# missed: samples that were due and that the kernel did not deliver, on all CPUs: a host takes a virtual
# machine's CPUs away now and then, while clocks and CPU time go on.
missed() { status_field missed; }

# account_holds WHEN: law 1, the identity computed from its parts, once there are samples: the daemon's first turn may take
# seconds on a busy machine, and until then the status is the one of its start, without any. Sets $received and $lost.
account_holds()
{
	local parts stored pending try
	for ((try = 0; try < 120; try++)); do
		"$DCPI_BIN/dcpictl" status -json >"$work/status" || fail "$1: dcpictl status"
		parts=$(tr ',{}' '\n\n\n' <"$work/status" | awk -F: '
			{ gsub(/"/, "", $1) }
			$1 == "losses" { inside = 1; next }
			$1 == "buckets" { inside = 0 }
			inside && $2 != "" { l += $2; names++ }
			$1 == "received" { r = $2 }  # the last one is the sum: events come before
			$1 == "stored" { s = $2 }
			$1 == "pending" { p = $2 }
			END { print r, s, p, names ? l : "unnamed" }')
		read -r received stored pending lost <<<"$parts"
		[ "$received" = 0 ] || break
		sleep 0.5
	done
	echo "$1: received $received, stored $stored, pending $pending, lost $lost"
	[ "$received" -gt 0 ] || fail "$1: nothing received within a minute"
	[ "$received" = $((stored + pending + lost)) ] || fail "$1: samples are missing"
}

# total_on_disk: samples in all epochs of $db.
total_on_disk()
{
	"$DCPI_BIN/dcpiprof" -db "$db" -epoch all -i -no_header 2>>"$work/err" | awk '$NF == "total" { print $1 }'
}

# flush_stored WHEN: flush; $stored is the number of samples that the daemon has stored, as it says.
flush_stored()
{
	"$DCPI_BIN/dcpictl" -json flush >"$work/flushed" || fail "$1: dcpictl flush"
	stored=$(sed -E 's/.*"stored":([0-9]+).*/\1/' "$work/flushed")
	[ "$stored" -gt 0 ] || fail "$1: nothing is stored"
}

# flush_holds WHEN [GONE]: the same, and so many are on disk, but for GONE that were removed with an earlier
# database. More of them: the daemon has flushed by itself since. Where reading them takes longer than its interval, they
# are between what it says before and after.
flush_holds()
{
	local before disk try gone=${2:-0}
	for try in 1 2 3 4 5 6 7 8 9 10; do
		flush_stored "$1"
		before=$stored
		disk=$(total_on_disk)
		[ "$disk" -gt $((before - gone)) ] || break
	done
	[ "$disk" -le $((before - gone)) ] || flush_stored "$1"
	echo "$1: flush says $before to $stored stored, on disk are $disk and were $gone"
	[ "$before" -le $((disk + gone)) ] && [ $((disk + gone)) -le "$stored" ] ||
		fail "$1: $before to $stored stored, $disk on disk and $gone removed"
}

# sanitized: the daemon's sanitizer keeps what is freed, and its memory says little.
sanitized() { nm -D "$DCPI_BIN/dcpid" | grep -c __asan_init >/dev/null; }

# within WHAT VALUE TRUTH TOLERANCE
within()
{
	awk -v v="$2" -v t="$3" -v d="$4" 'BEGIN { exit !(v != "" && v - t <= d && t - v <= d) }' ||
		fail "$1: $2, truth $3, tolerance $4"
	echo "$1: $2 (truth $3 ± $4)"
}

# lives PID: a thread of it does. What has ended holds nothing any more, though its pid stays until its parent, a
# daemon's is init, has asked for its status; in some containers that takes seconds.
lives() { grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1"/task/*/status; }

# wait_for_end PID: a minute for its last flush; its files must be there as long. 1: it goes on.
wait_for_end()
{
	local i
	for ((i = 0; i < 1200; i++)); do
		lives "$1" || return 0
		sleep 0.05
	done
	echo "the daemon $1 does not end" >&2
	return 1
}

# at_end COMMAND: however the test ends, and before its daemon does; the last one told comes first.
undo=
at_end() { undo="$1; $undo"; }

cleanup()
{
	local status=$?
	set +e # A step that fails keeps no later one from being done.
	eval "$undo"
	[ -z "$daemon" ] || ! kill "$daemon" 2>/dev/null || wait_for_end "$daemon" || :
	[ $status = 0 ] || [ $status = 77 ] || [ ! -s "$work/log" ] || {
		echo "--- the daemon's log"
		tail -n 40 "$work/log"
	}
	rm -rf "$work"
}
trap cleanup EXIT
