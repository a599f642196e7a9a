#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# JITs where the daemon's socket and queue are out of reach, or where little is allowed: in fresh user, PID,
# mount and IPC namespaces with a /tmp of their own, in a chroot, as another user, in a sandbox that closes
# after begin, with a registry that a broker made; there before the daemon, and started later. Each gets the
# same result as outside: all its samples by routine, in shares that are true.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/truth.sh"
truth_programs=jit_place
need_root
root=$work/root

# A root with nothing in it but the program and its libraries.
make_root()
{
	local file
	chmod 755 "$work"
	mkdir -p "$root/tmp" "$root/proc"
	cp "$tests/jit_place" "$root"
	ldd "$tests/jit_place" | sed -nE 's/^[^/]*(\/[^ ]+) \(.*/\1/p' | while read -r file; do
		mkdir -p "$root/$(dirname "$file")"
		cp -L "$file" "$root/$file"
	done
}

# In namespaces of its own; the test's folder, with the daemon's socket, is another there.
isolated()
{
	unshare --user --map-root-user --pid --fork --mount --ipc --net sh -c '
		mount -t tmpfs none "$0" && mount -t proc none /proc && exec "$@"' "$work" "$@"
}

# rooted COMMAND…: with that root and no other file.
rooted()
{
	unshare --mount sh -c 'mount -t proc none "$0/proc" && exec chroot "$@"' "$root" "$@"
}

# shares_true FACILITY PARTLY: no routine has more samples than its CPU time gives at 1,000 a second; and none
# has fewer (by more than a tenth, as a host may stop the machine), unless only PARTLY it is known what ran (1).
# Within 4.5 standard deviations of Poisson's count, which is less steady than a clock's, and 3 more, as routines of
# a millisecond are among them: a routine that expects one sample has nine by chance once in a million runs,
# one that expects ten has 28 once in 300,000.
shares_true()
{
	awk -v partly="$2" '
		NR == FNR { expected[$1] = 1000 * $2; next }
		$1 == "routine" {
			if (!($2 in expected)) { print $2 ": no time at all"; bad = 1 }
			n[$2] = $3
		}
		END {
			for (i in expected) {
				e = expected[i]
				reach = 4.5 * sqrt(e) + 3
				if (n[i] > e + reach || (!partly && n[i] < e - reach - e / 10)) {
					printf "%s: %d samples, %.1f by its clock\n", i, n[i], e
					bad = 1
				}
			}
			exit bad
		}' "$work/truth-$1" "$work/judged" || fail "$1: samples are not as CPU time is"
}

# judge FACILITY UNSURE-PERCENT: of $work/truth-FACILITY.
judge()
{
	: "$1: what it left"
	[ -s "$work/truth-$1" ] || fail "$1: it failed"
	judge_samples "$1"
	none_wrong "$1"
	sort_out "$1"
	[ "$lost" = 0 ] || fail "$1: $lost samples have no routine"
	at_most "$1: unsure samples" "$unsure" "$(($2 * total / 100))"
	shares_true "$1" $(($2 > 1))
	: >"$work/log"
}

# place FACILITY SECONDS UNSURE-PERCENT COMMAND…
place()
{
	local name=$1 seconds=$2 percent=$3
	shift 3
	"$@" -seconds "$seconds" -facility "$name" >"$work/truth-$name" || fail "$name: it failed"
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	judge "$name" "$percent"
}

make_root
jit=$tests/jit_place
start_daemon -unknown
place outside 2 1 "$jit"
place sandbox 2 1 "$jit" -sandbox
place broker 2 1 "$jit" -broker
place user 2 1 env LD_LIBRARY_PATH="$(dirname "$(find "$root" -name 'libdbgdyn*')")" \
	setpriv --reuid 65534 --regid 65534 --clear-groups "$root/jit_place"
# Nobody tells of these: the daemon finds their marker when it next looks, four times a second. What came and
# went at an address until then is known to nobody.
place isolated 4 15 isolated "$jit"
place chroot 4 15 rooted "$root" /jit_place
place chroot_user 4 15 rooted --userspec=65534:65534 "$root" /jit_place
place hidden 4 15 isolated "$jit" -sandbox
stop_daemon
rm -rf "$db" "$work/log"

# There first.
for name in early early_isolated early_sandbox; do
	case $name in
	early) "$jit" -seconds 5 -facility $name ;;
	early_isolated) isolated "$jit" -seconds 5 -facility $name ;;
	early_sandbox) "$jit" -seconds 5 -sandbox -facility $name ;;
	esac >"$work/truth-$name" &
done
sleep 1
start_daemon -unknown
wait %1 %2 %3 || fail "a JIT failed"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
for name in early early_isolated early_sandbox; do
	judge_samples $name
	none_wrong $name
	echo "$name: $total samples"
	[ "$total" -gt 100 ] || fail "$name: $total samples"
done
sort_out early_sandbox
[ "$lost" = 0 ] || fail "$lost samples have no routine"
at_most "unsure samples of all three" "$unsure" "$((3 * total / 10))"
stop_daemon
