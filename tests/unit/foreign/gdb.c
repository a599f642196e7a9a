/* SPDX-License-Identifier: BSD-2-Clause */
/* GDB's JIT interface, in a process of our own making, and in files that are not what they say. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "foreign.h"
#include "small_elf.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* ---- a process ------------------------------------------------------------------------------- */

struct descriptor {
	uint32_t version, action;
	uint64_t relevant, first;
};

struct node {
	uint64_t next, prev, elf_addr, elf_len;
};

enum { NR_NODES = 16 };
#define HEADS_AT  0x1000ull
#define NODES_AT  0x2000ull
#define FILES_AT  0x100000ull
#define FILE_ROOM 0x1000ull

struct world {
	struct descriptor heads[2];
	struct node nodes[NR_NODES];
	uint8_t files[NR_NODES][FILE_ROOM];
	unsigned int nr_reads, change_at; /* at that reading the list is changed */
	bool endless;			  /* nodes from NODES_AT on, without end */
};

static bool part_of(uint64_t addr, size_t len, uint64_t base, const void *from, size_t from_len,
		    void *to)
{
	if (addr < base || addr - base > from_len || len > from_len - (addr - base))
		return false;
	memcpy(to, (const uint8_t *)from + (addr - base), len);
	return true;
}

static ssize_t world_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct world *w = ctx;

	if (++w->nr_reads == w->change_at)
		w->heads[0].first = 0;
	if (w->endless && addr >= NODES_AT && addr < FILES_AT && len == sizeof(struct node)) {
		*(struct node *)to = (struct node){ .next = addr + 1, .elf_addr = FILES_AT };
		return (ssize_t)len;
	}
	if (part_of(addr, len, HEADS_AT, w->heads, sizeof(w->heads), to) ||
	    part_of(addr, len, NODES_AT, w->nodes, sizeof(w->nodes), to) ||
	    part_of(addr, len, FILES_AT, w->files, sizeof(w->files), to))
		return (ssize_t)len;
	return -EFAULT;
}

static uint64_t node_at(unsigned int i)
{
	return NODES_AT + i * sizeof(struct node);
}

/* Entry @i stands before what head @h has. */
static void link_node(struct world *w, unsigned int h, unsigned int i)
{
	w->nodes[i] = (struct node){ .next = w->heads[h].first,
				     .elf_addr = FILES_AT + i * FILE_ROOM,
				     .elf_len = 16 + i };
	memset(w->files[i], (int)i + 1, FILE_ROOM);
	w->heads[h] = (struct descriptor){ 1, 1, node_at(i), node_at(i) };
}

struct trial {
	struct world w;
	struct foreign_memory memory;
	struct foreign_gdb g;
	struct base_buf out;
};

static int setup(void **state)
{
	struct trial *t = calloc(1, sizeof(*t));

	if (!t)
		return -1;
	t->memory = (struct foreign_memory){ world_read, &t->w };
	t->g = (struct foreign_gdb){ .heads = { HEADS_AT }, .nr_heads = 1 };
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct trial *t = *state;

	base_buf_release(&t->out);
	free(t);
	return 0;
}

static int list(struct trial *t)
{
	base_buf_clear(&t->out);
	return foreign_gdb_list(&t->memory, &t->g, &t->out);
}

static const struct foreign_gdb_entry *entry(const struct trial *t, size_t i)
{
	assert_true((i + 1) * sizeof(struct foreign_gdb_entry) <= t->out.len);
	return (const struct foreign_gdb_entry *)(const void *)t->out.data + i;
}

static size_t nr_entries(const struct trial *t)
{
	return t->out.len / sizeof(struct foreign_gdb_entry);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void test_list(void **state)
{
	struct trial *t = *state;

	t->w.heads[0].version = 1;
	assert_int_equal(list(t), 1);
	assert_int_equal(nr_entries(t), 0);
	assert_int_equal(list(t), 0);
	for (unsigned int i = 0; i < 3; i++)
		link_node(&t->w, 0, i);
	assert_int_equal(list(t), 1);
	assert_int_equal(nr_entries(t), 3);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(entry(t, i)->node, node_at(i));
		assert_int_equal(entry(t, i)->elf_addr, FILES_AT + i * FILE_ROOM);
		assert_int_equal(entry(t, i)->elf_len, 16 + i);
		assert_true(entry(t, i)->print);
	}
	assert_int_not_equal(entry(t, 0)->print, entry(t, 1)->print);
	assert_int_equal(list(t), 0);
	/* One goes. */
	t->w.nodes[2].next = t->w.nodes[1].next;
	t->w.heads[0].action = 2;
	t->w.heads[0].relevant = node_at(1);
	assert_int_equal(list(t), 1);
	assert_int_equal(nr_entries(t), 2);
	assert_int_equal(entry(t, 1)->node, node_at(2));
}

