/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile file is read in whatever version it has, and written in the version that is asked for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

/* ---- counts ---------------------------------------------------------------------------------- */

/* A reader of counts: ascending rows. */
struct rows {
	struct profdb_profile *p;
	uint64_t next; /* a gap of 0 leads there */
	bool full;     /* the last offset that there is has been */
};

/* The next row; counts of all events, not all 0. 0, -DCPI_EFORMAT, -ENOMEM. */
static int rows_take(struct rows *rows, uint64_t gap, const uint64_t *count)
{
	bool any = false;
	uint64_t off;

	if (rows->full || base_add_overflow(gap, rows->next, &off))
		return -DCPI_EFORMAT;
	for (size_t i = 0; i < rows->p->nr_events; i++) {
		int r = profdb_profile_add(rows->p, off, i, count[i]);

		if (r < 0)
			return r == -DCPI_EOVERFLOW ? -DCPI_EFORMAT : r;
		any = any || count[i];
	}
	/* After the last offset there is, nothing may come; 0 here would let it wrap. */
	rows->full = off == UINT64_MAX;
	rows->next = off + 1;
	return any ? 0 : -DCPI_EFORMAT;
}

/* Many counts of a profile, in half the room: the numbers of CNTS through range_coder.c, with a
 * model for the gaps, and one for each event's counts. docs/format/dcpiformat.md */

enum { HEAD = 8 };

static int profdb_range_coded_print(const struct profdb_profile *p, struct base_buf *out)
{
	struct profdb_range_model *m = profdb_range_models(1 + p->nr_events);
	struct profdb_range_encoder e;
	uint64_t next = 0;
	uint8_t head[HEAD];

	if (!m)
		return -ENOMEM;
	profdb_range_begin(&e, out);
	profdb_put64(head, p->counts.nr);
	e.error = base_buf_append(out, head, sizeof(head));
	for (size_t i = 0; e.error >= 0 && i < p->counts.nr; i++) {
		const struct profdb_entry *row = profdb_profile_entry(p, i);

		profdb_range_put(&e, &m[0], row->off - next);
		for (size_t k = 0; k < p->nr_events; k++)
			profdb_range_put(&e, &m[1 + k], row->count[k]);
		next = row->off + 1;
	}
	free(m);
	return profdb_range_end(&e);
}

static int get_row(struct profdb_range_decoder *d, struct profdb_range_model *m, struct rows *rows)
{
	uint64_t gap, count[PROFDB_NR_EVENTS];
	int r = profdb_range_get(d, m, &gap);

	for (size_t k = 0; r >= 0 && k < rows->p->nr_events; k++)
		r = profdb_range_get(d, &m[1 + k], &count[k]);
	return r < 0 ? r : rows_take(rows, gap, count);
}

static int get_rows(struct profdb_range_decoder *d, uint64_t nr, struct profdb_profile *p)
{
	struct profdb_range_model *m = profdb_range_models(1 + p->nr_events);
	struct rows rows = { .p = p };
	int r = m ? 0 : -ENOMEM;

	for (uint64_t i = 0; r >= 0 && i < nr; i++)
		r = get_row(d, m, &rows);
	free(m);
	return r;
}

/* The payload of CNTD. 0, -ENOMEM; of parse also -DCPI_EFORMAT. */
static int profdb_range_coded_parse(const uint8_t *data, size_t len, struct profdb_profile *p)
{
	struct profdb_range_decoder d;
	uint64_t nr;
	int r;

	if (len < HEAD || profdb_range_open(&d, data + HEAD, len - HEAD) < 0)
		return -DCPI_EFORMAT;
	nr = profdb_get64(data);
	if (len < profdb_range_least(nr))
		return -DCPI_EFORMAT;
	r = get_rows(&d, nr, p);
	return r < 0 ? r : d.pos == d.len ? 0 : -DCPI_EFORMAT;
}

/* The binary part of a profile file of version 1 is read and written here: sections, and a footer.
 */

enum { FOOT_FIXED = 16 };
/* Sections up to that, with their heads, are no shorter on a disk in the dense form. */
enum { PLAIN_MAX = 4096 };

/* ---- reading --------------------------------------------------------------------------------- */

