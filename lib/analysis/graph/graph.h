/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flow graph of procedures as text, docs/format/graph.md: what dcpicalc and dcpiflow print,
 * what dcpisource adds source lines to and dcpi2ps draws. People read the same text.
 *
 * A graph read is one that can be written, and reads as itself again. Texts in it (names,
 * instructions, source) are one line each; what would break a line is written as '?'.
 */
#ifndef DCPI_GRAPH_H
#define DCPI_GRAPH_H

#include "base.h"

#define GRAPH_OUTSIDE UINT32_MAX /* of an edge: not in this procedure */

enum graph_confidence {
	GRAPH_UNKNOWN, /* nothing is said */
	GRAPH_LOW,
	GRAPH_MEDIUM,
	GRAPH_HIGH,
	GRAPH_EXACT, /* counted */
};

/* How often something ran. */
struct graph_freq {
	double value; /* 0 or more, finite */
	enum graph_confidence confidence;
};

/* What cycles, CPI and stalls are in. */
enum graph_unit {
	GRAPH_CYCLES,
	GRAPH_NS,
	GRAPH_TIMES, /* an average instruction of the procedure */
};

enum graph_edge_kind {
	GRAPH_FALL,  /* on to the next instruction */
	GRAPH_TAKEN, /* a branch or jump */
	GRAPH_TABLE, /* one target of a jump through a table */
	GRAPH_ENTRY, /* from outside */
	GRAPH_EXIT,  /* to outside */
};

struct graph_edge {
	uint32_t from, to; /* blocks; GRAPH_OUTSIDE with GRAPH_ENTRY and GRAPH_EXIT */
	enum graph_edge_kind kind;
	struct graph_freq freq;
};

struct graph_texts {
	char **v;
	size_t nr, cap;
};

/* Cycles that went by before something, and what may have caused it. */
struct graph_stall {
	char *letters;	  /* one for each cause: "dwD"; not empty, no blanks */
	double low, high; /* cycles of one execution, low <= high */
	char *legend;	  /* "d = D-cache miss, w = write buffer"; NULL: said before */
};

/* What stands above an instruction, or at the head of a block. */
struct graph_above {
	struct graph_texts source; /* lines or tokens of the source */
	struct graph_stall *stalls;
	size_t nr_stalls, cap_stalls;
};

struct graph_insn {
	uint64_t vaddr;
	char *text;
	uint64_t samples;
	double cpi;	   /* cycles of one execution; below 0: not known */
	char *culprit;	   /* "0x9810" or more, joined by commas: what it waited for; or NULL */
	uint32_t file;	   /* index in files */
	unsigned int line; /* 0: none is known */
	struct graph_above above;
};

/* Cycles that a block's instructions take together. */
struct graph_cycles {
	double cycles; /* below 0: not known */
	uint32_t nr_insns;
};

struct graph_block {
	uint64_t vaddr, end; /* [vaddr, end) */
	uint64_t samples;    /* of its instructions together */
	struct graph_freq freq;
	bool omitted; /* too few samples: its instructions were left out */
	struct graph_cycles best, actual;
	struct graph_above above;
	struct graph_insn *insns; /* ascending by vaddr */
	size_t nr_insns, cap_insns;
};

struct graph_proc {
	char *name, *image;
	char *linkage; /* the linker's name, where @name is the one that people read; or NULL */
	char *id;      /* the image's build-id in hex, or NULL */
	char *event;   /* whose samples these are */
	uint64_t period;
	uint64_t samples; /* of the blocks and @outside together */
	uint64_t outside; /* at addresses that lie in no block */
	enum graph_unit unit;
	char *freq;	/* how frequencies were found, and their unit; NULL: there are none */
	bool same_size; /* draw all blocks in one size */
	struct graph_texts files, notes;
	struct graph_texts summary; /* lines of text for people */
	struct graph_block *blocks;
	uint32_t nr_blocks;
	size_t cap_blocks;
	struct graph_edge *edges;
	size_t nr_edges, cap_edges;
};

struct graph {
	struct graph_proc *procs;
	size_t nr, cap;
};

/* ---- making one (graph.c): each returns 0 (or what it says) or -ENOMEM ---------------------- */

/* NULL where memory lacks. */
struct graph *graph_new(void);
void graph_free(struct graph *g);
/* Copies of the texts. NULL where memory lacks; valid until the next is added. */
struct graph_proc *graph_proc_add(struct graph *g, const char *name, const char *image,
				  const char *event, uint64_t period);
struct graph_block *graph_block_add(struct graph_proc *p, uint64_t vaddr, uint64_t end);
/* Adds @samples to those of the block; the procedure's stay the caller's to set. */
struct graph_insn *graph_insn_add(struct graph_block *b, uint64_t vaddr, const char *text,
				  uint64_t samples);
/* Leave its instructions out. */
void graph_block_omit(struct graph_block *b);
int graph_edge_add(struct graph_proc *p, const struct graph_edge *e);
int graph_text_add(struct graph_texts *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int graph_stall_add(struct graph_above *a, const char *letters, double low, double high,
		    const char *legend);
void graph_above_release(struct graph_above *a);
const char *graph_confidence_name(enum graph_confidence c);
const char *graph_edge_kind_name(enum graph_edge_kind k);
const char *graph_unit_name(enum graph_unit u); /* "cy", "ns", "x" */

/* ---- as text (graph_write.c, graph_read.c) -------------------------------------------------- */

/* Append to @to. 0 or -ENOMEM. */
int graph_write(const struct graph *g, struct base_buf *to);
/* Any bytes. Errors: -DCPI_EFORMAT, -DCPI_EVERSION with the line in @err, -ENOMEM. */
int graph_read(const char *text, size_t len, struct graph **out, struct base_err *err);

#endif