/* What is new stands behind. */
static void test_order(void **state)
{
	struct trial *t = *state;

	for (unsigned int i = 0; i < 3; i++)
		link_node(&t->w, 0, i);
	t->w.heads[0].relevant = node_at(0);
	assert_int_equal(list(t), 1);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(entry(t, i)->node, node_at(2 - i));
}

/* The same entry, the same place, and another file: only that tells. */
static void test_same_place(void **state)
{
	struct trial *t = *state;
	uint64_t print;

	link_node(&t->w, 0, 0);
	assert_int_equal(list(t), 1);
	print = entry(t, 0)->print;
	t->w.files[0][15]++;
	assert_int_equal(list(t), 1);
	assert_int_not_equal(entry(t, 0)->print, print);
	t->w.files[0][16]++;
	assert_int_equal(list(t), 0);
}

static void test_two_heads(void **state)
{
	struct trial *t = *state;

	t->g.heads[1] = HEADS_AT + sizeof(struct descriptor);
	t->g.heads[2] = 0x666000;
	t->g.nr_heads = 3;
	link_node(&t->w, 0, 0);
	link_node(&t->w, 1, 1);
	assert_int_equal(list(t), 1);
	assert_int_equal(nr_entries(t), 2);
	link_node(&t->w, 1, 2);
	assert_int_equal(list(t), 1);
	assert_int_equal(nr_entries(t), 3);
	/* Of another version: nothing is known of what it has. */
	t->w.heads[1].version = 2;
	assert_int_equal(list(t), 1);
	assert_int_equal(nr_entries(t), 1);
}

static void refused(struct trial *t, int want)
{
	const struct foreign_gdb before = t->g;

	assert_int_equal(list(t), want);
	assert_int_equal(t->out.len, 0);
	assert_memory_equal(&t->g, &before, sizeof(before));
}

static void test_loops(void **state)
{
	struct trial *t = *state;

	for (unsigned int i = 0; i < NR_NODES; i++)
		link_node(&t->w, 0, i);
	for (unsigned int to = 0; to < NR_NODES; to++) {
		t->w.nodes[0].next = node_at(to);
		refused(t, -DCPI_EFORMAT);
	}
	/* Bounded: each entry is met a few times at most. */
	assert_true(t->w.nr_reads < 100 * NR_NODES);
	t->w.nodes[0].next = 0;
	assert_int_equal(list(t), 1);
	assert_int_equal(nr_entries(t), NR_NODES);
}

static void test_lies(void **state)
{
	struct trial *t = *state;

	link_node(&t->w, 0, 0);
	link_node(&t->w, 0, 1);
	t->w.nodes[0].next = 0x123456;
	refused(t, -DCPI_EFORMAT);
	t->w.nodes[0].next = UINT64_MAX;
	refused(t, -DCPI_EFORMAT);
	t->w.nodes[0].next = 0;
	/* Of files that are not there, or without end, the list itself is good. */
	t->w.nodes[0].elf_addr = UINT64_MAX - 8;
	t->w.nodes[1].elf_len = UINT64_MAX;
	assert_int_equal(list(t), 1);
	assert_int_equal(nr_entries(t), 2);
}

static void test_torn(void **state)
{
	struct trial *t = *state;

	for (unsigned int i = 0; i < 4; i++)
		link_node(&t->w, 0, i);
	for (unsigned int at = 2; at < 6; at++) {
		t->w.heads[0].first = node_at(3);
		t->w.nr_reads = 0;
		t->w.change_at = at;
		refused(t, -EAGAIN);
		assert_true(t->w.nr_reads > at);
	}
	/* Nor is a list that was torn called a lie. */
	t->w.heads[0].first = node_at(3);
	t->w.nodes[0].next = node_at(3);
	t->w.nr_reads = 0;
	refused(t, -EAGAIN);
	assert_int_equal(list(t), 1);
	assert_int_equal(nr_entries(t), 0);
}

