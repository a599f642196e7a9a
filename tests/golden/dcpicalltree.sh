#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpicalltree: from the top and from the leaves, cut; leaves add up to the flat profile.
set -eu
. "$DCPI_SRC/tests/support/paths-db.sh"

{
	run dcpicalltree -unchecked
	run dcpicalltree -unchecked -up
	run dcpicalltree -unchecked -no_header -no_inline -cut 5
	run dcpicalltree -unchecked -no_header -depth 2
	run dcpicalltree -unchecked -no_header -cut 10
	run dcpicalltree -unchecked -no_header -image run
	run dcpicalltree -unchecked -no_header outer
	run dcpicalltree -unchecked -no_header -up warm
	run dcpicalltree -unchecked -no_header -up fib hot
	run dcpicalltree -unchecked -json -image vmlinux-6.1.0 -depth 2
	run dcpicalltree -unchecked -json -up 'square(int)'
	echo "# what cannot be"
	run dcpicalltree -unchecked nothing
	run dcpicalltree -unchecked -db db
} >out
compare dcpicalltree

# leaves PRINT: of a JSON text on standard input, samples by the label of a row, its image, and event.
leaves()
{
	awk -v counts="\"$1\":{" '
		function value(line) { sub(/^[^:]*: ?/, "", line); sub(/,$/, "", line); return line }
		/"rows":\[/ { in_rows = 1 }
		/^  \]/ { in_rows = 0 }
		!in_rows { next }
		/"label":/ { label = value($0) }
		/"image":/ { image = value($0) }
		index($0, counts) { in_counts = 1; nr = 0; next }
		in_counts && /}/ { in_counts = 0 }
		in_counts { event[++nr] = $1; sub(/:.*/, "", event[nr]); count[nr] = value($0) }
		/^    }/ {
			for (i = 1; i <= nr; i++)
				sum[label " " image " " event[i]] += count[i]
			nr = 0
		}
		END { for (key in sum) if (sum[key]) print key, sum[key] }' | sort
}
DCPI_DEBUG_PATH=root
for event in cpu-clock imiss; do
	"$DCPI_BIN/dcpicalltree" -unchecked -cut 0 -no_inline -json -event $event 2>err | leaves self >leaves
	"$DCPI_BIN/dcpiprof" -json -event $event 2>err | leaves samples >flat
	grep $event flat >/dev/null
	diff flat leaves
done
