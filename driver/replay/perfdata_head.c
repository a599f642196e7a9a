/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata_internal.h"

struct section {
	uint64_t off, len;
};

/* What follows the magic of a file in full form. */
struct head {
	uint64_t len, attr_len;
	struct section attrs, data, event_types;
	uint64_t features[4];
};

/* An event's attributes end with where its ids are. */
struct file_attr {
	uint8_t bytes[4096];
	size_t len;
	struct section ids;
};

enum { MAGIC_LEN = 8, PIPE_HEAD_LEN = 16 };
enum { NR_FEATURES = 256, FEATURE_MAX = 64 << 20 };

bool perfdata_begins(int c)
{
	return c == 'P' || c == '2';
}

static int read_magic(struct perfdata *p, struct base_err *err)
{
	char magic[MAGIC_LEN];

	if (fread(magic, 1, sizeof(magic), p->stream.in) < sizeof(magic))
		memset(magic, 0, sizeof(magic));
	p->stream.pos = sizeof(magic);
	if (!memcmp(magic, "PERFILE2", sizeof(magic)))
		return 0;
	if (!memcmp(magic, "2ELIFREP", sizeof(magic))) {
		base_fail(err, -DCPI_EUNSUPPORTED,
			  "cannot replay '%s': written on a machine of the other byte order",
			  p->name);
		base_hint(err, "replay it on a machine of that order");
		return -DCPI_EUNSUPPORTED;
	}
	if (!memcmp(magic, "PERFFILE", sizeof(magic)))
		return base_fail(err, -DCPI_EVERSION,
				 "cannot replay '%s': a perf.data file of the first version",
				 p->name);
	return base_fail(err, -DCPI_EFORMAT, "cannot replay '%s': not a recorded stream", p->name);
}

/* ---- the file's length and places ------------------------------------------------------------ */

static int find_len(struct perfdata *p, uint64_t *len, struct base_err *err)
{
	off_t end;

	if (fseeko(p->stream.in, 0, SEEK_END) < 0 || (end = ftello(p->stream.in)) < 0) {
		base_fail(err, -DCPI_EUNSUPPORTED,
			  "cannot replay '%s': a perf.data file does not come through a pipe",
			  p->name);
		base_hint(err, "name the file, or have it written by 'perf record -o -'");
		return -DCPI_EUNSUPPORTED;
	}
	*len = (uint64_t)end;
	return 0;
}

static int go_to(struct perfdata_stream *s, uint64_t off, struct base_err *err)
{
	s->at = off;
	if (off > INT64_MAX || fseeko(s->in, (off_t)off, SEEK_SET) < 0)
		return perfdata_fail(s, err, -EIO, "cannot go there");
	s->pos = off;
	return 0;
}

static bool is_within(const struct section *s, uint64_t file_len)
{
	uint64_t end;

	return !base_add_overflow(s->off, s->len, &end) && end <= file_len;
}

static int read_at(struct perfdata_stream *s, uint64_t off, void *to, size_t len,
		   struct base_err *err)
{
	int r = go_to(s, off, err);

	return r < 0 ? r : perfdata_read(s, to, len, err);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int bad_events(struct perfdata *p, int code, struct base_err *err)
{
	return perfdata_fail(&p->stream, err, code, "%s", perfdata_events_strerror(code));
}

static int read_attr(struct perfdata *p, const struct head *h, uint64_t index, uint64_t file_len,
		     struct file_attr *a, struct base_err *err)
{
	struct perfdata_stream *s = &p->stream;
	int r = read_at(s, h->attrs.off + index * h->attr_len, a->bytes, a->len, err);

	if (r >= 0)
		r = perfdata_read(s, &a->ids, sizeof(a->ids), err);
	if (r < 0)
		return r;
	if (!is_within(&a->ids, file_len) || a->ids.len % 8)
		return perfdata_fail(s, err, -DCPI_EFORMAT, "an event's ids lie outside the file");
	return 0;
}

static int read_event(struct perfdata *p, const struct file_attr *a, struct base_err *err)
{
	size_t nr = (size_t)(a->ids.len / 8);
	uint8_t *ids;
	int r;

	if (a->ids.len / 8 > PERFDATA_NR_IDS)
		return bad_events(p, -DCPI_ELIMIT, err);
	ids = malloc(nr ? nr * 8 : 1);
	if (!ids)
		return bad_events(p, -ENOMEM, err);
	r = nr ? read_at(&p->stream, a->ids.off, ids, nr * 8, err) : 0;
	if (r >= 0) {
		r = perfdata_events_add(&p->events, a->bytes, a->len, ids, nr);
		if (r < 0)
			bad_events(p, r, err);
	}
	free(ids);
	return r;
}

static int read_events(struct perfdata *p, const struct head *h, uint64_t file_len,
		       struct base_err *err)
{
	struct file_attr a;
	int r = 0;