static void test_endless(void **state)
{
	struct trial *t = *state;

	t->w.heads[0] = (struct descriptor){ 1, 0, 0, NODES_AT };
	t->w.endless = true;
	assert_int_equal(list(t), 2);
	assert_int_equal(nr_entries(t), FOREIGN_GDB_ENTRIES);
}

/* Of 4 MiB of files a call, of one file 256 KiB at most. */
static ssize_t read_large(void *ctx, uint64_t addr, void *to, size_t len)
{
	if (addr < FILES_AT)
		return world_read(ctx, addr, to, len);
	memset(to, 7, len);
	return (ssize_t)len;
}

static size_t printed(const struct trial *t)
{
	size_t nr = 0;

	for (size_t i = 0; i < nr_entries(t); i++)
		nr += entry(t, i)->print != 0;
	return nr;
}

static void test_prints(void **state)
{
	struct trial *t = *state;

	t->memory.read = read_large;
	for (unsigned int i = 0; i < NR_NODES; i++) {
		link_node(&t->w, 0, i);
		t->w.nodes[i].elf_len = 1 << 20;
	}
	assert_int_equal(list(t), 1);
	assert_int_equal(printed(t), 16);
	/* Two lists: twice as many, by turns. */
	t->g = (struct foreign_gdb){ .heads = { HEADS_AT, HEADS_AT + sizeof(struct descriptor) },
				     .nr_heads = 2 };
	t->w.heads[1] = (struct descriptor){ 1, 1, node_at(8), node_at(8) };
	assert_int_equal(list(t), 1);
	assert_int_equal(nr_entries(t), NR_NODES + 9);
	assert_int_equal(printed(t), 16);
	assert_true(entry(t, 0)->print && !entry(t, 16)->print);
	t->w.heads[0].action = 0;
	assert_int_equal(list(t), 1);
	assert_true(entry(t, 16)->print && !entry(t, 10)->print);
}

/*
 * As malloc puts them: an entry, and its file behind it, one after the other, with a hole where
 * nothing can be read. HEAP_AT lies within a page, as the last file ends within one.
 */
enum { NR_NEAR = 10000, NEAR = 200, HOLE = 700 };
#define HEAP_AT 0x7f0000000090ull
#define GAP	0x5000000ull

static uint8_t heap[NR_NEAR * NEAR];

static uint64_t near_at(unsigned int i)
{
	return HEAP_AT + i * NEAR + (i >= HOLE ? GAP : 0);
}

/* What can be read from @addr on, up to the hole or the end. */
static ssize_t read_heap(void *ctx, uint64_t addr, void *to, size_t len)
{
	bool behind = addr >= near_at(HOLE);
	uint64_t from = behind ? near_at(HOLE) : HEAP_AT, at;
	size_t base = behind ? HOLE * NEAR : 0, end = behind ? sizeof(heap) : HOLE * NEAR;
	struct world *w = ctx;

	if (addr < HEAP_AT - WIRE_PAGE)
		return world_read(ctx, addr, to, len);
	w->nr_reads++;
	at = addr - from;
	/* A mapping is of whole pages: zeros stand before it. */
	if (addr < from && from - addr < WIRE_PAGE && addr % WIRE_PAGE == 0) {
		memset(to, 0, (size_t)(from - addr));
		memcpy((uint8_t *)to + (from - addr), heap + base, len - (size_t)(from - addr));
		return (ssize_t)len;
	}
	if (addr < from || at >= end - base)
		return -EFAULT;
	len = len < end - base - at ? len : end - base - (size_t)at;
	memcpy(to, heap + base + at, len);
	return (ssize_t)len;
}

static ssize_t read_heap_exactly(void *ctx, uint64_t addr, void *to, size_t len)
{
	return len > WIRE_PAGE && addr >= HEAP_AT - WIRE_PAGE ? -EFAULT
							      : read_heap(ctx, addr, to, len);
}

