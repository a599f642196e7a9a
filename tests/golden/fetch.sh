#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Reports of a fleet's store are those of the database that was sent there: questions are answered as a ClickHouse answered
# them once, when this ran with DCPI_UPDATE=1; a question that it was not asked is an error. (golden/fleet asks one.)
set -eu -o pipefail
answers=$DCPI_SRC/tests/data/store/answers.json
record=${DCPI_UPDATE:-}
if [ "$record" ]; then
	. "$DCPI_SRC/tests/support/store-library.sh"
	app_epoch=$(($(date +%s) / 3600 * 3600)) # the store forgets what is old
else
	app_epoch=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["epoch"])' "$answers")
fi
. "$DCPI_SRC/tests/support/store-reports.sh"
[ -z "$record" ] || start_library
python3 "$DCPI_SRC/tests/support/store_answers.py" "$answers" ${record:+"http://127.0.0.1:$port" "$app_epoch"} >ready &
proxy=$!
trap 'kill $proxy ${server:-} 2>/dev/null || :; wait $proxy ${server:-} 2>/dev/null || :; rm -rf "$work"' EXIT
for ((i = 0; i < 300; i++)); do
	[ ! -s ready ] || break
	sleep 0.1
done
to=clickhouse://127.0.0.1:$(cat ready)

# ship DATABASE STORE [OPTION…]: where answers are recorded, it goes there. Sets $base and $store.
ship()
{
	base=$1 store=$to/$2
	[ "$record" ] || return 0
	"$DCPI_BIN/dcpiship" -make-schema -to "$store"
	"$DCPI_BIN/dcpiship" -quiet -db "$1" -spool "$2.spool" -to "$store" "${@:3}"
}

ship db db -open
reports_of_samples
hostile_texts

ship paths paths
reports_of_paths

make_loads
ship loads loads
reports_of_loads

# Machines with more epochs than are asked for one by one; then the same with sums of six hours and of days.
for n in 0 1 2; do
	{
		echo "platform m$n"
		for ((e = 0; e < 60; e++)); do
			cat <<-END
				epoch $((app_epoch - (60 - e) * 3600))
				profile file /opt/app/app $app/app
				event cpu-clock 1000000
				at hot+17 $((1000 + 5 * n + e * 20))
				at warm $((1000 + 7 * n + 3 * e))
				finish
			END
		done
	} >made
	[ -d many ] || "$mkdb" many </dev/null
	"$mkdb" many <made
done
ship many many
reports_of_many
ship many sums
[ -z "$record" ] || "$DCPI_BIN/dcpiship" -quiet -sum -to "$store"
reports_of_many
