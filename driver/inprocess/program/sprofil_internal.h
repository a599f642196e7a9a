/* SPDX-License-Identifier: BSD-2-Clause */
/* The regions of a call of sprofil, checked and made fit for lookup in a signal handler. */
#ifndef SPROFIL_INTERNAL_H
#define SPROFIL_INTERNAL_H

#include "inprocess_internal.h"

#include "sprofil.h"

struct sprofil_region {
	uint64_t start, len; /* vaddr; it may reach beyond the last address */
	uint64_t base;	     /* vaddr of the array */
	uint32_t scale;
};

struct sprofil_table {
	struct inprocess_client client; /* its ctx is the table */
	struct inprocess_lock lock;	/* lock for reading, adding to and writing the elements */
	size_t mapped_len;		/* length of the table's own memory */
	uint32_t element;		/* bytes */
	bool has_overflow;
	uint64_t overflow; /* vaddr of its element */
	size_t nr;
	struct sprofil_region regions[]; /* ascending, disjoint */
};

/* @regions has room for @nr. 0 or -EINVAL. Ignored entries leave nothing. */
int sprofil_table_fill(struct sprofil_table *table, const struct prof *entries, size_t nr,
		       unsigned int flags);
/* The vaddr of the element that stands for @pc; false: none does. */
bool sprofil_table_find(const struct sprofil_table *table, uint64_t pc, uint64_t *element);
/* @value plus @nr, not above what an element of so many bytes holds. */
uint64_t sprofil_add(uint64_t value, uint32_t nr, uint32_t element);

#endif
