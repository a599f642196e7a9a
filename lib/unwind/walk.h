/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One step of a walk up a stack, by a rule: one source for the sampling interrupt and for user
 * space. Whoever includes it defines before:
 *   UNWIND_READ(ctx, to, addr)  0 if the 8 bytes at @addr could be read into *@to (uint64_t)
 *   UNWIND_INLINE               how functions are declared
 * The includer finds the rule of a frame's code, at unwind_lookup_pc(), and bounds the number of
 * steps.
 */
#ifndef DCPI_UNWIND_WALK_H
#define DCPI_UNWIND_WALK_H

#include "rule.h"
#include "state.h"

enum {
	UNWIND_KNOWN_CALLER = 1 << UNWIND_SP | 1 << UNWIND_FP | 1 << UNWIND_LINK,
	UNWIND_AARCH64_PC_BITS = 48, /* above stands pointer authentication */
	UNWIND_PC_BITS = 56,	     /* of a process, on any machine */

	/* Offsets from sp in the kernel's frames of signals. */
	UNWIND_X86_FP = 120,
	UNWIND_X86_LINK = 128,
	UNWIND_X86_SP = 160,
	UNWIND_X86_PC = 168,
	UNWIND_AARCH64_FP = 544,
	UNWIND_AARCH64_LINK = 552,
	UNWIND_AARCH64_SP = 560,
	UNWIND_AARCH64_PC = 568,
};

/* The address whose rule holds: a return address may be that of the next routine. */
UNWIND_INLINE uint64_t unwind_lookup_pc(const struct unwind_state *s)
{
	return s->exact ? s->pc : s->pc - 1;
}

/* A return address of aarch64 without its pointer authentication. */
UNWIND_INLINE uint64_t unwind_plain_pc(uint64_t pc)
{
	return pc & ((UINT64_C(1) << UNWIND_AARCH64_PC_BITS) - 1);
}

/* The kernel's frame of a signal at sp: @fp to @pc are offsets. The stack may be another one. */
UNWIND_INLINE enum unwind_step unwind_signal(void *ctx, struct unwind_state *s, uint32_t fp,
					     uint32_t link, uint32_t sp, uint32_t pc)
{
	uint64_t at = s->reg[UNWIND_SP], value[4];

	if (!(s->known & 1u << UNWIND_SP))
		return UNWIND_STEP_NO_ROWS;
	if (UNWIND_READ(ctx, &value[0], at + fp) || UNWIND_READ(ctx, &value[1], at + link) ||
	    UNWIND_READ(ctx, &value[2], at + sp) || UNWIND_READ(ctx, &value[3], at + pc))
		return UNWIND_STEP_UNREADABLE;
	if (!value[3] || value[3] >> UNWIND_PC_BITS)
		return UNWIND_STEP_ASTRAY;
	s->reg[UNWIND_FP] = value[0];
	s->reg[UNWIND_LINK] = value[1];
	s->reg[UNWIND_SP] = value[2];
	s->pc = value[3];
	s->known = UNWIND_KNOWN_CALLER;
	s->exact = 1;
	return UNWIND_STEP_NEXT;
}

/* The stack pointer of the caller into *@cfa. */
UNWIND_INLINE enum unwind_step unwind_cfa(void *ctx, const struct unwind_state *s,
					  const struct unwind_rule *r, uint64_t *cfa)
{
	uint32_t base = r->base & (UNWIND_NR_REGS - 1);
	uint64_t at = s->reg[base] + (uint64_t)(int64_t)r->off;

	if (!(s->known & 1u << base))
		return UNWIND_STEP_NO_ROWS;
	if (r->how == UNWIND_PLT)
		at += (uint64_t)((s->pc & 15) >= (uint64_t)r->add) << 3;
	if (r->how == UNWIND_DEREF) {
		if (UNWIND_READ(ctx, &at, at))
			return UNWIND_STEP_UNREADABLE;
		at += (uint64_t)(int64_t)r->add;
	}
	*cfa = at;
	return UNWIND_STEP_NEXT;
}

