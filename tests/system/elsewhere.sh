#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The JIT gone, the daemon killed by SIGKILL, the database copied elsewhere (also as one file, by dcpitar) and the
# original removed: an unprivileged user who may read the copy gets the same answers.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root


# ask DATABASE REPORT…: what the tools print, started as $as says.
ask()
{
	local from=$1 report
	shift
	for report in "$@"; do
		echo "--- $report"
		# shellcheck disable=SC2086
		$as "$DCPI_BIN/"$report -db "$from" || fail "$report on $from"
	done | sed "s|$from|DB|"
}
as=
jit=("dcpiprof hello" "dcpiprof -json hello" "dcpilist -both sixty" "dcpilist -asm -json thirty")
all=("dcpiprof" "dcpiprof -i" "dcpiprof -json" "${jit[@]}")

reachable_programs

start_daemon
"$DCPI_BIN/examples/hello" 1 >/dev/null || fail "hello"
"$DCPI_BIN/dcpictl" flush || fail "flush"
kill -KILL "$daemon"
wait_for_end "$daemon" || fail "a killed daemon does not end"
daemon=

ask "$db" "${all[@]}" >"$work/before"
ask "$db" "${jit[@]}" >"$work/jit-before"
grep -q '^ .*sixty  *hello\[[0-9]*\]$' "$work/before" || fail "sixty is not in the profile"
grep -q 'decq\|jne' "$work/before" || fail "sixty is not disassembled"

"$DCPI_BIN/dcpitar" "$work/all.tar.zst" >"$work/packed" || fail "dcpitar"
cat "$work/packed"
grep -q 'pseudo-image' "$work/packed" || fail "no pseudo-image is packed"
# Its routines' bytes go with the kernel.
"$DCPI_BIN/dcpitar" -t "$work/all.tar.zst" >"$work/packed" || fail "dcpitar -t"
if compgen -G "$db/kernel/vmlinux-*.code" >/dev/null; then
	grep -q ' kernel/vmlinux-.*[.]code$' "$work/packed" || fail "the kernel's code is not packed"
fi

mkdir "$work/there"
cp -R "$db" "$work/there/copy"
rm -rf "$db" "$work/run"
ask "$work/there/copy" "${all[@]}" >"$work/after"
diff "$work/before" "$work/after" || fail "the copy answers otherwise"
echo "$(grep -c . "$work/after") lines are the same"

# As one file, through dcpitar: what was open is finished there.
"$DCPI_BIN/dcpitar" -x "$work/all.tar.zst" "$work/unpacked" || fail "dcpitar -x"
texts=(dcpiprof "dcpiprof -i" "dcpilist -both sixty")
closed() { sed 's/ (open: shows its last flush)//'; }
ask "$work/there/copy" "${texts[@]}" | closed >"$work/copy-texts"
ask "$work/unpacked" "${texts[@]}" | closed >"$work/unpacked-texts"
diff "$work/copy-texts" "$work/unpacked-texts" || fail "what was packed answers otherwise"

# Onto a disk that has room for the bytes, and takes so few files: each time one more, so that each of them is refused once.
mkdir "$work/full"
at_end 'umount -l "$work/full" 2>/dev/null'
for files in $(seq 2 12); do
	mount -t tmpfs -o "size=1g,nr_inodes=$files" none "$work/full" || {
		echo "skip: cannot mount a tmpfs for the full disk"
		exit 77
	}
	! "$DCPI_BIN/dcpitar" -x "$work/all.tar.zst" "$work/full/db" 2>"$work/refused" || fail "$files files take an archive"
	grep -q 'No space left on device$' "$work/refused" || fail "with $files files: $(cat "$work/refused")"
	umount "$work/full"
done

# The same user that may read the copy and nothing else of ours; the programs of others on this
# machine may be closed to it, so that the JIT's reports alone must be the same, without the
# problems of reading others.
chown -R 65534:65534 "$work/there"
as="setpriv --reuid 65534 --regid 65534 --clear-groups"
$as test -r "$work/there/copy" || fail "the test's folder is closed"
ask "$work/there/copy" "${jit[@]}" >"$work/jit-after"
without_problems() { sed '/"problems":\[$/,/\]/d' "$1"; }
diff <(without_problems "$work/jit-before") <(without_problems "$work/jit-after") || fail "an unprivileged user gets other answers"
$as "$DCPI_BIN/dcpiprof" -i -db "$work/there/copy" | grep -c 'total$' >/dev/null || fail "dcpiprof -i"
echo "$(grep -c . "$work/jit-after") lines are the same for an unprivileged user"

# Code that it may not read stands under its class, with its samples, and the total is what it was.
chown -R 0:0 "$work/there/copy/dyn"
$as "$DCPI_BIN/dcpiprof" -i -no_header -db "$work/there/copy" >"$work/closed" 2>"$work/closed-err" || :
"$DCPI_BIN/dcpiprof" -i -no_header -db "$work/there/copy" >"$work/open" || fail "dcpiprof -i"
closed=$(awk '/ hello\[/ { n += $1 } END { print n + 0 }' "$work/open")
total=$(awk '$NF == "total" { print $1 }' "$work/open")
[ "$closed" -gt 0 ] || fail "no samples in the JIT's code"
awk -v closed="$closed" -v total="$total" '
	/ dynamic code, not readable$/ { n += $1 }
	/ hello\[/ { named = 1 }
	$NF == "total" { sum = $1 }
	END { exit named || n < closed || sum != total }' "$work/closed" || {
	cat "$work/closed" "$work/closed-err" >&2
	fail "code that may not be read ($closed of $total samples)"
}
