#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpirun, run by a user without rights: perf events of one's own and samples from inside the program;
# shares true, JIT routines named, children followed, ends as the program does, failures said.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
db=$work/user/db
export DCPIDB=$db
unset DCPI_RUN DCPI_QUEUE
. "$DCPI_SRC/tests/support/dyn.sh"

fail()
{
	echo "FAILED: $*" >&2
	[ ! -s "$work/err" ] || sed 's/^/  stderr: /' "$work/err" >&2
	exit 1
}

# Copies that anyone can reach, and a folder of the user's own.
chmod 755 "$work"
mkdir -p "$work/bin/examples" "$work/lib" "$work/tests" "$work/user/tmp"
cp -P "$DCPI_BIN"/dcpi* "$work/bin"
cp "$DCPI_BIN/examples/hello" "$work/bin/examples"
cp "$DCPI_LIB/libdcpirun.so" "$work/lib"
cp "$DCPI_BUILD"/tests/{run_work,run_static,no_perf,run_plugin_one.so,run_plugin_two.so} "$work/tests"
DCPI_BIN=$work/bin
work_program=$work/tests/run_work
user=()
if [ "$(id -u)" = 0 ]; then
	chown -R 65534:65534 "$work/user"
	user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
# A sanitizer's runtime wants to be first, before what is preloaded.
as_user=("${user[@]}" env -u XDG_RUNTIME_DIR TMPDIR="$work/user/tmp"
	ASAN_OPTIONS=verify_asan_link_order=0)

# run WANTED-STATUS ARG…: dcpirun into a fresh database, as the user; output in out, err.
run()
{
	local want=$1 status
	shift
	rm -rf "$db"
	"${as_user[@]}" "${before[@]}" "$DCPI_BIN/dcpirun" "$@" >"$work/out" 2>"$work/err"
	status=$?
	[ $status = "$want" ] || fail "dcpirun $*: exit status $status, not $want"
	! grep -q 'do not balance' "$work/err" || fail "dcpirun $*: accounts"
	[ -z "$(ls "$work/user/tmp")" ] || fail "dcpirun $*: left $(ls "$work/user/tmp")"
}
before=()

says() { grep -q -- "$1" "$work/err" || fail "no word of '$1'"; }

# missing NR: percent of the samples that the CPU time asks for, of which there are NR. Time that a host takes
# from a virtual machine counts as the program's, and brings one sample however long it is; and the clock of
# a process that forks begins a new period at each child (dcpirun(1)). 0: not known.
missing()
{
	local rate cpu
	rate=$(sed -nE 's/.*[^0-9]([0-9]+) (Hz|samples a second).*/\1/p' "$work/err" | head -n 1)
	cpu=$(truth "$work/out" cpu)
	awk -v nr="$1" -v rate="$rate" -v cpu="$cpu" 'BEGIN {
		all = rate * cpu
		printf "%.2f\n", (all > nr ? 100 * (1 - nr / all) : 0)
	}'
}

# shares "IMAGE…" NAME…: each within four standard deviations of its truth, as many samples as there
# are, and what is missing, which may all be of one. Samples that dcpirun counts as missed are so where other
# programs run between two ticks; a quarter of them beside these is too much for any host.
shares()
{
	local images name nr got gone missed
	read -ra images <<<"$1"
	shift
	nr=$(samples "${images[@]}")
	[ "${nr:-0}" -gt 100 ] || fail "only ${nr:-0} samples of ${images[*]}"
	gone=$(missing "$nr")
	missed=$(sed -nE 's/.* samples \(([0-9]+) missed\).*/\1/p' "$work/err" | head -n 1)
	awk -v gone="$gone" -v nr="$nr" -v missed="${missed:-0}" 'BEGIN { exit !(gone - 100 * missed / (nr + missed) < 25) }' ||
		fail "$gone % of the samples are missing, ${missed:-none} of them as dcpirun says"
	for name; do
		got=$(share "$name" "${images[@]}")
		awk -v got="$got" -v truth="$(truth "$work/out" "$name")" -v nr="$nr" -v gone="$gone" 'BEGIN {
			p = truth / 100
			exit !(truth != "" && 100 * 4 * sqrt(p * (1 - p) / nr) + 0.5 + gone >= (got > truth ? got - truth : truth - got))
		}' || fail "$name: $got % of $nr samples ($gone % missing), truth $(truth "$work/out" "$name")"
		echo "$name: $got % of $nr samples, $gone % missing (truth $(truth "$work/out" "$name"))"
	done
}

