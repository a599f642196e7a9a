/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the symbols and lines of a stripped image are found. "beta" is a local name, which only the
 * debug file has. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "image.h"

static char dir[] = "/tmp/dcpi-debug-XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[4][700];
	static size_t next;
	char *out = path[next++ % 4];

	snprintf(out, sizeof(path[0]), "%s/%s", dir, name);
	return out;
}

/* Folders on the way are made. */
static void copy(const char *from, const char *to)
{
	struct base_buf buf = { 0 };
	char path[700];

	strcpy(path, to);
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		mkdir(path, 0700);
		*at = '/';
	}
	assert_true(base_file_read(AT_FDCWD, from, 1 << 24, &buf, NULL) >= 0);
	assert_true(base_file_write(AT_FDCWD, to, 0600, buf.data, buf.len, NULL) >= 0);
	base_buf_release(&buf);
}

static bool has_beta(const char *path, bool lines)
{
	const struct image_symbol *beta;
	struct image_line line;
	struct image *img;
	size_t pos = 0;
	bool found;

	assert_int_equal(image_open_path(path, IMAGE_FILE, &img, NULL), 0);
	beta = image_symbol_find(img, "beta", &pos);
	found = beta != NULL;
	if (beta && lines) {
		assert_int_equal(image_line_at(img, beta->vaddr + 1, &line), 0);
		assert_non_null(strstr(line.file, "fixture.c"));
	}
	image_close(img);
	return found;
}

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/dcpi-debug-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	unsetenv("DCPI_DEBUG_PATH");
	unsetenv("DEBUGINFOD_URLS");
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command) == 0 ? 0 : -1;
}

static void test_beside(void **state)
{
	(void)state;
	copy(FIXTURES "/stripped.so", in_dir("a/lib.so"));
	assert_false(has_beta(in_dir("a/lib.so"), false));
	copy(FIXTURES "/.debug/stripped.debug", in_dir("a/stripped.debug"));
	assert_true(has_beta(in_dir("a/lib.so"), true));
	copy(FIXTURES "/stripped.so", in_dir("b/lib.so"));
	copy(FIXTURES "/.debug/stripped.debug", in_dir("b/.debug/stripped.debug"));
	assert_true(has_beta(in_dir("b/lib.so"), true));
	/* Without a link: by its own name. */
	copy(FIXTURES "/bare.so", in_dir("c/lib.so"));
	copy(FIXTURES "/.debug/stripped.debug", in_dir("c/lib.so.debug"));
	assert_true(has_beta(in_dir("c/lib.so"), true));
}

static void test_debug_path(void **state)
{
	char path[800];

	(void)state;
	copy(FIXTURES "/stripped.so", in_dir("lib.so"));
	snprintf(path, sizeof(path), "/nowhere:%s", in_dir("d"));
	setenv("DCPI_DEBUG_PATH", path, 1);
	copy(FIXTURES "/.debug/stripped.debug", in_dir("d/stripped.debug"));
	assert_true(has_beta(in_dir("lib.so"), true));
	unlink(in_dir("d/stripped.debug"));
	assert_false(has_beta(in_dir("lib.so"), true));
	snprintf(path, sizeof(path), "d%s/lib.so.debug", dir);
	copy(FIXTURES "/.debug/stripped.debug", in_dir(path));
	assert_true(has_beta(in_dir("lib.so"), true));
}

static void test_not_its_own(void **state)
{
	(void)state;
	copy(FIXTURES "/stripped.so", in_dir("lib.so"));
	/* Another build-id, or none; no ELF at all. */
	copy(FIXTURES "/fixture_dyn.so", in_dir("stripped.debug"));
	assert_false(has_beta(in_dir("lib.so"), false));
	copy(FIXTURES "/no_id.so", in_dir("stripped.debug"));
	assert_false(has_beta(in_dir("lib.so"), false));
	copy(FIXTURES "/mini.debug.xz", in_dir("stripped.debug"));
	assert_false(has_beta(in_dir("lib.so"), false));
}

