#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpiexport: each format as its own rules have it (tests/support/export_read.py reads it), with the stacks that the
# others have, and the sums of dcpiprof and dcpitopcounts; names that would do harm; databases without samples.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/paths-db.sh"

# Names of routines and files with all that could confuse a reader.
"$mkdb" bad </dev/null
mkfifo job
"$DCPI_BIN/../tests/mkjob" bad/dyn/bad.box.7.dyn >/dev/null <job &
{
	printf 'image 62 bad 7 box /opt/bad\nrun 0x7f0000001000 0 0x1000\n'
	printf 'file a;"b\\c.js\nline 0 3 0\n'
	printf 'routine 0x7f0000001040 a;b"c\\d<script>&amp; 89f8c3\n'
	printf 'routine 0x7f0000001050 esc\033[31m\001 89f8c3\n'
	printf 'routine 0x7f0000001060 bidi\342\200\256\342\201\246\330\234\342\200\250x 89f8c3\n'
	printf 'routine 0x7f0000001070 bytes\377\300\200\355\240\200 89f8c3\n'
	printf 'routine 0x7f0000001080 (2) 89f8c3\n'
	printf 'routine 0x7f0000001090 _ZN12_GLOBAL__N_11fEi 89f8c3\n'
	printf 'routine 0x7f00000010a0 \303\251t\303\251 89f8c3\n'
	printf 'routine 0x7f00000010b0 fn=(1) 89f8c3\n'
	printf 'routine 0x7f00000010c0 (open 89f8c3\n'
} >job
wait $!
"$mkdb" bad <<-END
	platform box
	epoch 1700000000
	profile dynamic bad.box.7.dyn
	event cpu-clock 1000000
	at 0x40 1
	at 0x50 2
	at 0x60 3
	at 0x70 4
	at 0x80 5
	at 0x90 6
	at 0xa0 7
	at 0xb0 8
	at 0xc0 9
	profile named $(printf 'a\033b;c')
	event cpu-clock 1000000
	at 0 10
	finish
END
# An epoch without samples, and no epoch.
"$mkdb" empty <<-END
	platform box
	epoch 1700000000
	finish
END
"$mkdb" none </dev/null
# A library without symbols but for those that it exports; of one address nothing is known.
lib=$DCPI_SRC/tests/data/stripped/libapp.so
"$mkdb" bare <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/libapp.so $lib
	event cpu-clock 1000000
	at hot+22 20
	at 0x323 30
	at 0x10 5
	profile file /home/u/libapp.so $lib
	word text unread
	event cpu-clock 1000000
	at hot+22 7
	finish
END

formats="pprof folded speedscope firefox callgrind perf otlp"
export_all() # export_all NAME ARGUMENT…: in each format, and as it is read
{
	local files=()
	for format in $formats; do
		"$DCPI_BIN/dcpiexport" "$format" -o "$1.$format" "${@:2}" 2>err
		files+=("$format" "$1.$format")
	done
	"$DCPI_SRC/tests/support/export_read.py" "${files[@]}"
	grep -qx "tags: platform box" "$1.pprof.read"
	grep -qx "tags: host.name box" "$1.otlp.read"
	sed -i '/^tags: /d' "$1.pprof.read" "$1.otlp.read"
}
sums() # sums READ: by event
{
	awk '{ sum[$1] += $2 } END { for (event in sum) print event, sum[event] }' "$1" | sort
}

{
	run dcpiexport folded -unchecked
	run dcpiexport folded -flat -event imiss
	run dcpiexport callgrind -unchecked
	run dcpiexport speedscope -event imiss -unchecked
	run dcpiexport folded -db bad
	run dcpiexport folded -db bare -p "$lib" | sed "s,$lib,LIB,"
	run dcpiexport perf -db bad -event cpu-clock >perf.run
	sed -n '1,4p' perf.run
	echo "# what cannot be"
	run dcpiexport
	run dcpiexport fold
	run dcpiexport folded -db empty
	run dcpiexport folded -db none
	run dcpiexport folded -db nowhere
	run dcpiexport folded -event nothing
	run dcpiexport folded -o nowhere/x
	run dcpiexport pprof -o .
} 2>&1 | sed 's|dcpiexport-[0-9.]*|dcpiexport-VERSION|' >out

# One event, as all formats hold it: the same stacks in all.
export_all one -unchecked -event cpu-clock
for format in folded speedscope firefox otlp; do
	diff <(sed 's/^[^ ]* //' one.pprof.read) <(sed 's/^[^ ]* //' one.$format.read)
done
# perf's text has other brackets around names that begin with one.
diff <(sed 's/^[^ ]* //; s/(\(no [a-z ]*\|cut\|stack unreadable\|contradicted\|idle\))/[\1]/g' one.pprof.read) \
	<(sed 's/^[^ ]* //' one.perf.read)
