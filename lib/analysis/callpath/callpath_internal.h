/* SPDX-License-Identifier: BSD-2-Clause */
/* How a tree of procedures is made of call paths, step by step. */
#ifndef DCPI_CALLPATH_INTERNAL_H
#define DCPI_CALLPATH_INTERNAL_H

#include "called.h"
#include "callpath.h"

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
void frames_release(struct frames *f);

/*
 * check.c: enum called of each node of the paths into @verdict, whose elements stay as they are
 * where there is nothing to check. 0 or -ENOMEM.
 */
int callpath_check(struct callpath_tree *t, const struct profdb_callpaths *paths,
		   const struct frames *frames, uint8_t *verdict);

/* procedures.c */
int procedures_begin(struct callpath_tree *t);
int procedures_group(struct callpath_tree *t, struct analysis_image *ai,
		     struct callpath_group **out);
/* The procedure of @symbol (NULL: none) in @ai; or an inlined function of that name. */
int procedures_place(struct callpath_tree *t, struct callpath_group *group,
		     struct analysis_image *ai, const struct image_symbol *symbol, uint32_t *out);
int procedures_inlined(struct callpath_tree *t, struct callpath_group *group,
		       struct analysis_image *ai, struct image *img, const char *name,
		       uint32_t *out);
/* The order of procedures with equal counts: by name, image and address. */
int procedures_compare(const struct callpath_tree *t, uint32_t a, uint32_t b);
void procedures_release(struct callpath_tree *t);

/* nodes.c: a tree with its root alone; the child of a node, made where missing; room for the
 * numbers, all 0, once all nodes are there; totals from what each node has itself. */
int nodes_begin(struct callpath_nodes *n, size_t nr_events);
int nodes_child(struct callpath_nodes *n, uint32_t parent, uint32_t procedure, bool inlined,
		uint32_t *out);
int nodes_counts(struct callpath_nodes *n);
void nodes_total(struct callpath_nodes *n);
/* As callpath_children_make, in any order. */
int nodes_children(const struct callpath_nodes *n, struct callpath_children *out);

/* scale.c: t->count from t->raw, and from it what nodes have. */
int scale_leaves(struct callpath_tree *t);

#endif
