/* SPDX-License-Identifier: BSD-2-Clause */
/* A value profile as a file: a header and footer as a profile's, and section VALS between them.
 * docs/format/values.md */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

/* Lines that are members in memory. */
static const char profiler_word[] = "profiler", lost_word[] = "lost", image_word[] = "context";

/* ---- reading --------------------------------------------------------------------------------- */

/* "ID PATH"; ID may be "0". */
static int take_image(struct profdb_values *v, const char *value)
{
	size_t digits = strcspn(value, " ");
	struct base_id id = { 0 };

	if (!value[digits] || !value[digits + 1])
		return -DCPI_EFORMAT;
	if (strncmp(value, "0 ", 2) != 0 && base_id_parse(&id, value, digits) < 0)
		return -DCPI_EFORMAT;
	return profdb_values_image_add(v, &id, value + digits + 1);
}

static int take_line(struct profdb_values *v, const char *word, const char *value)
{
	size_t before = v->nr_images;
	int r = 0;

	if (!strcmp(word, image_word)) {
		r = take_image(v, value);
		/* One that stands twice would have two numbers. */
		if (r >= 0 && v->nr_images == before)
			r = -DCPI_EFORMAT;
	} else if (!strcmp(word, profiler_word)) {
		if (v->profiler[0] || !profdb_profiler_ok(value))
			return -DCPI_EFORMAT;
		strcpy(v->profiler, value);
	} else if (!strcmp(word, lost_word)) {
		r = profdb_number_parse(value, 10, &v->lost) < 0 ? -DCPI_EFORMAT : 0;
		v->total = v->lost;
	}
	return r < 0 ? r : 0;
}

static int take_lines(struct profdb_values *v, struct base_err *err)
{
	const char *word, *value;
	int r = 0;

	v->profiler[0] = '\0';
	for (size_t i = 0; r >= 0 && (value = profdb_profile_line(v->header, i, &word)); i++) {
		r = take_line(v, word, value);
		if (r < 0)
			return base_fail_errno(err, r, "line '%s %.80s'", word, value);
	}
	if (!v->profiler[0])
		return base_fail(err, -DCPI_EFORMAT, "header has no line '%s'", profiler_word);
	profdb_profile_set_word(v->header, profiler_word, NULL);
	profdb_profile_set_word(v->header, lost_word, NULL);
	profdb_profile_set_word(v->header, image_word, NULL);
	return 0;
}

static int get_context(const struct profdb_values *v, const struct profdb_payload *s, size_t *pos,
		       struct profdb_context *c)
{
	uint64_t image;
	int r = profdb_varint_get(s, pos, &image);

	if (r < 0 || image > v->nr_images)
		return -DCPI_EFORMAT;
	c->image = (uint32_t)image;
	c->off = 0;
	return image ? profdb_varint_get(s, pos, &c->off) : 0;
}

/* Values come ascending: the first, then the difference of each to the one before, less one. */
static int get_hot(const struct profdb_payload *s, size_t *pos, struct profdb_hotlist *l,
		   uint64_t *next, bool *last)
{
	struct profdb_hot *h = &l->v[l->nv++];
	int r = profdb_varint_get(s, pos, &h->value);

	if (r >= 0)
		r = profdb_varint_get(s, pos, &h->concise);
	if (r >= 0)
		r = profdb_varint_get(s, pos, &h->counting);
	if (r < 0 || *last || !h->concise || base_add_overflow(h->value, *next, &h->value) ||
	    base_add_overflow(h->counting, h->concise, &h->counting))
		return -DCPI_EFORMAT;
	*next = h->value + 1;
	*last = h->value == UINT64_MAX;
	return 0;
}

static int get_hots(const struct profdb_payload *s, size_t *pos, struct profdb_hotlist *l)
{
	uint64_t nv, next = 0, sum = 0;
	bool last = false;
	int r = profdb_varint_get(s, pos, &nv);

	if (r < 0 || nv > PROFDB_NR_HOT)
		return -DCPI_EFORMAT;
	l->nv = 0;
	while (r >= 0 && l->nv < nv) {
		r = get_hot(s, pos, l, &next, &last);
		if (r >= 0 && base_add_overflow(sum, l->v[l->nv - 1].counting, &sum))
			r = -DCPI_EFORMAT;
	}
	return r < 0 ? r : sum > l->vtot ? -DCPI_EFORMAT : 0;
}

