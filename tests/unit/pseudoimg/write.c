/* SPDX-License-Identifier: BSD-2-Clause */
/* What jobs become: bytes and symbols at their places, and what is refused of bad ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "dst_bytes.h"
#include "image.h"

static const struct job_image head = { .machine = 62, .facility = "jit", .host = "h", .exe = "/x" };
static const uint8_t code[] = { 0x55, 0x90, 0xc3, 0x00 };

static void put(struct base_buf *job, uint64_t addr, const char *name)
{
	job_routine(job, &(struct job_routine){
				 .addr = addr, .name = name, .code = code, .code_len = 4 });
}

static void write_job(struct image *img, struct base_buf *job)
{
	image_write(img, job);
	base_buf_release(job);
}

static void assert_symbol(const struct image *img, const char *name, uint64_t addr, uint64_t len)
{
	const Elf64_Sym *s = image_symbol(img, name);

	assert_non_null(s);
	assert_int_equal(s->st_value, addr);
	assert_int_equal(s->st_size, len);
	assert_int_equal(ELF64_ST_TYPE(s->st_info), STT_FUNC);
}

/* Near code shares a section, with zeros between; far code has its own. */
static void test_sections(void **state)
{
	struct base_buf job = { 0 };
	const Elf64_Shdr *text;
	struct image img;

	(void)state;
	job_image(&job, &head);
	job_run(&job, 0x7f0000000000, 0, 0x10000000);
	put(&job, 0x7f0008000000, "far");
	put(&job, 0x7f0000001000, "near");
	put(&job, 0x7f0000000010, "first");
	write_job(&img, &job);
	assert_int_equal(img.status, 0);
	assert_int_equal(img.result.nr_routines, 3);
	assert_int_equal(img.result.nr_bad, 0);
	text = image_section(&img, ".text");
	assert_int_equal(text->sh_addr, 0x7f0000000010);
	assert_int_equal(text->sh_size, 0x1000 - 0x10 + 4);
	text = image_section(&img, ".text.1");
	assert_int_equal(text->sh_addr, 0x7f0008000000);
	assert_int_equal(text->sh_size, 4);
	assert_null(image_section(&img, ".text.2"));
	assert_symbol(&img, "first", 0x7f0000000010, 4);
	assert_symbol(&img, "near", 0x7f0000001000, 4);
	assert_symbol(&img, "far", 0x7f0008000000, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(image_byte(&img, 0x7f0000001000 + i), code[i]);
		assert_int_equal(image_byte(&img, 0x7f0008000000 + i), code[i]);
	}
	assert_int_equal(image_byte(&img, 0x7f0000000800), 0);
	image_release(&img);
}

/* Ten thousand routines in pages of their own, far apart: fewer sections than that. */
static void test_scattered_code(void **state)
{
	struct base_buf job = { 0 };
	char name[16];
	struct image img;
	const Elf64_Ehdr *h;

	(void)state;
	job_image(&job, &head);
	job_run(&job, 0x100000, 0, 10000 * 0x8000);
	for (unsigned int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "r%u", i);
		put(&job, 0x100000 + i * 0x8000, name);
	}
	write_job(&img, &job);
	assert_int_equal(img.status, 0);
	assert_int_equal(img.result.nr_routines, 10000);
	h = (const void *)img.file.data;
	assert_true(h->e_shnum < 100);
	assert_symbol(&img, "r9999", 0x100000 + 9999 * 0x8000, 4);
	assert_int_equal(image_byte(&img, 0x100000 + 9999 * 0x8000), 0x55);
	image_release(&img);
}

/* Code all over the address space is more than one file holds: refused, not written in part. */
static void test_too_scattered(void **state)
{
	struct base_buf job = { 0 };
	struct image img;

	(void)state;
	job_image(&job, &head);
	job_run(&job, 0, 0, UINT64_C(1) << 46);
	for (unsigned int i = 0; i < 17000; i++)
		put(&job, UINT64_C(0x40000000) * i, "r");
	write_job(&img, &job);
	assert_int_equal(img.status, -DCPI_ELIMIT);
	assert_string_equal(
		img.err.text,
		"cannot lay out pseudo-image: code in 17000 places more than 1 MiB apart, "
		"16000 at most");
	image_release(&img);
}

