/* SPDX-License-Identifier: BSD-2-Clause */
/* libtrace.a: lists of values, and traces of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "trace_internal.h"

/* ---- lists ----------------------------------------------------------------------------------- */

static void lists(void **state)
{
	trace_vlist_t *l = trace_vlist_alloc();

	(void)state;
	for (unsigned int i = 0; i < TRACE_MAX_VALUES; i++)
		assert_int_equal(trace_add_value_to_vlist(l, TRACE_REGISTER(i)), 0);
	/* One that is there needs no room. */
	assert_int_equal(trace_add_value_to_vlist(l, TRACE_REGISTER(3)), 0);
	assert_int_equal(l->too_many, 0);
	assert_int_equal(trace_add_value_to_vlist(l, TRACE_ADDRESS), -1);
	assert_int_equal(l->too_many, 1);
	assert_int_equal(l->nr, TRACE_MAX_VALUES);
	trace_vlist_free(l);
	l = trace_vlist_alloc();
	assert_int_equal(trace_add_value_to_vlist(l, TRACE_NONE), -1);
	assert_int_equal(trace_add_value_to_vlist(l, TRACE_RESULT + 1), -1);
	assert_int_equal(trace_add_value_to_vlist(l, TRACE_REGISTER(TRACE_NR_REGISTERS)), -1);
	assert_int_equal(l->unknown, 1);
	assert_int_equal(l->nr, 0);
	trace_vlist_free(l);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static unsigned int nr_asked;

static int loads_of_8(uchar opc, uchar func)
{
	nr_asked++;
	return opc == TRACE_OP_LOAD && TRACE_FUNC_WIDTH(func) == 8;
}

static trace_value_t pick(uchar opc, uchar func)
{
	(void)func;
	return opc == TRACE_OP_STORE ? TRACE_MEMORY : TRACE_NONE;
}

static void tables(void **state)
{
	trace_vlist_table_t *t = trace_vlist_table_alloc();
	trace_vlist_t *l = trace_vlist_alloc();

	(void)state;
	assert_int_equal(t->lists[TRACE_OP_LOAD][3].wanted, 0);
	/* Nothing but pc, code and contexts. */
	assert_int_equal(trace_add_vlist_by_opc(t, TRACE_OP_CALL, l), 0);
	assert_int_equal(t->lists[TRACE_OP_CALL][31].wanted, 1);
	assert_int_equal(t->lists[TRACE_OP_CALL][31].nr, 0);
	trace_add_value_to_vlist(l, TRACE_ADDRESS);
	assert_int_equal(trace_add_vlist_by_select(t, loads_of_8, l), 0);
	assert_int_equal(nr_asked, TRACE_NR_OPS * TRACE_NR_FUNCS);
	assert_int_equal(t->lists[TRACE_OP_LOAD][3 | TRACE_FUNC_READS].values[0], TRACE_ADDRESS);
	assert_int_equal(t->lists[TRACE_OP_LOAD][2 | TRACE_FUNC_READS].wanted, 0);
	/* Added to what is there. */
	trace_vlist_free(l);
	l = trace_vlist_alloc();
	trace_add_value_to_vlist(l, TRACE_LATENCY);
	trace_add_value_to_vlist(l, TRACE_ADDRESS);
	assert_int_equal(trace_add_vlist_by_opc(t, TRACE_OP_LOAD, l), 0);
	assert_int_equal(t->lists[TRACE_OP_LOAD][3].nr, 2);
	assert_int_equal(t->lists[TRACE_OP_LOAD][3].values[1], TRACE_LATENCY);
	assert_int_equal(t->lists[TRACE_OP_LOAD][2].values[1], TRACE_ADDRESS);
	assert_int_equal(trace_add_vlist_by_opc(t, TRACE_NR_OPS, l), -1);
	/* Instead of it. */
	assert_int_equal(trace_set_vlist_by_pick_value(t, pick), 0);
	assert_int_equal(t->lists[TRACE_OP_LOAD][3].wanted, 0);
	assert_int_equal(t->lists[TRACE_OP_STORE][5].nr, 1);
	assert_int_equal(t->lists[TRACE_OP_STORE][5].values[0], TRACE_MEMORY);
	trace_vlist_free(l);
	trace_vlist_table_free(t);
}

/* Two lists of good length make one that is too long. */
static void tables_too_long(void **state)
{
	trace_vlist_table_t *t = trace_vlist_table_alloc();
	trace_vlist_t *a = trace_vlist_alloc(), *b = trace_vlist_alloc();

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		trace_add_value_to_vlist(a, TRACE_REGISTER(i));
		trace_add_value_to_vlist(b, TRACE_REGISTER(4 + i));
	}
	assert_int_equal(trace_add_vlist_by_opc(t, TRACE_OP_ADD, a), 0);
	assert_int_equal(trace_add_vlist_by_opc(t, TRACE_OP_ADD, b), -1);
	assert_int_equal(t->lists[TRACE_OP_ADD][0].too_many, 1);
	trace_vlist_free(a);
	trace_vlist_free(b);
	trace_vlist_table_free(t);
}

