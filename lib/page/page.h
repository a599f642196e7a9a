/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report as one page of HTML, which needs nothing else: the samples of a database as a compact
 * model in JSON, and the style and the script that show it. Every text from outside is inert there:
 * it is data for the script, which makes text of it and never markup.
 */
#ifndef DCPI_PAGE_H
#define DCPI_PAGE_H

#include "samples.h"
#include "workload.h"

struct page_options {
	size_t event; /* the event that decides what is hot */
	double keep;  /* percent of its samples whose procedures have their instructions */
	size_t size;  /* bytes of the model, about; what is left out is told */
	bool checked; /* call paths are compared with the code of their callers */
	/* Samples to compare with, and their event; or NULL. */
	struct analysis *before;
	size_t before_event;
	/* Whose the samples of the first analysis are, with their minutes (NULL: not known), and
	 * the filter that has chosen them. */
	const struct profdb_workloads *workloads;
	const struct workload_filter *filter;
};

/*
 * Appends the model of @a to @to. What the database does not have, such as call paths, is told in
 * the model. 0 or negative with @err: -ENOMEM and what else prevents any report.
 */
int page_model(struct analysis *a, const struct page_options *o, struct base_buf *to,
	       struct base_err *err);
/* Appends the page that shows a model. 0 or -ENOMEM. */
int page_html(const struct base_buf *model, struct base_buf *to);

#endif
