/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of the text of flow graphs, and of files with it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "line.h"

enum { GRAPH_MAX_FILES = 1 << 20 };

/* The columns that the last heading names. */
struct graph_columns {
	bool seen, cpi, culprit, line;
};

struct graph_reader {
	const char *at, *end;
	size_t line;
	char *text; /* the current line, NUL-terminated, without its newline; owned */
	size_t cap;
	struct graph *g;
	struct graph_proc *p;
	struct graph_block *b;
	bool summary;
	struct graph_columns columns;
	struct graph_above above; /* lines above the next instruction */
	uint64_t head_samples;	  /* samples in the block's first line */
	struct base_err *err;
};

/* ---- lines and words ------------------------------------------------------------------------- */

/* Reports a format error at the current line. */
static int graph_bad(struct graph_reader *r, const char *why)
{
	return base_fail(r->err, -DCPI_EFORMAT, "line %zu of the graph is wrong: %s", r->line, why);
}

static int graph_no_memory(struct graph_reader *r)
{
	return base_fail_errno(r->err, -ENOMEM, "cannot read the graph");
}

/* Reads the next line into r->text. 1, 0 at the end of the text, or negative. */
static int graph_next_line(struct graph_reader *r)
{
	const char *why = NULL;
	size_t len;
	int got;

	r->line += r->at != r->end;
	got = line_take(&r->at, r->end, &r->text, &r->cap, &why);
	if (got < 0)
		return why ? graph_bad(r, why) : graph_no_memory(r);
	for (len = got ? strlen(r->text) : 0; len && r->text[len - 1] == ' ';)
		r->text[--len] = '\0';
	return got;
}

/* Each of these functions skips blanks and, if the expected text follows, moves *@at behind it. */
static bool graph_take(char **at, const char *word)
{
	char *p = *at + strspn(*at, " ");
	size_t len = strlen(word);

	if (strncmp(p, word, len) != 0 || (p[len] && p[len] != ' '))
		return false;
	*at = p + len;
	return true;
}

static bool graph_at_end(const char *at)
{
	return at[strspn(at, " ")] == '\0';
}

/* This one does not skip blanks. */
static bool graph_take_char(char **at, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(*at, text, len) != 0)
		return false;
	*at += len;
	return true;
}

/* Digits without sign; @base 10, or 16 behind "0x". */
static bool graph_take_uint(char **at, int base, uint64_t max, uint64_t *out)
{
	char *p = *at + strspn(*at, " "), *end;

	if (base == 16 && !graph_take_char(&p, "0x"))
		return false;
	if (!strchr(base == 16 ? "0123456789abcdef" : "0123456789", *p) || !*p)
		return false;
	errno = 0;
	*out = strtoull(p, &end, base);
	if (errno || *out > max)
		return false;
	*at = end;
	return true;
}

/* Accepts finite numbers that are not negative. */
static bool graph_take_double(char **at, double *out)
{
	char *p = *at + strspn(*at, " "), *end;

	if (*p < '0' || *p > '9' || (p[0] == '0' && p[1] == 'x'))
		return false;
	*out = strtod(p, &end);
	*at = end;
	return isfinite(*out);
}

