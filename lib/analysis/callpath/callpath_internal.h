/* SPDX-License-Identifier: BSD-2-Clause */
/* How a tree of procedures is made of call paths, step by step. */
#ifndef DCPI_CALLPATH_INTERNAL_H
#define DCPI_CALLPATH_INTERNAL_H

#include "callpath.h"
#include "image.h"
#include "insn.h"

/* The procedures that stand at one frame, innermost first, the one with the code last. */
struct frame_chain {
	uint32_t first; /* in frames.procedures */
	uint32_t nr;
	bool sigreturn; /* it returns from a signal's handler */
};

/* Which procedures are at the frame of each node of the database's tree. */
struct frames {
	struct frame_chain *of; /* indexed by node */
	uint32_t *procedures;
	size_t nr, cap;
	struct analysis_image **images; /* indexed by image of the paths; NULL: of no node */
};

/* frames.c: also sums the flat profile by procedure. 0 or negative. */
int frames_resolve(struct callpath_tree *t, const struct profdb_callpaths *paths, bool inlined,
		   struct frames *out);

enum called {
	CALLED_AGREES,	  /* a call stands there, and leads there if it says where it leads */
	CALLED_UNCHECKED, /* nothing can be said: no bytes, a stub, an indirect jump on the way */
	CALLED_CONTRADICTED, /* no call stands there, or it leads elsewhere */
};

/*
 * Does the call in @caller whose last byte stands at @last lead to the procedure @to, or to one
 * that jumps on to it? @here: @to is of @caller too; else only its name is compared, with stubs'.
 * NULL: it is not known. @d decodes @caller's code. Code that is changed while it runs, as that of
 * JITs, is asked for with @patched: only a missing call contradicts then.
 */
enum called analysis_called(struct insn_decoder *d, struct image *caller, uint64_t last,
			    const struct image_symbol *to, bool here, bool patched);
/* frames.c: does the code at @vaddr end a signal's handler? The caller of its frame was
 * interrupted, and has called nothing. */
bool analysis_is_sigreturn(const struct image *img, uint64_t vaddr);

/*
 * check.c: enum called of each node of the paths into @verdict, whose elements stay as they are
 * where there is nothing to check. 0 or -ENOMEM.
 */
int callpath_check(struct callpath_tree *t, const struct profdb_callpaths *paths,
		   const struct frames *frames, uint8_t *verdict);

/* frames.c: the order of procedures with equal counts: by name, image and address. */
int procedures_compare(const struct callpath_tree *t, uint32_t a, uint32_t b);

/* As callpath_children_make, in any order. */
int nodes_children(const struct callpath_nodes *n, struct callpath_children *out);

#endif
