/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings of DWARF, enough of them to be packed, of which the last does not end. */
	.section .debug_str, "", %progbits
	.skip 1024, 0x41
	.section .note.GNU-stack, "", %progbits
