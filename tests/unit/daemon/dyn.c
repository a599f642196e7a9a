/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "jit_internal.h"
#include "fake_registry.h"
#include "pseudoimg.h"

/* ---- recorded clients: no socket, no helper -------------------------------------------------- */

struct trial {
	struct dyn *dyn;
	struct images *images;
	struct process p;
	struct base_buf b;
	uint64_t seq;
};

static const uint8_t code_a[64] = { 0x90, 0x90, 0xc3, 1 };
static const uint8_t code_b[64] = { 0x90, 0xc3, 2 };

static void trial_open(struct trial *t)
{
	struct dyn_config config = { .host = "host one" };

	*t = (struct trial){ .images = images_new(),
			     .p = { .pid = 42, .uid = 7, .comm = "prog", .start_time_ns = 5000 } };
	config.images = t->images;
	assert_int_equal(dyn_open(&config, &t->dyn, NULL), 0);
}

static void trial_close(struct trial *t)
{
	if (t->p.dyn)
		dyn_end(t->dyn, &t->p);
	dyn_close(t->dyn);
	images_free(t->images);
	base_buf_release(&t->b);
}

/* What was collected is read at @time_ns; no change is missing. */
static void tell(struct trial *t, uint64_t time_ns)
{
	struct wire_head *h;

	for (size_t pos = 0; pos < t->b.len; pos += h->len) {
		h = (void *)(t->b.data + pos);
		if (h->type == WIRE_ROUTINE)
			((struct wire_routine *)h)->seq = ++t->seq;
	}
	assert_int_equal(dyn_records(t->dyn, &t->p, time_ns, t->b.data, t->b.len), 0);
	base_buf_clear(&t->b);
}

/* By time. */
static enum dyn_where ask(struct trial *t, struct process *p, uint64_t addr, uint64_t first_ns,
			  uint64_t time_ns, struct image **img, uint64_t *off)
{
	const struct dyn_query q = {
		.addr = addr, .first_ns = first_ns, .time_ns = time_ns, .count = 1
	};

	return dyn_lookup(t->dyn, p, &q, img, off);
}

static enum dyn_where where(struct trial *t, uint64_t addr, uint64_t time_ns)
{
	struct image *img = NULL;
	uint64_t off;

	return ask(t, &t->p, addr, time_ns, time_ns, &img, &off);
}

static uint64_t offset(struct trial *t, uint64_t addr, uint64_t time_ns)
{
	struct image *img = NULL;
	uint64_t off = UINT64_MAX;

	assert_int_equal(ask(t, &t->p, addr, time_ns, time_ns, &img, &off), DYN_FOUND);
	assert_non_null(img);
	return off;
}

static struct dyn_facility *facility(struct trial *t, uint32_t index)
{
	return t->p.dyn->own->facilities[index];
}

static void test_runs(void **state)
{
	struct trial t;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "jit/one:x");
	fake_routine_rec(&t.b, 0, 0x700010, "first", code_a, 16);
	fake_routine_rec(&t.b, 0, 0x300ff8, "spans pages", code_a, 16);
	fake_routine_rec(&t.b, 0, 0x701000, "next page", code_a, 16);
	fake_routine_rec(&t.b, 0, 0x700040, "same page", code_b, 16);
	tell(&t, 100);
	/* Whole pages, in order of registration. */
	assert_int_equal(offset(&t, 0x700010, 100), 0x10);
	assert_int_equal(offset(&t, 0x700040, 100), 0x40);
	assert_int_equal(offset(&t, 0x300ff8, 100), 0x1ff8);
	assert_int_equal(offset(&t, 0x301007, 100), 0x2007);
	assert_int_equal(offset(&t, 0x701005, 100), 0x3005);
	/* Beside routines, in their pages: nobody's. */
	assert_int_equal(where(&t, 0x700020, 100), DYN_NONE);
	assert_int_equal(where(&t, 0x700000, 100), DYN_NONE);
	assert_int_equal(where(&t, 0x999999, 100), DYN_NONE);
	/* The file's name begins with the facility, cleaned. */
	assert_memory_equal(facility(&t, 0)->stem, "jit_one_x-host_one-42-", 22);
	assert_string_equal(strrchr(facility(&t, 0)->stem, '.'), ".dyn");
	trial_close(&t);
}

static void test_runs_joined(void **state)
{
	struct trial t;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "j");
	for (uint64_t i = 0; i < 50; i++)
		fake_routine_rec(&t.b, 0, 0x400000 + i * 1000, "r", code_a, 64);
	tell(&t, 1);
	assert_ptr_equal(facility(&t, 0)->first_run, facility(&t, 0)->last_run);
	assert_int_equal(facility(&t, 0)->first_run->node.end, 0x40c000);
	trial_close(&t);
}

static void test_ranges(void **state)
{
	static const uint8_t text[] = { 1, 2, 3, 4 };
	struct trial t;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "owner");
	tell(&t, 50);
	fake_range_rec(&t.b, 0, 0, WIRE_RANGE_CODE, 0x10080, 0x4000);
	fake_range_rec(&t.b, 1, 0, WIRE_RANGE_DST, 0x90000, 0x1000);
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_CODE, 0x10080, 0x4000, text, sizeof(text));
	tell(&t, 100);
	assert_int_equal(offset(&t, 0x10080, 100), 0x80);
	assert_int_equal(offset(&t, 0x1407f, 100), 0x407f);
	assert_int_equal(where(&t, 0x1407f + 1, 100), DYN_NONE);
	assert_int_equal(where(&t, 0x1007f, 100), DYN_NONE);
	/* DST is no code; before the range was declared it was nobody's. */
	assert_int_equal(where(&t, 0x90000, 100), DYN_NONE);
	assert_int_equal(where(&t, 0x10080, 50), DYN_NONE);
	assert_int_equal(offset(&t, 0x10080, 60), 0x80);
	/* A range that says something else later, and lies of other kinds. */
	fake_range_rec(&t.b, 0, 0, WIRE_RANGE_CODE, 0x10080, 0x8000);
	fake_range_rec(&t.b, 2, 9, WIRE_RANGE_CODE, 0x1000, 0x8000);
	fake_range_rec(&t.b, 3, 0, WIRE_RANGE_CODE, UINT64_MAX / 2, 0x8000);
	fake_facility_rec(&t.b, 0, "other");
	tell(&t, 200);
	assert_int_equal(t.p.dyn->own->nr_bad, 4);
	assert_int_equal(where(&t, 0x10080 + 0x5000, 200), DYN_NONE);
	trial_close(&t);
}

