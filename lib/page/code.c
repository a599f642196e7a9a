/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of the hottest procedures: source, instructions, blocks, and what is known of each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calc.h"
#include "demangle.h"
#include "hotlists.h"
#include "page_internal.h"
#include "progress.h"
#include "search.h"

enum {
	INSN_LEN = 62,	     /* bytes of an instruction in the model, about */
	PROCEDURE_LEN = 600, /* and of a procedure beside these */
	UNITS_MAX = 30000,   /* instructions of a procedure */
	WHOLE_MAX = 100,     /* longer procedures are shown where they have samples, and */
	NEAR = 8,	     /* so many instructions before and behind */
	TURNS = 4,
	VALUES_MAX = 4, /* most frequent values of an instruction */
};

/* A procedure whose code is shown. */
struct chosen {
	size_t row;
	struct analysis_image *ai;
	uint64_t vaddr;
	struct analysis_founds found; /* of a routine that is in several places, all of these */
	size_t nr_places;	      /* the first of them, whose code is this one */
	struct base_buf json;
	char *why; /* it has no code, for this reason */
};

struct code {
	struct page *p;
	struct chosen *v;
	size_t nr, cap;
	struct hotlists values; /* none where no values were recorded */
	uint64_t nr_large;	/* left out for want of space */
	size_t next;		/* the row that is looked at next */
	uint64_t sum;		/* samples of the rows before */
	/* The procedure that is written: */
	struct jwrite j;
	const struct graph_flow *f;
	const struct graph_proc *g;
	uint64_t base;	       /* addresses are relative to it */
	struct base_map files; /* name: index + 1 */
	bool **is_shown;       /* indexed by part and unit */
	const char **names;
	size_t nr_names, cap_names;
};

/* ---- which instructions ---------------------------------------------------------------------- */

static bool is_sampled(const struct code *c, const struct analysis_unit *u)
{
	for (size_t e = 0; u->count && e < c->p->a->nr_events; e++)
		if (u->count[e])
			return true;
	return false;
}

/* The index behind the instructions from @from on that have no samples nearby: these are left out
 * of a long procedure. */
static size_t quiet_end(const struct code *c, const struct analysis_listing *l, size_t from)
{
	size_t first = from > NEAR ? from - NEAR : 0, at = from, i;

	if (l->nr_units <= WHOLE_MAX)
		return from;
	for (i = first; i < l->nr_units; i++) {
		if (!is_sampled(c, &l->units[i]))
			continue;
		if (i < from + NEAR)
			return from;
		at = i - NEAR;
		break;
	}
	return i == l->nr_units ? i : at > from + 1 ? at : from;
}

/* ---- lines of the source --------------------------------------------------------------------- */

enum {
	LINE_MAX_LEN = 300, /* bytes of a line */
	CONTEXT = 3,	    /* lines without code that are shown beside others */
	TAB = 4,
};

static void put_line(struct jwrite *j, const char *from, size_t len)
{
	char text[LINE_MAX_LEN + TAB + 2];
	size_t n = 0;

	for (size_t i = 0; i < len && n <= LINE_MAX_LEN; i++) {
		size_t to = from[i] == '\t' ? (n / TAB + 1) * TAB : n + 1;

		if (from[i] == '\r' && i + 1 == len)
			break;
		for (; n < to; n++)
			text[n] = from[i] == '\t' ? ' ' : from[i];
	}
	jwrite_part(j, NULL, text, n, LINE_MAX_LEN);
}

/* [number, text, number, text, …] */
static void put_lines(struct jwrite *j, const struct image_source *src, const unsigned int *line,
		      size_t nr)
{
	unsigned int next = 1;

	jwrite_open(j, "lines", '[');
	for (size_t i = 0; i < nr; i++) {
		unsigned int from = line[i] > CONTEXT ? line[i] - CONTEXT : 1;

		for (unsigned int n = from > next ? from : next; n <= line[i] + CONTEXT; n++) {
			size_t len = 0;
			const char *text = image_source_line(src, n, &len);

			next = n + 1;
			if (!text)
				break;
			jwrite_count(j, NULL, n);
			put_line(j, text, len);
		}
	}
	jwrite_close(j, ']');
}

