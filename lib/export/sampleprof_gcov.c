/* SPDX-License-Identifier: BSD-2-Clause */
/* Execution counts of source lines are written as the file that gcc reads by -fauto-profile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampleprof_internal.h"

#define MAGIC	    0x67636461 /* "gcda" */
#define VERSION	    2
#define TAG_NAMES   0xaa000000
#define TAG_ROUTINE 0xac000000
#define TAG_MODULES 0xae000000
#define COUNT_MAX   ((uint64_t)1 << 48)
#define HIST_CALLS  7 /* a histogram of the targets of calls; gcc does not look at the number */

struct gcov {
	struct base_buf names; /* the table of strings, without its head */
	struct base_map by_name;
	uint32_t nr_names;
	struct base_buf routines;
	uint32_t nr_routines;
};

/* Little-endian, as gcc for the machines that are sampled. */
static int put32(struct base_buf *out, uint32_t value)
{
	const uint8_t bytes[] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
				  (uint8_t)(value >> 24) };

	return base_buf_append(out, bytes, sizeof(bytes));
}

/* gcc adds counts up in 64 bits with a sign, and keeps 61. */
static uint64_t bounded(uint64_t count)
{
	return count < COUNT_MAX ? count : COUNT_MAX;
}

static int put64(struct base_buf *out, uint64_t value)
{
	int r = put32(out, (uint32_t)value);

	return r < 0 ? r : put32(out, (uint32_t)(value >> 32));
}

/* The number of @name in the table, which it is added to. */
static int put_name(struct gcov *g, struct base_buf *out, const char *name, bool is_long)
{
	uintptr_t known = (uintptr_t)base_map_get(&g->by_name, name, strlen(name));
	uint32_t len = (uint32_t)strlen(name) + 1;
	int r = 0;

	if (!known) {
		known = ++g->nr_names;
		r = base_map_set(&g->by_name, name, len - 1, (void *)known);
		if (r >= 0)
			r = put32(&g->names, len);
		if (r >= 0)
			r = base_buf_append(&g->names, name, len);
	}
	if (r < 0)
		return r;
	return is_long ? put64(out, known - 1) : put32(out, (uint32_t)known - 1);
}

/* A line's place; where its code lies in parts, they have one count. */
static uint32_t offset_of(const struct sampleprof_place *at)
{
	return at->line << 16;
}

static size_t nr_of_line(const struct sampleprof_routine *in, size_t i, uint64_t *count)
{
	size_t first = i;

	*count = 0;
	for (; i < in->nr_spots && in->spots[i].at.line == in->spots[first].at.line; i++)
		*count = *count > in->spots[i].count ? *count : in->spots[i].count;
	return i - first;
}

static uint32_t nr_lines(const struct sampleprof_routine *in)
{
	uint32_t nr = 0;
	uint64_t count;

	for (size_t i = 0; i < in->nr_spots; i += nr_of_line(in, i, &count))
		nr++;
	return nr;
}

/* Targets are sorted by line, as counts are; those of a line without a count are left out. */
static int put_targets(struct gcov *g, const struct sampleprof_routine *in, uint32_t line,
		       uint64_t count)
{
	size_t from = 0, to;
	int r;

	while (from < in->nr_targets && in->targets[from].at.line < line)
		from++;
	for (to = from; to < in->nr_targets && in->targets[to].at.line == line;)
		to++;
	r = put32(&g->routines, (uint32_t)(to - from));
	if (r >= 0)
		r = put64(&g->routines, bounded(count));
	for (; from < to && r >= 0; from++) {
		r = put32(&g->routines, HIST_CALLS);
		if (r >= 0)
			r = put_name(g, &g->routines, in->targets[from].name, true);
		if (r >= 0)
			r = put64(&g->routines, bounded(in->targets[from].count));
	}
	return r;
}

static uint32_t nr_parts(const struct sampleprof_routine *in)
{
	uint32_t nr = 0;

	for (size_t i = 0; i < in->nr_parts; i++)
		nr += !sampleprof_empty(in->parts[i].routine);
	return nr;
}

static int put_routine(struct gcov *g, const struct sampleprof_routine *in)
{
	struct base_buf *out = &g->routines;
	int r = put_name(g, out, in->name, false);
	size_t nr;

	if (r >= 0)
		r = put32(out, nr_lines(in));
	if (r >= 0)
		r = put32(out, nr_parts(in));
	for (size_t i = 0; i < in->nr_spots && r >= 0; i += nr) {
		uint64_t count;

		nr = nr_of_line(in, i, &count);
		r = put32(out, offset_of(&in->spots[i].at));
		if (r >= 0)
			r = put_targets(g, in, in->spots[i].at.line, count);
	}
	for (size_t i = 0; i < in->nr_parts && r >= 0; i++) {
		if (sampleprof_empty(in->parts[i].routine))
			continue;
		r = put32(out, offset_of(&in->parts[i].at));
		if (r >= 0)
			r = put_routine(g, in->parts[i].routine);
	}
	return r;
}

static int put_section(struct base_buf *out, uint32_t tag, uint32_t nr, const struct base_buf *v)
{
	int r = put32(out, tag);

	if (r >= 0)
		r = put32(out, (uint32_t)(v->len / 4 + 1));
	if (r >= 0)
		r = put32(out, nr);
	return r < 0 ? r : base_buf_append(out, v->data, v->len);
}

static int put_all(const struct gcov *g, struct base_buf *out)
{
	static const struct base_buf none;
	int r = put32(out, MAGIC);

	if (r >= 0)
		r = put32(out, VERSION);
	if (r >= 0)
		r = put32(out, 0);
	if (r >= 0)
		r = put_section(out, TAG_NAMES, g->nr_names, &g->names);
	if (r >= 0)
		r = put_section(out, TAG_ROUTINE, g->nr_routines, &g->routines);
	return r < 0 ? r : put_section(out, TAG_MODULES, 0, &none);
}

int sampleprof_format_gcov(struct sampleprof *s, struct base_buf *out)
{
	struct gcov g = { 0 };
	int r = 0;

	sampleprof_sum(s);
	for (size_t i = 0; i < s->nr && r >= 0; i++) {
		if (sampleprof_empty(s->v[i]))
			continue;
		g.nr_routines++;
		r = put64(&g.routines, bounded(s->v[i]->head));
		if (r >= 0)
			r = put_routine(&g, s->v[i]);
	}
	if (r >= 0)
		r = put_all(&g, out);
	base_map_release(&g.by_name);
	base_buf_release(&g.names);
	base_buf_release(&g.routines);
	return r;
}
