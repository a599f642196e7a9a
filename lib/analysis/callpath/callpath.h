/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call paths as a tree of procedures. Only one sample in so many has a path; the samples of each
 * procedure, of which the flat profile has all, are divided among the paths that end in it, so that
 * the leaves of each procedure add up to its flat profile exactly.
 */
#ifndef DCPI_CALLPATH_H
#define DCPI_CALLPATH_H

#include "samples.h"

/* ---- procedures (frames.c) ------------------------------------------------------------------- */

enum callpath_kind {
	CALLPATH_PROCEDURE, /* a procedure of an image */
	CALLPATH_INLINED,   /* a function that has no code of its own in its image */
	CALLPATH_NO_SYMBOL, /* code of an image in no procedure, and samples in no image */
	CALLPATH_END,	    /* no code: the end of paths */
};

/* The first procedures of each tree: those that are ends, numbered as enum profdb_callpath_end, and
 * one more. */
enum {
	CALLPATH_OUTERMOST = PROFDB_CALLPATH_COMPLETE, /* the root, which calls outermost frames */
	CALLPATH_NO_PATH = PROFDB_NR_CALLPATH_ENDS,    /* "calls" procedures that no path ends in */
	CALLPATH_NR_ENDS
};

/* The code of a caller in a process says that it called its callee, nothing, or something else. */
enum { CALLPATH_AGREES, CALLPATH_UNCHECKED, CALLPATH_CONTRADICTED, CALLPATH_NR_CHECKS };

/* The images whose procedures of equal name are one: those of a facility, or an image alone. */
struct callpath_group {
	char *facility; /* NULL: an image alone */
	size_t nr_images;
};

struct callpath_procedure {
	enum callpath_kind kind;
	struct analysis_image *image; /* the first of several; NULL: an end */
	const struct callpath_group *group;
	char *name;	/* linker's name, or what stands in place of one */
	uint64_t vaddr; /* the first place of several; of CALLPATH_PROCEDURE alone */
	uint64_t len;
	uint64_t *flat;	 /* all its samples, by event; inlined functions have none */
	uint64_t *paths; /* number of samples of whose path it is the end, by event */
};

/* The name of its image, as reports show it; "" where it is in none. */
const char *callpath_image_name(const struct callpath_procedure *p);

/* ---- trees (tree.c) -------------------------------------------------------------------------- */

enum { CALLPATH_NO_NODE = UINT32_MAX };

struct callpath_node {
	uint32_t parent;    /* lower than its own number; of the root CALLPATH_NO_NODE */
	uint32_t procedure; /* of the root CALLPATH_OUTERMOST */
	bool inlined;	    /* on all paths the function was inlined into the caller */
	bool recursive;	    /* it called itself there, and is one frame with that */
};

/* Node 0 is the root. The numbers of a node are at [node * nr_events + event]. */
struct callpath_nodes {
	struct callpath_node *v;
	size_t nr, cap, nr_events;
	uint64_t *self;		  /* samples at the node itself */
	uint64_t *total;	  /* and at the nodes below it */
	struct base_map children; /* parent and procedure: number + 1 */
};

/* The samples of a procedure that are at one node. */
struct callpath_leaf {
	uint32_t node;
	uint32_t procedure; /* as the flat profile knows it: never an inlined function */
	bool alone;	    /* its caller is CALLPATH_NO_PATH */
};

struct callpath_how {
	bool inlined; /* inlined functions are frames of their own */
	bool fold;    /* a procedure that calls itself is one frame with that call */
	bool check; /* callers are compared with their code, and paths end where that contradicts */
};

struct callpath_tree {
	struct analysis *a;
	struct callpath_procedure *procedures;
	size_t nr_procedures, cap_procedures;
	struct base_map by_key;	     /* number of a procedure + 1 */
	struct base_map by_facility; /* struct callpath_group */
	struct callpath_group **groups;
	size_t nr_groups, cap_groups;
	struct callpath_nodes nodes;
	struct callpath_leaf *leaves;
	size_t nr_leaves, cap_leaves;
	struct base_map by_leaf;
	uint32_t
		*leaf_of; /* indexed by node of the paths: the leaf of its samples, or UINT32_MAX */
	bool *contradicted; /* likewise: its caller's code says that it did not call it, so that its
			       path ends there */
	uint64_t *raw;	    /* samples with a path, [leaf * nr_events + event] */
	uint64_t *count;    /* the same, so scaled that they add up to the flat profile */
	uint64_t *ends;	    /* samples with a path, [event * PROFDB_NR_CALLPATH_ENDS + end] */
	uint64_t *checks;   /* callers on their paths, [event * CALLPATH_NR_CHECKS + check] */
	uint64_t *unused;   /* indexed by event: samples with a path whose procedure has no flat
			       profile */
	uint64_t *alone;    /* indexed by event: samples of procedures that no path ends in */
};

