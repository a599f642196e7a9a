/* SPDX-License-Identifier: BSD-2-Clause */
/* Where sources that were moved are looked for, and in which order. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "image.h"

static char dir[] = "/tmp/dcpi-unit-XXXXXX", folders[256];

/* A file below @dir whose text is its path there. */
static void put(const char *path)
{
	char whole[256];
	FILE *f;

	snprintf(whole, sizeof(whole), "%s/%s", dir, path);
	for (char *at = whole + strlen(dir); (at = strchr(at + 1, '/'));) {
		*at = '\0';
		mkdir(whole, 0700);
		*at = '/';
	}
	f = fopen(whole, "w");
	assert_non_null(f);
	fputs(path, f);
	fclose(f);
}

/* @found: which of the files it is; NULL: none. */
static void expect(const char *name, const char *found)
{
	struct image_source *src = NULL;
	const char *text;
	size_t len = 0;

	assert_int_equal(image_source_open(name, false, &src, NULL), found ? 0 : -ENOENT);
	if (!found)
		return;
	text = image_source_line(src, 1, &len);
	assert_int_equal(len, strlen(found));
	assert_memory_equal(text, found, len);
	image_source_close(src);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(folders, sizeof(folders), "%s/one:%s/two", dir, dir);
	image_source_path = folders;
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command) == 0 ? 0 : -1;
}

static void test_order(void **state)
{
	char own[256];

	(void)state;
	put("one/main.c");
	put("two/src/main.c");
	put("two/own.c");
	put("at/own.c");
	/* A longer end counts more than an earlier folder. */
	expect("/build/src/main.c", "two/src/main.c");
	expect("/build/lib/main.c", "one/main.c");
	expect("main.c", "one/main.c");
	/* Folders that the user names come before the file's own path. */
	snprintf(own, sizeof(own), "%s/at/own.c", dir);
	expect(own, "two/own.c");
	put("at/only.c");
	snprintf(own, sizeof(own), "%s/at/only.c", dir);
	expect(own, "at/only.c");
	expect("/build/at/own.c", "two/own.c");
	expect("/build/nothing.c", NULL);
}

static void test_out(void **state)
{
	(void)state;
	put("out/secret");
	put("one/x/y");
	put("two/x/y");
	expect("../out/secret", NULL);
	expect("x/../../out/secret", NULL);
	expect("/build/x/../../out/secret", NULL);
	expect("../src/..", NULL);
	put("one/..a/..b");
	expect("/build/..a/..b", "one/..a/..b");
	expect("../x/y", "one/x/y");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_order),
					    cmocka_unit_test(test_out) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
