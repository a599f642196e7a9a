/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of "perf script": a record for each sample, as readers of it count records. Databases
 * know no times of samples; here each comes one period after the one before (of a clock; else a
 * microsecond), so that programs which show times show durations that are right. Time that was
 * measured is one record for each stack, whose period it is.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "estimate.h"
#include "export_internal.h"

#define BILLION UINT64_C(1000000000)

/* Readers take a name that begins with a bracket for no function, and skip it. */
static void put_name(const char *name, FILE *to)
{
	size_t depth = 0;
	const char *end = name;

	if (*name == '(')
		do
			depth += (*end == '(') - (*end == ')');
		while (depth && *++end);
	if (end == name || !*end) {
		fputs(*name == '(' ? "?" : name, to);
		return;
	}
	fprintf(to, "[%.*s]%s", (int)(end - name - 1), name + 1, end + 1);
}

/* The name of an image has no blanks there, and no brackets. */
static void put_image(const char *name, FILE *to)
{
	for (; *name; name++)
		fputc(strchr(" ()", *name) ? '_' : *name, to);
}

/* Readers tell the kernel by this name. */
static const char *image_name(const struct export *x, uint32_t image)
{
	if (image == EXPORT_NONE)
		return "[none]";
	if (x->images[image].kind == PROFDB_KERNEL)
		return "[kernel.kallsyms]";
	return x->texts[x->images[image].name];
}

static void put_place(const struct export *x, const struct export_place *p, FILE *to)
{
	for (uint32_t i = 0; i < p->nr; i++) {
		const struct export_function *f = &x->functions[x->frames[p->first + i].function];

		fprintf(to, "\t%16" PRIx64 " ", p->vaddr);
		put_name(x->texts[f->name], to);
		if (i + 1 == p->nr && f->begin && p->vaddr >= f->begin)
			fprintf(to, "+0x%" PRIx64, p->vaddr - f->begin);
		fputs(" (", to);
		if (i + 1 < p->nr)
			fputs("inlined", to);
		else
			put_image(image_name(x, p->image), to);
		fputs(")\n", to);
	}
}

/* A record's first line up to the time, for all records of a thread. Readers take names up to the
 * first blank before a number, of two letters at least, and lines with '#' as comments. */
static int thread_head(const struct export *x, const struct export_thread *t, struct base_buf *out)
{
	uint32_t name = t->name ? t->name : t->process;
	int r = base_buf_printf(out, "%s", name ? x->texts[name] : "unknown");

	for (size_t i = 0; i < out->len; i++)
		if (out->data[i] == ' ' || (!i && out->data[i] == '#'))
			out->data[i] = '_';
	if (r >= 0)
		r = base_buf_printf(out, "%s %" PRIu64 "/%" PRIu64 " [000]",
				    t->estimated   ? "_(estimated)"
				    : out->len < 2 ? " "
						   : "",
				    t->pid, t->tid);
	return r;
}

/* Where the records of an event are written. */
struct records {
	const struct export *x;
	FILE *to;
	size_t event;
	uint64_t now;	  /* nanoseconds */
	uint32_t *places; /* of a stack */
	struct base_buf head;
};

static void put_record(struct records *rec, uint64_t period, size_t nr)
{
	fprintf(rec->to, "%s %" PRIu64 ".%06" PRIu64 ": %" PRIu64 " %s:\n",
		(const char *)rec->head.data, rec->now / BILLION, rec->now % BILLION / 1000, period,
		rec->x->a->events[rec->event].name);
	for (size_t k = 0; k < nr; k++)
		put_place(rec->x, &rec->x->places[rec->places[k]], rec->to);
	fputc('\n', rec->to);
}

static void put_part(struct records *rec, size_t part)
{
	const struct analysis_event *ev = &rec->x->a->events[rec->event];
	uint64_t step = export_is_clock(rec->x, rec->event) && ev->period ? ev->period : 1000;
	size_t nr = export_places(rec->x, rec->x->parts[part].stack, rec->places);
	uint64_t n = export_part_count(rec->x, part, rec->event);

	/* Nanoseconds that were measured are not so many samples. */
	if (n && estimate_is_measured(ev->name)) {
		rec->now += n;
		put_record(rec, n, nr);
		return;
	}
	for (; n && !ferror(rec->to); n--) {
		rec->now += step;
		put_record(rec, ev->period ? ev->period : 1, nr);
	}
}

static int put_thread(struct records *rec, const struct export_threads *t, size_t at)
{
	int r;

	base_buf_clear(&rec->head);
	r = thread_head(rec->x, &t->v[at], &rec->head);
	for (size_t i = 0; i < t->v[at].nr && r >= 0; i++)
		put_part(rec, t->parts[t->v[at].first + i]);
	return r;
}

static int write_perf(const struct export *x, FILE *to)
{
	struct records rec = { .x = x, .to = to };
	struct export_threads t = { 0 };
	int r = export_threads(x, &t);

	rec.places = calloc(x->deepest + 1, sizeof(*rec.places));
	if (!rec.places)
		r = -ENOMEM;
	for (size_t e = 0; e < x->nr_events && r >= 0; e++) {
		rec.event = x->events[e];
		rec.now = 0;
		for (size_t i = 0; i < t.nr && r >= 0; i++)
			r = put_thread(&rec, &t, i);
	}
	base_buf_release(&rec.head);
	free(rec.places);
	export_threads_release(&t);
	return r;
}

const struct export_format export_perf = {
	.name = "perf", .write = write_perf, .single = true, .tags = true
};
