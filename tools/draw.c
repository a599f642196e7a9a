/* SPDX-License-Identifier: BSD-2-Clause */
/* A flow graph becomes a drawing by graphviz: its shape is found, then it is written. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"

/* ---- loops ----------------------------------------------------------------------------------- */

enum { UNMET, INSIDE, DONE };

struct walk {
	size_t *first, *index; /* edges by the block that they leave, as rows of one array */
	uint8_t *state;
	uint32_t *stack;
	size_t *next; /* by block: the edge to follow next */
};

/* Do both ends lie in the procedure? */
static bool edge_stays(const struct graph_edge *e)
{
	return e->from != GRAPH_OUTSIDE && e->to != GRAPH_OUTSIDE;
}

static int walk_init(const struct graph_proc *p, struct walk *w)
{
	size_t n = (size_t)p->nr_blocks + 2;

	w->first = calloc(n, sizeof(*w->first));
	w->next = calloc(n, sizeof(*w->next));
	w->index = calloc(p->nr_edges + 1, sizeof(*w->index));
	w->state = calloc(n, 1);
	w->stack = calloc(n, sizeof(*w->stack));
	if (!w->first || !w->next || !w->index || !w->state || !w->stack)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_edges; i++)
		if (edge_stays(&p->edges[i]))
			w->first[p->edges[i].from + 1]++;
	for (size_t b = 1; b < n; b++)
		w->first[b] += w->first[b - 1];
	memcpy(w->next, w->first, n * sizeof(*w->next));
	for (size_t i = 0; i < p->nr_edges; i++)
		if (edge_stays(&p->edges[i]))
			w->index[w->next[p->edges[i].from]++] = i;
	memcpy(w->next, w->first, n * sizeof(*w->next));
	return 0;
}

static void walk_release(struct walk *w)
{
	free(w->first);
	free(w->next);
	free(w->index);
	free(w->state);
	free(w->stack);
}

static void walk_from(const struct graph_proc *p, struct walk *w, uint32_t start, bool *back)
{
	size_t depth = 0;

	if (w->state[start] != UNMET)
		return;
	w->state[start] = INSIDE;
	w->stack[depth++] = start;
	while (depth) {
		uint32_t b = w->stack[depth - 1], to;
		size_t edge;

		if (w->next[b] == w->first[b + 1]) {
			w->state[b] = DONE;
			depth--;
			continue;
		}
		edge = w->index[w->next[b]++];
		to = p->edges[edge].to;
		back[edge] = w->state[to] == INSIDE;
		if (w->state[to] == UNMET) {
			w->state[to] = INSIDE;
			w->stack[depth++] = to;
		}
	}
}

/* Mark (in @back, by edge, zeroed) the edges that close a loop: those that lead back to a block on
 * the way from an entry. 0 or -ENOMEM. */
static int find_loops(const struct graph_proc *p, bool *back)
{
	struct walk w = { 0 };
	int r = walk_init(p, &w);

	for (size_t i = 0; i < p->nr_edges && r >= 0; i++)
		if (p->edges[i].kind == GRAPH_ENTRY)
			walk_from(p, &w, p->edges[i].to, back);
	for (uint32_t b = 0; b < p->nr_blocks && r >= 0; b++)
		walk_from(p, &w, b, back);
	walk_release(&w);
	return r;
}

/* ---- groups ---------------------------------------------------------------------------------- */

enum {
	ROUNDS_MAX = 64, /* the order of blocks is mostly that of flow: a few do */
	BOXES_MAX = 200, /* limit for small blocks; with more of them they are grouped whatever
			    leads to them */
};

#define NOBODY	(UINT32_MAX - 1) /* nothing leads here */
#define SEVERAL UINT32_MAX

struct groups {
	const struct graph_proc *p;
	const bool *hidden, *small;
	uint32_t *group, *parent;
};

static uint32_t leader(uint32_t *group, uint32_t b)
{
	for (; group[b] != b; b = group[b])
		group[b] = group[group[b]];
	return b;
}

