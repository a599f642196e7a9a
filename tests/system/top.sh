#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpitop beside programs of two users: its numbers are those that dcpiprof has of the same seconds; its screen at two
# sizes, with keys for workloads, a filter, freezing and a listing; an ordinary user sees own programs
# alone; and a JIT's routines have names long before the daemon's next flush.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
reachable_programs
for name in mine theirs; do
	cp "$DCPI_BUILD/tests/named" "$work/$name" && chmod 755 "$work/$name" || fail "cp"
done
user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
mkdir "$work/user" && chown 65534 "$work/user" || fail "a folder for the user"
# One server for all screens: a server that ends with its last session still has its socket for a moment.
echo 'set -g exit-empty off' >"$work/tmux.conf" || fail "a file"
tmux=(tmux -f "$work/tmux.conf" -S "$work/user/tmux")
loads=
end_all()
{
	"${tmux[@]}" kill-server 2>/dev/null
	kill $loads 2>/dev/null
}
at_end end_all

start_daemon
"${user[@]}" "$work/mine" 600000000000 alpha >/dev/null &
loads=$!
"$work/theirs" 600000000000 beta >/dev/null &
loads="$loads $!"

# ---- numbers -----------------------------------------------------------------------------------

# share FILE NAME: percent of the rows of that name, as a list of "NAME SAMPLES".
share() { awk -v name="$2" '{ all += $2 } $1 == name { n += $2 } END { printf "%.2f\n", all ? 100 * n / all : 0 }' "$1"; }

# rows of "dcpitop -json" or "dcpiprof -json" on standard input, with the member MEMBER as names.
rows()
{
	python3 -c '
import json, sys
for row in json.load(sys.stdin)["rows"]:
    samples = row["samples"]
    if isinstance(samples, dict):
        samples = sum(samples.values())
    name = row.get(sys.argv[1]) or row.get("label") or "?"
    if not name.startswith("(idle"):
        print(name.replace(" ", "_"), samples)' "$1"
}

# same WHAT FILE FILE NAME…: of programs that always do the same, shares are the same. By counts of N and of M samples:
# four standard deviations of the difference, and a point.
same()
{
	local what=$1 top=$2 prof=$3 name
	shift 3
	for name in "$@"; do
		within "$what, $name: percent" "$(share "$top" "$name")" "$(share "$prof" "$name")" "$(
			awk -v name="$name" 'FNR == 1 { files++ } { all[files] += $2 } $1 == name { n[files] += $2 } END {
				p = n[2] / all[2]
				printf "%.2f\n", 1 + 400 * sqrt(p * (1 - p) * (1 / all[1] + 1 / all[2]))
			}' "$top" "$prof")" || exit 1
	done
}
# not_more FILE FILE: a sample on the screen is one of the profile, whose epoch began before and ended behind.
not_more()
{
	awk 'FNR == NR { n[$1] += $2; next } { n[$1] -= $2 } END { for (i in n) if (n[i] < 0) { print i, -n[i]; bad = 1 }; exit bad }' \
		"$2" "$1" || fail "dcpitop shows samples that are in no profile"
}

sleep 1.5
only=(-comm mine -comm theirs)
for by in procedure comm; do
	how=()
	[ $by = procedure ] || how=(-by $by)
	"$DCPI_BIN/dcpiepoch" >/dev/null 2>&1 || fail "dcpiepoch"
	epoch=$(status_field epoch)
	"$DCPI_BIN/dcpitop" -batch 3 -json "${only[@]}" "${how[@]}" >"$work/top.json" || fail "dcpitop -batch"
	"$DCPI_BIN/dcpiepoch" >/dev/null 2>&1 || fail "dcpiepoch"
	"$DCPI_BIN/dcpiprof" -epoch "$epoch" -json "${only[@]}" "${how[@]}" >"$work/prof.json" || fail "dcpiprof"
	rows name <"$work/top.json" >"$work/top.rows" || fail "the answer of dcpitop"
	rows $([ $by = comm ] && echo name || echo procedure) <"$work/prof.json" >"$work/prof.rows" || fail "the answer of dcpiprof"
	[ "$(awk '{ n += $2 } END { print n }' "$work/top.rows")" -ge 300 ] || fail "too few samples"
	python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["seconds"] < 2.5)' <"$work/top.json" ||
		fail "three seconds are gathered for less"
	not_more "$work/top.rows" "$work/prof.rows"
	same "by $by" "$work/top.rows" "$work/prof.rows" $(sort -k2rn "$work/prof.rows" | head -n 4 | cut -d' ' -f1)
done

"$DCPI_BIN/dcpitop" -batch 2 -comm mine -json -by uid | rows name >"$work/top.rows" || fail "dcpitop -comm"
[ "$(cut -d' ' -f1 "$work/top.rows")" = 65534 ] || fail "-comm mine shows other users: $(cat "$work/top.rows")"

# ---- an ordinary user --------------------------------------------------------------------------

