/* SPDX-License-Identifier: BSD-2-Clause */
/* Folded stacks: "outermost;…;innermost COUNT", a line each, of one event. */
#include <inttypes.h>
#include <stdlib.h>
#include <errno.h>

#include "export_internal.h"

/* A semicolon ends a frame there. */
static void put_name(const char *name, FILE *to)
{
	for (; *name; name++)
		fputc(*name == ';' ? ':' : *name, to);
}

static void put_stack(const struct export *x, const uint32_t *places, size_t nr, FILE *to)
{
	const char *sep = "";

	while (nr--) {
		const struct export_place *p = &x->places[places[nr]];

		for (uint32_t i = p->nr; i--; sep = ";") {
			fputs(sep, to);
			put_name(x->texts[x->functions[x->frames[p->first + i].function].name], to);
		}
	}
}

static int write_folded(const struct export *x, FILE *to)
{
	uint32_t *places = calloc(x->deepest + 1, sizeof(*places));

	for (size_t i = 0; places && i < x->nr_stacks; i++) {
		uint64_t n = export_count(x, i, x->events[0]);

		if (!n)
			continue;
		put_stack(x, places, export_places(x, i, places), to);
		fprintf(to, " %" PRIu64 "\n", n);
	}
	free(places);
	return places ? 0 : -ENOMEM;
}

const struct export_format export_folded = { .name = "folded",
					     .write = write_folded,
					     .single = true };
