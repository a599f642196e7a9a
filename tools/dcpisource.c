/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpisource: put source lines into a flow graph. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cmap.h"
#include "graph_json.h"
#include "image.h"
#include "report.h"
#include "tools.h"

static struct base_opt_list files, map_files;
static bool json;

static const struct base_opt options[] = {
	{ "src", BASE_OPT_LIST, &files, "FILE",
	  "Take this file where the graph names one with its base name, wherever that was. "
	  "Repeatable.",
	  0, 0 },
	SELECT_OPTION_SOURCE(image_source_path),
	{ "map", BASE_OPT_LIST, &map_files, "FILE",
	  "A map that dcpicc wrote: say the token of each instruction. Repeatable.", 0, 0 },
	{ "json", BASE_OPT_FLAG, &json, NULL, "Print JSON with the same rows (dcpijson(5)).", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpisource",
	.summary = "put source lines into printed flow graphs",
	.operands = "[GRAPH]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpiflow fib hello | dcpisource",
			  "The blocks of a routine, above each the lines that it was made from." },
			{ "dcpisource -src build/parse.c parse.graph",
			  "A source that lies elsewhere than when it was compiled." },
			{ "dcpisource -map parse.cmap parse.graph",
			  "A program that dcpicc compiled: the token of each instruction." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = 1,
};

enum { TAB = 4, MAP_MAX = 1 << 28 };

/* ---- sources --------------------------------------------------------------------------------- */

/* The files that contain a procedure's source. */
struct origin {
	struct image_source *text;   /* NULL: not found */
	const struct cmap *map;	     /* it is a tokenized file */
	struct image_source **texts; /* the texts of the map's files */
};

struct maps {
	struct cmap **v;
	size_t nr;
};

static bool is_file(const char *name, const char *given)
{
	const char *base = base_path_name(name);
	size_t len = image_source_path_len(base);

	given = base_path_name(given);
	return strcmp(base, given) == 0 || (strlen(given) == len && memcmp(base, given, len) == 0);
}

static const char *given_for(const char *name)
{
	for (size_t i = 0; i < files.nr; i++)
		if (is_file(name, files.items[i]))
			return files.items[i];
	return NULL;
}

/* A file that -src names must be there; others may be missing. */
static int open_source(const char *name, struct image_source **out, struct base_err *err)
{
	const char *given = given_for(name);

	if (given)
		return image_source_open(given, NULL, false, out, err);
	image_source_open(name, NULL, false, out, NULL);
	return 0;
}

static const struct cmap *map_for(const struct maps *maps, const char *name)
{
	const struct cmap *same_name = NULL;

	for (size_t i = 0; i < maps->nr; i++) {
		if (strcmp(maps->v[i]->tokenized, name) == 0)
			return maps->v[i];
		if (strcmp(base_path_name(maps->v[i]->tokenized), base_path_name(name)) == 0)
			same_name = maps->v[i];
	}
	return same_name;
}

static int open_origin(struct origin *o, const char *name, const struct maps *maps,
		       struct base_err *err)
{
	int r = 0;

	o->map = map_for(maps, name);
	if (!o->map)
		return open_source(name, &o->text, err);
	o->texts = calloc(o->map->nr_files + 1, sizeof(struct image_source *));
	if (!o->texts)
		return -ENOMEM;
	for (size_t i = 0; i < o->map->nr_files && r >= 0; i++)
		r = open_source(o->map->files[i], &o->texts[i], err);
	return r;
}

static void close_origin(struct origin *o)
{
	for (size_t i = 0; o->texts && i < o->map->nr_files; i++)
		image_source_close(o->texts[i]);
	free(o->texts);
	image_source_close(o->text);
}

static bool is_named(const struct graph *g, const struct maps *maps, const char *given)
{
	for (size_t i = 0; i < g->nr; i++)
		for (size_t k = 0; k < g->procs[i].files.nr; k++)
			if (is_file(g->procs[i].files.v[k], given))
				return true;
	for (size_t i = 0; i < maps->nr; i++)
		for (size_t k = 0; k < maps->v[i]->nr_files; k++)
			if (is_file(maps->v[i]->files[k], given))
				return true;
	return false;
}

static int check_given(const struct graph *g, const struct maps *maps, struct base_err *err)
{
	for (size_t i = 0; i < files.nr; i++) {
		if (is_named(g, maps, files.items[i]))
			continue;
		base_fail(err, -ENOENT, "the graph has no line of a file '%s'",
			  base_path_name(files.items[i]));
		if (g->nr && g->procs[0].files.nr)
			base_hint(err, "it has lines of '%s'", g->procs[0].files.v[0]);
		return -ENOENT;
	}
	return 0;
}

static bool is_mapped(const struct graph *g, const struct maps *maps)
{
	for (size_t i = 0; i < g->nr; i++)
		for (size_t k = 0; k < g->procs[i].files.nr; k++)
			if (map_for(maps, g->procs[i].files.v[k]))
				return true;
	return false;
}

/* No failure: with all maps of a program, there are graphs of what others compiled. */
static void warn_unmapped(const struct graph *g, const struct maps *maps)
{
	if (!maps->nr || is_mapped(g, maps))
		return;
	fprintf(stderr, "%s: warning: no map is of a file of the graph\n", cmd.name);
	if (!g->nr || !g->procs[0].files.nr)
		return;
	fputs("hint: it has lines of '", stderr);
	report_print_clean(stderr, g->procs[0].files.v[0]);
	fputs("'\n", stderr);
}

static int open_maps(struct maps *maps, struct base_err *err)
{
	int r = 0;

	maps->v = calloc(map_files.nr + 1, sizeof(struct cmap *));
	if (!maps->v)
		return base_fail_errno(err, -ENOMEM, "cannot read the maps");
	for (; maps->nr < map_files.nr && r >= 0; maps->nr += r >= 0) {
		const char *path = map_files.items[maps->nr];
		struct base_buf text = { 0 };
		struct base_err why = { 0 };

		r = base_file_read(AT_FDCWD, path, MAP_MAX, &text, err);
		if (r >= 0)
			r = cmap_read((const char *)text.data, text.len, &maps->v[maps->nr], &why);
		if (r < 0) {
			base_fail(err, r, "%s: %s", path, why.text);
			base_hint(err, "%s", why.hint);
		}
		base_buf_release(&text);
	}
	return r;
}

static void close_maps(struct maps *maps)
{
	for (size_t i = 0; i < maps->nr; i++)
		cmap_free(maps->v[i]);
	free(maps->v);
}

/* ---- lines ----------------------------------------------------------------------------------- */

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
		     const struct origin *origins)
{
	struct place *places = calloc(b->nr_insns + 1, sizeof(*places));
	size_t nr = 0, len;
	int r = places ? 0 : -ENOMEM;

	for (size_t i = 0; i < b->nr_insns && r >= 0; i++)
		if (b->insns[i].line && origins[b->insns[i].file].text)
			places[nr++] = (struct place){ b->insns[i].file, b->insns[i].line };
	if (nr)
		qsort(places, nr, sizeof(*places), by_place);
	for (size_t i = 0; i < nr && r >= 0; i++) {
		const char *text;

		if (i && by_place(&places[i - 1], &places[i]) == 0)
			continue;
		text = image_source_line(origins[places[i].file].text, places[i].line, &len);
		if (text)
			r = add_line(p, b, &places[i], text, len);
	}
	free(places);
	return r;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static size_t trimmed(const char **text, size_t len)
{
	while (len && strchr(" \t\r", **text) && **text) {
		++*text;
		len--;
	}
	while (len && strchr(" \t\r", (*text)[len - 1]) && (*text)[len - 1])
		len--;
	return len;
}

/* "parse.c:12:7  x = a «+» b;", the token marked in its line where that has it there. */
static int add_token(const struct origin *o, const struct cmap_token *t, struct graph_insn *insn)
{
	struct graph_texts *to = &insn->above.source;
	const char *name = base_path_name(o->map->files[t->file]);
	size_t len = 0, at, token = strlen(t->text);
	const char *line = NULL, *start;
	int r;

	if (o->texts[t->file])
		start = line = image_source_line(o->texts[t->file], t->from, &len);
	if (!line)
		return graph_text_add(to, "%s:%u:%u  \u00ab%s\u00bb", name, t->from, t->column,
				      t->text);
	len = trimmed(&line, len);
	at = t->column ? t->column - 1 - (size_t)(line - start) : SIZE_MAX;
	if (at > len || token > len - at || memcmp(line + at, t->text, token) != 0)
		r = graph_text_add(to, "%s:%u:%u  %.*s  \u00ab%s\u00bb", name, t->from, t->column,
				   (int)len, line, t->text);
	else
		r = graph_text_add(to, "%s:%u:%u  %.*s\u00ab%s\u00bb%.*s", name, t->from, t->column,
				   (int)at, line, t->text, (int)(len - at - token),
				   line + at + token);
	for (char *p = r < 0 ? NULL : to->v[to->nr - 1]; p && (p = strchr(p, '\t'));)
		*p = ' ';
	return r;
}

/* Above each instruction whose token is not that of the one before. */
static int add_tokens(struct graph_block *b, const struct origin *origins)
{
	const struct cmap_token *last = NULL;
	int r = 0;

	for (size_t i = 0; i < b->nr_insns && r >= 0; i++) {
		struct graph_insn *insn = &b->insns[i];
		const struct origin *o = insn->line ? &origins[insn->file] : NULL;
		const struct cmap_token *t = o && o->map ? cmap_at(o->map, insn->line) : NULL;

		if (t && t != last && !insn->above.source.nr)
			r = add_token(o, t, insn);
		last = t;
	}
	return r;
}

static int add_sources(struct graph_proc *p, const struct maps *maps, struct base_err *err)
{
	struct origin *origins = calloc(p->files.nr + 1, sizeof(*origins));
	int r = origins ? 0 : -ENOMEM;

	for (size_t i = 0; i < p->files.nr && r >= 0; i++)
		r = open_origin(&origins[i], p->files.v[i], maps, err);
	for (uint32_t i = 0; i < p->nr_blocks && r >= 0; i++) {
		if (!p->blocks[i].above.source.nr)
			r = add_lines(p, &p->blocks[i], origins);
		if (r >= 0)
			r = add_tokens(&p->blocks[i], origins);
	}
	for (size_t i = 0; origins && i < p->files.nr; i++)
		close_origin(&origins[i]);
	free(origins);
	return r < 0 ? base_fail_errno(err, r, "cannot add source lines") : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run(int nr, char **words, struct base_err *err)
{
	struct maps maps = { 0 };
	struct graph *g = NULL;
	int r = open_maps(&maps, err);

	if (r >= 0)
		r = graph_file_read(nr ? words[0] : NULL, &g, err);
	if (r >= 0)
		r = check_given(g, &maps, err);
	if (r >= 0)
		warn_unmapped(g, &maps);
	for (size_t i = 0; r >= 0 && i < g->nr; i++)
		r = add_sources(&g->procs[i], &maps, err);
	if (r >= 0)
		r = json ? graph_json_print(g, "dcpisource/1", NULL, err)
			 : graph_file_print(g, err);
	graph_free(g);
	close_maps(&maps);
	return r;
}

static int dcpisource_main(int argc, char **argv)
{
	return report_command(&cmd, NULL, run, argc, argv);
}

const struct tool dcpisource_tool = { .cmd = &cmd, .main = dcpisource_main };
