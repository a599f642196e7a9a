#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# scripts/test --long attack [SECONDS]: a daemon of root's, honest JITs of other users, and beside them hostile
# clients of uid 65534 of every kind, drawn by DCPI_SEED; then figures. Each kind runs at least once a minute, at the
# size of the attack that found the holes it is for; on a machine that has other work each round lasts until it has
# that size, and all of them take longer. Its mounts and queues are in namespaces of its own.
set -u
[ "$(id -u)" = 0 ] || { echo "skip: needs root to sample the system"; exit 77; }
[ -n "${ATTACK_INSIDE:-}" ] || ATTACK_INSIDE=1 exec unshare --mount --ipc bash "$0" "$@"
seconds=${1:-600}
DCPI_SEED=${DCPI_SEED:-$RANDOM}
export DCPI_SEED
RANDOM=$((DCPI_SEED % 32768))
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
. "$DCPI_SRC/tests/support/truth.sh"
. "$DCPI_SRC/tests/support/forge.sh"
kinds=(registries machines suid switch memory crowd renames connections doorbells control daemons maps files perfmaps
	jitdumps fuse buildids disk viewers removed python kills lingering)
[ -z "${ATTACK_KINDS:-}" ] || read -ra kinds <<<"$ATTACK_KINDS"
LANES=2
# A round that does not reach its size is given up after so long.
MOST_MS=90000
# Longest part of the run in which each kind has a round.
CYCLE_S=55
watcher='' lanes=() honest=()

# ---- what is attacked -----------------------------------------------------------------------------------------------

reachable_programs
evil=$work/evil secrets=$work/secrets suid=$work/suid rounds=$work/rounds results=$work/results
mkdir "$evil" "$secrets" "$suid" "$rounds" "$results" "$work/lib" "$work/forged"
chown 65534 "$evil"
cp -P "$tests"/../lib/libdbgdyn.so* "$work/lib"
cp "$tests"/{attack,attack_watch,bad_client,setuid_hole,spin_slot_0,spin_slot_1,fuse_hang} "$work/bin"
gcc -O1 -rdynamic -pthread -D_GNU_SOURCE -o "$work/bin/hostile_python" "$DCPI_SRC/tests/support/hostile_python.c"
forge_code "$work/bin/spin_slot_1" # equal code is one image, whatever its data are
mount -t tmpfs -o suid,mode=755 none "$suid"
cp "$tests/setuid_hole" "$suid/vault"
cp "$tests/setuid_hole" "$suid/client"
chmod 4755 "$suid/vault"
export LD_LIBRARY_PATH=$work/lib ATTACK_SECRETS=$secrets
token=$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
number=$((RANDOM % 6 + 1))
(
	umask 077
	printf '%s %s\n' $number "secret$token" >"$secrets/number"
	printf 'secret%s\n' "$token" >"$secrets/secret.txt"
	printf '200000000000 1000 secret%s\n' "$token" >"$secrets/secret.map"
	objcopy --remove-section .note.gnu.build-id "$DCPI_BUILD/tests/remap_0.so" "$secrets/secret.so"
	printf 'secret%s\n' "$token" >>"$secrets/secret.so"
) || fail "secrets"
# The files are root's; that they are there is to be found out, too.
chmod 711 "$secrets"

# as UID COMMAND…
as()
{
	local uid=$1
	shift
	exec setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"
}

# start_honest UID FACILITY [NUMBER]: its routines' names are another secret. Sets $!.
start_honest()
{
	as "$1" "$work/bin/attack" honest $RANDOM "$2" "private$token$2" "$part" >"$results/$2${3:+-$3}" 2>&1 &
}

# A short one after the other: each begins under attack, and ends so.
short_honest()
{
	local i=0 pid
	trap 'kill $pid 2>/dev/null; wait $pid; exit' TERM
	RANDOM=$DCPI_SEED
	while :; do
		start_honest 1003 short $i
		pid=$!
		sleep 8 &
		wait $!
		kill $pid 2>/dev/null
		wait $pid
		i=$((i + 1))
	done
}

