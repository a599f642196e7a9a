/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "image.h"

static struct image *open_fixture(const char *name, enum image_kind kind)
{
	struct base_err err = { 0 };
	struct image *img = NULL;
	char path[512];

	snprintf(path, sizeof(path), FIXTURES "/%s", name);
	if (image_open_path(path, kind, &img, &err) < 0)
		fail_msg("%s", err.text);
	return img;
}

static uint64_t addr(struct image *img, const char *name)
{
	size_t pos = 0;
	const struct image_symbol *s = image_symbol_find(img, name, &pos);

	if (!s)
		fail_msg("no symbol %s", name);
	return s->vaddr;
}

static void expect_at(struct image *img, uint64_t vaddr, const char *name)
{
	const struct image_symbol *s = image_symbol_at(img, vaddr);

	if (!name)
		assert_null(s);
	else if (!s)
		fail_msg("nothing at %#lx, not %s", (unsigned long)vaddr, name);
	else
		assert_string_equal(s->name, name);
}

static void test_symbols(void **state)
{
	struct image *img = open_fixture("fixture.so", IMAGE_FILE);
	uint64_t a = addr(img, "alpha"), o = addr(img, "outer_proc"), b = addr(img, "bare_label");
	size_t pos = 0;

	(void)state;
	expect_at(img, a, "alpha");
	expect_at(img, a + 1, "alpha");
	assert_int_equal(addr(img, "__alpha"), a);
	assert_int_equal(addr(img, "alpha_twin"), a);
	expect_at(img, addr(img, "beta"), "beta");
	expect_at(img, b, "bare_label");
	expect_at(img, b + 15, "bare_label");
	expect_at(img, o, "outer_proc");
	expect_at(img, o + 8, "inner_proc");
	expect_at(img, o + 15, "inner_proc");
	expect_at(img, o + 16, "outer_proc");
	expect_at(img, o + 20, "outer_proc");
	expect_at(img, o + 31, "outer_proc");
	expect_at(img, addr(img, "proc_info") + 7, "proc_info");
	assert_null(image_symbol_find(img, "proc_alias", &pos));
	expect_at(img, 0, NULL);
	expect_at(img, UINT64_MAX, NULL);
	image_close(img);
}

static void test_symbols_ascend(void **state)
{
	struct image *img = open_fixture("fixture.so", IMAGE_FILE);
	size_t nr = image_nr_symbols(img), pos = 0;

	(void)state;
	assert_true(nr >= 6);
	for (size_t i = 1; i < nr; i++)
		assert_true(image_symbol(img, i - 1)->vaddr < image_symbol(img, i)->vaddr);
	assert_null(image_symbol(img, nr));
	assert_null(image_symbol_find(img, "gamma", &pos));
	assert_non_null(image_symbol_find(img, "alpha", &pos));
	assert_null(image_symbol_find(img, "alpha", &pos));
	image_close(img);
}

static void test_stripped(void **state)
{
	struct image *full = open_fixture("fixture.so", IMAGE_FILE);
	struct image *debug = open_fixture("stripped.so", IMAGE_FILE);
	struct image *bare = open_fixture("bare.so", IMAGE_FILE);
	struct image_line line;
	char name[32];

	(void)state;
	/* Through the debug link: local names and lines; without: what the dynamic linker needs. */
	assert_int_equal(addr(debug, "beta"), addr(full, "beta"));
	assert_int_equal(image_line_at(debug, addr(full, "alpha") + 1, &line), 0);
	assert_int_equal(addr(bare, "alpha"), addr(full, "alpha"));
	/* What only unwinding knows has its address for a name, which leads back to it. */
	snprintf(name, sizeof(name), "0x%lx", (unsigned long)addr(full, "beta"));
	expect_at(bare, addr(full, "beta") + 1, name);
	assert_int_equal(addr(bare, name), addr(full, "beta"));
	assert_int_equal(image_symbol_at(bare, addr(full, "beta"))->len,
			 image_symbol_at(full, addr(full, "beta"))->len);
	assert_int_equal(addr(bare, "elsewhere@plt"), addr(full, "elsewhere@plt"));
	assert_int_equal(image_line_at(bare, addr(full, "alpha"), &line), -ENOENT);
	image_close(full);
	image_close(debug);
	image_close(bare);
}

/* Its lines and no more, whatever ends them. */
static void check_source(const char *text, size_t nr, const char *const lines[])
{
	char path[] = "/tmp/dcpi-unit-XXXXXX";
	int fd = mkstemp(path);
	struct image_source *src;
	size_t len = 0;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(image_source_open(path, NULL, false, &src, NULL), 0);
	unlink(path);
	for (size_t i = 0; i < nr; i++) {
		const char *line = image_source_line(src, (unsigned int)i + 1, &len);

		assert_non_null(line);
		assert_int_equal(len, strlen(lines[i]));
		assert_memory_equal(line, lines[i], len);
	}
	assert_null(image_source_line(src, (unsigned int)nr + 1, &len));
	image_source_close(src);
}

