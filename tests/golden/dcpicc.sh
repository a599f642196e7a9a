#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpicc: a program means what it means to the compiler, though each token has a line; the map; what is
# not its business goes to the compiler. Then dcpisource with a map.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
command -v cc >/dev/null || { echo "no C compiler is here"; exit 77; }

# All that lines and blanks could break.
cat >hard.c <<'END'
#include <assert.h>
#include <stdio.h>
#include <string.h>
#define TEXT(x) #x
#define JOIN(a, b) a##b
#define CALL(f, ...) f(__VA_ARGS__)
#define LONG(x) \
	((x) + \
	 1)
#pragma GCC diagnostic push
_Pragma("GCC diagnostic ignored \"-Wunused\"")
struct s { int a, *b; };
/* A comment
 * of lines */ static int JOIN(va, lue) = 0x1e +1 ? 0 : 0; // and one more \
still a comment
static const char raw[] = R"x(a "b" \
)c )x";

static int f(struct s *p)
{
	int n = 0;

	switch (p->a) {
	case 1 ... 3:
		n++;
		/* fallthrough */
	default:
		n += p->a+++1;
	}
	return n - -n + - -*p->b;
}

int main(void)
{
	struct s s = { .a = 2, .b = &s.a };
	const char *t = TEXT(a+b  "c\"d" 'e') TEXT( x ) "\x41" "B";

	puts(t);
	puts(raw);
	printf("%d %d %d %s\n", __LINE__, f(&s), LONG(value
		+ 2), strrchr(__FILE__, 'h'));
	printf("%zu %d\n", sizeof L"wide", u'x' == 'x' ? 1 : 0);
	CALL(printf, "%d %s\n", 3,
	     "four");
	assert(s.a == 3);
	return 7;
}
END
sed 's/^int main.*/extern int twice(int);\n&/; s/return 7;/return twice(7);/' hard.c >more.c
printf 'int twice(int x)\n{\n\treturn   x *\t2;\n}\n' >twice.c

# Some programs start others with SIGCHLD ignored: how the compiler ended is known all the same.
env --ignore-signal=CHLD "$DCPI_BIN/dcpicc" -std=gnu17 -O1 -Werror=implicit-fallthrough -o hard hard.c
cc -std=gnu17 -O1 -w -o plain hard.c

{
	run dcpicc -c twice.c
	cat twice.cmap | sed "s|$PWD|DIR|"
	cat twice.i
	./plain && echo "exit $?" || echo "exit $?"
	./hard >hard.out && echo "exit $?" || echo "exit $?"
	run dcpicc
	run dcpicc -json -c twice.c | sed "s|$PWD|DIR|"
	run dcpicc -compiler /nowhere/cc -c twice.c
	run dcpicc -map_dir gone -c twice.c
	run dcpicc -tok_dir gone -c twice.c
	mkdir -p sub
	cp twice.c sub
	run dcpicc -c twice.c sub/twice.c
} >out

# A graph as dcpiflow prints it, of a procedure compiled so.
cat >twice.graph <<END
dcpi-graph 1
; PROC twice
; IMAGE /opt/twice
; EVENT cpu-clock 1000000
; SAMPLES 12
; FILE 0 $PWD/twice.i
block 0 0x0..0x4 samples 12
  from outside
  to outside
  Addr  Instruction          Samples  Line
  0x0   leal (%rdi, %rdi), %eax   10  0:8
  0x2   nop                        1  0:8
  0x3   retq                       1  0:10
END
{
	run dcpisource -map twice.cmap twice.graph
	mv twice.c gone.c
	run dcpisource -map twice.cmap twice.graph
	cp gone.c sub/twice.c
	run dcpisource -map twice.cmap -src sub/twice.c twice.graph
	mv gone.c twice.c
	run dcpisource -map twice.c twice.graph
	sed 's/^; FILE 0 .*/; FILE 0 other.i/' twice.graph >other.graph
	run dcpisource -map twice.cmap other.graph
	sed 's/^3 0/3 1/' twice.cmap >wrong.cmap
	run dcpisource -map wrong.cmap twice.graph
} | sed "s|$PWD|DIR|" >>out
compare dcpicc
./plain >plain.out || :
cmp plain.out hard.out

# The same code, several sources, objects, dependencies as make wants them.
mkdir -p tok maps objects
own="-map_dir maps -tok_dir=tok"
for level in -O0 -O2; do
	"$DCPI_BIN/dcpicc" $own $level -c more.c -o objects/more.o
	cc $level -g -c more.c -o objects/plain.o
	for part in .text .rodata .rodata.str1.1 .data; do
		objcopy -O binary -j $part objects/more.o a
		objcopy -O binary -j $part objects/plain.o b
		cmp a b
	done
done
"$DCPI_BIN/dcpicc" $own -MMD -MP -c twice.c -o objects/twice.o
printf 'objects/twice.o: twice.c\n' | cmp - objects/twice.d
"$DCPI_BIN/dcpicc" $own more.c objects/twice.o -o both
code=0
./both >both.out || code=$?
[ "$code" = 14 ]
"$DCPI_BIN/dcpicc" $own -DX='"a b"' more.c twice.c -o both
[ -s maps/more.cmap ]
[ -s maps/twice.cmap ]
[ -s tok/more.i ]
readelf --debug-dump=info objects/more.o | grep -q "DW_AT_name.*$PWD/tok/more.i"

# What is not to be tokenized.
"$DCPI_BIN/dcpicc" -map_dir none -E twice.c | grep -q twice
"$DCPI_BIN/dcpicc" -map_dir none -json -tok_dir=none -E twice.c >told 2>err
grep -q '"status":0' told
grep -q twice err
printf 'int x;\n' | "$DCPI_BIN/dcpicc" -map_dir none -x c -c - -o stdin.o
"$DCPI_BIN/dcpicc" -map_dir none objects/twice.o more.c -fsyntax-only
printf 'int x = N;\n' >at.c
printf -- '-DN=7\n' >at.args
"$DCPI_BIN/dcpicc" -map_dir none -c at.c @at.args
printf 'int x = ;\n' >bad.c
code=0
"$DCPI_BIN/dcpicc" -c bad.c 2>err || code=$?
[ "$code" = 1 ]
[ ! -e bad.o ]
