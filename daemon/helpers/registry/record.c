/* SPDX-License-Identifier: BSD-2-Clause */
/* One record of a client is checked and becomes a normalized record. */
#include <errno.h>

#include "foreign.h"
#include "registry_internal.h"

enum { WORDS_READ = 512 };

bool registry_parse_full(const struct parse *p)
{
	return p->late || p->out->len >= REGISTRY_ANSWER_SOFT;
}

void registry_parse_clock(struct parse *p)
{
	p->late |= base_now_ns() >= p->deadline_ns;
}

bool registry_facility_usable(const struct parse *p, uint32_t facility)
{
	return facility < WIRE_NR_FACILITIES && p->state[facility] != WIRE_FACILITY_FREE;
}

int registry_record_new(struct base_buf *out, uint16_t type, size_t len, void *record)
{
	struct wire_head *h;
	int r;

	len = base_align_up(len, 8);
	r = base_buf_extend(out, len, record);
	if (r < 0)
		return r;
	memcpy(&h, record, sizeof(h));
	h->len = (uint32_t)len;
	h->type = type;
	return 0;
}

static int bad(struct parse *p)
{
	p->nr_bad++;
	return 0;
}

static bool read_memory(struct parse *p, uint64_t addr, void *to, size_t len)
{
	ssize_t n = p->memory->read(p->memory->ctx, addr, to, len);

	registry_parse_clock(p);
	return n == (ssize_t)len;
}

/* Whole pages: who lives in one is mostly told together, and to read more might have to wait. */
static bool fetch(struct parse *p, uint64_t addr, void *to, size_t len)
{
	uint64_t page = addr & ~(uint64_t)(WIRE_PAGE - 1), off = addr - page;

	if (!p->memory)
		return false;
	if (len > WIRE_PAGE - off)
		return read_memory(p, addr, to, len);
	if (!p->has_page || p->page_addr != page) {
		p->has_page = read_memory(p, page, p->page, WIRE_PAGE);
		p->page_addr = page;
	}
	if (!p->has_page)
		return read_memory(p, addr, to, len);
	memcpy(to, p->page + off, len);
	return true;
}

/*
 * Did nobody end in the blocks of [addr, addr + len) since change @seq? Whoever ends moves the
 * words before others get the room. Others of the same blocks move them too, so true is certain,
 * false is not.
 */
static bool is_untouched(const struct parse *p, uint64_t addr, uint64_t len, uint64_t seq)
{
	uint64_t block = addr >> WIRE_BLOCK_SHIFT;
	uint64_t nr = ((addr + len - 1) >> WIRE_BLOCK_SHIFT) - block + 1, now;
	uint32_t words[WORDS_READ];

	if (!p->h.nr_words)
		return base_read_at(p->fd, offsetof(struct wire_registry, seq), &now,
				    sizeof(now)) == 0 &&
		       now <= seq;
	for (uint64_t n; nr; block += n, nr -= n) {
		uint64_t first = block & (p->h.nr_words - 1);

		n = p->h.nr_words - first < nr ? p->h.nr_words - first : nr;
		n = n < WORDS_READ ? n : WORDS_READ;
		if (base_read_at(p->fd, p->h.words_off + first * sizeof(*words), words,
				 n * sizeof(*words)) < 0)
			return false;
		for (uint64_t i = 0; i < n; i++)
			if (words[i] && (int32_t)(words[i] - (uint32_t)seq) > 0)
				return false;
	}
	return true;
}

/* ---- routines and moves -------------------------------------------------------------------- */

/* A record that came without code, and with. */
struct codeless {
	const struct wire_head *head;
	size_t len;	 /* with it */
	size_t code_off; /* from its start */
	uint64_t addr, seq;
	size_t code_len;
};

/*
 * With its code, read from the process. -ENODATA: that cannot be read, or may be another's (what
 * the list has is looked at a second time instead).
 */
static int put_fetched(struct parse *p, const struct codeless *c)
{
	const struct wire_head *from = c->head;
	size_t code_off = c->code_off;

	size_t mark = p->out->len, rest_off = base_align_up(code_off, 8), rest;
	struct wire_head *rec;
	uint8_t *to;
	int r;

	if (!c->len || !p->memory || p->is_known)
		return -ENODATA;
	r = registry_record_new(p->out, from->type, c->len, &rec);
	if (r < 0)
		return r;
	to = (uint8_t *)rec;
	if (!fetch(p, c->addr, to + code_off, c->code_len) ||
	    (!(from->flags & WIRE_ROUTINE_LISTED) &&
	     !is_untouched(p, c->addr, c->code_len, c->seq))) {
		p->out->len = mark;
		return -ENODATA;
	}
	memcpy(to + sizeof(*rec), from + 1, code_off - sizeof(*rec));
	rec->flags = from->flags | WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED;
	/* Its lines, frames and so on, which begin on a multiple of 8 in either. */
	code_off = base_align_up(code_off + c->code_len, 8);
	rest = rec->len - code_off;
	memcpy(to + code_off, (const uint8_t *)from + rest_off,
	       rest < from->len - rest_off ? rest : from->len - rest_off);
	return 0;
}

static int put_routine(struct parse *p, const struct wire_head *head)
{
	struct wire_routine_view v;
	int r = -ENODATA;

	if (wire_routine_parse(head, &v) < 0 || !registry_facility_usable(p, v.rec->facility) ||
	    !registry_vaddr_good(v.rec->addr, v.rec->code_len))
		return bad(p);
	if (!v.code) {
		struct codeless c = { .head = head,
				      .code_off = sizeof(*v.rec) + v.rec->name_len,
				      .addr = v.rec->addr,
				      .seq = v.rec->seq,
				      .code_len = v.rec->code_len };

		c.len = wire_routine_len(v.rec->name_len, v.rec->code_len, true, v.rec->nr_lines,
					 v.rec->nr_inlines, v.files_len);
		c.len = wire_routine_frames_len(c.len, v.nr_frames);
		r = put_fetched(p, &c);
	}
	return r == -ENODATA ? base_buf_append(p->out, head, head->len) : r;
}

