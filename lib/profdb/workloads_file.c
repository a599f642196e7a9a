/* SPDX-License-Identifier: BSD-2-Clause */
/* Workloads as a file: a header and footer as a profile's, and between them images, workloads with
 * their texts, and counts. docs/format/workloads.md */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

static const char images_tag[] = "IMAG", counts_tag[] = "WCNT", minutes_tag[] = "WMIN";
/* A reader that does not know it may skip it. */
static const char notes_tag[] = "note";

/* Flushes add parts; so many of a level become one of the next, if they are not too long. */
enum { PARTS_A_LEVEL = 8, PART_HEAD = 2 };

/* The parts of a file that are read. */
enum how {
	ALL,	/* all of them */
	COUNTS, /* without minutes */
	IMAGES, /* without counts, too */
	/* To be merged into and written, by parts: as few of them as a flush should make one with
	 * its own are decoded. */
	STORED
};

struct part {
	struct profdb_payload counts, minutes; /* minutes: no data where there are none yet */
	uint8_t level, nr_events;
};

struct reader {
	struct profdb_workloads *w;
	bool has_images, has_workloads;
	enum how how;
	struct part *parts;
	size_t nr_parts, cap_parts;
	struct base_err *err;
};

/* ---- reading --------------------------------------------------------------------------------- */

static int take_images(struct reader *r, const struct profdb_payload *s)
{
	size_t pos = 0, at = 0;
	int e = r->has_images ? -DCPI_EFORMAT : 0;

	r->has_images = true;
	while (e >= 0 && pos < s->len) {
		at = pos;
		e = profdb_image_table_get(&r->w->images, s, &pos);
	}
	return e < 0 ? base_fail_errno(r->err, e, "images of workloads, byte %zu", at) : 0;
}

enum { NR_NAMES = 5 }; /* of a workload */

/* Texts of a file; workloads name them by their index. */
struct texts {
	char **v;
	size_t nr, cap;
};

static void texts_release(struct texts *t)
{
	for (size_t i = 0; i < t->nr; i++)
		free(t->v[i]);
	free(t->v);
}

static int get_texts(struct texts *t, const struct profdb_payload *s, size_t *pos)
{
	uint64_t nr;
	int r = profdb_varint_get(s, pos, &nr);

	/* An empty one takes forty times as much memory as in the file. */
	if (r >= 0 && nr > (uint64_t)NR_NAMES * PROFDB_NR_WORKLOADS)
		return -DCPI_EFORMAT;
	for (; r >= 0 && nr; nr--) {
		r = base_grow(&t->v, &t->cap, t->nr + 1, sizeof(*t->v));
		if (r >= 0)
			r = profdb_text_get(s, pos, PROFDB_WORKLOAD_NAME, &t->v[t->nr]);
		if (r >= 0)
			t->nr++;
	}
	return r;
}

static int get_name(const struct texts *t, const struct profdb_payload *s, size_t *pos,
		    const char **out)
{
	uint64_t n;

	if (profdb_varint_get(s, pos, &n) < 0 || n >= t->nr)
		return -DCPI_EFORMAT;
	*out = t->v[n];
	return 0;
}

/* The numbers of one, where uid and pid have a bound. */
static int get_numbers(const struct profdb_payload *s, size_t *pos, struct profdb_workload *k)
{
	uint64_t uid, pid;

	if (profdb_varint_get(s, pos, &uid) < 0 || uid > UINT32_MAX ||
	    profdb_varint_get(s, pos, &pid) < 0 || pid > UINT32_MAX ||
	    profdb_varint_get(s, pos, &k->processes) < 0)
		return -DCPI_EFORMAT;
	k->uid = (uint32_t)uid - 1;
	k->pid = (int32_t)(uint32_t)pid;
	return 0;
}

