/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A unit with a long routine that the linker threw away, as it then stands in DWARF: at 0, up to far
 * behind all code that is left. "live" is the unit's too, "alien" is of no unit.
 */
#define GONE_LEN 0x100000
	.text
	.globl live, alien
	.type live, %function
live:
	.skip 16, 0x90
.Llive_end:
	.size live, . - live
	.type alien, %function
alien:
	.skip 16, 0x90
	.size alien, . - alien

	.section .debug_abbrev, "", %progbits
	.uleb128 1, 0x11 /* compile_unit, with children */
	.byte 1
	.uleb128 0x11, 0x01, 0x55, 0x17, 0x10, 0x17, 0, 0 /* low_pc, ranges, stmt_list */
	.uleb128 2, 0x2e				  /* subprogram */
	.byte 1
	.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0 /* name, low_pc, high_pc */
	.uleb128 3, 0x1d				  /* inlined_subroutine */
	.byte 0
	.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
	.byte 0

	.section .debug_info, "", %progbits
	.4byte .Lunit_end - .Lunit
.Lunit:
	.2byte 4
	.4byte 0
	.byte 8
	.uleb128 1
	.8byte 0
	.4byte 0, 0
	.uleb128 2
	.asciz "gone"
	.8byte 0, GONE_LEN
	.uleb128 3
	.asciz "gone_inner"
	.8byte 0, GONE_LEN
	.byte 0
	.uleb128 2
	.asciz "live"
	.8byte live, .Llive_end - live
	.byte 0, 0
.Lunit_end:

	.section .debug_ranges, "", %progbits
	.8byte 0, GONE_LEN, live, .Llive_end, 0, 0

	.section .debug_line, "", %progbits
	.4byte .Llines_end - . - 4
	.2byte 2
	.4byte .Lprogram - . - 4
	.byte 1, 1, 0xff, 4, 10		  /* least instruction, is_stmt, base, range, first special */
	.byte 0, 1, 1, 1, 1, 0, 0, 0, 1, 0 /* operands; no folders */
	.asciz "/gone.c"
	.byte 0, 0, 0
	.asciz "/live.c"
	.byte 0, 0, 0, 0
.Lprogram:
	.byte 0, 9, 2 /* set_address */
	.8byte 0
	.byte 3, 19, 1 /* advance_line, copy */
	.byte 0, 9, 2  /* as if from there: into "live" */
	.8byte live + 5
	.byte 3, 1, 1
	.byte 2 /* advance_pc */
	.uleb128 GONE_LEN
	.byte 0, 1, 1 /* end_sequence */
	.byte 0, 9, 2
	.8byte live
	.byte 4, 2, 3, 9, 1 /* set_file, advance_line, copy */
	.byte 2
	.uleb128 .Llive_end - live
	.byte 0, 1, 1
.Llines_end:

	.section .note.GNU-stack, "", %progbits
