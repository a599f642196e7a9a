/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of instruction samples in the tables of several tools (-pm). */
#ifndef DCPI_PROFILEME_H
#define DCPI_PROFILEME_H

#include "report.h"
#include "told.h"

/* clang-format off */
#define PROFILEME_OPTION(to, what)                                                                 \
	{ "pm", BASE_OPT_STRING, &(to), "METRIC[,METRIC]",                                         \
	  what ": [!]BIT[^[!]BIT…][:COUNTER], 'count', or the ratio of two, A/B "                  \
	  "(dcpiprofileme -names).", 0, 0 }
/* clang-format on */

#define PROFILEME_DEFAULT                                                                          \
	"count,retired:inflight/retired,mispredict/branch,load^dcmiss/load,load^llcmiss/load,"     \
	"load:latency/load,load^dtb2miss/load"

/*
 * Columns @text (NULL: none) into @c, for a command whose samples @s chooses: the samples of whole
 * epochs then. -DCPI_EUSAGE, with @err, where @s chooses a part for which they are not kept.
 */
int profileme_begin(struct select *s, const char *text, struct isample_columns *c,
		    struct base_err *err);
void profileme_heads(const struct isample_columns *c, struct table *t);
/* A cell for each column, "-" where the hardware does not tell; @v NULL: empty. */
void profileme_cells(const struct isample_columns *c, const struct told_values *v, struct table *t);
/* {"samples": 12, "metrics": [{"metric": "count", "told": 12, "value": 12}, …]} */
struct json_object *profileme_json(const struct isample_columns *c, const struct told_values *v);

#endif
