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

#include "fake_dbgdyn.h"
#include "fake_jvm.h"

static char announced[2000]; /* "NAME START+LEN …" */

int fake_register(const struct dbgdyn_routine *r)
{
	size_t len = strlen(announced);

	assert_int_equal(r->nr_lines + r->nr_inlines + r->nr_files, 0);
	snprintf(announced + len, sizeof(announced) - len, "%.*s %lx+%zx ", (int)r->name.len,
		 r->name.text, (long)(uintptr_t)r->code, r->code_len);
	return DBGDYN_OK;
}

static void made(const char *name, uintptr_t start, jint len)
{
	jvmti_stub_made(&fake_env, name, (const void *)start, len);
}

static void expect(const char *text)
{
	assert_string_equal(announced, text);
	announced[0] = '\0';
}

static void list(jvmtiEnv *env)
{
	assert_ptr_equal(env, &fake_env);
	made("first", 0x1000, 0x100);	/* just as it was told */
	made("buffer", 0x2000, 0x1000); /* with three in it */
	made("one", 0x2000, 0x100);
	made("around", 0xf00, 0x300);
	made("alone", 0x5000, 0x100);
	made("alone again", 0x5000, 0x100);
	made("within", 0x2810, 0x10);
	expect("buffer 2100+700 buffer 2900+200 buffer 2b80+480 around f00+100 around 1100+100 "
	       "alone 5000+100 ");
	made("C1 temporary CodeBuffer", 0x8000, 0x1000);
	made("late", 0x2010, 0x10);
	expect("");
}

/* In the order of a JVM's start: stubs as they are made, the list, stubs again. */
static void test_stubs(void **state)
{
	(void)state;
	fake_jvm_reset();
	fake_jvm.list = list;
	made("first", 0x1000, 0x100);
	made("three", 0x2b00, 0x80);
	made("two", 0x2800, 0x100);
	made("one", 0x2000, 0x100);
	expect("first 1000+100 three 2b00+80 two 2800+100 one 2000+100 ");
	/* What is made over another takes its place. */
	made("old", 0x6000, 0x20);
	made("older", 0x6040, 0x20);
	made("new", 0x6010, 0x40);
	expect("old 6000+20 older 6040+20 new 6010+40 ");
	for (uintptr_t i = 0; i < 3000; i++) {
		char text[40], name[20];

		snprintf(name, sizeof(name), "s%zu", (size_t)i);
		made(name, 0x100000 + 16 * (i * 1301 % 3000), 16);
		snprintf(text, sizeof(text), "%s %zx+10 ", name,
			 (size_t)(0x100000 + 16 * (i * 1301 % 3000)));
		expect(text);
	}
	jvmti_stubs_list(&fake_env);
	made("first", 0x1000, 0x100);
	expect("first 1000+100 ");
}

static void test_nonsense(void **state)
{
	(void)state;
	made("empty", 0x1000, 0);
	made("negative", 0x1000, -1);
	made("nowhere", 0, 16);
	made(NULL, 0x1000, 16);
	expect("");
	made("", 0x1000, 16);
	expect("stub 1000+10 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stubs),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
