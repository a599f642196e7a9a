/* SPDX-License-Identifier: BSD-2-Clause */
/* ELF files of both byte orders and classes are read the same on every machine, and so are
 * identities. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base.h"

enum { CODE_OFF = 0x200, CODE_LEN = 16, ADDRESS = 0x401200 };

static uint8_t file[CODE_OFF + CODE_LEN];
static bool big;

static void put(size_t at, size_t width, uint64_t v)
{
	for (size_t i = 0; i < width; i++)
		file[at + i] = (uint8_t)(v >> 8 * (big ? width - 1 - i : i));
}

#define PUT(at, type, field, v) put((at) + offsetof(type, field), sizeof(((type *)0)->field), (v))
#define PUT_ALL(prefix)                                                                            \
	do {                                                                                       \
		PUT(0, prefix##_Ehdr, e_phoff, sizeof(prefix##_Ehdr));                             \
		PUT(0, prefix##_Ehdr, e_phnum, 1);                                                 \
		PUT(0, prefix##_Ehdr, e_phentsize, sizeof(prefix##_Phdr));                         \
		PUT(sizeof(prefix##_Ehdr), prefix##_Phdr, p_type, PT_LOAD);                        \
		PUT(sizeof(prefix##_Ehdr), prefix##_Phdr, p_flags, PF_R | PF_X);                   \
		PUT(sizeof(prefix##_Ehdr), prefix##_Phdr, p_offset, CODE_OFF);                     \
		PUT(sizeof(prefix##_Ehdr), prefix##_Phdr, p_vaddr, ADDRESS);                       \
		PUT(sizeof(prefix##_Ehdr), prefix##_Phdr, p_filesz, CODE_LEN);                     \
		PUT(sizeof(prefix##_Ehdr), prefix##_Phdr, p_align, 4096);                          \
	} while (0)

/* A file with one segment of code; @order is what it says of itself. */
static FILE *make(bool wide, uint8_t order)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	memset(file, 0, sizeof(file));
	memset(file + CODE_OFF, 0x90, CODE_LEN);
	memcpy(file, ELFMAG, SELFMAG);
	file[EI_CLASS] = wide ? ELFCLASS64 : ELFCLASS32;
	file[EI_DATA] = order;
	if (wide)
		PUT_ALL(Elf64);
	else
		PUT_ALL(Elf32);
	assert_int_equal(pwrite(fileno(f), file, sizeof(file), 0), sizeof(file));
	return f;
}

static int is_code(void *ctx, const struct base_segment *s)
{
	assert_int_equal(s->type, PT_LOAD);
	assert_true(s->exec);
	assert_int_equal(s->off, CODE_OFF);
	assert_int_equal(s->len, CODE_LEN);
	assert_int_equal(s->vaddr, ADDRESS);
	assert_int_equal(s->align, 4096);
	++*(int *)ctx;
	return 0;
}

static void check(FILE *f)
{
	char text[BASE_ID_TEXT_LEN];
	struct base_extent extent;
	struct base_id id;
	int nr = 0;

	assert_int_equal(base_elf_segments(fileno(f), is_code, &nr), 0);
	assert_int_equal(nr, 1);
	assert_int_equal(base_elf_extent(fileno(f), &extent), 0);
	assert_int_equal(extent.start, ADDRESS - CODE_OFF);
	assert_int_equal(extent.size, CODE_LEN);
	assert_int_equal(base_id_of_text(&id, fileno(f)), 0);
	assert_string_equal(base_id_text(&id, text), "3d274b1c9bcc673b8ed31dd35de6421580b7accd");
}

static void test_segments(void **state)
{
	FILE *f;

	(void)state;
	for (int i = 0; i < 4; i++) {
		big = i & 1;
		f = make(i & 2, big ? ELFDATA2MSB : ELFDATA2LSB);
		check(f);
		fclose(f);
	}
}

static void test_no_order(void **state)
{
	FILE *f;
	int nr = 0;

	(void)state;
	big = false;
	for (int order = 0; order < 256; order += 3) {
		f = make(true, (uint8_t)order);
		assert_int_equal(base_elf_segments(fileno(f), is_code, &nr), -ENOENT);
		fclose(f);
	}
	assert_int_equal(nr, 0);
}

/* A note of another owner, and the build-id behind it. */
static void test_notes(void **state)
{
	struct base_id id;

	(void)state;
	for (int i = 0; i < 2; i++) {
		memset(file, 0, sizeof(file));
		big = i;
		put(0, 4, 5);
		put(4, 4, 3);
		put(8, 4, NT_GNU_BUILD_ID);
		memcpy(file + 12, "DCPI", 5);
		put(24, 4, 4);
		put(28, 4, 3);
		put(32, 4, NT_GNU_BUILD_ID);
		memcpy(file + 36, "GNU\0abc", 7);
		assert_int_equal(base_id_of_notes(&id, file, 44, 4), 0);
		assert_int_equal(id.len, 3);
		assert_memory_equal(id.bytes, "abc", 3);
		assert_int_equal(base_id_of_notes(&id, file, 42, 4), -ENOENT);
		put(28, 4, UINT32_MAX);
		assert_int_equal(base_id_of_notes(&id, file, 44, 4), -ENOENT);
	}
}

/* Known values, by another implementation of SHA-256, of numbers in little-endian order. */
static void test_identities(void **state)
{
	static const uint64_t where[3] = { 1, 2, 3 };
	char text[BASE_ID_TEXT_LEN];
	struct base_id id;

	(void)state;
	base_id_of_head(&id, 0x0102, "head", 4);
	assert_string_equal(base_id_text(&id, text), "f2ba00aa1fc05f7139c5a34a6ae8e4595136628f");
	base_id_of_place(&id, where, "/a");
	assert_string_equal(base_id_text(&id, text), "90b704fa777f419270b31cb942d970330bfbb1e8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_no_order),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_identities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
