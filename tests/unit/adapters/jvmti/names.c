/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jvmti_internal.h"

static struct jvmti_name out;

static const char *method(const char *class, const char *name, const char *signature)
{
	jvmti_name_method(&out, class, name, signature);
	assert_int_equal(out.len, strlen(out.text));
	return out.text;
}

static const char *file(const char *class, const char *source)
{
	jvmti_name_file(&out, class, source);
	assert_int_equal(out.len, strlen(out.text));
	return out.text;
}

static const char *stub(const char *name)
{
	jvmti_name_stub(&out, name);
	assert_int_equal(out.len, strlen(out.text));
	return out.text;
}

static void test_methods(void **state)
{
	(void)state;
	assert_string_equal(method("Ljava/util/HashMap;", "getNode", NULL),
			    "java.util.HashMap.getNode");
	assert_string_equal(method("LHot;", "<init>", NULL), "Hot.<init>");
	assert_string_equal(method("La/B$C$1;", "lambda$run$0", NULL), "a.B$C$1.lambda$run$0");
	/* clone() of an array */
	assert_string_equal(method("[I", "clone", NULL), "int[].clone");
	assert_string_equal(method("[[La/B;", "clone", NULL), "a.B[][].clone");
}

static void test_signatures(void **state)
{
	(void)state;
	assert_string_equal(method("LA;", "f", "()V"), "A.f()");
	assert_string_equal(method("LA;", "f", "(ILjava/lang/String;)J"),
			    "A.f(int, java.lang.String)");
	assert_string_equal(method("LA;", "f", "(BCDFIJSZ)V"),
			    "A.f(byte, char, double, float, int, long, short, boolean)");
	assert_string_equal(method("LA;", "f", "([[J[La/B;Z)[I"), "A.f(long[][], a.B[], boolean)");
}

/* What differs from run to run is no part of a name. */
static void test_hidden_classes(void **state)
{
	(void)state;
	assert_string_equal(method("LHot$$Lambda$1.0x00007fce10000a08;", "run", NULL),
			    "Hot$$Lambda$1.run");
	assert_string_equal(method("LHot$$Lambda.0x000000005b040210;", "run", NULL),
			    "Hot$$Lambda.run");
	assert_string_equal(method("La/B$$Lambda$14/0x0000000800C03000;", "run", NULL),
			    "a.B$$Lambda$14.run");
	assert_string_equal(method("LA;", "f", "(Ljava/lang/invoke/LambdaForm$MH.0x00000008;)V"),
			    "A.f(java.lang.invoke.LambdaForm$MH)");
	/* Names that only look so. */
	assert_string_equal(method("La/x0x12;", "f", NULL), "a.x0x12.f");
	assert_string_equal(method("La/Face;", "f", NULL), "a.Face.f");
	assert_string_equal(method("La/0xbad/B;", "f", NULL), "a.0xbad.B.f");
	assert_string_equal(method("Labc;", "f", NULL), "abc.f");
	assert_string_equal(method("L0x1;", "f", NULL), "0x1.f");
	assert_string_equal(method("La/0x;", "f", NULL), "a.0x.f");
}

static void test_files(void **state)
{
	(void)state;
	assert_string_equal(file("Ljava/util/HashMap$Node;", "HashMap.java"),
			    "java/util/HashMap.java");
	assert_string_equal(file("LHot;", "Hot.java"), "Hot.java");
	assert_string_equal(file("La/b/Hot$$Lambda.0x000000005b040210;", "Hot.java"),
			    "a/b/Hot.java");
	assert_string_equal(file("La/b/Hot/0x000000005b040210;", "Hot.java"), "a/b/Hot.java");
}

static void test_stubs(void **state)
{
	(void)state;
	assert_string_equal(stub("Interpreter"), "Interpreter");
	assert_string_equal(stub("I2C/C2I adapters(0xbbe)@0x00007f1200"),
			    "I2C/C2I adapters(0xbbe)");
	assert_string_equal(stub(""), "stub");
	assert_string_equal(stub("@0x00007f1200"), "stub");
}

/* The JVM checks what classes are called, but nothing is taken for granted. */
static void test_bad_descriptors(void **state)
{
	static const char *const bad[] = { "", "L", "[", "[[[", ";", "Q", "L;", "(", "/", "L/;" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		method(bad[i], "f", bad[i]);
		assert_non_null(strstr(out.text, ".f("));
		file(bad[i], "F.java");
		assert_non_null(strstr(out.text, "F.java"));
	}
	assert_string_equal(method("LA;", "f", "(ILa/B"), "A.f(int, a.B)");
}

static void test_long(void **state)
{
	char name[3 * JVMTI_NAME_MAX];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	method("LA;", name, "(II)V");
	assert_int_equal(out.len, JVMTI_NAME_MAX);
	assert_memory_equal(out.text, "A.nnn", 5);
	stub(name);
	assert_int_equal(out.len, JVMTI_NAME_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_methods),	       cmocka_unit_test(test_signatures),
		cmocka_unit_test(test_hidden_classes), cmocka_unit_test(test_files),
		cmocka_unit_test(test_stubs),	       cmocka_unit_test(test_bad_descriptors),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
