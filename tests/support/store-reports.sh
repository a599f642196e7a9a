# SPDX-License-Identifier: BSD-2-Clause
# Sourced by tests of a fleet's store: databases, and reports that are the same from the store as from the database that
# was sent there. $app_epoch is set before; sets what paths-db.sh sets, with which it begins. The test sets $base, the
# database, and $store.

. "$DCPI_SRC/tests/support/paths-db.sh"

# The heads differ in the names of both, and in the epochs that a store has added up; and processes of a JIT are one, where routines are added up.
# Nor do sums of a store tell what the kernel said of idle CPUs.
plain() { sed -E '/^(database|platforms?|epochs?|idle) /d; s|clickhouse://[0-9.:]*/||; s/hi\[4711\]/hi/; s/ +/ /g'; }

# ask DATABASE COMMAND…: what it prints, and its exit status. Of dcpiregress 1 is an answer.
ask()
{
	local code=0
	"$DCPI_BIN/$2" -db "$1" "${@:3}" >said 2>err || code=$?
	[ $code = 0 ] || [ "$2 $code" = "dcpiregress 1" ] || { echo "$* exits $code: $(cat err)" >&2; exit 1; }
	[ -s said ] || { echo "$* prints nothing" >&2; exit 1; }
	echo "exit $code" >>said
	plain <said
}

# same COMMAND…: the output is the same from the store and from the database.
same()
{
	ask "$base" "$@" >one
	ask "$store" "$@" >both
	diff one both || { echo "$* differs"; exit 1; }
}
# same_lines COMMAND…: likewise, in any order.
same_lines()
{
	ask "$base" "$@" | sort >one
	ask "$store" "$@" | sort >both
	diff one both || { echo "$* differs"; exit 1; }
}

# same_sets COMMAND…: the same but for the window of the head, which the store has applied.
same_sets()
{
	ask "$base" "$@" | sed -E '/^(window|  *(whole|all of)) /d; /^ (whole|all of)/d' >one
	ask "$store" "$@" >both
	diff one both || { echo "$* differs"; exit 1; }
}

# total WORD…: the samples that a report of the store has in all.
total() { "$DCPI_BIN/dcpiprof" -db "$store" -epoch all -event cpu-clock "$@" 2>err | awk '$NF == "total" { print $1 }'; }

# Samples of images, a JIT's routines and a kernel: of the database "db".
reports_of_samples()
{
	same dcpiprof -i -epoch all
	same dcpiprof -by host -no_header -epoch all
	same dcpiprof -by version app -epoch all
	same dcpitopcounts -epoch all
	same dcpilist -both hot app -epoch all
	same dcpilist -asm triple hi -epoch all -event cpu-clock
	same dcpiprof -event imiss -epoch all app
	same dcpidiff -set app -epoch all -set app -epoch all
	local month
	month=$(date -u -d "@$app_epoch" +%Y%m)
	same dcpiprof -i -epoch "$month..$month"
	"$DCPI_BIN/dcpiprof" -db "$store" -epoch "$(date -u -d "@$((app_epoch - 40 * 86400))" +%Y%m)" >out 2>err && exit 1
	grep -q 'no samples of that time' err || { cat err; exit 1; }
}

# Texts of users are data.
hostile_texts()
{
	for hostile in "'" "a'; DROP TABLE prof; --" "\\" $'\n' '%_*?'; do
		"$DCPI_BIN/dcpiprof" -db "$store" -epoch all "$hostile" >out 2>err && { echo "'$hostile' is an image"; exit 1; }
		"$DCPI_BIN/dcpiprof" -db "$store" -epoch all -platform "$hostile" >out 2>err && { echo "'$hostile' is a machine"; exit 1; }
		"$DCPI_BIN/dcpiprof" -db "$store" -epoch all -label "$hostile" >out 2>err && { echo "'$hostile' is a label"; exit 1; }
		if grep -i 'syntax\|code:' err; then exit 1; fi
	done
}

