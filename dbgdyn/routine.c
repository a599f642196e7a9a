/* SPDX-License-Identifier: BSD-2-Clause */
/* Routines: measured, written as records, registered. */
#include <stdio.h>

#include "dbgdyn_internal.h"

/* Lengths of a routine's parts, as its record has them. */
struct dbgdyn_parts {
	size_t name_len, nr_lines, nr_inlines, strings_len, nr_frames;
	size_t nr_defects; /* entries that are left out, or a part of them */
	size_t len;	   /* of the record without code */
	bool lines_plain;
	uint8_t suffix_len; /* the end of the name, where that is not the routine's */
	char suffix[14];
};

/* ---- records --------------------------------------------------------------------------------- */

/*
 * Records of routines: measured and written. An entry of a table that makes no sense is left out,
 * counted, and explained to who asks; the routine stays.
 */

/* ---- what is wrong --------------------------------------------------------------------------- */

/* Entries that are left out, and a text of them where one is wanted. */
struct defects {
	size_t nr;
	char *text;
	size_t len, room; /* of the text */
	size_t part;	  /* from 1: that part of the routine is looked at; 0: itself */
};

static void append(struct defects *d, const char *table, size_t i, const char *why)
{
	char part[32] = "";
	int n;

	if (d->part)
		snprintf(part, sizeof(part), "parts[%zu].", d->part - 1);
	n = snprintf(d->text + d->len, d->room - d->len, "%s%s[%zu]: %s\n", part, table, i, why);
	if (n > 0)
		d->len += (size_t)n < d->room - d->len ? (size_t)n : d->room - d->len - 1;
}

static void leave_out(struct defects *d, const char *table, size_t i, const char *why)
{
	d->nr++;
	if (d->text)
		append(d, table, i, why);
}

/* Why the whole routine is refused, or a part of it left out; always DBGDYN_EINVAL. */
static int refuse(struct defects *d, const char *why)
{
	size_t part = d->part;

	if (part) {
		d->part = 0;
		leave_out(d, "parts", part - 1, why);
		d->part = part;
	} else if (d->text)
		d->len = (size_t)snprintf(d->text, d->room, "%s\n", why);
	return DBGDYN_EINVAL;
}

/* ---- structs of any version ------------------------------------------------------------------ */

/*
 * Structs grow at their end: what a caller compiled earlier does not have is none. The entries of
 * the tables grew when the routine did, so that its size tells theirs.
 */
#define HAS(r, field) ((r)->size >= offsetof(struct dbgdyn_routine, field) + sizeof((r)->field))

static size_t nr_inlines(const struct dbgdyn_routine *r)
{
	return HAS(r, nr_inlines) ? r->nr_inlines : 0;
}

static const void *bytes(const struct dbgdyn_routine *r)
{
	return HAS(r, bytes) && r->bytes ? r->bytes : r->code;
}

/* Before there were strides, a line ended with its file. */
static size_t line_len(const struct dbgdyn_routine *r)
{
	return HAS(r, inline_stride) ? sizeof(struct dbgdyn_line)
				     : offsetof(struct dbgdyn_line, column);
}

#define STRIDE(r, field, entry_len) (HAS(r, inline_stride) && (r)->field ? (r)->field : (entry_len))

static const void *entry_at(const void *table, size_t i, size_t entry_len)
{
	return (const uint8_t *)table + i * entry_len;
}

static const struct dbgdyn_line *line_at(const struct dbgdyn_routine *r, size_t i)
{
	return entry_at(r->lines, i, STRIDE(r, line_stride, line_len(r)));
}

static const struct dbgdyn_string *file_at(const struct dbgdyn_routine *r, size_t i)
{
	return entry_at(r->files, i, STRIDE(r, file_stride, sizeof(*r->files)));
}

static const struct dbgdyn_inline *inline_at(const struct dbgdyn_routine *r, size_t i)
{
	return entry_at(r->inlines, i, STRIDE(r, inline_stride, sizeof(*r->inlines)));
}

static size_t nr_frames(const struct dbgdyn_routine *r)
{
	return HAS(r, nr_frames) ? r->nr_frames : 0;
}

