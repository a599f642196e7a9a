/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_registry.h"
#include "registry_internal.h"
#include "../routine_file.h"

enum { RING = 64 << 10 };

static const uint8_t code[32] = { 0x55, 0x48, 0x89, 0xe5, 0xc3 };

static int parse(struct fake *f, struct registry_place *place, struct base_buf *out)
{
	base_buf_clear(out);
	return registry_parse(f->fd, NULL, place, out);
}

static void test_good(void **state)
{
	struct base_buf out = { 0 };
	struct wire_routine_view v;
	struct fake f;
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };

	(void)state;
	fake_open(&f, RING);
	fake_facility(&f, "alpha");
	fake_facility(&f, "beta");
	fake_range(&f, 1, WIRE_RANGE_DST, 0x7000000, 4096);
	fake_put_routine(&f, 1, 0x10000, "one", code, sizeof(code));
	fake_put_routine(&f, 0, 0x20000, "two", code, 5);
	assert_int_equal(parse(&f, &place, &out), 0);
	assert_int_equal(place.tail, f.h->head);
	assert_int_equal(fake_count(&out, WIRE_FACILITY), 2);
	assert_int_equal(fake_count(&out, WIRE_RANGE), 1);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), 2);
	assert_int_equal(wire_routine_parse(fake_first(&out, WIRE_ROUTINE), &v), 0);
	assert_int_equal(v.rec->addr, 0x10000);
	assert_memory_equal(v.name, "one", 3);
	assert_memory_equal(v.code, code, sizeof(code));
	/* Nothing new: the tables alone. */
	assert_int_equal(parse(&f, &place, &out), 0);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), 0);
	assert_int_equal(fake_count(&out, WIRE_FACILITY), 2);
	base_buf_release(&out);
	fake_close(&f);
}

static void test_ring_wraps(void **state)
{
	struct base_buf out = { 0 };
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	unsigned int put = 0, seen = 0;
	struct fake f;

	(void)state;
	fake_open(&f, WIRE_PAGE);
	fake_facility(&f, "a");
	for (int turn = 0; turn < 80; turn++) {
		for (int i = 0; i < 9; i++, put++)
			fake_put_routine(&f, 0, 0x1000 + put * 64, "routine", code,
					 1 + put % sizeof(code));
		assert_int_equal(parse(&f, &place, &out), 0);
		assert_int_equal(place.tail, f.h->head);
		seen += fake_count(&out, WIRE_ROUTINE);
	}
	assert_true(f.h->head > 10 * WIRE_PAGE);
	assert_int_equal(seen, put);
	base_buf_release(&out);
	fake_close(&f);
}

static int header_with(size_t off, uint64_t value, size_t len)
{
	struct wire_registry h;
	struct fake f;
	int r;

	fake_open(&f, RING);
	memcpy(f.map + off, &value, len);
	r = registry_header_read(f.fd, &h);
	fake_close(&f);
	return r;
}
#define HEADER_WITH(field, value)                                                                  \
	header_with(offsetof(struct wire_registry, field), (value),                                \
		    sizeof(((struct wire_registry *)0)->field))