static int check_footer(const uint8_t *file, size_t len, const struct profdb_payload *foot,
			size_t nr_events, struct base_err *err)
{
	if (foot->len < FOOT_FIXED || profdb_get32(file + len - 4) != base_crc32c(0, file, len - 4))
		return base_fail(err, -DCPI_ECHECKSUM, "checksum does not match");
	if (foot->len != FOOT_FIXED + 8 * nr_events || profdb_get32(file + len - 8) != nr_events)
		return base_fail(err, -DCPI_EFORMAT, "footer and header differ in events");
	return 0;
}

int profdb_format1_footer(const uint8_t *file, size_t len, size_t binary, size_t nr_events,
			  struct profdb_payload *foot, struct base_err *err)
{
	size_t pos = binary;
	int r;

	if (binary % 8)
		return base_fail(err, -DCPI_EFORMAT, "binary part begins at byte %zu", binary);
	do {
		r = profdb_section_next(file, len, &pos, foot, err);
		if (r < 0)
			return r;
	} while (!profdb_section_is(foot, "FOOT"));
	if (pos != len)
		return base_fail(err, -DCPI_EFORMAT, "%zu bytes follow the footer", len - pos);
	return check_footer(file, len, foot, nr_events, err);
}

/* Gap to the offset before (to -1 at first), then a count per event, not all zero. */
static int take_entry(const struct profdb_payload *s, size_t *pos, struct rows *rows)
{
	uint64_t gap, count[PROFDB_NR_EVENTS];
	int r = profdb_varint_get(s, pos, &gap);

	for (size_t i = 0; r >= 0 && i < rows->p->nr_events; i++)
		r = profdb_varint_get(s, pos, &count[i]);
	return r < 0 ? r : rows_take(rows, gap, count);
}

static int take_rows(const struct profdb_payload *s, struct profdb_profile *p, struct base_err *err)
{
	struct rows rows = { .p = p };
	size_t pos = 0;

	if (profdb_section_is(s, "CNTD")) {
		int r = profdb_range_coded_parse(s->data, s->len, p);

		return r < 0 ? base_fail_errno(err, r, "counts, after %zu offsets", p->counts.nr)
			     : 0;
	}
	while (pos < s->len) {
		size_t at = pos;
		int r = take_entry(s, &pos, &rows);

		if (r < 0)
			return base_fail_errno(err, r, "counts, byte %zu", at);
	}
	return 0;
}

/* Details are checked against the counts, which stand before them. */
static int take_detail(const struct profdb_detail *d, const struct profdb_payload *s,
		       struct profdb_profile *p, struct base_err *err)
{
	int r;

	if (d->nr(p))
		return base_fail(err, -DCPI_EFORMAT, "section '%s' stands twice", d->tag);
	r = d->parse(p, s);
	return r < 0 ? base_fail_errno(err, r, "%s, after %zu of them", d->what, d->nr(p)) : 0;
}

static bool knows_section(const struct profdb_profile *p, const char tag[4])
{
	for (size_t i = 0; i < p->nr_sections; i++) {
		if (!memcmp(p->sections[i].tag, tag, 4))
			return true;
	}
	return false;
}

int profdb_section_keep(struct profdb_profile *p, const struct profdb_payload *s,
			struct base_err *err)
{
	int r;

	if (s->tag[0] < 'a') {
		base_fail(err, -DCPI_EVERSION, "section '%.4s' is not known", s->tag);
		base_hint(err, "a newer DCPI wrote this profile");
		return -DCPI_EVERSION;
	}
	if (knows_section(p, s->tag))
		return base_fail(err, -DCPI_EFORMAT, "section '%.4s' stands twice", s->tag);
	r = profdb_profile_add_section(p, s->tag, s->data, s->len);
	return r < 0 ? base_fail_errno(err, r, "section '%.4s'", s->tag) : 0;
}

static int take_other(const struct profdb_payload *s, struct profdb_profile *p,
		      struct base_err *err)
{
	for (size_t i = 0; i < PROFDB_NR_DETAILS; i++)
		if (profdb_section_is(s, profdb_details[i]->tag))
			return take_detail(profdb_details[i], s, p, err);
	if (profdb_section_is(s, "VALS")) {
		base_fail(err, -DCPI_EVERSION, "it holds values, not samples");
		base_hint(err, "dcpivcat prints such files");
		return -DCPI_EVERSION;
	}
	if (profdb_section_is(s, "TREE") || profdb_section_is(s, "IMGS")) {
		base_fail(err, -DCPI_EVERSION, "it holds call paths, not samples");
		base_hint(err, "dcpicat prints such files");
		return -DCPI_EVERSION;
	}
	return profdb_section_keep(p, s, err);
}

