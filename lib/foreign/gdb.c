/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list is read while its process changes it, with nothing held: what it begins with is looked
 * at before and after, and whoever asks comes again.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "foreign.h"

#define VADDR_MAX (1ull << 56)

enum {
	VERSION = 1,
	ACTION_REGISTER = 1,
	PRINT_PART = 128 << 10, /* length of the part at either end */
	PRINTS_LEN = 4 << 20,	/* limit for all prints of one call */
	PAGE = 4096,
	TRACE_LEN = 64 << 10,
};

/* As they stand in the process. */
struct descriptor {
	uint32_t version, action;
	uint64_t relevant, first;
};

struct node {
	uint64_t next, prev, elf_addr, elf_len;
};

/*
 * Entries, and small files, of a runtime mostly lie near each other: what stood around the last one
 * was read with it.
 */
struct trace {
	const struct foreign_memory *m;
	uint64_t addr;
	size_t len;
	uint8_t bytes[TRACE_LEN];
};

struct prints {
	struct trace trace;
	uint8_t buf[2 * PRINT_PART];
	size_t left;
};

static bool read_all(const struct foreign_memory *m, uint64_t addr, void *to, size_t len)
{
	return addr && addr < VADDR_MAX && len <= VADDR_MAX - addr &&
	       m->read(m->ctx, addr, to, len) == (ssize_t)len;
}

static bool is_in(const struct trace *w, uint64_t addr, size_t len)
{
	return addr >= w->addr && addr - w->addr <= w->len && len <= w->len - (addr - w->addr);
}

static void fill(struct trace *w, uint64_t addr)
{
	ssize_t n = addr < VADDR_MAX ? w->m->read(w->m->ctx, addr, w->bytes, TRACE_LEN) : -1;

	w->addr = addr;
	w->len = n > 0 ? (size_t)n : 0;
}

/* From the newest entry to the oldest addresses mostly fall. */
static bool read_near(struct trace *w, uint64_t addr, void *to, size_t len)
{
	uint64_t page = addr & ~(uint64_t)(PAGE - 1);
	bool falls = w->len && addr < w->addr && page > TRACE_LEN;

	if (!is_in(w, addr, len) && falls)
		fill(w, page + PAGE - TRACE_LEN);
	if (!is_in(w, addr, len))
		fill(w, page);
	if (!is_in(w, addr, len))
		return read_all(w->m, addr, to, len);
	memcpy(to, w->bytes + (addr - w->addr), len);
	return true;
}

/* ---- prints ---------------------------------------------------------------------------------- */

static size_t print_len(uint64_t elf_len)
{
	return elf_len < 2 * PRINT_PART ? (size_t)elf_len : 2 * PRINT_PART;
}

/* An object that cannot be read always has the same print. */
static uint64_t print_bytes(const void *bytes, size_t len)
{
	uint64_t print = base_hash64(bytes, len);

	return print ? print : 1;
}

static uint64_t print_of(const struct foreign_memory *m, const struct node *node, uint8_t *buf)
{
	size_t len = print_len(node->elf_len), first = len == node->elf_len ? len : len / 2;

	if (!read_all(m, node->elf_addr, buf, first) ||
	    (first < len && !read_all(m, node->elf_addr + node->elf_len - (len - first),
				      buf + first, len - first)))
		return 1;
	return print_bytes(buf, len);
}

static uint64_t print_near(struct prints *p, const struct node *node)
{
	if (!node->elf_len || node->elf_len > PAGE)
		return print_of(p->trace.m, node, p->buf);
	return read_near(&p->trace, node->elf_addr, p->buf, node->elf_len)
		       ? print_bytes(p->buf, node->elf_len)
		       : 1;
}

/* The same of a copy. */
static uint64_t print_copy(const uint8_t *elf, size_t elf_len, uint8_t *buf)
{
	size_t len = print_len(elf_len), first = len / 2;

	memcpy(buf, elf, first);
	memcpy(buf + first, elf + elf_len - (len - first), len - first);
	return print_bytes(buf, len);
}

static void add_prints(struct foreign_gdb *g, struct foreign_gdb_entry *entries, size_t nr,
		       struct prints *p)
{
	size_t i = g->next < nr ? g->next : 0;