/* A file is the same by another path, its copy is not. */
static void test_source_same(void **state)
{
	char dir[] = "/tmp/dcpi-unit-XXXXXX", path[3][64];
	struct image_source *src[3];

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < 3; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/%d", dir, i);
		if (i == 1)
			assert_int_equal(symlink(path[0], path[1]), 0);
		else
			close(open(path[i], O_CREAT | O_WRONLY, 0600));
		assert_int_equal(image_source_open(path[i], NULL, false, &src[i], NULL), 0);
	}
	assert_true(image_source_same(src[0], src[1]));
	assert_false(image_source_same(src[0], src[2]));
	for (int i = 0; i < 3; i++) {
		image_source_close(src[i]);
		unlink(path[i]);
	}
	rmdir(dir);
}

static void test_source(void **state)
{
	static const char *const lines[] = { "a", "", "bc" };

	(void)state;
	check_source("", 0, NULL);
	check_source("a\n\nbc\n", 3, lines);
	check_source("a\n\nbc", 3, lines);
	assert_int_equal(image_source_path_len("/a/b.lua lines 4-6,9"), 8);
	assert_int_equal(image_source_path_len("/a/b.lua lines 4-6,9b"), 21);
	assert_int_equal(image_source_path_len("/a/b.lua lines "), 15);
	assert_int_equal(image_source_path_len(" lines 4"), 8);
	assert_int_equal(image_source_path_len("7"), 1);
	check_source("a\r\n\r\nbc\r\n", 3, lines);
}

static void test_lines(void **state)
{
	struct image *img = open_fixture("fixture.so", IMAGE_FILE);
	const struct image_symbol *s;
	struct image_source *src;
	struct base_err err = { 0 };
	struct image_line line;
	bool seen[64] = { false };
	const char *text;
	size_t len = 0;

	(void)state;
	s = image_symbol_at(img, addr(img, "beta"));
	for (uint64_t v = s->vaddr; v < s->vaddr + s->len; v++) {
		assert_int_equal(image_line_at(img, v, &line), 0);
		assert_string_equal(strrchr(line.file, '/'), "/fixture.c");
		assert_true(line.line >= 9 && line.line <= 11);
		seen[line.line] = true;
	}
	assert_true(seen[10]);
	assert_int_equal(image_source_open(FIXTURE_SOURCE, NULL, false, &src, &err), 0);
	text = image_source_line(src, 10, &len);
	assert_int_equal(len, strlen("\treturn x * 3; /* line 10 */"));
	assert_memory_equal(text, "\treturn x * 3; /* line 10 */", len);
	assert_null(image_source_line(src, 0, &len));
	assert_null(image_source_line(src, 100000, &len));
	image_source_close(src);
	image_close(img);
	assert_true(image_source_open(FIXTURES, NULL, false, &src, &err) < 0);
}

static void test_bytes(void **state)
{
	struct image *img = open_fixture("fixture.so", IMAGE_FILE);
	uint8_t bytes[16];
	uint64_t a = addr(img, "outer_proc");

	(void)state;
	assert_int_equal(image_bytes(img, a, bytes, sizeof(bytes)), sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++) /* .skip, not a trap or the like */
		assert_int_equal(bytes[i], bytes[0]);
	assert_int_equal(image_bytes(img, UINT64_MAX - 3, bytes, sizeof(bytes)), 0);
	image_close(img);
}

static void test_offsets(void **state)
{
	struct image *img = open_fixture("fixture.so", IMAGE_FILE);
	uint64_t a = addr(img, "alpha"), vaddr;
	bool found = false;

	(void)state;
	for (uint64_t off = 0; off < 0x10000 && !found; off++)
		found = image_vaddr(img, off, &vaddr) == 0 && vaddr == a;
	assert_true(found);
	assert_int_equal(image_vaddr(img, UINT64_MAX, &vaddr), -ENOENT);
	image_close(img);
	img = open_fixture("fixture.so", IMAGE_KERNEL);
	assert_int_equal(image_vaddr(img, 0x1234, &vaddr), 0);
	assert_int_equal(vaddr, 0x1234);
	image_close(img);
}

