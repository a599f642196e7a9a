/* SPDX-License-Identifier: BSD-2-Clause */
/* A set of disjoint intervals of addresses [start, end), ordered; nodes are embedded, first member.
 */
#ifndef DCPI_INTERVAL_H
#define DCPI_INTERVAL_H

#include <stddef.h>
#include <stdint.h>

struct interval_node {
	struct interval_node *kid[2];
	uint64_t start, end;
	uint32_t prio;
};

struct interval_tree {
	struct interval_node *root;
	uint64_t seed;
	size_t nr;
};

/* The interval that holds @addr, or NULL. */
struct interval_node *interval_find(const struct interval_tree *t, uint64_t addr);
/* The lowest interval that overlaps [start, end), or NULL. */
struct interval_node *interval_overlap(const struct interval_tree *t, uint64_t start, uint64_t end);
/* @n's interval overlaps none. */
void interval_insert(struct interval_tree *t, struct interval_node *n);
void interval_remove(struct interval_tree *t, struct interval_node *n);
/* free() every node. */
void interval_release(struct interval_tree *t);

#endif
