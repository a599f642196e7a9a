/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control flow of one procedure: its instructions, blocks, the edges between them, and which of
 * these run equally often; found in its bytes.
 *
 * Code is not believed: any bytes give a graph, and what cannot be known is said, not guessed:
 *
 * - An indirect jump whose targets are not found has an edge to FLOW_OUTSIDE, its block is
 *   @unresolved, and every block that nothing falls into is counted as an entry, for it may be a
 *   target.
 * - Code of the procedure that nothing known leads to (landing pads of exceptions, targets of
 *   unresolved jumps, data among code) is an entry too.
 * - A branch into the middle of an instruction leads to the block of that instruction: right for
 *   a skipped prefix, and otherwise told by @overlapping.
 *
 * A call does not end a block: what stands before and behind it runs equally often, and one block
 * of twenty instructions is better estimated than four of five. Not so where the callee is known by
 * its name not to return. Longjmp and exceptions break this rule as they break every flow equation.
 * A block with calls has the time of its own instructions only.
 *
 * A procedure's parts that the compiler put elsewhere (name.cold) belong to it when jumped into.
 * Jumps into other procedures are exits. Padding behind a jump or return is in no block.
 */
#ifndef DCPI_FLOW_H
#define DCPI_FLOW_H

#include "base.h"
#include "image.h"
#include "insn.h"

#define FLOW_OUTSIDE UINT32_MAX /* end of an edge: not in this procedure */

enum flow_edge_kind {
	FLOW_FALL,  /* on to the next instruction, behind a call too */
	FLOW_TAKEN, /* a direct jump or branch */
	FLOW_TABLE, /* one of the targets that an indirect jump was found to have */
	FLOW_ENTRY, /* from outside: the procedure's start, and what may be led to from elsewhere */
	/* To outside: return, tail call, unresolved jump, no way on (trap); of a loop that has no
	 * way out, one made up, since a signal, an exception or the end of the program leaves it.
	 */
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
	bool unresolved; /* ends in an indirect jump whose targets are not all known */
};

/*
 * Edges and blocks of one class run equally often: Johnson, Pearson and Pingali's cycle equivalence
 * (The Program Structure Tree, 1994), with exit and entry joined, found by giving each edge outside
 * of a spanning tree a random number and each edge of the tree the sum (exclusive or) of those that
 * cross it. Wrongly equal with a probability of 2^-62 a pair; the numbers are the same in every
 * run.
 */
struct flow {
	struct insn *insns; /* ascending by vaddr */
	uint32_t nr_insns;
	struct flow_block *blocks; /* ascending by vaddr; not each follows on the one before */
	uint32_t nr_blocks;
	struct flow_edge *edges; /* ascending by from, kind, to; those from outside last */
	uint32_t nr_edges;
	uint32_t *into, *out_of; /* indices of edges, as blocks have them */
	uint32_t nr_classes;
	uint32_t entry;	      /* block of the procedure's start; FLOW_OUTSIDE where there is none */
	uint32_t nr_indirect; /* indirect jumps */
	uint32_t nr_unresolved; /* of them, those whose targets are not known */
	bool overlapping;	/* some branch leads into the middle of an instruction */
	bool cut;		/* bytes are missing, or the procedure is above 16 MiB */
};

/*
 * What a procedure lies in. @bytes: up to @len bytes from @vaddr, returns how many. @pointer (may
 * be NULL): the address that the program finds at @vaddr (8 bytes, after relocation); 0 or
 * negative.
 * @symbol_at (may be NULL): the procedure over @vaddr, or NULL.
 */
struct flow_source {
	void *context;
	size_t (*bytes)(void *context, uint64_t vaddr, void *out, size_t len);
	int (*pointer)(void *context, uint64_t vaddr, uint64_t *value);
	const struct image_symbol *(*symbol_at)(void *context, uint64_t vaddr);
};

/*
 * A procedure without bytes gives a graph without blocks, with @cut set. Errors: -ENOMEM,
 * -DCPI_EUNSUPPORTED (machine).
 */
int flow_build(struct image *img, const struct image_symbol *symbol, struct flow **out,
	       struct base_err *err);
/* The same of any source; @d belongs to the caller and serves for many procedures. */
int flow_build_from(const struct flow_source *source, struct insn_decoder *d,
		    const struct image_symbol *symbol, struct flow **out, struct base_err *err);
void flow_free(struct flow *f);
/* The block over @vaddr, or FLOW_OUTSIDE; the instruction over it, or NULL. */
uint32_t flow_block_at(const struct flow *f, uint64_t vaddr);
const struct insn *flow_insn_at(const struct flow *f, uint64_t vaddr);

#endif