static void test_dynamic(void **state)
{
	struct image *img = open_fixture("fixture_dyn.so", IMAGE_DYNAMIC);
	const struct image_process *p = image_process(img);
	uint64_t vaddr;

	(void)state;
	assert_non_null(p);
	assert_string_equal(p->facility, "hello");
	assert_string_equal(p->host, "box7");
	assert_string_equal(p->exe, "/bin/");
	assert_int_equal(p->pid, 4711);
	assert_int_equal(p->uid, 1000);
	assert_int_equal(p->created_s, 1700000000);
	assert_int_equal(image_vaddr(img, 0, &vaddr), 0);
	assert_int_equal(vaddr, 0x7e0000000000);
	assert_int_equal(image_vaddr(img, 0xfff, &vaddr), 0);
	assert_int_equal(vaddr, 0x7e0000000fff);
	assert_int_equal(image_vaddr(img, 0x1010, &vaddr), 0);
	assert_int_equal(vaddr, 0x7f0000002010);
	assert_int_equal(image_vaddr(img, 0x1800, &vaddr), -ENOENT);
	assert_int_equal(image_off(img, 0x7f0000002010, &vaddr), 0);
	assert_int_equal(vaddr, 0x1010);
	assert_int_equal(image_off(img, 0x7e0000000fff, &vaddr), 0);
	assert_int_equal(vaddr, 0xfff);
	assert_int_equal(image_off(img, 0x7e0000001000, &vaddr), -ENOENT);
	image_close(img);
}

/* Back from an address to where it came from. */
static void test_off(void **state)
{
	struct image *img = open_fixture("fixture.so", IMAGE_FILE);
	uint64_t start = addr(img, "alpha"), off, vaddr;

	(void)state;
	assert_int_equal(image_off(img, start, &off), 0);
	assert_int_equal(image_vaddr(img, off, &vaddr), 0);
	assert_int_equal(vaddr, start);
	assert_int_equal(image_off(img, UINT64_MAX, &off), -ENOENT);
	image_close(img);
}

/* In some instruction of it the innermost of the three frames is seen; its callers with it. */
static void check_frames(const char *file)
{
	struct image *img = open_fixture(file, IMAGE_FILE);
	uint64_t start = addr(img, "nest");
	struct image_frame f[IMAGE_FRAMES_MAX];
	bool seen = false;

	for (uint64_t v = start; v < start + image_symbol_at(img, start)->len; v++) {
		size_t nr = image_frames_at(img, v, f, IMAGE_FRAMES_MAX);

		assert_in_range(nr, 1, 3);
		assert_null(f[nr - 1].name);
		if (nr < 3)
			continue;
		seen = true;
		assert_string_equal(f[0].name, "inner");
		assert_int_equal(f[0].at.line, 67);
		assert_string_equal(f[1].name, "middle");
		assert_int_equal(f[1].at.line, 72);
		assert_int_equal(f[2].at.line, 77);
		assert_string_equal(strrchr(f[2].at.file, '/'), "/fixture.c");
		assert_int_equal(f[0].begins, 65);
		assert_int_equal(f[1].begins, 70);
		assert_int_equal(f[2].begins, 75);
		assert_null(f[0].linkage);
		assert_int_equal(image_frames_at(img, v, f, 2), 2);
		assert_string_equal(f[1].name, "middle");
	}
	assert_true(seen);
	assert_int_equal(image_frames_at(img, addr(img, "alpha"), f, 3), 1);
	assert_int_equal(f[0].begins, 13);
	assert_int_equal(image_frames_at(img, 1, f, 3), 0);
	image_close(img);
}

/* Whatever holds the debug information: the file, compressed as was once usual or as it is now, or
 * another one. */
static void test_frames(void **state)
{
	(void)state;
	check_frames("fixture.so");
	check_frames("zdebug.so");
	check_frames("zstd.so");
	check_frames("stripped.so");
}

/* Of strings that do not end nothing is read, however they are kept; nor where there are two
 * sections that they may be in. */
static void test_unended(void **state)
{
	static const char *const names[] = { "unended.so",	 "unended_packed.so",
					     "unended_split.so", "unended_types.so",
					     "unended_lto.so",	 "two_infos.so" };
	struct image *img = open_fixture("overlap.so", IMAGE_FILE);
	struct image_line line;

	(void)state;
	assert_int_equal(image_line_at(img, addr(img, "wide"), &line), 0);
	image_close(img);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		img = open_fixture(names[i], IMAGE_FILE);
		assert_true(image_line_at(img, addr(img, "wide"), &line) < 0);
		image_close(img);
	}
}

