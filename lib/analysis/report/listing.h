/* SPDX-License-Identifier: BSD-2-Clause */
/* One procedure's instructions with samples and lines. */
#ifndef DCPI_REPORT_LISTING_H
#define DCPI_REPORT_LISTING_H

#include "insn.h"
#include "rows.h"

enum analysis_unit_kind {
	ANALYSIS_UNIT_INSN,  /* an instruction */
	ANALYSIS_UNIT_BYTES, /* samples where the image has no bytes (a kernel) */
	ANALYSIS_UNIT_STRAY, /* samples inside of the instruction before */
};

/* An address of a procedure: an instruction, or samples that fit none. */
struct analysis_unit {
	enum analysis_unit_kind kind;
	uint64_t vaddr;
	uint32_t len;
	uint32_t file;	   /* index in files */
	unsigned int line; /* 0: no line */
	size_t stack;	   /* index in stacks + 1; 0: nothing is inlined here */
	uint64_t *count;   /* by event; NULL: none */
};

/* Routines inlined one into the other, and last the procedure: innermost first. */
struct analysis_stack {
	struct image_frame *v; /* names are the image's */
	size_t nr;
};

struct analysis_listing {
	struct analysis *a;
	struct analysis_image *ai;
	struct image *img;
	struct image_symbol symbol;
	struct insn_disasm *disasm; /* NULL: no bytes, or no such machine */
	uint8_t *code;
	size_t code_len;
	struct analysis_unit *units; /* ascending by vaddr */
	size_t nr_units, cap_units;
	struct analysis_stack *stacks;
	size_t nr_stacks, cap_stacks;
	char **files;
	size_t nr_files, cap_files;
	uint64_t *total; /* by event, always the sum of the units */
	/* Where the code stands whose samples these are, this place first; hashes are not told. */
	struct analysis_place *places;
	size_t nr_places, cap_places;
};

struct analysis_founds;
/*
 * Takes over @img, also on failure. @also (may be NULL): further places of the same code, whose
 * samples are added; the one of @ai itself is passed over. 0 or negative with @err.
 */
int analysis_listing_open(struct analysis *a, struct analysis_image *ai, struct image *img,
			  const struct image_symbol *symbol, const struct analysis_founds *also,
			  struct analysis_listing **out, struct base_err *err);
void analysis_listing_close(struct analysis_listing *l);
/* The image back, as the caller's again; to be called just before closing, which then keeps it
 * open. */
struct image *analysis_listing_take_image(struct analysis_listing *l);
/* Text of a unit, branch targets as name+offset. */
void analysis_unit_text(const struct analysis_listing *l, const struct analysis_unit *unit,
			char *buf, size_t buf_len);
/* Its text with the target as "name+0x12". */
void analysis_insn_text(struct image *img, const struct insn_line *insn, char *buf, size_t buf_len);

#endif