# All of them.
export_all all -unchecked
printf 'cpu-clock 512\nimiss 8\nswitches 1\n' >want
diff want <(sums all.firefox.read)
diff want <(sums all.speedscope.read)
diff want <(sums all.otlp.read)
diff want <(sums all.pprof.read | sed 's/^samples /cpu-clock /' | sort)
diff want <(sums all.callgrind.read | tr _ -)
diff <(head -n 1 want) <(sums all.perf.read)
diff <(echo "samples 512") <(sums all.folded.read)
# Instructions, and what dcpitopcounts says of them.
"$DCPI_BIN/dcpitopcounts" -n 1000 -event cpu-clock -no_header 2>err |
	awk '/ total$/ { next }
		{ at = "0x0"; for (i = NF; i > 1; i--) if ($i ~ /^[+]?0x[0-9a-f]+$/) at = $i; sub(/[+]/, "", at); print at, $1 }' |
	sort >want
awk '$1 == "cpu_clock" { print $3, $2 }' all.callgrind.read | sort >instructions
[ "$(wc -l <want)" = 11 ]
diff want instructions
# The same file every time, whatever compresses it.
"$DCPI_BIN/dcpiexport" pprof -unchecked -o again.pb.gz 2>err
cmp again.pb.gz all.pprof
"$DCPI_BIN/dcpiexport" firefox -unchecked -o all.json.gz 2>err
gzip -dc all.json.gz | cmp - all.firefox
"$DCPI_BIN/dcpiexport" pprof -unchecked 2>err >stdout.pb.gz
cmp stdout.pb.gz all.pprof

# Workloads as tags: a tag has the samples that dcpiprof has of it. The database says which path of the library was whose;
# of the two threads of one it does not.
. "$DCPI_SRC/tests/support/whose-db.sh"
export_tags() # export_tags NAME ARGUMENT…: both formats with tags, whose tags are the same
{
	for format in pprof otlp; do
		"$DCPI_BIN/dcpiexport" $format -unchecked -o "$1.$format" -db whose "${@:2}" 2>err
		"$DCPI_SRC/tests/support/export_read.py" $format "$1.$format"
	done
	sed -i 's/^samples /cpu-clock /; / platform /d' "$1.pprof.tags"
	sed -i 's/^samples /cpu-clock /; / platform /d' "$1.pprof.stacks"
	sed -i 's/ dcpi[.]/ /; s/ process[.]executable[.]path / exe /; s/ process[.]pid / pid /; s/ process[.]user[.]id / uid /
		s/ process[.]linux[.]cgroup / cgroup /; s/ thread[.]name / thread /; s/ container[.]id / container /' \
		"$1.otlp.tags" "$1.otlp.stacks"
	diff <(sort "$1.pprof.tags") <(sort "$1.otlp.tags")
	diff <(sort "$1.pprof.stacks") <(sort "$1.otlp.stacks")
}
{
	echo "# whose samples are"
	export_tags whose
	sort whose.pprof.tags
	echo "# paths of the library, by workload; which of these are certain"
	grep -E ' (comm|workload) .*lib[.]so' whose.pprof.stacks | sort
	for choice in "-comm app" "-thread two" "-flat" "-since 2023-11-14T22:14:00Z"; do
		echo "# $choice"
		# shellcheck disable=SC2086 # they are words
		export_tags chosen $choice
		sort chosen.pprof.tags | grep -E ' (thread|uid|workload) '
	done
	export_tags untagged -untagged
	[ ! -s untagged.pprof.tags ]
	for format in perf firefox; do
		echo "# processes and threads of $format"
		"$DCPI_BIN/dcpiexport" $format -unchecked -o whose.$format -db whose 2>err
		"$DCPI_SRC/tests/support/export_read.py" $format whose.$format
		sort whose.$format.tags
	done
	"$DCPI_BIN/dcpiexport" perf -unchecked -o untagged.perf -db whose -untagged 2>err
	"$DCPI_SRC/tests/support/export_read.py" perf untagged.perf
	cat untagged.perf.tags
} >>out
for key in comm exe pid uid cgroup unit thread label; do
	"$DCPI_BIN/dcpiprof" -db whose -by $key -json 2>err >by.json
	python3 - $key <<-'END' || { echo "tags of $key are not what dcpiprof -by has"; exit 1; }
		import json, sys
		key, rows = sys.argv[1], json.load(open("by.json"))["rows"]
		want = sum(r["samples"]["cpu-clock"] for r in rows if r.get("name"))
		got = sum(int(x.split()[1]) for x in open("whose.pprof.tags") if x.split()[0] == "cpu-clock" and x.split()[2] == key)
		assert want == got and got, (want, got, rows)
	END
