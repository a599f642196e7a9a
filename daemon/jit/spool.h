/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where records of routines are kept: a file without a name beside the pseudo-images, so that they
 * take no memory. Of segments; each holds records of one registry. What was dropped leaves holes;
 * a record is a place in units of 8 bytes, + 1, so that 0 is none.
 */
#ifndef DCPI_DYN_SPOOL_H
#define DCPI_DYN_SPOOL_H

#include "base.h"
#include "wire.h"

#define DYN_SPOOL_SEGMENT (64u << 10)
/* Bytes of one registry's segments, and of all; of those of which a part had to stay in memory. */
#define DYN_STORE_MAX	     (2ull << 30)
#define DYN_SPOOL_MAX	     (8ull << 30)
#define DYN_SPOOL_MEMORY_MAX (256ull << 20)

struct dyn_segment;

struct dyn_spool {
	int fd; /* -1: none yet */
	/* Records that @fd could not take, at the same places: the disk was full. -1: none */
	int memory_fd;
	uint64_t in_memory; /* bytes of segments of which it has a part */
	struct dyn_segment *segments;
	size_t nr_segments, cap_segments;
	uint32_t free;		 /* the first segment that is, + 1 */
	size_t nr_free, look_at; /* where free ones side by side are looked for next */
	uint64_t held;		 /* bytes of segments that are not free */
	struct budgets *budgets; /* users' budgets; may be set */
	/* Written late: the end of what was appended last. */
	uint8_t *late;
	uint64_t late_at;
	size_t late_len;
};

/* The records of one registry there. Zero-initialize. */
struct dyn_store {
	uint32_t first;	  /* its segments, + 1 */
	uint64_t at, end; /* room at the end of the one that is being filled */
	uint64_t used, held;
	uint32_t uid; /* its user: may be set */
};

/* A file in the folder @dir_fd; below 0: in memory. 0 or -errno. */
int dyn_spool_open(struct dyn_spool *sp, int dir_fd);
void dyn_spool_close(struct dyn_spool *sp);
/* A copy of @rec. 0, -DCPI_ELIMIT, -ENOMEM, -errno of writing. */
int dyn_spool_put(struct dyn_spool *sp, struct dyn_store *st, const struct wire_head *rec,
		  uint32_t *record);
void dyn_spool_drop(struct dyn_spool *sp, struct dyn_store *st, uint32_t record, size_t len);
/* All of the registry's. */
void dyn_spool_release(struct dyn_spool *sp, struct dyn_store *st);
/*
 * The record, in @trace, which holds what lies behind it as well: whoever asks for them in order
 * reads little. Valid until the next call or put. NULL: it cannot be read.
 */
struct dyn_trace {
	struct base_buf bytes;
	uint64_t at;
};
const struct wire_routine *dyn_spool_get(const struct dyn_spool *sp, uint32_t record,
					 struct dyn_trace *trace, size_t ahead);
void dyn_trace_release(struct dyn_trace *w);
/* Little is not worth moving. */
#define DYN_SPOOL_SPARSE_MIN (4ull << 20)
/* Less than half of its room is used: moving what is in sparse segments gives room back. */
static inline bool dyn_spool_is_sparse(const struct dyn_store *st)
{
	return st->held > DYN_SPOOL_SPARSE_MIN && st->used < st->held / 2;
}
bool dyn_spool_in_sparse(const struct dyn_spool *sp, uint32_t record);

#endif
