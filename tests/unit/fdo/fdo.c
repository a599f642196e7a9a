/* SPDX-License-Identifier: BSD-2-Clause */
/* Edges of a small program, written by hand, become branches and ranges whose text is known. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fdo.h"

#define OUT PROFDB_OUTSIDE

struct fixture {
	struct image *img;
	struct profdb_profile *profile;
	struct fdo *f;
};

/*
 * Four traces begin at "warm" (0x13a), one of which skips its calls; "hot" (0x116) has a loop from
 * 0x127 to 0x12e, in which one of them ends.
 */
static const struct profdb_edge warm[] = {
	{ 0x13a, OUT, 0x13a, { 2, 2 } },   { 0x13a, 0x140, 0x142, { 2, 1 } },
	{ 0x13a, 0x140, 0x154, { 0, 1 } }, { 0x13a, 0x142, 0x116, { 2, 1 } },
	{ 0x13a, 0x118, 0x11a, { 2, 1 } }, { 0x13a, 0x12e, 0x127, { 4, 2 } },
	{ 0x13a, 0x12e, 0x130, { 1, 1 } }, { 0x13a, 0x129, OUT, { 1, 0 } },
	{ 0x13a, 0x132, 0x147, { 1, 1 } }, { 0x13a, 0x14b, 0x10c, { 1, 1 } },
	{ 0x13a, 0x115, 0x150, { 1, 1 } }, { 0x13a, 0x158, OUT, { 1, 2 } },
};

static void begin(struct fixture *x, const struct profdb_edge *v, size_t nr)
{
	struct base_err err = { 0 };
	char path[4096];

	snprintf(path, sizeof(path), "%s/tests/data/app/app", getenv("DCPI_SRC"));
	assert_int_equal(image_open_path(path, IMAGE_FILE, &x->img, &err), 0);
	x->profile = profdb_profile_new(PROFDB_FILE, image_id(x->img), path);
	assert_non_null(x->profile);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(profdb_profile_edge_add(x->profile, &v[i]), 0);
	x->f = NULL;
}

static void make(struct fixture *x, const struct profdb_edge *v, size_t nr)
{
	struct base_err err = { 0 };

	begin(x, v, nr);
	assert_int_equal(fdo_make(x->profile, x->img, &x->f, &err), 0);
}

static void end(struct fixture *x)
{
	fdo_free(x->f);
	profdb_profile_free(x->profile);
	image_close(x->img);
}

static void is_text(const struct fixture *x, fdo_write *write, const char *expected)
{
	struct base_buf out = { 0 };

	assert_int_equal(write(x->f, &out), 0);
	assert_int_equal(base_buf_append(&out, "", 1), 0);
	assert_string_equal((const char *)out.data, expected);
	base_buf_release(&out);
}

static void test_bolt(void **state)
{
	struct fixture x;

	(void)state;
	make(&x, warm, sizeof(warm) / sizeof(warm[0]));
	is_text(&x, fdo_write_bolt,
		"B 400115 400150 2 0\n"
		"B 40012e 400127 6 0\n"
		"B 400132 400147 2 0\n"
		"B 400140 400154 1 0\n"
		"B 400142 400116 3 0\n"
		"B 40014b 40010c 2 0\n"
		"F 40010c 400115 2\n"
		"F 400116 400118 3\n"
		"F 400118 40012e 3\n"
		"F 400127 40012e 6\n"
		"F 40012e 400132 2\n"
		"F 40013a 400140 4\n"
		"F 400140 400142 3\n"
		"f 400147 40014b 2\n"
		"f 400150 400158 2\n"
		"F 400154 400158 1\n");
	end(&x);
}

static void test_unsymbolized(void **state)
{
	struct fixture x;

	(void)state;
	make(&x, warm, sizeof(warm) / sizeof(warm[0]));
	is_text(&x, fdo_write_unsymbolized,
		"10\n"
		"40010c-400115:2\n"
		"400116-400118:3\n"
		"40011a-40012e:3\n"
		"400127-40012e:6\n"
		"400130-400132:2\n"
		"40013a-400140:4\n"
		"400142-400142:3\n"
		"400147-40014b:2\n"
		"400150-400158:2\n"
		"400154-400158:1\n"
		"6\n"
		"400115->400150:2\n"
		"40012e->400127:6\n"
		"400132->400147:2\n"
		"400140->400154:1\n"
		"400142->400116:3\n"
		"40014b->40010c:2\n");
	end(&x);
}

