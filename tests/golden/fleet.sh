#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A database goes to a ClickHouse of today and back: every report of the store is that of the database itself, count by
# count, after repeated and late uploads too. (System tests do the same with servers, Debian's, and take these away.)
set -eu -o pipefail
. "$DCPI_SRC/tests/support/store-library.sh"
app_epoch=$(date +%s) # the store forgets what is old
. "$DCPI_SRC/tests/support/store-reports.sh"
start_library
store=clickhouse://127.0.0.1:$port/fleet
ship() { "$DCPI_BIN/dcpiship" -db db -to "$store" "$@"; }
base=db

ship 2>err && { echo "a store without tables is taken"; exit 1; }
grep -q -- '-make-schema' err || { cat err server/log; exit 1; }
ship -make-schema
ship -make-schema # changes nothing
"$DCPI_BIN/dcpiship" -quiet -db db -spool first -open # packs alone
ship -open | grep -x '1 batches sent, .* MB' >sent
ship -open
# Once more from the start, and then the first batch, late.
rm -r db/ship
ship -open >>sent
"$DCPI_BIN/dcpiship" -relay first -to "$store" >>sent
[ "$(grep -cx '1 batches sent, .* MB' sent)" = 3 ] || { cat sent; exit 1; }
ship -verify >verified || { cat verified; exit 1; }
grep -qx '1 epochs compared, 0 differ' verified
reports_of_samples

# Three machines behind a relay; damaged and hostile batches hold up no others.
mkdir relay
for n in 1 2 3; do
	"$mkdb" "machine$n" <<-END
		platform machine$n
		epoch $app_epoch
		profile file /opt/app/app $app/app
		word label night$n
		event cpu-clock 1000000
		at hot+17 $((n * 100000))
		profile named idle
		event cpu-clock 1000000
		at 0 $((n * 7000000000))
		finish
	END
	"$DCPI_BIN/dcpiship" -db "machine$n" -spool "relay/machine$n"
done
head -c 3000 /dev/urandom >relay/machine1/0.batch
cp relay/machine2/*.batch relay/machine2/1.batch
printf x | dd of=relay/machine2/1.batch bs=1 seek=100 conv=notrunc status=none
ln -s /etc/passwd relay/machine3/2.batch
"$DCPI_BIN/dcpiship" -relay relay -to "$store" 2>err | grep -x '3 batches sent, .* MB' >sent || { cat err; exit 1; }
[ "$(grep -c 'is set aside as .bad' err)" = 3 ]
[ -z "$(ls relay/*/*.batch 2>/dev/null)" ]
for n in 1 2 3; do
	"$DCPI_BIN/dcpiship" -db "machine$n" -spool "relay/machine$n" -to "$store" -verify >verified || { cat verified; exit 1; }
done

[ "$(total)" = $((214 + 6 * 7000100000)) ]
[ "$(total -by host)" = $((214 + 6 * 7000100000)) ]
[ "$(total -by exe)" = $((214 + 6 * 7000100000)) ]
[ "$(total -label night2)" = 200000 ]
[ "$(total -label night2 -label night3 -by host)" = 500000 ]
[ "$(total -by label)" = $((214 + 6 * 7000100000)) ]
[ "$(total -platform 'machine*' -no_idle)" = 600000 ]
[ "$(total -platform 'machine*' -no_idle -by host)" = 600000 ]
"$DCPI_BIN/dcpiprof" -db "$store" -epoch all -no_header -by host app 2>err | awk '{ print $1, $NF }' | tr '\n' ' ' >hosts
grep -qx '300000 machine3 200000 machine2 100000 machine1 100 box 600100 total ' hosts

hostile_texts
same dcpiprof -i -epoch all -platform box

# Call paths, and workloads of two epochs: what needs them takes them from the store too.
base=paths store=clickhouse://127.0.0.1:$port/paths
"$DCPI_BIN/dcpiship" -make-schema -to "$store"
"$DCPI_BIN/dcpiship" -quiet -db paths -to "$store"
reports_of_paths

# The same on 512 machines: their files are too many to be copied. Sums are exact all the same, and call paths those of
# 500 machines: procedures and callers of a routine are those of one, with about so many times the samples.
question() { curl -sS "http://127.0.0.1:$port/?database=${store##*/}" --data-binary "$1"; }
for n in 1 2 3 4 5 6 7 8 9; do
	for table in prof totals work part; do
		question "INSERT INTO $table SELECT * REPLACE (concat(platform, '$n') AS platform) FROM $table"
	done
