/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph.h"

static const char text[] = "dcpi-graph 1\n"
			   "\n"
			   "; PROC copy\n"
			   "; IMAGE /bin/copy\n"
			   "; EVENT cycles 65536\n"
			   "; SAMPLES 47\n"
			   "; FILE 0 ./copy.c\n"
			   "; FREQ counted\n"
			   "; NOTE one jump is not resolved\n"
			   "\n"
			   "block 0 0x100..0x108 samples 45 freq 1000 high\n"
			   "  from outside freq 10 low\n"
			   "  to 0 taken freq 990 medium\n"
			   "  to 1 fall freq 10 exact\n"
			   "  *** Best-case 8/13 = 0.62CPI\n"
			   "  *** Actual 140/13 = 10.77CPI\n"
			   "  | copy.c:3  for (;;)\n"
			   "  Addr   Instruction       Samples       CPI  Culprit  Line\n"
			   "  0x100  ldq     t4, 0(t1)        5     2.0cy  -        0:3\n"
			   "  ... dwD 4.0..18.0cy (d = D-cache miss)\n"
			   "  0x104  stq     t4, 0(t2)       40    18.0cy  0x100    -\n"
			   "\n"
			   "block 1 0x108..0x10c samples 2 omitted\n"
			   "  to outside\n"
			   "\n"
			   "summary\n"
			   "  D-cache miss  10.0% to 20.0%\n";

static struct graph *read_ok(const char *from)
{
	struct base_err err = { 0 };
	struct graph *g = NULL;

	assert_int_equal(graph_read(from, strlen(from), &g, &err), 0);
	return g;
}

static void expect_written(const struct graph *g, const char *expected)
{
	struct base_buf out = { 0 };

	assert_int_equal(graph_write(g, &out), 0);
	assert_int_equal(base_buf_append(&out, "", 1), 0);
	assert_string_equal((char *)out.data, expected);
	base_buf_release(&out);
}

static void test_read(void **state)
{
	struct graph *g = read_ok(text);
	const struct graph_proc *p = &g->procs[0];
	const struct graph_insn *stq = &p->blocks[0].insns[1];

	(void)state;
	assert_int_equal(g->nr, 1);
	assert_string_equal(p->name, "copy");
	assert_int_equal(p->period, 65536);
	assert_string_equal(p->notes.v[0], "one jump is not resolved");
	assert_int_equal(p->nr_blocks, 2);
	assert_int_equal(p->blocks[0].freq.confidence, GRAPH_HIGH);
	assert_true(p->blocks[0].actual.cycles == 140);
	assert_int_equal(p->nr_edges, 4);
	assert_int_equal(p->edges[0].from, GRAPH_OUTSIDE);
	assert_int_equal(p->edges[0].kind, GRAPH_ENTRY);
	assert_int_equal(p->edges[2].to, 1);
	assert_int_equal(p->edges[2].freq.confidence, GRAPH_EXACT);
	assert_string_equal(stq->text, "stq     t4, 0(t2)");
	assert_string_equal(stq->culprit, "0x100");
	assert_string_equal(stq->above.stalls[0].letters, "dwD");
	assert_string_equal(stq->above.stalls[0].legend, "d = D-cache miss");
	assert_int_equal(p->blocks[0].insns[0].line, 3);
	assert_null(p->blocks[0].insns[0].culprit);
	assert_true(p->blocks[1].omitted);
	assert_int_equal(p->blocks[1].samples, 2);
	graph_free(g);
}

/* What is written reads as itself, and columns stand beneath each other. */
static void test_again(void **state)
{
	struct graph *g = read_ok(text), *g2;
	struct base_buf out = { 0 };

	(void)state;
	assert_int_equal(graph_write(g, &out), 0);
	assert_int_equal(base_buf_append(&out, "", 1), 0);
	assert_non_null(strstr((char *)out.data,
			       "\n  Addr   Instruction         Samples       CPI  Culprit  Line\n"
			       "  0x100  ldq     t4, 0(t1)         5     2.0cy  -        0:3\n"));
	g2 = read_ok((char *)out.data);
	expect_written(g2, (char *)out.data);
	graph_free(g2);
	graph_free(g);
	base_buf_release(&out);
}

