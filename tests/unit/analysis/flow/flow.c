/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow.h"
#include "flow_code.h"

enum { BASE = 0x1000 };

/* Code at BASE; of the procedures in it and elsewhere, what they are called. */
struct memory {
	const uint8_t *code;
	size_t len;
	struct image_symbol symbols[3];
};

static size_t bytes(void *context, uint64_t vaddr, void *out, size_t len)
{
	const struct memory *m = context;

	if (vaddr - BASE >= m->len)
		return 0;
	if (len > m->len - (vaddr - BASE))
		len = m->len - (vaddr - BASE);
	memcpy(out, m->code + (vaddr - BASE), len);
	return len;
}

static const struct image_symbol *symbol_at(void *context, uint64_t vaddr)
{
	const struct memory *m = context;

	for (size_t i = 0; i < 3; i++)
		if (m->symbols[i].name && vaddr - m->symbols[i].vaddr < m->symbols[i].len)
			return &m->symbols[i];
	return NULL;
}

static struct flow *build_of(uint32_t machine, struct memory *m)
{
	const struct flow_source source = { m, bytes, NULL, symbol_at };
	struct insn_decoder *d = NULL;
	struct flow *f = NULL;

	assert_int_equal(insn_decoder_open(machine, &d, NULL), 0);
	assert_int_equal(flow_build_from(&source, d, &m->symbols[0], &f, NULL), 0);
	insn_decoder_close(d);
	return f;
}

/* The first @len bytes are the procedure, what follows its tables. */
static struct flow *build(uint32_t machine, const uint8_t *code, size_t size, size_t len)
{
	struct memory m = { code, size, { { "f", BASE, len } } };

	return build_of(machine, &m);
}

/* The edge between the blocks at these addresses, 0 for outside. */
static const struct flow_edge *edge(const struct flow *f, uint64_t from, uint64_t to,
				    enum flow_edge_kind kind)
{
	uint32_t a = from ? flow_block_at(f, from) : FLOW_OUTSIDE;
	uint32_t b = to ? flow_block_at(f, to) : FLOW_OUTSIDE;

	assert_true(!from || (a != FLOW_OUTSIDE && f->blocks[a].vaddr == from));
	assert_true(!to || (b != FLOW_OUTSIDE && f->blocks[b].vaddr == to));
	for (uint32_t i = 0; i < f->nr_edges; i++)
		if (f->edges[i].from == a && f->edges[i].to == b && f->edges[i].kind == kind)
			return &f->edges[i];
	return NULL;
}

static uint32_t class_at(const struct flow *f, uint64_t vaddr)
{
	return f->blocks[flow_block_at(f, vaddr)].eq_class;
}

static void test_diamond(void **state)
{
	struct flow *f = build(EM_X86_64, diamond, sizeof(diamond), sizeof(diamond));

	(void)state;
	assert_int_equal(f->nr_blocks, 5);
	assert_int_equal(f->nr_edges, 8);
	assert_int_equal(f->entry, 0);
	assert_non_null(edge(f, 0, 0x1000, FLOW_ENTRY));
	assert_non_null(edge(f, 0x1000, 0x1004, FLOW_FALL));
	assert_non_null(edge(f, 0x1000, 0x100b, FLOW_TAKEN));
	assert_non_null(edge(f, 0x1004, 0x1010, FLOW_TAKEN));
	assert_non_null(edge(f, 0x100b, 0x1010, FLOW_FALL));
	assert_non_null(edge(f, 0x1010, 0x1010, FLOW_TAKEN));
	assert_non_null(edge(f, 0x1014, 0, FLOW_EXIT));
	/* Start and end run equally often; either arm is its own class, and so is the loop. */
	assert_int_equal(class_at(f, 0x1000), class_at(f, 0x1014));
	assert_int_equal(edge(f, 0x1000, 0x1004, FLOW_FALL)->eq_class, class_at(f, 0x1004));
	assert_int_equal(edge(f, 0x1010, 0x1014, FLOW_FALL)->eq_class, class_at(f, 0x1000));
	assert_int_not_equal(class_at(f, 0x1004), class_at(f, 0x100b));
	assert_int_not_equal(class_at(f, 0x1010), class_at(f, 0x1000));
	assert_int_equal(f->nr_classes, 5); /* both, the arms, the loop and the way back */
	assert_int_equal(flow_insn_at(f, 0x1005)->vaddr, 0x1004);
	assert_int_equal(flow_block_at(f, 0x1015), FLOW_OUTSIDE);
	flow_free(f);
}

