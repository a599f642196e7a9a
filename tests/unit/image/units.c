/* SPDX-License-Identifier: BSD-2-Clause */
/* Units of which one says that it has what another has too, and one that does not say what it has;
 * and one with a routine that is not in the image. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "image.h"

static const struct {
	const char *symbol, *file;
	unsigned int line;
} places[] = {
	{ "inner", "inner.c", 30 },
	{ "outer_first", "outer.c", 10 },
	{ "outer_last", "outer.c", 20 },
	{ "vague", "vague.c", 40 },
};
enum { NR = sizeof(places) / sizeof(places[0]) };

static void assert_place(struct image *img, size_t i)
{
	const struct image_symbol *s;
	struct image_line line;
	const char *name;
	size_t pos = 0;

	s = image_symbol_find(img, places[i].symbol, &pos);
	assert_non_null(s);
	for (uint64_t v = s->vaddr; v < s->vaddr + s->len; v++) {
		assert_int_equal(image_line_at(img, v, &line), 0);
		name = strrchr(line.file, '/');
		assert_string_equal(name ? name + 1 : line.file, places[i].file);
		assert_int_equal(line.line, places[i].line);
	}
}

/* Whichever was asked for before. */
static void test_lines(void **state)
{
	struct image *img;

	(void)state;
	for (size_t first = 0; first < NR; first++) {
		assert_int_equal(image_open_path(FIXTURES "/units.so", IMAGE_FILE, &img, NULL), 0);
		for (size_t i = 0; i < NR; i++)
			assert_place(img, (first + i) % NR);
		image_close(img);
	}
}

static void test_nowhere(void **state)
{
	const struct image_symbol *s;
	struct image_line line;
	struct image *img;
	size_t pos = 0;

	(void)state;
	assert_int_equal(image_open_path(FIXTURES "/units.so", IMAGE_FILE, &img, NULL), 0);
	s = image_symbol_find(img, "vague", &pos);
	assert_non_null(s);
	assert_true(image_line_at(img, s->vaddr + s->len, &line) < 0);
	assert_true(image_line_at(img, 0, &line) < 0);
	assert_true(image_line_at(img, UINT64_MAX, &line) < 0);
	image_close(img);
}

/* Nothing that the linker threw away is taken for what stands where it would reach to. */
static void test_discarded(void **state)
{
	const struct image_symbol *s;
	struct image_frame f[IMAGE_FRAMES_MAX];
	struct image_line line;
	struct image *img;
	size_t pos = 0;

	(void)state;
	assert_int_equal(image_open_path(FIXTURES "/discarded.so", IMAGE_FILE, &img, NULL), 0);
	s = image_symbol_find(img, "live", &pos);
	assert_non_null(s);
	for (uint64_t v = s->vaddr; v < s->vaddr + s->len; v++) {
		assert_int_equal(image_line_at(img, v, &line), 0);
		assert_string_equal(line.file, "/live.c");
		assert_int_equal(line.line, 10);
		assert_int_equal(image_frames_at(img, v, f, IMAGE_FRAMES_MAX), 1);
	}
	pos = 0;
	s = image_symbol_find(img, "alien", &pos);
	assert_non_null(s);
	for (uint64_t v = s->vaddr; v < s->vaddr + s->len; v++) {
		assert_true(image_line_at(img, v, &line) < 0);
		assert_int_equal(image_frames_at(img, v, f, IMAGE_FRAMES_MAX), 0);
	}
	image_close(img);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_nowhere),
		cmocka_unit_test(test_discarded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
