/* SPDX-License-Identifier: BSD-2-Clause */
	.file 1 "inner.c"
	.text
	.globl inner
	.type inner, %function
inner:
	.loc 1 30
	nop
	nop
	nop
	nop
.Lbehind:
	.size inner, . - inner
#define FIRST  inner
#define BEHIND .Lbehind
#include "unit.inc"
