/* SPDX-License-Identifier: BSD-2-Clause */
/* Archives are written and read again, damaged, cut, and put together by others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tarball_internal.h"

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
	struct tarball_writer *w;
	struct base_err err = { 0 };

	assert_int_equal(tarball_create(at(name), &w, &err), 0);
	assert_int_equal(tarball_add_data(w, "z/small", 0640, 7, "abc", 3, &err), 0);
	assert_int_equal(tarball_add_data(w, "a/big", 0644, 1700000000, big, len, &err), 0);
	assert_int_equal(tarball_add_data(w, long_path(), 0644, 7, "", 0, &err), 0);
	assert_int_equal(tarball_add_data(w, "a/big", 0644, 7, "", 0, &err), -EEXIST);
	assert_true(tarball_has(w, "a/big"));
	assert_false(tarball_has(w, "a"));
	if (tarball_finish(w, &err) < 0)
		fail_msg("%s", err.text);
	tarball_discard(w);
}

static int gather(void *ctx, const void *data, size_t len)
{
	return base_buf_append(ctx, data, len);
}

/* The whole of it; the first negative of any step. */
static int read_path(const char *path, struct base_buf *out)
{
	struct tarball_reader *a;
	struct base_err err = { 0 };
	int r = tarball_open(path, &a, &err);

	if (r < 0) {
		assert_true(err.text[0]);
		return r;
	}
	for (size_t i = 0; r >= 0 && i < tarball_members(a)->nr; i++)
		r = tarball_read(a, out ? gather : NULL, out, &err);
	if (r >= 0)
		r = tarball_end(a, &err);
	tarball_close(a);
	return r;
}

/* The members' bytes in the order in which make() has them in the archive. */
static void must_hold(const struct base_buf *all, size_t len)
{
	assert_int_equal(all->len, len + 3);
	assert_memory_equal(all->data, big, len);
	assert_memory_equal(all->data + len, "abc", 3);
}

static int read_all(const char *name, struct base_buf *out)
{
	return read_path(at(name), out);
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
		must_hold(&all, BIG);
		base_buf_release(&all);
		/* One member is not everybody's to read. */
		assert_int_equal(stat(at(names[i]), &st), 0);
		assert_int_equal(st.st_mode & 0777, 0640);
	}
}

static void test_names_that_tell_nothing(void **state)
{
	struct tarball_writer *w;
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(tarball_create(at("m.zip"), &w, &err), -EINVAL);
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

/* A changed byte is found, or it is one that says nothing: then all contents are as they were. */
static void test_each_byte_counts(void **state)
{
	struct base_buf b = { 0 }, all = { 0 };
	size_t nr_refused = 0;

	(void)state;
	make("d.tar", SMALL);
	load("d.tar", &b);
	for (size_t i = 0; i < b.len; i += i < 2048 ? 7 : 409) {
		b.data[i] ^= 0x10;
		store("damaged", b.data, b.len);
		if (read_all("damaged", &all) < 0)
			nr_refused++;
		else
			must_hold(&all, SMALL);
		base_buf_clear(&all);
		b.data[i] ^= 0x10;
	}
	assert_true(nr_refused > SMALL / 409);
	base_buf_release(&all);
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

static bool says(FILE *f, const char *want)
{
	char line[200];

	while (fgets(line, sizeof(line), f))
		if (!strcmp(line, want))
			return true;
	return false;
}

/* While an archive is open, the child that decodes it waits for the pipe. */
static void test_child_without_rights(void **state)
{
	struct tarball_reader *a;
	char path[64];
	long child;
	FILE *f;

	(void)state;
	make("r.tar", BIG);
	assert_int_equal(tarball_open(at("r.tar"), &a, NULL), 0);
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &child), 1);
	fclose(f);
	snprintf(path, sizeof(path), "/proc/%ld/status", child);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(says(f, "CapEff:\t0000000000000000\n"));
	assert_true(says(f, "NoNewPrivs:\t1\n"));
	assert_true(says(f, "Seccomp:\t2\n"));
	fclose(f);
	tarball_close(a);
	/* It is gone with its reader. */
	assert_int_equal(kill((pid_t)child, 0), -1);
}

/* Archives that were written before libarchive, of 3,000 bytes and with a path in a pax header. */
static void test_older_archives(void **state)
{
	static const char *const names[] = { "older.tar", "older.tar.gz", "older.tar.zst" };
	const char *src = getenv("DCPI_SRC");

	(void)state;
	assert_non_null(src);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct base_buf all = { 0 };
		char path[4096];

		snprintf(path, sizeof(path), "%s/tests/data/archive/%s", src, names[i]);
		assert_int_equal(read_path(path, &all), 0);
		assert_int_equal(all.len, 3000 + 3 + 1);
		assert_memory_equal(all.data, big, 3000);
		assert_memory_equal(all.data + 3000, "abcu", 4);
		base_buf_release(&all);
	}
}

/* The member of an archive that is not ours. */
struct made {
	unsigned int type;
	const char *path, *data;
	unsigned int nr; /* how often it is there */
};

static void put_entry(struct archive *a, unsigned int type, const char *path, const void *data,
		      size_t len)
{
	struct archive_entry *e = archive_entry_new();

	archive_entry_set_pathname(e, path);
	archive_entry_set_filetype(e, type);
	archive_entry_set_perm(e, 0644);
	if (type == AE_IFREG)
		archive_entry_set_size(e, (la_int64_t)len);
	else
		archive_entry_set_symlink(e, "/etc/passwd");
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	if (type == AE_IFREG)
		assert_int_equal(archive_write_data(a, data, len), len);
	archive_entry_free(e);
}

