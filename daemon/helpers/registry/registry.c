/* SPDX-License-Identifier: BSD-2-Clause */
/* One poll of a registry reads its tables, its ring, and its heap where that is wanted; each record
 * of a client is checked and becomes a normalized record. */
#include <errno.h>
#include <stdlib.h>

#include "foreign.h"
#include "registry_internal.h"

enum { WORDS_READ = 512 };

/* Is the answer long enough, or has it taken long enough? What was begun is ended. */
static bool is_full(const struct parse *p)
{
	return p->late || p->out->len >= REGISTRY_ANSWER_SOFT;
}

/* To be called after what may take time. */
static void look_at_clock(struct parse *p)
{
	p->late |= base_now_ns() >= p->deadline_ns;
}

/* @p->state has it. */
static bool is_usable(const struct parse *p, uint32_t facility)
{
	return facility < WIRE_NR_FACILITIES && p->state[facility] != WIRE_FACILITY_FREE;
}

/* Append zeros for a record, rounded up to 8, with its head; *@record is where it stands. */
static int new_record(struct base_buf *out, uint16_t type, size_t len, void *record)
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

	look_at_clock(p);
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
 * True: no routine in the blocks of [addr, addr + len) has ended since change @seq. An end moves
 * the words before other routines get its place. Ends elsewhere in these blocks move them too, so
 * true is certain, false is not.
 */
