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

/* What a program may add to a pointer. */
#define SAMPLE_DELTA_MAX (INT64_C(1) << 28)

/* What programs read at each sample and the daemon writes: one line of the cache. */
struct sample_shared {
	uint64_t since_ns[2]; /* when each set was last taken into use; nothing in it is older */
	uint32_t set;	      /* which is; written after that */
	uint32_t nr_clients;  /* at least so many stand in the map: it is looked at only then */
	struct count_shape shape;
	uint64_t tick_function; /* of the timer that is the scheduler's tick */
	int64_t irq_regs_delta; /* from a CPU's hrtimer_bases to its __irq_regs, below the limit */
	uint32_t tick_event;
	uint32_t unused;
};

_Static_assert(sizeof(struct sample_shared) == 64, "sample_shared");

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
