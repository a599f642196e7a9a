/* SPDX-License-Identifier: BSD-2-Clause */
/* The columns of instruction samples, as text and as JSON. */
#include <inttypes.h>
#include <math.h>

#include "fleet.h"
#include "profileme.h"

int profileme_begin(struct select *s, const char *text, struct isample_columns *c,
		    struct base_err *err)
{
	int r;

	if (!text)
		return 0;
	r = isample_columns_parse(c, text, err);
	if (r >= 0 && s->callers.nr)
		r = base_fail(err, -DCPI_EUSAGE, "-pm and -caller exclude each other");
	if (r >= 0)
		r = select_refuse_workloads(s, "instruction samples", err);
	if (r >= 0)
		r = fleet_refuse(s, err);
	s->whole = true;
	return r;
}

void profileme_heads(const struct isample_columns *c, struct table *t)
{
	for (size_t i = 0; i < c->nr; i++)
		table_column(t, false, c->v[i].text);
}

void profileme_cells(const struct isample_columns *c, const struct told_values *v, struct table *t)
{
	for (size_t i = 0; i < c->nr; i++) {
		double value = v ? told_value(c, v, i) : 0;

		if (!v)
			table_cell(t, "%s", "");
		else if (isnan(value))
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