/* Thousands of entries take few readings, and are what they are by themselves. */
static void test_near(void **state)
{
	struct trial *t = *state;
	struct base_buf exact = { 0 };
	unsigned int nr_exact;

	for (unsigned int i = 0; i < NR_NEAR; i++) {
		struct node node = { .next = i ? near_at(i - 1) : 0,
				     .elf_addr = near_at(i) + sizeof(node),
				     .elf_len = 100 + i % 60 };

		/* That file ends in the hole. */
		if (i == HOLE - 1)
			node.elf_len = NEAR;
		memset(heap + i * NEAR, (int)(i % 251) + 1, NEAR);
		memcpy(heap + i * NEAR, &node, sizeof(node));
	}
	t->w.heads[0] = (struct descriptor){ 1, 1, near_at(NR_NEAR - 1), near_at(NR_NEAR - 1) };
	t->memory.read = read_heap_exactly;
	assert_int_equal(list(t), 1);
	nr_exact = t->w.nr_reads;
	assert_int_equal(nr_entries(t), NR_NEAR);
	assert_int_equal(printed(t), NR_NEAR);
	assert_int_equal(entry(t, HOLE - 1)->print, 1);
	assert_int_equal(base_buf_append(&exact, t->out.data, t->out.len), 0);
	t->g.state = 0;
	t->memory.read = read_heap;
	t->w.nr_reads = 0;
	assert_int_equal(list(t), 1);
	assert_int_equal(t->out.len, exact.len);
	assert_memory_equal(t->out.data, exact.data, exact.len);
	/* By the page only where a mapping begins. */
	assert_in_range(t->w.nr_reads, 2 * sizeof(heap) / 65536, 200);
	assert_true(nr_exact > NR_NEAR);
	base_buf_release(&exact);
}

/* ---- objects --------------------------------------------------------------------------------- */

static struct foreign_gdb_entry place(struct trial *t, const struct small_elf *e)
{
	t->w.heads[0].first = 0;
	link_node(&t->w, 0, 0);
	t->w.nodes[0].elf_len = sizeof(*e);
	memcpy(t->w.files[0], e, sizeof(*e));
	assert_int_equal(list(t), 1);
	base_buf_clear(&t->out);
	return (struct foreign_gdb_entry){ node_at(0), FILES_AT, sizeof(*e), 0 };
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
	fail_msg("no such routine");
	return v;
}

static void test_object(void **state)
{
	struct trial *t = *state;
	struct foreign_gdb_entry e;
	struct small_elf elf;
	uint64_t print;

	small_elf(&elf);
	e = place(t, &elf);
	assert_int_equal(foreign_gdb_object(&t->memory, EM_X86_64, 9, &e, &t->out), 0);
	assert_int_equal(nth(&t->out, 0).rec->addr, SMALL_VADDR);
	assert_memory_equal(nth(&t->out, 0).name, "alpha", 5);
	assert_int_equal(nth(&t->out, 2).rec->seq, 9);
	/* What a list says of the same file. */
	print = e.print;
	base_buf_clear(&t->out);
	t->g.state = 0;
	assert_int_equal(list(t), 1);
	assert_int_equal(entry(t, 0)->print, print);
}

/* As LLVM makes them: symbols count from their section, and only what is loaded has an address. */
static void test_relocatable(void **state)
{
	struct trial *t = *state;
	struct foreign_gdb_entry e;
	struct small_elf elf;

	small_elf(&elf);
	elf.header.e_type = ET_REL;
	for (int i = 1; i < SMALL_NR_SYMBOLS; i++)
		elf.symbol[i].st_value -= SMALL_VADDR;
	e = place(t, &elf);
	assert_int_equal(foreign_gdb_object(&t->memory, EM_X86_64, 9, &e, &t->out), 0);
	assert_int_equal(nth(&t->out, 1).rec->addr, SMALL_VADDR + 32);
	base_buf_clear(&t->out);
	elf.section[SMALL_TEXT].sh_addr = 0;
	e = place(t, &elf);
	assert_int_equal(foreign_gdb_object(&t->memory, EM_X86_64, 9, &e, &t->out), 0);
	assert_int_equal(t->out.len, 0);
}

/* One symbol without a length, over a section that has no bytes in the file. */
static void test_whole_buffer(void **state)
{
	struct trial *t = *state;
	struct foreign_gdb_entry e;
	struct small_elf elf;

	small_elf(&elf);
	elf.section[SMALL_TEXT].sh_type = SHT_NOBITS;
	elf.section[SMALL_TEXT].sh_addr = FILES_AT;
	elf.section[SMALL_TEXT].sh_size = FILE_ROOM;
	elf.section[SMALL_SYMTAB].sh_size = 2 * sizeof(Elf64_Sym);
	elf.symbol[1].st_value = FILES_AT;
	elf.symbol[1].st_size = 0;
	e = place(t, &elf);
	assert_int_equal(foreign_gdb_object(&t->memory, EM_X86_64, 9, &e, &t->out), 0);
	assert_int_equal(nth(&t->out, 0).rec->addr, FILES_AT);
	assert_int_equal(nth(&t->out, 0).rec->code_len, FILE_ROOM);
	assert_memory_equal(nth(&t->out, 0).code, t->w.files[0], FILE_ROOM);
}

