/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables: the rule (rule.h) at each place of a file's code. A row says from which offset in
 * the file on a rule holds, in 4 bytes; docs/decisions/call-paths.md says why. walk.h follows the
 * rules.
 */
#ifndef DCPI_UNWIND_H
#define DCPI_UNWIND_H

#include <stddef.h>
#include <stdint.h>

#include "base.h"
#include "python.h"
#include "rule.h"
#include "state.h"

enum {
	UNWIND_PAGE_BITS = 16,
	UNWIND_MAX_ROWS = 1 << 23,
	UNWIND_MAX_PAGES = 1 << 20, /* 64 GiB of a file */
	UNWIND_MAX_RULES = 1 << 16,
};

struct unwind_row {
	uint16_t low;  /* low bits of the offset from which on it holds, up to the next row */
	uint16_t rule; /* index in rules */
};

/*
 * Rows of page i, which begins at offset (first_page + i) << UNWIND_PAGE_BITS of the file, are
 * pages[i] up to, without, pages[i + 1], ascending by low. Before the first of them holds the
 * row before, which is of an earlier page. Before the first row and behind the last page there is
 * no code: rule 0, UNWIND_NONE. The last row has rule 0 too.
 */
struct unwind_table {
	uint32_t first_page, nr_pages;
	uint32_t nr_rows, nr_rules;
	uint32_t *pages; /* nr_pages + 1 */
	struct unwind_row *rows;
	struct unwind_rule *rules;   /* nr_rules, at least 1 */
	struct unwind_python python; /* of version 0: the file has none */
};

/* ---- made ------------------------------------------------------------------------------------ */

struct unwind_builder;

/* NULL: no memory. */
struct unwind_builder *unwind_builder_new(void);
/*
 * From @off on @rule holds. A row at the offset of the one before replaces it; equal neighbours
 * become one. -EINVAL: below the row before, or no valid rule; -DCPI_ELIMIT: more rows, pages or
 * rules than a table may have; -ENOMEM.
 */
int unwind_builder_add(struct unwind_builder *b, uint64_t off, const struct unwind_rule *rule);
/* The table of all rows, which must have ended with one of UNWIND_NONE (-EINVAL). -ENOMEM. Free the
 * builder all the same. */
int unwind_builder_done(struct unwind_builder *b, struct unwind_table **out);
void unwind_builder_free(struct unwind_builder *b);

void unwind_free(struct unwind_table *t);

/* ---- used ------------------------------------------------------------------------------------ */

/* The rule at an offset; never NULL. */
const struct unwind_rule *unwind_find(const struct unwind_table *t, uint64_t off);
/* Memory of its pages, rows and rules, in bytes. */
size_t unwind_size(const struct unwind_table *t);

/* ---- walks in user space (walk.c); a single step is in walk.h -------------------------------- */

/* The stack and code that are walked. */
struct unwind_memory {
	/* The 8 bytes at @addr into *@value: 0, or negative if they cannot be read. */
	int (*read)(void *ctx, uint64_t addr, uint64_t *value);
	/* The rule of the code at an address; never NULL. */
	const struct unwind_rule *(*rule)(void *ctx, uint64_t addr);
	void *ctx;
};

struct unwind_frame {
	uint64_t pc;
	bool exact; /* false: a return address, the code that called is before it */
};

/*
 * The frames from @start on, up to @max of them; returns how many, at least 1 if @max is. *@end
 * says why there are no more, UNWIND_STEP_NEXT: for want of space.
 */
size_t unwind_walk(const struct unwind_memory *m, const struct unwind_state *start,
		   struct unwind_frame *frames, size_t max, enum unwind_step *end);

/* ---- from one process to another of the same machine ----------------------------------------- */

/* How many bytes, and they themselves to @to. */
size_t unwind_encoded_len(const struct unwind_table *t);
void unwind_encode(const struct unwind_table *t, uint8_t *to);
/* From bytes that are not trusted. -DCPI_EFORMAT: they are no table as described above; -ENOMEM. */
int unwind_decode(const uint8_t *data, size_t len, struct unwind_table **out);

#endif