done
[ "$(question 'SELECT count() FROM part FORMAT RowBinary' | od -An -tu8 | tr -d ' ')" = 512 ] || { echo "there are not 512 machines"; exit 1; }
# times FACTOR ONE BOTH: lines are the same, with FACTOR times the number, rounded in ONE; the sums are exact.
times()
{
	awk -v f="$1" '{ n = $NF; $NF = "" } NR == FNR { one[$0] += n; a += n; next } { both[$0] += n; b += n }
		END { for (l in both) one[l] += 0
		for (l in one) if (both[l] < f * (one[l] - 4) || both[l] > f * (one[l] + 4)) { print l, one[l], both[l]; bad = 1 }
		if (b != f * a) { print "the sum is", b, "not", f * a; bad = 1 } exit bad }' "$2" "$3"
}
# Of a routine of a JIT the sums do not know what was inlined into it, nor whether a file is missing.
ask paths dcpiexport -unchecked -epoch all -event cpu-clock folded |
	sed -E '/^exit/d; s/(;cube|;square\(int\))//g; s/\(image missing\)/(no symbol)/' >one
ask "$store" dcpiexport -unchecked -epoch all -event cpu-clock folded | sed '/^exit/d' >both
grep -q '^dcpifetch: warning: call paths are of 500 of 512 epochs of machines, chosen by chance$' err || { cat err; exit 1; }
times 512 one both
"$DCPI_BIN/dcpicallers" -db "$store" -unchecked -epoch all fib >both 2>err
"$DCPI_BIN/dcpicallers" -db paths -unchecked -epoch all fib >one 2>err
for file in one both; do sed -E '1,/^$/d; s/[0-9.%]+/N/g; s/ +/ /g; s/jit\[[0-9N]*\]/jit/' $file >$file.names; done
diff one.names both.names || { echo "callers differ"; exit 1; }
"$DCPI_BIN/dcpireport" -db "$store" -unchecked -epoch all -json 2>err >both
grep -q '"paths":{"number":32000' both || { echo "the report has not 32000 paths"; exit 1; }
code=0
"$DCPI_BIN/dcpiprof" -db "$store" -epoch all -comm none >out 2>err || code=$?
[ $code = 1 ] || { echo "-comm exits $code: $(cat err)"; exit 1; }

base=loads store=clickhouse://127.0.0.1:$port/loads
make_loads
"$DCPI_BIN/dcpiship" -make-schema -to "$store"
"$DCPI_BIN/dcpiship" -quiet -db loads -to "$store"
reports_of_loads

# Replicates: two builds, of which each has a routine that the other lacks; few machines with more epochs than there may
# be replicates for, and more machines than these.
# builds MACHINES EPOCHS: a file for mkdb, whose second half of epochs has the second build
builds()
{
	local n e build
	for ((n = 0; n < $1; n++)); do
		echo "platform m$n"
		for ((e = 0; e < $2; e++)); do
			build=$((e * 2 / $2))
			cat <<-END
				epoch $((app_epoch - ($2 - e) * 3600))
				profile file $PWD/build$build/prog $PWD/build$build/prog
				event cpu-clock 1000000
				at steady $((1000 + 7 * n + 3 * e))
				at spin $((1000 + 5 * n + e * 1000 / $2))
				at $([ $build = 0 ] && echo early || echo late) $((200 + n + e))
				finish
			END
		done
	done
}
for n in 0 1; do
	{ echo '__attribute__((noinline)) int steady(int i) { return i + 1; }'
	  echo '__attribute__((noinline)) int spin(int i) { return i * 3; }'
	  [ $n = 1 ] || echo 'int early(int i) { return i * 5; } int idle_in_b(int i) { return i * 7; }'
	  [ $n = 0 ] || echo 'int late(int i) { return i - 9; }'
	  echo 'int main(int c, char **v) { (void)v; return steady(spin(c)); }'; } >prog$n.c
	mkdir build$n
	gcc -O1 -g0 -o build$n/prog prog$n.c
