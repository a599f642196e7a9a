/* SPDX-License-Identifier: BSD-2-Clause */
/* As many procedures as make an index worth its file: many_0 to many_2999, each of 8 bytes, of which
 * many_7 has another name, and around the last there is another. */
	.altmacro
	.macro one nr
	.globl	many_\nr
	.type	many_\nr, %function
many_\nr:
	.skip	8
	.size	many_\nr, 8
	.endm

	.text
	.set	nr, 0
	.rept	2999
	one	%nr
	.set	nr, nr + 1
	.endr
	.globl	around
	.type	around, %function
around:
	.skip	8
	one	2999
	.skip	8
	.size	around, 24
	.globl	seven
	.type	seven, %function
	.set	seven, many_7
	.size	seven, 8
	.section .note.GNU-stack, "", %progbits
