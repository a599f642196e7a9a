/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of the stack at an instruction, and the tables of one routine. */
#ifndef DCPI_HEIGHT_INTERNAL_H
#define DCPI_HEIGHT_INTERNAL_H

#include <stdbool.h>
#include <string.h>

#include "base.h"
#include "height.h"

/* ---- states ---------------------------------------------------------------------------------- */

enum height_kind {
	HEIGHT_ANYTHING,
	HEIGHT_STACK,	/* the CFA + off: an address in this frame */
	HEIGHT_OLD_FP,	/* rbp's value at the entry */
	HEIGHT_OLD_LINK /* rbx's */
};

/* The contents of a register. */
struct height_value {
	int32_t off;
	uint16_t kind;
	uint16_t assumed; /* right only if calls before left the stack pointer as it was */
};

enum { HEIGHT_SP, HEIGHT_FP, HEIGHT_LINK, HEIGHT_NR_REGS };
/* Two registers of the caller are saved somewhere. */
enum { HEIGHT_SAVED_FP, HEIGHT_SAVED_LINK, HEIGHT_NR_SAVED };

struct height_state {
	struct height_value reg[HEIGHT_NR_REGS];
	/* The address at which the caller's register is in memory: HEIGHT_STACK, or unknown. */
	struct height_value saved[HEIGHT_NR_SAVED];
	/* A copy of rbp as a frame pointer, likewise, and its value: code that saves all registers
	 * around a call takes it from there. */
	struct height_value copy, copied;
};

enum { HEIGHT_MAX_STATES = 1 << 12, HEIGHT_STATE_SLOTS = HEIGHT_MAX_STATES * 2 };

/* Different states have numbers from 1 on. */
struct height_states {
	struct height_state v[HEIGHT_MAX_STATES];
	uint16_t slot[HEIGHT_STATE_SLOTS];
	uint16_t at[HEIGHT_MAX_STATES]; /* the slot of each */
	uint32_t nr;
	uint16_t last; /* that was looked up: the next one most often is the same; or 0 */
};

static inline void height_state_drop_copy(struct height_state *s)
{
	memset(&s->copy, 0, sizeof(s->copy));
	memset(&s->copied, 0, sizeof(s->copied));
}

static inline const struct height_state *height_states_at(const struct height_states *t, uint16_t n)
{
	return &t->v[n];
}

/* ---- one instruction (step.c) ---------------------------------------------------------------- */

enum height_flow {
	HEIGHT_NEXT,	  /* to the next instruction */
	HEIGHT_BRANCH,	  /* there, or to the target */
	HEIGHT_JUMP,	  /* to the target */
	HEIGHT_ELSEWHERE, /* an indirect jump */
	HEIGHT_CALL,	  /* back to the next instruction */
	HEIGHT_RETURN,
	HEIGHT_STOP, /* traps, returns from interrupts */
	HEIGHT_BAD,  /* no instruction */
};

/* An instruction's effects on the stack, beside changing the state. */
enum {
	HEIGHT_RESETS = 1 << 0,	     /* the stack pointer is no longer what it was plus a number */
	HEIGHT_POPS_RETURN = 1 << 1, /* the return address into a register */
	HEIGHT_RISES = 1 << 2,	     /* above the return address in another way */
	HEIGHT_WRITES_OWN = 1 << 3,  /* over the return address: behind it nothing is known */
	HEIGHT_PUSHES_FP = 1 << 4,   /* the caller's rbp, right below the return address */
	HEIGHT_FRAMES = 1 << 5,	     /* rbp = rsp */
	HEIGHT_SP_FROM_FP = 1 << 6,  /* rsp = rbp + a number */
	HEIGHT_WRITES_FP = 1 << 7,
	HEIGHT_RESTORES_FP = 1 << 8, /* rbp from its copy, and that is what it has anyway */
};

struct height_step {
	uint64_t target; /* of HEIGHT_BRANCH, HEIGHT_JUMP, and of HEIGHT_CALL if @direct */
	uint8_t len;	 /* above 0 */
	uint8_t flow;	 /* enum height_flow */
	uint16_t does;	 /* set of what is listed above */
	bool direct;
	bool padding; /* it does nothing */
	bool plain;   /* it leaves any state as it is */
};

/* ---- rules ----------------------------------------------------------------------------------- */

enum { HEIGHT_MAX_RULES = 1 << 12, HEIGHT_RULE_SLOTS = HEIGHT_MAX_RULES * 2 };

