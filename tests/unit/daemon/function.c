/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of interpreters: their names, and where in the pseudo-image of their process they are.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "function.h"
#include "jit_internal.h"
#include "tracker.h"

#define TEXT(s)                                                                                    \
	{                                                                                          \
		(const uint8_t *)(s), sizeof(s) - 1, 1                                             \
	}

/* ---- texts ----------------------------------------------------------------------------------- */

static void assert_text(const void *text, size_t len, uint16_t kind, const char *expected)
{
	const struct driver_string s = { text, len, kind };
	struct base_buf b = { 0 };

	assert_int_equal(dyn_function_text(&b, &s), 0);
	assert_int_equal(base_buf_append(&b, "", 1), 0);
	assert_string_equal((const char *)b.data, expected);
	base_buf_release(&b);
}

static void characters_become_utf8(void **state)
{
	static const uint16_t two[] = { 'a', 0x6f22, 0xd800 };
	static const uint32_t four[] = { 0x1f40d, 0x110000, 0xffffffff };

	(void)state;
	assert_text("abc", 3, 1, "abc");
	assert_text("gr\xf6\xdf", 4, 1, "größ");
	assert_text(two, sizeof(two), 2, "a漢\xef\xbf\xbd");
	assert_text(four, sizeof(four), 4, "🐍\xef\xbf\xbd\xef\xbf\xbd");
	/* Cut off, or unreadable. */
	assert_text(two, 3, 2, "a");
	assert_text("abc", 3, 0, "");
}

static void assert_name(const char *path, const char *name, const char *expected)
{
	const struct driver_function f = { .name = { (const uint8_t *)name, strlen(name), 1 } };
	struct base_buf b = { 0 };

	assert_int_equal(dyn_function_name(&b, &f, path, strlen(path)), 0);
	assert_int_equal(base_buf_append(&b, "", 1), 0);
	assert_string_equal((const char *)b.data, expected);
	base_buf_release(&b);
}

static void a_name_begins_with_its_module(void **state)
{
	(void)state;
	assert_name("/usr/lib/python3.11/json/decoder.py", "JSONDecoder.decode",
		    "json.decoder.JSONDecoder.decode");
	assert_name("/usr/lib/python3.11/json/__init__.py", "loads", "json.loads");
	assert_name("/x/lib/python3.11/site-packages/numpy/core/numeric.py", "ones",
		    "numpy.core.numeric.ones");
	assert_name("/usr/lib/python3/dist-packages/apt/cache.py", "Cache.open",
		    "apt.cache.Cache.open");
	assert_name("/home/me/work.py", "<module>", "work.<module>");
	assert_name("/home/me/pack/__init__.py", "f", "pack.f");
	assert_name("work.py", "f", "work.f");
	assert_name("/home/me/tool", "f", "tool.f");
	assert_name("<frozen importlib._bootstrap>", "_find_and_load",
		    "importlib._bootstrap._find_and_load");
	assert_name("<frozen a\xc3\xbf", "f", "<frozen a\xc3\xbf.f");
	assert_name("<frozen >", "f", "<frozen >.f");
	assert_name("<string>", "f", "<string>.f");
	assert_name("", "f", "f");
	assert_name("/", "f", "f");
	assert_name(".py", "f", ".py.f");
	assert_name("/__init__.py", "f", "__init__.f");
}

/* ---- places ---------------------------------------------------------------------------------- */

static const uint8_t lines[] = { 0x80, 0, 0xf8 };

static const struct driver_function one = { .key = 11,
					    .nr = 40,
					    .line = 3,
					    .name = TEXT("f"),
					    .file = TEXT("/w/a.py"),
					    .lines = lines,
					    .lines_len = sizeof(lines) },
				    two = { .key = 12, .nr = 9, .name = TEXT("g") };

static int add(struct tracker *t, const struct driver_function *f)
{
	struct driver_function copy = *f;

	copy.uid = t->p.uid;
	return dyn_function_add(t->dyn, &t->p, &copy);
}

static void functions_are_found_by_their_key(void **state)
{
	struct image *a, *b;
	uint64_t at, last, other;
	TRACKER(state);

	assert_int_equal(dyn_function_find(&t->p, one.key, 0, &a, &at), DYN_NONE);
	assert_int_equal(add(t, &one), 0);
	assert_int_equal(add(t, &two), 0);
	/* It is told again now and then. */
	assert_int_equal(add(t, &one), 0);
	assert_int_equal(dyn_function_find(&t->p, one.key, 0, &a, &at), DYN_FOUND);
	assert_int_equal(dyn_function_find(&t->p, one.key, 39, &b, &last), DYN_FOUND);
	assert_int_equal(last, at + 2 * 39);
	assert_ptr_equal(a, b);
	assert_int_equal(dyn_function_find(&t->p, two.key, 8, &b, &other), DYN_FOUND);
	assert_ptr_equal(a, b);
	assert_true(other > last);
	assert_int_equal(dyn_function_find(&t->p, 13, 0, &a, &at), DYN_NONE);
}