/* One that stands twice would have two numbers. */
static int get_workload(struct profdb_workloads *w, const struct texts *t,
			const struct profdb_payload *s, size_t *pos)
{
	struct profdb_workload k = { 0 };
	const char **const names[NR_NAMES] = { &k.comm, &k.exe, &k.cgroup, &k.label, &k.thread };
	size_t nr = w->nr;
	int e = 0;

	for (size_t i = 0; e >= 0 && i < NR_NAMES; i++)
		e = get_name(t, s, pos, names[i]);
	if (e >= 0)
		e = get_numbers(s, pos, &k);
	if (e >= 0)
		e = profdb_workloads_workload_add(w, &k);
	return e < 0 ? e : w->nr == nr ? -DCPI_EFORMAT : 0;
}

int profdb_workloads_get(struct profdb_workloads *w, const struct profdb_payload *s, size_t *at)
{
	struct texts t = { 0 };
	size_t pos = 0;
	int e = get_texts(&t, s, &pos);

	*at = 0;
	while (e >= 0 && pos < s->len) {
		*at = pos;
		e = get_workload(w, &t, s, &pos);
	}
	texts_release(&t);
	return e < 0 ? e : 0;
}

static int take_workloads(struct reader *r, const struct profdb_payload *s)
{
	size_t at = 0;
	int e = r->has_workloads ? -DCPI_EFORMAT : profdb_workloads_get(r->w, s, &at);

	r->has_workloads = true;
	return e < 0 ? base_fail_errno(r->err, e, "workloads, byte %zu", at) : 0;
}

static int add_part(struct reader *r, const struct profdb_payload *s)
{
	struct part part = { .counts = *s };

	if (!r->has_images || !r->has_workloads || s->len < PART_HEAD ||
	    (r->nr_parts && !r->parts[r->nr_parts - 1].minutes.data))
		return -DCPI_EFORMAT;
	part.level = s->data[0];
	part.nr_events = s->data[1];
	if (part.nr_events > r->w->header->nr_events)
		return -DCPI_EFORMAT;
	if (base_grow(&r->parts, &r->cap_parts, r->nr_parts + 1, sizeof(*r->parts)) < 0)
		return -ENOMEM;
	r->parts[r->nr_parts++] = part;
	return 0;
}

static int take_counts(struct reader *r, const struct profdb_payload *s)
{
	int e = add_part(r, s);

	return e < 0 ? base_fail_errno(r->err, e, "counts of workloads") : 0;
}

static int take_minutes(struct reader *r, const struct profdb_payload *s)
{
	struct part *last = r->nr_parts ? &r->parts[r->nr_parts - 1] : NULL;

	if (!last || last->minutes.data)
		return base_fail(r->err, -DCPI_EFORMAT, "minutes of workloads without counts");
	last->minutes = *s;
	return 0;
}

/* The sign is the lowest bit, as a clock is set back as well as ahead. */
static uint64_t folded(int64_t n)
{
	return n < 0 ? (uint64_t) - (n + 1) << 1 | 1 : (uint64_t)n << 1;
}

static int64_t unfolded(uint64_t v)
{
	return v & 1 ? -(int64_t)(v >> 1) - 1 : (int64_t)(v >> 1);
}

static int get_note(const struct profdb_payload *s, size_t *pos, int64_t *last,
		    struct profdb_note *out)
{
	uint64_t gap, kind, n;
	int r = profdb_varint_get(s, pos, &gap);

	*out = (struct profdb_note){ 0 };
	if (r >= 0)
		r = profdb_varint_get(s, pos, &kind);
	if (r >= 0)
		r = profdb_varint_get(s, pos, &n);
	if (r < 0 || kind >= PROFDB_NR_NOTE_KINDS || gap > (uint64_t)(INT64_MAX - *last))
		return -DCPI_EFORMAT;
	out->utc = *last += (int64_t)gap;
	out->kind = (enum profdb_note_kind)kind;
	out->n = unfolded(n);
	if (out->kind == PROFDB_NOTE_IDLE)
		r = profdb_varint_get(s, pos, &out->of);
	return r < 0 ? -DCPI_EFORMAT : 0;
}

