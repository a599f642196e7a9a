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

#define CODE ((const char *)0x10000)

static char announced[1000];
static bool refuse_lines;

static void add(const char *format, ...)
{
	size_t len = strlen(announced);
	va_list ap;

	va_start(ap, format);
	vsnprintf(announced + len, sizeof(announced) - len, format, ap);
	va_end(ap);
}

int fake_register(const struct dbgdyn_routine *r)
{
	add("%.*s %lx+%zx", (int)r->name.len, r->name.text, (long)(uintptr_t)r->code, r->code_len);
	for (size_t i = 0; i < r->nr_lines; i++)
		add(" %x:%u", r->lines[i].code_off, r->lines[i].line);
	for (size_t i = 0; i < r->nr_inlines; i++)
		add(" %x+%x %.*s@%u", r->inlines[i].code_off, r->inlines[i].code_len,
		    (int)r->inlines[i].name.len, r->inlines[i].name.text, r->inlines[i].call_line);
	add("; ");
	return refuse_lines && r->nr_lines ? DBGDYN_EINVAL : DBGDYN_OK;
}

static void expect(const char *text)
{
	assert_string_equal(announced, text);
	announced[0] = '\0';
}

static int setup(void **state)
{
	(void)state;
	fake_jvm_reset();
	jvmti_agent.methods.vm = &fake_vm;
	jvmti_agent.methods.env = &fake_env;
	refuse_lines = false;
	return 0;
}

static void loaded(uintptr_t n, const jvmtiAddrLocationMap *map, jint nr, const void *info)
{
	jvmti_method_loaded(&fake_env, fake_id(n), 0x100, CODE, nr, map, info);
}

/* Of a JVM without HotSpot's records. */
static void test_map(void **state)
{
	const jvmtiAddrLocationMap map[] = { { CODE, 0 }, { CODE + 0x80, 9 } };

	(void)state;
	loaded(1, map, 2, NULL);
	expect("pkg.Fake.m1 10000+100 0:11 80:13; ");
	loaded(1, NULL, 0, NULL);
	expect("pkg.Fake.m1 10000+100; ");
	loaded(1, NULL, 7, NULL);
	expect("pkg.Fake.m1 10000+100; ");
}

static jmethodID inner[2];
static jint bcis[] = { 9, 5 };
static PCStackInfo pcs[] = { { (void *)0x1003f, 2, inner, bcis },
			     { (void *)0x1007f, 1, inner + 1, bcis + 1 } };
static jvmtiCompiledMethodLoadInlineRecord record = {
	.header = { JVMTI_CMLR_INLINE_INFO, 1, 0, NULL }, .numpcs = 2, .pcinfo = pcs
};
static jvmtiCompiledMethodLoadRecordHeader other = { JVMTI_CMLR_DUMMY, 1, 0, &record.header };

/* Its records tell more than the map, so that is not asked. They stand behind others. */
static void test_inlined(void **state)
{
	const jvmtiAddrLocationMap map[] = { { CODE, 0 } };

	(void)state;
	inner[0] = fake_id(3);
	inner[1] = fake_id(2);
	loaded(2, map, 1, &other);
#if defined(__x86_64__)
	expect("pkg.Fake.m2 10000+100 0:33 40:22 80:0 0+40 pkg.Fake.m3@22; ");
#elif defined(__riscv)
	expect("pkg.Fake.m2 10000+100 0:33 41:22 81:0 0+41 pkg.Fake.m3@22; ");
#else
	expect("pkg.Fake.m2 10000+100 0:33 43:22 83:0 0+43 pkg.Fake.m3@22; ");
#endif
	/* Records of another version cannot be read, empty ones tell nothing. */
	record.header.majorinfoversion = 2;
	loaded(2, map, 1, &other);
	expect("pkg.Fake.m2 10000+100 0:21; ");
	record.header.majorinfoversion = 1;
	record.numpcs = 0;
	loaded(2, map, 1, &other);
	expect("pkg.Fake.m2 10000+100 0:21; ");
	record.numpcs = 2;
}

/* What libdbgdyn does not take with its lines it gets without them. */
static void test_name_first(void **state)
{
	const jvmtiAddrLocationMap map[] = { { CODE, 0 } };

	(void)state;
	refuse_lines = true;
	loaded(1, map, 1, NULL);
	expect("pkg.Fake.m1 10000+100 0:11; pkg.Fake.m1 10000+100; ");
}

static void test_unknown(void **state)
{
	const jvmtiAddrLocationMap map[] = { { CODE, 0 } };

	(void)state;
	fake_jvm.refused = FAKE_METHOD_NAME;
	loaded(9, map, 1, NULL);
	expect("unknown method 10000+100; ");
	jvmti_method_loaded(&fake_env, fake_id(1), 0, CODE, 0, NULL, NULL);
	expect("");
}

static void test_unloaded(void **state)
{
	(void)state;
	jvmti_method_unloaded(&fake_env, fake_id(1), CODE);
	assert_ptr_equal(fake_retired, CODE);
	assert_int_equal(fake_retired_len, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_map, setup),
		cmocka_unit_test_setup(test_inlined, setup),
		cmocka_unit_test_setup(test_name_first, setup),
		cmocka_unit_test_setup(test_unknown, setup),
		cmocka_unit_test_setup(test_unloaded, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