static void test_header_lies(void **state)
{
	struct wire_registry h;
	uint64_t off[] = { 0, 8, 4095, 4097, UINT64_MAX, UINT64_MAX - 7, 1ull << 40 };
	int fd;

	(void)state;
	assert_int_equal(HEADER_WITH(magic, 1), -DCPI_EFORMAT);
	assert_int_equal(HEADER_WITH(version, WIRE_REGISTRY_VERSION + 1), -DCPI_EVERSION);
	assert_int_equal(HEADER_WITH(header_len, 8192), -DCPI_EVERSION);
	/* Its code cannot be written as an image, or is another machine's. */
	assert_int_equal(HEADER_WITH(machine, EM_NONE), -DCPI_EUNSUPPORTED);
	assert_int_equal(HEADER_WITH(machine, EM_386), -DCPI_EUNSUPPORTED);
	assert_int_equal(HEADER_WITH(machine, EM_S390), -DCPI_EUNSUPPORTED);
	assert_int_equal(HEADER_WITH(machine, 0xffff0000u | REGISTRY_MACHINE), -DCPI_EUNSUPPORTED);
	assert_int_equal(HEADER_WITH(total_len, UINT64_MAX), -DCPI_EFORMAT);
	assert_int_equal(HEADER_WITH(total_len, 4096), -DCPI_EFORMAT);
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		assert_int_equal(HEADER_WITH(facilities_off, off[i]), -DCPI_EFORMAT);
		assert_int_equal(HEADER_WITH(ranges_off, off[i]), -DCPI_EFORMAT);
		assert_int_equal(HEADER_WITH(ring_off, off[i]), -DCPI_EFORMAT);
	}
	assert_int_equal(HEADER_WITH(ring_len, 0), -DCPI_EFORMAT);
	assert_int_equal(HEADER_WITH(ring_len, 100), -DCPI_EFORMAT);
	assert_int_equal(HEADER_WITH(ring_len, RING + (1 << 20)), -DCPI_EFORMAT);
	assert_int_equal(HEADER_WITH(ring_len, UINT64_MAX & ~4095ull), -DCPI_EFORMAT);
	/* Of the second version. */
	assert_int_equal(HEADER_WITH(heap_len, 0), 0);
	assert_int_equal(HEADER_WITH(heap_len, 100), -DCPI_EFORMAT);
	assert_int_equal(HEADER_WITH(heap_len, 1 << 20), -DCPI_EFORMAT);
	assert_int_equal(HEADER_WITH(heap_len, UINT64_MAX & ~63ull), -DCPI_EFORMAT);
	assert_int_equal(HEADER_WITH(heap_off, 64), -DCPI_EFORMAT);
	assert_int_equal(HEADER_WITH(heap_off, UINT64_MAX & ~63ull), -DCPI_EFORMAT);
	/* Words without a place, in the file or in memory. */
	assert_int_equal(HEADER_WITH(nr_words, 1024), -DCPI_EFORMAT);
	fd = memfd_create("short", MFD_CLOEXEC);
	assert_int_equal(write(fd, "DCPIREG1", 8), 8);
	assert_int_equal(registry_header_read(fd, &h), -DCPI_ETRUNCATED);
	close(fd);
}

enum { HEAD_STEP = 0x808 }; /* a copy of bytes of two values is no multiple of it */

static atomic_bool stop;

static void *move_head(void *registry)
{
	struct wire_registry *h = registry;

	while (!stop) {
		__atomic_store_n(&h->head, h->head + HEAD_STEP, __ATOMIC_RELEASE);
		for (int i = 0; i < 100; i++)
			__asm__ volatile("");
	}
	return NULL;
}

/*
 * Some CPUs copy byte by byte where the copy's place in its page is a few bytes behind the
 * original's.
 */
static void test_counters_are_whole(void **state)
{
	static _Alignas(WIRE_PAGE) uint8_t room[2 * WIRE_PAGE];
	uint64_t last = 0;
	pthread_t thread;
	struct fake f;

	(void)state;
	fake_open(&f, RING);
	assert_int_equal(pthread_create(&thread, NULL, move_head, f.h), 0);
	for (size_t i = 0; i < 20000; i++) {
		struct wire_registry *h = (void *)(room + i % 4 * 8);

		assert_int_equal(registry_header_read(f.fd, h), 0);
		assert_int_equal(h->head % HEAD_STEP, 0);
		assert_true(h->head >= last);
		last = h->head;
	}
	stop = true;
	pthread_join(thread, NULL);
	fake_close(&f);
}

static void test_words(void **state)
{
	struct wire_registry h;
	struct fake f;

	(void)state;
	fake_open(&f, RING);
#define TRY(change, result)                                                                        \
	do {                                                                                       \
		f.h->nr_words = 1024;                                                              \
		f.h->words_off = f.h->heap_off;                                                    \
		f.h->words_addr = 0x7f0000000000;                                                  \
		f.h->seq_addr = 0x7f0000001008;                                                    \
		change;                                                                            \
		assert_int_equal(registry_header_read(f.fd, &h), result);                          \
	} while (0)
	TRY((void)0, 0);
	TRY(f.h->nr_words = 0, 0);
	TRY(f.h->nr_words = 1000, -DCPI_EFORMAT);
	TRY(f.h->nr_words = 2 * WIRE_NR_WORDS, -DCPI_EFORMAT);
	TRY(f.h->nr_words = UINT32_MAX, -DCPI_EFORMAT);
	TRY(f.h->words_off = 8, -DCPI_EFORMAT);
	TRY(f.h->words_off = f.len - 4096, 0);
	TRY(f.h->words_off = f.len - 4088, -DCPI_EFORMAT);
	TRY(f.h->words_addr = 2, -DCPI_EFORMAT);
	TRY(f.h->words_addr = REGISTRY_VADDR_MAX - 4092, -DCPI_EFORMAT);
	TRY(f.h->words_addr = 0xffffffff81000000, -DCPI_EFORMAT);
	TRY(f.h->seq_addr = 0x7f0000001004, -DCPI_EFORMAT);
	TRY(f.h->seq_addr = 0xffffffff81000000, -DCPI_EFORMAT);
	TRY(f.h->inherited_addr = 0x7f0000001008, -DCPI_EFORMAT);
	TRY(f.h->inherited_addr = 0xffffffff81000000, -DCPI_EFORMAT);
#undef TRY
	fake_close(&f);
}

