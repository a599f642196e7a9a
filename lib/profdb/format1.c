/* SPDX-License-Identifier: BSD-2-Clause */
/* The binary part of a profile file of version 1 is read and written here: sections, and a footer.
 */
#include <string.h>

#include "profdb_internal.h"

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
static int take_entry(const struct profdb_payload *s, size_t *pos, struct profdb_rows *rows)
{
	uint64_t gap, count[PROFDB_NR_EVENTS];
	int r = profdb_varint_get(s, pos, &gap);

	for (size_t i = 0; r >= 0 && i < rows->p->nr_events; i++)
		r = profdb_varint_get(s, pos, &count[i]);
	return r < 0 ? r : profdb_rows_take(rows, gap, count);
}

static int take_counts(const struct profdb_payload *s, struct profdb_profile *p,
		       struct base_err *err)
{
	struct profdb_rows rows = { .p = p };
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

static int take_edge_counts(const struct profdb_payload *s, struct profdb_profile *p,
			    struct base_err *err)
{
	int r;

	if (p->edge_counts.nr)
		return base_fail(err, -DCPI_EFORMAT, "section 'move' stands twice");
	r = profdb_moves_parse(&p->edge_counts, s);
	return r < 0 ? base_fail_errno(err, r, "moves, after %zu of them", p->edge_counts.nr) : 0;
}

/* They are checked against the counts, which stand before them. */
static int take_insns(const struct profdb_payload *s, struct profdb_profile *p,
		      struct base_err *err)
{
	int r;

	if (p->insns.nr)
		return base_fail(err, -DCPI_EFORMAT, "section 'insn' stands twice");
	r = profdb_insns_parse(p, s);
	return r < 0 ? base_fail_errno(err, r, "instruction samples, after %zu of them",
				       p->insns.nr)
		     : 0;
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
	if (profdb_section_is(s, "move"))
		return take_edge_counts(s, p, err);
	if (profdb_section_is(s, "insn"))
		return take_insns(s, p, err);
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

int profdb_format1_parse(const uint8_t *file, size_t len, size_t binary, struct profdb_profile *p,
			 struct base_err *err)
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
			r = take_counts(&s, p, err);
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

static int put_edge_counts(const struct profdb_profile *p, struct base_buf *out)
{
	size_t at;
	int r = profdb_section_begin(out, "move", &at);

	if (r >= 0)
		r = profdb_moves_print((struct profdb_edges *)&p->edge_counts, out);
	return r < 0 ? r : profdb_section_end(out, at);
}

static int put_insns(const struct profdb_profile *p, struct base_buf *out)
{
	size_t at;
	int r = profdb_section_begin(out, "insn", &at);

	if (r >= 0)
		r = profdb_insns_print((struct profdb_insns *)&p->insns, out);
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

int profdb_format1_print(const struct profdb_profile *p, struct base_buf *out, struct base_err *err)
{
	size_t start = out->len;
	int r = profdb_header_print(p, PROFDB_FORMAT_1, 0, out, err);

	if (r >= 0)
		r = put_counts(p, out);
	if (r >= 0 && p->edge_counts.nr)
		r = put_edge_counts(p, out);
	if (r >= 0 && p->insns.nr)
		r = put_insns(p, out);
	if (r >= 0)
		r = profdb_format1_end(p, p->counts.nr, out, start);
	return r < 0 ? base_fail_errno(err, r, "cannot write a profile") : 0;
}
