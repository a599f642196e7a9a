/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof's profile.proto (github.com/google/pprof, proto/profile.proto), before it is compressed.
 * Images are mappings, which may overlap, as each has the addresses of its own ELF; locations refer
 * to theirs by number. All images claim to have functions, so that readers look up none themselves.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export_internal.h"
#include "protobuf.h"

/* Numbers of fields in the messages, as the proto file has them. */
enum {
	PROFILE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT = 14,
	SAMPLE_LOCATIONS = 1,
	SAMPLE_VALUES = 2,
	SAMPLE_LABEL = 3,
	LOCATION_LINE = 4,
};

struct pprof {
	const struct export *x;
	FILE *to;
	struct base_buf message, part; /* the message that is being put together */
	struct base_buf all, chosen;   /* labels, as fields of a sample, of all samples; those of
					  what was chosen, where it is not known whose they are */
	struct base_buf more;	       /* texts that x->texts lacks, each with its 0 */
	size_t nr_more;
	uint32_t *mapping; /* indexed by image; 0: none */
	uint32_t *places;
	uint64_t keys[WORKLOAD_NR_KEYS + 1]; /* names of tags */
	bool clock; /* values have nanoseconds behind samples of the first event */
	int r;	    /* the first failure */
};

static void failed(struct pprof *p, int r)
{
	if (p->r >= 0 && r < 0)
		p->r = r;
}

/* Writes p->message, and empties it. */
static void put(struct pprof *p, unsigned int field)
{
	struct base_buf head = { 0 };

	failed(p, protobuf_bytes(&head, field, p->message.data, p->message.len));
	if (p->r >= 0)
		fwrite(head.data, 1, head.len, p->to);
	base_buf_release(&head);
	base_buf_clear(&p->message);
}

static void number(struct pprof *p, unsigned int field, uint64_t v)
{
	failed(p, protobuf_number(&p->message, field, v));
}

/* A number of the profile itself. */
static void put_number(struct pprof *p, unsigned int field, uint64_t v)
{
	struct base_buf b = { 0 };

	failed(p, protobuf_number(&b, field, v));
	if (p->r >= 0)
		fwrite(b.data, 1, b.len, p->to);
	base_buf_release(&b);
}

/* The number of another text. */
static uint64_t text(struct pprof *p, const char *s)
{
	size_t at = p->more.len;

	failed(p, base_buf_append(&p->more, s, strlen(s) + 1));
	if (p->r >= 0)
		base_text_clean((char *)p->more.data + at);
	return p->x->nr_texts + p->nr_more++;
}

/* ---- head ------------------------------------------------------------------------------------ */

static void put_type(struct pprof *p, unsigned int field, const char *type, const char *unit)
{
	number(p, 1, text(p, type));
	number(p, 2, text(p, unit));
	put(p, field);
}

static void put_comment(struct pprof *p, const char *what, const char *value)
{
	struct base_buf s = { 0 };

	failed(p, base_buf_printf(&s, "%s %s", what, value));
	if (p->r >= 0)
		put_number(p, PROFILE_COMMENT, text(p, (const char *)s.data));
	base_buf_release(&s);
}

static void put_comments(struct pprof *p)
{
	const struct analysis *a = p->x->a;

	put_comment(p, "made by dcpiexport", base_release());
	put_comment(p, "database", analysis_database(a));
	for (size_t i = 0; i < a->nr_epochs; i++)
		put_comment(p, "epoch", a->epochs[i].name);
	for (size_t i = 0; i < a->nr_platforms; i++)
		put_comment(p, "platform", a->platforms[i]);
	for (size_t i = 0; i < a->labels.nr; i++)
		put_comment(p, "label", a->labels.v[i]);
}

static void put_head(struct pprof *p)
{
	const struct export *x = p->x;
	const struct analysis_event *first = &x->a->events[x->events[0]];

	put_type(p, PROFILE_TYPE, "samples", "count");
	if (p->clock)
		put_type(p, PROFILE_TYPE, "cpu", "nanoseconds");
	for (size_t i = 1; i < x->nr_events; i++)
		put_type(p, PROFILE_TYPE, x->a->events[x->events[i]].name, "count");
	put_number(p, PROFILE_DEFAULT, text(p, p->clock ? "cpu" : "samples"));
	put_type(p, PROFILE_PERIOD_TYPE, p->clock ? "cpu" : first->name,
		 p->clock ? "nanoseconds" : "count");
	if (!first->mixed)
		put_number(p, PROFILE_PERIOD, first->period);
	put_number(p, PROFILE_TIME, export_begin(x) * UINT64_C(1000000000));
	put_comments(p);
}

