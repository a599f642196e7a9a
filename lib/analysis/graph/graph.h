/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow graphs of procedures with frequencies, costs and stalls, and their text
 * (docs/format/graph.md): dcpicalc and dcpiflow print it, dcpisource adds source lines to it,
 * dcpi2ps draws it, and people read it. Inside one process the struct is passed.
 *
 * A graph that was read can be written, and the text reads as the same graph. Texts in it (names,
 * instructions, source) are one line each; characters that would break a line are written as '?'.
 */
#ifndef DCPI_GRAPH_H
#define DCPI_GRAPH_H

#include "base.h"

#define GRAPH_OUTSIDE UINT32_MAX /* the end of an edge that is not in this procedure */

enum graph_confidence {
	GRAPH_UNKNOWN, /* not stated */
	GRAPH_LOW,
	GRAPH_MEDIUM,
	GRAPH_HIGH,
	GRAPH_EXACT, /* counted */
};

/* The number of executions of a block, edge or instruction. */
struct graph_freq {
	double value; /* 0 or more, finite */
	enum graph_confidence confidence;
};

/* The unit of cycles, CPI and stalls. */
enum graph_unit {
	GRAPH_CYCLES,
	GRAPH_NS,
	GRAPH_TIMES, /* the time of an average instruction of the procedure */
};

enum graph_edge_kind {
	GRAPH_FALL,  /* control continues at the next instruction */
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

/* The length of a stall before an instruction, and its possible causes. */
struct graph_stall {
	char *letters;	  /* one letter for each cause: "dwD"; not empty, no blanks */
	double low, high; /* cycles of one execution, low <= high */
	char *legend;	  /* "d = D-cache miss, w = write buffer"; NULL: an earlier stall has it */
};

/* The lines above an instruction, or at the head of a block. */
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
	char *culprit;	   /* addresses of the instructions that it waited for, joined by commas:
			      "0x9810"; or NULL */
	uint32_t file;	   /* index in files */
	unsigned int line; /* 0: not known */
	struct graph_above above;
};

/* The cycles that a block's instructions take together. */
struct graph_cycles {
	double cycles; /* below 0: not known */
	uint32_t nr_insns;
};

struct graph_block {
	uint64_t vaddr, end; /* [vaddr, end) */
	uint64_t samples;    /* sum of its instructions */
	struct graph_freq freq;
	bool omitted; /* its instructions are left out, as the block has too few samples */
	struct graph_cycles best, actual;
	struct graph_above above;
	struct graph_insn *insns; /* ascending by vaddr */
	size_t nr_insns, cap_insns;
};

struct graph_proc {
	char *name, *image;
	char *linkage; /* the linker's name, if @name is a readable one; or NULL */
	char *id;      /* the image's build-id in hex, or NULL */
	char *event;   /* the event of the samples */
	uint64_t period;
	uint64_t samples; /* sum of the blocks and @outside */
	uint64_t outside; /* samples at addresses in no block */
	enum graph_unit unit;
	char *freq; /* the source of the frequencies, and their unit; NULL: there are no frequencies
		     */
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

/* ---- construction (graph.c): functions return 0 (or as stated) or -ENOMEM -------------------- */

/* An empty graph, or NULL where memory lacks. The caller releases it with graph_free. */
struct graph *graph_new(void);
void graph_free(struct graph *g);
/* Appends a procedure, with copies of the texts. NULL where memory lacks; the pointer is valid
 * until the next is added. */
struct graph_proc *graph_proc_add(struct graph *g, const char *name, const char *image,
				  const char *event, uint64_t period);
struct graph_block *graph_block_add(struct graph_proc *p, uint64_t vaddr, uint64_t end);
/* Appends an instruction and adds @samples to the block's; the caller sets those of the
 * procedure. The pointer is valid until the next is added; NULL where memory lacks. */
struct graph_insn *graph_insn_add(struct graph_block *b, uint64_t vaddr, const char *text,
				  uint64_t samples);
/* Removes the block's instructions and marks the block as omitted. */
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

/* ---- text (write.c, read.c) ------------------------------------------------------------------ */

/* Appends the graph's text to @to. 0 or -ENOMEM. */
int graph_write(const struct graph *g, struct base_buf *to);
/* Parses untrusted text into *@out, released with graph_free. 0 or, with @err naming the line,
 * -DCPI_EFORMAT, -DCPI_EVERSION or -ENOMEM. */
int graph_read(const char *text, size_t len, struct graph **out, struct base_err *err);
/* The graph of a file. @path NULL or "-": standard input. Errors: those of graph_read, with the
 * file's name. */
int graph_file_read(const char *path, struct graph **out, struct base_err *err);
/* To standard output. 0, -ENOMEM or -EIO. */
int graph_file_print(const struct graph *g, struct base_err *err);

#endif
