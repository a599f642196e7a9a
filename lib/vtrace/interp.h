/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interpreter of micro-ops (uop.h): one source for the sampling interrupt and for user space.
 * Whoever includes it defines before:
 *   VTRACE_READ(ctx, to, len, addr)  0 if @len (at most VTRACE_BLOCK_BYTES) bytes could be read
 *   VTRACE_NOW()                     a clock, in ns
 *   VTRACE_INLINE                    how functions are declared
 *
 * A store changes nothing but a buffer, which later loads see. What cannot be known is carried on
 * as unknown, never guessed.
 */
#ifndef DCPI_VTRACE_INTERP_H
#define DCPI_VTRACE_INTERP_H

#include "interp_flags.h"
#include "interp_math.h"
#include "interp_memory.h"
#include "interp_unknown.h"
#include "place.h"

/* ---- one micro-op ---------------------------------------------------------------------------- */

/* imm, which may be relative to where the block stands. */
VTRACE_INLINE uint64_t vtrace_imm(const struct vtrace_state *s, const struct vtrace_uop *u)
{
	return u->imm + (s->block_pc & (0 - (uint64_t)(u->marks >> 1 & 1)));
}

VTRACE_INLINE bool vtrace_is_memory(uint8_t op)
{
	return op == VTRACE_LOAD || op == VTRACE_LOADS || op == VTRACE_STORE;
}

/* The address of a load or store. */
VTRACE_INLINE uint64_t vtrace_address(const struct vtrace_state *s, const struct vtrace_uop *u)
{
	return s->r[u->a] + (s->r[u->b] << (u->x & 3)) + vtrace_imm(s, u);
}

VTRACE_INLINE void vtrace_memory(void *ctx, struct vtrace_state *s, const struct vtrace_uop *u,
				 bool no_addr)
{
	uint64_t addr = vtrace_address(s, u), value = 0;
	uint8_t unknown = 0xff;

	if (u->op == VTRACE_STORE) {
		if (no_addr)
			vtrace_lose_all(s);
		else
			vtrace_store(s, addr, u->w, s->r[u->dst], s->unknown[u->dst]);
		return;
	}
	if (!no_addr)
		value = vtrace_load(ctx, s, addr, u->w, &unknown);
	if (u->op == VTRACE_LOADS) {
		value = vtrace_sign(value, u->w);
		unknown = vtrace_sign_unknown(unknown, u->w);
	}
	vtrace_put(s, u->dst, value, unknown);
}

VTRACE_INLINE int vtrace_division(struct vtrace_state *s, const struct vtrace_uop *u, uint64_t a,
				  uint64_t b, bool unknown)
{
	bool is_signed = u->op == VTRACE_DIVS || u->op == VTRACE_REMS;
	bool rest = u->op == VTRACE_REMU || u->op == VTRACE_REMS;
	uint64_t n = 0, quot = 0, rem = 0;

	unknown |= (s->unknown[u->x] & vtrace_bytes(u->w, 0)) != 0;
	/* Wider than what can be divided here: it is not known. */
	if (!unknown && !vtrace_dividend(a, s->r[u->x], u->w, is_signed, &n))
		unknown = true;
	if (!unknown && !vtrace_divide(n, b, u->w, is_signed, &quot, &rem))
		return VTRACE_FAULTS;
	vtrace_put(s, u->dst, (rest ? rem : quot) & vtrace_mask(u->w),
		   unknown ? (uint8_t)vtrace_bytes(u->w, 0) : 0);
	return VTRACE_CONTINUES;
}

VTRACE_INLINE void vtrace_zero_upper(struct vtrace_state *s)
{
#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (uint32_t v = 0; v < 16; v++) {
		vtrace_put(s, (uint8_t)(VTRACE_VECTOR + 4 * v + 2), 0, 0);
		vtrace_put(s, (uint8_t)(VTRACE_VECTOR + 4 * v + 3), 0, 0);
	}
}

VTRACE_INLINE void vtrace_fp_flags(struct vtrace_state *s, uint64_t a, uint64_t b, uint8_t w,
				   bool unknown)
{
	uint8_t flags = 0;

	if (unknown || !vtrace_fp_compare(a, b, w, &flags))
		vtrace_flags(s, 0, VTRACE_S | VTRACE_O, VTRACE_Z | VTRACE_P | VTRACE_C);
	else
		vtrace_flags(s, flags, VTRACE_FLAGS, 0);
}

