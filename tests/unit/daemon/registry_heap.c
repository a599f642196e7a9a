/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_registry.h"
#include "registry.h"

enum { RING = 64 << 10, NR = 5 };

static void open_some(struct fake *f)
{
	fake_open(f, RING);
	fake_facility(f, "a");
	for (unsigned int i = 0; i < NR; i++)
		fake_slot_routine(f, 10 + i, 0x10000 + i * 0x100, "routine");
	f->h->seq = 10 + NR - 1;
}

/* All of the list, in as many calls as it takes; what they counted as malformed. */
static int list(struct fake *f, const struct registry_memory *memory, struct base_buf *out,
		unsigned int *calls)
{
	struct registry_place place = { .tail = f->h->head };
	int nr_bad = 0, r;

	base_buf_clear(out);
	for (*calls = 0; place.list_at != REGISTRY_NO_LIST; ++*calls) {
		struct base_buf one = { 0 };

		r = registry_parse(f->fd, memory, &place, &one);
		assert_true(r >= 0);
		assert_true(one.len < 2 * REGISTRY_ANSWER_SOFT);
		nr_bad += r;
		assert_int_equal(base_buf_append(out, one.data, one.len), 0);
		base_buf_release(&one);
	}
	assert_int_equal(fake_count(out, WIRE_LISTED), 1);
	return nr_bad;
}

static void test_list(void **state)
{
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	const struct wire_routine *r;
	const struct wire_listed *l;
	struct base_buf out = { 0 };
	unsigned int calls;
	struct fake f;

	(void)state;
	open_some(&f);
	f.h->nr_unlisted = 3;
	/* Not wanted, not told. */
	assert_int_equal(registry_parse(f.fd, NULL, &place, &out), 0);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), 0);
	assert_int_equal(list(&f, NULL, &out, &calls), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), NR);
	for (unsigned int i = 0; i < NR; i++) {
		r = fake_nth(&out, WIRE_ROUTINE, i);
		assert_int_equal(r->seq, 10 + i);
		assert_int_equal(r->head.flags, WIRE_ROUTINE_LISTED);
	}
	l = fake_first(&out, WIRE_LISTED);
	assert_int_equal((const uint8_t *)l - out.data, out.len - sizeof(*l));
	assert_int_equal(l->seq_before, 10 + NR - 1);
	assert_int_equal(l->seq_after, 10 + NR - 1);
	assert_int_equal(l->nr_unlisted, 3);
	base_buf_release(&out);
	fake_close(&f);
}

static void test_nothing_lives(void **state)
{
	struct base_buf out = { 0 };
	unsigned int calls;
	struct fake f;

	(void)state;
	open_some(&f);
	for (uint8_t *p = f.heap; p < f.heap + f.h->heap_end; p += ((struct wire_slot *)p)->len)
		((struct wire_head *)(p + sizeof(struct wire_slot)))->type = WIRE_PAD;
	assert_int_equal(list(&f, NULL, &out, &calls), 0);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), 0);
	/* No heap at all: nobody lives either. */
	f.h->heap_len = f.h->heap_end = 0;
	assert_int_equal(list(&f, NULL, &out, &calls), 0);
	base_buf_release(&out);
	fake_close(&f);
}

/* The list is as of a moment after all that was in the ring. */
static void test_ring_first(void **state)
{
	struct registry_place place = { 0 };
	struct base_buf out = { 0 };
	const struct wire_routine *r;
	struct fake f;

	(void)state;
	open_some(&f);
	fake_put_routine(&f, 0, 0x90000, "in the ring", NULL, 8);
	assert_int_equal(registry_parse(f.fd, NULL, &place, &out), 0);
	assert_int_equal(place.tail, f.h->head);
	assert_int_equal(place.list_at, REGISTRY_NO_LIST);
	r = fake_first(&out, WIRE_ROUTINE);
	assert_int_equal(r->addr, 0x90000);
	assert_int_equal(r->head.flags, 0);
	assert_int_equal(place.seq, r->seq);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), 1 + NR);
	base_buf_release(&out);
	fake_close(&f);
}

/* ---- lies ------------------------------------------------------------------------------------ */

