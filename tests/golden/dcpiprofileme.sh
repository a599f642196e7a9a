#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpiprofileme on files with known contents (AMD IBS, data sources, Arm SPE): each bit and counter to the sample; the
# same after epochs were added up; perf's own decoder where there is one.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
support=$DCPI_SRC/tests/support
python3 "$support/insn_files.py" . "$app/app"
touch -d @1700000000 ./*.data
# Every bit, set and not set, and every counter, 32 in a line.
"$DCPI_BIN/dcpiprofileme" -names >names
python3 "$support/insn_check.py" names names >metrics

# facts NAME DATABASE: what the tool says of the database is what was put into the file.
facts()
{
	local rows=() metric
	while read -r metric; do
		rows+=("$1-${#rows[@]}.rows")
		"$DCPI_BIN/dcpiprofileme" -db "$2" -json -insns -pm "$metric" -epoch all >"${rows[-1]}"
	done <metrics
	python3 "$support/insn_check.py" facts "$1.json" "${rows[@]}"
}

for name in ibs pebs spe; do
	"$DCPI_BIN/dcpid" -quiet -replay $name.data -platform test $name
	facts $name $name
done >checked
[ "$(cat checked)" = "492 values
492 values
492 values" ] || { cat checked; exit 1; }

# listed NAME: so do the columns of other tools, and what the file itself says.
listed()
{
	"$DCPI_BIN/dcpilist" -db "$1" -json -pm "$(sed -n 1p metrics)" hot app >list.json
	"$DCPI_BIN/dcpilist" -db "$1" -json -pm "$(sed -n 3p metrics)" warm app >list2.json
	"$DCPI_BIN/dcpiprof" -db "$1" -json -pm "$(sed -n 2p metrics)" >prof.json
	"$DCPI_BIN/dcpicat" -json -insns "$1"/202311142213/test/app.* >cat.json
	python3 "$support/insn_check.py" listed "$1.json" list.json list2.json prof.json cat.json
}
for name in ibs pebs spe; do
	listed $name
done >checked

# Packed and unpacked, a database tells the same. (Under an emulator the program that unpacks cannot be started.)
if [ -z "${DCPI_EMULATOR:-}" ]; then
	"$DCPI_BIN/dcpitar" -db ibs ibs.tar >pack.log 2>&1 || { cat pack.log; exit 1; }
	"$DCPI_BIN/dcpitar" -x ibs.tar unpacked >unpack.log 2>&1 || { cat unpack.log; exit 1; }
	facts ibs unpacked >checked
fi

# The times of epochs are those of the files; JSON's long part is left out.
{
	run dcpiprofileme -db ibs
	run dcpiprofileme -db pebs -i
	run dcpiprofileme -db spe -insns -n 3 -pm branch^taken,cbrmispredict/cond,:issue/count,icmiss
	run dcpiprofileme -db ibs -procedure warm -event ibs_op// -pm 'count,load^!dcmiss:xlat/load^!dcmiss' app
	run dcpiprofileme -db pebs -json -n 1 -pm count,mispredict,dcmiss/load -no_header
	run dcpitopcounts -db ibs -no_header -n 2 -event ibs_op// -pm mispredict/branch,load^dcmiss app
	run dcpitopcounts -db ibs -lines -pm count
	run dcpilist -db ibs -hot -source -pm load^dcmiss/load,:completed hot app
	run dcpiprof -db spe -pm mispredict/branch,icmiss
	run dcpiprof -db spe -by comm -pm count
	run dcpiprof -db spe -comm app -pm count
	run dcpilist -db spe -caller main -pm count hot app
	run dcpiprof -db clickhouse://127.0.0.1/none -pm count
	run dcpiprofileme
	run dcpiprofileme -db ibs nothing
	run dcpiprofileme -db ibs -pm nyp
	run dcpiprofileme -db ibs -pm retired:colour
	run dcpiprofileme -db ibs -pm 'retired^!retired'
	run dcpiprofileme -db ibs -pm notrap^
	run dcpiprofileme -names
	run dcpicat ibs/202311142213/test/app.*
	run dcpitopcounts -db pebs -json -no_header -n 2 -pm count,dcmiss/load app
	for name in ibs spe; do
		echo "# insns of $name"
		"$DCPI_BIN/dcpicat" -insns $name/202311142213/test/app.* | awk '/^insn / && nr++ < 8'
	done
} >out
compare dcpiprofileme

# A word of a file that is cut anywhere ends in a named loss, or an error, and what came before it counts.
for length in 1000 20000 40001 59000; do
	for name in ibs spe; do
		head -c $length $name.data >cut.data
		"$DCPI_BIN/dcpid" -replay cut.data -platform test cut-$name-$length >cut.log 2>&1 || true
		grep -Eq 'samples stored|cannot replay' cut.log || { cat cut.log; exit 1; }
	done
done
