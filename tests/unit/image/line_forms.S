/* SPDX-License-Identifier: BSD-2-Clause */
/* Code whose lines are told by each instruction of DWARF's line programs; of machines with instructions of two bytes. */
	.text
	.globl forms
	.type forms, %function
forms:
	.skip 512, 0x90
.Lend:
	.size forms, . - forms

	.section .debug_abbrev, "", %progbits
	.uleb128 1, 0x11 /* compile_unit, without children */
	.byte 0
	.uleb128 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0x25, 0x08, 0, 0 /* low_pc, high_pc, stmt_list, producer */
	.byte 0

	.section .debug_line, "", %progbits
.Llines:
	.4byte .Llines_end - . - 4
	.2byte 4
	.4byte .Lprogram - . - 4
	.byte 2, 1, 1, 0xfd, 12, 13	  /* least instruction, operations, is_stmt, base -3, range, first special */
	.byte 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 /* operands */
	.byte 0 /* no folders */
	.asciz "/first.c"
	.byte 0, 0, 0
	.asciz "/second.c"
	.byte 0, 0, 0
	.byte 0
.Lprogram:
	.byte 0, 9, 2 /* set_address */
	.8byte forms
	.byte 3
	.sleb128 99			  /* advance_line */
	.byte 5, 7, 6, 7, 10, 11, 12, 3   /* set_column, negate_stmt, basic_block, prologue, epilogue, set_isa */
	.byte 1				  /* copy: 0, line 100 */
	.byte 13 + 8 * 12 + 5		  /* special: 16, line 102 */
	.byte 8				  /* const_add_pc: 20 * 2 */
	.byte 13 + 3			  /* special: 56, line 102 */
	.byte 4, 2			  /* set_file */
	.byte 9				  /* fixed_advance_pc, which is in bytes */
	.2byte 20
	.byte 3
	.sleb128 -40			  /* advance_line */
	.byte 0, 2, 4, 9		  /* set_discriminator */
	.byte 1				  /* copy: 76, line 62 of the second file */
	.byte 0, 4, 0x80, 1, 2, 3	  /* an extended one of a vendor's */
	.byte 2
	.uleb128 150			  /* advance_pc: 300 */
	.byte 1				  /* copy: 376, line 62 without a discriminator */
	.byte 2
	.uleb128 68
	.byte 0, 1, 1 /* end_sequence: 512 */
.Llines_end:
	.section .debug_info, "", %progbits
	.4byte .Lunit_end - . - 4
	.2byte 4
	.4byte 0
	.byte 8
	.uleb128 1
	.8byte forms, .Lend - forms
	.4byte .Llines
	.asciz "clang version 14" /* GCC's discriminators are others */
.Lunit_end:

	.section .note.GNU-stack, "", %progbits
