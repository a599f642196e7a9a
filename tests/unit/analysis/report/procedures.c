/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows, listings and searches on the images of tests/unit/image. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "estimate.h"
#include "listing.h"
#include "procedures.h"
#include "rows.h"
#include "search.h"

static char dir[] = "/tmp/dcpi-procedures-XXXXXX";
static uint64_t outer, inner, alpha, uneven;

static uint64_t address(struct image *img, const char *name)
{
	size_t pos = 0;
	const struct image_symbol *s = image_symbol_find(img, name, &pos);

	assert_non_null(s);
	return s->vaddr;
}

static uint64_t offset(struct image *img, uint64_t vaddr)
{
	uint64_t v;

	for (uint64_t off = 0; off < 0x20000; off++)
		if (image_vaddr(img, off, &v) == 0 && v == vaddr)
			return off;
	fail_msg("no offset of %#llx", (unsigned long long)vaddr);
	return 0;
}

/* outer_proc 1 + 2 + 4 (around inner_proc 8), alpha 16, none 32, a gone image 64,
 * uneven_proc 128 just behind uneven_inner. */
static void put_samples(struct profdb *db, struct base_err *err)
{
	struct image *img = NULL;
	struct profdb_profile *p;
	struct base_id id = { .len = 1, .bytes = { 77 } };

	assert_int_equal(image_open_path(FIXTURES "/fixture.so", IMAGE_FILE, &img, err), 0);
	outer = address(img, "outer_proc");
	inner = address(img, "inner_proc");
	alpha = address(img, "alpha");
	uneven = address(img, "uneven_proc");
	p = profdb_profile_new(PROFDB_FILE, image_id(img), FIXTURES "/fixture.so");
	assert_int_equal(profdb_profile_event_add(p, "cycles", 100), 0);
	profdb_profile_add(p, offset(img, outer), 0, 1);
	profdb_profile_add(p, offset(img, outer + 4), 0, 2);
	profdb_profile_add(p, offset(img, outer + 16), 0, 4);
	profdb_profile_add(p, offset(img, inner), 0, 8);
	profdb_profile_add(p, offset(img, alpha), 0, 16);
	profdb_profile_add(p, 0x7fffffff, 0, 32);
	profdb_profile_add(p, offset(img, uneven + 6), 0, 128);
	assert_int_equal(profdb_flush_put(db, "fixture.so", p, err), 0);
	profdb_profile_free(p);
	image_close(img);
	p = profdb_profile_new(PROFDB_FILE, &id, "/nowhere/gone.so");
	assert_int_equal(profdb_profile_event_add(p, "cycles", 100), 0);
	profdb_profile_add(p, 1, 0, 64);
	assert_int_equal(profdb_flush_put(db, "gone.so", p, err), 0);
	profdb_profile_free(p);
}

static int set_up(void **state)
{
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct base_err err = { 0 };
	struct profdb *db = NULL;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(profdb_open(dir, true, &db, &err), 0);
	assert_true(profdb_lock(db, "box", &err) >= 0);
	assert_true(profdb_epoch_start(db, 1700000000, epoch, &err) >= 0);
	assert_true(profdb_flush_begin(db, &err) >= 0);
	put_samples(db, &err);
	assert_true(profdb_flush_commit(db, &err) >= 0);
	profdb_close(db);
	return 0;
}

