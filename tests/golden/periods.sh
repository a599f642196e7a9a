#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Periods and fractions of the time counted are each image's own: what the tools say of a program is the same
# whatever periods another image's events have, and whether a sample stands for so many events because of its
# period or because others were counted in turn.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
strip=$DCPI_SRC/tests/data/strip
mkdir -p root/.build-id/57
cp "$strip/strip.so" root/.build-id/57/12000000000000000000000000000000000001
cp "$app/app" "$app/app.xct" .

# app CYCLES INSTRUCTIONS: 250 samples of instructions on each of the loop, 562 of cycles.
app()
{
	cat <<-END
		platform box
		epoch 1700000000
		profile file /opt/app/app $app/app
		event cycles $1
		event instructions $2
		at hot 1 4
		at hot+4 1 1
		at hot+17 30 250
		at hot+19 12 250
		at hot+22 8 250
		at hot+24 500 250
		at hot+26 5 1
		at warm 6 40
	END
}
app '1000' '1000' | "$mkdb" same
{
	app '1000' '1000'
	# Sampled by frequency, its periods came out otherwise; and of instructions it has none.
	cat <<-END
		profile file /opt/lib/strip.so $strip/strip.so
		event cycles 999
		at 0x2b4 30
		at 0x2c0 10
		at 0x2c4 5
		profile file /opt/lib/other.so $strip/strip.so
		id 99
		event cycles 1017
		event instructions 7
		at 0x2b4 30 1
	END
} | "$mkdb" mixed
app '1000' '2000' | "$mkdb" twice
app '1000' '1000 0.5' | "$mkdb" turns
app '4000' '1000' | "$mkdb" slow
app '1000 0.25' '1000' | "$mkdb" quarter

# What is told of "app", but for the lines that name the period itself.
told()
{
	local set=(-db "$1" -epoch 202311142213)
	run dcpilist -freq -asm -no_header "${set[@]}" hot app
	run dcpicalc "${set[@]}" hot app
	run dcpitopstalls "${set[@]}" app
	run dcpidiff -no_header -compare frequency,cpi hot "${set[@]}" -set app -set app
	run dcpi2bb "${set[@]}" -o bb app
	cat bb*
	run dcpi2pix "${set[@]}" -o pix app
	od -An -v -t x1 pix.Counts
	run dcpicosts "${set[@]}" app.xct
	(cd "$1/costs" && grep . -- *)
	rm -r bb* pix.* "$1/costs"
}
for db in same mixed twice turns slow quarter; do
	told $db 2>&1 | sed "s/-db $db/-db DB/; s/^database .*/database   DB/; s/, one per [0-9]* events//; s/, of different periods//; s/, counted [0-9.]* % of the time//; s/^\(; EVENT cycles\) .*/\1/" >$db.told
done
same() { cmp $1.told $2.told || { diff $1.told $2.told; exit 1; }; }
same same mixed
same twice turns
same slow quarter
! cmp -s same.told twice.told || { echo "two periods tell the same"; exit 1; }
! cmp -s same.told slow.told || { echo "two periods tell the same"; exit 1; }
{
	cat same.told
	# No sample of instructions in it, but of cycles.
	run dcpi2pix -db mixed -conf_low -o strip strip.so
	od -An -v -t x1 strip.Counts
	run dcpi2pix -db mixed -event imiss strip.so
	# Whoever counts samples by the period is told of the fraction.
	run dcpiprof -db turns -i
	run dcpiprof -db quarter -json -i
} >out
compare periods