static void test_crc(void **state)
{
	int fd;

	(void)state;
	copy(FIXTURES "/lone/lone.so", in_dir("lone.so"));
	copy(FIXTURES "/lone/lone.debug", in_dir("lone.debug"));
	assert_true(has_beta(in_dir("lone.so"), true));
	fd = open(in_dir("lone.debug"), O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	assert_false(has_beta(in_dir("lone.so"), false));
}

static void test_mini(void **state)
{
	struct image *full, *mini;
	size_t pos = 0;
	int fd;

	(void)state;
	copy(FIXTURES "/mini.so", in_dir("mini.so"));
	assert_true(has_beta(in_dir("mini.so"), false));
	assert_int_equal(image_open_path(FIXTURES "/fixture.so", IMAGE_FILE, &full, NULL), 0);
	assert_int_equal(image_open_path(in_dir("mini.so"), IMAGE_FILE, &mini, NULL), 0);
	assert_int_equal(image_nr_symbols(mini), image_nr_symbols(full));
	image_close(full);
	image_close(mini);
	/* Packed bytes that are none. */
	copy(FIXTURES "/mini.so", in_dir("bad.so"));
	fd = open(in_dir("bad.so"), O_RDWR | O_CLOEXEC);
	for (off_t at = 0; at < 1 << 20 && !pos; at++) {
		char head[6];

		if (pread(fd, head, 6, at) == 6 && memcmp(head,
							  "\xfd"
							  "7zXZ",
							  6) == 0) {
			assert_int_equal(pwrite(fd, "damaged", 7, at + 30), 7);
			pos = 1;
		}
	}
	close(fd);
	assert_int_equal(pos, 1);
	assert_false(has_beta(in_dir("bad.so"), false));
}

/* Copies the name of what is inlined in the last half of uses_alt.S. */
static const char *inlined_name(const char *path)
{
	struct image_frame frames[IMAGE_FRAMES_MAX];
	const struct image_symbol *outer;
	static char name[64];
	struct image *img;
	size_t pos = 0;

	assert_int_equal(image_open_path(path, IMAGE_FILE, &img, NULL), 0);
	outer = image_symbol_find(img, "outer", &pos);
	assert_non_null(outer);
	assert_int_equal(
		image_frames_at(img, outer->vaddr + outer->len - 1, frames, IMAGE_FRAMES_MAX), 2);
	assert_int_equal(frames[0].at.line, 20);
	assert_int_equal(frames[1].at.line, 10);
	snprintf(name, sizeof(name), "%s", frames[0].name);
	image_close(img);
	return name;
}

/* Names that another file has, which the image chose: who opens a FIFO waits without end. */
static void test_alt(void **state)
{
	(void)state;
	copy(FIXTURES "/uses_alt.so", in_dir("lib.so"));
	assert_string_equal(inlined_name(in_dir("lib.so")), "(unnamed)");
	copy(FIXTURES "/alt.so", in_dir("alt.so"));
	assert_string_equal(inlined_name(in_dir("lib.so")), "shared");
	copy(FIXTURES "/fixture.so", in_dir("alt.so")); /* another's build-id */
	assert_string_equal(inlined_name(in_dir("lib.so")), "(unnamed)");
	assert_int_equal(unlink(in_dir("alt.so")), 0);
	assert_int_equal(mkfifo(in_dir("alt.so"), 0600), 0);
	assert_string_equal(inlined_name(in_dir("lib.so")), "(unnamed)");
	setenv("DCPI_DEBUG_PATH", in_dir("d"), 1);
	copy(FIXTURES "/alt.so",
	     in_dir("d/.build-id/00/112233445566778899aabbccddeeff00112233.debug"));
	assert_string_equal(inlined_name(in_dir("lib.so")), "shared");
}

/* How many of the addresses of split_outer, of which there is a line, are of what is inlined. */
static size_t inlined_in_split(void)
{
	struct image_frame frames[IMAGE_FRAMES_MAX];
	const struct image_symbol *outer;
	struct image *img;
	size_t pos = 0, found = 0;

	assert_int_equal(image_open_path(in_dir("lib.so"), IMAGE_FILE, &img, NULL), 0);
	outer = image_symbol_find(img, "split_outer", &pos);
	assert_non_null(outer);
	for (uint64_t at = outer->vaddr; at < outer->vaddr + outer->len; at++) {
		size_t nr = image_frames_at(img, at, frames, IMAGE_FRAMES_MAX);

		assert_true(nr > 0);
		if (nr == 1)
			continue;
		assert_string_equal(frames[0].name, "split_inner");
		assert_int_equal(frames[0].at.line, 7);
		assert_int_equal(frames[1].at.line, 12);
		/* With the folder of the compilation, which the file calls so. */
		assert_string_equal(frames[0].at.file, "/nowhere/tests/image/inc/split.h");
		assert_string_equal(frames[1].at.file, "/nowhere/tests/image/src/split.c");
		found++;
	}
	image_close(img);
	return found;
}

/* The unit's routines are in another file, which is one of this very compilation. */
static void test_split(void **state)
{
	size_t without;

	(void)state;
	copy(FIXTURES "/split.so", in_dir("lib.so"));
	without = inlined_in_split();
	copy(FIXTURES "/split.dwo", in_dir("split.dwo"));
	assert_true(inlined_in_split() > without);
	copy(FIXTURES "/split_types.dwo", in_dir("split.dwo"));
	assert_true(inlined_in_split() > without);
	copy(FIXTURES "/fixture.so", in_dir("split.dwo"));
	assert_int_equal(inlined_in_split(), without);
	assert_int_equal(unlink(in_dir("split.dwo")), 0);
	assert_int_equal(mkfifo(in_dir("split.dwo"), 0600), 0);
	assert_int_equal(inlined_in_split(), without);
}

/* A server may be a folder. */
static void test_debuginfod(void **state)
{
	static const char *const gone[] = { "/no/such/file", NULL };
	struct image_query q = { .kind = IMAGE_FILE, .paths = gone };
	char id[BASE_ID_TEXT_LEN], path[800];
	struct image_store *store;
	struct image *img;

	(void)state;
	if (!dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL))
		skip();
	copy(FIXTURES "/bare.so", in_dir("lib.so"));
	assert_int_equal(image_open_path(in_dir("lib.so"), IMAGE_FILE, &img, NULL), 0);
	q.id = *image_id(img);
	base_id_text(&q.id, id);
	image_close(img);
	setenv("DEBUGINFOD_CACHE_PATH", in_dir("cache"), 1);
	snprintf(path, sizeof(path), "file://%s", in_dir("server"));
	setenv("DEBUGINFOD_URLS", path, 1);
	snprintf(path, sizeof(path), "server/buildid/%s/debuginfo", id);
	copy(FIXTURES "/.debug/stripped.debug", in_dir(path));
	snprintf(path, sizeof(path), "server/buildid/%s/executable", id);
	copy(FIXTURES "/bare.so", in_dir(path));
	assert_true(has_beta(in_dir("lib.so"), true));
	/* The image itself, where it is gone. */
	assert_int_equal(image_store_open(-1, -1, &store), 0);
	assert_int_equal(image_open(store, &q, &img, NULL), 0);
	image_close(img);
	image_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_beside, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_debug_path, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_crc, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mini, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_alt, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_split, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_debuginfod, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