static void test_refused_routines(void **state)
{
	struct base_buf job = { 0 };
	struct image img;

	(void)state;
	job_image(&job, &head);
	job_run(&job, 0x1000, 0, 0x1000);
	job_run(&job, 0x2000, 0x1000, 0x1000); /* a neighbour: code may span both */
	job_run(&job, 0x1800, 0x8000, 0x1000); /* over both: refused */
	job_run(&job, 0x9000, 0x1000, 0x1000); /* an offset that is taken */
	put(&job, 0x1ffe, "spans");
	put(&job, 0x1ffc, "overlaps");
	put(&job, 0x2ffd, "leaves");
	put(&job, 0x9000, "nowhere");
	job_run(&job, 0x3004, 0x3000, 0x1000);
	job_routine(&job, &(struct job_routine){ .addr = 0x2ff8, .name = "hole", .code_len = 16 });
	write_job(&img, &job);
	assert_int_equal(img.status, 0);
	assert_int_equal(img.result.nr_routines, 1);
	assert_int_equal(img.result.nr_bad, 6);
	assert_int_equal(img.result.nr_overlaps, 3); /* two runs, one routine */
	assert_symbol(&img, "spans", 0x1ffe, 4);
	image_release(&img);
}

/* Of the two that overlap the one that came first stays, whichever address is lower. */
static void test_first_come_stays(void **state)
{
	struct image img;

	(void)state;
	for (int order = 0; order < 2; order++) {
		struct base_buf job = { 0 };

		job_image(&job, &head);
		job_run(&job, 0x1000, 0, 0x1000);
		put(&job, order ? 0x1002 : 0x1000, "stays");
		put(&job, order ? 0x1000 : 0x1002, "goes");
		write_job(&img, &job);
		assert_int_equal(img.result.nr_bad, 1);
		assert_int_equal(img.result.nr_overlaps, 1);
		assert_non_null(image_symbol(&img, "stays"));
		assert_null(image_symbol(&img, "goes"));
		image_release(&img);
	}
}

/* The same of runs: code stands where the first one has its offset. */
static void test_first_run_stays(void **state)
{
	struct image img;

	(void)state;
	for (int order = 0; order < 2; order++) {
		struct base_buf job = { 0 };

		job_image(&job, &head);
		job_run(&job, order ? 0x1800 : 0x1000, 0, 0x1000);
		job_run(&job, order ? 0x1000 : 0x1800, 0x4000, 0x1000);
		put(&job, order ? 0x2700 : 0x1100, "stays");
		put(&job, order ? 0x1100 : 0x2700, "goes");
		write_job(&img, &job);
		assert_int_equal(img.result.nr_bad, 2);
		assert_int_equal(img.result.nr_overlaps, 1);
		assert_non_null(image_symbol(&img, "stays"));
		image_release(&img);
	}
}

static void put_dst_module(struct base_buf *dst, uint8_t addr, uint8_t len, char name)
{
	dst_modbeg(dst);
	dst_rtnbeg(dst, addr, name);
	DST_BYTES(dst, 185, 0, 14, len);
	dst_rtnend(dst, len);
	dst_modend(dst);
}

