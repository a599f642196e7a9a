/* SPDX-License-Identifier: BSD-2-Clause */
#include "registry.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };
#define RING_MAX (1ull << 30)

struct parse {
	int fd;
	const struct registry_memory *memory;
	struct base_buf *out;
	struct wire_registry h;
	uint8_t state[WIRE_NR_FACILITIES]; /* as read; FREE for those that are not usable */
	uint32_t nr_bad;
};

static int read_at(int fd, uint64_t off, void *to, size_t len)
{
	uint8_t *p = to;

	while (len) {
		ssize_t n = pread(fd, p, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -DCPI_ETRUNCATED;
		p += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static bool within(uint64_t off, uint64_t len, uint64_t total)
{
	return off >= WIRE_PAGE && off % 8 == 0 && off <= total && len <= total - off;
}

int registry_header_read(int fd, struct wire_registry *h)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = read_at(fd, 0, h, sizeof(*h));
	if (r < 0)
		return r;
	if (h->magic != WIRE_REGISTRY_MAGIC)
		return -DCPI_EFORMAT;
	if (h->version != WIRE_REGISTRY_VERSION || h->header_len != WIRE_PAGE)
		return -DCPI_EVERSION;
	if (st.st_size < 0 || h->total_len > (uint64_t)st.st_size ||
	    !within(h->facilities_off, WIRE_NR_FACILITIES * sizeof(struct wire_facility),
		    h->total_len) ||
	    !within(h->ranges_off, WIRE_NR_RANGES * sizeof(struct wire_range), h->total_len) ||
	    !within(h->ring_off, h->ring_len, h->total_len) || !h->ring_len ||
	    h->ring_len % WIRE_PAGE || h->ring_len > RING_MAX)
		return -DCPI_EFORMAT;
	return 0;
}

/* A record of @len bytes, rounded up, with its head filled in. */
static int put(struct base_buf *out, uint16_t type, size_t len, void *record)
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

static int put_facility(struct parse *p, uint32_t index, const struct wire_facility *f)
{
	struct wire_facility_rec *rec;
	int r;

	if (f->state == WIRE_FACILITY_FREE)
		return 0;
	if (f->state > WIRE_FACILITY_ENDED || !f->name_len || f->name_len > WIRE_FACILITY_NAME) {
		p->nr_bad++;
		return 0;
	}
	r = put(p->out, WIRE_FACILITY, sizeof(*rec) + f->name_len, &rec);
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

static bool usable(const struct parse *p, uint32_t facility)
{
	return facility < WIRE_NR_FACILITIES && p->state[facility] != WIRE_FACILITY_FREE;
}

static bool place_good(uint64_t base, uint64_t len)
{
	return len && base < REGISTRY_VADDR_MAX && len <= REGISTRY_VADDR_MAX - base;
}

static int put_range(struct parse *p, uint32_t index, const struct wire_range *range)
{
	struct wire_range_rec *rec;
	int r;

	if (range->kind == WIRE_RANGE_NONE)
		return 0;
	if (range->kind > WIRE_RANGE_DST || !usable(p, range->facility) ||
	    !place_good(range->base, range->len)) {
		p->nr_bad++;
		return 0;
	}
	r = put(p->out, WIRE_RANGE, sizeof(*rec), &rec);
	if (r < 0)
		return r;
	rec->index = index;
	rec->range = *range;
	rec->range.flags &= WIRE_RANGE_OWNED;
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
		r = read_at(p->fd, p->h.facilities_off, t->facility,
			    nr_facilities * sizeof(t->facility[0]));
	for (uint32_t i = 0; r == 0 && i < nr_facilities; i++)
		r = put_facility(p, i, &t->facility[i]);
	if (r == 0)
		r = read_at(p->fd, p->h.ranges_off, t->range, nr_ranges * sizeof(t->range[0]));
	for (uint32_t i = 0; r == 0 && i < nr_ranges; i++)
		r = put_range(p, i, &t->range[i]);
	free(t);
	return r;
}

/* The same routine with its code, read from the process; as it is where that fails. */
static int put_fetched(struct parse *p, const struct wire_routine_view *v)
{
	size_t code_len = v->rec->code_len, mark = p->out->len, off, rest;
	size_t len =
		wire_routine_len(v->rec->name_len, code_len, true, v->rec->nr_lines, v->files_len);
	struct wire_routine *rec;
	int r = -ENODATA;

	if (len && p->memory) {
		r = put(p->out, WIRE_ROUTINE, len, &rec);
		if (r < 0)
			return r;
		off = sizeof(*rec) + v->rec->name_len;
		if (p->memory->read(p->memory->ctx, v->rec->addr, (uint8_t *)rec + off, code_len) !=
		    (ssize_t)code_len) {
			p->out->len = mark;
			r = -ENODATA;
		}
	}
	if (r < 0)
		return base_buf_append(p->out, v->rec, v->rec->head.len);
	rest = v->rec->nr_lines * sizeof(struct wire_line) + v->files_len;
	struct wire_head head = rec->head;

	memcpy(rec, v->rec, off);
	rec->head = head;
	rec->head.flags = WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED;
	off = base_align_up(off + code_len, 8);
	memcpy((uint8_t *)rec + off, v->lines, rest);
	return 0;
}

static int put_routine(struct parse *p, struct wire_head *head)
{
	struct wire_routine_view v;

	head->flags &= WIRE_ROUTINE_CODE;
	if (wire_routine_parse(head, &v) < 0 || !usable(p, v.rec->facility) ||
	    !place_good(v.rec->addr, v.rec->code_len)) {
		p->nr_bad++;
		return 0;
	}
	if (!v.code)
		return put_fetched(p, &v);
	return base_buf_append(p->out, head, head->len);
}

static int put_record(struct parse *p, struct wire_head *head)
{
	switch (head->type) {
	case WIRE_ROUTINE:
		return put_routine(p, head);
	case WIRE_FACILITY:
	case WIRE_RANGE:
	case WIRE_BYTES:
	case WIRE_IMAGE:
	case WIRE_RUN:
	case WIRE_REPLACES:
		/* Only the reader and the daemon say these. */
		p->nr_bad++;
		return 0;
	default:
		return 0; /* padding, or of a later version */
	}
}

/*
 * Take what a private copy of @len ring bytes holds: the client may change the ring while we look.
 * Returns how far whole records reached; the length of a record that needs a larger copy goes to
 * *@need, one whose length lies gives -DCPI_EFORMAT.
 */
static ssize_t take_chunk(struct parse *p, uint8_t *data, size_t len, size_t avail, size_t *need)
{
	size_t pos = 0;

	*need = 0;
	while (len - pos >= sizeof(struct wire_head) && p->out->len < REGISTRY_ANSWER_SOFT) {
		struct wire_head *head = (void *)(data + pos);
		int r;

		if (head->len < sizeof(*head) || head->len % 8 || head->len > WIRE_RECORD_MAX ||
		    head->len > avail - pos)
			return -DCPI_EFORMAT;
		if (head->len > len - pos) {
			*need = head->len;
			break;
		}
		r = put_record(p, head);
		if (r < 0)
			return r;
		pos += head->len;
	}
	return (ssize_t)pos;
}

/* From *@pos on, to the ring's end or the head; records do not wrap. */
static int take_contiguous(struct parse *p, uint64_t *pos, struct base_buf *copy, size_t *want)
{
	uint64_t at = *pos % p->h.ring_len, avail = p->h.ring_len - at;
	size_t len, need;
	ssize_t n;
	int r;

	if (avail > p->h.head - *pos)
		avail = p->h.head - *pos;
	len = *want < avail ? *want : (size_t)avail;
	base_buf_clear(copy);
	r = base_buf_extend(copy, len, NULL);
	if (r == 0)
		r = read_at(p->fd, p->h.ring_off + at, copy->data, len);
	if (r < 0)
		return r;
	n = take_chunk(p, copy->data, len, (size_t)avail, &need);
	if (n < 0)
		return (int)n;
	*pos += (uint64_t)n;
	*want = need > CHUNK ? need : CHUNK;
	return 0;
}

static int take_ring(struct parse *p, uint64_t *tail)
{
	struct base_buf copy = { 0 };
	size_t want = CHUNK;
	int r = 0;

	if (p->h.head < *tail || p->h.head - *tail > p->h.ring_len || p->h.head % 8 || *tail % 8)
		r = -DCPI_EFORMAT;
	while (r == 0 && *tail < p->h.head && p->out->len < REGISTRY_ANSWER_SOFT)
		r = take_contiguous(p, tail, &copy, &want);
	if (r == -DCPI_EFORMAT) {
		p->nr_bad++;
		*tail = p->h.head;
		r = 0;
	}
	base_buf_release(&copy);
	return r;
}

int registry_parse(int fd, const struct registry_memory *memory, uint64_t *tail,
		   struct base_buf *out)
{
	struct parse p = { .fd = fd, .memory = memory, .out = out };
	struct wire_registry after;
	uint64_t from = *tail;
	int r = registry_header_read(fd, &p.h);

	/* The head before the tables: what a record refers to is then in them. */
	if (r == 0)
		r = put_tables(&p);
	if (r == 0)
		r = take_ring(&p, tail);
	if (r == 0)
		r = registry_header_read(fd, &after);
	if (r == 0 && *tail != from && after.head > from && after.head - from > p.h.ring_len &&
	    p.h.head - from <= p.h.ring_len)
		r = -ESTALE;
	return r < 0 ? r : (int)(p.nr_bad & INT32_MAX);
}