static int clean_up(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static struct analysis *open_db(void)
{
	struct analysis_selection sel = { .db = dir };
	struct base_err err = { 0 };
	struct analysis *a = NULL;

	if (analysis_open(&sel, &a, &err) < 0)
		fail_msg("%s", err.text);
	return a;
}

static void expect_row(const struct analysis_row *row, const char *label, uint64_t count)
{
	assert_string_equal(analysis_row_label(row), label);
	assert_int_equal(row->count[0], count);
}

static void test_rows(void **state)
{
	struct analysis *a = open_db();
	struct analysis_rows rows = { 0 };

	(void)state;
	for (size_t i = 0; i < a->nr_images; i++)
		assert_int_equal(analysis_rows_add_procedures(&rows, a, a->images[i]), 0);
	analysis_rows_sort(&rows, 0, false);
	assert_int_equal(rows.nr, 6);
	expect_row(&rows.v[0], "uneven_proc", 128);
	expect_row(&rows.v[1], "(image missing)", 64);
	expect_row(&rows.v[2], "(no symbol)", 32);
	expect_row(&rows.v[3], "alpha", 16);
	expect_row(&rows.v[4], "inner_proc", 8);
	/* Left for the inner one and come back to: one row all the same. */
	expect_row(&rows.v[5], "outer_proc", 7);
	assert_int_equal(rows.total[0], 255);
	analysis_rows_release(&rows);
	analysis_close(a);
}

/* Procedures without samples have rows too, and totals come first where they are sorted by. */
static void test_unsampled(void **state)
{
	const struct image_symbol caller = { "caller", 0x1000, 0x10 };
	struct analysis *a = open_db();
	struct analysis_rows rows = { 0 };
	struct analysis_image *ai = NULL;

	(void)state;
	for (size_t i = 0; i < a->nr_images; i++)
		if (strcmp(base_path_name(a->images[i]->name), "fixture.so") == 0)
			ai = a->images[i];
	assert_non_null(ai);
	assert_int_equal(analysis_rows_add_procedures(&rows, a, ai), 0);
	assert_int_equal(analysis_rows_add_unsampled(&rows, a, ai, &caller), 0);
	for (size_t i = 0; i < rows.nr; i++) {
		rows.v[i].total = calloc(1, sizeof(*rows.v[i].total));
		rows.v[i].total[0] = rows.v[i].count[0] ? 1 : 1000;
	}
	analysis_rows_sort(&rows, 0, true);
	expect_row(&rows.v[0], "caller", 0);
	expect_row(&rows.v[1], "uneven_proc", 128);
	assert_string_equal(analysis_row_image(&rows.v[0]), ai->name);
	analysis_rows_release(&rows);
	analysis_close(a);
}

static void list(const char *what, struct analysis *a, struct analysis_listing **l)
{
	struct analysis_founds found = { 0 };
	struct base_err err = { 0 };
	struct image *img = NULL;

	assert_int_equal(analysis_find(a, what, NULL, 0, &found, &err), 0);
	assert_int_equal(found.nr, 1);
	assert_int_equal(analysis_image_open(a, found.v[0].image, &img, &err), 0);
	assert_int_equal(analysis_listing_open(a, found.v[0].image, img,
					       image_symbol_at(img, found.v[0].vaddr), NULL, l,
					       &err),
			 0);
	analysis_founds_release(&found);
}

static void test_listing(void **state)
{
	struct analysis *a = open_db();
	struct analysis_listing *l = NULL;
	uint64_t sum = 0;

	(void)state;
	list("outer_proc", a, &l);
	assert_int_equal(l->total[0], 7);
	for (size_t i = 0; i < l->nr_units; i++) {
		const struct analysis_unit *u = &l->units[i];

		assert_true(u->vaddr < inner || u->vaddr >= inner + 8);
		assert_true(i == 0 || u->vaddr > l->units[i - 1].vaddr);
		if (u->count)
			sum += u->count[0];
	}
	assert_int_equal(sum, 7);
	analysis_listing_close(l);
	list("alpha", a, &l);
	assert_int_equal(l->units[0].count[0], 16);
	assert_int_equal(l->units[0].line, 14); /* "{" of alpha in fixture.c */
	assert_string_equal(strrchr(l->files[l->units[0].file], '/'), "/fixture.c");
	analysis_listing_close(l);
	analysis_close(a);
}

/* Three routines inlined one into the other, among instructions of the outer ones. */
static void test_listing_inlined(void **state)
{
	struct analysis *a = open_db();
	struct analysis_listing *l = NULL;
	size_t deepest = 0;

	(void)state;
	list("nest", a, &l);
	assert_true(l->nr_stacks >= 1);
	for (size_t i = 0; i < l->nr_units; i++) {
		size_t at = l->units[i].stack;
		const struct analysis_stack *s = at ? &l->stacks[at - 1] : NULL;

		assert_true(at <= l->nr_stacks);
		if (!s)
			continue;
		assert_in_range(s->nr, 2, 3);
		assert_null(s->v[s->nr - 1].name);
		if (s->nr < 3)
			continue;
		deepest++;
		assert_string_equal(s->v[0].name, "inner");
		assert_string_equal(s->v[1].name, "middle");
		assert_int_equal(s->v[1].at.line, 72);
		assert_int_equal(s->v[2].at.line, 77);
	}
	assert_true(deepest > 0);
	assert_int_equal(l->units[0].stack, 0);
	analysis_listing_close(l);
	analysis_close(a);
}

/* What lies inside is stepped over as a whole, whatever its bytes would decode to. */
static void test_listing_uneven(void **state)
{
	struct analysis *a = open_db();
	struct analysis_listing *l = NULL;
	bool seen = false;

	(void)state;
	list("uneven_proc", a, &l);
	assert_int_equal(l->total[0], 128);
	for (size_t i = 0; i < l->nr_units; i++) {
		const struct analysis_unit *u = &l->units[i];

		assert_true(u->vaddr < uneven + 4 || u->vaddr >= uneven + 6);
		assert_true(i == 0 || u->vaddr > l->units[i - 1].vaddr);
		if (u->vaddr == uneven + 6) {
			assert_int_equal(u->kind, ANALYSIS_UNIT_INSN);
			assert_int_equal(u->count[0], 128);
			seen = true;
		}
	}
	assert_true(seen);
	analysis_listing_close(l);
	analysis_close(a);
}

/* What the visited have, by name. */
struct visited {
	double inner, outer, others;
	unsigned int nr_outer;
};

static int visit(void *context, const struct image_symbol *symbol, const struct flow *f,
		 const double *by_insn, struct base_err *err)
{
	struct visited *v = context;
	double sum = 0;

	(void)err;
	for (uint32_t i = 0; i < f->nr_insns; i++)
		sum += by_insn[i];
	if (strcmp(symbol->name, "inner_proc") == 0) {
		v->inner += sum;
	} else if (strcmp(symbol->name, "outer_proc") == 0) {
		v->outer += sum;
		v->nr_outer++;
	} else {
		v->others += sum;
	}
	return 0;
}

/* The code of the outer one leads through the inner one, whose samples are its own everywhere. */
static void test_estimate_nested(void **state)
{
	struct analysis *a = open_db();
	struct estimate_samples s = { 0 };
	struct estimate_rest rest = { 0 };
	struct visited v = { 0 };
	struct image *img = NULL;
	struct base_err err = { 0 };
	size_t i = 0;

	(void)state;
	while (!strstr(a->images[i]->name, "fixture.so"))
		i++;
	assert_int_equal(analysis_image_open(a, a->images[i], &img, &err), 0);
	assert_int_equal(estimate_samples_gather(&s, a, a->images[i], img, 0), 0);
	assert_int_equal(estimate_procedures(img, &s, visit, &v, &rest, &err), 0);
	assert_int_equal(v.inner, 8);
	assert_int_equal(v.outer, 7);
	assert_int_equal(v.nr_outer, 1);
	/* alpha, and uneven_proc behind what lies in it. */
	assert_int_equal(v.others, 16 + 128);
	estimate_samples_release(&s);
	image_close(img);
	analysis_close(a);
}

static void test_find(void **state)
{
	struct analysis *a = open_db();
	struct analysis_founds f = { 0 };
	struct base_err err = { 0 };
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)inner + 3);
	assert_int_equal(analysis_find(a, text, "fixture.so", 0, &f, &err), 0);
	assert_int_equal(f.nr, 1);
	assert_string_equal(f.v[0].name, "inner_proc");
	assert_int_equal(f.v[0].count[0], 8);
	analysis_founds_release(&f);
	/* Another name of the address; and one without samples. */
	assert_int_equal(analysis_find(a, "__alpha", NULL, 0, &f, &err), 0);
	assert_string_equal(f.v[0].name, "alpha");
	analysis_founds_release(&f);
	assert_int_equal(analysis_find(a, "omega", NULL, 0, &f, &err), 0);
	assert_int_equal(f.v[0].count[0], 0);
	analysis_founds_release(&f);
	assert_int_equal(analysis_find(a, "outer_prok", NULL, 0, &f, &err), -DCPI_ENOSYMBOL);
	assert_non_null(strstr(err.hint, "'outer_proc'"));
	analysis_founds_release(&f);
	memset(&err, 0, sizeof(err));
	assert_int_equal(analysis_find(a, "alpha", "fixtures.so", 0, &f, &err), -DCPI_ENOIMAGE);
	assert_non_null(strstr(err.hint, "fixture.so"));
	analysis_close(a);
}

