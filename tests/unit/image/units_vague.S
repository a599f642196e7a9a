/* SPDX-License-Identifier: BSD-2-Clause */
/* A unit that does not say which addresses it has: behind all others. */
	.file 1 "vague.c"
	.section .text_vague, "ax", %progbits
	.globl vague
	.type vague, %function
vague:
	.loc 1 40
	nop
	nop
	nop
	nop
	.size vague, . - vague
#include "unit.inc"
