/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "foreign_internal.h"
#include "small_elf.h"
#include "../routine_file.h"

/* ---- a small one ----------------------------------------------------------------------------- */

struct reading {
	struct small_elf elf;
	struct wire_object rec;
	struct foreign_object from;
	struct base_buf out;
	uint64_t hole; /* that cannot be read */
};

static ssize_t read_memory(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct reading *rd = ctx;

	if (rd->hole >= addr && rd->hole < addr + len)
		return -EFAULT;
	memset(to, 0xcc, len);
	return (ssize_t)len;
}

static void begin(struct reading *rd)
{
	*rd = (struct reading){ 0 };
	small_elf(&rd->elf);
	small_elf_record(&rd->elf, &rd->rec);
	rd->from = (struct foreign_object){
		.rec = &rd->rec,
		.elf = &rd->elf,
		.machine = EM_X86_64,
		.ctx = rd,
		.deadline_ns = UINT64_MAX,
	};
}

static int run(struct reading *rd)
{
	base_buf_clear(&rd->out);
	return foreign_elf_object(&rd->from, &rd->out);
}

static struct wire_routine_view nth(const struct base_buf *out, unsigned int n)
{
	struct wire_routine_view v = { 0 };
	const struct wire_head *h;

	WIRE_FOR_EACH (h, out->data, out->len, pos) {
		assert_int_equal(wire_routine_parse(h, &v), 0);
		if (!n--)
			return v;
	}
	fail_msg("not so many routines");
	return v;
}

static void check(struct reading *rd, unsigned int n, const char *name, uint64_t addr, uint64_t len)
{
	struct wire_routine_view v = nth(&rd->out, n);

	assert_int_equal(v.rec->part, n);
	assert_int_equal(v.rec->seq, 7);
	assert_int_equal(v.rec->name_len, strlen(name));
	assert_memory_equal(v.name, name, strlen(name));
	assert_int_equal(v.rec->addr, addr);
	assert_int_equal(v.rec->code_len, len);
}

static void test_symbols(void **state)
{
	struct wire_routine_view v;
	struct reading rd;

	(void)state;
	begin(&rd);
	assert_int_equal(run(&rd), 3);
	check(&rd, 0, "alpha", SMALL_VADDR, 32);
	check(&rd, 1, "gamma", SMALL_VADDR + 32, 32);
	check(&rd, 2, "delta", SMALL_VADDR + 64, 32);
	v = nth(&rd.out, 1);
	assert_int_equal(v.rec->head.flags, WIRE_ROUTINE_CODE);
	assert_memory_equal(v.code, rd.elf.text + 32, 32);
	/* What runs comes before what the file says, where it can be read. */
	rd.from.read = read_memory;
	rd.from.flags = WIRE_ROUTINE_REUSES;
	rd.hole = SMALL_VADDR + 40;
	assert_int_equal(run(&rd), 3);
	v = nth(&rd.out, 0);
	assert_int_equal(v.rec->head.flags,
			 WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED | WIRE_ROUTINE_REUSES);
	assert_int_equal(v.code[31], 0xcc);
	v = nth(&rd.out, 1);
	assert_int_equal(v.rec->head.flags, WIRE_ROUTINE_CODE | WIRE_ROUTINE_REUSES);
	assert_memory_equal(v.code, rd.elf.text + 32, 32);
	/* Neither. */
	rd.elf.section[SMALL_TEXT].sh_type = SHT_NOBITS;
	assert_int_equal(run(&rd), 3);
	assert_null(nth(&rd.out, 1).code);
	assert_non_null(nth(&rd.out, 2).code);
	base_buf_release(&rd.out);
}