/* Reads "freq 12.5 low", which may be missing. */
static bool graph_take_freq(char **at, struct graph_freq *f)
{
	if (!graph_take(at, "freq"))
		return true;
	if (!graph_take_double(at, &f->value))
		return false;
	for (int c = GRAPH_LOW; c <= GRAPH_EXACT; c++) {
		if (graph_take(at, graph_confidence_name(c))) {
			f->confidence = c;
			return true;
		}
	}
	return false;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* Reads the line of r->b that names the columns of its instructions. 0 or negative. */
static int graph_read_heading(struct graph_reader *r, char *at)
{
	if (r->columns.seen)
		return graph_bad(r, "a block has one heading");
	r->columns.seen = graph_take(&at, "Instruction") && graph_take(&at, "Samples");
	r->columns.cpi = graph_take(&at, r->p->unit == GRAPH_CYCLES ? "CPI" : "Cost");
	r->columns.culprit = graph_take(&at, "Culprit");
	r->columns.line = graph_take(&at, "Line");
	return r->columns.seen && graph_at_end(at) ? 0 : graph_bad(r, "these are not the columns");
}

/* Cuts the last word off the text; NULL: the text has none. */
static char *last_word(char *text)
{
	size_t len = strlen(text);

	while (len && text[len - 1] == ' ')
		len--;
	text[len] = '\0';
	while (len && text[len - 1] != ' ')
		len--;
	if (!text[len])
		return NULL;
	if (!len)
		return text;
	text[len - 1] = '\0';
	return text + len;
}

static bool parse_cpi(struct graph_reader *r, char *word, double *out)
{
	if (!word)
		return false;
	if (strcmp(word, "-") == 0)
		return true;
	return graph_take_double(&word, out) && strcmp(word, graph_unit_name(r->p->unit)) == 0;
}

static bool parse_line(struct graph_reader *r, char *word, struct graph_insn *insn)
{
	uint64_t file, line;

	if (!word)
		return false;
	if (strcmp(word, "-") == 0)
		return true;
	if (!graph_take_uint(&word, 10, GRAPH_MAX_FILES, &file) || !graph_take_char(&word, ":") ||
	    !graph_take_uint(&word, 10, UINT32_MAX, &line) || *word || !line ||
	    file >= r->p->files.nr)
		return false;
	insn->file = (uint32_t)file;
	insn->line = (unsigned int)line;
	return true;
}

static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " ");
	for (len = strlen(text); len && text[len - 1] == ' '; len--)
		text[len - 1] = '\0';
	return text;
}

static int add_insn(struct graph_reader *r, const struct graph_insn *from, const char *culprit)
{
	struct graph_block *b = r->b;
	struct graph_insn *insn;

	if (from->vaddr < b->vaddr || from->vaddr >= b->end ||
	    (b->nr_insns && from->vaddr <= b->insns[b->nr_insns - 1].vaddr))
		return graph_bad(r, "the address does not follow, or is not the block's");
	if (from->samples > UINT64_MAX - b->samples)
		return graph_bad(r, "too many samples");
	insn = graph_insn_add(b, from->vaddr, from->text, from->samples);
	if (!insn)
		return graph_no_memory(r);
	insn->cpi = from->cpi;
	insn->file = from->file;
	insn->line = from->line;
	insn->above = r->above;
	memset(&r->above, 0, sizeof(r->above));
	if (culprit && strcmp(culprit, "-") != 0) {
		insn->culprit = strdup(culprit);
		if (!insn->culprit)
			return graph_no_memory(r);
	}
	return 0;
}

/* Columns behind the text are one word each, so they are read from the end of the line. */
static int graph_read_insn(struct graph_reader *r, char *at)
{
	struct graph_insn insn = { .cpi = -1 };
	char *culprit = NULL, *word;

	if (!r->columns.seen)
		return graph_bad(r, "an instruction stands below the names of the columns");
	if (!graph_take_uint(&at, 16, UINT64_MAX, &insn.vaddr) || *at != ' ')
		return graph_bad(r, "no address");
	if (r->columns.line && !parse_line(r, last_word(at), &insn))
		return graph_bad(r, "the last column is FILE:LINE or '-'");
	if (r->columns.culprit) {
		culprit = last_word(at);
		if (!culprit)
			return graph_bad(r, "the culprit is missing");
	}
	if (r->columns.cpi && !parse_cpi(r, last_word(at), &insn.cpi))
		return graph_bad(r, "the CPI is like '1.0cy', or '-'");
	word = last_word(at);
	if (!word || !graph_take_uint(&word, 10, UINT64_MAX, &insn.samples) || *word)
		return graph_bad(r, "the samples are missing");
	insn.text = trim(at);
	return *insn.text ? add_insn(r, &insn, culprit)
			  : graph_bad(r, "the instruction is missing");
}

/* ---- head ------------------------------------------------------------------------------------ */

