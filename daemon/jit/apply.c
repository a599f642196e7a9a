/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records of a poll are applied (those that change what lives go to lifetime.c), and the
 * contents of ranges.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jit_internal.h"
#include "registry.h"

/* ---- code that was changed ------------------------------------------------------------------- */

/*
 * Code in a range of the application's that was changed after it was read. What stood there first
 * keeps its place in the image, what stands there later gets room of its own, page by page; a page
 * that goes back to what it was goes back to that place.
 */

/* One contents of a page. The first one, texts[0], stands at its own address. */
struct text {
	uint64_t elf;
	struct base_buf bytes; /* without trailing zeros */
};

/* From @hi on it was @text; since @lo it may have been. */
struct version {
	uint64_t lo, hi;
	size_t text;
};

struct dyn_patch {
	struct interval_node node; /* of the page, as far as it lies in the range */
	bool lost;		   /* it changed again, and there was no room */
	struct text *texts;
	size_t nr_texts, cap_texts;
	struct version *versions;
	size_t nr_versions, cap_versions;
};

/* The part of a page that a range holds: as it was read first, and now. */
struct dyn_page {
	const uint8_t *old, *new;
	size_t old_len, new_len;
};

static struct dyn_patch *find(const struct dyn_range *range, uint64_t vaddr)
{
	return (void *)interval_find(&range->patches, vaddr);
}

static size_t current(const struct dyn_patch *p)
{
	return p->nr_versions ? p->versions[p->nr_versions - 1].text : 0;
}

static size_t trimmed(const uint8_t *data, size_t len)
{
	while (len && !data[len - 1])
		len--;
	return len;
}

static int set_text(struct text *t, const uint8_t *data, size_t len)
{
	base_buf_clear(&t->bytes);
	return base_buf_append(&t->bytes, data, trimmed(data, len));
}

/* Room for @len more bytes, taken from the limits of the registry and of the daemon. */
static bool dyn_capacity_take(struct dyn_registry *reg, uint64_t len)
{
	if (len > dyn_capacity_left(reg) || len > DYN_REGISTRY_BYTES_MAX - reg->bytes ||
	    len > DYN_ALL_BYTES_MAX - reg->dyn->bytes ||
	    !budget_take(reg->dyn->config.budgets, reg->uid, BUDGET_CONTENTS, len,
			 DYN_ALL_BYTES_MAX))
		return false;
	reg->bytes += len;
	reg->dyn->bytes += len;
	return true;
}

static int add_text(struct dyn_registry *reg, struct dyn_patch *p, uint64_t elf,
		    const uint8_t *data, size_t len)
{
	int r = base_grow(&p->texts, &p->cap_texts, p->nr_texts + 1, sizeof(*p->texts));

	if (r < 0)
		return r;
	if (!dyn_capacity_take(reg, WIRE_PAGE))
		return -DCPI_ELIMIT;
	p->texts[p->nr_texts] = (struct text){ .elf = elf };
	return set_text(&p->texts[p->nr_texts++], data, len);
}

static int new_patch(struct dyn_registry *reg, struct dyn_range *range, uint64_t vaddr,
		     const uint8_t *old, size_t len, struct dyn_patch **out)
{
	uint64_t end = vaddr - vaddr % WIRE_PAGE + WIRE_PAGE, last;
	struct dyn_patch *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	last = range->range.base + range->range.len;
	p->node = (struct interval_node){ .start = vaddr, .end = end < last ? end : last };
	r = add_text(reg, p, vaddr, old, len);
	if (r < 0 && r != -DCPI_ELIMIT) {
		free(p->texts);
		free(p);
		return r;
	}
	p->lost = r < 0;
	interval_insert(&range->patches, &p->node);
	*out = p;
	return 0;
}

/* Room for a page of it that is all its own. */
static int new_place(struct dyn_facility *f, const struct dyn_patch *p, uint64_t *elf)
{
	uint64_t off = p->node.start % 16, len = p->node.end - p->node.start;
	uint32_t units = (uint32_t)((off + len + 15) / 16);
	int r;

	if (units > DYN_PLACE_OWN - 1 - f->next_private)
		return -DCPI_ELIMIT;
	*elf = PSEUDOIMG_MODULE + (f->next_private - 1) * 16ull + off;
	r = dyn_facility_cover(f, *elf, len);
	if (r == 0)
		f->next_private += units;
	return r;
}

static int text_of(struct dyn_registry *reg, struct dyn_facility *f, struct dyn_patch *p,
		   const uint8_t *data, size_t len, size_t *text)
{
	uint64_t elf;
	int r;

	len = trimmed(data, len);
	for (*text = 0; *text < p->nr_texts; ++*text) {
		const struct base_buf *b = &p->texts[*text].bytes;

		if (b->len == len && (!len || !memcmp(b->data, data, len)))
			return 0;
	}
	r = new_place(f, p, &elf);
	return r < 0 ? r : add_text(reg, p, elf, data, len);
}