static void test_places(void **state)
{
	struct reading rd;

	(void)state;
	begin(&rd);
	/* Elsewhere than it was linked for. */
	rd.rec.bias = 0x7f0000000000;
	rd.rec.addr += rd.rec.bias;
	assert_int_equal(run(&rd), 3);
	check(&rd, 1, "gamma", SMALL_VADDR + 32 + rd.rec.bias, 32);
	/* A relocatable file: values count from the section. */
	rd.elf.header.e_type = ET_REL;
	for (int i = 1; i < SMALL_NR_SYMBOLS; i++)
		rd.elf.symbol[i].st_value -= SMALL_VADDR;
	assert_int_equal(run(&rd), 3);
	check(&rd, 1, "gamma", SMALL_VADDR + 32 + rd.rec.bias, 32);
	/* Only what lies where it said that its code is; cut there. */
	rd.rec.addr += 32;
	rd.rec.code_len = 40;
	assert_int_equal(run(&rd), 2);
	check(&rd, 0, "gamma", SMALL_VADDR + 32 + rd.rec.bias, 32);
	check(&rd, 1, "delta", SMALL_VADDR + 64 + rd.rec.bias, 8);
	base_buf_release(&rd.out);
}

static void test_overlaps(void **state)
{
	struct reading rd;

	(void)state;
	begin(&rd);
	rd.elf.symbol[3].st_size = 40; /* alpha, into gamma */
	assert_int_equal(run(&rd), 3);
	check(&rd, 0, "alpha", SMALL_VADDR, 32);
	rd.elf.symbol[3].st_size = 80; /* over gamma, and delta, a label within it then */
	assert_int_equal(run(&rd), 1);
	check(&rd, 0, "alpha", SMALL_VADDR, 80);
	rd.elf.symbol[1].st_size = 32;
	assert_int_equal(run(&rd), 2);
	check(&rd, 0, "alpha", SMALL_VADDR, 64);
	check(&rd, 1, "delta", SMALL_VADDR + 64, 32);
	rd.elf.symbol[3].st_size = UINT64_MAX;
	assert_int_equal(run(&rd), 1);
	check(&rd, 0, "alpha", SMALL_VADDR, SMALL_TEXT_LEN);
	base_buf_release(&rd.out);
}

/* A buffer in which code will be made is no routine; what is told of within it is. */
static void test_too_long(void **state)
{
	struct reading rd;

	(void)state;
	begin(&rd);
	rd.elf.section[SMALL_TEXT].sh_type = SHT_NOBITS;
	rd.elf.section[SMALL_TEXT].sh_size = rd.rec.code_len = WIRE_CODE_MAX + 4096;
	rd.elf.symbol[3].st_size = WIRE_CODE_MAX;
	assert_int_equal(run(&rd), 1);
	check(&rd, 0, "alpha", SMALL_VADDR, WIRE_CODE_MAX);
	/* Its place is beta's then; delta, without a length, would reach to the end. */
	rd.elf.symbol[3].st_size = WIRE_CODE_MAX + 1;
	assert_int_equal(run(&rd), 2);
	check(&rd, 0, "beta", SMALL_VADDR, 32);
	check(&rd, 1, "gamma", SMALL_VADDR + 32, 32);
	rd.elf.section[SMALL_SYMTAB].sh_size = 2 * sizeof(Elf64_Sym);
	assert_int_equal(run(&rd), 0);
	rd.rec.code_len = WIRE_CODE_MAX;
	assert_int_equal(run(&rd), 1);
	base_buf_release(&rd.out);
}