	for (size_t done = 0; done < nr && p->left; done++, i = (i + 1) % nr) {
		struct foreign_gdb_entry *e = &entries[i];
		const struct node node = { .elf_addr = e->elf_addr, .elf_len = e->elf_len };
		size_t len = print_len(e->elf_len);

		e->print = print_near(p, &node);
		p->left -= len < p->left ? len : p->left;
	}
	g->next = (uint32_t)i;
}

/* ---- the list -------------------------------------------------------------------------------- */

/*
 * A new object may stand where an older one stood, with its entry too: then only the file tells
 * them apart.
 */
static uint64_t newest_print(const struct foreign_memory *m, const struct descriptor *d,
			     struct prints *p)
{
	uint64_t addr = d->action == ACTION_REGISTER && d->relevant ? d->relevant : d->first;
	struct node node;

	return read_all(m, addr, &node, sizeof(node)) ? print_of(m, &node, p->buf) : 0;
}

struct look {
	struct descriptor heads[FOREIGN_GDB_HEADS]; /* zero: it is not there, or not begun */
	uint64_t newest[FOREIGN_GDB_HEADS];
};

static uint64_t look_at(const struct foreign_memory *m, const struct foreign_gdb *g,
			struct prints *p, struct look *look)
{
	uint64_t state;

	memset(look, 0, sizeof(*look));
	for (size_t i = 0; i < g->nr_heads && i < FOREIGN_GDB_HEADS; i++) {
		struct descriptor *d = &look->heads[i];

		if (!read_all(m, g->heads[i], d, sizeof(*d)) || d->version != VERSION)
			memset(d, 0, sizeof(*d));
		if (d->first)
			look->newest[i] = newest_print(m, d, p);
	}
	state = base_hash64(look, sizeof(*look));
	return state ? state : 1;
}

/* @mark: an entry that was met before; each power of two of them it is the next one. */
static int walk(struct trace *w, uint64_t addr, size_t *nr, struct base_buf *out)
{
	uint64_t mark = 0, met = 0;

	for (struct node node; addr; addr = node.next) {
		struct foreign_gdb_entry e;
		int r;

		if (addr == mark)
			return -DCPI_EFORMAT;
		if (!(met & (met - 1)))
			mark = addr;
		met++;
		if (*nr == FOREIGN_GDB_ENTRIES)
			return 2;
		if (!read_near(w, addr, &node, sizeof(node)))
			return -DCPI_EFORMAT;
		e = (struct foreign_gdb_entry){ addr, node.elf_addr, node.elf_len, 0 };
		r = base_buf_append(out, &e, sizeof(e));
		if (r < 0)
			return r;
		++*nr;
	}
	return 1;
}

/* Runtimes put what is new before the rest; one that puts it behind shows that in the descriptor.
 */
static void sort_by_age(const struct descriptor *d, struct foreign_gdb_entry *e, size_t nr)
{
	if (nr && d->action == ACTION_REGISTER && d->relevant == e[nr - 1].node)
		return;
	for (size_t i = 0; i < nr / 2; i++) {
		struct foreign_gdb_entry swap = e[i];

		e[i] = e[nr - 1 - i];
		e[nr - 1 - i] = swap;
	}
}

static int read_list(struct foreign_gdb *g, const struct look *look, struct prints *p,
		     struct base_buf *out)
{
	size_t from = out->len, nr = 0;
	int r = 1;

	for (size_t i = 0; r == 1 && i < FOREIGN_GDB_HEADS; i++) {
		size_t mark = out->len, before = nr;

		r = walk(&p->trace, look->heads[i].first, &nr, out);
		if (r > 0 && nr > before)
			sort_by_age(&look->heads[i],
				    (struct foreign_gdb_entry *)(void *)(out->data + mark),
				    nr - before);
	}
	if (r > 0 && nr)
		add_prints(g, (struct foreign_gdb_entry *)(void *)(out->data + from), nr, p);
	return r;
}

int foreign_gdb_list(const struct foreign_memory *memory, struct foreign_gdb *g,
		     struct base_buf *out)
{
	struct prints *p = malloc(sizeof(*p));
	struct look before, after;
	uint64_t state;
	size_t from = out->len;
	uint32_t next = g->next;
	int r = 0;