static bool is_untouched(const struct parse *p, uint64_t addr, uint64_t len, uint64_t seq)
{
	uint64_t block = addr >> WIRE_BLOCK_SHIFT;
	uint64_t nr = ((addr + len - 1) >> WIRE_BLOCK_SHIFT) - block + 1, now;
	uint32_t words[WORDS_READ];

	if (!p->h.nr_words)
		return registry_counters_copy(p->fd, offsetof(struct wire_registry, seq), &now,
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

/* ---- routines and moves ---------------------------------------------------------------------- */

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
	r = new_record(p->out, from->type, c->len, &rec);
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

	if (wire_routine_parse(head, &v) < 0 || !is_usable(p, v.rec->facility) ||
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

	if (wire_check(head) < 0 || !m->handle || !is_usable(p, m->facility) ||
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

	if (wire_check(head) < 0 || !is_usable(p, rt->facility) ||
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

	look_at_clock(p);
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

	if (wire_check(head) < 0 || !is_usable(p, o->facility) ||
	    !registry_vaddr_good(o->addr, o->code_len) ||
	    !registry_vaddr_good(o->elf_addr, o->elf_len))
		return bad(p);
	r = new_record(p->out, WIRE_OBJECT, sizeof(*rec), &rec);
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

/* Records put from now on happened at @time_ns; 0: some time before now. 0 or -ENOMEM. */
static int put_time(struct parse *p, uint64_t time_ns)
{
	struct wire_time *rec;
	int r;

	if (time_ns == p->time_ns)
		return 0;
	r = new_record(p->out, WIRE_TIME, sizeof(*rec), &rec);
	if (r < 0)
		return r;
	rec->time_ns = p->time_ns = time_ns;
	return 0;
}

/*
 * Check the record at @head (a private copy, complete, 8-byte aligned, whose flags are changed) and
 * append what becomes of it. @flags: of all that is appended. 0 (also for one that is malformed,
 * which is counted), -ENOMEM.
 */
static int put_record(struct parse *p, struct wire_head *head, uint16_t flags)
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

/* ---- the ring -------------------------------------------------------------------------------- */

enum { RING_CHUNK = 1 << 20 };

/* All changes have their number at one place. */
static_assert(offsetof(struct wire_routine, seq) == offsetof(struct wire_retire, seq) &&
		      offsetof(struct wire_routine, seq) == offsetof(struct wire_move, seq) &&
		      offsetof(struct wire_routine, seq) == offsetof(struct wire_object, seq),
	      "seq of a change");

static bool is_change(const struct wire_head *head)
{
	return (head->type == WIRE_ROUTINE || head->type == WIRE_RETIRE ||
		head->type == WIRE_MOVE || head->type == WIRE_OBJECT) &&
	       head->len >= offsetof(struct wire_routine, seq) + sizeof(uint64_t);
}

/* The time of the change behind it. */
static int take_when(struct parse *p, const struct wire_head *head)
{
	if (wire_check(head) < 0)
		return bad(p);
	p->when_ns = ((const struct wire_time *)(const void *)head)->time_ns;
	return 0;
}

/* The library counts up under a lock: what goes back is none of its records. */
static int take_record(struct parse *p, struct wire_head *head, struct registry_place *place)
{
	bool change = is_change(head);
	uint64_t seq = 0, when_ns = p->when_ns;
	size_t mark;
	int r;

	if (head->type == WIRE_WHEN)
		return take_when(p, head);
	p->when_ns = 0;
	if (change)
		memcpy(&seq, (const uint8_t *)head + offsetof(struct wire_routine, seq),
		       sizeof(seq));
	if (change && seq <= place->seq)
		return bad(p);
	r = change ? put_time(p, when_ns) : 0;
	if (r < 0)
		return r;
	mark = p->out->len;
	r = put_record(p, head, 0);
	/* An object that is no ELF file is counted, but it was told. */
	if (change && p->out->len > mark)
		place->seq = seq;
	return r;
}

/*
 * Take what a private copy of @len ring bytes holds: the client may change the ring while we look.
 * Returns how far whole records reached; the length of a record that needs a larger copy goes to
 * *@need, one whose length lies gives -DCPI_EFORMAT.
 */
static ssize_t take_chunk(struct parse *p, struct registry_place *place, uint8_t *data, size_t len,
			  size_t avail, size_t *need)
{
	size_t pos = 0;

	*need = 0;
	while (len - pos >= sizeof(struct wire_head) && (p->when_ns || !is_full(p))) {
		struct wire_head *head = (void *)(data + pos);
		int r;

		if (head->len < sizeof(*head) || head->len % 8 || head->len > WIRE_RECORD_MAX ||
		    head->len > avail - pos)
			return -DCPI_EFORMAT;
		if (head->len > len - pos) {
			*need = head->len;
			break;
		}
		r = take_record(p, head, place);
		if (r < 0)
			return r;
		pos += head->len;
	}
	return (ssize_t)pos;
}

/* From @place->tail on, to the ring's end or the head; records do not wrap. */
static int take_contiguous(struct parse *p, struct registry_place *place, struct base_buf *copy,
			   size_t *want)
{
	uint64_t at = place->tail % p->h.ring_len, avail = p->h.ring_len - at;
	size_t len, need;
	ssize_t n;
	int r;

	if (avail > p->h.head - place->tail)
		avail = p->h.head - place->tail;
	len = *want < avail ? *want : (size_t)avail;
	base_buf_clear(copy);
	r = base_buf_extend(copy, len, NULL);
	if (r == 0)
		r = base_read_at(p->fd, p->h.ring_off + at, copy->data, len);
	if (r < 0)
		return r;
	p->has_page = false;
	n = take_chunk(p, place, copy->data, len, (size_t)avail, &need);
	if (n < 0)
		return (int)n;
	place->tail += (uint64_t)n;
	*want = need > RING_CHUNK ? need : RING_CHUNK;
	return 0;
}

int registry_ring_take(struct parse *p, struct registry_place *place)
{
	struct base_buf copy = { 0 };
	size_t want = RING_CHUNK;
	int r = 0;

	if (p->h.head < place->tail || p->h.head - place->tail > p->h.ring_len || p->h.head % 8 ||
	    place->tail % 8)
		r = -DCPI_EFORMAT;
	while (r == 0 && place->tail < p->h.head && !is_full(p)) {
		uint64_t before = place->tail;

		r = take_contiguous(p, place, &copy, &want);
		/* Each call moves on, or a record that needs a larger copy would never be taken. */
		if (place->tail != before)
			look_at_clock(p);
	}
	if (r == -DCPI_EFORMAT) {
		p->nr_bad++;
		place->tail = p->h.head;
		r = 0;
	}
	base_buf_release(&copy);
	return r;
}

/* ---- the heap -------------------------------------------------------------------------------- */

/* So much of the heap is looked at together, and a slot that changes meanwhile so many times. */
enum { HEAP_CHUNK = 64 << 10, TRIES = 6 };
/* No record is longer. */
#define SLOT_MAX (WIRE_RECORD_MAX + WIRE_SLOT_ALIGN)

/* A walk over slots, whose bytes are copied twice: what did not change between was not torn. */
struct heap {
	struct parse *p;
	uint64_t end; /* bytes of the heap that are used */
	struct base_buf first, again;
	uint64_t list_seq;
	uint64_t known_seq;
};

/* The record of a slot, or NULL: nothing lives there. Malformed ones are counted. */
static struct wire_head *live(struct parse *p, uint8_t *slot, uint32_t slot_len)
{
	struct wire_head *head = (void *)(slot + sizeof(struct wire_slot));

	if (head->type == WIRE_PAD)
		return NULL;
	if ((head->type == WIRE_ROUTINE || head->type == WIRE_OBJECT) &&
	    head->len >= sizeof(*head) && head->len % 8 == 0 &&
	    head->len <= slot_len - sizeof(struct wire_slot) && !(head->flags & WIRE_ROUTINE_CODE))
		return head;
	p->nr_bad++;
	return NULL;
}

static bool length_good(const struct wire_slot *slot, uint64_t left)
{
	return slot->len && slot->len % WIRE_SLOT_ALIGN == 0 && slot->len <= left &&
	       slot->len <= SLOT_MAX;
}

/* The change that a slot came with; 0: it is too short to say. */
static uint64_t seq_of(const struct wire_head *head)
{
	if (head->type == WIRE_OBJECT)
		return head->len < sizeof(struct wire_object)
			       ? 0
			       : ((const struct wire_object *)(const void *)head)->seq;
	return head->len < sizeof(struct wire_routine)
		       ? 0
		       : ((const struct wire_routine *)(const void *)head)->seq;
}

/* Append what lives in a slot of the copy, which stays as it was read. */
static int put_slot(struct heap *h, uint8_t *bytes, uint32_t len)
{
	struct wire_head *head = live(h->p, bytes, len);
	uint16_t flags;
	uint64_t seq;
	int r;

	if (!head)
		return 0;
	seq = seq_of(head);
	/* The ring tells whose place it took, after this list; or a new list is asked for. */
	if (seq > h->list_seq)
		return 0;
	flags = head->flags;
	h->p->is_known = head->type == WIRE_ROUTINE && seq && seq <= h->known_seq;
	r = put_record(h->p, head, WIRE_ROUTINE_LISTED);
	h->p->is_known = false;
	head->flags = flags;
	return r;
}

/*
 * The slots of the copy, as far as they are whole and at rest and the answer is not full. Returns
 * how many bytes that were, -EAGAIN where not even the first one is, -DCPI_EFORMAT where its length
 * lies.
 */
static ssize_t put_slots(struct heap *h, uint64_t at)
{
	size_t pos = 0;

	do {
		const struct wire_slot *slot = (const void *)(h->first.data + pos);
		int r;

		if (!length_good(slot, h->end - at - pos))
			return pos ? (ssize_t)pos : -DCPI_EFORMAT;
		if (slot->len > h->first.len - pos || slot->version % 2)
			return pos ? (ssize_t)pos : -EAGAIN;
		r = put_slot(h, h->first.data + pos, slot->len);
		if (r < 0)
			return r;
		pos += slot->len;
	} while (h->first.len - pos >= WIRE_SLOT_ALIGN && !is_full(h->p));
	return (ssize_t)pos;
}

static int copy(struct heap *h, struct base_buf *to, uint64_t at, size_t len)
{
	int r;

	base_buf_clear(to);
	r = base_buf_extend(to, len, NULL);
	return r < 0 ? r : base_read_at(h->p->fd, h->p->h.heap_off + at, to->data, len);
}

/* Bytes of whole slots that are the same in both copies. */
static size_t same(const struct heap *h, size_t len)
{
	size_t pos = 0;
	struct wire_slot slot;

	while (pos < len) {
		memcpy(&slot, h->first.data + pos, sizeof(slot));
		if (memcmp(h->first.data + pos, h->again.data + pos, slot.len))
			break;
		pos += slot.len;
	}
	return pos;
}

/*
 * Slots in the @len bytes from @at on. Returns how many bytes of them were taken; -EAGAIN: none,
 * since some changed meanwhile (*@still: bytes of those before) or the first one is not whole. Code
 * that was fetched for what was taken is its own: it lived still when that was read.
 */
static ssize_t take(struct heap *h, uint64_t at, size_t len, size_t *still)
{
	size_t mark = h->p->out->len;
	uint32_t nr_bad = h->p->nr_bad;
	ssize_t n = copy(h, &h->first, at, len);
	int r;

	*still = 0;
	h->p->has_page = false;
	if (n == 0)
		n = put_slots(h, at);
	if (n < 0)
		return n;
	r = copy(h, &h->again, at, (size_t)n);
	if (r < 0)
		return r;
	*still = same(h, (size_t)n);
	if (*still == (size_t)n)
		return n;
	h->p->out->len = mark;
	h->p->nr_bad = nr_bad;
	return -EAGAIN;
}

/* Its change is behind all that the list speaks of. */
static ssize_t pass_over(struct heap *h, uint64_t at)
{
	struct wire_slot slot;
	int r = base_read_at(h->p->fd, h->p->h.heap_off + at, &slot, sizeof(slot));

	if (r < 0)
		return r;
	return length_good(&slot, h->end - at) ? (ssize_t)slot.len : -DCPI_EFORMAT;
}

/* Many slots, or those before one that changes, or one; one that never holds still is left out. */
static ssize_t step(struct heap *h, uint64_t at)
{
	uint64_t left = h->end - at;
	size_t len = left < HEAP_CHUNK ? (size_t)left : HEAP_CHUNK;

	for (int i = 0; i < TRIES; i++) {
		struct wire_slot slot;
		size_t still;
		ssize_t n = take(h, at, len, &still);

		if (n != -EAGAIN)
			return n;
		memcpy(&slot, h->first.data, sizeof(slot));
		len = i == 0 && still ? still : slot.len;
	}
	return pass_over(h, at);
}

static int put_listed(struct parse *p, const struct registry_place *place)
{
	struct wire_registry after;
	struct wire_listed *rec;
	int r = registry_header_read(p->fd, &after);

	if (r == 0)
		r = new_record(p->out, WIRE_LISTED, sizeof(*rec), &rec);
	if (r < 0)
		return r;
	rec->seq_before = place->list_seq;
	rec->seq_after = after.seq;
	rec->nr_unlisted = after.nr_unlisted;
	return 0;
}

static uint64_t used(struct parse *p)
{
	if (p->h.heap_end <= p->h.heap_len && p->h.heap_end % WIRE_SLOT_ALIGN == 0)
		return p->h.heap_end;
	p->nr_bad++;
	return p->h.heap_end < p->h.heap_len ? p->h.heap_end & ~(uint64_t)(WIRE_SLOT_ALIGN - 1)
					     : p->h.heap_len;
}

/* Routines that live, from @place->list_at on, with WIRE_LISTED when the list comes to its end. */
static int list_heap(struct parse *p, struct registry_place *place)
{
	struct heap h = { .p = p, .end = used(p), .known_seq = place->known_seq };
	int r = put_time(p, 0);

	if (!place->list_at)
		place->list_seq = p->h.seq;
	h.list_seq = place->list_seq;
	while (r == 0 && place->list_at < h.end && !is_full(p)) {
		ssize_t n = step(&h, place->list_at);

		if (n == -DCPI_EFORMAT) {
			p->nr_bad++;
			place->list_at = h.end;
		} else if (n < 0) {
			r = (int)n;
		} else {
			place->list_at += (uint64_t)n;
			look_at_clock(p);
		}
	}
	if (r == 0 && place->list_at >= h.end) {
		r = put_listed(p, place);
		place->list_at = REGISTRY_NO_LIST;
	}
	base_buf_release(&h.first);
	base_buf_release(&h.again);
	return r;
}

/* ---- the tables ------------------------------------------------------------------------------ */

static int put_facility(struct parse *p, uint32_t index, const struct wire_facility *f)
{
	struct wire_facility_rec *rec;
	int r;

	if (f->state == WIRE_FACILITY_FREE)
		return 0;
	if (f->state > WIRE_FACILITY_ENDED || !f->name_len || f->name_len > WIRE_FACILITY_NAME)
		return bad(p);
	r = new_record(p->out, WIRE_FACILITY, sizeof(*rec) + f->name_len, &rec);
	if (r < 0)
		return r;
	rec->index = index;
	rec->state = f->state;
	rec->name_len = f->name_len;
	rec->machine = p->h.machine;
	memcpy(rec + 1, f->name, f->name_len);
	p->state[index] = (uint8_t)f->state;
	return 0;
}

static int put_range(struct parse *p, uint32_t index, const struct wire_range *range)
{
	struct wire_range_rec *rec;
	int r;

	if (range->kind == WIRE_RANGE_NONE)
		return 0;
	if (range->kind > WIRE_RANGE_ARENA || !is_usable(p, range->facility) ||
	    !registry_vaddr_good(range->base, range->len))
		return bad(p);
	r = new_record(p->out, WIRE_RANGE, sizeof(*rec), &rec);
	if (r < 0)
		return r;
	rec->index = index;
	rec->range = *range;
	rec->range.flags &= range->kind == WIRE_RANGE_ARENA ? 0 : WIRE_RANGE_OWNED;
	rec->range.reserved = 0;
	return 0;
}

/* Slot counts above the tables' sizes are lies; what the tables hold is read all the same. */
static uint32_t slots(struct parse *p, uint32_t nr, uint32_t max)
{
	if (nr <= max)
		return nr;
	p->nr_bad++;
	return max;
}

/* Facilities (which go into @p->state) and ranges. 0 or negative. */
static int put_tables(struct parse *p)
{
	uint32_t nr_facilities = slots(p, p->h.nr_facilities, WIRE_NR_FACILITIES);
	uint32_t nr_ranges = slots(p, p->h.nr_ranges, WIRE_NR_RANGES);
	union {
		struct wire_facility facility[WIRE_NR_FACILITIES];
		struct wire_range range[WIRE_NR_RANGES];
	} *t = malloc(sizeof(*t));
	int r = t ? 0 : -ENOMEM;

	if (r == 0)
		r = base_read_at(p->fd, p->h.facilities_off, t->facility,
				 nr_facilities * sizeof(t->facility[0]));
	for (uint32_t i = 0; r == 0 && i < nr_facilities; i++)
		r = put_facility(p, i, &t->facility[i]);
	if (r == 0)
		r = base_read_at(p->fd, p->h.ranges_off, t->range, nr_ranges * sizeof(t->range[0]));
	for (uint32_t i = 0; r == 0 && i < nr_ranges; i++)
		r = put_range(p, i, &t->range[i]);
	free(t);
	return r;
}

/* ---- one poll -------------------------------------------------------------------------------- */

int registry_parse(int fd, const struct registry_memory *memory, struct registry_place *place,
		   struct base_buf *out)
{
	struct parse p = { .fd = fd, .memory = memory, .out = out };
	struct registry_place to = *place;
	struct wire_registry after;
	uint64_t from = place->tail;
	int r = registry_header_read(fd, &p.h);

	p.deadline_ns = base_now_ns() + REGISTRY_CALL_NS;
	/* The head before the tables: what a record refers to is then in them. */
	if (r == 0)
		r = put_tables(&p);
	if (r == 0)
		r = registry_ring_take(&p, &to);
	if (r == 0 && to.list_at != REGISTRY_NO_LIST && to.tail == p.h.head)
		r = list_heap(&p, &to);
	if (r == 0)
		r = registry_header_read(fd, &after);
	if (r == 0 && to.tail != from && after.head > from && after.head - from > p.h.ring_len &&
	    p.h.head - from <= p.h.ring_len)
		r = -ESTALE;
	if (r < 0)
		return r;
	*place = to;
	return (int)(p.nr_bad & INT32_MAX);
}