static void test_endless(void **state)
{
	struct flow *f = build(EM_X86_64, endless, sizeof(endless), sizeof(endless));
	uint32_t exits = 0;

	(void)state;
	assert_int_equal(f->nr_blocks, 3); /* and none for the padding */
	for (uint32_t i = 0; i < f->nr_edges; i++)
		exits += f->edges[i].kind == FLOW_EXIT;
	assert_int_equal(exits, 1);
	/* Two edges lead into the loop: neither runs as often as the procedure. */
	assert_int_not_equal(class_at(f, 0x1000), edge(f, 0x1000, 0x1004, FLOW_FALL)->eq_class);
	assert_int_not_equal(class_at(f, 0x1000), edge(f, 0x1000, 0x1006, FLOW_TAKEN)->eq_class);
	flow_free(f);
}

static void test_irreducible(void **state)
{
	struct flow *f = build(EM_X86_64, irreducible, sizeof(irreducible), sizeof(irreducible));

	(void)state;
	assert_int_equal(f->nr_blocks, 5);
	assert_non_null(edge(f, 0x1009, 0x1004, FLOW_TAKEN));
	assert_non_null(edge(f, 0x1004, 0x1009, FLOW_TAKEN));
	assert_int_not_equal(class_at(f, 0x1004), class_at(f, 0x1009));
	flow_free(f);
}

static void check_switch(struct flow *f, uint64_t jump, uint64_t one, uint64_t two, uint64_t other)
{
	assert_int_equal(f->nr_indirect, 1);
	assert_int_equal(f->nr_unresolved, 0);
	assert_non_null(edge(f, jump, one, FLOW_TABLE));
	assert_non_null(edge(f, jump, two, FLOW_TABLE));
	assert_int_equal(edge(f, jump, other, FLOW_TABLE) != NULL, other != 0);
	assert_null(edge(f, jump, 0, FLOW_EXIT));
	assert_int_equal(f->blocks[flow_block_at(f, jump)].nr_out, other ? 3 : 2);
	flow_free(f);
}

static void test_tables(void **state)
{
	(void)state;
	check_switch(build(EM_X86_64, relative, sizeof(relative), 0x25), 0x1005, 0x1016, 0x101c,
		     0x1022);
	check_switch(build(EM_X86_64, absolute, sizeof(absolute), 0x20), 0x100b, 0x1014, 0x101a, 0);
	check_switch(build(EM_X86_64, negative, sizeof(negative), 0x20), 0x1008, 0x100f, 0x1015, 0);
	check_switch(build(EM_X86_64, masked, sizeof(masked), 0x20), 0x1008, 0x1017, 0x101e, 0);
	check_switch(build(EM_AARCH64, aarch64, sizeof(aarch64), 0x34), 0x1008, 0x101c, 0x1024,
		     0x102c);
	check_switch(build(EM_RISCV, riscv, sizeof(riscv), 0x24), 0x1006, 0x1018, 0x101c, 0x1020);
	/* The same where the tables count as part of the procedure: they are no code. */
	check_switch(build(EM_X86_64, absolute, sizeof(absolute), sizeof(absolute)), 0x100b, 0x1014,
		     0x101a, 0);
}

/* The base comes from before a loop, on all ways into the block; a number that differs by the way
 * is none. */