done
# Two workloads of one program, each with a path of its own: the database says which, that of an older daemon does not.
# Each tag has the samples that dcpiprof has of it.
shared()
{
	cat <<-END
		platform box
		epoch 1700000000
		profile file /opt/app/app $app/app
		event cpu-clock 1000000
		at hot+17 30
		at warm 12
		workload build comm=build exe=/opt/app/app uid=1000 pid=7
		workload serve comm=serve exe=/opt/app/app uid=1001 pid=8
		w build cpu-clock 0 10 hot+17@app
		w serve cpu-clock 0 20 hot+17@app
		w build cpu-clock 0 8 warm@app
		w serve cpu-clock 0 4 warm@app
		owner serve
		callpath cpu-clock complete 4 hot+17@app helper+2@app
		owner build
		callpath cpu-clock complete 2 hot+17@app warm+8@app _start+1@app
		callpath cpu-clock complete 3 warm@app _start+1@app
		finish
	END
}
shared | "$mkdb" shared
shared | sed '/owner/d' | "$mkdb" older
for db in shared older; do
	echo "# two workloads of one program: $db"
	export_tags $db -db $db
	grep -E ' (comm|workload) ' $db.pprof.stacks | sort
	for key in comm exe pid uid; do
		"$DCPI_BIN/dcpiprof" -db $db -by $key -json 2>err >by.json
		python3 - $db.pprof.tags $key <<-'END' || { echo "tags of $key are not what dcpiprof -by has of $db"; exit 1; }
			import json, sys
			tags = [x.split() for x in open(sys.argv[1])]
			got = {x[3]: int(x[1]) for x in tags if x[2] == sys.argv[2]}
			rows = json.load(open("by.json"))["rows"]
			assert got and got == {r["name"]: r["samples"]["cpu-clock"] for r in rows}, (got, rows)
		END
	done
done >>out
compare dcpiexport

# The database of another user that no one else may read: that is said, and no file is left. (An emulator does not find the
# name of a program that was copied.)
if [ "$(id -u)" = 0 ] && [ -z "${DCPI_EMULATOR:-}" ]; then
	mkdir -m 777 others
	cp -r paths others/closed
	cp "$DCPI_BIN/dcpi" others/dcpiexport
	chmod 755 .
	chmod 700 others/closed
	for format in $formats; do
		code=0
		(cd others && setpriv --reuid 65534 --regid 65534 --clear-groups ./dcpiexport "$format" -db closed -o file) 2>err || code=$?
		[ $code = 1 ] || { cat err; echo "$format of another user's database exits $code"; exit 1; }
		grep -q "cannot open database 'closed': Permission denied" err || { cat err; exit 1; }
		[ ! -e others/file ] || { echo "$format leaves a file"; exit 1; }
	done
fi

# Names: what is read is inert, and is the same in all formats (in perf's text with other brackets).
export_all bad -db bad
for format in speedscope firefox otlp; do
	diff <(sed 's/^[^ ]* //' bad.pprof.read) <(sed 's/^[^ ]* //' bad.$format.read)
done
diff <(sed 's/^[^ ]* //; s/;/:/g' bad.pprof.read) <(sed 's/^[^ ]* //' bad.folded.read)
for format in $formats; do
	awk '{ n += $2 } END { exit n != 55 }' bad.$format.read || { echo "bad.$format has other sums"; exit 1; }
done

# Without symbols, and of another file of the same build-id: the same stacks in all formats, with all samples.
export_all bare -db bare -p "$lib"
for format in folded speedscope firefox otlp perf; do
	diff <(sed 's/^[^ ]* //' bare.pprof.read) <(sed 's/^[^ ]* //' bare.$format.read)
done
awk '{ n += $2 } END { exit n != 62 }' bare.callgrind.read
[ "$(wc -l <bare.callgrind.read)" = 3 ]

# Without samples: that is said, in each format, and no file is left.
for format in $formats; do
	for db in empty none; do
		code=0
		"$DCPI_BIN/dcpiexport" "$format" -db $db -o nothing 2>err || code=$?
		[ $code = 1 ] || { echo "$format of '$db' exits $code"; exit 1; }
		grep -qE 'no samples are chosen|has no epoch yet' err
		[ ! -e nothing ] || { echo "$format of '$db' leaves a file"; exit 1; }
	done
done

# A reader of others.
if command -v callgrind_annotate >/dev/null; then
	callgrind_annotate --show-percs=no all.callgrind >annotated
	grep -qE '^ +512 +8 +1 +PROGRAM TOTALS' annotated
	callgrind_annotate --show-percs=no --inclusive=yes one.callgrind >annotated
	"$DCPI_BIN/dcpicallers" -unchecked -no_header fib 2>err | awk '/ fib / { print $1 }' >called
	grep -qx 226 called
	grep -qE '^ *226 +[?]{3}:fib \[jit' annotated
fi

[ -w /dev/full ] || exit 0
for format in pprof folded; do
	code=0
	"$DCPI_BIN/dcpiexport" "$format" >/dev/full 2>err || code=$?
	[ $code = 1 ] || { echo "$format >/dev/full exits $code"; exit 1; }
	grep -q "No space left" err
done
