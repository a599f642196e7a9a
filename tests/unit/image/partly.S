/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 64 bytes of code of which .eh_frame tells the first TOLD; nothing names any of them. As a program
 * whose compiler left .eh_frame out, linked with a C library that has its own.
 */
	.text
	.balign	16
	.cfi_startproc
	.skip	TOLD
	.cfi_endproc
	.skip	64 - TOLD
	.section .note.GNU-stack, "", %progbits
