/* SPDX-License-Identifier: BSD-2-Clause */
/* The description in a perf.data file: its head, its features, its build-ids. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata_internal.h"

/* ---- build-ids ------------------------------------------------------------------------------- */

/* An entry, up to the path. */
struct entry {
	struct perf_event_header h;
	int32_t pid;
	uint8_t bytes[20], len, reserved[3];
};

/* misc: len is told. */
#define HAS_LEN (1u << 15)

static struct base_id entry_id(const struct entry *e)
{
	struct base_id id = { .len = sizeof(e->bytes) };

	memcpy(id.bytes, e->bytes, sizeof(e->bytes));
	if (e->h.misc & HAS_LEN && e->len <= sizeof(e->bytes))
		id.len = e->len;
	/* Older perfs did not say how long it is, and filled up with zeros. */
	while (!(e->h.misc & HAS_LEN) && id.len && !memcmp(id.bytes + id.len - 4, "\0\0\0", 4))
		id.len -= 4;
	return id;
}

static int add_file(struct perfdata_build_ids *t, const char *path, const struct base_id *id)
{
	struct base_id *known = base_map_get(&t->files, path, strlen(path) + 1);
	int r = 0;

	if (!known && t->files.nr == PERFDATA_NR_BUILD_IDS)
		return -DCPI_ELIMIT;
	if (!known) {
		known = malloc(sizeof(*known));
		r = known ? base_map_set(&t->files, path, strlen(path) + 1, known) : -ENOMEM;
	}
	if (r >= 0)
		*known = *id;
	else
		free(known);
	return r;
}

/*
 * One entry of the table, or a record of that kind; a path that is too long for one is left out. 0,
 * -DCPI_EFORMAT, -DCPI_ELIMIT, -ENOMEM.
 */
static int perfdata_build_id_add(struct perfdata_build_ids *t, const uint8_t *rec, size_t len)
{
	const char *path = (const char *)rec + sizeof(struct entry);
	uint16_t mode;
	struct base_id id;
	struct entry e;

	if (len <= sizeof(e) || !memchr(path, 0, len - sizeof(e)))
		return -DCPI_EFORMAT;
	memcpy(&e, rec, sizeof(e));
	id = entry_id(&e);
	mode = e.h.misc & PERF_RECORD_MISC_CPUMODE_MASK;
	if (!id.len || mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER)
		return 0;
	if (mode == PERF_RECORD_MISC_KERNEL && perfdata_is_kernel(path))
		t->kernel = id;
	return strlen(path) < PERFDATA_PATH_MAX ? add_file(t, path, &id) : 0;
}

/* The whole table. */
static int perfdata_build_ids_parse(struct perfdata_build_ids *t, const uint8_t *data, size_t len)
{
	struct perf_event_header h;
	int r = 0;

	while (r >= 0 && len) {
		if (len < sizeof(h))
			return -DCPI_EFORMAT;
		memcpy(&h, data, sizeof(h));
		if (h.size < sizeof(h) || h.size > len)
			return -DCPI_EFORMAT;
		r = perfdata_build_id_add(t, data, h.size);
		data += h.size;
		len -= h.size;
	}
	return r;
}

void perfdata_build_ids_release(struct perfdata_build_ids *t)
{
	void *value;

	for (size_t pos = 0; base_map_next(&t->files, &pos, &value);)
		free(value);
	base_map_release(&t->files);
}

/* ---- features -------------------------------------------------------------------------------- */

/* Kinds of PERFDATA_EVENT_UPDATE. */
enum { UPDATE_NAME = 2 };

static bool perfdata_feature_wanted(unsigned int feature)
{
	switch (feature) {
	case PERFDATA_FEAT_BUILD_ID:
	case PERFDATA_FEAT_HOSTNAME:
	case PERFDATA_FEAT_OSRELEASE:
	case PERFDATA_FEAT_VERSION:
	case PERFDATA_FEAT_EVENT_DESC:
	case PERFDATA_FEAT_PMU_MAPPINGS:
	case PERFDATA_FEAT_SAMPLE_TIME:
	case PERFDATA_FEAT_DIR_FORMAT:
	case PERFDATA_FEAT_CLOCK_DATA:
		return true;
	default:
		return false;
	}
}

/* ---- single facts ---------------------------------------------------------------------------- */

/* A string behind its length (u32), both within @b; NULL: there is none. */
static const char *take_string(struct perf_bytes *b)
{
	const char *text;
	uint32_t len;

	if (!perf_take(b, &len, sizeof(len)))
		return NULL;
	text = (const char *)b->at;
	if (!perf_skip(b, len) || !memchr(text, 0, len))
		return NULL;
	return text;
}

static int parse_text(struct perf_bytes *b, char *to, size_t len)
{
	const char *text = take_string(b);

	if (!text)
		return -DCPI_EFORMAT;
	snprintf(to, len, "%s", text);
	for (char *c = to; *c; c++)
		if (!isgraph((unsigned char)*c) || *c == '/')
			*c = '_';
	return 0;
}

