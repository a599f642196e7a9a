/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that a runtime writes, read as the reader process does, and what came of it as text. */
#ifndef RUNTIME_READING_H
#define RUNTIME_READING_H

#include "foreign.h"

typedef int runtime_read_fn(const struct foreign_file *file, struct foreign_place *place,
			    struct base_buf *out);

struct reading {
	runtime_read_fn *read;
	struct foreign_file file; /* its fd: a memfd, empty at first */
	struct foreign_place place;
	struct base_buf text; /* of all records so far, ends with a NUL that does not count */
	uint64_t nr_bad, nr_calls;
	uint64_t time_ns; /* the last that was told */
};

/* x86-64, answers without bound, no memory. */
void reading_begin(struct reading *rd, runtime_read_fn *read);
void reading_end(struct reading *rd);
/* Memory that can be read but for the page at 0x666000: each byte is its address's lowest one. */
void reading_use_memory(struct reading *rd);

/* Append to the file, or make it that long. */
void reading_write(struct reading *rd, const void *data, size_t len);
void reading_resize(struct reading *rd, uint64_t len);

/*
 * Read on to the end; 0, or how the reader failed. The text has a line for each record, but for
 * times that are those before:
 *	time NS
 *	SEQ routine ADDR+LEN NAME [code BYTES | fetched BYTES] [LINES…]
 *	SEQ move FROM TO+LEN [fetched BYTES]
 * BYTES: the first and the last one. LINES: +OFF=FILE:LINE, or +OFF=? for 0.
 */
int reading_run(struct reading *rd);
/* The same once. */
int reading_step(struct reading *rd);
/* Has this been read since it was asked last? */
void reading_check(struct reading *rd, const char *text);

#endif