static int check_totals(const struct profdb_payload *foot, const struct profdb_profile *p,
			struct base_err *err)
{
	if (profdb_get64(foot->data) != p->counts.nr)
		return base_fail(err, -DCPI_EFORMAT, "footer tells of %llu offsets, not %zu",
				 (unsigned long long)profdb_get64(foot->data), p->counts.nr);
	for (size_t i = 0; i < p->nr_events; i++) {
		if (profdb_get64(foot->data + 8 + 8 * i) != p->events[i].sum)
			return base_fail(err, -DCPI_EFORMAT, "counts of '%s' do not sum",
					 p->events[i].name);
	}
	return 0;
}

static bool is_counts(const struct profdb_payload *s)
{
	return profdb_section_is(s, "CNTS") || profdb_section_is(s, "CNTD");
}

static int profdb_format1_parse(const uint8_t *file, size_t len, size_t binary,
				struct profdb_profile *p, struct base_err *err)
{
	struct profdb_payload foot, s;
	bool counts = false;
	size_t pos = binary;
	int r;

	r = profdb_format1_footer(file, len, binary, p->nr_events, &foot, err);
	while (r >= 0 && (r = profdb_section_next(file, len, &pos, &s, err)) >= 0 &&
	       !profdb_section_is(&s, "FOOT")) {
		if (!is_counts(&s))
			r = take_other(&s, p, err);
		else if (counts)
			r = base_fail(err, -DCPI_EFORMAT, "a section with counts stands twice");
		else
			r = take_rows(&s, p, err);
		counts = counts || is_counts(&s);
	}
	return r < 0 ? r : check_totals(&foot, p, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int put_entries(const struct profdb_profile *p, struct base_buf *out)
{
	uint8_t bytes[(1 + PROFDB_NR_EVENTS) * PROFDB_VARINT_MAX];
	uint64_t next = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->counts.nr; i++) {
		const struct profdb_entry *e = profdb_profile_entry(p, i);
		size_t n = profdb_varint_put(bytes, e->off - next);

		for (size_t j = 0; j < p->nr_events; j++)
			n += profdb_varint_put(bytes + n, e->count[j]);
		r = base_buf_append(out, bytes, n);
		next = e->off + 1;
	}
	return r;
}

static int put_plain(const struct profdb_profile *p, struct base_buf *out)
{
	size_t at;
	int r = profdb_section_begin(out, "CNTS", &at);

	if (r >= 0)
		r = put_entries(p, out);
	return r < 0 ? r : profdb_section_end(out, at);
}

/* In the dense form where there are many, but for what it makes longer. */
static int put_counts(const struct profdb_profile *p, struct base_buf *out)
{
	struct base_buf range_coded = { 0 };
	size_t at = out->len;
	int r = put_plain(p, out);

	if (r < 0 || out->len - at <= PLAIN_MAX)
		return r;
	r = profdb_range_coded_print(p, &range_coded);
	if (r >= 0 && range_coded.len < out->len - at &&
	    range_coded.len >= profdb_range_least(p->counts.nr)) {
		out->len = at;
		r = profdb_section_put(out, "CNTD", range_coded.data, range_coded.len);
	}
	base_buf_release(&range_coded);
	return r;
}

static int put_detail(const struct profdb_detail *d, const struct profdb_profile *p,
		      struct base_buf *out)
{
	size_t at;
	int r;

	if (!d->nr(p))
		return 0;
	r = profdb_section_begin(out, d->tag, &at);
	if (r >= 0)
		r = d->print(p, out);
	return r < 0 ? r : profdb_section_end(out, at);
}

int profdb_format1_end(const struct profdb_profile *p, size_t nr_offsets, struct base_buf *out,
		       size_t start)
{
	uint8_t foot[FOOT_FIXED + 8 * PROFDB_NR_EVENTS] = { 0 };
	size_t len = FOOT_FIXED + 8 * p->nr_events;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->nr_sections; i++)
		r = profdb_section_put(out, p->sections[i].tag, p->sections[i].data,
				       p->sections[i].len);
	profdb_put64(foot, nr_offsets);
	for (size_t i = 0; i < p->nr_events; i++)
		profdb_put64(foot + 8 + 8 * i, p->events[i].sum);
	profdb_put32(foot + len - 8, (uint32_t)p->nr_events);
	if (r >= 0)
		r = profdb_section_put(out, "FOOT", foot, len);
	if (r >= 0)
		profdb_put32(out->data + out->len - 4,
			     base_crc32c(0, out->data + start, out->len - start - 4));
	return r;
}