static int add_version(struct dyn_registry *reg, struct dyn_range *range, struct dyn_patch *p,
		       const uint8_t *data, size_t len, const struct dyn_poll *when)
{
	struct dyn_facility *f = reg->facilities[range->range.facility];
	struct version v = { .lo = range->seen_ns, .hi = when->hi };
	int r = p->lost || reg->nr_patches >= DYN_PATCHES_MAX ? -DCPI_ELIMIT : 0;

	if (r == 0)
		r = text_of(reg, f, p, data, len, &v.text);
	if (r == 0)
		r = base_grow(&p->versions, &p->cap_versions, p->nr_versions + 1, sizeof(v));
	if (r == -ENOMEM)
		return r;
	reg->nr_bad++;
	if (r < 0) {
		p->lost = true;
		return 0;
	}
	p->versions[p->nr_versions++] = v;
	reg->nr_patches++;
	f->owned_changed = true;
	return 0;
}

/* True if a byte that was not zero became another one: bytes that were zero are filled in. */
static bool dyn_patch_is_change(const uint8_t *old, size_t old_len, const uint8_t *new,
				size_t new_len)
{
	size_t have = new_len < old_len ? new_len : old_len;

	if (have && have == old_len && !memcmp(old, new, have))
		return false;
	for (size_t i = 0; i < old_len; i++)
		if (old[i] && (i >= have || old[i] != new[i]))
			return true;
	return false;
}

/*
 * The page at @vaddr was read within @when. 0: it is what it was, or has grown. 1: it is another
 * one, or was, and the range keeps what was read first. -ENOMEM.
 */
static int dyn_patch_page(struct dyn_registry *reg, struct dyn_range *range, uint64_t vaddr,
			  const struct dyn_page *page, const struct dyn_poll *when)
{
	struct dyn_patch *p = find(range, vaddr);
	const uint8_t *old = page->old;
	size_t len = page->old_len;
	int r = 0;

	/* Nothing there: it is unmapped, or wiped. What could not run needs no version. */
	if (!trimmed(page->new, page->new_len))
		return 1;
	if (p && p->lost)
		return 1;
	if (p && current(p)) {
		old = p->texts[current(p)].bytes.data;
		len = p->texts[current(p)].bytes.len;
	}
	if (!dyn_patch_is_change(old, len, page->new, page->new_len)) {
		if (!p || !current(p))
			return 0;
		if (trimmed(page->new, page->new_len) != len) {
			reg->facilities[range->range.facility]->owned_changed = true;
			r = set_text(&p->texts[current(p)], page->new, page->new_len);
		}
		return r < 0 ? r : 1;
	}
	if (!p)
		r = new_patch(reg, range, vaddr, old, len, &p);
	else if (!current(p)) /* it may have grown since */
		r = set_text(&p->texts[0], old, len);
	if (r == 0)
		r = add_version(reg, range, p, page->new, page->new_len, when);
	return r < 0 ? r : 1;
}

enum dyn_where dyn_patch_find(const struct dyn_range *range, const struct dyn_ask *ask,
			      uint64_t *elf)
{
	const struct dyn_patch *p = find(range, ask->addr);
	size_t text = 0;

	*elf = ask->addr;
	if (!p)
		return DYN_FOUND;
	for (size_t i = 0; i < p->nr_versions; i++) {
		const struct version *v = &p->versions[i];

		if (ask->time_ns <= v->lo)
			break;
		if (ask->first_ns < v->hi)
			return DYN_REUSED;
		text = v->text;
	}
	if (p->lost)
		return DYN_REUSED;
	*elf = p->texts[text].elf + (ask->addr - p->node.start);
	return DYN_FOUND;
}

int dyn_patch_each(const struct dyn_range *range,
		   int (*fn)(void *ctx, uint64_t vaddr, uint64_t elf, uint64_t len,
			     const struct base_buf *bytes),
		   void *ctx)
{
	const struct dyn_patch *p;
	uint64_t pos = 0;
	int r = 0;

	while (r == 0 && (p = (void *)interval_overlap(&range->patches, pos, UINT64_MAX))) {
		for (size_t i = 1; r == 0 && i < p->nr_texts; i++)
			r = fn(ctx, p->node.start, p->texts[i].elf, p->node.end - p->node.start,
			       &p->texts[i].bytes);
		pos = p->node.end;
	}
	return r;
}