static void test_no_object(void **state)
{
	struct trial *t = *state;
	struct foreign_gdb_entry e;
	struct small_elf elf;

	small_elf(&elf);
	e = place(t, &elf);
	assert_int_equal(foreign_gdb_object(&t->memory, EM_RISCV, 9, &e, &t->out), -DCPI_EFORMAT);
	t->w.files[0][0] = 'M';
	assert_int_equal(foreign_gdb_object(&t->memory, EM_X86_64, 9, &e, &t->out), -DCPI_EFORMAT);
	assert_true(e.print);
	t->w.nodes[0].elf_len = e.elf_len = 7;
	assert_int_equal(foreign_gdb_object(&t->memory, EM_X86_64, 9, &e, &t->out), -DCPI_EFORMAT);
	t->w.nodes[0].elf_len = e.elf_len = FOREIGN_GDB_ELF_MAX + 1ull;
	assert_int_equal(foreign_gdb_object(&t->memory, EM_X86_64, 9, &e, &t->out), -DCPI_EFORMAT);
	/* It is another one by now, or cannot be read. */
	e.elf_len = sizeof(elf);
	assert_int_equal(foreign_gdb_object(&t->memory, EM_X86_64, 9, &e, &t->out), -EAGAIN);
	t->w.nodes[0].elf_len = e.elf_len;
	t->w.nodes[0].elf_addr = e.elf_addr = 0x666000;
	assert_int_equal(foreign_gdb_object(&t->memory, EM_X86_64, 9, &e, &t->out), -EAGAIN);
	assert_int_equal(t->out.len, 0);
}

/* ---- the symbol ------------------------------------------------------------------------------ */

extern struct descriptor __jit_debug_descriptor;
struct descriptor __jit_debug_descriptor = { .version = 1 };

static void own_code(void)
{
}

/* In which line of our maps that is, and from where in its file. */
static uint64_t find_map(uint64_t addr, uint64_t *file_off)
{
	unsigned long long start, end, off;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4096];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx %*s %llx", &start, &end, &off) == 3 && addr >= start &&
		    addr < end)
			break;
	fclose(f);
	*file_off = off;
	return start;
}

static void test_own(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t value = 0, bias = 1, file_off;
	uint64_t start = find_map((uintptr_t)own_code, &file_off);

	(void)state;
	assert_true(fd >= 0);
	own_code();
	assert_int_equal(foreign_gdb_symbol(fd, MACHINE, UINT64_MAX, &value), 1);
	assert_int_equal(foreign_gdb_bias(fd, start, file_off, &bias), 0);
	assert_int_equal(value + bias, (uintptr_t)&__jit_debug_descriptor);
	assert_int_equal(foreign_gdb_bias(fd, start, 1ull << 40, &bias), -DCPI_EFORMAT);
	assert_int_equal(foreign_gdb_symbol(fd, EM_RISCV, UINT64_MAX, &value), 0);
	assert_int_equal(foreign_gdb_symbol(fd, MACHINE, 0, &value), -ETIMEDOUT);
	close(fd);
}

struct file {
	struct small_elf elf;
	int fd;
};

/* The name is the tail of another's. */
static void file_make(struct file *f)
{
	char name[] = "/tmp/dcpi-unit-XXXXXX";

	small_elf(&f->elf);
	strcpy(f->elf.names + 30, "x__jit_debug_descriptor");
	f->elf.symbol[5].st_name = 31;
	f->fd = mkostemp(name, O_CLOEXEC);
	assert_true(f->fd >= 0);
	unlink(name);
}

static int file_ask(const struct file *f, size_t len)
{
	uint64_t value = 0;
	int r;

	assert_int_equal(ftruncate(f->fd, 0), 0);
	assert_int_equal(pwrite(f->fd, &f->elf, len, 0), len);
	r = foreign_gdb_symbol(f->fd, EM_X86_64, UINT64_MAX, &value);
	assert_true(r != 1 || value == f->elf.symbol[5].st_value);
	return r;
}