/* Invariant 2: A, then B in its place, then A again. */
static void test_reuse(void **state)
{
	struct dyn_facility *f;
	struct trial t;
	uint64_t a, b;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "j");
	tell(&t, 50);
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	tell(&t, 100);
	a = offset(&t, 0x10000, 100);
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	tell(&t, 150);
	assert_int_equal(offset(&t, 0x10000, 150), a);
	assert_int_equal(facility(&t, 0)->nr_routines, 1);
	fake_routine_rec(&t.b, 0, 0x10020, "B", code_b, 64);
	tell(&t, 200);
	b = offset(&t, 0x10020, 200);
	f = facility(&t, 0);
	assert_int_equal(f->nr_routines, 2);
	assert_int_equal(dyn_routine_get(&t.p.dyn->own->lifetimes.routines, 1)->place,
			 DYN_PLACE_OWN);
	assert_int_equal(dyn_routine_get(&t.p.dyn->own->lifetimes.routines, 2)->place, 1);
	assert_int_not_equal(b & ~4095ull, a & ~4095ull);
	assert_int_equal(offset(&t, 0x1003f, 200), b + 0x1f);
	/* B began somewhere in (150, 200): until then A, from then on B, between nobody knows. */
	assert_int_equal(offset(&t, 0x10020, 150), a + 0x20);
	assert_int_equal(where(&t, 0x10020, 151), DYN_REUSED);
	assert_int_equal(where(&t, 0x10020, 199), DYN_REUSED);
	/* The rest of A: A alone, as long as it may have lived; then nobody. */
	assert_int_equal(offset(&t, 0x10000, 199), a);
	assert_int_equal(where(&t, 0x10000, 200), DYN_NONE);
	/* The rest of B, where nobody was before. */
	assert_int_equal(offset(&t, 0x10050, 151), b + 0x30);
	assert_int_equal(where(&t, 0x10050, 150), DYN_NONE);
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	tell(&t, 300);
	/* The same routine at the same place is the same place in the image. */
	assert_int_equal(f->nr_routines, 2);
	assert_int_equal(offset(&t, 0x10000, 300), a);
	assert_int_equal(where(&t, 0x10020, 250), DYN_REUSED);
	assert_int_equal(offset(&t, 0x10020, 200), b);
	assert_int_equal(offset(&t, 0x10020, 120), a + 0x20);
	trial_close(&t);
}

static void test_two_in_one_interval(void **state)
{
	struct trial t;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "j");
	tell(&t, 100);
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	fake_routine_rec(&t.b, 0, 0x10000, "B", code_a, 64);
	tell(&t, 200);
	assert_int_equal(where(&t, 0x10000, 150), DYN_REUSED);
	assert_int_equal(where(&t, 0x10000, 100), DYN_NONE);
	assert_int_equal(where(&t, 0x10000, 200), DYN_FOUND);
	trial_close(&t);
}

static void test_other_facility_takes_over(void **state)
{
	struct image *img = NULL, *img2 = NULL;
	struct trial t;
	uint64_t off;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "one");
	fake_facility_rec(&t.b, 1, "one");
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	tell(&t, 100);
	assert_false(dyn_reuses(&t.p));
	/* No other one was there before it was told of. */
	assert_true(dyn_lived(&t.p, 0x1003f, 50));
	assert_false(dyn_lived(&t.p, 0x10040, 150));
	fake_routine_rec(&t.b, 1, 0x10000, "A", code_a, 64);
	tell(&t, 200);
	assert_true(dyn_reuses(&t.p));
	assert_false(dyn_lived(&t.p, 0x1003f, 199));
	assert_true(dyn_lived(&t.p, 0x1003f, 200));
	assert_int_equal(ask(&t, &t.p, 0x10000, 100, 100, &img, &off), DYN_FOUND);
	assert_int_equal(ask(&t, &t.p, 0x10000, 200, 200, &img2, &off), DYN_FOUND);
	assert_ptr_not_equal(img, img2);
	assert_string_not_equal(img->stem, img2->stem);
	assert_int_equal(where(&t, 0x10000, 150), DYN_REUSED);
	trial_close(&t);
}

/* Counts over an interval: one lifetime all the time, or it is not known. */
static enum dyn_where span(struct trial *t, uint64_t addr, uint64_t first_ns, uint64_t time_ns,
			   uint64_t *off)
{
	struct image *img = NULL;

	return ask(t, &t->p, addr, first_ns, time_ns, &img, off);
}

static void test_intervals(void **state)
{
	uint64_t off = 0, a, b;
	struct trial t;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "j");
	tell(&t, 50);
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	tell(&t, 100);
	fake_routine_rec(&t.b, 0, 0x20000, "other", code_a, 64);
	tell(&t, 200);
	a = offset(&t, 0x10000, 200);
	/* Alone since 50 at the earliest: a sample before was somebody else's. */
	assert_int_equal(span(&t, 0x10000, 51, 200, &off), DYN_FOUND);
	assert_int_equal(off, a);
	assert_int_equal(span(&t, 0x10000, 50, 200, &off), DYN_REUSED);
	assert_int_equal(span(&t, 0x10000, 10, 50, &off), DYN_NONE);
	fake_routine_rec(&t.b, 0, 0x10000, "B", code_b, 32);
	tell(&t, 300);
	b = offset(&t, 0x10000, 300);
	/* A is gone between 200 and 300. */
	assert_int_equal(span(&t, 0x10000, 60, 200, &off), DYN_FOUND);
	assert_int_equal(off, a);
	assert_int_equal(span(&t, 0x10000, 60, 201, &off), DYN_REUSED);
	assert_int_equal(span(&t, 0x10000, 299, 400, &off), DYN_REUSED);
	assert_int_equal(span(&t, 0x10000, 300, 400, &off), DYN_FOUND);
	assert_int_equal(off, b);
	/* Where A was, and nobody after it: as long as it may have lived. */
	assert_int_equal(span(&t, 0x10030, 60, 299, &off), DYN_FOUND);
	assert_int_equal(span(&t, 0x10030, 60, 300, &off), DYN_REUSED);
	assert_int_equal(span(&t, 0x10030, 300, 400, &off), DYN_NONE);
	/* A, B and A again: the same offset at both ends tells nothing. */
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	tell(&t, 500);
	assert_int_equal(offset(&t, 0x10000, 500), a);
	assert_int_equal(span(&t, 0x10000, 60, 600, &off), DYN_REUSED);
	assert_int_equal(span(&t, 0x10000, 300, 400, &off), DYN_REUSED);
	assert_int_equal(span(&t, 0x10000, 500, 600, &off), DYN_FOUND);
	trial_close(&t);
}

