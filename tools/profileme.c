/* SPDX-License-Identifier: BSD-2-Clause */
/* The columns of instruction samples, as text and as JSON. */
#include <inttypes.h>
#include <math.h>

#include "profileme.h"

void profileme_heads(const struct isample_columns *c, struct table *t)
{
	for (size_t i = 0; i < c->nr; i++)
		table_column(t, false, c->v[i].text);
}

void profileme_cells(const struct isample_columns *c, const struct told_values *v, struct table *t)
{
	for (size_t i = 0; i < c->nr; i++) {
		double value = told_value(c, v, i);

		if (isnan(value))
			table_cell(t, "-");
		else if (c->v[i].ratio)
			table_cell(t, value < 1000 ? "%.4g" : "%.0f", value);
		else
			table_cell(t, "%" PRIu64, v->of[i].value);
	}
}

static struct json_object *json_value(const struct isample_column *c,
				      const struct isample_value *of,
				      const struct isample_value *by)
{
	struct json_object *o = json_object_new_object();
	double value = isample_column_value(c, of, by);

	json_object_object_add(o, "metric", report_json_text(c->text));
	json_object_object_add(o, "told", json_object_new_uint64(of->told));
	if (isnan(value))
		json_object_object_add(o, "value", NULL);
	else if (c->ratio)
		json_object_object_add(o, "value", report_json_number(value));
	else
		json_object_object_add(o, "value", json_object_new_uint64(of->value));
	return o;
}

struct json_object *profileme_json(const struct isample_columns *c, const struct told_values *v)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	for (size_t i = 0; i < c->nr; i++)
		json_object_array_add(list, json_value(&c->v[i], &v->of[i], &v->by[i]));
	json_object_object_add(o, "samples", json_object_new_uint64(v->count));
	json_object_object_add(o, "metrics", list);
	return o;
}
