#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The files of dcpiexport in the tools that they are for: each tool's own totals, and its own count for each function
# without its callees, are those of dcpiprof and of the stacks. The tools: Go's pprof, speedscope (its schema, and the
# page itself in a browser), the importers of Firefox's profiler (of its own format, folded stacks and perf's text),
# protobuf's parser of JSON (otlp).
set -eu -o pipefail
for tool in npm node go chromium; do
	command -v $tool >/dev/null || { echo "skip: needs $tool"; exit 77; }
done
python3 -c 'import jsonschema' 2>/dev/null || { echo "skip: needs python3-jsonschema"; exit 77; }
export PYTHON_PROTOBUF=
for python in python3 /usr/bin/python3; do
	! $python -c 'import google.protobuf' 2>/dev/null || { PYTHON_PROTOBUF=$python; break; }
done
[ "$PYTHON_PROTOBUF" ] || { echo "skip: needs python3-protobuf"; exit 77; }
kept=$DCPI_BUILD/judges
. "$DCPI_SRC/tests/support/npm.sh"
npm_fetch "$kept/speedscope" speedscope 1.25.0 cpf9HWTZf1ijLXBJrk87Ve/54tnYx6rlf0gUThvn3ook6h63hLXVOQiMf44PT+XoV503cPfvfiT5gP5vojp6Ag==
npm_fetch "$kept/profiler-cli" @firefox-devtools/profiler-cli 0.10.0 \
	f9fqdHh7B6ddQIYrwrEs4FE5D8BMOsXSorYF4NRFfwPaGikVBlhorBxHT7zrb6WMgJgKQYHC9kazkRjbItLx8Q==

. "$DCPI_SRC/tests/support/paths-db.sh"
for event in cpu-clock imiss; do
	for format in pprof folded speedscope firefox perf otlp; do
		"$DCPI_BIN/dcpiexport" $format -unchecked -event $event -o $event.$format 2>err
	done
	# The last name of each stack has its samples.
	sed -E 's/^(.*;)?([^;]*) ([0-9]+)$/\3 \2/' $event.folded |
		awk '{ n = $1; sub(/^[0-9]+ /, ""); sum[$0] += n } END { for (f in sum) print sum[f], f }' | sort >$event.want
	"$DCPI_BIN/dcpiprof" -event $event -no_header 2>err | awk '$NF == "total" { print $1 }' >total
	awk '{ n += $1 } END { print n }' $event.want | diff total -
	python3 "$DCPI_SRC/tests/support/judges.py" "$kept" $event
done
# Workloads are pprof's tags, and Firefox's processes.
. "$DCPI_SRC/tests/support/whose-db.sh"
for format in pprof firefox; do
	"$DCPI_BIN/dcpiexport" $format -db whose -unchecked -event cpu-clock -o whose.$format 2>err
done
for key in comm uid thread; do
	"$DCPI_BIN/dcpiprof" -db whose -by $key -json 2>err >$key.json
done
python3 "$DCPI_SRC/tests/support/judges.py" "$kept" whose tags comm uid thread
