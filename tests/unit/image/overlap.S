/* SPDX-License-Identifier: BSD-2-Clause */
/* Code of two units, of which the one has a part in the middle of what the other claims. */
	.text
	.globl wide
	.type wide, %function
wide:
	.skip 16, 0x90
.Lnarrow:
	.skip 16, 0x90
.Lnarrow_end:
	.skip 16, 0x90
.Lend:
	.size wide, . - wide

	.section .debug_abbrev, "", %progbits
	.uleb128 1, 0x11 /* compile_unit, without children */
	.byte 0
	.uleb128 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0 /* low_pc, high_pc, stmt_list */
	.byte 0

	/* A unit, and its lines: all of its code has one. */
	.macro unit name, start, end, line
	.section .debug_line, "", %progbits
.Llines_\name:
	.4byte .Llines_end_\name - . - 4
	.2byte 2
	.4byte .Lprogram_\name - . - 4
	.byte 1, 1, 0xff, 4, 10		  /* least instruction, is_stmt, base, range, first special */
	.byte 0, 1, 1, 1, 1, 0, 0, 0, 1, 0 /* operands; no folders */
	.asciz "/\name\().c"
	.byte 0, 0, 0, 0
.Lprogram_\name:
	.byte 0, 9, 2 /* set_address */
	.8byte \start
	.byte 3
	.sleb128 \line - 1 /* advance_line */
	.byte 1, 2	   /* copy, advance_pc */
	.uleb128 \end - \start
	.byte 0, 1, 1 /* end_sequence */
.Llines_end_\name:
	.section .debug_info, "", %progbits
	.4byte .Lunit_end_\name - . - 4
	.2byte 4
	.4byte 0
	.byte 8
	.uleb128 1
	.8byte \start, \end - \start
	.4byte .Llines_\name
.Lunit_end_\name:
	.endm

	unit wide, wide, .Lend, 10
	unit narrow, .Lnarrow, .Lnarrow_end, 20

	.section .note.GNU-stack, "", %progbits
