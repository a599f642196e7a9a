/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries of .eh_frame, from within lib/image (eh_frame.c). */
#ifndef DCPI_IMAGE_EH_FRAME_H
#define DCPI_IMAGE_EH_FRAME_H

#include "image_internal.h"

/* Bytes of a section, read in order; past the end all is zero and bad. */
struct image_cursor {
	const uint8_t *data;
	size_t at, end;
	uint64_t vaddr;	   /* address of the section */
	unsigned int word; /* bytes of an address */
	bool bad;
};

/* @len: at most 8. Numbers are little-endian. */
uint64_t image_cursor_fixed(struct image_cursor *c, size_t len);
uint64_t image_cursor_leb(struct image_cursor *c, bool is_signed);
/* An address as @encoding (DW_EH_PE) writes it. */
uint64_t image_cursor_pointer(struct image_cursor *c, uint8_t encoding);

/* A common entry: what pieces of code share. */
struct image_cie {
	uint8_t encoding; /* of addresses in entries and programs */
	bool augmented;	  /* entries have data of their own before their program */
	bool signal;	  /* it is the code to which a signal handler returns */
	uint64_t code_factor, return_reg;
	int64_t data_factor;
	struct image_cursor program; /* first part of each entry's */
};

/* A piece of code. */
struct image_fde {
	size_t at; /* where in the section */
	uint64_t vaddr, len;
	const struct image_cie *cie;
	struct image_cursor program;
};

struct image_eh_frame {
	struct image_cursor section;
	/* The common entry asked for last, and whether it is a good one. */
	bool known, known_good;
	size_t known_at;
	struct image_cie cie;
};

/* False: @f has none, or one whose addresses are not known. It stands in libelf's memory. */
bool image_eh_frame_open(struct image_eh_frame *eh, const struct image_elf *f);
/* The first good piece at or behind *@at, which moves behind it; @fde holds until the next call.
 * False: no more. */
bool image_eh_frame_next(struct image_eh_frame *eh, size_t *at, struct image_fde *fde);

#endif
