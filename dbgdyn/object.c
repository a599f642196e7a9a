/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Read an ELF file in memory only as far as needed to find its executable sections. The layouts are
 * those of the System V ABI, ELF-64 object file format.
 */
#include "dbgdyn_internal.h"

struct elf_header {
	uint8_t ident[16];
	uint16_t type, machine;
	uint32_t version;
	uint64_t entry, segments_off, sections_off;
	uint32_t flags;
	uint16_t header_len, segment_len, nr_segments, section_len, nr_sections, names_index;
};
static_assert(sizeof(struct elf_header) == 64, "ELF-64 header");

struct elf_section {
	uint32_t name, type;
	uint64_t flags, addr, off, len;
	uint32_t link, info;
	uint64_t align, entry_len;
};
static_assert(sizeof(struct elf_section) == 64, "ELF-64 section header");

#define CLASS_64    2
#define DATA_LITTLE 1
#define SHT_NOBITS_ 8u
#define SHF_ALLOC_  2u
#define SHF_EXEC_   4u

static bool header_good(const struct elf_header *h, size_t elf_len)
{
	return memcmp(h->ident, "\177ELF", 4) == 0 && h->ident[4] == CLASS_64 &&
	       h->ident[5] == DATA_LITTLE && h->machine == DBGDYN_MACHINE && h->sections_off &&
	       h->section_len >= sizeof(struct elf_section) && h->sections_off <= elf_len;
}

/* More than 65,279 sections are counted in the first one. */
static uint64_t nr_sections(const struct elf_header *h, const uint8_t *table, size_t table_len)
{
	struct elf_section first;

	if (h->nr_sections || table_len < sizeof(first))
		return h->nr_sections;
	memcpy(&first, table, sizeof(first));
	return first.len;
}

struct span {
	uint64_t addr, end;
};

static bool span_take(struct span *span, const struct elf_section *sec, uint64_t bias)
{
	uint64_t addr = sec->addr + bias, end = addr + sec->len;

	if ((sec->flags & (SHF_ALLOC_ | SHF_EXEC_)) != (SHF_ALLOC_ | SHF_EXEC_) || !sec->len ||
	    sec->type == SHT_NOBITS_)
		return true;
	if (end <= addr)
		return false;
	if (!span->end || addr < span->addr)
		span->addr = addr;
	if (end > span->end)
		span->end = end;
	return true;
}

/* Where its code stands; false where there is none, or the file makes no sense. */
static bool code_find(const uint8_t *elf, size_t elf_len, uint64_t bias, struct span *span)
{
	struct elf_header h;
	struct elf_section sec;
	uint64_t nr;

	*span = (struct span){ 0 };
	if (elf_len < sizeof(h))
		return false;
	memcpy(&h, elf, sizeof(h));
	if (!header_good(&h, elf_len))
		return false;
	elf += h.sections_off;
	elf_len -= h.sections_off;
	nr = nr_sections(&h, elf, elf_len);
	if (nr > elf_len / h.section_len)
		return false;
	for (uint64_t i = 0; i < nr; i++) {
		memcpy(&sec, elf + i * h.section_len, sizeof(sec));
		if (!span_take(span, &sec, bias))
			return false;
	}
	return span->end && span->addr && span->end - span->addr <= DBGDYN_OBJECT_MAX;
}

/* Its bytes go along where they leave the ring room for others. */
static void tell(struct dbgdyn_change *c, const struct wire_object *o)
{
	size_t elf_len = o->elf_len <= c->s->ring_len / 2 ? o->elf_len : 0;
	size_t len = (sizeof(*o) + elf_len + 7) & ~(size_t)7;
	struct wire_object *rec = dbgdyn_change_reserve(c, len);

	if (!rec && elf_len) {
		elf_len = 0;
		len = sizeof(*o);
		rec = dbgdyn_change_reserve(c, len);
	}
	if (!rec)
		return;
	memset((uint8_t *)rec + len - 8, 0, 8); /* padding */
	*rec = *o;
	rec->head.len = (uint32_t)len;
	if (elf_len)
		rec->head.flags |= WIRE_ROUTINE_CODE;
	memcpy(rec + 1, (const void *)(uintptr_t)o->elf_addr, elf_len);
	dbgdyn_change_tell(c, len);
}

