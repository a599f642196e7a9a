/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpicoverage: the source lines of an image's procedures that no sample shows to have run. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "report.h"
#include "tools.h"

static struct select sel;
static bool one_line, no_header;

static const struct base_opt options[] = {
	SELECT_OPTIONS(sel),
	{ "one_line", BASE_OPT_FLAG, &one_line, NULL,
	  "Do not break lines after 132 columns: one line for each procedure and file.", 0, 0 },
	{ "no_header", BASE_OPT_FLAG, &no_header, NULL, "Leave out the lines above the table.", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpicoverage",
	.summary = "list the source lines that no sample shows to have run",
	.operands = "IMAGE [PROCEDURE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpicoverage -epoch all a.out",
			  "What a test run of a program left out, perhaps." },
			{ "dcpicoverage hello fib", "A routine that a JIT made." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = -1,
};

enum { WIDTH = 132, NAME_WIDTH = 30, FILE_WIDTH = 24 };

struct report {
	struct analysis *a;
	struct analysis_image **images; /* the images that the user selected */
	size_t nr_images;
	uint64_t *total;	   /* theirs, by event */
	struct analysis_image *ai; /* being listed */
	struct image *img;
	uint64_t *sampled;
	size_t nr_sampled;
	struct json_object *procedures; /* JSON */
	int nr_what;
	char **what;
	bool *used; /* by operand: whether it was found */
};

/* ---- text ------------------------------------------------------------------------------------ */

/* Text that goes on below itself where it would pass the last column. */
struct cell {
	size_t from, at; /* columns */
};

static int by_vaddr(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

/* The addresses with chosen samples, ascending. The caller frees *@out. 0 or -ENOMEM. */
static int sampled_addresses(const struct analysis_image *ai, const struct image *img,
			     uint64_t **out, size_t *nr)
{
	const struct profdb_profile *p = ai->profile;
	uint64_t *v = calloc(profdb_profile_nr_entries(p) + 1, sizeof(*v));

	*nr = 0;
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < profdb_profile_nr_entries(p); i++) {
		const struct profdb_entry *e = profdb_profile_entry(p, i);

		if (analysis_entry_wanted(ai, e) && image_vaddr(img, e->off, &v[*nr]) >= 0)
			++*nr;
	}
	qsort(v, *nr, sizeof(*v), by_vaddr);
	*out = v;
	return 0;
}

static void put_word(struct cell *c, const char *word, bool more)
{
	size_t len = strlen(word) + more;

	if (!one_line && c->at > c->from && c->at + 1 + len > WIDTH) {
		printf("\n%*s", (int)c->from, "");
		c->at = c->from;
	}
	c->at += (size_t)printf("%s%s%s", c->at > c->from ? " " : "", word, more ? "," : "");
}

/* Lines that follow on each other, or have no code between them. */
static size_t range_end(const struct coverage *c, size_t from)
{
	size_t i = from;

	while (i + 1 < c->nr && c->v[i + 1].file == c->v[from].file && !c->v[i + 1].ran &&
	       !c->v[from].ran)
		i++;
	return i;
}

/* The next line of @file at or behind index @i that was missed, or c->nr. */
static size_t next_missed(const struct coverage *c, uint32_t file, size_t i)
{
	while (i < c->nr && (c->v[i].file != file || !c->v[i].missed))
		i++;
	return i;
}

static void put_lines(const struct coverage *c, uint32_t file, struct cell *cell)
{
	for (size_t i = next_missed(c, file, 0), end; i < c->nr;) {
		size_t next;
		char text[40];

		end = range_end(c, i);
		next = next_missed(c, file, end + 1);
		if (c->v[i].ran)
			snprintf(text, sizeof(text), "%u(P)", c->v[i].line);
		else if (end > i)
			snprintf(text, sizeof(text), "%u-%u", c->v[i].line, c->v[end].line);
		else
			snprintf(text, sizeof(text), "%u", c->v[i].line);
		put_word(cell, text, next < c->nr);
		i = next;
	}
}

static const char *verdict(const struct coverage *c)
{
	size_t ran = 0, missed = 0;

	if (c->no_code)
		return "No code found";
	if (!c->nr)
		return "No source file found";
	for (size_t i = 0; i < c->nr; i++) {
		ran += c->v[i].ran;
		missed += c->v[i].missed;
	}
	return !ran ? "No lines executed" : !missed ? "All lines executed" : NULL;
}

static void put_names(const char *procedure, const char *file, struct cell *cell)
{
	char *name = strdup(procedure), *path = strdup(file);

	cell->from = cell->at =
		(size_t)printf("%-*s  %-*s  ", NAME_WIDTH, name ? table_clean(name) : "?",
			       FILE_WIDTH, path ? table_clean(path) : "?");
	if (cell->from > WIDTH / 2 && !one_line) {
		cell->from = cell->at = NAME_WIDTH + FILE_WIDTH + 4;
		printf("\n%*s", (int)cell->from, "");
	}
	free(name);
	free(path);
}

static void put_procedure(const char *name, const struct coverage *c)
{
	const char *all = verdict(c);
	struct cell cell;

	if (all) {
		put_names(name, c->nr ? base_path_name(c->files[0]) : "", &cell);
		puts(all);
		return;
	}
	for (uint32_t file = 0; file < c->nr_files; file++) {
		if (next_missed(c, file, 0) == c->nr)
			continue;
		put_names(name, base_path_name(c->files[file]), &cell);
		put_lines(c, file, &cell);
		putchar('\n');
	}
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_file(const struct coverage *c, uint32_t file)
{
	struct json_object *o = json_object_new_object();
	struct json_object *ran = json_object_new_array(), *partly = json_object_new_array(),
			   *missed = json_object_new_array();

	for (size_t i = 0; i < c->nr; i++) {
		const struct coverage_line *l = &c->v[i];

		if (l->file == file)
			json_object_array_add(!l->ran	  ? missed
					      : l->missed ? partly
							  : ran,
					      json_object_new_int64(l->line));
	}
	json_object_object_add(o, "file", report_json_text(c->files[file]));
	json_object_object_add(o, "executed", ran);
	json_object_object_add(o, "partly_executed", partly);
	json_object_object_add(o, "not_executed", missed);
	return o;
}

static void json_procedure(struct report *x, const struct image_symbol *s, const struct coverage *c)
{
	struct json_object *o = json_object_new_object(), *files = json_object_new_array();

	for (uint32_t i = 0; i < c->nr_files; i++)
		json_object_array_add(files, json_file(c, i));
	report_json_procedure(o, s->name);
	json_object_object_add(o, "address", report_json_hex(s->vaddr));
	report_json_image(o, x->ai);
	json_object_object_add(o, "executed", json_object_new_boolean(c->any_ran));
	json_object_object_add(o, "code", json_object_new_boolean(!c->no_code));
	json_object_object_add(o, "files", files);
	json_object_array_add(x->procedures, o);
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool is_wanted(struct report *x, const struct image_symbol *s)
{
	bool yes = x->nr_what == 0;

	for (int i = 0; i < x->nr_what; i++)
		if (demangle_is(s->name, x->what[i]))
			yes = x->used[i] = true;
	/* The linker's stubs, "[.plt]" and "f@plt"; a JIT has routines "[eval]". */
	return yes && (*s->name != '[' || image_process(x->img)) && !strstr(s->name, "@plt");
}

static int one_procedure(struct report *x, const struct image_symbol *s, struct base_err *err)
{
	struct coverage c = { 0 };
	int r = coverage_make(x->img, s, x->sampled, x->nr_sampled, &c, err);

	if (r >= 0 && sel.json)
		json_procedure(x, s, &c);
	else if (r >= 0)
		put_procedure(demangle_shown(s->name), &c);
	coverage_release(&c);
	return r;
}

static void print_head(const struct report *x)
{
	const struct base_id *id = image_id(x->img);
	char text[BASE_ID_TEXT_LEN], *name = strdup(x->ai->name);

	printf("image      %s", name ? table_clean(name) : "?");
	if (id->len)
		printf(" (build-id %s)", base_id_text(id, text));
	printf("\n\n%-*s  %-*s  %s\n", NAME_WIDTH, "procedure", FILE_WIDTH, "file",
	       "lines not executed");
	free(name);
}

static int one_image(struct report *x, struct base_err *err)
{
	int r = analysis_image_open(x->a, x->ai, &x->img, err);

	if (r < 0)
		x->ai->state = ANALYSIS_UNOPENED; /* @err tells it: once is enough */
	if (r >= 0 && (r = sampled_addresses(x->ai, x->img, &x->sampled, &x->nr_sampled)) < 0)
		base_fail_errno(err, r, "cannot sum samples");
	if (r >= 0 && !sel.json && !no_header)
		print_head(x);
	for (size_t i = 0; r >= 0 && i < image_nr_symbols(x->img); i++)
		if (is_wanted(x, image_symbol(x->img, i)))
			r = one_procedure(x, image_symbol(x->img, i), err);
	free(x->sampled);
	x->sampled = NULL;
	image_close(x->img);
	x->img = NULL;
	return r;
}

/* Which images are meant, and what samples they have. */
static int choose_images(struct report *x, const char *image, struct base_err *err)
{
	x->images = calloc(x->a->nr_images + 1, sizeof(struct analysis_image *));
	x->total = calloc(x->a->nr_events + 1, sizeof(*x->total));
	if (!x->images || !x->total)
		return base_fail_errno(err, -ENOMEM, "cannot sum samples");
	for (size_t i = 0; i < x->a->nr_images; i++) {
		struct analysis_image *ai = x->a->images[i];

		if (ai->kind == PROFDB_NAMED || !analysis_image_match(x->a, ai, image))
			continue;
		analysis_image_ask(x->a, ai);
		x->images[x->nr_images++] = ai;
		for (size_t e = 0; e < x->a->nr_events; e++)
			x->total[e] += ai->count[e];
	}
	return x->nr_images ? 0 : analysis_image_unknown(x->a, image, err);
}

static int all_images(struct report *x, const char *image, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < x->nr_images; i++) {
		x->ai = x->images[i];
		if (i && !sel.json && !no_header)
			putchar('\n');
		r = one_image(x, err);
	}
	for (int i = 0; r >= 0 && i < x->nr_what; i++)
		if (!x->used[i])
			return base_fail(err, -DCPI_ENOSYMBOL, "no procedure '%s' in image '%s'",
					 x->what[i], image);
	return r;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run(int nr, char **what, struct base_err *err)
{
	struct report x = { .nr_what = nr - 1, .what = what + 1 };
	struct json_object *root;
	int code = BASE_EXIT_OK, r;

	x.used = calloc((size_t)nr, sizeof(*x.used));
	x.procedures = sel.json ? json_object_new_array() : NULL;
	r = x.used ? report_open(&sel, &x.a, err) : base_fail_errno(err, -ENOMEM, "cannot start");
	if (r >= 0)
		r = choose_images(&x, what[0], err);
	if (r >= 0 && !sel.json && !no_header) {
		report_head(x.a, stdout);
		report_events(x.a, x.total, stdout);
	}
	if (r >= 0)
		r = all_images(&x, what[0], err);
	if (r >= 0 && sel.json) {
		root = report_json("dcpicoverage/1", x.a, x.total);
		json_object_object_add(root, "procedures", x.procedures);
		x.procedures = NULL;
		r = report_json_print(root, x.a, stdout);
	}
	if (x.a)
		code = report_problems(cmd.name, x.a, stderr);
	json_object_put(x.procedures);
	free(x.used);
	free(x.images);
	free(x.total);
	analysis_close(x.a);
	return r < 0 ? r : code;
}

static int dcpicoverage_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}

const struct tool dcpicoverage_tool = { .cmd = &cmd, .main = dcpicoverage_main };
