/* SPDX-License-Identifier: BSD-2-Clause */
/* A listing of one procedure: its instructions with samples and lines. */
#ifndef DCPI_REPORT_LISTING_H
#define DCPI_REPORT_LISTING_H

#include "bound.h"
#include "insn.h"
#include "rows.h"

enum analysis_unit_kind {
	ANALYSIS_UNIT_INSN,  /* an instruction */
	ANALYSIS_UNIT_BYTES, /* samples in an image without bytes (a kernel) */
	ANALYSIS_UNIT_STRAY, /* samples inside the previous instruction */
};

/* An address of a procedure: an instruction, or samples that match none. */
struct analysis_unit {
	enum analysis_unit_kind kind;
	uint64_t vaddr;
	uint32_t len;
	uint32_t file;	   /* index in files */
	unsigned int line; /* 0: no line */
	size_t stack;	   /* index in stacks + 1; 0: no inlined routine */
	uint64_t *count;   /* indexed by event; NULL: none */
};

/* Instruction samples of one address, as the listed procedure has it. */
struct analysis_told {
	uint64_t vaddr;
	const struct profdb_insn *insn; /* the profile's */
	size_t event;			/* index in the analysis */
};

/* The chain of inlined routines, innermost first; the last one is the procedure. */
struct analysis_stack {
	struct image_frame *v; /* the image owns the names */
	size_t nr;
};

struct analysis_listing {
	struct analysis *a;
	struct analysis_image *ai;
	struct image *img;
	struct image_symbol symbol;
	struct insn_disasm *disasm; /* NULL: no bytes, or an unknown machine */
	uint8_t *code;
	size_t code_len;
	struct analysis_unit *units; /* ascending by vaddr */
	size_t nr_units, cap_units;
	struct analysis_stack *stacks;
	size_t nr_stacks, cap_stacks;
	char **files;
	size_t nr_files, cap_files;
	uint64_t *total;	    /* indexed by event, always the sum of the units */
	struct analysis_told *told; /* ascending by vaddr, each the address of a unit */
	size_t nr_told, cap_told;
	/* The places of the code whose samples these are, this place first; hashes are not set. */
	struct analysis_place *places;
	size_t nr_places, cap_places;
};

struct analysis_founds;
/*
 * Opens a listing of the procedure into *@out. Takes over @img, also on failure. @also (may be
 * NULL): further places of the same code, whose samples are added; the place of @ai itself is
 * skipped. 0 or negative with @err.
 */
int analysis_listing_open(struct analysis *a, struct analysis_image *ai, struct image *img,
			  const struct image_symbol *symbol, const struct analysis_founds *also,
			  struct analysis_listing **out, struct base_err *err);
void analysis_listing_close(struct analysis_listing *l);
/* Returns the image to the caller, who then owns it; called just before the listing is closed. */
struct image *analysis_listing_take_image(struct analysis_listing *l);
/* The first of the instruction samples at @vaddr or behind it; l->nr_told: none. */
static inline size_t analysis_told_at(const struct analysis_listing *l, uint64_t vaddr)
{
	return BASE_BOUND(i, l->nr_told, l->told[i].vaddr < vaddr);
}

/* The samples of a unit by which @event, chosen by estimate_event, tells how often it ran. */
uint64_t analysis_unit_runs(const struct analysis_listing *l, const struct analysis_unit *unit,
			    size_t event);
/* Formats a unit, with branch targets as "name+0x12". */
void analysis_unit_text(const struct analysis_listing *l, const struct analysis_unit *unit,
			char *buf, size_t buf_len);
/* Formats an instruction with its target as "name+0x12". */
void analysis_insn_text(struct image *img, const struct insn_line *insn, char *buf, size_t buf_len);

#endif
