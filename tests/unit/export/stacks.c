/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks add up to the flat profile at each instruction, and to the tree of call paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "callpath.h"
#include "export_internal.h"
#include "protobuf.h"

#define WAITED_NS 5000000000u

static char dir[] = "/tmp/dcpi-export-XXXXXX";
static struct image *fixture;
static uint64_t seed = 1;

static uint64_t place(const char *name, uint64_t into)
{
	size_t pos = 0;
	const struct image_symbol *s = image_symbol_find(fixture, name, &pos);
	uint64_t off;

	assert_non_null(s);
	assert_int_equal(image_off(fixture, s->vaddr + into, &off), 0);
	return off;
}

static uint64_t below(uint64_t n)
{
	return base_random64(&seed) % n;
}

static const char *const procedures[] = { "alpha", "omega", "nest" };

static uint64_t any_place(void)
{
	return place(procedures[below(3)], below(3));
}

/* Three events, of which the second has few samples, and the third counts nanoseconds. */
static void put_profile(struct profdb *db)
{
	struct profdb_profile *p =
		profdb_profile_new(PROFDB_FILE, image_id(fixture), FIXTURES "/fixture.so");

	assert_int_equal(profdb_profile_event_add(p, "cpu-clock", 1000), 0);
	assert_int_equal(profdb_profile_event_add(p, "imiss", 10), 1);
	assert_int_equal(profdb_profile_event_add(p, "wait", 1), 2);
	assert_int_equal(profdb_profile_add(p, place("alpha", 0), 2, WAITED_NS), 0);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(profdb_profile_add(p, any_place(), 0, below(50)), 0);
		if (!below(9))
			assert_int_equal(profdb_profile_add(p, any_place(), 1, 1), 0);
	}
	assert_int_equal(profdb_profile_add(p, place("versioned", 0), 0, 3), 0);
	assert_true(profdb_flush_put(db, "fixture.so", p, NULL) >= 0);
	profdb_profile_free(p);
}

static void put_paths(struct profdb *db)
{
	struct profdb_callpaths *c = profdb_callpaths_new();
	struct profdb_image_ref ref = { .kind = PROFDB_FILE, .path = FIXTURES "/fixture.so" };
	struct profdb_frame f[6];

	ref.id = *image_id(fixture);
	assert_int_equal(profdb_callpaths_image_add(c, &ref), 0);
	assert_int_equal(profdb_callpaths_event_add(c, "cpu-clock", 1000), 0);
	assert_int_equal(profdb_callpaths_event_add(c, "imiss", 10), 1);
	for (int i = 0; i < 100; i++) {
		size_t nr = 1 + below(6);

		for (size_t k = 0; k < nr; k++)
			f[k] = (struct profdb_frame){ 0, any_place() };
		assert_int_equal(profdb_callpaths_add(c, below(5) == 0,
						      below(PROFDB_NR_CALLPATH_ENDS), f, nr,
						      1 + below(9)),
				 0);
	}
	assert_true(profdb_flush_put_callpaths(db, c, NULL) >= 0);
	profdb_callpaths_free(c);
}

static int set_up(void **state)
{
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct profdb *db;
	struct base_err err = { 0 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(image_open_path(FIXTURES "/fixture.so", IMAGE_FILE, &fixture, &err), 0);
	assert_int_equal(profdb_open(dir, true, &db, &err), 0);
	assert_true(profdb_lock(db, "box", &err) >= 0);
	assert_true(profdb_epoch_start(db, 1700000000, epoch, &err) >= 0);
	assert_true(profdb_flush_begin(db, &err) >= 0);
	put_profile(db);
	put_paths(db);
	assert_true(profdb_flush_commit(db, &err) >= 0);
	profdb_close(db);
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	image_close(fixture);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static struct analysis *open_all(void)
{
	const struct analysis_selection sel = { .db = dir };
	struct base_err err = { 0 };
	struct analysis *a = NULL;

	assert_int_equal(analysis_open(&sel, &a, &err), 0);
	return a;
}

/* Samples of the stacks at an address. */
static uint64_t stacks_at(const struct export *x, uint64_t vaddr, size_t event)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < x->nr_stacks; i++)
		if (x->places[x->stacks[i].place].vaddr == vaddr)
			sum += export_count(x, i, event);
	return sum;
}