/* Owned ranges: bytes are there with and without a symbol; DST reaches no further than they. */
static void test_owned_ranges(void **state)
{
	static const uint8_t bytes[] = { 0x90, 0x90, 0xc3, 0xb8, 1 };
	struct base_buf job = { 0 }, dst = { 0 };
	const Elf64_Shdr *s;
	struct image img;

	(void)state;
	put_dst_module(&dst, 3, 5, 'd');    /* mov $1, %eax: its zeros were not sent */
	put_dst_module(&dst, 0xfe, 4, 'x'); /* leaves the range */
	job_image(&job, &head);
	job_run(&job, 0x5000, 0, 0x1000);
	job_bytes(&job, WIRE_RANGE_CODE, 0x5000, 0x100, bytes, sizeof(bytes));
	job_bytes(&job, WIRE_RANGE_CODE, 0x5000, 0x100, bytes, sizeof(bytes)); /* twice */
	job_bytes(&job, WIRE_RANGE_CODE, 0x9000, 0x100, bytes, sizeof(bytes)); /* no run */
	job_bytes(&job, WIRE_RANGE_DST, 0x7000, 0x1000, dst.data, dst.len);
	write_job(&img, &job);
	assert_int_equal(img.status, 0);
	assert_int_equal(img.result.nr_routines, 1);
	assert_int_equal(img.result.nr_bad, 4); /* the ranges, the routine, its lines */
	assert_int_equal(img.result.nr_overlaps, 1);
	assert_int_equal(img.result.text_bytes, 8);
	assert_symbol(&img, "d", 0x5003, 5);
	assert_int_equal(image_byte(&img, 0x5000), 0x90);
	assert_int_equal(image_byte(&img, 0x5003), 0xb8);
	assert_int_equal(image_byte(&img, 0x5007), 0);
	s = image_section(&img, PSEUDOIMG_DST_SECTION);
	assert_int_equal(s->sh_size, dst.len);
	assert_memory_equal(image_bytes(&img, s), dst.data, dst.len);
	base_buf_release(&dst);
	image_release(&img);
}

/*
 * A port from OpenVMS writes addresses, not offsets, where its code lies below 4 GB. They are read
 * as such if that way more routines of the DST range lie in code ranges of its facility.
 */
static void test_absolute_dst(void **state)
{
	static const struct {
		const char *what;
		uint32_t addr[3];
		uint64_t len; /* of the code range at 0x410000 */
		uint64_t expected[3];
		unsigned int nr, nr_bad;
		bool base; /* a BASE record begins it */
	} cases[] = {
		{ "addresses",
		  { 0x410000, 0x410040, 0x410080 },
		  0x1000,
		  { 0x410000, 0x410040, 0x410080 },
		  3,
		  0,
		  false },
		{ "offsets",
		  { 0, 0x40, 0x80 },
		  0x1000,
		  { 0x410000, 0x410040, 0x410080 },
		  3,
		  0,
		  false },
		{ "either: offsets",
		  { 0x410000, 0x410040, 0x410080 },
		  0x800000,
		  { 0x820000, 0x820040, 0x820080 },
		  3,
		  0,
		  false },
		{ "one is no offset",
		  { 0x410000, 0x410040, 0xb00000 },
		  0x800000,
		  { 0x410000, 0x410040, 0xb00000 },
		  3,
		  0,
		  false },
		{ "one is neither",
		  { 0x410000, 0x410040, 0xc10000 },
		  0x1000,
		  { 0x410000, 0x410040, 0 },
		  2,
		  2,
		  false },
		{ "of another facility",
		  { 0x550000, 0x550040, 0x550080 },
		  0x1000,
		  { 0 },
		  0,
		  6,
		  false },
		{ "behind a BASE record",
		  { 0x410000, 0x410040, 0x410080 },
		  0x1000,
		  { 0 },
		  0,
		  6,
		  true },
	};
	static const uint8_t bytes[] = { 0x90 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct base_buf job = { 0 }, dst = { 0 };
		struct image img;

		print_message("%s\n", cases[i].what);
		if (cases[i].base)
			DST_BYTES(&dst, 0x4401, 0, 0, 0x41, 0, 0, 0, 0, 0);
		for (size_t k = 0; k < 3; k++)
			dst_absolute_module(&dst, cases[i].addr[k], 8, (char)('a' + k));
		job_image(&job, &head);
		job_run(&job, 0x410000, 0, 0x800000);
		job_bytes(&job, WIRE_RANGE_CODE, 0x410000, cases[i].len, bytes, 1);
		if (cases[i].len == 0x1000) {
			size_t at = job.len;

			job_bytes(&job, WIRE_RANGE_CODE, 0x550000, 0x1000, bytes, 1);
			((struct wire_bytes *)(void *)(job.data + at))->facility = 1;
		}
		job_bytes(&job, WIRE_RANGE_DST, 0x7000, 0x1000, dst.data, dst.len);
		write_job(&img, &job);
		assert_int_equal(img.status, 0);
		assert_int_equal(img.result.nr_routines, cases[i].nr);
		assert_int_equal(img.result.nr_bad, cases[i].nr_bad);
		for (size_t k = 0; k < 3; k++)
			if (cases[i].expected[k])
				assert_symbol(&img, (char[]){ (char)('a' + k), 0 },
					      cases[i].expected[k], 8);
		base_buf_release(&dst);
		image_release(&img);
	}
}

