/* SPDX-License-Identifier: BSD-2-Clause */
/* Workloads as a file: a header and footer as a profile's, and between them images, workloads with
 * their texts, and counts. docs/format/workloads.md */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

static const char images_tag[] = "IMAG", workloads_tag[] = "WLDS", counts_tag[] = "WCNT";

struct reader {
	struct profdb_workloads *w;
	bool has_images, has_workloads, has_counts;
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
static int get_workload(struct reader *r, const struct texts *t, const struct profdb_payload *s,
			size_t *pos)
{
	struct profdb_workload k = { 0 };
	const char **const names[] = { &k.comm, &k.exe, &k.cgroup, &k.label, &k.thread };
	size_t nr = r->w->nr;
	int e = 0;

	for (size_t i = 0; e >= 0 && i < sizeof(names) / sizeof(names[0]); i++)
		e = get_name(t, s, pos, names[i]);
	if (e >= 0)
		e = get_numbers(s, pos, &k);
	if (e >= 0)
		e = profdb_workloads_workload_add(r->w, &k);
	return e < 0 ? e : r->w->nr == nr ? -DCPI_EFORMAT : 0;
}

static int take_workloads(struct reader *r, const struct profdb_payload *s)
{
	struct texts t = { 0 };
	size_t pos = 0, at = 0;
	int e = r->has_workloads ? -DCPI_EFORMAT : get_texts(&t, s, &pos);

	r->has_workloads = true;
	while (e >= 0 && pos < s->len) {
		at = pos;
		e = get_workload(r, &t, s, &pos);
	}
	texts_release(&t);
	return e < 0 ? base_fail_errno(r->err, e, "workloads, byte %zu", at) : 0;
}

static int take_counts(struct reader *r, const struct profdb_payload *s)
{
	struct profdb_workloads *w = r->w;
	int e = r->has_counts || !r->has_images || !r->has_workloads ? -DCPI_EFORMAT : 0;

	r->has_counts = true;
	if (e >= 0)
		e = profdb_workload_rows_widen(&w->counts, w->header->nr_events);
	if (e >= 0)
		e = profdb_workload_rows_widen(&w->minutes, w->header->nr_events);
	if (e >= 0)
		e = profdb_workload_counts_parse(w, s);
	return e < 0 ? base_fail_errno(r->err, e, "counts of workloads") : 0;
}

static int take_section(struct reader *r, const struct profdb_payload *s)
{
	if (profdb_section_is(s, images_tag))
		return take_images(r, s);
	if (profdb_section_is(s, workloads_tag))
		return take_workloads(r, s);
	if (profdb_section_is(s, counts_tag))
		return take_counts(r, s);
	return profdb_section_keep(r->w->header, s, r->err);
}

static int check_totals(const struct reader *r, const struct profdb_payload *foot)
{
	const struct profdb_profile *h = r->w->header;

	if (!r->has_counts)
		return base_fail(r->err, -DCPI_EFORMAT, "no section '%s': it holds no workloads",
				 counts_tag);
	if (profdb_get64(foot->data) != r->w->counts.nr)
		return base_fail(r->err, -DCPI_EFORMAT, "footer tells of %llu counts, not %zu",
				 (unsigned long long)profdb_get64(foot->data), r->w->counts.nr);
	for (size_t i = 0; i < h->nr_events; i++)
		if (profdb_get64(foot->data + 8 + 8 * i) != h->events[i].sum)
			return base_fail(r->err, -DCPI_EFORMAT, "counts of '%s' do not sum",
					 h->events[i].name);
	return 0;
}

static int take_sections(struct reader *r, const uint8_t *file, size_t len, size_t pos)
{
	struct profdb_payload foot, s;
	int e = profdb_format1_footer(file, len, pos, r->w->header->nr_events, &foot, r->err);

	while (e >= 0 && (e = profdb_section_next(file, len, &pos, &s, r->err)) >= 0 &&
	       !profdb_section_is(&s, "FOOT"))
		e = take_section(r, &s);
	return e < 0 ? e : check_totals(r, &foot);
}

static bool is_header(const struct profdb_profile *h)
{
	return h->kind == PROFDB_NAMED && h->nr_paths == 1 &&
	       !strcmp(h->paths[0], PROFDB_WORKLOADS);
}

static int take_file(struct reader *r, const void *data, size_t len)
{
	enum profdb_format format;
	size_t binary;
	int e;

	profdb_profile_free(r->w->header);
	r->w->header = NULL;
	e = profdb_header_parse(data, len, &r->w->header, &binary, &format, r->err);
	if (e < 0)
		return e;
	if (format != PROFDB_FORMAT_1 || !is_header(r->w->header))
		return base_fail(r->err, -DCPI_EFORMAT, "it holds no workloads");
	return take_sections(r, data, len, binary);
}

int profdb_workloads_parse(const void *data, size_t len, struct profdb_workloads **out,
			   struct base_err *err)
{
	struct reader r = { .w = profdb_workloads_new(), .err = err };
	int e;

	*out = NULL;
	if (!r.w)
		return base_fail_errno(err, -ENOMEM, "cannot read workloads");
	e = take_file(&r, data, len);
	if (e < 0) {
		profdb_workloads_free(r.w);
		return e;
	}
	*out = r.w;
	return 0;
}

int profdb_workloads_parse_shown(const struct base_buf *bytes, const char *shown,
				 struct profdb_workloads **out, struct base_err *err)
{
	struct base_err why = { 0 };
	int r = profdb_workloads_parse(bytes->data, bytes->len, out, &why);

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
		r = profdb_workloads_parse_shown(&buf, path, out, err);
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
	return r < 0 ? r : profdb_varint_append(&n->rows, number - 1);
}

static int put_workload(struct numbers *n, const struct profdb_workload *k)
{
	const char *const names[] = { k->comm, k->exe, k->cgroup, k->label, k->thread };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < sizeof(names) / sizeof(names[0]); i++)
		r = put_name(n, names[i]);
	if (r >= 0)
		r = profdb_varint_append(&n->rows, (uint32_t)(k->uid + 1));
	if (r >= 0)
		r = profdb_varint_append(&n->rows, (uint32_t)k->pid);
	return r < 0 ? r : profdb_varint_append(&n->rows, k->processes);
}

static int put_workloads(const struct profdb_workloads *w, struct base_buf *out)
{
	struct numbers n = { 0 };
	size_t at;
	int r = profdb_section_begin(out, workloads_tag, &at);

	for (size_t i = 0; r >= 0 && i < w->nr; i++)
		r = put_workload(&n, &w->v[i]);
	if (r >= 0)
		r = profdb_varint_append(out, n.nr);
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
	size_t at;
	int r = profdb_section_begin(out, counts_tag, &at);

	if (r >= 0)
		r = profdb_workload_counts_print(w, out);
	return r < 0 ? r : profdb_section_end(out, at);
}

int profdb_workloads_format(const struct profdb_workloads *w, struct base_buf *out,
			    struct base_err *err)
{
	size_t start = out->len;
	int r = profdb_header_print(w->header, PROFDB_FORMAT_1, 0, out, err);

	if (r >= 0)
		r = put_images(w, out);
	if (r >= 0)
		r = put_workloads(w, out);
	if (r >= 0)
		r = put_counts(w, out);
	if (r >= 0)
		r = profdb_format1_end(w->header, w->counts.nr, out, start);
	return r < 0 ? base_fail_errno(err, r, "cannot write workloads") : 0;
}
