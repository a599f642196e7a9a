/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime_reading.h"
#include "small_jitdump.h"

struct dump {
	struct reading rd;
	struct base_buf bytes; /* to be written */
};

static int setup(void **state)
{
	static struct dump d;

	d = (struct dump){ 0 };
	reading_begin(&d.rd, foreign_jitdump_read);
	small_jitdump_begin(&d.bytes);
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

static void write_out(struct dump *d)
{
	reading_write(&d->rd, d->bytes.data, d->bytes.len);
	base_buf_clear(&d->bytes);
}

static void expect(struct dump *d, const char *text)
{
	write_out(d);
	assert_int_equal(reading_run(&d->rd), 0);
	reading_check(&d->rd, text);
}

/* ---- what is seen in the field --------------------------------------------------------------- */

static void test_load(void **state)
{
	struct dump *d = *state;

	small_jitdump_load(&d->bytes, 100, 0x1010, 32, "alpha");
	small_jitdump_load(&d->bytes, 100, 0x2000, 1, "LazyCompile:*fib prog.js:3:13");
	small_jitdump_load(&d->bytes, 101, 0x1010, 16, "");
	expect(d, "time 100\n"
		  "1 routine 1010+20 alpha code 102f\n"
		  "2 routine 2000+1 LazyCompile:*fib prog.js:3:13 code 0000\n"
		  "time 101\n"
		  "3 routine 1010+10  code 101f\n");
	small_jitdump_load(&d->bytes, 90, 0x2000, 2, "alpha");
	expect(d, "time 90\n4 routine 2000+2 alpha code 0001\n");
	assert_int_equal(d->rd.nr_bad, 0);
	assert_int_equal(d->rd.place.nr_others, 0);
}

static void test_vma(void **state)
{
	struct dump *d = *state;
	size_t at = small_jitdump_load(&d->bytes, 7, 0x1000, 8, "alpha");

	small_jitdump_set(&d->bytes, at, struct jitdump_load, vma, 0x7000);
	expect(d, "time 7\n1 routine 1000+8 alpha code 0007\n");
}

static void test_skipped(void **state)
{
	static const uint8_t body[70] = { 1, 2, 3 };
	struct dump *d = *state;

	small_jitdump_record(&d->bytes, SMALL_UNWIND, 3, body, sizeof(body));
	small_jitdump_load(&d->bytes, 3, 0x1000, 8, "alpha");
	small_jitdump_record(&d->bytes, SMALL_OTHER, 3, body, 1);
	small_jitdump_record(&d->bytes, SMALL_CLOSE, 3, NULL, 0);
	small_jitdump_load(&d->bytes, 3, 0x1008, 8, "behind the end");
	expect(d, "time 3\n1 routine 1000+8 alpha code 0007\n"
		  "2 routine 1008+8 behind the end code 080f\n");
	assert_int_equal(d->rd.nr_bad, 0);
}

/* As V8 writes them, for 32 bytes of code: push rbp at 3, mov rbp, rsp at 4, and back from 23 on.
 */
struct unwinding {
	uint64_t size, hdr_size, mapped_size;
	uint8_t frame[68], hdr[20];
};
static const struct unwinding unwinding = {
	sizeof(unwinding.frame) + sizeof(unwinding.hdr),
	sizeof(unwinding.hdr),
	sizeof(unwinding.frame) + sizeof(unwinding.hdr),
	{ 0x18, 0,    0, 0,    0,    0,	   0,	 0, 3,	  'z',	'L',  'R',  0,	  1,
	  0x78, 16,   2, 0xff, 0x1b, 12,   7,	 8, 0x90, 1,	0,    0,    0,	  0,
	  0x20, 0,    0, 0,    0x20, 0,	   0,	 0, 0xbc, 0xff, 0xff, 0xff, 0x20, 0,
	  0,	0,    0, 0x44, 0x0e, 0x10, 0x86, 2, 0x43, 0x0d, 6,    0x50, 0x0d, 7,
	  0x41, 0x0e, 8, 0x44, 12,   6,	   16,	 0, 0,	  0,	0,    0 },
	{ 1 }
};

/* The row at 24 says that rbp is in memory below the stack pointer, which is no frame. */
#define UNWOUND                                                                                    \
	" frame +0 rsp+8 rbp 0 rbx 0 frame +4 rsp+16 rbp -16 rbx 0"                                \
	" frame +7 rbp+16 rbp -16 rbx 0 frame +17 rsp+16 rbp -16 rbx 0"                            \
	" frame +1c rbp+16 rbp -16 rbx 0"

static void test_unwinding(void **state)
{
	struct unwinding u = unwinding;
	struct dump *d = *state;

	small_jitdump_record(&d->bytes, SMALL_UNWIND, 3, &u, sizeof(u));
	small_jitdump_load(&d->bytes, 3, 0x1000, 32, "alpha");
	expect(d, "time 3\n1 routine 1000+20 alpha code 001f" UNWOUND "\n");
	/* It comes in two pieces. */
	small_jitdump_record(&d->bytes, SMALL_UNWIND, 3, &u, sizeof(u));
	expect(d, "");
	small_jitdump_load(&d->bytes, 3, 0x1000, 32, "beta");
	expect(d, "2 routine 1000+20 beta code 001f" UNWOUND "\n");
	/* It is of one routine, right behind it, of just that length. */
	small_jitdump_load(&d->bytes, 3, 0x1000, 32, "no more");
	small_jitdump_record(&d->bytes, SMALL_UNWIND, 3, &u, sizeof(u));
	small_jitdump_record(&d->bytes, SMALL_OTHER, 3, &u, 1);
	small_jitdump_load(&d->bytes, 3, 0x1000, 32, "not next");
	small_jitdump_record(&d->bytes, SMALL_UNWIND, 3, &u, sizeof(u));
	small_jitdump_load(&d->bytes, 3, 0x1000, 31, "shorter");
	expect(d, "3 routine 1000+20 no more code 001f\n4 routine 1000+20 not next code 001f\n"
		  "5 routine 1000+1f shorter code 001e\n");
	assert_int_equal(d->rd.nr_bad, 0);
}

static void test_bad_unwinding(void **state)
{
	struct dump *d = *state;
	struct unwinding u = unwinding;

	u.hdr_size = u.size + 1;
	small_jitdump_record(&d->bytes, SMALL_UNWIND, 3, &u, sizeof(u));
	small_jitdump_load(&d->bytes, 3, 0x1000, 32, "alpha");
	u = unwinding;
	u.size = UINT64_MAX;
	small_jitdump_record(&d->bytes, SMALL_UNWIND, 3, &u, sizeof(u));
	small_jitdump_load(&d->bytes, 3, 0x1000, 32, "beta");
	u = unwinding;
	memset(u.frame, 0xff, sizeof(u.frame));
	small_jitdump_record(&d->bytes, SMALL_UNWIND, 3, &u, sizeof(u));
	small_jitdump_load(&d->bytes, 3, 0x1000, 32, "gamma");
	small_jitdump_record(&d->bytes, SMALL_UNWIND, 3, &u, 7);
	small_jitdump_load(&d->bytes, 3, 0x1000, 32, "delta");
	/* A line's record that says it is where the other's address stands. */
	small_jitdump_debug(&d->bytes, UINT64_MAX, &(struct small_line){ 0x1004, 5, "a.c" }, 1);
	small_jitdump_load(&d->bytes, 3, 0x1000, 32, "epsilon");
	expect(d, "time 3\n1 routine 1000+20 alpha code 001f\n2 routine 1000+20 beta code 001f\n"
		  "3 routine 1000+20 gamma code 001f\n4 routine 1000+20 delta code 001f\n"
		  "5 routine 1000+20 epsilon code 001f\n");
}

static void test_move(void **state)
{
	struct dump *d = *state;

	small_jitdump_load(&d->bytes, 3, 0x1000, 8, "alpha");
	small_jitdump_move(&d->bytes, 4, 0x1000, 0x3010, 8);
	expect(d, "time 3\n1 routine 1000+8 alpha code 0007\ntime 4\n2 move 1000 3010+8\n");
	reading_use_memory(&d->rd);
	small_jitdump_move(&d->bytes, 4, 0x3010, 0x4020, 7);
	small_jitdump_move(&d->bytes, 4, 0x4020, 0x666ffe, 8);
	expect(d, "3 move 3010 4020+7 fetched 2026\n4 move 4020 666ffe+8\n");
	assert_int_equal(d->rd.nr_bad, 0);
}

static void test_other_process(void **state)
{
	struct dump *d = *state;
	const struct small_line line = { 0x1004, 5, "a.c" };
	size_t at;

	small_jitdump_load(&d->bytes, 3, 0x1000, 8, "alpha");
	small_jitdump_debug(&d->bytes, 0x1000, &line, 1);
	at = small_jitdump_load(&d->bytes, 3, 0x1000, 8, "a child's");
	small_jitdump_set(&d->bytes, at, struct jitdump_load, pid, SMALL_PID + 1);
	at = small_jitdump_move(&d->bytes, 4, 0x1000, 0x3010, 8);
	small_jitdump_set(&d->bytes, at, struct jitdump_load, pid, SMALL_PID + 1);
	small_jitdump_load(&d->bytes, 3, 0x1000, 8, "beta");
	expect(d, "time 3\n1 routine 1000+8 alpha code 0007\n2 routine 1000+8 beta code 0007\n");
	assert_int_equal(d->rd.place.nr_others, 2);
	assert_int_equal(d->rd.nr_bad, 0);
}

static void test_time_of_cpu(void **state)
{
	struct dump *d = *state;

	small_jitdump_set(&d->bytes, 0, struct jitdump_header, flags, JITDUMP_ARCH_TIME);
	small_jitdump_load(&d->bytes, 100, 0x1000, 8, "alpha");
	small_jitdump_load(&d->bytes, 101, 0x2000, 8, "beta");
	expect(d, "time 0\n1 routine 1000+8 alpha code 0007\n2 routine 2000+8 beta code 0007\n");
}

static void test_long_header(void **state)
{
	struct dump *d = *state;

	small_jitdump_set(&d->bytes, 0, struct jitdump_header, total_size, 48);
	base_buf_append(&d->bytes, "moreofit", 8);
	small_jitdump_load(&d->bytes, 1, 0x1000, 8, "alpha");
	expect(d, "time 1\n1 routine 1000+8 alpha code 0007\n");
}

static void test_long_name(void **state)
{
	static char name[WIRE_NAME_MAX + 2], text[WIRE_NAME_MAX + 100];
	struct dump *d = *state;

	memset(name, 'n', sizeof(name) - 1);
	small_jitdump_load(&d->bytes, 1, 0x1000, 8, name);
	snprintf(text, sizeof(text), "time 1\n1 routine 1000+8 %.*s code 0007\n",
		 (int)WIRE_NAME_MAX, name);
	expect(d, text);
}

static void test_numbers(void **state)
{
	struct dump *d = *state;

	d->rd.place.seq = UINT32_MAX - 1;
	small_jitdump_load(&d->bytes, 1, 0x1000, 8, "alpha");
	small_jitdump_load(&d->bytes, 1, 0x1000, 8, "beta");
	expect(d, "time 1\n4294967295 routine 1000+8 alpha code 0007\n"
		  "4294967297 routine 1000+8 beta code 0007\n");
}

/* ---- growth ---------------------------------------------------------------------------------- */

static void put_everything(struct base_buf *b)
{
	const struct small_line high[] = { { 0x1040, 1, "a.c" }, { 0x1050, 2, "\xff" } };
	const struct small_line beta[] = { { 0x2041, 7, "b.c" } };

	small_jitdump_debug(b, 0x1000, high, 2);
	small_jitdump_debug(b, 0x2000, beta, 1);
	small_jitdump_record(b, SMALL_UNWIND, 3, "0123456789", 10);
	small_jitdump_load(b, 3, 0x2000, 80, "beta");
	small_jitdump_load(b, 4, 0x1000, 80, "alpha");
	small_jitdump_load(b, 4, 0, 8, "nowhere");
	small_jitdump_move(b, 5, 0x1000, 0x4000, 80);
	small_jitdump_record(b, JITDUMP_DEBUG, 5, "short", 5);
	small_jitdump_load(b, 5, 0x1000, 4, "zeros at its end");
	memset(b->data + b->len - 4, 0, 4);
	small_jitdump_record(b, SMALL_CLOSE, 6, NULL, 0);
}

#define EVERYTHING                                                                                 \
	"time 3\n1 routine 2000+50 beta code 004f\n"                                               \
	"time 4\n2 routine 1000+50 alpha code 004f +0=a.c:1 +10=a.c:2\n"                           \
	"time 5\n3 move 1000 4000+50\n4 routine 1000+4 zeros at its end code 0000\n"

static void test_cut_everywhere(void **state)
{
	struct dump *d = *state;
	size_t len;

	put_everything(&d->bytes);
	len = d->bytes.len;
	for (size_t cut = 0; cut <= len; cut++) {
		struct reading rd;

		reading_begin(&rd, foreign_jitdump_read);
		reading_write(&rd, d->bytes.data, cut);
		assert_int_equal(reading_run(&rd), 0);
		reading_write(&rd, d->bytes.data + cut, len - cut);
		assert_int_equal(reading_run(&rd), 0);
		reading_check(&rd, EVERYTHING);
		assert_int_equal(rd.nr_bad, 2);
		assert_int_equal(rd.place.off, len);
		reading_end(&rd);
	}
}

static void test_byte_by_byte(void **state)
{
	struct dump *d = *state;

	put_everything(&d->bytes);
	for (size_t i = 0; i < d->bytes.len; i++) {
		reading_write(&d->rd, d->bytes.data + i, 1);
		assert_int_equal(reading_run(&d->rd), 0);
		/* Until the file is longer nothing can have come. */
		assert_false(d->rd.place.ahead);
	}
	reading_check(&d->rd, EVERYTHING);
	assert_int_equal(d->rd.nr_bad, 2);
}

/* A writer that makes room first: what it has not reached is zeros, to whatever length. */
static void test_zeros_behind(void **state)
{
	struct dump *d = *state;
	size_t len;

	put_everything(&d->bytes);
	len = d->bytes.len;
	reading_resize(&d->rd, 100 << 20);
	assert_int_equal(reading_run(&d->rd), 0);
	assert_int_equal(d->rd.place.off, 0);
	assert_true(d->rd.place.ahead);
	for (size_t i = 0; i < len;) {
		struct jitdump_head head;
		/* A header's bytes come as one, and so does what follows. */
		size_t n = i ? sizeof(head) : sizeof(struct jitdump_header);

		memcpy(&head, d->bytes.data + i, sizeof(head));
		assert_int_equal(pwrite(d->rd.file.fd, d->bytes.data + i, n, (off_t)i), n);
		if (i && head.total_size > n) {
			i += n;
			n = head.total_size - n;
			assert_int_equal(pwrite(d->rd.file.fd, d->bytes.data + i, n, (off_t)i), n);
		}
		i += n;
		assert_int_equal(reading_run(&d->rd), 0);
		assert_int_equal(d->rd.place.off, i);
		assert_true(d->rd.place.ahead);
	}
	reading_check(&d->rd, EVERYTHING);
	assert_int_equal(d->rd.nr_bad, 2);
}

/* Its head is there already, and nothing of what follows. */
static void test_zeros_within(void **state)
{
	struct dump *d = *state;
	size_t at = small_jitdump_load(&d->bytes, 3, 0x1000, 8, "alpha"), len = d->bytes.len;

	reading_write(&d->rd, d->bytes.data, at + sizeof(struct jitdump_head));
	reading_resize(&d->rd, 8192);
	assert_int_equal(reading_run(&d->rd), 0);
	assert_int_equal(d->rd.nr_bad, 0);
	assert_true(d->rd.place.ahead);
	assert_int_equal(pwrite(d->rd.file.fd, d->bytes.data, len, 0), len);
	assert_int_equal(reading_run(&d->rd), 0);
	reading_check(&d->rd, "time 3\n1 routine 1000+8 alpha code 0007\n");
}

static void test_bounded_answers(void **state)
{
	struct dump *d = *state;

	put_everything(&d->bytes);
	d->rd.file.answer_max = 0;
	expect(d, EVERYTHING);
	assert_int_equal(d->rd.nr_bad, 2);
	/* Those that say something, and the first that does not. */
	assert_int_equal(d->rd.nr_calls, 5);
}

static void test_late(void **state)
{
	struct dump *d = *state;

	put_everything(&d->bytes);
	d->rd.file.deadline_ns = 1;
	expect(d, EVERYTHING);
	assert_int_equal(d->rd.nr_bad, 2);
	assert_int_equal(d->rd.nr_calls, 11);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_load),	       T(test_vma),
		T(test_skipped),       T(test_move),
		T(test_unwinding),     T(test_move),
		T(test_bad_unwinding), T(test_move),
		T(test_other_process), T(test_time_of_cpu),
		T(test_long_header),   T(test_long_name),
		T(test_numbers),       T(test_cut_everywhere),
		T(test_byte_by_byte),  T(test_zeros_behind),
		T(test_zeros_within),  T(test_bounded_answers),
		T(test_late),
	};

	return cmocka_run_group_tests_name("foreign/jitdump", tests, NULL, NULL);
}
