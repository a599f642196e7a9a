#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# perf's own decoder finds the same totals in the files of golden/dcpiprofileme, so that these are not only as their
# writer thinks.
set -eu
if ! command -v perf >/dev/null || ! perf --version >/dev/null 2>&1; then
	echo "no perf"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 "$DCPI_SRC/tests/support/insn_files.py" . "$DCPI_SRC/tests/data/app/app" good

# dump NAME ARGUMENT…: what perf prints. That perf dies of a file is said apart from what it says.
dump()
{
	local code=0
	perf script -i "$1.data" "${@:2}" >"$1.all" 2>"$1.err" || code=$?
	if [ $code -gt 128 ] && [ $code -lt 192 ]; then
		echo "perf died of a signal ($code): its decoder, not ours"
		exit 77
	fi
	[ $code = 0 ] || { cat "$1.err"; exit 1; }
}
dump ibs -D
grep -a '^ibs_' ibs.all >ibs.text
dump spe -D
grep -aE '^\.  [0-9a-f]{8}: .*[0-9a-f]  ' spe.all >spe.text
dump pebs -F weight,ins_lat,data_src
cp pebs.all pebs.text
for name in ibs spe pebs; do
	python3 "$DCPI_SRC/tests/support/insn_check.py" perf $name.json $name.text
done
