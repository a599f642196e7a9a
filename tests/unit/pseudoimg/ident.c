/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant 7: equal contents have one build-id wherever they stood, any other content another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dst_bytes.h"
#include "image.h"

/* Everything that may vary, as members, so that a test changes one. */
struct variant {
	uint64_t arena, range; /* vaddr; image offsets 0 and 0x10000 */
	uint64_t dst;
	uint64_t second_off; /* of the second routine in the arena */
	const char *name, *file;
	uint8_t byte, range_byte, dst_trailer;
	uint8_t beside; /* of the range, in no routine */
	uint32_t line, machine, code_off;
	struct job_image where;
	bool reversed;	/* order of records */
	bool zeros;	/* the ranges' trailing zeros are sent */
	bool split_run; /* the arena in two neighbouring runs */
	bool codeless;	/* the first routine's bytes are not known */
};

static const struct variant plain = { .arena = 0x7f1200000000,
				      .range = 0x7f1300000000,
				      .dst = 0x7f1400000000,
				      .second_off = 0x100,
				      .name = "first",
				      .file = "/src/a",
				      .byte = 0x90,
				      .range_byte = 0xcc,
				      .beside = 1,
				      .line = 7,
				      .machine = 62,
				      .code_off = 2,
				      .where = { .facility = "jit", .host = "h", .exe = "/x" } };

static void put_routines(struct base_buf *job, const struct variant *v)
{
	const uint8_t code[] = { 0x55, v->byte, 0x90, 0xc3 };
	const struct wire_line lines[] = { { .line = 5 },
					   { .code_off = v->code_off, .line = v->line } };
	const char *const files[] = { v->file, NULL };
	const struct job_routine first = { .addr = v->arena,
					   .name = v->name,
					   .code = v->codeless ? NULL : code,
					   .code_len = sizeof(code),
					   .lines = lines,
					   .nr_lines = 2,
					   .files = files };
	struct job_routine second = first;

	second.addr += v->second_off;
	second.name = "second";
	second.code = code;
	job_routine(job, v->reversed ? &second : &first);
	job_routine(job, v->reversed ? &first : &second);
}

static void put_runs(struct base_buf *job, const struct variant *v)
{
	if (v->reversed)
		job_run(job, v->range, 0x10000, 0x2000);
	if (v->split_run) {
		job_run(job, v->arena + 0x1000, 0x1000, 0xf000);
		job_run(job, v->arena, 0, 0x1000);
	} else {
		job_run(job, v->arena, 0, 0x10000);
	}
	if (!v->reversed)
		job_run(job, v->range, 0x10000, 0x2000);
}

/* One range with a routine by DST, whose second module counts from a base of its own. */
static void put_ranges(struct base_buf *job, const struct variant *v)
{
	uint8_t code[0x1000] = { 0x55, v->range_byte, 0xc3, v->beside };
	struct base_buf dst = { 0 };
	uint8_t base[8];
	uint64_t second = v->range + 0x1000;
	void *rest;

	memcpy(base, &second, sizeof(base));
	dst_modbeg(&dst);
	dst_rtnbeg(&dst, 0, 'd');
	DST_BYTES(&dst, 185, 0, 14, 3);
	dst_rtnend(&dst, 3);
	dst_modend(&dst);
	dst_put(&dst, 0x4401, base, sizeof(base));
	DST_BYTES(&dst, 50, 1, v->dst_trailer);
	if (v->zeros)
		base_buf_extend(&dst, 0x800, &rest);
	job_bytes(job, WIRE_RANGE_CODE, v->range, 0x2000, code, v->zeros ? sizeof(code) : 4);
	job_bytes(job, WIRE_RANGE_DST, v->dst, 0x1000, dst.data, dst.len);
	base_buf_release(&dst);
}

