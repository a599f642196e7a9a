/* SPDX-License-Identifier: BSD-2-Clause */
/* A job's records, and the DST in them, become routines, ranges and lines, each at its place. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "pseudoimg_internal.h"

/* ---- spans ----------------------------------------------------------------------------------- */

/* Sort @array (elements start with a span) and drop overlapping ones. Returns how many are left. */
static size_t span_disjoint(void *array, size_t nr, size_t elem_len)
{
	uint8_t *base = array;
	size_t kept = 0;

	if (!nr)
		return 0;
	qsort(array, nr, elem_len, pseudoimg_span_compare);
	for (size_t i = 0; i < nr; i++) {
		struct pseudoimg_span *s = (void *)(base + i * elem_len);
		struct pseudoimg_span *last = kept ? (void *)(base + (kept - 1) * elem_len) : NULL;

		if (last && s->start < pseudoimg_span_end(last)) {
			if (s->order < last->order)
				memcpy(last, s, elem_len);
			continue;
		}
		memmove(base + kept++ * elem_len, s, elem_len);
	}
	return kept;
}

/* The last of ascending @v that starts at @addr or before, or NULL; it may end before @addr. */
static const struct pseudoimg_span *span_find(const struct pseudoimg_span *v, size_t nr,
					      uint64_t addr)
{
	size_t lo = BASE_UPPER_BOUND(v, nr, start, addr);

	return lo ? &v[lo - 1] : NULL;
}

/* ---- the order of routines ------------------------------------------------------------------- */

/* As pseudoimg_span_compare. */
static int compare(const void *a, const void *b)
{
	const struct pseudoimg_node *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->len != y->len)
		return x->len > y->len ? -1 : 1;
	return (x->ref > y->ref) - (x->ref < y->ref);
}

/* Mostly they come in order; qsort would take as much memory again. */
static void nodes_sort(struct pseudoimg_model *m)
{
	struct pseudoimg_node *v = m->nodes.v;

	for (size_t i = 1; i < m->nodes.nr; i++)
		if (compare(&v[i - 1], &v[i]) > 0) {
			qsort(v, m->nodes.nr, sizeof(*v), compare);
			return;
		}
}

/* Nodes that overlap earlier ones are refused and counted. */
static void nodes_settle(struct pseudoimg_model *m)
{
	struct pseudoimg_node *v = m->nodes.v;
	size_t kept = 0;

	nodes_sort(m);
	for (size_t i = 0; i < m->nodes.nr; i++) {
		if (kept && v[i].start < v[kept - 1].start + v[kept - 1].len) {
			if (v[i].ref < v[kept - 1].ref)
				v[kept - 1] = v[i];
			continue;
		}
		v[kept++] = v[i];
	}
	m->nr_bad += (uint32_t)(m->nodes.nr - kept);
	m->nr_overlaps += (uint32_t)(m->nodes.nr - kept);
	m->nodes.nr = kept;
}

/* ---- image offsets of addresses -------------------------------------------------------------- */

static void swap_keys(struct pseudoimg_model *m)
{
	for (size_t i = 0; i < m->runs.nr; i++) {
		uint64_t start = m->runs.v[i].start;

		m->runs.v[i].start = m->runs.v[i].img_off;
		m->runs.v[i].img_off = start;
	}
}

static void merge_neighbours(struct pseudoimg_model *m)
{
	struct pseudoimg_span *v = m->runs.v;
	size_t kept = 0;

	for (size_t i = 0; i < m->runs.nr; i++) {
		if (kept && pseudoimg_span_end(&v[kept - 1]) == v[i].start &&
		    v[kept - 1].img_off + v[kept - 1].len == v[i].img_off)
			v[kept - 1].len += v[i].len;
		else
			v[kept++] = v[i];
	}
	m->runs.nr = kept;
}

static int order_by_off(struct pseudoimg_model *m)
{
	struct pseudoimg_span *copy = calloc(m->runs.nr + 1, sizeof(*copy));
	int r = copy ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < m->runs.nr; i++) {
		copy[i] = m->runs.v[i];
		copy[i].order = i;
	}
	if (r >= 0 && m->runs.nr)
		qsort(copy, m->runs.nr, sizeof(*copy), pseudoimg_span_by_off);
	for (size_t i = 0; r >= 0 && i < m->runs.nr; i++) {
		uint32_t *to = PSEUDOIMG_PUSH(&m->runs_by_off);

		if (!to)
			r = -ENOMEM;
		else
			*to = (uint32_t)copy[i].order;
	}
	free(copy);
	return r;
}

