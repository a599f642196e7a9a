/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the readers of a graph's text (graph.h): graph_read.c, graph_words.c,
 * graph_read_insn.c. */
#ifndef GRAPH_READER_H
#define GRAPH_READER_H

#include "graph.h"

enum { GRAPH_MAX_FILES = 1 << 20 };

/* Which columns the last heading named. */
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
	struct graph_above above; /* of the instruction to come */
	uint64_t head_samples;	  /* of the block's first line */
	struct base_err *err;
};

/* graph_words.c */

/* The text is wrong at this line: the error. */
int graph_bad(struct graph_reader *r, const char *why);
int graph_no_memory(struct graph_reader *r);
/* Into r->text. 1, 0 at the end, or negative. */
int graph_next_line(struct graph_reader *r);
/* Each skips blanks and, when there is what is asked for, *@at goes behind it. */
bool graph_take(char **at, const char *word); /* and what ends it */
bool graph_at_end(const char *at);
bool graph_take_char(char **at, const char *text); /* skips none */
/* Digits without sign; @base 10, or 16 behind "0x". */
bool graph_take_uint(char **at, int base, uint64_t max, uint64_t *out);
bool graph_take_double(char **at, double *out); /* not negative, finite */
/* "freq 12.5 low", or nothing. */
bool graph_take_freq(char **at, struct graph_freq *f);

/* graph_read_insn.c */

/* A line of r->b: the names of its columns, an instruction. 0 or negative. */
int graph_read_heading(struct graph_reader *r, char *at);
int graph_read_insn(struct graph_reader *r, char *at);

#endif