no_other()
{
	local other
	other=$("$DCPI_BIN/dcpiprof" -no_header | awk '/unknown/ { sum += $1 } $NF == "total" { all = $1 }
		END { print (100 * sum > 2 * all ? sum : 0) }')
	[ "$other" = 0 ] || fail "$other samples unknown"
}

# ---- where the kernel allows perf events of one's own --------------------------------------------

paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null || echo 4)
if [ "$paranoid" -le 2 ]; then
	run 0 "$DCPI_BIN/examples/hello" 2
	says 'perf events of your own programs are allowed'
	shares hello sixty thirty ten
	run 0 "$work_program" threads 2
	shares run_work alpha beta
	run 0 "$work_program" fork 2
	shares run_work alpha beta
	run 137 "$work_program" die 0.3
	run 0 -wait "$work_program" orphan 0.5
	[ "$(samples run_work)" -gt 100 ] || fail "perf: the child left behind is not followed"
	if [ "$(id -u)" = 0 ]; then
		cp "$work_program" "$work/tests/rights"
		chmod 4755 "$work/tests/rights"
		run 0 "$work/tests/rights" reset 0.1
		says 'the program could not be sampled: it runs with rights that you have not'
		chmod 711 "$work/tests/rights"
		run 0 "$work/tests/rights" reset 0.1
		says 'the program could not be sampled: you may not read it'
	fi
else
	echo "perf events of one's own are not allowed here (perf_event_paranoid is $paranoid): only from inside"
fi

# ---- where it does not ---------------------------------------------------------------------------

before=("$work/tests/no_perf")
run 0 "$DCPI_BIN/examples/hello" 4
says 'sampling from inside the program, by its CPU time, [0-9]* samples a second'
says 'perf_event_paranoid is\|cannot sample'
shares hello sixty thirty ten
"$DCPI_BIN/dcpilist" sixty "$(basename "$(image hello)")" >"$work/list" 2>&1 || fail "dcpilist: $(cat "$work/list")"
run 125 -source perf true
says 'cannot sample'
before=()

# ---- from inside ---------------------------------------------------------------------------------

inside() { run "$1" -source inprocess "${@:2}"; }
inside 0 "$work_program" threads 4
shares run_work alpha beta
no_other
inside 0 "$work_program" fork 3
shares run_work alpha beta
no_other
inside 0 "$work_program" reset 1
shares run_work alpha beta
inside 0 "$work_program" left 1
shares run_work alpha beta
no_other
inside 137 "$work_program" die 1
shares run_work alpha beta
inside 0 "$work_program" plugins 3 "$work"/tests/run_plugin_{one,two}.so
shares 'run_plugin_one.so run_plugin_two.so' plugin_one plugin_two
awk '$1 == "same" { ok = $2 > $4 / 2 } END { exit !ok }' "$work/out" || fail "the modules do not change places"
no_other

# A program executed by a program; a slower rate.
inside 0 -rate 50 sh -c "'$work_program' die 1; exec '$work_program' threads 1"
says '50 samples a second'
[ "$(samples run_work)" -gt 20 ] || fail "programs of a shell are not followed"

# Its children, and those it leaves behind.
inside 0 "$work_program" orphan 5
grep -q child "$work/out" && fail "waited for a child without -wait"
for ((i = 0; i < 600; i++)); do grep -q child "$work/out" && break || sleep 0.1; done
grep -q child "$work/out" || fail "the child left behind did not live on"
inside 0 -wait "$work_program" orphan 1
grep -q child "$work/out" || fail "-wait did not wait"
[ "$(samples run_work)" -gt 50 ] || fail "the child left behind is not followed"