static int put_move(struct parse *p, const struct wire_head *head)
{
	const struct wire_move *m = (const void *)head;
	int r = -ENODATA;

	if (wire_check(head) < 0 || !m->handle || !registry_facility_usable(p, m->facility) ||
	    !registry_vaddr_good(m->from, m->code_len) || !registry_vaddr_good(m->to, m->code_len))
		return bad(p);
	if (!(head->flags & WIRE_ROUTINE_CODE))
		r = put_fetched(p, &(struct codeless){ .head = head,
						       .len = sizeof(*m) + m->code_len,
						       .code_off = sizeof(*m),
						       .addr = m->to,
						       .seq = m->seq,
						       .code_len = m->code_len });
	return r == -ENODATA ? base_buf_append(p->out, head, head->len) : r;
}

static int put_retire(struct parse *p, const struct wire_head *head)
{
	const struct wire_retire *rt = (const void *)head;

	if (wire_check(head) < 0 || !registry_facility_usable(p, rt->facility) ||
	    ((!rt->handle || rt->code_len) && !registry_vaddr_good(rt->addr, rt->code_len)))
		return bad(p);
	return base_buf_append(p->out, head, head->len);
}

/* ---- objects --------------------------------------------------------------------------------- */

struct object_memory {
	struct parse *p;
	const struct wire_object *object;
	bool is_listed;
};

static ssize_t read_for_foreign(void *ctx, uint64_t addr, void *to, size_t len)
{
	const struct object_memory *m = ctx;

	return fetch(m->p, addr, to, len) &&
			       (m->is_listed || is_untouched(m->p, addr, len, m->object->seq))
		       ? (ssize_t)len
		       : -EFAULT;
}

static int put_parts(struct parse *p, const struct wire_object *o, const void *elf, uint16_t flags)
{
	struct object_memory memory = { p, o, flags & WIRE_ROUTINE_LISTED };
	struct foreign_object object = { .rec = o,
					 .elf = elf,
					 .machine = p->h.machine,
					 .flags = flags,
					 .read = p->memory ? read_for_foreign : NULL,
					 .ctx = &memory,
					 .deadline_ns = base_now_ns() + FOREIGN_DWARF_NS };
	int r = foreign_elf_object(&object, p->out);

	registry_parse_clock(p);
	if (r == -DCPI_EFORMAT || r == -DCPI_ELIMIT)
		return bad(p);
	return r < 0 ? r : 0;
}

static int put_object(struct parse *p, const struct wire_head *head)
{
	const struct wire_object *o = (const void *)head;
	struct base_buf file = { 0 };
	struct wire_object *rec;
	int r;

	if (wire_check(head) < 0 || !registry_facility_usable(p, o->facility) ||
	    !registry_vaddr_good(o->addr, o->code_len) ||
	    !registry_vaddr_good(o->elf_addr, o->elf_len))
		return bad(p);
	r = registry_record_new(p->out, WIRE_OBJECT, sizeof(*rec), &rec);
	if (r < 0)
		return r;
	memcpy(&rec->head + 1, &o->head + 1, sizeof(*rec) - sizeof(rec->head));
	rec->head.flags = head->flags & ~WIRE_ROUTINE_CODE;
	if (head->flags & WIRE_ROUTINE_CODE)
		return put_parts(p, o, o + 1, rec->head.flags);
	if (!p->memory)
		return 0;
	if (o->elf_len > WIRE_RECORD_MAX)
		return bad(p);
	r = base_buf_extend(&file, o->elf_len, NULL);
	if (r == 0 && fetch(p, o->elf_addr, file.data, o->elf_len))
		r = put_parts(p, o, file.data, rec->head.flags);
	base_buf_release(&file);
	return r;
}

int registry_time_put(struct parse *p, uint64_t time_ns)
{
	struct wire_time *rec;
	int r;

	if (time_ns == p->time_ns)
		return 0;
	r = registry_record_new(p->out, WIRE_TIME, sizeof(*rec), &rec);
	if (r < 0)
		return r;
	rec->time_ns = p->time_ns = time_ns;
	return 0;
}

/* ---- any record ---------------------------------------------------------------------------- */

int registry_record_put(struct parse *p, struct wire_head *head, uint16_t flags)
{
	uint16_t announced = head->flags & (WIRE_ROUTINE_CODE | WIRE_ROUTINE_REUSES);

	switch (head->type) {
	case WIRE_ROUTINE:
		head->flags = announced | flags | (head->flags & WIRE_ROUTINE_FRAMES);
		return put_routine(p, head);
	case WIRE_MOVE:
		head->flags = announced | flags;
		return put_move(p, head);
	case WIRE_OBJECT:
		head->flags = announced | flags;
		return put_object(p, head);
	case WIRE_RETIRE:
		head->flags = flags;
		return put_retire(p, head);
	case WIRE_FACILITY:
	case WIRE_RANGE:
	case WIRE_BYTES:
	case WIRE_IMAGE:
	case WIRE_RUN:
	case WIRE_REPLACES:
	case WIRE_LISTED:
	case WIRE_PLACE:
	case WIRE_INSTANCE:
	case WIRE_TIME:
		/* Only the reader and the daemon say these. */
		return bad(p);
	default:
		return 0; /* padding, or of a later version */
	}
}