/* Puts, of the file @name, which code of @img names, the @nr lines @line, ascending, and those
 * around them. 0 or negative, as @j has it. */
static int put_source_lines(struct jwrite *j, struct image *img, const char *name,
			    const unsigned int *line, size_t nr)
{
	struct image_source *src = NULL;
	int r = image_source_open(name, image_program(img), !image_source_trusted(img), &src, NULL);

	jwrite_open(j, NULL, '{');
	jwrite_text(j, "name", name);
	if (r >= 0)
		put_lines(j, src, line, nr);
	else if (r == -EACCES)
		jwrite_count(j, "private", 1);
	image_source_close(src);
	jwrite_close(j, '}');
	return j->r;
}

/* ---- source ---------------------------------------------------------------------------------- */

static int file_index(struct code *c, const char *name, size_t *out)
{
	void *known = base_map_get(&c->files, name, strlen(name));
	int r = 0;

	*out = known ? (size_t)(uintptr_t)known - 1 : c->nr_names;
	if (known)
		return 0;
	r = base_grow(&c->names, &c->cap_names, c->nr_names + 1, sizeof(*c->names));
	if (r >= 0)
		r = base_map_set(&c->files, name, strlen(name),
				 (void *)(uintptr_t)(c->nr_names + 1));
	if (r >= 0)
		c->names[c->nr_names++] = name;
	return r;
}

static int by_number(const void *pa, const void *pb)
{
	unsigned int a = *(const unsigned int *)pa, b = *(const unsigned int *)pb;

	return (a > b) - (a < b);
}

/* The lines of a file that have code here, ascending and each once; freed by the caller. */
static size_t lines_of(const struct code *c, const char *name, unsigned int *out)
{
	size_t nr = 0, kept = 0;

	for (size_t p = 0; p < c->f->nr_parts; p++) {
		const struct analysis_listing *l = c->f->parts[p];

		for (size_t i = 0; i < l->nr_units; i++) {
			const struct analysis_unit *u = &l->units[i];

			if (c->is_shown[p][i] && u->line && strcmp(l->files[u->file], name) == 0)
				out[nr++] = u->line;
		}
	}
	qsort(out, nr, sizeof(*out), by_number);
	for (size_t i = 0; i < nr; i++)
		if (!kept || out[kept - 1] != out[i])
			out[kept++] = out[i];
	return kept;
}

