/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of one image belong to a user only while all of them are that user's. */
#include <stdlib.h>
#include <string.h>

#include "stand_ins.h"

static struct trial t;
static struct image *img;
static uint32_t flushed_uid;

/* The user that a flush writes the values for. */
int __wrap_profdb_flush_put_values(struct profdb *db, const char *stem,
				   const struct profdb_values *values, uint32_t uid,
				   struct base_err *err);
int __wrap_profdb_flush_put_values(struct profdb *db, const char *stem,
				   const struct profdb_values *values, uint32_t uid,
				   struct base_err *err)
{
	(void)db;
	(void)stem;
	(void)values;
	(void)err;
	flushed_uid = uid;
	return 0;
}

static int setup(void **state)
{
	const struct base_id id = trial_id(1);

	(void)state;
	trial_open(&t);
	img = images_get(t.store.images, PROFDB_FILE, &id, "/lib/a", "a");
	return img ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	trial_close(&t);
	return 0;
}

static struct values_owner *owner(uint32_t uid, uint64_t asked_ns, bool certain)
{
	struct values_owner *o = calloc(1, sizeof(*o));

	assert_non_null(o);
	*o = (struct values_owner){
		.refs = 1, .uid = uid, .asked_ns = asked_ns, .certain = certain
	};
	return o;
}

/* Values of a process of @o, which is over. */
static void take(struct image *to, struct values_owner *o)
{
	assert_non_null(image_values_get(to, "values", o));
	values_owner_put(o);
}

/* The user that @of's values would be written for, events up to @now_ns being seen. */
static uint32_t user_of(const struct image *of, uint64_t now_ns)
{
	struct base_err err = { 0 };

	flushed_uid = 4711;
	assert_int_equal(image_values_put(NULL, of, now_ns, &err), 0);
	return flushed_uid;
}

static void one_user(void **state)
{
	(void)state;
	take(img, owner(1000, 5, true));
	assert_int_equal(user_of(img, 10), 1000);
	take(img, owner(1000, 6, true));
	assert_int_equal(user_of(img, 10), 1000);
}

/* Nobody may read what is of two users, nor does it become one's again. */
static void two_users(void **state)
{
	(void)state;
	take(img, owner(1000, 5, true));
	take(img, owner(1001, 5, true));
	assert_int_equal(user_of(img, 10), IMAGE_VALUES_NOBODY);
	take(img, owner(1001, 5, true));
	assert_int_equal(user_of(img, 10), IMAGE_VALUES_NOBODY);
	assert_int_equal(img->values->uid, IMAGE_VALUES_NOBODY);
}

/* Likewise of two processes that run. */
static void two_that_run(void **state)
{
	struct values_owner *a = owner(1000, 5, false), *b = owner(1001, 5, false);

	(void)state;
	assert_non_null(image_values_get(img, "values", a));
	assert_int_equal(user_of(img, 10), 1000);
	/* It was asked after what is known of it. */
	assert_int_equal(user_of(img, 5), 1000);
	assert_int_equal(user_of(img, 4), IMAGE_VALUES_NOBODY);
	assert_non_null(image_values_get(img, "values", b));
	assert_int_equal(user_of(img, 10), IMAGE_VALUES_NOBODY);
	values_owner_put(a);
	values_owner_put(b);
}

static void end_of_a_life(void **state)
{
	struct values_owner *in = owner(1000, 5, false), *after = owner(1000, 5, false);

	(void)state;
	values_owner_end(in, 5);
	assert_true(in->certain);
	assert_int_equal(in->uid, 1000);
	values_owner_end(after, 4);
	assert_true(after->certain);
	assert_int_equal(after->uid, IMAGE_VALUES_NOBODY);
	values_owner_put(in);
	values_owner_put(after);
}

/* Values that become part of another image's bring their user along. */
static void moved_to_another(void **state)
{
	const struct wire_replaces map = { .head.len = sizeof(map) };
	const struct base_id id = trial_id(2);
	struct image *to = images_get(t.store.images, PROFDB_FILE, &id, "/lib/b", "b");

	(void)state;
	assert_non_null(to);
	take(img, owner(1000, 5, true));
	take(to, owner(1001, 5, true));
	assert_int_equal(user_of(to, 10), 1001);
	assert_int_equal(image_values_move(img, &map, to), 0);
	assert_null(img->values);
	assert_int_equal(user_of(to, 10), IMAGE_VALUES_NOBODY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_user),	     TEST(two_users),	     TEST(two_that_run),
		TEST(end_of_a_life), TEST(moved_to_another),
	};

	return cmocka_run_group_tests_name("image_values", tests, NULL, NULL);
}