static void test_slot_lies(void **state)
{
	struct base_buf out = { 0 };
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	struct fake f;

	(void)state;
	fake_open(&f, RING);
	for (int i = 0; i < 6; i++)
		fake_facility(&f, "facility");
	f.facilities[1].name_len = 0;
	f.facilities[2].name_len = WIRE_FACILITY_NAME + 1;
	f.facilities[3].state = 7;
	f.facilities[4].state = WIRE_FACILITY_FREE;		 /* no lie */
	fake_range(&f, 0, WIRE_RANGE_CODE, 0x1000, 1);		 /* good */
	fake_range(&f, 0, WIRE_RANGE_NONE, 0, 0);		 /* no lie */
	fake_range(&f, 0, WIRE_RANGE_ARENA, 0x200000, 0x200000); /* no lie */
	fake_range(&f, 0, 9, 0x1000, 1);
	fake_range(&f, 1, WIRE_RANGE_CODE, 0x1000, 1);
	fake_range(&f, UINT32_MAX, WIRE_RANGE_CODE, 0x1000, 1);
	fake_range(&f, 0, WIRE_RANGE_CODE, 0x1000, 0);
	fake_range(&f, 0, WIRE_RANGE_CODE, 0x1000, UINT64_MAX);
	fake_range(&f, 0, WIRE_RANGE_CODE, REGISTRY_VADDR_MAX, 1);
	assert_int_equal(parse(&f, &place, &out), 3 + 6);
	assert_int_equal(fake_count(&out, WIRE_FACILITY), 2);
	assert_int_equal(fake_count(&out, WIRE_RANGE), 2);
	f.h->nr_facilities = UINT32_MAX;
	f.h->nr_ranges = UINT32_MAX;
	assert_int_equal(parse(&f, &place, &out), 3 + 6 + 2);
	assert_int_equal(fake_count(&out, WIRE_FACILITY), 2);
	base_buf_release(&out);
	fake_close(&f);
}

/* One record with a lie in it between two good ones: what is lost by it? */
static void check_lie(const char *what, struct wire_routine *record, int nr_bad,
		      unsigned int nr_good)
{
	struct base_buf out = { 0 };
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	struct fake f;

	fake_open(&f, RING);
	fake_facility(&f, "a");
	fake_put_routine(&f, 0, 0x10000, "before", code, 8);
	if (record->seq == 1)
		record->seq = fake_seq();
	/* Its place in the ring is that of a record of 64 bytes, whatever it says. */
	memcpy(f.ring + f.h->head, record, 64);
	f.h->head += 64;
	fake_put_routine(&f, 0, 0x20000, "behind", code, 8);
	if (parse(&f, &place, &out) != nr_bad || fake_count(&out, WIRE_ROUTINE) != nr_good ||
	    place.tail != f.h->head)
		fail_msg("%s", what);
	base_buf_release(&out);
	fake_close(&f);
}