/* Bad runs dropped, the rest sorted, neighbours merged. 0 or -ENOMEM; counts what was refused. */
static int runs_settle(struct pseudoimg_model *m)
{
	size_t before = m->runs.nr, left;

	/* Neither may an address have two offsets nor an offset two addresses. */
	m->runs.nr = span_disjoint(m->runs.v, m->runs.nr, sizeof(*m->runs.v));
	swap_keys(m);
	m->runs.nr = span_disjoint(m->runs.v, m->runs.nr, sizeof(*m->runs.v));
	swap_keys(m);
	left = span_disjoint(m->runs.v, m->runs.nr, sizeof(*m->runs.v));
	m->runs.nr = left;
	merge_neighbours(m);
	m->nr_bad += (uint32_t)(before - left);
	m->nr_overlaps += (uint32_t)(before - left);
	return order_by_off(m);
}

const struct pseudoimg_span *pseudoimg_runs_find(const struct pseudoimg_model *m, uint64_t vaddr)
{
	const struct pseudoimg_span *run = span_find(m->runs.v, m->runs.nr, vaddr);

	return run && vaddr - run->start < run->len ? run : NULL;
}

bool pseudoimg_runs_place(const struct pseudoimg_model *m, struct pseudoimg_span *at)
{
	const struct pseudoimg_span *run = pseudoimg_runs_find(m, at->start), *end;

	if (!run)
		return false;
	end = m->runs.v + m->runs.nr;
	at->img_off = run->img_off + (at->start - run->start);
	while (pseudoimg_span_end(run) < pseudoimg_span_end(at)) {
		if (run + 1 == end || run[1].start != pseudoimg_span_end(run))
			return false;
		run++;
	}
	return true;
}

/* ---- reading records ------------------------------------------------------------------------- */

static int add_run(struct pseudoimg_model *m, const struct wire_run *run, uint64_t order)
{
	struct pseudoimg_span *to = PSEUDOIMG_PUSH(&m->runs);

	if (!to)
		return -ENOMEM;
	*to = (struct pseudoimg_span){
		.start = run->vaddr, .len = run->len, .order = order, .img_off = run->img_off
	};
	return 0;
}

static int add_routine(struct pseudoimg_model *m, const struct wire_head *rec, uint64_t off)
{
	const struct wire_routine *r = (const void *)rec;
	struct pseudoimg_node *to;

	if (off / 8 >= PSEUDOIMG_DST_REF)
		return -DCPI_ELIMIT;
	to = PSEUDOIMG_PUSH(&m->nodes);
	if (!to)
		return -ENOMEM;
	*to = (struct pseudoimg_node){
		.start = r->addr,
		.len = (uint32_t)r->code_len,
		.code = (rec->flags & WIRE_ROUTINE_CODE) != 0,
		.lines = r->nr_lines > 0,
		.inlines = r->nr_inlines > 0,
		.ref = (uint32_t)(off / 8),
	};
	return 0;
}

/* Whether the reader left trailing zeros out must make no difference. */
static int trim(struct pseudoimg_job *job, uint64_t off, uint64_t *len)
{
	uint8_t chunk[4096];

	while (*len) {
		size_t n = *len < sizeof(chunk) ? *len : sizeof(chunk), left = n;
		int r = pseudoimg_job_read(job, off + *len - n, chunk, n);

		if (r < 0)
			return r;
		while (left && !chunk[left - 1])
			left--;
		*len -= n - left;
		if (left)
			break;
	}
	return 0;
}

static int add_code(struct pseudoimg_model *m, const struct wire_bytes *b, uint64_t off)
{
	struct pseudoimg_range *to = PSEUDOIMG_PUSH(&m->ranges);

	if (!to)
		return -ENOMEM;
	*to = (struct pseudoimg_range){
		.at = { .start = b->vaddr, .len = b->bytes_len, .order = off },
		.bytes_off = off + sizeof(*b),
		.range_base = b->range_base,
		.range_len = b->range_len,
		.facility = b->facility,
	};
	return trim(m->job, to->bytes_off, &to->at.len);
}

