/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths become trees of procedures whose leaves add up to the flat profile. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "callpath.h"

static char dir[] = "/tmp/dcpi-callpath-XXXXXX";
static struct image *fixture;
static struct analysis *a;
static struct profdb_callpaths *paths;

static uint64_t place(const char *name, uint64_t into)
{
	size_t pos = 0;
	const struct image_symbol *s = image_symbol_find(fixture, name, &pos);
	uint64_t off;

	assert_non_null(s);
	assert_int_equal(image_off(fixture, s->vaddr + into, &off), 0);
	return off;
}

/* An offset in nest at which inner is inlined into middle. */
static uint64_t inlined_place(void)
{
	struct image_frame f[IMAGE_FRAMES_MAX];
	size_t pos = 0;
	const struct image_symbol *s = image_symbol_find(fixture, "nest", &pos);

	for (uint64_t v = s->vaddr; v < s->vaddr + s->len; v++)
		if (image_frames_at(fixture, v, f, IMAGE_FRAMES_MAX) == 3)
			return place("nest", v - s->vaddr);
	fail_msg("nothing is inlined into nest");
	return 0;
}

/* cycles: alpha 100 + 1, omega 7, nest 50, versioned 3, none 9; imiss: alpha 11. A gone image 31.
 */
static void put_samples(struct profdb *db)
{
	struct profdb_profile *p =
		profdb_profile_new(PROFDB_FILE, image_id(fixture), FIXTURES "/fixture.so");
	struct base_id id = { .len = 1, .bytes = { 77 } };

	assert_int_equal(profdb_profile_event_add(p, "cycles", 100), 0);
	assert_int_equal(profdb_profile_event_add(p, "imiss", 10), 1);
	profdb_profile_add(p, place("alpha", 0), 0, 100);
	profdb_profile_add(p, place("alpha", 1), 0, 1);
	profdb_profile_add(p, place("alpha", 1), 1, 11);
	profdb_profile_add(p, place("omega", 0), 0, 7);
	profdb_profile_add(p, place("nest", 0), 0, 50);
	profdb_profile_add(p, place("versioned", 0), 0, 3);
	profdb_profile_add(p, 0x7fffffff, 0, 9);
	assert_int_equal(profdb_flush_put(db, "fixture.so", p, NULL), 0);
	profdb_profile_free(p);
	p = profdb_profile_new(PROFDB_FILE, &id, "/nowhere/gone.so");
	assert_int_equal(profdb_profile_event_add(p, "cycles", 100), 0);
	profdb_profile_add(p, 1, 0, 31);
	assert_int_equal(profdb_flush_put(db, "gone.so", p, NULL), 0);
	profdb_profile_free(p);
}

static int set_up(void **state)
{
	struct analysis_selection sel = { .db = dir };
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct profdb *db = NULL;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(image_open_path(FIXTURES "/fixture.so", IMAGE_FILE, &fixture, NULL), 0);
	assert_int_equal(profdb_open(dir, true, &db, NULL), 0);
	assert_true(profdb_lock(db, "box", NULL) >= 0);
	assert_true(profdb_epoch_start(db, 1700000000, epoch, NULL) >= 0);
	assert_true(profdb_flush_begin(db, NULL) >= 0);
	put_samples(db);
	assert_true(profdb_flush_commit(db, NULL) >= 0);
	profdb_close(db);
	assert_int_equal(analysis_open(&sel, &a, NULL), 0);
	return 0;
}