static void add_label(struct pprof *p, struct base_buf *to, uint64_t key, uint64_t label)
{
	base_buf_clear(&p->part);
	failed(p, protobuf_number(&p->part, 1, key));
	failed(p, protobuf_number(&p->part, 2, label));
	failed(p, protobuf_bytes(to, SAMPLE_LABEL, p->part.data, p->part.len));
}

/* A choice is told apart where a reader adds several files up. */
static void make_labels(struct pprof *p)
{
	const struct analysis *a = p->x->a;

	if (a->labels.nr == 1)
		add_label(p, &p->chosen, text(p, "label"), text(p, a->labels.v[0]));
	for (size_t i = 0; i < a->nr_kept; i++)
		if (a->kept[i].nr == 1)
			add_label(p, &p->chosen, text(p, a->kept[i].name),
				  text(p, a->kept[i].v[0]));
	if (a->nr_platforms == 1)
		add_label(p, &p->all, text(p, "platform"), text(p, a->platforms[0]));
	for (uint32_t i = 0; i < WORKLOAD_NR_KEYS && p->x->owners; i++)
		p->keys[i] = text(p, workload_key_name(i));
	if (p->x->owners)
		p->keys[WORKLOAD_NR_KEYS] = text(p, "workload");
}

static void put_tag(struct pprof *p, uint32_t tag)
{
	const struct export_tag *t = &p->x->tags[tag];

	add_label(p, &p->message, p->keys[t->key], t->text);
}

static void put_labels(struct pprof *p, const struct export_part *part)
{
	const struct export_owner *o =
		part->owner == EXPORT_NONE ? NULL : &p->x->owners[part->owner];

	failed(p, base_buf_append(&p->message, p->all.data, p->all.len));
	if (!o)
		failed(p, base_buf_append(&p->message, p->chosen.data, p->chosen.len));
	for (uint32_t i = 0; o && i < o->nr; i++)
		put_tag(p, p->x->owner_tags[o->first + i]);
	if (part->estimated)
		put_tag(p, p->x->estimated);
}

/* ---- samples --------------------------------------------------------------------------------- */

static void value(struct pprof *p, uint64_t v)
{
	failed(p, v > INT64_MAX ? -DCPI_EOVERFLOW : protobuf_varint(&p->part, v));
}

/* Images may have different periods, and events may have taken turns. */
static uint64_t nanoseconds(struct pprof *p, size_t stack, uint64_t n)
{
	const struct analysis *a = p->x->a;
	uint32_t image = p->x->places[p->x->stacks[stack].place].image;
	double units = analysis_sample_units(a, a->images[image == EXPORT_NONE ? 0 : image],
					     p->x->events[0]);
	uint64_t whole = units < 0x1p53 ? (uint64_t)units : 0, out;

	if (whole && (double)whole == units)
		return base_mul_overflow(n, whole, &out) ? UINT64_MAX : out;
	units = rint((double)n * units);
	return units < 0x1p63 ? (uint64_t)units : UINT64_MAX;
}

static bool is_wanted(const struct export *x, size_t part)
{
	for (size_t i = 0; i < x->nr_events; i++)
		if (export_part_count(x, part, x->events[i]))
			return true;
	return false;
}

static void put_sample(struct pprof *p, size_t part)
{
	const struct export *x = p->x;
	size_t stack = x->parts[part].stack, nr = export_places(x, stack, p->places);

	base_buf_clear(&p->part);
	for (size_t i = 0; i < nr; i++)
		failed(p, protobuf_varint(&p->part, p->places[i] + UINT64_C(1)));
	failed(p, protobuf_bytes(&p->message, SAMPLE_LOCATIONS, p->part.data, p->part.len));
	base_buf_clear(&p->part);
	for (size_t i = 0; i < x->nr_events; i++) {
		uint64_t n = export_part_count(x, part, x->events[i]);

		value(p, n);
		if (!i && p->clock)
			value(p, nanoseconds(p, stack, n));
	}
	failed(p, protobuf_bytes(&p->message, SAMPLE_VALUES, p->part.data, p->part.len));
	put_labels(p, &x->parts[part]);
	put(p, PROFILE_SAMPLE);
}

/* ---- what they refer to ---------------------------------------------------------------------- */

struct sampled {
	uint64_t samples;
	uint32_t image;
};