/* Parts of a range that is longer than a record follow each other. */
static int add_dst(struct pseudoimg_model *m, const struct wire_bytes *b, uint64_t off)
{
	struct pseudoimg_dst_range *to = m->dst.nr ? &m->dst.v[m->dst.nr - 1] : NULL;
	size_t len = (size_t)b->bytes_len;
	void *space;
	int r;

	if (b->vaddr == b->range_base) {
		to = PSEUDOIMG_PUSH(&m->dst);
		if (!to)
			return -ENOMEM;
		*to = (struct pseudoimg_dst_range){ .facility = b->facility,
						    .range_base = b->range_base,
						    .range_len = b->range_len };
	} else if (!to || b->range_base != to->range_base || b->range_len != to->range_len ||
		   b->vaddr - b->range_base != to->sent.len) {
		m->nr_bad++;
		return 0;
	}
	r = base_buf_extend(&to->sent, len, &space);
	return r < 0 ? r : pseudoimg_job_read(m->job, off + sizeof(*b), space, len);
}

static int add_bytes(struct pseudoimg_model *m, const struct wire_bytes *b, uint64_t off)
{
	const struct wire_bytes copy = *b; /* the record goes where the next bytes come */

	switch (copy.kind) {
	case WIRE_RANGE_CODE:
		return add_code(m, &copy, off);
	case WIRE_RANGE_DST:
		return add_dst(m, &copy, off);
	default:
		m->nr_bad++;
		return 0;
	}
}

/* The note must not grow with each process that is folded: of most only their number is kept. */
static int add_instance(struct pseudoimg_model *m, const struct wire_instance *rec)
{
	bool more = rec->head.flags & WIRE_INSTANCE_MORE;

	if (!more && m->nr_instances < PSEUDOIMG_INSTANCES_MAX) {
		m->nr_instances++;
		return base_buf_append(&m->notes, rec, rec->head.len);
	}
	m->nr_more += more ? rec->pid : 1;
	return 0;
}

static int put_more(struct pseudoimg_model *m)
{
	struct wire_instance rec = {
		.head = { .len = sizeof(rec), .type = WIRE_INSTANCE, .flags = WIRE_INSTANCE_MORE }
	};

	if (!m->nr_more)
		return 0;
	rec.pid = m->nr_more < UINT32_MAX ? (uint32_t)m->nr_more : UINT32_MAX;
	return base_buf_append(&m->notes, &rec, sizeof(rec));
}

static int add_record(struct pseudoimg_model *m, const struct wire_head *rec, uint64_t off)
{
	switch (rec->type) {
	case WIRE_IMAGE: /* there is one, the first */
	case WIRE_RUN:
	case WIRE_ROUTINE:
	case WIRE_BYTES:
	case WIRE_REPLACES:
	case WIRE_PLACE:
	case WIRE_INSTANCE:
		break;
	default:
		return 0;
	}
	if (rec->type == WIRE_IMAGE || wire_check(rec) < 0) {
		m->nr_bad++;
		return 0;
	}
	switch (rec->type) {
	case WIRE_RUN:
		return add_run(m, (const void *)rec, off);
	case WIRE_ROUTINE:
		return add_routine(m, rec, off);
	case WIRE_BYTES:
		return add_bytes(m, (const void *)rec, off);
	case WIRE_INSTANCE:
		return add_instance(m, (const void *)rec);
	default:
		return base_buf_append(&m->notes, rec, rec->len);
	}
}

static int read_head(struct pseudoimg_model *m, uint64_t *pos, struct base_err *err)
{
	const struct wire_head *rec;
	int r = pseudoimg_job_next(m->job, pos, &rec);

	if (r < 0 && r != -DCPI_EFORMAT)
		return base_fail_errno(err, r, "cannot read pseudo-image job");
	if (r <= 0 || rec->type != WIRE_IMAGE || wire_check(rec) < 0)
		return base_fail(err, -DCPI_EFORMAT,
				 "cannot read pseudo-image job: it does not begin with its head");
	m->image = malloc(rec->len);
	if (!m->image)
		return base_fail_errno(err, -ENOMEM, "cannot read pseudo-image job");
	memcpy(m->image, rec, rec->len);
	if (!pseudoimg_machine_known(m->image->machine))
		return base_fail(err, -DCPI_EUNSUPPORTED,
				 "cannot write code of machine %u: neither x86-64, aarch64 nor "
				 "riscv64",
				 (unsigned int)m->image->machine);
	return 0;
}