/* Code that runs there, were there any, is none of theirs. */
static void no_address_is_theirs(void **state)
{
	struct dyn_query q = { .first_ns = 1, .time_ns = 1000, .count = 1, .last = true };
	struct image *img;
	uint64_t off;
	TRACKER(state);

	assert_int_equal(add(t, &one), 0);
	for (q.addr = 0x10000; q.addr < 0x10040; q.addr += 8) {
		assert_int_equal(dyn_lookup(t->dyn, &t->p, &q, &img, &off), DYN_NONE);
		assert_false(dyn_claims(&t->p, q.addr));
	}
}

static void functions_without_sense_are_refused(void **state)
{
	struct driver_function bad = one;
	TRACKER(state);

	bad.nr = 0;
	assert_int_equal(add(t, &bad), -EINVAL);
	bad.nr = UINT32_MAX;
	assert_int_equal(add(t, &bad), -EINVAL);
	bad = (struct driver_function){ .key = 14, .nr = 1 };
	assert_int_equal(add(t, &bad), 0);
}

/* Its texts would have readers that may not look into that process. */
static void functions_of_another_user_are_refused(void **state)
{
	struct driver_function f = one;
	TRACKER(state);

	f.uid = 1234;
	assert_int_equal(dyn_function_add(t->dyn, &t->p, &f), 0);
	f.key++;
	f.uid = 1235;
	assert_int_equal(dyn_function_add(t->dyn, &t->p, &f), -EPERM);
	f.uid = 1234;
	assert_int_equal(dyn_function_add(t->dyn, &t->p, &f), 0);
}

/* Whatever is thought of the process: it may be its parent's user. */
static void they_are_of_the_user_that_the_kernel_told(void **state)
{
	struct driver_function f = one;
	TRACKER(state);

	t->p.uid = 0;
	f.uid = 1234;
	assert_int_equal(dyn_function_add(t->dyn, &t->p, &f), 0);
	assert_int_equal(dyn_source_find(t->p.dyn, DYN_FUNCTIONS)->uid, 1234);
}

/* A child has its own: what its parent has is not looked up for it, and not kept for it. */
static void children_inherit_none(void **state)
{
	struct process child = { .pid = 1, .comm = "child" };
	struct image *img;
	uint64_t off;
	TRACKER(state);

	assert_int_equal(add(t, &one), 0);
	dyn_fork(t->dyn, &t->p, &child, 5, NULL);
	assert_null(child.dyn);
	assert_int_equal(dyn_function_find(&child, one.key, 0, &img, &off), DYN_NONE);
}

static void they_are_written_when_paths_went_through_them(void **state)
{
	struct base_err err = { 0 };
	struct image *img;
	uint64_t off;
	TRACKER(state);

	assert_int_equal(add(t, &one), 0);
	assert_int_equal(dyn_function_find(&t->p, one.key, 5, &img, &off), DYN_FOUND);
	assert_true(image_must_wait(img));
	assert_int_equal(dyn_write_images(t->dyn, &err), 0);
	assert_false(image_must_wait(img));
	assert_false(img->refused);
	assert_int_equal(img->id.len, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(characters_become_utf8),
		cmocka_unit_test(a_name_begins_with_its_module),
		cmocka_unit_test_setup_teardown(functions_are_found_by_their_key, tracker_setup,
						tracker_teardown),
		cmocka_unit_test_setup_teardown(no_address_is_theirs, tracker_setup,
						tracker_teardown),
		cmocka_unit_test_setup_teardown(functions_without_sense_are_refused, tracker_setup,
						tracker_teardown),
		cmocka_unit_test_setup_teardown(functions_of_another_user_are_refused,
						tracker_setup, tracker_teardown),
		cmocka_unit_test_setup_teardown(they_are_of_the_user_that_the_kernel_told,
						tracker_setup, tracker_teardown),
		cmocka_unit_test_setup_teardown(children_inherit_none, tracker_setup,
						tracker_teardown),
		cmocka_unit_test_setup_teardown(they_are_written_when_paths_went_through_them,
						tracker_setup, tracker_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