# ---- kinds ----------------------------------------------------------------------------------------------------------

# clock_ms: and seconds of so many of them, with their fraction.
clock_ms() { echo $((${EPOCHREALTIME//[.,]/} / 1000)); }
as_seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

# run_as HOW SEED MS COMMAND…: killed with all that came of it, after so long, or when it has its size.
run_as()
{
	local how=$1 seed=$2 ms=$3
	shift 3
	(cd "$evil" && exec "$work/bin/attack" "$how" "$seed" "$(as_seconds "$ms")" "$(as_seconds $((ms + MOST_MS)))" \
		"$@" 2>>"$rounds/errors")
}
hostile() { run_as run "$@"; }


kind_machines()
{
	hostile "$1" "$2" bash -c 'echo full; for n in 0 3 22 65535 $((RANDOM % 1000)) $((RANDOM)); do
		(while :; do "$0" machine $n >/dev/null 2>&1 || sleep 0.1; done) & done; wait' "$work/bin/bad_client"
}

# A second between: the daemon must see the connection, the exec, and the registry.
kind_suid()
{
	hostile "$1" "$2" bash -c 'echo full; while :; do
		"$0/client" late "$0/vault" "$1" 0.7; "$0/client" early "$0/vault" "$1" 0.4; done >/dev/null 2>&1' \
		"$suid" "$secrets/number"
}

kind_switch()
{
	hostile "$1" "$2" bash -c 'echo full; for i in 1 2 3 4; do
		(while :; do "$0/client" switch "$0/vault" "$1" 40; done >/dev/null 2>&1) & done; wait' \
		"$suid" "$secrets/number"
}

kind_doorbells()
{
	hostile "$1" "$2" bash -c 'echo full; for how in bells bells sockets; do
		(while :; do "$0" $how 1000000; done >/dev/null 2>&1) & done; wait' "$work/bin/bad_client"
}

# Programs that are gone while they run, each with a file of its own, the largest ones above what is copied.
kind_removed()
{
	hostile "$1" "$2" bash -c 'echo full; exec 3>/dev/null 4>/dev/null; n=0
		while :; do n=$((n + 1)); file=gone-$$-$n; cp "$0" "$file"; truncate -s $((RANDOM % 80 + 1))M "$file"
		"./$file" 3 30000000 & sleep 0.05; rm -f "$file"; [ $((n % 8)) != 0 ] || wait; done' "$work/bin/spin_slot_1"
}

# Interpreters whose frames lie, one for each CPU.
kind_python()
{
	hostile "$1" "$2" bash -c 'echo full; for i in 1 2; do (while :; do "$0" 0.5 >/dev/null; done) & done; wait' \
		"$work/bin/hostile_python"
}

# Messages full of sockets whose close lasts an hour.
kind_lingering()
{
	hostile "$1" "$2" bash -c 'echo full; for i in 1 2; do
		(while :; do "$0" lingering 1 >/dev/null 2>&1; done) & done; wait' "$work/bin/bad_client"
}

# Signals to dcpid and its helpers, and the lowest priority: root started them, and other services run as the user "nobody" too.
kind_kills()
{
	hostile "$1" "$2" bash -c 'echo full; while :; do
		for p in $0 $(cat /proc/$0/task/*/children); do
			renice 19 $p; kill -STOP $p && sleep 0.3; kill -CONT $p; kill -KILL $p; done; sleep 0.05
		done >/dev/null 2>&1' "$daemon"
}

# Another daemon, with a run folder and a queue of its own, as tests have it.
kind_daemons()
{
	local dir=$rounds/second-$3
	mkdir "$dir"
	DCPI_RUN=$dir/run DCPI_QUEUE=/dcpi-test-$$-$3 run_as keep "$1" $(($2 + 4000)) bash -c '
		echo full; "$0" -event cpu-clock -log "$1/log" "$1/db" & sleep "$2"; kill $!; wait $!' \
		"$DCPI_BIN/dcpid" "$dir" "$(as_seconds $(($2 < 1500 ? 1000 : $2 - 500)))"
	local status=$?
	rm -rf "$dir"
	return $status
}

kind_fuse()
{
	local dir=$rounds/fuse-$3 how=getattr status fd
	[ $(($1 % 2)) = 0 ] || how=flush
	mkdir "$dir"
	chmod 755 "$dir"
	run_as keep "$1" "$2" bash -c 'echo full; sleep "$3" | "$0" "$1" "$2"' "$work/bin/fuse_hang" "$dir" $how \
		"$(as_seconds $(($2 < 1000 ? $2 : $2 - 500)))"
	status=$?
	umount -l "$dir/root" "$dir/fuse" 2>/dev/null
	rm -rf "$dir"
	return $status
}

# forge NAME: a program of user 1001's and another one of the attacker's, with one build-id.
forge()
{
	{ printf '\4\0\0\0\24\0\0\0\3\0\0\0GNU\0' && head -c 20 /dev/urandom; } >"$rounds/note-$1"
	objcopy --update-section ".note.gnu.build-id=$rounds/note-$1" "$work/bin/spin_slot_0" "$work/forged/victim_$1" &&
		objcopy --update-section ".note.gnu.build-id=$rounds/note-$1" "$work/bin/spin_slot_1" "$work/forged/forged_$1" &&
		chown 1001 "$work/forged/victim_$1" && chown 65534 "$work/forged/forged_$1"
}

kind_buildids()
{
	forge "$3" || return 1
	local user='setpriv --clear-groups --reuid=' first second
	first="${user}65534 --regid=65534 \"\$0/forged_\$1\" 3 500000000"
	second="${user}1001 --regid=1001 \"\$0/victim_\$1\" 4 500000000"
	[ $(($1 % 2)) = 0 ] || eval "$(printf 'first=%q second=%q' "$second" "$first")"
	run_as keep "$1" "$2" bash -c "cd /; exec 3>/dev/null 4>>\"\$2\"; $first; $second" \
		"$work/forged" "$3" "$results/victims"
}

# begin_round KIND SEED MS NUMBER
begin_round()
{
	case $1 in
	machines | suid | switch | doorbells | daemons | fuse | buildids | removed | python | kills | lingering) "kind_$1" "$2" "$3" "$4" ;;
	*) hostile "$2" "$3" "$work/bin/attack" "$1" "$2" ;;
	esac
	local status=$?
	echo "$1 $status $2" >>"$rounds/done"
}

# shuffled SEED WORD…
shuffled()
{
	local seed=$1
	shift
	printf '%s\n' "$@" | awk -v s="$seed" 'BEGIN { srand(s) } { print rand(), $0 }' | sort -n | cut -d' ' -f2
}

# weight KIND: how much of the time it has; processes by the hundred take their time to come.
weight()
{
	case $1 in
	disk) echo 5 ;;
	crowd | memory) echo 3 ;;
	suid | registries | maps) echo 2 ;;
	*) echo 1 ;;
	esac
}

# weights FIRST: of what is left to its lane of $order, what is left of the cycle is for these.
weights()
{
	local sum=0 i
	for ((i = $1; i < ${#order[@]}; i += LANES)); do sum=$((sum + $(weight "${order[i]}"))); done
	echo $sum
}

# lane NUMBER: every LANES-th of each cycle's kinds, one after the other.
lane()
{
	local c k i number=0 order end each
	trap 'kill $(jobs -p) 2>/dev/null; wait; exit' TERM
	for ((c = 0; c < cycles; c++)); do
		mapfile -t order < <(shuffled $((DCPI_SEED + c)) "${kinds[@]}")
		end=$((began + (c + 1) * seconds * 1000 / cycles))
		for ((i = $1; i < ${#order[@]}; i += LANES)); do
			k=${order[i]}
			each=$(((end - $(clock_ms)) * $(weight "$k") / $(weights $i)))
			[ $each -ge 500 ] || each=500
			number=$((number + 1))
			begin_round "$k" $((DCPI_SEED * 7919 + c * 131 + i)) $each "$1-$number" &
			wait $!
		done
	done
}

# ---- the end --------------------------------------------------------------------------------------------------------

# stop PID…: tell them to end, and wait for that.
stop()
{
	local p
	for p; do kill "$p" 2>/dev/null; done
	for p; do wait "$p" 2>/dev/null; done
}

attack_cleanup()
{
	local status=$? i
	trap '' INT TERM
	stop ${lanes[@]+"${lanes[@]}"} ${honest[@]+"${honest[@]}"} $watcher 2>/dev/null
	# It may hang: then it is killed, after its last flush's minute.
	[ -z "$daemon" ] || kill "$daemon" 2>/dev/null
	for ((i = 0; i < 600 && ${daemon:-0}; i++)); do
		lives "$daemon" || break
		sleep 0.1
	done
	[ -z "$daemon" ] || kill -KILL "$daemon" 2>/dev/null
	daemon=
	umount -l "$suid" "$rounds"/fuse-*/{root,fuse} 2>/dev/null
	[ -z "${ATTACK_KEEP:-}" ] || cp -r "$work/log" "$rounds" "$results" "$ATTACK_KEEP"
	# Attackers that are being killed may still write.
	for ((i = 0; i < 50; i++)); do
		rm -rf "$work" 2>/dev/null && break
		sleep 0.2
	done
	exit $status
}
trap attack_cleanup EXIT
trap 'exit 130' INT TERM

seen() { awk -v n="$1" '$1 == n { print $2 }' "$results/seen"; }

# figure NAME VALUE UNIT LIMIT
ok=0 short=0
figure()
{
	if awk -v v="$2" -v l="$4" 'BEGIN { exit !(v != "" && v + 0 <= l) }'; then
		ok=$((ok + 1))
		echo "figure: $1 $2 $3 reach <= $4 ok"
	else
		short=$((short + 1))
		echo "figure: $1 $2 $3 reach <= $4 short"
	fi
}

# search: all that the attacker may read, for what it may not know. Prints a line for each find.
search()
{
	{
		echo "secret$token"
		echo "private$token"
		"$work/bin/attack_watch" "$secrets/secret.so"
		"$work/bin/attack_watch" "$secrets/secret.txt"
		printf %s "$(od -An -tx1 <<<"secret$token" | tr -d ' \n' | head -c 32)"
		echo
	} >"$rounds/patterns"
	# His own part of it: what he prints here stands for what he would read.
	(as 65534 find "$db" "$work/log" "$DCPI_RUN" "$evil"/answers-* 2>/dev/null) | grep -aFf "$rounds/patterns" | sed 's/^/name of a file: /'
	(as 65534 find "$db" "$work/log" "$DCPI_RUN" "$evil"/answers-* -type f -readable -print0 2>/dev/null) |
		xargs -0r grep -laFf "$rounds/patterns" 2>/dev/null | sed 's/^/content of a file: /'
	(as 65534 "$DCPI_BIN/dcpictl" status -json; as 65534 "$DCPI_BIN/dcpictl" log) 2>&1 | grep -aFf "$rounds/patterns" |
		sed 's/^/answer: /'
	# The generation that was read in the vault is the secret number.
	(as 65534 "$DCPI_BIN/dcpiprof" -epoch all -no_header hole 2>/dev/null) |
		awk 'NF > 1 && $(NF - 1) ~ /^number_[1-7]$/ { print "samples: " $0 }'
}

# honest_truth: "FACILITY MILLISECONDS" of each honest JIT, those of one name together.
honest_truth()
{
	local f
	for f in long_a long_b short; do
		cat "$results/$f"* | awk -v n="$f" '$1 ~ /^private/ { s += $2 } END { printf "%s %.0f\n", n, 1000 * s }'
	done
}

# judge_honest: sets $honest_wrong. A JIT that has more samples in its routines than CPU time has others': five standard
# deviations and a fiftieth beyond it are wrong.
judge_honest()
{
	local name ms
	honest_wrong=0
	while read -r name ms; do
		judge_samples "$name"
		honest_wrong=$((honest_wrong + wrong + bytes + lines))
		[ "$total" -le $((ms + ms / 50 + 5 * $(awk -v m="$ms" 'BEGIN { printf "%d", sqrt(m) + 1 }'))) ] ||
			honest_wrong=$((honest_wrong + total - ms))
		echo "honest $name: $ms ms, $total samples, unnamed $unnamed, wrong $wrong, bytes $bytes, lines $lines"
		cat "$results/$name"* | grep -vE '^(private|cpu)' | sort | uniq -c
	done < <(honest_truth)
}

# judge_names: sets $unnamed_pct, of the honest programs' samples those that may have no name, at most: in code that
# nothing is known of, though its program has told; all samples of which nothing tells whose they are; and what is missing
# from the CPU time of all that the programs did. (A sample comes late where the kernel takes no interrupts, and is a
# routine's then: their time alone would tell two in a hundred less or more.)
judge_names()
{
	local uid ms all=0 nameless=0 ownerless
	ms=$(cat "$results"/* | awk '$1 == "cpu" { s += $2 } END { printf "%.0f", 1000 * s }')
	for uid in 1001 1002 1003; do
		echo "images of uid $uid:"
		"$DCPI_BIN/dcpiprof" -db "$db" -epoch all -uid $uid -exe "$work/bin/attack" -i -no_header 2>/dev/null >"$rounds/images"
		sed -n 1,8p "$rounds/images"
		all=$((all + $(awk '$NF == "total" { print $1 }' "$rounds/images")))
		nameless=$((nameless + $(awk '/dynamic, |unknown|reused, / { s += $1 } END { print s + 0 }' "$rounds/images")))
	done
	"$DCPI_BIN/dcpiprof" -db "$db" -epoch all -by uid -no_header 2>/dev/null >"$rounds/users"
	ownerless=$(awk '/\(not known\)/ { s += $1 } $NF == "total" { all = 1 } END { print all ? s + 0 : 1e9 }' "$rounds/users")
	echo "honest programs: $ms ms, $all samples, of which $nameless have no name; of $ownerless nothing tells whose they are"
	unnamed_pct=$(awk -v t="$ms" -v all="$all" -v n="$((nameless + ownerless))" -v r="$(seen received)" -v m="$(seen missed)" '
		BEGIN { due = r ? t * r / (r + m) : 0; n += due > all ? due - all : 0; printf "%.2f", due ? 100 * n / due : 100 }')
}

# judge_victims: sets $victims_wrong, samples of the forged program's own part under the victim's name, and the reverse.
judge_victims()
{
	victims_wrong=$("$DCPI_BIN/dcpiprof" -db "$db" -epoch all -no_header 2>/dev/null | awk '
		(NF > 1 && $(NF - 1) == "slot_1" && /\/victim_/) || (NF > 1 && $(NF - 1) == "slot_0" && /\/forged_/) { s += $1 }
		END { print s + 0 }')
}

judge()
{
	local k n lost left_out turn leaks end_failed=0
	stop $watcher
	watcher=
	lives "$daemon" || died=1
	# A daemon that stands still may come to itself: what it has lost then is known then.
	for ((n = 0; n < 60; n++)); do
		! timeout 60 "$DCPI_BIN/dcpictl" status -json >"$rounds/final" 2>/dev/null || break
		sleep 1
	done
	lost=$(grep -o '"lost_load_events":[0-9]*' "$rounds/final" | cut -d: -f2)
	left_out=$(grep -o '"left_out":[0-9]*' "$rounds/final" | cut -d: -f2)
	turn=$(grep -o '"longest_turn_ms":[0-9]*' "$rounds/final" | cut -d: -f2)
	timeout 90 "$DCPI_BIN/dcpiflush" >"$rounds/last" 2>&1 || end_failed=$((end_failed + 1))
	search >"$rounds/leaks"
	leaks=$(wc -l <"$rounds/leaks")
	head -n 20 "$rounds/leaks"
	timeout 90 "$DCPI_BIN/dcpictl" quit >>"$rounds/last" 2>&1 || end_failed=$((end_failed + 1))
	[ $end_failed = 0 ] || {
		cat "$rounds/last"
		kill "$daemon" 2>/dev/null
	}
	wait_for_end "$daemon" || kill -KILL "$daemon"
	daemon=
	judge_honest
	judge_names
	judge_victims
	echo "victims of forged build-ids: $victims_wrong samples are wrong"
	[ ! -s "$rounds/errors" ] || sort "$rounds/errors" | uniq -c | sort -rn | head -n 10
	sort "$rounds/watched" | sed 's/after [0-9]* ms/after some ms/' | uniq -c | sort -rn | head -n 10
	echo "status: $(seen polls) times, median $(seen p50) ms, longest $(seen max) ms, refused $(seen refused), unanswered $(seen unanswered)"
	echo "the main loop: longest turn $turn ms"
	echo "flushes: $(seen flushes), longest $(seen flush_max) ms; samples: received $(seen received), lost under their names $(seen lost), missed $(seen missed)"
	for k in "${kinds[@]}"; do
		n=$(awk -v k="$k" '$1 == k && $2 == 0' "$rounds/done" | wc -l)
		echo "attack_rounds $k $n of $(awk -v k="$k" '$1 == k' "$rounds/done" | wc -l)"
	done
	figure attack_flush_failed $(($(seen flush_failed) + end_failed)) flushes 0
	figure attack_status_p99_ms "$(seen p99)" ms 500
	figure attack_honest_wrong $((honest_wrong + victims_wrong)) samples 0
	figure attack_honest_unnamed_pct "$unnamed_pct" % 2
	figure attack_load_events_lost "${lost:-$(seen load_events_lost)}" events 0
	figure attack_workloads_left_out "${left_out:-0}" levels 0
	figure attack_leaks "$leaks" finds 0
	figure attack_accounting_broken "$(seen accounting_broken)" statuses 0
	figure attack_daemon_ended ${died:-0} times 0
	figure attack_rounds_missing "$(missing_rounds)" rounds 0
	# Each kind has had so many rounds, or some are missing.
	if awk -v l="$load" -v n="$(nproc)" 'BEGIN { exit !(l + 0 <= n / 2) }'; then
		figure attack_seconds_a_round $((took_ms / cycles / 1000)) s 60
	else
		echo "a round of each kind in $((took_ms / cycles / 1000)) s; with this load before, they take longer"
	fi
	echo "figures: $ok ok, $short short (DCPI_SEED=$DCPI_SEED)"
}

# missing_rounds: of each kind one a cycle.
missing_rounds()
{
	local k
	for k in "${kinds[@]}"; do
		awk -v k="$k" -v c="$cycles" '$1 == k && $2 == 0 { n++ } END { print n < c ? c - n : 0 }' "$rounds/done"
	done | awk '{ s += $1 } END { print s }'
}

cycles=$(((seconds + CYCLE_S - 1) / CYCLE_S))
part=$("$work/bin/attack" calibrate 1) || fail "the clock's part of the time"
load=$(cut -d' ' -f1 /proc/loadavg)
echo "attack: seed $DCPI_SEED, $seconds s in $cycles parts, ${#kinds[@]} kinds, load $load before"
start_daemon -flush 5
"$work/bin/attack_watch" >"$results/seen" 2>"$rounds/watched" &
watcher=$!
start_honest 1001 long_a
honest+=($!)
start_honest 1002 long_b
honest+=($!)
short_honest &
honest+=($!)
began=$(clock_ms)
for ((i = 0; i < LANES; i++)); do
	lane $i &
	lanes+=($!)
done
: >"$rounds/done"
wait "${lanes[@]}"
took_ms=$(($(clock_ms) - began))
lanes=()
stop "${honest[@]}"
honest=()
judge
[ $short = 0 ]
