/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "profdb_internal.h"

/* tag[4] zero[4] length[8] payload padding: docs/format/dcpiformat.md */
enum { HEAD_LEN = 16, FOOT_FIXED = 16, VARINT_MAX = 10 };

struct section {
	char tag[4];
	const uint8_t *data;
	size_t len;
};

/* ---- reading --------------------------------------------------------------------------------- */

static bool tag_ok(const char tag[4])
{
	for (int i = 0; i < 4; i++) {
		bool letter = (tag[i] | 32) >= 'a' && (tag[i] | 32) <= 'z';

		if (!letter && (i == 0 || tag[i] < '0' || tag[i] > '9'))
			return false;
	}
	return true;
}

static bool all_zero(const uint8_t *p, size_t len)
{
	for (; len; len--) {
		if (*p++)
			return false;
	}
	return true;
}

/* The section at *@pos; *@pos moves behind it. */
static int next_section(const uint8_t *file, size_t len, size_t *pos, struct section *s,
			struct base_err *err)
{
	const uint8_t *head = file + *pos;
	size_t room = len - *pos, padded;

	if (room < HEAD_LEN)
		return base_fail(err, -DCPI_ETRUNCATED, "file ends without its footer");
	memcpy(s->tag, head, sizeof(s->tag));
	if (!tag_ok(s->tag) || !all_zero(head + 4, 4))
		return base_fail(err, -DCPI_EFORMAT, "no section begins at byte %zu", *pos);
	if (profdb_get64(head + 8) > room - HEAD_LEN)
		return base_fail(err, -DCPI_ETRUNCATED, "section '%.4s' is longer than the file",
				 s->tag);
	s->data = head + HEAD_LEN;
	s->len = (size_t)profdb_get64(head + 8);
	padded = (size_t)base_align_up(s->len, 8);
	if (padded > room - HEAD_LEN)
		return base_fail(err, -DCPI_ETRUNCATED, "section '%.4s' is cut", s->tag);
	if (!all_zero(s->data + s->len, padded - s->len))
		return base_fail(err, -DCPI_EFORMAT, "section '%.4s' is not padded by zeros",
				 s->tag);
	*pos += HEAD_LEN + padded;
	return 0;
}

static bool is_tag(const struct section *s, const char *tag)
{
	return !memcmp(s->tag, tag, sizeof(s->tag));
}

static int find_footer(const uint8_t *file, size_t len, size_t binary, struct section *foot,
		       struct base_err *err)
{
	size_t pos = binary;
	int r;

	do {
		r = next_section(file, len, &pos, foot, err);
		if (r < 0)
			return r;
	} while (!is_tag(foot, "FOOT"));
	if (pos != len)
		return base_fail(err, -DCPI_EFORMAT, "%zu bytes follow the footer", len - pos);
	return 0;
}

static int check_footer(const uint8_t *file, size_t len, const struct section *foot,
			const struct profdb_profile *p, struct base_err *err)
{
	if (foot->len < FOOT_FIXED || profdb_get32(file + len - 4) != base_crc32c(0, file, len - 4))
		return base_fail(err, -DCPI_ECHECKSUM, "checksum does not match");
	if (foot->len != FOOT_FIXED + 8 * p->nr_events ||
	    profdb_get32(file + len - 8) != p->nr_events)
		return base_fail(err, -DCPI_EFORMAT, "footer and header differ in events");
	return 0;
}

/* Each number has one spelling only: no zero at the end of several bytes. */
static int get_varint(const struct section *s, size_t *pos, uint64_t *out)
{
	uint64_t v = 0;

	for (int i = 0; i < VARINT_MAX && *pos < s->len; i++) {
		uint8_t byte = s->data[(*pos)++];

		if ((i == VARINT_MAX - 1 && byte > 1) || (i && !byte))
			return -DCPI_EFORMAT;
		v |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (!(byte & 0x80)) {
			*out = v;
			return 0;
		}
	}
	return -DCPI_EFORMAT;
}

/* Gap to the offset before (to -1 at first), then a count per event, not all zero. */
static int take_entry(const struct section *s, size_t *pos, uint64_t *next,
		      struct profdb_profile *p)
{
	uint64_t off, count;
	bool any = false;
	int r = get_varint(s, pos, &off);

	if (r < 0)
		return r;
	if (base_add_overflow(off, *next, &off))
		return -DCPI_EFORMAT;
	for (size_t i = 0; i < p->nr_events; i++) {
		r = get_varint(s, pos, &count);
		if (r >= 0)
			r = profdb_profile_add(p, off, i, count);
		if (r < 0)
			return r == -DCPI_EOVERFLOW ? -DCPI_EFORMAT : r;
		any = any || count;
	}
	if (!any)
		return -DCPI_EFORMAT;
	/* After the last offset there is, nothing may come; 0 here would let it wrap. */
	*next = off + 1;
	return off == UINT64_MAX && *pos < s->len ? -DCPI_EFORMAT : 0;
}