static void make(struct image *img, const struct variant *v)
{
	struct base_buf job = { 0 };
	struct job_image where = v->where;

	where.machine = v->machine;
	job_image(&job, &where);
	if (v->reversed) {
		put_ranges(&job, v);
		put_routines(&job, v);
		put_runs(&job, v);
	} else {
		put_runs(&job, v);
		put_routines(&job, v);
		put_ranges(&job, v);
	}
	image_write(img, &job);
	assert_int_equal(img->status, 0);
	assert_int_equal(img->result.nr_bad, 0);
	assert_int_equal(img->result.nr_routines, 3);
	base_buf_release(&job);
}

static bool same_id(const struct variant *v)
{
	struct image a, b;
	bool same;

	make(&a, &plain);
	make(&b, v);
	same = !memcmp(a.result.build_id, b.result.build_id, 20);
	image_release(&a);
	image_release(&b);
	return same;
}

/* @same: after each change of one member of a copy of the plain one. */
#define ASSERT_SAME(same, change)                                                                  \
	do {                                                                                       \
		struct variant v = plain;                                                          \
		change;                                                                            \
		assert_int_equal(same_id(&v), same);                                               \
	} while (0)

static void test_where_and_when_do_not_matter(void **state)
{
	(void)state;
	ASSERT_SAME(true, v.arena = 0x550000000000);
	ASSERT_SAME(true, v.range = 0x7fff00000000);
	ASSERT_SAME(true, v.range = 0x1000; v.arena = 0x7fff00000000);
	ASSERT_SAME(true, v.dst = 0x1000);
	ASSERT_SAME(true, v.where.pid = 4711);
	ASSERT_SAME(true, v.where.host = "elsewhere");
	ASSERT_SAME(true, v.where.exe = "/opt/y");
	ASSERT_SAME(true, v.where.facility = "another");
	ASSERT_SAME(true, v.where.start_time_ns = 5; v.where.created_s = 6);
	ASSERT_SAME(true, v.reversed = true);
	ASSERT_SAME(true, v.zeros = true);
	ASSERT_SAME(true, v.split_run = true);
}

static void test_contents_matter(void **state)
{
	(void)state;
	ASSERT_SAME(false, v.machine = 183);
	ASSERT_SAME(false, v.name = "firsT");
	ASSERT_SAME(false, v.byte = 0x91);
	ASSERT_SAME(false, v.codeless = true);
	ASSERT_SAME(false, v.second_off = 0x110);
	ASSERT_SAME(false, v.line = 8);
	ASSERT_SAME(false, v.code_off = 1);
	ASSERT_SAME(false, v.file = "/src/b");
	ASSERT_SAME(false, v.range_byte = 0xcd);
	ASSERT_SAME(false, v.beside = 2);
	ASSERT_SAME(false, v.dst_trailer = 1);
}

/* The same job gives the same bytes; another order of records too. */
static void test_bytes_are_deterministic(void **state)
{
	struct variant reversed = plain;
	struct image a, b;

	(void)state;
	reversed.reversed = true;
	make(&a, &plain);
	make(&b, &reversed);
	assert_int_equal(a.file.len, b.file.len);
	assert_memory_equal(a.file.data, b.file.data, a.file.len);
	image_release(&a);
	image_release(&b);
}

/* What is in the file is what was returned. */
static void test_id_is_in_the_file(void **state)
{
	struct image a;
	const uint8_t *note;

	(void)state;
	make(&a, &plain);
	note = image_bytes(&a, image_section(&a, ".note.gnu.build-id"));
	assert_memory_equal(note, ((const uint32_t[]){ 4, 20, NT_GNU_BUILD_ID }), 12);
	assert_memory_equal(note + 12, "GNU", 4);
	assert_memory_equal(note + 16, a.result.build_id, 20);
	image_release(&a);
}

