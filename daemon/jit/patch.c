/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code in a range of the application's that was changed after it was read. What stood there first
 * keeps its place in the image, what stands there later gets room of its own, page by page; a page
 * that goes back to what it was goes back to that place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jit_internal.h"

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

/* Did something that was there (not zero) become something else? Filling in zeros is growth. */
bool dyn_patch_is_change(const uint8_t *old, size_t old_len, const uint8_t *new, size_t new_len)
{
	size_t have = new_len < old_len ? new_len : old_len;

	if (have && have == old_len && !memcmp(old, new, have))
		return false;
	for (size_t i = 0; i < old_len; i++)
		if (old[i] && (i >= have || old[i] != new[i]))
			return true;
	return false;
}

int dyn_patch_page(struct dyn_registry *reg, struct dyn_range *range, uint64_t vaddr,
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