/* Zeros at a range's end are none of it, however many they are; those between are. */
static void test_trailing_zeros(void **state)
{
	static const uint8_t bytes[0x3001] = { 0x90, [0x1234] = 0xc3 };
	struct image img;

	(void)state;
	for (size_t len = 0x1235; len <= sizeof(bytes); len += 0xedc) {
		struct base_buf job = { 0 };

		job_image(&job, &head);
		job_run(&job, 0x5000, 0, 0x4000);
		job_bytes(&job, WIRE_RANGE_CODE, 0x5000, 0x4000, bytes, len);
		write_job(&img, &job);
		assert_int_equal(img.result.text_bytes, 0x1235);
		assert_int_equal(image_byte(&img, 0x5000), 0x90);
		assert_int_equal(image_byte(&img, 0x6234), 0xc3);
		image_release(&img);
	}
}

static size_t nr_symbols_at(const struct image *img, const char *name, uint64_t addr, uint64_t len)
{
	const Elf64_Shdr *tab = image_section(img, ".symtab"), *str = image_section(img, ".strtab");
	const Elf64_Sym *sym = image_bytes(img, tab);
	const char *names = image_bytes(img, str);
	size_t nr = 0;

	for (size_t i = 0; i < tab->sh_size / sizeof(*sym); i++)
		nr += sym[i].st_value == addr && sym[i].st_size == len &&
		      !strcmp(names + sym[i].st_name, name);
	return nr;
}

/* Code that was changed stands a second time, and what DST says of it. */
static void test_changed_code(void **state)
{
	static const uint8_t bytes[] = { [0x3e] = 0x90, 0x90, 0x90, 0x90, 0xc3 };
	static const uint8_t later[] = { 0xb8, 1, 2, 3, 4, 0xc3 };
	struct base_buf job = { 0 }, dst = { 0 };
	struct image img;

	(void)state;
	/* a ends before what was changed, b reaches into it, c begins there and leaves it. */
	put_dst_module(&dst, 0, 0x20, 'a');
	put_dst_module(&dst, 0x3e, 5, 'b');
	put_dst_module(&dst, 0x48, 0x10, 'c');
	job_image(&job, &head);
	job_run(&job, 0x5000, 0, 0x1000);
	job_run(&job, 0x70000000, 0x1000, 0x1000);
	job_bytes(&job, WIRE_RANGE_CODE, 0x5000, 0x100, bytes, sizeof(bytes));
	job_place(&job, 0x5040, 0x70000010, 0x10);
	job_place(&job, 0x5000, 0x70000100, 0x10); /* no range begins there: a routine's */
	job_bytes(&job, WIRE_RANGE_CODE, 0x70000010, 0x10, later, sizeof(later));
	job_place(&job, 0x5080, 0x70000030, 4); /* a shorter one, told later */
	job_bytes(&job, WIRE_RANGE_CODE, 0x70000030, 4, later, 4);
	job_bytes(&job, WIRE_RANGE_DST, 0x7000, 0x1000, dst.data, dst.len);
	write_job(&img, &job);
	assert_int_equal(img.status, 0);
	assert_int_equal(img.result.nr_bad, 0);
	assert_int_equal(img.result.nr_routines, 5);
	assert_symbol(&img, "a", 0x5000, 0x20);
	assert_int_equal(image_byte(&img, 0x5040), 0x90);
	assert_int_equal(image_byte(&img, 0x70000010), 0xb8);
	assert_int_equal(nr_symbols_at(&img, "b", 0x503e, 5), 1);
	assert_int_equal(nr_symbols_at(&img, "b", 0x70000010, 3), 1);
	assert_int_equal(nr_symbols_at(&img, "c", 0x70000018, 8), 1);
	base_buf_release(&dst);
	image_release(&img);
}

