/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind tables from a process that is not trusted, and walks by them over a stack that is not. */
#include <stdlib.h>
#include <string.h>

#include "unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { MAX_FRAMES = 64 };

struct input {
	const uint8_t *data;
	size_t len;
	const struct unwind_table *table;
};

static int read_word(void *ctx, uint64_t addr, uint64_t *value)
{
	const struct input *in = ctx;

	if (in->len < 8 || addr > in->len - 8)
		return -1;
	memcpy(value, in->data + addr, 8);
	return 0;
}

static const struct unwind_rule *rule_at(void *ctx, uint64_t addr)
{
	return unwind_find(((const struct input *)ctx)->table, addr);
}

static void walk(struct input *in, uint64_t pc)
{
	const struct unwind_memory m = { .read = read_word, .rule = rule_at, .ctx = in };
	struct unwind_state s = { .pc = pc, .known = UINT16_MAX, .exact = 1 };
	struct unwind_frame frames[MAX_FRAMES];
	enum unwind_step end;
	size_t nr;

	for (size_t i = 0; i < UNWIND_NR_REGS; i++)
		s.reg[i] = i * 8;
	nr = unwind_walk(&m, &s, frames, MAX_FRAMES, &end);
	if (!nr || nr > MAX_FRAMES || (end == UNWIND_STEP_NEXT && nr < MAX_FRAMES))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = { .data = data, .len = len };
	struct unwind_table *t;

	if (unwind_decode(data, len, &t) < 0)
		return t ? (abort(), 0) : 0;
	in.table = t;
	if (unwind_encoded_len(t) != len || unwind_size(t) > len)
		abort();
	for (uint32_t i = 0; i <= t->nr_pages && i < 16; i++) {
		uint64_t page = (uint64_t)(t->first_page + i) << UNWIND_PAGE_BITS;

		for (uint64_t off = 0; off < 0x10000; off += 0x123)
			walk(&in, page + off);
	}
	walk(&in, UINT64_MAX);
	unwind_free(t);
	return 0;
}