static int clean_up(void **state)
{
	char command[64];

	(void)state;
	analysis_close(a);
	image_close(fixture);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* ---- paths ----------------------------------------------------------------------------------- */

enum { FIXTURE, GONE, ELSEWHERE };

static int begin_paths(void **state)
{
	struct base_id gone = { .len = 1, .bytes = { 77 } }, other = { .len = 1, .bytes = { 78 } };
	const struct profdb_image_ref images[] = {
		{ PROFDB_FILE, *image_id(fixture), FIXTURES "/fixture.so", NULL },
		{ PROFDB_FILE, gone, "/nowhere/gone.so", NULL },
		{ PROFDB_FILE, other, "/nowhere/elsewhere", NULL },
	};

	(void)state;
	paths = profdb_callpaths_new();
	assert_non_null(paths);
	for (int i = 0; i < 3; i++)
		assert_int_equal(profdb_callpaths_image_add(paths, &images[i]), i);
	assert_int_equal(profdb_callpaths_event_add(paths, "cycles", 100), 0);
	return 0;
}

static int end_paths(void **state)
{
	(void)state;
	profdb_callpaths_free(paths);
	return 0;
}

/* A path through the fixture's procedures, the sampled one first; NULL ends them. */
static void add(enum profdb_callpath_end end, uint64_t n, const char *first, ...)
{
	struct profdb_frame frames[16];
	size_t nr = 0;
	va_list args;

	va_start(args, first);
	for (const char *name = first; name; name = va_arg(args, const char *))
		frames[nr++] = (struct profdb_frame){ FIXTURE, place(name, 2) };
	va_end(args);
	assert_int_equal(profdb_callpaths_add(paths, 0, end, frames, nr, n), 0);
}

static struct callpath_tree *make(bool inlined, bool fold)
{
	const struct callpath_how how = { .inlined = inlined, .fold = fold };
	struct callpath_tree *t = NULL;
	struct base_err err = { 0 };

	if (callpath_tree_make(a, paths, &how, &t, &err) < 0)
		fail_msg("%s", err.text);
	return t;
}

/* Whether the code before byte @into of @caller calls @callee: one of CALLPATH_AGREES. */
static int checked(const char *callee, const char *caller, uint64_t into, uint64_t *contradicted)
{
	const struct callpath_how how = { .check = true };
	const struct profdb_frame frames[] = { { FIXTURE, place(callee, 2) },
					       { FIXTURE, place(caller, into) } };
	struct callpath_tree *t = NULL;
	int check = 0;

	assert_int_equal(end_paths(NULL), 0);
	assert_int_equal(begin_paths(NULL), 0);
	assert_int_equal(profdb_callpaths_add(paths, 0, PROFDB_CALLPATH_COMPLETE, frames, 2, 7), 0);
	assert_int_equal(callpath_tree_make(a, paths, &how, &t, NULL), 0);
	while (!t->checks[check])
		check++;
	assert_int_equal(t->checks[check], 7);
	*contradicted = t->ends[PROFDB_CALLPATH_CONTRADICTED];
	assert_int_equal(*contradicted + t->ends[PROFDB_CALLPATH_COMPLETE], 7);
	callpath_tree_free(t);
	return check;
}

static uint32_t named(const struct callpath_tree *t, const char *name)
{
	for (uint32_t i = 0; i < t->nr_procedures; i++)
		if (strcmp(t->procedures[i].name, name) == 0)
			return i;
	fail_msg("no procedure %s", name);
	return 0;
}

/* The node that is reached from the root by these names; NULL ends them. */
static uint32_t node(const struct callpath_nodes *n, const struct callpath_tree *t, ...)
{
	const char *name;
	uint32_t at = 0;
	va_list args;

	va_start(args, t);
	while ((name = va_arg(args, const char *))) {
		uint32_t i = at + 1;

		while (i < n->nr && (n->v[i].parent != at ||
				     strcmp(t->procedures[n->v[i].procedure].name, name) != 0))
			i++;
		if (i == n->nr)
			fail_msg("no node %s", name);
		at = i;
	}
	va_end(args);
	return at;
}

static uint64_t self(const struct callpath_tree *t, uint32_t n)
{
	return t->nodes.self[n * t->nodes.nr_events];
}

static uint64_t total(const struct callpath_tree *t, uint32_t n)
{
	return t->nodes.total[n * t->nodes.nr_events];
}

/* The leaves of each procedure have what the flat profile has, and all nodes what all leaves have.
 */
static void check_sums(const struct callpath_tree *t)
{
	for (size_t e = 0; e < a->nr_events; e++) {
		uint64_t *sum = calloc(t->nr_procedures, sizeof(*sum)), nodes = 0;

		for (size_t i = 0; i < t->nr_leaves; i++)
			sum[t->leaves[i].procedure] += t->count[i * a->nr_events + e];
		for (size_t i = 0; i < t->nr_procedures; i++)
			assert_int_equal(sum[i], t->procedures[i].flat[e]);
		for (size_t i = 0; i < t->nodes.nr; i++)
			nodes += t->nodes.self[i * a->nr_events + e];
		assert_int_equal(nodes, a->events[e].sum);
		assert_int_equal(t->nodes.total[e], a->events[e].sum);
		free(sum);
	}
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void test_scaled(void **state)
{
	struct callpath_tree *t;

	(void)state;
	add(PROFDB_CALLPATH_COMPLETE, 2, "alpha", "omega", NULL);
	add(PROFDB_CALLPATH_COMPLETE, 1, "alpha", "versioned", NULL);
	add(PROFDB_CALLPATH_COMPLETE, 3, "omega", NULL);
	t = make(false, false);
	check_sums(t);
	/* The 101 samples are divided into two thirds and a third. */
	assert_in_range(self(t, node(&t->nodes, t, "omega", "alpha", NULL)), 67, 68);
	assert_in_range(self(t, node(&t->nodes, t, "versioned", "alpha", NULL)), 33, 34);
	assert_int_equal(self(t, node(&t->nodes, t, "omega", NULL)), 7);
	/* Without a path, each event for itself. */
	assert_int_equal(self(t, node(&t->nodes, t, "(no path kept)", "nest", NULL)), 50);
	assert_int_equal(self(t, node(&t->nodes, t, "(no path kept)", "versioned", NULL)), 3);
	assert_int_equal(self(t, node(&t->nodes, t, "(no path kept)", "(no symbol)", NULL)), 9);
	assert_int_equal(t->alone[0], 50 + 3 + 9 + 31);
	assert_int_equal(t->alone[1], 11);
	assert_int_equal(callpath_paths(t, 0), 6);
	assert_int_equal(callpath_paths(t, 1), 0);
	callpath_tree_free(t);
}

/* However samples divide, no subtree is a sample off. */
static void test_fair(void **state)
{
	static const char *const callers[] = { "omega", "versioned", "nest" };
	struct callpath_tree *t;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (uint64_t k = 0; k < 5; k++) {
			struct profdb_frame f[3] = { { FIXTURE, place("alpha", 0) },
						     { ELSEWHERE, k },
						     { FIXTURE, place(callers[i], 2) } };

			assert_int_equal(profdb_callpaths_add(paths, 0, PROFDB_CALLPATH_COMPLETE, f,
							      3, 1 + i),
					 0);
		}
	t = make(false, false);
	check_sums(t);
	for (size_t i = 0; i < 3; i++) {
		double due = 101.0 * (double)(5 * (1 + i)) / 30;
		uint64_t is = total(t, node(&t->nodes, t, callers[i], NULL));

		assert_true((double)is > due - 1 && (double)is < due + 1);
	}
	assert_non_null(strstr(t->procedures[named(t, "(image missing)")].name, "missing"));
	callpath_tree_free(t);
}

static void test_unused(void **state)
{
	struct callpath_tree *t;

	(void)state;
	add(PROFDB_CALLPATH_COMPLETE, 5, "outer_proc", NULL); /* has no samples */
	t = make(false, false);
	check_sums(t);
	assert_int_equal(t->unused[0], 5);
	assert_int_equal(total(t, node(&t->nodes, t, "outer_proc", NULL)), 0);
	callpath_tree_free(t);
}

static void test_ends(void **state)
{
	static const char *const names[] = { NULL, "(cut)", "(stack unreadable)",
					     "(no unwind rows)", "(contradicted)" };
	struct callpath_tree *t;

	(void)state;
	for (int end = 0; end < PROFDB_NR_CALLPATH_ENDS; end++)
		add((enum profdb_callpath_end)end, 1, "nest", "omega", NULL);
	t = make(false, false);
	check_sums(t);
	assert_int_equal(self(t, node(&t->nodes, t, "omega", "nest", NULL)), 10);
	for (int end = 1; end < PROFDB_NR_CALLPATH_ENDS; end++) {
		assert_int_equal(t->ends[end], 1);
		assert_int_equal(self(t, node(&t->nodes, t, names[end], "omega", "nest", NULL)),
				 10);
	}
	callpath_tree_free(t);
}

static void test_recursion(void **state)
{
	uint64_t totals[64];
	struct callpath_around x;
	struct callpath_tree *t;

	(void)state;
	add(PROFDB_CALLPATH_COMPLETE, 1, "alpha", "alpha", "alpha", "omega", NULL);
	add(PROFDB_CALLPATH_COMPLETE, 1, "nest", "alpha", "nest", "alpha", "omega", NULL);
	t = make(false, false);
	check_sums(t);
	assert_true(t->nr_procedures <= 64);
	assert_int_equal(callpath_totals(t, 0, NULL, t->nr_procedures, totals), 0);
	assert_int_equal(totals[named(t, "alpha")], 151);
	assert_int_equal(totals[named(t, "nest")], 50);
	assert_int_equal(callpath_around_make(t, named(t, "alpha"), 0, &x), 0);
	assert_int_equal(x.total, 151);
	assert_int_equal(x.self, 101);
	assert_int_equal(x.recursive, 151);
	assert_int_equal(x.nr_callers, 1);
	assert_int_equal(x.callers[0].procedure, named(t, "omega"));
	assert_int_equal(x.callers[0].count, 151);
	assert_int_equal(x.nr_callees, 1);
	assert_int_equal(x.callees[0].procedure, named(t, "nest"));
	assert_int_equal(x.callees[0].count, 50);
	callpath_around_release(&x);
	callpath_tree_free(t);
	t = make(false, true);
	check_sums(t);
	assert_int_equal(self(t, node(&t->nodes, t, "omega", "alpha", NULL)), 101);
	assert_true(t->nodes.v[node(&t->nodes, t, "omega", "alpha", NULL)].recursive);
	callpath_tree_free(t);
}

static void test_inlined(void **state)
{
	const struct profdb_frame f[2] = { { FIXTURE, inlined_place() },
					   { FIXTURE, place("omega", 2) } };
	const struct profdb_frame g[2] = { { FIXTURE, place("alpha", 0) }, f[0] };
	struct callpath_tree *t;
	uint32_t at;

	(void)state;
	assert_int_equal(profdb_callpaths_add(paths, 0, 0, f, 2, 3), 0);
	assert_int_equal(profdb_callpaths_add(paths, 0, 0, g, 2, 1), 0);
	add(PROFDB_CALLPATH_COMPLETE, 2, "nest", "omega", NULL);
	t = make(true, false);
	check_sums(t);
	at = node(&t->nodes, t, "omega", "nest", "middle", "inner", NULL);
	assert_int_equal(self(t, at), 30);
	assert_true(t->nodes.v[at].inlined);
	assert_int_equal(t->procedures[t->nodes.v[at].procedure].kind, CALLPATH_INLINED);
	assert_int_equal(self(t, node(&t->nodes, t, "omega", "nest", NULL)), 20);
	assert_int_equal(self(t, node(&t->nodes, t, "nest", "middle", "inner", "alpha", NULL)),
			 101);
	callpath_tree_free(t);
	t = make(false, false);
	check_sums(t);
	assert_int_equal(self(t, node(&t->nodes, t, "omega", "nest", NULL)), 50);
	callpath_tree_free(t);
}

/* A caller's image without samples, and one that is gone. */
static void test_images(void **state)
{
	const struct profdb_frame f[2] = { { GONE, 1 }, { ELSEWHERE, 2 } };
	struct callpath_tree *t;

	(void)state;
	assert_int_equal(profdb_callpaths_add(paths, 0, 0, f, 2, 4), 0);
	t = make(true, false);
	check_sums(t);
	assert_int_equal(self(t, node(&t->nodes, t, "(image missing)", "(image missing)", NULL)),
			 31);
	assert_string_equal(
		callpath_image_name(
			&t->procedures[t->nodes.v[node(&t->nodes, t, "(image missing)", NULL)]
					       .procedure]),
		"/nowhere/elsewhere");
	callpath_tree_free(t);
}

static void test_other_trees(void **state)
{
	struct callpath_nodes n = { 0 };
	struct callpath_children c = { 0 };
	struct callpath_tree *t;
	bool *chosen;

	(void)state;
	add(PROFDB_CALLPATH_COMPLETE, 1, "alpha", "nest", "omega", NULL);
	add(PROFDB_CALLPATH_COMPLETE, 1, "alpha", "nest", "versioned", NULL);
	add(PROFDB_CALLPATH_COMPLETE, 1, "nest", "alpha", NULL);
	t = make(false, false);
	chosen = calloc(t->nr_procedures, sizeof(*chosen));
	chosen[named(t, "nest")] = true;
	assert_int_equal(callpath_below(t, chosen, &n), 0);
	assert_int_equal(n.total[0], 151);
	assert_int_equal(n.self[node(&n, t, "nest", "alpha", NULL) * n.nr_events], 101);
	callpath_nodes_release(&n);
	assert_int_equal(callpath_above(t, chosen, &n), 0);
	assert_int_equal(n.total[0], 151);
	assert_int_equal(n.self[node(&n, t, "nest", "alpha", NULL) * n.nr_events], 50);
	callpath_nodes_release(&n);
	assert_int_equal(callpath_above(t, NULL, &n), 0);
	assert_int_equal(n.total[0], a->events[0].sum);
	assert_int_equal(n.total[node(&n, t, "alpha", "nest", NULL) * n.nr_events], 101);
	assert_int_equal(callpath_children_make(t, &n, 0, &c), 0);
	assert_int_equal(n.v[c.child[c.first[0]]].procedure, named(t, "alpha"));
	callpath_children_release(&c);
	callpath_nodes_release(&n);
	assert_int_equal(callpath_keep(t, chosen), 0);
	assert_int_equal(t->nodes.total[0], 151);
	free(chosen);
	callpath_tree_free(t);
}

/* Several procedures, one on the path of the other: a sample counts in the tree of each. */
static void test_several(void **state)
{
	struct callpath_nodes n = { 0 };
	struct callpath_tree *t;
	bool *chosen;

	(void)state;
	add(PROFDB_CALLPATH_COMPLETE, 1, "alpha", "nest", "omega", NULL);
	add(PROFDB_CALLPATH_COMPLETE, 1, "nest", "omega", NULL);
	t = make(false, false);
	chosen = calloc(t->nr_procedures, sizeof(*chosen));
	chosen[named(t, "nest")] = chosen[named(t, "alpha")] = true;
	assert_int_equal(callpath_below(t, chosen, &n), 0);
	assert_int_equal(n.total[node(&n, t, "nest", NULL) * n.nr_events], 151);
	assert_int_equal(n.total[node(&n, t, "alpha", NULL) * n.nr_events], 101);
	callpath_nodes_release(&n);
	assert_int_equal(callpath_above(t, chosen, &n), 0);
	assert_int_equal(n.total[node(&n, t, "nest", "omega", NULL) * n.nr_events], 151);
	assert_int_equal(n.total[node(&n, t, "alpha", "nest", NULL) * n.nr_events], 101);
	callpath_nodes_release(&n);
	free(chosen);
	callpath_tree_free(t);
}

static void test_classes(void **state)
{
	struct callpath_tree *t;
	uint64_t totals[2];
	uint32_t *class;

	(void)state;
	add(PROFDB_CALLPATH_COMPLETE, 1, "alpha", "nest", "omega", NULL);
	add(PROFDB_CALLPATH_COMPLETE, 1, "nest", "omega", "alpha", NULL);
	t = make(false, false);
	class = malloc(t->nr_procedures * sizeof(*class));
	for (size_t i = 0; i < t->nr_procedures; i++)
		class[i] = UINT32_MAX;
	class[named(t, "alpha")] = class[named(t, "omega")] = 1;
	class[named(t, "nest")] = 0;
	assert_int_equal(callpath_totals(t, 0, class, 2, totals), 0);
	assert_int_equal(totals[0], 151);
	assert_int_equal(totals[1], 101 + 50 + 7);
	free(class);
	callpath_tree_free(t);
}

/* Numbers near the end of 64 bits are divided as exactly. */
static void test_large(void **state)
{
	struct callpath_tree *t;

	(void)state;
	add(PROFDB_CALLPATH_COMPLETE, UINT64_C(1) << 62, "alpha", "omega", NULL);
	add(PROFDB_CALLPATH_COMPLETE, UINT64_C(1) << 62, "alpha", "nest", NULL);
	t = make(false, false);
	check_sums(t);
	assert_in_range(self(t, node(&t->nodes, t, "omega", "alpha", NULL)), 50, 51);
	callpath_tree_free(t);
}

static void test_find(void **state)
{
	struct callpath_tree *t;
	size_t pos = 0;
	const struct image_symbol *s = image_symbol_find(fixture, "alpha", &pos);
	struct analysis_image *ai = NULL;
	int64_t at;

	(void)state;
	add(PROFDB_CALLPATH_COMPLETE, 1, "alpha", NULL);
	t = make(false, false);
	for (size_t i = 0; i < a->nr_images; i++)
		if (strcmp(a->images[i]->name, FIXTURES "/fixture.so") == 0)
			ai = a->images[i];
	assert_non_null(ai);
	at = callpath_procedure_find(t, ai, NULL, "alpha", s->vaddr);
	assert_int_equal(at, named(t, "alpha"));
	assert_int_equal(callpath_procedure_find(t, ai, NULL, "alpha", s->vaddr + 1), -ENOENT);
	at = callpath_procedure_find(t, ai, NULL, NULL, 0);
	assert_string_equal(t->procedures[at].name, "(no symbol)");
	callpath_tree_free(t);
}

/* The last one, for it changes the profiles. */
static void test_only(void **state)
{
	uint64_t nr_paths[ANALYSIS_NR_EVENTS], sum = 0;
	struct callpath_tree *t;
	bool *callers;

	(void)state;
	add(PROFDB_CALLPATH_COMPLETE, 2, "alpha", "omega", NULL);
	add(PROFDB_CALLPATH_COMPLETE, 1, "alpha", "versioned", NULL);
	add(PROFDB_CALLPATH_COMPLETE, 1, "alpha", NULL);
	add(PROFDB_CALLPATH_COMPLETE, 1, "nest", "alpha", "omega", NULL);
	t = make(false, false);
	callers = calloc(t->nr_procedures, sizeof(*callers));
	callers[named(t, "omega")] = true;
	assert_int_equal(callpath_only(t, paths, callers, nr_paths), 0);
	assert_int_equal(nr_paths[0], 3);
	assert_int_equal(nr_paths[1], 0);
	/* Half of alpha is left, and all of nest. */
	assert_in_range(a->events[0].sum, 50 + 50, 51 + 50);
	assert_int_equal(a->events[1].sum, 0);
	for (size_t i = 0; i < a->nr_images; i++)
		sum += a->images[i]->count[0];
	assert_int_equal(sum, a->events[0].sum);
	free(callers);
	callpath_tree_free(t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_paths, end_paths)

/* alpha calls beta, at one place alone, and nothing else; a path of which that is not true ends
 * below. */
static void test_checked(void **state)
{
	const uint64_t len = 32;
	uint64_t nr = 0, contradicted;

	(void)state;
	for (uint64_t into = 4; into < len; into++) {
		const int check = checked("beta", "alpha", into, &contradicted);

		assert_int_equal(contradicted, check == CALLPATH_CONTRADICTED ? 7 : 0);
		if (check != CALLPATH_AGREES)
			continue;
		nr++;
		assert_int_equal(checked("omega", "alpha", into, &contradicted),
				 CALLPATH_CONTRADICTED);
	}
	assert_int_equal(nr, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_scaled),    TEST(test_fair),	  TEST(test_unused), TEST(test_ends),
		TEST(test_recursion), TEST(test_inlined), TEST(test_images), TEST(test_other_trees),
		TEST(test_several),   TEST(test_classes), TEST(test_large),  TEST(test_find),
		TEST(test_only),      TEST(test_checked),
	};

	return cmocka_run_group_tests(tests, set_up, clean_up);
}
