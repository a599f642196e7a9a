/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control flow of one procedure: its instructions, its blocks, the edges between them, and the
 * classes of blocks and edges that run equally often. All of it is found in the code bytes.
 *
 * Code is untrusted: any bytes give a graph, and unknown facts are marked as unknown:
 *
 * - An indirect jump whose targets are not found has an edge to FLOW_OUTSIDE and its block is
 *   @unresolved. Every block into which no other falls through is then an entry, as it may be a
 *   target.
 * - Code of the procedure that no known edge enters (landing pads of exceptions, targets of
 *   unresolved jumps, data among code) is an entry too.
 * - A branch into the middle of an instruction enters the block of that instruction, which is right
 *   for a skipped prefix; @overlapping is set.
 *
 * A call does not end a block: the code before and behind it runs equally often, and one block of
 * twenty instructions is better estimated than four of five. A call of a function that is known by
 * name not to return does end a block. Longjmp and exceptions break this rule as they break every
 * flow equation. The time of a block with calls is that of its own instructions only.
 *
 * Parts of a procedure that the compiler places elsewhere (name.cold) belong to it when it jumps
 * into them. Jumps into other procedures are exits. Padding behind a jump or return is in no block.
 */
#ifndef DCPI_FLOW_H
#define DCPI_FLOW_H

#include "base.h"
#include "image.h"
#include "insn.h"

#define FLOW_OUTSIDE UINT32_MAX /* the end of an edge that is not in this procedure */

enum flow_edge_kind {
	FLOW_FALL,  /* control continues at the next instruction, also behind a call */
	FLOW_TAKEN, /* a taken direct jump or branch */
	FLOW_TABLE, /* one of the targets found for an indirect jump */
	FLOW_ENTRY, /* from outside: the procedure's start, and blocks that may be entered from
		       elsewhere */
	/* To outside: a return, tail call, unresolved jump, or trap. A loop without any exit
	 * gets an artificial one, since a signal, an exception or the end of the program leaves
	 * it. */
	FLOW_EXIT,
};

struct flow_edge {
	uint32_t from, to; /* blocks, or FLOW_OUTSIDE */
	uint32_t eq_class;
	enum flow_edge_kind kind;
};

struct flow_block {
	uint64_t vaddr, end;	 /* [vaddr, end) */
	uint32_t insn, nr_insns; /* in flow.insns */
	uint32_t in, nr_in;	 /* in flow.into: indices of edges */
	uint32_t out, nr_out;	 /* in flow.out_of */
	uint32_t eq_class;
	uint32_t nr_calls;
	bool unresolved; /* the block ends in an indirect jump with unknown targets */
};

/*
 * The graph of a procedure. Edges and blocks of one class run equally often: this is cycle
 * equivalence (Johnson, Pearson and Pingali, The Program Structure Tree, 1994) with exit and entry
 * joined. It is found by giving each edge outside of a spanning tree a random number, and each tree
 * edge the sum (exclusive or) of those that cross it. Two edges are wrongly equal with a
 * probability of 2^-62; the numbers are the same in every run.
 */
struct flow {
	struct insn *insns; /* ascending by vaddr */
	uint32_t nr_insns;
	struct flow_block *blocks; /* ascending by vaddr, possibly with gaps */
	uint32_t nr_blocks;
	struct flow_edge *edges; /* ascending by from, kind, to; entries come last */
	uint32_t nr_edges;
	uint32_t *into, *out_of; /* indices of edges; blocks refer to ranges of them */
	uint32_t nr_classes;
	uint32_t entry;		/* the block of the procedure's start, or FLOW_OUTSIDE */
	uint32_t nr_indirect;	/* number of indirect jumps */
	uint32_t nr_unresolved; /* number of these whose targets are not known */
	bool overlapping;	/* some branch leads into the middle of an instruction */
	bool cut;		/* bytes are missing, or the procedure is above 16 MiB */
};

/*
 * The source of code and symbols. @bytes copies up to @len bytes from @vaddr and returns their
 * number. @pointer (may be NULL) gives the address stored at @vaddr (8 bytes, after relocation) and
 * returns 0 or negative. @symbol_at (may be NULL) returns the procedure over @vaddr, or NULL.
 */
struct flow_source {
	void *context;
	size_t (*bytes)(void *context, uint64_t vaddr, void *out, size_t len);
	int (*pointer)(void *context, uint64_t vaddr, uint64_t *value);
	const struct image_symbol *(*symbol_at)(void *context, uint64_t vaddr);
};

/*
 * Builds the graph of a procedure; the caller releases *@out with flow_free. A procedure without
 * bytes gives a graph without blocks, with @cut set. 0 or, with @err, -ENOMEM or -DCPI_EUNSUPPORTED
 * (machine).
 */
int flow_build(struct image *img, const struct image_symbol *symbol, struct flow **out,
	       struct base_err *err);
/* Builds the graph from any source. @d belongs to the caller, who can use it for many
 * procedures. */
int flow_build_from(const struct flow_source *source, struct insn_decoder *d,
		    const struct image_symbol *symbol, struct flow **out, struct base_err *err);
void flow_free(struct flow *f);
/* The block over @vaddr, or FLOW_OUTSIDE; the instruction over it, or NULL. */
uint32_t flow_block_at(const struct flow *f, uint64_t vaddr);
const struct insn *flow_insn_at(const struct flow *f, uint64_t vaddr);

#endif
