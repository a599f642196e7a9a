/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire.h"

#include <errno.h>

const struct wire_head *wire_next(const void *data, size_t len, size_t *pos)
{
	const struct wire_head *h;

	if (*pos > len || len - *pos < sizeof(*h))
		return NULL;
	h = (const void *)((const uint8_t *)data + *pos);
	if (h->len < sizeof(*h) || h->len % 8 || h->len > WIRE_RECORD_MAX || h->len > len - *pos)
		return NULL;
	*pos += h->len;
	return h;
}

size_t wire_routine_len(size_t name_len, size_t code_len, bool with_code, size_t nr_lines,
			size_t files_len)
{
	size_t len = sizeof(struct wire_routine);

	if (name_len > WIRE_NAME_MAX || code_len > WIRE_CODE_MAX ||
	    nr_lines > WIRE_RECORD_MAX / sizeof(struct wire_line) || files_len > WIRE_RECORD_MAX)
		return 0;
	len += name_len + (with_code ? code_len : 0);
	len = (len + 7) & ~(size_t)7;
	len += nr_lines * sizeof(struct wire_line) + files_len;
	len = (len + 7) & ~(size_t)7;
	return len > WIRE_RECORD_MAX ? 0 : len;
}

/* Walk the counted strings; true if exactly @nr of them fit into @len bytes. */
static bool files_fit(const uint8_t *p, size_t len, uint32_t nr, size_t *used)
{
	size_t pos = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (len - pos < 2)
			return false;
		size_t n = p[pos] | (size_t)p[pos + 1] << 8;

		if (len - pos - 2 < n)
			return false;
		pos += 2 + n;
	}
	*used = pos;
	return true;
}

static bool lines_good(const struct wire_routine *r, const struct wire_line *l)
{
	for (uint32_t i = 0; i < r->nr_lines; i++) {
		if (l[i].code_off >= r->code_len || (i && l[i].code_off < l[i - 1].code_off))
			return false;
		if (l[i].line && l[i].file >= r->nr_files)
			return false;
	}
	return true;
}

int wire_routine_parse(const struct wire_head *rec, struct wire_routine_view *view)
{
	const struct wire_routine *r = (const void *)rec;
	bool with_code = rec->flags & WIRE_ROUTINE_CODE;
	size_t off = sizeof(*r);

	if (rec->type != WIRE_ROUTINE || rec->len < sizeof(*r))
		return -EINVAL;
	if (!r->handle || !r->code_len || r->code_len > WIRE_CODE_MAX ||
	    r->name_len > WIRE_NAME_MAX || r->addr + r->code_len < r->addr)
		return -EINVAL;
	size_t fixed = wire_routine_len(r->name_len, r->code_len, with_code, r->nr_lines, 0);

	if (!fixed || fixed > rec->len)
		return -EINVAL;
	*view = (struct wire_routine_view){ .rec = r, .name = (const char *)r + off };
	off += r->name_len;
	if (with_code) {
		view->code = (const uint8_t *)r + off;
		off += r->code_len;
	}
	off = (off + 7) & ~(size_t)7;
	view->lines = (const void *)((const uint8_t *)r + off);
	off += (size_t)r->nr_lines * sizeof(struct wire_line);
	view->files = (const uint8_t *)r + off;
	if (!files_fit(view->files, rec->len - off, r->nr_files, &view->files_len))
		return -EINVAL;
	return lines_good(r, view->lines) ? 0 : -EINVAL;
}

const char *wire_file_next(const struct wire_routine_view *view, size_t *pos, size_t *len)
{
	const uint8_t *p = view->files + *pos;

	if (*pos >= view->files_len)
		return NULL;
	*len = p[0] | (size_t)p[1] << 8;
	*pos += 2 + *len;
	return (const char *)p + 2;
}

const char *wire_routine_file(const struct wire_routine_view *view, uint32_t index, size_t *len)
{
	const char *name;
	size_t pos = 0;

	if (index >= view->rec->nr_files)
		return NULL;
	do {
		name = wire_file_next(view, &pos, len);
	} while (index--);
	return name;
}

static bool image_good(const struct wire_image *i)
{
	return i->head.len >= sizeof(*i) + i->facility_len + i->host_len + i->exe_len;
}

static bool bytes_good(const struct wire_bytes *b)
{
	return b->bytes_len <= b->head.len - sizeof(*b) &&
	       b->range_base + b->range_len >= b->range_base && b->vaddr >= b->range_base &&
	       b->vaddr - b->range_base <= b->range_len &&
	       b->bytes_len <= b->range_len - (b->vaddr - b->range_base);
}

int wire_check(const struct wire_head *rec)
{
	static const uint32_t min_len[] = {
		[WIRE_PAD] = sizeof(struct wire_head),
		[WIRE_ROUTINE] = sizeof(struct wire_routine),
		[WIRE_FACILITY] = sizeof(struct wire_facility_rec),
		[WIRE_RANGE] = sizeof(struct wire_range_rec),
		[WIRE_BYTES] = sizeof(struct wire_bytes),
		[WIRE_IMAGE] = sizeof(struct wire_image),
		[WIRE_RUN] = sizeof(struct wire_run),
		[WIRE_REPLACES] = sizeof(struct wire_replaces),
	};
	struct wire_routine_view view;
	const struct wire_run *run = (const void *)rec;
	const struct wire_range *range = &((const struct wire_range_rec *)(const void *)rec)->range;
	bool good = true;

	if (rec->type < sizeof(min_len) / sizeof(min_len[0]) && rec->len < min_len[rec->type])
		return -EINVAL;
	switch (rec->type) {
	case WIRE_ROUTINE:
		return wire_routine_parse(rec, &view);
	case WIRE_FACILITY:
		good = ((const struct wire_facility_rec *)(const void *)rec)->name_len <=
		       rec->len - sizeof(struct wire_facility_rec);
		break;
	case WIRE_RANGE:
		good = range->len && range->base + range->len >= range->base;
		break;
	case WIRE_BYTES:
		good = bytes_good((const void *)rec);
		break;
	case WIRE_IMAGE:
		good = image_good((const void *)rec);
		break;
	case WIRE_RUN:
		good = run->len && run->vaddr + run->len >= run->vaddr &&
		       run->img_off + run->len >= run->img_off;
		break;
	}
	return good ? 0 : -EINVAL;
}