static void test_record_lies(void **state)
{
	static const struct wire_routine good = {
		.head = { .len = 64, .type = WIRE_ROUTINE, .flags = WIRE_ROUTINE_CODE },
		.seq = 1,
		.addr = 0x30000,
		.code_len = 8
	};
	static const uint32_t lengths[] = {
		0, 4, 7, 12, 1000, 70000, UINT32_MAX & ~7u, WIRE_RECORD_MAX + 8
	};
	static const uint16_t ours[] = { WIRE_FACILITY, WIRE_RANGE, WIRE_BYTES,
					 WIRE_IMAGE,	WIRE_RUN,   WIRE_REPLACES,
					 WIRE_LISTED,	WIRE_PLACE, WIRE_INSTANCE };
	union {
		struct wire_routine r;
		uint8_t space[64];
	} u = { 0 };
#define TRY(change, bad, nr_good)                                                                  \
	do {                                                                                       \
		u.r = good;                                                                        \
		change;                                                                            \
		check_lie(#change, &u.r, bad, nr_good);                                            \
	} while (0)

	(void)state;
	TRY((void)0, 0, 3);
	/* A length that lies ends the reading, at the head. */
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		TRY(u.r.head.len = lengths[i], 1, 1);
	TRY(u.r.name_len = 100, 1, 2);
	TRY(u.r.name_len = UINT32_MAX, 1, 2);
	TRY(u.r.code_len = 0, 1, 2);
	TRY(u.r.code_len = UINT64_MAX, 1, 2);
	TRY(u.r.code_len = 17, 1, 2);
	TRY(u.r.nr_lines = 1, 1, 2);
	TRY(u.r.nr_lines = UINT32_MAX, 1, 2);
	TRY(u.r.nr_files = 40, 1, 2);
	TRY(u.r.seq = 0, 1, 2);
	TRY(u.r.facility = 1, 1, 2);
	TRY(u.r.facility = UINT32_MAX, 1, 2);
	TRY(u.r.addr = UINT64_MAX - 3, 1, 2);
	TRY(u.r.addr = REGISTRY_VADDR_MAX, 1, 2);
	TRY(u.r.addr = REGISTRY_VADDR_MAX - 4, 1, 2);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		TRY(u.r.head.type = ours[i], 1, 2);
	TRY(u.r.head.type = 999, 0, 2);
	TRY(u.r.head.type = WIRE_PAD, 0, 2);
}

static void test_cursor_lies(void **state)
{
	static const uint64_t heads[] = { 8, 1, RING + 16, UINT64_MAX, UINT64_MAX & ~7ull };
	struct base_buf out = { 0 };
	struct fake f;

	(void)state;
	fake_open(&f, RING);
	fake_facility(&f, "a");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct registry_place place = { .tail = i == 0 ? 16 : 0,
						.list_at = REGISTRY_NO_LIST };

		f.h->head = heads[i];
		assert_int_equal(parse(&f, &place, &out), 1);
		assert_int_equal(place.tail, heads[i]);
		assert_int_equal(fake_count(&out, WIRE_ROUTINE), 0);
	}
	base_buf_release(&out);
	fake_close(&f);
}

/* ---- code that is fetched -------------------------------------------------------------------- */

struct memory {
	uint64_t base;
	const uint8_t *bytes;
	size_t len;
	uint64_t hole;	    /* a page that cannot be read, 0: none */
	struct fake *moves; /* whose head moves meanwhile */
	unsigned int calls;
};

static ssize_t memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct memory *m = ctx;
	uint64_t end = m->base + m->len;

	m->calls++;
	if (m->moves)
		m->moves->h->head += m->moves->h->ring_len;
	if (m->hole && addr < m->hole && m->hole < end)
		end = m->hole;
	if (addr < m->base || addr >= end || (m->hole && addr - m->hole < WIRE_PAGE))
		return -EFAULT;
	len = len < end - addr ? len : (size_t)(end - addr);
	memcpy(to, m->bytes + (addr - m->base), len);
	return (ssize_t)len;
}