static int read_job(struct pseudoimg_model *m, struct base_err *err)
{
	const struct wire_head *rec;
	uint64_t pos = 0, off;
	int r;

	if ((uintptr_t)m->job->data % 8)
		return base_fail(err, -EINVAL, "cannot read pseudo-image job: not aligned");
	r = read_head(m, &pos, err);
	if (r < 0)
		return r;
	for (off = pos; (r = pseudoimg_job_next(m->job, &pos, &rec)) > 0; off = pos) {
		r = add_record(m, rec, off);
		if (r < 0)
			break;
	}
	if (r == -DCPI_EFORMAT)
		return base_fail(err, r,
				 "cannot read pseudo-image job: malformed record at offset %llu",
				 (unsigned long long)off);
	return r < 0 ? base_fail_errno(err, r, "cannot read pseudo-image job") : 0;
}

/* ---- places ---------------------------------------------------------------------------------- */

static void place_ranges(struct pseudoimg_model *m)
{
	size_t nr = m->ranges.nr, kept = 0;

	for (size_t i = 0; i < nr; i++)
		if (pseudoimg_runs_place(m, &m->ranges.v[i].at))
			m->ranges.v[kept++] = m->ranges.v[i];
	m->ranges.nr = span_disjoint(m->ranges.v, kept, sizeof(*m->ranges.v));
	m->nr_bad += (uint32_t)(nr - m->ranges.nr);
	m->nr_overlaps += (uint32_t)(kept - m->ranges.nr);
}

static void place_routines(struct pseudoimg_model *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->nodes.nr; i++) {
		struct pseudoimg_span at = pseudoimg_node_span(&m->nodes.v[i]);

		if (pseudoimg_runs_place(m, &at))
			m->nodes.v[kept++] = m->nodes.v[i];
	}
	m->nr_bad += (uint32_t)(m->nodes.nr - kept);
	m->nodes.nr = kept;
	nodes_settle(m);
}

/* A place of its own must be one of the image's. */
static void check_notes(struct pseudoimg_model *m)
{
	const struct wire_head *rec;
	size_t pos = 0, kept = 0;

	while ((rec = wire_next(m->notes.data, m->notes.len, &pos))) {
		const struct wire_place *place = (const void *)rec;
		struct pseudoimg_span at;

		if (rec->type == WIRE_PLACE) {
			at = (struct pseudoimg_span){ .start = place->elf, .len = place->len };
			if (!pseudoimg_runs_place(m, &at)) {
				m->nr_bad++;
				continue;
			}
		}
		uint32_t len = rec->len;

		memmove(m->notes.data + kept, rec, len);
		kept += len;
	}
	m->notes.len = kept;
}

/* ---- DST ------------------------------------------------------------------------------------- */

/* Above every place in a job: what a record brings goes before what DST says. */
#define DST_ORDER (UINT64_C(1) << 62)

/* The facility's first code range is the one with the lowest image offset. */
static uint64_t first_base(const struct pseudoimg_model *m, uint32_t facility)
{
	const struct pseudoimg_span *run;
	uint64_t base = 0, lowest = UINT64_MAX, off;

	for (size_t i = 0; i < m->ranges.nr; i++) {
		const struct pseudoimg_range *range = &m->ranges.v[i];

		run = pseudoimg_runs_find(m, range->range_base);
		if (range->facility != facility || !run)
			continue;
		off = run->img_off + (range->range_base - run->start);
		if (off < lowest) {
			lowest = off;
			base = range->range_base;
		}
	}
	return base;
}