/* Put the caller's value of a register into *@value, or take it out of *@known. */
UNWIND_INLINE enum unwind_step unwind_saved(void *ctx, uint8_t at, int16_t words, uint64_t cfa,
					    uint64_t fp, uint32_t reg, uint32_t *known,
					    uint64_t *value)
{
	uint64_t from = (at == UNWIND_AT_CFA ? cfa : fp) + (uint64_t)((int64_t)words * 8);

	if (at == UNWIND_AT_SAME)
		return UNWIND_STEP_NEXT;
	if (at == UNWIND_AT_LOST || (at == UNWIND_AT_FP && !(*known & 1u << UNWIND_FP))) {
		*known &= ~(1u << reg);
		return UNWIND_STEP_NEXT;
	}
	*known |= 1u << reg;
	return UNWIND_READ(ctx, value, from) ? UNWIND_STEP_UNREADABLE : UNWIND_STEP_NEXT;
}

/*
 * The caller's pc into *@pc from where the frame's own fp or sp says. The frame pointer is above
 * the stack pointer, and the return address above that is no higher than the caller's frame: where
 * a routine in between took off an argument, it stands in its place.
 */
UNWIND_INLINE enum unwind_step unwind_return_at(void *ctx, const struct unwind_state *s,
						const struct unwind_rule *r, uint64_t cfa,
						uint64_t *pc)
{
	const bool by_fp = r->returns == UNWIND_RETURNS_FP;
	uint64_t sp = s->reg[UNWIND_SP], at = by_fp ? s->reg[UNWIND_FP] + 8 : sp;

	/* A callee may have taken off what stood at sp. */
	if (by_fp ? !(s->known & 1u << UNWIND_FP) : !s->exact)
		return UNWIND_STEP_NO_ROWS;
	if (at < sp || cfa < at)
		return UNWIND_STEP_ASTRAY;
	return UNWIND_READ(ctx, pc, at) ? UNWIND_STEP_UNREADABLE : UNWIND_STEP_NEXT;
}

/*
 * The caller's pc into *@pc. @link is the caller's, where it is known. A routine that called
 * another one has its return address in memory, and no longer in a register.
 */
UNWIND_INLINE enum unwind_step unwind_return(void *ctx, const struct unwind_state *s,
					     const struct unwind_rule *r, uint64_t cfa,
					     uint32_t known, uint64_t link, uint64_t *pc)
{
	uint32_t reg = (uint32_t)(r->returns - 1) & (UNWIND_NR_REGS - 1);

	if (!r->returns)
		return UNWIND_READ(ctx, pc, cfa - 8) ? UNWIND_STEP_UNREADABLE : UNWIND_STEP_NEXT;
	if (r->returns > UNWIND_NR_REGS)
		return unwind_return_at(ctx, s, r, cfa, pc);
	if (reg == UNWIND_LINK) {
		if (!(known & 1u << UNWIND_LINK) || (r->link_at == UNWIND_AT_SAME && !s->exact))
			return UNWIND_STEP_NO_ROWS;
		*pc = unwind_plain_pc(link);
		return UNWIND_STEP_NEXT;
	}
	if (!s->exact || !(s->known & 1u << reg))
		return UNWIND_STEP_NO_ROWS;
	*pc = s->reg[reg];
	return UNWIND_STEP_NEXT;
}

/* Is the caller's frame where one may be? Only a leaf may have nothing on the stack. */
UNWIND_INLINE bool unwind_plausible(const struct unwind_state *s, const struct unwind_rule *r,
				    uint64_t cfa, uint64_t pc)
{
	if (!pc || pc >> UNWIND_PC_BITS)
		return false;
	return cfa > s->reg[UNWIND_SP] || (cfa == s->reg[UNWIND_SP] && r->returns && s->exact);
}

