/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces in user space, for tests: blocks are translated where they are met. */
#ifndef VTRACE_BLOCKS_H
#define VTRACE_BLOCKS_H

#include "vtrace.h"

struct vtrace_blocks; /* translated code, by its address; entered on any instruction */

int vtrace_blocks_new(enum vtrace_arch arch, struct vtrace_blocks **out);
void vtrace_blocks_free(struct vtrace_blocks *b);
/* The block of a visit; NULL: there is none. */
const struct vtrace_code *vtrace_blocks_get(const struct vtrace_blocks *b, uint32_t id);

/* Where @s stands: of an instruction that did not run to its end, where that is. */
uint64_t vtrace_pc(const struct vtrace_blocks *b, const struct vtrace_state *s);

/*
 * Run from @s (vtrace_begin, registers, pc and flags are the caller's) as far as it goes. Code that
 * is not there yet, or is another one now, is translated. Never VTRACE_UNTRANSLATED.
 */
enum vtrace_end vtrace_run(struct vtrace_blocks *b, const struct vtrace_memory *m,
			   struct vtrace_state *s);

#endif