/* A DST range in parts is one; a part that does not go on where the last one ended is refused. */
static void test_dst_in_parts(void **state)
{
	static const uint8_t bytes[8] = { [7] = 0xc3 };
	struct base_buf job = { 0 }, dst = { 0 }, stray = { 0 };
	struct image img;

	(void)state;
	put_dst_module(&dst, 0, 8, 'd');
	put_dst_module(&stray, 0x20, 8, 's');
	job_image(&job, &head);
	job_run(&job, 0x5000, 0, 0x1000);
	job_bytes(&job, WIRE_RANGE_CODE, 0x5000, 0x100, bytes, sizeof(bytes));
	job_part(&job, WIRE_RANGE_DST, 0x7000, 0x1000, 0, dst.data, 16);
	job_part(&job, WIRE_RANGE_DST, 0x7000, 0x1000, 16, dst.data + 16, dst.len - 16);
	job_part(&job, WIRE_RANGE_DST, 0x7000, 0x1000, 0x200, stray.data, stray.len);
	job_part(&job, WIRE_RANGE_DST, 0x8000, 0x1000, dst.len, stray.data, stray.len);
	job_part(&job, WIRE_RANGE_DST, 0x7000, 0x800, dst.len, stray.data, stray.len);
	write_job(&img, &job);
	assert_int_equal(img.result.nr_bad, 3);
	assert_int_equal(img.result.nr_routines, 1);
	assert_symbol(&img, "d", 0x5000, 8);
	base_buf_release(&dst);
	base_buf_release(&stray);
	image_release(&img);
}

/* Zeros that end the last record were not sent, however long the range is. */
static void test_dst_ends_in_zeros(void **state)
{
	static const uint8_t bytes[8] = { [7] = 0xc3 };
	struct base_buf dst = { 0 };
	struct image img;

	(void)state;
	put_dst_module(&dst, 0, 8, 'd');
	assert_int_equal(dst.data[dst.len - 1], 0);
	for (uint64_t len = 0x1000; len <= 0x1000000; len <<= 6) {
		struct base_buf job = { 0 };

		job_image(&job, &head);
		job_run(&job, 0x5000, 0, 0x1000);
		job_bytes(&job, WIRE_RANGE_CODE, 0x5000, 0x100, bytes, sizeof(bytes));
		job_bytes(&job, WIRE_RANGE_DST, 0x7000, len, dst.data, dst.len - 1);
		write_job(&img, &job);
		assert_int_equal(img.result.nr_bad, 0);
		assert_symbol(&img, "d", 0x5000, 8);
		assert_int_equal(image_section(&img, PSEUDOIMG_DST_SECTION)->sh_size, dst.len);
		image_release(&img);
	}
	base_buf_release(&dst);
}

/* What is malformed ends the DST there and is counted; what stood before it counts. */
static void test_bad_dst(void **state)
{
	static const uint8_t bytes[8] = { [7] = 0xc3 };
	struct base_buf job = { 0 }, dst = { 0 };
	struct image img;

	(void)state;
	put_dst_module(&dst, 0, 8, 'd');
	dst_modend(&dst); /* of no module */
	job_image(&job, &head);
	job_run(&job, 0x5000, 0, 0x1000);
	job_bytes(&job, WIRE_RANGE_CODE, 0x5000, 0x100, bytes, sizeof(bytes));
	job_bytes(&job, WIRE_RANGE_DST, 0x7000, 0x1000, dst.data, dst.len);
	write_job(&img, &job);
	assert_int_equal(img.result.nr_bad, 1);
	assert_symbol(&img, "d", 0x5000, 8);
	base_buf_release(&dst);
	image_release(&img);
}