# Call paths, and what needs single profiles: of the database "paths".
reports_of_paths()
{
	same dcpiprof -unchecked -caller warm -epoch all
	same dcpilist -unchecked -caller outer -event cpu-clock -no_freq -epoch all hot app
	same dcpitopcounts -unchecked -caller fib -event cpu-clock -n 4 -epoch all
	same dcpicallers -unchecked -epoch all fib
	same_lines dcpiexport -unchecked -epoch all -event cpu-clock folded
	grep -q 'warm.*;.*hot' both
	same_lines dcpiexport -flat -epoch all -event cpu-clock folded
	same dcpireport -unchecked -epoch all -json
	grep -q '"paths":{"number":64' both
}

# make_loads: the database "loads", of two epochs with workloads, which are named in $one and $two.
make_loads()
{
	local n
	mkdir loads
	"$mkdb" loads </dev/null
	{
		echo platform box
		for n in 1 2; do
			cat <<-END
				epoch $((app_epoch - 7200 + n * 3600))
				profile file /opt/app/app $app/app
				event cpu-clock 1000000
				at hot+17 $((n * 30000))
				at warm 20000
				at other 20000
				at _start 20000
				profile named idle
				event cpu-clock 1000000
				at 0 7000
				workload one comm=one exe=/opt/app/app uid=1000 pid=11 processes=1
				workload two comm=two exe=/opt/app/app uid=1001 pid=12 processes=1
				workload none comm=(idle)
				w one cpu-clock 0 $((n * 20000)) hot+17@app
				w two cpu-clock 0 $((n * 10000)) hot+17@app
				w one cpu-clock 1 20000 warm@app
				w none cpu-clock 1 7000 0@idle
				note start 1
				note idle 60 30000 120000
				note suspend 90 20
				finish
			END
		done
	} | "$mkdb" loads
	one=$(date -u -d "@$((app_epoch - 3600))" +%Y%m%d%H%M)
	two=$(date -u -d "@$app_epoch" +%Y%m%d%H%M)
}

# Workloads, and sets of epochs: of the database "loads".
reports_of_loads()
{
	same dcpiregress -set -epoch "$one" -set -epoch "$two"
	grep -qx 'exit 1' both
	same dcpiregress -insns -set -epoch "$one" -set -epoch "$two"
	same dcpiregress -comm one -set -epoch "$one" -set -epoch "$two"
	same dcpidiff -comm one -set -epoch "$one" -set -epoch "$two"
	same dcpidiff -pid 12 -set -epoch "$one" app -set -epoch "$two" app
	same dcpistats -uid 1000 -set -epoch "$one" -set -epoch "$two"
	same dcpilist -comm two -epoch all -no_freq hot app
	[ "$(total -by uid -comm one)" = 100000 ] || { echo "-comm one: $(total -by uid -comm one)"; exit 1; }
	[ "$(total -by uid -pid 12)" = 30000 ] || { echo "-pid 12: $(total -by uid -pid 12)"; exit 1; }
	same dcpiprof -by host -comm one -epoch all
	same_lines dcpiexport -comm one -epoch all folded
	# Notes of the daemons come with their workloads.
	same dcpitimeline -epoch all
	grep -q 'no daemon ran' both && grep -q 'was suspended for 20 s' both || { cat both; exit 1; }
}

# Three machines with many epochs each: of the database "many".
reports_of_many()
{
	local middle
	middle=$(date -u -d "@$((app_epoch - 30 * 3600))" +%Y-%m-%dT%H:%M:00Z)
	same dcpiprof -epoch all
	[ "$(total -platform 'm*')" = "$(total)" ] || { echo "of m*: $(total -platform 'm*')"; exit 1; }
	same dcpiprof -epoch all -platform m1
	same dcpiprof -by host -no_header -epoch all
	same dcpitopcounts -epoch all app
	same dcpilist -both -no_freq -epoch all hot app
	same_sets dcpiregress -every -set -until "$middle" -set -since "$middle"
	same_sets dcpiregress -insns -set -until "$middle" -set -since "$middle"
}
