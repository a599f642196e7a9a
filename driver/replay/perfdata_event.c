/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata_internal.h"

/* ---- events ---------------------------------------------------------------------------------- */

static int add_ids(struct perfdata_events *e, const uint8_t *ids, size_t nr)
{
	int r;

	if (nr > PERFDATA_NR_IDS - e->nr_ids)
		return -DCPI_ELIMIT;
	r = base_grow(&e->ids, &e->cap_ids, e->nr_ids + nr, sizeof(*e->ids));
	for (size_t i = 0; r >= 0 && i < nr; i++) {
		struct perfdata_id *id = &e->ids[e->nr_ids++];

		memcpy(&id->id, ids + 8 * i, 8);
		id->event = e->nr;
	}
	return r;
}

static bool never_samples(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_DUMMY;
}

int perfdata_events_add(struct perfdata_events *e, const void *attr, size_t len, const void *ids,
			size_t nr_ids)
{
	struct perfdata_event *ev;
	int r;

	if (len < PERF_ATTR_SIZE_VER0)
		return -DCPI_EFORMAT;
	if (e->nr == PERFDATA_NR_EVENTS)
		return -DCPI_ELIMIT;
	r = base_grow(&e->v, &e->cap, e->nr + 1, sizeof(*e->v));
	if (r >= 0)
		r = add_ids(e, ids, nr_ids);
	if (r < 0)
		return r;
	ev = &e->v[e->nr++];
	*ev = (struct perfdata_event){ .index = -1 };
	memcpy(&ev->attr, attr, len < sizeof(ev->attr) ? len : sizeof(ev->attr));
	e->lost_counted |= (ev->attr.read_format & PERF_FORMAT_LOST) != 0;
	e->has_build_ids |= ev->attr.build_id;
	e->nr_sampling += !never_samples(&ev->attr);
	return e->nr_sampling > DRIVER_NR_EVENTS ? -DCPI_ELIMIT : 0;
}

const char *perfdata_events_strerror(int code)
{
	return code == -DCPI_ELIMIT ? "more than 16 events, or too many dummies or ids"
				    : base_strerror(code);
}

void perfdata_events_release(struct perfdata_events *e)
{
	free(e->v);
	free(e->ids);
	*e = (struct perfdata_events){ 0 };
}

/* ---- ids ------------------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
	const struct perfdata_id *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->event < y->event ? -1 : x->event > y->event;
}

static void sort_ids(struct perfdata_events *e)
{
	if (!e->sorted && e->nr_ids)
		qsort(e->ids, e->nr_ids, sizeof(*e->ids), compare_ids);
	e->sorted = true;
}

int perfdata_events_settle(struct perfdata_events *e, const char **why)
{
	if (!e->nr) {
		*why = "no events";
		return -DCPI_EFORMAT;
	}
	for (size_t i = 1; i < e->nr; i++) {
		if (perfdata_layout_agrees(&e->v[0].attr, &e->v[i].attr))
			continue;
		*why = "samples do not tell of which event they are";
		return -DCPI_EFORMAT;
	}
	return 0;
}

struct perfdata_event *perfdata_events_find(struct perfdata_events *e, uint64_t id)
{
	const struct perfdata_id key = { .id = id };
	size_t low = 0, high = e->nr_ids;

	sort_ids(e);
	if (e->last < e->nr_ids && e->ids[e->last].id == id)
		return &e->v[e->ids[e->last].event];
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare_ids(&e->ids[mid], &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == e->nr_ids || e->ids[low].id != id)
		return NULL;
	e->last = low;
	return &e->v[e->ids[low].event];
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Where perf did not say (a file that was never finished). */
static void name_by_number(const struct perf_event_attr *a, char *name, size_t len)
{
	static const char *const hardware[] = {
		"cycles",
		"instructions",
		"cache-references",
		"cache-misses",
		"branches",
		"branch-misses",
		"bus-cycles",
		"stalled-cycles-frontend",
		"stalled-cycles-backend",
		"ref-cycles",
	};
	static const char *const software[] = {
		"cpu-clock",	    "task-clock",   "page-faults",  "context-switches",
		"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
		"emulation-faults", "dummy",	    "bpf-output",   "cgroup-switches",
	};

	if (a->type == PERF_TYPE_HARDWARE && a->config < sizeof(hardware) / sizeof(*hardware))
		snprintf(name, len, "%s", hardware[a->config]);
	else if (a->type == PERF_TYPE_SOFTWARE && a->config < sizeof(software) / sizeof(*software))
		snprintf(name, len, "%s", software[a->config]);
	else if (a->type == PERF_TYPE_RAW)
		snprintf(name, len, "r%" PRIx64, (uint64_t)a->config);
	else
		snprintf(name, len, "type%u/%" PRIx64, a->type, (uint64_t)a->config);
}

static bool is_taken(const struct driver *d, const char *name)
{
	for (size_t i = 0; i < d->nr_events; i++) {
		if (!strcmp(d->events[i].name, name))
			return true;
	}
	return false;
}

/* Blanks would end the name in its columns; two events of one name get numbers. */
static void name_fit(const struct driver *d, const char *from, char name[32])
{
	snprintf(name, 32, "%.31s", from);
	for (char *c = name; *c; c++)
		if (!isgraph((unsigned char)*c))
			*c = '_';
	for (unsigned int n = 2; is_taken(d, name); n++) {
		char end[16];
		int len = snprintf(end, sizeof(end), "#%u", n);
		size_t at = strcspn(name, "#");

		at = at < 31 - (size_t)len ? at : 31 - (size_t)len;
		memcpy(name + at, end, (size_t)len + 1);
	}
}

void perfdata_events_announce(struct perfdata_events *e, struct driver *d)
{
	for (size_t i = 0; i < e->nr; i++) {
		struct perfdata_event *ev = &e->v[i];
		struct driver_event *out = &d->events[d->nr_events];

		if (never_samples(&ev->attr))
			continue;
		if (!ev->name[0])
			name_by_number(&ev->attr, ev->name, sizeof(ev->name));
		*out = (struct driver_event){ .enabled = 1 };
		name_fit(d, ev->name, out->name);
		if (!ev->attr.freq)
			out->period = ev->attr.sample_period;
		ev->index = (int)d->nr_events++;
	}
}