static int get_list(const struct profdb_values *v, const struct profdb_payload *s, size_t *pos,
		    struct profdb_hotlist *l)
{
	uint64_t gap;
	int r = profdb_varint_get(s, pos, &gap);

	if (r >= 0 && base_add_overflow(l->off, gap, &l->off))
		r = -DCPI_EFORMAT;
	for (int i = 0; r >= 0 && i < 2; i++)
		r = get_context(v, s, pos, &l->context[i]);
	if (r >= 0)
		r = profdb_varint_get(s, pos, &l->vtot);
	if (r >= 0)
		r = profdb_varint_get(s, pos, &l->thld);
	if (r >= 0 && (!l->vtot || !l->thld))
		r = -DCPI_EFORMAT;
	return r < 0 ? r : get_hots(s, pos, l);
}

static int take_lists(struct profdb_values *v, const struct profdb_payload *s, struct base_err *err)
{
	struct profdb_hotlist l = { 0 }, before;
	size_t pos = 0, at = 0;
	int r = 0;

	while (r >= 0 && pos < s->len) {
		at = pos;
		before = l;
		r = get_list(v, s, &pos, &l);
		if (r >= 0 && (v->nr == PROFDB_NR_HOTLISTS ||
			       (v->nr && profdb_hotlist_compare(&before, &l) >= 0)))
			r = -DCPI_EFORMAT;
		if (r >= 0)
			r = profdb_values_take_list(v, &l);
	}
	r = r == -DCPI_EOVERFLOW ? -DCPI_EFORMAT : r;
	return r < 0 ? base_fail_errno(err, r, "values, byte %zu", at) : 0;
}

static int take_sections(struct profdb_values *v, const uint8_t *file, size_t len, size_t pos,
			 struct base_err *err)
{
	struct profdb_payload foot, s;
	bool lists = false;
	int r = profdb_format1_footer(file, len, pos, 0, &foot, err);

	while (r >= 0 && (r = profdb_section_next(file, len, &pos, &s, err)) >= 0 &&
	       !profdb_section_is(&s, "FOOT")) {
		bool mine = profdb_section_is(&s, "VALS");

		if (!mine)
			r = profdb_section_keep(v->header, &s, err);
		else if (lists)
			r = base_fail(err, -DCPI_EFORMAT, "section 'VALS' stands twice");
		else
			r = take_lists(v, &s, err);
		lists = lists || mine;
	}
	if (r >= 0 && !lists)
		r = base_fail(err, -DCPI_EFORMAT, "no section 'VALS': it holds no values");
	if (r >= 0 && profdb_get64(foot.data) != v->nr)
		r = base_fail(err, -DCPI_EFORMAT, "footer tells of %llu lists, not %zu",
			      (unsigned long long)profdb_get64(foot.data), v->nr);
	return r;
}

static int take_file(struct profdb_values *v, const void *data, size_t len, struct base_err *err)
{
	enum profdb_format format;
	size_t binary;
	int r;

	profdb_profile_free(v->header);
	v->header = NULL;
	r = profdb_header_parse(data, len, &v->header, &binary, &format, err);
	if (r < 0)
		return r;
	if (format != PROFDB_FORMAT_1 || v->header->nr_events) {
		base_fail(err, -DCPI_EFORMAT, "it holds samples, not values");
		base_hint(err, "dcpicat prints such files");
		return -DCPI_EFORMAT;
	}
	r = take_lines(v, err);
	return r < 0 ? r : take_sections(v, data, len, binary, err);
}

int profdb_values_parse(const void *data, size_t len, struct profdb_values **out,
			struct base_err *err)
{
	struct profdb_values *v = profdb_values_new(PROFDB_FILE, NULL, NULL, PROFDB_VALUES);
	int r;

	*out = NULL;
	if (!v)
		return base_fail_errno(err, -ENOMEM, "cannot read values");
	r = take_file(v, data, len, err);
	if (r < 0) {
		profdb_values_free(v);
		return r;
	}
	/* The same files merged are the same hotlists: a report can be made again. */
	profdb_values_seed(v, base_crc32c(0, data, len));
	*out = v;
	return 0;
}