/* A call of a library and back, a callback, and edges that fit no code. */
static void test_other_images(void **state)
{
	static const struct profdb_edge v[] = {
		{ 0x15f, OUT, 0x15f, { 3, 0 } },
		{ 0x15f, 0x15f, 0x164, { 2, 0 } },
		{ 0x15f, 0x15f, OUT, { 1, 0 } },
		{ 0x15f, 0x167, OUT, { 2, 0 } },
		{ OUT, OUT, 0x15b, { 0, 5 } },
		{ 0x15b, 0x15e, OUT, { 0, 5 } },
		{ 0x116, 0x116, 0x13a, { 7, 0 } },
		{ 0x116, 0x118, 0x127, { 1, 0 } },
		{ 0x116, 0x90000, 0x116, { 1, 1 } },
		{ 0x116, 0x138, 0x131, { 1, 0 } },
		{ PROFDB_ANY_START, OUT, OUT, { 4, 0 } },
	};
	struct fixture x;

	(void)state;
	make(&x, v, sizeof(v) / sizeof(v[0]));
	is_text(&x, fdo_write_bolt,
		"f 40015b 40015e 5\n"
		"F 40015f 40015f 3\n"
		"F 40015f 400167 2\n");
	assert_int_equal(x.f->sum[FDO_UNKNOWN], 15);
	assert_int_equal(x.f->sum[FDO_RESUMED], 2);
	assert_int_equal(x.f->sum[FDO_ENTERED], 5);
	end(&x);
}

/* Arrivals at an address are as many as ranges from there, and so at their ends. */
static void test_counts_agree(void **state)
{
	struct fixture x;
	uint64_t came = 0, ranges = 0;

	(void)state;
	make(&x, warm, sizeof(warm) / sizeof(warm[0]));
	for (int kind = 0; kind <= FDO_ENTERED; kind++)
		came += x.f->sum[kind];
	for (size_t i = 0; i < x.f->nr_ranges; i++)
		ranges += x.f->ranges[i].count;
	assert_int_equal(came, ranges);
	end(&x);
}

/* A trace that ended within a stretch of code ran all of it; one that begins there continues it. */
static void test_joined(void **state)
{
	static const struct profdb_edge v[] = {
		{ 0x11a, 0x118, 0x11a, { 1000, 0 } }, { 0x127, 0x12e, 0x127, { 2000, 0 } },
		{ 0x11a, 0x11d, OUT, { 30, 0 } },     { 0x11a, 0x12c, OUT, { 300, 0 } },
		{ 0x122, OUT, 0x122, { 40, 0 } },     { 0x12c, OUT, 0x12c, { 500, 0 } },
		{ 0x130, OUT, 0x130, { 7, 0 } },
	};
	struct fixture x;

	(void)state;
	make(&x, v, sizeof(v) / sizeof(v[0]));
	is_text(&x, fdo_write_bolt,
		"B 40012e 400127 2000 0\n"
		"F 400118 40012e 1000\n"
		"F 400127 40012e 2000\n"
		"F 400130 400132 7\n");
	end(&x);
}

static double more_than_twice(const void *context, uint64_t vaddr)
{
	return vaddr == *(const uint64_t *)context ? 2.5 : 1;
}

/* Edges from one instruction are corrected; begins and ends of traces are not. */
static void test_corrected(void **state)
{
	const uint64_t vaddr = 0x40012e;
	struct fdo_traces t = { .weight = 1, .correct = more_than_twice, .context = &vaddr };
	struct base_err err = { 0 };
	struct fdo_making *m;
	struct fixture x;

	(void)state;
	begin(&x, warm, sizeof(warm) / sizeof(warm[0]));
	t.profile = x.profile;
	assert_int_equal(fdo_begin(x.img, &m, &err), 0);
	assert_int_equal(fdo_add(m, &t, &err), 0);
	assert_int_equal(fdo_end(m, &x.f, &err), 0);
	assert_int_equal(x.f->sum[FDO_TAKEN], 7);
	for (size_t i = 0; i < x.f->nr_edges; i++) {
		const struct fdo_edge *e = &x.f->edges[i];

		if (e->from == vaddr && e->to == 0x400127)
			assert_true(e->count[0] == 10 && e->count[1] == 5);
		else
			assert_true(e->from == vaddr || e->count[0] + e->count[1] <= 4);
	}
	end(&x);
}