done
for shape in '3 30' '70 2'; do
	set -- $shape
	base=builds$1 store=clickhouse://127.0.0.1:$port/builds$1
	"$mkdb" "$base" </dev/null
	builds "$1" "$2" >made
	csplit -sz -f machine- -n 3 made '/^platform/' '{*}'
	for file in machine-*; do
		[ -d "$file" ] || "$mkdb" "$base" <"$file"
	done
	rm machine-*
	"$DCPI_BIN/dcpiship" -make-schema -to "$store"
	"$DCPI_BIN/dcpiship" -quiet -db "$base" -to "$store"
	half=$(($2 / 2))
	middle=$(date -u -d "@$((app_epoch - half * 3600))" +%Y-%m-%dT%H:%M:00Z)
	same_sets dcpiregress -every -set -until "$middle" -set -since "$middle"
	grep -q 'new .*late' both
	grep -q 'vanished .*early' both
	same_sets dcpiregress -insns -set -until "$middle" -set -since "$middle"
done

# A program that only calls has its symbols, though its file is gone.
base=callers store=clickhouse://127.0.0.1:$port/callers
mkdir callers
"$mkdb" callers <<-END
	platform box
	epoch $app_epoch
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at hot+17 150
	profile file $PWD/build0/prog $PWD/build0/prog
	callpath cpu-clock complete 12 hot+17@app spin+1@prog
	finish
END
"$DCPI_BIN/dcpiship" -make-schema -to "$store"
"$DCPI_BIN/dcpiship" -quiet -db callers -to "$store"
ask callers dcpicallers -unchecked -epoch all hot >one
grep -q spin one
mv build0/prog build0/gone
ask "$store" dcpicallers -unchecked -epoch all hot >both
mv build0/gone build0/prog
diff one both || { echo "a program that only calls has no names"; exit 1; }

# Sums of six hours and of days are read in place of hours, and answers are the same: without them, with them, with a row
# that came after them, and made anew. (60 machines without any are too many to be read apart.)
store=clickhouse://127.0.0.1:$port/builds3
added_up() { grep -c "FROM $1 ARRAY JOIN" server/questions || :; }
ask "$store" dcpiprof -epoch all >before
ask "$store" dcpitopcounts -epoch all prog >>before
"$DCPI_BIN/dcpiship" -sum -to "$store" | grep -qx '[0-9]* sums made'
[ -z "$("$DCPI_BIN/dcpiship" -sum -to "$store")" ] || { echo "sums are made twice"; exit 1; }
rm server/questions
ask "$store" dcpiprof -epoch all >after
ask "$store" dcpitopcounts -epoch all prog >>after
diff before after || { echo "sums differ"; exit 1; }
[ "$(added_up sums)" -ge 1 ] && [ "$(added_up profsums)" -ge 1 ] || { echo "no sums are read"; exit 1; }
# Sums of all machines together are read where all are meant.
of_fleet() { grep -c 'span = 86401.*GROUP BY place' server/questions || :; }
[ "$(of_fleet)" -ge 2 ] || { echo "no sums of all machines are read"; exit 1; }
rm server/questions
ask "$store" dcpiprof -epoch all -platform 'm*' >after
diff <(head -n 5 before) <(head -n 5 after) || { echo "sums of machines differ"; exit 1; }
[ "$(of_fleet)" = 0 ] || { echo "sums of all machines are read where some are meant"; exit 1; }
had=$(total)
question "INSERT INTO totals SELECT event, label, epoch, platform, ver + 1, period, enabled, samples + 7000, r,
	arrayMap((c, i) -> i = 1 ? c + 7000 : c, n, arrayEnumerate(n)) FROM totals WHERE platform = 'm1' ORDER BY epoch LIMIT 1"
[ "$(total)" = $((had + 7000)) ] || { echo "a row that came later: $(total), not $had + 7000"; exit 1; }
[ "$(total -platform m1)" -gt 7000 ]
"$DCPI_BIN/dcpiship" -sum -to "$store" | grep -qx '5 sums made'
[ "$(total)" = $((had + 7000)) ] || { echo "sums that were made anew: $(total), not $had + 7000"; exit 1; }
question "INSERT INTO sums SELECT event, span, epoch, platform, label, ver + 1, print, samples, r, n FROM sums"
[ "$(total)" = $((had + 7000)) ] || { echo "sums that are there twice: $(total), not $had + 7000"; exit 1; }
store=clickhouse://127.0.0.1:$port/builds70
question "INSERT INTO totals SELECT event, label, epoch - 172800, platform, ver, period, enabled, samples, r, n FROM totals"
had=$(total)
"$DCPI_BIN/dcpiship" -quiet -sum -to "$store"
[ "$(total)" = "$had" ]

