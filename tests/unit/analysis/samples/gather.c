/* SPDX-License-Identifier: BSD-2-Clause */
/* Which samples are chosen, and that profiles of one image become one. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "samples.h"

static char dir[] = "/tmp/dcpi-gather-XXXXXX";

static struct profdb_profile *make(enum profdb_kind kind, uint8_t id_byte, const char *path,
				   const char *event, uint64_t period)
{
	struct base_id id = { .len = 20 };
	struct profdb_profile *p;

	memset(id.bytes, id_byte, 20);
	p = profdb_profile_new(kind, &id, path);
	assert_non_null(p);
	assert_int_equal(profdb_profile_event_add(p, event, period), 0);
	return p;
}

static void put(struct profdb *db, struct profdb_profile *p, uint64_t off, uint64_t n)
{
	struct base_err err = { 0 };
	const char *path = profdb_profile_path(p, 0);
	const char *slash = strrchr(path, '/');

	assert_int_equal(profdb_profile_add(p, off, 0, n), 0);
	if (profdb_flush_put(db, slash ? slash + 1 : path, p, &err) < 0)
		fail_msg("%s", err.text);
	profdb_profile_free(p);
}

static struct profdb *begin(const char *platform, int64_t utc)
{
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct base_err err = { 0 };
	struct profdb *db = NULL;

	assert_int_equal(profdb_open(dir, true, &db, &err), 0);
	if (profdb_lock(db, platform, &err) < 0 || profdb_epoch_start(db, utc, epoch, &err) < 0 ||
	    profdb_flush_begin(db, &err) < 0)
		fail_msg("%s", err.text);
	return db;
}

static void end(struct profdb *db, bool finish)
{
	struct base_err err = { 0 };

	if (profdb_flush_commit(db, &err) < 0 || (finish && profdb_epoch_finish(db, &err) < 0))
		fail_msg("%s", err.text);
	profdb_close(db);
}

/* Two epochs (202311142213, 202311142214), the second open and on two platforms. */
static int set_up(void **state)
{
	struct profdb *db;

	(void)state;
	assert_non_null(mkdtemp(dir));
	db = begin("one", 1700000000);
	put(db, make(PROFDB_FILE, 1, "/bin/a", "cycles", 100), 0x10, 1);
	put(db, make(PROFDB_DYNAMIC, 2, "hello.1.dyn", "cycles", 100), 0x20, 2);
	end(db, true);
	db = begin("one", 1700000060);
	put(db, make(PROFDB_FILE, 1, "/bin/a", "cycles", 100), 0x10, 4);
	put(db, make(PROFDB_DYNAMIC, 3, "hello.1.dyn", "cycles", 100), 0x20, 8);
	put(db, make(PROFDB_FILE, 9, "/bin/a", "cycles", 100), 0x10, 16);
	end(db, false);
	db = begin("two", 1700000060);
	put(db, make(PROFDB_FILE, 1, "/usr/bin/a", "cycles", 200), 0x18, 32);
	put(db, make(PROFDB_FILE, 1, "/usr/bin/a", "imiss", 7), 0x18, 64);
	put(db, make(PROFDB_NAMED, 0, "unknown", "cycles", 200), 0, 128);
	end(db, false);
	return 0;
}