/* A version is cut from the names of files; what a runtime calls its code is its own affair. */
static void test_at_sign(void **state)
{
	struct image *img = open_fixture("fixture.so", IMAGE_FILE);

	(void)state;
	expect_at(img, addr(img, "versioned"), "versioned");
	image_close(img);
	img = open_fixture("fixture_dyn.so", IMAGE_DYNAMIC);
	expect_at(img, addr(img, "draw@a.js:10"), "draw@a.js:10");
	expect_at(img, addr(img, "draw@b.js:20"), "draw@b.js:20");
	image_close(img);
}

static struct image_query query(enum image_kind kind, const char *id, const char *const *paths)
{
	struct image_query q = { .kind = kind, .paths = paths };

	if (id)
		assert_int_equal(base_id_parse(&q.id, id, strlen(id)), 0);
	return q;
}

static int open_query(const struct image_query *q, struct image **img, struct base_err *err)
{
	struct image_store *store;
	int fd = open(FIXTURES, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	assert_true(fd >= 0);
	*img = NULL;
	memset(err, 0, sizeof(*err));
	assert_int_equal(image_store_open(fd, fd, &store), 0);
	r = image_open(store, q, img, err);
	image_store_close(store);
	close(fd);
	return r;
}

#define DYN_ID	 "00112233445566778899aabbccddeeff00112233"
#define OLD_ID	 "0102030405060708090a0b0c0d0e0f1011121314"
#define MOVED_ID "0202030405060708090a0b0c0d0e0f1011121314"
#define OTHER_ID "ffffffffffffffffffffffffffffffffffffffff"

static void test_store(void **state)
{
	static const char *const names[] = { "fixture_dyn.so", NULL };
	static const char *const stale[] = { "no-such-name.dyn", NULL };
	static const char *const ids[] = { DYN_ID, OLD_ID };
	static const struct {
		uint64_t off, vaddr;
	} moved[] = { { 0x10ff, 0x7f00000020ff },
		      { 0x1100, 0x7e0000000020 },
		      { 0x110f, 0x7e000000002f },
		      { 0x1110, 0x7f0000002110 },
		      { 0x20, 0x7e0000000020 } };
	struct image_query q;
	struct base_err err;
	struct image *img;
	uint64_t vaddr;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		q = query(IMAGE_DYNAMIC, ids[i % 2], i < 2 ? names : stale);
		assert_int_equal(open_query(&q, &img, &err), 0);
		assert_string_equal(image_path(img), "fixture_dyn.so");
		image_close(img);
	}
	/* As the image that it replaced: one part of that stands elsewhere. */
	q = query(IMAGE_DYNAMIC, MOVED_ID, stale);
	assert_int_equal(open_query(&q, &img, &err), 0);
	for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++) {
		assert_int_equal(image_vaddr(img, moved[i].off, &vaddr), 0);
		assert_int_equal(vaddr, moved[i].vaddr);
	}
	image_close(img);
	q = query(IMAGE_DYNAMIC, OTHER_ID, names);
	assert_int_equal(open_query(&q, &img, &err), -DCPI_ENOIMAGE);
	assert_non_null(strstr(err.text, "fixture_dyn.so"));
	assert_true(*err.hint);
}

static void test_identity(void **state)
{
	static const char *const paths[] = { "/nowhere/x.so", FIXTURES "/fixture.so", NULL };
	static const char *const gone[] = { "/nowhere/x.so", NULL };
	struct image *fixture = open_fixture("fixture.so", IMAGE_FILE), *img;
	char id[BASE_ID_TEXT_LEN];
	struct image_query q;
	struct base_err err;

	(void)state;
	base_id_text(image_id(fixture), id);
	image_close(fixture);
	assert_int_equal(strlen(id), 40);
	q = query(IMAGE_FILE, id, paths);
	assert_int_equal(open_query(&q, &img, &err), 0);
	image_close(img);
	q = query(IMAGE_FILE, OTHER_ID, paths);
	assert_int_equal(open_query(&q, &img, &err), -ESTALE);
	assert_non_null(strstr(err.text, "has changed"));
	q = query(IMAGE_FILE, id, gone);
	assert_int_equal(open_query(&q, &img, &err), -DCPI_ENOIMAGE);
	assert_non_null(strstr(err.text, "/nowhere/x.so"));
}

/* A copy of the fixture as dcpid makes it of a file that is removed, in a folder of its own. */
static void copy_fixture(char dir[32], const struct base_id *text)
{
	struct image *fixture = open_fixture("fixture.so", IMAGE_FILE);
	char name[BASE_COPY_NAME_LEN], command[2 * PATH_MAX];

	strcpy(dir, "/tmp/dcpi-image-XXXXXX");
	assert_non_null(mkdtemp(dir));
	base_copy_name(image_id(fixture), text, name);
	snprintf(command, sizeof(command), "cp '%s' '%s/%s'", FIXTURES "/fixture.so", dir, name);
	assert_int_equal(system(command), 0);
	image_close(fixture);
}