/* ---- traces ---------------------------------------------------------------------------------- */

static const struct trace_item items[] = {
	{ .pc = 0x10,
	  .c0 = 1,
	  .c1 = 2,
	  .values = { 5, 6, 7 },
	  .known = 7,
	  .nr = 3,
	  .inst = 99,
	  .opc = TRACE_OP_LOAD,
	  .func = 11,
	  .len = 2,
	  .bytes = { 0xaa, 0xbb } },
	{ .pc = 0x20, .values = { 8, 0, 9 }, .known = 5, .nr = 3 },
	{ .pc = 0x30 },
};

static trace_parser_t parser_of(void)
{
	return (trace_parser_t){
		.layout = TRACE_LAYOUT, .pid = 42, .nr = 3, .has_context = 1, .items = items
	};
}

static void known_ones(void **state)
{
	trace_parser_t p = parser_of();
	ulong pc, c0, c1, a, b, c;
	const uchar *bytes;
	uint inst;

	(void)state;
	assert_int_equal(trace_parser_get_pid(&p), 42);
	assert_int_equal(trace_parser_has_context(&p), 1);
	assert_int_equal(trace_parser_get_bytes(&p, &bytes), 0);
	assert_int_equal(trace_parser_next(&p, &inst, &pc, &c0, &c1, 7, &a, &b, &c), 3);
	assert_int_equal(inst, 99);
	assert_int_equal(pc, 0x10);
	assert_int_equal(c0 * 10 + c1, 12);
	assert_int_equal(a * 100 + b * 10 + c, 567);
	assert_int_equal(trace_parser_get_bytes(&p, &bytes), 2);
	assert_int_equal(bytes[1], 0xbb);
	assert_int_equal(trace_parser_get_opc(&p), TRACE_OP_LOAD);
	assert_int_equal(trace_parser_get_func(&p), 11);
	/* The second has a value that nobody knows. */
	assert_int_equal(trace_parser_next(&p, NULL, &pc, NULL, NULL, 7, &a, &b, &c), 0);
	assert_int_equal(pc, 0x30);
	assert_int_equal(trace_parser_next(&p, NULL, &pc, NULL, NULL, 7, &a, &b, &c), -1);
	assert_int_equal(trace_parser_next(&p, NULL, &pc, NULL, NULL, 7, &a, &b, &c), -1);
}

static void all_of_them(void **state)
{
	trace_parser_t p = parser_of();
	ulong pc, a, b = 77, c;

	(void)state;
	trace_parser_give_unknown(&p, 1);
	/* No more than there is room for. */
	assert_int_equal(trace_parser_next(&p, NULL, &pc, NULL, NULL, 1, &a), 1);
	assert_int_equal(trace_parser_next(&p, NULL, &pc, NULL, NULL, 3, &a, &b, &c), 3);
	assert_int_equal(pc, 0x20);
	assert_int_equal(a * 100 + b * 10 + c, 809);
	assert_true(trace_parser_is_known(&p, 0) && trace_parser_is_known(&p, 2));
	assert_false(trace_parser_is_known(&p, 1) || trace_parser_is_known(&p, 3) ||
		     trace_parser_is_known(&p, -1));
}

/* A profiler that was linked with another release sees an empty trace. */
static void another_layout(void **state)
{
	trace_parser_t p = parser_of();

	(void)state;
	p.layout++;
	assert_int_equal(trace_parser_next(&p, NULL, NULL, NULL, NULL, 0, NULL), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),	   cmocka_unit_test(tables),
		cmocka_unit_test(tables_too_long), cmocka_unit_test(known_ones),
		cmocka_unit_test(all_of_them),	   cmocka_unit_test(another_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
