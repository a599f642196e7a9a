/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OpenTelemetry's profiles as JSON: the message ProfilesData of opentelemetry-proto, package
 * profiles.v1development, which is not stable yet. This file alone knows it, as of OTLP_VERSION.
 * There is a profile for each event, whose values are samples. 64-bit numbers are texts, as the
 * JSON of protocol buffers has them; each table begins with an empty element, which number 0 means.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "estimate.h"
#include "export_internal.h"

#define OTLP_VERSION "1.10.0"

struct otlp {
	const struct export *x;
	FILE *to;
	struct base_buf more; /* texts that x->texts lacks, each with its 0 */
	size_t nr_more;
	uint32_t *mapping;  /* indexed by image; 0: none */
	uint32_t *build_of; /* indexed by image: the attribute that has its build-id; 0: none */
	uint32_t *places;
	uint32_t keys[WORKLOAD_NR_KEYS + 1]; /* names of tags */
	size_t *stack;			     /* indexed by stack: its number in the table */
	uint32_t build_id;		     /* the number of that attribute's name */
	uint32_t ids; /* attributes that are build-ids; tags stand behind them */
	int r;	      /* the first failure */
};

/* The number of another text. */
static uint32_t text(struct otlp *o, const char *s)
{
	int r = base_buf_append(&o->more, s, strlen(s) + 1);

	if (r < 0 && o->r >= 0)
		o->r = r;
	return (uint32_t)(o->x->nr_texts + o->nr_more++);
}

/* ---- the profiles ---------------------------------------------------------------------------- */

static void put_attribute(struct otlp *o, const char *sep, const char *key, const char *value)
{
	fprintf(o->to, "%s{\"key\":\"%s\",\"value\":{\"stringValue\":", sep, key);
	json_text(o->to, value);
	fputs("}}", o->to);
}

/* The machine, and what was chosen of it. */
static void put_resource(struct otlp *o)
{
	const struct analysis *a = o->x->a;
	const char *sep = "";

	fputs("{\"resource\":{\"attributes\":[", o->to);
	for (size_t i = 0; a->nr_platforms == 1 && i < a->nr_platforms; i++, sep = ",")
		put_attribute(o, sep, "host.name", a->platforms[i]);
	for (size_t i = 0; a->labels.nr == 1 && i < a->labels.nr; i++, sep = ",")
		put_attribute(o, sep, "dcpi.label", a->labels.v[i]);
	fputs("]},\n", o->to);
}

static void put_type(struct otlp *o, const char *field, const char *type, const char *unit)
{
	fprintf(o->to, "\"%s\":{\"typeStrindex\":%" PRIu32 ",", field, text(o, type));
	fprintf(o->to, "\"unitStrindex\":%" PRIu32 "},", text(o, unit));
}

/* Stacks are numbered in the order in which put_stacks() writes them. */
static void number_stacks(struct otlp *o)
{
	size_t nr = 0;

	for (size_t i = 0; i < o->x->nr_stacks; i++)
		if (export_wanted(o->x, i))
			o->stack[i] = ++nr;
}

/* Copies of a file have one build-id, and no attribute may be there twice. */
static int number_build_id(struct otlp *o, struct base_map *known, uint32_t image)
{
	const char *id = o->x->images[image].id;

	if (!*id)
		return 0;
	o->build_of[image] = (uint32_t)(uintptr_t)base_map_get(known, id, strlen(id));
	if (o->build_of[image])
		return 0;
	o->build_of[image] = ++o->ids;
	return base_map_set(known, id, strlen(id), (void *)(uintptr_t)o->ids);
}

static int number_mappings(struct otlp *o)
{
	struct base_map known = { 0 };
	uint32_t nr = 0;
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < o->x->nr_images; i++) {
		if (!export_has_image(o->x, i))
			continue;
		o->mapping[i] = ++nr;
		r = number_build_id(o, &known, i);
	}
	base_map_release(&known);
	return r;
}

static void put_tags(struct otlp *o, const struct export_part *part)
{
	const struct export_owner *w =
		part->owner == EXPORT_NONE ? NULL : &o->x->owners[part->owner];
	const char *sep = ",\"attributeIndices\":[";

	for (uint32_t i = 0; w && i < w->nr; i++, sep = ",")
		fprintf(o->to, "%s%" PRIu32, sep, o->ids + 1 + o->x->owner_tags[w->first + i]);
	if (part->estimated)
		fprintf(o->to, "%s%" PRIu32, sep, o->ids + 1 + o->x->estimated);
	if (part->estimated || (w && w->nr))
		fputc(']', o->to);
}

