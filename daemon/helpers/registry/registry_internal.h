/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser of registries from within: the state of one poll. */
#ifndef DCPI_REGISTRY_INTERNAL_H
#define DCPI_REGISTRY_INTERNAL_H

#include "registry.h"

struct parse {
	int fd;
	const struct registry_memory *memory; /* NULL: the process is gone, or not to be read */
	struct base_buf *out;
	struct wire_registry h;
	uint8_t state[WIRE_NR_FACILITIES]; /* as read; FREE for those that are not usable */
	uint32_t nr_bad;
	uint64_t deadline_ns;
	bool late;	  /* it is over: no more in this call */
	uint64_t when_ns; /* of the ring's next change; 0: nobody told */
	uint64_t time_ns; /* of the last WIRE_TIME of the answer */
	bool is_known;	  /* whoever asks has the code of what is put now */
	/* Memory read last, after the records that are put now were copied. */
	bool has_page;
	uint64_t page_addr;
	uint8_t page[WIRE_PAGE];
};

/* Can a process have that? Above nothing, below REGISTRY_VADDR_MAX. */
static inline bool registry_vaddr_good(uint64_t base, uint64_t len)
{
	return len && base < REGISTRY_VADDR_MAX && len <= REGISTRY_VADDR_MAX - base;
}

/* Counters at @off of the header, none of them torn. 0, or negative as base_read_at. */
int registry_counters_copy(int fd, size_t off, void *to, size_t len);

/* The ring's records from @place->tail on, to the head if the answer is not full before. */
int registry_ring_take(struct parse *p, struct registry_place *place);

#endif
