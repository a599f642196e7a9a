/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces of values. Bit 1 of the first byte: messages as dcpid-values gets them, each behind two
 * bytes of length. Else a record over sound blocks: bit 0 chooses the machine, the next eight bytes
 * what registers hold and whether it was stepped, then 64 bytes of code, then words of a trace,
 * then fixes. Whatever it is, running it again ends, and gives instructions of its blocks alone.
 */
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "values_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { BASE = 0x1000, CODE = 64, HEAD = 9 };

static struct vtrace_code blocks[CODE];
static uint32_t nr_blocks;

static void require(bool ok)
{
	if (!ok)
		abort();
}

static const struct vtrace_code *get_block(void *ctx, uint32_t id)
{
	(void)ctx;
	/* Most ids are to be good ones. */
	return id % 16 < nr_blocks ? &blocks[id % 16] : NULL;
}

static void translate(enum vtrace_arch arch, const uint8_t *code)
{
	struct vtrace_translator *t;
	size_t at = 0;

	require(vtrace_translator_open(arch, &t) == 0);
	for (nr_blocks = 0; at < CODE; nr_blocks++) {
		require(vtrace_translate(t, code + at, CODE - at, BASE + at, &blocks[nr_blocks]) ==
			0);
		at += blocks[nr_blocks].block.len;
	}
	vtrace_translator_close(t);
}

static void fill(struct insn_trace *w, uint64_t seed)
{
	uint64_t v = seed;

	for (unsigned int i = 0; i < INSN_TRACE_REGS; i++) {
		v = v * 6364136223846793005 + 1442695040888963407;
		w->r[i] = v >> 63 ? BASE + (v >> 40) % 256 : v;
	}
	w->r[VTRACE_ZERO] = 0;
	w->flags = v & VTRACE_FLAGS;
	w->flags_unknown = v >> 8 & v >> 16 & VTRACE_FLAGS;
	w->has = INSN_TRACE_VALUES |
		 (v >> 20 & (INSN_TRACE_TIMES | INSN_TRACE_KERNEL | INSN_TRACE_STEPPED));
	w->failed[0] = v >> 3 & v >> 11;
	w->pc = BASE;
}

static void set_lengths(struct insn_trace *w, size_t len)
{
	size_t half = w->has & INSN_TRACE_STEPPED ? len / 2 : len, rest;

	w->nr_words = (uint16_t)(half < VTRACE_NR_WORDS ? half : VTRACE_NR_WORDS);
	rest = (len - w->nr_words) / 2;
	w->nr_fixes = (uint16_t)(rest < VTRACE_NR_FIXES ? rest : VTRACE_NR_FIXES);
}

static void replay(const uint8_t *data, size_t len)
{
	static struct vtrace_contexts contexts;
	static struct vtrace_replay r;
	static uint64_t words[VTRACE_NR_WORDS + 2 * VTRACE_NR_FIXES];
	struct vtrace_operands nothing = { .result = VTRACE_ZERO };
	struct insn_trace w = { 0 };
	enum vtrace_arch arch = data[0] & 1 ? VTRACE_AARCH64 : VTRACE_X86_64;
	struct vtrace_entry e;
	uint64_t seed, c0, c1;
	int ret;

	memcpy(&seed, data + 1, sizeof(seed));
	fill(&w, seed);
	translate(arch, data + HEAD);
	len = (len - HEAD - CODE) / 8;
	set_lengths(&w, len);
	memcpy(words, data + HEAD + CODE, insn_trace_words(&w) * sizeof(words[0]));
	vtrace_contexts_init(&contexts, arch);
	ret = vtrace_replay_init(&r, &w, words, get_block, NULL);
	require(ret == 0 || (ret == -DCPI_EFORMAT && w.has & INSN_TRACE_STEPPED));
	if (ret < 0)
		return;
	while ((ret = vtrace_replay_next(&r, &e)) > 0) {
		require(vtrace_where(e.pc - e.code->insns[e.index].offset) ==
			vtrace_where(e.code->block.pc));
		require(e.index < e.code->block.nr_insns && e.class < VTRACE_NR_CLASSES);
		require(!e.after->r[VTRACE_ZERO] && !e.after->unknown[VTRACE_ZERO]);
		vtrace_contexts_add(&contexts, &e, &nothing);
		vtrace_contexts_get(&contexts, contexts.nr - 1, &c0, &c1);
	}
	require(vtrace_replay_next(&r, &e) == 0);
}

static int answer(void *ctx, const struct values_tuples *head, const struct values_tuple *t)
{
	(void)ctx;
	require(head->nr <= VSAMPLE_BUFFER_SIZE && !head->wild && t);
	return 0;
}

static void take(struct values_run *r, const void *message, size_t len)
{
	uint32_t type;

	if (len < sizeof(type))
		return;
	memcpy(&type, message, sizeof(type));
	if (type == VALUES_BLOCK)
		values_run_block(r, message, len);
	else if (type == VALUES_FORGET)
		values_run_forget(r);
	else
		values_run_trace(r, message, len, answer, NULL);
}

static void messages(const uint8_t *data, size_t len)
{
	static _Alignas(8) uint8_t message[1 << 16];
	struct values_run *r;
	uint8_t who = 0;
	size_t n;

	require(values_run_new(true, &who, &r) == 0);
	require(values_run_add(r, "values", NULL) == 0);
	require(values_run_add(r, "values.replay", NULL) == 0);
	for (; len > 2; data += n, len -= n) {
		n = data[0] | (size_t)data[1] << 8;
		data += 2;
		len -= 2;
		n = n < len ? n : len;
		memcpy(message, data, n);
		take(r, message, n);
	}
	require(!who);
	values_run_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < HEAD + CODE + 8)
		return 0;
	if (data[0] & 2)
		messages(data + 1, len - 1);
	else
		replay(data, len);
	return 0;
}
