#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpireport where there is more than a page shows: groups, rows over time, procedures and code that have no place of
# their own are in sums, which are those of the database.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

"$mkdb" crowd </dev/null
{
	echo "image 62 jit 7 box /opt/jit"
	echo "run 0x7f0000001000 0 0x10000"
	for ((i = 0; i < 2000; i++)); do
		printf 'routine 0x%x routine_%04d_of_the_crowd 89f8c3\n' $((0x7f0000001000 + i * 16)) $i
	done
} | "$DCPI_BIN/../tests/mkjob" crowd/dyn/jit.box.7.dyn >/dev/null
{
	printf '%s\n' "platform box" "epoch 1700000000" "profile dynamic jit.box.7.dyn" "event cpu-clock 1000000"
	for ((i = 0; i < 2000; i++)); do
		printf 'at routine_%04d_of_the_crowd %d\n' $i $((i + 1))
	done
	for ((i = 0; i < 250; i++)); do
		echo "workload w$i comm=worker$i uid=1 pid=$((1000 + i)) processes=1"
	done
	for ((i = 0; i < 2000; i++)); do
		printf 'w w%d cpu-clock %d %d routine_%04d_of_the_crowd@jit.box.7.dyn\n' $((i % 250)) $((i % 90)) $((i + 1)) $i
	done
	echo finish
} | "$mkdb" crowd
"$DCPI_BIN/dcpireport" -json -db crowd >whole
"$DCPI_BIN/dcpireport" -json -db crowd -size 0.1 >part

python3 - <<'END'
import json

N = 2000
ALL = N * (N + 1) // 2
workers = sorted((sum(range(w + 1, N + 1, 250)) for w in range(250)), reverse=True)
minutes = [sum(range(m + 1, N + 1, 90)) for m in range(90)]


def same(what, a, b):
    if a != b:
        raise SystemExit(f'{what}: {a}, not {b}')


whole, part = (json.load(open(name)) for name in ('whole', 'part'))
for model in whole, part:
    same('samples', model['events'][0]['samples'], ALL)
    # [name, image, linkage name or flags, samples]
    shown = [row[-1] for row in model['procedures']]
    same('the most first', shown, sorted(shown, reverse=True))
    same('procedures', len(shown) + model['procedures_left_out'], N)
    image, = model['images']
    same('left out', image.get('left_out', 0), model['procedures_left_out'])
    same('the rest', sum(shown) + image.get('rest', [0])[0], ALL)
    by = {w['by']: w for w in model['workloads']}
    same('groups', [row[-1] for row in by['comm']['rows']], workers[:200])
    same('other groups', by['comm']['others'], [50, sum(workers[200:])])
    same('one user', (by['uid']['rows'][0][-1], by['uid']['others']), (ALL, [0, 0]))
    times = {t['by']: t for t in model['times']}
    # The epoch's first minute is an odd one.
    same('slices', times['comm']['total'], minutes[:1] + [sum(minutes[i:i + 2]) for i in range(1, 90, 2)])
    same('width of a slice', times['comm']['span'], 120)
    same('rows over time', [row[0] for row in times['comm']['rows']], [f'worker{w}' for w in range(249, 237, -1)])
    same('a row over time', [sum(row[1:]) for row in times['comm']['rows']], workers[:12])
same('nothing', whole['procedures_left_out'], 0)
if not 20 <= len(part['procedures']) < N - 100:
    raise SystemExit(f'{len(part["procedures"])} procedures')
same('code', len(part['code']) + part['code_left_out'], len(part['procedures']))
for model in whole, part:
    same('listings', [c['p'] for c in model['code']], sorted(c['p'] for c in model['code']))
    for c in model['code']:
        same('samples of code', c['samples'], model['procedures'][c['p']][-1])
END
