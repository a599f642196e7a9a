/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last unit of the fixture: what an assembler says of code without typed symbols ends in the
 * language, not in a zero.
 */
	.text
	nop
	nop
	.section .note.GNU-stack, "", %progbits
