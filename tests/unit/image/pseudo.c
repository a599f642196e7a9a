/* SPDX-License-Identifier: BSD-2-Clause */
/* Pseudo-images as their writer makes them: frames, hashes, and offsets of what was folded. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "image.h"
#include "../pseudoimg/job.h"
#include "pseudoimg.h"

static char dir[] = "/tmp/dcpi-pseudo-XXXXXX";

static void put_head(struct base_buf *job, uint32_t machine)
{
	job_image(job, &(struct job_image){
			       .machine = machine, .facility = "jit", .host = "h", .exe = "/x" });
}

/* [0, 8): nothing inlined in 0-1, mid in 1-7, leaf in 2-4 of it, leaf once more in 5-6. */
static void put(struct base_buf *job, uint64_t addr, const char *name, uint8_t byte)
{
	const uint8_t code[8] = { byte, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3 };
	static const struct wire_line lines[] = { { .line = 1 },
						  { .code_off = 1, .line = 20, .file = 1 },
						  { .code_off = 2, .line = 30, .file = 1 },
						  { .code_off = 4, .line = 21, .file = 1 },
						  { .code_off = 7 } };
	static const struct wire_inline inlines[] = {
		{ .code_off = 1, .code_len = 6, .name = 2, .call_file = 0, .call_line = 2 },
		{ .code_off = 2,
		  .code_len = 2,
		  .name = 3,
		  .call_file = 1,
		  .call_line = 22,
		  .depth = 1 },
		{ .code_off = 5, .code_len = 1, .name = 3, .depth = 1 },
	};
	static const char *const files[] = { "/a.jit", "/b.jit", "mid", "leaf", NULL };

	job_routine(job, &(struct job_routine){ .addr = addr,
						.name = name,
						.code = code,
						.code_len = 8,
						.lines = lines,
						.nr_lines = 5,
						.inlines = inlines,
						.nr_inlines = 3,
						.files = files });
}

/* Into @dir, and opened from there. */
static struct image *open_job(struct base_buf *job, const char *name)
{
	struct pseudoimg_result result;
	struct base_err err = { 0 };
	struct image *img;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pseudoimg_write(job->data, job->len, fd, &result, &err), 0);
	assert_int_equal(result.nr_bad, 0);
	base_buf_release(job);
	close(fd);
	assert_int_equal(image_open_path(path, IMAGE_DYNAMIC, &img, &err), 0);
	return img;
}

static void remove_image(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
}

struct expected {
	uint8_t off;
	size_t nr;
	struct {
		const char *name, *file;
		unsigned int line;
	} f[3];
};

static const struct expected expected[] = {
	{ 0, 1, { { NULL, "/a.jit", 1 } } },
	{ 1, 2, { { "mid", "/b.jit", 20 }, { NULL, "/a.jit", 2 } } },
	{ 3, 3, { { "leaf", "/b.jit", 30 }, { "mid", "/b.jit", 22 }, { NULL, "/a.jit", 2 } } },
	{ 4, 2, { { "mid", "/b.jit", 21 }, { NULL, "/a.jit", 2 } } },
	{ 5, 3, { { "leaf", "/b.jit", 21 }, { "mid", NULL, 0 }, { NULL, "/a.jit", 2 } } },
	{ 7, 0, { { 0 } } },
};

static void check_frames(struct image *img, uint64_t vaddr)
{
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		const struct expected *e = &expected[i];
		struct image_frame f[IMAGE_FRAMES_MAX];

		assert_int_equal(image_frames_at(img, vaddr + e->off, f, IMAGE_FRAMES_MAX), e->nr);
		for (size_t k = 0; k < e->nr; k++) {
			assert_int_equal(f[k].at.line, e->f[k].line);
			if (e->f[k].line)
				assert_string_equal(f[k].at.file, e->f[k].file);
			assert_int_equal(!f[k].name, !e->f[k].name);
			if (f[k].name)
				assert_string_equal(f[k].name, e->f[k].name);
		}
	}
}

static void test_frames(void **state)
{
	static const uint32_t machines[] = { 62, 183, 243 };

	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		struct base_buf job = { 0 };
		struct image *img;

		put_head(&job, machines[i]);
		job_run(&job, 0x5000, 0, 0x1000);
		put(&job, 0x5000, "first", 1);
		put(&job, 0x5008, "second", 2);
		put(&job, 0x5800, "third", 3);
		img = open_job(&job, "a.dyn");
		assert_int_equal(image_machine(img), machines[i]);
		check_frames(img, 0x5000);
		check_frames(img, 0x5008);
		check_frames(img, 0x5800);
		image_close(img);
		remove_image("a.dyn");
	}
}

static void hashes_of(struct image *img, const char *name, struct image_hashes *out)
{
	size_t pos = 0;
	const struct image_symbol *s = image_symbol_find(img, name, &pos);

	assert_non_null(s);
	assert_int_equal(image_symbol_hashes(img, s, out), 0);
}