static void test_small_file(void **state)
{
	struct file f;

	(void)state;
	file_make(&f);
	assert_int_equal(file_ask(&f, sizeof(f.elf)), 1);
	f.elf.section[SMALL_SYMTAB].sh_type = SHT_DYNSYM;
	assert_int_equal(file_ask(&f, sizeof(f.elf)), 1);
	f.elf.symbol[5].st_shndx = SHN_UNDEF;
	assert_int_equal(file_ask(&f, sizeof(f.elf)), 0);
	f.elf.symbol[5].st_shndx = SMALL_TEXT;
	f.elf.symbol[5].st_name = 30;
	assert_int_equal(file_ask(&f, sizeof(f.elf)), 0);
	close(f.fd);
}

static void test_cut_file(void **state)
{
	struct file f;

	(void)state;
	file_make(&f);
	/* The text, at its end, is not needed. */
	for (size_t len = 0; len < offsetof(struct small_elf, section_names); len++)
		assert_int_equal(file_ask(&f, len), 0);
	close(f.fd);
}

static void test_hostile_file(void **state)
{
	struct file f;

	(void)state;
	file_make(&f);
#define TRY(change, want)                                                                          \
	do {                                                                                       \
		struct small_elf good = f.elf;                                                     \
                                                                                                   \
		change;                                                                            \
		assert_int_equal(file_ask(&f, sizeof(f.elf)), want);                               \
		f.elf = good;                                                                      \
	} while (0)
	TRY(f.elf.header.e_ident[EI_CLASS] = ELFCLASS32, 0);
	TRY(f.elf.header.e_ident[EI_DATA] = ELFDATA2MSB, 0);
	TRY(f.elf.header.e_machine = EM_AARCH64, 0);
	TRY(f.elf.header.e_shnum = 0, 0);
	TRY(f.elf.header.e_shnum = 0xffff, 0);
	TRY(f.elf.header.e_shentsize = 8, 0);
	TRY(f.elf.header.e_shoff = UINT64_MAX, 0);
	TRY(f.elf.section[SMALL_SYMTAB].sh_link = 0xffff, 0);
	TRY(f.elf.section[SMALL_SYMTAB].sh_link = SMALL_SYMTAB, 0);
	TRY(f.elf.section[SMALL_SYMTAB].sh_entsize = 0, 0);
	TRY(f.elf.section[SMALL_SYMTAB].sh_size = UINT64_MAX, 0);
	TRY(f.elf.section[SMALL_SYMTAB].sh_offset = UINT64_MAX - 100, 0);
	TRY(f.elf.section[SMALL_SYMTAB].sh_size -= 1, 0);
	TRY(f.elf.section[SMALL_STRTAB].sh_size = UINT64_MAX, 0);
	TRY(f.elf.section[SMALL_STRTAB].sh_size = 31 + 22, 0);
	TRY(f.elf.section[SMALL_STRTAB].sh_size = 31 + 23, 1);
	TRY(f.elf.symbol[5].st_value = 0, 0);
	TRY(f.elf.symbol[5].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0);
	TRY(f.elf.symbol[5].st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), 1);
#undef TRY
	close(f.fd);
}

/* Over the edge of what is read at once, with whole megabytes of other names before it. */
static void test_large_strings(void **state)
{
	struct file f;

	(void)state;
	file_make(&f);
	f.elf.section[SMALL_STRTAB].sh_offset = sizeof(f.elf);
	f.elf.section[SMALL_STRTAB].sh_size = 1 << 20;
	for (uint32_t at = (240 << 10) - 25; at < (240 << 10) + 2; at++) {
		f.elf.symbol[5].st_name = at;
		file_ask(&f, sizeof(f.elf));
		assert_int_equal(ftruncate(f.fd, sizeof(f.elf) + (1 << 20)), 0);
		assert_int_equal(
			pwrite(f.fd, "__jit_debug_descriptor", 23, (off_t)(sizeof(f.elf) + at)),
			23);
		uint64_t value;

		assert_int_equal(foreign_gdb_symbol(f.fd, EM_X86_64, UINT64_MAX, &value), 1);
		assert_int_equal(value, f.elf.symbol[5].st_value);
	}
	close(f.fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_list),
		TEST(test_order),
		TEST(test_same_place),
		TEST(test_two_heads),
		TEST(test_loops),
		TEST(test_lies),
		TEST(test_torn),
		TEST(test_endless),
		TEST(test_prints),
		TEST(test_near),
		TEST(test_object),
		TEST(test_relocatable),
		TEST(test_whole_buffer),
		TEST(test_no_object),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_small_file),
		cmocka_unit_test(test_cut_file),
		cmocka_unit_test(test_hostile_file),
		cmocka_unit_test(test_large_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