static bool lies_in_range(const struct pseudoimg_model *m, uint32_t facility,
			  const struct pseudoimg_dst_routine *r)
{
	size_t at = BASE_UPPER_BOUND(m->ranges.v, m->ranges.nr, range_base, r->addr);
	const struct pseudoimg_range *range = &m->ranges.v[at ? at - 1 : 0];

	return at && range->facility == facility &&
	       r->addr - range->range_base <= range->range_len &&
	       r->len <= range->range_len - (r->addr - range->range_base);
}

static size_t nr_in_ranges(const struct pseudoimg_model *m, uint32_t facility,
			   const struct pseudoimg_dst *dst)
{
	size_t nr = 0;

	for (size_t i = 0; i < dst->routines.nr; i++)
		nr += lies_in_range(m, facility, &dst->routines.v[i]);
	return nr;
}

/*
 * Addresses are offsets (include/dbgdyn_vms.h). A literal port from OpenVMS writes addresses,
 * though, if its code lies below 4 GB: so they are read if more routines lie in code ranges then. A
 * BASE record has no place there.
 */
static int decode_either(const struct pseudoimg_model *m, struct pseudoimg_dst_range *d, size_t len)
{
	struct pseudoimg_dst absolute;
	size_t nr;
	int r;

	r = pseudoimg_dst_decode(d->copy, len, first_base(m, d->facility), &d->dst);
	nr = r < 0 ? 0 : nr_in_ranges(m, d->facility, &d->dst);
	if (r < 0 || d->dst.absolute.nr || nr == d->dst.routines.nr)
		return r;
	r = pseudoimg_dst_decode(d->copy, len, 0, &absolute);
	if (r < 0)
		return r;
	if (nr_in_ranges(m, d->facility, &absolute) > nr) {
		pseudoimg_dst_release(&d->dst);
		d->dst = absolute;
	} else {
		pseudoimg_dst_release(&absolute);
	}
	return 0;
}

/* An address's place in the image says the same of every run of the program. */
static void mask_absolute(const struct pseudoimg_model *m, struct pseudoimg_dst_range *d)
{
	const struct pseudoimg_span *run;

	for (size_t i = 0; i < d->dst.absolute.nr; i++) {
		const struct pseudoimg_str *s = &d->dst.absolute.v[i];
		uint8_t *at = d->copy + (s->p - (const char *)d->copy);
		uint64_t addr = 0;

		memcpy(&addr, at, s->len);
		run = pseudoimg_runs_find(m, addr);
		addr = run ? run->img_off + (addr - run->start) : UINT64_MAX;
		memcpy(at, &addr, s->len);
	}
}

static int decode(struct pseudoimg_model *m, struct pseudoimg_dst_range *d)
{
	uint64_t rest = d->range_len - d->sent.len;
	size_t len;
	int r;

	/* The last record may end in zeros that were not sent. */
	if (rest > PSEUDOIMG_DST_RECORD_MAX)
		rest = PSEUDOIMG_DST_RECORD_MAX;
	len = d->sent.len + rest;
	d->copy = calloc(1, len + 1);
	if (!d->copy)
		return -ENOMEM;
	if (d->sent.len)
		memcpy(d->copy, d->sent.data, d->sent.len);
	r = decode_either(m, d, len);
	if (r < 0)
		return r;
	while (len > d->dst.used && !d->copy[len - 1])
		len--;
	d->len = len;
	m->nr_bad += d->dst.nr_bad;
	mask_absolute(m, d);
	return 0;
}

static int by_contents(const void *a, const void *b)
{
	const struct pseudoimg_dst_range *x = a, *y = b;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return memcmp(x->copy, y->copy, x->len);
}

/* ---- owned areas ----------------------------------------------------------------------------- */

struct areas {
	PSEUDOIMG_ARRAY(struct pseudoimg_span) v;
};

static int areas_make(struct areas *a, const struct pseudoimg_model *m)
{
	for (size_t i = 0; i < m->ranges.nr; i++) {
		struct pseudoimg_span *s = PSEUDOIMG_PUSH(&a->v);

		if (!s)
			return -ENOMEM;
		*s = (struct pseudoimg_span){ .start = m->ranges.v[i].range_base,
					      .len = m->ranges.v[i].range_len,
					      .order = m->ranges.v[i].at.order };
	}
	a->v.nr = span_disjoint(a->v.v, a->v.nr, sizeof(*a->v.v));
	return 0;
}