static const struct dbgdyn_frame *frame_at(const struct dbgdyn_routine *r, size_t i)
{
	return entry_at(r->frames, i, r->frame_stride ? r->frame_stride : sizeof(*r->frames));
}

static size_t nr_parts(const struct dbgdyn_routine *r)
{
	return HAS(r, nr_parts) ? r->nr_parts : 0;
}

/* Part @i as a routine of its own: true where it has a name, else it gets the routine's. */
static bool part_get(const struct dbgdyn_routine *r, size_t i, struct dbgdyn_routine *part)
{
	size_t len = r->parts->size < sizeof(*part) ? r->parts->size : sizeof(*part);

	*part = (struct dbgdyn_routine){ 0 };
	memcpy(part, entry_at(r->parts, i, r->parts->size), len);
	part->size = len;
	part->nr_parts = 0;
	if (part->name.len)
		return true;
	part->name = r->name;
	return false;
}

static bool stride_good(uint32_t asked, size_t entry_len, size_t alignment)
{
	return !asked || (asked >= entry_len && asked % alignment == 0);
}

static bool strides_good(const struct dbgdyn_routine *r)
{
	if (HAS(r, nr_frames) &&
	    !stride_good(r->frame_stride, sizeof(*r->frames), _Alignof(struct dbgdyn_frame)))
		return false;
	return !HAS(r, inline_stride) ||
	       (stride_good(r->line_stride, sizeof(*r->lines), _Alignof(struct dbgdyn_line)) &&
		stride_good(r->file_stride, sizeof(*r->files), _Alignof(struct dbgdyn_string)) &&
		stride_good(r->inline_stride, sizeof(*r->inlines), _Alignof(struct dbgdyn_inline)));
}

static size_t name_len(size_t len)
{
	return len < WIRE_NAME_MAX ? len : WIRE_NAME_MAX;
}