static int put_files(struct code *c, size_t nr_units)
{
	unsigned int *room = calloc(nr_units + 1, sizeof(*room));
	int r = room ? 0 : -ENOMEM;

	jwrite_open(&c->j, "files", '[');
	for (size_t i = 0; i < c->nr_names && r >= 0; i++)
		r = put_source_lines(&c->j, c->f->parts[0]->img, c->names[i], room,
				     lines_of(c, c->names[i], room));
	jwrite_close(&c->j, ']');
	free(room);
	return r;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void put_known(struct jwrite *j, bool known, double value)
{
	if (known)
		jwrite_real(j, NULL, value);
	else
		jwrite_null(j, NULL);
}

static void put_freq(struct jwrite *j, const struct graph_freq *f)
{
	put_known(j, f->confidence != GRAPH_UNKNOWN, f->value);
	jwrite_count(j, NULL, (uint64_t)f->confidence);
}

/* [start, end, samples, executions, confidence, best cycles, cycles, number of instructions,
 * stalls: [letters, low, high] …] */
static void put_block(struct code *c, const struct graph_block *b)
{
	struct jwrite *j = &c->j;

	jwrite_open(j, NULL, '[');
	jwrite_int(j, NULL, (int64_t)(b->vaddr - c->base));
	jwrite_int(j, NULL, (int64_t)(b->end - c->base));
	jwrite_count(j, NULL, b->samples);
	put_freq(j, &b->freq);
	put_known(j, b->best.cycles >= 0, b->best.cycles);
	put_known(j, b->actual.cycles >= 0, b->actual.cycles);
	jwrite_count(j, NULL, b->nr_insns);
	for (size_t i = 0; i < b->above.nr_stalls; i++) {
		jwrite_open(j, NULL, '[');
		jwrite_text(j, NULL, b->above.stalls[i].letters);
		jwrite_real(j, NULL, b->above.stalls[i].low);
		jwrite_real(j, NULL, b->above.stalls[i].high);
		jwrite_close(j, ']');
	}
	jwrite_close(j, ']');
}

static int64_t block_number(uint32_t block)
{
	return block == GRAPH_OUTSIDE ? -1 : (int64_t)block;
}

/* [from, to, kind, executions, confidence] */
static void put_edges(struct code *c)
{
	jwrite_open(&c->j, "edges", '[');
	for (size_t i = 0; i < c->g->nr_edges; i++) {
		const struct graph_edge *e = &c->g->edges[i];

		jwrite_open(&c->j, NULL, '[');
		jwrite_int(&c->j, NULL, block_number(e->from));
		jwrite_int(&c->j, NULL, block_number(e->to));
		jwrite_count(&c->j, NULL, (uint64_t)e->kind);
		put_freq(&c->j, &e->freq);
		jwrite_close(&c->j, ']');
	}
	jwrite_close(&c->j, ']');
}

/* The block over an address, or NULL; blocks are ascending. */
static const struct graph_block *block_at(const struct graph_proc *g, uint64_t vaddr)
{
	size_t low = 0, high = g->nr_blocks;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (g->blocks[mid].end <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < g->nr_blocks && g->blocks[low].vaddr <= vaddr ? &g->blocks[low] : NULL;
}

static const struct graph_insn *insn_at(const struct graph_block *b, uint64_t vaddr)
{
	size_t low = 0, high = b ? b->nr_insns : 0;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (b->insns[mid].vaddr < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return b && low < b->nr_insns && b->insns[low].vaddr == vaddr ? &b->insns[low] : NULL;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* "0x9810,0x9820" as [distance, …]. */
static void put_culprits(struct code *c, const char *text)
{
	jwrite_open(&c->j, NULL, '[');
	while (text && *text) {
		char *end;
		uint64_t at = strtoull(text, &end, 16);

		if (end == text)
			break;
		jwrite_int(&c->j, NULL, (int64_t)(at - c->base));
		text = *end == ',' ? end + 1 : end;
	}
	jwrite_close(&c->j, ']');
}

static void put_other_events(struct code *c, const struct analysis_unit *u)
{
	jwrite_open(&c->j, NULL, '[');
	for (size_t e = 0; e < c->p->a->nr_events; e++)
		if (e != c->p->o->event)
			jwrite_count(&c->j, NULL, u->count ? u->count[e] : 0);
	jwrite_close(&c->j, ']');
}

/* [values seen, value, share in percent, value, share …] */
static void put_values(struct code *c, const struct hotlist_spot *spot)
{
	jwrite_open(&c->j, NULL, '[');
	jwrite_count(&c->j, NULL, spot->vtot);
	for (size_t i = 0; i < spot->nv && i < VALUES_MAX; i++) {
		jwrite_hex(&c->j, NULL, spot->v[i].value);
		jwrite_real(&c->j, NULL, 100 * hotlist_share(spot, i));
	}
	jwrite_close(&c->j, ']');
}

/* The page aligns operands itself. */
static void join_blanks(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++)
		if (*from != ' ' || from[1] != ' ')
			*to++ = *from;
	*to = '\0';
}

/* An instruction, and what is known of it. */
struct shown {
	const struct analysis_listing *l;
	const struct analysis_unit *u;
	const struct graph_insn *insn;	   /* NULL: it is in no block */
	const struct hotlist_spot *values; /* NULL: none were recorded */
	size_t stacks;			   /* stacks of the parts before */
};

/* The number of its elements in the model: from the end on values may lack. */
static int nr_elements(const struct code *c, const struct shown *s)
{
	if (s->values && s->values->vtot)
		return 11;
	if (s->u->count && c->p->a->nr_events > 1)
		return 10;
	if (s->insn && s->insn->culprit)
		return 9;
	if (s->insn && s->insn->cpi > 0)
		return 8;
	return s->u->stack ? 7 : s->u->line ? 6 : 4;
}

static int put_place(struct code *c, const struct shown *s)
{
	size_t file = 0;
	int r = s->u->line ? file_index(c, s->l->files[s->u->file], &file) : 0;

	jwrite_count(&c->j, NULL, file);
	jwrite_count(&c->j, NULL, s->u->line);
	return r;
}

/*
 * [offset, text, samples, block, file, line, inlined, cost, culprits, samples of other events,
 * values]
 */
static int put_unit(struct code *c, const struct shown *s)
{
	const struct graph_block *b = block_at(c->g, s->u->vaddr);
	int nr = nr_elements(c, s), r = 0;
	char text[512];

	analysis_unit_text(s->l, s->u, text, sizeof(text));
	join_blanks(text);
	jwrite_open(&c->j, NULL, '[');
	jwrite_int(&c->j, NULL, (int64_t)(s->u->vaddr - c->base));
	jwrite_text(&c->j, NULL, text);
	jwrite_count(&c->j, NULL, s->u->count ? s->u->count[c->p->o->event] : 0);
	jwrite_int(&c->j, NULL, b ? b - c->g->blocks : -1);
	if (nr > 4)
		r = put_place(c, s);
	if (nr > 6)
		jwrite_count(&c->j, NULL, s->u->stack ? s->stacks + s->u->stack : 0);
	if (nr > 7)
		put_known(&c->j, s->insn && s->insn->cpi > 0, s->insn ? s->insn->cpi : 0);
	if (nr > 8)
		put_culprits(c, s->insn ? s->insn->culprit : NULL);
	if (nr > 9)
		put_other_events(c, s->u);
	if (nr > 10)
		put_values(c, s->values);
	jwrite_close(&c->j, ']');
	return r < 0 ? r : c->j.r;
}

/* Instructions that are left out: [offset, number]. */
static void put_gap(struct code *c, const struct analysis_unit *first, size_t nr)
{
	jwrite_open(&c->j, NULL, '[');
	jwrite_int(&c->j, NULL, (int64_t)(first->vaddr - c->base));
	jwrite_count(&c->j, NULL, nr);
	jwrite_close(&c->j, ']');
}

static int put_shown(struct code *c, size_t part, size_t stacks,
		     const struct hotlists_listing *values)
{
	const struct analysis_listing *l = c->f->parts[part];
	int r = 0;

	for (size_t i = 0; i < l->nr_units && r >= 0; i++) {
		size_t end = quiet_end(c, l, i);
		struct shown s = { .l = l, .stacks = stacks };

		if (end > i)
			put_gap(c, &l->units[i], end - i);
		i = end;
		if (i == l->nr_units)
			break;
		c->is_shown[part][i] = true;
		s.u = &l->units[i];
		s.insn = insn_at(block_at(c->g, s.u->vaddr), s.u->vaddr);
		s.values = values->v ? &values->v[i] : NULL;
		r = put_unit(c, &s);
	}
	return r;
}

static int put_part(struct code *c, size_t part, size_t stacks)
{
	const struct analysis_listing *l = c->f->parts[part];
	struct hotlists_listing values = { 0 };
	int r = 0;

	c->is_shown[part] = calloc(l->nr_units + 1, sizeof(bool));
	if (!c->is_shown[part])
		return -ENOMEM;
	if (c->values.nr)
		r = hotlists_listing_make(&c->values, l, false, &values);
	if (r >= 0)
		r = put_shown(c, part, stacks, &values);
	hotlists_listing_release(&values);
	return r;
}

static int put_units(struct code *c, size_t *nr)
{
	size_t stacks = 0;
	int r = 0;

	jwrite_open(&c->j, "insns", '[');
	for (size_t p = 0; p < c->f->nr_parts && r >= 0; p++) {
		r = put_part(c, p, stacks);
		stacks += c->f->parts[p]->nr_stacks;
		*nr += c->f->parts[p]->nr_units;
	}
	jwrite_close(&c->j, ']');
	return r;
}

/* Innermost first: "square inlined at a.c:5". */
static void put_stack(struct code *c, const struct analysis_stack *s)
{
	char text[700];

	jwrite_open(&c->j, NULL, '[');
	for (size_t i = 0; i + 1 < s->nr; i++) {
		const struct image_line *call = &s->v[i + 1].at;
		const char *name = demangle_shown(s->v[i].name ? s->v[i].name : "");

		if (call->line)
			snprintf(text, sizeof(text), "%.400s inlined at %.200s:%u", name,
				 base_path_name(call->file), call->line);
		else
			snprintf(text, sizeof(text), "%.400s inlined", name);
		jwrite_text(&c->j, NULL, text);
	}
	jwrite_close(&c->j, ']');
}

static void put_stacks(struct code *c)
{
	jwrite_open(&c->j, "stacks", '[');
	for (size_t p = 0; p < c->f->nr_parts; p++)
		for (size_t i = 0; i < c->f->parts[p]->nr_stacks; i++)
			put_stack(c, &c->f->parts[p]->stacks[i]);
	jwrite_close(&c->j, ']');
}

/* ---- a procedure ----------------------------------------------------------------------------- */

static void put_texts(struct jwrite *j, const char *key, const struct graph_texts *t)
{
	jwrite_open(j, key, '[');
	for (size_t i = 0; i < t->nr; i++)
		jwrite_text(j, NULL, t->v[i]);
	jwrite_close(j, ']');
}

static void put_head(struct code *c, const struct chosen *ch)
{
	const struct analysis_listing *l = c->f->parts[0];

	jwrite_count(&c->j, "p", ch->row);
	jwrite_text(&c->j, "linkage", l->symbol.name);
	jwrite_hex(&c->j, "base", c->base);
	jwrite_count(&c->j, "len", l->symbol.len);
	jwrite_count(&c->j, "places", l->nr_places);
	jwrite_count(&c->j, "samples", c->g->samples);
	jwrite_count(&c->j, "outside", c->g->outside);
	jwrite_text(&c->j, "unit", graph_unit_name(c->g->unit));
	jwrite_text(&c->j, "frequencies", c->g->freq);
	put_texts(&c->j, "notes", &c->g->notes);
	put_texts(&c->j, "summary", &c->g->summary);
}

static void release_shown(struct code *c)
{
	for (size_t p = 0; c->is_shown && p < c->f->nr_parts; p++)
		free(c->is_shown[p]);
	free(c->is_shown);
	c->is_shown = NULL;
}

static int put_code(struct code *c, struct chosen *ch)
{
	size_t nr_units = 0;
	int r;

	c->is_shown = calloc(c->f->nr_parts + 1, sizeof(bool *));
	if (!c->is_shown)
		return -ENOMEM;
	c->j = (struct jwrite){ .to = &ch->json };
	c->base = c->f->parts[0]->symbol.vaddr;
	jwrite_open(&c->j, NULL, '{');
	put_head(c, ch);
	jwrite_open(&c->j, "blocks", '[');
	for (uint32_t i = 0; i < c->g->nr_blocks; i++)
		put_block(c, &c->g->blocks[i]);
	jwrite_close(&c->j, ']');
	put_edges(c);
	r = put_units(c, &nr_units);
	put_stacks(c);
	if (r >= 0)
		r = put_files(c, nr_units);
	jwrite_close(&c->j, '}');
	release_shown(c);
	c->nr_names = 0;
	base_map_release(&c->files);
	memset(&c->files, 0, sizeof(c->files));
	return r < 0 ? r : c->j.r;
}

static int analyse(struct code *c, struct chosen *ch, struct graph_flow *f, struct base_err *err)
{
	const struct calc_how how = { .least = FREQ_LOW, .outside = STALL_OPTIMISTIC };
	struct graph *g = graph_new();
	int r = g ? calc_add(f, c->p->o->event, &how, g, err) : -ENOMEM;

	if (r >= 0) {
		c->f = f;
		c->g = &g->procs[g->nr - 1];
		r = put_code(c, ch);
	}
	graph_free(g);
	return r;
}

/* Lists a procedure of *@img, which is NULL where it is not open any more. */
static int list(struct code *c, struct chosen *ch, struct image **img, struct base_err *err)
{
	const struct analysis_founds places = { .v = ch->found.v, .nr = ch->nr_places };
	struct analysis_listing *l = NULL;
	struct graph_flow f = { 0 };
	const struct image_symbol *symbol;
	int r = *img ? 0 : analysis_image_open(c->p->a, ch->ai, img, err);

	if (r < 0)
		return r;
	symbol = image_symbol_at(*img, ch->vaddr);
	if (!symbol)
		return base_fail(err, -DCPI_ENOSYMBOL, "no procedure is there any more");
	r = analysis_listing_open(c->p->a, ch->ai, *img, symbol, &places, &l, err);
	*img = NULL;
	if (r >= 0 && l->nr_units > UNITS_MAX) {
		r = base_fail(err, -DCPI_ELIMIT, "it has more than %d instructions", UNITS_MAX);
		analysis_listing_close(l);
	} else if (r >= 0) {
		r = graph_flow_open(l, &f, err);
	}
	if (r >= 0)
		r = analyse(c, ch, &f, err);
	if (f.nr_parts)
		*img = analysis_listing_take_image(f.parts[0]);
	graph_flow_close(&f);
	return r;
}

/* ---- which ----------------------------------------------------------------------------------- */

static size_t likely_len(const struct analysis_row *row, size_t event)
{
	uint64_t near = row->count[event] * NEAR + WHOLE_MAX, all = row->len / 4;

	return PROCEDURE_LEN + (size_t)(all < near ? all : near) * INSN_LEN;
}

/* A routine that has several codes is shown by the one with most samples, of all its places.
 */
static void find_places(const struct code *c, const struct analysis_row *row, struct chosen *ch)
{
	struct analysis *a = c->p->a;

	if (!row->several || !row->facility ||
	    analysis_find(a, row->procedure, row->facility->name, c->p->o->event, &ch->found,
			  NULL) < 0 ||
	    !analysis_founds_versions(&ch->found))
		return;
	ch->nr_places = analysis_founds_alike(a, &ch->found);
	ch->ai = ch->found.v[0].image;
	ch->vaddr = ch->found.v[0].vaddr;
}

static int choose_one(struct code *c, size_t at)
{
	const struct analysis_row *row = &c->p->procedures.v[at];
	int r = base_grow(&c->v, &c->cap, c->nr + 1, sizeof(*c->v));

	if (r < 0)
		return r;
	c->v[c->nr] = (struct chosen){ .row = at, .ai = row->image, .vaddr = row->vaddr };
	find_places(c, row, &c->v[c->nr++]);
	return 0;
}

/* Is the row's code to be shown, if there is space? */
static bool is_wanted(const struct code *c, size_t at)
{
	const struct analysis_row *row = &c->p->procedures.v[at];
	uint64_t total = c->p->procedures.total[c->p->o->event];

	return at < c->p->nr_shown && row->count[c->p->o->event] &&
	       (double)c->sum < c->p->o->keep / 100 * (double)total;
}

/* The next ones that make up the share that is kept, as far as they may fit into @left bytes. */
static int choose(struct code *c, size_t left)
{
	size_t event = c->p->o->event;
	int r = 0;

	for (; r >= 0 && c->p->procedures.nr && is_wanted(c, c->next); c->next++) {
		const struct analysis_row *row = &c->p->procedures.v[c->next];
		size_t len = row->procedure ? likely_len(row, event) : 0;

		if (len > left)
			break;
		c->sum += row->count[event];
		left -= len;
		if (row->procedure)
			r = choose_one(c, c->next);
	}
	return r;
}

static int by_image(const void *pa, const void *pb)
{
	const struct chosen *a = *(struct chosen *const *)pa, *b = *(struct chosen *const *)pb;

	if (a->ai != b->ai)
		return (uintptr_t)a->ai < (uintptr_t)b->ai ? -1 : 1;
	return (a->row > b->row) - (a->row < b->row);
}

/* An image is opened once: to read what debuggers know of it takes longer than most procedures. */
static int list_all(struct code *c, size_t from, struct base_err *err)
{
	size_t nr = c->nr - from;
	struct chosen **order = calloc(nr + 1, sizeof(*order));
	struct image *img = NULL;
	int r = order ? 0 : -ENOMEM;

	for (size_t i = 0; order && i < nr; i++)
		order[i] = &c->v[from + i];
	if (order)
		qsort(order, nr, sizeof(*order), by_image);
	for (size_t i = 0; i < nr && r >= 0; i++) {
		struct base_err why = { 0 };

		progress_show("listing procedures", i, nr);
		if (i && order[i]->ai != order[i - 1]->ai) {
			image_close(img);
			img = NULL;
		}
		r = list(c, order[i], &img, &why);
		if (r == -ENOMEM)
			base_fail_errno(err, r, "cannot list a procedure");
		else if (r < 0)
			r = (order[i]->why = strdup(why.text)) ? 0 : -ENOMEM;
	}
	progress_show("listing procedures", 1, 1);
	image_close(img);
	free(order);
	return r;
}

static void put_causes(struct jwrite *j)
{
	char letter[2] = "";

	jwrite_open(j, "causes", '{');
	for (int i = 0; i <= STALL_NR_CAUSES; i++) {
		letter[0] = stall_cause_letter((enum stall_cause)i);
		jwrite_text(j, letter, stall_cause_name((enum stall_cause)i));
	}
	jwrite_close(j, '}');
}

static void put_all(struct code *c, struct jwrite *j, size_t size)
{
	size_t used = 0;

	jwrite_line(j);
	put_causes(j);
	jwrite_line(j);
	jwrite_open(j, "code", '[');
	for (size_t i = 0; i < c->nr; i++) {
		struct chosen *ch = &c->v[i];

		if (!ch->why && used + ch->json.len > size) {
			c->nr_large++;
			continue;
		}
		jwrite_line(j);
		if (!ch->why) {
			used += ch->json.len;
			jwrite_raw(j, NULL, &ch->json);
			continue;
		}
		jwrite_open(j, NULL, '{');
		jwrite_count(j, "p", ch->row);
		jwrite_text(j, "missing", ch->why);
		jwrite_close(j, '}');
	}
	jwrite_close(j, ']');
	jwrite_count(j, "code_left_out", c->nr_large);
}

static void count_rest(struct code *c)
{
	for (size_t event = c->p->o->event; c->p->procedures.nr && is_wanted(c, c->next);
	     c->next++) {
		c->sum += c->p->procedures.v[c->next].count[event];
		c->nr_large += c->p->procedures.v[c->next].procedure != NULL;
	}
}

/* Mostly code is shorter than it may be, so that there is space for more after a first turn. */
static int fill(struct code *c, size_t size, struct base_err *err)
{
	size_t used = 0, from = 0;
	int r = 0;

	for (int turn = 0; turn < TURNS && used < size - size / 8 && r >= 0; turn++) {
		r = choose(c, size - used);
		if (r >= 0)
			r = list_all(c, from, err);
		for (; r >= 0 && from < c->nr; from++)
			used += c->v[from].json.len;
	}
	count_rest(c);
	return r;
}

/* That there are none is no failure. */
static int open_values(struct code *c, struct jwrite *j, struct base_err *err)
{
	struct base_err why = { 0 };
	int r = analysis_is_part(c->p->a) ? 0
					  : hotlists_open(c->p->a, PROFDB_VALUES, &c->values, &why);

	if (r == -ENOMEM)
		return base_fail_errno(err, r, "cannot read values");
	if (c->values.nr_denied)
		jwrite_count(j, "values_denied", c->values.nr_denied);
	return 0;
}

int page_code(struct page *p, struct jwrite *j, size_t size, struct base_err *err)
{
	struct code c = { .p = p };
	int r = open_values(&c, j, err);

	if (r >= 0)
		r = fill(&c, size, err);
	if (r >= 0)
		put_all(&c, j, size);
	for (size_t i = 0; i < c.nr; i++) {
		base_buf_release(&c.v[i].json);
		free(c.v[i].why);
		analysis_founds_release(&c.v[i].found);
	}
	hotlists_release(&c.values);
	free(c.v);
	free(c.names);
	base_map_release(&c.files);
	return r < 0 ? r : j->r;
}
