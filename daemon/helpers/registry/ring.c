/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of changes of a registry is read, record by record. */
#include "registry_internal.h"

enum { CHUNK = 1 << 20 };

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
		p->nr_bad++;
	else
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
	if (change && seq <= place->seq) {
		p->nr_bad++;
		return 0;
	}
	r = change ? registry_time_put(p, when_ns) : 0;
	if (r < 0)
		return r;
	mark = p->out->len;
	r = registry_record_put(p, head, 0);
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
	while (len - pos >= sizeof(struct wire_head) && (p->when_ns || !registry_parse_full(p))) {
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
	*want = need > CHUNK ? need : CHUNK;
	return 0;
}

int registry_ring_take(struct parse *p, struct registry_place *place)
{
	struct base_buf copy = { 0 };
	size_t want = CHUNK;
	int r = 0;

	if (p->h.head < place->tail || p->h.head - place->tail > p->h.ring_len || p->h.head % 8 ||
	    place->tail % 8)
		r = -DCPI_EFORMAT;
	while (r == 0 && place->tail < p->h.head && !registry_parse_full(p)) {
		uint64_t before = place->tail;

		r = take_contiguous(p, place, &copy, &want);
		/* Each call moves on, or a record that needs a larger copy would never be taken. */
		if (place->tail != before)
			registry_parse_clock(p);
	}
	if (r == -DCPI_EFORMAT) {
		p->nr_bad++;
		place->tail = p->h.head;
		r = 0;
	}
	base_buf_release(&copy);
	return r;
}
