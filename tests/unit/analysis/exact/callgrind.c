/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "callgrind.h"

#define HEAD                                                                                       \
	"# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd:  ./t\npart: 1\n"  \
	"\n\ndesc: I1 cache: \n\npositions: instr\nevents: Ir\nsummary: 9\n\n\n"

static char seen[2048];

static int on_count(void *ctx, const char *object, uint64_t addr, uint64_t count)
{
	size_t at = strlen(seen);

	(void)ctx;
	snprintf(seen + at, sizeof(seen) - at, "%s %lx %lu\n", object, (unsigned long)addr,
		 (unsigned long)count);
	return 0;
}

static int on_edge(void *ctx, const char *object, uint64_t from, const char *to_object, uint64_t to,
		   uint64_t count)
{
	size_t at = strlen(seen);

	(void)ctx;
	snprintf(seen + at, sizeof(seen) - at, "%s %lx > %s %lx %lu\n", object, (unsigned long)from,
		 to_object ? to_object : "nobody knows", (unsigned long)to, (unsigned long)count);
	return 0;
}

static int parse(const char *text, struct callgrind_head *head, struct base_err *err)
{
	struct callgrind_head none = { 0 };

	static const struct callgrind_sink sink = { .count = on_count, .edge = on_edge };

	seen[0] = '\0';
	return callgrind_parse(text, strlen(text), "x", &sink, head ? head : &none, err);
}

static void dump(void **state)
{
	struct callgrind_head head = { 0 };

	(void)state;
	assert_int_equal(parse(HEAD
			       "ob=(1) /bin/a\nfl=(1) a.c\nfn=(1) main\n0x1000 1\n+3 1\n"
			       "cob=(2) /lib/c.so\ncfi=(2)\ncfn=(2) puts\ncalls=2 0x7000 \n* 99\n"
			       "calls=3 +16 \n* 12\n+5 2\njcnd=4/6 -2 \n* \njump=1 * \n* \n"
			       "\nob=(2)\nfn=(2)\n0x7000 5\njfn=(3) far\njump=1 0x7008 \n* \n"
			       "jump=2 0x7009 \n* \n\ntotals: 9\n",
			       &head, NULL),
			 0);
	assert_int_equal(head.pid, 7);
	assert_string_equal(head.creator, "callgrind-3.19.0");
	assert_string_equal(seen, "/bin/a 1000 1\n"
				  "/bin/a 1003 1\n"
				  "/bin/a 1003 > /lib/c.so 7000 2\n"
				  "/bin/a 1003 > /bin/a 1013 3\n"
				  "/bin/a 1008 2\n"
				  "/bin/a 1008 > /bin/a 1006 4\n"
				  "/bin/a 1008 > /bin/a 1008 1\n"
				  "/lib/c.so 7000 5\n"
				  "/lib/c.so 7000 > nobody knows 7008 1\n"
				  "/lib/c.so 7000 > /lib/c.so 7009 2\n");
}

static void plain_names(void **state)
{
	(void)state;
	assert_int_equal(parse("positions: instr\nevents: Ir Dr\nob=/bin/a b\nfn=f\n0x10 4 7\n"
			       "ob=???\n20 5\ntotals: 9 7\n",
			       NULL, NULL),
			 0);
	assert_string_equal(seen, "/bin/a b 10 4\n??? 14 5\n");
}