static void check_flat(struct analysis *a, const struct export *x)
{
	for (size_t i = 0; i < a->nr_images; i++) {
		const struct profdb_profile *p = a->images[i]->profile;

		for (size_t k = 0; k < profdb_profile_nr_entries(p); k++) {
			const struct profdb_entry *e = profdb_profile_entry(p, k);
			uint64_t count[ANALYSIS_NR_EVENTS] = { 0 }, vaddr;

			analysis_entry_add(a->images[i], e, count, NULL);
			assert_int_equal(image_vaddr(fixture, e->off, &vaddr), 0);
			for (size_t event = 0; event < a->nr_events; event++)
				assert_int_equal(stacks_at(x, vaddr, event), count[event]);
		}
	}
	for (size_t event = 0; event < a->nr_events; event++)
		assert_int_equal(export_sum(x, event), a->events[event].sum);
}

/* Samples of stacks with a function at any place, once each. */
static uint64_t stacks_with(const struct export *x, const char *name, size_t event)
{
	uint32_t *places = calloc(x->deepest, sizeof(*places));
	uint64_t sum = 0;

	for (size_t i = 0; i < x->nr_stacks; i++) {
		size_t nr = export_places(x, i, places);
		bool has = false;

		for (size_t k = 0; k < nr; k++) {
			const struct export_place *p = &x->places[places[k]];
			uint32_t f = x->frames[p->first + p->nr - 1].function;

			has = has || strcmp(x->texts[x->functions[f].name], name) == 0;
		}
		sum += has ? export_count(x, i, event) : 0;
	}
	free(places);
	return sum;
}

static void check_tree(struct analysis *a, const struct export *x)
{
	const struct callpath_how how = { .inlined = false };
	struct profdb_callpaths *paths;
	struct callpath_tree *t;
	uint64_t *total;

	assert_int_equal(callpath_load(a, false, &paths, NULL), 0);
	assert_int_equal(callpath_tree_make(a, paths, &how, &t, NULL), 0);
	total = calloc(t->nr_procedures, sizeof(*total));
	for (size_t e = 0; e < a->nr_events; e++) {
		memset(total, 0, t->nr_procedures * sizeof(*total));
		assert_int_equal(callpath_totals(t, e, NULL, t->nr_procedures, total), 0);
		for (size_t i = 1; i < t->nr_procedures; i++)
			assert_int_equal(stacks_with(x, t->procedures[i].name, e), total[i]);
	}
	free(total);
	callpath_tree_free(t);
	profdb_callpaths_free(paths);
}

static void test_sums(void **state)
{
	const struct export_how how = { .unchecked = true };
	struct analysis *a = open_all();
	struct export *x;

	(void)state;
	assert_int_equal(export_make(a, &how, &x, NULL), 0);
	assert_true(x->paths);
	assert_true(x->deepest > 3);
	check_flat(a, x);
	check_tree(a, x);
	assert_int_equal(export_begin(x), 1699999980);
	export_free(x);
	analysis_close(a);
}

static void test_flat(void **state)
{
	const struct export_how how = { .flat = true };
	struct analysis *a = open_all();
	struct export *x;

	(void)state;
	assert_int_equal(export_make(a, &how, &x, NULL), 0);
	assert_int_equal(x->deepest, 1);
	check_flat(a, x);
	export_free(x);
	analysis_close(a);
}