static void put_samples(struct otlp *o, size_t event)
{
	const struct export *x = o->x;
	const char *sep = "\n";

	fputs("\"samples\":[", o->to);
	for (size_t i = 0; i < x->nr_parts; i++) {
		uint64_t n = export_part_count(x, i, event);

		if (!n)
			continue;
		fprintf(o->to, "%s{\"stackIndex\":%zu,\"values\":[\"%" PRIu64 "\"]", sep,
			o->stack[x->parts[i].stack], n);
		put_tags(o, &x->parts[i]);
		fputc('}', o->to);
		sep = ",\n";
	}
	fputs("]}", o->to);
}

static void put_profile(struct otlp *o, size_t event)
{
	const struct analysis_event *e = &o->x->a->events[event];
	bool clock = export_is_clock(o->x, event);

	fputc('{', o->to);
	put_type(o, "sampleType", e->name, estimate_is_measured(e->name) ? "nanoseconds" : "count");
	put_type(o, "periodType", clock ? "cpu" : e->name, clock ? "nanoseconds" : "count");
	if (!e->mixed)
		fprintf(o->to, "\"period\":\"%" PRIu64 "\",", e->period);
	fprintf(o->to, "\"timeUnixNano\":\"%" PRIu64 "\",",
		export_begin(o->x) * UINT64_C(1000000000));
	put_samples(o, event);
}

static void put_profiles(struct otlp *o)
{
	fputs("{\"resourceProfiles\":[\n", o->to);
	put_resource(o);
	fprintf(o->to,
		"\"scopeProfiles\":[{\"scope\":{\"name\":\"dcpiexport\",\"version\":\"%s\","
		"\"attributes\":[",
		base_release());
	put_attribute(o, "", "opentelemetry.proto.version", OTLP_VERSION);
	fputs("]},\n\"profiles\":[\n", o->to);
	for (size_t i = 0; i < o->x->nr_events; i++) {
		fputs(i ? ",\n" : "", o->to);
		put_profile(o, o->x->events[i]);
	}
	fputs("]}]}],\n", o->to);
}

/* ---- what they refer to ---------------------------------------------------------------------- */

/* Names are those of OpenTelemetry's conventions, where these have one. */
static const struct {
	const char *name;
	bool number;
} conventions[] = {
	[WORKLOAD_COMM] = { "dcpi.comm", false },
	[WORKLOAD_EXE] = { "process.executable.path", false },
	[WORKLOAD_PID] = { "process.pid", true },
	[WORKLOAD_UID] = { "process.user.id", true },
	[WORKLOAD_CGROUP] = { "process.linux.cgroup", false },
	[WORKLOAD_UNIT] = { "dcpi.unit", false },
	[WORKLOAD_CONTAINER] = { "container.id", false },
	[WORKLOAD_THREAD] = { "thread.name", false },
	[WORKLOAD_LABEL] = { "dcpi.label", false },
	[WORKLOAD_NR_KEYS] = { "dcpi.workload", false },
};

static void put_tag(const struct otlp *o, const struct export_tag *t)
{
	const char *value = o->x->texts[t->text];

	fprintf(o->to, ",\n{\"keyStrindex\":%" PRIu32 ",\"value\":{", o->keys[t->key]);
	if (conventions[t->key].number) {
		fprintf(o->to, "\"intValue\":\"%s\"}}", value);
		return;
	}
	fputs("\"stringValue\":", o->to);
	json_text(o->to, value);
	fputs("}}", o->to);
}

static void put_mappings(struct otlp *o)
{
	const struct export *x = o->x;
	uint32_t ids = 0;

	fputs("\"dictionary\":{\"mappingTable\":[{}", o->to);
	for (uint32_t i = 0; i < x->nr_images; i++) {
		const struct export_image *m = &x->images[i];

		if (!export_has_image(x, i))
			continue;
		fprintf(o->to,
			",\n{\"memoryStart\":\"%" PRIu64 "\",\"memoryLimit\":\"%" PRIu64
			"\",\"fileOffset\":\"%" PRIu64 "\",\"filenameStrindex\":%" PRIu32,
			m->begin, m->end, m->off, m->name);
		if (o->build_of[i])
			fprintf(o->to, ",\"attributeIndices\":[%" PRIu32 "]", o->build_of[i]);
		fputc('}', o->to);
	}
	fputs("],\n\"attributeTable\":[{}", o->to);
	for (uint32_t i = 0; i < x->nr_images; i++)
		if (o->build_of[i] > ids) {
			ids = o->build_of[i];
			fprintf(o->to,
				",\n{\"keyStrindex\":%" PRIu32
				",\"value\":{\"stringValue\":\"%s\"}}",
				o->build_id, x->images[i].id);
		}
	for (size_t i = 0; i < x->nr_tags; i++)
		put_tag(o, &x->tags[i]);
	fputs("],\n", o->to);
}