static void test_lies(void **state)
{
	struct reading rd;

	(void)state;
#define TRY(change, result)                                                                        \
	do {                                                                                       \
		begin(&rd);                                                                        \
		change;                                                                            \
		if (run(&rd) != (result))                                                          \
			fail_msg(#change ": %d", run(&rd));                                        \
		base_buf_release(&rd.out);                                                         \
	} while (0)
	TRY(rd.rec.elf_len = 0, -DCPI_EFORMAT);
	TRY(rd.rec.elf_len = 63, -DCPI_EFORMAT);
	TRY(rd.rec.elf_len -= 1, -DCPI_EFORMAT);
	TRY(rd.elf.header.e_ident[0] = 0, -DCPI_EFORMAT);
	TRY(rd.elf.header.e_ident[EI_CLASS] = ELFCLASS32, -DCPI_EFORMAT);
	TRY(rd.elf.header.e_ident[EI_DATA] = ELFDATA2MSB, -DCPI_EFORMAT);
	TRY(rd.elf.header.e_machine = EM_AARCH64, -DCPI_EFORMAT);
	TRY(rd.from.machine = EM_AARCH64, -DCPI_EFORMAT);
	TRY(rd.elf.header.e_shnum = 0, -DCPI_EFORMAT);
	TRY(rd.elf.header.e_shnum = UINT16_MAX, -DCPI_EFORMAT);
	TRY(rd.elf.header.e_shoff = UINT64_MAX - 7, -DCPI_EFORMAT);
	TRY(rd.elf.header.e_shoff += 4, -DCPI_EFORMAT);
	TRY(rd.elf.header.e_shentsize = 40, -DCPI_EFORMAT);
	TRY(rd.elf.header.e_shstrndx = SMALL_NR_SECTIONS, -DCPI_EFORMAT);
	TRY(rd.elf.section[SMALL_TEXT].sh_size = UINT64_MAX, -DCPI_EFORMAT);
	TRY(rd.elf.section[SMALL_TEXT].sh_offset = UINT64_MAX, -DCPI_EFORMAT);
	TRY(rd.elf.section[SMALL_SYMTAB].sh_size += 4096, -DCPI_EFORMAT);
	/* Not aligned. */
	TRY((rd.elf.section[SMALL_SYMTAB].sh_offset += 4), -DCPI_EFORMAT);
	TRY((rd.elf.section[SMALL_TEXT].sh_type = SHT_DYNSYM,
	     rd.elf.section[SMALL_TEXT].sh_offset -= 4),
	    -DCPI_EFORMAT);
	TRY((rd.elf.section[SMALL_TEXT].sh_type = SHT_RELA,
	     rd.elf.section[SMALL_TEXT].sh_offset -= 4),
	    -DCPI_EFORMAT);
	TRY(rd.elf.names[63] = 'x', -DCPI_EFORMAT);
	/* One that says nothing. */
	TRY(rd.elf.section[SMALL_SYMTAB].sh_type = SHT_PROGBITS, 0);
	TRY(rd.elf.section[SMALL_SYMTAB].sh_entsize = 1, 0);
	TRY(rd.elf.section[SMALL_SYMTAB].sh_link = 77, 0);
	TRY(rd.elf.section[SMALL_SYMTAB].sh_link = SMALL_TEXT, 0);
	TRY(rd.elf.section[SMALL_TEXT].sh_flags = SHF_ALLOC, 0);
	TRY(rd.rec.bias = 1ull << 40, 0);
	TRY(rd.rec.addr = SMALL_VADDR + SMALL_TEXT_LEN, 0);
	/* One symbol less. */
	TRY(rd.elf.symbol[4].st_shndx = SHN_UNDEF, 2);
	TRY(rd.elf.symbol[4].st_shndx = SHN_ABS, 2);
	TRY(rd.elf.symbol[4].st_shndx = SMALL_NR_SECTIONS, 2);
	TRY(rd.elf.symbol[4].st_name = 0, 2);
	TRY(rd.elf.symbol[4].st_name = UINT32_MAX, 2);
	TRY(rd.elf.symbol[4].st_value = UINT64_MAX, 2);
	TRY(rd.elf.symbol[4].st_value = 0, 2);
	TRY(rd.elf.symbol[4].st_value = SMALL_VADDR + SMALL_TEXT_LEN, 2);
	TRY(rd.elf.symbol[4].st_size = UINT64_MAX, 2);
#undef TRY
}

/* ---- without end ----------------------------------------------------------------------------- */

/* Many tables can cover the same bytes: the first counts. */
static void test_two_tables(void **state)
{
	struct {
		struct small_elf elf;
		Elf64_Shdr section[SMALL_NR_SECTIONS + 1];
		Elf64_Sym symbol[2];
	} e = { 0 };
	struct reading rd;

	(void)state;
	begin(&rd);
	e.elf = rd.elf;
	memcpy(e.section, rd.elf.section, sizeof(rd.elf.section));
	e.symbol[1] = rd.elf.symbol[4];
	e.symbol[1].st_value += 48;
	e.section[SMALL_NR_SECTIONS] = e.section[SMALL_SYMTAB];
	e.section[SMALL_NR_SECTIONS].sh_offset = (uint64_t)((uint8_t *)e.symbol - (uint8_t *)&e);
	e.section[SMALL_NR_SECTIONS].sh_size = sizeof(e.symbol);
	e.elf.header.e_shoff = (uint64_t)((uint8_t *)e.section - (uint8_t *)&e);
	e.elf.header.e_shnum++;
	rd.from.elf = &e;
	rd.rec.elf_len = sizeof(e);
	assert_int_equal(run(&rd), 3);
	base_buf_release(&rd.out);
}

struct many {
	struct small_elf elf;
	Elf64_Shdr section[SMALL_NR_SECTIONS + 3];
	Elf64_Rela rela[(1 << 19) + 1];
};

/* What becomes of  relocations in each of two sections, all of them of no effect. */
static int relocate_twice(size_t nr)
{
	struct many *m = calloc(1, sizeof(*m));
	Elf64_Shdr *debug = &m->section[SMALL_NR_SECTIONS];
	struct elf_object o = { 0 };
	struct reading rd;
	int r;

	begin(&rd);
	m->elf = rd.elf;
	memcpy(m->elf.section_names + 40, ".debug_x", 9);
	memcpy(m->section, rd.elf.section, sizeof(rd.elf.section));
	*debug = m->section[SMALL_TEXT];
	debug->sh_name = 40;
	debug[1] = (Elf64_Shdr){ .sh_type = SHT_RELA,
				 .sh_offset = offsetof(struct many, rela),
				 .sh_size = nr * sizeof(Elf64_Rela),
				 .sh_entsize = sizeof(Elf64_Rela),
				 .sh_link = SMALL_SYMTAB,
				 .sh_info = SMALL_NR_SECTIONS };
	debug[2] = debug[1];
	m->elf.header.e_type = ET_REL;
	m->elf.header.e_shoff = offsetof(struct many, section);
	m->elf.header.e_shnum += 3;
	rd.from.elf = m;
	rd.rec.elf_len = sizeof(*m);
	assert_int_equal(elf_file_open(&o, &rd.from), 0);
	r = elf_relocate(&o);
	elf_file_release(&o);
	free(m);
	return r;
}

static void test_relocations(void **state)
{
	(void)state;
	assert_int_equal(relocate_twice(1 << 19), 0);
	assert_int_equal(relocate_twice((1 << 19) + 1), -DCPI_ELIMIT);
}

struct long_dir {
	struct small_elf elf;
	Elf64_Shdr section[SMALL_NR_SECTIONS + 3];
	uint8_t abbrev[8], info[16], line[200000];
};

static void put(uint8_t **at, const void *bytes, size_t len)
{
	memcpy(*at, bytes, len);
	*at += len;
}

/*
 * A line table, version 3: @nr files in one directory with a name of @dir_len letters. @wide: with
 * lengths of eight bytes.
 */
static size_t put_line_table(uint8_t *to, size_t dir_len, size_t nr, bool wide)
{
	static const uint8_t head[] = { 1, 1, 1, 1, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1 };
	static const uint8_t code[] = { 1, 2, 32, 3, 1, 1, 0, 1, 1 };
	static const uint8_t set_address[] = { 0, 9, 2 };
	const uint64_t addr = SMALL_VADDR;
	const uint16_t version = 3;
	const size_t width = wide ? 8 : 4, unit = wide ? 12 : 4;
	uint8_t *at = to + unit + 2 + width;
	uint64_t len;

	memset(to, 0xff, 4);
	memcpy(to + unit, &version, 2);
	put(&at, head, sizeof(head));
	memset(at, 'd', dir_len);
	at += dir_len + 2;
	for (size_t i = 0; i < nr; i++)
		put(&at, "f\0\1\0\0", 5);
	at++;
	len = (uint64_t)(at - to) - unit - 2 - width;
	memcpy(to + unit + 2, &len, width);
	put(&at, set_address, sizeof(set_address));
	put(&at, &addr, sizeof(addr));
	put(&at, code, sizeof(code));
	len = (uint64_t)(at - to) - unit;
	memcpy(to + unit - width, &len, width);
	return unit + (size_t)len;
}

static void add_debug(struct long_dir *m, int i, uint32_t name, const void *at, size_t len)
{
	m->section[i] = (Elf64_Shdr){ .sh_name = name,
				      .sh_type = SHT_PROGBITS,
				      .sh_offset = (uint64_t)((const uint8_t *)at - (uint8_t *)m),
				      .sh_size = len,
				      .sh_addralign = 1 };
}

static uint32_t lines_with(size_t dir_len, size_t nr, bool wide)
{
	static const uint8_t abbrev[8] = { 1, 0x11, 0, 0x10, 0x17, 0, 0, 0 };
	static const uint8_t info[16] = { 12, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1 };
	struct long_dir *m = calloc(1, sizeof(*m));
	struct reading rd;
	uint32_t nr_lines;

	begin(&rd);
	m->elf = rd.elf;
	memcpy(m->elf.section_names, "\0.debug_abbrev\0.debug_info\0.debug_line", 39);
	memcpy(m->section, rd.elf.section, sizeof(rd.elf.section));
	for (int i = 1; i < SMALL_NR_SECTIONS; i++)
		m->section[i].sh_name = 0;
	memcpy(m->abbrev, abbrev, sizeof(abbrev));
	memcpy(m->info, info, sizeof(info));
	add_debug(m, SMALL_NR_SECTIONS, 1, m->abbrev, sizeof(abbrev));
	add_debug(m, SMALL_NR_SECTIONS + 1, 15, m->info, sizeof(info));
	add_debug(m, SMALL_NR_SECTIONS + 2, 27, m->line,
		  put_line_table(m->line, dir_len, nr, wide));
	m->elf.header.e_shoff = offsetof(struct long_dir, section);
	m->elf.header.e_shnum += 3;
	rd.from.elf = m;
	rd.rec.elf_len = sizeof(*m);
	assert_int_equal(run(&rd), 3);
	nr_lines = nth(&rd.out, 0).rec->nr_lines;
	base_buf_release(&rd.out);
	free(m);
	return nr_lines;
}

/* libdw puts the directory before each of its files. */
static void test_long_directory(void **state)
{
	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		assert_int_equal(lines_with(100, 10, wide), 1);
		assert_int_equal(lines_with(100, 10000, wide), 1);
		assert_int_equal(lines_with(100000, 10, wide), 1);
		assert_int_equal(lines_with(100000, 10000, wide), 0);
	}
}