	if (!p)
		return -ENOMEM;
	p->trace.m = memory;
	p->trace.addr = p->trace.len = 0;
	p->left = PRINTS_LEN;
	state = look_at(memory, g, p, &before);
	if (state != g->state)
		r = read_list(g, &before, p, out);
	/* Torn rather than lies, where it was being changed. */
	if (r && r != -ENOMEM && look_at(memory, g, p, &after) != state)
		r = -EAGAIN;
	if (r > 0)
		g->state = state;
	if (r < 0) {
		g->next = next;
		out->len = from;
	}
	free(p);
	return r;
}

/* ---- one file -------------------------------------------------------------------------------- */

static bool is_still_there(const struct foreign_memory *m, const struct foreign_gdb_entry *e)
{
	struct node node;

	return read_all(m, e->node, &node, sizeof(node)) && node.elf_addr == e->elf_addr &&
	       node.elf_len == e->elf_len;
}

/* Only what is loaded has an address; an ELF file that is linked counts from none. */
static void extend(struct wire_object *rec, const Elf64_Shdr *sh)
{
	uint64_t end, old_end = rec->addr + rec->code_len;

	if (!(sh->sh_flags & SHF_EXECINSTR) || !sh->sh_addr || !sh->sh_size ||
	    sh->sh_addr >= VADDR_MAX || sh->sh_size > VADDR_MAX - sh->sh_addr)
		return;
	end = sh->sh_addr + sh->sh_size;
	if (!rec->code_len)
		rec->addr = old_end = sh->sh_addr;
	if (sh->sh_addr < rec->addr)
		rec->addr = sh->sh_addr;
	rec->code_len = (end > old_end ? end : old_end) - rec->addr;
}

/* Where its code is. A section header that is not there is none: the file is checked later. */
static void find_code(const uint8_t *elf, size_t len, struct wire_object *rec)
{
	Elf64_Ehdr h;

	memcpy(&h, elf, sizeof(h));
	for (size_t i = 0; i < h.e_shnum && h.e_shentsize == sizeof(Elf64_Shdr); i++) {
		uint64_t off = h.e_shoff + i * sizeof(Elf64_Shdr);
		Elf64_Shdr sh;

		if (h.e_shoff > len || off > len || len - off < sizeof(sh))
			break;
		memcpy(&sh, elf + off, sizeof(sh));
		extend(rec, &sh);
	}
}

static int put_routines(const struct foreign_memory *m, uint32_t machine, uint64_t seq,
			const struct foreign_gdb_entry *e, const uint8_t *elf, struct base_buf *out)
{
	struct wire_object rec = { .head = { .len = sizeof(rec), .type = WIRE_OBJECT },
				   .seq = seq,
				   .elf_addr = e->elf_addr,
				   .elf_len = e->elf_len };
	struct foreign_object object = { .rec = &rec,
					 .elf = elf,
					 .machine = machine,
					 .read = m->read,
					 .ctx = m->ctx,
					 .deadline_ns = base_now_ns() + FOREIGN_DWARF_NS };
	int r;

	find_code(elf, (size_t)e->elf_len, &rec);
	r = foreign_elf_object(&object, out);
	return r == -DCPI_ELIMIT ? 1 : r < 0 ? r : 0;
}

int foreign_gdb_object(const struct foreign_memory *memory, uint32_t machine, uint64_t seq,
		       struct foreign_gdb_entry *entry, struct base_buf *out)
{
	size_t from = out->len, len = (size_t)entry->elf_len;
	uint8_t *elf, *buf;
	int r = -EAGAIN;

	if (len < sizeof(Elf64_Ehdr) || len > FOREIGN_GDB_ELF_MAX)
		return is_still_there(memory, entry) ? -DCPI_EFORMAT : r;
	elf = malloc(len);
	buf = malloc(2 * PRINT_PART);
	if (!elf || !buf) {
		r = -ENOMEM;
	} else if (read_all(memory, entry->elf_addr, elf, len)) {
		entry->print = print_copy(elf, len, buf);
		r = put_routines(memory, machine, seq, entry, elf, out);
	}
	/* It may have been another's, in part. */
	if (r != -ENOMEM && !is_still_there(memory, entry))
		r = -EAGAIN;
	if (r < 0)
		out->len = from;
	free(elf);
	free(buf);
	return r;
}