/* Read an archive whose list has the file dyn/a, which contains an "a", and which has @m instead.
 */
static int read_made(const struct made *m)
{
	struct tarball_member listed = { .path = (char[]){ "dyn/a" }, .len = 1, .mode = 0644 };
	struct archive *a = archive_write_new();
	struct tarball_list l = { 0 };
	struct base_buf text = { 0 };
	struct base_sha256 sum;

	base_sha256_init(&sum);
	base_sha256_add(&sum, "a", 1);
	base_sha256_end(&sum, listed.sum);
	assert_int_equal(tarball_list_add(&l, &listed), 0);
	assert_int_equal(tarball_list_format(&l, &text), 0);
	archive_write_set_format_ustar(a);
	assert_int_equal(archive_write_open_filename(a, at("made.tar")), ARCHIVE_OK);
	put_entry(a, AE_IFREG, TARBALL_LIST_NAME, text.data, text.len);
	for (unsigned int i = 0; i < m->nr; i++)
		put_entry(a, m->type, m->path, m->data, strlen(m->data));
	assert_int_equal(archive_write_free(a), ARCHIVE_OK);
	tarball_list_release(&l);
	base_buf_release(&text);
	return read_all("made.tar", NULL);
}

static void test_members_that_differ(void **state)
{
	(void)state;
	assert_int_equal(read_made(&(struct made){ AE_IFREG, "dyn/a", "a", 1 }), 0);
	assert_int_equal(read_made(&(struct made){ AE_IFREG, "dyn/a", "b", 1 }), -DCPI_ECHECKSUM);
	assert_int_equal(read_made(&(struct made){ AE_IFREG, "dyn/b", "a", 1 }), -DCPI_EFORMAT);
	assert_int_equal(read_made(&(struct made){ AE_IFREG, "dyn/ab", "a", 1 }), -DCPI_EFORMAT);
	assert_int_equal(read_made(&(struct made){ AE_IFREG, "dyn/a", "", 1 }), -DCPI_EFORMAT);
	assert_int_equal(read_made(&(struct made){ AE_IFREG, "dyn/a", "aa", 1 }), -DCPI_EFORMAT);
	assert_int_equal(read_made(&(struct made){ AE_IFREG, "dyn/a", "a", 0 }), -DCPI_ETRUNCATED);
	assert_int_equal(read_made(&(struct made){ AE_IFREG, "dyn/a", "a", 2 }), -DCPI_EFORMAT);
	assert_int_equal(read_made(&(struct made){ AE_IFLNK, "dyn/a", "", 1 }), -DCPI_EFORMAT);
}

/* What a child that an archive took over may send. */
static int open_frames(const void *data, size_t len)
{
	struct tarball_reader *a;
	struct base_err err = { 0 };
	int ends[2], r;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(base_write_all(ends[1], data, len), 0);
	close(ends[1]);
	r = tarball_open_frames("x", ends[0], 0, &a, &err);
	if (r >= 0)
		tarball_close(a);
	else
		assert_true(err.text[0]);
	return r;
}

static void test_frames_that_lie(void **state)
{
	struct {
		struct tarball_frame name;
		char text[12];
		struct tarball_frame data;
	} f = { { TARBALL_NAME, 12 }, "dcpi-archive", { TARBALL_DATA, 0 } };
	const struct tarball_frame end = { TARBALL_END, 0 }, failed = { -EIO, 0 },
				   odd = { INT32_MIN, 0 }, long_name = { TARBALL_NAME, ~0u };

	(void)state;
	assert_int_equal(open_frames("", 0), -DCPI_EHELPER);
	assert_int_equal(open_frames(&end, sizeof(end)), -DCPI_EFORMAT);
	assert_int_equal(open_frames(&failed, sizeof(failed)), -EIO);
	assert_int_equal(open_frames(&odd, sizeof(odd)), -DCPI_EHELPER);
	assert_int_equal(open_frames(&long_name, sizeof(long_name)), -DCPI_EFORMAT);
	assert_int_equal(open_frames(&f, sizeof(f)), -DCPI_ELIMIT);
	f.data.len = TARBALL_CHUNK + 1;
	assert_int_equal(open_frames(&f, sizeof(f)), -DCPI_ELIMIT);
	f.data.len = 100;
	assert_int_equal(open_frames(&f, sizeof(f)), -DCPI_EHELPER);
	f.data = end;
	assert_int_equal(open_frames(&f, sizeof(f)), -DCPI_EVERSION);
}

static void test_no_archive(void **state)
{
	static const char text[] = "this is no archive";
	struct tarball_reader *a;
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(read_all("not there", NULL), -ENOENT);
	store("text", text, sizeof(text));
	assert_int_equal(read_all("text", NULL), -DCPI_EFORMAT);
	store("empty", "", 0);
	assert_int_equal(read_all("empty", NULL), -DCPI_EFORMAT);
	assert_int_equal(mkfifo(at("fifo"), 0600), 0);
	assert_int_equal(tarball_open(at("fifo"), &a, &err), -EINVAL);
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
		cmocka_unit_test(test_child_without_rights),
		cmocka_unit_test(test_older_archives),
		cmocka_unit_test(test_members_that_differ),
		cmocka_unit_test(test_frames_that_lie),
		cmocka_unit_test(test_no_archive),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