# In another PID namespace nobody can ask who lives: they tell their end. Else this never comes back.
if "${as_user[@]}" unshare -U -p -f true 2>/dev/null; then
	before=(timeout 200)
	inside 0 -wait unshare -U -p -f "$work_program" reset 0.5
	[ "$(samples run_work)" -gt 20 ] || fail "a child in another PID namespace is not followed"
	inside 0 -wait unshare -U -p -f sh -c "'$work_program' fork 0.5; exit 0"
	# As a container's root, who may not become anybody else: helpers do without.
	before=(unshare -U -r)
	inside 0 "$DCPI_BIN/examples/hello" 2
	shares hello sixty thirty ten
	before=()
else
	echo "users get no PID namespaces here: not tried"
fi

# ---- what is the program's stays so ---------------------------------------------------------------

inside 3 sh -c 'exit 3'
inside 143 sh -c 'kill -TERM $$'
inside 0 printf '%s,' -quiet -- -x
[ "$(cat "$work/out")" = "-quiet,--,-x," ] || fail "arguments: $(cat "$work/out")"
echo input | "${as_user[@]}" "$DCPI_BIN/dcpirun" -quiet -source inprocess cat >"$work/out" 2>"$work/err"
[ "$(cat "$work/out")" = input ] || fail "standard input: $(cat "$work/out")"
[ ! -s "$work/err" ] || fail "-quiet says something"
odd=$work/user/$'odd\e[31m' # a terminal would obey
"${as_user[@]}" "$DCPI_BIN/dcpirun" -source inprocess -db "$odd" true 2>"$work/err" || fail "a database of an odd name"
! grep $'\e' "$work/err" || fail "control characters of a name"
rm -r "$odd"

# Signals go to the program; and what ends dcpirun does not end it.
rm "$work/out"
"${as_user[@]}" "$DCPI_BIN/dcpirun" -quiet -source inprocess \
	sh -c 'trap "exit 7" TERM; echo up; while :; do sleep 0.1; done' >"$work/out" 2>"$work/err" &
pid=$!
for ((i = 0; i < 600; i++)); do [ -s "$work/out" ] && break || sleep 0.1; done
kill -TERM $pid
wait $pid
[ $? = 7 ] || fail "SIGTERM is not handed on"
# What the kernel sends to it alone too: an alarm from before, a terminal's hangup to the session's leader.
# The alarm comes when all of them have started, on a busy machine too.
before=(perl -e 'alarm 15; exec @ARGV')
inside 7 sh -c 'sleep 100 & trap "kill $!; exit 7" ALRM; wait'
before=()
cat >"$work/leader" <<-EOF
	exec '$DCPI_BIN/dcpirun' -quiet -source inprocess \
		sh -c 'sleep 60 & trap "kill \$!; touch $work/user/hung; exit" HUP; touch $work/user/up; wait'
EOF
"${as_user[@]}" SHELL=/bin/sh script -qc ". '$work/leader'" /dev/null </dev/null >"$work/out" 2>&1 &
pid=$!
for ((i = 0; i < 600; i++)); do [ -e "$work/user/up" ] && break || sleep 0.1; done
kill -KILL $pid # with it its end of the terminal
wait $pid 2>/dev/null
for ((i = 0; i < 600; i++)); do [ -z "$(ls "$work/user/tmp")" ] && break || sleep 0.1; done
[ -e "$work/user/hung" ] || fail "a hangup of the session's leader is not handed on: $(cat "$work/out")"
rm "$work/out"
"${as_user[@]}" TMPDIR="$work/user" "$DCPI_BIN/dcpirun" -quiet -source inprocess \
	sh -c "echo up; '$work_program' reset 1 >'$work/user/result'; echo \$? >'$work/user/status'" >"$work/out" 2>"$work/err" &
pid=$!
for ((i = 0; i < 600; i++)); do [ -s "$work/out" ] && break || sleep 0.1; done
kill -KILL $pid
wait $pid 2>/dev/null
for ((i = 0; i < 600; i++)); do [ -s "$work/user/status" ] && break || sleep 0.1; done
[ "$(cat "$work/user/status")" = 0 ] || fail "the program does not survive dcpirun"