static void check_lie(void (*lie)(struct fake *f), const char *what, int nr_bad, unsigned int good)
{
	struct base_buf out = { 0 };
	unsigned int calls;
	struct fake f;

	open_some(&f);
	lie(&f);
	if (list(&f, NULL, &out, &calls) != nr_bad || fake_count(&out, WIRE_ROUTINE) != good)
		fail_msg("%s: %u routines", what, fake_count(&out, WIRE_ROUTINE));
	base_buf_release(&out);
	fake_close(&f);
}

static struct wire_slot *nth_slot(struct fake *f, unsigned int n)
{
	uint8_t *p = f->heap;

	while (n--)
		p += ((struct wire_slot *)p)->len;
	return (void *)p;
}
#define HEAD(n) ((struct wire_head *)(nth_slot(f, (n)) + 1))
#define LIES(X)                                                                                    \
	/* A slot's length that lies ends the list: what is behind it cannot be told. */           \
	X(nth_slot(f, 2)->len = 0, 1, 2)                                                           \
	X(nth_slot(f, 2)->len = 8, 1, 2)                                                           \
	X(nth_slot(f, 2)->len = 100, 1, 2)                                                         \
	X(nth_slot(f, 2)->len = UINT32_MAX & ~63u, 1, 2)                                           \
	X(nth_slot(f, 0)->len = 1u << 31, 1, 0)                                                    \
	/* Overlapping: it leads into the next one's middle, or over it. */                        \
	X(nth_slot(f, 2)->len = 64, 2, 2)                                                          \
	X(nth_slot(f, 2)->len *= 2, 0, NR - 1)                                                     \
	/* A record that is none costs itself. */                                                  \
	X(HEAD(2)->len = 0, 1, NR - 1)                                                             \
	X(HEAD(2)->len = 9, 1, NR - 1)                                                             \
	X(HEAD(2)->len += 64, 1, NR - 1)                                                           \
	X(HEAD(2)->len = UINT32_MAX & ~7u, 1, NR - 1)                                              \
	X(HEAD(2)->type = 0, 1, NR - 1)                                                            \
	X(HEAD(2)->type = WIRE_RETIRE, 1, NR - 1)                                                  \
	X(HEAD(2)->type = WIRE_LISTED, 1, NR - 1)                                                  \
	X(HEAD(2)->flags = WIRE_ROUTINE_CODE, 1, NR - 1)                                           \
	X(HEAD(2)->flags = WIRE_ROUTINE_FETCHED, 0, NR)                                            \
	X(((struct wire_routine *)HEAD(2))->facility = 7, 1, NR - 1)                               \
	X(((struct wire_routine *)HEAD(2))->nr_lines = 1 << 20, 1, NR - 1)                         \
	X(((struct wire_routine *)HEAD(2))->seq = 0, 1, NR - 1)                                    \
	X(((struct wire_routine *)HEAD(2))->seq = 1, 0, NR)                                        \
	/* Being changed, and never done: what it was is not known. */                             \
	X(nth_slot(f, 2)->version++, 0, NR - 1)                                                    \
	X(nth_slot(f, 0)->version++, 0, NR - 1)                                                    \
	/* An end that lies: what the heap holds is read; zeros end it. */                         \
	X(f->h->heap_end = UINT64_MAX, 2, NR)                                                      \
	X(f->h->heap_end = f->h->heap_len + 64, 2, NR)                                             \
	X(f->h->heap_end = f->h->heap_len, 1, NR)                                                  \
	X(f->h->heap_end = 8, 1, 0)                                                                \
	X(f->h->heap_end = 64, 1, 0)                                                               \
	X(f->h->heap_end += 8, 1, NR)

static unsigned int chosen;

static void lie(struct fake *f)
{
	unsigned int n = 0;

#define X(change, nr_bad, good)                                                                    \
	if (n++ == chosen)                                                                         \
		change;
	LIES(X)
#undef X
}

static void test_lies(void **state)
{
	(void)state;
	chosen = 0;
#define X(change, nr_bad, good) check_lie(lie, #change, nr_bad, good), chosen++;
	LIES(X)
#undef X
}