/* ---- one that a compiler has made ------------------------------------------------------------ */

static volatile int sink;

static inline __attribute__((always_inline)) void innermost(int x)
{
	sink += x;
	sink -= 2 * x;
}
enum { CALLS_INNERMOST = __LINE__ + 4 };
static inline __attribute__((always_inline)) void middle(int x)
{
	sink += x;
	innermost(x);
}
enum { OUTER = __LINE__ + 1 };
__attribute__((noinline, noclone)) static void outer(int x)
{
	sink = x;
	middle(x + 1);
	sink++;
}

static ssize_t read_self(void *ctx, uint64_t addr, void *to, size_t len)
{
	(void)ctx;
	memcpy(to, (const void *)(uintptr_t)addr, len);
	return (ssize_t)len;
}

static void *read_file(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *data;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	*len = (size_t)st.st_size;
	data = malloc(*len);
	assert_int_equal(read(fd, data, *len), *len);
	close(fd);
	return data;
}

/* The routine named @name among the test's own, as the file and our memory tell. */
static struct wire_routine_view find_own(const char *name, uint64_t deadline_ns,
					 struct base_buf *out)
{
	struct wire_object rec = { .head = { .len = sizeof(rec), .type = WIRE_OBJECT }, .seq = 3 };
	struct foreign_object from = { .rec = &rec, .read = read_self, .deadline_ns = deadline_ns };
	struct wire_routine_view v = { 0 };
	const struct wire_head *h;
	size_t len;
	Elf64_Ehdr *e = read_file("/proc/self/exe", &len);

