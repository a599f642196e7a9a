/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Translator and interpreter: the first byte chooses the machine, the next eight what registers
 * hold, the rest is code at 0x1000 and all the memory there is. Whatever it is, the micro-ops are
 * such as the interpreter may be given, the same ones wherever the code stands, and the trace
 * ends.
 */
#include <stdlib.h>
#include <string.h>

#include "vtrace_blocks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { BASE = 0x1000, HEAD = 9, MAX_INSNS = 64 };

struct input {
	const uint8_t *code;
	size_t len;
};

static void require(bool ok)
{
	if (!ok)
		abort();
}

static int read_memory(void *ctx, void *to, size_t len, uint64_t addr)
{
	const struct input *in = ctx;

	require(len && len <= VTRACE_BLOCK_BYTES);
	if (addr < BASE || addr - BASE > in->len || len > in->len - (addr - BASE))
		return -1;
	memcpy(to, in->code + (addr - BASE), len);
	return 0;
}

static void fill(struct vtrace_state *s, uint64_t seed)
{
	uint64_t v = seed;

	for (unsigned int i = 0; i < VTRACE_NR_REGS; i++) {
		v = v * 6364136223846793005 + 1442695040888963407;
		/* Half of them point into what is there, a few are not known. */
		s->r[i] = v >> 63 ? BASE + (v >> 40) % 256 : v;
		if (!(v >> 33 & 7))
			s->unknown[i] = (uint8_t)(v >> 20);
	}
	s->flags = v & VTRACE_FLAGS;
	s->flags_unknown = v >> 8 & v >> 16 & VTRACE_FLAGS;
	s->pc = BASE;
}

static void check_code(const struct vtrace_code *c)
{
	const struct vtrace_block *b = &c->block;

	require(b->nr_uops && b->nr_uops <= VTRACE_BLOCK_UOPS);
	require(b->nr_insns && b->nr_insns <= VTRACE_BLOCK_INSNS);
	require(b->len && b->len <= VTRACE_BLOCK_BYTES);
	require(c->nr_successors <= 2);
	for (unsigned int i = 0; i < b->nr_uops; i++)
		require(vtrace_uop_is_sound(&c->uops[i]));
	require(c->uops[b->nr_uops - 1].marks & VTRACE_LAST);
	for (unsigned int i = 0; i < b->nr_insns; i++) {
		require(c->insns[i].first < b->nr_uops && c->insns[i].offset < b->len);
		require(c->insns[i].class < VTRACE_NR_CLASSES);
	}
}

static void check_elsewhere(enum vtrace_arch arch, const uint8_t *code, size_t len)
{
	const uint64_t far = 0x1234567000;
	struct vtrace_code here, there;
	struct vtrace_translator *t;

	require(vtrace_translator_open(arch, &t) == 0);
	for (size_t at = 0; at < len; at += here.block.len) {
		require(vtrace_translate(t, code + at, len - at, BASE + at, &here) == 0);
		require(vtrace_translate(t, code + at, len - at, BASE + at + far, &there) == 0);
		for (int i = 0; i < there.nr_successors; i++)
			there.successors[i] -= far;
		there.block.pc -= far;
		require(memcmp(&here, &there, sizeof(here)) == 0);
	}
	vtrace_translator_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	enum vtrace_arch arch = len && data[0] & 1 ? VTRACE_AARCH64 : VTRACE_X86_64;
	static struct vtrace_state s;
	struct input in = { data + HEAD, len > HEAD ? len - HEAD : 0 };
	struct vtrace_memory memory = { read_memory, &in };
	struct vtrace_blocks *blocks;
	enum vtrace_end end;
	uint64_t seed;

	if (len <= HEAD)
		return 0;
	memcpy(&seed, data + 1, sizeof(seed));
	memset(&s, 0, sizeof(s));
	fill(&s, seed);
	require(vtrace_blocks_new(arch, &blocks) == 0);
	vtrace_begin(&s, MAX_INSNS);
	end = vtrace_run(blocks, &memory, &s);
	require(end > VTRACE_CONTINUES && end < VTRACE_NR_ENDS && end != VTRACE_UNTRANSLATED);
	require(s.nr_insns <= MAX_INSNS && (end != VTRACE_FULL || s.nr_insns == MAX_INSNS));
	require(!s.r[VTRACE_ZERO] && !vtrace_is_unknown(&s, VTRACE_ZERO));
	for (uint32_t i = 0; vtrace_blocks_get(blocks, i); i++)
		check_code(vtrace_blocks_get(blocks, i));
	vtrace_blocks_free(blocks);
	check_elsewhere(arch, in.code, in.len);
	return 0;
}