/* For each group find the only other group that leads to it, or SEVERAL. */
static void find_parents(struct groups *g)
{
	for (uint32_t b = 0; b < g->p->nr_blocks; b++)
		g->parent[b] = NOBODY;
	for (size_t i = 0; i < g->p->nr_edges; i++) {
		const struct graph_edge *e = &g->p->edges[i];
		uint32_t from, to;

		if (e->kind == GRAPH_EXIT || g->hidden[i])
			continue;
		to = leader(g->group, e->to);
		from = e->kind == GRAPH_ENTRY ? SEVERAL : leader(g->group, e->from);
		if (from != to)
			g->parent[to] =
				g->parent[to] == NOBODY || g->parent[to] == from ? from : SEVERAL;
	}
}

static bool join(struct groups *g)
{
	bool any = false;

	for (uint32_t b = 0; b < g->p->nr_blocks; b++) {
		uint32_t to;

		if (g->group[b] != b || !g->small[b] || g->parent[b] >= g->p->nr_blocks)
			continue;
		to = leader(g->group, g->parent[b]);
		if (to == b || !g->small[to])
			continue;
		g->group[b] = to;
		any = true;
	}
	return any;
}

static uint32_t nr_boxes(const struct groups *g)
{
	uint32_t nr = 0;

	for (uint32_t b = 0; b < g->p->nr_blocks; b++)
		nr += g->small[b] && g->group[b] == b;
	return nr;
}

/* Small blocks that hang together, and all of those that no line leads to. */
static void join_coarsely(struct groups *g)
{
	uint32_t first = NOBODY;

	for (size_t i = 0; i < g->p->nr_edges; i++) {
		const struct graph_edge *e = &g->p->edges[i];

		if (edge_stays(e) && !g->hidden[i] && g->small[e->from] && g->small[e->to])
			g->group[leader(g->group, e->to)] = leader(g->group, e->from);
	}
	find_parents(g);
	for (uint32_t b = 0; b < g->p->nr_blocks; b++) {
		if (g->group[b] != b || !g->small[b] || g->parent[b] != NOBODY)
			continue;
		if (first == NOBODY)
			first = b;
		g->group[b] = first;
	}
}

/*
 * Put small blocks that are reached from one other small one alone into one box with it, again and
 * again, so that a cold region behind one branch becomes one box; where that leaves too many, all
 * that hang together. Edges that are @hidden do not count. @group: by block, the block whose box it
 * stands in. 0 or -ENOMEM.
 */
