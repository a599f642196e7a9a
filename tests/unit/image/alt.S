/* SPDX-License-Identifier: BSD-2-Clause */
/* What uses_alt.S refers to. */
	.section .debug_abbrev, "", %progbits
	.uleb128 1, 0x41 /* partial_unit, with children */
	.byte 1
	.uleb128 0, 0
	.uleb128 2, 0x2e /* subprogram */
	.byte 0
	.uleb128 0x03, 0x08, 0, 0 /* name */
	.byte 0

	.section .debug_info, "", %progbits
	.4byte .Lunit_end - .Lunit
.Lunit:
	.2byte 4
	.4byte 0
	.byte 8
	.uleb128 1
	.uleb128 2 /* at 12 */
	.asciz "shared"
	.byte 0
.Lunit_end:

	.section .note.GNU-stack, "", %progbits