/*
 * Reads the call paths of all epochs and platforms of @a into *@out; what cannot be read is noted
 * in @a. With @owners each is of its workload there. -ENOENT, with a hint: there are none.
 */
int callpath_load(struct analysis *a, bool owners, struct profdb_callpaths **out,
		  struct base_err *err);
/* Makes the tree of @paths and of the flat profiles of @a, which must outlive it. 0 or negative
 * with @err. */
int callpath_tree_make(struct analysis *a, const struct profdb_callpaths *paths,
		       const struct callpath_how *how, struct callpath_tree **out,
		       struct base_err *err);
void callpath_tree_free(struct callpath_tree *t);
/* Number of the procedure that has this place in a facility (by name) or, without one, in an image
 * (by address); @name NULL: what is in no procedure there. -ENOENT. */
int64_t callpath_procedure_find(const struct callpath_tree *t, const struct analysis_image *ai,
				const char *facility, const char *name, uint64_t vaddr);

/* Samples with a path, complete or not. */
uint64_t callpath_paths(const struct callpath_tree *t, size_t event);
/*
 * Samples on paths with a procedure of the class, once each, into @total by class. @class: that of
 * each procedure, below @nr, or UINT32_MAX for none. NULL: each is its own. 0 or -ENOMEM.
 */
int callpath_totals(const struct callpath_tree *t, size_t event, const uint32_t *class, size_t nr,
		    uint64_t *total);
/* Drops the samples of paths that have none of the procedures that are true in @wanted. 0 or
 * -ENOMEM. */
int callpath_keep(struct callpath_tree *t, const bool *wanted);

/*
 * Replaces the samples of all profiles of t->a by those that @callers (by procedure) called, at the
 * instructions where paths end, as many as the tree has of them; the tree is of the profiles before
 * that. @nr_paths: on how many that rests, by event. 0, -ENOMEM, -DCPI_EOVERFLOW or -DCPI_ELIMIT.
 */
int callpath_only(const struct callpath_tree *t, const struct profdb_callpaths *paths,
		  const bool *callers, uint64_t *nr_paths);

/* Copies the subtrees below the outermost frames of each procedure that is true: these procedures
 * become children of the root. A sample counts below each of them that is on its path. 0 or
 * -ENOMEM. */
int callpath_below(const struct callpath_tree *t, const bool *procedures,
		   struct callpath_nodes *out);
/*
 * Bottom-up: children of the root are the procedures that samples are in, and each child is a
 * caller. With @procedures only those that are true are such a beginning, with all samples below
 * them. "self" are samples whose path begins there. 0 or -ENOMEM.
 */
int callpath_above(const struct callpath_tree *t, const bool *procedures,
		   struct callpath_nodes *out);
void callpath_nodes_release(struct callpath_nodes *n);

/* The children of each node, most samples first; those of node n are child[first[n]] up to
 * child[first[n + 1]]. */
struct callpath_children {
	uint32_t *first, *child;
};
/* 0 or -ENOMEM. */
int callpath_children_make(const struct callpath_tree *t, const struct callpath_nodes *n,
			   size_t event, struct callpath_children *out);
void callpath_children_release(struct callpath_children *c);

/* ---- callers and callees (around.c) ---------------------------------------------------------- */

struct callpath_edge {
	uint32_t procedure;
	uint64_t count;
};

/*
 * A path counts once, however often the procedure is on it: for the caller of its outermost frame,
 * and for what its innermost one called.
 */
struct callpath_around {
	uint32_t procedure;
	uint64_t total, self;
	uint64_t recursive;	       /* of the total: on paths that have it more than once */
	struct callpath_edge *callers; /* most samples first; add up to total */
	size_t nr_callers;
	struct callpath_edge *callees; /* likewise; with self they add up to total */
	size_t nr_callees;
};
/* 0 or -ENOMEM. */
int callpath_around_make(const struct callpath_tree *t, uint32_t procedure, size_t event,
			 struct callpath_around *out);
void callpath_around_release(struct callpath_around *x);

#endif
