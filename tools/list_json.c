/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of dcpilist are printed as JSON. */
#include <stdio.h>

#include "list.h"
#include "procedures.h"

static struct json_object *json_place(const struct list *x, const struct analysis_unit *u,
				      struct json_object *o)
{
	json_object_object_add(o, "file", u->line ? report_json_text(x->l->files[u->file]) : NULL);
	json_object_object_add(o, "line", u->line ? json_object_new_int64(u->line) : NULL);
	return o;
}

/* Innermost first: what is inlined, and where into. */
static struct json_object *json_inlined(const struct list *x, const struct analysis_unit *u)
{
	const struct analysis_stack *s = u->stack ? &x->l->stacks[u->stack - 1] : NULL;
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; s && i + 1 < s->nr; i++) {
		const struct image_line *call = &s->v[i + 1].at;
		struct json_object *o = json_object_new_object();

		report_json_procedure(o, s->v[i].name);
		json_object_object_add(o, "at_file",
				       call->line ? report_json_text(call->file) : NULL);
		json_object_object_add(o, "at_line",
				       call->line ? json_object_new_int64(call->line) : NULL);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *json_number(double value)
{
	char text[64];

	snprintf(text, sizeof(text), "%.6g", value);
	return json_object_new_double_s(value, text);
}

static void json_freq(const struct list *x, const struct listing_freq_unit *f,
		      struct json_object *o)
{
	bool known = f->confidence != FREQ_NONE;

	json_object_object_add(o, "cpi",
			       list_is_costed(x, f) ? json_number(f->units / f->freq) : NULL);
	json_object_object_add(o, "frequency", known ? json_number(f->freq) : NULL);
	json_object_object_add(o, "confidence",
			       json_object_new_string(freq_confidence_text(f->confidence)));
}

static void json_values(struct list *x, const struct analysis_unit *u, struct json_object *o)
{
	struct valued_insn insn = list_insn(x, u);

	json_object_object_add(o, "values",
			       valued_json(&x->valued, image_machine(x->l->img), &insn,
					   &x->values.v[u - x->l->units]));
}

static void json_told(const struct list *x, const struct told_values *told, struct json_object *o)
{
	if (x->columns.nr)
		json_object_object_add(o, "instruction_samples", profileme_json(&x->columns, told));
}

static struct json_object *json_unit(struct list *x, const struct analysis_unit *u)
{
	static const char *const kinds[] = {
		[ANALYSIS_UNIT_INSN] = "instruction",
		[ANALYSIS_UNIT_BYTES] = "address",
		[ANALYSIS_UNIT_STRAY] = "inside",
	};
	struct json_object *o = json_object_new_object();
	uint64_t off = u->vaddr - x->l->symbol.vaddr;
	struct told_values told = { 0 };
	char text[512], bytes[64] = "";

	for (uint32_t i = 0; i < u->len && i < 16; i++)
		snprintf(bytes + 2 * i, sizeof(bytes) - 2 * i, "%02x", x->l->code[off + i]);
	analysis_unit_text(x->l, u, text, sizeof(text));
	json_object_object_add(o, "kind", json_object_new_string(kinds[u->kind]));
	json_object_object_add(o, "address", report_json_hex(u->vaddr));
	json_object_object_add(o, "offset", json_object_new_uint64(off));
	json_object_object_add(o, "bytes", json_object_new_string(bytes));
	json_object_object_add(o, "text", report_json_text(text));
	json_place(x, u, o);
	json_object_object_add(o, "inlined", json_inlined(x, u));
	json_object_object_add(o, "samples", report_json_counts(x->a, u->count));
	if (x->freq.v)
		json_freq(x, &x->freq.v[u - x->l->units], o);
	if (x->values.v)
		json_values(x, u, o);
	list_tell(x, u, &told);
	json_told(x, &told, o);
	return o;
}

static struct json_object *json_line(const struct list *x, const struct analysis_unit *u,
				     const uint64_t *sum, const struct listing_freq_unit *freq,
				     const struct told_values *told)
{
	const struct image_source *src = x->sources[u->file].text;
	struct json_object *o = json_place(x, u, json_object_new_object());
	char text[1024];
	bool found = src && list_source_text(src, u->line, 0, text, sizeof(text));

	json_object_object_add(o, "text", found ? report_json_text(text) : NULL);
	json_object_object_add(o, "samples", report_json_counts(x->a, sum));
	if (x->freq.v)
		json_freq(x, freq, o);
	json_told(x, told, o);
	return o;
}

/* How the numbers are to be read: what the text says above its table. */
static struct json_object *json_freq_head(const struct list *x)
{
	const struct listing_freq *f = &x->freq;
	struct json_object *o;

	if (!f->v)
		return NULL;
	o = json_object_new_object();
	json_object_object_add(o, "from", report_json_text(x->a->events[f->event].name));
	if (estimate_by_retired(x->a, f->event))
		json_object_object_add(o, "measured", json_object_new_boolean(true));
	json_object_object_add(o, "executions", json_object_new_boolean(f->absolute));
	if (f->traces)
		json_object_object_add(o, "windows", json_object_new_uint64(f->traces));
	json_object_object_add(o, "cpi_unit",
			       f->has_cost ? json_object_new_string(list_unit_name(x)) : NULL);
	return o;
}

struct json_object *list_json(struct list *x)
{
	struct json_object *root = report_json("dcpilist/1", x->a, x->l->total);
	struct json_object *units = json_object_new_array(), *lines = json_object_new_array();
	const struct base_id *id = image_id(x->l->img);
	uint64_t sum[ANALYSIS_NR_EVENTS];
	char text[BASE_ID_TEXT_LEN];

	for (size_t i = 0; i < x->l->nr_units; i++)
		json_object_array_add(units, json_unit(x, &x->l->units[i]));
	for (size_t i = 0, next; i < x->nr_by_line; i = next) {
		struct listing_freq_unit freq = { 0 };
		struct told_values told = { 0 };

		next = list_sum_line(x, i, sum);
		for (size_t k = i; k < next; k++) {
			list_join_freq(x, x->by_line[k], &freq);
			list_tell(x, x->by_line[k], &told);
		}
		json_object_array_add(lines, json_line(x, x->by_line[i], sum, &freq, &told));
	}
	report_json_procedure(root, x->l->symbol.name);
	json_object_object_add(root, "address", report_json_hex(x->l->symbol.vaddr));
	json_object_object_add(root, "length", json_object_new_uint64(x->l->symbol.len));
	json_object_object_add(root, "image", report_json_text(x->l->ai->name));
	json_object_object_add(root, "places", json_object_new_uint64(x->l->nr_places));
	json_object_object_add(root, "kind",
			       json_object_new_string(profdb_kind_name(x->l->ai->kind)));
	json_object_object_add(root, "build_id",
			       id->len ? json_object_new_string(base_id_text(id, text)) : NULL);
	json_object_object_add(root, "estimate", json_freq_head(x));
	if (x->values.v)
		json_object_object_add(root, "values",
				       valued_head_json(&x->valued, x->values.total));
	json_object_object_add(root, "instructions", units);
	json_object_object_add(root, "lines", lines);
	json_object_object_add(root, "total", report_json_counts(x->a, x->l->total));
	return root;
}
