/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a walk, and what its steps lead to. Plain data, for the kernel's programs too. */
#ifndef DCPI_UNWIND_STATE_H
#define DCPI_UNWIND_STATE_H

#include "rule.h"

/* A frame. At the start of a walk: exact, with all registers that are known. */
struct unwind_state {
	uint64_t pc;
	uint64_t reg[UNWIND_NR_REGS];
	uint32_t known;	 /* of reg: 1 << number */
	uint8_t exact;	 /* pc was interrupted here; 0: it is a return address */
	uint8_t guessed; /* by UNWIND_FRAME_POINTER, here or in a frame below */
};

enum unwind_step {
	UNWIND_STEP_NEXT, /* the state is the caller's */
	UNWIND_STEP_COMPLETE,
	UNWIND_STEP_UNREADABLE,
	UNWIND_STEP_NO_ROWS, /* no rule here, or one that needs a register that is not known */
	UNWIND_STEP_ASTRAY,  /* it leads down the stack, or to what is no address of code */
};

#endif
