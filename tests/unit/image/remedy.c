/* SPDX-License-Identifier: BSD-2-Clause */
/* Which package has a file, by lists as dpkg keeps them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "image_internal.h"

static char dir[] = "/tmp/dcpi-unit-XXXXXX";

static void list(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void expect(const char *path, const char *package)
{
	char out[64] = "";

	assert_int_equal(image_package_of(dir, path, out, sizeof(out)), package != NULL);
	assert_string_equal(out, package ? package : "");
}

static void test_packages(void **state)
{
	char command[64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	list("gzip.list", "/.\n/bin\n/bin/gzip\n/usr/bin/gunzip\n");
	list("libc6:amd64.list", "/.\n/lib/x86_64-linux-gnu/libc.so.6\n");
	list("other.conffiles", "/usr/bin/other\n");
	expect("/bin/gzip", "gzip");
	expect("/usr/bin/gzip", "gzip");
	expect("/usr/lib/x86_64-linux-gnu/libc.so.6", "libc6");
	expect("/usr/bin/gun", NULL);
	expect("/gzip", NULL);
	expect("/usr/bin/other", NULL);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	expect("/bin/gzip", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_packages) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