/* The frame of a routine that was called. */
UNWIND_INLINE enum unwind_step unwind_called(void *ctx, struct unwind_state *s,
					     const struct unwind_rule *r)
{
	uint64_t cfa = 0, fp = s->reg[UNWIND_FP], link = s->reg[UNWIND_LINK], pc = 0;
	uint32_t known = s->known & UNWIND_KNOWN_CALLER;
	enum unwind_step step = unwind_cfa(ctx, s, r, &cfa);

	/* The link first: it may stand at the frame's own fp. */
	if (step == UNWIND_STEP_NEXT)
		step = unwind_saved(ctx, r->link_at, r->link_words, cfa, fp, UNWIND_LINK, &known,
				    &link);
	if (step == UNWIND_STEP_NEXT)
		step = unwind_saved(ctx, r->fp_at, r->fp_words, cfa, fp, UNWIND_FP, &known, &fp);
	if (step == UNWIND_STEP_NEXT)
		step = unwind_return(ctx, s, r, cfa, known, link, &pc);
	if (step != UNWIND_STEP_NEXT)
		return step;
	if (!unwind_plausible(s, r, cfa, pc))
		return UNWIND_STEP_ASTRAY;
	s->pc = pc;
	s->reg[UNWIND_SP] = cfa;
	s->reg[UNWIND_FP] = fp;
	s->reg[UNWIND_LINK] = link;
	s->known = known | 1u << UNWIND_SP;
	s->exact = 0;
	return UNWIND_STEP_NEXT;
}

/* Compilers' and JITs' frame pointers: outermost is a zero. */
UNWIND_INLINE enum unwind_step unwind_by_frame_pointer(void *ctx, struct unwind_state *s,
						       const struct unwind_rule *r)
{
	uint64_t fp = s->reg[UNWIND_FP], value[2];

	if (!(s->known & 1u << UNWIND_FP))
		return UNWIND_STEP_NO_ROWS;
	if (!fp)
		return UNWIND_STEP_COMPLETE;
	if (fp & 7 || fp < s->reg[UNWIND_SP])
		return UNWIND_STEP_ASTRAY;
	if (UNWIND_READ(ctx, &value[0], fp) || UNWIND_READ(ctx, &value[1], fp + 8))
		return UNWIND_STEP_UNREADABLE;
	if (r->returns)
		value[1] = unwind_plain_pc(value[1]);
	if (!value[1] || value[1] >> UNWIND_PC_BITS)
		return UNWIND_STEP_ASTRAY;
	s->pc = value[1];
	s->reg[UNWIND_SP] = fp + 16;
	s->reg[UNWIND_FP] = value[0];
	s->known = 1u << UNWIND_SP | 1u << UNWIND_FP;
	s->exact = 0;
	s->guessed = 1;
	return UNWIND_STEP_NEXT;
}

/* Make the frame that of its caller, by the rule of its code. Unchanged unless UNWIND_STEP_NEXT. */
UNWIND_INLINE enum unwind_step unwind_step(void *ctx, struct unwind_state *s,
					   const struct unwind_rule *r)
{
	switch (r->how) {
	case UNWIND_END:
		return UNWIND_STEP_COMPLETE;
	case UNWIND_CFA:
	case UNWIND_DEREF:
	case UNWIND_PLT:
		return unwind_called(ctx, s, r);
	case UNWIND_SIGNAL_X86:
		return unwind_signal(ctx, s, UNWIND_X86_FP, UNWIND_X86_LINK, UNWIND_X86_SP,
				     UNWIND_X86_PC);
	case UNWIND_SIGNAL_AARCH64:
		return unwind_signal(ctx, s, UNWIND_AARCH64_FP, UNWIND_AARCH64_LINK,
				     UNWIND_AARCH64_SP, UNWIND_AARCH64_PC);
	case UNWIND_FRAME_POINTER:
		return unwind_by_frame_pointer(ctx, s, r);
	default:
		return UNWIND_STEP_NO_ROWS;
	}
}

#endif
