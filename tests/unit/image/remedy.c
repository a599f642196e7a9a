/* SPDX-License-Identifier: BSD-2-Clause */
/* Where symbols can be had: by lists as dpkg keeps them, and by what servers said. */
#include <dlfcn.h>
#include <fcntl.h>
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
	const struct base_id other = { .len = 2, .bytes = { 1, 2 } };
	struct base_buf to = { 0 };
	char expected[64] = "a program of your own";

	if (package)
		snprintf(expected, sizeof(expected), "package '%s' may have its symbols", package);
	assert_int_equal(image_package_remedy(dir, path, &other, &to), 0);
	assert_memory_equal(to.data, expected, strlen(expected));
	base_buf_release(&to);
}

/* Only of the file that the package has, and not of another one in its place. */
static void expect_own(void)
{
	static const char has[] = "package 'own-dbgsym' has its symbols";
	struct base_buf to = { 0 };
	struct base_id id;

	list("own.list", FIXTURES "/fixture.so\n");
	expect(FIXTURES "/fixture.so", "own-dbgsym");
	assert_int_equal(image_identify(AT_FDCWD, FIXTURES "/fixture.so", &id, NULL), 0);
	assert_int_equal(image_package_remedy(dir, FIXTURES "/fixture.so", &id, &to), 0);
	assert_string_equal((const char *)to.data, has);
	base_buf_release(&to);
}

static void test_packages(void **state)
{
	char command[64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	list("gzip.list", "/.\n/bin\n/bin/gzip\n/usr/bin/gunzip\n");
	list("libc6:amd64.list", "/.\n/lib/x86_64-linux-gnu/libc.so.6\n");
	list("other.conffiles", "/usr/bin/other\n");
	expect("/bin/gzip", "gzip-dbgsym");
	expect("/usr/bin/gzip", "gzip-dbgsym");
	expect("/usr/lib/x86_64-linux-gnu/libc.so.6", "libc6-dbg");
	expect("/usr/bin/gun", NULL);
	expect("/gzip", NULL);
	expect("/usr/bin/other", NULL);
	expect("", NULL);
	expect("/usr", NULL);
	expect_own();
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	expect("/bin/gzip", NULL);
}

/* What the server of that address has said. */
static void ask(const char *url, const char *said)
{
	const struct base_id id = { .len = 2, .bytes = { 0xab, 0xcd } };
	struct base_buf to = { 0 };

	setenv("DEBUGINFOD_URLS", url, 1);
	assert_null(image_fetch(&id, true));
	assert_int_equal(image_symbols_remedy("/no/such", &id, &to), 0);
	assert_non_null(strstr((const char *)to.data, said));
	assert_null(strstr((const char *)to.data, "secret"));
	assert_null(strstr((const char *)to.data, "http"));
	base_buf_release(&to);
}

static void test_servers(void **state)
{
	char cache[] = "/tmp/dcpi-unit-XXXXXX", command[64];

	(void)state;
	if (!dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL))
		skip();
	assert_non_null(mkdtemp(cache));
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	ask("file:///no/such/folder", "have none for build-id abcd");
	snprintf(command, sizeof(command), "rm -r %s", cache);
	assert_int_equal(system(command), 0);
	ask("http://user:secret@127.0.0.1:1", "could not be asked: Connection refused");
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_packages),
					    cmocka_unit_test(test_servers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
