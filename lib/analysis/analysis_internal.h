/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DCPI_ANALYSIS_INTERNAL_H
#define DCPI_ANALYSIS_INTERNAL_H

#include "analysis.h"

/* Has the entry of @ai's profile samples of a chosen event? */
bool analysis_entry_wanted(const struct analysis_image *ai, const struct profdb_entry *e);
/* Add its chosen samples by event, to @total (may be NULL) as well. */
void analysis_entry_add(const struct analysis_image *ai, const struct profdb_entry *e,
			uint64_t *count, uint64_t *total);

/* A profile becomes part of its image, whose it is (gather.c); @out (may be NULL) is not set where
 * its label is not wanted. 0 or negative. */
int analysis_take_profile(struct analysis *a, struct profdb_profile *p,
			  struct analysis_image **out);
int analysis_note_period(struct analysis *a, const struct profdb_event *ev);
/* All that was walked. */
void analysis_forget(struct analysis *a);

/* Every profile that is chosen (gather_walk.c). Where epochs were joined meanwhile, some may be
 * there twice, and others not at all: it begins anew. */
int analysis_walk(struct analysis *a, const struct analysis_selection *sel, struct base_err *err);
void analysis_forget_headers(struct analysis *a);

/* A profile file that cannot be read: into @a->bad (gather_walk.c). */
void analysis_note_bad(struct analysis *a, const char *epoch, const char *platform,
		       const char *file, const struct base_err *err);

/* Its text with the target as "name+0x12" (listing.c). */
void analysis_insn_text(struct image *img, const struct analysis_insn *insn, char *buf,
			size_t buf_len);

/*
 * Zero in the instruction at the start of @code, of which @len bytes are there, what moving
 * changes; [@start, @end) is the procedure. Returns its length, of what is none that of a step over
 * it (disasm.c).
 */
size_t analysis_disasm_mask_x86(struct analysis_disasm *d, uint8_t *code, size_t len,
				uint64_t vaddr, uint64_t start, uint64_t end);

#endif
