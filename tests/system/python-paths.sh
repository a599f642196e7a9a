#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Functions of Python on call paths, in place of their interpreter's frames: which of them called a hot one, against the
# program's own clock; with recursion, generators, exceptions, threads, code that runs without the interpreter's lock,
# and functions that C code calls back. Read when the processes are gone.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root
[ "$(uname -m)" = x86_64 ] || { echo "skip: CPython is known on x86-64 alone"; exit 77; }
python=/usr/bin/python3
case $($python -c 'import sys; print("%d.%d" % sys.version_info[:2])') in
3.11 | 3.12 | 3.13) ;;
*) echo "skip: the version of $python is not known"; exit 77 ;;
esac

# judge SAID CALLERS TOTALS: each caller's part of the samples is that of the program's clock, within three points or
# three standard deviations of so many samples.
judge()
{
	$python - "$@" <<'END'
import json, sys

said = dict((name, float(seconds)) for name, seconds in (line.split() for line in open(sys.argv[1])))
hashed = said.pop("hashing")
spin = json.load(open(sys.argv[2]))["procedures"][0]
sampled = {c["procedure"].removeprefix("python_paths."): c["samples"] for c in spin["callers"]}
n, clock, bad = spin["total"], sum(said.values()), False


def compare(name, share, samples):
    global bad
    bound = max(0.03, 3 * (share * (1 - share) / n) ** 0.5)
    print("%-12s clock %5.1f %%, samples %5.1f %%" % (name, 100 * share, 100 * samples / n))
    bad |= abs(samples / n - share) > bound


for name, seconds in said.items():
    compare(name, seconds / clock, sampled.pop(name, 0))
for name, samples in sampled.items():
    compare(name, 0, samples)
totals = {p["procedure"]: p["total"] for f in sys.argv[3:] for p in json.load(open(f))["procedures"]}
compare("hashing", hashed / clock, totals["python_paths.hashing"])
compare("deep, all", said["deep"] / clock, totals["python_paths.deep"])
sys.exit(bad or n < 500)
END
}

# tell NAME: what is known of a procedure, in $work/NAME.
tell() { "$DCPI_BIN/dcpicallers" -json "python_paths.$1" >"$work/$1" 2>"$work/warnings"; }

start_daemon -rate 1000 -callpaths 1
# Its interpreter's table is made when it is met, after a time that depends on the machine.
for try in 1 2 3 4; do
	$python "$DCPI_SRC/tests/support/python_paths.py" 40 >"$work/said"
	"$DCPI_BIN/dcpictl" flush >/dev/null
	if tell spin && tell hashing && tell deep &&
		judge "$work/said" "$work/spin" "$work/hashing" "$work/deep" >"$work/judged"; then
		break
	fi
	[ $try -lt 4 ] || { cat "$work/judged" "$work/warnings" >&2; fail "who called spin()"; }
	"$DCPI_BIN/dcpictl" epoch >/dev/null
done
cat "$work/judged"

# Functions stand below each other as they called, from the start of the process on.
"$DCPI_BIN/dcpicalltree" -cut 0 -image "$(readlink -f $python)" >"$work/tree" 2>/dev/null
printf '%s\n' ' _start ' Py_RunMain 'python_paths.<module>' python_paths.shares python_paths.sixty python_paths.spin | awk '
	NR == FNR { want[++nr] = $0; next }
	at < nr && index($0, want[at + 1]) { at++ }
	END { if (at < nr) print "not found in its place: " want[at + 1]; exit at < nr }' - "$work/tree" ||
	{ head -40 "$work/tree" >&2; fail "who called"; }

# They have lines: that which calls spin() is among them.
line=$(grep -n 'spin(0.06)' "$DCPI_SRC/tests/support/python_paths.py" | cut -d: -f1)
for file in "$DCPIDB"/dyn/*Python*.dyn; do
	lint_image "$file"
	objdump --dwarf=decodedline "$file"
done >"$work/lines"
awk -v line="$line" '$1 ~ /python_paths.py$/ && $2 == line { found = 1 } END { exit !found }' "$work/lines" ||
	fail "line $line of python_paths.py is not known"
stop_daemon
