/* SPDX-License-Identifier: BSD-2-Clause */
/* Code before and behind that of units_inner.S: a unit that says of both, and what is between, that it
 * has it. */
	.file 1 "outer.c"
	.text
	.globl outer_first, outer_last
	.type outer_first, %function
outer_first:
	.loc 1 10
	nop
	nop
	nop
	nop
	.size outer_first, . - outer_first
	.section .text_later, "ax", %progbits
	.type outer_last, %function
outer_last:
	.loc 1 20
	nop
	nop
	nop
	nop
.Lbehind:
	.size outer_last, . - outer_last
#define FIRST  outer_first
#define BEHIND .Lbehind
#include "unit.inc"