/* DST counts from the range with the lowest image offset, wherever that is in memory. */
static void test_first_range_is_the_base(void **state)
{
	static const uint8_t bytes[] = { 0x90, 0x90, 0x90, 0xc3 };
	struct base_buf job = { 0 }, dst = { 0 };
	struct image img;

	(void)state;
	put_dst_module(&dst, 0, 4, 'd');
	job_image(&job, &head);
	job_run(&job, 0x5000, 0x1000, 0x1000);
	job_run(&job, 0x9000, 0, 0x1000);
	job_bytes(&job, WIRE_RANGE_CODE, 0x5000, 0x100, bytes, sizeof(bytes));
	job_bytes(&job, WIRE_RANGE_CODE, 0x9000, 0x100, NULL, 0); /* nothing written there as yet */
	job_bytes(&job, WIRE_RANGE_DST, 0x7000, 0x1000, dst.data, dst.len);
	write_job(&img, &job);
	assert_int_equal(img.result.nr_bad, 0);
	assert_symbol(&img, "d", 0x9000, 4);
	base_buf_release(&dst);
	image_release(&img);
}

/* Inner routines of DST stand; what overlaps otherwise goes, and before a record DST gives way. */
static void test_nested_and_overlapping_dst(void **state)
{
	static const uint8_t bytes[0x80] = { [0 ... 0x7f] = 0x90 };
	struct base_buf job = { 0 }, dst = { 0 };
	struct image img;

	(void)state;
	dst_modbeg(&dst);
	dst_rtnbeg(&dst, 0, 'o');
	dst_rtnbeg(&dst, 0x10, 'i');
	dst_rtnend(&dst, 8);
	dst_rtnend(&dst, 0x20);
	dst_rtnbeg(&dst, 0x1c, 'p'); /* over the end of o */
	dst_rtnend(&dst, 8);
	dst_rtnbeg(&dst, 0, 't'); /* o again */
	dst_rtnend(&dst, 0x20);
	dst_rtnbeg(&dst, 0x20, 'n'); /* where o ends */
	dst_rtnend(&dst, 4);
	dst_rtnbeg(&dst, 0x40, 'r'); /* over a record */
	dst_rtnend(&dst, 0x10);
	dst_rtnbeg(&dst, 0x60, 's'); /* in a record */
	dst_rtnend(&dst, 2);
	dst_modend(&dst);
	job_image(&job, &head);
	job_run(&job, 0x5000, 0, 0x1000);
	job_bytes(&job, WIRE_RANGE_CODE, 0x5000, 0x80, bytes, sizeof(bytes));
	job_bytes(&job, WIRE_RANGE_DST, 0x7000, 0x1000, dst.data, dst.len);
	put(&job, 0x5044, "rec");
	put(&job, 0x5060, "rec2");
	write_job(&img, &job);
	assert_int_equal(img.status, 0);
	assert_int_equal(img.result.nr_bad, 4);
	assert_int_equal(image_nr_symbols(&img), 5);
	assert_symbol(&img, "o", 0x5000, 0x20);
	assert_symbol(&img, "n", 0x5020, 4);
	assert_symbol(&img, "i", 0x5010, 8);
	assert_symbol(&img, "rec", 0x5044, 4);
	assert_symbol(&img, "rec2", 0x5060, 4);
	assert_int_equal(image_byte(&img, 0x5044), 0x55); /* the record's bytes are what ran */
	assert_int_equal(image_byte(&img, 0x5048), 0x90);
	base_buf_release(&dst);
	image_release(&img);
}

