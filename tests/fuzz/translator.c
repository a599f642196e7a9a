/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answer of the helper that translates: the first 64 bytes are the code that it was asked for,
 * the rest is the answer. What is taken for sound is within all bounds that the interpreter needs.
 */
#include <stdlib.h>
#include <string.h>

#include "translator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { BASE = 0x1000, CODE = 64 };

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check(const struct vtrace_code *c)
{
	const struct vtrace_block *b = &c->block;

	require(b->pc >= BASE && b->pc + b->len <= BASE + CODE);
	require(c->place.where == vtrace_where(b->pc));
	require(memcmp(c->place.code, b->code,
		       b->len < VTRACE_PLACE_BYTES ? b->len : VTRACE_PLACE_BYTES) == 0);
	require(b->nr_uops && b->nr_uops <= VTRACE_BLOCK_UOPS);
	require(b->nr_insns && b->nr_insns <= VTRACE_BLOCK_INSNS);
	for (unsigned int i = 0; i < b->nr_uops; i++)
		require(vtrace_uop_is_sound(&c->uops[i]));
	for (unsigned int i = 0; i < b->nr_insns; i++)
		require(c->insns[i].first < b->nr_uops && c->insns[i].offset < b->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct translator_request q = {
		.arch = VTRACE_X86_64, .len = CODE, .base = BASE, .pc = BASE
	};
	const struct vtrace_code *blocks;
	void *answer;
	int nr;

	if (len <= CODE)
		return 0;
	answer = malloc(len - CODE);
	require(answer != NULL);
	memcpy(answer, data + CODE, len - CODE);
	nr = translator_check(&q, data, answer, len - CODE, &blocks);
	require(nr == -DCPI_EHELPER || (nr > 0 && nr <= TRANSLATOR_BLOCKS));
	for (int i = 0; i < nr; i++)
		check(&blocks[i]);
	free(answer);
	return 0;
}