/* A routine over two runs stands at two places, and both count. */
static void test_both_places_count(void **state)
{
	struct image img[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct base_buf job = { 0 };

		job_image(&job, &plain.where);
		((struct wire_image *)(void *)job.data)->machine = plain.machine;
		job_run(&job, 0x5000, 0, 0x1000);
		job_run(&job, 0x6000, i ? 0x3000 : 0x2000, 0x1000);
		job_routine(&job,
			    &(struct job_routine){ .addr = 0x5ffe, .name = "r", .code_len = 4 });
		image_write(&img[i], &job);
		assert_int_equal(img[i].result.nr_routines, 1);
		base_buf_release(&job);
	}
	assert_memory_not_equal(img[0].result.build_id, img[1].result.build_id, 20);
	image_release(&img[0]);
	image_release(&img[1]);
}

static void put_module(struct base_buf *dst, uint8_t addr, char name)
{
	dst_modbeg(dst);
	dst_rtnbeg(dst, addr, name);
	dst_rtnend(dst, 4);
	dst_modend(dst);
}

/* DST ranges stand in the order of what they hold, also where one begins as the other. */
static void test_order_of_dst(void **state)
{
	static const uint8_t code[] = { 0x90, 0x90, 0x90, 0xc3, 0x90, 0x90, 0x90, 0xc3 };
	struct image img[2];
	struct base_buf one = { 0 }, both = { 0 };

	(void)state;
	put_module(&one, 0, 'd');
	put_module(&both, 0, 'd');
	put_module(&both, 4, 'e');
	for (int i = 0; i < 2; i++) {
		const struct base_buf *first = i ? &both : &one, *second = i ? &one : &both;
		struct base_buf job = { 0 };

		job_image(&job, &plain.where);
		((struct wire_image *)(void *)job.data)->machine = plain.machine;
		job_run(&job, 0x5000, 0, 0x1000);
		job_bytes(&job, WIRE_RANGE_CODE, 0x5000, 0x100, code, sizeof(code));
		job_bytes(&job, WIRE_RANGE_DST, 0x7000, 0x1000, first->data, first->len);
		job_bytes(&job, WIRE_RANGE_DST, 0x8000, 0x1000, second->data, second->len);
		image_write(&img[i], &job);
		assert_int_equal(img[i].status, 0);
		assert_int_equal(img[i].result.nr_routines, 2);
		base_buf_release(&job);
	}
	assert_memory_equal(img[0].result.build_id, img[1].result.build_id, 20);
	image_release(&img[0]);
	image_release(&img[1]);
	base_buf_release(&one);
	base_buf_release(&both);
}

/* DST that holds addresses says the same at other addresses; its procedure descriptors, too. */
static void test_absolute_dst(void **state)
{
	static const uint8_t code[] = { 0x90, 0x90, 0x90, 0xc3 };
	struct image img[3];

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t at = i ? 0x41000000 : 0x22340000;
		struct base_buf job = { 0 }, dst = { 0 };

		dst_absolute_module(&dst, at + (i == 2 ? 0x100 : 0), 4, 'd');
		job_image(&job, &plain.where);
		((struct wire_image *)(void *)job.data)->machine = plain.machine;
		job_run(&job, at, 0, 0x1000);
		job_bytes(&job, WIRE_RANGE_CODE, at, 0x1000, code, sizeof(code));
		job_bytes(&job, WIRE_RANGE_DST, 0x7000, 0x1000, dst.data, dst.len);
		image_write(&img[i], &job);
		assert_int_equal(img[i].result.nr_routines, 1);
		assert_int_equal(img[i].result.nr_bad, 0);
		base_buf_release(&dst);
		base_buf_release(&job);
	}
	assert_memory_equal(img[0].result.build_id, img[1].result.build_id, 20);
	assert_memory_not_equal(img[0].result.build_id, img[2].result.build_id, 20);
	for (int i = 0; i < 3; i++)
		image_release(&img[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where_and_when_do_not_matter),
		cmocka_unit_test(test_contents_matter),
		cmocka_unit_test(test_bytes_are_deterministic),
		cmocka_unit_test(test_id_is_in_the_file),
		cmocka_unit_test(test_order_of_dst),
		cmocka_unit_test(test_absolute_dst),
		cmocka_unit_test(test_both_places_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
