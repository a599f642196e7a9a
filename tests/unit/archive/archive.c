/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive_internal.h"

enum { BIG = 300000, SMALL = 30000 };

static char dir[] = "/tmp/dcpi-archive-XXXXXX";
static uint8_t big[BIG];

static const char *at(const char *name)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* A path that no plain tar header holds. */
static const char *long_path(void)
{
	static char path[401];

	for (size_t i = 0; i < sizeof(path) - 1; i++)
		path[i] = i % 60 == 59 ? '/' : 'n';
	return path;
}

static void make(const char *name, size_t len)
{
	struct archive_writer *w;
	struct base_err err = { 0 };

	assert_int_equal(archive_create(at(name), &w, &err), 0);
	assert_int_equal(archive_add_data(w, "z/small", 0640, 7, "abc", 3, &err), 0);
	assert_int_equal(archive_add_data(w, "a/big", 0644, 1700000000, big, len, &err), 0);
	assert_int_equal(archive_add_data(w, long_path(), 0644, 7, "", 0, &err), 0);
	assert_int_equal(archive_add_data(w, "a/big", 0644, 7, "", 0, &err), -EEXIST);
	assert_true(archive_has(w, "a/big"));
	assert_false(archive_has(w, "a"));
	if (archive_finish(w, &err) < 0)
		fail_msg("%s", err.text);
	archive_discard(w);
}

static int gather(void *ctx, const void *data, size_t len)
{
	return base_buf_append(ctx, data, len);
}

/* The whole of it; the first negative of any step. */
static int read_all(const char *name, struct base_buf *out)
{
	struct archive_reader *a;
	struct base_err err = { 0 };
	int r = archive_open(at(name), &a, &err);

	if (r < 0) {
		assert_true(err.text[0]);
		return r;
	}
	for (size_t i = 0; r >= 0 && i < archive_members(a)->nr; i++)
		r = archive_read(a, out ? gather : NULL, out, &err);
	if (r >= 0)
		r = archive_end(a, &err);
	archive_close(a);
	return r;
}

static void test_each_method(void **state)
{
	static const char *const names[] = { "m.tar", "m.tar.gz", "m.tgz", "m.tar.zst", "m.tzst" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct base_buf all = { 0 };
		struct stat st;

		make(names[i], BIG);
		assert_int_equal(read_all(names[i], &all), 0);
		assert_int_equal(all.len, BIG + 3);
		assert_memory_equal(all.data, big, BIG);
		assert_memory_equal(all.data + BIG, "abc", 3);
		base_buf_release(&all);
		/* One member is not everybody's to read. */
		assert_int_equal(stat(at(names[i]), &st), 0);
		assert_int_equal(st.st_mode & 0777, 0640);
	}
}

static void test_names_that_tell_nothing(void **state)
{
	struct archive_writer *w;
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(archive_create(at("m.zip"), &w, &err), -EINVAL);
	assert_true(err.hint[0]);
}

static void load(const char *name, struct base_buf *b)
{
	assert_int_equal(base_file_read(AT_FDCWD, at(name), 1 << 24, b, NULL), 0);
}

static void store(const char *name, const void *data, size_t len)
{
	FILE *f = fopen(at(name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void test_each_byte_counts(void **state)
{
	struct base_buf b = { 0 };

	(void)state;
	make("d.tar", SMALL);
	load("d.tar", &b);
	for (size_t i = 0; i < b.len; i += i < 2048 ? 1 : 409) {
		b.data[i] ^= 0x10;
		store("damaged", b.data, b.len);
		/* Of the list's own header only name and length are looked at. */
		if (read_all("damaged", NULL) >= 0 && i >= ARCHIVE_BLOCK)
			fail_msg("byte %zu was changed", i);
		b.data[i] ^= 0x10;
	}
	base_buf_release(&b);
}

static void test_cut_short(void **state)
{
	static const char *const names[] = { "c.tar", "c.tar.gz", "c.tar.zst" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct base_buf b = { 0 };

		make(names[i], BIG);
		load(names[i], &b);
		for (size_t len = 0; len + 64 < b.len; len += b.len / 50) {
			store("cut", b.data, len);
			assert_true(read_all("cut", NULL) < 0);
		}
		base_buf_release(&b);
	}
}

/* An archive whose list has @m and whose member's header says @header. */
static int read_made(const struct archive_member *m, const struct base_buf *header)
{
	struct archive_list l = { 0 };
	struct archive_member list = { .path = (char[]){ ARCHIVE_LIST_NAME }, .mode = 0644 };
	struct base_buf text = { 0 }, b = { 0 };
	void *pad;

	assert_int_equal(archive_list_add(&l, m), 0);
	assert_int_equal(archive_list_format(&l, &text), 0);
	list.len = text.len;
	assert_int_equal(archive_header(&list, &b), 0);
	assert_int_equal(base_buf_append(&b, text.data, text.len), 0);
	assert_int_equal(base_buf_extend(&b, base_align_up(b.len, 512) - b.len, &pad), 0);
	assert_int_equal(base_buf_append(&b, header->data, header->len), 0);
	assert_int_equal(base_buf_extend(&b, 4096, &pad), 0);
	store("made.tar", b.data, b.len);
	archive_list_release(&l);
	base_buf_release(&text);
	base_buf_release(&b);
	return read_all("made.tar", NULL);
}

static void test_headers_that_differ(void **state)
{
	struct archive_member m = { .path = (char[]){ "dyn/a" }, .len = 1, .mode = 0644 }, other;
	struct base_buf head = { 0 };

	(void)state;
	assert_int_equal(archive_header(&m, &head), 0);
	/* As the list says: then the contents are not what their sum tells. */
	assert_int_equal(read_made(&m, &head), -DCPI_ECHECKSUM);
	head.data[156] = '2'; /* a symbolic link */
	assert_int_equal(read_made(&m, &head), -DCPI_EFORMAT);
	base_buf_clear(&head);
	other = m;
	other.path = (char[]){ "dyn/b" };
	assert_int_equal(archive_header(&other, &head), 0);
	assert_int_equal(read_made(&m, &head), -DCPI_EFORMAT);
	base_buf_clear(&head);
	other = m;
	other.len = ARCHIVE_MEMBER_MAX;
	assert_int_equal(archive_header(&other, &head), 0);
	assert_int_equal(read_made(&m, &head), -DCPI_EFORMAT);
	/* So much is not there. */
	assert_int_equal(read_made(&other, &head), -DCPI_ETRUNCATED);
	base_buf_release(&head);
}

static void test_no_archive(void **state)
{
	static const char text[] = "this is no archive";
	struct archive_reader *a;
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(read_all("not there", NULL), -ENOENT);
	store("text", text, sizeof(text));
	assert_int_equal(read_all("text", NULL), -DCPI_EFORMAT);
	store("empty", "", 0);
	assert_int_equal(read_all("empty", NULL), -DCPI_EFORMAT);
	assert_int_equal(mkfifo(at("fifo"), 0600), 0);
	assert_int_equal(archive_open(at("fifo"), &a, &err), -EINVAL);
	assert_non_null(strstr(err.text, "/fifo': not a regular file"));
}

static int setup(void **state)
{
	(void)state;
	umask(022);
	for (size_t i = 0; i < BIG; i++)
		big[i] = (uint8_t)(i * i >> 7);
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_method),
		cmocka_unit_test(test_names_that_tell_nothing),
		cmocka_unit_test(test_each_byte_counts),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_headers_that_differ),
		cmocka_unit_test(test_no_archive),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
