/* SPDX-License-Identifier: BSD-2-Clause */
/* The index answers as the image does, whatever becomes of it. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "image.h"

struct place {
	char dir[64];
	int fd;
	char file[100]; /* the index, in @dir */
	off_t len;
};

static struct image *open_with(struct image_store *store, const char *path)
{
	const char *const paths[] = { path, NULL };
	struct image_query q = { .kind = IMAGE_FILE, .paths = paths };
	struct base_err err = { 0 };
	struct image *img = NULL;

	if (image_open(store, &q, &img, &err) < 0)
		fail_msg("%s", err.text);
	return img;
}

static void same(const struct image_symbol *a, const struct image_symbol *b)
{
	assert_true(!a == !b);
	if (!a)
		return;
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->vaddr, b->vaddr);
	assert_int_equal(a->len, b->len);
}

/* All that can be asked, compared with the image itself. */
static void ask_all(struct image *img, const char *path)
{
	struct image *truth;
	size_t nr, pos, truth_pos;

	assert_int_equal(image_open_path(path, IMAGE_FILE, &truth, NULL), 0);
	nr = image_nr_symbols(truth);
	assert_true(nr >= 2999);
	for (size_t i = 0; i < nr; i++) {
		const struct image_symbol *s = image_symbol(truth, i);

		pos = truth_pos = 0;
		same(image_symbol(img, i), s);
		same(image_symbol_at(img, s->vaddr), s);
		same(image_symbol_find(img, s->name, &pos),
		     image_symbol_find(truth, s->name, &truth_pos));
		assert_null(image_symbol_find(img, s->name, &pos));
		same(image_symbol_at(img, s->vaddr + s->len),
		     image_symbol_at(truth, s->vaddr + s->len));
	}
	pos = truth_pos = 0;
	same(image_symbol_find(img, "seven", &pos), image_symbol_find(truth, "seven", &truth_pos));
	pos = 0;
	assert_null(image_symbol_find(img, "eight", &pos));
	assert_null(image_symbol_at(img, UINT64_MAX));
	assert_null(image_symbol(img, nr));
	assert_int_equal(image_nr_symbols(img), nr);
	image_close(truth);
}

/* Ask with the folder's indexes. */
static void ask_in(int dir_fd, const char *path)
{
	struct image_store *store;
	struct image *img;

	assert_int_equal(image_store_open(-1, -1, &store), 0);
	image_store_index(store, dir_fd);
	img = open_with(store, path);
	ask_all(img, path);
	image_close(img);
	image_store_close(store);
}

static void place_of(struct place *p, const char *path)
{
	char id[BASE_ID_TEXT_LEN];
	struct image *img;
	struct stat st;

	strcpy(p->dir, "/tmp/dcpi-index-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	p->fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->fd >= 0);
	ask_in(p->fd, path);
	assert_int_equal(image_open_path(path, IMAGE_FILE, &img, NULL), 0);
	snprintf(p->file, sizeof(p->file), "%s.sym", base_id_text(image_id(img), id));
	image_close(img);
	assert_int_equal(fstatat(p->fd, p->file, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	p->len = st.st_size;
}

static void place_end(struct place *p)
{
	unlinkat(p->fd, p->file, 0);
	close(p->fd);
	assert_int_equal(rmdir(p->dir), 0);
}

/* Is the file that was there still there: was it used? */
static ino_t inode(const struct place *p)
{
	struct stat st;

	assert_int_equal(fstatat(p->fd, p->file, &st, 0), 0);
	return st.st_ino;
}

static void test_same(void **state)
{
	struct place p;
	ino_t before;

	(void)state;
	place_of(&p, FIXTURES "/fixture_many.so");
	before = inode(&p);
	ask_in(p.fd, FIXTURES "/fixture_many.so");
	assert_int_equal(inode(&p), before);
	place_end(&p);
}

/* One build-id, other symbols. */
static void test_other_file(void **state)
{
	struct place p;

	(void)state;
	place_of(&p, FIXTURES "/fixture_many.so");
	ask_in(p.fd, FIXTURES "/fewer.so");
	ask_in(p.fd, FIXTURES "/fixture_many.so");
	place_end(&p);
}

/* A byte of each part at a time; then an end that is missing. */
static void test_damaged(void **state)
{
	struct place p;
	uint8_t byte;
	int fd;

	(void)state;
	place_of(&p, FIXTURES "/fixture_many.so");
	for (off_t at = 3; at < p.len; at += p.len / 23) {
		fd = openat(p.fd, p.file, O_RDWR | O_CLOEXEC);
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
		ask_in(p.fd, FIXTURES "/fixture_many.so");
	}
	for (off_t len = 0; len < p.len; len += p.len / 7) {
		fd = openat(p.fd, p.file, O_RDWR | O_CLOEXEC);
		assert_int_equal(ftruncate(fd, len), 0);
		close(fd);
		ask_in(p.fd, FIXTURES "/fixture_many.so");
	}
	place_end(&p);
}

/* No folder that we may write: the user's own; none there either: the image itself. */
static void test_user_cache(void **state)
{
	char dir[] = "/tmp/dcpi-index-XXXXXX", sub[64];
	struct place p;

	(void)state;
	assert_non_null(mkdtemp(dir));
	setenv("XDG_CACHE_HOME", dir, 1);
	ask_in(-1, FIXTURES "/fixture_many.so");
	snprintf(sub, sizeof(sub), "%s/dcpi", dir);
	place_of(&p, FIXTURES "/fixture_many.so"); /* to know its name */
	place_end(&p);
	p.fd = open(sub, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	strcpy(p.dir, sub);
	inode(&p);
	ask_in(-1, FIXTURES "/fixture_many.so");
	place_end(&p);
	assert_int_equal(rmdir(dir), 0);
	setenv("XDG_CACHE_HOME", "/dev/null", 1);
	ask_in(-1, FIXTURES "/fixture_many.so");
	unsetenv("XDG_CACHE_HOME");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_other_file),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_user_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
