/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of a perf.data file, and the records that tell by their ids of which event they are. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
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

enum { CONFIG3_AT = 128 }; /* bytes from the beginning of the attributes (Linux 6.3) */

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
	if (len >= CONFIG3_AT + sizeof(ev->config3))
		memcpy(&ev->config3, (const uint8_t *)attr + CONFIG3_AT, sizeof(ev->config3));
	e->lost_counted |= (ev->attr.read_format & PERF_FORMAT_LOST) != 0;
	e->has_build_ids |= ev->attr.build_id;
	e->nr_sampling += !never_samples(&ev->attr);
	return e->nr_sampling > DRIVER_NR_EVENTS ? -DCPI_ELIMIT : 0;
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

struct perfdata_event *perfdata_events_find(struct perfdata_events *e, uint64_t id)
{
	const struct perfdata_id key = { .id = id };
	size_t low;

	sort_ids(e);
	if (e->last < e->nr_ids && e->ids[e->last].id == id)
		return &e->v[e->ids[e->last].event];
	low = BASE_BOUND(i, e->nr_ids, compare_ids(&e->ids[i], &key) < 0);
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

/* Fill the driver's events: names without blanks, that fit, each another. */
static void fill_events(struct perfdata_events *e, struct driver *d)
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

/* ---- hardware that tells of instructions ----------------------------------------------------- */

/* Events get their hardware, by its number, else by their name. */
static void settle_pmus(const struct perfdata_pmus *t, struct perfdata_events *e)
{
	for (size_t i = 0; i < e->nr; i++) {
		struct perfdata_event *ev = &e->v[i];

		ev->pmu = event_hardware_of(ev->name);
		for (size_t j = 0; j < t->nr; j++)
			if (t->type[j] == ev->attr.type)
				ev->pmu = t->pmu[j];
	}
}

struct perfdata_event *perfdata_pmu_event(const struct perfdata_events *e, enum event_hardware pmu)
{
	for (size_t i = 0; i < e->nr; i++)
		if (e->v[i].pmu == pmu && e->v[i].index >= 0)
			return &e->v[i];
	return NULL;
}

/* ---- records --------------------------------------------------------------------------------- */

/* Not lost, but left out on request. */
#define LOST_SAMPLES_FILTERED (1u << 15)

/* Fields of a sample up to the last one of use, in their order; each is 8 bytes long. */
static const uint64_t sample_fields[] = {
	PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,	  PERF_SAMPLE_TID,
	PERF_SAMPLE_TIME,	PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID,	PERF_SAMPLE_CPU,  PERF_SAMPLE_PERIOD,
};

/* The fields at the end of all other records. */
static const uint64_t trail_fields[] = {
	PERF_SAMPLE_TID,       PERF_SAMPLE_TIME, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,	 PERF_SAMPLE_IDENTIFIER,
};

enum { NR_SAMPLE = sizeof(sample_fields) / sizeof(*sample_fields) };
enum { NR_TRAIL = sizeof(trail_fields) / sizeof(*trail_fields) };

/* ---- where a field is ------------------------------------------------------------------------ */

/* Fields of @fields up to @field that @type has, itself included; 0: it has not got it. */
static size_t count_to(const uint64_t *fields, uint64_t type, uint64_t field)
{
	size_t nr = 0;

	if (!(type & field))
		return 0;
	for (size_t i = 0; fields[i] != field; i++)
		nr += (type & fields[i]) != 0;
	return nr + 1;
}

static size_t trail_words(const struct perf_event_attr *a)
{
	size_t nr = 0;

	for (size_t i = 0; a->sample_id_all && i < NR_TRAIL; i++)
		nr += (a->sample_type & trail_fields[i]) != 0;
	return nr;
}

static uint64_t id_field(const struct perf_event_attr *a)
{
	return a->sample_type & PERF_SAMPLE_IDENTIFIER ? PERF_SAMPLE_IDENTIFIER : PERF_SAMPLE_ID;
}

/* Words from the end, itself included; 0: there is none. */
static size_t trail_place(const struct perf_event_attr *a, uint64_t field)
{
	size_t at = a->sample_id_all ? count_to(trail_fields, a->sample_type, field) : 0;

	return at ? trail_words(a) - at + 1 : 0;
}

/* Records tell alike of which of the two events they are. */
static bool layout_agrees(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	size_t in_a = count_to(sample_fields, a->sample_type, id_field(a));
	size_t in_b = count_to(sample_fields, b->sample_type, id_field(b));

	return in_a && in_a == in_b && trail_place(a, id_field(a)) == trail_place(b, id_field(b));
}

static uint64_t word_at(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* ---- samples --------------------------------------------------------------------------------- */

struct sample {
	struct perf_bytes body;
	uint64_t type; /* PERF_SAMPLE_* */
};

static bool sample_word(const struct sample *s, uint64_t field, uint64_t *out)
{
	size_t at = count_to(sample_fields, s->type, field);

	if (!at || at * 8 > s->body.len)
		return false;
	*out = word_at(s->body.at + (at - 1) * 8);
	return true;
}

static struct perfdata_event *sample_event(struct perfdata_events *e, const struct sample *s)
{
	uint64_t id;

	if (e->nr == 1)
		return &e->v[0];
	if (!sample_word(s, id_field(&e->v[0].attr), &id))
		return NULL;
	return perfdata_events_find(e, id);
}

static size_t sample_len(uint64_t type)
{
	size_t nr = 0;

	for (size_t i = 0; i < NR_SAMPLE; i++)
		nr += (type & sample_fields[i]) != 0;
	return nr * 8;
}

/* Below 0 is nobody, whatever it is. */
static int32_t pid_or_none(int32_t pid)
{
	return pid < 0 ? -1 : pid;
}

static bool parse_sample(struct perfdata_events *e, struct sample *s, uint16_t misc,
			 struct perfdata_record *out)
{
	struct driver_count *c = &out->perf.count;
	struct perf_bytes rest = s->body;
	uint64_t task;

	out->perf.what = PERF_SAMPLE;
	s->type = e->v[0].attr.sample_type;
	out->event = sample_event(e, s);
	if (!out->event || out->event->index < 0)
		return false;
	s->type = out->event->attr.sample_type;
	if (s->body.len < sample_len(s->type))
		return false;
	*c = (struct driver_count){ .pid = -1, .tid = -1, .mode = perf_mode_of(misc), .count = 1 };
	c->event = (uint32_t)out->event->index;
	sample_word(s, PERF_SAMPLE_IP, &c->addr);
	sample_word(s, PERF_SAMPLE_PERIOD, &out->period);
	out->has_time = sample_word(s, PERF_SAMPLE_TIME, &out->perf.time_ns);
	rest.at += sample_len(s->type);
	rest.len -= sample_len(s->type);
	perf_insn_parse(out->event->pmu, &out->event->attr, &rest, misc, &out->insn);
	if (out->insn.known)
		c->insn = &out->insn;
	if (sample_word(s, PERF_SAMPLE_TID, &task)) {
		memcpy(&c->pid, &task, 4);
		memcpy(&c->tid, (const uint8_t *)&task + 4, 4);
	}
	/* As in the source perf: the idle task never runs in user mode. */
	if (c->pid < 0 || (!c->pid && c->mode == DRIVER_USER))
		c->pid = c->tid = -1;
	c->tid = pid_or_none(c->tid);
	return true;
}

/* ---- all others ------------------------------------------------------------------------------ */

static bool take_path(struct perf_bytes *b, struct driver_load *l)
{
	l->path = (const char *)b->at;
	return memchr(b->at, 0, b->len);
}

static bool parse_mmap(struct perf_bytes *b, uint16_t misc, struct perf_record *out)
{
	struct {
		uint32_t pid, tid;
		uint64_t addr, len, page_off;
	} m;
	struct driver_load *l = &out->load;

	out->what = PERF_LOAD;
	if (!perf_take(b, &m, sizeof(m)) || !take_path(b, l))
		return false;
	if (misc & PERF_RECORD_MISC_MMAP_DATA)
		out->what = PERF_SKIP;
	l->kind = DRIVER_LOAD_MMAP;
	l->pid = (int32_t)m.pid;
	l->tid = (int32_t)m.tid;
	l->addr = m.addr;
	l->len = m.len;
	l->file_off = m.page_off;
	l->prot = REPLAY_PROT_DEFAULT;
	return true;
}

static bool parse_body(uint32_t type, uint16_t misc, struct perf_bytes *b, struct perf_record *out)
{
	return type == PERF_RECORD_MMAP ? parse_mmap(b, misc, out)
					: perf_record_parse_body(type, misc, b->at, b->len, out);
}

static bool is_kernel(uint16_t misc, const struct driver_load *l)
{
	misc &= PERF_RECORD_MISC_CPUMODE_MASK;
	return l->kind == DRIVER_LOAD_MMAP &&
	       (misc == PERF_RECORD_MISC_KERNEL || (l->pid == -1 && l->path[0] == '['));
}

static bool is_guest(uint16_t misc)
{
	misc &= PERF_RECORD_MISC_CPUMODE_MASK;
	return misc == PERF_RECORD_MISC_GUEST_KERNEL || misc == PERF_RECORD_MISC_GUEST_USER;
}

/*
 * A record that perf wrote for a process that ran already, which does not share its parent's
 * mappings.
 */
static bool is_announced(uint16_t misc, const struct perfdata_record *out)
{
	return out->perf.load.kind == DRIVER_LOAD_FORK &&
	       out->perf.load.pid != out->perf.load.ppid &&
	       (misc & PERF_RECORD_MISC_FORK_EXEC || (out->has_time && !out->perf.time_ns));
}

static void judge_load(uint16_t misc, struct perfdata_record *out)
{
	struct driver_load *l = &out->perf.load;
	bool of_process = l->kind != DRIVER_LOAD_KSYMBOL && l->kind != DRIVER_LOAD_POKE;

	l->tid = pid_or_none(l->tid);
	l->ppid = pid_or_none(l->ppid);
	out->kernel = is_kernel(misc, l);
	if (out->kernel) {
		out->perf.what = PERF_LOAD; /* even where perf left its protection out */
		l->kind = DRIVER_LOAD_KERNEL;
	} else if (is_guest(misc) || (of_process && l->pid <= 0))
		out->perf.what = PERF_SKIP;
	else if (is_announced(misc, out))
		l->kind = DRIVER_LOAD_EXEC;
}

static bool trail_word(const struct perf_bytes *b, const struct perf_event_attr *a, uint64_t field,
		       uint64_t *out)
{
	size_t place = trail_place(a, field);

	if (!place || place * 8 > b->len)
		return false;
	*out = word_at(b->at + b->len - place * 8);
	return true;
}

/* NULL: not told. Ids of 0 are of what perf itself wrote. */
static struct perfdata_event *trail_event(struct perfdata_events *e, const struct perf_bytes *b)
{
	uint64_t id;

	if (e->nr > 1 && trail_word(b, &e->v[0].attr, id_field(&e->v[0].attr), &id) && id)
		return perfdata_events_find(e, id);
	return NULL;
}

/*
 * Kernels leave the mark of a build-id on records of events that did not ask for one, when somebody
 * else's did (Linux 6.18); device numbers stand there then. Yet 'perf inject' puts in build-ids
 * that nobody asked the kernel for, and those are of the usual lengths, which no device's major is.
 * What perf itself wrote is as any event asked.
 */
static uint16_t fix_misc(const struct perf_event_header *h, bool asked, const struct perf_bytes *b)
{
	enum { ID_LEN_AT = 32 };
	uint8_t len = b->len > ID_LEN_AT ? b->at[ID_LEN_AT] : 0;
	bool doubtful = h->type == PERF_RECORD_MMAP2 && !asked;

	return doubtful && len != 16 && len != 20 ? h->misc & ~PERF_RECORD_MISC_MMAP_BUILD_ID
						  : h->misc;
}

static bool parse_other(struct perfdata_events *e, const struct perf_event_header *h,
			struct perf_bytes *b, struct perfdata_record *out)
{
	struct perfdata_event *announced = trail_event(e, b);
	bool good, asked = announced ? announced->attr.build_id : e->has_build_ids;
	const struct perf_event_attr *a;

	out->event = announced ? announced : &e->v[0];
	a = &out->event->attr;
	out->has_time = trail_word(b, a, PERF_SAMPLE_TIME, &out->perf.time_ns);
	good = b->len >= trail_words(a) * 8;
	b->len -= good ? trail_words(a) * 8 : b->len;
	good = parse_body(h->type, fix_misc(h, asked, b), b, &out->perf) && good;
	if (good && (out->perf.what == PERF_LOAD || h->type == PERF_RECORD_MMAP2))
		judge_load(h->misc, out);
	if (out->perf.what == PERF_UNSENT && h->misc & LOST_SAMPLES_FILTERED)
		out->perf.what = PERF_SKIP;
	return good;
}

int perfdata_record_parse(struct perfdata_events *e, const uint8_t *rec, size_t len,
			  struct perfdata_record *out)
{
	struct perf_event_header h;
	struct perf_bytes b = { rec, len };
	struct sample s;
	bool good;

	*out = (struct perfdata_record){ .perf.what = PERF_SKIP };
	if (!perf_take(&b, &h, sizeof(h)))
		return -DCPI_EFORMAT;
	s.body = b;
	good = h.type == PERF_RECORD_SAMPLE ? parse_sample(e, &s, h.misc, out)
					    : parse_other(e, &h, &b, out);
	if (!good)
		return -DCPI_EFORMAT;
	/* The value that perf uses for a missing time. */
	if (out->perf.time_ns == UINT64_MAX)
		out->has_time = false;
	return 0;
}

/* ---- all events ------------------------------------------------------------------------------ */

/* Whether records tell of which event they are: 0, or -DCPI_EFORMAT with the cause in *@why. */
static int check_layout(const struct perfdata_events *e, const char **why)
{
	if (!e->nr) {
		*why = "no events";
		return -DCPI_EFORMAT;
	}
	for (size_t i = 1; i < e->nr; i++) {
		if (layout_agrees(&e->v[0].attr, &e->v[i].attr))
			continue;
		*why = "samples do not tell of which event they are";
		return -DCPI_EFORMAT;
	}
	return 0;
}

int perfdata_events_announce(struct perfdata_events *e, const struct perfdata_pmus *pmus,
			     struct driver *d, const char **why)
{
	int r = check_layout(e, why);

	if (r < 0)
		return r;
	fill_events(e, d);
	settle_pmus(pmus, e);
	return 0;
}
