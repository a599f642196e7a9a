/* SPDX-License-Identifier: BSD-2-Clause */
/* Which words of data are addresses: of both kinds of relocations, in a file made by hand. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "as_file.h"

enum { TABLE = 0x300000, NR_WORDS = 0x90 };

static const char names[] = "\0.relr.dyn\0.rela.dyn\0.rela.debug\0.shstrtab";

struct file {
	Elf64_Ehdr head;
	Elf64_Phdr segments[2];
	Elf64_Shdr sections[5];
	uint64_t table[NR_WORDS]; /* at TABLE; the last word is none of the file's */
	uint64_t compact[5];
	Elf64_Rela plain[3], other[1];
	char names[sizeof(names)];
};

static Elf64_Shdr section(uint32_t name, uint32_t type, uint64_t flags, size_t off, size_t len,
			  size_t entry)
{
	return (Elf64_Shdr){ .sh_name = name,
			     .sh_type = type,
			     .sh_flags = flags,
			     .sh_offset = off,
			     .sh_size = len,
			     .sh_entsize = entry };
}

static void make(struct file *f)
{
	*f = (struct file){
		.head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = offsetof(struct file, segments),
			  .e_shoff = offsetof(struct file, sections),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2,
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 5,
			  .e_shstrndx = 4 },
		/* The first is not loaded. */
		.segments = { { .p_type = PT_NOTE, .p_vaddr = TABLE, .p_filesz = 0x1000 },
			      { .p_type = PT_LOAD,
				.p_vaddr = TABLE,
				.p_offset = offsetof(struct file, table),
				.p_filesz = (NR_WORDS - 1) * 8,
				.p_memsz = 0x10000 } },
		/* One; 1, 3 and 63 of those behind it, and the second of the next 63; one that
		 * does not stand in the file; another. */
		.compact = { TABLE, 1 | 1 << 1 | 1 << 3 | UINT64_C(1) << 63, 1 | 1 << 2,
			     TABLE + (NR_WORDS - 1) * 8, TABLE + 0x400 },
		.plain = { { TABLE + 0x410, ELF64_R_INFO(0, R_X86_64_RELATIVE), 0x77 },
			   { TABLE + 0x18, ELF64_R_INFO(0, R_X86_64_64), 0x88 },
			   { TABLE + 0x10, ELF64_R_INFO(0, R_X86_64_RELATIVE), 0x99 } },
		.other = { { TABLE + 0x28, ELF64_R_INFO(0, R_X86_64_RELATIVE), 0xaa } },
	};
	for (uint64_t i = 0; i < NR_WORDS; i++)
		f->table[i] = 0xa000 + i;
	f->sections[1] = section(1, SHT_RELR, SHF_ALLOC, offsetof(struct file, compact),
				 sizeof(f->compact), 8);
	f->sections[2] = section(11, SHT_RELA, SHF_ALLOC, offsetof(struct file, plain),
				 sizeof(f->plain), sizeof(Elf64_Rela));
	f->sections[3] = section(21, SHT_RELA, 0, offsetof(struct file, other), sizeof(f->other),
				 sizeof(Elf64_Rela));
	f->sections[4] = section(33, SHT_STRTAB, 0, offsetof(struct file, names), sizeof(names), 0);
	memcpy(f->names, names, sizeof(names));
}

static void read_back(const struct file *f, struct image_pointers **out)
{
	struct image_elf elf;

	as_file(&elf, f, sizeof(*f));
	assert_int_equal(image_pointers_read(out, &elf), 0);
	image_elf_close(&elf);
}

static void test_pointers(void **state)
{
	static const struct image_pointer all[] = {
		{ TABLE, 0xa000 },	   { TABLE + 8, 0xa001 },     { TABLE + 0x10, 0x99 },
		{ TABLE + 0x18, 0xa003 },  { TABLE + 0x1f8, 0xa03f }, { TABLE + 0x208, 0xa041 },
		{ TABLE + 0x400, 0xa080 }, { TABLE + 0x410, 0x77 },
	};
	struct image_pointers *p = NULL;
	struct file f;

	(void)state;
	make(&f);
	read_back(&f, &p);
	assert_int_equal(p->nr, sizeof(all) / sizeof(all[0]));
	for (size_t i = 0; i < p->nr; i++) {
		assert_int_equal(p->v[i].vaddr, all[i].vaddr);
		assert_int_equal(p->v[i].value, all[i].value);
	}
	image_pointers_free(p);
}

/* What is no such address is what stands there, where all of it does. */
static void test_values(void **state)
{
	char path[] = "/tmp/dcpi-unit-XXXXXX";
	int fd = mkstemp(path);
	struct image *img = NULL;
	uint64_t value = 0;
	struct file f;

	(void)state;
	make(&f);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &f, sizeof(f)), sizeof(f));
	close(fd);
	assert_int_equal(image_open_path(path, IMAGE_FILE, &img, NULL), 0);
	assert_int_equal(image_pointer(img, TABLE + 0x10, &value), 0);
	assert_int_equal(value, 0x99);
	assert_int_equal(image_pointer(img, TABLE + 0x20, &value), 0);
	assert_int_equal(value, 0xa004);
	assert_int_equal(image_pointer(img, TABLE + (NR_WORDS - 2) * 8, &value), 0);
	assert_int_equal(image_pointer(img, TABLE + (NR_WORDS - 2) * 8 + 1, &value), -ENOENT);
	image_close(img);
	unlink(path);
}

/* What its kind, or its machine, does not make an address is none. */
static void test_of_others(void **state)
{
	struct image_pointers *p = NULL;
	struct file f;

	(void)state;
	make(&f);
	f.head.e_machine = EM_AARCH64; /* whose relocations have other numbers */
	read_back(&f, &p);
	assert_int_equal(p->nr, 6);
	image_pointers_free(p);
	f.head.e_machine = EM_386;
	read_back(&f, &p);
	assert_int_equal(p->nr, 0);
	image_pointers_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