int profdb_values_read_at(int dir_fd, const char *name, const char *shown,
			  struct profdb_values **out, struct base_err *err)
{
	struct base_err why = { 0 };
	struct base_buf buf = { 0 };
	int r = base_file_read(dir_fd, name, PROFDB_FILE_MAX, &buf, err);

	*out = NULL;
	if (r >= 0) {
		r = profdb_values_parse(buf.data, buf.len, out, &why);
		if (r < 0) {
			base_fail(err, r, "cannot read values '%s': %s", shown, why.text);
			if (why.hint[0])
				base_hint(err, "%s", why.hint);
		}
	}
	base_buf_release(&buf);
	return r;
}

int profdb_values_read(const char *path, struct profdb_values **out, struct base_err *err)
{
	return profdb_values_read_at(AT_FDCWD, path, path, out, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	const struct profdb_hot *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

/* A context has two numbers at most. */
enum { LIST_MAX = (8 + 3 * PROFDB_NR_HOT) * PROFDB_VARINT_MAX };

static size_t put_list(uint8_t *to, const struct profdb_hotlist *l, uint64_t before)
{
	struct profdb_hot v[PROFDB_NR_HOT];
	size_t n = profdb_varint_put(to, l->off - before);
	uint64_t next = 0;

	for (int i = 0; i < 2; i++) {
		n += profdb_varint_put(to + n, l->context[i].image);
		if (l->context[i].image)
			n += profdb_varint_put(to + n, l->context[i].off);
	}
	n += profdb_varint_put(to + n, l->vtot);
	n += profdb_varint_put(to + n, l->thld);
	n += profdb_varint_put(to + n, l->nv);
	memcpy(v, l->v, l->nv * sizeof(*v));
	qsort(v, l->nv, sizeof(*v), by_value);
	for (uint32_t i = 0; i < l->nv; i++) {
		n += profdb_varint_put(to + n, v[i].value - next);
		n += profdb_varint_put(to + n, v[i].concise);
		n += profdb_varint_put(to + n, v[i].counting - v[i].concise);
		next = v[i].value + 1;
	}
	return n;
}

static int put_lists(const struct profdb_values *v, struct base_buf *out)
{
	uint8_t bytes[LIST_MAX];
	uint64_t before = 0;
	size_t at;
	int r = profdb_section_begin(out, "VALS", &at);

	for (size_t i = 0; r >= 0 && i < v->nr; i++) {
		const struct profdb_hotlist *l = profdb_values_at(v, i);

		r = base_buf_append(out, bytes, put_list(bytes, l, before));
		before = l->off;
	}
	return r < 0 ? r : profdb_section_end(out, at);
}

static int put_images(const struct profdb_values *v)
{
	char id[BASE_ID_TEXT_LEN];
	struct base_buf line = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < v->nr_images; i++) {
		base_id_text(&v->images[i].id, id);
		base_buf_clear(&line);
		r = base_buf_printf(&line, "%s %s", *id ? id : "0", v->images[i].path);
		if (r >= 0)
			r = profdb_profile_add_line(v->header, image_word, (char *)line.data);
	}
	base_buf_release(&line);
	return r;
}

static int put_lines(const struct profdb_values *v)
{
	char lost[24];
	int r = profdb_profile_set_word(v->header, profiler_word, v->profiler);

	snprintf(lost, sizeof(lost), "%llu", (unsigned long long)v->lost);
	if (r >= 0 && v->lost)
		r = profdb_profile_set_word(v->header, lost_word, lost);
	return r < 0 ? r : put_images(v);
}

int profdb_values_format(const struct profdb_values *v, struct base_buf *out, struct base_err *err)
{
	size_t start = out->len;
	int r = put_lines(v);

	if (r >= 0)
		r = profdb_header_print(v->header, PROFDB_FORMAT_1, 0, out, err);
	/* They are no part of the header in memory. */
	profdb_profile_set_word(v->header, profiler_word, NULL);
	profdb_profile_set_word(v->header, lost_word, NULL);
	profdb_profile_set_word(v->header, image_word, NULL);
	if (r >= 0)
		r = put_lists(v, out);
	if (r >= 0)
		r = profdb_format1_end(v->header, v->nr, out, start);
	return r < 0 ? base_fail_errno(err, r, "cannot write values") : 0;
}
