/* SPDX-License-Identifier: BSD-2-Clause */
/* The heap of a registry is listed: the routines that live. */
#include <errno.h>

#include "registry_internal.h"

/* So much of the heap is looked at together, and a slot that changes meanwhile so many times. */
enum { CHUNK = 64 << 10, TRIES = 6 };
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
	/* Whose place it took the ring tells, after this list; or a new list is asked for. */
	if (seq > h->list_seq)
		return 0;
	flags = head->flags;
	h->p->is_known = head->type == WIRE_ROUTINE && seq && seq <= h->known_seq;
	r = registry_record_put(h->p, head, WIRE_ROUTINE_LISTED);
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
	} while (h->first.len - pos >= WIRE_SLOT_ALIGN && !registry_parse_full(h->p));
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

/* Many slots, or those before one that changes, or one; one that does not hold still is left out.
 */
static ssize_t step(struct heap *h, uint64_t at)
{
	uint64_t left = h->end - at;
	size_t len = left < CHUNK ? (size_t)left : CHUNK;

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
		r = registry_record_new(p->out, WIRE_LISTED, sizeof(*rec), &rec);
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

int registry_heap_list(struct parse *p, struct registry_place *place)
{
	struct heap h = { .p = p, .end = used(p), .known_seq = place->known_seq };
	int r = registry_time_put(p, 0);

	if (!place->list_at)
		place->list_seq = p->h.seq;
	h.list_seq = place->list_seq;
	while (r == 0 && place->list_at < h.end && !registry_parse_full(p)) {
		ssize_t n = step(&h, place->list_at);

		if (n == -DCPI_EFORMAT) {
			p->nr_bad++;
			place->list_at = h.end;
		} else if (n < 0) {
			r = (int)n;
		} else {
			place->list_at += (uint64_t)n;
			registry_parse_clock(p);
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