static void test_hashes(void **state)
{
	struct base_buf job = { 0 }, other = { 0 };
	struct image_hashes a, b;
	struct image_symbol none = { "x", 0x5004, 8 };
	struct image *x, *y;

	(void)state;
	put_head(&job, 62);
	job_run(&job, 0x5000, 0, 0x1000);
	put(&job, 0x5000, "first", 1);
	put(&job, 0x5100, "second", 2);
	x = open_job(&job, "a.dyn");
	put_head(&other, 62);
	job_run(&other, 0x9000, 0x8000, 0x1000);
	put(&other, 0x9000, "second", 2);
	put(&other, 0x9100, "first", 3);
	y = open_job(&other, "b.dyn");
	hashes_of(x, "second", &a);
	hashes_of(y, "second", &b);
	assert_memory_equal(&a, &b, sizeof(a));
	hashes_of(x, "first", &a);
	hashes_of(y, "first", &b);
	assert_memory_not_equal(a.exact, b.exact, sizeof(a.exact));
	assert_int_equal(image_symbol_hashes(x, &none, &a), -ENOENT);
	image_close(x);
	image_close(y);
	remove_image("a.dyn");
	remove_image("b.dyn");
}

/* A later lifetime of 0x5100 stands at an address of its own. */
static void test_reused(void **state)
{
	const uint64_t own = 0x7000000000000000;
	struct base_buf job = { 0 };
	struct image *img;
	uint64_t off;

	(void)state;
	put_head(&job, 62);
	job_run(&job, 0x5000, 0, 0x1000);
	job_run(&job, own, 0x1000, 0x1000);
	put(&job, 0x5100, "first", 1);
	put(&job, own, "second", 2);
	job_place(&job, 0x5100, own, 8);
	img = open_job(&job, "a.dyn");
	assert_true(image_reused(img, 0x5100));
	assert_true(image_reused(img, 0x5107));
	assert_false(image_reused(img, 0x5108));
	assert_false(image_reused(img, 0x50ff));
	assert_int_equal(image_off(img, 0x5100, &off), 0);
	assert_int_equal(off, 0x100);
	assert_int_equal(image_off(img, own + 3, &off), 0);
	assert_int_equal(off, 0x1003);
	image_close(img);
	remove_image("a.dyn");
}

/* A reader that knows what the folder had is told what it has now: first all of it is listed. */
static void list_store(struct image_store *store)
{
	struct base_id none = { .len = 20 };
	struct image *img;

	assert_int_equal(image_open(store,
				    &(struct image_query){ .kind = IMAGE_DYNAMIC, .id = none },
				    &img, NULL),
			 -DCPI_ENOIMAGE);
}

/* By the id that the second one had before it was folded, its offsets are found. */
static void test_folded(void **state)
{
	struct base_buf job = { 0 }, maps = { 0 };
	struct image_store *store, *reader;
	struct pseudoimg_result result;
	struct base_err err = { 0 };
	static const char *const paths[] = { "b.dyn", NULL };
	struct image *before, *img;
	struct base_id id;
	uint64_t vaddr;
	char path[64];
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct pseudoimg_merge fds = { .base_fd = -1, .scratch_fd = memfd_create("scratch", 0) };

	(void)state;
	put_head(&job, 62);
	job_run(&job, 0x9000, 0x8000, 0x1000);
	put(&job, 0x9000, "shared", 2);
	put(&job, 0x9100, "own", 3);
	before = open_job(&job, "b.dyn");
	id = *image_id(before);
	image_close(before);
	put_head(&job, 62);
	job_run(&job, 0x5000, 0, 0x1000);
	put(&job, 0x5000, "first", 1);
	put(&job, 0x5100, "shared", 2);
	image_close(open_job(&job, "a.dyn"));
	assert_int_equal(image_store_open(dir_fd, -1, &reader), 0);
	list_store(reader);
	fds.base_fd = openat(dir_fd, "a.dyn", O_RDONLY | O_CLOEXEC);
	fds.job_fd = openat(dir_fd, "b.dyn", O_RDONLY | O_CLOEXEC);
	fds.out_fd = openat(dir_fd, "ab.dyn", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(pseudoimg_merge(&fds, &result, &maps, &err), 0);
	remove_image("a.dyn");
	remove_image("b.dyn");
	/* Beside a reader, who has the name from a profile. */
	assert_int_equal(
		image_open(reader,
			   &(struct image_query){ .kind = IMAGE_DYNAMIC, .id = id, .paths = paths },
			   &img, &err),
		0);
	assert_string_equal(image_path(img), "ab.dyn");
	image_close(img);
	list_store(reader);
	image_store_close(reader);

	assert_int_equal(image_store_open(dir_fd, -1, &store), 0);
	assert_int_equal(image_open(store, &(struct image_query){ .kind = IMAGE_DYNAMIC, .id = id },
				    &img, &err),
			 0);
	assert_string_equal(image_path(img), "ab.dyn");
	assert_int_equal(image_vaddr(img, 0x8001, &vaddr), 0);
	assert_int_equal(vaddr, 0x5101);
	assert_int_equal(image_vaddr(img, 0x8107, &vaddr), 0);
	assert_int_equal(vaddr, PSEUDOIMG_MODULE + 7);
	assert_string_equal(image_symbol_at(img, vaddr)->name, "own");
	check_frames(img, PSEUDOIMG_MODULE);
	/* What was in none of its routines is in none here. */
	assert_int_equal(image_vaddr(img, 0x8200, &vaddr), 0);
	assert_null(image_symbol_at(img, vaddr));
	image_close(img);
	image_store_close(store);
	base_buf_release(&maps);
	close(fds.base_fd);
	close(fds.job_fd);
	close(fds.out_fd);
	close(fds.scratch_fd);
	close(dir_fd);
	snprintf(path, sizeof(path), "%s/ab.dyn", dir);
	unlink(path);
}

/* What is found in the line program for few questions, and in libdw's table for many, is the same.
 */
static void test_lines_both_ways(void **state)
{
	enum { ROUTINES = 40, STEP = 16 };
	struct image_line line, table_line;
	struct base_buf job = { 0 };
	struct image *table, *img;
	char path[64];
	size_t nr = 0;

	(void)state;
	put_head(&job, 62);
	job_run(&job, 0x10000, 0, 0x1000);
	for (uint64_t i = 0; i < ROUTINES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "r%d", (int)i);
		put(&job, 0x10000 + i * STEP + i % 3 * 4, name, (uint8_t)i);
	}
	table = open_job(&job, "lines.dyn");
	snprintf(path, sizeof(path), "%s/lines.dyn", dir);
	for (uint64_t i = 0; i < ROUTINES; i++)
		image_line_at(table, 0x10000 + i * STEP + i % 3 * 4, &line);
	for (uint64_t vaddr = 0xfff0; vaddr < 0x10000 + (ROUTINES + 1) * STEP; vaddr++) {
		int r = image_line_at(table, vaddr, &table_line);

		assert_int_equal(image_open_path(path, IMAGE_DYNAMIC, &img, NULL), 0);
		assert_int_equal(image_line_at(img, vaddr, &line), r);
		if (r >= 0) {
			assert_string_equal(line.file, table_line.file);
			assert_int_equal(line.line, table_line.line);
			nr++;
		}
		image_close(img);
	}
	/* The last byte of each has no line. */
	assert_int_equal(nr, ROUTINES * 7);
	image_close(table);
	remove_image("lines.dyn");
}

