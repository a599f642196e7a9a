/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "image.h"

static const struct base_id id = { .len = 32, .bytes = { [0] = 0xab, [31] = 0xcd } };

static void write_symbols(struct image *img, const struct pseudoimg_symbol *syms, size_t nr)
{
	int fd = image_fd();

	memset(img, 0, sizeof(*img));
	img->status = pseudoimg_write_symbols(syms, nr, 0x10000, 62, &id, fd, &img->err);
	if (!img->status)
		image_read(img, fd);
	close(fd);
}

static void assert_symbol(const struct image *img, const char *name, uint64_t off, uint64_t len)
{
	const Elf64_Sym *s = image_symbol(img, name);

	assert_non_null(s);
	assert_int_equal(s->st_value, off);
	assert_int_equal(s->st_size, len);
}

static void test_lengths(void **state)
{
	static const struct pseudoimg_symbol syms[] = {
		{ "last", 0x8000, 0 },	  { "first", 0, 0 },	    { "alias", 0, 0 },
		{ "sized", 0x100, 0x20 }, { "beyond", 0x10000, 4 }, { "long", 0xfff0, 0x100 },
	};
	const Elf64_Shdr *text, *note;
	struct image img;

	(void)state;
	write_symbols(&img, syms, 6);
	assert_int_equal(img.status, 0);
	assert_int_equal(image_nr_symbols(&img), 5);
	assert_symbol(&img, "first", 0, 0x100);
	assert_symbol(&img, "alias", 0, 0x100);
	assert_symbol(&img, "sized", 0x100, 0x20);
	assert_symbol(&img, "last", 0x8000, 0x7ff0);
	assert_symbol(&img, "long", 0xfff0, 0x10);
	assert_null(image_symbol(&img, "beyond"));
	text = image_section(&img, ".text");
	assert_int_equal(text->sh_type, SHT_NOBITS);
	assert_int_equal(text->sh_size, 0x10000);
	note = image_section(&img, ".note.gnu.build-id");
	assert_int_equal(note->sh_size, 16 + 32);
	assert_memory_equal((const char *)image_bytes(&img, note) + 16, id.bytes, 32);
	image_release(&img);
}

static void test_symbols_ascend(void **state)
{
	static const struct pseudoimg_symbol syms[] = { { "c", 3, 1 },
							{ "a", 1, 1 },
							{ "b", 2, 1 } };
	struct image img;
	const Elf64_Sym *v;

	(void)state;
	write_symbols(&img, syms, 3);
	v = image_bytes(&img, image_section(&img, ".symtab"));
	for (size_t i = 1; i <= 3; i++)
		assert_int_equal(v[i].st_value, i);
	image_release(&img);
}

static void test_refusals(void **state)
{
	static const struct base_id none = { 0 };
	struct base_err err = { 0 };
	struct image img;
	int fd = image_fd();

	(void)state;
	write_symbols(&img, NULL, 0);
	assert_int_equal(img.status, 0);
	assert_int_equal(image_nr_symbols(&img), 0);
	image_release(&img);
	assert_int_equal(pseudoimg_write_symbols(NULL, 0, 1, 62, &none, fd, &err), -EINVAL);
	assert_string_equal(err.text, "cannot write symbols: Invalid argument");
	assert_int_equal(pseudoimg_write_symbols(NULL, 0, 1, EM_S390, &id, fd, NULL), -EINVAL);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_symbols_ascend),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