/* A file came in the place of a range, or of a routine of it. */
static void test_range_mapped_over(void **state)
{
	struct dyn_query q = { .addr = 0x10010, .first_ns = 500, .time_ns = 500, .count = 1 };
	struct image *img = NULL;
	struct trial t;
	uint64_t off;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "box");
	fake_range_rec(&t.b, 0, 0, WIRE_RANGE_CODE, 0x10000, 0x4000);
	fake_routine_rec(&t.b, 0, 0x10040, "r", code_a, 16);
	tell(&t, 100);
	for (; q.addr <= 0x10040; q.addr += 0x30) {
		q.mapped_ns = 50;
		assert_int_equal(dyn_lookup(t.dyn, &t.p, &q, &img, &off), DYN_FOUND);
		q.mapped_ns = 400;
		assert_int_equal(dyn_lookup(t.dyn, &t.p, &q, &img, &off), DYN_NONE);
	}
	trial_close(&t);
}

static void test_range_in_an_interval(void **state)
{
	struct trial t;
	uint64_t off;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "owner");
	tell(&t, 50);
	fake_range_rec(&t.b, 0, 0, WIRE_RANGE_CODE, 0x10000, 0x4000);
	tell(&t, 100);
	assert_int_equal(span(&t, 0x10000, 10, 50, &off), DYN_NONE);
	assert_int_equal(span(&t, 0x10000, 50, 60, &off), DYN_REUSED);
	assert_int_equal(span(&t, 0x10000, 51, 200, &off), DYN_FOUND);
	trial_close(&t);
}

/* A client may evict as often as it likes; who asks for what is forgotten is told so. */
static void test_many_evictions(void **state)
{
	enum { NR = DYN_PAST_MAX + 100 };
	struct trial t;
	uint64_t off;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "j");
	for (uint64_t i = 0; i < NR; i++) {
		fake_routine_rec(&t.b, 0, 0x10000, i % 2 ? "A" : "B", code_a, 64);
		tell(&t, 10 + i);
	}
	assert_true(t.p.dyn->own->lifetimes.nr_past <= DYN_PAST_MAX);
	assert_int_equal(span(&t, 0x10000, 20, 20, &off), DYN_REUSED);
	assert_int_equal(span(&t, 0x10000, NR, NR, &off), DYN_FOUND);
	assert_int_equal(span(&t, 0x10000, NR, NR + 1, &off), DYN_REUSED);
	trial_close(&t);
}

/* A sample from before what is remembered is not guessed at. */
static void test_forgotten(void **state)
{
	const uint64_t later = 100 * DYN_PAST_NS;
	struct trial t;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "j");
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	tell(&t, 100);
	fake_routine_rec(&t.b, 0, 0x10000, "B", code_b, 64);
	tell(&t, 200);
	tell(&t, later);
	assert_int_equal(t.p.dyn->own->lifetimes.nr_past, 0);
	assert_int_equal(where(&t, 0x10000, later), DYN_FOUND);
	assert_int_equal(where(&t, 0x10000, 201), DYN_FOUND);
	assert_int_equal(where(&t, 0x10000, 150), DYN_REUSED);
	trial_close(&t);
}

static void test_many_routines(void **state)
{
	enum { NR = 20000 };
	struct trial t;
	uint64_t x = 1, bytes[9] = { 0 };

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "j");
	for (uint32_t i = 0; i < NR; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		bytes[0] = x;
		fake_routine_rec(&t.b, 0, 0x10000 + (x >> 40) % (NR * 4) * 32, "r", bytes,
				 8 + i % 60);
		if (i % 500 == 499)
			tell(&t, i);
	}
	/* Each that is in the tree is found at both of its ends, and they are disjoint. */
	const struct dyn_routines *all = &t.p.dyn->own->lifetimes.routines;
	uint64_t pos = 0, nr = 0;
	uint32_t n;

	while ((n = dyn_routine_overlap(all, all->live, pos, UINT64_MAX))) {
		const struct dyn_routine *r = dyn_routine_get(all, n);

		assert_true(r->addr >= pos && r->len);
		assert_true(r->flags & DYN_LIVE);
		assert_int_equal(dyn_routine_find(all, all->live, r->addr), n);
		assert_int_equal(dyn_routine_find(all, all->live, r->addr + r->len - 1), n);
		pos = r->addr + r->len;
		nr++;
	}
	assert_int_equal(nr, all->nr_live);
	assert_true(nr > NR / 4 && nr < NR);
	trial_close(&t);
}

static void test_changed_ranges(void **state)
{
	uint8_t text[3 * WIRE_PAGE] = { 0 };
	struct trial t;

	(void)state;
	trial_open(&t);
	memset(text, 0x90, 2 * WIRE_PAGE);
	fake_facility_rec(&t.b, 0, "owner");
	fake_range_rec(&t.b, 0, 0, WIRE_RANGE_CODE, 0x10000, 0x10000);
	fake_range_rec(&t.b, 1, 0, WIRE_RANGE_DST, 0x90000, 0x1000);
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_CODE, 0x10000, 0x10000, text, 2 * WIRE_PAGE - 8);
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_DST, 0x90000, 0x1000, "\4\2\3\0\0", 3);
	tell(&t, 100);
	/* Growth, in both, is no change. */
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_CODE, 0x10000, 0x10000, text, 2 * WIRE_PAGE);
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_DST, 0x90000, 0x1000, "\4\2\3\7\0", 4);
	tell(&t, 200);
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
	assert_int_equal(offset(&t, 0x10000, 200), 0);
	/* Changed code is another generation (dyn_patch.c); what was read first stays. */
	text[5] = 0xcc;
	text[2 * WIRE_PAGE] = 0x33;
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_CODE, 0x10000, 0x10000, text, 2 * WIRE_PAGE + 1);
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_DST, 0x90000, 0x1000, "\4\2\2\7\7", 5);
	tell(&t, 300);
	assert_int_equal(t.p.dyn->own->nr_bad, 2);
	assert_int_equal(where(&t, 0x10ff0, 299), DYN_REUSED);
	assert_int_equal(where(&t, 0x10ff0, 300), DYN_FOUND);
	assert_int_equal(offset(&t, 0x11000, 300), 0x1000);
	assert_int_equal(t.p.dyn->own->ranges[0].contents.data[5], 0x90);
	assert_int_equal(t.p.dyn->own->ranges[0].contents.data[2 * WIRE_PAGE], 0x33);
	assert_memory_equal(t.p.dyn->own->ranges[1].contents.data, "\4\2\3\7\7", 5);
	trial_close(&t);
}

