/* SPDX-License-Identifier: BSD-2-Clause */
/* Viewers of the running daemon get the samples since they asked last, and only those that they may
 * see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "watch.h"

enum { ANN = 1000, BOB = 1001, NOW = 1000000000 };

static const struct watch_peer root = { .pid = 1, .sock = 10, .all = true };
static const struct watch_peer ann = { .pid = 2, .uid = ANN, .sock = 10 };

static struct store store;
static struct image *program, *kernel;
static uint32_t lives[2];

static int setup(void **state)
{
	const struct workload_who a = { .comm = "a", .uid = ANN, .pid = 100 },
				  b = { .comm = "b", .uid = BOB, .pid = 200 };

	(void)state;
	store = (struct store){ .images = images_new(),
				.workloads = workloads_new(),
				.watch = watch_new(),
				.events = { { .name = "cycles", .period = 5 } },
				.nr_events = 1 };
	program = images_get(store.images, PROFDB_FILE, &(struct base_id){ 1, { 1 } },
			     "/home/bob/bin/prog", "prog");
	kernel = images_get(store.images, PROFDB_KERNEL, &(struct base_id){ 1, { 2 } }, "vmlinux",
			    "vmlinux");
	lives[0] = workload_life(store.workloads, &a);
	lives[1] = workload_life(store.workloads, &b);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	watch_free(store.watch);
	images_free(store.images);
	workloads_free(store.workloads);
	return 0;
}

static void add(struct image *img, uint64_t off, uint64_t n, unsigned int who, uint32_t reader)
{
	const struct store_count c = { .off = off,
				       .n = n,
				       .where = { .life = lives[who], .minute = 7 },
				       .reader = reader,
				       .kernel = img == kernel };

	store_soon(&store, img, &c);
	store_all(&store);
}

/* NULL: there are none, as it is a new viewer's first question. */
static struct profdb_workloads *take_at(const struct watch_peer *peer, uint64_t now)
{
	struct profdb_workloads *w = NULL;
	struct base_buf out = { 0 };
	struct base_err err = { 0 };

	assert_int_equal(watch_take(store.watch, peer, store.events, 1, now, &out, &err), 0);
	if (out.len)
		assert_int_equal(profdb_workloads_parse(out.data, out.len, &w, &err), 0);
	base_buf_release(&out);
	return w;
}

static struct profdb_workloads *take(const struct watch_peer *peer)
{
	return take_at(peer, NOW);
}

/* Samples in @path, at @off (negative: any) and of @comm (NULL: any). */
static uint64_t found(const struct profdb_workloads *w, const char *path, int64_t off,
		      const char *comm)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < profdb_workloads_nr_counts(w); i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);
		const struct profdb_workload *k = profdb_workloads_workload(w, c.workload);

		if (strcmp(profdb_workloads_image(w, c.image)->path, path) == 0 &&
		    (off < 0 || c.off == (uint64_t)off) && (!comm || strcmp(k->comm, comm) == 0))
			sum += c.count[0];
	}
	return sum;
}

static uint64_t all_of(const struct profdb_workloads *w)
{
	return profdb_workloads_event(w, 0)->sum;
}

static void test_since_the_last_question(void **state)
{
	struct profdb_workloads *w;

	(void)state;
	add(program, 16, 3, 0, 0);
	assert_null(take(&root));
	add(program, 16, 4, 0, 0);
	add(program, 32, 5, 1, 0);
	w = take(&root);
	assert_int_equal(all_of(w), 9);
	assert_int_equal(found(w, "/home/bob/bin/prog", 16, "a"), 4);
	assert_int_equal(found(w, "/home/bob/bin/prog", 32, "b"), 5);
	assert_int_equal(profdb_workloads_event(w, 0)->period, 5);
	profdb_workloads_free(w);
	w = take(&root);
	assert_int_equal(all_of(w), 0);
	profdb_workloads_free(w);
}

/* An ordinary user's samples are those that are said to be the user's; of the kernel's only that
 * they are. Sums are those of the machine. */