/* Conditional comparison of aarch64. */
VTRACE_INLINE void vtrace_compare_if(struct vtrace_state *s, const struct vtrace_uop *u, uint64_t a,
				     uint64_t b, bool unknown)
{
	struct vtrace_uop compare = *u;

	if (vtrace_cc_unknown(s, u->set)) {
		vtrace_flags(s, 0, 0, VTRACE_FLAGS);
	} else if (!vtrace_cc_holds(s->flags, u->set)) {
		vtrace_flags(s, (uint8_t)(u->imm >> 32), VTRACE_FLAGS, 0);
	} else {
		compare.set = u->x ? VTRACE_SET_ADD : VTRACE_SET_SUB_NOT;
		vtrace_set_flags(s, &compare, a, b, u->x ? a + b : a - b, unknown);
	}
}

/* One byte that is not 0 decides, whatever the others are. */
VTRACE_INLINE void vtrace_jump_zero(struct vtrace_state *s, const struct vtrace_uop *u, uint64_t a,
				    int *end)
{
	uint64_t known = vtrace_mask(u->w) & ~vtrace_spread(s->unknown[u->a]);

	if (!(a & known) && known != vtrace_mask(u->w))
		*end = VTRACE_UNKNOWN_IF;
	else if (!(a & known) == (u->op == VTRACE_JUMP_Z))
		s->pc = vtrace_imm(s, u);
}

/* Execute an operation without a result register: 1, and *end if the trace ends. Others: 0. */
VTRACE_INLINE int vtrace_effect(struct vtrace_state *s, const struct vtrace_uop *u, uint64_t a,
				uint64_t b, bool unknown, int *end)
{
	switch (u->op) {
	case VTRACE_NOP:
		return 1;
	case VTRACE_JUMP:
		s->pc = vtrace_imm(s, u);
		return 1;
	case VTRACE_JUMP_TO:
		if (vtrace_is_unknown(s, u->a))
			*end = VTRACE_UNKNOWN_JUMP;
		else
			s->pc = a;
		return 1;
	case VTRACE_JUMP_IF:
		if (vtrace_cc_unknown(s, u->set))
			*end = VTRACE_UNKNOWN_IF;
		else if (vtrace_cc_holds(s->flags, u->set))
			s->pc = vtrace_imm(s, u);
		return 1;
	case VTRACE_JUMP_Z:
	case VTRACE_JUMP_NZ:
		vtrace_jump_zero(s, u, a, end);
		return 1;
	case VTRACE_NEED:
		if (vtrace_is_unknown(s, u->a))
			*end = VTRACE_UNKNOWN_JUMP;
		return 1;
	case VTRACE_STOP:
		*end = (int)u->imm;
		return 1;
	case VTRACE_TAINT_FLAGS:
		vtrace_flags(s, 0, 0, (uint8_t)(s->flags_unknown | (u->imm & VTRACE_FLAGS)));
		return 1;
	case VTRACE_TAINT_MEMORY:
		if (u->imm || unknown)
			vtrace_lose_all(s);
		else
			vtrace_lose(s, a, b);
		return 1;
	case VTRACE_ZERO_UPPER:
		vtrace_zero_upper(s);
		return 1;
	case VTRACE_FP_COMPARE:
		vtrace_fp_flags(s, a, b, u->w, unknown);
		return 1;
	case VTRACE_SET_FLAGS:
		vtrace_flags(s, (uint8_t)u->imm, u->x, 0);
		return 1;
	case VTRACE_PUT_FLAGS:
		vtrace_flags(s, (uint8_t)a, unknown ? 0 : u->x, unknown ? u->x : 0);
		return 1;
	case VTRACE_BIT:
		unknown ? vtrace_flags(s, 0, 0, s->flags_unknown | VTRACE_C)
			: vtrace_flags(s, a >> (b & (8 * u->w - 1)) & 1 ? VTRACE_C : 0, VTRACE_C,
				       0);
		s->flags_unknown |= VTRACE_S | VTRACE_O | VTRACE_P;
		return 1;
	case VTRACE_CCMP:
		vtrace_compare_if(s, u, a, b, unknown);
		return 1;
	case VTRACE_DIVU:
	case VTRACE_REMU:
	case VTRACE_DIVS:
	case VTRACE_REMS:
		*end = vtrace_division(s, u, a, b, unknown);
		return 1;
	default:
		return 0;
	}
}