static void test_quality(void **state)
{
	struct fdo_quality q;
	struct fixture x;
	int event;

	(void)state;
	make(&x, warm, sizeof(warm) / sizeof(warm[0]));
	event = profdb_profile_event_add(x.profile, "cpu-clock", 1000000);
	assert_int_equal(event, 0);
	assert_int_equal(profdb_profile_add(x.profile, 0x127, 0, 3), 0);
	assert_int_equal(profdb_profile_add(x.profile, 0x134, 0, 1), 0);
	fdo_quality(x.f, x.img, x.profile, 0, &q);
	assert_int_equal(q.traces, 4);
	assert_int_equal(q.taken, 16);
	assert_int_equal(q.fell, 8);
	assert_int_equal(q.unplaced, 0);
	assert_int_equal(q.text_bytes, 0x168 - 0x10c);
	assert_true(q.samples_part == 0.75);
	assert_true(q.unseen < 0); /* of so few traces nothing can be told */
	fdo_quality(x.f, x.img, x.profile, -1, &q);
	assert_true(q.samples_part < 0);
	end(&x);
}

static void test_more_traces(void **state)
{
	/* A tenth of the edges is known to one half alone. */
	static const struct profdb_edge v[] = {
		{ 0x127, OUT, 0x127, { 50, 50 } },
		{ 0x127, 0x12e, 0x127, { 90, 90 } },
		{ 0x127, 0x12e, 0x130, { 20, 0 } },
		{ 0x127, 0x12e, OUT, { 30, 50 } },
	};
	struct fdo_quality q;
	struct fixture x;

	(void)state;
	make(&x, v, sizeof(v) / sizeof(v[0]));
	fdo_quality(x.f, x.img, x.profile, -1, &q);
	assert_true(q.unseen > 0.0554 && q.unseen < 0.0556);
	assert_true(q.wanted > 112 && q.wanted < 114);
	end(&x);
}

static void test_none(void **state)
{
	struct base_err err = { 0 };
	struct fixture x;

	(void)state;
	begin(&x, NULL, 0);
	assert_int_equal(fdo_make(x.profile, x.img, &x.f, &err), -ENOENT);
	assert_null(x.f);
	end(&x);
}

/* Counts of both halves may be more than 64 bits hold. */
static void test_large(void **state)
{
	static const struct profdb_edge v[] = {
		{ 0x127, 0x12e, 0x127, { UINT64_MAX, UINT64_MAX } },
	};
	struct fixture x;

	(void)state;
	make(&x, v, 1);
	is_text(&x, fdo_write_bolt,
		"B 40012e 400127 18446744073709551615 0\n"
		"F 400127 40012e 18446744073709551615\n");
	end(&x);
}

/* ---- another build --------------------------------------------------------------------------- */

static struct image *open_next(void)
{
	struct base_err err = { 0 };
	struct image *img;
	char path[4096];

	snprintf(path, sizeof(path), "%s/tests/data/app/next", getenv("DCPI_SRC"));
	assert_int_equal(image_open_path(path, IMAGE_FILE, &img, &err), 0);
	return img;
}

static void stands_at(struct fdo_version *v, uint64_t vaddr, uint64_t expected)
{
	uint64_t place;

	assert_int_equal(fdo_version_place(v, vaddr, &place), 0);
	assert_int_equal(place, expected);
}