static int parse_sample_time(struct perfdata *p, struct perf_bytes *b)
{
	return perf_take(b, &p->first_ns, 8) && perf_take(b, &p->last_ns, 8) ? 0 : -DCPI_EFORMAT;
}

static int parse_clock_data(struct perfdata *p, struct perf_bytes *b)
{
	struct {
		uint32_t version, clock;
		uint64_t utc_ns, clock_ns;
	} c;

	if (!perf_take(b, &c, sizeof(c)))
		return -DCPI_EFORMAT;
	p->utc_ns = c.utc_ns;
	return 0;
}

/* The numbers of hardware that tells of sampled instructions. */
static int parse_pmus(struct perfdata_pmus *t, struct perf_bytes *b)
{
	uint32_t nr, type;

	if (!perf_take(b, &nr, sizeof(nr)))
		return -DCPI_EFORMAT;
	for (; nr; nr--) {
		const char *name;
		enum event_hardware pmu;

		if (!perf_take(b, &type, sizeof(type)) || !(name = take_string(b)))
			return -DCPI_EFORMAT;
		pmu = event_hardware_of(name);
		if (pmu != EVENT_HW_OTHER && t->nr < PERFDATA_NR_PMUS) {
			t->type[t->nr] = type;
			t->pmu[t->nr++] = pmu;
		}
	}
	return 0;
}

/* ---- events' names --------------------------------------------------------------------------- */

static void name_event(struct perfdata_event *ev, const char *name)
{
	if (!ev->name[0])
		snprintf(ev->name, sizeof(ev->name), "%s", name);
}

/* Identify it by its first id; without ids by its place. */
static int parse_event_desc_one(struct perfdata *p, struct perf_bytes *b, uint32_t attr_len,
				size_t place)
{
	struct perfdata_event *ev = place < p->events.nr ? &p->events.v[place] : NULL;
	const char *name;
	uint32_t nr_ids;
	uint64_t id;

	if (!perf_skip(b, attr_len) || !perf_take(b, &nr_ids, sizeof(nr_ids)) ||
	    !(name = take_string(b)) || nr_ids > b->len / 8)
		return -DCPI_EFORMAT;
	if (nr_ids) {
		memcpy(&id, b->at, sizeof(id));
		ev = perfdata_events_find(&p->events, id);
	}
	if (ev)
		name_event(ev, name);
	perf_skip(b, (size_t)nr_ids * 8);
	return 0;
}

static int parse_event_desc(struct perfdata *p, struct perf_bytes *b)
{
	uint32_t nr, attr_len;
	int r = 0;

	if (!perf_take(b, &nr, sizeof(nr)) || !perf_take(b, &attr_len, sizeof(attr_len)))
		return -DCPI_EFORMAT;
	for (uint32_t i = 0; r >= 0 && i < nr; i++)
		r = parse_event_desc_one(p, b, attr_len, i);
	return r;
}

/* ---- any feature ----------------------------------------------------------------------------- */

static int refuse_folder(struct perfdata *p, struct base_err *err)
{
	base_fail(err, -DCPI_EUNSUPPORTED,
		  "cannot replay '%s': only one of the files of a 'perf record --threads'",
		  p->name);
	base_hint(err, "record without --threads");
	return -DCPI_EUNSUPPORTED;
}

static int parse(struct perfdata *p, uint64_t feature, struct perf_bytes *b)
{
	switch (feature) {
	case PERFDATA_FEAT_BUILD_ID:
		return perfdata_build_ids_parse(&p->build_ids, b->at, b->len);
	case PERFDATA_FEAT_HOSTNAME:
		return parse_text(b, p->host, sizeof(p->host));
	case PERFDATA_FEAT_OSRELEASE:
		return parse_text(b, p->release, sizeof(p->release));
	case PERFDATA_FEAT_VERSION:
		return parse_text(b, p->version, sizeof(p->version));
	case PERFDATA_FEAT_EVENT_DESC:
		return parse_event_desc(p, b);
	case PERFDATA_FEAT_PMU_MAPPINGS:
		return parse_pmus(&p->pmus, b);
	case PERFDATA_FEAT_SAMPLE_TIME:
		return parse_sample_time(p, b);
	case PERFDATA_FEAT_CLOCK_DATA:
		return parse_clock_data(p, b);
	default:
		return 0;
	}
}

/* 0, or negative with @err; what is not wanted is ignored. */
static int perfdata_feature_parse(struct perfdata *p, uint64_t feature, const uint8_t *data,
				  size_t len, struct base_err *err)
{
	struct perf_bytes b = { data, len };
	int r;

	if (feature == PERFDATA_FEAT_DIR_FORMAT)
		return refuse_folder(p, err);
	r = parse(p, feature, &b);
	return r < 0 ? perfdata_fail(&p->stream, err, r, "feature %" PRIu64 ": %s", feature,
				     base_strerror(r))
		     : 0;
}