static void test_rights(void **state)
{
	struct profdb_workloads *w;

	(void)state;
	assert_null(take(&ann));
	assert_true(watch_wants(store.watch, ANN));
	assert_false(watch_wants(store.watch, BOB));
	assert_false(watch_wants(store.watch, 0));
	add(program, 16, 1, 0, ANN);
	add(program, 48, 2, 0, 0); /* its process was not asked yet */
	add(program, 32, 4, 1, BOB);
	add(kernel, 64, 8, 0, ANN);
	add(kernel, 64, 16, 1, 0);
	w = take(&ann);
	assert_int_equal(all_of(w), 31);
	assert_int_equal(found(w, "(file)", 16, "a"), 1);
	assert_int_equal(found(w, "(file)", -1, NULL), 1);
	assert_int_equal(found(w, "kernel", 0, "a"), 8);
	assert_int_equal(found(w, "other users", 0, ""), 22);
	for (size_t i = 0; i < profdb_workloads_nr(w); i++)
		assert_string_not_equal(profdb_workloads_workload(w, i)->comm, "b");
	for (size_t i = 0; i < profdb_workloads_nr_images(w); i++) {
		assert_string_not_equal(profdb_workloads_image(w, i)->path, "vmlinux");
		assert_null(strstr(profdb_workloads_image(w, i)->path, "bob"));
	}
	profdb_workloads_free(w);
}

static void test_idle_is_for_all(void **state)
{
	const struct store_count c = { .n = 6, .where = { .life = WORKLOAD_IDLE } };
	struct profdb_workloads *w;

	(void)state;
	assert_null(take(&ann));
	store_bucket(&store, ACCOUNT_BUCKET_IDLE, &(struct images_owner){ 0 }, &c);
	store_soon(&store, kernel, &c);
	store_all(&store);
	w = take(&ann);
	assert_int_equal(found(w, "idle", 0, "(idle)"), 6);
	/* An interrupt. */
	assert_int_equal(found(w, "kernel", 0, "(idle)"), 6);
	assert_int_equal(found(w, "vmlinux", -1, NULL), 0);
	profdb_workloads_free(w);
}

/* A viewer that does not ask takes no more room than that; nothing of the sums is missing. */
static void test_full(void **state)
{
	struct profdb_workloads *w;

	(void)state;
	assert_null(take(&root));
	for (uint64_t i = 0; i < 2 * WATCH_NR_COUNTS; i++)
		add(program, 16 * i, 1, 0, 0);
	w = take(&root);
	assert_int_equal(all_of(w), 2 * WATCH_NR_COUNTS);
	assert_int_equal(found(w, "left out", 0, NULL), WATCH_NR_COUNTS);
	assert_true(profdb_workloads_nr_counts(w) <= WATCH_NR_COUNTS + 1);
	profdb_workloads_free(w);
}

static void test_too_many_names(void **state)
{
	char name[3000];
	struct profdb_workloads *w;
	size_t len = 0;

	(void)state;
	assert_null(take(&root));
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (unsigned int i = 0; i < 200; i++) {
		const struct workload_who who = { .comm = "c", .exe = name, .uid = i, .pid = 5 };

		snprintf(name, 12, "%010u", i);
		name[10] = 'x';
		lives[1] = workload_life(store.workloads, &who);
		add(program, 16, 1, 1, 0);
	}
	w = take(&root);
	assert_int_equal(all_of(w), 200);
	for (size_t i = 0; i < profdb_workloads_nr(w); i++)
		len += strlen(profdb_workloads_workload(w, i)->exe);
	assert_true(len <= WATCH_TEXT_MAX);
	profdb_workloads_free(w);
}

static void test_too_many_paths(void **state)
{
	char path[3000] = "/";
	struct profdb_workloads *w;
	size_t len = 0;

	(void)state;
	assert_null(take(&root));
	memset(path + 1, 'x', sizeof(path) - 2);
	for (uint8_t i = 0; i < 200; i++)
		add(images_get(store.images, PROFDB_FILE, &(struct base_id){ 2, { 9, i } }, path,
			       "x"),
		    0, 1, 0, 0);
	w = take(&root);
	assert_int_equal(all_of(w), 200);
	for (size_t i = 0; i < profdb_workloads_nr_images(w); i++)
		len += strlen(profdb_workloads_image(w, i)->path);
	assert_true(len <= WATCH_TEXT_MAX + 100);
	assert_true(found(w, "left out", 0, NULL) > 50);
	profdb_workloads_free(w);
}