/* Where the file has holes it is zero. */
static void test_hole(void **state)
{
	struct base_buf out = { 0 };
	unsigned int calls;
	struct fake f;

	(void)state;
	open_some(&f);
	/* 80 bytes and 8 of a slot's head: 128. */
	assert_int_equal(nth_slot(&f, 1)->len, 128);
	for (unsigned int i = NR; i < 64; i++)
		fake_slot_routine(&f, 10 + i, 0x10000 + i * 0x100, "routine");
	assert_int_equal(fallocate(f.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   (off_t)f.h->heap_off + 4096, 4096),
			 0);
	assert_int_equal(list(&f, NULL, &out, &calls), 1);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), 4096 / 128);
	base_buf_release(&out);
	/* The header itself. */
	assert_int_equal(fallocate(f.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
	assert_int_equal(registry_parse(f.fd, NULL, &(struct registry_place){ 0 }, &out),
			 -DCPI_EFORMAT);
	base_buf_release(&out);
	fake_close(&f);
}

/* Much of nothing: each call ends in time, and goes on. */
static void test_huge(void **state)
{
	const uint64_t heap_len = 256ull << 20, step = 32 << 20;
	struct wire_slot slot = { .len = (uint32_t)step };
	struct wire_head head = { .len = 8, .type = WIRE_PAD };
	struct base_buf out = { 0 };
	unsigned int calls;
	struct fake f;

	(void)state;
	open_some(&f);
	f.h->heap_off = base_align_up(f.len, WIRE_PAGE);
	f.h->heap_len = heap_len;
	f.h->heap_end = heap_len / 4;
	assert_int_equal(ftruncate(f.fd, (off_t)(f.h->heap_off + heap_len)), 0);
	f.h->total_len = f.h->heap_off + heap_len;
	for (uint64_t at = f.h->heap_off; at < f.h->total_len; at += step) {
		assert_int_equal(pwrite(f.fd, &slot, sizeof(slot), (off_t)at), sizeof(slot));
		assert_int_equal(pwrite(f.fd, &head, sizeof(head), (off_t)at + 8), sizeof(head));
	}
	assert_int_equal(list(&f, NULL, &out, &calls), 0);
	base_buf_release(&out);
	f.h->heap_len += WIRE_SLOT_ALIGN;
	assert_int_equal(registry_parse(f.fd, NULL, &(struct registry_place){ 0 }, &out),
			 -DCPI_EFORMAT);
	base_buf_release(&out);
	fake_close(&f);
}

/* ---- a process that goes on ------------------------------------------------------------------ */

struct memory {
	struct fake *f;
	unsigned int calls;
	unsigned int changes; /* so many of the first calls change something */
	unsigned int slot;
	bool move; /* the routine, else only its slot's version */
};

static ssize_t memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct memory *m = ctx;
	struct wire_slot *slot = nth_slot(m->f, m->slot);
	struct wire_routine *r = (void *)(slot + 1);

	if (m->calls++ < m->changes) {
		slot->version += 2;
		if (m->move) {
			r->addr += 0x100000;
			r->seq = ++m->f->h->seq;
		}
	}
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = (uint8_t)((addr + i) >> 8);
	return (ssize_t)len;
}

static void check_moving(struct memory *m, unsigned int good)
{
	struct registry_memory memory = { memory_read, m };
	struct base_buf out = { 0 };
	struct wire_routine_view v;
	unsigned int calls;
	struct fake f;

	m->f = &f;
	open_some(&f);
	assert_int_equal(list(&f, &memory, &out, &calls), 0);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), good);
	for (unsigned int i = 0; i < good; i++) {
		const struct wire_head *h = fake_nth(&out, WIRE_ROUTINE, i);

		assert_int_equal(wire_routine_parse(h, &v), 0);
		assert_int_equal(v.rec->head.flags,
				 WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED | WIRE_ROUTINE_LISTED);
		assert_int_equal(v.code[0], (v.rec->addr >> 8) & 0xff);
	}
	base_buf_release(&out);
	fake_close(&f);
}

