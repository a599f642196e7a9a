/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef OPAGENT_INTERNAL_H
#define OPAGENT_INTERNAL_H

#include "dbgdyn.h"
#include "opagent.h"

#include <stdbool.h>

/* Lines as they were told, copied: files' names follow the entries. */
struct opagent_lines {
	struct debug_line_info *entries;
	size_t nr_entries;
};

/* The data given with one code pointer. name is NULL while there are only lines. */
struct opagent_code {
	uintptr_t code; /* the key: the given pointer, or vma */
	uint64_t vma;
	size_t code_len;
	char *name;
	struct opagent_lines lines;
};

/* ---- known.c: what was told; the caller holds the lock --------------------------------------- */

/* That code, made where there is none; NULL: no memory. */
struct opagent_code *opagent_known_get(uintptr_t code);
/* Forget the one with that vma, or with that code pointer. */
void opagent_known_remove_vma(uint64_t vma);
void opagent_known_remove(uintptr_t code);
/* Give it a name, of code at @vma. -ENOMEM: it is as before. */
int opagent_known_name(struct opagent_code *c, const char *name, uint64_t vma, size_t code_len);

/* ---- lines.c --------------------------------------------------------------------------------- */

/* A copy; -ENOMEM: @to is as before. What it held is freed. */
int opagent_lines_set(struct opagent_lines *to, const struct debug_line_info *entries, size_t nr);
void opagent_lines_release(struct opagent_lines *l);
/*
 * Put the lines of @c into @r. They and *@room, which the caller frees, must last as long as @r.
 * -ENOMEM.
 */
int opagent_lines_put(const struct opagent_code *c, struct dbgdyn_routine *r, void **space);

/* ---- readable.c ------------------------------------------------------------------------------ */

/* False only where the kernel says that some of it cannot be read. */
bool opagent_readable(const void *addr, size_t len);

#endif
