/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

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

/* One second of waiting is all that one user's files may cost. */
static void slow_files(void **state)
{
	(void)state;
	stand_ins.reader_result = -ETIMEDOUT;
	base_log_init(NULL, BASE_LOG_ERROR, BASE_LOG_BARE);
	find(&p, "/fuse/a", 1);
	find(&p, "/fuse/b", 2);
	find(&p, "/fuse/c", 3);
	assert_int_equal(stand_ins.nr_asked, 1);
	stand_ins.reader_result = 0;
	stand_ins.reader_id = trial_id(7);
	find(&other, "/good", 4);
	assert_false(by_path);
	identity_forget(t.follow.identity);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(asked_each_time),	   TEST(asked_once_of_a_listing),
		TEST(asked_at_each_event), TEST(path_where_nothing_else_tells),
		TEST(tried_again),	   TEST(slow_files),
		TEST(without_reader),	   TEST(written_over_since),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