/* A slot is being written, where there is room: with @copy it gets the file's bytes, which are read
 * there from now on. */
static struct dbgdyn_node *list_begin(struct dbgdyn_state *s, struct wire_object *o, bool copy,
				      struct wire_object **slot)
{
	struct dbgdyn_node *n = dbgdyn_heap_take(s, sizeof(*o) + (copy ? o->elf_len : 0));

	if (!n)
		return NULL;
	*slot = dbgdyn_slot_begin(s, n);
	if (copy) {
		memcpy(*slot + 1, (const void *)(uintptr_t)o->elf_addr, o->elf_len);
		o->elf_addr = (uintptr_t)(*slot + 1);
	}
	return n;
}

static void list_end(struct dbgdyn_change *c, struct dbgdyn_node *n, const struct wire_object *o,
		     struct wire_object *slot)
{
	if (!n) {
		c->s->nr_unlisted++;
		return;
	}
	*slot = *o;
	dbgdyn_slot_end(c->s, n);
	n->addr = o->addr;
	n->code_len = (uint32_t)o->code_len;
	n->seq = n->born = c->seq;
	n->facility = (uint16_t)c->facility;
	n->type = WIRE_OBJECT;
	dbgdyn_live_add(c->s, n);
}

struct object {
	const void *elf;
	size_t elf_len;
	uint64_t bias;
	bool copy; /* is kept, so that the caller need not */
};

/* 1 where a doorbell is due. */
static int object_put(struct dbgdyn_state *s, uint32_t facility, const struct object *from,
		      dbgdyn_handle *handle)
{
	struct wire_object o = { .head = { sizeof(o), WIRE_OBJECT, 0 },
				 .facility = facility,
				 .elf_addr = (uintptr_t)from->elf,
				 .elf_len = from->elf_len,
				 .bias = from->bias };
	struct wire_object *slot = NULL;
	struct dbgdyn_change c;
	struct dbgdyn_node *n;
	uint32_t replaced;
	struct span code;
	int result;

	if (!dbgdyn_range_good(from->elf, from->elf_len) ||
	    !code_find(from->elf, from->elf_len, from->bias, &code))
		return DBGDYN_EINVAL;
	result = dbgdyn_change_begin(&c, s, facility);
	if (result < 0)
		return result;
	n = list_begin(s, &o, from->copy, &slot);
	if (!n && from->copy) {
		dbgdyn_unlock(s);
		return dbgdyn_dropped(s);
	}
	dbgdyn_change_number(&c);
	o.seq = c.seq;
	o.addr = code.addr;
	o.code_len = code.end - code.addr;
	replaced = dbgdyn_live_take(s, o.addr, o.code_len);
	if (dbgdyn_used_mark(s, o.addr, o.code_len))
		o.head.flags = WIRE_ROUTINE_REUSES;
	c.bell = dbgdyn_arena_tell(s, facility, o.addr, o.code_len) && c.asked;
	tell(&c, &o);
	dbgdyn_change_close(&c, replaced);
	list_end(&c, n, &o, slot);
	if (o.head.flags)
		dbgdyn_words_move(s, o.addr, o.code_len, c.seq);
	if (handle)
		handle->id = n || c.announced ? dbgdyn_handle_make(s, n, c.seq) : 0;
	result = dbgdyn_change_commit(&c);
	return n || c.announced ? result : dbgdyn_dropped(s);
}

static int register_object(dbgdyn_context context, const struct object *object,
			   dbgdyn_handle *handle)
{
	uint32_t index;
	struct dbgdyn_state *s = dbgdyn_context_find(context.id, &index);

	return s ? dbgdyn_changed(s, object_put(s, index, object, handle)) : DBGDYN_EREFUSED;
}

int dbgdyn_register_object(dbgdyn_context context, const void *elf, size_t elf_len, uint64_t bias,
			   dbgdyn_handle *handle)
{
	const struct object object = { elf, elf_len, bias, false };

	return register_object(context, &object, handle);
}

int dbgdyn_copy_object(dbgdyn_context context, const void *elf, size_t elf_len, uint64_t bias,
		       dbgdyn_handle *handle)
{
	const struct object object = { elf, elf_len, bias, true };

	return register_object(context, &object, handle);
}
