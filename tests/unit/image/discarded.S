/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A unit with a long routine that the linker threw away, as it then stands in DWARF: at 0, up to far
 * behind all code that is left. "live" is the unit's too, "alien" is of no unit. AS_EMPTY: of its range
 * nothing is left; AS_WIDE: its lines have offsets of 64 bits; AS_BIG: all of it is in the other byte
 * order, and the linker was told to put "live" at LIVE_AT.
 */
#define GONE_LEN 0x100000
#define LIVE_LEN 16
#ifdef AS_BIG
#define LIVE	  LIVE_AT
	.macro be bytes, value
	.if \bytes
	.byte ((\value) >> (8 * (\bytes - 1))) & 255
	be (\bytes - 1), (\value)
	.endif
	.endm
#define N2(value) be 2, (value)
#define N4(value) be 4, (value)
#define N8(value) be 8, (value)
#else
#define N2(value) .2byte value
#define N4(value) .4byte value
#define N8(value) .8byte value
#define LIVE	  live
#endif
#ifdef AS_WIDE
#define OFFSET(value) N8(value)
#else
#define OFFSET(value) N4(value)
#endif
	.text
	.globl live, alien
	.type live, %function
live:
	.skip LIVE_LEN, 0x90
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
	N4(.Lunit_end - .Lunit)
.Lunit:
	N2(4)
	N4(0)
	.byte 8
	.uleb128 1
	N8(0)
	N4(0)
	N4(0)
	.uleb128 2
	.asciz "gone"
	N8(0)
	N8(GONE_LEN)
	.uleb128 3
	.asciz "gone_inner"
	N8(0)
	N8(GONE_LEN)
	.byte 0
	.uleb128 2
	.asciz "live"
	N8(LIVE)
	N8(LIVE_LEN)
	.byte 0, 0
.Lunit_end:

	.section .debug_ranges, "", %progbits
#ifdef AS_EMPTY
	N8(1) /* as 0 would end the list */
	N8(1)
#else
	N8(0)
	N8(GONE_LEN)
#endif
	N8(LIVE)
	N8(LIVE + LIVE_LEN)
	N8(0)
	N8(0)

	.section .debug_line, "", %progbits
#ifdef AS_WIDE
	N4(0xffffffff)
#endif
	OFFSET(.Llines_end - .Lversion)
.Lversion:
	N2(2)
	OFFSET(.Lprogram - .Lheader)
.Lheader:
	.byte 1, 1, 0xff, 4, 10		  /* least instruction, is_stmt, base, range, first special */
	.byte 0, 1, 1, 1, 1, 0, 0, 0, 1, 0 /* operands; no folders */
	.asciz "/gone.c"
	.byte 0, 0, 0
	.asciz "/live.c"
	.byte 0, 0, 0, 0
.Lprogram:
	.byte 0, 9, 2 /* set_address */
	N8(0)
	.byte 3, 19, 1 /* advance_line, copy */
	.byte 0, 9, 2  /* as if from there: into "live" */
	N8(LIVE + 5)
	.byte 3, 1, 1
	.byte 2 /* advance_pc */
	.uleb128 GONE_LEN
	.byte 0, 1, 1 /* end_sequence */
	/* Three sequences, not in the order of addresses: the first one by address ends where the second
	 * begins, and the two bytes before the third have no line. The last row at an address counts. */
	.byte 0, 9, 2
	N8(LIVE + 8)
	.byte 4, 2, 3, 9, 1 /* set_file, advance_line, copy */
	.byte 2
	.uleb128 LIVE_LEN - 8
	.byte 0, 1, 1
	.byte 0, 9, 2
	N8(LIVE + 4)
	.byte 4, 2, 3, 9, 1
	.byte 2, 2
	.byte 0, 1, 1
	.byte 0, 9, 2
	N8(LIVE)
	.byte 4, 2, 3, 29, 1, 3, 0x6c, 1 /* line 30, then 20 less */
	.byte 2, 4
	.byte 0, 1, 1
.Llines_end:

	.section .note.GNU-stack, "", %progbits
