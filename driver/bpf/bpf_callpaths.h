/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths, and functions on them, on their way from the kernel's rings to the drain
 * (callpath_linux.c). */
#ifndef DCPI_BPF_CALLPATHS_QUEUE_H
#define DCPI_BPF_CALLPATHS_QUEUE_H

#include "bpf_queue.h"
#include "driver.h"

/* The record of a CPU whose callers its next one may have, too. */
struct bpf_callpaths_last {
	uint64_t *frames;
	uint16_t nr;
	bool missing; /* the last one that was to be added is not in the queue */
};

struct bpf_callpaths {
	struct bpf_callpaths_last *last; /* by CPU */
	size_t nr_last, cap_last;
	struct bpf_queue queue;	    /* struct callpath_record and frames */
	struct bpf_queue functions; /* struct callpath_function */
	uint64_t handed, lost_read, frames;
	uint64_t by_end[DRIVER_NR_CALLPATH_ENDS];
};

/* A copy of it waits; or it is lost_read. */
void bpf_callpaths_add(struct bpf_callpaths *q, const void *record, size_t len);
/* The same of a function; one that is lost is told again later. */
void bpf_callpaths_add_function(struct bpf_callpaths *q, const void *record, size_t len);
/* All functions, then all paths, that began before @until_ns, in order of time. 0, or what the sink
 * said. */
int bpf_callpaths_hand(struct bpf_callpaths *q, uint64_t until_ns, const struct driver_sink *sink);
void bpf_callpaths_release(struct bpf_callpaths *q);

#endif
