/* SPDX-License-Identifier: BSD-2-Clause */
/* Units of which one says that it has what another has too, one does not say what it has, and one
 * has no code; and one with a routine that is not in the image. */
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
	pos = 0;
	s = image_symbol_find(img, "partial", &pos);
	assert_non_null(s);
	assert_true(image_line_at(img, s->vaddr, &line) < 0);
	assert_true(image_line_at(img, 0, &line) < 0);
	assert_true(image_line_at(img, UINT64_MAX, &line) < 0);
	image_close(img);
}

/* In place: what is in that form in the file, in the other byte order. */
static void turn(uint8_t *file, uint64_t off, uint64_t len, Elf_Type type)
{
	Elf_Data from = { .d_buf = file + off, .d_type = type, .d_size = len, .d_version = 1 };
	Elf_Data to = from;

	assert_non_null(elf64_xlatetof(&to, &from, ELFDATA2MSB));
}

/* An image that was made here, but for the other byte order: its DWARF already is. */
static struct image *open_turned(const char *path)
{
	int fd = memfd_create("turned", MFD_CLOEXEC), from = open(path, O_RDONLY | O_CLOEXEC);
	struct image *img;
	char turned[64];
	Elf64_Ehdr head;
	Elf64_Shdr *sh;
	struct stat st;
	uint8_t *file;

	assert_true(fd >= 0 && from >= 0 && fstat(from, &st) == 0);
	file = malloc((size_t)st.st_size);
	assert_true(file && read(from, file, (size_t)st.st_size) == st.st_size);
	elf_version(EV_CURRENT);
	memcpy(&head, file, sizeof(head));
	sh = (Elf64_Shdr *)(file + head.e_shoff);
	for (int i = 0; i < head.e_shnum; i++)
		if (sh[i].sh_type == SHT_SYMTAB)
			turn(file, sh[i].sh_offset, sh[i].sh_size, ELF_T_SYM);
	turn(file, head.e_shoff, head.e_shnum * sizeof(Elf64_Shdr), ELF_T_SHDR);
	turn(file, head.e_phoff, head.e_phnum * sizeof(Elf64_Phdr), ELF_T_PHDR);
	turn(file, 0, sizeof(head), ELF_T_EHDR);
	file[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(write(fd, file, (size_t)st.st_size), st.st_size);
	snprintf(turned, sizeof(turned), "/proc/self/fd/%d", fd);
	assert_int_equal(image_open_path(turned, IMAGE_FILE, &img, NULL), 0);
	free(file);
	close(from);
	close(fd);
	return img;
}

/* Nothing that the linker threw away is taken for what stands where it would reach to. A sequence's
 * end has no line, but the sequence that begins there has. */
static void assert_discarded(struct image *img)
{
	const struct image_symbol *s;
	struct image_frame f[IMAGE_FRAMES_MAX];
	struct image_line line;
	size_t pos = 0;

	s = image_symbol_find(img, "live", &pos);
	assert_non_null(s);
	for (uint64_t v = s->vaddr; v < s->vaddr + s->len; v++) {
		if (v - s->vaddr == 6 || v - s->vaddr == 7) {
			assert_true(image_line_at(img, v, &line) < 0);
			continue;
		}
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

/* However its linker and its compiler say so. */
static void test_discarded(void **state)
{
	static const char *const paths[] = { FIXTURES "/discarded.so",
					     FIXTURES "/discarded_empty.so",
					     FIXTURES "/discarded_wide.so" };
	struct image *img;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_int_equal(image_open_path(paths[i], IMAGE_FILE, &img, NULL), 0);
		assert_discarded(img);
	}
	img = open_turned(FIXTURES "/discarded_big.so");
	assert_discarded(img);
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