VTRACE_INLINE uint64_t vtrace_result(struct vtrace_state *s, const struct vtrace_uop *u, uint64_t a,
				     uint64_t b, uint8_t *unknown)
{
	uint8_t w = u->w, shift = 8 * (u->x & 7);
	bool carry = s->flags & VTRACE_C;
	uint64_t mask;

	switch (u->op) {
	case VTRACE_MOV:
		return a;
	case VTRACE_CONST:
		return vtrace_imm(s, u);
	case VTRACE_SEXT:
		return vtrace_sign(a, u->x);
	case VTRACE_INS:
		mask = vtrace_mask(w) << shift;
		return (s->r[u->dst] & ~mask) | (a << shift & mask);
	case VTRACE_EXT:
		return a >> shift;
	case VTRACE_LEA:
		return a + (s->r[u->b] << (u->x & 3)) + vtrace_imm(s, u);
	case VTRACE_ADD:
		return a + b;
	case VTRACE_ADC:
		return a + b + carry;
	case VTRACE_SUB:
		return a - b;
	case VTRACE_SBB:
		return a - b - carry;
	case VTRACE_SBC:
		return a - b - !carry;
	case VTRACE_AND:
		return a & b;
	case VTRACE_OR:
		return a | b;
	case VTRACE_XOR:
		return a ^ b;
	case VTRACE_ANDN:
		return a & ~b;
	case VTRACE_SHL:
	case VTRACE_SHR:
	case VTRACE_SAR:
	case VTRACE_ROL:
	case VTRACE_ROR:
		return vtrace_shift(u->op, a, b, w);
	case VTRACE_FUNNEL:
		b &= vtrace_mask(w);
		return u->imm & 63 ? b >> (u->imm & 63) | a << ((8 * w - u->imm) & 63) : b;
	case VTRACE_MUL:
		return a * b;
	case VTRACE_MULHU:
		return vtrace_upper(a, b, w, false);
	case VTRACE_MULHS:
		return vtrace_upper(a, b, w, true);
	case VTRACE_QUOTU:
	case VTRACE_QUOTS:
		return vtrace_quotient(a, b, w, u->op == VTRACE_QUOTS);
	case VTRACE_BSWAP:
		return vtrace_reverse_bytes(a, w);
	case VTRACE_RBIT:
		return vtrace_reverse_bits(a, w);
	case VTRACE_CLZ:
		return vtrace_leading(a & vtrace_mask(w), w);
	case VTRACE_CTZ:
		return vtrace_trailing(a & vtrace_mask(w), w);
	case VTRACE_POPCNT:
		return vtrace_ones(a & vtrace_mask(w));
	case VTRACE_SELECT:
		return vtrace_cc_holds(s->flags, u->set) ? a : b;
	case VTRACE_SETCC:
		return vtrace_cc_holds(s->flags, u->set);
	case VTRACE_LANE_SIGNS:
		return s->r[u->dst] | vtrace_signs(a, w) << (u->x & 63);
	case VTRACE_LANE_MASK:
		return vtrace_lane_mask(a, w, u->x);
	case VTRACE_FP_TO_INT:
		return vtrace_fp_to_int(a, u->x, w);
	case VTRACE_INT_TO_FP:
		return vtrace_int_to_fp(a, w, u->x, unknown);
	case VTRACE_FP_WIDEN:
		return vtrace_fp_widen(a, unknown);
	case VTRACE_LANE_ANY:
		return vtrace_lane_any(a, b);
	case VTRACE_LANE_PICK:
		return s->r[u->dst] | vtrace_lane_pick(a, b, u->x);
	case VTRACE_LANE_DUP:
		return vtrace_dup(a, w);
	case VTRACE_ZIP_LOW:
		return vtrace_zip(a, b, w);
	case VTRACE_ZIP_HIGH:
		return vtrace_zip(a >> 32, b >> 32, w);
	case VTRACE_LANE_EQ:
	case VTRACE_LANE_GT:
	case VTRACE_LANE_ADD:
	case VTRACE_LANE_SUB:
	case VTRACE_LANE_MINU:
	case VTRACE_LANE_MAXU:
		return vtrace_lane(u->op, a, b, w);
	default: /* VTRACE_TAINT, and what nobody knows */
		*unknown = 0xff;
		return 0;
	}
}

