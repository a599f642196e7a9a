/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime_reading.h"
#include "small_jitdump.h"

/* A header, a good record, what a test appends, and a good record where it calls finish. */
struct dump {
	struct reading rd;
	struct base_buf bytes;
};

#define ALPHA "time 1\n1 routine 1000+8 alpha code 0007\n"
#define OMEGA "2 routine 2000+8 omega code 0007\n"

static int setup(void **state)
{
	static struct dump d;

	d = (struct dump){ 0 };
	reading_begin(&d.rd, foreign_jitdump_read);
	small_jitdump_begin(&d.bytes);
	small_jitdump_load(&d.bytes, 1, 0x1000, 8, "alpha");
	*state = &d;
	return 0;
}

static int teardown(void **state)
{
	struct dump *d = *state;

	reading_end(&d->rd);
	base_buf_release(&d->bytes);
	return 0;
}

static void finish(struct dump *d)
{
	small_jitdump_load(&d->bytes, 1, 0x2000, 8, "omega");
	reading_write(&d->rd, d->bytes.data, d->bytes.len);
}

/* ---- records --------------------------------------------------------------------------------- */

static void test_lengths(void **state)
{
	static const uint32_t lies[] = { 1, 8, 15 };
	struct dump *d = *state;
	size_t at = d->bytes.len;

	finish(d);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct reading rd;

		small_jitdump_set(&d->bytes, at, struct jitdump_load, head.total_size, lies[i]);
		reading_begin(&rd, foreign_jitdump_read);
		reading_write(&rd, d->bytes.data, d->bytes.len);
		assert_int_equal(reading_step(&rd), 0);
		assert_false(rd.place.at_end);
		assert_int_equal(rd.place.off, at);
		assert_int_equal(reading_step(&rd), -DCPI_EFORMAT);
		assert_int_equal(reading_step(&rd), -DCPI_EFORMAT);
		reading_check(&rd, ALPHA);
		reading_end(&rd);
	}
}

/* It cannot be told from one that is being written. */
static void test_longer_than_the_file(void **state)
{
	struct dump *d = *state;
	size_t at = d->bytes.len;

	finish(d);
	assert_int_equal(pwrite(d->rd.file.fd, &(uint32_t){ UINT32_MAX }, 4, (off_t)at + 4), 4);
	assert_int_equal(reading_run(&d->rd), 0);
	assert_int_equal(d->rd.place.off, at);
	reading_check(&d->rd, ALPHA);
}

static void test_zeros_between(void **state)
{
	struct dump *d = *state;
	size_t at = d->bytes.len;

	assert_int_equal(base_buf_extend(&d->bytes, 5 << 20, NULL), 0);
	finish(d);
	assert_int_equal(reading_run(&d->rd), 0);
	assert_int_equal(d->rd.place.off, at);
	reading_check(&d->rd, ALPHA);
}

static void test_few_zeros_between(void **state)
{
	struct dump *d = *state;

	assert_int_equal(base_buf_extend(&d->bytes, 64, NULL), 0);
	finish(d);
	assert_int_equal(reading_run(&d->rd), -DCPI_EFORMAT);
	reading_check(&d->rd, ALPHA);
}

static void test_bad_loads(void **state)
{
	static const struct {
		uint64_t addr, len;
	} bad[] = {
		{ 0x3000, 0 },
		{ 0x3000, 9 }, /* the name's NUL */
		{ 0x3000, WIRE_CODE_MAX + 1 },
		{ 0x3000, UINT64_MAX },
		{ 0x3000, (uint64_t)-56 },
		{ 0, 8 },
		{ UINT64_MAX - 3, 8 },
		{ (1ull << 56) - 7, 8 },
	};
	struct dump *d = *state;
	size_t nr = sizeof(bad) / sizeof(bad[0]);

	for (size_t i = 0; i < nr; i++) {
		size_t at = small_jitdump_load(&d->bytes, 1, 0x3000, 8, "bad");

		small_jitdump_set(&d->bytes, at, struct jitdump_load, code_addr, bad[i].addr);
		small_jitdump_set(&d->bytes, at, struct jitdump_load, code_size, bad[i].len);
	}
	finish(d);
	assert_int_equal(reading_run(&d->rd), 0);
	reading_check(&d->rd, ALPHA OMEGA);
	assert_int_equal(d->rd.nr_bad, nr);
}

static void test_code_too_long(void **state)
{
	struct dump *d = *state;

	small_jitdump_load(&d->bytes, 1, 0x3000, WIRE_CODE_MAX + 1, "too long");
	small_jitdump_load(&d->bytes, 1, 0x2000, WIRE_CODE_MAX, "omega");
	reading_write(&d->rd, d->bytes.data, d->bytes.len);
	assert_int_equal(reading_run(&d->rd), 0);
	reading_check(&d->rd, ALPHA "2 routine 2000+1000000 omega code 00ff\n");
	assert_int_equal(d->rd.nr_bad, 1);
}

static void test_name_without_end(void **state)
{
	struct dump *d = *state;
	size_t at = small_jitdump_load(&d->bytes, 1, 0x3001, 8, "name");

	d->bytes.data[at + sizeof(struct jitdump_load) + 4] = 'x';
	finish(d);
	assert_int_equal(reading_run(&d->rd), 0);
	reading_check(&d->rd, ALPHA OMEGA);
	assert_int_equal(d->rd.nr_bad, 1);
}

