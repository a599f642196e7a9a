/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by parts.c and parts_entry.c. */
#ifndef DCPI_HEIGHT_PARTS_H
#define DCPI_HEIGHT_PARTS_H

#include "height_internal.h"
#include "insn_x86.h"

/* Numbers of registers as instructions have them. */
enum { HEIGHT_PARTS_RSP = 4, HEIGHT_PARTS_RBP = 5 };

/* Findings of an instruction of a routine of parts, instead of those of prove.c. */
enum {
	HEIGHT_PARTS_IN_FRAME = 1 << 0,	 /* rbp, as it is here, is used as the frame pointer */
	HEIGHT_PARTS_ELSEWHERE = 1 << 1, /* it leads to where a frame is made, or to an end that
					    has none */
	HEIGHT_PARTS_BEHIND = 1 << 2,	 /* "leave" took the frame away */
	HEIGHT_PARTS_TARGET = 1 << 3,	 /* a jump or call in the routine leads here */
	HEIGHT_PARTS_LOST = 1 << 4,	 /* rbp was written in another way, and nothing else leads
					    here */
	HEIGHT_PARTS_ENTERED = 1 << 5, /* a method was just entered: its return address is at rsp */
	HEIGHT_PARTS_POPPED = 1 << 6,  /* the same, in a register */
};

bool height_parts_decode(const struct height *h, const struct height_insn *i, struct insn_x86 *in);
/* The whole general register that is the operand; negative: none. */
int height_parts_register(const ZydisDecodedOperand *op);
/* Keep rules for the entry of a method, if that is what the part is: its instructions are those
 * from @first up to, without, @end. False: no frame is made there (parts_entry.c). */
bool height_parts_entry(struct height *h, size_t first, size_t end);

#endif