static void test_names(void **state)
{
	struct base_buf job = { 0 };
	struct image img;

	(void)state;
	job_image(&job, &head);
	job_run(&job, 0x1000, 0, 0x1000);
	job_routine(&job, &(struct job_routine){ .addr = 0x1000,
						 .name = "a\nb\0c\xc3\xa9\xff",
						 .name_len = 8,
						 .code = code,
						 .code_len = 4 });
	put(&job, 0x1010, "");
	put(&job, 0x1020, "twice");
	put(&job, 0x1030, "twice");
	write_job(&img, &job);
	assert_int_equal(img.result.nr_routines, 4);
	assert_symbol(&img, "a\\nb\\x00c\xc3\xa9\\xff", 0x1000, 4);
	assert_symbol(&img, "(unnamed)", 0x1010, 4);
	image_release(&img);
}

/* The note: the head as it came, runs by address with neighbours merged, what it replaces. */
static void test_note(void **state)
{
	static const uint8_t id[20] = { 1, 2, 3 }, other[20] = { 4 };
	static const struct wire_moved moved[] = { { 0x100, 0x200, 4 }, { 0x50, 0, 4 } };
	struct base_buf job = { 0 };
	const struct wire_head *rec;
	struct image img;
	uint64_t desc[64];
	const Elf64_Nhdr *nh;
	size_t pos = 0;

	(void)state;
	job_image(&job, &head);
	job_run(&job, 0x3000, 0x2000, 0x1000);
	job_run(&job, 0x2000, 0x1000, 0x1000);
	job_run(&job, 0x9000, 0, 0x1000);
	job_replaces(&job, id);
	job_instance(&job, 7);
	job_place(&job, 0x123, 0x9ff0, 0x11); /* leaves the runs: refused */
	job_place(&job, 0x123, 0x9ff0, 0x10);
	job_moved(&job, id, moved, 2); /* not ascending: refused */
	job_moved(&job, other, moved, 1);
	job_moved(&job, id, moved, 1); /* once more: not repeated */
	job_image(&job, &head);	       /* there is one, the first */
	write_job(&img, &job);
	assert_int_equal(img.result.nr_bad, 3);
	nh = image_bytes(&img, image_section(&img, PSEUDOIMG_NOTE_SECTION));
	assert_int_equal(nh->n_type, PSEUDOIMG_NOTE_TYPE);
	assert_int_equal(nh->n_namesz, 5);
	assert_memory_equal(nh + 1, PSEUDOIMG_NOTE_OWNER "\0\0\0", 8);
	assert_true(nh->n_descsz <= sizeof(desc));
	memcpy(desc, (const char *)(nh + 1) + 8, nh->n_descsz);
	rec = wire_next(desc, nh->n_descsz, &pos);
	assert_int_equal(rec->type, WIRE_IMAGE);
	assert_memory_equal((const struct wire_image *)(const void *)rec + 1, "jith/x", 6);
	rec = wire_next(desc, nh->n_descsz, &pos);
	assert_int_equal(((const struct wire_run *)(const void *)rec)->vaddr, 0x2000);
	assert_int_equal(((const struct wire_run *)(const void *)rec)->len, 0x2000);
	rec = wire_next(desc, nh->n_descsz, &pos);
	assert_int_equal(((const struct wire_run *)(const void *)rec)->vaddr, 0x9000);
	rec = wire_next(desc, nh->n_descsz, &pos);
	assert_int_equal(rec->type, WIRE_REPLACES);
	rec = wire_next(desc, nh->n_descsz, &pos);
	assert_int_equal(rec->type, WIRE_INSTANCE);
	assert_int_equal(((const struct wire_instance *)(const void *)rec)->pid, 7);
	rec = wire_next(desc, nh->n_descsz, &pos);
	assert_int_equal(rec->type, WIRE_PLACE);
	assert_int_equal(((const struct wire_place *)(const void *)rec)->len, 0x10);
	rec = wire_next(desc, nh->n_descsz, &pos);
	assert_int_equal(rec->type, WIRE_REPLACES);
	assert_int_equal(((const struct wire_replaces *)(const void *)rec)->nr_moved, 1);
	assert_null(wire_next(desc, nh->n_descsz, &pos));
	assert_int_equal(pos, nh->n_descsz);
	image_release(&img);
}

/* ---- jobs nobody should send ----------------------------------------------------------------- */

