/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces on their way from the kernel's ring to who drains. No kernel is needed. */
#ifndef DCPI_BPF_TRACES_H
#define DCPI_BPF_TRACES_H

#include "bpf_queue.h"
#include "driver.h"

/* Places whose code is missing that are kept until somebody asks; more are met again. */
enum { BPF_NR_MISSING = 256 };
/* The number of lives whose first trace is reported once; a power of two. */
enum { BPF_NR_LIVES = 1024 };

struct bpf_traces {
	/* Records: a head, without its end where it has no values, and words. */
	struct bpf_queue queue;
	struct insn_trace *missing;
	size_t nr_missing;
	uint64_t lives[BPF_NR_LIVES]; /* that were told: 0, or a hash */
	uint64_t handed, lost_read;
	uint64_t by_end[VTRACE_NR_ENDS];
};

/* A copy of it waits; or, false, it is lost_read. */
bool bpf_traces_add(struct bpf_traces *q, const void *record, size_t len);
/* As driver_traces_missing, of those that were added. */
int bpf_traces_missing(struct bpf_traces *q, int (*fn)(void *ctx, const struct insn_trace *w),
		       void *ctx);
/* All that began before @until_ns, in order of time. 0, or what the sink said. */
int bpf_traces_hand(struct bpf_traces *q, uint64_t until_ns, const struct driver_sink *sink);
void bpf_traces_release(struct bpf_traces *q);

#endif