static bool areas_hold(const struct areas *a, const struct pseudoimg_span *s)
{
	const struct pseudoimg_span *area = span_find(a->v.v, a->v.nr, s->start);

	return area && s->start - area->start <= area->len &&
	       s->len <= area->len - (s->start - area->start);
}

/* ---- changed code ---------------------------------------------------------------------------- */

/*
 * A page of an owned range that was changed after it was read stands as a range of its own: a place
 * ties it to where it stood. What DST says of those addresses is said of each of them.
 */
struct copies {
	PSEUDOIMG_ARRAY(struct wire_place) v; /* ordered by vaddr */
	uint64_t longest;
};

static int by_vaddr(const void *a, const void *b)
{
	const struct wire_place *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->elf < y->elf ? -1 : x->elf > y->elf;
}

static bool is_range(const struct pseudoimg_model *m, uint64_t base, uint64_t len)
{
	size_t lo = BASE_LOWER_BOUND(m->ranges.v, m->ranges.nr, range_base, base);

	return lo < m->ranges.nr && m->ranges.v[lo].range_base == base &&
	       m->ranges.v[lo].range_len == len;
}

static int copies_make(struct copies *c, const struct pseudoimg_model *m)
{
	const struct wire_head *rec;
	size_t pos = 0;

	while ((rec = wire_next(m->notes.data, m->notes.len, &pos))) {
		const struct wire_place *place = (const void *)rec;
		struct wire_place *to;

		if (rec->type != WIRE_PLACE || place->len > UINT64_MAX - place->vaddr ||
		    !is_range(m, place->elf, place->len))
			continue;
		to = PSEUDOIMG_PUSH(&c->v);
		if (!to)
			return -ENOMEM;
		*to = *place;
		if (place->len > c->longest)
			c->longest = place->len;
	}
	if (c->v.nr)
		qsort(c->v.v, c->v.nr, sizeof(*c->v.v), by_vaddr);
	return 0;
}

/* The first that may overlap what begins at @vaddr. */
static size_t copies_from(const struct copies *c, uint64_t vaddr)
{
	uint64_t least = vaddr > c->longest ? vaddr - c->longest : 0;
	return BASE_LOWER_BOUND(c->v.v, c->v.nr, vaddr, least);
}

/* The part of [*start, *start + *len) that @place holds. */
static bool clip(const struct wire_place *place, uint64_t *start, uint64_t *len)
{
	uint64_t end = *start + *len, last = place->vaddr + place->len;

	if (*start < place->vaddr)
		*start = place->vaddr;
	if (end > last)
		end = last;
	*len = end > *start ? end - *start : 0;
	return *len != 0;
}

/* ---- routines of DST ------------------------------------------------------------------------- */

static int add_dst_routine(struct pseudoimg_model *m, const struct areas *areas, uint64_t start,
			   uint64_t len, const struct pseudoimg_str *from)
{
	struct pseudoimg_span at = { .start = start, .len = len };
	struct pseudoimg_node *to;
	struct pseudoimg_str *name;

	if (len > WIRE_CODE_MAX || !areas_hold(areas, &at) || !pseudoimg_runs_place(m, &at)) {
		m->nr_bad++;
		return 0;
	}
	to = PSEUDOIMG_PUSH(&m->nodes);
	name = PSEUDOIMG_PUSH(&m->dst_names);
	if (!to || !name)
		return -ENOMEM;
	*name = *from;
	*to = (struct pseudoimg_node){
		.start = start,
		.len = (uint32_t)len,
		.ref = PSEUDOIMG_DST_REF + (uint32_t)(m->dst_names.nr - 1),
	};
	return 0;
}

static int add_dst_routines(struct pseudoimg_model *m, const struct areas *areas,
			    const struct copies *copies, const struct pseudoimg_dst *dst)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < dst->routines.nr; i++) {
		const struct pseudoimg_dst_routine *from = &dst->routines.v[i];

		r = add_dst_routine(m, areas, from->addr, from->len, &from->name);
		for (size_t k = copies_from(copies, from->addr); r >= 0 && k < copies->v.nr; k++) {
			const struct wire_place *place = &copies->v.v[k];
			uint64_t start = from->addr, len = from->len;

			if (place->vaddr >= from->addr + from->len)
				break;
			if (clip(place, &start, &len))
				r = add_dst_routine(m, areas, place->elf + (start - place->vaddr),
						    len, &from->name);
		}
	}
	return r;
}

