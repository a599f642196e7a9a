/* SPDX-License-Identifier: BSD-2-Clause */
/* The profile of an earlier run, as dcpifdo -json prints it: how often each branch went where. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"

/* The whole document, which JSON-C keeps. */
struct calc_layout {
	json_object *document;
};

static json_object *member(json_object *of, const char *name)
{
	json_object *value = NULL;

	if (json_object_is_type(of, json_type_object))
		json_object_object_get_ex(of, name, &value);
	return value;
}

static json_object *list(json_object *of, const char *name)
{
	json_object *value = member(of, name);

	return json_object_is_type(value, json_type_array) ? value : NULL;
}

static size_t length(json_object *array)
{
	return array ? json_object_array_length(array) : 0;
}

static uint64_t number(json_object *of, const char *name)
{
	return json_object_get_uint64(member(of, name));
}

int calc_layout_read(const char *path, struct calc_layout **out)
{
	struct calc_layout *l;
	json_object *document = json_object_from_file(path);

	*out = NULL;
	if (!list(document, "procedures")) {
		json_object_put(document);
		return -EINVAL;
	}
	l = malloc(sizeof(*l));
	if (!l) {
		json_object_put(document);
		return -ENOMEM;
	}
	l->document = document;
	*out = l;
	return 0;
}

void calc_layout_free(struct calc_layout *l)
{
	if (!l)
		return;
	json_object_put(l->document);
	free(l);
}

struct json_object *calc_layout_find(const struct calc_layout *l, const char *name, size_t size)
{
	json_object *all = list(l->document, "procedures");

	for (size_t i = 0; i < length(all); i++) {
		json_object *p = json_object_array_get_idx(all, i);
		const char *its = json_object_get_string(member(p, "procedure"));

		if (its && strcmp(its, name) == 0 && number(p, "size") == size)
			return p;
	}
	return NULL;
}

uint64_t calc_layout_count(struct json_object *procedure, uint64_t from, uint64_t end, uint64_t to)
{
	json_object *edges = list(procedure, "edges");
	uint64_t sum = 0;

	for (size_t i = 0; i < length(edges); i++) {
		json_object *e = json_object_array_get_idx(edges, i);

		if (!json_object_object_get_ex(e, "to_procedure", NULL) && number(e, "to") == to &&
		    number(e, "from") - from < end - from)
			sum += number(e, "count");
	}
	return sum;
}