/* @file: the whole file, whose checksum it is; @binary: where its binary part begins. */
static int profdb_format1_print(const struct profdb_profile *p, struct base_buf *out,
				struct base_err *err)
{
	size_t start = out->len;
	int r = profdb_header_print(p, PROFDB_FORMAT_1, 0, out, err);

	if (r >= 0)
		r = put_counts(p, out);
	for (size_t i = 0; r >= 0 && i < PROFDB_NR_DETAILS; i++)
		r = put_detail(profdb_details[i], p, out);
	if (r >= 0)
		r = profdb_format1_end(p, p->counts.nr, out, start);
	return r < 0 ? base_fail_errno(err, r, "cannot write a profile") : 0;
}

/* The binary parts of profile files of versions 0.06 and 0.07 are read and written here. */

enum { CHUNK_LEN = 8, FOOTER_LEN = 8, COUNT_LEN = 4 };

static int bad_chunk(struct base_err *err, uint32_t off, const char *why)
{
	return base_fail(err, -DCPI_EFORMAT, "chunk at offset 0x%x %s", off, why);
}

static int take_counts(const uint8_t *counts, uint64_t off, uint32_t nr, struct profdb_profile *p)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < nr; i++)
		r = profdb_profile_add(p, off + i, 0, profdb_get32(counts + (size_t)i * COUNT_LEN));
	return r;
}

/* Chunks up to the footer: only the end of the file tells one from the other. */
static int take_chunks(const uint8_t *data, size_t len, struct profdb_profile *p,
		       struct base_err *err)
{
	uint64_t next = 0;
	size_t pos = 0;

	while (pos < len) {
		uint32_t off, nr;
		int r;

		if (len - pos < CHUNK_LEN)
			return base_fail(err, -DCPI_ETRUNCATED, "last chunk is cut");
		off = profdb_get32(data + pos);
		nr = profdb_get32(data + pos + 4);
		pos += CHUNK_LEN;
		if (!nr)
			return bad_chunk(err, off, "is empty");
		if (off < next)
			return bad_chunk(err, off, "overlaps the one before, or comes late");
		if ((uint64_t)off + nr > UINT64_C(1) << 32)
			return bad_chunk(err, off, "reaches beyond 4 GiB");
		if (nr > (len - pos) / COUNT_LEN)
			return base_fail(err, -DCPI_ETRUNCATED,
					 "chunk at offset 0x%x is longer than the file", off);
		r = take_counts(data + pos, off, nr, p);
		if (r < 0)
			return base_fail_errno(err, r, "chunk at offset 0x%x", off);
		pos += (size_t)nr * COUNT_LEN;
		next = (uint64_t)off + nr;
	}
	return 0;
}

static int profdb_format0_parse(const uint8_t *data, size_t len, struct profdb_profile *p,
				struct base_err *err)
{
	const uint8_t *footer;
	int r;

	if (len < FOOTER_LEN || len % COUNT_LEN)
		return base_fail(err, -DCPI_ETRUNCATED, "binary part of %zu bytes is cut", len);
	footer = data + len - FOOTER_LEN;
	r = take_chunks(data, len - FOOTER_LEN, p, err);
	if (r < 0)
		return r;
	if (profdb_get32(footer) != p->counts.nr || profdb_get32(footer + 4) != p->events[0].sum)
		return base_fail(err, -DCPI_ECHECKSUM,
				 "footer tells of %u samples at %u offsets, chunks of %llu at %zu",
				 profdb_get32(footer + 4), profdb_get32(footer),
				 (unsigned long long)p->events[0].sum, p->counts.nr);
	return 0;
}

static int put32(struct base_buf *out, uint64_t v)
{
	uint8_t bytes[4];

	profdb_put32(bytes, (uint32_t)v);
	return base_buf_append(out, bytes, sizeof(bytes));
}

static int does_not_fit(struct base_err *err, const char *what, uint64_t v)
{
	base_fail(err, -DCPI_EOVERFLOW, "%s %llu does not fit the old format's 32 bits", what,
		  (unsigned long long)v);
	base_hint(err, "only version 1 has 64-bit counts and offsets");
	return -DCPI_EOVERFLOW;
}

struct chunk {
	size_t at;    /* place of its header in the buffer */
	uint64_t end; /* the offset after its last count; 0: none yet */
	uint32_t nr;
};