static int take_counts(const struct section *s, struct profdb_profile *p, struct base_err *err)
{
	uint64_t next = 0;
	size_t pos = 0;

	while (pos < s->len) {
		size_t at = pos;
		int r = take_entry(s, &pos, &next, p);

		if (r < 0)
			return base_fail_errno(err, r, "counts, byte %zu", at);
	}
	return 0;
}

static bool knows_section(const struct profdb_profile *p, const char tag[4])
{
	for (size_t i = 0; i < p->nr_sections; i++) {
		if (!memcmp(p->sections[i].tag, tag, 4))
			return true;
	}
	return false;
}

/* Upper case: cannot be understood without it. */
static int take_unknown(const struct section *s, struct profdb_profile *p, struct base_err *err)
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

static int check_totals(const struct section *foot, const struct profdb_profile *p,
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

int profdb_format1_parse(const uint8_t *file, size_t len, size_t binary, struct profdb_profile *p,
			 struct base_err *err)
{
	struct section foot, s;
	bool counts = false;
	size_t pos = binary;
	int r;

	if (binary % 8)
		return base_fail(err, -DCPI_EFORMAT, "binary part begins at byte %zu", binary);
	r = find_footer(file, len, binary, &foot, err);
	if (r >= 0)
		r = check_footer(file, len, &foot, p, err);
	while (r >= 0 && (r = next_section(file, len, &pos, &s, err)) >= 0 && !is_tag(&s, "FOOT")) {
		if (!is_tag(&s, "CNTS"))
			r = take_unknown(&s, p, err);
		else if (counts)
			r = base_fail(err, -DCPI_EFORMAT, "section 'CNTS' stands twice");
		else
			r = take_counts(&s, p, err);
		counts = counts || is_tag(&s, "CNTS");
	}
	return r < 0 ? r : check_totals(&foot, p, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

static size_t put_varint(uint8_t *to, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	return n;
}

static int put_entries(const struct profdb_profile *p, struct base_buf *out)
{
	uint8_t bytes[(1 + PROFDB_NR_EVENTS) * VARINT_MAX];
	uint64_t next = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->counts.nr; i++) {
		const struct profdb_entry *e = profdb_profile_entry(p, i);
		size_t n = put_varint(bytes, e->off - next);

		for (size_t j = 0; j < p->nr_events; j++)
			n += put_varint(bytes + n, e->count[j]);
		r = base_buf_append(out, bytes, n);
		next = e->off + 1;
	}
	return r;
}

static int begin_section(struct base_buf *out, const char tag[4], size_t *at)
{
	uint8_t head[HEAD_LEN] = { 0 };

	*at = out->len;
	memcpy(head, tag, 4);
	return base_buf_append(out, head, sizeof(head));
}

static int end_section(struct base_buf *out, size_t at)
{
	size_t len = out->len - at - HEAD_LEN;

	profdb_put64(out->data + at + 8, len);
	return base_buf_extend(out, (size_t)base_align_up(len, 8) - len, NULL);
}

static int put_section(struct base_buf *out, const char tag[4], const void *data, size_t len)
{
	size_t at;
	int r = begin_section(out, tag, &at);

	if (r >= 0)
		r = base_buf_append(out, data, len);
	return r < 0 ? r : end_section(out, at);
}

static int put_footer(const struct profdb_profile *p, struct base_buf *out, size_t start)
{
	uint8_t foot[FOOT_FIXED + 8 * PROFDB_NR_EVENTS] = { 0 };
	size_t len = FOOT_FIXED + 8 * p->nr_events;
	int r;

	profdb_put64(foot, p->counts.nr);
	for (size_t i = 0; i < p->nr_events; i++)
		profdb_put64(foot + 8 + 8 * i, p->events[i].sum);
	profdb_put32(foot + len - 8, (uint32_t)p->nr_events);
	r = put_section(out, "FOOT", foot, len);
	if (r >= 0)
		profdb_put32(out->data + out->len - 4,
			     base_crc32c(0, out->data + start, out->len - start - 4));
	return r;
}

int profdb_format1_print(const struct profdb_profile *p, struct base_buf *out, struct base_err *err)
{
	size_t start = out->len, at;
	int r = profdb_header_print(p, PROFDB_FORMAT_1, 0, out, err);

	if (r >= 0)
		r = begin_section(out, "CNTS", &at);
	if (r >= 0)
		r = put_entries(p, out);
	if (r >= 0)
		r = end_section(out, at);
	for (size_t i = 0; r >= 0 && i < p->nr_sections; i++)
		r = put_section(out, p->sections[i].tag, p->sections[i].data, p->sections[i].len);
	if (r >= 0)
		r = put_footer(p, out, start);
	return r < 0 ? base_fail_errno(err, r, "cannot write a profile") : 0;
}
