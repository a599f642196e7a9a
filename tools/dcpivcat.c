/* SPDX-License-Identifier: BSD-2-Clause */
/* Print value profiles: files, or those that a database has of an image. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "report.h"
#include "tools.h"
#include "valued.h"

static struct select sel;
static const char *profiler, *image;

static const struct base_opt options[] = {
	SELECT_OPTIONS_DB(sel),
	{ "image", BASE_OPT_STRING, &image, "IMAGE",
	  "Instead of files: what the database has of this image, all epochs that are meant added "
	  "up.",
	  0, 0 },
	{ "profiler", BASE_OPT_STRING, &profiler, "NAME",
	  "With -image: of this value profiler (default: values).", 0, 0 },
	{ "json", BASE_OPT_FLAG, &sel.json, NULL, "Print JSON (dcpijson(5)).", 0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpivcat",
	.summary = "print value profiles",
	.operands = "FILE … | -image IMAGE",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpivcat $DCPIDB/202611200754/box/*.values",
			  "All that was seen by 'dcpid -vprof' in an epoch, as files have it." },
			{ "dcpivcat -image hello",
			  "What was seen in the code that the facility 'hello' made." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

/* ---- text ------------------------------------------------------------------------------------ */

static void print_word(const char *word, const char *value)
{
	printf("%-10s ", word);
	report_print_clean(stdout, value);
	putchar('\n');
}

static void print_header(const char *name, const struct profdb_values *v)
{
	const struct profdb_profile *p = profdb_values_header(v);
	const char *word, *value;
	char id[BASE_ID_TEXT_LEN];

	print_word("name", base_path_name(name));
	print_word("profiler", profdb_values_profiler(v));
	print_word("image",
		   profdb_profile_image(p)->len ? base_id_text(profdb_profile_image(p), id) : "0");
	for (size_t i = 0; profdb_profile_path(p, i); i++)
		print_word("path", profdb_profile_path(p, i));
	for (size_t i = 0; (value = profdb_profile_line(p, i, &word)); i++)
		print_word(word, value);
	if (profdb_profile_kind(p) != PROFDB_FILE)
		print_word("kind", profdb_kind_name(profdb_profile_kind(p)));
	if (profdb_values_lost(v))
		printf("%-10s %" PRIu64 "\n", "lost", profdb_values_lost(v));
}

/* Print the images by which contexts are named. */
static void print_images(const struct profdb_values *v)
{
	struct base_id id;
	char text[BASE_ID_TEXT_LEN];
	const char *path;

	for (size_t i = 1; (path = profdb_values_image(v, i, &id)); i++) {
		printf("%-10s %zu %s ", "context", i, id.len ? base_id_text(&id, text) : "0");
		report_print_clean(stdout, path);
		putchar('\n');
	}
}

static void print_context(const struct profdb_context *c)
{
	if (c->image)
		printf(" %" PRIu32 "+0x%" PRIx64, c->image, c->off);
	else
		fputs(" -", stdout);
}

static void print_rows(const struct profdb_values *v)
{
	for (size_t i = 0; i < profdb_values_nr(v); i++) {
		const struct profdb_hotlist *h = profdb_values_at(v, i);

		printf("0x%012" PRIx64, h->off);
		print_context(&h->context[0]);
		print_context(&h->context[1]);
		printf(" %" PRIu64 " %" PRIu64 " %" PRIu32, h->vtot, h->thld, h->nv);
		for (uint32_t k = 0; k < h->nv; k++)
			printf(" 0x%" PRIx64 ":%" PRIu64 ":%" PRIu64, h->v[k].value,
			       h->v[k].concise, h->v[k].counting);
		putchar('\n');
	}
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_images(const struct profdb_values *v)
{
	struct json_object *list = json_object_new_array();
	char text[BASE_ID_TEXT_LEN];
	struct base_id id;
	const char *path;

	for (size_t i = 1; (path = profdb_values_image(v, i, &id)); i++) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "number", json_object_new_uint64(i));
		json_object_object_add(o, "image",
				       id.len ? json_object_new_string(base_id_text(&id, text))
					      : NULL);
		json_object_object_add(o, "path", report_json_text(path));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *json_context(const struct profdb_context *c)
{
	struct json_object *o = NULL;

	if (c->image) {
		o = json_object_new_object();
		json_object_object_add(o, "number", json_object_new_uint64(c->image));
		json_object_object_add(o, "offset", json_object_new_uint64(c->off));
	}
	return o;
}

static struct json_object *json_row(const struct profdb_hotlist *h)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	struct json_object *contexts = json_object_new_array();

	for (int i = 0; i < 2; i++)
		json_object_array_add(contexts, json_context(&h->context[i]));
	for (uint32_t i = 0; i < h->nv; i++) {
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "value", report_json_hex(h->v[i].value));
		json_object_object_add(one, "concise", json_object_new_uint64(h->v[i].concise));
		json_object_object_add(one, "counting", json_object_new_uint64(h->v[i].counting));
		json_object_array_add(list, one);
	}
	json_object_object_add(o, "offset", json_object_new_uint64(h->off));
	json_object_object_add(o, "contexts", contexts);
	json_object_object_add(o, "vtot", json_object_new_uint64(h->vtot));
	json_object_object_add(o, "thld", json_object_new_uint64(h->thld));
	json_object_object_add(o, "values", list);
	return o;
}