/* However long the folder is: a name is near by its own letters. */
static void test_unknown_image(void **state)
{
	struct analysis *a = open_db();
	struct base_err err = { 0 };

	(void)state;
	analysis_image_unknown(a, "/a/folder/of/many/letters/qqq", &err);
	assert_null(strstr(err.hint, "did you mean"));
	memset(&err, 0, sizeof(err));
	analysis_image_unknown(a, "/a/folder/of/many/letters/fixtures.so", &err);
	assert_non_null(strstr(err.hint, "fixture.so"));
	analysis_close(a);
}

static void test_match(void **state)
{
	struct analysis *a = open_db();
	struct analysis_image *ai = NULL;
	char id[BASE_ID_TEXT_LEN];

	(void)state;
	for (size_t i = 0; i < a->nr_images; i++)
		if (strstr(a->images[i]->name, "fixture.so"))
			ai = a->images[i];
	assert_non_null(ai);
	base_id_text(profdb_profile_image(ai->profile), id);
	assert_true(analysis_image_match(a, ai, "fixture.so"));
	assert_true(analysis_image_match(a, ai, FIXTURES "/fixture.so"));
	assert_true(analysis_image_match(a, ai, id));
	id[6] = '\0';
	assert_true(analysis_image_match(a, ai, id));
	id[3] = '\0';
	assert_false(analysis_image_match(a, ai, id));
	assert_false(analysis_image_match(a, ai, "fixture"));
	assert_false(analysis_image_match(a, ai, ""));
	analysis_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),	       cmocka_unit_test(test_unsampled),
		cmocka_unit_test(test_listing),	       cmocka_unit_test(test_listing_inlined),
		cmocka_unit_test(test_listing_uneven), cmocka_unit_test(test_estimate_nested),
		cmocka_unit_test(test_find),	       cmocka_unit_test(test_match),
		cmocka_unit_test(test_unknown_image),
	};

	return cmocka_run_group_tests(tests, set_up, clean_up);
}