/* @child, born at 150, has inherited routine A at 0x10000. */
static void trial_fork(struct trial *t, struct process *child)
{
	trial_open(t);
	fake_facility_rec(&t->b, 0, "j");
	fake_routine_rec(&t->b, 0, 0x10000, "A", code_a, 64);
	tell(t, 100);
	dyn_fork(t->dyn, &t->p, child, 150, NULL);
}

/* A routine at 0x20000, in a registry of @p's own. */
static void tell_of_own(struct trial *t, struct process *p, const char *name, uint64_t time_ns)
{
	fake_facility_rec(&t->b, 0, "j");
	fake_routine_rec(&t->b, 0, 0x20000, name, code_b, 64);
	assert_int_equal(dyn_records(t->dyn, p, time_ns, t->b.data, t->b.len), 0);
	base_buf_clear(&t->b);
}

static void test_fork(void **state)
{
	struct process child = { .pid = 43 }, grandchild = { .pid = 44 };
	struct image *img = NULL, *mine = NULL;
	struct trial t;
	uint64_t off;

	(void)state;
	trial_fork(&t, &child);
	fake_routine_rec(&t.b, 0, 0x10000, "B", code_b, 64);
	tell(&t, 200);
	fake_routine_rec(&t.b, 0, 0x20000, "C", code_b, 64);
	tell(&t, 300);
	dyn_fork(t.dyn, &child, &grandchild, 400, NULL);
	/* The fork came in the interval of B: what the child has is not known. C it has not. */
	assert_int_equal(ask(&t, &child, 0x10000, 500, 500, &img, &off), DYN_REUSED);
	assert_int_equal(ask(&t, &child, 0x20000, 500, 500, &img, &off), DYN_NONE);
	assert_int_equal(ask(&t, &t.p, 0x20000, 500, 500, &img, &off), DYN_FOUND);
	/* The grandchild inherited as of its parent's birth. */
	assert_int_equal(ask(&t, &grandchild, 0x20000, 500, 500, &mine, &off), DYN_NONE);
	/* With a registry of its own, that comes first. */
	tell_of_own(&t, &child, "D", 600);
	assert_int_equal(ask(&t, &child, 0x20000, 700, 700, &mine, &off), DYN_FOUND);
	assert_ptr_not_equal(mine, img);
	/* Before that its parent's code may have stood there, if its parent had any at the fork. */
	fake_routine_rec(&t.b, 0, 0x10000, "E", code_b, 64);
	assert_int_equal(dyn_records(t.dyn, &child, 700, t.b.data, t.b.len), 0);
	base_buf_clear(&t.b);
	assert_int_equal(ask(&t, &child, 0x10000, 650, 650, &mine, &off), DYN_REUSED);
	assert_int_equal(ask(&t, &child, 0x10000, 500, 700, &mine, &off), DYN_REUSED);
	assert_int_equal(ask(&t, &child, 0x10000, 700, 800, &mine, &off), DYN_FOUND);
	assert_int_equal(ask(&t, &child, 0x20000, 500, 500, &mine, &off), DYN_FOUND);
	dyn_end(t.dyn, &child);
	assert_null(child.dyn);
	/* The parent's code outlives it as long as a child may run it. */
	dyn_end(t.dyn, &t.p);
	assert_int_equal(ask(&t, &grandchild, 0x10000, 500, 500, &img, &off), DYN_REUSED);
	dyn_end(t.dyn, &grandchild);
	trial_close(&t);
}

static void add_seq(void *ctx, uint64_t addr, uint64_t len, uint64_t seq)
{
	uint64_t *sum = ctx;

	assert_true(addr == 0x10000 || addr == 0x20000);
	assert_int_equal(len, 64);
	sum[0]++;
	sum[1] = seq;
}

/* How many routines of @p live at 0x10000 and 0x20000; *@seq: the last one's number. */
static uint64_t nr_living(const struct process *p, uint64_t *seq)
{
	uint64_t sum[2] = { 0 };

	dyn_living(p, 0x1003f, 0x20001, add_seq, sum);
	*seq = sum[1];
	return sum[0];
}

/* What a child has inherited lives as long as its parent does not replace it; what it says itself
 * comes first. */
static void test_living(void **state)
{
	struct process child = { .pid = 43 }, unsure = { .pid = 44 };
	uint64_t seq, first, cursor;
	struct trial t;

	(void)state;
	trial_fork(&t, &unsure);
	cursor = t.p.dyn->own->lifetimes.last_seq;
	dyn_fork(t.dyn, &t.p, &child, 150, &cursor);
	assert_int_equal(nr_living(&t.p, &first), 1);
	assert_int_equal(nr_living(&child, &seq), 1);
	assert_int_equal(seq, first);
	assert_int_equal(nr_living(&unsure, &seq), 0);
	fake_routine_rec(&t.b, 0, 0x20000, "C", code_b, 64);
	tell(&t, 200);
	assert_int_equal(nr_living(&t.p, &seq), 2);
	assert_int_equal(nr_living(&child, &seq), 1);
	assert_int_equal(seq, first);
	fake_routine_rec(&t.b, 0, 0x10000, "B", code_b, 64);
	tell(&t, 300);
	assert_int_equal(nr_living(&t.p, &seq), 2);
	assert_int_equal(nr_living(&child, &seq), 0);
	tell_of_own(&t, &child, "D", 400);
	assert_int_equal(nr_living(&child, &seq), 1);
	dyn_end(t.dyn, &child);
	dyn_end(t.dyn, &unsure);
	trial_close(&t);
}

/* A routine at 0x10000 with the frame of a trace, as the reader hands it on. */
static void tell_frames(struct trial *t, uint64_t time_ns, int32_t cfa_off)
{
	const struct wire_frame frame = { .cfa_off = cfa_off, .fp_off = -16 };
	struct wire_routine *rec;
	void *end;

	fake_routine_rec(&t->b, 0, 0x10000, "T", code_b, 64);
	assert_int_equal(base_buf_extend(&t->b, sizeof(frame), &end), 0);
	memcpy(end, &frame, sizeof(frame));
	rec = (void *)t->b.data;
	rec->head.len += (uint32_t)sizeof(frame);
	rec->head.flags |= WIRE_ROUTINE_FRAMES;
	tell(t, time_ns);
}

