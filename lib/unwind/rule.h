/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rule: how the registers of a caller are found at one place of code. Plain data, without libc,
 * for the kernel's programs and for user space alike; a rule holds for any machine, and says itself
 * where its return address is.
 */
#ifndef DCPI_UNWIND_RULE_H
#define DCPI_UNWIND_RULE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Registers of x86-64 have the numbers that DWARF gives them, 0 (rax) to 15 (r15). Three of
 * aarch64 are known, under the numbers below.
 */
enum {
	UNWIND_LINK = 3, /* rbx; x30, the return address of a leaf */
	UNWIND_FP = 6,	 /* rbp; x29 */
	UNWIND_SP = 7,
	UNWIND_NR_REGS = 16,
	/* Values of a rule's "returns", beside register + 1. */
	UNWIND_RETURNS_LINK = UNWIND_LINK + 1,	/* aarch64 */
	UNWIND_RETURNS_FP = UNWIND_NR_REGS + 1, /* in memory at fp + 8, wherever the CFA is */
	UNWIND_RETURNS_SP, /* in memory at sp: just entered, or about to return */
};

/* The CFA is the stack pointer as it is in the caller. "base" is a register, "off" bytes. */
enum unwind_how {
	UNWIND_NONE,	       /* nothing is known of this code; rule 0 of each table */
	UNWIND_END,	       /* the outermost frame: no caller */
	UNWIND_CFA,	       /* CFA = base + off */
	UNWIND_DEREF,	       /* CFA = *(base + off) + add */
	UNWIND_PLT,	       /* CFA = sp + off + 8 if (pc & 15) >= add */
	UNWIND_SIGNAL_X86,     /* the kernel's rt_sigframe: sp is at its ucontext */
	UNWIND_SIGNAL_AARCH64, /* likewise: sp is at its siginfo */
	UNWIND_FRAME_POINTER,  /* CFA = fp + 16, above saved fp and return address: not proven */
	UNWIND_NR_HOW
};

/* Where the caller's fp and link are. "words" are of 8 bytes. */
enum unwind_at {
	UNWIND_AT_SAME, /* where they were: nothing saved it */
	UNWIND_AT_CFA,	/* in memory at CFA + words */
	UNWIND_AT_FP,	/* in memory at fp + words */
	UNWIND_AT_LOST, /* nowhere */
	UNWIND_NR_AT
};

struct unwind_rule {
	uint8_t how;	 /* enum unwind_how */
	uint8_t base;	 /* a register */
	uint8_t fp_at;	 /* enum unwind_at */
	uint8_t link_at; /* the same */
	int32_t off;
	int16_t add;
	int16_t fp_words;
	int16_t link_words;
	uint8_t returns; /* 0: the caller's pc is at CFA - 8; up to UNWIND_NR_REGS: register
			    returns - 1 has it; else as above */
	uint8_t zero;
};

/* Is it a rule that unwind_step can follow? For rules that come from another process. */
static inline bool unwind_rule_valid(const struct unwind_rule *r)
{
	return r->how < UNWIND_NR_HOW && r->base < UNWIND_NR_REGS && r->fp_at < UNWIND_NR_AT &&
	       r->link_at < UNWIND_NR_AT && r->returns <= UNWIND_RETURNS_SP && r->zero == 0;
}

#endif
