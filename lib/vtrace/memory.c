/* SPDX-License-Identifier: BSD-2-Clause */
/* User-space reads of the interpreter: memory, and the clock. */
#include "base.h"
#include "vtrace.h"

int vtrace_memory_read(void *memory, void *to, size_t len, uint64_t addr)
{
	const struct vtrace_memory *m = memory;

	return m->read(m->ctx, to, len, addr);
}

uint64_t vtrace_memory_now(void)
{
	return base_now_ns();
}