static void get_seq(void *ctx, uint64_t addr, uint64_t len, uint64_t seq)
{
	(void)addr;
	(void)len;
	*(uint64_t *)ctx = seq;
}

/* Frames are told of who lives, and of a child's inherited routine. */
static void test_frames(void **state)
{
	struct process unsure = { .pid = 43 }, child = { .pid = 44 };
	struct wire_frame f[2];
	uint64_t seq = 0, cursor;
	struct trial t;

	(void)state;
	trial_fork(&t, &unsure);
	dyn_living(&t.p, 0x10000, 0x10001, get_seq, &seq);
	assert_int_equal(dyn_frames(&t.p, 0x10000, seq, f, 2), 0);
	tell_frames(&t, 200, 96);
	tell_frames(&t, 300, 112);
	dyn_living(&t.p, 0x10000, 0x10001, get_seq, &seq);
	assert_int_equal(dyn_frames(&t.p, 0x10000, seq, f, 2), 1);
	assert_int_equal(f[0].cfa_off, 112);
	assert_int_equal(f[0].fp_off, -16);
	assert_int_equal(dyn_frames(&t.p, 0x10000, seq, f, 0), 0);
	assert_int_equal(dyn_frames(&t.p, 0x10000, seq - 1, f, 2), 0);
	assert_int_equal(dyn_frames(&t.p, 0x10008, seq, f, 2), 0);
	cursor = t.p.dyn->own->lifetimes.last_seq;
	dyn_fork(t.dyn, &t.p, &child, 350, &cursor);
	assert_int_equal(dyn_frames(&child, 0x10000, seq, f, 2), 1);
	dyn_end(t.dyn, &unsure);
	dyn_end(t.dyn, &child);
	trial_close(&t);
}

/* A life after exec has its own registry alone, and what was inherited stays with the life before.
 */
static void test_hand_on(void **state)
{
	struct process child = { .pid = 43 }, next = { .pid = 43 }, grandchild = { .pid = 44 };
	struct image *img = NULL;
	struct trial t;
	uint64_t off;

	(void)state;
	trial_fork(&t, &child);
	/* Nothing of its own: nothing to hand on. */
	assert_int_equal(dyn_hand_on(&child, &next), 0);
	assert_null(next.dyn);
	tell_of_own(&t, &child, "B", 600);
	dyn_fork(t.dyn, &child, &grandchild, 400, NULL);
	assert_int_equal(dyn_hand_on(&child, &next), 0);
	assert_true(dyn_has_registry(&next));
	/* Whose heirs cannot have it either. */
	assert_int_equal(next.dyn->own->lifetimes.nr_forks, 0);
	assert_false(dyn_has_registry(&child));
	assert_int_equal(ask(&t, &next, 0x20000, 700, 700, &img, &off), DYN_FOUND);
	assert_int_equal(ask(&t, &next, 0x10000, 700, 700, &img, &off), DYN_NONE);
	assert_int_equal(ask(&t, &child, 0x10000, 140, 140, &img, &off), DYN_FOUND);
	assert_int_equal(ask(&t, &child, 0x20000, 700, 700, &img, &off), DYN_NONE);
	assert_int_equal(ask(&t, &grandchild, 0x20000, 700, 700, &img, &off), DYN_NONE);
	dyn_end(t.dyn, &grandchild);
	dyn_end(t.dyn, &child);
	dyn_end(t.dyn, &next);
	trial_close(&t);
}

/* Numbers in a recorded stream may say that a process was born of its own child. */
static void test_fork_in_a_circle(void **state)
{
	struct process child = { .pid = 43 };
	struct image *img = NULL;
	struct trial t;
	uint64_t off;

	(void)state;
	trial_fork(&t, &child);
	tell_of_own(&t, &child, "B", 200);
	dyn_fork(t.dyn, &child, &t.p, 300, NULL);
	assert_int_equal(ask(&t, &t.p, 0x30000, 400, 400, &img, &off), DYN_NONE);
	assert_int_equal(ask(&t, &child, 0x10000, 400, 400, &img, &off), DYN_FOUND);
	dyn_end(t.dyn, &child);
	trial_close(&t);
}

static void test_malformed_records(void **state)
{
	struct wire_routine *r;
	struct trial t;

	(void)state;
	trial_open(&t);
	fake_routine_rec(&t.b, 0, 0x1000, "no facility", code_a, 8);
	fake_facility_rec(&t.b, 0, "j");
	fake_facility_rec(&t.b, 64, "too many");
	fake_routine_rec(&t.b, 0, UINT64_MAX / 2, "nowhere", code_a, 8);
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_CODE, 0x5000, 0x1000, code_a, 8);
	tell(&t, 100);
	assert_int_equal(t.p.dyn->own->nr_bad, 4);
	fake_routine_rec(&t.b, 0, 0x1000, "cut", code_a, 8);
	r = (void *)t.b.data;
	r->head.len += 8;
	tell(&t, 200);
	assert_int_equal(t.p.dyn->own->nr_bad, 5);
	assert_int_equal(where(&t, 0x1000, 200), DYN_NONE);
	trial_close(&t);
}

/* ---- the job --------------------------------------------------------------------------------- */

static void write_job(const struct dyn_facility *f, struct pseudoimg_result *result)
{
	int fd = memfd_create("job", MFD_CLOEXEC), out = memfd_create("image", MFD_CLOEXEC);
	struct base_err err = { 0 };
	off_t len;
	uint8_t *job;

	assert_int_equal(dyn_facility_job(f, true, fd), 0);
	len = lseek(fd, 0, SEEK_END);
	job = malloc((size_t)len);
	assert_int_equal(pread(fd, job, (size_t)len, 0), len);
	if (pseudoimg_write(job, (size_t)len, out, result, &err) < 0)
		fail_msg("%s", err.text);
	free(job);
	close(fd);
	close(out);
}

static void test_job(void **state)
{
	struct pseudoimg_result one = { 0 }, two = { 0 }, again = { 0 };
	struct trial t;

	(void)state;
	trial_open(&t);
	t.dyn->config.keep_all = true;
	fake_facility_rec(&t.b, 0, "j");
	fake_facility_rec(&t.b, 1, "elsewhere");
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	fake_routine_rec(&t.b, 1, 0x50000, "X", code_a, 64);
	tell(&t, 100);
	write_job(facility(&t, 0), &one);
	assert_int_equal(one.nr_routines, 1);
	assert_int_equal(one.nr_bad, 0);
	/* The newcomer stands beside the old one. */
	fake_routine_rec(&t.b, 0, 0x10000, "B", code_b, 64);
	tell(&t, 200);
	write_job(facility(&t, 0), &two);
	assert_int_equal(two.nr_routines, 2);
	assert_int_equal(two.nr_bad, 0);
	assert_memory_not_equal(one.build_id, two.build_id, 20);
	write_job(facility(&t, 0), &again);
	assert_memory_equal(again.build_id, two.build_id, 20);
	trial_close(&t);
}