/* A new chunk costs as much as two zero counts. */
static int put_count(struct base_buf *out, struct chunk *c, uint64_t off, uint64_t count)
{
	int r = 0;

	if (!c->end || off - c->end > 2) {
		c->at = out->len;
		c->nr = 0;
		c->end = off;
		r = put32(out, off);
		if (r >= 0)
			r = put32(out, 0);
	}
	for (; r >= 0 && c->end < off; c->end++, c->nr++)
		r = put32(out, 0);
	if (r >= 0)
		r = put32(out, count);
	if (r < 0)
		return r;
	c->end++;
	profdb_put32(out->data + c->at + 4, ++c->nr);
	return 0;
}

static int profdb_format0_print(const struct profdb_profile *p, size_t event, struct base_buf *out,
				struct base_err *err)
{
	struct chunk chunk = { 0 };
	uint32_t nr = 0;
	int r = 0;

	if (p->events[event].sum > UINT32_MAX)
		return does_not_fit(err, "sum", p->events[event].sum);
	for (size_t i = 0; r >= 0 && i < p->counts.nr; i++) {
		const struct profdb_entry *e = profdb_profile_entry(p, i);

		if (!e->count[event])
			continue;
		if (e->off > UINT32_MAX)
			return does_not_fit(err, "offset", e->off);
		r = put_count(out, &chunk, e->off, e->count[event]);
		nr++;
	}
	if (r >= 0)
		r = put32(out, nr);
	if (r >= 0)
		r = put32(out, p->events[event].sum);
	return r < 0 ? base_fail_errno(err, r, "cannot write a profile") : 0;
}

int profdb_profile_parse(const void *data, size_t len, struct profdb_profile **out,
			 struct base_err *err)
{
	struct profdb_profile *p = NULL;
	enum profdb_format format;
	size_t binary;
	int r = profdb_header_parse(data, len, &p, &binary, &format, err);

	*out = NULL;
	if (r < 0)
		return r;
	if (format == PROFDB_FORMAT_1)
		r = profdb_format1_parse(data, len, binary, p, err);
	else
		r = profdb_format0_parse((const uint8_t *)data + binary, len - binary, p, err);
	if (r < 0) {
		profdb_profile_free(p);
		return r;
	}
	*out = p;
	return 0;
}

int profdb_format_find(const char *name, enum profdb_format *out, struct base_err *err)
{
	static const char *const names[] = { [PROFDB_FORMAT_1] = "1",
					     [PROFDB_FORMAT_0_07] = "0.07",
					     [PROFDB_FORMAT_0_06] = "0.06" };

	*out = PROFDB_FORMAT_1;
	for (int i = 0; name && i < 3; i++) {
		if (!strcmp(names[i], name)) {
			*out = (enum profdb_format)i;
			return 0;
		}
	}
	if (!name)
		return 0;
	base_fail(err, -DCPI_EUSAGE, "unknown format version '%s'", name);
	base_hint(err, "1, 0.07 and 0.06 can be written");
	return -DCPI_EUSAGE;
}

bool profdb_error_is_content(int r)
{
	return r == -DCPI_EFORMAT || r == -DCPI_EVERSION || r == -DCPI_ECHECKSUM ||
	       r == -DCPI_ETRUNCATED || r == -DCPI_ELIMIT;
}

int profdb_profile_read_at(int dir_fd, const char *name, const char *shown,
			   struct profdb_profile **out, struct base_err *err)
{
	struct base_err why = { 0 };
	struct base_buf buf = { 0 };
	int r = base_file_read(dir_fd, name, PROFDB_FILE_MAX, &buf, err);

	*out = NULL;
	if (r >= 0) {
		r = profdb_profile_parse(buf.data, buf.len, out, &why);
		if (r < 0) {
			base_fail(err, r, "cannot read profile '%s': %s", shown, why.text);
			if (why.hint[0])
				base_hint(err, "%s", why.hint);
		}
	}
	base_buf_release(&buf);
	return r;
}

int profdb_profile_format(const struct profdb_profile *p, enum profdb_format format, size_t event,
			  struct base_buf *out, struct base_err *err)
{
	int r;

	if (format == PROFDB_FORMAT_1)
		return profdb_format1_print(p, out, err);
	if (event >= p->nr_events)
		return base_fail(err, -EINVAL, "profile has no event number %zu", event);
	r = profdb_header_print(p, format, event, out, err);
	return r < 0 ? r : profdb_format0_print(p, event, out, err);
}