static void test_code_fetched(void **state)
{
	static const struct wire_line lines[] = { { 0, 7, 0, 0, 0 }, { 4, 8, 0, 0, 0 } };
	struct memory m = { .base = 0x10000, .bytes = code, .len = sizeof(code) };
	struct registry_memory memory = { memory_read, &m };
	struct fake_routine what = { .addr = 0x10000,
				     .name = "fetched",
				     .code_len = sizeof(code),
				     .lines = lines,
				     .nr_lines = 2,
				     .file = "a.src" };
	struct wire_routine *r = fake_routine(&what);
	struct base_buf out = { 0 };
	struct wire_routine_view v;
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	size_t len;
	struct fake f;

	(void)state;
	fake_open(&f, RING);
	fake_facility(&f, "a");
	fake_put(&f, r);
	assert_int_equal(registry_parse(f.fd, &memory, &place, &out), 0);
	assert_int_equal(wire_routine_parse(fake_first(&out, WIRE_ROUTINE), &v), 0);
	assert_int_equal(v.rec->head.flags, WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED);
	assert_memory_equal(v.name, "fetched", 7);
	assert_memory_equal(v.code, code, sizeof(code));
	assert_memory_equal(v.lines, lines, sizeof(lines));
	assert_memory_equal(routine_file(&v, 0, &len), "a.src", 5);
	/* Not there: the routine stays, without code. */
	m.len = 20;
	place = (struct registry_place){ .list_at = REGISTRY_NO_LIST };
	base_buf_clear(&out);
	assert_int_equal(registry_parse(f.fd, &memory, &place, &out), 0);
	assert_int_equal(wire_routine_parse(fake_first(&out, WIRE_ROUTINE), &v), 0);
	assert_null(v.code);
	/* A client cannot say that bytes were fetched. */
	r->head.flags = WIRE_ROUTINE_FETCHED;
	r->seq++;
	fake_put(&f, r);
	base_buf_clear(&out);
	assert_int_equal(registry_parse(f.fd, NULL, &place, &out), 0);
	assert_int_equal(((const struct wire_head *)fake_first(&out, WIRE_ROUTINE))->flags, 0);
	free(r);
	base_buf_release(&out);
	fake_close(&f);
}

static void test_ring_overwritten(void **state)
{
	struct fake f;
	struct memory m = { .moves = &f };
	struct registry_memory memory = { memory_read, &m };
	struct base_buf out = { 0 };
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };

	(void)state;
	fake_open(&f, RING);
	fake_facility(&f, "a");
	fake_put_routine(&f, 0, 0x1000, "old", NULL, 8);
	assert_int_equal(registry_parse(f.fd, &memory, &place, &out), -ESTALE);
	base_buf_release(&out);
	fake_close(&f);
}

static void test_bounded_answer(void **state)
{
	enum { BIG = 512 << 10, NR = 7 };
	uint8_t *big = calloc(1, BIG);
	struct base_buf out = { 0 };
	unsigned int seen = 0, calls = 0;
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	struct fake f;

	(void)state;
	fake_open(&f, 16 << 20);
	fake_facility(&f, "a");
	for (int i = 0; i < NR; i++)
		fake_put_routine(&f, 0, 0x1000000ull * (uint64_t)(i + 1), "big", big, BIG);
	while (place.tail < f.h->head) {
		assert_int_equal(parse(&f, &place, &out), 0);
		assert_true(out.len < REGISTRY_ANSWER_SOFT + BIG + 4096);
		seen += fake_count(&out, WIRE_ROUTINE);
		calls++;
	}
	assert_int_equal(seen, NR);
	/* Two by their length; more where the time of one is over first. */
	assert_in_range(calls, 2, NR);
	free(big);
	base_buf_release(&out);
	fake_close(&f);
}

