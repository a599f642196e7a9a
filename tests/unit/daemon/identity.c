/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <unistd.h>

#include "stand_ins.h"

static struct trial t;
static const struct process p = { .pid = 10, .uid = 1000 }, other = { .pid = 11, .uid = 1001 };
static struct base_id id;
static bool by_path;

static int setup(void **state)
{
	(void)state;
	trial_open(&t);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	trial_close(&t);
	return 0;
}

static struct reader_dump dump = { .fd = -1 };

static struct driver_load file(const char *path, uint64_t inode)
{
	return (struct driver_load){ .addr = 0x1000, .len = 0x1000, .path = path, .inode = inode };
}

static struct base_id find(const struct process *who, const char *path, uint64_t inode)
{
	const struct driver_load l = file(path, inode);

	assert_int_equal(identity_find(t.follow.identity, who, &l, &id, &by_path, &dump), 0);
	assert_true(id.len > 0);
	return id;
}

/* The same inode under the same path may have other contents in the next process. */
static void asked_each_time(void **state)
{
	const struct base_id want = trial_id(7), next = trial_id(8);

	(void)state;
	stand_ins.reader_result = 0;
	stand_ins.reader_id = want;
	find(&p, "/a", 1);
	assert_true(base_id_equal(&id, &want));
	assert_false(by_path);
	stand_ins.reader_id = next;
	find(&other, "/a", 1);
	assert_true(base_id_equal(&id, &next));
	/* Gone with its process: as it was last. */
	stand_ins.reader_result = -ENOENT;
	find(&p, "/a", 1);
	assert_true(base_id_equal(&id, &next));
	assert_false(by_path);
	identity_forget(t.follow.identity);
	find(&p, "/a", 1);
	assert_true(by_path);
}

/* A process may have tens of thousands of mappings of one file. */
static void asked_once_of_a_listing(void **state)
{
	struct process listed = { .pid = 10, .uid = 1000, .known_ns = 5 };

	(void)state;
	stand_ins.reader_result = 0;
	stand_ins.reader_id = trial_id(7);
	find(&listed, "/a", 1);
	find(&listed, "/a", 1);
	assert_int_equal(stand_ins.nr_asked, 1);
	find(&listed, "/a", 2);
	assert_int_equal(stand_ins.nr_asked, 2);
	/* Listed again, or of another process: by then it may be written over. */
	listed.known_ns = 6;
	stand_ins.reader_id = trial_id(8);
	find(&listed, "/a", 1);
	assert_true(base_id_equal(&id, &stand_ins.reader_id));
	listed.pid = 11;
	stand_ins.reader_id = trial_id(9);
	find(&listed, "/a", 1);
	assert_true(base_id_equal(&id, &stand_ins.reader_id));
}

/* What an event tells of is of its time. */
static void asked_at_each_event(void **state)
{
	struct process listed = { .pid = 10, .uid = 1000, .known_ns = 5 };
	struct driver_load l = file("/a", 1);

	(void)state;
	stand_ins.reader_result = 0;
	stand_ins.reader_id = trial_id(7);
	find(&listed, "/a", 1);
	l.time_ns = 6;
	stand_ins.reader_result = -ETXTBSY;
	assert_int_equal(identity_find(t.follow.identity, &listed, &l, &id, &by_path, &dump), 0);
	assert_false(base_id_equal(&id, &stand_ins.reader_id));
	stand_ins.reader_result = 0;
	find(&listed, "/a", 1);
	assert_true(base_id_equal(&id, &stand_ins.reader_id));
	assert_int_equal(stand_ins.nr_asked, 3);
}

static void path_where_nothing_else_tells(void **state)
{
	struct base_id a, b;

	(void)state;
	a = find(&p, "/a", 1);
	assert_true(by_path);
	b = find(&p, "/b", 1);
	assert_false(base_id_equal(&a, &b));
	b = find(&p, "/a", 2);
	assert_false(base_id_equal(&a, &b));
	b = find(&p, "/a", 1);
	assert_true(base_id_equal(&a, &b));
}