static void test_short_records(void **state)
{
	static const uint8_t body[64] = { 1 };
	struct dump *d = *state;

	small_jitdump_record(&d->bytes, JITDUMP_LOAD, 1, NULL, 0);
	small_jitdump_record(&d->bytes, JITDUMP_LOAD, 1, body, 39);
	small_jitdump_record(&d->bytes, JITDUMP_LOAD, 1, body, 40);
	small_jitdump_record(&d->bytes, JITDUMP_MOVE, 1, body, 47);
	small_jitdump_record(&d->bytes, JITDUMP_DEBUG, 1, body, 15);
	finish(d);
	assert_int_equal(reading_run(&d->rd), 0);
	reading_check(&d->rd, ALPHA OMEGA);
	assert_int_equal(d->rd.nr_bad, 5);
}

static void test_bad_moves(void **state)
{
	struct dump *d = *state;

	small_jitdump_move(&d->bytes, 1, 0, 0x4000, 8);
	small_jitdump_move(&d->bytes, 1, 0x4000, UINT64_MAX, 8);
	small_jitdump_move(&d->bytes, 1, 0x4000, 0x5000, 0);
	small_jitdump_move(&d->bytes, 1, 0x4000, 0x5000, WIRE_CODE_MAX + 1);
	finish(d);
	assert_int_equal(reading_run(&d->rd), 0);
	reading_check(&d->rd, ALPHA OMEGA);
	assert_int_equal(d->rd.nr_bad, 4);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int with_header(const struct jitdump_header *header)
{
	struct reading rd;
	int r;

	reading_begin(&rd, foreign_jitdump_read);
	reading_write(&rd, header, sizeof(*header));
	r = reading_run(&rd);
	reading_end(&rd);
	return r;
}

static void test_headers(void **state)
{
	struct jitdump_header good, h;

	(void)state;
	small_jitdump_header(&good);
	assert_int_equal(with_header(&good), 0);
#define BAD(field, value, code)                                                                    \
	h = good;                                                                                  \
	h.field = value;                                                                           \
	assert_int_equal(with_header(&h), code)
	BAD(magic, JITDUMP_MAGIC_SWAPPED, -DCPI_EFORMAT);
	BAD(magic, 0x464c457f, -DCPI_EFORMAT);
	BAD(magic, 0, -DCPI_EFORMAT);
	BAD(version, 0, -DCPI_EVERSION);
	BAD(version, 2, -DCPI_EVERSION);
	BAD(flags, 2, -DCPI_EVERSION);
	BAD(elf_mach, EM_AARCH64, -DCPI_EFORMAT);
	BAD(elf_mach, EM_NONE, 0);
	BAD(total_size, 0, -DCPI_EFORMAT);
	BAD(total_size, 39, -DCPI_EFORMAT);
	BAD(total_size, UINT32_MAX, -DCPI_EFORMAT);
	BAD(total_size, 41, 0);
}

static void test_cut(void **state)
{
	struct dump *d = *state;

	finish(d);
	assert_int_equal(reading_run(&d->rd), 0);
	reading_check(&d->rd, ALPHA OMEGA);
	reading_resize(&d->rd, d->rd.place.off - 1);
	assert_int_equal(reading_run(&d->rd), -DCPI_ETRUNCATED);
	reading_resize(&d->rd, 0);
	assert_int_equal(reading_run(&d->rd), -DCPI_ETRUNCATED);
	/* As long as before, and another one. */
	reading_resize(&d->rd, d->rd.place.off);
	assert_int_equal(reading_run(&d->rd), -DCPI_ETRUNCATED);
	reading_check(&d->rd, "");
}

static void test_no_file(void **state)
{
	struct dump *d = *state;
	int fds[2];

	finish(d);
	close(d->rd.file.fd);
	assert_int_equal(pipe(fds), 0);
	d->rd.file.fd = fds[0];
	assert_int_equal(reading_run(&d->rd), -EINVAL);
	close(fds[1]);
}

static int is_dump(const void *bytes, size_t len)
{
	struct reading rd;
	int r;

	reading_begin(&rd, foreign_jitdump_read);
	reading_write(&rd, bytes, len);
	r = foreign_jitdump_is(rd.file.fd);
	reading_end(&rd);
	return r;
}

static void test_is(void **state)
{
	(void)state;
	assert_int_equal(is_dump("DTiJ", 4), 1);
	assert_int_equal(is_dump("JiTD and more", 13), 1);
	assert_int_equal(is_dump("\177ELF", 4), 0);
	assert_int_equal(is_dump("DTi", 3), 0);
	assert_int_equal(is_dump("", 0), 0);
	assert_int_equal(is_dump("\0\0\0\0\0", 5), 0);
	assert_int_equal(foreign_jitdump_is(-1), -EBADF);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_lengths),
		T(test_longer_than_the_file),
		T(test_zeros_between),
		T(test_few_zeros_between),
		T(test_bad_loads),
		T(test_code_too_long),
		T(test_name_without_end),
		T(test_short_records),
		T(test_bad_moves),
		T(test_headers),
		T(test_cut),
		T(test_no_file),
		T(test_is),
	};

	return cmocka_run_group_tests_name("foreign/jitdump_lies", tests, NULL, NULL);
}
