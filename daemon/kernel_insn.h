/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machine code that is shown to others must not tell where the kernel lies: the addresses in it are
 * replaced by places in the image. Parses bytes that an application's program may have shaped.
 */
#ifndef DCPI_KERNEL_INSN_H
#define DCPI_KERNEL_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where an instruction's numbers stand; lengths 0: it has none. */
struct kernel_insn {
	uint8_t len;
	uint8_t disp_at, disp_len; /* of a memory operand; 1, 4 (8: an address without registers) */
	uint8_t imm_at, imm_len;
	bool branch;	  /* the immediate is a distance from the instruction's end */
	bool address;	  /* the immediate is taken as 64 bits, and may be an address */
	bool pc_relative; /* so is the displacement */
};

/* Take one x86-64 instruction apart: 0, or -DCPI_EFORMAT where it is none, or cut off. */
int kernel_insn_x86(const uint8_t *code, size_t len, struct kernel_insn *out);

/* Code as it ran, and how it is to be shown. */
struct kernel_view {
	uint32_t machine; /* EM_X86_64 or EM_AARCH64 */
	uint64_t addr;	  /* where the first byte ran */
	uint64_t at;	  /* where it stands in the image */
	/* What the image stands for, this code included: an address in it becomes a place in the
	 * image. Any other address of the kernel is shown as 0, and no other number is changed. */
	uint64_t own_start, own_end;
	/* Place to show for something outside that is called or read relative to the code. */
	uint64_t (*place)(void *ctx, uint64_t target);
	void *ctx;
};

/*
 * Replace every address in @code. Returns how many bytes from the start on may be shown: fewer than
 * @len where there is something that cannot be taken apart (what follows is zeroed), 0 for code of
 * another machine.
 */
size_t kernel_view_hide(const struct kernel_view *v, uint8_t *code, size_t len);

#endif
