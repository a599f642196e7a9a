/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands in for a pseudo-image: a note with two runs, its process, and an id that it replaces.
 * Written out by hand from wire.h, so that the reader is not checked against itself.
 */
int jitted(int x);
int draw_a(int x);
int draw_b(int x);

int jitted(int x)
{
	return x + 1;
}

/* Renamed once linked, to what a runtime would call them: "draw@a.js:10", "draw@b.js:20". */
int draw_a(int x)
{
	return x + 2;
}

int draw_b(int x)
{
	return x + 3;
}

/* clang-format off */
__asm__(".section .dcpi.note,\"\",%progbits\n"
	".long 5, 2f - 1f, 1\n"
	".asciz \"DCPI\"\n"
	".balign 4\n"
	"1:\n"
	/* WIRE_IMAGE: len, type, flags; machine, pid; start; created; uid, lengths, flags */
	".long 64\n.short 8, 0\n"
	".long 62, 4711\n"
	".quad 123456789\n"
	".quad 1700000000\n"
	".long 1000\n.short 5, 4, 5, 0\n.long 0\n"
	".ascii \"hello\" \"box7\" \"/bin/\"\n"
	".zero 2\n"
	/* WIRE_RUN: vaddr, img_off, len; the later one first */
	".long 32\n.short 9, 0\n.quad 0x7f0000002000, 0x1000, 0x800\n"
	".long 32\n.short 9, 0\n.quad 0x7e0000000000, 0, 0x1000\n"
	/* WIRE_REPLACES */
	".long 32\n.short 10, 0\n.byte 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20\n.long 0\n"
	/* Another, one of whose parts has moved: from, to, len */
	".long 56\n.short 10, 0\n.byte 2,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20\n.long 1\n"
	".quad 0x1100, 0x20, 0x10\n"
	"2:\n"
	".previous\n");
/* clang-format on */