static int by_samples(const void *pa, const void *pb)
{
	const struct sampled *a = pa, *b = pb;

	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return (a->image > b->image) - (a->image < b->image);
}

static void put_mapping(struct pprof *p, uint32_t image, uint32_t id)
{
	const struct export_image *i = &p->x->images[image];

	p->mapping[image] = id;
	number(p, 1, id);
	number(p, 2, i->begin);
	number(p, 3, i->end);
	number(p, 4, i->off);
	number(p, 5, i->name);
	if (*i->id)
		number(p, 6, text(p, i->id));
	number(p, 7, true);
	number(p, 8, i->lines);
	number(p, 9, i->lines);
	number(p, 10, i->inlined);
	put(p, PROFILE_MAPPING);
}

/* Readers take the first one for the program: it is the one with most samples. */
static void put_mappings(struct pprof *p)
{
	const struct export *x = p->x;
	struct sampled *v = calloc(x->nr_images + 1, sizeof(*v));
	uint32_t id = 0;

	failed(p, v ? 0 : -ENOMEM);
	for (uint32_t i = 0; v && i < x->nr_images; i++)
		v[i] = (struct sampled){ x->a->images[i]->count[x->events[0]], i };
	if (v && x->nr_images)
		qsort(v, x->nr_images, sizeof(*v), by_samples);
	for (size_t i = 0; v && i < x->nr_images; i++)
		if (export_has_image(x, v[i].image))
			put_mapping(p, v[i].image, ++id);
	free(v);
}

static void put_location(struct pprof *p, uint32_t place)
{
	const struct export_place *at = &p->x->places[place];

	number(p, 1, place + UINT64_C(1));
	number(p, 2, at->image == EXPORT_NONE ? 0 : p->mapping[at->image]);
	number(p, 3, at->vaddr);
	for (uint32_t i = at->first; i < at->first + at->nr; i++) {
		base_buf_clear(&p->part);
		failed(p, protobuf_number(&p->part, 1, p->x->frames[i].function + UINT64_C(1)));
		failed(p, protobuf_number(&p->part, 2, p->x->frames[i].line));
		failed(p, protobuf_bytes(&p->message, LOCATION_LINE, p->part.data, p->part.len));
	}
	put(p, PROFILE_LOCATION);
}

static void put_function(struct pprof *p, uint32_t function)
{
	const struct export_function *f = &p->x->functions[function];

	number(p, 1, function + UINT64_C(1));
	number(p, 2, f->name);
	number(p, 3, f->linkage);
	number(p, 4, f->file);
	number(p, 5, f->line);
	put(p, PROFILE_FUNCTION);
}

static void put_text(struct pprof *p, const char *s)
{
	failed(p, base_buf_append(&p->message, s, strlen(s)));
	put(p, PROFILE_STRING);
}

static void put_texts(struct pprof *p)
{
	const char *s = (const char *)p->more.data;

	for (size_t i = 0; i < p->x->nr_texts; i++)
		put_text(p, p->x->texts[i]);
	for (size_t i = 0; i < p->nr_more; i++, s += strlen(s) + 1)
		put_text(p, s);
}

static int write_pprof(const struct export *x, FILE *to)
{
	struct pprof p = { .x = x, .to = to };

	p.mapping = calloc(x->nr_images + 1, sizeof(*p.mapping));
	p.places = calloc(x->deepest + 1, sizeof(*p.places));
	p.clock = export_is_clock(x, x->events[0]);
	failed(&p, p.mapping && p.places ? 0 : -ENOMEM);
	if (p.r >= 0)
		put_head(&p);
	if (p.r >= 0)
		make_labels(&p);
	for (size_t i = 0; i < x->nr_parts && p.r >= 0; i++)
		if (is_wanted(x, i))
			put_sample(&p, i);
	if (p.r >= 0)
		put_mappings(&p);
	for (uint32_t i = 0; i < x->nr_places && p.r >= 0; i++)
		put_location(&p, i);
	for (uint32_t i = 0; i < x->nr_functions && p.r >= 0; i++)
		put_function(&p, i);
	if (p.r >= 0)
		put_texts(&p);
	base_buf_release(&p.message);
	base_buf_release(&p.part);
	base_buf_release(&p.more);
	base_buf_release(&p.all);
	base_buf_release(&p.chosen);
	free(p.mapping);
	free(p.places);
	return p.r;
}

const struct export_format export_pprof = {
	.name = "pprof", .write = write_pprof, .gzip = true, .tags = true
};
