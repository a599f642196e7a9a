/* SPDX-License-Identifier: BSD-2-Clause */
/* "outer", into which "shared" is inlined, which stands in alt.so: as dwz(1) leaves a file. */
	.text
	.file 1 "uses_alt.c"
	.globl outer
	.type outer, %function
outer:
	.loc 1 10
	nop
.Linlined:
	.loc 1 20
	nop
.Lend:
	.size outer, . - outer

	.section .debug_abbrev, "", %progbits
	.uleb128 1, 0x11 /* compile_unit, with children */
	.byte 1
	.uleb128 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0 /* low_pc, high_pc, stmt_list */
	.uleb128 2, 0x2e				  /* subprogram */
	.byte 1
	.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0 /* name, low_pc, high_pc */
	.uleb128 3, 0x1d				  /* inlined_subroutine */
	.byte 0
	/* abstract_origin: GNU_ref_alt; low_pc, high_pc, call_file, call_line */
	.uleb128 0x31, 0x1f20, 0x11, 0x01, 0x12, 0x07, 0x58, 0x0b, 0x59, 0x0b, 0, 0
	.byte 0

	.section .debug_info, "", %progbits
	.4byte .Lunit_end - .Lunit
.Lunit:
	.2byte 4
	.4byte 0 /* .debug_abbrev begins with them */
	.byte 8
	.uleb128 1
	.8byte outer, .Lend - outer
	.4byte 0 /* .debug_line has no other */
	.uleb128 2
	.asciz "outer"
	.8byte outer, .Lend - outer
	.uleb128 3
	.4byte 12 /* behind the head of the unit in alt.so */
	.8byte .Linlined, .Lend - .Linlined
	.byte 1, 10
	.byte 0, 0
.Lunit_end:

	.section .gnu_debugaltlink, "", %progbits
	.asciz "alt.so"
	.4byte 0x33221100, 0x77665544, 0xbbaa9988, 0xffeeddcc, 0x33221100

	.section .note.GNU-stack, "", %progbits