/* What a store in @dir has for @q; the folder goes. */
static int open_copied(const char *dir, const struct image_query *q)
{
	struct image_store *store;
	struct image *img = NULL;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
	char command[64];

	assert_true(fd >= 0);
	assert_int_equal(image_store_open(fd, -1, &store), 0);
	r = image_open(store, q, &img, NULL);
	if (r >= 0) {
		expect_at(img, addr(img, "versioned"), "versioned");
		image_close(img);
	}
	image_store_close(store);
	close(fd);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	return r;
}

static void test_copy_of_removed(void **state)
{
	static const char *const gone[] = { "/nowhere/x.so", NULL };
	struct image *fixture = open_fixture("fixture.so", IMAGE_FILE);
	struct base_id text, none = { 0 };
	struct image_query q = { .paths = gone, .id = *image_id(fixture) }, other = q;
	char dir[32], word[BASE_ID_TEXT_LEN];
	int fd = open(FIXTURES "/fixture.so", O_RDONLY | O_CLOEXEC);

	(void)state;
	image_close(fixture);
	assert_int_equal(base_id_of_text(&text, fd), 0);
	close(fd);
	copy_fixture(dir, &none);
	assert_int_equal(open_copied(dir, &q), 0);
	q.text = base_id_text(&text, word);
	copy_fixture(dir, &text);
	assert_int_equal(open_copied(dir, &q), 0);
	/* A file that root alone could place has none of another's copy, be it to compare codes. */
	copy_fixture(dir, &text);
	assert_int_equal(open_copied(dir, &other), -DCPI_ENOIMAGE);
	q.text_of_other = true;
	copy_fixture(dir, &text);
	assert_int_equal(open_copied(dir, &q), -DCPI_ENOIMAGE);
	/* A pseudo-image is not sought in what anybody made, whatever that says it is. */
	other.kind = IMAGE_DYNAMIC;
	copy_fixture(dir, &text);
	assert_int_equal(open_copied(dir, &other), -DCPI_ENOIMAGE);
	/* The name is believed no more than a path is. */
	q.text_of_other = false;
	text.bytes[0] ^= 1;
	base_id_text(&text, word);
	copy_fixture(dir, &text);
	assert_int_equal(open_copied(dir, &q), -DCPI_ENOIMAGE);
	q.text = "../../x";
	copy_fixture(dir, &text);
	assert_int_equal(open_copied(dir, &q), -DCPI_ENOIMAGE);
}

/* Of several paths the error is that of the first file that was there, under its own name. */
static void test_named_path(void **state)
{
	static const char *const changed[] = { "/nowhere/x.so", FIXTURES "/fixture.so",
					       FIXTURES "/bare.so", NULL };
	static const char *const damaged[] = { "/nowhere/x.so", FIXTURE_SOURCE, FIXTURES, NULL };
	static const char *const gone[] = { "/nowhere/x.so", "/nowhere/y.so", NULL };
	struct image_query q = query(IMAGE_FILE, OTHER_ID, changed);
	struct base_err err;
	struct image *img;

	(void)state;
	assert_int_equal(open_query(&q, &img, &err), -ESTALE);
	assert_non_null(strstr(err.text, FIXTURES "/fixture.so"));
	q.paths = damaged;
	assert_int_equal(open_query(&q, &img, &err), -DCPI_EFORMAT);
	assert_non_null(strstr(err.text, FIXTURE_SOURCE));
	assert_non_null(strstr(err.text, "not an ELF file"));
	q.paths = gone;
	assert_int_equal(open_query(&q, &img, &err), -DCPI_ENOIMAGE);
	assert_non_null(strstr(err.text, "/nowhere/x.so"));
}

/* Device and inode of a mapping of the file. */
static void mapped_place(const char *path, uint64_t where[3])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start = 0;
	char line[4096];

	assert_true(at != MAP_FAILED);
	assert_non_null(maps);
	while (start != (uintptr_t)at && fgets(line, sizeof(line), maps))
		sscanf(line, "%lx-%*x %*s %*x %" SCNx64 ":%" SCNx64 " %" SCNu64, &start, &where[0],
		       &where[1], &where[2]);
	assert_true(start == (uintptr_t)at);
	fclose(maps);
	munmap(at, 4096);
	close(fd);
}

/* A file without build-id is known by its contents, or, where nobody could read those, by its path.
 */
/* Its length is no multiple of 4. */
static void test_odd_build_id(void **state)
{
	struct image *img = open_fixture("overlap.so", IMAGE_FILE);
	char text[BASE_ID_TEXT_LEN];

	(void)state;
	assert_string_equal(base_id_text(image_id(img), text), "0123456789ab");
	image_close(img);
}