static unsigned int nr_of_type(const struct dyn_facility *f, bool full, uint16_t type,
			       struct wire_place *place)
{
	int fd = memfd_create("job", MFD_CLOEXEC);
	const struct wire_head *h;
	unsigned int nr = 0;
	uint8_t *job;
	off_t len;

	assert_int_equal(dyn_facility_job(f, full, fd), 0);
	len = lseek(fd, 0, SEEK_END);
	job = malloc((size_t)len);
	assert_int_equal(pread(fd, job, (size_t)len, 0), len);
	WIRE_FOR_EACH (h, job, (size_t)len, pos) {
		nr += h->type == type;
		if (h->type == WIRE_PLACE && type == WIRE_PLACE)
			memcpy(place, h, sizeof(*place));
	}
	free(job);
	close(fd);
	return nr;
}

/* A sample makes a routine stay, and gives it a place where its own is taken. */
static void test_what_is_kept(void **state)
{
	struct wire_place place;
	struct dyn_stats stats;
	struct dyn_facility *f;
	struct trial t;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "j");
	tell(&t, 50);
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	fake_routine_rec(&t.b, 0, 0x20000, "unsampled", code_a, 64);
	tell(&t, 100);
	fake_routine_rec(&t.b, 0, 0x10000, "B", code_b, 64);
	tell(&t, 200);
	fake_routine_rec(&t.b, 0, 0x10000, "C", code_b, 64);
	tell(&t, 300);
	f = facility(&t, 0);
	assert_int_equal(f->nr_routines, 4);
	/* Those that live and have a place; what must not be lost. */
	assert_int_equal(nr_of_type(f, true, WIRE_ROUTINE, NULL), 1);
	assert_int_equal(nr_of_type(f, false, WIRE_ROUTINE, NULL), 0);
	assert_false(dyn_facility_is_behind(f, false));
	assert_true(dyn_facility_is_behind(f, true));
	offset(&t, 0x10000, 100);
	offset(&t, 0x10000, 200);
	assert_true(f->image->behind);
	assert_int_equal(nr_of_type(f, false, WIRE_ROUTINE, NULL), 2);
	assert_int_equal(nr_of_type(f, true, WIRE_ROUTINE, NULL), 3);
	assert_int_equal(nr_of_type(f, false, WIRE_PLACE, &place), 1);
	assert_int_equal(place.vaddr, 0x10000);
	assert_int_equal(place.elf, PSEUDOIMG_MODULE);
	assert_int_equal(place.len, 64);
	assert_int_equal(place.from_seq, 3);
	assert_int_equal(place.until_seq, 4);
	offset(&t, 0x10000, 300);
	assert_int_equal(nr_of_type(f, false, WIRE_PLACE, &place), 2);
	assert_int_equal(place.until_seq, 0);
	/* Gone for long, and never sampled: forgotten. */
	fake_routine_rec(&t.b, 0, 0x10000, "D", code_b, 64);
	tell(&t, 400);
	fake_routine_rec(&t.b, 0, 0x10000, "E", code_b, 64);
	fake_routine_rec(&t.b, 0, 0x20000, "F", code_b, 64);
	tell(&t, 500);
	assert_int_equal(f->nr_routines, 7);
	tell(&t, 100 * DYN_PAST_NS);
	assert_int_equal(f->nr_routines, 5);
	dyn_stats_get(t.dyn, &stats);
	assert_int_equal(stats.routines, 5);
	/* Its address is free again for the next one. */
	assert_int_equal(nr_of_type(f, true, WIRE_ROUTINE, NULL), 3);
	fake_routine_rec(&t.b, 0, 0x20000, "G", code_b, 64);
	tell(&t, 100 * DYN_PAST_NS + 1);
	assert_int_equal(nr_of_type(f, true, WIRE_ROUTINE, NULL), 4);
	trial_close(&t);
}

/* What was on disk once keeps its offset, sampled or not. */
static void test_places_on_disk(void **state)
{
	struct dyn_routines *all;
	struct dyn_facility *f;
	struct trial t;
	uint64_t old;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "j");
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	tell(&t, 100);
	f = facility(&t, 0);
	all = &t.p.dyn->own->lifetimes.routines;
	dyn_facility_written(f, true);
	assert_false(dyn_facility_is_behind(f, true));
	/* It is in each later version, of those that hold no more than they must too. */
	assert_int_equal(nr_of_type(f, false, WIRE_ROUTINE, NULL), 1);
	fake_routine_rec(&t.b, 0, 0x10000, "B", code_b, 64);
	tell(&t, 200);
	tell(&t, 100 * DYN_PAST_NS);
	assert_int_equal(f->nr_routines, 1);
	assert_int_equal(dyn_routine_get(all, 1)->record, 0);
	assert_int_equal(dyn_facility_offset(f, 0x10000, &old), 0);
	assert_int_not_equal(offset(&t, 0x10000, 100 * DYN_PAST_NS), old);
	/* A again is another one. */
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	tell(&t, 200 * DYN_PAST_NS);
	assert_int_not_equal(offset(&t, 0x10000, 200 * DYN_PAST_NS), old);
	trial_close(&t);
}

static void retire_rec(struct trial *t, uint64_t addr, uint64_t len)
{
	struct wire_retire *r;
	void *p;

	assert_int_equal(base_buf_extend(&t->b, sizeof(*r), &p), 0);
	r = p;
	*r = (struct wire_retire){ .head = { .len = sizeof(*r), .type = WIRE_RETIRE },
				   .seq = ++t->seq,
				   .addr = addr,
				   .code_len = len };
}

/* What was read of a routine that is gone is not what stands where it stood. */
static void test_records_that_follow(void **state)
{
	struct dyn_facility *f;
	struct trial t;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "j");
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	tell(&t, 100);
	f = facility(&t, 0);
	retire_rec(&t, 0x10000, 64);
	tell(&t, 200);
	tell(&t, 100 * DYN_PAST_NS);
	assert_int_equal(f->nr_routines, 0);
	for (uint64_t i = 1; i <= 2; i++) {
		fake_routine_rec(&t.b, 0, 0x10000, "B", code_b, 64);
		tell(&t, 100 * DYN_PAST_NS + i);
		assert_int_equal(f->nr_routines, 1);
	}
	trial_close(&t);
}

