/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fake_jvm.h"

static struct jvmti_methods fresh(bool signatures)
{
	fake_jvm_reset();
	return (struct jvmti_methods){ .vm = &fake_vm, .env = &fake_env, .signatures = signatures };
}

static void release(struct jvmti_methods *m)
{
	m->nr = SIZE_MAX; /* trim only looks whether it is much */
	jvmti_methods_trim(m);
	free(m->chains);
	assert_int_equal(fake_jvm.nr_blocks, 0);
	assert_int_equal(fake_jvm.nr_references, 0);
}

static void test_known(void **state)
{
	struct jvmti_methods m = fresh(false);
	struct jvmti_known *k = jvmti_methods_find(&m, fake_id(7));

	(void)state;
	assert_non_null(k);
	assert_int_equal(k->name.len, strlen("pkg.Fake.m7"));
	assert_memory_equal(k->name.text, "pkg.Fake.m7", k->name.len);
	assert_int_equal(k->file.len, strlen("pkg/Fake.java"));
	assert_memory_equal(k->file.text, "pkg/Fake.java", k->file.len);
	assert_int_equal(jvmti_known_line(k, -1), 71);
	assert_int_equal(jvmti_known_line(k, 0), 71);
	assert_int_equal(jvmti_known_line(k, 4), 71);
	assert_int_equal(jvmti_known_line(k, 5), 72);
	assert_int_equal(jvmti_known_line(k, 1000), 73);
	/* Asked once. */
	assert_int_equal(fake_jvm.nr_asked, 5);
	assert_ptr_equal(jvmti_methods_find(&m, fake_id(7)), k);
	assert_int_equal(fake_jvm.nr_asked, 5);
	release(&m);
}

static void test_signatures(void **state)
{
	struct jvmti_methods m = fresh(true);
	struct jvmti_known *k = jvmti_methods_find(&m, fake_id(1));

	(void)state;
	assert_int_equal(k->name.len, strlen("pkg.Fake.m1(int)"));
	assert_memory_equal(k->name.text, "pkg.Fake.m1(int)", k->name.len);
	release(&m);
}

/* A class that was redefined has other lines; nothing else is asked again. */
static void test_renewed(void **state)
{
	struct jvmti_methods m = fresh(false);
	struct jvmti_known *k = jvmti_methods_renew(&m, fake_id(7));

	(void)state;
	assert_int_equal(fake_jvm.nr_asked, 5);
	fake_jvm.line_shift = 100;
	assert_int_equal(jvmti_known_line(jvmti_methods_find(&m, fake_id(7)), 0), 71);
	assert_ptr_equal(jvmti_methods_renew(&m, fake_id(7)), k);
	assert_int_equal(fake_jvm.nr_asked, 6);
	assert_int_equal(jvmti_known_line(k, 0), 171);
	release(&m);
}

/* Each answer refused in turn: the method is unknown, or has no source. */
static void test_refused(void **state)
{
	static const struct {
		enum fake_call call;
		bool known, has_file, has_lines;
	} cases[] = {
		{ FAKE_METHOD_NAME, false, false, false }, { FAKE_CLASS, false, false, false },
		{ FAKE_SIGNATURE, false, false, false },   { FAKE_SOURCE, true, false, true },
		{ FAKE_LINES, true, true, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct jvmti_methods m = fresh(false);
		struct jvmti_known *k;

		fake_jvm.refused = cases[i].call;
		k = jvmti_methods_find(&m, fake_id(3));
		assert_int_equal(k != NULL, cases[i].known);
		assert_int_equal(k && k->file.len, cases[i].has_file);
		assert_int_equal(k && jvmti_known_line(k, 0), cases[i].has_lines);
		release(&m);
	}
}

/* The table does not grow without end, and forgetting gives all memory back. */
static void test_bounded(void **state)
{
	struct jvmti_methods m = fresh(false);

	(void)state;
	for (uintptr_t i = 1; i <= 40000; i++) {
		assert_non_null(jvmti_methods_find(&m, fake_id(i)));
		jvmti_methods_trim(&m);
		assert_true(m.nr < 32768);
		assert_int_equal(fake_jvm.nr_blocks, m.nr);
	}
	assert_int_equal(fake_jvm.nr_asked, 5 * 40000);
	release(&m);
}

static void test_unsorted_lines(void **state)
{
	jvmtiLineNumberEntry lines[] = { { 9, 3 }, { 0, 7 }, { 4, 0 }, { 6, -2 } };
	struct jvmti_known k = { .lines = lines, .nr_lines = 4 };

	(void)state;
	jvmti_known_sort(lines, 4);
	assert_int_equal(jvmti_known_line(&k, 0), 7);
	assert_int_equal(jvmti_known_line(&k, 3), 7);
	assert_int_equal(jvmti_known_line(&k, 5), 0);
	assert_int_equal(jvmti_known_line(&k, 7), 0);
	assert_int_equal(jvmti_known_line(&k, 10), 3);
	k = (struct jvmti_known){ 0 };
	assert_int_equal(jvmti_known_line(&k, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),	cmocka_unit_test(test_signatures),
		cmocka_unit_test(test_renewed), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bounded), cmocka_unit_test(test_unsorted_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
