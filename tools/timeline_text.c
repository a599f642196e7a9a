/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws rows of samples over time as bars of characters. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "timeline.h"

enum {
	NAME_ROOM = 22, /* columns that names of images and procedures want */
	LEAST_ROOM = 10,
	LEVELS = 8,
	DAY = 86400,
	TICK = 8, /* columns between two times */
};

/* One character for each slice: nothing, up to the row's highest, not recorded. */
struct signs {
	const char *level[LEVELS + 1];
	const char *unrecorded;
};

static const struct signs blocks = {
	{ " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" },
	"·",
};
static const struct signs ascii = {
	{ " ", ".", ":", "-", "=", "+", "*", "#", "@" },
	"?",
};

static const char share_head[] = "      %    peak  ";

size_t timeline_room(size_t columns)
{
	size_t fixed = strlen(share_head) + 2 + NAME_ROOM;

	return columns > fixed + LEAST_ROOM ? columns - fixed : LEAST_ROOM;
}

uint64_t *timeline_others(const struct timeline *t, uint64_t *sum)
{
	uint64_t *count = calloc(t->slices.nr, sizeof(*count));

	*sum = 0;
	for (size_t i = t->nr_shown; count && i < t->nr; i++) {
		const struct slices_row *row = &t->slices.rows[t->rows[i].number];

		*sum += row->sum;
		for (size_t k = 0; k < t->slices.nr; k++)
			count[k] += row->count[k];
	}
	return count;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* @of: what is 1 in each slice, NULL: the greatest of them. */
static void print_bar(const struct timeline *t, const struct signs *s, const uint64_t *count,
		      const uint64_t *of, double peak, uint64_t most, FILE *to)
{
	for (size_t i = 0; i < t->slices.nr; i++) {
		double part = of ? share(count[i], of[i]) : share(count[i], most);
		int level = peak > 0 ? (int)(part / peak * LEVELS + 0.5) : 0;

		/* A single sample is seen. */
		level = count[i] && !level ? 1 : level > LEVELS ? LEVELS : level;
		fputs(t->slices.recorded[i] ? s->level[level] : s->unrecorded, to);
	}
	fputs("  ", to);
}

static void print_row(const struct timeline *t, const struct signs *s, const uint64_t *count,
		      uint64_t sum, const char *name, const char *image, FILE *to)
{
	double peak = 0;

	for (size_t i = 0; i < t->slices.nr; i++) {
		double part = share(count[i], t->slices.total[i]);

		peak = part > peak ? part : peak;
	}
	fprintf(to, "%7.2f %7.2f  ", 100 * share(sum, t->slices.sum), 100 * peak);
	print_bar(t, s, count, t->slices.total, peak, 0, to);
	report_print_clean(to, name);
	if (image && *image) {
		fputs("  ", to);
		report_print_clean(to, image);
	}
	fputc('\n', to);
}

static void print_sum(const struct timeline *t, const struct signs *s, FILE *to)
{
	double seconds = report_seconds(t->a, NULL, t->event);
	uint64_t most = 0;

	for (size_t i = 0; i < t->slices.nr; i++)
		most = t->slices.total[i] > most ? t->slices.total[i] : most;
	fprintf(to, "%7.2f %7s  ", 100.0, "");
	print_bar(t, s, t->slices.total, NULL, most ? 1 : 0, most, to);
	fprintf(to, "total: %" PRIu64 " samples, ", t->slices.sum);
	if (seconds > 0)
		fprintf(to, "%.2f seconds, ", (double)t->slices.sum * seconds);
	fprintf(to, "at most %" PRIu64 " in a slice\n", most);
}

/* Times of the slices, one above its column each TICK. */
static void print_axis(const struct timeline *t, FILE *to)
{
	fputs(share_head, to);
	for (size_t i = 0; i < t->slices.nr; i += TICK) {
		time_t at = (time_t)(t->slices.begin + (int64_t)i * t->slices.span);
		bool last = i + TICK >= t->slices.nr;
		char text[16] = "";
		struct tm tm;

		if (localtime_r(&at, &tm))
			strftime(text, sizeof(text), t->slices.span >= DAY ? "%m-%d" : "%H:%M",
				 &tm);
		fprintf(to, "%-*s", last ? (int)(t->slices.nr - i) : TICK, text);
	}
	fprintf(to, "  %s\n", t->by);
}

int timeline_print(const struct timeline *t, bool utf8, FILE *to)
{
	const struct signs *s = utf8 ? &blocks : &ascii;
	uint64_t sum, *others = timeline_others(t, &sum);

	if (!others)
		return -ENOMEM;
	print_axis(t, to);
	for (size_t i = 0; i < t->nr_shown; i++) {
		const struct slices_row *row = &t->slices.rows[t->rows[i].number];

		print_row(t, s, row->count, row->sum, t->rows[i].name, t->rows[i].image, to);
	}
	if (t->nr_shown < t->nr)
		print_row(t, s, others, sum, "others", NULL, to);
	print_sum(t, s, to);
	timeline_print_notes(t, s->unrecorded, to);
	free(others);
	return 0;
}