"${user[@]}" "$DCPI_BIN/dcpitop" -batch 2 -json -by comm >"$work/user.json" || fail "dcpitop of a user"
grep -q '"all_users":false' "$work/user.json" || fail "the user is told to see all"
rows name <"$work/user.json" >"$work/user.rows"
awk '$1 == "mine" && $2 > 100 { own = 1 } $1 == "theirs" { bad = 1 } END { exit !own || bad }' "$work/user.rows" ||
	fail "a user sees: $(cat "$work/user.rows")"
"${user[@]}" "$DCPI_BIN/dcpitop" -batch 2 -json >"$work/user.json" || fail "dcpitop of a user"
rows name <"$work/user.json" >"$work/user.rows"
grep -q '^compute ' "$work/user.rows" || fail "the user's own procedures have no names: $(cat "$work/user.rows")"
grep -q '^(other_users) ' "$work/user.rows" || fail "no sum of other users"
! grep -E 'vmlinux|theirs' "$work/user.json" || fail "a user is told of the kernel or of others"

# ---- the screen --------------------------------------------------------------------------------

# screen WIDTH HEIGHT [COMMAND…]: a new one, with two seconds of samples.
screen()
{
	local width=$1 height=$2
	shift 2
	"${tmux[@]}" new-session -d -s top -x "$width" -y "$height" \
		"env DCPI_RUN=$DCPI_RUN LC_ALL=C.UTF-8 $* $DCPI_BIN/dcpitop; sleep 60" || fail "tmux"
	shows 'samples in' || fail "no samples on the screen"
}
shot() { "${tmux[@]}" capture-pane -p -t top; }
press() { "${tmux[@]}" send-keys -t top "$@" || fail "a key"; }
# shows REGEX: within a minute.
shows()
{
	local i
	for ((i = 0; i < 600; i++)); do
		shot >"$work/shot"
		! grep -qE "$1" "$work/shot" || return 0
		sleep 0.1
	done
	cat "$work/shot"
	fail "the screen has no '$1'"
}
close_screen() { "${tmux[@]}" kill-session -t top; }
# on_screen NAME: percent of the row.
on_screen() { awk -v name="$1" '$4 == name { print $2 + 0; exit }' "$work/shot"; }

for size in "80 24" "200 60"; do
	screen $size
	shows ' compute '
	[ "$size" != "80 24" ] || shows 'in (4\.[5-9]|5\.[0-9]) s'
	[ "$(wc -L <"$work/shot")" -le "${size% *}" ] || fail "$size: a line is too long"
	echo "$size"
	head -n 8 "$work/shot"
	press w
	shows 'workloads by comm'
	shows '[0-9] +theirs'
	press w w w
	shows 'workloads by uid'
	shows ' 65534 *$'
	press p /
	press compu
	shows 'only rows with: compu_'
	press Enter
	shows "with 'compu': [1-9]"
	# A name that is cut may have it in the part that is left out.
	! sed 1,3d "$work/shot" | grep '%' | grep -v … | grep -vi compu || fail "$size: the filter leaves other rows"
	press ' '
	shows FROZEN
	second=$(on_screen compute)
	[ -n "$second" ] || fail "$size: no row of compute"
	sleep 2
	shot >"$work/shot"
	[ "$(on_screen compute)" = "$second" ] || fail "$size: what is frozen moves"
	press ' ' Enter
	shows 'of all, [0-9]+ samples: compute in'
	shows 'instruction'
	grep -qE '[0-9]% .* (mov|add|imul|cmp|j|lea)' "$work/shot" || fail "$size: no hot instructions"
	press Escape
	shows 'procedures, last'
	press Escape
	shows 'procedures, last 5 s: '
	press h
	shows 'any key: back'
	press h q
	close_screen
done

# The user's screen, and what it may see.
chmod 777 "$work/user"
screen 80 24 "${user[@]}"
shows 'your programs'
press w
shows '[0-9] +mine'
! grep -q theirs "$work/shot" || fail "a user's screen shows others"
head -n 8 "$work/shot"
close_screen

# ---- the daemon ends and comes again while it is watched ------------------------------------------

screen 80 24
stop_daemon
shows 'trying again'
start_daemon -flush 600
shows 'space freeze'
shows ' compute '

# ---- code that a program makes while it is watched, long before the next flush ----------------------

flushes=$(status_field flushes)
"$DCPI_BUILD/bin/calc" -time 60 "$DCPI_SRC/examples/jit/calc/demo.calc" >/dev/null &
loads="$loads $!"
shows ' escape +calc'
press /
press escap Enter
shows "with 'escap': [1-9]"
press Enter
shows 'of all, [0-9]+ samples: escape in'
grep -qE '[0-9]% .* (addsd|mulsd|subsd|movsd|cmp|j)' "$work/shot" || fail "no hot instructions of a JIT's routine"
[ "$(status_field flushes)" = "$flushes" ] || fail "the daemon has flushed meanwhile"
close_screen

account_holds "at the end"
end_all
stop_daemon