static size_t file_len(const struct dbgdyn_string *file)
{
	if (!file->text)
		return 0;
	return file->len < DBGDYN_FILE_MAX ? file->len : DBGDYN_FILE_MAX;
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct line_walk {
	size_t at;
	uint32_t code_off; /* of the last good one */
};

/* The next good line; false: no more. One at the end of the code ends a table, as DWARF has it. */
static bool line_next(const struct dbgdyn_routine *r, struct line_walk *w, struct wire_line *out,
		      struct defects *d)
{
	for (; w->at < r->nr_lines; w->at++) {
		const struct dbgdyn_line *l = line_at(r, w->at);

		if (l->code_off >= r->code_len) {
			if (l->code_off > r->code_len)
				leave_out(d, "lines", w->at, "code_off is behind the code");
			continue;
		}
		if (l->code_off < w->code_off) {
			leave_out(d, "lines", w->at, "code_off is below that of a line before");
			continue;
		}
		if (l->line && l->file >= r->nr_files) {
			leave_out(d, "lines", w->at, "there is no such file");
			continue;
		}
		*out = (struct wire_line){ .code_off = l->code_off };
		if (l->line) {
			out->line = l->line;
			out->file = l->file;
		}
		if (l->line && HAS(r, inline_stride)) {
			out->column = l->column;
			out->discriminator = l->discriminator;
		}
		w->code_off = l->code_off;
		w->at++;
		return true;
	}
	return false;
}

static_assert(sizeof(struct dbgdyn_line) == sizeof(struct wire_line) &&
		      offsetof(struct dbgdyn_line, discriminator) ==
			      offsetof(struct wire_line, discriminator),
	      "a table of lines without gaps is that of a record");

/*
 * Whether the table can be copied as it is: that takes a quarter of the time of a walk. A table
 * without files is walked.
 */
static bool lines_are_plain(const struct dbgdyn_routine *r)
{
	const struct dbgdyn_line *l = r->lines;
	size_t nr_files = r->nr_files;
	uint32_t last = 0;

	if (!HAS(r, inline_stride) || (r->line_stride && r->line_stride != sizeof(*l)))
		return false;
	for (size_t i = 0; i < r->nr_lines; i++, l++) {
		if (l->code_off < last || l->file >= nr_files)
			return false;
		if (!l->line && (l->file | l->column | l->discriminator))
			return false;
		last = l->code_off;
	}
	/* They ascend: the last one is the highest. */
	return !r->nr_lines || last < r->code_len;
}

/* ---- parts inlined --------------------------------------------------------------------------- */

struct inline_walk {
	size_t at;
	uint64_t ends[WIRE_INLINE_DEPTH]; /* end of the open part at each depth */
	uint64_t from;			  /* the next one at an open depth begins here or later */
	uint32_t depth;			  /* how many are open */
	uint32_t left_out;		  /* parts deeper than this are in one that is left out */
};

static void inline_begin(struct inline_walk *w)
{
	w->at = w->from = w->depth = 0;
	w->left_out = WIRE_INLINE_DEPTH;
}

/* Why it cannot be, or NULL. */
static const char *inline_why(const struct dbgdyn_routine *r, const struct inline_walk *w,
			      const struct dbgdyn_inline *in)
{
	uint64_t end = (uint64_t)in->code_off + in->code_len;
	uint64_t from = in->depth < w->depth ? w->ends[in->depth] : w->from;

	if (!in->code_len)
		return "it has no code";
	if (!in->name.text || !in->name.len)
		return "it has no name";
	if (in->depth >= WIRE_INLINE_DEPTH)
		return "depth is above 63";
	if (in->depth > w->left_out)
		return "it is in a part that is left out";
	if (in->depth > w->depth)
		return "no part one less deep is before it";
	if (in->code_off < from)
		return "it begins before the end of one at its depth, or before its outer part";
	if (end > (in->depth ? w->ends[in->depth - 1] : r->code_len))
		return "it ends behind its outer part";
	return NULL;
}

/* The next good one, whose name is still to be numbered; NULL: no more. */
static const struct dbgdyn_inline *inline_next(const struct dbgdyn_routine *r,
					       struct inline_walk *w, struct defects *d)
{
	for (; w->at < nr_inlines(r); w->at++) {
		const struct dbgdyn_inline *in = inline_at(r, w->at);
		const char *why = inline_why(r, w, in);

		if (why) {
			leave_out(d, "inlines", w->at, why);
			if (in->depth < w->left_out)
				w->left_out = in->depth;
			continue;
		}
		if (in->call_line && in->call_file >= r->nr_files)
			leave_out(d, "inlines", w->at,
				  "there is no such file: the line of its call");
		w->left_out = WIRE_INLINE_DEPTH;
		w->ends[in->depth] = (uint64_t)in->code_off + in->code_len;
		w->from = in->code_off;
		w->depth = in->depth + 1;
		w->at++;
		return in;
	}
	return NULL;
}

/* ---- frames ---------------------------------------------------------------------------------- */

struct frame_walk {
	size_t at;
	uint64_t from; /* the next one's code_off is this or above */
};

/* The next good frame; false: no more. */
static bool frame_next(const struct dbgdyn_routine *r, struct frame_walk *w, struct wire_frame *out,
		       struct defects *d)
{
	for (; w->at < nr_frames(r); w->at++) {
		const struct dbgdyn_frame *f = frame_at(r, w->at);
		const char *why;

		*out = (struct wire_frame){ .code_off = f->code_off,
					    .flags = f->flags,
					    .cfa_off = f->cfa_off,
					    .fp_off = f->fp_off,
					    .link_off = f->link_off,
					    .reserved = f->reserved };
		why = f->code_off >= r->code_len       ? "code_off is behind the code"
		      : f->flags & WIRE_FRAME_FALLBACK ? "flags has unknown bits"
		      : f->code_off < w->from ? "code_off is not above that of a frame before"
					      : wire_frame_fault(out);
		if (why) {
			leave_out(d, "frames", w->at, why);
			continue;
		}
		w->from = (uint64_t)f->code_off + 1;
		w->at++;
		return true;
	}
	return false;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void files_measure(const struct dbgdyn_routine *r, size_t *len, struct defects *d)
{
	for (size_t i = 0; i < r->nr_files && *len <= WIRE_RECORD_MAX; i++) {
		const struct dbgdyn_string *file = file_at(r, i);

		if (file->len > file_len(file))
			leave_out(d, "files", i,
				  file->text ? "its end, as it has more than 65535 bytes"
					     : "it has a length, and no text");
		*len += 2 + file_len(file);
	}
}

/* 0 where it would be too long. */
static size_t dbgdyn_record_len(const struct dbgdyn_routine *r, const struct dbgdyn_parts *parts,
				bool with_code)
{
	size_t len = wire_routine_len(parts->name_len, r->code_len, with_code, parts->nr_lines,
				      parts->nr_inlines, parts->strings_len);

	return wire_routine_frames_len(len, parts->nr_frames);
}

/* Whether part @i overlaps the routine or a part before it. */
static bool part_overlaps(const struct dbgdyn_routine *r, size_t i,
			  const struct dbgdyn_routine *part)
{
	uintptr_t addr = (uintptr_t)part->code;
	const struct dbgdyn_routine *other = r;

	for (size_t k = 0; k <= i; k++) {
		uintptr_t from = (uintptr_t)other->code;

		if (addr < from + other->code_len && from < addr + part->code_len)
			return true;
		other = entry_at(r->parts, k, r->parts->size);
	}
	return false;
}

static int measure_alone(const struct dbgdyn_routine *r, struct dbgdyn_parts *parts,
			 struct defects *d)
{
	const struct dbgdyn_inline *in;
	struct line_walk lines = { 0 };
	struct inline_walk inlines;
	struct frame_walk frames = { 0 };
	struct wire_frame frame;
	struct wire_line line;

	if (!r || r->size < offsetof(struct dbgdyn_routine, inlines))
		return refuse(d, "size is not that of the struct");
	if (!r->name.text || !r->name.len)
		return refuse(d, "it has no name");
	if (!dbgdyn_range_good(r->code, r->code_len))
		return refuse(d, "code and code_len are no range of addresses");
	if (r->code_len > DBGDYN_CODE_MAX)
		return refuse(d, "it is longer than 16 MiB");
	if ((r->nr_lines && !r->lines) || (r->nr_files && !r->files) ||
	    (nr_inlines(r) && !r->inlines) || (nr_frames(r) && !r->frames))
		return refuse(d, "a table has entries, and no address");
	if (r->nr_lines > WIRE_RECORD_MAX / sizeof(struct wire_line) ||
	    r->nr_files > WIRE_RECORD_MAX / 2 ||
	    nr_inlines(r) > WIRE_RECORD_MAX / sizeof(struct wire_inline) ||
	    nr_frames(r) > WIRE_RECORD_MAX / sizeof(struct wire_frame))
		return refuse(d, "a table has too many entries");
	if (!strides_good(r))
		return refuse(d,
			      "a stride is below the size of its entries, or splits their words");
	*parts = (struct dbgdyn_parts){ .name_len = name_len(r->name.len) };
	files_measure(r, &parts->strings_len, d);
	parts->lines_plain = lines_are_plain(r);
	if (parts->lines_plain)
		parts->nr_lines = r->nr_lines;
	while (!parts->lines_plain && line_next(r, &lines, &line, d))
		parts->nr_lines++;
	inline_begin(&inlines);
	while (nr_inlines(r) && (in = inline_next(r, &inlines, d))) {
		parts->nr_inlines++;
		parts->strings_len += 2 + name_len(in->name.len);
	}
	while (nr_frames(r) && frame_next(r, &frames, &frame, d))
		parts->nr_frames++;
	parts->len = dbgdyn_record_len(r, parts, false);
	if (!parts->len)
		return refuse(d, "its tables and names are too long together");
	return DBGDYN_OK;
}

/* Its name is the routine's with this behind it. */
static void add_suffix(struct dbgdyn_parts *parts, const struct dbgdyn_routine *part, size_t i)
{
	int len = i ? snprintf(parts->suffix, sizeof(parts->suffix), ".cold.%u", (unsigned int)i)
		    : snprintf(parts->suffix, sizeof(parts->suffix), ".cold");

	parts->suffix_len = (uint8_t)len;
	parts->name_len = name_len(parts->name_len + (size_t)len);
	parts->len = dbgdyn_record_len(part, parts, false);
}

/* Part @i of @r goes into @part, to be registered by itself. DBGDYN_EINVAL: it is left out. */
static int part_measure(const struct dbgdyn_routine *r, size_t i, struct dbgdyn_routine *part,
			struct dbgdyn_parts *parts, struct defects *d)
{
	bool named = part_get(r, i, part);
	int result;

	d->part = i + 1;
	result = measure_alone(part, parts, d);
	if (result == DBGDYN_OK && part_overlaps(r, i, part))
		result = refuse(d, "it overlaps the routine, or a part before");
	if (result == DBGDYN_OK && !named)
		add_suffix(parts, part, i);
	if (result == DBGDYN_OK && !parts->len)
		result = refuse(d, "its tables and names are too long together");
	d->part = 0;
	return result;
}

static int parts_measure(const struct dbgdyn_routine *r, struct defects *d)
{
	const struct dbgdyn_routine *first = r->parts;

	if (!first || first->size < offsetof(struct dbgdyn_routine, inlines) ||
	    first->size % _Alignof(struct dbgdyn_routine))
		return refuse(d, "its parts have no address, or no size of the struct");
	if (nr_parts(r) > DBGDYN_PARTS_MAX)
		return refuse(d, "it has more than 64 parts");
	for (size_t i = 0; i < nr_parts(r); i++) {
		struct dbgdyn_parts parts;
		struct dbgdyn_routine part;

		part_measure(r, i, &part, &parts, d);
	}
	return DBGDYN_OK;
}

static int measure(const struct dbgdyn_routine *r, struct dbgdyn_parts *parts, struct defects *d)
{
	int result = measure_alone(r, parts, d);

	if (result == DBGDYN_OK && nr_parts(r))
		result = parts_measure(r, d);
	parts->nr_defects = d->nr;
	return result;
}

/* Check what the application passes; false: DBGDYN_EINVAL. */
static bool dbgdyn_record_measure(const struct dbgdyn_routine *r, struct dbgdyn_parts *parts)
{
	return measure(r, parts, &(struct defects){ 0 }) == DBGDYN_OK;
}

int dbgdyn_check(const struct dbgdyn_routine *r, char *text, size_t len)
{
	struct defects d = { .text = len ? text : NULL, .room = len };
	struct dbgdyn_parts parts;
	int result;

	if (d.text)
		*d.text = '\0';
	result = measure(r, &parts, &d);
	if (result < 0)
		return result;
	return d.nr < INT32_MAX ? (int)d.nr : INT32_MAX;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The end, with padding, of @len bytes at @p, which are still to be written there. */
static uint8_t *padded(uint8_t *p, size_t len)
{
	uint8_t *end = p + ((len + 7) & ~(size_t)7);

	if (len)
		memset(end - 8, 0, 8);
	return end;
}

static uint8_t *put_lines(uint8_t *p, const struct dbgdyn_routine *r,
			  const struct dbgdyn_parts *parts)
{
	size_t plain_len = parts->lines_plain ? parts->nr_lines * sizeof(struct wire_line) : 0;
	struct defects d = { 0 };
	struct line_walk w = { 0 };
	struct wire_line l;

	if (plain_len)
		memcpy(p, r->lines, plain_len);
	if (parts->lines_plain)
		return p + plain_len;
	while (line_next(r, &w, &l, &d)) {
		memcpy(p, &l, sizeof(l));
		p += sizeof(l);
	}
	return p;
}

/* Their names stand behind those of the files. */
static uint8_t *put_inlines(uint8_t *p, const struct dbgdyn_routine *r)
{
	uint32_t name = (uint32_t)r->nr_files;
	const struct dbgdyn_inline *in;
	struct defects d = { 0 };
	struct inline_walk walk;

	inline_begin(&walk);
	while ((in = inline_next(r, &walk, &d))) {
		bool known = in->call_line && in->call_file < r->nr_files;
		struct wire_inline w = { .code_off = in->code_off,
					 .code_len = in->code_len,
					 .name = name++,
					 .call_file = known ? in->call_file : 0,
					 .call_line = known ? in->call_line : 0,
					 .depth = in->depth };

		memcpy(p, &w, sizeof(w));
		p += sizeof(w);
	}
	return p;
}

static uint8_t *put_string(uint8_t *p, const char *text, size_t text_len)
{
	uint16_t len = (uint16_t)text_len;

	memcpy(p, &len, sizeof(len));
	p += sizeof(len);
	if (len)
		memcpy(p, text, len);
	return p + len;
}

static void put_strings(uint8_t *p, const struct dbgdyn_routine *r,
			const struct dbgdyn_parts *parts)
{
	const struct dbgdyn_inline *in;
	struct defects d = { 0 };
	struct inline_walk w;

	for (size_t i = 0; i < r->nr_files; i++)
		p = put_string(p, file_at(r, i)->text, file_len(file_at(r, i)));
	if (!parts->nr_inlines)
		return;
	inline_begin(&w);
	while ((in = inline_next(r, &w, &d)))
		p = put_string(p, in->name.text, name_len(in->name.len));
}

static void put_frames(uint8_t *p, const struct dbgdyn_routine *r)
{
	struct frame_walk w = { 0 };
	struct defects d = { 0 };
	struct wire_frame f;

	for (; frame_next(r, &w, &f, &d); p += sizeof(f))
		memcpy(p, &f, sizeof(f));
}

static void dbgdyn_record_fill(struct wire_routine *rec, size_t len, const struct dbgdyn_routine *r,
			       const struct dbgdyn_parts *parts, uint16_t flags)
{
	size_t code_len = flags & WIRE_ROUTINE_CODE ? r->code_len : 0;
	uint8_t *p = (uint8_t *)(rec + 1), *next = padded(p, parts->name_len + code_len);

	if (parts->nr_frames)
		flags |= WIRE_ROUTINE_FRAMES;
	rec->head =
		(struct wire_head){ .len = (uint32_t)len, .type = WIRE_ROUTINE, .flags = flags };
	rec->part = 0;
	rec->addr = (uintptr_t)r->code;
	rec->code_len = r->code_len;
	rec->name_len = (uint32_t)parts->name_len;
	rec->nr_lines = (uint32_t)parts->nr_lines;
	rec->nr_files = (uint32_t)(r->nr_files + parts->nr_inlines);
	rec->nr_inlines = (uint32_t)parts->nr_inlines;
	memcpy(p, r->name.text, parts->name_len - parts->suffix_len);
	p += parts->name_len - parts->suffix_len;
	if (parts->suffix_len)
		memcpy(p, parts->suffix, parts->suffix_len);
	if (code_len)
		memcpy(p + parts->suffix_len, bytes(r), code_len);
	p = put_lines(next, r, parts);
	if (parts->nr_inlines)
		p = put_inlines(p, r);
	next = padded(p, parts->strings_len);
	put_strings(p, r, parts);
	if (parts->nr_frames)
		put_frames(next, r);
}

/* ---- registered ------------------------------------------------------------------------------ */

struct job {
	const struct dbgdyn_routine *r;
	struct dbgdyn_parts parts;
	uint16_t flags;
};

static void number(struct wire_routine *rec, const struct dbgdyn_change *c)
{
	rec->facility = c->facility;
	rec->seq = c->seq;
}

/* With the code where it fits, else without: its bytes can be read later. */
static void tell(struct dbgdyn_change *c, const struct job *j)
{
	uint16_t flags = j->flags | WIRE_ROUTINE_CODE;
	size_t len = dbgdyn_record_len(j->r, &j->parts, true);
	struct wire_routine *rec;

	if (!c->asked)
		return;
	rec = dbgdyn_change_reserve(c, len);
	if (!rec) {
		flags = j->flags;
		len = j->parts.len;
		rec = dbgdyn_change_reserve(c, len);
	}
	if (!rec) {
		dbgdyn_change_turn(c, len);
		return;
	}
	dbgdyn_record_fill(rec, len, j->r, &j->parts, flags);
	number(rec, c);
	dbgdyn_change_tell(c, len);
}

/* Keep it among what lives, for a daemon that comes later. */
static struct dbgdyn_node *list(struct dbgdyn_change *c, const struct job *j)
{
	size_t len = j->parts.len;
	struct dbgdyn_node *n = dbgdyn_heap_take(c->s, len);
	struct wire_routine *rec;

	if (!n) {
		c->s->nr_unlisted++;
		return NULL;
	}
	rec = dbgdyn_slot_begin(c->s, n);
	dbgdyn_record_fill(rec, len, j->r, &j->parts, j->flags);
	number(rec, c);
	dbgdyn_slot_end(c->s, n);
	n->addr = (uintptr_t)j->r->code;
	n->code_len = (uint32_t)j->r->code_len;
	n->seq = n->born = c->seq;
	n->facility = (uint16_t)c->facility;
	n->type = WIRE_ROUTINE;
	dbgdyn_live_add(c->s, n);
	return n;
}

/* One range, with the number of its own: its node, or NULL where it is not listed. */
static struct dbgdyn_node *put(struct dbgdyn_change *c, struct job *j)
{
	uint64_t addr = (uintptr_t)j->r->code, len = j->r->code_len;
	struct dbgdyn_state *s = c->s;
	struct dbgdyn_node *n;
	uint32_t replaced;

	dbgdyn_change_number(c);
	c->announced = false;
	replaced = dbgdyn_live_take(s, addr, len);
	if (dbgdyn_used_mark(s, addr, len))
		j->flags = WIRE_ROUTINE_REUSES;
	c->bell |= dbgdyn_arena_tell(s, c->facility, addr, len) && c->asked;
	tell(c, j);
	dbgdyn_change_close(c, replaced);
	n = list(c, j);
	if (j->flags)
		dbgdyn_words_move(s, addr, len, c->seq);
	return n;
}

/* Both are ranges of one routine from now on. */
static void join(struct dbgdyn_state *s, struct dbgdyn_node *first, struct dbgdyn_node *part)
{
	uint32_t index = (uint32_t)(first - s->nodes) + 1;

	part->sibling = first->sibling ? first->sibling : index;
	first->sibling = (uint32_t)(part - s->nodes) + 1;
}

/* Whether all of its parts were told or listed, but for what is left out. */
static bool put_parts(struct dbgdyn_change *c, const struct dbgdyn_routine *r,
		      struct dbgdyn_node *first)
{
	bool whole = true;

	for (size_t i = 0; i < nr_parts(r); i++) {
		struct dbgdyn_routine part;
		struct job j = { .r = &part };
		struct dbgdyn_node *n;

		if (part_measure(r, i, &part, &j.parts, &(struct defects){ 0 }) < 0)
			continue;
		n = put(c, &j);
		if (n && first)
			join(c->s, first, n);
		whole &= n || c->announced;
	}
	return whole;
}

/* 1 where a doorbell is due. */
static int routine_put(struct dbgdyn_state *s, uint32_t facility, const struct dbgdyn_routine *r,
		       dbgdyn_handle *handle)
{
	struct job j = { .r = r };
	struct dbgdyn_change c;
	struct dbgdyn_node *n;
	bool whole;
	int result;

	if (!dbgdyn_record_measure(r, &j.parts))
		return DBGDYN_EINVAL;
	result = dbgdyn_change_begin(&c, s, facility);
	if (result < 0)
		return result;
	if (j.parts.nr_defects)
		__atomic_fetch_add(&s->reg->nr_left_out, j.parts.nr_defects, __ATOMIC_RELAXED);
	n = put(&c, &j);
	whole = n || c.announced;
	if (handle)
		handle->id = whole ? dbgdyn_handle_make(s, n, c.seq) : 0;
	if (nr_parts(r))
		whole &= put_parts(&c, r, n);
	result = dbgdyn_change_commit(&c);
	return whole ? result : dbgdyn_dropped(s);
}

int dbgdyn_register(dbgdyn_context context, const struct dbgdyn_routine *routine,
		    dbgdyn_handle *handle)
{
	uint32_t index;
	struct dbgdyn_state *s = dbgdyn_context_find(context.id, &index);

	return s ? dbgdyn_changed(s, routine_put(s, index, routine, handle)) : DBGDYN_EREFUSED;
}

int dbgdyn_register_many(dbgdyn_context context, const struct dbgdyn_routine *routines, size_t nr,
			 dbgdyn_handle *handles)
{
	const struct dbgdyn_routine *r = routines;
	int first = DBGDYN_OK;

	for (size_t i = 0; i < nr; i++) {
		dbgdyn_handle handle = { 0 };
		int result = dbgdyn_register(context, r, &handle);

		if (handles)
			handles[i] = handle;
		if (first == DBGDYN_OK)
			first = result;
		if (r)
			r = (const void *)((const uint8_t *)r + routines->size);
	}
	return first;
}
