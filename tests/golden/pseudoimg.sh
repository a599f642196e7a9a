#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Everybody's tools read a pseudo-image: names, bytes and lines, without a warning.
set -eu
export LC_ALL=C
tests=$DCPI_BIN/../tests
for tool in eu-elflint readelf objdump addr2line nm gdb eu-addr2line; do
	command -v $tool >/dev/null || {
		echo "no $tool"
		exit 77
	}
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# job MACHINE ADD MUL NEST: two routines with lines from two files, two far away, of which the second
# has parts inlined into each other, an owned range with DST
# (module m: routine rtn of 4 bytes at the range's start; line 1, code 5 bytes longer than that).
job() {
	cat <<-END
		image $1 hello 4711 here /usr/bin/hello
		run 0x7f1234567000 0 0x2000
		run 0x7fff00001000 0x2000 0x1000
		run 0x7fff80000000 0x3000 0x1000
		file /src/hello.jit
		line 0 10 0
		line 4 11 0
		line 8 13 0
		routine 0x7f1234567000 add_two $2
		file /src/hello.jit
		file /src/lib.jit
		line 0 100 1
		line 4 20 0
		routine 0x7f1234567040 mul_two $3
		routine 0x7fff00001010 far $3
		file /src/hello.jit
		file /src/lib.jit
		file mid
		file leaf
		line 0 30 0
		line 4 200 1
		line 8 210 1
		line 12 31 0
		inline 0 4 8 2 0 30
		inline 1 8 4 3 1 201
		routine 0x7fff00001040 nest $4
		code 0x7fff80000000 0x1000 $3
		dst 0x60000000 0x1000 $dst
	END
}
dst=1000bc0000000700000001000d00016d00        # MODBEG m, C, 1.13
dst+=1000be000000000000000000000372746e # RTNBEG +0 rtn
dst+=0600b900000e04                           # LINE_NUM: delta 0 (line 1), TERM 4
dst+=0800bf000004000000                       # RTNEND 4
dst+=0300bd00                                 # MODEND

# quiet COMMAND…: its output; what it says on stderr is kept, for its stdout may go anywhere.
quiet() {
	"$@" 2>err || echo "failed with status $?" >>err
	[ ! -s err ] || {
		echo "$* complains:"
		cat err
	} >>"$dir/complaints"
}

# Sizes of sections and symbols; offsets in the file are of no interest.
show() {
	echo "== $1: eu-elflint, readelf"
	quiet eu-elflint --gnu-ld "$1"
	quiet readelf -SsW "$1" >readelf.out
	awk '$4 == "FUNC" { print $2, $3, $8 }
		/^ *\[ ?[0-9]+\]/ { sub(/.*\] /, ""); print $1, $2, $3, $5, $7 }' readelf.out |
		grep -vE '^\.(debug|shstrtab|strtab)'
	quiet readelf --debug-dump=info,line,aranges,Ranges "$1" >/dev/null
	echo "== $1: addr2line"
	quiet addr2line -f -e "$1" 0x7f1234567000 0x7f1234567005 0x7f1234567044 0x7fff00001010 \
		0x7fff80000003
	quiet eu-addr2line -f -e "$1" 0x7f1234567005 0x7f1234567044
	echo "== $1: addr2line -i, eu-addr2line -i"
	for a in 0x7fff00001040 0x7fff00001044 0x7fff00001048 0x7fff0000104c; do
		quiet addr2line -i -f -a -e "$1" $a
		quiet eu-addr2line -i -f -e "$1" $a
	done
}