	p->stream.at = h->attrs.off;
	if (h->attr_len < PERF_ATTR_SIZE_VER0 + sizeof(a.ids) ||
	    h->attr_len > sizeof(a.bytes) + sizeof(a.ids) || h->attrs.len % h->attr_len ||
	    !is_within(&h->attrs, file_len))
		return perfdata_fail(&p->stream, err, -DCPI_EFORMAT,
				     "%" PRIu64 " bytes of events of %" PRIu64 " each",
				     h->attrs.len, h->attr_len);
	if (h->attrs.len / h->attr_len > PERFDATA_NR_EVENTS)
		return bad_events(p, -DCPI_ELIMIT, err);
	a.len = (size_t)h->attr_len - sizeof(a.ids);
	for (uint64_t i = 0; r >= 0 && i < h->attrs.len / h->attr_len; i++) {
		r = read_attr(p, h, i, file_len, &a, err);
		if (r >= 0)
			r = read_event(p, &a, err);
	}
	return r;
}

/* ---- features -------------------------------------------------------------------------------- */

static int read_feature(struct perfdata *p, unsigned int feature, const struct section *where,
			uint64_t file_len, struct base_err *err)
{
	uint8_t *data;
	int r;

	p->stream.at = where->off;
	if (!is_within(where, file_len))
		return perfdata_fail(&p->stream, err, -DCPI_EFORMAT,
				     "feature %u lies outside the file", feature);
	if (where->len > FEATURE_MAX)
		return perfdata_fail(&p->stream, err, -DCPI_ELIMIT, "feature %u is too long",
				     feature);
	data = malloc(where->len ? (size_t)where->len : 1);
	if (!data)
		return perfdata_fail(&p->stream, err, -ENOMEM, "%s", base_strerror(-ENOMEM));
	r = read_at(&p->stream, where->off, data, (size_t)where->len, err);
	if (r >= 0)
		r = perfdata_feature_parse(p, feature, data, (size_t)where->len, err);
	free(data);
	return r;
}

/* Behind the records: where each feature is, in the order of their bits. */
static int read_features(struct perfdata *p, const struct head *h, uint64_t file_len,
			 struct base_err *err)
{
	uint64_t at = h->data.off + h->data.len;
	struct section where;
	int r = 0;

	for (unsigned int f = 0; r >= 0 && f < NR_FEATURES; f++) {
		if (!(h->features[f / 64] >> f % 64 & 1))
			continue;
		if (perfdata_feature_wanted(f)) {
			r = read_at(&p->stream, at, &where, sizeof(where), err);
			if (r >= 0)
				r = read_feature(p, f, &where, file_len, err);
		}
		at += sizeof(where);
	}
	return r;
}

/* ---- the head -------------------------------------------------------------------------------- */

/*
 * A file that perf did not come to finish says that it holds no records: they reach to its end
 * then, and there are no features. Nor are there in a file that was cut.
 */
static int place_records(struct perfdata *p, const struct head *h, uint64_t file_len,
			 struct base_err *err)
{
	uint64_t end;
	int r = 0;

	p->unfinished = !h->data.len;
	p->stream.at = h->data.off;
	if (h->data.off < MAGIC_LEN + sizeof(*h) || h->data.off > file_len ||
	    base_add_overflow(h->data.off, h->data.len, &end))
		return perfdata_fail(&p->stream, err, -DCPI_EFORMAT,
				     "%" PRIu64 " bytes of records do not fit", h->data.len);
	if (!p->unfinished && end <= file_len)
		r = read_features(p, h, file_len, err);
	p->stream.end = p->unfinished ? UINT64_MAX : end;
	return r < 0 ? r : go_to(&p->stream, h->data.off, err);
}

int perfdata_head_read(struct perfdata *p, struct base_err *err)
{
	uint64_t file_len;
	struct head h;
	int r = read_magic(p, err);

	p->stream.end = UINT64_MAX;
	if (r >= 0)
		r = perfdata_read(&p->stream, &h.len, sizeof(h.len), err);
	if (r < 0)
		return r;
	p->pipe = h.len == PIPE_HEAD_LEN;
	if (p->pipe)
		return 0;
	if (h.len < MAGIC_LEN + sizeof(h))
		return perfdata_fail(&p->stream, err, -DCPI_EFORMAT, "a head of %" PRIu64 " bytes",
				     h.len);
	r = perfdata_read(&p->stream, &h.attr_len, sizeof(h) - sizeof(h.len), err);
	if (r >= 0)
		r = find_len(p, &file_len, err);
	if (r >= 0)
		r = read_events(p, &h, file_len, err);
	return r < 0 ? r : place_records(p, &h, file_len, err);
}
