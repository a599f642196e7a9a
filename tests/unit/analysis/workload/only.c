/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples are chosen by workload and by minute, and put into groups; sums stay exact. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "workload.h"

enum { UTC = 1700000040, MINUTE = UTC / 60 };

static char dir[] = "/tmp/dcpi-workload-XXXXXX";

static const struct profdb_image_ref images[] = {
	{ .kind = PROFDB_FILE, .id = { .len = 4, .bytes = { 1 } }, .path = "/bin/a" },
	{ .kind = PROFDB_DYNAMIC,
	  .id = { .len = 4, .bytes = { 2 } },
	  .path = "j.dyn",
	  .stem = "j.dyn" },
};

static const struct profdb_workload workloads[] = {
	{ "a", "/bin/a", "/a.slice", "", "main", 1, 10, 1 },
	{ "a", "/bin/a", "/a.slice", "", "[w*]", 1, 10, 1 },
	{ "\x1b(idle)\n", "/opt/b", "/b.slice/b.service", "night", "", 2, 0, 700 },
	{ "(idle)", "", "", "", "", UINT32_MAX, 0, 0 },
	{ "(idle)", "/bin/liar", "", "", "(idle)", 3, 0, 1 },
};

/* Samples of workload, image, offset, minute: of "cycles". 100 in all. */
static const struct {
	uint32_t workload, image;
	uint64_t off, minute, n;
} samples[] = {
	{ 0, 0, 0x10, 0, 20 }, { 0, 0, 0x10, 1, 10 }, { 0, 0, 0x20, 1, 9 },  { 0, 0, 0x30, 1, 1 },
	{ 1, 0, 0x10, 1, 7 },  { 1, 0, 0x410, 0, 3 }, { 2, 0, 0x20, 2, 11 }, { 2, 1, 0x8, 1, 19 },
	{ 3, 1, 0x8, 0, 16 },  { 4, 1, 0x8, 2, 4 },
};

enum { NR_IMAGES = 2, NR_WORKLOADS = 5, NR_SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static void put_profiles(struct profdb *db)
{
	struct base_err err = { 0 };

	for (uint32_t i = 0; i < NR_IMAGES; i++) {
		struct profdb_profile *p =
			profdb_profile_new(images[i].kind, &images[i].id, images[i].path);

		assert_int_equal(profdb_profile_event_add(p, "cycles", 100), 0);
		for (size_t k = 0; k < NR_SAMPLES; k++)
			if (samples[k].image == i)
				assert_int_equal(
					profdb_profile_add(p, samples[k].off, 0, samples[k].n), 0);
		assert_int_equal(
			profdb_flush_put(db, images[i].stem ? images[i].stem : "a", p, &err), 0);
		profdb_profile_free(p);
	}
}

static void put_workloads(struct profdb *db)
{
	struct profdb_workloads *w = profdb_workloads_new();
	struct base_err err = { 0 };

	assert_int_equal(profdb_workloads_event_add(w, "cycles", 100), 0);
	for (int i = 0; i < NR_IMAGES; i++)
		assert_int_equal(profdb_workloads_image_add(w, &images[i]), i);
	for (int i = 0; i < NR_WORKLOADS; i++)
		assert_int_equal(profdb_workloads_workload_add(w, &workloads[i]), i);
	for (size_t i = 0; i < NR_SAMPLES; i++)
		assert_int_equal(profdb_workloads_add(
					 w, samples[i].workload, samples[i].image, samples[i].off,
					 0, MINUTE + (int64_t)samples[i].minute, samples[i].n),
				 0);
	if (profdb_flush_put_workloads(db, w, &err) < 0)
		fail_msg("%s", err.text);
	profdb_workloads_free(w);
}

/* An epoch with workloads, and one that has none. */
static void put_epoch(int64_t utc, bool with)
{
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct base_err err = { 0 };
	struct profdb *db = NULL;

	assert_int_equal(profdb_open(dir, true, &db, &err), 0);
	assert_int_equal(profdb_lock(db, "box", &err), 0);
	assert_int_equal(profdb_epoch_start(db, utc, epoch, &err), 0);
	assert_int_equal(profdb_flush_begin(db, &err), 0);
	put_profiles(db);
	if (with)
		put_workloads(db);
	assert_int_equal(profdb_flush_commit(db, &err), 0);
	assert_int_equal(profdb_epoch_finish(db, &err), 0);
	profdb_close(db);
}

static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(dir));
	put_epoch(UTC, true);
	put_epoch(UTC + 3600, false);
	return 0;
}

