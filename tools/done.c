/* SPDX-License-Identifier: BSD-2-Clause */
/* The last line of a command says what it wrote, as text or JSON. */
#include "done.h"

#include "report.h"

struct json_object *done_json(const char *schema)
{
	struct json_object *root = json_object_new_object();

	json_object_object_add(root, "schema", json_object_new_string(schema));
	json_object_object_add(root, "files", json_object_new_array());
	return root;
}

void done_file(struct json_object *root, const char *path)
{
	if (path)
		json_object_array_add(json_object_object_get(root, "files"),
				      report_json_text(path));
}

static uint64_t executed(const struct exact_image *x)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < x->nr_counts; i++)
		sum += x->counts[i].count;
	return sum;
}

static struct json_object *json_image(const struct exact_image *x)
{
	struct json_object *o = json_object_new_object();
	char id[BASE_ID_TEXT_LEN];

	json_object_object_add(o, "image", report_json_text(x->paths[0]));
	json_object_object_add(o, "build_id",
			       x->id.len ? json_object_new_string(base_id_text(&x->id, id)) : NULL);
	json_object_object_add(o, "process",
			       x->kind == EXACT_PROCESS ? json_object_new_int64(x->pid) : NULL);
	json_object_object_add(o, "instructions", json_object_new_uint64(x->nr_counts));
	json_object_object_add(o, "edges", json_object_new_uint64(x->nr_edges));
	json_object_object_add(o, "procedures", json_object_new_uint64(x->nr_procedures));
	json_object_object_add(o, "executed", json_object_new_uint64(executed(x)));
	return o;
}

void done_exact(struct json_object *root, const struct exact *e)
{
	struct json_object *images = json_object_new_array();
	uint64_t processes = 0, sum = 0;

	for (size_t i = 0; i < e->nr_runs; i++)
		processes += e->runs[i].nr_processes;
	for (size_t i = 0; i < e->nr_images; i++) {
		if (e->images[i]->nr_counts)
			json_object_array_add(images, json_image(e->images[i]));
		sum += executed(e->images[i]);
	}
	json_object_object_add(root, "runs", json_object_new_uint64(e->nr_runs));
	json_object_object_add(root, "processes", json_object_new_uint64(processes));
	json_object_object_add(root, "images", images);
	json_object_object_add(root, "executed", json_object_new_uint64(sum));
}

int done_print(struct json_object *root, struct base_err *err)
{
	int r = report_json_put(root, stdout);

	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}