static int get_notes(struct profdb_workloads *w, const struct profdb_payload *s)
{
	struct profdb_note n;
	int64_t last = 0;
	size_t pos = 0;
	int r = w->notes.nr || !s->len ? -DCPI_EFORMAT : 0;

	while (r >= 0 && pos < s->len) {
		r = get_note(s, &pos, &last, &n);
		if (r >= 0)
			r = profdb_workloads_note(w, &n);
	}
	return r == -EINVAL ? -DCPI_EFORMAT : r;
}

static int take_notes(struct reader *r, const struct profdb_payload *s)
{
	int e = get_notes(r->w, s);

	return e < 0 ? base_fail_errno(r->err, e, "notes of workloads") : 0;
}

static int take_section(struct reader *r, const struct profdb_payload *s)
{
	if (profdb_section_is(s, images_tag))
		return take_images(r, s);
	if (profdb_section_is(s, PROFDB_WORKLOADS_TAG))
		return take_workloads(r, s);
	if (profdb_section_is(s, counts_tag))
		return take_counts(r, s);
	if (profdb_section_is(s, minutes_tag))
		return take_minutes(r, s);
	if (profdb_section_is(s, notes_tag))
		return take_notes(r, s);
	return profdb_section_keep(r->w->header, s, r->err);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void release_rows(struct profdb_workload_part *p)
{
	profdb_workload_rows_release(&p->counts);
	profdb_workload_rows_release(&p->minutes);
}

static int widen(struct profdb_workload_rows *counts, struct profdb_workload_rows *minutes,
		 size_t nr_events)
{
	int e = profdb_workload_rows_widen(counts, nr_events);

	return e < 0 ? e : profdb_workload_rows_widen(minutes, nr_events);
}

static int decode(const struct reader *r, const struct part *from, struct profdb_workload_part *to)
{
	struct profdb_payload coded = { .data = from->counts.data + PART_HEAD,
					.len = from->counts.len - PART_HEAD };
	int e = widen(&to->counts, &to->minutes, r->w->header->nr_events);

	to->nr_events = from->nr_events;
	if (e >= 0)
		e = profdb_coded_counts.parse(to, r->w, &coded);
	if (e >= 0 && r->how != COUNTS)
		e = profdb_coded_minutes.parse(to, r->w, &from->minutes);
	return e;
}

/* The first one's rows are taken as they are. */
static int take_rows(struct profdb_workloads *w, struct profdb_workload_part *p)
{
	int e;

	if (!w->counts.nr) {
		struct profdb_workload_part old = { .counts = w->counts, .minutes = w->minutes };

		w->counts = p->counts;
		w->minutes = p->minutes;
		p->counts = old.counts;
		p->minutes = old.minutes;
		return 0;
	}
	e = profdb_workload_rows_add(&w->counts, &p->counts);
	return e < 0 ? e : profdb_workload_rows_add(&w->minutes, &p->minutes);
}

static int take_part(struct reader *r, const struct part *part, uint64_t *sums)
{
	struct profdb_workload_part p = { 0 };
	int e = decode(r, part, &p);

	for (size_t k = 0; e >= 0 && k < part->nr_events; k++)
		if (base_add_overflow(sums[k], p.sums[k], &sums[k]))
			e = -DCPI_EFORMAT;
	if (e >= 0)
		e = take_rows(r->w, &p);
	release_rows(&p);
	return e;
}

static uint64_t rows_of(const struct part *p)
{
	return p->counts.len < PART_HEAD + 8 ? 0 : profdb_get64(p->counts.data + PART_HEAD);
}

static int keep_part(struct profdb_workloads *w, const struct part *p)
{
	int e = profdb_section_put(&w->stored, counts_tag, p->counts.data, p->counts.len);

	w->nr_stored += rows_of(p);
	return e < 0 ? e
		     : profdb_section_put(&w->stored, minutes_tag, p->minutes.data, p->minutes.len);
}

/* The first parts that stay as they are while one more is added; the others become one with it. */
static size_t parts_to_keep(const struct reader *r, uint8_t *level)
{
	size_t keep = r->nr_parts;
	uint64_t left = PROFDB_MERGED_ROWS;

	for (*level = 0; *level < UINT8_MAX; ++*level) {
		size_t first = keep;

		while (first && r->parts[first - 1].level <= *level &&
		       rows_of(&r->parts[first - 1]) <= left)
			left -= rows_of(&r->parts[--first]);
		if (keep - first < PARTS_A_LEVEL - 1)
			break;
		keep = first;
	}
	return keep;
}

static int take_parts(struct reader *r, uint64_t *sums)
{
	bool stored = r->how == STORED;
	size_t keep = stored ? parts_to_keep(r, &r->w->level) : 0;
	int e = widen(&r->w->counts, &r->w->minutes, r->w->header->nr_events);

	r->w->nr_parts = r->nr_parts;
	if (r->how == IMAGES)
		return e < 0 ? base_fail_errno(r->err, e, "counts of workloads") : 0;
	for (size_t i = 0; e >= 0 && i < r->nr_parts; i++)
		e = i < keep ? keep_part(r->w, &r->parts[i]) : take_part(r, &r->parts[i], sums);
	return e < 0 ? base_fail_errno(r->err, e, "counts of workloads") : 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* All of its parts are. */
static bool is_decoded(const struct reader *r)
{
	return r->how == ALL || r->how == COUNTS;
}

static int check_totals(const struct reader *r, const struct profdb_payload *foot,
			const uint64_t *sums)
{
	struct profdb_profile *h = r->w->header;
	uint64_t rows = 0;

	for (size_t i = 0; i < r->nr_parts; i++)
		rows += rows_of(&r->parts[i]);
	r->w->nr_rows = rows;
	if (profdb_get64(foot->data) != rows)
		return base_fail(r->err, -DCPI_EFORMAT, "footer tells of %llu counts, not %llu",
				 (unsigned long long)profdb_get64(foot->data),
				 (unsigned long long)rows);
	for (size_t i = 0; i < h->nr_events; i++) {
		h->events[i].sum = profdb_get64(foot->data + 8 + 8 * i);
		if (is_decoded(r) && h->events[i].sum != sums[i])
			return base_fail(r->err, -DCPI_EFORMAT, "counts of '%s' do not sum",
					 h->events[i].name);
	}
	return 0;
}

static int take_sections(struct reader *r, const uint8_t *file, size_t len, size_t pos)
{
	uint64_t sums[PROFDB_NR_EVENTS] = { 0 };
	struct profdb_payload foot, s;
	int e = profdb_format1_footer(file, len, pos, r->w->header->nr_events, &foot, r->err);

	while (e >= 0 && (e = profdb_section_next(file, len, &pos, &s, r->err)) >= 0 &&
	       !profdb_section_is(&s, "FOOT"))
		e = take_section(r, &s);
	if (e >= 0 && (!r->nr_parts || !r->parts[r->nr_parts - 1].minutes.data))
		e = base_fail(r->err, -DCPI_EFORMAT, "no section '%s': it holds no workloads",
			      minutes_tag);
	if (e >= 0)
		e = take_parts(r, sums);
	return e < 0 ? e : check_totals(r, &foot, sums);
}

static int take_file(struct reader *r, const void *data, size_t len)
{
	size_t binary;
	int e = profdb_whole_header(&profdb_whole_workloads, data, len, &r->w->header, &binary,
				    r->err);

	return e < 0 ? e : take_sections(r, data, len, binary);
}

static int parse(const void *data, size_t len, enum how how, struct profdb_workloads **out,
		 struct base_err *err)
{
	struct reader r = { .w = profdb_workloads_new(), .how = how, .err = err };
	int e;

	*out = NULL;
	if (!r.w)
		return base_fail_errno(err, -ENOMEM, "cannot read workloads");
	r.w->no_minutes = how == COUNTS || how == IMAGES;
	e = take_file(&r, data, len);
	free(r.parts);
	if (e < 0) {
		profdb_workloads_free(r.w);
		return e;
	}
	*out = r.w;
	return 0;
}

int profdb_workloads_parse(const void *data, size_t len, struct profdb_workloads **out,
			   struct base_err *err)
{
	return parse(data, len, ALL, out, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int put_images(const struct profdb_workloads *w, struct base_buf *out)
{
	size_t at;
	int r = profdb_section_begin(out, images_tag, &at);

	for (size_t i = 0; r >= 0 && i < w->images.nr; i++)
		r = profdb_image_put(&w->images.v[i], out);
	return r < 0 ? r : profdb_section_end(out, at);
}

/* Texts get their numbers as they are first used. */
struct numbers {
	struct base_map of; /* the text's address -> number + 1 */
	size_t nr;
	struct base_buf texts, rows;
};

static int put_name(struct numbers *n, const char *text)
{
	uintptr_t number = (uintptr_t)base_map_get(&n->of, &text, sizeof(text));
	int r = 0;

	if (!number) {
		number = ++n->nr;
		r = base_map_set(&n->of, &text, sizeof(text), (void *)number);
		if (r >= 0)
			r = profdb_bytes_append(&n->texts, text, strlen(text));
	}
	return r < 0 ? r : base_buf_append_leb128(&n->rows, number - 1);
}

static int put_workload(struct numbers *n, const struct profdb_workload *k)
{
	const char *const names[NR_NAMES] = { k->comm, k->exe, k->cgroup, k->label, k->thread };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < NR_NAMES; i++)
		r = put_name(n, names[i]);
	if (r >= 0)
		r = base_buf_append_leb128(&n->rows, (uint32_t)(k->uid + 1));
	if (r >= 0)
		r = base_buf_append_leb128(&n->rows, (uint32_t)k->pid);
	return r < 0 ? r : base_buf_append_leb128(&n->rows, k->processes);
}

int profdb_workloads_put(const struct profdb_workloads *w, struct base_buf *out)
{
	struct numbers n = { 0 };
	size_t at;
	int r = profdb_section_begin(out, PROFDB_WORKLOADS_TAG, &at);

	for (size_t i = 0; r >= 0 && i < w->nr; i++)
		r = put_workload(&n, &w->v[i]);
	if (r >= 0)
		r = base_buf_append_leb128(out, n.nr);
	if (r >= 0)
		r = base_buf_append(out, n.texts.data, n.texts.len);
	if (r >= 0)
		r = base_buf_append(out, n.rows.data, n.rows.len);
	base_map_release(&n.of);
	base_buf_release(&n.texts);
	base_buf_release(&n.rows);
	return r < 0 ? r : profdb_section_end(out, at);
}

static int put_note(const struct profdb_note *n, int64_t last, struct base_buf *out)
{
	int r = base_buf_append_leb128(out, (uint64_t)(n->utc - last));

	if (r >= 0)
		r = base_buf_append_leb128(out, (uint64_t)n->kind);
	if (r >= 0)
		r = base_buf_append_leb128(out, folded(n->n));
	if (r >= 0 && n->kind == PROFDB_NOTE_IDLE)
		r = base_buf_append_leb128(out, n->of);
	return r;
}

/* Nothing where there are none. */
static int put_notes(const struct profdb_workloads *w, struct base_buf *out)
{
	int64_t last = 0;
	size_t at;
	int r;

	if (!w->notes.nr)
		return 0;
	r = profdb_section_begin(out, notes_tag, &at);
	for (size_t i = 0; r >= 0 && i < w->notes.nr; i++) {
		const struct profdb_note *n = profdb_workloads_note_at(w, i);

		r = put_note(n, last, out);
		last = n->utc;
	}
	return r < 0 ? r : profdb_section_end(out, at);
}

static int put_counts(const struct profdb_workloads *w, struct base_buf *out)
{
	const uint8_t head[PART_HEAD] = { w->level, (uint8_t)w->header->nr_events };
	size_t at;
	int r = profdb_section_begin(out, counts_tag, &at);

	if (r >= 0)
		r = base_buf_append(out, head, sizeof(head));
	if (r >= 0)
		r = profdb_coded_counts.print(w, out);
	return r < 0 ? r : profdb_section_end(out, at);
}

static int put_minutes(const struct profdb_workloads *w, struct base_buf *out)
{
	size_t at;
	int r = profdb_section_begin(out, minutes_tag, &at);

	if (r >= 0)
		r = profdb_coded_minutes.print(w, out);
	return r < 0 ? r : profdb_section_end(out, at);
}

static int put_parts(const struct profdb_workloads *w, struct base_buf *out)
{
	int r = base_buf_append(out, w->stored.data, w->stored.len);

	if (r < 0 || (w->stored.len && !w->counts.nr))
		return r;
	r = put_counts(w, out);
	return r < 0 ? r : put_minutes(w, out);
}

int profdb_workloads_format(const struct profdb_workloads *w, struct base_buf *out,
			    struct base_err *err)
{
	size_t start = out->len;
	int r = w->no_minutes ? -EINVAL
			      : profdb_header_print(w->header, PROFDB_FORMAT_1, 0, out, err);

	if (r >= 0)
		r = put_images(w, out);
	if (r >= 0)
		r = profdb_workloads_put(w, out);
	if (r >= 0)
		r = put_notes(w, out);
	if (r >= 0)
		r = put_parts(w, out);
	if (r >= 0)
		r = profdb_format1_end(w->header, w->nr_stored + w->counts.nr, out, start);
	return r < 0 ? base_fail_errno(err, r, "cannot write workloads") : 0;
}

/* ---- as a file about all images -------------------------------------------------------------- */

static void *workloads_make(void)
{
	return profdb_workloads_new();
}

static void workloads_release(void *of)
{
	profdb_workloads_free(of);
}

static int parse_shown(const struct base_buf *data, const char *shown, enum how how, void **out,
		       struct base_err *err)
{
	struct profdb_workloads *w;
	struct base_err why = { 0 };
	int r = parse(data->data, data->len, how, &w, &why);

	*out = w;
	if (r < 0)
		base_fail(err, r, "cannot read workloads '%s': %s", shown, why.text);
	if (r < 0 && why.hint[0])
		base_hint(err, "%s", why.hint);
	return r;
}

static int workloads_parse(const struct base_buf *data, const char *shown, void **out,
			   struct base_err *err)
{
	return parse_shown(data, shown, ALL, out, err);
}

static int workloads_parse_stored(const struct base_buf *data, const char *shown, void **out,
				  struct base_err *err)
{
	return parse_shown(data, shown, STORED, out, err);
}

/* Read alone: nothing of them is written. */
static int counts_parse(const struct base_buf *data, const char *shown, void **out,
			struct base_err *err)
{
	return parse_shown(data, shown, COUNTS, out, err);
}

static int images_parse(const struct base_buf *data, const char *shown, void **out,
			struct base_err *err)
{
	return parse_shown(data, shown, IMAGES, out, err);
}

static int workloads_merge(void *to, const void *from)
{
	return profdb_workloads_merge(to, from);
}

static int workloads_format(const void *of, struct base_buf *out, struct base_err *err)
{
	return profdb_workloads_format(of, out, err);
}

static struct profdb_profile *workloads_header(const void *of)
{
	return ((const struct profdb_workloads *)of)->header;
}

const struct profdb_whole profdb_whole_workloads = {
	.name = PROFDB_WORKLOADS,
	.what = "workloads",
	.make = workloads_make,
	.release = workloads_release,
	.parse = workloads_parse,
	.parse_stored = workloads_parse_stored,
	.merge = workloads_merge,
	.format = workloads_format,
	.header = workloads_header,
};

/* Never written. */
const struct profdb_whole profdb_whole_counts = { .name = PROFDB_WORKLOADS, .parse = counts_parse };
const struct profdb_whole profdb_whole_workload_images = { .name = PROFDB_WORKLOADS,
							   .parse = images_parse };