/* Seconds that a thread waited are one record. */
static void test_perf_of_waits(void **state)
{
	const struct export_how how = { .flat = true };
	struct analysis *a = open_all();
	struct export *x;
	uint32_t event = 2;
	char line[256];
	FILE *f = tmpfile();

	(void)state;
	assert_non_null(f);
	assert_int_equal(export_make(a, &how, &x, NULL), 0);
	assert_int_equal(export_whose(x, a, NULL, NULL, NULL), 0);
	assert_string_equal(a->events[event].name, "wait");
	x->events = &event;
	x->nr_events = 1;
	assert_int_equal(export_perf.write(x, f), 0);
	assert_true(ftell(f) < 4096);
	rewind(f);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_string_equal(line, "unknown 4194304/4194304 [000] 5.000000: 5000000000 wait:\n");
	x->events = NULL;
	x->nr_events = 0;
	fclose(f);
	export_free(x);
	analysis_close(a);
}

static const char *cleaned(struct export *x, const char *text)
{
	uint32_t n;

	assert_int_equal(export_text(x, text, &n), 0);
	return x->texts[n];
}

static void test_texts(void **state)
{
	struct export *x = calloc(1, sizeof(*x));
	uint32_t a, b;

	(void)state;
	assert_string_equal(cleaned(x, "a\x1b[31m\n"), "a?[31m?");
	assert_string_equal(cleaned(x, "\xe2\x80\xaelr"), "?lr");
	assert_string_equal(cleaned(x, "\xe2\x81\xa6x\xe2\x81\xa9"), "?x?");
	assert_string_equal(cleaned(x, "\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8"), "????");
	assert_string_equal(cleaned(x, "\xe2\x80\xa6 \xd8\xa7 \xe2\x81\xb0"),
			    "\xe2\x80\xa6 \xd8\xa7 \xe2\x81\xb0");
	assert_string_equal(cleaned(x, "\xe2\x80"), "??");
	assert_int_equal(export_text(x, "one", &a), 0);
	assert_int_equal(export_text(x, "one", &b), 0);
	assert_int_equal(a, b);
	export_free(x);
}

static void test_protobuf(void **state)
{
	static const uint8_t want[] = { 0x08, 0x96, 0x01, 0x12, 0x02, 'h', 'i' };
	struct base_buf b = { 0 };

	(void)state;
	assert_int_equal(protobuf_number(&b, 1, 150), 0);
	assert_int_equal(protobuf_number(&b, 3, 0), 0);
	assert_int_equal(protobuf_bytes(&b, 2, "hi", 2), 0);
	assert_int_equal(b.len, sizeof(want));
	assert_memory_equal(b.data, want, sizeof(want));
	base_buf_clear(&b);
	assert_int_equal(protobuf_varint(&b, UINT64_MAX), 0);
	assert_int_equal(b.len, 10);
	assert_int_equal(b.data[9], 1);
	base_buf_release(&b);
}

/* A megabyte goes through, and comes back. */
static void test_gzip(void **state)
{
	enum { LINES = 20000 };
	FILE *to = tmpfile(), *in = export_gzip(to);
	char line[64], want[64];
	gzFile from;

	(void)state;
	assert_non_null(in);
	for (int i = 0; i < LINES; i++)
		fprintf(in, "line %d of a text that is to be compressed\n", i);
	assert_int_equal(fclose(in), 0);
	assert_int_equal(fflush(to), 0);
	rewind(to);
	from = gzdopen(dup(fileno(to)), "rb");
	for (int i = 0; i < LINES; i++) {
		snprintf(want, sizeof(want), "line %d of a text that is to be compressed\n", i);
		assert_non_null(gzgets(from, line, sizeof(line)));
		assert_string_equal(line, want);
	}
	assert_null(gzgets(from, line, sizeof(line)));
	gzclose(from);
	fclose(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),  cmocka_unit_test(test_flat),
		cmocka_unit_test(test_texts), cmocka_unit_test(test_protobuf),
		cmocka_unit_test(test_gzip),  cmocka_unit_test(test_perf_of_waits),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
