/* SPDX-License-Identifier: BSD-2-Clause */
/* The binary parts of profile files of versions 0.06 and 0.07 are read and written here. */
#include "profdb_internal.h"

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

int profdb_format0_parse(const uint8_t *data, size_t len, struct profdb_profile *p,
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

int profdb_format0_print(const struct profdb_profile *p, size_t event, struct base_buf *out,
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
