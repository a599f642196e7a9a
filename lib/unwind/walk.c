/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole stack is walked here in user space, by the same steps as in the sampling interrupt. */
#include "unwind.h"

#define UNWIND_INLINE		   static inline
#define UNWIND_READ(ctx, to, addr) read_memory(ctx, addr, to)

static int read_memory(const struct unwind_memory *m, uint64_t addr, uint64_t *to)
{
	return m->read(m->ctx, addr, to);
}

#include "walk.h"

/*
 * A coroutine's outermost frame was put onto its stack by hand: it "returns" to the first byte of a
 * routine, and no code stands before that which could have called.
 */
static bool is_begin(const struct unwind_memory *m, const struct unwind_state *s)
{
	return !s->exact && m->rule(m->ctx, s->pc - 1)->how == UNWIND_NONE &&
	       m->rule(m->ctx, s->pc)->how != UNWIND_NONE;
}

size_t unwind_walk(const struct unwind_memory *m, const struct unwind_state *start,
		   struct unwind_frame *frames, size_t max, enum unwind_step *end)
{
	struct unwind_state s = *start;
	size_t nr = 0;

	*end = UNWIND_STEP_NEXT;
	while (nr < max && *end == UNWIND_STEP_NEXT) {
		frames[nr++] = (struct unwind_frame){ .pc = s.pc, .exact = s.exact };
		*end = unwind_step((void *)(uintptr_t)m, &s, m->rule(m->ctx, unwind_lookup_pc(&s)));
	}
	if (*end == UNWIND_STEP_NO_ROWS && is_begin(m, &s)) {
		frames[nr - 1].exact = true;
		*end = UNWIND_STEP_COMPLETE;
	}
	return nr;
}
