#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpidiff: two builds of a program by a compiler that puts a hash of the build into its names. What
# has one readable name is one line, but for names that both builds have. Builds at two paths are one
# program by their base name, where no other file can be meant.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

# build ID HASH SECOND: "demo::work" twice, by hashes of this build's own; "demo::sum" twice in both.
build()
{
	printf '\4\0\0\0\24\0\0\0\3\0\0\0GNU\0%20s' "$1" >note
	objcopy --update-section .note.gnu.build-id=note --redefine-sym "hot=$(work "$2")" \
		--redefine-sym "warm=$(work "$3")" --redefine-sym "other=$sum_a" \
		--redefine-sym "_start=$sum_b" "$app/app" "$1"
}

work() { echo "_ZN4demo4work17h${1}E"; }
sum_a=_ZN4demo3sum17haaaaaaaaaaaaaaaaE sum_b=_ZN4demo3sum17hbbbbbbbbbbbbbbbbE
build build-1 0123456789abcdef 1111111111111111
build build-2 fedcba9876543210 2222222222222222

# counts EPOCH BUILD HASH SECOND SUM
counts()
{
	cat <<-END
		epoch $1
		profile file /opt/demo $work/$2
		event cpu-clock 1000000
		at $(work "$3")+17 1000
		at $(work "$4") 500
		at $5 200
		finish
	END
}
"$mkdb" builds </dev/null
{
	echo platform box
	counts 1700000000 build-1 0123456789abcdef 1111111111111111 $sum_a
	counts 1700000060 build-2 fedcba9876543210 2222222222222222 $sum_b
	for epoch in 1700000120:0123456789abcdef 1700000180:1111111111111111; do
		cat <<-END
			epoch ${epoch%:*}
			profile file /opt/demo $work/build-1
			event cpu-clock 1000000
			at $(work "${epoch#*:}") 300
			finish
		END
	done
} | "$mkdb" builds
export DCPIDB=builds
one=202311142213 two=202311142214 three=202311142215 four=202311142216

build build-3 aaaabbbbccccdddd 3333333333333333
# at EPOCH PATH BUILD HASH SECOND
at()
{
	cat <<-END
		epoch $1
		profile file $2/demo $work/$3
		event cpu-clock 1000000
		at $(work "$4")+17 1000
		at $(work "$5") 500
		finish
	END
}
"$mkdb" places </dev/null
{
	echo platform box
	at 1700000000 /v1 build-1 0123456789abcdef 1111111111111111
	at 1700000060 /v2 build-2 fedcba9876543210 2222222222222222
	at 1700000120 /v3 build-3 aaaabbbbccccdddd 3333333333333333
} | "$mkdb" places

{
	run dcpidiff -no_header -p build-1 -p build-2 -set -epoch $one -set -epoch $two
	run dcpidiff -no_header -mangled -p build-1 -p build-2 -set -epoch $one -set -epoch $two
	# Of one build they are two procedures.
	run dcpidiff -no_header -p build-1 -set -epoch $three -set -epoch $four
	# At two paths; and where one set has two of them.
	run dcpidiff -db places -no_header -p build-1 -p build-2 -set -epoch $one -set -epoch $two demo
	run dcpidiff -db places -no_header -p build-1 -p build-2 -p build-3 -set -epoch $one -set -epoch $two..$three
	# Without the images no name is known.
	run dcpidiff -no_header -set -epoch $one -set -epoch $two
} >out
compare dcpidiff_builds
