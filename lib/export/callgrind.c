/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * callgrind's format: samples by instruction and source line, and inclusive samples by call. On a
 * path with a procedure twice, only the outermost call of it counts: so the calls of a procedure
 * add up to the samples of the paths with it, and no reader finds it called for more than there
 * are.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export_internal.h"

/* The samples at a place, or those that a call there led to. */
struct cost {
	uint32_t place;
	uint32_t callee; /* a function; EXPORT_NONE: the place itself */
};

struct callgrind {
	const struct export *x;
	FILE *to;
	struct cost *v;
	uint64_t *counts; /* [cost * x->nr_events + n-th event] */
	size_t nr, cap, cap_counts;
	struct base_map by_cost;
	uint32_t *order; /* order of costs */
	uint32_t *places;
	size_t *seen; /* indexed by function: the last stack that has it, from 1 */
	/* The last things written: */
	bool *named_object, *named_file, *named_function; /* their numbers have names already */
	uint32_t object, function, file;
};

/* ---- costs ----------------------------------------------------------------------------------- */

static uint32_t function_of(const struct export *x, uint32_t place)
{
	const struct export_place *p = &x->places[place];

	return x->frames[p->first + p->nr - 1].function;
}

static int add(struct callgrind *c, size_t stack, uint32_t place, uint32_t callee)
{
	const uint32_t key[] = { place, callee };
	size_t nr_events = c->x->nr_events;
	uintptr_t at = (uintptr_t)base_map_get(&c->by_cost, key, sizeof(key));
	int r = 0;

	if (!at) {
		r = base_grow(&c->v, &c->cap, c->nr + 1, sizeof(*c->v));
		if (r >= 0)
			r = base_grow(&c->counts, &c->cap_counts, (c->nr + 1) * nr_events,
				      sizeof(*c->counts));
		if (r < 0 || c->nr >= EXPORT_NONE)
			return -ENOMEM;
		memset(c->counts + c->nr * nr_events, 0, nr_events * sizeof(*c->counts));
		c->v[c->nr++] = (struct cost){ place, callee };
		at = c->nr;
		r = base_map_set(&c->by_cost, key, sizeof(key), (void *)at);
	}
	for (size_t e = 0; e < nr_events; e++)
		c->counts[(at - 1) * nr_events + e] += export_count(c->x, stack, c->x->events[e]);
	return r;
}

static int add_stack(struct callgrind *c, size_t stack)
{
	size_t nr = export_places(c->x, stack, c->places);
	int r = add(c, stack, c->places[0], EXPORT_NONE);

	c->seen[function_of(c->x, c->places[nr - 1])] = stack + 1;
	for (size_t i = nr; --i && r >= 0;) {
		uint32_t callee = function_of(c->x, c->places[i - 1]);

		if (c->seen[callee] != stack + 1)
			r = add(c, stack, c->places[i], callee);
		c->seen[callee] = stack + 1;
	}
	return r;
}

static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct callgrind *c = ctx;
	const struct cost *a = &c->v[*(const uint32_t *)pa], *b = &c->v[*(const uint32_t *)pb];
	uint32_t fa = function_of(c->x, a->place), fb = function_of(c->x, b->place);
	uint32_t ia = c->x->functions[fa].image, ib = c->x->functions[fb].image;
	uint64_t va = c->x->places[a->place].vaddr, vb = c->x->places[b->place].vaddr;

	if (ia != ib)
		return ia > ib ? 1 : -1;
	if (fa != fb)
		return fa > fb ? 1 : -1;
	if (va != vb)
		return va > vb ? 1 : -1;
	/* The place itself first. */
	return (a->callee + 1 > b->callee + 1) - (a->callee + 1 < b->callee + 1);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* "fn=(3) name", and the next time "fn=(3)". */
static void put_name(struct callgrind *c, const char *key, uint32_t number, const char *name,
		     bool *named)
{
	fprintf(c->to, "%s=(%" PRIu32 ")", key, number + 1);
	if (!named[number])
		fprintf(c->to, " %s", *name ? name : "???");
	named[number] = true;
	fputc('\n', c->to);
}

/* Number 0 is "", of what is in no image; that of image N is N + 1. */
static void put_object(struct callgrind *c, const char *key, uint32_t image)
{
	bool none = image == EXPORT_NONE;

	put_name(c, key, none ? 0 : image + 1, none ? "" : c->x->texts[c->x->images[image].name],
		 c->named_object);
}

static void put_file(struct callgrind *c, const char *key, uint32_t file)
{
	put_name(c, key, file, c->x->texts[file], c->named_file);
}

static void put_function(struct callgrind *c, const char *key, uint32_t function)
{
	put_name(c, key, function, c->x->texts[c->x->functions[function].name], c->named_function);
}