static void test_version(void **state)
{
	struct base_err err = { 0 };
	struct image *next = open_next();
	struct fdo_version *v;
	struct fixture x;
	uint32_t nr, found;

	(void)state;
	begin(&x, NULL, 0);
	assert_int_equal(fdo_version_open(x.img, next, &v, &err), 0);
	stands_at(v, 0x400116, 0x40012b); /* hot: behind the new branch */
	stands_at(v, 0x40012e, 0x400143);
	stands_at(v, 0x400138, 0x40014d);
	stands_at(v, 0x400140, 0x400155); /* warm, which has another name */
	stands_at(v, 0x40010c, 0x40010c); /* two are named helper: by the code */
	stands_at(v, 0x40015b, 0x400170);
	stands_at(v, 0x400164, 0x400179);
	stands_at(v, 0x500000, FDO_NONE);
	fdo_version_found(v, &nr, &found);
	assert_int_equal(nr, 5);
	assert_int_equal(found, 5);
	fdo_version_close(v);
	/* The other way round there is code that is not found. */
	assert_int_equal(fdo_version_open(next, x.img, &v, &err), 0);
	stands_at(v, 0x400122, FDO_NONE);
	stands_at(v, 0x400116, FDO_NONE);
	stands_at(v, 0x400143, 0x40012e);
	fdo_version_close(v);
	image_close(next);
	end(&x);
}

/* The traces of app, and as many of the next build that count a quarter, as a profile of the
 * latter.
 */
static void test_carried(void **state)
{
	static const struct profdb_edge own[] = {
		{ 0x11c, OUT, 0x11c, { 8, 8 } },
		{ 0x11c, 0x122, 0x12b, { 6, 8 } },
		{ 0x11c, 0x122, 0x124, { 2, 0 } },
		{ 0x11c, 0x143, 0x13c, { 1, 0 } },
	};
	struct profdb_profile *newer;
	struct fdo_traces old, quarter;
	struct fdo_carried sum = { 0 };
	struct base_err err = { 0 };
	struct image *next = open_next();
	struct fdo_making *m;
	struct fdo_version *v;
	struct fixture x;

	(void)state;
	begin(&x, warm, sizeof(warm) / sizeof(warm[0]));
	newer = profdb_profile_new(PROFDB_FILE, image_id(next), "/next");
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		assert_int_equal(profdb_profile_edge_add(newer, &own[i]), 0);
	old = (struct fdo_traces){ .profile = x.profile, .weight = 1 };
	quarter = (struct fdo_traces){ .profile = newer, .weight = 0.25 };
	assert_int_equal(fdo_begin(next, &m, &err), 0);
	assert_int_equal(fdo_version_open(x.img, next, &v, &err), 0);
	assert_int_equal(fdo_add_version(m, &old, v, &sum, &err), 0);
	assert_int_equal(fdo_add(m, &quarter, &err), 0);
	assert_int_equal(fdo_end(m, &x.f, &err), 0);
	is_text(&x, fdo_write_bolt,
		"B 400115 400165 2 0\n"
		"B 400122 40012b 4 0\n"
		"B 400143 40013c 6 0\n"
		"B 400147 40015c 2 0\n"
		"B 400155 400169 1 0\n"
		"B 400157 40011c 3 0\n"
		"B 400160 40010c 2 0\n"
		"F 40010c 400115 2\n"
		"F 40011c 400122 3\n"
		"F 400122 400124 1\n"
		"F 40012b 40012d 4\n"
		"f 40012b 40012d 3\n"
		"F 40012d 400143 3\n"
		"F 40013c 400143 6\n"
		"F 400143 400147 2\n"
		"F 40014f 400155 4\n"
		"F 400155 400157 3\n"
		"f 40015c 400160 2\n"
		"f 400165 40016d 2\n"
		"F 400169 40016d 1\n");
	assert_int_equal(sum.edges, 24);
	assert_int_equal(sum.placed, 24);
	fdo_version_close(v);
	profdb_profile_free(newer);
	image_close(next);
	end(&x);
}

static void test_relink(void **state)
{
	struct image_relink relink;
	struct fixture x;

	(void)state;
	make(&x, warm, 1);
	image_relink(x.img, &relink);
	assert_true(relink.symbols);
	assert_false(relink.relocations);
	assert_false(relink.packed);
	assert_false(relink.position_independent);
	end(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bolt),	     cmocka_unit_test(test_unsymbolized),
		cmocka_unit_test(test_other_images), cmocka_unit_test(test_counts_agree),
		cmocka_unit_test(test_joined),	     cmocka_unit_test(test_quality),
		cmocka_unit_test(test_more_traces),  cmocka_unit_test(test_none),
		cmocka_unit_test(test_large),	     cmocka_unit_test(test_relink),
		cmocka_unit_test(test_version),	     cmocka_unit_test(test_carried),
		cmocka_unit_test(test_corrected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