/* Columns of which nothing is known are left out; texts from outside cannot break a line. */
static void test_made(void **state)
{
	struct graph *g = graph_new();
	struct graph_proc *p = graph_proc_add(g, "a\nb", "", "tick", 0);
	struct graph_block *b = graph_block_add(p, 0x10, 0x14);
	const struct graph_edge entry = { .from = GRAPH_OUTSIDE, .kind = GRAPH_ENTRY };

	(void)state;
	assert_non_null(graph_insn_add(b, 0x10, "", 1));
	assert_non_null(graph_insn_add(b, 0x12, "ret\x1b", 2));
	assert_int_equal(graph_edge_add(p, &entry), 0);
	p->samples = 3;
	expect_written(g, "dcpi-graph 1\n"
			  "\n"
			  "; PROC a?b\n"
			  "; IMAGE ?\n"
			  "; EVENT tick 0\n"
			  "; SAMPLES 3\n"
			  "\n"
			  "block 0 0x10..0x14 samples 3\n"
			  "  from outside\n"
			  "  Addr  Instruction   Samples\n"
			  "  0x10  ?                   1\n"
			  "  0x12  ret?                2\n");
	graph_free(g);
}

/* Costs that are no cycles; a file of the other unit is not taken for it. */
static void test_unit(void **state)
{
	static const char ns[] = "dcpi-graph 1\n"
				 "\n"
				 "; PROC copy\n"
				 "; IMAGE /bin/copy\n"
				 "; EVENT cpu-clock 1000000\n"
				 "; SAMPLES 3\n"
				 "; UNIT ns\n"
				 "\n"
				 "block 0 0x10..0x14 samples 3 freq 12 low\n"
				 "  *** Actual 0.5/2 = 0.25ns\n"
				 "  ... d 0.1..0.4ns\n"
				 "  Addr  Instruction   Samples      Cost\n"
				 "  0x10  nop                 3     0.5ns\n";
	struct graph *g = read_ok(ns);
	struct base_err err = { 0 };
	char *bad;

	(void)state;
	assert_int_equal(g->procs[0].unit, GRAPH_NS);
	expect_written(g, ns);
	graph_free(g);
	assert_true(asprintf(&bad, "%s  0x12  nop  0  0.5cy\n", ns) > 0);
	assert_int_equal(graph_read(bad, strlen(bad), &g, &err), -DCPI_EFORMAT);
	free(bad);
}

/* @from of the good text replaced by @to: refused, with the line and the reason. */
static void expect_refused(const char *from, const char *to, const char *why)
{
	const char *at = strstr(text, from);
	struct base_err err = { 0 };
	struct graph *g = NULL;
	char *bad;
	int r;

	assert_non_null(at);
	assert_true(asprintf(&bad, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
	r = graph_read(bad, strlen(bad), &g, &err);
	assert_true(r == -DCPI_EFORMAT || r == -DCPI_EVERSION);
	if (!strstr(err.text, why))
		fail_msg("'%s' says '%s', not '%s'", to, err.text, why);
	free(bad);
}

static void test_refused(void **state)
{
	(void)state;
	expect_refused("dcpi-graph 1", "digraph {", "this is no flow graph");
	expect_refused("dcpi-graph 1", "dcpi-graph 2", "version 2");
	expect_refused("; EVENT cycles 65536\n", "", "no EVENT");
	expect_refused("; EVENT cycles 65536", "; EVENT cycles", "line 5 ");
	expect_refused("; FILE 0", "; FILE 1", "numbered");
	expect_refused("; NOTE", "; UNIT cy\n; NOTE", "UNIT is");
	expect_refused("; NOTE", "; REMARK", "no such word");
	expect_refused("SAMPLES 47", "SAMPLES 48", "not those of its blocks");
	expect_refused("samples 45", "samples 44", "not those of its instructions");
	expect_refused("block 1", "block 2", "line 23 ");
	expect_refused("to 1 fall", "to 2 fall", "a block that is not there");
	expect_refused("to 1 fall", "to 1 call", "fall, taken or table");
	expect_refused("freq 990 medium", "freq nan medium", "a frequency");
	expect_refused("freq 990 medium", "freq 990 certain", "a frequency");
	expect_refused("0.62CPI", "0.63CPI", "the CPI is not that");
	expect_refused("8/13", "8/0", "cycles/instructions");
	expect_refused("4.0..18.0cy", "18.0..4.0cy", "LOW..HIGH");
	expect_refused("(d = D-cache miss)", "d = D-cache miss", "in brackets");
	expect_refused("0x104 ", "0x108 ", "not the block's");
	expect_refused("0x104 ", "0x100 ", "does not follow");
	expect_refused("  40 ", "  -40 ", "samples are missing");
	expect_refused("0:3", "1:3", "FILE:LINE");
	expect_refused("2.0cy  ", "2.0  ", "the CPI is like");
	expect_refused("  0x104  stq     t4, 0(t2)       40    18.0cy  0x100    -\n", "",
		       "no instruction follows");
	expect_refused("  Addr   Instruction       Samples ", "  Addr   Samples ", "columns");
	expect_refused("summary\n  D", "summary\nD", "two blanks");
	expect_refused("20.0%\n", "20.0%", "no end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),	cmocka_unit_test(test_again),
		cmocka_unit_test(test_made),	cmocka_unit_test(test_unit),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