static void put_counts(struct callgrind *c, uint64_t vaddr, uint32_t line, const uint64_t *counts)
{
	fprintf(c->to, "0x%" PRIx64 " %" PRIu32, vaddr, line);
	for (size_t i = 0; i < c->x->nr_events; i++)
		fprintf(c->to, " %" PRIu64, counts[i]);
	fputc('\n', c->to);
}

/* The object, file and function of lines to come, where they are others than before. */
static void put_where(struct callgrind *c, uint32_t function, uint32_t file)
{
	const struct export_function *f = &c->x->functions[function];

	if (function != c->function) {
		if (f->image != c->object)
			put_object(c, "ob", f->image);
		put_file(c, "fl", f->file);
		put_function(c, "fn", function);
		c->file = f->file;
	}
	if (file != c->file)
		put_file(c, file == f->file ? "fe" : "fi", file);
	c->object = f->image;
	c->function = function;
	c->file = file;
}

static void put_cost(struct callgrind *c, uint32_t cost)
{
	const struct cost *v = &c->v[cost];
	const struct export_place *p = &c->x->places[v->place];
	const struct export_frame *in = &c->x->frames[p->first];
	const uint64_t *counts = c->counts + cost * c->x->nr_events;
	const struct export_function *f;

	put_where(c, function_of(c->x, v->place), in->file);
	if (v->callee != EXPORT_NONE) {
		f = &c->x->functions[v->callee];
		put_object(c, "cob", f->image);
		put_file(c, "cfi", f->file);
		put_function(c, "cfn", v->callee);
		fprintf(c->to, "calls=%" PRIu64 " 0x%" PRIx64 " %" PRIu32 "\n",
			counts[0] ? counts[0] : 1, f->begin, f->line);
	}
	put_counts(c, p->vaddr, in->line, counts);
}

/* Readers take names of events for words of a formula. */
static void put_event(const char *name, FILE *to)
{
	for (; *name; name++)
		fputc(isalnum((unsigned char)*name) ? *name : '_', to);
}

static void put_head(const struct callgrind *c)
{
	const struct export *x = c->x;

	fprintf(c->to, "# callgrind format\nversion: 1\ncreator: dcpiexport-%s\n", base_release());
	fputs("desc: samples; calls are samples too\npositions: instr line\nevents:", c->to);
	for (size_t i = 0; i < x->nr_events; i++) {
		fputc(' ', c->to);
		put_event(x->a->events[x->events[i]].name, c->to);
	}
	fputs("\nsummary:", c->to);
	for (size_t i = 0; i < x->nr_events; i++)
		fprintf(c->to, " %" PRIu64, export_sum(x, x->events[i]));
	fputs("\n\n", c->to);
}

static bool alloc(struct callgrind *c)
{
	const struct export *x = c->x;

	c->places = calloc(x->deepest + 1, sizeof(*c->places));
	c->seen = calloc(x->nr_functions + 1, sizeof(*c->seen));
	c->named_object = calloc(x->nr_images + 1, sizeof(*c->named_object));
	c->named_file = calloc(x->nr_texts + 1, sizeof(*c->named_file));
	c->named_function = calloc(x->nr_functions + 1, sizeof(*c->named_function));
	return c->places && c->seen && c->named_object && c->named_file && c->named_function;
}

static int make(struct callgrind *c)
{
	int r = alloc(c) ? 0 : -ENOMEM;

	for (size_t i = 0; i < c->x->nr_stacks && r >= 0; i++)
		if (export_wanted(c->x, i))
			r = add_stack(c, i);
	c->order = calloc(c->nr + 1, sizeof(*c->order));
	if (r < 0 || !c->order)
		return -ENOMEM;
	for (size_t i = 0; i < c->nr; i++)
		c->order[i] = (uint32_t)i;
	if (c->nr)
		qsort_r(c->order, c->nr, sizeof(*c->order), compare, c);
	put_head(c);
	for (size_t i = 0; i < c->nr; i++)
		put_cost(c, c->order[i]);
	return 0;
}

static int write_callgrind(const struct export *x, FILE *to)
{
	struct callgrind c = { .x = x, .to = to, .function = EXPORT_NONE, .file = EXPORT_NONE };
	int r;

	c.object = EXPORT_NONE - 1; /* no image's, and not none's */
	r = make(&c);
	base_map_release(&c.by_cost);
	free(c.v);
	free(c.counts);
	free(c.order);
	free(c.places);
	free(c.seen);
	free(c.named_object);
	free(c.named_file);
	free(c.named_function);
	return r;
}

const struct export_format export_callgrind = { .name = "callgrind", .write = write_callgrind };