/* One line for all of @len bytes of code, and none that ends it. */
static void put_lined(struct base_buf *job, uint64_t addr, const char *name, uint32_t line,
		      const uint8_t *code, size_t len)
{
	static const char *const files[] = { "/a.jit", NULL };
	const struct wire_line lines[] = { { .line = line } };

	job_routine(job, &(struct job_routine){ .addr = addr,
						.name = name,
						.code = code,
						.code_len = len,
						.lines = lines,
						.nr_lines = 1,
						.files = files });
}

static unsigned int line_of(const char *path, uint64_t vaddr)
{
	struct image_line line;
	struct image *img;
	int r;

	assert_int_equal(image_open_path(path, IMAGE_DYNAMIC, &img, NULL), 0);
	r = image_line_at(img, vaddr, &line);
	image_close(img);
	return r < 0 ? 0 : line.line;
}

/*
 * The end of a sequence has no line, unless another begins there: two runs without a gap, whose
 * bytes in the image have one. The second routine is larger than a trace, which then begins where
 * it is asked for.
 */
static void test_ends_of_sequences(void **state)
{
	enum { LARGE = (1 << 20) + 64 };
	static uint8_t code[LARGE];
	struct base_buf job = { 0 };
	char path[64];

	(void)state;
	memset(code, 0x90, sizeof(code));
	put_head(&job, 62);
	job_run(&job, 0x10000, 0, 0x1000);
	job_run(&job, 0x11000, 0x8000, 0x200000);
	put_lined(&job, 0x10ff8, "last", 7, code, 8);
	put_lined(&job, 0x11000, "next", 9, code, sizeof(code));
	image_close(open_job(&job, "ends.dyn"));
	snprintf(path, sizeof(path), "%s/ends.dyn", dir);
	assert_int_equal(line_of(path, 0x10ff7), 0);
	assert_int_equal(line_of(path, 0x10ff8), 7);
	assert_int_equal(line_of(path, 0x10fff), 7);
	assert_int_equal(line_of(path, 0x11000), 9);
	assert_int_equal(line_of(path, 0x11001), 9);
	assert_int_equal(line_of(path, 0x11000 + LARGE - 1), 9);
	assert_int_equal(line_of(path, 0x11000 + LARGE), 0);
	assert_int_equal(line_of(path, 0x11000 + LARGE + 1), 0);
	remove_image("ends.dyn");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),		cmocka_unit_test(test_hashes),
		cmocka_unit_test(test_reused),		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_lines_both_ways), cmocka_unit_test(test_ends_of_sequences),
	};
	int r;

	if (!mkdtemp(dir))
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return r;
}