static uint64_t end_of(const struct pseudoimg_node *n)
{
	return n->start + n->len;
}

static bool of_record(const struct pseudoimg_node *n)
{
	return n->ref < PSEUDOIMG_DST_REF;
}

/* @inner begins within @outer. Lexical nesting of two routines of DST is no overlap. */
static bool nests(const struct pseudoimg_node *outer, const struct pseudoimg_node *inner)
{
	return !of_record(outer) && !of_record(inner) && inner->len < outer->len &&
	       end_of(inner) <= end_of(outer);
}

/* Refuse routines that overlap without nesting, those that DST brought later. */
static int refuse_overlaps(struct pseudoimg_model *m)
{
	size_t *open = calloc(m->nodes.nr + 1, sizeof(*open)), depth = 0, kept = 0;
	struct pseudoimg_node *v = m->nodes.v;
	bool good;

	if (!open)
		return -ENOMEM;
	nodes_sort(m);
	for (size_t i = 0; i < m->nodes.nr; i++) {
		while (depth && end_of(&v[open[depth - 1]]) <= v[i].start)
			depth--;
		/* A record stays; the routines of DST that it begins in go. */
		for (; depth && of_record(&v[i]) && !of_record(&v[open[depth - 1]]); depth--)
			v[open[depth - 1]].len = 0;
		good = !depth || nests(&v[open[depth - 1]], &v[i]);
		if (good) {
			v[kept] = v[i];
			open[depth++] = kept++;
		}
	}
	free(open);
	m->nr_bad += (uint32_t)(m->nodes.nr - kept);
	m->nodes.nr = kept;
	kept = 0;
	for (size_t i = 0; i < m->nodes.nr; i++)
		if (v[i].len)
			v[kept++] = v[i];
	m->nr_bad += (uint32_t)(m->nodes.nr - kept);
	m->nodes.nr = kept;
	return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/*
 * Make a sequence at @start from the rows [@first, @end) of the code in @from; row @end closes the
 * last one.
 */
static int put_seq(struct pseudoimg_model *m, const struct areas *areas,
		   const struct pseudoimg_dst_row *v, const uint32_t *files, size_t nr,
		   const struct pseudoimg_span *from, uint64_t start)
{
	struct pseudoimg_span at = { .start = start,
				     .len = from->len,
				     .order = DST_ORDER + m->seqs.nr };
	uint64_t end = from->start + from->len;
	struct pseudoimg_seq *seq;
	struct pseudoimg_row *row;

	if (at.len > UINT32_MAX || !areas_hold(areas, &at) || !pseudoimg_runs_place(m, &at)) {
		m->nr_bad++;
		return 0;
	}
	seq = PSEUDOIMG_PUSH(&m->seqs);
	if (!seq)
		return -ENOMEM;
	*seq = (struct pseudoimg_seq){ .at = at, .first_row = m->rows.nr };
	for (size_t i = 0; i < nr && v[i].addr < end; i++) {
		uint64_t addr = v[i].addr > from->start ? v[i].addr : from->start;
		uint32_t file = v[i].line ? files[v[i].file] : PSEUDOIMG_NO_FILE;

		if (v[i].addr < from->start && v[i + 1].addr <= from->start)
			continue;
		row = PSEUDOIMG_PUSH(&m->rows);
		if (!row)
			return -ENOMEM;
		*row = (struct pseudoimg_row){ .off = (uint32_t)(addr - from->start) };
		if (file != PSEUDOIMG_NO_FILE) {
			row->line = v[i].line;
			row->file = file;
		}
		seq->nr_rows++;
	}
	return 0;
}

/* The sequence of @nr rows, closed by the row behind them. */
static int add_seq(struct pseudoimg_model *m, const struct areas *areas,
		   const struct copies *copies, const struct pseudoimg_dst_row *v,
		   const uint32_t *files, size_t nr)
{
	struct pseudoimg_span all = { .start = v[0].addr, .len = v[nr].addr - v[0].addr };
	int r;

	if (!all.len)
		return 0;
	r = put_seq(m, areas, v, files, nr, &all, all.start);
	for (size_t k = copies_from(copies, all.start); r >= 0 && k < copies->v.nr; k++) {
		const struct wire_place *place = &copies->v.v[k];
		struct pseudoimg_span part = all;

		if (place->vaddr >= v[nr].addr)
			break;
		if (clip(place, &part.start, &part.len))
			r = put_seq(m, areas, v, files, nr, &part,
				    place->elf + (part.start - place->vaddr));
	}
	return r;
}

static int add_seqs(struct pseudoimg_model *m, const struct areas *areas,
		    const struct copies *copies, const struct pseudoimg_dst *dst)
{
	uint32_t *files = calloc(dst->files.nr + 1, sizeof(*files));
	size_t first = 0;
	int r = files ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < dst->files.nr; i++) {
		int64_t file = PSEUDOIMG_NO_FILE;

		if (dst->files.v[i].len)
			file = pseudoimg_names_put(&m->names, dst->files.v[i].p,
						   dst->files.v[i].len);
		r = file < 0 ? (int)file : 0;
		files[i] = (uint32_t)file;
	}
	for (size_t i = 0; r >= 0 && i < dst->rows.nr; i++) {
		if (!dst->rows.v[i].end)
			continue;
		r = add_seq(m, areas, copies, dst->rows.v + first, files, i - first);
		first = i + 1;
	}
	free(files);
	return r;
}

