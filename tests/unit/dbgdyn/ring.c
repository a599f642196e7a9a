/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring to the byte: what fits, what waits, when the bell is due. */
#include "fake.h"
#include "dbgdyn_internal.h"

#include <string.h>

enum { LEN = 4096 };

static _Alignas(8) uint8_t bytes[LEN];
static struct wire_registry reg;
static struct dbgdyn_state s;

/* An empty ring whose next record stands at @head. */
static void begin_at(uint64_t head)
{
	reg = (struct wire_registry){ .head = head, .tail = head };
	s = (struct dbgdyn_state){
		.reg = &reg, .ring = bytes, .ring_len = LEN, .head = head, .published = head
	};
}

/* Whether there was room; *@bell: it is due. */
static bool put(size_t len, bool *bell)
{
	uint64_t before = reg.head;
	struct wire_head *h = dbgdyn_ring_reserve(&s, len);

	*bell = false;
	if (!h)
		return false;
	assert_true((uint8_t *)h >= bytes && (uint8_t *)h + len <= bytes + LEN);
	assert_int_equal(reg.head, before);
	memset(h, 0xee, len);
	*h = (struct wire_head){ .len = (uint32_t)len, .type = WIRE_ROUTINE };
	*bell = dbgdyn_ring_commit(&s, len);
	assert_int_equal(reg.head, s.head);
	return true;
}

/* Read as the daemon does: records of one type and their lengths. */
static void get(uint32_t type, size_t len)
{
	struct wire_head h;

	assert_true(reg.tail + len <= reg.head);
	memcpy(&h, bytes + reg.tail % LEN, sizeof(h));
	assert_int_equal(h.type, type);
	assert_int_equal(h.len, len);
	reg.tail += len;
}

static void holds_what_it_is_long(void **state)
{
	bool bell;

	(void)state;
	begin_at(0);
	assert_false(put(0, &bell));
	assert_false(put(LEN + 8, &bell));
	for (int turn = 0; turn < 2; turn++) {
		assert_true(put(LEN, &bell));
		assert_true(bell);
		assert_false(put(8, &bell));
		get(WIRE_ROUTINE, LEN);
	}
	/* To the end, with no room for a pad. */
	begin_at(LEN - 24);
	assert_true(put(24, &bell));
	assert_true(put(LEN - 24, &bell));
	get(WIRE_ROUTINE, 24);
	get(WIRE_ROUTINE, LEN - 24);
	assert_int_equal(reg.tail, reg.head);
}

static void pads_at_its_end(void **state)
{
	bool bell;

	(void)state;
	/* The pad and the record together are as long as the ring. */
	begin_at(LEN - 1024);
	assert_true(put(LEN - 1024, &bell));
	assert_false(put(8, &bell));
	get(WIRE_PAD, 1024);
	get(WIRE_ROUTINE, LEN - 1024);
	assert_true(put(8, &bell));
}

static void rings_once_when_half_full(void **state)
{
	bool bell;

	(void)state;
	begin_at(0);
	assert_true(put(LEN / 2 - 8, &bell));
	assert_false(bell);
	assert_true(put(8, &bell));
	assert_true(bell);
	assert_true(put(8, &bell));
	assert_false(bell);
	/* Read meanwhile, but for less than half. */
	get(WIRE_ROUTINE, LEN / 2 - 8);
	assert_true(put(8, &bell));
	assert_false(bell);
	assert_true(put(LEN / 2 - 24, &bell));
	assert_true(bell);
	/* What is written over a pad has grown by that, too. */
	begin_at(LEN - 1024);
	assert_true(put(1032, &bell));
	assert_true(bell);
}

static void turns_for_a_long_record(void **state)
{
	bool bell;

	(void)state;
	begin_at(LEN - 1024);
	assert_false(put(LEN - 1016, &bell));
	dbgdyn_ring_turn(&s, LEN - 1016);
	assert_int_equal(reg.head, LEN);
	assert_false(put(LEN - 1016, &bell));
	get(WIRE_PAD, 1024);
	assert_true(put(LEN - 1016, &bell));
	assert_true(bell);
	/* After a turn, what there is and the record are half of it: the bell. */
	begin_at(LEN - 1024);
	dbgdyn_ring_turn(&s, LEN);
	assert_true(put(LEN / 2 - 1024, &bell));
	assert_true(bell);
}

/* It skips no more than what is free, and nothing for what will fit without. */
static void turns_for_no_other(void **state)
{
	static const struct {
		uint64_t head, tail;
		size_t len;
		bool turns;
	} cases[] = {
		{ LEN + 104, 1000, LEN - 96, false }, /* the rest is not read yet */
		{ LEN + 104, LEN - 8, LEN - 96, false },
		{ LEN + 104, LEN, LEN - 96, true },
		{ LEN + 104, LEN + 8, LEN - 96, true },
		{ LEN - 1024, LEN - 1024, LEN - 1024, false }, /* it fits with a pad */
		{ LEN - 1024, LEN - 1024, 1024, false },       /* before the end */
		{ LEN - 1024, LEN - 1024, LEN + 8, false },    /* never */
		{ LEN - 1024, LEN - 1024, LEN, true },
		{ 1024, LEN, LEN, false }, /* a tail that makes no sense */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin_at(cases[i].head);
		reg.tail = cases[i].tail;
		dbgdyn_ring_turn(&s, cases[i].len);
		assert_int_equal(reg.head != cases[i].head, cases[i].turns);
		assert_int_equal(reg.head, s.head);
		assert_true(!cases[i].turns || reg.head % LEN == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_what_it_is_long),
		cmocka_unit_test(pads_at_its_end),
		cmocka_unit_test(rings_once_when_half_full),
		cmocka_unit_test(turns_for_a_long_record),
		cmocka_unit_test(turns_for_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
