/* SPDX-License-Identifier: BSD-2-Clause */
/* What dcpilist shows, as text (dcpilist.c) or JSON (list_json.c): a listing by instruction and by
 * source line. */
#ifndef DCPI_LIST_H
#define DCPI_LIST_H

#include "listing_freq.h"
#include "report.h"

struct list_source {
	struct image_source *text; /* NULL: not found */
	size_t indent;		   /* columns that all lines of the procedure begin with */
};

struct list {
	struct analysis *a;
	struct analysis_listing *l;
	struct list_source *sources;	/* by the listing's file index */
	struct analysis_unit **by_line; /* units with a line, by file and line, then address */
	size_t nr_by_line;
	struct listing_freq freq; /* v is NULL where it is not shown */
	struct table t;
};

/*
 * Source text for a cell, without the first @skip columns, tabs as blanks: their width would depend
 * on the columns before. Returns false past the end of the source.
 */
bool list_source_text(const struct image_source *src, unsigned int line, size_t skip, char *text,
		      size_t text_len);
/* Sum of a line's units by event (ANALYSIS_NR_EVENTS); returns the index behind them. */
size_t list_sum_line(const struct list *x, size_t from, uint64_t *sum);

/* What an event's units are called behind a cost: "1.0cy". */
const char *list_unit_name(const struct list *x);
/* Is it more than a hint? And is it enough to say what one run costs? @f may be NULL. */
bool list_is_known(const struct listing_freq_unit *f);
bool list_is_costed(const struct list *x, const struct listing_freq_unit *f);
/* Of several instructions: the most often run one's, and what all of them spent. */
void list_join_freq(const struct list *x, const struct analysis_unit *u,
		    struct listing_freq_unit *sum);

/* All of it. 0 or negative. */
int list_print_json(const struct list *x, struct base_err *err);

#endif
