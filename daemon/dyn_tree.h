/* SPDX-License-Identifier: BSD-2-Clause */
/* A set of disjoint intervals of addresses [start, end), ordered; nodes are embedded, first member.
 */
#ifndef DCPI_DYN_TREE_H
#define DCPI_DYN_TREE_H

#include <stddef.h>
#include <stdint.h>

struct dyn_node {
	struct dyn_node *kid[2];
	uint64_t start, end;
	uint32_t prio;
};

struct dyn_tree {
	struct dyn_node *root;
	uint64_t seed;
	size_t nr;
};

/* The interval that holds @addr, or NULL. */
struct dyn_node *dyn_tree_find(const struct dyn_tree *t, uint64_t addr);
/* The lowest interval that overlaps [start, end), or NULL. */
struct dyn_node *dyn_tree_overlap(const struct dyn_tree *t, uint64_t start, uint64_t end);
/* @n's interval overlaps none. */
void dyn_tree_insert(struct dyn_tree *t, struct dyn_node *n);
void dyn_tree_remove(struct dyn_tree *t, struct dyn_node *n);
/* free() every node. */
void dyn_tree_release(struct dyn_tree *t);

#endif