	from.elf = e;
	from.machine = e->e_machine;
	rec.elf_len = len;
	/* Where it is linked to be, less where it is: page 0 of the file is its first one. */
	extern const char __ehdr_start[];
	rec.bias = e->e_type == ET_DYN ? (uintptr_t)__ehdr_start : 0;
	rec.addr = (uintptr_t)outer & ~0xfffull;
	rec.code_len = 8192;
	assert_true(foreign_elf_object(&from, out) > 0);
	free(e);
	WIRE_FOR_EACH (h, out->data, out->len, pos) {
		assert_int_equal(wire_routine_parse(h, &v), 0);
		if (v.rec->name_len == strlen(name) && !memcmp(v.name, name, strlen(name)))
			return v;
	}
	fail_msg("no routine '%s'", name);
	return v;
}

static void assert_file(const struct wire_routine_view *v, uint32_t index, const char *suffix)
{
	size_t len = 0, want = strlen(suffix);
	const char *name = routine_file(v, index, &len);

	assert_non_null(name);
	assert_true(len >= want);
	assert_memory_equal(name + len - want, suffix, want);
}

static void test_lines(void **state)
{
	struct base_buf out = { 0 };
	struct wire_routine_view v = find_own("outer", UINT64_MAX, &out);
	bool own = false, inlined = false;

	(void)state;
	outer(1);
	assert_int_equal(v.rec->addr, (uintptr_t)outer);
	assert_memory_equal(v.code, (const void *)(uintptr_t)outer, v.rec->code_len);
	assert_int_equal(v.rec->head.flags, WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED);
	assert_true(v.rec->nr_lines > 3);
	assert_int_equal(v.lines[0].code_off, 0);
	assert_true(v.lines[0].column > 0);
	assert_in_range(v.lines[0].line, OUTER, OUTER + 2);
	assert_file(&v, v.lines[0].file, "tests/unit/foreign/elf_object.c");
	for (uint32_t i = 0; i < v.rec->nr_lines; i++) {
		own |= v.lines[i].line >= OUTER && v.lines[i].line <= OUTER + 5;
		inlined |=
			v.lines[i].line > CALLS_INNERMOST - 9 && v.lines[i].line < CALLS_INNERMOST;
	}
	assert_true(own && inlined);
	base_buf_release(&out);
}