/* Records of which nothing becomes take time all the same. */
static void test_bounded_time(void **state)
{
	enum { LEN = 3 << 20 };
	const struct wire_head pad = { .len = sizeof(pad), .type = WIRE_PAD };
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	struct base_buf out = { 0 };
	unsigned int calls = 0;
	struct fake f;

	(void)state;
	fake_open(&f, LEN);
	for (size_t i = 0; i < LEN; i += sizeof(pad))
		memcpy(f.ring + i, &pad, sizeof(pad));
	f.h->head = LEN;
	for (uint64_t before = 0; place.tail < f.h->head; before = place.tail, calls++) {
		struct parse p = { .fd = f.fd, .out = &out, .deadline_ns = 1 };

		assert_int_equal(registry_header_read(f.fd, &p.h), 0);
		assert_int_equal(registry_ring_take(&p, &place), 0);
		assert_int_equal(p.nr_bad, 0);
		assert_true(place.tail > before);
	}
	assert_true(calls > 1);
	assert_int_equal(out.len, 0);
	fake_close(&f);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

enum { PAGES = 64 };

static int read_range(struct memory *m, uint64_t base, uint64_t len, struct base_buf *out)
{
	struct registry_memory memory = { memory_read, m };
	struct wire_range range = {
		.facility = 3, .kind = WIRE_RANGE_CODE, .base = base, .len = len
	};

	base_buf_clear(out);
	return registry_range_read(&range, &memory, out);
}

static void test_range_contents(void **state)
{
	uint8_t *bytes = calloc(PAGES, WIRE_PAGE);
	struct memory m = { .base = 0x100000, .bytes = bytes, .len = PAGES * WIRE_PAGE };
	struct base_buf out = { 0 };
	const struct wire_bytes *b;

	(void)state;
	assert_int_equal(read_range(&m, m.base, m.len, &out), 0);
	assert_int_equal(out.len, 0);
	/* Not from a page's start; a small gap stays within one record; the end is cut. */
	memset(bytes + 100, 0xaa, 50);
	bytes[3 * WIRE_PAGE] = 1;
	assert_int_equal(read_range(&m, m.base + 100, m.len - 100, &out), 0);
	b = (const void *)fake_first(&out, WIRE_BYTES);
	assert_int_equal(b->head.len, out.len);
	assert_int_equal(wire_check(&b->head), 0);
	assert_int_equal(b->vaddr, m.base + 100);
	assert_int_equal(b->bytes_len, 3 * WIRE_PAGE - 100 + 1);
	assert_int_equal(b->facility, 3);
	assert_int_equal(b->kind, WIRE_RANGE_CODE);
	assert_memory_equal(b + 1, bytes + 100, b->bytes_len);
	/* A large one begins another. */
	bytes[40 * WIRE_PAGE + 7] = 2;
	assert_int_equal(read_range(&m, m.base, m.len, &out), 0);
	assert_int_equal(fake_count(&out, WIRE_BYTES), 2);
	base_buf_release(&out);
	free(bytes);
}

static void test_range_holes(void **state)
{
	uint8_t *bytes = calloc(PAGES, WIRE_PAGE);
	struct memory m = { .base = 0x100000,
			    .bytes = bytes,
			    .len = PAGES * WIRE_PAGE,
			    .hole = 0x100000 + 2 * WIRE_PAGE };
	struct base_buf out = { 0 };
	const struct wire_bytes *b;

	(void)state;
	memset(bytes, 0x11, 8 * WIRE_PAGE);
	assert_int_equal(read_range(&m, m.base, m.len, &out), 0);
	b = (const void *)fake_first(&out, WIRE_BYTES);
	assert_int_equal(b->bytes_len, 8 * WIRE_PAGE);
	assert_int_equal(((const uint8_t *)(b + 1))[2 * WIRE_PAGE - 1], 0x11);
	assert_int_equal(((const uint8_t *)(b + 1))[2 * WIRE_PAGE], 0);
	assert_int_equal(((const uint8_t *)(b + 1))[3 * WIRE_PAGE], 0x11);
	/* The range is longer than what is mapped. */
	m.hole = 0;
	assert_int_equal(read_range(&m, m.base, 1ull << 50, &out), 0);
	assert_int_equal(fake_count(&out, WIRE_BYTES), 1);
	assert_int_equal(read_range(&m, UINT64_MAX - 100, 4096, &out), -EINVAL);
	base_buf_release(&out);
	free(bytes);
}

/* ---- identity -------------------------------------------------------------------------------- */

struct elf {
	Elf64_Ehdr e;
	Elf64_Phdr p;
	Elf64_Nhdr n;
	char name[4];
	uint8_t id[20];
};

static int file_with(const void *data, size_t len)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_int_equal(write(fd, data, len), len);
	return fd;
}

static struct base_id id_of(const void *data, size_t len)
{
	struct base_id id = { 0 };
	int fd = file_with(data, len);

	assert_int_equal(registry_file_id(fd, &id, NULL), 0);
	close(fd);
	return id;
}

