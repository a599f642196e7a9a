/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last unit of the fixture: what an assembler says of code without typed symbols ends in the
 * language, not in a zero.
 */
	.text
	nop
	nop
	/* Code that is an object, as GHC has it; one without a size is none. */
	.globl	proc_info
	.type	proc_info, %object
proc_info:
	.skip	8
	.size	proc_info, . - proc_info
	.globl	proc_alias
	.type	proc_alias, %object
	.set	proc_alias, proc_info
	.size	proc_alias, 0
	.section .note.GNU-stack, "", %progbits