/* Is @op one of @ops (bits); all ones where it is. */
#define VTRACE_IN(ops, op) (-((ops) >> ((op)&63) & 1))
#define VTRACE_BIT_OF(op)  (1ull << (op))

/*
 * Most micro-ops are a sum of what they have, or a plain logical operation, of operands that are
 * known. By masks and not by branches, of which the CPU would guess every second one wrong.
 */
VTRACE_INLINE bool vtrace_simple(const struct vtrace_state *s, const struct vtrace_uop *u,
				 uint64_t a, uint64_t b, uint64_t *v)
{
	const uint64_t mov = VTRACE_BIT_OF(VTRACE_MOV), constant = VTRACE_BIT_OF(VTRACE_CONST),
		       lea = VTRACE_BIT_OF(VTRACE_LEA), sub = VTRACE_BIT_OF(VTRACE_SUB),
		       add = VTRACE_BIT_OF(VTRACE_ADD), and = VTRACE_BIT_OF(VTRACE_AND),
		       or = VTRACE_BIT_OF(VTRACE_OR), xor = VTRACE_BIT_OF(VTRACE_XOR),
		       two = lea | sub | add | or | xor;
	uint64_t op = u->op, both = a & b, negative;

	if (op >= 64 || !((mov | constant | two | and) >> op & 1))
		return false;
	negative = VTRACE_IN(sub, op);
	b = (b << (u->x & 3 & VTRACE_IN(lea, op))) & VTRACE_IN(two, op);
	*v = (a & VTRACE_IN(two | mov, op)) + ((b ^ negative) - negative) +
	     (vtrace_imm(s, u) & VTRACE_IN(lea | constant, op)) + (both & VTRACE_IN(and, op)) -
	     (both & VTRACE_IN(or | xor, op)) - (both & VTRACE_IN(xor, op));
	*v &= vtrace_mask(u->w) | VTRACE_IN(constant, op);
	return true;
}

/* Lanes fill their chunk, whatever the width of one is. */
VTRACE_INLINE bool vtrace_is_whole(uint8_t op)
{
	return (op >= VTRACE_LANE_EQ && op != VTRACE_FP_TO_INT) || op == VTRACE_INS ||
	       op == VTRACE_CONST;
}

/* Run one micro-op. VTRACE_CONTINUES, or why the trace ends before the instruction is done. */
VTRACE_INLINE int vtrace_step(void *ctx, struct vtrace_state *s, const struct vtrace_uop *u)
{
	bool b_is_imm = u->b == VTRACE_IMM;
	uint64_t a = s->r[u->a], b = b_is_imm ? u->imm : s->r[u->b], v;
	uint8_t ua = s->unknown[u->a], ub = b_is_imm ? 0 : s->unknown[u->b], unknown = 0;
	int end = VTRACE_CONTINUES;

	/* First what comes most. */
	if (vtrace_is_memory(u->op)) {
		vtrace_memory(ctx, s, u, ua | ub);
		return VTRACE_CONTINUES;
	}
	if ((ua | ub) || !vtrace_simple(s, u, a, b, &v)) {
		if (vtrace_effect(s, u, a, b, vtrace_needs(u, ua | ub), &end))
			return end;
		unknown = vtrace_unknown(s, u, a, b, ua, ub);
		v = vtrace_result(s, u, a, b, &unknown);
		if (!vtrace_is_whole(u->op)) {
			v &= vtrace_mask(u->w);
			unknown &= vtrace_bytes(u->w, 0);
		}
	}
	if (u->set && u->op != VTRACE_SELECT && u->op != VTRACE_SETCC) {
		bool lost = vtrace_is_by_result(u->set) ? unknown : vtrace_needs(u, ua | ub);

		/* The carry that went in is part of what comes out. */
		if (vtrace_reads_carry(u->op))
			lost |= s->flags_unknown & VTRACE_C;
		vtrace_set_flags(s, u, a, u->set == VTRACE_SET_MUL ? vtrace_fits(a, b, u->w) : b, v,
				 lost);
	}
	vtrace_put(s, u->dst, v, unknown);
	return VTRACE_CONTINUES;
}

