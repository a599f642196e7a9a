/* SPDX-License-Identifier: BSD-2-Clause */
/* A unit that, as dwz(1) makes them, has lines for the sake of the files' names: of no code. */
	.file 1 "partial.c"
	.section .text_partial, "ax", %progbits
	.globl partial
	.type partial, %function
partial:
	.loc 1 50
	nop
	nop
	nop
	nop
	.size partial, . - partial
#define TAG 0x3c /* partial_unit */
#include "unit.inc"
