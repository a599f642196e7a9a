/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries of .eh_frame and their programs, from within lib/image (eh_frame.c). */
#ifndef DCPI_IMAGE_EH_FRAME_H
#define DCPI_IMAGE_EH_FRAME_H

#include "image_internal.h"
#include "rule.h"

/* Bytes of a section, read in order; past the end all is zero and bad. */
struct image_cursor {
	const uint8_t *data;
	size_t at, end;
	uint64_t vaddr;	   /* address of the section */
	unsigned int word; /* bytes of an address */
	bool bad;
};

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

/* Called for places of code, ascending: from @vaddr on @rule holds. Negative: stop. */
typedef int image_cfa_fn(void *ctx, uint64_t vaddr, const struct unwind_rule *rule);

/*
 * Run the programs of a piece of code of @machine (EM_X86_64, EM_AARCH64). Rows begin at its start;
 * a place that no rule can describe has UNWIND_NONE, as has all behind what is damaged. Each
 * instruction is taken from *@budget; -DCPI_ELIMIT: it is spent. Else 0, or what @fn returned below
 * 0.
 */
int image_cfa_run(const struct image_fde *fde, uint16_t machine, uint64_t *budget, image_cfa_fn *fn,
		  void *ctx);

#endif