/* ---- traces ---------------------------------------------------------------------------------- */

enum { VTRACE_BLOCK_WORDS = VTRACE_BLOCK_BYTES / 8 };

/* vtrace_code_is, for who has little stack: @code is room to read it. */
VTRACE_INLINE bool vtrace_code_read_is(void *ctx, const struct vtrace_block *b, uint64_t pc,
				       uint64_t code[VTRACE_BLOCK_WORDS])
{
	uint64_t differ = vtrace_where(pc) ^ vtrace_where(b->pc);
	uint32_t len = b->len;

	__builtin_memset(code, 0, VTRACE_BLOCK_BYTES);
	if (!len || len > VTRACE_BLOCK_BYTES || VTRACE_READ(ctx, code, len, pc) != 0)
		return false;
#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (uint32_t i = 0; i < VTRACE_BLOCK_WORDS; i++) {
		uint64_t want;

		__builtin_memcpy(&want, __builtin_assume_aligned(b->code + 8 * i, 8), 8);
		differ |= code[i] ^ want;
	}
	return !differ;
}

/* Is it what @b was translated from that stands at @pc? */
VTRACE_INLINE bool vtrace_code_is(void *ctx, const struct vtrace_block *b, uint64_t pc)
{
	uint64_t code[VTRACE_BLOCK_WORDS];

	return vtrace_code_read_is(ctx, b, pc, code);
}

/*
 * Go on with @b, whose code stands @off bytes before where the state is (vtrace_code_is): with the
 * instruction that begins there, whose micro-ops are the next to be run. VTRACE_CONTINUES, or why
 * not.
 */
VTRACE_INLINE int vtrace_enter(struct vtrace_state *s, const struct vtrace_block *b, uint64_t off)
{
	uint32_t at = s->nr_words;

	if (at > VTRACE_NR_WORDS - VTRACE_HEAD_MAX)
		return VTRACE_TRACE;
	s->block_word = at % VTRACE_NR_WORDS;
	s->words[s->block_word] = VTRACE_WORD(b->id);
	s->words[(at + 1) % VTRACE_NR_WORDS] = s->pc;
	s->nr_words = at + 2;
	s->block_pc = s->pc - off;
	s->pc = s->block_pc + b->len;
	return VTRACE_CONTINUES;
}

/* The code of the block that was entered is one of several that stood there. */
VTRACE_INLINE void vtrace_tag(struct vtrace_state *s, uint32_t generation)
{
	s->words[s->block_word % VTRACE_NR_WORDS] |= VTRACE_WORD_TAGGED;
	s->words[s->nr_words++ % VTRACE_NR_WORDS] = generation;
}

/* Behind the last micro-op of an instruction. */
VTRACE_INLINE int vtrace_commit(struct vtrace_state *s)
{
	s->words[s->block_word % VTRACE_NR_WORDS]++;
	if (++s->nr_insns >= s->max_insns)
		return VTRACE_FULL;
	return s->nr_words > VTRACE_NR_WORDS ? VTRACE_TRACE : VTRACE_CONTINUES;
}

/* For a new trace: registers, flags, pc and what is unknown of them are the caller's to fill. */
VTRACE_INLINE void vtrace_begin(struct vtrace_state *s, uint16_t max_insns)
{
	s->r[VTRACE_ZERO] = 0;
	s->unknown[VTRACE_ZERO] = 0;
	s->memory_unknown = false;
	s->nr_insns = 0;
	s->max_insns = max_insns;
	vtrace_forget_stores(s);
	s->lost_start = s->lost_end = 0;
	s->log = VTRACE_LOG_PATH;
	s->nr_words = s->block_word = 0;
	s->block_pc = 0;
#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (uint32_t i = 0; i < VTRACE_NR_WORDS / 64; i++)
		s->failed[i] = 0;
}

#endif
