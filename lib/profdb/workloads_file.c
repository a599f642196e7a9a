/* SPDX-License-Identifier: BSD-2-Clause */
/* Workloads as a file: a header and footer as a profile's, and between them images, workloads with
 * their texts, and counts. docs/format/workloads.md */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

static const char images_tag[] = "IMAG", counts_tag[] = "WCNT", minutes_tag[] = "WMIN";

/* Flushes add parts; so many of a level become one of the next, if they are not too long. */
enum { PARTS_A_LEVEL = 8, PART_HEAD = 2 };

struct part {
	struct profdb_payload counts, minutes; /* minutes: no data where there are none yet */
	uint8_t level, nr_events;
};

struct reader {
	struct profdb_workloads *w;
	bool has_images, has_workloads;
	enum profdb_workload_read how;
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

static int take_notes(struct reader *r, const struct profdb_payload *s)
{
	int e = profdb_notes_parse(r->w, s);

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
	if (profdb_section_is(s, PROFDB_NOTES_TAG))
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
		e = profdb_workload_counts_parse(to, r->w, &coded);
	if (e >= 0 && r->how != PROFDB_WORKLOADS_COUNTS)
		e = profdb_workload_minutes_parse(to, &from->minutes);
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
	bool stored = r->how == PROFDB_WORKLOADS_STORED;
	size_t keep = stored ? parts_to_keep(r, &r->w->level) : 0;
	int e = widen(&r->w->counts, &r->w->minutes, r->w->header->nr_events);

	r->w->nr_parts = r->nr_parts;
	if (r->how == PROFDB_WORKLOADS_IMAGES)
		return e < 0 ? base_fail_errno(r->err, e, "counts of workloads") : 0;
	for (size_t i = 0; e >= 0 && i < r->nr_parts; i++)
		e = i < keep ? keep_part(r->w, &r->parts[i]) : take_part(r, &r->parts[i], sums);
	return e < 0 ? base_fail_errno(r->err, e, "counts of workloads") : 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* All of its parts are. */
static bool is_decoded(const struct reader *r)
{
	return r->how == PROFDB_WORKLOADS_ALL || r->how == PROFDB_WORKLOADS_COUNTS;
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

static int parse(const void *data, size_t len, enum profdb_workload_read how,
		 struct profdb_workloads **out, struct base_err *err)
{
	struct reader r = { .w = profdb_workloads_new(), .how = how, .err = err };
	int e;

	*out = NULL;
	if (!r.w)
		return base_fail_errno(err, -ENOMEM, "cannot read workloads");
	r.w->no_minutes = how == PROFDB_WORKLOADS_COUNTS || how == PROFDB_WORKLOADS_IMAGES;
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
	return parse(data, len, PROFDB_WORKLOADS_ALL, out, err);
}

int profdb_workloads_parse_shown(const struct base_buf *bytes, const char *shown,
				 enum profdb_workload_read how, struct profdb_workloads **out,
				 struct base_err *err)
{
	struct base_err why = { 0 };
	int r = parse(bytes->data, bytes->len, how, out, &why);

	if (r < 0)
		base_fail(err, r, "cannot read workloads '%s': %s", shown, why.text);
	if (r < 0 && why.hint[0])
		base_hint(err, "%s", why.hint);
	return r;
}

int profdb_workloads_read(const char *path, struct profdb_workloads **out, struct base_err *err)
{
	struct base_buf buf = { 0 };
	int r = base_file_read(AT_FDCWD, path, PROFDB_FILE_MAX, &buf, err);

	*out = NULL;
	if (r >= 0)
		r = profdb_workloads_parse_shown(&buf, path, PROFDB_WORKLOADS_ALL, out, err);
	base_buf_release(&buf);
	return r;
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

static int put_counts(const struct profdb_workloads *w, struct base_buf *out)
{
	const uint8_t head[PART_HEAD] = { w->level, (uint8_t)w->header->nr_events };
	size_t at;
	int r = profdb_section_begin(out, counts_tag, &at);

	if (r >= 0)
		r = base_buf_append(out, head, sizeof(head));
	if (r >= 0)
		r = profdb_workload_counts_print(w, out);
	return r < 0 ? r : profdb_section_end(out, at);
}

static int put_minutes(const struct profdb_workloads *w, struct base_buf *out)
{
	size_t at;
	int r = profdb_section_begin(out, minutes_tag, &at);

	if (r >= 0)
		r = profdb_workload_minutes_print(w, out);
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
		r = profdb_notes_print(w, out);
	if (r >= 0)
		r = put_parts(w, out);
	if (r >= 0)
		r = profdb_format1_end(w->header, w->nr_stored + w->counts.nr, out, start);
	return r < 0 ? base_fail_errno(err, r, "cannot write workloads") : 0;
}