void dyn_patch_release(struct dyn_range *range)
{
	struct dyn_patch *p;
	uint64_t pos = 0;

	for (; (p = (void *)interval_overlap(&range->patches, pos, UINT64_MAX));
	     pos = p->node.end) {
		for (size_t i = 0; i < p->nr_texts; i++)
			base_buf_release(&p->texts[i].bytes);
		free(p->texts);
		free(p->versions);
	}
	interval_release(&range->patches);
}

/* ---- records --------------------------------------------------------------------------------- */

static int apply_facility(struct dyn_registry *reg, const struct wire_facility_rec *rec)
{
	struct dyn_facility *f;

	if (rec->index >= WIRE_NR_FACILITIES || !rec->name_len ||
	    rec->name_len > WIRE_FACILITY_NAME)
		return -EINVAL;
	f = reg->facilities[rec->index];
	if (!f) {
		int r = dyn_facility_new(reg, rec, &reg->facilities[rec->index]);

		if (r == 0)
			reg->dyn->stats.facilities++;
		return r;
	}
	/* A slot keeps its facility. */
	if (f->name_len != rec->name_len || memcmp(f->name, rec + 1, rec->name_len) != 0)
		return -EINVAL;
	return 0;
}

static int apply_range(struct dyn_registry *reg, const struct wire_range_rec *rec, uint64_t lo,
		       uint64_t hi)
{
	uint32_t facility = rec->range.facility;
	struct dyn_facility *f = facility < WIRE_NR_FACILITIES ? reg->facilities[facility] : NULL;
	struct dyn_range *range;
	size_t nr = reg->nr_ranges;
	int r;

	if (rec->index >= WIRE_NR_RANGES || !f || !rec->range.len ||
	    rec->range.base >= REGISTRY_VADDR_MAX ||
	    rec->range.len > REGISTRY_VADDR_MAX - rec->range.base ||
	    (rec->range.kind != WIRE_RANGE_CODE && rec->range.kind != WIRE_RANGE_DST &&
	     rec->range.kind != WIRE_RANGE_ARENA))
		return -EINVAL;
	if (rec->index >= nr) {
		r = base_grow(&reg->ranges, &reg->cap_ranges, rec->index + 1u,
			      sizeof(*reg->ranges));
		if (r < 0)
			return r;
		memset(reg->ranges + nr, 0, (rec->index + 1u - nr) * sizeof(*reg->ranges));
		reg->nr_ranges = rec->index + 1u;
	}
	range = &reg->ranges[rec->index];
	if (range->known)
		return memcmp(&range->range, &rec->range, sizeof(rec->range)) ? -EINVAL : 0;
	if (rec->range.kind == WIRE_RANGE_CODE) {
		r = dyn_facility_cover(f, rec->range.base, rec->range.len);
		if (r < 0)
			return r;
		f->owned_changed = true;
	}
	range->range = rec->range;
	range->lo = lo > reg->made_ns ? lo : reg->made_ns;
	range->hi = hi;
	range->known = true;
	return 0;
}

/* ---- contents of owned ranges ---------------------------------------------------------------- */

/* Records become one array from the range's base on. */
static int flatten(const struct wire_range *range, const void *data, size_t len,
		   struct base_buf *flat)
{
	const struct wire_head *h;

	WIRE_FOR_EACH (h, data, len, pos) {
		const struct wire_bytes *b = (const void *)h;
		uint64_t off = b->vaddr - range->base, end = off + b->bytes_len;

		if (h->type != WIRE_BYTES || wire_check(h) < 0 || b->vaddr < range->base ||
		    off > range->len || b->bytes_len > range->len - off)
			return -EINVAL;
		if (end > DYN_REGISTRY_BYTES_MAX)
			return -DCPI_ELIMIT;
		if (end > flat->len) {
			int r = base_buf_extend(flat, (size_t)end - flat->len, NULL);

			if (r < 0)
				return r;
		}
		if (b->bytes_len)
			memcpy(flat->data + off, b + 1, b->bytes_len);
	}
	return 0;
}

static int put_back(struct base_buf *to, size_t at, const uint8_t *old, size_t len)
{
	int r = at + len > to->len ? base_buf_extend(to, at + len - to->len, NULL) : 0;

	if (r == 0)
		memcpy(to->data + at, old, len);
	return r;
}