static int find_groups(const struct graph_proc *p, const bool *hidden, const bool *small,
		       uint32_t *group)
{
	struct groups g = { .p = p, .hidden = hidden, .small = small, .group = group };
	int rounds = 0;

	g.parent = calloc((size_t)p->nr_blocks + 1, sizeof(*g.parent));
	if (!g.parent)
		return -ENOMEM;
	for (uint32_t b = 0; b < p->nr_blocks; b++)
		group[b] = b;
	do
		find_parents(&g);
	while (join(&g) && ++rounds < ROUNDS_MAX);
	if (nr_boxes(&g) > BOXES_MAX)
		join_coarsely(&g);
	for (uint32_t b = 0; b < p->nr_blocks; b++)
		group[b] = leader(group, b);
	free(g.parent);
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

enum {
	FONT_MIN = 7, /* points */
	FONT_MAX = 16,
	FONT_SAME = 10,
	LINES_MAX = 10,	  /* that one instruction's cycles are worth */
	TEXT_MAX = 64,	  /* characters of an instruction or a source line */
	MANY_BLOCKS = 40, /* from here on, cold ones are small */
	TABLE_MAX = 16,	  /* targets of a jump that are drawn; of more none is */
	LABELS_MAX = 80,  /* blocks up to which edges have their frequencies written on them */
};

/* A block's edges that are said in it, not drawn, as some procedures have hundreds: from and to
 * outside, and those of large tables. */
struct outside {
	bool enters, leaves;
	struct graph_freq in, out;
	uint32_t table;
};

/* An edge as it is drawn: all those between two boxes, where one of them holds several blocks. */
struct line {
	uint32_t from, to;
	size_t edge; /* the first of them */
	bool back;
	struct graph_freq freq;
};

struct draw {
	const struct graph_proc *p;
	const struct draw_options *options;
	struct base_buf *to;
	double cutoff;	  /* a share of the samples, 0 to 1 */
	double most_freq; /* the highest frequency of a block */
	double most_edge;
	struct outside *outside; /* by block: edges to the outside */
	bool *back;		 /* by edge: closes a loop */
	bool *hidden;		 /* by edge: not drawn */
	bool *small;		 /* by block: drawn small */
	uint32_t *group;	 /* by block: the box that holds it */
	struct line *lines;
	size_t nr_lines;
	int r;
};

static void put(struct draw *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct draw *d, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (d->r >= 0)
		d->r = base_buf_vprintf(d->to, fmt, args);
	va_end(args);
}

/* Text inside of a label; blanks keep their width. At most @max characters of it. */
static void put_text(struct draw *d, const char *text, size_t max)
{
	size_t n = 0;

	for (const char *p = text; *p; p++) {
		/* Not in the middle of a character. */
		if ((*p & 0xc0) != 0x80 && n++ == max) {
			put(d, "..");
			return;
		}
		if (*p == '&')
			put(d, "&amp;");
		else if (*p == '<')
			put(d, "&lt;");
		else if (*p == '>')
			put(d, "&gt;");
		else if (*p == '"')
			put(d, "&quot;");
		else if (*p == ' ')
			put(d, "&#160;");
		else
			put(d, "%c", *p);
	}
}

/* ---- measures -------------------------------------------------------------------------------- */

static double share(const struct draw *d, uint64_t samples)
{
	return d->p->samples ? (double)samples / (double)d->p->samples : 0;
}

/* Frequency, or where none is known what stands for it: samples for each instruction. */
static double frequency(const struct draw *d, const struct graph_block *b)
{
	if (d->p->freq || b->freq.confidence != GRAPH_UNKNOWN)
		return b->freq.value;
	return b->nr_insns ? (double)b->samples / (double)b->nr_insns : 0;
}

static bool is_small(const struct draw *d, const struct graph_block *b)
{
	return b->omitted || !b->nr_insns || (d->p->samples && share(d, b->samples) < d->cutoff);
}

static double font_of(const struct draw *d, const struct graph_block *b)
{
	double size;

	if (d->p->same_size || d->options->same_size || d->most_freq <= 0)
		return FONT_SAME;
	size = FONT_MAX * frequency(d, b) / d->most_freq;
	return size < FONT_MIN ? FONT_MIN : size;
}

/* Where an instruction takes longer than a cycle, the lines above it that stand for the rest. */
static double lines_above(const struct graph_insn *insn)
{
	double lines = insn->cpi - 1;

	return lines < 0 ? 0 : lines > LINES_MAX ? LINES_MAX : lines;
}

/* White, yellow, orange, red by share; the eye sees a quarter as half. */
static void heat(double s, char color[8])
{
	static const int stops[4][3] = {
		{ 255, 255, 255 }, { 255, 243, 176 }, { 255, 179, 71 }, { 255, 92, 51 }
	};
	double at = sqrt(s < 0 ? 0 : s > 1 ? 1 : s) * 3;
	int i = at >= 3 ? 2 : (int)at;
	int rgb[3];

	for (int c = 0; c < 3; c++)
		rgb[c] = (int)(stops[i][c] + (at - i) * (stops[i + 1][c] - stops[i][c]));
	snprintf(color, 8, "#%02x%02x%02x", (unsigned int)rgb[0] & 255, (unsigned int)rgb[1] & 255,
		 (unsigned int)rgb[2] & 255);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void open_row(struct draw *d, const char *color, double height)
{
	put(d, "<TR><TD ALIGN=\"LEFT\"");
	if (color)
		put(d, " BGCOLOR=\"%s\"", color);
	if (height > 0)
		put(d, " HEIGHT=\"%.0f\" VALIGN=\"BOTTOM\"", height);
	put(d, ">");
}

static void close_row(struct draw *d)
{
	put(d, "</TD></TR>\n");
}

static void put_freq(struct draw *d, const char *before, const struct graph_freq *f)
{
	if (f->confidence != GRAPH_UNKNOWN)
		put(d, "%s%.4g&#160;(%s)", before, f->value, graph_confidence_name(f->confidence));
}

/*
 * Several edges become one with the sum of their frequencies, as confident as the least confident
 * of them.
 */
static void add_freq(struct graph_freq *sum, const struct graph_freq *f)
{
	if (f->confidence < sum->confidence)
		sum->confidence = f->confidence;
	sum->value += f->value;
}

static void add_outside(bool *any, struct graph_freq *sum, const struct graph_freq *f)
{
	if (*any)
		add_freq(sum, f);
	else
		*sum = *f;
	*any = true;
}

static int find_outside(struct draw *d)
{
	d->outside = calloc((size_t)d->p->nr_blocks + 1, sizeof(*d->outside));
	for (size_t i = 0; d->outside && i < d->p->nr_edges; i++) {
		const struct graph_edge *e = &d->p->edges[i];

		if (e->kind == GRAPH_ENTRY)
			add_outside(&d->outside[e->to].enters, &d->outside[e->to].in, &e->freq);
		else if (e->kind == GRAPH_EXIT)
			add_outside(&d->outside[e->from].leaves, &d->outside[e->from].out,
				    &e->freq);
		else if (e->kind == GRAPH_TABLE)
			d->outside[e->from].table++;
	}
	for (size_t i = 0; d->outside && i < d->p->nr_edges; i++) {
		const struct graph_edge *e = &d->p->edges[i];

		d->hidden[i] = !edge_stays(e) ||
			       (e->kind == GRAPH_TABLE && d->outside[e->from].table > TABLE_MAX);
	}
	return d->outside ? 0 : -ENOMEM;
}

static void put_table(struct draw *d, uint32_t targets)
{
	if (targets <= TABLE_MAX)
		return;
	open_row(d, NULL, 0);
	put(d,
	    "<FONT "
	    "COLOR=\"#7d3c98\"><I>to&#160;%u&#160;blocks&#160;by&#160;a&#160;table</I></FONT>",
	    targets);
	close_row(d);
}

static void put_outside(struct draw *d, bool is, const char *where, const struct graph_freq *f)
{
	if (!is)
		return;
	open_row(d, NULL, 0);
	put(d, "<FONT COLOR=\"#707070\"><I>%s&#160;outside</I>", where);
	put_freq(d, "&#160;&#160;", f);
	put(d, "</FONT>");
	close_row(d);
}

/* DCPI's first line of a block: the low 24 bits of its address. */
static void put_name(struct draw *d, uint32_t i)
{
	put(d, "%u: %06" PRIx64, i, d->p->blocks[i].vaddr & 0xffffff);
}

static void put_head(struct draw *d, uint32_t i, const char *color)
{
	const struct graph_block *b = &d->p->blocks[i];
	const char *unit = graph_unit_name(d->p->unit);

	/* In one weight: graphviz takes bold text for wider than the viewer's font draws it, or
	 * narrower, and what is behind it touches it. */
	open_row(d, color, 0);
	put_name(d, i);
	if (d->p->samples)
		put(d, "&#160;&#160;%.1f%%", 100 * share(d, b->samples));
	put_freq(d, "&#160;&#160;freq&#160;", &b->freq);
	if (b->actual.cycles >= 0)
		put(d, "&#160;&#160;%.1f%s/%u", b->actual.cycles, unit, b->actual.nr_insns);
	if (b->best.cycles >= 0)
		put(d, "&#160;&#160;best&#160;%.1f%s", b->best.cycles, unit);
	close_row(d);
}

static void put_source(struct draw *d, const struct graph_texts *source)
{
	for (size_t i = 0; i < source->nr; i++) {
		open_row(d, "#eef4ff", 0);
		put(d, "<FONT COLOR=\"#1a4a8a\"><I>");
		put_text(d, *source->v[i] ? source->v[i] : " ", TEXT_MAX);
		put(d, "</I></FONT>");
		close_row(d);
	}
}

/* The first of several is as high as the cycles are many. */
static void put_stalls(struct draw *d, const struct graph_above *a, const char *color,
		       double height)
{
	for (size_t i = 0; i < a->nr_stalls; i++, height = 0) {
		const struct graph_stall *s = &a->stalls[i];

		open_row(d, color, height);
		put(d, "<FONT COLOR=\"#a02010\">&#160;&#160;");
		put_text(d, s->letters, TEXT_MAX);
		put(d, "&#160;&#160;%.1f..%.1f%s", s->low, s->high, graph_unit_name(d->p->unit));
		if (s->legend) {
			put(d, "&#160;&#160;(");
			put_text(d, s->legend, TEXT_MAX);
			put(d, ")");
		}
		put(d, "</FONT>");
		close_row(d);
	}
}

static void put_pad(struct draw *d, int width, const char *text)
{
	for (int i = (int)strlen(text); i < width; i++)
		put(d, "&#160;");
	put(d, "%s", text);
}

static size_t characters(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n > TEXT_MAX ? TEXT_MAX + 2 : n;
}

static size_t widest(const struct graph_block *b)
{
	size_t width = 0;

	for (size_t i = 0; i < b->nr_insns; i++)
		if (characters(b->insns[i].text) > width)
			width = characters(b->insns[i].text);
	return width;
}

static void put_insn(struct draw *d, const struct graph_insn *insn, size_t width, double font)
{
	double height = lines_above(insn) * font;
	char number[64], color[8];

	heat(share(d, insn->samples), color);
	put_source(d, &insn->above.source);
	put_stalls(d, &insn->above, insn->samples ? color : NULL, height);
	open_row(d, insn->samples ? color : NULL,
		 insn->above.nr_stalls || height <= 0 ? 0 : height + font);
	put(d, "%04" PRIx64 "&#160;", insn->vaddr & 0xffff);
	put_text(d, insn->text, TEXT_MAX);
	for (size_t i = characters(insn->text); i < width; i++)
		put(d, "&#160;");
	snprintf(number, sizeof(number), "%" PRIu64, insn->samples);
	put_pad(d, 8, insn->samples ? number : "");
	if (insn->cpi >= 0) {
		snprintf(number, sizeof(number), "%.1f%s", insn->cpi, graph_unit_name(d->p->unit));
		put_pad(d, 9, number);
	}
	if (insn->culprit) {
		put(d, "&#160;&#160;");
		put_text(d, insn->culprit, TEXT_MAX);
	}
	close_row(d);
}

/* So that the box is not much higher than wide. */
static uint32_t names_in_row(uint32_t n)
{
	return n <= 16 ? 4 : n <= 128 ? 8 : 16;
}

/* A box with names of cold blocks; @next is the list that next_in_group makes. */
static void put_small(struct draw *d, uint32_t i, const uint32_t *next)
{
	uint64_t samples = 0;
	char color[8];
	uint32_t n = 0, row;

	for (uint32_t b = i; b < d->p->nr_blocks; b = next[b], n++)
		samples += d->p->blocks[b].samples;
	row = names_in_row(n);
	heat(share(d, samples), color);
	put(d,
	    "b%u [shape=box style=filled fillcolor=\"%s\" color=\"#909090\" fontsize=%d "
	    "margin=\"0.03,0.01\" height=0 width=0 label=<",
	    i, color, FONT_MIN);
	n = 0;
	for (uint32_t b = i; b < d->p->nr_blocks; b = next[b], n++) {
		if (n)
			put(d, "%s", n % row ? "&#160;&#160;" : "<BR ALIGN=\"LEFT\"/>");
		put_name(d, b);
	}
	put(d, "%s>]\n", n > row ? "<BR ALIGN=\"LEFT\"/>" : "");
}

static void put_block(struct draw *d, uint32_t i)
{
	const struct graph_block *b = &d->p->blocks[i];
	const struct outside *o = &d->outside[i];
	double font = font_of(d, b);
	size_t width = widest(b);
	char color[8];

	heat(share(d, b->samples), color);
	put(d,
	    "b%u [fontsize=%.1f label=<<TABLE BORDER=\"1\" CELLBORDER=\"0\" CELLSPACING=\"0\" "
	    "CELLPADDING=\"1\" BGCOLOR=\"white\">\n",
	    i, font);
	put_outside(d, o->enters, "from", &o->in);
	put_head(d, i, color);
	put_source(d, &b->above.source);
	put_stalls(d, &b->above, NULL, 0);
	for (size_t k = 0; k < b->nr_insns; k++)
		put_insn(d, &b->insns[k], width, font);
	put_table(d, o->table);
	put_outside(d, o->leaves, "to", &o->out);
	put(d, "</TABLE>>]\n");
}

/* ---- edges ----------------------------------------------------------------------------------- */

static int by_ends(const void *pa, const void *pb)
{
	const struct line *a = pa, *b = pb;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	return (a->edge > b->edge) - (a->edge < b->edge);
}

static void add_line(struct draw *d, size_t i, const bool *several)
{
	const struct graph_edge *e = &d->p->edges[i];
	struct line l = { .edge = i, .back = d->back[i], .freq = e->freq };

	if (d->hidden[i])
		return;
	l.from = d->group[e->from];
	l.to = d->group[e->to];
	if (l.from != l.to || !several[l.from])
		d->lines[d->nr_lines++] = l;
}

/* Put together what runs between the same boxes. */
static void merge_lines(struct draw *d, const bool *several)
{
	size_t to = 0;

	for (size_t i = 0; i < d->nr_lines; i++) {
		struct line *l = &d->lines[i], *last = to ? &d->lines[to - 1] : NULL;

		if (last && last->from == l->from && last->to == l->to &&
		    (several[l->from] || several[l->to])) {
			add_freq(&last->freq, &l->freq);
			last->back |= l->back;
			continue;
		}
		d->lines[to++] = *l;
	}
	d->nr_lines = to;
}

static int find_lines(struct draw *d)
{
	bool *several = calloc((size_t)d->p->nr_blocks + 1, sizeof(*several));

	d->lines = calloc(d->p->nr_edges + 1, sizeof(*d->lines));
	if (!d->lines || !several) {
		free(several);
		return -ENOMEM;
	}
	for (uint32_t b = 0; b < d->p->nr_blocks; b++)
		if (d->group[b] != b)
			several[d->group[b]] = true;
	for (size_t i = 0; i < d->p->nr_edges; i++)
		add_line(d, i, several);
	qsort(d->lines, d->nr_lines, sizeof(*d->lines), by_ends);
	merge_lines(d, several);
	free(several);
	return 0;
}

/* Blue where it jumps, red where it closes a loop, black on; grey where it never ran. */
static const char *line_color(const struct draw *d, const struct line *l)
{
	enum graph_edge_kind kind = d->p->edges[l->edge].kind;

	if (l->freq.confidence != GRAPH_UNKNOWN && l->freq.value <= 0)
		return "#b0b0b0";
	if (l->back)
		return "#c0392b";
	return kind == GRAPH_FALL ? "#202020" : kind == GRAPH_TABLE ? "#7d3c98" : "#1f5fbf";
}

/* The heavier a line, the straighter: the way that is taken most goes straight down. */
static void put_line(struct draw *d, const struct line *l)
{
	double part = d->most_edge > 0 ? l->freq.value / d->most_edge : 0;
	enum graph_edge_kind kind = d->p->edges[l->edge].kind;
	bool small = d->small[l->from] || d->small[l->to];

	if (part > 1)
		part = 1;
	put(d, "b%u:s -> b%u:n [color=\"%s\" penwidth=%.2f weight=%d", l->from, l->to,
	    line_color(d, l), small ? 0.5 : 0.7 + 3.3 * sqrt(part),
	    (kind == GRAPH_FALL ? 4 : 1) + (int)(20 * part));
	if (kind == GRAPH_TABLE)
		put(d, " style=dashed");
	if (l->freq.confidence != GRAPH_UNKNOWN && d->p->nr_blocks <= LABELS_MAX)
		put(d, " label=\"%.4g\"", l->freq.value);
	put(d, "]\n");
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void put_title_line(struct draw *d, const char *before, const char *text)
{
	put(d, "<TR><TD ALIGN=\"LEFT\">");
	put_text(d, before, SIZE_MAX);
	put_text(d, text, 160);
	put(d, "</TD></TR>\n");
}

static void put_title(struct draw *d)
{
	const struct graph_proc *p = d->p;

	put(d, "label=<<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"0\">\n"
	       "<TR><TD ALIGN=\"LEFT\"><FONT POINT-SIZE=\"14\"><B>");
	put_text(d, p->name, 120);
	put(d, "</B></FONT></TD></TR>\n");
	put_title_line(d, "", p->image);
	put(d, "<TR><TD ALIGN=\"LEFT\">%" PRIu64 "&#160;sample%s&#160;of&#160;", p->samples,
	    p->samples == 1 ? "" : "s");
	put_text(d, p->event, TEXT_MAX);
	if (p->outside)
		put(d, ",&#160;%" PRIu64 "&#160;of&#160;them&#160;in&#160;no&#160;block",
		    p->outside);
	put(d, ",&#160;%u&#160;blocks</TD></TR>\n", p->nr_blocks);
	if (p->freq)
		put_title_line(d, "freq: ", p->freq);
	for (size_t i = 0; i < p->notes.nr; i++)
		put_title_line(d, "note: ", p->notes.v[i]);
	for (size_t i = 0; i < p->summary.nr; i++)
		put_title_line(d, "  ", p->summary.v[i]);
	put(d, "</TABLE>>\n");
}

static void find_most(struct draw *d)
{
	for (uint32_t i = 0; i < d->p->nr_blocks; i++)
		if (frequency(d, &d->p->blocks[i]) > d->most_freq)
			d->most_freq = frequency(d, &d->p->blocks[i]);
	for (size_t i = 0; i < d->p->nr_edges; i++)
		if (edge_stays(&d->p->edges[i]) && d->p->edges[i].freq.value > d->most_edge)
			d->most_edge = d->p->edges[i].freq.value;
}

static void put_graph(struct draw *d, const uint32_t *next)
{
	const char *font = "fontname=\"Courier\"";

	find_most(d);
	put(d,
	    "digraph \"\" {\n"
	    "graph [%s fontsize=10 labelloc=t labeljust=l ranksep=0.3 nodesep=0.2 "
	    "nslimit=5 mclimit=2]\n"
	    "node [%s shape=plain]\n"
	    "edge [%s fontsize=8 fontcolor=\"#404040\" arrowsize=0.6]\n",
	    font, font, font);
	put_title(d);
	for (uint32_t i = 0; i < d->p->nr_blocks; i++) {
		if (!d->small[i])
			put_block(d, i);
		else if (d->group[i] == i)
			put_small(d, i, next);
	}
	for (size_t i = 0; i < d->nr_lines; i++)
		put_line(d, &d->lines[i]);
	put(d, "}\n");
}

/* For each block the next one in the same box; UINT32_MAX at its end. */
static uint32_t *next_in_group(const struct draw *d)
{
	uint32_t n = d->p->nr_blocks;
	uint32_t *next = calloc((size_t)n + 1, sizeof(*next));
	uint32_t *last = calloc((size_t)n + 1, sizeof(*last));

	for (uint32_t b = 0; next && last && b < n; b++) {
		next[b] = UINT32_MAX;
		last[b] = b;
	}
	for (uint32_t b = 0; next && last && b < n; b++) {
		if (d->group[b] == b)
			continue;
		next[last[d->group[b]]] = b;
		last[d->group[b]] = b;
	}
	if (!last) {
		free(next);
		next = NULL;
	}
	free(last);
	return next;
}

static int find_shape(struct draw *d)
{
	size_t n = (size_t)d->p->nr_blocks + 1;
	int r;

	d->back = calloc(d->p->nr_edges + 1, sizeof(*d->back));
	d->hidden = calloc(d->p->nr_edges + 1, sizeof(*d->hidden));
	d->small = calloc(n, sizeof(*d->small));
	d->group = calloc(n, sizeof(*d->group));
	if (!d->back || !d->hidden || !d->small || !d->group)
		return -ENOMEM;
	for (uint32_t b = 0; b < d->p->nr_blocks; b++) {
		d->small[b] = is_small(d, &d->p->blocks[b]);
		d->group[b] = b;
	}
	r = find_outside(d);
	if (r >= 0)
		r = find_loops(d->p, d->back);
	if (r >= 0 && d->p->nr_blocks > MANY_BLOCKS)
		r = find_groups(d->p, d->hidden, d->small, d->group);
	return r < 0 ? r : find_lines(d);
}

static void count(const struct draw *d, struct draw_counts *to)
{
	*to = (struct draw_counts){ .lines = d->nr_lines };
	for (uint32_t b = 0; b < d->p->nr_blocks; b++) {
		to->blocks += !d->small[b];
		to->small += d->small[b];
		to->boxes += d->small[b] && d->group[b] == b;
	}
}

int draw_proc(const struct graph_proc *p, const struct draw_options *options, struct base_buf *to,
	      struct draw_counts *counts)
{
	struct draw d = { .p = p, .options = options, .to = to };
	uint32_t *next = NULL;
	int r;

	d.cutoff = options->cutoff >= 0		? options->cutoff / 100
		   : p->nr_blocks > MANY_BLOCKS ? 0.002
						: 0;
	r = find_shape(&d);
	if (r >= 0) {
		next = next_in_group(&d);
		r = next ? 0 : -ENOMEM;
	}
	if (r >= 0) {
		put_graph(&d, next);
		count(&d, counts);
	}
	free(next);
	free(d.outside);
	free(d.back);
	free(d.hidden);
	free(d.small);
	free(d.group);
	free(d.lines);
	return r < 0 ? r : d.r;
}
