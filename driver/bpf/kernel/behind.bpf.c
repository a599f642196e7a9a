/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The sampler with what comes behind a sample: it counts as sample.bpf.c does, and behind one
 * sample in so many it interprets what the program goes on with (trace.bpf.c), or walks who called
 * it (callpath.bpf.c). Loaded in place of the sampler of an event where one of them is asked for,
 * so that without them nothing is paid for.
 */
#include "kernel.h"

struct count_key;
static int trace_of_event(struct bpf_perf_event_data *ctx, const struct count_key *k);
static int trace_of_tick(const void *regs, const struct count_key *k);
static int callpath_of_event(struct bpf_perf_event_data *ctx, const struct count_key *k);
static int callpath_of_tick(void *ctx, const void *regs, const struct count_key *k);

#define SAMPLE_AFTER_EVENT(ctx, key) (trace_of_event(ctx, key), callpath_of_event(ctx, key))
#define SAMPLE_AFTER_TICK(ctx, regs, key)                                                          \
	(trace_of_tick(regs, key), callpath_of_tick(ctx, regs, key))

#include "sample.bpf.c"

#include "trace.bpf.c"

#include "callpath.bpf.c"