/* Many go and few stay: these are moved together, and are what they were. */
static void test_few_stay(void **state)
{
	enum { NR = 1600, EVERY = 16, LEN = 4096 };
	struct pseudoimg_result before = { 0 }, after = { 0 };
	static uint8_t code[LEN];
	const struct dyn_store *store;
	struct trial t;
	char name[16];

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "j");
	for (uint64_t i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "r%u", (unsigned int)i);
		memset(code, (int)i, sizeof(code));
		fake_routine_rec(&t.b, 0, 0x100000 + i * LEN, name, code, LEN);
	}
	tell(&t, 100);
	store = &t.p.dyn->own->store;
	assert_true(store->used > (uint64_t)NR * LEN);
	for (uint64_t i = 0; i < NR; i++)
		if (i % EVERY == 0)
			assert_int_equal(offset(&t, 0x100000 + i * LEN, 100) % LEN, 0);
		else
			retire_rec(&t, 0x100000 + i * LEN, LEN);
	tell(&t, 200);
	write_job(facility(&t, 0), &before);
	assert_int_equal(before.nr_routines, NR / EVERY);
	tell(&t, 100 * DYN_PAST_NS);
	assert_true(store->held < 2 * store->used);
	write_job(facility(&t, 0), &after);
	assert_int_equal(after.nr_bad, 0);
	assert_int_equal(after.nr_routines, NR / EVERY);
	assert_memory_equal(after.build_id, before.build_id, sizeof(after.build_id));
	trial_close(&t);
}

/* Two arenas that grow by turns, a page each: a run for each page, which keeps its offset. */
static void test_runs_by_turns(void **state)
{
	enum { NR = 600 };
	static const uint64_t arenas[] = { 0x100000, 0x7f0000000000 };
	struct dyn_facility *f;
	uint64_t off[2][NR], at;
	struct trial t;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "j");
	tell(&t, 100);
	f = facility(&t, 0);
	for (uint64_t i = 0; i < NR; i++) {
		for (size_t a = 0; a < 2; a++) {
			assert_int_equal(dyn_facility_offset(f, arenas[a] + i * WIRE_PAGE, &at),
					 -ENOENT);
			assert_int_equal(dyn_facility_cover(f, arenas[a] + i * WIRE_PAGE + 8, 100),
					 0);
			assert_int_equal(
				dyn_facility_offset(f, arenas[a] + i * WIRE_PAGE, &off[a][i]), 0);
			/* As each page came when nothing else had. */
			assert_int_equal(off[a][i], (2 * i + a) * WIRE_PAGE);
		}
	}
	/* What is there already takes no room; what begins there and goes on takes what is new. */
	assert_int_equal(dyn_facility_cover(f, arenas[0] + 8, (NR + 1) * WIRE_PAGE), 0);
	assert_int_equal(dyn_facility_offset(f, arenas[0] + NR * WIRE_PAGE, &at), 0);
	assert_int_equal(at, 2ull * NR * WIRE_PAGE);
	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < NR; i++) {
			for (size_t a = 0; a < 2; a++) {
				assert_int_equal(
					dyn_facility_offset(f, arenas[a] + i * WIRE_PAGE + 77, &at),
					0);
				assert_int_equal(at, off[a][i] + 77);
			}
		}
	}
	assert_int_equal(dyn_facility_offset(f, arenas[1] + NR * WIRE_PAGE, &at), -ENOENT);
	trial_close(&t);
}

/* DST counts from the first code range even while nothing is written there. */
static void test_job_tells_empty_ranges(void **state)
{
	/* Module m, routine r of 64 bytes 0x4000 behind the first range's base. */
	static const uint8_t dst[] = {
		0x10, 0,   188, 0, 0,	0, 7, 0,  0,	0, 1, 0, 13, 0,	  1,
		'm',  0,   14,	0, 190, 0, 0, 0,  0x40, 0, 0, 0, 0,  0,	  0,
		1,    'r', 8,	0, 191, 0, 0, 64, 0,	0, 0, 3, 0,  189, 0
	};
	struct pseudoimg_result result = { 0 };
	struct trial t;

	(void)state;
	trial_open(&t);
	fake_facility_rec(&t.b, 0, "owner");
	fake_range_rec(&t.b, 0, 0, WIRE_RANGE_CODE, 0x10000, 0x1000);
	fake_range_rec(&t.b, 1, 0, WIRE_RANGE_CODE, 0x14000, 0x1000);
	fake_range_rec(&t.b, 2, 0, WIRE_RANGE_DST, 0x90000, 0x1000);
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_CODE, 0x14000, 0x1000, code_a, 64);
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_DST, 0x90000, 0x1000, dst, sizeof(dst));
	tell(&t, 100);
	write_job(facility(&t, 0), &result);
	assert_int_equal(result.nr_bad, 0);
	assert_int_equal(result.nr_routines, 1);
	trial_close(&t);
}

/* Invariant 7: the same program elsewhere in memory, in another process: the same identity. */
static void test_identity_by_content(void **state)
{
	struct pseudoimg_result result[2] = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint64_t base = i ? 0x7f0000123000 : 0x7f5555555000;
		struct trial t;

		trial_open(&t);
		t.dyn->config.keep_all = true;
		t.p.pid += i;
		fake_facility_rec(&t.b, 0, "j");
		fake_routine_rec(&t.b, 0, base + 0x10, "A", code_a, 64);
		fake_routine_rec(&t.b, 0, base + 0x100, "B", code_a, 64);
		fake_routine_rec(&t.b, 0, base + 0x10, "C", code_b, 32);
		tell(&t, 100);
		write_job(facility(&t, 0), &result[i]);
		trial_close(&t);
	}
	assert_memory_equal(result[0].build_id, result[1].build_id, 20);
}