# ---- a program without build-id that ends before its file was looked at ---------------------------

# procedures: of what has run as run_work.
procedures()
{
	"$DCPI_BIN/dcpiprof" -no_header "$work/user/run_work" 2>>"$work/err" |
		sed -nE '/%/s/^.*% +([0-9]+[.][0-9]+ +)?([^ ].*[^ ])  +\/.*$/\2/p' >"$work/list"
}

if [ "$paranoid" -le 2 ]; then
	for name in run_work no_perf; do
		objcopy --remove-section .note.gnu.build-id "$work/tests/$name" "$work/user/$name" || fail "objcopy"
	done
	[ "$(id -u)" != 0 ] || chown -R 65534:65534 "$work/user"
	cd "$work/user" || fail "cd"
	# Where another one stands under its name then, its procedures are nobody's.
	run 0 sh -c "./run_work reset 0.01; mv run_work ran; mv no_perf run_work"
	procedures
	[ "$(cat "$work/list")" = '(image changed)' ] || fail "procedures of a program that never ran: $(cat "$work/list")"
	# The very file again.
	mv ran run_work
	procedures
	grep -Eqx 'alpha|beta' "$work/list" || fail "the program's own procedures are not known: $(cat "$work/list")"
	cd / || fail "cd"
fi

# ---- what cannot be done is said ------------------------------------------------------------------

run 137 -source inprocess "$work/tests/run_static" die 0.3
says 'the program could not be sampled from inside: it is statically linked'
if [ "$(id -u)" = 0 ]; then
	cp /bin/true "$work/tests/rights"
	chmod 4755 "$work/tests/rights"
	inside 0 "$work/tests/rights"
	says 'it runs with rights that you have not'
fi
# Where the machine is slow, the sanitizer's start alone may bring a sample, even at one a second.
for try in 1 2 3 4 5 6 7 8 9 10; do
	inside 0 -rate 1 true
	! grep -q '^dcpirun: 0 samples' "$work/err" || break
done
says 'too little for a sample'
if [ "$(id -u)" = 0 ]; then
	mkdir -m 755 "$work/theirs"
	before=(env DCPIDB="$work/theirs")
	run 125 -source inprocess true
	says "'$work/theirs' is from DCPIDB; '-db DIR' names another"
	before=()
fi
run 127 /nonexistent/program
says "cannot run '/nonexistent/program': No such file"
run 126 /etc/passwd
says "cannot run '/etc/passwd': Permission denied"
# Found as the shell does: an empty folder of PATH is the one where we are, the first too.
printf '#! /bin/sh\n' >"$work/tests/nearby"
chmod 755 "$work/tests/nearby"
before=(env -C "$work/tests" "PATH=:$PATH")
inside 0 nearby
before=()
# Known only when it is executed: its epoch is begun by then, and does not stay open.
printf '#! /nonexistent/interpreter\n' >"$work/tests/script"
chmod 755 "$work/tests/script"
run 127 "$work/tests/script"
says "cannot run .*/script': No such file"
"$DCPI_BIN/dcpiprof" >"$work/list" 2>&1
! grep 'open' "$work/list" || fail "the epoch of a program that could not be executed is open"
run 2 -source nothing true
says 'sources are: perf, inprocess'
run 2 -source inprocess -event cycles true
says 'thread-clock'
# A limit on the length of files fails a write, and ends a program that it would have ended without us.
before=(prlimit --fsize=2048)
run 3 -source inprocess sh -c 'exit 3'
says 'cannot read the samples of 1 process$'
run 153 -source inprocess dd if=/dev/zero of="$work/user/long" bs=4096 count=1
says 'samples of thread-clock'
before=()
run 125 -db /proc/db sh -c 'echo ran'
says "/proc/db"
[ ! -s "$work/out" ] || fail "the program ran without a database"
echo "all of it as $("${as_user[@]}" id -un)"