static void test_hoisted_table(void **state)
{
	enum { LEN = 0x22, DEC = 0x1d };
	uint8_t code[sizeof(hoisted)];
	struct flow *f;

	(void)state;
	check_switch(build(EM_X86_64, hoisted, sizeof(hoisted), LEN), 0x100c, 0x1017, 0x101a,
		     0x101d);
	memcpy(code, hoisted, sizeof(code));
	code[DEC] = 0x89; /* mov %ecx, %edi in place of dec %edi: the flags stay unknown, the base
			     known */
	code[DEC + 1] = 0xcf;
	check_switch(build(EM_X86_64, code, sizeof(code), LEN), 0x100c, 0x1017, 0x101a, 0x101d);
	code[DEC + 1] = 0xca; /* mov %ecx, %edx: the base is another the next time */
	f = build(EM_X86_64, code, sizeof(code), LEN);
	for (uint32_t i = 0; i < f->nr_edges; i++)
		assert_int_not_equal(f->edges[i].kind, FLOW_TABLE);
	flow_free(f);
}

/* Without a comparison: the index is what a mask, or fewer bits, leave of it. */
static void test_masked_tables(void **state)
{
	static const uint8_t masks[][8] = {
		{ 0x00, 0x04, 0x00, 0x12, 0x1f, 0x20, 0x03, 0xd5 }, /* and w0, w0, #3; nop */
		{ 0x00, 0x1c, 0x00, 0x53, 0x1f, 0x20, 0x03, 0xd5 }, /* uxtb w0, w0; nop */
	};
	static const uint8_t riscv_mask[6] = { 0x13, 0x75, 0x35, 0x00, 0x01, 0x00 }; /* andi; nop */
	uint8_t code[sizeof(aarch64)], other[sizeof(riscv)];

	(void)state;
	memcpy(code, aarch64, sizeof(code));
	for (size_t i = 0; i < 2; i++) {
		memcpy(code, masks[i], sizeof(masks[i]));
		check_switch(build(EM_AARCH64, code, sizeof(code), 0x34), 0x1000, 0x101c, 0x1024,
			     0x102c);
	}
	memcpy(other, riscv, sizeof(other));
	memcpy(other, riscv_mask, sizeof(riscv_mask));
	check_switch(build(EM_RISCV, other, sizeof(other), 0x24), 0x1000, 0x1018, 0x101c, 0x1020);
}

/* An entry that leads out of the procedure: then it was no table, or not one of four. */
static void test_bad_table(void **state)
{
	uint8_t code[sizeof(relative)];
	struct flow *f;

	(void)state;
	memcpy(code, relative, sizeof(code));
	code[sizeof(code) - 1] = 0x10;
	f = build(EM_X86_64, code, sizeof(code), 0x25);
	assert_int_equal(f->nr_unresolved, 1);
	assert_true(f->blocks[flow_block_at(f, 0x1005)].unresolved);
	assert_non_null(edge(f, 0x1005, 0, FLOW_EXIT));
	/* The cases have no other way in; what is branched to may be one of them too. */
	assert_non_null(edge(f, 0, 0x1016, FLOW_ENTRY));
	assert_non_null(edge(f, 0, 0x1022, FLOW_ENTRY));
	flow_free(f);
}

static void test_overlap(void **state)
{
	struct flow *f = build(EM_X86_64, overlap, sizeof(overlap), sizeof(overlap));

	(void)state;
	assert_true(f->overlapping);
	assert_int_equal(f->nr_blocks, 2);
	assert_non_null(edge(f, 0x1000, 0x100b, FLOW_TAKEN));
	assert_non_null(edge(f, 0x1000, 0x100b, FLOW_FALL));
	assert_int_equal(class_at(f, 0x1000), class_at(f, 0x100b));
	flow_free(f);
}

static void test_tail_call(void **state)
{
	struct flow *f = build(EM_X86_64, tail, sizeof(tail), sizeof(tail));

	(void)state;
	assert_int_equal(f->nr_indirect, 1);
	assert_int_equal(f->nr_unresolved, 0);
	assert_int_equal(f->nr_edges, 2);
	flow_free(f);
}