static struct json_object *json_values(const char *name, const struct profdb_values *v)
{
	struct json_object *o = json_object_new_object(), *rows = json_object_new_array();
	const struct profdb_profile *p = profdb_values_header(v);
	const struct base_id *id = profdb_profile_image(p);
	char text[BASE_ID_TEXT_LEN];

	for (size_t i = 0; i < profdb_values_nr(v); i++)
		json_object_array_add(rows, json_row(profdb_values_at(v, i)));
	json_object_object_add(o, "name", report_json_text(name));
	json_object_object_add(o, "profiler", report_json_text(profdb_values_profiler(v)));
	json_object_object_add(o, "kind",
			       json_object_new_string(profdb_kind_name(profdb_profile_kind(p))));
	json_object_object_add(o, "image",
			       id->len ? json_object_new_string(base_id_text(id, text)) : NULL);
	json_object_object_add(o, "path", report_json_text(profdb_profile_path(p, 0)));
	json_object_object_add(o, "lost", json_object_new_uint64(profdb_values_lost(v)));
	json_object_object_add(o, "contexts", json_images(v));
	json_object_object_add(o, "rows", rows);
	return o;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* @list: for JSON, else NULL. */
static void show(const char *name, const struct profdb_values *v, struct json_object *list,
		 bool *printed)
{
	if (list) {
		json_object_array_add(list, json_values(name, v));
		return;
	}
	if (*printed)
		putchar('\n');
	*printed = true;
	print_header(name, v);
	print_images(v);
	print_rows(v);
}

static int show_files(int nr, char **files, struct json_object *list)
{
	bool printed = false;
	int code = BASE_EXIT_OK;

	for (int i = 0; i < nr; i++) {
		struct profdb_values *v = NULL;
		struct base_err err = { 0 };

		if (profdb_values_read(files[i], &v, &err) >= 0) {
			show(files[i], v, list, &printed);
		} else {
			base_err_print(&err, cmd.name, stderr);
			code = BASE_EXIT_FAILED;
		}
		profdb_values_free(v);
	}
	return code;
}

static int show_image(struct json_object *list, struct base_err *err)
{
	struct analysis_image **images = NULL;
	struct analysis *a = NULL;
	struct hotlists lists = { 0 };
	bool printed = false;
	size_t nr_images = 0;
	int r, code = BASE_EXIT_OK;

	sel.whole = true;
	r = report_open(&sel, &a, err);
	if (r >= 0)
		r = choose_images(a, 1, (char *[]){ (char *)(uintptr_t)image }, &images, &nr_images,
				  err);
	if (r >= 0)
		r = hotlists_open(a, profiler ? profiler : PROFDB_VALUES, &lists, err);
	for (size_t i = 0; r >= 0 && i < nr_images; i++)
		if (hotlists_of(&lists, images[i]))
			show(images[i]->name, hotlists_of(&lists, images[i]), list, &printed);
	valued_warn(cmd.name, &lists, stderr);
	if (a)
		code = report_bad(cmd.name, a, stderr);
	hotlists_release(&lists);
	free(images);
	analysis_close(a);
	return r < 0 ? r : code;
}

static int run(int nr, char **files, struct base_err *err)
{
	struct json_object *list = sel.json ? json_object_new_array() : NULL, *root;
	int r = image ? show_image(list, err) : show_files(nr, files, list), put;

	if (!list || r < 0) {
		json_object_put(list);
		return r;
	}
	root = json_object_new_object();
	json_object_object_add(root, "schema", json_object_new_string("dcpivcat/1"));
	json_object_object_add(root, "profiles", list);
	put = report_json_put(root, stdout);
	return put < 0 ? base_fail_errno(err, put, "cannot print") : r;
}

/* The option, without its dash, that selects in a database what -image prints. */
static const char *choice(void)
{
	return profiler	      ? "profiler"
	       : sel.db	      ? "db"
	       : sel.epoch    ? "epoch"
	       : sel.platform ? "platform"
			      : NULL;
}

static int check(int nr, struct base_err *err)
{
	if (image && nr)
		return base_fail(err, -DCPI_EUSAGE, "-image stands instead of files");
	if (image)
		return select_check(&sel, err);
	if (!nr)
		return base_opt_usage(&cmd, "no file given", err);
	return choice() ? base_fail(err, -DCPI_EUSAGE, "-%s goes with -image", choice()) : 0;
}

static int dcpivcat_main(int argc, char **argv)
{
	return report_command(&cmd, check, run, argc, argv);
}

const struct tool dcpivcat_tool = { .cmd = &cmd, .main = dcpivcat_main };