static void test_inlined(void **state)
{
	struct base_buf out = { 0 };
	struct wire_routine_view v = find_own("outer", UINT64_MAX, &out);
	bool found[2] = { false };

	(void)state;
	assert_true(v.rec->nr_inlines >= 2);
	for (uint32_t i = 0; i < v.rec->nr_inlines; i++) {
		const struct wire_inline *in = &v.inlines[i];

		assert_true(in->depth < 2);
		found[in->depth] = true;
		assert_file(&v, in->name, in->depth ? "innermost" : "middle");
		assert_file(&v, in->call_file, "tests/unit/foreign/elf_object.c");
		assert_int_equal(in->call_line, in->depth ? CALLS_INNERMOST : OUTER + 3);
	}
	assert_true(found[0] && found[1]);
	base_buf_release(&out);
}

/* DWARF that takes too long to read. */
static void test_deadline(void **state)
{
	struct base_buf out = { 0 };
	struct wire_routine_view v = find_own("outer", base_now_ns(), &out);

	(void)state;
	assert_int_equal(v.rec->head.flags, WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED);
	assert_int_equal(v.rec->nr_lines, 0);
	assert_int_equal(v.rec->nr_inlines, 0);
	base_buf_release(&out);
}

/* One source, compiled twice; as the fuzz target's corpus has it. */
static void read_corpus(const char *name, uint64_t base, struct base_buf *out)
{
	struct wire_object rec = { .head = { .len = sizeof(rec), .type = WIRE_OBJECT }, .seq = 1 };
	struct foreign_object from = { .rec = &rec,
				       .machine = EM_X86_64,
				       .deadline_ns = UINT64_MAX };
	const char *src = getenv("DCPI_SRC");
	char path[4096];
	uint8_t *data;
	size_t len;

	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/elf_object/%s", src ? src : ".", name);
	data = read_file(path, &len);
	memcpy(&rec.bias, data, 8);
	memcpy(&rec.addr, data + 8, 8);
	memcpy(&rec.code_len, data + 16, 8);
	assert_int_equal(rec.addr, base);
	from.elf = data + 24;
	rec.elf_len = len - 24;
	assert_int_equal(foreign_elf_object(&from, out), 3);
	free(data);
}

