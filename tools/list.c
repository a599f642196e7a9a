/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "list.h"

enum { TAB = 4 };

bool list_source_text(const struct image_source *src, unsigned int line, size_t skip, char *text,
		      size_t text_len)
{
	size_t len = 0, at = 0, column = 0;
	const char *from = image_source_line(src, line, &len);

	for (size_t i = 0; from && i < len; i++) {
		size_t to = from[i] == '\t' ? (column / TAB + 1) * TAB : column + 1;

		for (; column < to; column++)
			if ((column >= skip || from[i] > ' ') && at + 1 < text_len)
				text[at++] = from[i] == '\t' ? ' ' : from[i] ? from[i] : '?';
	}
	text[at] = '\0';
	return from != NULL;
}

size_t list_sum_line(const struct list *x, size_t from, uint64_t *sum)
{
	size_t i = from;

	memset(sum, 0, ANALYSIS_NR_EVENTS * sizeof(*sum));
	for (; i < x->nr_by_line && x->by_line[i]->file == x->by_line[from]->file &&
	       x->by_line[i]->line == x->by_line[from]->line;
	     i++)
		for (size_t e = 0; x->by_line[i]->count && e < x->a->nr_events; e++)
			sum[e] += x->by_line[i]->count[e];
	return i;
}

const char *list_unit_name(const struct list *x)
{
	const char *event = x->a->events[x->freq.cost_event].name;

	return strstr(event, "cycles") ? "cy" : "ns";
}

bool list_is_known(const struct listing_freq_unit *f)
{
	return f && (f->confidence == FREQ_MEDIUM || f->confidence == FREQ_HIGH);
}

bool list_is_costed(const struct list *x, const struct listing_freq_unit *f)
{
	return list_is_known(f) && x->freq.absolute && x->freq.has_cost && f->freq > 0;
}

void list_join_freq(const struct list *x, const struct analysis_unit *u,
		    struct listing_freq_unit *sum)
{
	const struct listing_freq_unit *f;
	double units = sum->units;

	if (!x->freq.v)
		return;
	f = &x->freq.v[u - x->l->units];
	if (f->confidence != FREQ_NONE && (sum->confidence == FREQ_NONE || f->freq > sum->freq))
		*sum = *f;
	sum->units = units + f->units;
}