/* The DST ranges that were sent become routines and sequences within the owned code ranges. */
static int read_dst(struct pseudoimg_model *m)
{
	struct areas areas = { 0 };
	struct copies copies = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < m->dst.nr; i++)
		r = decode(m, &m->dst.v[i]);
	if (r < 0 || !m->dst.nr)
		return r;
	/* Ranges stand at addresses that differ from run to run: only what they hold can order
	 * them. */
	qsort(m->dst.v, m->dst.nr, sizeof(*m->dst.v), by_contents);
	r = areas_make(&areas, m);
	if (r >= 0)
		r = copies_make(&copies, m);
	for (size_t i = 0; r >= 0 && i < m->dst.nr; i++)
		r = add_dst_routines(m, &areas, &copies, &m->dst.v[i].dst);
	if (r >= 0)
		r = refuse_overlaps(m);
	for (size_t i = 0; r >= 0 && i < m->dst.nr; i++)
		r = add_seqs(m, &areas, &copies, &m->dst.v[i].dst);
	free(areas.v.v);
	free(copies.v.v);
	return r;
}

/* ---- the whole ------------------------------------------------------------------------------- */

int pseudoimg_model_read(struct pseudoimg_model *m, struct pseudoimg_job *job, struct base_err *err)
{
	int r;

	m->job = job;
	r = read_job(m, err);
	if (r < 0)
		return r;
	r = runs_settle(m);
	if (r >= 0) {
		place_ranges(m);
		place_routines(m);
		check_notes(m);
		r = put_more(m);
	}
	if (r >= 0)
		r = read_dst(m);
	if (r >= 0 && m->seqs.nr)
		qsort(m->seqs.v, m->seqs.nr, sizeof(*m->seqs.v), pseudoimg_span_compare);
	return r < 0 ? base_fail_errno(err, r, "cannot read pseudo-image job") : 0;
}

void pseudoimg_model_release(struct pseudoimg_model *m)
{
	for (size_t i = 0; i < m->dst.nr; i++) {
		pseudoimg_dst_release(&m->dst.v[i].dst);
		free(m->dst.v[i].copy);
		base_buf_release(&m->dst.v[i].sent);
	}
	free(m->image);
	free(m->runs.v);
	free(m->runs_by_off.v);
	free(m->nodes.v);
	free(m->ranges.v);
	free(m->dst_names.v);
	free(m->seqs.v);
	free(m->rows.v);
	free(m->dst.v);
	base_buf_release(&m->notes);
	base_buf_release(&m->loaded_rows);
	base_buf_release(&m->loaded_names);
	base_buf_release(&m->loaded_text);
	base_buf_release(&m->loaded_code);
	base_buf_release(&m->hashed);
	pseudoimg_names_release(&m->names);
	memset(m, 0, sizeof(*m));
}
