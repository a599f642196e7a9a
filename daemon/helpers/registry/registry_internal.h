/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser of registries from within: one reading, and its parts in the order they are taken. */
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
bool registry_vaddr_good(uint64_t base, uint64_t len);

/* ---- one record (record.c) ---------------------------------------------------------- */

/* Is the answer long enough, or has it taken long enough? What was begun is ended. */
bool registry_parse_full(const struct parse *p);
/* To be called after what may take time. */
void registry_parse_clock(struct parse *p);
/* @p->state has it. */
bool registry_facility_usable(const struct parse *p, uint32_t facility);
/* Append zeros for a record, rounded up to 8, with its head; *@record is where it stands. */
int registry_record_new(struct base_buf *out, uint16_t type, size_t len, void *record);
/*
 * Check the record at @head (a private copy, complete, 8-byte aligned, whose flags are changed) and
 * append what becomes of it. @flags: of all that is appended. 0 (also for one that is malformed,
 * which is counted), -ENOMEM.
 */
int registry_record_put(struct parse *p, struct wire_head *head, uint16_t flags);

/* What is put from now on happened at @time_ns; 0: some time before now. 0 or -ENOMEM. */
int registry_time_put(struct parse *p, uint64_t time_ns);

/* ---- the parts of a reading ------------------------------------------------------------------ */

/* table.c: facilities (which go into @p->state) and ranges. 0 or negative. */
int registry_table_put(struct parse *p);
/* ring.c: from @place->tail on, to the head if the answer is not full before. */
int registry_ring_take(struct parse *p, struct registry_place *place);
/* heap.c: the same from @place->list_at, with WIRE_LISTED when it comes to its end. */
int registry_heap_list(struct parse *p, struct registry_place *place);

#endif