static int set_text(struct graph_reader *r, char **to, const char *text)
{
	if (*to)
		return graph_bad(r, "this was said before");
	if (*text != ' ' || !text[1])
		return graph_bad(r, "a text is missing");
	*to = strdup(text + 1);
	return *to ? 0 : graph_no_memory(r);
}

static int read_event(struct graph_reader *r, char *at)
{
	size_t len;

	if (r->p->event[0])
		return graph_bad(r, "this was said before");
	at += strspn(at, " ");
	len = strcspn(at, " ");
	free(r->p->event);
	r->p->event = strndup(at, len);
	if (!r->p->event)
		return graph_no_memory(r);
	at += len;
	if (!len || !graph_take_uint(&at, 10, UINT64_MAX, &r->p->period) || !graph_at_end(at))
		return graph_bad(r, "EVENT needs a name and a period");
	return 0;
}

static int read_count(struct graph_reader *r, char *at, uint64_t *to)
{
	if (!graph_take_uint(&at, 10, UINT64_MAX, to) || !graph_at_end(at))
		return graph_bad(r, "a count is missing");
	return 0;
}

static int read_file(struct graph_reader *r, char *at)
{
	uint64_t index;

	if (!graph_take_uint(&at, 10, GRAPH_MAX_FILES, &index) || *at != ' ' || !at[1])
		return graph_bad(r, "FILE needs a number and a name");
	if (index != r->p->files.nr)
		return graph_bad(r, "files are numbered from 0 on");
	return graph_text_add(&r->p->files, "%s", at + 1) < 0 ? graph_no_memory(r) : 0;
}

static int read_note(struct graph_reader *r, const char *at)
{
	if (*at != ' ' || !at[1])
		return graph_bad(r, "a text is missing");
	return graph_text_add(&r->p->notes, "%s", at + 1) < 0 ? graph_no_memory(r) : 0;
}

static int read_id(struct graph_reader *r, const char *at)
{
	struct base_id id;

	if (*at != ' ' || base_id_parse(&id, at + 1, strlen(at + 1)) < 0)
		return graph_bad(r, "ID needs pairs of hex digits");
	return set_text(r, &r->p->id, at);
}

static int finish_proc(struct graph_reader *r);

static int read_proc(struct graph_reader *r, char *at)
{
	int n = finish_proc(r);

	if (n < 0)
		return n;
	if (*at != ' ' || !at[1])
		return graph_bad(r, "PROC needs a name");
	r->p = graph_proc_add(r->g, at + 1, "", "", 0);
	if (!r->p)
		return graph_no_memory(r);
	free(r->p->image);
	r->p->image = NULL;
	return 0;
}

static int read_unit(struct graph_reader *r, char *at)
{
	if (r->p->unit != GRAPH_CYCLES)
		return graph_bad(r, "this was said before");
	for (int u = GRAPH_NS; u <= GRAPH_TIMES; u++)
		if (graph_take(&at, graph_unit_name(u)))
			r->p->unit = u;
	return r->p->unit != GRAPH_CYCLES && graph_at_end(at) ? 0 : graph_bad(r, "UNIT is ns or x");
}