/* The image shows the bytes that were read first. */
static int keep_first(struct dyn_registry *reg, struct dyn_range *range, struct base_buf *fresh,
		      const struct dyn_poll *when)
{
	const struct base_buf *old = &range->contents;
	bool code = range->range.kind == WIRE_RANGE_CODE;
	int r = 0;

	if (!code && dyn_patch_is_change(old->data, old->len, fresh->data, fresh->len)) {
		/* Unmapped memory has changed nothing. */
		reg->nr_bad += fresh->len && !range->refused;
		range->refused |= fresh->len > 0;
		return put_back(fresh, 0, old->data, old->len);
	}
	for (size_t at = 0, len; code && r == 0 && at < old->len; at += len) {
		uint64_t vaddr = range->range.base + at, rest = WIRE_PAGE - vaddr % WIRE_PAGE;
		size_t have = at < fresh->len ? fresh->len - at : 0;

		len = rest < old->len - at ? rest : old->len - at;
		const struct dyn_page page = { .old = old->data + at,
					       .new = have ? fresh->data + at : NULL,
					       .old_len = len,
					       .new_len = have < rest ? have : rest };

		r = dyn_patch_page(reg, range, vaddr, &page, when);
		if (r > 0)
			r = put_back(fresh, at, old->data + at, len);
	}
	return r;
}

static bool equal(const struct base_buf *a, const struct base_buf *b)
{
	return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

static int replace(struct dyn_registry *reg, struct dyn_range *range, struct base_buf *fresh)
{
	struct base_buf *old = &range->contents;

	if (equal(old, fresh))
		return 0;
	if (fresh->len > old->len && !dyn_capacity_take(reg, fresh->len - old->len))
		return -DCPI_ELIMIT;
	if (fresh->len < old->len)
		dyn_capacity_give_back(reg, old->len - fresh->len);
	base_buf_release(old);
	*old = *fresh;
	*fresh = (struct base_buf){ 0 };
	reg->facilities[range->range.facility]->owned_changed = true;
	return 0;
}

int dyn_apply_contents(struct dyn_registry *reg, struct dyn_range *range, const void *data,
		       size_t len, const struct dyn_poll *when)
{
	struct base_buf fresh = { 0 };
	int r = flatten(&range->range, data, len, &fresh);

	reg->nr_changes++;
	if (r == 0)
		r = keep_first(reg, range, &fresh, when);
	if (r == 0)
		r = replace(reg, range, &fresh);
	if (r == 0) {
		range->seen_ns = when->lo;
		range->read = true;
	}
	if (r == -DCPI_ELIMIT && !range->limited) {
		range->limited = true;
		reg->dyn->stats.records_dropped++;
	}
	base_buf_release(&fresh);
	return r;
}

/* From a recorded stream: the range is found by what the record says of it. */
static int apply_bytes(struct dyn_registry *reg, const struct wire_bytes *b,
		       const struct dyn_poll *when)
{
	for (size_t i = 0; i < reg->nr_ranges; i++) {
		struct dyn_range *range = &reg->ranges[i];

		if (range->known && range->range.base == b->range_base &&
		    range->range.len == b->range_len && range->range.kind == b->kind &&
		    range->range.facility == b->facility)
			return dyn_apply_contents(reg, range, b, b->head.len, when);
	}
	return -EINVAL;
}

/* Changes with a time of their own happened just then, but not after they were read. */
static void apply_time(struct dyn_registry *reg, const struct wire_time *t, struct dyn_interval *m,
		       const struct dyn_poll *trace)
{
	uint64_t time_ns = t->time_ns < trace->hi ? t->time_ns : trace->hi;

	m->lo = time_ns ? time_ns : trace->lo;
	m->hi = time_ns ? time_ns : trace->hi;
	if (time_ns > reg->announced_ns)
		reg->announced_ns = time_ns;
}

int dyn_apply(struct dyn_registry *reg, const void *data, size_t len, uint64_t lo, uint64_t hi)
{
	struct dyn_interval m = { .lo = lo, .hi = hi };
	const struct dyn_poll when = { hi, hi }, trace = { lo, hi };
	const struct wire_head *h;
	size_t pos = 0;
	int bad = 0;

	reg->nr_changes++;
	reg->lifetimes.nr_misses = 0;
	reg->lifetimes.reading = trace;
	while ((h = wire_next(data, len, &pos))) {
		int r = wire_check(h);

		if (r == 0 && h->type == WIRE_FACILITY)
			r = apply_facility(reg, (const void *)h);
		else if (r == 0 && h->type == WIRE_RANGE)
			r = apply_range(reg, (const void *)h, lo, hi);
		else if (r == 0 && h->type == WIRE_BYTES)
			r = apply_bytes(reg, (const void *)h, &when);
		else if (r == 0 && h->type == WIRE_TIME)
			apply_time(reg, (const void *)h, &m, &trace);
		else if (r == 0)
			r = dyn_change_apply(reg, h, &m);
		if (r == -ENOMEM || r == -DCPI_ELIMIT || r == -EDQUOT)
			reg->dyn->stats.records_dropped++;
		else if (r < 0)
			bad++;
	}
	m.seq = reg->lifetimes.last_seq;
	dyn_lifetime_sweep(&reg->lifetimes, &m);
	return bad + (pos != len);
}