/* Different rules have numbers from 1 on; 0: none. */
struct height_rules {
	struct unwind_rule v[HEIGHT_MAX_RULES];
	uint16_t slot[HEIGHT_RULE_SLOTS];
	uint32_t nr;
	uint16_t last; /* that was looked up; or 0 */
};

/* ---- a routine ------------------------------------------------------------------------------- */

#define HEIGHT_NO_TARGET UINT32_MAX

/* Found of an instruction by prove.c. */
enum {
	HEIGHT_ANCHORED = 1 << 0,    /* a path leads from here to a return */
	HEIGHT_VERIFIED = 1 << 1,    /* the stack pointer of an end is computed from the one here */
	HEIGHT_VERIFIED_FP = 1 << 2, /* likewise from rbp */
	HEIGHT_FROM_SIDE = 1 << 3,   /* code that was not reached may lead here */
	HEIGHT_CALLED_BEFORE =
		1 << 4, /* no return follows that a call before could be checked by */
};

struct height_insn {
	uint32_t off;
	uint32_t target; /* offset in the routine; HEIGHT_NO_TARGET: none */
	uint16_t state;	 /* before it */
	uint16_t does;
	uint8_t len, flow;
	uint8_t found;
};

/* Which proofs by a return that follows hold before a call, which may never come back. */
enum height_calls {
	HEIGHT_CALLS_ALL, /* paths from the entry: the state is computed, the call is what is
			     checked */
	HEIGHT_CALLS_FP,  /* a frame pointer that the whole routine has */
	HEIGHT_CALLS_NONE,
};

struct height {
	const uint8_t *code;
	size_t len;
	uint64_t vaddr;
	struct height_states states;
	/* For each byte: number of the state before the instruction there, 0: none was reached. */
	uint16_t *state;
	uint8_t *queued;
	uint32_t *queue;
	/* For each byte: index + 1 of the instruction that begins there. */
	uint32_t *index;
	struct height_insn *insns; /* ascending */
	/* For each byte: the instruction there, if it was decoded; of one that is not plain, as it
	 * was followed last. Else len 0. */
	struct height_step *step;
	/* Places of the routine that it calls itself. */
	uint32_t *entries;
	/* Findings, for each byte: a number of a rule, and why. */
	struct height_rules rules;
	uint16_t *rule;
	uint8_t *reason;
	size_t cap_state, cap_queued, cap_queue, cap_index, cap_reason, cap_rule, cap_insns,
		cap_step, cap_entries;
	uint64_t steps; /* how many instructions may still be followed */
	size_t nr_queue, nr;
	size_t low, high; /* no place that the last flow reached is outside */
	bool listed;	  /* and all that it reached are in @insns */
	uint8_t proof, refused;
	bool called;
	uint8_t calls; /* enum height_calls */
	/* Told by the runtime. */
	const struct height_entry *told;
	size_t nr_told;
};

static inline bool height_falls_through(const struct height_insn *i)
{
	return i->flow == HEIGHT_NEXT || i->flow == HEIGHT_BRANCH || i->flow == HEIGHT_CALL;
}

static inline bool height_leads_to_target(const struct height_insn *i)
{
	return i->target != HEIGHT_NO_TARGET &&
	       (i->flow == HEIGHT_BRANCH || i->flow == HEIGHT_JUMP);
}

/* The instruction at an offset, or NULL. */
static inline struct height_insn *height_insn_at(const struct height *h, uint64_t off)
{
	return off < h->len && h->index[off] ? &h->insns[h->index[off] - 1] : NULL;
}

/* Decode the instruction at @off, which is within the routine, and change *@s as it does (step.c).
 */
void height_step(struct height *h, uint64_t off, struct height_state *s, struct height_step *out);

/* Follow all paths from @nr places that are called. 0, -ENOMEM, or -DCPI_ELIMIT: too many states or
 * steps (height.c). */
int height_flow_entries(struct height *h, const uint32_t *offs, size_t nr);
/* Set "proof" and "refused", and what is "found" of instructions (prove.c). */
void height_prove(struct height *h);
/* The same of a trial: false if something is wrong with its paths. */
bool height_prove_trial(struct height *h, enum height_calls calls);
/* Keep rules and reasons of the instructions (height.c). */
void height_keep(struct height *h);

/* Likewise, for a routine of many parts in one frame, whose first byte is no code (parts.c). 1: it
 * is one, and has its rules; 0: it is none; -ENOMEM. */
int height_parts(struct height *h);
/* Keep that rule of an instruction, and those of instructions that lead to a return and have none
 * yet (height.c). */
void height_keep_rule(struct height *h, const struct height_insn *i,
		      const struct unwind_rule *rule);
void height_keep_called(struct height *h);

#endif
