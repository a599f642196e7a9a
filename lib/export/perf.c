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

static void put_record(const struct export *x, uint64_t now, uint64_t period, const char *event,
		       const uint32_t *places, size_t nr, FILE *to)
{
	fprintf(to, "dcpi 1/1 [000] %" PRIu64 ".%06" PRIu64 ": %" PRIu64 " %s:\n", now / BILLION,
		now % BILLION / 1000, period, event);
	for (size_t k = 0; k < nr; k++)
		put_place(x, &x->places[places[k]], to);
	fputc('\n', to);
}

static int put_event(const struct export *x, size_t event, uint32_t *places, FILE *to)
{
	const struct analysis_event *ev = &x->a->events[event];
	uint64_t step = export_is_clock(x, event) && ev->period ? ev->period : 1000, now = 0;
	uint64_t period = ev->period ? ev->period : 1;

	for (size_t i = 0; i < x->nr_stacks; i++) {
		size_t nr = export_places(x, i, places);
		uint64_t n = export_count(x, i, event);

		/* Nanoseconds that were measured are not so many samples. */
		if (n && estimate_is_measured(ev->name)) {
			now += n;
			put_record(x, now, n, ev->name, places, nr, to);
			continue;
		}
		for (; n && !ferror(to); n--) {
			now += step;
			put_record(x, now, period, ev->name, places, nr, to);
		}
	}
	return 0;
}

int export_perf(const struct export *x, FILE *to)
{
	uint32_t *places = calloc(x->deepest + 1, sizeof(*places));
	int r = places ? 0 : -ENOMEM;

	for (size_t i = 0; i < x->nr_events && r >= 0; i++)
		r = put_event(x, x->events[i], places, to);
	free(places);
	return r;
}
