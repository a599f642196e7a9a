/* SPDX-License-Identifier: BSD-2-Clause */
/* What perf tells beside the records: in sections of a file, or in records of a pipe. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "perfdata_internal.h"

/* Kinds of PERFDATA_EVENT_UPDATE. */
enum { UPDATE_NAME = 2 };

bool perfdata_feature_wanted(unsigned int feature)
{
	switch (feature) {
	case PERFDATA_FEAT_BUILD_ID:
	case PERFDATA_FEAT_HOSTNAME:
	case PERFDATA_FEAT_OSRELEASE:
	case PERFDATA_FEAT_VERSION:
	case PERFDATA_FEAT_EVENT_DESC:
	case PERFDATA_FEAT_SAMPLE_TIME:
	case PERFDATA_FEAT_DIR_FORMAT:
	case PERFDATA_FEAT_CLOCK_DATA:
		return true;
	default:
		return false;
	}
}

/* ---- single facts ---------------------------------------------------------------------------- */

static int parse_text(struct perfdata_bytes *b, char *to, size_t len)
{
	const char *text = perfdata_take_string(b);

	if (!text)
		return -DCPI_EFORMAT;
	snprintf(to, len, "%s", text);
	for (char *c = to; *c; c++)
		if (!isgraph((unsigned char)*c) || *c == '/')
			*c = '_';
	return 0;
}

static int parse_sample_time(struct perfdata *p, struct perfdata_bytes *b)
{
	return perfdata_take(b, &p->first_ns, 8) && perfdata_take(b, &p->last_ns, 8)
		       ? 0
		       : -DCPI_EFORMAT;
}

static int parse_clock_data(struct perfdata *p, struct perfdata_bytes *b)
{
	struct {
		uint32_t version, clock;
		uint64_t utc_ns, clock_ns;
	} c;

	if (!perfdata_take(b, &c, sizeof(c)))
		return -DCPI_EFORMAT;
	p->utc_ns = c.utc_ns;
	return 0;
}

/* ---- events' names --------------------------------------------------------------------------- */

static void name_event(struct perfdata_event *ev, const char *name)
{
	if (!ev->name[0])
		snprintf(ev->name, sizeof(ev->name), "%s", name);
}

/* By its first id; where there are none, by its place. */
static int parse_event_desc_one(struct perfdata *p, struct perfdata_bytes *b, uint32_t attr_len,
				size_t place)
{
	struct perfdata_event *ev = place < p->events.nr ? &p->events.v[place] : NULL;
	const char *name;
	uint32_t nr_ids;
	uint64_t id;

	if (!perfdata_skip(b, attr_len) || !perfdata_take(b, &nr_ids, sizeof(nr_ids)) ||
	    !(name = perfdata_take_string(b)) || nr_ids > b->len / 8)
		return -DCPI_EFORMAT;
	if (nr_ids) {
		memcpy(&id, b->at, sizeof(id));
		ev = perfdata_events_find(&p->events, id);
	}
	if (ev)
		name_event(ev, name);
	perfdata_skip(b, (size_t)nr_ids * 8);
	return 0;
}

static int parse_event_desc(struct perfdata *p, struct perfdata_bytes *b)
{
	uint32_t nr, attr_len;
	int r = 0;

	if (!perfdata_take(b, &nr, sizeof(nr)) || !perfdata_take(b, &attr_len, sizeof(attr_len)))
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

static int parse(struct perfdata *p, uint64_t feature, struct perfdata_bytes *b)
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
	case PERFDATA_FEAT_SAMPLE_TIME:
		return parse_sample_time(p, b);
	case PERFDATA_FEAT_CLOCK_DATA:
		return parse_clock_data(p, b);
	default:
		return 0;
	}
}

int perfdata_feature_parse(struct perfdata *p, uint64_t feature, const uint8_t *data, size_t len,
			   struct base_err *err)
{
	struct perfdata_bytes b = { data, len };
	int r;

	if (feature == PERFDATA_FEAT_DIR_FORMAT)
		return refuse_folder(p, err);
	r = parse(p, feature, &b);
	return r < 0 ? perfdata_fail(&p->stream, err, r, "feature %" PRIu64 ": %s", feature,
				     base_strerror(r))
		     : 0;
}

/* ---- records of a pipe ----------------------------------------------------------------------- */

/* The attributes say themselves how long they are. */
static int parse_attr(struct perfdata *p, struct perfdata_bytes *b, struct base_err *err)
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
	if (!perfdata_skip(b, len) || b->len % 8)
		return -DCPI_EFORMAT;
	r = perfdata_events_add(&p->events, attr, len, b->at, b->len / 8);
	return r < 0 ? perfdata_fail(&p->stream, err, r, "%s", perfdata_events_strerror(r)) : 0;
}

static int parse_update(struct perfdata *p, struct perfdata_bytes *b)
{
	struct perfdata_event *ev;
	uint64_t kind, id;

	if (!perfdata_take(b, &kind, sizeof(kind)) || !perfdata_take(b, &id, sizeof(id)))
		return -DCPI_EFORMAT;
	if (kind != UPDATE_NAME || !memchr(b->at, 0, b->len))
		return 0;
	ev = perfdata_events_find(&p->events, id);
	if (ev)
		name_event(ev, (const char *)b->at);
	return 0;
}

static int parse_feature(struct perfdata *p, struct perfdata_bytes *b, struct base_err *err)
{
	uint64_t feature;

	if (!perfdata_take(b, &feature, sizeof(feature)))
		return -DCPI_EFORMAT;
	return perfdata_feature_parse(p, feature, b->at, b->len, err);
}

int perfdata_note_parse(struct perfdata *p, uint32_t type, const uint8_t *rec, size_t len,
			struct base_err *err)
{
	struct perfdata_bytes b = { rec, len };
	int r = 0;

	perfdata_skip(&b, sizeof(struct perf_event_header));
	if (type == PERFDATA_ATTR && p->pipe)
		r = parse_attr(p, &b, err);
	else if (type == PERFDATA_EVENT_UPDATE)
		r = parse_update(p, &b);
	else if (type == PERFDATA_FEATURE)
		r = parse_feature(p, &b, err);
	else if (type == PERFDATA_BUILD_ID)
		r = perfdata_build_id_add(&p->build_ids, rec, len);
	return r < 0 ? perfdata_fail(&p->stream, err, r, "a record of kind %u: %s", type,
				     base_strerror(r))
		     : 0;
}