static int clean_up(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

struct opened {
	struct analysis *a;
	struct profdb_workloads *w;
	struct workload_filter f;
};

static void open_epoch(struct opened *o, const char *epoch)
{
	struct analysis_selection sel = { .db = dir, .epoch = epoch };
	struct base_err err = { 0 };

	workload_filter_init(&o->f);
	if (analysis_open(&sel, &o->a, &err) < 0 ||
	    workload_load(o->a, WORKLOAD_MINUTES, &o->w, &err) < 0)
		fail_msg("%s", err.text);
}

static void close_epoch(struct opened *o)
{
	profdb_workloads_free(o->w);
	analysis_close(o->a);
}

static void only(struct opened *o, enum workload_key key, const char *const *glob)
{
	struct base_err err = { 0 };

	o->f.globs[key] = glob;
	o->f.nr[key] = glob ? 1 : 0;
	if (workload_only(o->a, o->w, &o->f, &err) < 0)
		fail_msg("%s", err.text);
}

static uint64_t at(const struct opened *o, size_t image, uint64_t off)
{
	const struct profdb_profile *p = o->a->images[image]->profile;

	for (size_t i = 0; i < profdb_profile_nr_entries(p); i++)
		if (profdb_profile_entry(p, i)->off == off)
			return profdb_profile_entry(p, i)->count[0];
	return 0;
}

/* Samples that are left where that glob chooses. */
static uint64_t left(enum workload_key key, const char *glob)
{
	struct opened o = { 0 };
	uint64_t sum;

	open_epoch(&o, "202311142214");
	only(&o, key, &glob);
	sum = o.a->events[0].sum;
	close_epoch(&o);
	return sum;
}

static void test_globs(void **state)
{
	(void)state;
	assert_int_equal(left(WORKLOAD_COMM, "a"), 50);
	assert_int_equal(left(WORKLOAD_COMM, "*"), 100);
	assert_int_equal(left(WORKLOAD_COMM, "b*"), 0);
	assert_int_equal(left(WORKLOAD_COMM, "*(idle)*"), 50);
	assert_int_equal(left(WORKLOAD_EXE, "/*"), 84);
	assert_int_equal(left(WORKLOAD_EXE, "b"), 30);
	assert_int_equal(left(WORKLOAD_EXE, "/opt"), 0);
	assert_int_equal(left(WORKLOAD_PID, "10"), 50);
	assert_int_equal(left(WORKLOAD_PID, "0"), 16);
	assert_int_equal(left(WORKLOAD_UID, "2"), 30);
	assert_int_equal(left(WORKLOAD_UID, "[12]"), 80);
	assert_int_equal(left(WORKLOAD_CGROUP, "/?.slice*"), 80);
	assert_int_equal(left(WORKLOAD_UNIT, "b.service"), 30);
	assert_int_equal(left(WORKLOAD_LABEL, "night"), 30);
	/* A name that looks like a glob is found by itself, one that is not kept by nothing. */
	assert_int_equal(left(WORKLOAD_THREAD, "[w*]"), 10);
	assert_int_equal(left(WORKLOAD_THREAD, "\\[w*"), 0);
	assert_int_equal(left(WORKLOAD_THREAD, "*"), 70);
}

static void test_everything(void **state)
{
	struct opened o = { 0 };

	(void)state;
	open_epoch(&o, "202311142214");
	assert_true(workload_filter_is_all(&o.f));
	only(&o, WORKLOAD_COMM, NULL);
	assert_int_equal(o.a->nr_images, 2);
	assert_int_equal(o.a->events[0].sum, 100);
	assert_int_equal(at(&o, 0, 0x10), 37);
	assert_int_equal(at(&o, 0, 0x20), 20);
	assert_int_equal(at(&o, 1, 0x8), 39);
	close_epoch(&o);
}

/* Minute 1 has 20 of the 40 samples of workload 0 in block 0, which are 30, 9 and 1. */
static void test_window(void **state)
{
	struct opened o = { 0 };

	(void)state;
	open_epoch(&o, "202311142214");
	o.f.since = UTC + 60;
	o.f.until = UTC + 120;
	assert_false(workload_filter_is_all(&o.f));
	only(&o, WORKLOAD_COMM, NULL);
	assert_int_equal(o.a->events[0].sum, 10 + 9 + 1 + 7 + 19);
	assert_int_equal(at(&o, 0, 0x10), 15 + 7);
	assert_int_equal(at(&o, 0, 0x20), 5);
	assert_int_equal(at(&o, 0, 0x30), 0);
	assert_int_equal(at(&o, 0, 0x410), 0);
	assert_int_equal(at(&o, 1, 0x8), 19);
	close_epoch(&o);
}

/* Windows that touch have all samples between them, once. */
static void test_windows(void **state)
{
	uint64_t sum = 0;

	(void)state;
	for (int64_t i = -1; i < 4; i++) {
		struct opened o = { 0 };

		open_epoch(&o, "202311142214");
		o.f.since = i < 0 ? INT64_MIN : UTC + 60 * i - 30;
		o.f.until = i == 3 ? INT64_MAX : UTC + 60 * i + 30;
		only(&o, WORKLOAD_COMM, NULL);
		sum += o.a->events[0].sum;
		close_epoch(&o);
	}
	assert_int_equal(sum, 100);
}

static const struct workload_group *find(const struct workload_groups *g, const char *name)
{
	for (size_t i = 0; i < g->nr; i++)
		if (strcmp(g->v[i].name, name) == 0)
			return &g->v[i];
	fail_msg("no group '%s'", name);
	return NULL;
}

static void group(struct opened *o, enum workload_key key, struct workload_groups *g)
{
	memset(g, 0, sizeof(*g));
	assert_int_equal(workload_by(o->a, o->w, &o->f, key, NULL, NULL, g), 0);
	assert_int_equal(workload_groups_sort(g, 0), 0);
	for (size_t i = 1; i < g->nr; i++)
		assert_true(g->v[i - 1].count[0] >= g->v[i].count[0]);
}

/* Two threads are one process; the idle task is none, and one that calls itself so is another. */
static void test_groups(void **state)
{
	struct opened o = { 0 };
	struct workload_groups g;

	(void)state;
	open_epoch(&o, "202311142214");
	group(&o, WORKLOAD_COMM, &g);
	assert_int_equal(g.nr, 4);
	assert_int_equal(find(&g, "a")->count[0], 50);
	assert_int_equal(find(&g, "a")->processes, 1);
	assert_int_equal(find(&g, "\x1b(idle)\n")->processes, 700);
	assert_int_equal(find(&g, "(idle)")->class, WORKLOAD_KEPT);
	assert_int_equal(find(&g, "")->class, WORKLOAD_IDLE);
	assert_int_equal(find(&g, "")->count[0], 16);
	workload_groups_release(&g);
	group(&o, WORKLOAD_PID, &g);
	assert_int_equal(g.nr, 3);
	assert_string_equal(find(&g, "10")->comm, "a");
	assert_int_equal(g.v[1].class, WORKLOAD_DROPPED);
	assert_int_equal(g.v[1].processes, 701);
	assert_string_equal(g.v[1].comm, "");
	workload_groups_release(&g);
	close_epoch(&o);
}

static bool is_dynamic(void *ctx, struct analysis_image *ai)
{
	(void)ctx;
	return ai->kind == PROFDB_DYNAMIC;
}

static void test_groups_of_image(void **state)
{
	struct opened o = { 0 };
	struct workload_groups g = { 0 };

	(void)state;
	open_epoch(&o, "202311142214");
	o.f.since = UTC + 60;
	assert_int_equal(workload_by(o.a, o.w, &o.f, WORKLOAD_UID, is_dynamic, NULL, &g), 0);
	assert_int_equal(g.nr, 2);
	assert_int_equal(find(&g, "2")->count[0], 19);
	assert_int_equal(find(&g, "3")->count[0], 4);
	workload_groups_release(&g);
	close_epoch(&o);
}

static void check_unrecorded(const struct analysis *a)
{
	struct base_buf names = { 0 };

	assert_int_equal(workload_unrecorded(a, &names), 0);
	assert_int_equal(names.len, 13);
	assert_memory_equal(names.data, " 202311142314", names.len);
	base_buf_release(&names);
}

static void test_unrecorded(void **state)
{
	struct opened o = { 0 };

	(void)state;
	open_epoch(&o, "202311142314");
	assert_int_equal(profdb_workloads_nr(o.w), 0);
	check_unrecorded(o.a);
	close_epoch(&o);
	open_epoch(&o, "all");
	check_unrecorded(o.a);
	only(&o, WORKLOAD_COMM, NULL);
	assert_int_equal(o.a->events[0].sum, 100);
	close_epoch(&o);
}

static void test_key_names(void **state)
{
	enum workload_key key;

	(void)state;
	for (int i = 0; i < WORKLOAD_NR_KEYS; i++) {
		assert_int_equal(workload_key_find(workload_key_name((enum workload_key)i), &key),
				 0);
		assert_int_equal(key, i);
	}
	assert_int_equal(workload_key_find("host", &key), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_globs),	   cmocka_unit_test(test_everything),
		cmocka_unit_test(test_window),	   cmocka_unit_test(test_windows),
		cmocka_unit_test(test_groups),	   cmocka_unit_test(test_groups_of_image),
		cmocka_unit_test(test_unrecorded), cmocka_unit_test(test_key_names),
	};

	return cmocka_run_group_tests(tests, set_up, clean_up);
}
