/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of the other byte order, turned: each field of each type that a note has, cut ones, and
 * lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "wire.h"

static uint64_t turned(uint64_t v, size_t width)
{
	uint64_t r = 0;

	for (size_t i = 0; i < width; i++)
		r |= (v >> 8 * i & 255) << 8 * (width - 1 - i);
	return r;
}

#define TURNED(v) ((typeof(v))turned((v), sizeof(v)))
#define HEAD(size, t)                                                                              \
	{                                                                                          \
		.len = TURNED((uint32_t)(size)), .type = TURNED((uint16_t)(t)),                    \
		.flags = TURNED((uint16_t)1)                                                       \
	}

static void head_is(const struct wire_head *h, size_t len, unsigned int type)
{
	assert_int_equal(h->len, len);
	assert_int_equal(h->type, type);
	assert_int_equal(h->flags, 1);
}

static void test_image(void **state)
{
	struct {
		struct wire_image r;
		char strings[8];
	} image = { .r = { .head = HEAD(sizeof(image), WIRE_IMAGE),
			   .machine = TURNED((uint32_t)62),
			   .pid = TURNED((uint32_t)0x01020304),
			   .start_time_ns = TURNED((uint64_t)0x0102030405060708),
			   .created_s = TURNED((uint64_t)7),
			   .uid = TURNED((uint32_t)1000),
			   .facility_len = TURNED((uint16_t)1),
			   .host_len = TURNED((uint16_t)2),
			   .exe_len = TURNED((uint16_t)0x0103),
			   .flags = TURNED((uint32_t)9) },
		    .strings = "abcdefg" };

	(void)state;
	wire_turn(&image, sizeof(image));
	head_is(&image.r.head, sizeof(image), WIRE_IMAGE);
	assert_int_equal(image.r.machine, 62);
	assert_int_equal(image.r.pid, 0x01020304);
	assert_true(image.r.start_time_ns == 0x0102030405060708);
	assert_int_equal(image.r.created_s, 7);
	assert_int_equal(image.r.uid, 1000);
	assert_int_equal(image.r.facility_len, 1);
	assert_int_equal(image.r.host_len, 2);
	assert_int_equal(image.r.exe_len, 0x0103);
	assert_int_equal(image.r.flags, 9);
	assert_string_equal(image.strings, "abcdefg");
}

/* One behind the other, with a type between them that no note has. */
static void test_stream(void **state)
{
	struct {
		struct wire_run run;
		struct wire_time other;
		struct wire_place place;
		struct wire_instance instance;
	} s = {
		.run = { HEAD(sizeof(s.run), WIRE_RUN), TURNED((uint64_t)1), TURNED((uint64_t)2),
			 TURNED((uint64_t)3) },
		.other = { HEAD(sizeof(s.other), WIRE_TIME), 5 },
		.place = { HEAD(sizeof(s.place), WIRE_PLACE), TURNED((uint64_t)1),
			   TURNED((uint64_t)2), TURNED((uint64_t)3), TURNED((uint64_t)4),
			   TURNED((uint64_t)5) },
		.instance = { HEAD(sizeof(s.instance), WIRE_INSTANCE), TURNED((uint32_t)1),
			      TURNED((uint32_t)2), TURNED((uint64_t)3), TURNED((uint64_t)4) },
	};

	(void)state;
	wire_turn(&s, sizeof(s));
	head_is(&s.run.head, sizeof(s.run), WIRE_RUN);
	assert_true(s.run.vaddr == 1 && s.run.img_off == 2 && s.run.len == 3);
	head_is(&s.other.head, sizeof(s.other), WIRE_TIME);
	assert_int_equal(s.other.time_ns, 5);
	head_is(&s.place.head, sizeof(s.place), WIRE_PLACE);
	assert_true(s.place.vaddr == 1 && s.place.elf == 2 && s.place.len == 3);
	assert_true(s.place.from_seq == 4 && s.place.until_seq == 5);
	head_is(&s.instance.head, sizeof(s.instance), WIRE_INSTANCE);
	assert_true(s.instance.pid == 1 && s.instance.uid == 2);
	assert_true(s.instance.start_time_ns == 3 && s.instance.created_s == 4);
}

static void test_replaces(void **state)
{
	struct {
		struct wire_replaces r;
		struct wire_moved moved[2];
	} s = { .r = { HEAD(sizeof(s), WIRE_REPLACES), "0123456789abcdefghi", TURNED((uint32_t)2) },
		.moved = { { TURNED((uint64_t)1), TURNED((uint64_t)2), TURNED((uint64_t)3) },
			   { TURNED((uint64_t)4), TURNED((uint64_t)5), TURNED((uint64_t)6) } } };

	(void)state;
	wire_turn(&s, sizeof(s));
	assert_int_equal(wire_check(&s.r.head), 0);
	assert_string_equal((const char *)s.r.id, "0123456789abcdefghi");
	assert_int_equal(s.r.nr_moved, 2);
	assert_true(s.moved[0].from == 1 && s.moved[0].to == 2 && s.moved[0].len == 3);
	assert_true(s.moved[1].from == 4 && s.moved[1].to == 5 && s.moved[1].len == 6);
}

/* Nothing outside the bytes is touched, and wire_next finds what lies. */
static void test_lies(void **state)
{
	static const uint32_t lies[] = { 0, 7, 33, 1u << 30, UINT32_MAX };
	uint64_t room[6];
	size_t pos;

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct wire_run run = { HEAD(lies[i], WIRE_RUN), TURNED((uint64_t)1), 2, 3 };

		memset(room, 0xee, sizeof(room));
		memcpy(room, &run, sizeof(run));
		wire_turn(room, sizeof(run));
		pos = 0;
		assert_null(wire_next(room, sizeof(run), &pos));
		assert_true(room[1] == run.vaddr && room[4] == 0xeeeeeeeeeeeeeeee);
	}
	/* Fields that do not fit into the record stay, and so do those of what is too short for a
	 * head. */
	for (size_t len = 0; len < sizeof(struct wire_run); len += 4) {
		struct wire_run run = { HEAD(len, WIRE_RUN), TURNED((uint64_t)1),
					TURNED((uint64_t)2), TURNED((uint64_t)3) };

		memset(room, 0xee, sizeof(room));
		memcpy(room, &run, len);
		wire_turn(room, len);
		for (size_t at = (len + 7) / 8; at < 6; at++)
			assert_true(room[at] == 0xeeeeeeeeeeeeeeee);
		assert_true(len < 16 || room[1] == 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_image),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_replaces),
		cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