static int read_head(struct graph_reader *r, char *at)
{
	if (graph_take(&at, "PROC"))
		return read_proc(r, at);
	if (!r->p || r->b || r->summary)
		return graph_bad(r, "it belongs between PROC and the first block");
	if (graph_take(&at, "LINKAGE"))
		return set_text(r, &r->p->linkage, at);
	if (graph_take(&at, "IMAGE"))
		return set_text(r, &r->p->image, at);
	if (graph_take(&at, "ID"))
		return read_id(r, at);
	if (graph_take(&at, "EVENT"))
		return read_event(r, at);
	if (graph_take(&at, "SAMPLES"))
		return read_count(r, at, &r->p->samples);
	if (graph_take(&at, "OUTSIDE"))
		return read_count(r, at, &r->p->outside);
	if (graph_take(&at, "FILE"))
		return read_file(r, at);
	if (graph_take(&at, "UNIT"))
		return read_unit(r, at);
	if (graph_take(&at, "FREQ"))
		return set_text(r, &r->p->freq, at);
	if (graph_take(&at, "NOTE"))
		return read_note(r, at);
	if (!graph_take(&at, "SAMESIZE") || !graph_at_end(at))
		return graph_bad(r, "no such word behind ';'");
	r->p->same_size = true;
	return 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static int finish_block(struct graph_reader *r)
{
	if (r->above.source.nr || r->above.nr_stalls)
		return graph_bad(r, "no instruction follows what stands above one");
	if (r->b && r->b->omitted && r->b->nr_insns)
		return graph_bad(r, "the block has instructions, and was omitted");
	if (r->b && !r->b->omitted && r->b->samples != r->head_samples)
		return base_fail(r->err, -DCPI_EFORMAT,
				 "line %zu of the graph is wrong: the samples of block %u before "
				 "it are not those of its instructions",
				 r->line, r->p->nr_blocks - 1);
	if (r->b)
		r->b->samples = r->head_samples;
	r->b = NULL;
	r->columns = (struct graph_columns){ 0 };
	return 0;
}

static int read_block(struct graph_reader *r, char *at)
{
	uint64_t index, vaddr, end;
	int n = finish_block(r);

	if (n < 0)
		return n;
	if (!r->p || r->summary)
		return graph_bad(r, "a block belongs into a procedure, before its summary");
	if (!graph_take_uint(&at, 10, UINT32_MAX, &index) || index != r->p->nr_blocks)
		return graph_bad(r, "blocks are numbered from 0 on");
	if (!graph_take_uint(&at, 16, UINT64_MAX, &vaddr) || !graph_take_char(&at, "..") ||
	    !graph_take_uint(&at, 16, UINT64_MAX, &end) || vaddr > end)
		return graph_bad(r, "a block needs its addresses");
	r->b = graph_block_add(r->p, vaddr, end);
	if (!r->b)
		return graph_no_memory(r);
	if (!graph_take(&at, "samples") || !graph_take_uint(&at, 10, UINT64_MAX, &r->head_samples))
		return graph_bad(r, "a block needs its samples");
	if (!graph_take_freq(&at, &r->b->freq))
		return graph_bad(r, "a frequency is a number and its confidence");
	r->b->omitted = graph_take(&at, "omitted");
	return graph_at_end(at) ? 0 : graph_bad(r, "something stands behind the block");
}

static int read_edge(struct graph_reader *r, char *at, bool from)
{
	struct graph_edge e = { .from = r->p->nr_blocks - 1, .to = GRAPH_OUTSIDE };
	uint64_t to;
	int kind;

	if (r->columns.seen || r->above.source.nr || r->above.nr_stalls)
		return graph_bad(r, "edges stand first in a block");
	if (graph_take(&at, "outside")) {
		e.kind = from ? GRAPH_ENTRY : GRAPH_EXIT;
	} else {
		if (from || !graph_take_uint(&at, 10, GRAPH_OUTSIDE - 1, &to))
			return graph_bad(r, "an edge needs the block that it leads to");
		for (kind = GRAPH_FALL; kind <= GRAPH_TABLE; kind++)
			if (graph_take(&at, graph_edge_kind_name(kind)))
				break;
		if (kind > GRAPH_TABLE)
			return graph_bad(r, "an edge is fall, taken or table");
		e.to = (uint32_t)to;
		e.kind = kind;
	}
	if (from) {
		e.to = e.from;
		e.from = GRAPH_OUTSIDE;
	}
	if (!graph_take_freq(&at, &e.freq) || !graph_at_end(at))
		return graph_bad(r, "a frequency is a number and its confidence");
	return graph_edge_add(r->p, &e) < 0 ? graph_no_memory(r) : 0;
}

/* Reads "Actual 140/13 = 10.77CPI". */
static int read_cycles(struct graph_reader *r, char *at)
{
	struct graph_cycles *c = NULL, read = { -1, 0 };
	char again[64];
	uint64_t n;

	if (graph_take(&at, "Best-case"))
		c = &r->b->best;
	else if (graph_take(&at, "Actual"))
		c = &r->b->actual;
	if (!c || c->cycles >= 0)
		return graph_bad(r, "*** is followed by Best-case or Actual, each once");
	if (!graph_take_double(&at, &read.cycles) || !graph_take_char(&at, "/") ||
	    !graph_take_uint(&at, 10, UINT32_MAX, &n) || !n)
		return graph_bad(r, "cycles/instructions are missing");
	read.nr_insns = (uint32_t)n;
	snprintf(again, sizeof(again), " = %.2f%s", read.cycles / read.nr_insns,
		 r->p->unit == GRAPH_CYCLES ? "CPI" : graph_unit_name(r->p->unit));
	if (strlen(again) == sizeof(again) - 1 || strcmp(at, again) != 0)
		return graph_bad(r, "the CPI is not that of the cycles and instructions");
	*c = read;
	return 0;
}

/* Lines before the heading belong to the block, later ones to the next instruction. */
static struct graph_above *above(struct graph_reader *r)
{
	return r->columns.seen ? &r->above : &r->b->above;
}

static int read_source(struct graph_reader *r, const char *at)
{
	if (*at && *at != ' ')
		return graph_bad(r, "a blank is missing");
	return graph_text_add(&above(r)->source, "%s", *at ? at + 1 : "") < 0 ? graph_no_memory(r)
									      : 0;
}

/* Reads "dDw 4.0..18.0cy (d = D-cache miss)". */
static int read_stall(struct graph_reader *r, char *at)
{
	char *letters = at + strspn(at, " "), *legend = NULL;
	size_t len = strcspn(letters, " ");
	double low, high;

	at = letters + len;
	if (!len || !graph_take_double(&at, &low) || !graph_take_char(&at, "..") ||
	    !graph_take_double(&at, &high) || low > high ||
	    !graph_take_char(&at, graph_unit_name(r->p->unit)))
		return graph_bad(r, "a stall needs its causes and LOW..HIGH with the unit");
	at += strspn(at, " ");
	letters[len] = '\0';
	len = strlen(at);
	if (len) {
		if (len < 3 || at[0] != '(' || at[len - 1] != ')')
			return graph_bad(r, "a legend stands in brackets");
		at[len - 1] = '\0';
		legend = at + 1;
	}
	return graph_stall_add(above(r), letters, low, high, legend) < 0 ? graph_no_memory(r) : 0;
}

/* ---- procedures ------------------------------------------------------------------------------ */

static int check_edges(struct graph_reader *r)
{
	for (size_t i = 0; i < r->p->nr_edges; i++) {
		const struct graph_edge *e = &r->p->edges[i];

		if ((e->from != GRAPH_OUTSIDE && e->from >= r->p->nr_blocks) ||
		    (e->to != GRAPH_OUTSIDE && e->to >= r->p->nr_blocks))
			return graph_bad(
				r, "an edge of the procedure leads to a block that is not there");
	}
	return 0;
}

static int finish_proc(struct graph_reader *r)
{
	uint64_t sum;
	int n = finish_block(r);

	r->summary = false;
	if (n < 0 || !r->p)
		return n;
	if (!r->p->image || !r->p->event[0])
		return graph_bad(r, "the procedure has no IMAGE or no EVENT");
	sum = r->p->outside;
	for (uint32_t i = 0; i < r->p->nr_blocks; i++)
		if (base_add_overflow(sum, r->p->blocks[i].samples, &sum))
			return graph_bad(r, "the procedure has too many samples");
	if (sum != r->p->samples)
		return graph_bad(r, "the procedure's samples are not those of its blocks");
	return check_edges(r);
}

static int read_summary(struct graph_reader *r, const char *text)
{
	if (strncmp(text, "  ", 2) != 0)
		return graph_bad(r, "a line of the summary begins with two blanks");
	return graph_text_add(&r->p->summary, "%s", text + 2) < 0 ? graph_no_memory(r) : 0;
}

static int begin_summary(struct graph_reader *r)
{
	int n = finish_block(r);

	if (n < 0)
		return n;
	if (!r->p || r->summary || r->p->summary.nr)
		return graph_bad(r, "a procedure has one summary");
	r->summary = true;
	return 0;
}

static int read_in_block(struct graph_reader *r, char *at)
{
	if (!r->b)
		return graph_bad(r, "it belongs into a block");
	if (graph_take(&at, "from"))
		return read_edge(r, at, true);
	if (graph_take(&at, "to"))
		return read_edge(r, at, false);
	if (graph_take(&at, "***"))
		return read_cycles(r, at);
	if (graph_take(&at, "|"))
		return read_source(r, at);
	if (graph_take(&at, "..."))
		return read_stall(r, at);
	if (graph_take(&at, "Addr"))
		return graph_read_heading(r, at);
	at += strspn(at, " ");
	return *at == '0' ? graph_read_insn(r, at) : graph_bad(r, "what is this?");
}

static int read_line(struct graph_reader *r)
{
	char *at = r->text;

	if (!*at)
		return 0;
	if (*at == ';')
		return read_head(r, at + 1);
	if (*at != ' ' && graph_take(&at, "block"))
		return read_block(r, at);
	if (strcmp(at, "summary") == 0)
		return begin_summary(r);
	if (r->summary)
		return read_summary(r, at);
	return *at == ' ' ? read_in_block(r, at) : graph_bad(r, "what is this?");
}

static int read_first(struct graph_reader *r)
{
	uint64_t version;
	char *at;
	int n = graph_next_line(r);

	if (n < 0)
		return n;
	at = r->text;
	if (n == 0 || !graph_take(&at, "dcpi-graph") ||
	    !graph_take_uint(&at, 10, UINT32_MAX, &version) || !graph_at_end(at)) {
		n = base_fail(r->err, -DCPI_EFORMAT, "this is no flow graph");
		base_hint(r->err, "it begins with 'dcpi-graph 1', as dcpiflow prints it");
		return n;
	}
	if (version != 1)
		return base_fail(r->err, -DCPI_EVERSION,
				 "the graph has version %" PRIu64 ", known is 1", version);
	return 0;
}

int graph_read(const char *text, size_t len, struct graph **out, struct base_err *err)
{
	struct graph_reader r = { .at = text, .end = text + len, .g = graph_new(), .err = err };
	int n = r.g ? read_first(&r) : graph_no_memory(&r);

	while (n >= 0 && (n = graph_next_line(&r)) > 0)
		n = read_line(&r);
	if (n >= 0)
		n = finish_proc(&r);
	free(r.text);
	graph_above_release(&r.above);
	if (n < 0)
		graph_free(r.g);
	else
		*out = r.g;
	return n;
}

/* ---- files ----------------------------------------------------------------------------------- */

enum { GRAPH_MAX = 1 << 30, CHUNK = 1 << 16 };

static int read_stream(FILE *from, struct base_buf *out, struct base_err *err)
{
	char chunk[CHUNK];
	size_t n;
	int r = 0;

	while (r >= 0 && (n = fread(chunk, 1, sizeof(chunk), from)) > 0)
		r = out->len + n > GRAPH_MAX ? -DCPI_ELIMIT : base_buf_append(out, chunk, n);
	if (r >= 0 && ferror(from))
		r = -errno;
	return r < 0 ? base_fail_errno(err, r, "cannot read the graph from standard input") : 0;
}

int graph_file_read(const char *path, struct graph **out, struct base_err *err)
{
	bool standard = !path || strcmp(path, "-") == 0;
	struct base_err why = { 0 };
	struct base_buf text = { 0 };
	int r = standard ? read_stream(stdin, &text, err)
			 : base_file_read(AT_FDCWD, path, GRAPH_MAX, &text, err);

	if (r >= 0) {
		r = graph_read((const char *)text.data, text.len, out, &why);
		if (r < 0) {
			base_fail(err, r, "%s: %s", standard ? "standard input" : path, why.text);
			base_hint(err, "%s", why.hint);
		}
	}
	base_buf_release(&text);
	return r;
}
