/* SPDX-License-Identifier: BSD-2-Clause */
/* The registry's parts stand in order, in what there is, and the private area holds what is put
 * there. */
#include "fake.h"
#include "dbgdyn_internal.h"

#define FIXED                                                                                      \
	(WIRE_PAGE + WIRE_NR_FACILITIES * sizeof(struct wire_facility) +                           \
	 WIRE_NR_RANGES * sizeof(struct wire_range))
#define LEAST (FIXED + DBGDYN_WORDS_MIN * 4 + DBGDYN_RING_MIN + WIRE_PAGE)

static bool is_power(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* As registry.c divides it. */
static size_t area_needed(const struct dbgdyn_layout *l)
{
	size_t len = (size_t)l->nr_words * 32 + DBGDYN_NR_ARENAS * sizeof(struct dbgdyn_arena) +
		     (size_t)l->nr_nodes * sizeof(struct dbgdyn_node);

	for (int i = 0; i < DBGDYN_NR_LEVELS; i++) {
		uint32_t nr = l->nr_nodes >> 2 * i;

		len += (nr < 64 ? 64 : nr) * sizeof(uint32_t);
	}
	return len;
}

static void check(size_t total_len)
{
	struct dbgdyn_layout l;

	assert_true(dbgdyn_layout_make(&l, total_len));
	assert_true(l.total_len <= total_len);
	assert_int_equal(l.words_off, FIXED);
	assert_true(is_power(l.nr_words) && l.nr_words >= DBGDYN_WORDS_MIN);
	assert_int_equal(l.ring_off, l.words_off + (size_t)l.nr_words * 4);
	assert_true(l.ring_len >= DBGDYN_RING_MIN && l.ring_len % WIRE_PAGE == 0);
	assert_int_equal(l.heap_off, l.ring_off + l.ring_len);
	assert_true(l.heap_len >= WIRE_PAGE && l.heap_len % WIRE_PAGE == 0);
	assert_int_equal(l.total_len, l.heap_off + l.heap_len);
	/* A node for each two slots' lengths of the shortest kind. */
	assert_true(is_power(l.nr_nodes) && l.nr_nodes >= 32);
	assert_true(l.nr_nodes >= l.heap_len / (2 * WIRE_SLOT_ALIGN));
	assert_true(l.nr_nodes == 32 || l.nr_nodes / 2 < l.heap_len / (2 * WIRE_SLOT_ALIGN));
	assert_true(l.area_len >= area_needed(&l) && l.area_len < 2 * area_needed(&l));
	assert_true(l.area_len % WIRE_PAGE == 0);
}

static void parts_stand_in_order(void **state)
{
	struct dbgdyn_layout l;

	(void)state;
	assert_false(dbgdyn_layout_make(&l, 0));
	assert_false(dbgdyn_layout_make(&l, LEAST - 1));
	for (size_t len = LEAST; len < (size_t)2 << 30; len += len / 7)
		check(len);
	for (size_t len = LEAST; len < LEAST + ((size_t)64 << 10); len += 1000)
		check(len);
	check(SIZE_MAX);
}

/* One part behind the other, in memory that is the library's alone. */
static int the_private_area_is_divided(void)
{
	struct dbgdyn_state *s;
	struct fake fake;
	dbgdyn_context context;
	uint8_t *at;

	fake_open(&fake, 0);
	CHECK(dbgdyn_begin("jit", 3, NULL, &context) == DBGDYN_OK);
	s = dbgdyn_state_get(false);
	CHECK(s->area_len);
	at = (uint8_t *)s - s->area_len;
	CHECK((uint8_t *)s->used == at);
	at += (size_t)s->nr_words * 32;
	CHECK((uint8_t *)s->arenas == at);
	at += DBGDYN_NR_ARENAS * sizeof(struct dbgdyn_arena);
	CHECK((uint8_t *)s->nodes == at);
	at += s->nr_nodes * sizeof(struct dbgdyn_node);
	for (int i = 0; i < DBGDYN_NR_LEVELS; i++) {
		CHECK((uint8_t *)s->live[i] == at);
		CHECK(is_power(s->nr_live_chains[i]) && s->nr_live_chains[i] >= 64);
		at += s->nr_live_chains[i] * sizeof(uint32_t);
	}
	CHECK(at <= (uint8_t *)s);
	fake_close(&fake);
	return 0;
}

FAKE_TEST(the_private_area_is_divided)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_private_area_is_divided),
		cmocka_unit_test(parts_stand_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
