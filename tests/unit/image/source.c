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
static const char *program; /* that ran the code */

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

	assert_int_equal(image_source_open(name, program, false, &src, NULL), found ? 0 : -ENOENT);
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

/* A copy of a JDK's archive of sources, whose members have their own paths as first line. */
static void put_archive(const char *path, size_t len)
{
	char whole[256];
	FILE *from = fopen(SOURCES_ZIP, "r"), *to;
	static char data[4096];
	size_t n;

	put(path);
	snprintf(whole, sizeof(whole), "%s/%s", dir, path);
	to = fopen(whole, "w");
	assert_non_null(from);
	assert_non_null(to);
	n = fread(data, 1, sizeof(data), from);
	assert_true(n > 0 && n < sizeof(data));
	assert_true(fwrite(data, 1, len && len < n ? len : n, to) > 0);
	fclose(from);
	assert_int_equal(fclose(to), 0);
}

/* The sources of a JDK are those of the JDK whose java ran the code, and no other's. */
static void test_jdk(void **state)
{
	char java[256];

	(void)state;
	put_archive("jdk/lib/src.zip", 0);
	put("other/lib/src.zip");
	snprintf(java, sizeof(java), "%s/jdk/bin/java", dir);
	expect("java/lang/Text.java", NULL);
	program = java;
	expect("java/lang/Text.java", "java.base/java/lang/Text.java");
	expect("java/awt/Stored.java", "java.desktop/java/awt/Stored.java");
	expect("Plain.java", "old/Plain.java");
	expect("lang/Text.java", NULL);
	expect("java/lang/Nothing.java", NULL);
	expect("../old/Plain.java", NULL);
	/* Its own files come first. */
	put("one/java/lang/Text.java");
	expect("java/lang/Text.java", "one/java/lang/Text.java");
	/* The old place: beside the folder of the runtime alone. */
	put("jdk8/jre/bin/java");
	put_archive("jdk8/src.zip", 0);
	snprintf(java, sizeof(java), "%s/jdk8/jre/bin/java", dir);
	expect("java/awt/Stored.java", "java.desktop/java/awt/Stored.java");
	/* What is no archive, or a part of one. */
	snprintf(java, sizeof(java), "%s/other/bin/java", dir);
	expect("java/awt/Stored.java", NULL);
	for (size_t len = 1; len < 400; len += 7) {
		put_archive("other/lib/src.zip", len);
		expect("java/awt/Stored.java", NULL);
	}
	program = NULL;
}

/* Two members of an archive are two sources. */
static void test_members(void **state)
{
	static const char *const names[] = { "java/awt/Stored.java", "Plain.java",
					     "java/awt/Stored.java" };
	struct image_source *v[3];
	char java[256];

	(void)state;
	put_archive("jdk/lib/src.zip", 0);
	snprintf(java, sizeof(java), "%s/jdk/bin/java", dir);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(image_source_open(names[i], java, false, &v[i], NULL), 0);
	assert_false(image_source_same(v[0], v[1]));
	assert_true(image_source_same(v[0], v[2]));
	/* Nobody else may read what lies in this folder. */
	image_source_close(v[0]);
	assert_int_equal(image_source_open(names[0], java, true, &v[0], NULL), -ENOENT);
	image_source_close(v[1]);
	image_source_close(v[2]);
}

static void put_text(const char *path, const char *text)
{
	char whole[512];
	FILE *f;

	put(path);
	snprintf(whole, sizeof(whole), "%s/%s", dir, path);
	f = fopen(whole, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* A package's sources that tell of their version are those of that version alone. */
static void test_rust_package(void **state)
{
	char copies[256];

	(void)state;
	snprintf(copies, sizeof(copies), "%s/copies", dir);
	setenv("DCPI_DEBUG_PATH", copies, 1);
	put("copies/usr/src/rustc-1.63.0/library/std/src/os.rs");
	expect("/rustc/0123456789abcdef0123456789abcdef01234567/library/std/src/os.rs",
	       "copies/usr/src/rustc-1.63.0/library/std/src/os.rs");
	put_text("copies/usr/src/rustc-1.63.0/src/version", "1.63.0\n");
	expect("/rustc/0123456789abcdef0123456789abcdef01234567/library/std/src/os.rs", NULL);
	expect("/rustc/1.63.0/library/std/src/os.rs",
	       "copies/usr/src/rustc-1.63.0/library/std/src/os.rs");
	expect("/rustc/1.63/library/std/src/os.rs", NULL);
	put_text("copies/usr/src/rustc-1.63.0/git-commit-hash",
		 "0123456789abcdef0123456789abcdef01234567\n");
	expect("/rustc/0123456789abcdef0123456789abcdef01234567/library/std/src/os.rs",
	       "copies/usr/src/rustc-1.63.0/library/std/src/os.rs");
	expect("/rustc/0123456799abcdef0123456789abcdef01234567/library/std/src/os.rs", NULL);
	unsetenv("DCPI_DEBUG_PATH");
}

/* Of several toolchains of rustup the one whose compiler it was. */
static void test_rustup(void **state)
{
	char home[256];

	(void)state;
	snprintf(home, sizeof(home), "%s/rustup", dir);
	setenv("RUSTUP_HOME", home, 1);
	put("rustup/toolchains/new/lib/rustlib/src/rust/library/std/src/io.rs");
	put("rustup/toolchains/old/lib/rustlib/src/rust/library/std/src/io.rs");
	put("rustup/toolchains/new/lib/rustlib/multirust-channel-manifest.toml");
	put_text("rustup/toolchains/old/lib/rustlib/multirust-channel-manifest.toml",
		 "[pkg.rust]\nversion = \"1.97.0 (012345678 2026-05-19)\"\n");
	expect("/rustc/0123456789abcdef0123456789abcdef01234567/library/std/src/io.rs",
	       "rustup/toolchains/old/lib/rustlib/src/rust/library/std/src/io.rs");
	expect("/rustc/0123456799abcdef0123456789abcdef01234567/library/std/src/io.rs", NULL);
	expect("/rustc//library/std/src/io.rs", NULL);
	unsetenv("RUSTUP_HOME");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	     cmocka_unit_test(test_out),
		cmocka_unit_test(test_jdk),	     cmocka_unit_test(test_members),
		cmocka_unit_test(test_rust_package), cmocka_unit_test(test_rustup)
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