/* Neither what it was last nor what stands at its path now. */
static void written_over_since(void **state)
{
	struct base_id last, path, none;

	(void)state;
	find(&p, "/a", 1);
	assert_true(by_path);
	path = id;
	stand_ins.reader_result = 0;
	stand_ins.reader_id = trial_id(7);
	last = find(&p, "/a", 1);
	stand_ins.reader_result = -ETXTBSY;
	none = find(&p, "/a", 1);
	assert_false(by_path);
	assert_false(base_id_equal(&id, &last));
	assert_false(base_id_equal(&id, &path));
	stand_ins.reader_result = -ENOENT;
	find(&p, "/a", 1);
	assert_true(base_id_equal(&id, &none));
	stand_ins.reader_result = 0;
	find(&p, "/a", 1);
	assert_true(base_id_equal(&id, &last));
}

/* A process may be gone before its file was read: another one's mapping may still tell. */
static void tried_again(void **state)
{
	(void)state;
	find(&p, "/a", 1);
	assert_true(by_path);
	stand_ins.reader_result = 0;
	stand_ins.reader_id = trial_id(7);
	find(&p, "/a", 1);
	assert_false(by_path);
	stand_ins.reader_result = -EIO;
	for (int i = 0; i < 10; i++)
		find(&p, "/b", 1);
	assert_int_equal(stand_ins.nr_asked, 5);
}

/* While a user's budget is spent nothing is asked, and nothing is known for good. */
static void asked_later(void **state)
{
	(void)state;
	stand_ins.reader_result = -EDQUOT;
	for (int i = 0; i < 10; i++)
		find(&p, "/fuse/a", 1);
	assert_true(by_path);
	stand_ins.reader_result = 0;
	stand_ins.reader_id = trial_id(7);
	find(&p, "/fuse/a", 1);
	assert_false(by_path);
}

static void without_reader(void **state)
{
	const struct driver_load l = file("/a", 1);
	struct identity *none = identity_new(NULL);

	(void)state;
	assert_int_equal(identity_find(none, &p, &l, &id, &by_path, &dump), 0);
	assert_true(by_path);
	assert_int_equal(stand_ins.nr_asked, 0);
	identity_free(none);
}

/* ---- files that brought a build-id ----------------------------------------------------------- */

static struct base_extent extent;

static struct base_id text_of(int32_t pid, const char *path)
{
	struct process who = { .pid = pid, .uid = 1000 };
	struct driver_load l = file(path, 0);
	struct base_id text;

	l.id = trial_id(7);
	identity_text(t.follow.identity, &who, &l, &text, &extent);
	return text;
}

static bool text_is(int32_t pid, const char *path, const struct base_id *want)
{
	const struct base_id text = text_of(pid, path);

	return base_id_equal(&text, want);
}

/* A build-id is what the file's maker says: the code of each file is asked for. */
static void text_of_others(void **state)
{
	const struct base_id forged = trial_id(1), none = { 0 };

	(void)state;
	stand_ins.reader_text = forged;
	assert_true(text_is(getpid(), "/home/forger/perl", &forged));
	stand_ins.reader_text = none;
	stand_ins.reader_roots = true;
	assert_true(text_is(getpid(), "/usr/bin/perl", &none));
	stand_ins.reader_text = forged;
	stand_ins.reader_roots = false;
	assert_true(text_is(getpid(), "/home/forger/perl", &forged));
	assert_int_equal(stand_ins.nr_asked, 3);
}

