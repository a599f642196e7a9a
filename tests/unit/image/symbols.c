/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranges of .eh_frame, in each form in which compilers and assemblers may write addresses. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "as_file.h"

enum { FRAMES = 0x20000, RELATIVE = 0x10, NAMES_OFF = 64, FRAMES_OFF = 96, ROOM = 128 };

static const char names[] = "\0.eh_frame\0.shstrtab";

struct file {
	Elf64_Ehdr head;
	char names[FRAMES_OFF - NAMES_OFF];
	uint8_t frames[ROOM];
	Elf64_Shdr sections[3];
};

static size_t put(uint8_t *to, uint64_t value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)(value >> (8 * i));
	return len;
}

/* A common entry with @encoding, and one range: its begin and its length are @len bytes each. */
static void make(struct file *f, uint8_t encoding, const uint8_t *begin, const uint8_t *range,
		 size_t len)
{
	static const uint8_t common[] = { 1, 'z', 'R', 0, 1, 0x78, 16, 1 };
	uint8_t *at = f->frames;

	*f = (struct file){ .head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
						   ELFDATA2LSB, EV_CURRENT },
				      .e_type = ET_DYN,
				      .e_machine = EM_X86_64,
				      .e_version = EV_CURRENT,
				      .e_shoff = offsetof(struct file, sections),
				      .e_ehsize = sizeof(f->head),
				      .e_shentsize = sizeof(f->sections[0]),
				      .e_shnum = 3,
				      .e_shstrndx = 2 } };
	memcpy(f->names, names, sizeof(names));
	at += put(at, 4 + sizeof(common) + 1, 4);
	at += put(at, 0, 4);
	memcpy(at, common, sizeof(common));
	at += sizeof(common);
	*at++ = encoding;
	at += put(at, 4 + 2 * len, 4);
	at += put(at, (uint64_t)(at - f->frames), 4);
	memcpy(at, begin, len);
	memcpy(at + len, range, len);
	f->sections[1] = (Elf64_Shdr){ .sh_name = 1,
				       .sh_type = SHT_PROGBITS,
				       .sh_flags = SHF_ALLOC,
				       .sh_addr = FRAMES,
				       .sh_offset = offsetof(struct file, frames),
				       .sh_size = (uint64_t)(at + 2 * len - f->frames) };
	f->sections[2] = (Elf64_Shdr){ .sh_name = 11,
				       .sh_type = SHT_STRTAB,
				       .sh_offset = offsetof(struct file, names),
				       .sh_size = sizeof(names) };
}

static void read_back(const struct file *f, struct image_ranges *out)
{
	struct image_elf elf;

	as_file(&elf, f, sizeof(*f));
	assert_int_equal(image_ranges_read(out, &elf), 0);
	image_elf_close(&elf);
}

static void forms(void **state)
{
	static const struct {
		uint8_t encoding;
		size_t len;
		uint8_t begin[8], range[8];
		uint64_t vaddr;
	} cases[] = {
		{ 0x00, 8, { 0x34, 0x12, 0x01 }, { 0x44 }, 0x11234 },
		{ 0x01, 2, { 0xb4, 0x64 }, { 0xc4, 0 }, 0x3234 },
		{ 0x02, 2, { 0x34, 0xf2 }, { 0x44 }, 0xf234 },
		{ 0x03, 4, { 0x34, 0x12, 0, 0xf0 }, { 0x44 }, 0xf0001234 },
		{ 0x04, 8, { 0x34, 0x12, 0, 0, 0x01 }, { 0x44 }, 0x100001234 },
		{ 0x09, 2, { 0xb4, 0x24 }, { 0xc4, 0 }, 0x1234 },
		{ 0x0a, 2, { 0x34, 0x12 }, { 0x44 }, 0x1234 },
		{ 0x0b, 4, { 0x34, 0x12, 0, 0 }, { 0x44 }, 0x1234 },
		{ 0x0c, 8, { 0x34, 0x12, 0, 0, 0x01 }, { 0x44 }, 0x100001234 },
		{ RELATIVE | 0x02, 2, { 0x34, 0xf2 }, { 0x44 }, FRAMES + 0xf234 },
		{ RELATIVE | 0x09, 2, { 0xb4, 0x64 }, { 0xc4, 0 }, FRAMES - 0xdcc },
		{ RELATIVE | 0x0a, 2, { 0x34, 0xf2 }, { 0x44 }, FRAMES - 0xdcc },
		{ RELATIVE | 0x0b, 4, { 0x34, 0xf2, 0xff, 0xff }, { 0x44 }, FRAMES - 0xdcc },
	};
	/* Where the first address stands: behind the common entry, a length and an id. */
	const uint64_t here = 4 + 4 + 9 + 4 + 4;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct image_ranges out = { 0 };
		struct file f;

		make(&f, cases[i].encoding, cases[i].begin, cases[i].range, cases[i].len);
		read_back(&f, &out);
		assert_int_equal(out.nr, 1);
		assert_int_equal(out.v[0].vaddr,
				 cases[i].vaddr + (cases[i].encoding & RELATIVE ? here : 0));
		assert_int_equal(out.v[0].len, 0x44);
		free(out.v);
	}
}

/* Relative to what only the running program knows, or in no form that there is. */
static void unknown_forms(void **state)
{
	static const uint8_t encodings[] = { 0x30, 0x23, 0x83, 0x05, 0xff };
	static const uint8_t bytes[8] = { 0x44 };

	(void)state;
	for (size_t i = 0; i < sizeof(encodings); i++) {
		struct image_ranges out = { 0 };
		struct file f;

		make(&f, encodings[i], bytes, bytes, sizeof(bytes));
		read_back(&f, &out);
		assert_int_equal(out.nr, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),
		cmocka_unit_test(unknown_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
