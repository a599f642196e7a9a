/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts of a JIT's routine, found again in another run's pseudo-image. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../pseudoimg/job.h"
#include "exact.h"
#include "pseudoimg.h"

static char dir[] = "/tmp/dcpi-exact-XXXXXX";

/* call OUTSIDE; nop; ret: where it stands changes the distance. */
static void put(struct base_buf *job, uint64_t addr, const char *name, uint8_t distance)
{
	const uint8_t code[7] = { 0xe8, distance, 0x10, 0, 0, 0x90, 0xc3 };

	job_routine(job,
		    &(struct job_routine){
			    .addr = addr, .name = name, .code = code, .code_len = sizeof(code) });
}

static struct image *open_job(struct base_buf *job, const char *name)
{
	struct pseudoimg_result result;
	struct image *img;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pseudoimg_write(job->data, job->len, fd, &result, NULL), 0);
	assert_int_equal(result.nr_bad, 0);
	base_buf_release(job);
	close(fd);
	assert_int_equal(image_open_path(path, IMAGE_DYNAMIC, &img, NULL), 0);
	unlink(path);
	return img;
}

static struct image *make(const char *facility, uint64_t base, uint64_t at, uint8_t distance)
{
	struct base_buf job = { 0 };

	job_image(&job, &(struct job_image){
				.machine = 62, .facility = facility, .host = "h", .exe = "/x" });
	job_run(&job, base, 0, 0x1000);
	put(&job, base + at, "work", distance);
	put(&job, base + 0x800, "other", 1);
	return open_job(&job, "a.dyn");
}

static const struct image_symbol *symbol(struct image *img, const char *name)
{
	size_t pos = 0;
	const struct image_symbol *s = image_symbol_find(img, name, &pos);

	assert_non_null(s);
	return s;
}

/* @img was counted: "work" 5 times, its call taken as often. */
static void counted(struct exact *e, struct image *img)
{
	const struct image_symbol *work = symbol(img, "work");
	struct exact_procedure p = { .len = work->len, .name = (char *)"work", .hashed = true };
	struct exact_image *x;

	assert_int_equal(exact_image_add(e, EXACT_DYNAMIC, image_id(img), 0,
					 image_process(img)->facility, &x),
			 0);
	assert_int_equal(image_off(img, work->vaddr, &p.off), 0);
	assert_int_equal(image_symbol_hashes(img, work, &p.hashes), 0);
	assert_int_equal(exact_procedure_add(x, &p), 0);
	assert_int_equal(exact_count_add(x, p.off, 5), 0);
	assert_int_equal(exact_count_add(x, p.off + 5, 4), 0);
	assert_int_equal(exact_edge_add(x, p.off, p.off + 6, 1), 0);
	assert_int_equal(exact_sort(e), 0);
}

static void check(const struct exact *e, struct image *img)
{
	const struct image_symbol *work = symbol(img, "work");
	struct exact_view v;

	assert_int_equal(exact_view(e, img, image_id(img), work, &v), 0);
	assert_int_equal(exact_view_executions(&v, work->vaddr), 5);
	assert_int_equal(exact_view_executions(&v, work->vaddr + 1), 0);
	assert_int_equal(exact_view_executions(&v, work->vaddr + 5), 4);
	assert_int_equal(exact_view_taken(&v, work->vaddr, work->vaddr + 6), 1);
	assert_int_equal(exact_view_fall(&v, work->vaddr, work->vaddr + 5), 4);
}

static void found(void **state)
{
	struct image *img = make("jit", 0x5000, 0x100, 1), *moved = make("jit", 0x90000, 0x200, 1);
	struct image *retargeted = make("jit", 0x7000, 0x300, 9);
	struct exact e = { 0 };

	(void)state;
	counted(&e, img);
	check(&e, img);
	check(&e, moved);      /* the same bytes elsewhere */
	check(&e, retargeted); /* they differ in an operand */
	image_close(img);
	image_close(moved);
	image_close(retargeted);
	exact_release(&e);
}

static void not_found(void **state)
{
	struct image *img = make("jit", 0x5000, 0x100, 1),
		     *stranger = make("tij", 0x5000, 0x200, 1);
	struct base_id other = *image_id(img);
	struct exact e = { 0 };
	struct exact_view v;

	(void)state;
	counted(&e, img);
	other.bytes[0] ^= 1;
	assert_int_equal(exact_view(&e, stranger, image_id(stranger), symbol(stranger, "work"), &v),
			 -ENOENT);
	/* Known by an id that it replaced, it is its routines that are looked for. */
	assert_int_equal(exact_view(&e, img, &other, symbol(img, "work"), &v), 0);
	assert_null(v.img);
	assert_int_equal(exact_view(&e, img, &other, symbol(img, "other"), &v), -ENOENT);
	image_close(img);
	image_close(stranger);
	exact_release(&e);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found),
		cmocka_unit_test(not_found),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
