/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpisource: put source lines into a flow graph. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph_file.h"
#include "image.h"
#include "tools.h"

static struct base_opt_list files;

static const struct base_opt options[] = {
	{ "src", BASE_OPT_LIST, &files, "FILE",
	  "Take this file where the graph names one with its base name, wherever that was. "
	  "Repeatable.",
	  0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpisource",
	.summary = "put source lines into the flow graphs that dcpicalc and dcpiflow print",
	.operands = "[GRAPH]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpiflow fib hello | dcpisource",
			  "The blocks of a routine, above each the lines that it was made from." },
			{ "dcpisource -src build/parse.c parse.graph",
			  "A source that lies elsewhere than when it was compiled." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = 1,
};

enum { TAB = 4 };

/* ---- sources ------------------------------------------------------------------------------- */

static const char *given_for(const char *name)
{
	for (size_t i = 0; i < files.nr; i++)
		if (strcmp(base_path_name(files.items[i]), base_path_name(name)) == 0)
			return files.items[i];
	return NULL;
}

/* A file that -src names must be there; others may be missing. */
static int open_sources(const struct graph_proc *p, struct image_source **sources,
			struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < p->files.nr && r >= 0; i++) {
		const char *given = given_for(p->files.v[i]);

		if (given)
			r = image_source_open(given, &sources[i], err);
		else
			image_source_open(p->files.v[i], &sources[i], NULL);
	}
	return r;
}

static bool is_named(const struct graph *g, const char *given)
{
	for (size_t i = 0; i < g->nr; i++)
		for (size_t k = 0; k < g->procs[i].files.nr; k++)
			if (strcmp(base_path_name(g->procs[i].files.v[k]), base_path_name(given)) ==
			    0)
				return true;
	return false;
}

static int check_given(const struct graph *g, struct base_err *err)
{
	for (size_t i = 0; i < files.nr; i++) {
		if (is_named(g, files.items[i]))
			continue;
		base_fail(err, -ENOENT, "the graph has no line of a file '%s'",
			  base_path_name(files.items[i]));
		if (g->nr && g->procs[0].files.nr)
			base_hint(err, "it has lines of '%s'", g->procs[0].files.v[0]);
		return -ENOENT;
	}
	return 0;
}

/* ---- lines --------------------------------------------------------------------------------- */

struct place {
	uint32_t file;
	unsigned int line;
};

static int by_place(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return (a->line > b->line) - (a->line < b->line);
}

static int add_line(const struct graph_proc *p, struct graph_block *b, const struct place *at,
		    const char *from, size_t len)
{
	size_t column = 0, n = 0;
	char text[512];

	for (size_t i = 0; i < len && n + TAB < sizeof(text); i++) {
		size_t to = from[i] == '\t' ? (column / TAB + 1) * TAB : column + 1;

		for (; column < to; column++)
			text[n++] = from[i] == '\t' || !from[i] ? ' ' : from[i];
	}
	text[n] = '\0';
	return graph_text_add(&b->above.source, "%s:%u  %s", base_path_name(p->files.v[at->file]),
			      at->line, text);
}

/* Each line once, in the order of files and lines: optimized code goes to and fro between them. */
static int add_lines(const struct graph_proc *p, struct graph_block *b,
		     struct image_source *const *sources)
{
	struct place *places = calloc(b->nr_insns + 1, sizeof(*places));
	size_t nr = 0, len;
	int r = places ? 0 : -ENOMEM;

	for (size_t i = 0; i < b->nr_insns && r >= 0; i++)
		if (b->insns[i].line && sources[b->insns[i].file])
			places[nr++] = (struct place){ b->insns[i].file, b->insns[i].line };
	if (nr)
		qsort(places, nr, sizeof(*places), by_place);
	for (size_t i = 0; i < nr && r >= 0; i++) {
		const char *text;

		if (i && by_place(&places[i - 1], &places[i]) == 0)
			continue;
		text = image_source_line(sources[places[i].file], places[i].line, &len);
		if (text)
			r = add_line(p, b, &places[i], text, len);
	}
	free(places);
	return r;
}

static int add_sources(struct graph_proc *p, struct base_err *err)
{
	struct image_source **sources = calloc(p->files.nr + 1, sizeof(struct image_source *));
	int r = sources ? open_sources(p, sources, err) : -ENOMEM;

	for (uint32_t i = 0; i < p->nr_blocks && r >= 0; i++)
		if (!p->blocks[i].above.source.nr)
			r = add_lines(p, &p->blocks[i], sources);
	for (size_t i = 0; sources && i < p->files.nr; i++)
		image_source_close(sources[i]);
	free(sources);
	return r < 0 ? base_fail_errno(err, r, "cannot add source lines") : 0;
}

/* ---- the command --------------------------------------------------------------------------- */

static int run(const char *path, struct base_err *err)
{
	struct graph *g = NULL;
	int r = graph_file_read(path, &g, err);

	if (r >= 0)
		r = check_given(g, err);
	for (size_t i = 0; r >= 0 && i < g->nr; i++)
		r = add_sources(&g->procs[i], err);
	if (r >= 0)
		r = graph_file_print(g, stdout, err);
	graph_free(g);
	return r;
}

int dcpisource_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0)
		r = run(argc ? argv[0] : NULL, &err);
	if (r < 0)
		base_err_print(&err, cmd.name, stderr);
	return r == -DCPI_EUSAGE ? BASE_EXIT_USAGE : r < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}
