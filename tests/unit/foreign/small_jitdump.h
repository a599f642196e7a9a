/* SPDX-License-Identifier: BSD-2-Clause */
/* A jitdump file, written by hand, right and wrong. */
#ifndef SMALL_JITDUMP_H
#define SMALL_JITDUMP_H

#include "jitdump_internal.h"

enum { SMALL_PID = 77, SMALL_CLOSE = 3, SMALL_UNWIND = 4, SMALL_OTHER = 9 };

struct small_line {
	uint64_t addr;
	uint32_t line;
	const char *file;
};

/* Of process SMALL_PID, x86-64. */
void small_jitdump_header(struct jitdump_header *header);
/* All append to @b; returned are offsets in it. @body: what follows the record's head. */
size_t small_jitdump_begin(struct base_buf *b);
size_t small_jitdump_record(struct base_buf *b, uint32_t id, uint64_t time, const void *body,
			    size_t len);
/* Each byte of code is its address's lowest one, as memory in runtime_reading.h; a garbage tid. */
size_t small_jitdump_load(struct base_buf *b, uint64_t time, uint64_t addr, uint64_t len,
			  const char *name);
size_t small_jitdump_move(struct base_buf *b, uint64_t time, uint64_t from, uint64_t to,
			  uint64_t len);
size_t small_jitdump_debug(struct base_buf *b, uint64_t addr, const struct small_line *lines,
			   size_t nr);
/* Write over a field of the record at @off. */
#define small_jitdump_set(b, off, type, field, value)                                              \
	memcpy((b)->data + (off) + offsetof(type, field),                                          \
	       &(__typeof__(((type *)0)->field)){ value }, sizeof(((type *)0)->field))

#endif