/* Who asks has the code of those up to a change: it is not read again. */
static void test_known(void **state)
{
	struct memory m = { 0 };
	struct registry_memory memory = { memory_read, &m };
	struct registry_place place = { .known_seq = 11 };
	struct base_buf out = { 0 };
	struct fake f;

	(void)state;
	m.f = &f;
	open_some(&f);
	place.tail = f.h->head;
	assert_int_equal(registry_parse(f.fd, &memory, &place, &out), 0);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), NR);
	for (unsigned int i = 0; i < NR; i++) {
		const struct wire_routine *r = fake_nth(&out, WIRE_ROUTINE, i);

		assert_int_equal(!(r->head.flags & WIRE_ROUTINE_CODE), r->seq <= 11);
	}
	base_buf_release(&out);
	fake_close(&f);
}

static void test_changes_meanwhile(void **state)
{
	struct memory at_rest = { 0 }, once = { .changes = 1, .slot = 3 },
		      moves = { .changes = 2, .slot = 1, .move = true },
		      first = { .changes = 3, .slot = 0, .move = true },
		      never_still = { .changes = UINT32_MAX, .slot = 2, .move = true };

	(void)state;
	check_moving(&at_rest, NR);
	/* All in one page. */
	assert_int_equal(at_rest.calls, 1);
	check_moving(&once, NR);
	assert_true(once.calls > 1);
	/* Where it went the ring tells: the list is of who came before it began. */
	check_moving(&moves, NR - 1);
	check_moving(&first, NR - 1);
	check_moving(&never_still, NR - 1);
	/* Bounded, though it never was. */
	assert_in_range(never_still.calls, 2, 100);
}

/* seq before and after tell between which changes it was. */
static void test_seq_moves(void **state)
{
	struct fake f;
	struct memory m = { .f = &f, .changes = 2, .slot = 4, .move = true };
	struct registry_memory memory = { memory_read, &m };
	struct base_buf out = { 0 };
	const struct wire_listed *l;
	unsigned int calls;

	(void)state;
	open_some(&f);
	assert_int_equal(list(&f, &memory, &out, &calls), 0);
	l = fake_first(&out, WIRE_LISTED);
	assert_int_equal(l->seq_before, 10 + NR - 1);
	assert_int_equal(l->seq_after, 10 + NR - 1 + 2);
	base_buf_release(&out);
	fake_close(&f);
}

/* More than one answer holds: the rest comes with the next, each routine once. */
static void test_bounded(void **state)
{
	enum { LEN = 768 << 10, MANY = 7 };
	struct fake f;
	struct memory m = { .f = &f };
	struct registry_memory memory = { memory_read, &m };
	struct base_buf out = { 0 };
	unsigned int calls;

	(void)state;
	fake_open(&f, RING);
	fake_facility(&f, "a");
	for (unsigned int i = 0; i < MANY; i++) {
		struct wire_routine *r =
			(void *)(fake_slot_routine(&f, i + 1, 0x10000000ull * i, "big") + 1);

		r->code_len = LEN;
	}
	assert_int_equal(list(&f, &memory, &out, &calls), 0);
	/* Where the CPU is taken away, in more calls. */
	assert_in_range(calls, 3, MANY + 1);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), MANY);
	assert_int_equal(m.calls, MANY);
	base_buf_release(&out);
	fake_close(&f);
}

/* A slot longer than what is read at once. */
static void test_long_slot(void **state)
{
	enum { NR_LINES = 9000 };
	struct wire_line *lines = calloc(NR_LINES, sizeof(*lines));
	struct fake_routine what = { .addr = 0x1000,
				     .name = "long",
				     .code_len = 16,
				     .lines = lines,
				     .nr_lines = NR_LINES,
				     .file = "f" };
	struct wire_routine *r = fake_routine(&what);
	struct base_buf out = { 0 };
	unsigned int calls;
	struct fake f;

	(void)state;
	open_some(&f);
	fake_slot(&f, r);
	fake_slot_routine(&f, 900, 0x90000, "behind");
	assert_int_equal(list(&f, NULL, &out, &calls), 0);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), NR + 2);
	base_buf_release(&out);
	fake_close(&f);
	free(r);
	free(lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_nothing_lives),
		cmocka_unit_test(test_ring_first),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_hole),
		cmocka_unit_test(test_huge),
		cmocka_unit_test(test_changes_meanwhile),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_seq_moves),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_long_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
