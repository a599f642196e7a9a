/* SPDX-License-Identifier: BSD-2-Clause */
/* Records that cross a process boundary are walked and checked. */
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
			size_t nr_inlines, size_t files_len)
{
	size_t len = sizeof(struct wire_routine);

	if (name_len > WIRE_NAME_MAX || code_len > WIRE_CODE_MAX ||
	    nr_lines > WIRE_RECORD_MAX / sizeof(struct wire_line) ||
	    nr_inlines > WIRE_RECORD_MAX / sizeof(struct wire_inline) ||
	    files_len > WIRE_RECORD_MAX)
		return 0;
	len += name_len + (with_code ? code_len : 0);
	len = (len + 7) & ~(size_t)7;
	len += nr_lines * sizeof(struct wire_line) + nr_inlines * sizeof(struct wire_inline) +
	       files_len;
	len = (len + 7) & ~(size_t)7;
	return len > WIRE_RECORD_MAX ? 0 : len;
}

size_t wire_routine_frames_len(size_t len, size_t nr_frames)
{
	if (nr_frames > (WIRE_RECORD_MAX - len) / sizeof(struct wire_frame))
		return 0;
	return len ? len + nr_frames * sizeof(struct wire_frame) : 0;
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

static bool inlines_good(const struct wire_routine *r, const struct wire_inline *in)
{
	/* For each depth: the end of the part that is open there. */
	uint64_t ends[WIRE_INLINE_DEPTH + 1], at = 0;
	uint32_t open = 0;

	for (uint32_t i = 0; i < r->nr_inlines; i++) {
		uint32_t depth = in[i].depth;
		uint64_t end = (uint64_t)in[i].code_off + in[i].code_len;

		if (depth > open || depth >= WIRE_INLINE_DEPTH || !in[i].code_len ||
		    in[i].name >= r->nr_files ||
		    (in[i].call_line && in[i].call_file >= r->nr_files))
			return false;
		/* Behind its elder brother, or where its parent begins. */
		if (depth < open)
			at = ends[depth];
		if (in[i].code_off < at || end > (depth ? ends[depth - 1] : r->code_len))
			return false;
		ends[depth] = end;
		open = depth + 1;
		at = in[i].code_off;
	}
	return true;
}

/* Where a register of the caller is saved: above @lowest, and below the return address. */
static bool saved_good(int32_t off, int32_t lowest)
{
	return off == WIRE_FRAME_IN_REGISTER || off == WIRE_FRAME_LOST ||
	       (off % 8 == 0 && off <= -16 && off >= lowest);
}

const char *wire_frame_fault(const struct wire_frame *f)
{
	bool by_fp = f->flags & WIRE_FRAME_BY_FP;
	int32_t lowest = -WIRE_FRAME_FAR;

	if (f->flags & ~(WIRE_FRAME_BY_FP | WIRE_FRAME_FALLBACK) || f->reserved)
		return "flags, or what is reserved, has unknown bits";
	if (f->cfa_off % 8 || f->cfa_off < (by_fp ? lowest : 8) || f->cfa_off > WIRE_FRAME_FAR)
		return "cfa_off is no multiple of 8, or leads nowhere";
	if (by_fp && f->fp_off == WIRE_FRAME_IN_REGISTER)
		return "the frame pointer is not its caller's: fp_off must say where that is";
	if (!by_fp)
		lowest = -f->cfa_off;
	if (!saved_good(f->fp_off, lowest))
		return "fp_off is no place in the frame";
	return saved_good(f->link_off, lowest) ? NULL : "link_off is no place in the frame";
}

static bool frames_good(const struct wire_routine *r, const struct wire_frame *f, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (f[i].code_off >= r->code_len || (i && f[i].code_off <= f[i - 1].code_off) ||
		    wire_frame_fault(&f[i]))
			return false;
	return nr > 0;
}

/* Frames fill the record from @off on. */
static bool frames_fit(struct wire_routine_view *v, size_t off)
{
	size_t len = v->rec->head.len;

	off = (off + 7) & ~(size_t)7;
	if (off > len || (len - off) % sizeof(struct wire_frame))
		return false;
	v->frames = (const void *)((const uint8_t *)v->rec + off);
	v->nr_frames = (len - off) / sizeof(struct wire_frame);
	return frames_good(v->rec, v->frames, v->nr_frames);
}

int wire_routine_parse(const struct wire_head *rec, struct wire_routine_view *view)
{
	const struct wire_routine *r = (const void *)rec;
	bool with_code = rec->flags & WIRE_ROUTINE_CODE;
	size_t off = sizeof(*r);

	if (rec->type != WIRE_ROUTINE || rec->len < sizeof(*r))
		return -EINVAL;
	if (!r->seq || !r->code_len || r->code_len > WIRE_CODE_MAX || r->name_len > WIRE_NAME_MAX ||
	    r->addr + r->code_len < r->addr)
		return -EINVAL;
	size_t fixed = wire_routine_len(r->name_len, r->code_len, with_code, r->nr_lines,
					r->nr_inlines, 0);

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
	view->inlines = (const void *)((const uint8_t *)r + off);
	off += (size_t)r->nr_inlines * sizeof(struct wire_inline);
	view->files = (const uint8_t *)r + off;
	if (!files_fit(view->files, rec->len - off, r->nr_files, &view->files_len))
		return -EINVAL;
	if (rec->flags & WIRE_ROUTINE_FRAMES && !frames_fit(view, off + view->files_len))
		return -EINVAL;
	return lines_good(r, view->lines) && inlines_good(r, view->inlines) ? 0 : -EINVAL;
}

static bool image_good(const struct wire_image *i)
{
	return i->head.len >= sizeof(*i) + i->facility_len + i->host_len + i->exe_len;
}

static bool code_good(uint64_t addr, uint64_t len)
{
	return len && len <= WIRE_CODE_MAX && addr + len >= addr;
}

static bool retire_good(const struct wire_retire *r)
{
	return r->seq && r->addr + r->code_len >= r->addr && (r->handle || r->code_len);
}

static bool move_good(const struct wire_move *m)
{
	bool with_code = m->head.flags & WIRE_ROUTINE_CODE;

	return m->seq && code_good(m->from, m->code_len) && code_good(m->to, m->code_len) &&
	       (!with_code || m->code_len <= m->head.len - sizeof(*m));
}

static bool object_good(const struct wire_object *o)
{
	bool with_elf = o->head.flags & WIRE_ROUTINE_CODE;

	return o->seq && o->elf_len && o->elf_addr + o->elf_len >= o->elf_addr && o->code_len &&
	       o->addr + o->code_len >= o->addr &&
	       (!with_elf || o->elf_len <= o->head.len - sizeof(*o));
}

static bool replaces_good(const struct wire_replaces *r)
{
	const struct wire_moved *m = (const void *)(r + 1);
	uint64_t at = 0;

	if (r->nr_moved > (r->head.len - sizeof(*r)) / sizeof(*m))
		return false;
	for (uint32_t i = 0; i < r->nr_moved; i++) {
		if (!m[i].len || m[i].from < at || m[i].from + m[i].len < m[i].from ||
		    m[i].to + m[i].len < m[i].to)
			return false;
		at = m[i].from + m[i].len;
	}
	return true;
}

uint64_t wire_moved_off(const struct wire_replaces *rec, uint64_t off)
{
	const struct wire_moved *m = (const void *)(rec + 1);
	uint32_t lo = 0, hi = rec->nr_moved;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (m[mid].from <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || off - m[lo - 1].from >= m[lo - 1].len)
		return off;
	return m[lo - 1].to + (off - m[lo - 1].from);
}

static bool place_good(const struct wire_place *p)
{
	return p->len && p->vaddr + p->len >= p->vaddr && p->elf + p->len >= p->elf;
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
		[WIRE_RETIRE] = sizeof(struct wire_retire),
		[WIRE_MOVE] = sizeof(struct wire_move),
		[WIRE_TIME] = sizeof(struct wire_time),
		[WIRE_WHEN] = sizeof(struct wire_time),
		[WIRE_OBJECT] = sizeof(struct wire_object),
		[WIRE_LISTED] = sizeof(struct wire_listed),
		[WIRE_PLACE] = sizeof(struct wire_place),
		[WIRE_INSTANCE] = sizeof(struct wire_instance),
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
	case WIRE_RETIRE:
		good = retire_good((const void *)rec);
		break;
	case WIRE_MOVE:
		good = move_good((const void *)rec);
		break;
	case WIRE_OBJECT:
		good = object_good((const void *)rec);
		break;
	case WIRE_REPLACES:
		good = replaces_good((const void *)rec);
		break;
	case WIRE_PLACE:
		good = place_good((const void *)rec);
		break;
	case WIRE_RUN:
		good = run->len && run->vaddr + run->len >= run->vaddr &&
		       run->img_off + run->len >= run->img_off;
		break;
	}
	return good ? 0 : -EINVAL;
}
