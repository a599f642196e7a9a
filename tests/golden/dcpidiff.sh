#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpidiff: routines of two runs matched by facility and name wherever they stood; what changed in
# their code; differences with their errors, and 0 where chance explains them.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

# serve: equal code; parse: calls and reads elsewhere; plan: another constant; one routine only here.
run_of()
{
	local pid=$1 base=$2 parse=$3 plan=$4 own=$5
	"$mkdb" runs </dev/null
	"$DCPI_BIN/../tests/mkjob" "runs/dyn/worker.box.$pid.dyn" >/dev/null <<-END
		image 62 worker $pid box /opt/worker
		run ${base}000 0 0x1000
		routine ${base}040 serve 89f8ebfcc3
		routine ${base}080 parse $parse
		routine ${base}0c0 plan $plan
		routine ${base}100 $own c3
	END
}
# call outside; mov 8(%rip),%eax; movabs; ret
run_of 100 0x7f0000001 e81111110048b8112233445566778848b81111111111111111c3 b805000000c3 old
run_of 200 0x7f0000002 e82222220048b8112233445566778848b82222222222222222c3 b806000000c3 new

counts()
{
	cat <<-END
		epoch $1
		profile dynamic worker.box.$2.dyn
		event cpu-clock 1000000
		event imiss 4096
		at serve $3 1
		at parse $4
		at plan $5
		at $6 $7
		profile file /opt/app/app $app/app
		event cpu-clock 1000000
		at hot $8
		finish
	END
}
{
	echo platform box
	counts 1700000000 100 1000 500 300 old 100 5000
	counts 1700000060 200 1020 490 310 new 120 9000
	counts 1700000120 200 1010 505 295 new 110 5030
} | "$mkdb" runs
export DCPIDB=runs
one=202311142213 two=202311142214 three=202311142215
"$mkdb" ticks </dev/null
"$mkdb" ticks <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	event tick 4000000
	at hot+17 3
	finish
END
# Nothing of it is worth showing: what has no code, and what one set has by chance.
"$mkdb" same </dev/null
{
	echo platform box
	for epoch in 1700000000 1700000060; do
		cat <<-END
			epoch $epoch
			profile named unknown
			event cpu-clock 1000000
			at 0 5
			profile file /opt/app/app $app/app
			event cpu-clock 1000000
			at hot 100000
			$([ $epoch = 1700000060 ] || echo at warm 1)
			finish
		END
	done
} | sed '/^$/d' | "$mkdb" same

{
	run dcpidiff -set -epoch $one -set -epoch $two
	# The share of the facility's own samples: the program beside it plays no part.
	run dcpidiff -no_header -set -epoch $one worker -set -epoch $two worker
	run dcpidiff -no_header -changed -set -epoch $one worker -set -epoch $two worker
	# One program run twice: no change anywhere.
	run dcpidiff -no_header -set -epoch $two worker -set -epoch $three worker
	# A set against itself.
	run dcpidiff -no_header -changed -set -epoch $one -set -epoch $one
	run dcpidiff -no_header -db same -set -epoch $one -set -epoch $two
	run dcpidiff -no_header -db same -changed -set -epoch $one -set -epoch $two
	run dcpidiff -no_header -epoch $one -event imiss -set -set
	run dcpidiff -json -changed -epoch $one -set worker -set -epoch $two worker
	run dcpidiff -no_header -set -db db -event cpu-clock -set -db db -event imiss
	run dcpidiff -set -epoch $one
	run dcpidiff
	run dcpidiff worker -set -set
	run dcpidiff serve worker -set -set
	run dcpidiff -set -set -set
	run dcpidiff -set -epoch $one wroker -set -epoch $two
	run dcpidiff -set -event cycles -set
	run dcpidiff -set -db db -set -db ticks
	run dcpidiff -set -epoch 200001010000 -set
} >out
compare dcpidiff

# Each set names its own event.
for procedure in "" hot; do
	"$DCPI_BIN/dcpidiff" -json $procedure -set -db db -event cpu-clock app -set -db db -event imiss app |
		tr -d '", ' | grep '^event:' | paste -sd ' '
	echo event:cpu-clock event:imiss event:cpu-clock >&3
done >events 3>wanted
cmp events wanted

# Rows sum to the total, with -changed too.
for changed in "" -changed; do
	"$DCPI_BIN/dcpidiff" $changed -json -set -epoch $one -set -epoch $two | awk -F: '
		/"(samples|others)":\{/ { getline; a += $2; getline; b += $2 }
		/"total":\{/ { getline; total_a = $2 + 0; getline; total_b = $2 + 0 }
		END { exit !(a == 6900 && b == 10940 && total_a == a && total_b == b) }'
done