/* ---- records of a pipe ----------------------------------------------------------------------- */

/* The message for a failure to add an event. */
static const char *events_strerror(int code)
{
	return code == -DCPI_ELIMIT ? "more than 16 events, or too many dummies or ids"
				    : base_strerror(code);
}

/* The attributes say themselves how long they are. */
static int parse_attr(struct perfdata *p, struct perf_bytes *b, struct base_err *err)
{
	const uint8_t *attr = b->at;
	uint32_t len;
	int r;

	/* Behind what names events, ids would have to be sorted again, and again. */
	if (p->base.nr_events || p->events.sorted)
		return perfdata_fail(&p->stream, err, -DCPI_EFORMAT, "an event among the records");
	if (b->len < PERF_ATTR_SIZE_VER0)
		return -DCPI_EFORMAT;
	memcpy(&len, attr + offsetof(struct perf_event_attr, size), sizeof(len));
	if (!len)
		len = PERF_ATTR_SIZE_VER0;
	if (!perf_skip(b, len) || b->len % 8)
		return -DCPI_EFORMAT;
	r = perfdata_events_add(&p->events, attr, len, b->at, b->len / 8);
	return r < 0 ? perfdata_fail(&p->stream, err, r, "%s", events_strerror(r)) : 0;
}

static int parse_update(struct perfdata *p, struct perf_bytes *b)
{
	struct perfdata_event *ev;
	uint64_t kind, id;

	if (!perf_take(b, &kind, sizeof(kind)) || !perf_take(b, &id, sizeof(id)))
		return -DCPI_EFORMAT;
	if (kind != UPDATE_NAME || !memchr(b->at, 0, b->len))
		return 0;
	ev = perfdata_events_find(&p->events, id);
	if (ev)
		name_event(ev, (const char *)b->at);
	return 0;
}

static int parse_feature(struct perfdata *p, struct perf_bytes *b, struct base_err *err)
{
	uint64_t feature;

	if (!perf_take(b, &feature, sizeof(feature)))
		return -DCPI_EFORMAT;
	return perfdata_feature_parse(p, feature, b->at, b->len, err);
}

/* A record of how the times of traces are converted. */
static int parse_conversion(struct perfdata_spe *t, struct perf_bytes *b)
{
	uint64_t v[3], more[2];
	uint8_t caps[2];

	if (!perf_take(b, v, sizeof(v)) || v[0] > 63)
		return -DCPI_EFORMAT;
	t->shift = v[0];
	t->mult = v[1];
	t->zero = v[2];
	t->cycles = 0;
	t->mask = UINT64_MAX;
	if (perf_take(b, more, sizeof(more)) && perf_take(b, caps, sizeof(caps)) && caps[1]) {
		t->cycles = more[0];
		t->mask = more[1];
	}
	return 0;
}

/* A trace begins: its record, without the head. */
static int begin_trace(struct perfdata *p, struct perf_bytes *b)
{
	struct {
		uint64_t size, offset, reference;
		uint32_t idx;
		int32_t tid;
	} trace;
	struct perfdata_spe *t = &p->spe;
	struct perfdata_event *ev = perfdata_pmu_event(&p->events, EVENT_HW_SPE);

	if (!perf_take(b, &trace, sizeof(trace)))
		return -DCPI_EFORMAT;
	/* Traces of other hardware are skipped. */
	if (!ev)
		return 0;
	if (!t->bytes && !(t->bytes = malloc(PERFDATA_SPE_PIECE)))
		return -ENOMEM;
	t->event = ev;
	t->nr = 0;
	t->offset = trace.offset;
	t->tid = trace.tid < 0 ? -1 : trace.tid;
	return 0;
}

int perfdata_note_parse(struct perfdata *p, uint32_t type, const uint8_t *rec, size_t len,
			struct base_err *err)
{
	struct perf_bytes b = { rec, len };
	int r = 0;

	perf_skip(&b, sizeof(struct perf_event_header));
	if (type == PERFDATA_ATTR && p->pipe)
		r = parse_attr(p, &b, err);
	else if (type == PERFDATA_EVENT_UPDATE)
		r = parse_update(p, &b);
	else if (type == PERFDATA_FEATURE)
		r = parse_feature(p, &b, err);
	else if (type == PERFDATA_BUILD_ID)
		r = perfdata_build_id_add(&p->build_ids, rec, len);
	else if (type == PERFDATA_TIME_CONV)
		r = parse_conversion(&p->spe, &b);
	else if (type == PERFDATA_AUXTRACE)
		r = begin_trace(p, &b);
	return r < 0 ? perfdata_fail(&p->stream, err, r, "a record of kind %u: %s", type,
				     base_strerror(r))
		     : 0;
}

/* ---- the head -------------------------------------------------------------------------------- */

struct section {
	uint64_t off, len;
};

/* The fields after the magic of a file in full form. */
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
	return perfdata_fail(&p->stream, err, code, "%s", events_strerror(code));
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
