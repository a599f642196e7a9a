/* SPDX-License-Identifier: BSD-2-Clause */
/* speedscope's own format (https://www.speedscope.app/file-format-schema.json), as one "sampled"
 * profile for each event, whose weights are samples. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "export_internal.h"

/* Frames there are functions: the line is that of the definition. */
static void put_frames(const struct export *x, FILE *to)
{
	fputs("\"shared\":{\"frames\":[", to);
	for (size_t i = 0; i < x->nr_functions; i++) {
		const struct export_function *f = &x->functions[i];

		fputs(i ? ",\n{\"name\":" : "\n{\"name\":", to);
		json_text(to, x->texts[f->name]);
		if (f->file || f->image != EXPORT_NONE) {
			fputs(",\"file\":", to);
			json_text(to, x->texts[f->file ? f->file : x->images[f->image].name]);
		}
		if (f->file && f->line)
			fprintf(to, ",\"line\":%" PRIu32, f->line);
		fputc('}', to);
	}
	fputs("]},\n", to);
}

static void put_stack(const struct export *x, const uint32_t *places, size_t nr, FILE *to)
{
	const char *sep = "";

	fputc('[', to);
	while (nr--) {
		const struct export_place *p = &x->places[places[nr]];

		for (uint32_t i = p->nr; i--; sep = ",")
			fprintf(to, "%s%" PRIu32, sep, x->frames[p->first + i].function);
	}
	fputc(']', to);
}

static void put_samples(const struct export *x, size_t event, uint32_t *places, FILE *to)
{
	const char *sep = "\n";

	fputs("\"samples\":[", to);
	for (size_t i = 0; i < x->nr_stacks; i++) {
		if (!export_count(x, i, event))
			continue;
		fputs(sep, to);
		put_stack(x, places, export_places(x, i, places), to);
		sep = ",\n";
	}
	fputs("],\n\"weights\":[", to);
	sep = "";
	for (size_t i = 0; i < x->nr_stacks; i++) {
		if (!export_count(x, i, event))
			continue;
		fprintf(to, "%s%" PRIu64, sep, export_count(x, i, event));
		sep = ",";
	}
	fputc(']', to);
}

static void put_profile(const struct export *x, size_t event, uint32_t *places, FILE *to)
{
	fputs("{\"type\":\"sampled\",\"name\":", to);
	json_text(to, x->a->events[event].name);
	fprintf(to, ",\"unit\":\"none\",\"startValue\":0,\"endValue\":%" PRIu64 ",\n",
		export_sum(x, event));
	put_samples(x, event, places, to);
	fputc('}', to);
}

static int write_speedscope(const struct export *x, FILE *to)
{
	uint32_t *places = calloc(x->deepest + 1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n", to);
	put_frames(x, to);
	fputs("\"profiles\":[\n", to);
	for (size_t i = 0; i < x->nr_events; i++) {
		fputs(i ? ",\n" : "", to);
		put_profile(x, x->events[i], places, to);
	}
	fprintf(to, "],\n\"activeProfileIndex\":0,\"exporter\":\"dcpiexport-%s\"}\n",
		base_release());
	free(places);
	return 0;
}

const struct export_format export_speedscope = { .name = "speedscope", .write = write_speedscope };