static int clean_up(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static struct analysis *open_db(const char *epoch, const char *platform, const char *event)
{
	struct analysis_selection sel = {
		.db = dir, .epoch = epoch, .platform = platform, .event = event
	};
	struct base_err err = { 0 };
	struct analysis *a = NULL;

	if (analysis_open(&sel, &a, &err) < 0)
		fail_msg("%s", err.text);
	return a;
}

static uint64_t sum(const struct analysis *a, const char *event)
{
	int i = analysis_event_find(a, event, NULL);
	uint64_t images = 0;

	assert_true(i >= 0);
	for (size_t k = 0; k < a->nr_images; k++)
		images += a->images[k]->count[i];
	assert_int_equal(images, a->events[i].sum);
	return images;
}

static void test_newest(void **state)
{
	struct analysis *a = open_db(NULL, NULL, NULL);

	(void)state;
	assert_int_equal(a->nr_epochs, 1);
	assert_string_equal(a->epochs[0].name, "202311142214");
	assert_true(a->epochs[0].open);
	assert_int_equal(a->nr_platforms, 2);
	assert_int_equal(sum(a, "cycles"), 4 + 8 + 16 + 32 + 128);
	assert_int_equal(sum(a, "imiss"), 64);
	assert_int_equal(a->nr_images, 4); /* a, another a, hello, (unknown) */
	assert_true(a->events[0].mixed);
	assert_int_equal(a->nr_bad, 0);
	analysis_close(a);
}

static void test_all(void **state)
{
	struct analysis *a = open_db("all", NULL, NULL);
	size_t paths = 0, dynamic = 0;

	(void)state;
	assert_int_equal(a->nr_epochs, 2);
	assert_false(a->epochs[0].open);
	assert_int_equal(sum(a, "cycles"), 1 + 2 + 4 + 8 + 16 + 32 + 128);
	assert_int_equal(a->nr_images, 4);
	for (size_t i = 0; i < a->nr_images; i++) {
		struct analysis_image *ai = a->images[i];

		if (profdb_profile_image(ai->profile)->bytes[0] == 1)
			while (profdb_profile_path(ai->profile, paths))
				paths++;
		if (ai->kind != PROFDB_DYNAMIC)
			continue;
		/* It grew between the epochs: one image, under its newer identity. */
		dynamic++;
		assert_int_equal(ai->count[0], 10);
		assert_int_equal(profdb_profile_image(ai->profile)->bytes[0], 3);
	}
	assert_int_equal(paths, 2);
	assert_int_equal(dynamic, 1);
	analysis_close(a);
}

static void test_parts(void **state)
{
	struct analysis *a = open_db("all", "two", NULL);

	(void)state;
	assert_int_equal(sum(a, "cycles"), 160);
	assert_false(a->events[0].mixed);
	analysis_close(a);
	a = open_db("202311142213", NULL, NULL);
	assert_int_equal(sum(a, "cycles"), 3);
	analysis_close(a);
	a = open_db(NULL, NULL, "imiss");
	assert_int_equal(a->nr_events, 1);
	assert_int_equal(sum(a, "imiss"), 64);
	analysis_close(a);
}

static void refused(const char *db, const char *epoch, const char *platform, const char *event,
		    int code, const char *text, const char *hint)
{
	struct analysis_selection sel = {
		.db = db, .epoch = epoch, .platform = platform, .event = event
	};
	struct base_err err = { 0 };
	struct analysis *a = NULL;

	assert_int_equal(analysis_open(&sel, &a, &err), code);
	assert_null(a);
	assert_non_null(strstr(err.text, text));
	assert_non_null(strstr(err.hint, hint));
}

static void test_refused(void **state)
{
	(void)state;
	refused("/nowhere/db", NULL, NULL, NULL, -ENOENT, "/nowhere/db", "");
	refused("/usr", NULL, NULL, NULL, -DCPI_ENOTDB, "/usr", "");
	refused(dir, "200001010000", NULL, NULL, -ENOENT, "200001010000", "202311142213");
	refused(dir, NULL, "three", NULL, -ENOENT, "three", "one two");
	refused(dir, NULL, NULL, "flops", -ENOENT, "flops", "imiss");
}

/* The event of reports that name none: one of time, whatever else was counted, in any order. */
static void test_default_event(void **state)
{
	static const struct {
		const char *names[3];
		size_t at;
	} cases[] = {
		{ { "page-faults", "tick" }, 1 },
		{ { "cache-misses", "cpu-clock", "tick" }, 1 },
		{ { "branches", "cpu-cycles:u", "cpu-clock" }, 1 },
		{ { "cpu-clock", "cycles" }, 1 },
		{ { "page-faults", "ticks" }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct analysis_event events[3] = { { .period = 1 } };
		struct analysis a = { .events = events };

		for (; a.nr_events < 3 && cases[i].names[a.nr_events]; a.nr_events++)
			snprintf(events[a.nr_events].name, sizeof(events[0].name), "%s",
				 cases[i].names[a.nr_events]);
		assert_int_equal(analysis_event_default(&a), cases[i].at);
	}
}

/* One damaged file costs its own samples, is named, and nothing else changes. */
static void test_damaged(void **state)
{
	char command[256];
	struct analysis *a;

	(void)state;
	snprintf(command, sizeof(command),
		 "f=$(ls %s/202311142213/one/a* | head -n 1) && printf xx >>$f", dir);
	assert_int_equal(system(command), 0);
	a = open_db("all", NULL, NULL);
	assert_int_equal(a->nr_bad, 1);
	assert_int_equal(strncmp(a->bad[0].file, "202311142213/one/a", 18), 0);
	assert_non_null(strstr(a->bad[0].err.text, "epoch 202311142213, platform one"));
	assert_int_equal(sum(a, "cycles"), 2 + 4 + 8 + 16 + 32 + 128);
	analysis_close(a);
}

/* ---- files of one build-id ------------------------------------------------------------------- */

static struct profdb_profile *with_text(const struct base_id *id, const char *path,
					const char *text)
{
	struct profdb_profile *p = profdb_profile_new(PROFDB_FILE, id, path);

	assert_non_null(p);
	assert_int_equal(profdb_profile_event_add(p, "cycles", 100), 0);
	if (text)
		assert_int_equal(profdb_profile_set_word(p, "text", text), 0);
	return p;
}

/* This program is the packaged file: one file of its build-id is a copy, two are not. */
static void test_copies(void **state)
{
	static const char forged[] = "00000000000000000000000000000000deadbeef";
	struct analysis_selection sel = { .db = dir, .epoch = "202311142215" };
	char text[BASE_ID_TEXT_LEN], exe[4096] = "";
	struct base_err err = { 0 };
	struct base_id id, code;
	struct profdb *db = begin("three", 1700000120);
	struct analysis *a = NULL;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_int_equal(image_identify(AT_FDCWD, exe, &id, &err), 0);
	assert_int_equal(base_id_of_text(&code, fd), 0);
	close(fd);
	put(db, with_text(&id, "/home/forger/perl", forged), 0x10, 1);
	put(db, with_text(&id, exe, NULL), 0x10, 2);
	put(db, with_text(&id, "/home/user/copy", base_id_text(&code, text)), 0x10, 4);
	put(db, with_text(&id, "/home/gone", "00"), 0x10, 8);
	end(db, false);
	if (analysis_open(&sel, &a, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(a->nr_images, 3);
	for (size_t i = 0; i < a->nr_images; i++) {
		const struct analysis_image *ai = a->images[i];
		bool roots = strcmp(ai->name, exe) == 0;

		assert_int_equal(ai->count[0], roots				     ? 2 + 4
					       : strcmp(ai->name, "/home/gone") == 0 ? 8
										     : 1);
		assert_true(!ai->twin == !i);
	}
	analysis_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest),	      cmocka_unit_test(test_all),
		cmocka_unit_test(test_parts),	      cmocka_unit_test(test_refused),
		cmocka_unit_test(test_default_event), cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_copies),
	};

	return cmocka_run_group_tests(tests, set_up, clean_up);
}
