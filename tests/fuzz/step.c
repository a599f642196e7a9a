/* SPDX-License-Identifier: BSD-2-Clause */
/* A message of dcpid-step's. What is taken for a block or a trace is within all bounds. */
#include <stdlib.h>
#include <string.h>

#include "step_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_block(const struct vtrace_code *c)
{
	const struct vtrace_block *b = &c->block;

	require(b->id >= STEP_ID_FIRST && b->id < STEP_ID_END);
	for (unsigned int i = 0; i < b->nr_uops; i++)
		require(vtrace_uop_is_sound(&c->uops[i]));
	for (unsigned int i = 0; i < b->nr_insns; i++)
		require(c->insns[i].first < b->nr_uops && c->insns[i].offset < b->len);
}

/* Every word of it can be read. */
static void check_trace(const struct step_trace *m)
{
	const uint64_t *words = (const uint64_t *)(m + 1);
	volatile uint64_t sum = 0;

	for (uint32_t i = 0; i < insn_trace_words(&m->w); i++)
		sum += words[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	void *message = malloc(len ? len : 1);
	struct vtrace_code *c;

	require(message != NULL);
	memcpy(message, data, len);
	if (step_block_take(message, len, &c) == 0) {
		check_block(c);
		free(c);
	}
	if (step_trace_check(message, len) == 0)
		check_trace(message);
	free(message);
	return 0;
}
