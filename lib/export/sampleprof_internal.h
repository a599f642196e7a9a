/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DCPI_SAMPLEPROF_INTERNAL_H
#define DCPI_SAMPLEPROF_INTERNAL_H

#include "sampleprof.h"

struct sampleprof_place {
	uint32_t line, block;
};

struct sampleprof_spot {
	struct sampleprof_place at;
	uint32_t owner; /* the procedure that it comes from */
	uint64_t count;
};

struct sampleprof_target {
	struct sampleprof_place at;
	char *name;
	uint64_t count;
};

struct sampleprof_part {
	struct sampleprof_place at;
	struct sampleprof_routine *routine;
};

/* A procedure, or an inlined copy of one. */
struct sampleprof_routine {
	char *name;
	uint64_t head, total;
	struct sampleprof_spot *spots;
	size_t nr_spots, cap_spots;
	struct sampleprof_target *targets;
	size_t nr_targets, cap_targets;
	struct sampleprof_part *parts;
	size_t nr_parts, cap_parts;
};

struct sampleprof {
	struct sampleprof_routine **v;
	size_t nr, cap;
	struct base_map by_name;
	uint32_t nr_owners;
};

static inline bool sampleprof_same(const struct sampleprof_place *a,
				   const struct sampleprof_place *b)
{
	return a->line == b->line && a->block == b->block;
}

/* Adds up and sorts all that was added, once; functions with the largest counts first. */
void sampleprof_sum(struct sampleprof *s);
/* An empty routine was created for a place that proved to be unknown. */
bool sampleprof_empty(const struct sampleprof_routine *r);

#endif
