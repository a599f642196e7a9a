#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Short-lived workers of one program, each with fifty routines: they leave a handful of files, and sums are
# right, by routine and in one table; with -bypid each has its own. "scripts/test --long workers": 10,000.
# DCPI_COUNT says how many (300).
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
. "$DCPI_SRC/tests/support/truth.sh"
truth_programs=jit_kids
need_root
count=${DCPI_COUNT:-300}

# files: pseudo-images of theirs.
files() { find "$db/dyn" -name 'work-*.dyn' | wc -l; }

# status NAME: a number of the daemon's.
status() { "$DCPI_BIN/dcpictl" status -json | tr ',{}' '\n\n\n' | awk -F: -v n="\"$1\"" '$1 == n { print $2 + 0; exit }'; }

# So often that some live through it.
start_daemon -unknown -flush 1
"$tests/jit_kids" work "$count" 50 >"$work/truth" || fail "jit_kids"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
judge_samples work
none_wrong "workers"
sort_out "workers"
[ "$lost" = 0 ] || fail "$lost samples have no routine"
at_most "unsure samples" "$unsure" 0
at_most "worst deviation of a routine, in standard deviations" "$(worst_sigma "$work/truth")" 6
# A sample a millisecond of CPU time, but for those that the kernel could not deliver.
cpu=$(awk '{ s += $2 } END { print 1000 * s }' "$work/truth")
within "samples" "$total" "$cpu" "$(awk -v c="$cpu" -v m="$(missed)" 'BEGIN { print m + 0.05 * c + 5 * sqrt(c) }')"
echo "$images profiles, $(files) files in dyn/, $(status images_folded) processes folded"
at_most "files in dyn/" "$(files)" 10
at_most "profiles" "$images" 10
at_most "processes that could not be folded" "$(status folds_failed)" 0
[ "$(status images_folded)" -gt $((count / 4)) ] || fail "$(status images_folded) of $count processes were folded"
"$DCPI_BIN/dcpictl" status -json | grep -q '"balanced": *true' || fail "received is not stored + lost: $("$DCPI_BIN/dcpictl" status)"
[ "$(find "$db/dyn" -name '*.tmp*' -o -name '.*' -type f | wc -l)" = 0 ] || fail "dyn/ holds other files: $(ls -A "$db/dyn")"
for file in "$db"/dyn/work-*.dyn; do
	lint_image "$file"
done
# One table, by routine.
[ "$("$DCPI_BIN/dcpiprof" -epoch all work | awk '$NF == "total" { print $1 }')" = "$total" ] || fail "dcpiprof has another sum"
all=$total all_lost=$lost all_files=$(files) all_images=$images
stop_daemon

db=$work/apart
# A process that call paths lead through, and that has no sample of its own, would have a file without a profile.
start_daemon -unknown -flush 1 -bypid jit_kids -callpaths 0
"$tests/jit_kids" work "$count" 50 >"$work/truth" || fail "jit_kids"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
judge_samples work
none_wrong "workers apart"
sort_out "workers apart"
[ "$lost" = 0 ] || fail "$lost samples have no routine"
at_most "worst deviation of a routine, in standard deviations" "$(worst_sigma "$work/truth")" 6
# (images_folded counts other programs' processes on this machine too.)
[ "$images" = "$(files)" ] && [ "$images" -gt $((count / 4)) ] || fail "$images profiles, $(files) files of $count processes"
echo "apart: $images profiles of $count processes"
echo "sums: workers $count samples $all files $all_files profiles $all_images lost $((all_lost + lost))"
stop_daemon