# Of 20,000 routines the names are asked for in parts, and the symbols of their images once.
question "INSERT INTO routine SELECT number + 1, (SELECT max(image) FROM image), 's', 0, 1, 1 FROM numbers(200000)"
question "INSERT INTO totals SELECT event, 'many', epoch, platform, ver, period, enabled, 20000, range(1, 20001),
	arrayMap(i -> 1, range(1, 20001)) FROM totals LIMIT 1"
rm server/questions
"$DCPI_BIN/dcpifetch" -quiet -from "$store" -o many -epoch all -label many -detail routine -symbols 2>err
[ "$(grep -c 'FROM routine FINAL WHERE r IN' server/questions)" = 3 ] || { echo "names are not asked for in 3 parts"; exit 1; }
[ "$(grep -c 'symbol, off, len FROM image' server/questions)" = 1 ] || { echo "symbols are not asked for once"; exit 1; }

# A store of version 1 is left alone until its tables are those of today; its rows stay, and others come.
base=loads store=clickhouse://127.0.0.1:$port/old
"$DCPI_BIN/dcpiship" -make-schema -to "$store"
for table in totals work part image routine content; do question "INSERT INTO $table SELECT * FROM loads.$table"; done
for table in prof sums profsums schema; do question "DROP TABLE $table"; done
question "CREATE TABLE schema (version UInt32, id String) ENGINE = ReplacingMergeTree ORDER BY version"
question "INSERT INTO schema SELECT 1, 'old'"
question "CREATE TABLE prof (event String, image FixedString(16), epoch DateTime, platform String, file String, ver UInt64,
	period UInt64, enabled UInt32, label String, samples UInt64, off Array(UInt32), n Array(UInt16), far Array(UInt64),
	nfar Array(UInt64)) ENGINE = ReplacingMergeTree(ver) PARTITION BY toDate(epoch)
	ORDER BY (event, image, epoch, platform, file) SETTINGS index_granularity = 1024"
question "INSERT INTO prof SELECT event, image, epoch, platform, file, ver, period, enabled, label, samples,
	arrayMap((l, h) -> toUInt32(65536 * h + l), lo, hi), arrayMap((l, h) -> toUInt16(256 * h + l), nlo, nhi), far, nfar
	FROM loads.prof WHERE epoch = (SELECT min(epoch) FROM loads.prof)"
"$DCPI_BIN/dcpiprof" -db "$store" -epoch all >out 2>err && { echo "a store of version 1 is read"; exit 1; }
grep -q "store 'old' has version 1, not 2" err && grep -q "'dcpiship -make-schema' brings" err || { cat err; exit 1; }
"$DCPI_BIN/dcpiship" -make-schema -to "$store"
same dcpilist -both hot app -epoch "$one"
"$DCPI_BIN/dcpiship" -quiet -db loads -spool again -to "$store" # its rows have columns that the old ones lack
same dcpiprof -i -epoch all
same dcpilist -both hot app -epoch all
"$DCPI_BIN/dcpiship" -quiet -sum -to "$store"
same dcpilist -both hot app -epoch all

# Commands that change a database, or read its files, take no store.
for command in "dcpitar x.tar.gz" "dcpitar -x x.tar.gz" "dcpikdiff -n" dcpikdiff "dcpicosts x.xct" "dcpitop -batch 1"; do
	code=0
	"$DCPI_BIN"/$command -db "$store" >out 2>err || code=$?
	[ "$code" = 2 ] && grep -q "^${command%% *}: '$store' is the store of a fleet, and no database$" err ||
		{ echo "$command exits $code: $(cat err)"; exit 1; }
done
[ ! -e x.tar.gz ]
for command in "dcpirun true" "dcpid $store" "dcpid -gc $store"; do
	code=0
	DCPIDB=$store "$DCPI_BIN"/$command >out 2>err || code=$?
	[ "$code" != 0 ] && grep -q "^${command%% *}: '$store' is the store of a fleet, and no database$" err &&
		grep -q "^hint: name a folder" err || { echo "$command exits $code: $(cat err)"; exit 1; }
done

# Copies go with the tools that made them.
mkdir copies
TMPDIR=$PWD/copies "$DCPI_BIN/dcpiprof" -db "$store" -epoch all >out 2>err
for ((i = 0; i < 100; i++)); do
	[ -n "$(ls copies)" ] || break
	sleep 0.1
done
[ -z "$(ls copies)" ]