/* Images stay while a viewer has samples in them. */
static void test_images_are_held(void **state)
{
	(void)state;
	assert_null(take(&root));
	add(program, 16, 1, 0, 0);
	profdb_profile_clear(program->counts);
	program->dirty = false;
	images_drop_unused(store.images);
	assert_int_equal(images_nr(store.images), 1);
	profdb_workloads_free(take(&root));
	images_drop_unused(store.images);
	assert_int_equal(images_nr(store.images), 0);
	program = kernel = NULL;
}

static int ask(int32_t pid, uint32_t uid, bool all)
{
	const struct watch_peer peer = { .pid = pid, .uid = uid, .sock = 3, .all = all };
	struct base_buf out = { 0 };
	struct base_err err = { 0 };
	int r = watch_take(store.watch, &peer, store.events, 1, NOW, &out, &err);

	base_buf_release(&out);
	return r;
}

/* Ordinary users cannot take the last places, nor one of them all of theirs. */
static void test_places(void **state)
{
	int32_t pid = 1;

	(void)state;
	assert_false(watch_is_due(store.watch, UINT64_MAX));
	for (int i = 0; i < WATCH_NR_OWN; i++)
		assert_int_equal(ask(pid++, ANN, false), 0);
	assert_int_equal(ask(pid++, ANN, false), -DCPI_ELIMIT);
	for (int i = WATCH_NR_OWN; i < WATCH_NR_OTHERS; i++)
		assert_int_equal(ask(pid++, BOB + (uint32_t)i, false), 0);
	assert_int_equal(ask(pid++, BOB, false), -DCPI_ELIMIT);
	for (int i = WATCH_NR_OTHERS; i < WATCH_NR_VIEWERS; i++)
		assert_int_equal(ask(pid++, 0, true), 0);
	assert_int_equal(ask(pid++, 0, true), -DCPI_ELIMIT);
	assert_false(watch_is_due(store.watch, NOW));
	assert_true(watch_is_due(store.watch, NOW + 1));
	watch_expire(store.watch, NOW + WATCH_SILENCE_NS);
	assert_int_equal(ask(pid++, 0, true), -DCPI_ELIMIT);
	watch_expire(store.watch, NOW + WATCH_SILENCE_NS + 1);
	assert_int_equal(ask(pid++, ANN, false), 0);
	assert_false(watch_wants(store.watch, BOB + 2));
}

/* A life's number that is given anew is another process's. */
static void test_forget(void **state)
{
	const struct workload_who c = { .comm = "c", .uid = ANN, .pid = 300 };
	struct profdb_workloads *w;

	(void)state;
	assert_null(take(&root));
	add(program, 16, 1, 0, 0);
	workload_life_change(store.workloads, lives[0], &c);
	watch_forget(store.watch);
	add(program, 16, 2, 0, 0);
	w = take(&root);
	assert_int_equal(found(w, "/home/bob/bin/prog", 16, "a"), 1);
	assert_int_equal(found(w, "/home/bob/bin/prog", 16, "c"), 2);
	profdb_workloads_free(w);
}

/* A name is not late by more than that, however busy the machine is. */
static void test_pause(void **state)
{
	(void)state;
	assert_int_equal(watch_write_pause(0), 1000000000);
	assert_int_equal(watch_write_pause(1000000), 1000000000);
	assert_int_equal(watch_write_pause(4000000), 2000000000);
	assert_int_equal(watch_write_pause(40000000), 5000000000);
	assert_int_equal(watch_write_pause(UINT64_MAX), 5000000000);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_since_the_last_question),
		T(test_rights),
		T(test_idle_is_for_all),
		T(test_full),
		T(test_too_many_names),
		T(test_too_many_paths),
		T(test_images_are_held),
		T(test_places),
		T(test_forget),
		T(test_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