static void put_location(struct otlp *o, const struct export_place *p)
{
	fprintf(o->to, ",\n{\"mappingIndex\":%" PRIu32 ",\"address\":\"%" PRIu64 "\",\"lines\":[",
		p->image == EXPORT_NONE ? 0 : o->mapping[p->image], p->vaddr);
	for (uint32_t i = p->first; i < p->first + p->nr; i++) {
		const struct export_frame *f = &o->x->frames[i];

		fprintf(o->to, "%s{\"functionIndex\":%" PRIu32 ",\"line\":\"%" PRIu32 "\"}",
			i > p->first ? "," : "", f->function + 1, f->line);
	}
	fputs("]}", o->to);
}

static void put_functions(struct otlp *o)
{
	fputs("],\n\"functionTable\":[{}", o->to);
	for (size_t i = 0; i < o->x->nr_functions; i++) {
		const struct export_function *f = &o->x->functions[i];

		fprintf(o->to,
			",\n{\"nameStrindex\":%" PRIu32 ",\"systemNameStrindex\":%" PRIu32
			",\"filenameStrindex\":%" PRIu32 ",\"startLine\":\"%" PRIu32 "\"}",
			f->name, f->linkage, f->file, f->line);
	}
}

/* Innermost first. */
static void put_stacks(struct otlp *o)
{
	fputs("],\n\"linkTable\":[{}],\n\"stackTable\":[{}", o->to);
	for (size_t i = 0; i < o->x->nr_stacks; i++) {
		size_t nr;

		if (!export_wanted(o->x, i))
			continue;
		nr = export_places(o->x, i, o->places);
		fputs(",\n{\"locationIndices\":[", o->to);
		for (size_t k = 0; k < nr; k++)
			fprintf(o->to, "%s%" PRIu32, k ? "," : "", o->places[k] + 1);
		fputs("]}", o->to);
	}
}

static void put_texts(struct otlp *o)
{
	const char *s = (const char *)o->more.data;

	fputs("],\n\"stringTable\":[", o->to);
	for (size_t i = 0; i < o->x->nr_texts; i++) {
		fputs(i ? ",\n" : "\n", o->to);
		json_text(o->to, o->x->texts[i]);
	}
	for (size_t i = 0; i < o->nr_more; i++, s += strlen(s) + 1) {
		fputs(",\n", o->to);
		json_text(o->to, s);
	}
	fputs("]}}\n", o->to);
}

static int write_otlp(const struct export *x, FILE *to)
{
	struct otlp o = { .x = x, .to = to };

	o.mapping = calloc(x->nr_images + 1, sizeof(*o.mapping));
	o.places = calloc(x->deepest + 1, sizeof(*o.places));
	o.stack = calloc(x->nr_stacks + 1, sizeof(*o.stack));
	o.build_of = calloc(x->nr_images + 1, sizeof(*o.build_of));
	o.r = o.mapping && o.build_of && o.places && o.stack ? number_mappings(&o) : -ENOMEM;
	if (o.r >= 0) {
		o.build_id = text(&o, "process.executable.build_id.gnu");
		for (size_t i = 0; i <= WORKLOAD_NR_KEYS && x->owners; i++)
			o.keys[i] = text(&o, conventions[i].name);
		number_stacks(&o);
		put_profiles(&o);
		put_mappings(&o);
		fputs("\"locationTable\":[{}", to);
		for (size_t i = 0; i < x->nr_places; i++)
			put_location(&o, &x->places[i]);
		put_functions(&o);
		put_stacks(&o);
	}
	if (o.r >= 0)
		put_texts(&o);
	base_buf_release(&o.more);
	free(o.mapping);
	free(o.build_of);
	free(o.places);
	free(o.stack);
	return o.r;
}

const struct export_format export_otlp = { .name = "otlp", .write = write_otlp, .tags = true };