static void head_id(const char *path, struct base_id *id)
{
	struct base_buf whole = { 0 };
	struct base_err err = { 0 };

	assert_true(base_file_read(AT_FDCWD, path, 1 << 20, &whole, &err) >= 0);
	base_id_of_head(id, whole.len, whole.data, whole.len);
	base_buf_release(&whole);
}

/* The daemon takes no note for a build-id that is longer than one can be. */
static void test_long_build_id(void **state)
{
	static const char *const paths[] = { FIXTURES "/longer_id.so", NULL };
	struct image *img = open_fixture("longest_id.so", IMAGE_FILE);
	struct image_query q = query(IMAGE_FILE, OTHER_ID, paths);
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(image_id(img)->len, 32);
	image_close(img);
	head_id(paths[0], &q.id);
	assert_int_equal(open_query(&q, &img, &err), 0);
	assert_int_equal(image_id(img)->len, 0);
	image_close(img);
}

/* Go's linker may put the build-id where no program header says: kernel and daemon see none. */
static void test_unseen_id(void **state)
{
	static const char *const paths[] = { FIXTURES "/fixture.so", NULL };
	struct image_query q = query(IMAGE_FILE, OTHER_ID, paths);
	struct base_err err = { 0 };
	struct image *img;

	(void)state;
	head_id(paths[0], &q.id);
	assert_int_equal(open_query(&q, &img, &err), 0);
	image_close(img);
	q.id.bytes[0] ^= 1;
	assert_int_equal(open_query(&q, &img, &err), -ESTALE);
}

static void test_no_build_id(void **state)
{
	static const char *const paths[] = { FIXTURES "/no_id.so", NULL };
	struct image_query q = query(IMAGE_FILE, OTHER_ID, paths);
	struct base_err err = { 0 };
	struct image *img;
	uint64_t where[3];

	(void)state;
	assert_int_equal(open_query(&q, &img, &err), -ESTALE);
	q.known = IMAGE_BY_PATH;
	assert_int_equal(open_query(&q, &img, &err), 0);
	image_close(img);
	/* With what the kernel told of its mapping, only the file that was mapped. */
	q.known = IMAGE_BY_PLACE;
	assert_int_equal(open_query(&q, &img, &err), -ESTALE);
	mapped_place(paths[0], where);
	base_id_of_place(&q.id, where, paths[0]);
	assert_int_equal(open_query(&q, &img, &err), 0);
	image_close(img);
	where[2]++;
	base_id_of_place(&q.id, where, paths[0]);
	assert_int_equal(open_query(&q, &img, &err), -ESTALE);
	q.known = IMAGE_BY_ID;
	head_id(paths[0], &q.id);
	assert_int_equal(open_query(&q, &img, &err), 0);
	image_close(img);
}

static void test_debug_path(void **state)
{
	static const char *const gone[] = { "/nowhere/fixture.so", NULL };
	struct image *fixture = open_fixture("fixture.so", IMAGE_FILE), *img;
	char dir[] = "/tmp/dcpi-image-XXXXXX", path[256], folder[128], id[BASE_ID_TEXT_LEN];
	struct base_err err;
	struct image_query q;

	(void)state;
	base_id_text(image_id(fixture), id);
	image_close(fixture);
	assert_non_null(mkdtemp(dir));
	snprintf(folder, sizeof(folder), "%s/.build-id", dir);
	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(folder, sizeof(folder), "%s/.build-id/%.2s", dir, id);
	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s", folder, id + 2);
	assert_int_equal(symlink(FIXTURES "/fixture.so", path), 0);
	q = query(IMAGE_FILE, id, gone);
	setenv("DCPI_DEBUG_PATH", "/nowhere", 1);
	assert_int_equal(open_query(&q, &img, &err), -DCPI_ENOIMAGE);
	snprintf(folder, sizeof(folder), "/nowhere:%s", dir);
	setenv("DCPI_DEBUG_PATH", folder, 1);
	assert_int_equal(open_query(&q, &img, &err), 0);
	assert_string_equal(image_path(img), path);
	image_close(img);
	unsetenv("DCPI_DEBUG_PATH");
	unlink(path);
	snprintf(folder, sizeof(folder), "%s/.build-id/%.2s", dir, id);
	rmdir(folder);
	snprintf(folder, sizeof(folder), "%s/.build-id", dir);
	rmdir(folder);
	rmdir(dir);
}