/* What root alone can place stays; a process that sees other paths is asked for all the same. */
static void text_of_roots(void **state)
{
	const struct base_id forged = trial_id(1), none = { 0 };

	(void)state;
	stand_ins.reader_roots = true;
	for (int i = 0; i < 3; i++)
		assert_true(text_is(getpid(), "/usr/bin/perl", &none));
	assert_int_equal(stand_ins.nr_asked, 1);
	assert_true(text_is(INT32_MAX, "/usr/bin/perl", &none));
	assert_int_equal(stand_ins.nr_asked, 1);
	identity_forget(t.follow.identity);
	stand_ins.reader_roots = false;
	stand_ins.reader_text = forged;
	assert_true(text_is(getpid(), "/usr/bin/perl", &forged));
}

/* Where a process's paths lead is asked again for a mapping that is younger than the answer. */
static void text_of_later_mappings(void **state)
{
	struct process moved = { .pid = getpid(), .paths_elsewhere = true, .paths_asked_ns = 10 };
	struct driver_load l = file("/usr/bin/perl", 0);
	struct base_id text;

	(void)state;
	l.id = trial_id(7);
	l.time_ns = 9;
	stand_ins.reader_roots = true;
	for (int i = 0; i < 2; i++)
		identity_text(t.follow.identity, &moved, &l, &text, &extent);
	assert_int_equal(stand_ins.nr_asked, 2);
	l.time_ns = 10;
	for (int i = 0; i < 2; i++)
		identity_text(t.follow.identity, &moved, &l, &text, &extent);
	assert_int_equal(stand_ins.nr_asked, 2);
	assert_false(moved.paths_elsewhere);
	assert_true(moved.paths_asked_ns > 10);
	/* It is known to be gone, and is not asked for. */
	moved.paths_elsewhere = true;
	moved.lives_ns = l.time_ns = 1;
	identity_text(t.follow.identity, &moved, &l, &text, &extent);
	assert_int_equal(stand_ins.nr_asked, 2);
}

/* A process that is gone: as it was the last time, else it is not known. */
static void text_of_the_gone(void **state)
{
	const struct base_id forged = trial_id(1), unread = { .len = 1 };

	(void)state;
	stand_ins.text_result = -ENOENT;
	assert_true(text_is(INT32_MAX, "/tmp/a", &unread));
	stand_ins.text_result = 0;
	stand_ins.reader_text = forged;
	assert_true(text_is(getpid(), "/tmp/a", &forged));
	stand_ins.text_result = -ENOENT;
	assert_true(text_is(INT32_MAX, "/tmp/a", &forged));
	stand_ins.text_result = -ETXTBSY;
	assert_true(text_is(INT32_MAX, "/tmp/a", &unread));
}

/* Where the code is comes with what it is, and is remembered as long. */
static void extents(void **state)
{
	(void)state;
	stand_ins.reader_result = 0;
	stand_ins.reader_id = trial_id(7);
	stand_ins.reader_extent = (struct base_extent){ 0x400000, 42 };
	find(&p, "/a", 1);
	assert_int_equal(dump.extent.start, 0x400000);
	assert_int_equal(dump.extent.size, 42);
	text_of(getpid(), "/tmp/a");
	assert_int_equal(extent.size, 42);
	stand_ins.reader_extent = (struct base_extent){ 0 };
	stand_ins.reader_result = stand_ins.text_result = -ENOENT;
	find(&other, "/a", 1);
	assert_int_equal(dump.extent.size, 42);
	text_of(INT32_MAX, "/tmp/a");
	assert_int_equal(extent.size, 42);
	/* Another file stands there. */
	stand_ins.reader_result = stand_ins.text_result = -ETXTBSY;
	find(&other, "/a", 1);
	assert_int_equal(dump.extent.size, 0);
	text_of(INT32_MAX, "/tmp/a");
	assert_int_equal(extent.size, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(asked_each_time),
		TEST(asked_once_of_a_listing),
		TEST(extents),
		TEST(asked_at_each_event),
		TEST(path_where_nothing_else_tells),
		TEST(tried_again),
		TEST(asked_later),
		TEST(without_reader),
		TEST(written_over_since),
		TEST(text_of_later_mappings),
		TEST(text_of_others),
		TEST(text_of_roots),
		TEST(text_of_the_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
