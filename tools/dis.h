/* SPDX-License-Identifier: BSD-2-Clause */
/* Code taken apart into procedures and instructions, and these as text: the part of dcpidis that
 * needs no options, apart for the fuzz test of it. */
#ifndef DCPI_DIS_H
#define DCPI_DIS_H

#include "image.h"
#include "insn.h"

/* Code that was read, of one section. */
struct dis_range {
	const uint8_t *code; /* bytes of [vaddr, end) */
	uint64_t vaddr, end;
	const char *section; /* NULL: in none */
};

/* The receiver of disassembled lines. */
struct dis_sink {
	/* The procedure that stands at @vaddr and what follows; NULL: none does. */
	void (*label)(void *ctx, const struct dis_range *range, const struct image_symbol *symbol,
		      uint64_t vaddr);
	void (*insn)(void *ctx, uint64_t vaddr, const uint8_t *code, const struct insn_text *t);
	void *ctx;
};

/*
 * Go through a range. Decoding begins anew at each symbol, so that data before it cannot hide its
 * first instruction. Padding between procedures counts to the one before; zeros that fill
 * all the room to the next one are left out. @img: symbols loaded;
 * then several threads may go through ranges of it, each with its own @d (plain).
 */
void dis_walk(struct image *img, struct insn_disasm *d, const struct dis_range *range,
	      const struct dis_sink *sink);

/* Text in memory: millions of lines, for which printf would take longer than decoding them. */
struct dis_text {
	struct image *img;
	bool bytes, source;
	char *data;
	size_t len, cap;
	bool failed;	 /* out of memory once: what is there is not all */
	char *line_file; /* file of the previous instruction's line; NULL: none */
	unsigned int line;
};

/* A sink's, its ctx being the text. */
void dis_text_label(void *ctx, const struct dis_range *range, const struct image_symbol *symbol,
		    uint64_t vaddr);
void dis_text_insn(void *ctx, uint64_t vaddr, const uint8_t *code, const struct insn_text *t);
void dis_text_release(struct dis_text *x);

#endif