static void test_file_id(void **state)
{
	struct elf good = { .e = { .e_phoff = sizeof(Elf64_Ehdr),
				   .e_phnum = 1,
				   .e_phentsize = sizeof(Elf64_Phdr) },
			    .p = { .p_type = PT_NOTE,
				   .p_offset = offsetof(struct elf, n),
				   .p_filesz = sizeof(struct elf) - offsetof(struct elf, n),
				   .p_align = 4 },
			    .n = { 4, 20, NT_GNU_BUILD_ID },
			    .name = "GNU",
			    .id = { 1, 2, 3, 20 } },
		   bad;
	struct base_id id, other;

	(void)state;
	memcpy(good.e.e_ident, ELFMAG, SELFMAG);
	good.e.e_ident[EI_CLASS] = ELFCLASS64;
	good.e.e_ident[EI_DATA] = ELFDATA2LSB;
	id = id_of(&good, sizeof(good));
	assert_int_equal(id.len, 20);
	assert_memory_equal(id.bytes, good.id, 20);
	/* Whatever is wrong with it, there is an identity, by contents. */
#define BAD(change)                                                                                \
	do {                                                                                       \
		bad = good;                                                                        \
		change;                                                                            \
		other = id_of(&bad, sizeof(bad));                                                  \
		assert_int_equal(other.len, 20);                                                   \
		assert_memory_not_equal(other.bytes, good.id, 20);                                 \
	} while (0)
	BAD(bad.e.e_phoff = UINT64_MAX);
	BAD(bad.e.e_phnum = 0);
	BAD(bad.e.e_phnum = 65535);
	BAD(bad.e.e_phentsize = 1);
	BAD(bad.p.p_offset = UINT64_MAX - 3);
	BAD(bad.p.p_filesz = 0);
	BAD(bad.n.n_namesz = UINT32_MAX);
	BAD(bad.n.n_descsz = UINT32_MAX);
	BAD(bad.n.n_descsz = 0);
	BAD(bad.e.e_ident[EI_DATA] = ELFDATA2MSB);
	other = id_of("#!/bin/sh\n", 10);
	assert_int_equal(other.len, 20);
	id = id_of("#!/bin/ksh", 10);
	assert_false(base_id_equal(&id, &other));
}

static int extent_of(const void *data, size_t len, struct base_extent *out)
{
	int fd = file_with(data, len), r = base_elf_extent(fd, out);

	close(fd);
	return r;
}

/* The first executable segment says where, all of them how much; numbers are not believed. */
static void test_file_extent(void **state)
{
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr p[4];
	} elf = { .e = { .e_phoff = sizeof(Elf64_Ehdr),
			 .e_phnum = 4,
			 .e_phentsize = sizeof(Elf64_Phdr) },
		  .p = { { .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0x700 },
			 { .p_type = PT_LOAD,
			   .p_flags = PF_R | PF_X,
			   .p_offset = 0x1000,
			   .p_vaddr = 0x402000,
			   .p_filesz = 0x123 },
			 { .p_type = PT_LOAD, .p_flags = PF_X, .p_offset = 0x2000, .p_filesz = 1 },
			 { .p_type = PT_GNU_STACK, .p_flags = PF_X, .p_filesz = 9 } } };
	struct base_extent extent;

	(void)state;
	memcpy(elf.e.e_ident, ELFMAG, SELFMAG);
	elf.e.e_ident[EI_CLASS] = ELFCLASS64;
	elf.e.e_ident[EI_DATA] = ELFDATA2LSB;
	assert_int_equal(extent_of(&elf, sizeof(elf), &extent), 0);
	assert_int_equal(extent.start, 0x401000);
	assert_int_equal(extent.size, 0x124);
	elf.p[2].p_filesz = UINT64_MAX;
	assert_int_equal(extent_of(&elf, sizeof(elf), &extent), -ENOENT);
	assert_int_equal(extent.size, 0);
	elf.e.e_phnum = 1;
	assert_int_equal(extent_of(&elf, sizeof(elf), &extent), -ENOENT);
	assert_int_equal(extent_of("#!/bin/sh\n", 10, &extent), -ENOENT);
}

static void test_process_life(void **state)
{
	uint64_t start = 0, life = 0, again = 0;

	(void)state;
	assert_int_equal(registry_process_life(getpid(), &start, &life), 0);
	assert_true(start > 0 && life != 0);
	assert_int_equal(registry_process_life(getpid(), NULL, &again), 0);
	assert_int_equal(life, again);
	assert_int_equal(registry_process_life(INT32_MAX, &start, &life), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_ring_wraps),
		cmocka_unit_test(test_header_lies),
		cmocka_unit_test(test_slot_lies),
		cmocka_unit_test(test_record_lies),
		cmocka_unit_test(test_cursor_lies),
		cmocka_unit_test(test_code_fetched),
		cmocka_unit_test(test_ring_overwritten),
		cmocka_unit_test(test_bounded_answer),
		cmocka_unit_test(test_range_contents),
		cmocka_unit_test(test_range_holes),
		cmocka_unit_test(test_file_id),
		cmocka_unit_test(test_file_extent),
		cmocka_unit_test(test_process_life),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_bounded_time),
		cmocka_unit_test(test_counters_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