/* What its DWARF refers to was not filled in by whoever loaded it. */
static void test_relocatable(void **state)
{
	static const char *const inlined[3][2] = { { "", "inner" }, { "" }, { "helper", "leaf" } };
	struct base_buf linked = { 0 }, loose = { 0 };

	(void)state;
	read_corpus("dwarf5", 0x400000, &linked);
	read_corpus("relocatable", 0x10000, &loose);
	for (unsigned int i = 0; i < 3; i++) {
		struct wire_routine_view a = nth(&linked, i), b = nth(&loose, i);

		assert_file(&a, a.lines[0].file, "inl.c");
		for (uint32_t k = 0; k < a.rec->nr_inlines; k++)
			assert_file(&a, a.inlines[k].name, inlined[i][a.inlines[k].depth]);
		assert_int_equal(a.rec->code_len, b.rec->code_len);
		assert_int_equal(a.rec->nr_lines, b.rec->nr_lines);
		assert_memory_equal(a.lines, b.lines, a.rec->nr_lines * sizeof(*a.lines));
		assert_int_equal(a.rec->nr_inlines, b.rec->nr_inlines);
		assert_memory_equal(a.inlines, b.inlines, a.rec->nr_inlines * sizeof(*a.inlines));
		assert_int_equal(a.files_len, b.files_len);
		assert_memory_equal(a.files, b.files, a.files_len);
	}
	assert_true(nth(&loose, 0).rec->nr_inlines > 3);
	base_buf_release(&linked);
	base_buf_release(&loose);
}

__attribute__((noinline, noclone)) static void elsewhere(int x);

/* Its file's name is relative to the folder of the compilation, which is put before it. */
static void test_folder(void **state)
{
	struct base_buf out = { 0 };
	struct wire_routine_view v = find_own("elsewhere", UINT64_MAX, &out);
	const char *files[2];
	size_t len;

	(void)state;
	elsewhere(1);
	assert_true(v.rec->nr_inlines > 0);
	files[0] = routine_file(&v, v.lines[0].file, &len);
	files[1] = routine_file(&v, v.inlines[0].call_file, &len);
	for (unsigned int i = 0; i < 2; i++)
		assert_memory_equal(files[i], "/nowhere/", 9);
	assert_file(&v, v.lines[0].file, "/inc/elsewhere.h");
	assert_file(&v, v.inlines[0].call_file, "/inc/elsewhere.h");
	base_buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols),	       cmocka_unit_test(test_places),
		cmocka_unit_test(test_overlaps),       cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_lies),	       cmocka_unit_test(test_lines),
		cmocka_unit_test(test_inlined),	       cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_relocatable),    cmocka_unit_test(test_two_tables),
		cmocka_unit_test(test_long_directory), cmocka_unit_test(test_relocations),
		cmocka_unit_test(test_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Last, since it says of what follows that it is of another file. */
#line 1 "inc/elsewhere.h"
__attribute__((noinline, noclone)) static void elsewhere(int x)
{
	sink = x;
	innermost(x);
}