/* Without an identity nothing proves that a copy is the image, nor that one in the store is. */
static void test_no_identity(void **state)
{
	static const char *const gone[] = { "/fixture.so", NULL };
	static const char *const unknown[] = { "no-such-name.dyn", NULL };
	struct image_query file = query(IMAGE_FILE, NULL, gone);
	struct image_query stored = query(IMAGE_DYNAMIC, OTHER_ID, unknown);
	int fd = open(FIXTURES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct image_store *store;
	struct base_err err;
	struct image *img;

	(void)state;
	setenv("DCPI_DEBUG_PATH", FIXTURES, 1);
	assert_int_equal(open_query(&file, &img, &err), -DCPI_ENOIMAGE);
	assert_null(strstr(err.hint, "DCPI_DEBUG_PATH"));
	unsetenv("DCPI_DEBUG_PATH");
	assert_int_equal(image_store_open(fd, fd, &store), 0);
	assert_int_equal(image_open(store, &stored, &img, NULL), -DCPI_ENOIMAGE);
	stored.id.len = 0; /* the index stands now, no_id.so not in it */
	assert_int_equal(image_open(store, &stored, &img, NULL), -DCPI_ENOIMAGE);
	image_store_close(store);
	close(fd);
	/* A folder that may not be read is not one without the image. */
	assert_int_equal(image_store_open(-EACCES, -1, &store), 0);
	memset(&err, 0, sizeof(err));
	assert_int_equal(image_open(store, &stored, &img, &err), -EACCES);
	assert_non_null(strstr(err.text, "dyn/: Permission denied"));
	image_store_close(store);
	assert_int_equal(image_store_open(-ENOENT, -1, &store), 0);
	assert_int_equal(image_open(store, &stored, &img, NULL), -DCPI_ENOIMAGE);
	image_store_close(store);
}

/* Every shorter form of a good file is refused or read, and never more than that. */
static void test_cut(void **state)
{
	char path[] = "/tmp/dcpi-image-XXXXXX";
	int fd = mkstemp(path), refused = 0, r;
	struct base_buf whole = { 0 };
	struct base_err err = { 0 };
	struct image *img;

	(void)state;
	assert_true(fd >= 0);
	assert_true(base_file_read(AT_FDCWD, FIXTURES "/fixture_dyn.so", 1 << 20, &whole, &err) >=
		    0);
	assert_int_equal(base_write_all(fd, whole.data, whole.len), 0);
	for (off_t len = (off_t)whole.len - 1; len > 0; len -= 1 + len / 50) {
		memset(&err, 0, sizeof(err));
		assert_int_equal(ftruncate(fd, len), 0);
		r = image_open_path(path, IMAGE_DYNAMIC, &img, &err);
		if (r >= 0) {
			image_symbol_at(img, 0x1000);
			image_close(img);
			continue;
		}
		assert_true(r == -DCPI_ETRUNCATED || r == -DCPI_EFORMAT);
		assert_non_null(strstr(err.text, path));
		refused++;
	}
	assert_true(refused > 50);
	base_buf_release(&whole);
	close(fd);
	unlink(path);
}

static void test_no_waiting(void **state)
{
	char dir[] = "/tmp/dcpi-image-XXXXXX", path[64];
	struct base_err err = { 0 };
	struct image *img;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(image_open_path(path, IMAGE_FILE, &img, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a regular file"));
	unlink(path);
	rmdir(dir);
}

/* Addresses in data, as the loader leaves them: of this very program, with those in it now. */
static void test_pointer(void **state)
{
	extern const char __executable_start[];
	static void (*const table[])(void **) = { test_pointer };
	static const uint64_t number = 0x123456789abcdef0;
	uint64_t base = (uint64_t)(uintptr_t)__executable_start, from = 0, value = 0;
	struct image *img = NULL;
	struct base_err err = { 0 };
	volatile size_t first = 0; /* so that the table is one in memory */

	(void)state;
	assert_int_equal(image_open_path("/proc/self/exe", IMAGE_FILE, &img, &err), 0);
	assert_int_equal(image_vaddr(img, 0, &from), 0);
	base -= from;
	assert_int_equal(image_pointer(img, (uintptr_t)&table[first] - base, &value), 0);
	assert_int_equal(value, (uintptr_t)table[first] - base);
	assert_int_equal(image_pointer(img, (uintptr_t)&number - base, &value), 0);
	assert_int_equal(value, number);
	assert_int_equal(image_pointer(img, UINT64_MAX - 16, &value), -ENOENT);
	image_close(img);
}

/* Where units overlap, it is the same line whatever was asked before. */
static void test_overlap(void **state)
{
	static const unsigned int asked[] = { 16, 0, 16, 40, 31, 32 },
				  lines[] = { 20, 10, 20, 10, 20, 10 };
	struct image *img = open_fixture("overlap.so", IMAGE_FILE);
	uint64_t wide = addr(img, "wide");
	struct image_line line;

	(void)state;
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		assert_int_equal(image_line_at(img, wide + asked[i], &line), 0);
		assert_int_equal(line.line, lines[i]);
		assert_string_equal(line.file, lines[i] == 20 ? "/narrow.c" : "/wide.c");
	}
	image_close(img);
}

/* Each instruction of line programs moves the address and the line by so much. */
static void test_line_forms(void **state)
{
	static const struct {
		unsigned int at, line, discriminator;
		const char *file;
	} e[] = {
		{ 0, 100, 0, "/first.c" },   { 15, 100, 0, "/first.c" },
		{ 16, 102, 0, "/first.c" },  { 55, 102, 0, "/first.c" },
		{ 56, 102, 0, "/first.c" },  { 75, 102, 0, "/first.c" },
		{ 76, 62, 9, "/second.c" },  { 375, 62, 9, "/second.c" },
		{ 376, 62, 0, "/second.c" }, { 511, 62, 0, "/second.c" },
	};
	struct image *img = open_fixture("line_forms.so", IMAGE_FILE);
	uint64_t forms = addr(img, "forms");
	struct image_line line;

	(void)state;
	for (size_t i = 0; i < sizeof(e) / sizeof(e[0]); i++) {
		assert_int_equal(image_line_at(img, forms + e[i].at, &line), 0);
		assert_int_equal(line.line, e[i].line);
		assert_int_equal(line.discriminator, e[i].discriminator);
		assert_string_equal(line.file, e[i].file);
	}
	image_close(img);
}

/* What a program would say of partly.S: one procedure begins 32 bytes behind the begin of its code,
 * one 8 behind that, and "something" in the middle of what .eh_frame tells of. */
static int guess_partly(uint32_t machine, const uint8_t *code, size_t len, uint64_t vaddr,
			struct image_pointed *pointed, size_t nr_pointed, image_start_fn *fn,
			void *ctx)
{
	static const uint64_t starts[] = { 8, 32, 40 };
	int r = 0;

	(void)machine, (void)code, (void)len, (void)pointed, (void)nr_pointed;
	for (size_t i = 0; i < 3 && r >= 0; i++)
		r = fn(ctx, vaddr + starts[i]);
	return r;
}

/* Most of the code has no .eh_frame: it is looked for, but not in what has. */
static void test_partly_told(void **state)
{
	struct image *img, *most;
	struct image_code code;

	(void)state;
	image_guess_by(guess_partly);
	img = open_fixture("partly.so", IMAGE_FILE);
	most = open_fixture("mostly.so", IMAGE_FILE);
	image_symbols_load(most, NULL);
	image_symbols_load(img, NULL);
	image_guess_by(NULL);
	assert_true(image_code_at(img, 0, &code));
	assert_true(image_guessed(img));
	assert_int_equal(image_nr_symbols(img), 3);
	assert_int_equal(image_symbol(img, 0)->vaddr, code.vaddr);
	assert_int_equal(image_symbol(img, 0)->len, 16);
	assert_int_equal(image_symbol(img, 1)->vaddr, code.vaddr + 32);
	assert_int_equal(image_symbol(img, 1)->len, 8);
	assert_int_equal(image_symbol(img, 2)->vaddr, code.vaddr + 40);
	assert_int_equal(image_symbol(img, 2)->len, 24);
	assert_false(image_guessed(most));
	assert_int_equal(image_nr_symbols(most), 1);
	image_close(img);
	image_close(most);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols),	      cmocka_unit_test(test_symbols_ascend),
		cmocka_unit_test(test_stripped),      cmocka_unit_test(test_source),
		cmocka_unit_test(test_source_same),   cmocka_unit_test(test_lines),
		cmocka_unit_test(test_bytes),	      cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_dynamic),	      cmocka_unit_test(test_off),
		cmocka_unit_test(test_frames),	      cmocka_unit_test(test_unended),
		cmocka_unit_test(test_store),	      cmocka_unit_test(test_identity),
		cmocka_unit_test(test_no_build_id),   cmocka_unit_test(test_debug_path),
		cmocka_unit_test(test_cut),	      cmocka_unit_test(test_no_waiting),
		cmocka_unit_test(test_at_sign),	      cmocka_unit_test(test_copy_of_removed),
		cmocka_unit_test(test_named_path),    cmocka_unit_test(test_no_identity),
		cmocka_unit_test(test_pointer),	      cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_line_forms),    cmocka_unit_test(test_odd_build_id),
		cmocka_unit_test(test_long_build_id), cmocka_unit_test(test_partly_told),
		cmocka_unit_test(test_unseen_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
