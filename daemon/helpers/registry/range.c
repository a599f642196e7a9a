/* SPDX-License-Identifier: BSD-2-Clause */
/* The contents of a range of a process's memory are read, without long gaps of zeros. */
#include "registry.h"

#include <errno.h>
#include <stdlib.h>

enum { STEP = 256 << 10, GAP = 64 << 10 };

/* Walks a range page by page and keeps what is not zero. */
struct walk {
	const struct wire_range *range;
	struct base_buf *out;
	size_t record; /* offset of the open record in @out; SIZE_MAX: none */
	uint64_t end;  /* vaddr behind the open record's bytes */
};

/* Trailing zeros go, the lengths are filled in. */
static int close_record(struct walk *w)
{
	struct wire_bytes *rec;
	uint64_t len;

	if (w->record == SIZE_MAX)
		return 0;
	rec = (void *)(w->out->data + w->record);
	len = w->end - rec->vaddr;
	while (len && !((uint8_t *)(rec + 1))[len - 1])
		len--;
	rec->bytes_len = len;
	rec->head.len = (uint32_t)base_align_up(sizeof(*rec) + len, 8);
	/* The cut bytes were zero, so the padding is. */
	if (w->record + rec->head.len > w->out->len) {
		size_t more = w->record + rec->head.len - w->out->len;
		int r = base_buf_extend(w->out, more, NULL);

		w->record = SIZE_MAX;
		return r;
	}
	w->out->len = w->record + rec->head.len;
	w->record = SIZE_MAX;
	return 0;
}

static int open_record(struct walk *w, uint64_t vaddr)
{
	struct wire_bytes *rec;
	void *p;
	int r = base_buf_extend(w->out, sizeof(*rec), &p);

	if (r < 0)
		return r;
	rec = p;
	rec->head.type = WIRE_BYTES;
	rec->facility = w->range->facility;
	rec->kind = w->range->kind;
	rec->vaddr = vaddr;
	rec->range_base = w->range->base;
	rec->range_len = w->range->len;
	w->record = (size_t)((uint8_t *)rec - w->out->data);
	w->end = vaddr;
	return 0;
}

static bool all_zero(const uint8_t *p, size_t len)
{
	return !len || (!p[0] && !memcmp(p, p + 1, len - 1));
}

static int keep(struct walk *w, uint64_t vaddr, const uint8_t *data, size_t len)
{
	int r = 0;

	if (all_zero(data, len))
		return 0;
	if (w->record != SIZE_MAX && vaddr - w->end > GAP)
		r = close_record(w);
	if (r == 0 && w->record == SIZE_MAX)
		r = open_record(w, vaddr);
	if (r == 0)
		r = base_buf_extend(w->out, vaddr - w->end, NULL);
	if (r == 0)
		r = base_buf_append(w->out, data, len);
	w->end = vaddr + len;
	return r;
}

/* The bytes that were read of [vaddr, …) are cut at page boundaries, so that gaps are seen. */
static int keep_pages(struct walk *w, uint64_t vaddr, const uint8_t *data, size_t len)
{
	int r = 0;

	while (r == 0 && len) {
		size_t n = WIRE_PAGE - vaddr % WIRE_PAGE;

		n = n < len ? n : len;
		r = keep(w, vaddr, data, n);
		vaddr += n;
		data += n;
		len -= n;
	}
	return r;
}

int registry_range_read(const struct wire_range *range, const struct registry_memory *memory,
			struct base_buf *out)
{
	struct walk w = { .range = range, .out = out, .record = SIZE_MAX };
	uint64_t len = range->len < REGISTRY_RANGE_MAX ? range->len : REGISTRY_RANGE_MAX;
	uint64_t pos = range->base, end;
	uint8_t *step = malloc(STEP);
	int r = step ? 0 : -ENOMEM;

	if (base_add_overflow(pos, len, &end))
		r = -EINVAL;
	while (r == 0 && pos < end) {
		size_t page = WIRE_PAGE - pos % WIRE_PAGE, want = STEP;
		ssize_t n;

		want = end - pos < want ? (size_t)(end - pos) : want;
		page = want < page ? want : page;
		n = memory->read(memory->ctx, pos, step, want);
		/* Something in the way: up to it page by page. */
		if (n <= 0 && n != -ESRCH && want > page)
			n = memory->read(memory->ctx, pos, step, page);
		if (n == -ESRCH)
			r = -ESRCH;
		else if (n > 0)
			r = keep_pages(&w, pos, step, (size_t)n);
		pos += n > 0 ? (uint64_t)n : page;
	}
	if (r == 0)
		r = close_record(&w);
	free(step);
	return r;
}
