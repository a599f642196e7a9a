/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces run in user space over a page of code and one of data, and the records of them. */
#ifndef DCPI_TEST_RECORD_H
#define DCPI_TEST_RECORD_H

#include <errno.h>
#include <string.h>

#include "vtrace_blocks.h"
#include "insn_trace.h"

#define RECORD_CODE 0x10000ull
#define RECORD_DATA 0x20000ull
enum { RECORD_PAGE = 4096 };

struct record {
	uint8_t code[RECORD_PAGE], data[RECORD_PAGE];
	struct vtrace_blocks *blocks;
	struct insn_trace w;
	uint64_t words[VTRACE_NR_WORDS];
};

static inline int record_read(void *ctx, void *to, size_t len, uint64_t addr)
{
	const struct record *r = ctx;
	const uint8_t *page = addr >= RECORD_DATA ? r->data : r->code;
	uint64_t at = addr - (addr >= RECORD_DATA ? RECORD_DATA : RECORD_CODE);

	if (at > RECORD_PAGE || at + len > RECORD_PAGE)
		return -EFAULT;
	memcpy(to, page + at, len);
	return 0;
}

/* At the beginning of code, with the registers of the record. */
static inline void record_begin(const struct record *r, struct vtrace_state *s, uint16_t max)
{
	memset(s, 0, sizeof(*s));
	memset(s->unknown, 0xff, sizeof(s->unknown));
	memset(s->unknown, 0, INSN_TRACE_REGS);
	memcpy(s->r, r->w.r, sizeof(r->w.r));
	s->flags = r->w.flags;
	s->flags_unknown = r->w.flags_unknown;
	s->pc = RECORD_CODE;
	vtrace_begin(s, max);
}

/* Run @max instructions; the record's words are those of the trace. */
static inline enum vtrace_end record_run(struct record *r, struct vtrace_state *s,
					 enum vtrace_log log, uint16_t max)
{
	const struct vtrace_memory m = { record_read, r };
	enum vtrace_end end;

	record_begin(r, s, max);
	s->log = log;
	end = vtrace_run(r->blocks, &m, s);
	r->w.pc = RECORD_CODE;
	r->w.end = (uint8_t)end;
	r->w.nr_insns = s->nr_insns;
	r->w.nr_words = (uint16_t)(s->nr_words < VTRACE_NR_WORDS ? s->nr_words : VTRACE_NR_WORDS);
	r->w.has = INSN_TRACE_VALUES | (log == VTRACE_LOG_TIMES ? INSN_TRACE_TIMES : 0);
	memcpy(r->w.failed, s->failed, sizeof(r->w.failed));
	memcpy(r->words, s->words, sizeof(r->words));
	return end;
}

static inline const struct vtrace_code *record_block(void *ctx, uint32_t id)
{
	return vtrace_blocks_get(((struct record *)ctx)->blocks, id);
}

#endif
