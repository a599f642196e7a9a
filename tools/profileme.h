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

void profileme_heads(const struct isample_columns *c, struct table *t);
/* A cell for each column, "-" where the hardware does not tell. */
void profileme_cells(const struct isample_columns *c, const struct told_values *v, struct table *t);
/* {"samples": 12, "metrics": [{"metric": "count", "told": 12, "value": 12}, …]} */
struct json_object *profileme_json(const struct isample_columns *c, const struct told_values *v);

#endif