static void test_unresolved(void **state)
{
	struct flow *f = build(EM_X86_64, unknown, sizeof(unknown), sizeof(unknown));

	(void)state;
	assert_int_equal(f->nr_unresolved, 1);
	assert_int_equal(f->nr_blocks, 3);
	assert_non_null(edge(f, 0, 0x100a, FLOW_ENTRY));
	assert_non_null(edge(f, 0, 0x100f, FLOW_ENTRY));
	flow_free(f);
}

static void test_cold_part(void **state)
{
	struct memory m = { cold,
			    sizeof(cold),
			    { { "f", BASE, 0xa },
			      { "f.cold", BASE + 0x40, sizeof(cold) - 0x40 } } };
	struct flow *f = build_of(EM_X86_64, &m);

	(void)state;
	assert_int_equal(f->nr_blocks, 4);
	assert_non_null(edge(f, 0x1000, 0x1040, FLOW_TAKEN));
	assert_non_null(edge(f, 0x1040, 0x1009, FLOW_TAKEN));
	assert_int_equal(f->blocks[flow_block_at(f, 0x1040)].nr_calls, 1);
	flow_free(f);
	/* A procedure of another name is another procedure. */
	m.symbols[1].name = "g.cold";
	f = build_of(EM_X86_64, &m);
	assert_int_equal(f->nr_blocks, 2);
	assert_non_null(edge(f, 0x1000, 0, FLOW_EXIT));
	flow_free(f);
}

/* Code that nothing leads to leads into a procedure without a name, which stands before. */
static void test_unnamed_part_of_a_gap(void **state)
{
	static const uint8_t code[] = {
		0x90, 0xc3, 0xcc, 0xcc,
		0x31, 0xc0, 0xc3, 0xcc, /* 0x1000 nop, ret; 0x1004 xor, ret */
		0xc3, 0xcc, 0xcc, 0xcc,
		0xeb, 0xf3, 0xcc, 0xcc, /* 0x1008 ret; 0x100c jmp 0x1001 */
	};
	struct memory m = { code, sizeof(code), { { "f", BASE + 8, 8 }, { "0x1000", BASE, 8 } } };
	struct flow *f = build_of(EM_X86_64, &m);

	(void)state;
	assert_non_null(edge(f, 0x100c, 0x1001, FLOW_TAKEN));
	assert_non_null(edge(f, 0, 0x1004, FLOW_ENTRY));
	flow_free(f);
}

static void test_no_return(void **state)
{
	struct memory m = { aborts, sizeof(aborts), { { "f", BASE, sizeof(aborts) } } };
	struct flow *f = build_of(EM_X86_64, &m);

	(void)state;
	assert_int_equal(f->nr_blocks, 3);
	flow_free(f);
	m.symbols[1] = (struct image_symbol){ "abort@plt", 0x6000, 16 };
	f = build_of(EM_X86_64, &m);
	assert_int_equal(f->nr_blocks, 4);
	assert_non_null(edge(f, 0x1005, 0, FLOW_EXIT));
	assert_non_null(edge(f, 0, 0x100a, FLOW_ENTRY)); /* nothing leads there */
	flow_free(f);
}

static void test_nothing(void **state)
{
	struct flow *f = build(EM_X86_64, diamond, 0, 16);
	struct insn_decoder *d = NULL;
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(f->nr_blocks, 0);
	assert_int_equal(f->entry, FLOW_OUTSIDE);
	assert_true(f->cut);
	assert_int_equal(flow_block_at(f, BASE), FLOW_OUTSIDE);
	assert_null(flow_insn_at(f, BASE));
	flow_free(f);
	assert_int_equal(insn_decoder_open(EM_S390, &d, &err), -DCPI_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "machine 22"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_diamond),	      cmocka_unit_test(test_endless),
		cmocka_unit_test(test_irreducible),   cmocka_unit_test(test_tables),
		cmocka_unit_test(test_hoisted_table), cmocka_unit_test(test_masked_tables),
		cmocka_unit_test(test_bad_table),     cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_tail_call),     cmocka_unit_test(test_unresolved),
		cmocka_unit_test(test_cold_part),     cmocka_unit_test(test_unnamed_part_of_a_gap),
		cmocka_unit_test(test_no_return),     cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