static void refused(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *why;
	} bad[] = {
		{ "", -DCPI_ETRUNCATED, "cannot read dump 'x': truncated data" },
		{ HEAD "0x10 9\n", -DCPI_ETRUNCATED, "cannot read dump 'x': truncated data" },
		{ HEAD "0x10 9\ntotals: 9", -DCPI_ETRUNCATED,
		  "cannot read dump 'x': truncated data" },
		{ HEAD "0x10 8\ntotals: 9\n", -DCPI_EFORMAT,
		  "cannot read dump 'x': its counts do not add up to its total" },
		{ HEAD "+1 9\ntotals: 9\n", -DCPI_EFORMAT,
		  "cannot read dump 'x': line 16: malformed data" },
		{ HEAD "ob=(4)\n", -DCPI_EFORMAT, "cannot read dump 'x': line 16: malformed data" },
		{ HEAD "ob=\n", -DCPI_EFORMAT, "cannot read dump 'x': line 16: malformed data" },
		{ HEAD "ob=(4\n", -DCPI_EFORMAT, "cannot read dump 'x': line 16: malformed data" },
		{ HEAD "0x10 1\njump=x\n", -DCPI_EFORMAT,
		  "cannot read dump 'x': line 17: malformed data" },
		{ HEAD "0x10 1\njump=1 *\njump=1 *\n", -DCPI_EFORMAT,
		  "cannot read dump 'x': line 18: malformed data" },
		{ HEAD "0x10 18446744073709551615\n+1 1\n", -DCPI_EOVERFLOW,
		  "cannot read dump 'x': value does not fit" },
		{ "positions: line\nevents: Ir\n3 1\n", -DCPI_EFORMAT,
		  "cannot read dump 'x': line 3: malformed data" },
		{ "positions: instr line\nevents: Ir\n3 1 1\n", -DCPI_EFORMAT,
		  "cannot read dump 'x': line 3: malformed data" },
		{ "positions: instr\nevents: Cycles\n3 1\n", -DCPI_EFORMAT,
		  "cannot read dump 'x': line 3: malformed data" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct base_err err = { 0 };

		assert_int_equal(parse(bad[i].text, NULL, &err), bad[i].code);
		assert_string_equal(err.text, bad[i].why);
	}
}

static struct callgrind_line line(const char *text)
{
	struct callgrind_line l;

	callgrind_log_line(text, strlen(text), &l);
	return l;
}

/* As valgrind 3.19 writes them. */
static void log_lines(void **state)
{
	struct callgrind_line l = line("==21998== Parent PID: 21996");

	(void)state;
	assert_int_equal(l.kind, CALLGRIND_BEGIN);
	assert_int_equal(l.pid, 21998);
	assert_int_equal(l.parent, 21996);
	l = line("--21998-- Reading syms from /usr/lib/a b.so");
	assert_int_equal(l.kind, CALLGRIND_IMAGE);
	assert_int_equal(l.path_len, strlen("/usr/lib/a b.so"));
	assert_memory_equal(l.path, "/usr/lib/a b.so", l.path_len);
	l = line("--21998--    svma 0x0000026380, avma 0x000486d380");
	assert_int_equal(l.kind, CALLGRIND_PLACE);
	assert_int_equal(l.svma, 0x26380);
	assert_int_equal(l.avma, 0x486d380);
	assert_int_equal(line("--1-- Start dumping at BB 31025 (Prg.Term.)...").kind,
			 CALLGRIND_LAST);
	assert_int_equal(line("--1-- Start dumping at BB 310 (--dump-before=_Fork)...").kind,
			 CALLGRIND_OTHER);
	assert_int_equal(line("--1-- Dump to /tmp/x/dump.1").kind, CALLGRIND_DUMP);
	assert_int_equal(line("--1-- Dumping done.").kind, CALLGRIND_DUMPED);
	assert_int_equal(line("vex amd64->IR: unhandled instruction bytes: 0x62").kind,
			 CALLGRIND_ALARM);
	assert_int_equal(
		line("==1== Process terminating with default action of signal 11 (SIGSEGV)").kind,
		CALLGRIND_ALARM);
}

static void log_nonsense(void **state)
{
	static const char *const others[] = {
		"",
		"--",
		"==1",
		"==1==",
		"==x== Parent PID: 1",
		"==1== Parent PID: ",
		"==1== Parent PID: 99999999999",
		"--99999999999-- Dumping done.",
		"--1-- Start dumping at BB (Prg.Term.)",
		"--1--    svma 0x, avma 0x1",
		"--1--    svma 0x1 avma 0x1",
		"--1--    svma 0x11111111111111111, avma 0x1",
		"--1==",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(line(others[i]).kind, CALLGRIND_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dump),		cmocka_unit_test(plain_names),
		cmocka_unit_test(refused),	cmocka_unit_test(log_lines),
		cmocka_unit_test(log_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