/* Over its quota a process's routines are its facility's, at an offset that is no routine's. */
static void test_process_quota(void **state)
{
	struct pseudoimg_result result = { 0 };
	struct dyn_stats stats;
	struct trial t;
	uint64_t off;

	(void)state;
	trial_open(&t);
	t.dyn->config.process_quota = 300;
	fake_facility_rec(&t.b, 0, "j");
	fake_routine_rec(&t.b, 0, 0x10000, "A", code_a, 64);
	fake_routine_rec(&t.b, 0, 0x20000, "B", code_a, 64);
	fake_routine_rec(&t.b, 0, 0x30000, "C", code_b, 64);
	tell(&t, 100);
	assert_int_equal(offset(&t, 0x10004, 150), 4);
	off = offset(&t, 0x30000, 150);
	dyn_stats_get(t.dyn, &stats);
	assert_int_equal(stats.routines + stats.routines_refused, 3);
	assert_in_range(stats.routines_refused, 1, 2);
	assert_int_equal(stats.records_dropped, 0);
	assert_in_range(off, WIRE_PAGE, DYN_IMAGE_MAX);
	assert_int_equal(offset(&t, 0x3003f, 150), off);
	assert_true(facility(&t, 0)->image->behind);
	/* The same once more is no other. */
	fake_routine_rec(&t.b, 0, 0x30000, "C", code_b, 64);
	tell(&t, 200);
	assert_int_equal(offset(&t, 0x30000, 180), off);
	/* It goes; what is there then is not known to be anybody's. */
	fake_routine_rec(&t.b, 0, 0x30020, "D", code_b, 64);
	tell(&t, 300);
	assert_int_equal(where(&t, 0x30000, 300), DYN_NONE);
	assert_int_equal(where(&t, 0x30030, 250), DYN_REUSED);
	assert_int_equal(offset(&t, 0x30030, 300), off);
	write_job(facility(&t, 0), &result);
	assert_int_equal(result.nr_bad, 0);
	assert_int_equal(result.nr_routines, stats.routines);
	trial_close(&t);
}

/* With no routine at all its image is one all the same. */
static void test_all_over_quota(void **state)
{
	struct pseudoimg_result result = { 0 };
	struct trial t;

	(void)state;
	trial_open(&t);
	t.dyn->config.process_quota = 1;
	fake_facility_rec(&t.b, 0, "j");
	for (uint64_t i = 0; i < 100; i++) {
		fake_routine_rec(&t.b, 0, 0x10000 + i % 2 * 32, "A", code_a, 64);
		tell(&t, 100 + i);
	}
	assert_int_equal(offset(&t, 0x10020, 199), 0);
	write_job(facility(&t, 0), &result);
	assert_int_equal(result.nr_bad, 0);
	assert_int_equal(result.nr_routines, 0);
	/* Nodes come back when nobody asks for them any more. */
	dyn_lifetime_forget(&t.p.dyn->own->lifetimes, 100 + 2 * DYN_PAST_NS);
	dyn_facility_drop_unused(t.p.dyn->own);
	assert_int_equal(t.p.dyn->own->lifetimes.routines.nr_used, 1);
	trial_close(&t);
}

static void test_database_full(void **state)
{
	struct dyn_stats stats;
	struct trial t;

	(void)state;
	trial_open(&t);
	t.dyn->config.keep_all = true;
	fake_facility_rec(&t.b, 0, "j");
	fake_routine_rec(&t.b, 0, 0x10000, "sampled", code_a, 64);
	fake_routine_rec(&t.b, 0, 0x20000, "not yet", code_a, 64);
	fake_range_rec(&t.b, 0, 0, WIRE_RANGE_CODE, 0x50000, 0x1000);
	tell(&t, 100);
	assert_int_equal(where(&t, 0x10000, 100), DYN_FOUND);
	dyn_set_full(t.dyn, true, 0);
	/* What got a sample before is still written. */
	assert_true(dyn_facility_is_behind(facility(&t, 0), false));
	assert_int_equal(where(&t, 0x10000, 100), DYN_FOUND);
	assert_int_equal(where(&t, 0x20000, 100), DYN_NO_CAPACITY);
	assert_int_equal(where(&t, 0x20001, 100), DYN_NO_CAPACITY);
	dyn_facility_written(facility(&t, 0), false);
	assert_false(dyn_facility_is_behind(facility(&t, 0), true));
	fake_routine_rec(&t.b, 0, 0x30000, "too late", code_a, 64);
	tell(&t, 200);
	assert_int_equal(where(&t, 0x30000, 200), DYN_NO_CAPACITY);
	assert_int_equal(where(&t, 0x50010, 200), DYN_NO_CAPACITY);
	assert_false(dyn_facility_is_behind(facility(&t, 0), true));
	assert_int_equal(nr_of_type(facility(&t, 0), false, WIRE_ROUTINE, NULL), 1);
	dyn_stats_get(t.dyn, &stats);
	assert_int_equal(stats.routines_refused, 2);
	dyn_set_full(t.dyn, false, 0);
	assert_int_equal(where(&t, 0x20000, 100), DYN_FOUND);
	assert_int_equal(where(&t, 0x30000, 200), DYN_FOUND);
	assert_int_equal(where(&t, 0x50010, 200), DYN_FOUND);
	assert_true(dyn_facility_is_behind(facility(&t, 0), false));
	trial_close(&t);
}

/* ---- who may read ---------------------------------------------------------------------------- */

static void test_one_reader(void **state)
{
	char path[] = "/tmp/dcpi-dyn-XXXXXX";
	const uint32_t reader = geteuid() + 1;
	struct base_file file = { 0 };
	struct stat st;
	int dir;

	(void)state;
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(image_file_create(&file, dir, "x.dyn", NULL, &reader, NULL), 0);
	assert_int_equal(fstat(file.fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	/* Unless the file system has no lists of readers. */
	if (base_reader_get(file.fd) != reader)
		assert_int_equal(base_reader_set(file.fd, reader, true), -ENOTSUP);
	base_file_abort(&file);
	close(dir);
	rmdir(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_runs_joined),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_two_in_one_interval),
		cmocka_unit_test(test_other_facility_takes_over),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_range_in_an_interval),
		cmocka_unit_test(test_range_mapped_over),
		cmocka_unit_test(test_many_evictions),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_many_routines),
		cmocka_unit_test(test_changed_ranges),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_living),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_hand_on),
		cmocka_unit_test(test_fork_in_a_circle),
		cmocka_unit_test(test_malformed_records),
		cmocka_unit_test(test_job),
		cmocka_unit_test(test_what_is_kept),
		cmocka_unit_test(test_places_on_disk),
		cmocka_unit_test(test_records_that_follow),
		cmocka_unit_test(test_few_stay),
		cmocka_unit_test(test_runs_by_turns),
		cmocka_unit_test(test_job_tells_empty_ranges),
		cmocka_unit_test(test_identity_by_content),
		cmocka_unit_test(test_process_quota),
		cmocka_unit_test(test_all_over_quota),
		cmocka_unit_test(test_database_full),
		cmocka_unit_test(test_one_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