static void full_job(struct base_buf *job)
{
	static const struct wire_line lines[] = { { .line = 3 },
						  { .code_off = 2, .line = 4, .file = 1 } };
	static const char *const files[] = { "/a", "/b", NULL };
	struct base_buf dst = { 0 };

	put_dst_module(&dst, 0, 4, 'd');
	job_image(job, &head);
	job_run(job, 0x1000, 0, 0x1000);
	job_run(job, 0x5000, 0x1000, 0x1000);
	job_routine(job, &(struct job_routine){ .addr = 0x1000,
						.name = "r",
						.code = code,
						.code_len = 4,
						.lines = lines,
						.nr_lines = 2,
						.files = files });
	job_bytes(job, WIRE_RANGE_CODE, 0x5000, 0x100, code, 4);
	job_bytes(job, WIRE_RANGE_DST, 0x7000, 0x100, dst.data, dst.len);
	base_buf_release(&dst);
}

static void test_every_cut(void **state)
{
	struct base_buf job = { 0 };

	(void)state;
	full_job(&job);
	for (size_t len = 0; len < job.len; len++) {
		struct base_buf cut = { 0 };
		struct image img;

		base_buf_append(&cut, job.data, len);
		image_write(&img, &cut);
		assert_true(img.status == 0 || (img.status == -DCPI_EFORMAT && img.err.code));
		assert_true(len % 8 == 0 || img.status < 0);
		image_release(&img);
		base_buf_release(&cut);
	}
	base_buf_release(&job);
}

static void test_every_changed_byte(void **state)
{
	static const uint8_t masks[] = { 0x01, 0x80, 0xff };
	struct base_buf job = { 0 };

	(void)state;
	full_job(&job);
	for (size_t i = 0; i < job.len * 3; i++) {
		struct image img;

		job.data[i / 3] ^= masks[i % 3];
		image_write(&img, &job);
		assert_int_equal(!img.status, !img.err.code);
		image_release(&img);
		job.data[i / 3] ^= masks[i % 3];
	}
	base_buf_release(&job);
}

static void test_bad_heads(void **state)
{
	struct base_buf job = { 0 };
	struct job_image other = head;
	struct image img;

	(void)state;
	write_job(&img, &job);
	assert_int_equal(img.status, -DCPI_EFORMAT);
	job_run(&job, 0x1000, 0, 0x1000);
	write_job(&img, &job);
	assert_int_equal(img.status, -DCPI_EFORMAT);
	other.machine = EM_S390;
	job_image(&job, &other);
	write_job(&img, &job);
	assert_int_equal(img.status, -DCPI_EUNSUPPORTED);
}

/* A disk that is full, a descriptor that cannot seek. */
static void test_write_errors(void **state)
{
	struct base_buf job = { 0 };
	struct pseudoimg_result result;
	struct base_err err = { 0 };
	int ends[2];

	(void)state;
	full_job(&job);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pseudoimg_write(job.data, job.len, ends[1], &result, &err), -ESPIPE);
	assert_string_equal(err.text, "cannot write image: Illegal seek");
	close(ends[0]);
	close(ends[1]);
	base_buf_release(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_scattered_code),
		cmocka_unit_test(test_too_scattered),
		cmocka_unit_test(test_refused_routines),
		cmocka_unit_test(test_first_come_stays),
		cmocka_unit_test(test_first_run_stays),
		cmocka_unit_test(test_owned_ranges),
		cmocka_unit_test(test_absolute_dst),
		cmocka_unit_test(test_trailing_zeros),
		cmocka_unit_test(test_changed_code),
		cmocka_unit_test(test_dst_in_parts),
		cmocka_unit_test(test_dst_ends_in_zeros),
		cmocka_unit_test(test_bad_dst),
		cmocka_unit_test(test_first_range_is_the_base),
		cmocka_unit_test(test_nested_and_overlapping_dst),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_note),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_every_changed_byte),
		cmocka_unit_test(test_bad_heads),
		cmocka_unit_test(test_write_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
