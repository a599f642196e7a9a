/* SPDX-License-Identifier: BSD-2-Clause */
/* What the sampling programs and the source "bpf" share besides the table (count_table.h). */
#ifndef DCPI_BPF_SAMPLE_H
#define DCPI_BPF_SAMPLE_H

/* Modes of the CPU, numbered as enum driver_mode. */
enum { SAMPLE_USER = 0, SAMPLE_KERNEL = 1 };

enum {
	SAMPLE_NR_RANGES = 8, /* of one process */
	SAMPLE_NR_CLIENTS = 1024,
	SAMPLE_BLOCK_SHIFT = 12, /* of addresses that share a generation word */
	SAMPLE_NOTES_LEN = 4096, /* ring of requests for a drain */
};

/* Where a CPU's table of a set stands in the map of maps. */
#define SAMPLE_TABLE(cpu, set) (2 * (cpu) + (set))

/* See struct driver_range. */
struct sample_range {
	uint64_t start, end, words;
};

/* The value of a process that has ranges; its key is the tgid. */
struct sample_client {
	uint32_t tgid; /* read last: the element may have been given to another meanwhile */
	uint32_t nr;
	struct sample_range ranges[SAMPLE_NR_RANGES];
};

#endif