all() {
	nops=90909090909090909090909090c3
	job 62 554889e589f801f05dc3 89f80fafc6c3 $nops >x86-64.job
	nops=1f2003d51f2003d51f2003d51f2003d5c0035fd6
	job 183 0000010b1f2003d5c0035fd6 007c011bc0035fd6 $nops >aarch64.job
	nops=13000000130000001300000013000000678000
	job 243 3305b50013000000678000 3305b5028280 $nops >riscv64.job
	for m in x86-64 aarch64 riscv64; do
		echo "== $m"
		quiet "$tests/mkjob" $m <$m.job
		show $m
	done

	echo "== objdump, nm, gdb"
	quiet objdump -d x86-64 | sed 's/[ \t]*$//'
	quiet nm -nS x86-64
	quiet gdb -nx -batch -ex 'disassemble mul_two' -ex 'info line add_two' -ex 'info line *0x7f1234567004' \
		-ex 'info line rtn' -ex 'info symbol 0x7fff00001011' \
		-ex 'break leaf' -ex 'info line *0x7fff00001048' x86-64

	for m in aarch64 riscv64; do
		if command -v $m-linux-gnu-objdump >/dev/null; then
			quiet $m-linux-gnu-objdump -d $m | grep -c '>:$' >count
			echo "$m-linux-gnu-objdump: $(cat count)" >>"$dir/foreign"
		fi
	done
	[ ! -f foreign ] || ! grep -v ': 5$' foreign

	# A name that would break whoever reads lines; an image of nothing.
	printf 'image 62 odd 1 h e\nrun 0x1000 0 0x1000\nroutine 0x1000 a\001b\177\303\251\377 c3\n' >odd.job
	quiet "$tests/mkjob" odd <odd.job
	quiet nm odd
	echo 'image 62 none 1 h e' | quiet "$tests/mkjob" none
	quiet eu-elflint --gnu-ld none
	quiet readelf -SsW none >/dev/null

	# So much that sections are compressed: two hundred names, each of three routines with lines.
	echo "== large"
	{
		printf "%s\n" "image 62 large 4711 here /usr/bin/large" "run 0x7f1234567000 0 0x8000"
		for i in $(seq 0 599); do
			printf "%s\n" "file /src/large.jit" "line 0 $((i + 1)) 0" "line 1 $((i + 2)) 0"
			printf "routine 0x%x large_%d 90c3\n" $((0x7f1234567000 + 16 * i)) $((i % 200))
		done
	} >large.job
	quiet "$tests/mkjob" large <large.job
	quiet eu-elflint --gnu-ld large
	quiet readelf -SsW large >readelf.out
	sed -E 's/^ *\[ *([0-9]+)\]/\1/' readelf.out | awk '$2 ~ /^\.debug_(info|line)|^\.dcpi.note/ { print $2, $8 }'
	grep -c FUNC readelf.out
	quiet strings -a -n 8 large | grep -c '^large_'
	quiet readelf --debug-dump=info,line large >/dev/null
	quiet addr2line -f -e large 0x7f1234567ff1 0x7f1234569571
	quiet eu-addr2line -f -e large 0x7f1234567ff1 0x7f1234569571
	quiet gdb -nx -batch -ex 'info line *0x7f1234569571' -ex 'info symbol 0x7f1234569571' large

	# A kernel: symbols alone, as a file of debug information.
	echo "== symbols"
	printf "symbol %s\n" "0x1000 0x10 sized" "0x2000 0 open" "0 0 first" >symbols.txt
	echo "text 62 0x10000" >>symbols.txt
	quiet "$tests/mkjob" symbols <symbols.txt
	quiet eu-elflint --gnu-ld -d symbols
	quiet readelf -SsW symbols >/dev/null
	quiet nm -nS symbols

	# The jailed helper writes the same bytes (emulators have no jail).
	if [ -z "${DCPI_EMULATOR:-}" ]; then
		"$tests/mkjob" <x86-64.job >job
		"$DCPI_BIN/dcpid-pseudoimg" <job >helper 2>answer
		cmp x86-64 helper
	fi
}

all >out
[ ! -s complaints ] || {
	cat complaints
	exit 1
}
diff -u "$DCPI_SRC/tests/golden/pseudoimg.expected" out
