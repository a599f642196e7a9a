/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The sampler with what comes behind a sample: it counts as sample.bpf.c does, and behind one
 * sample in so many it interprets what the program goes on with (trace.bpf.c), or walks who called
 * it (callpath.bpf.c). Loaded in place of the sampler of an event where one of them is asked for,
 * so that without them nothing is paid for.
 */
#include "kernel.h"

struct count_key;
static __always_inline void behind_event(struct bpf_perf_event_data *ctx,
					 const struct count_key *k);
static __always_inline void behind_tick(void *ctx, const void *regs, const struct count_key *k);

#define SAMPLE_AFTER_EVENT(ctx, key)	  behind_event(ctx, key)
#define SAMPLE_AFTER_TICK(ctx, regs, key) behind_tick(ctx, regs, key)
/* Counting is a function of its own: it has given its stack back when a trace or a walk begins. */
#define SAMPLE_COUNT static __noinline

#include "sample.bpf.c"

#include "trace.bpf.c"

#include "callpath.bpf.c"

/*
 * A sample: its key, where the registers are that its tick interrupted, and what is to be done. In
 * memory whose contents the verifier does not follow it need not look at what comes behind a sample
 * once for each way that they were made.
 */
struct behind {
	struct count_key key;
	const void *regs;
	bool traces;
	enum callpath_turn walks;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct behind);
} behind SEC(".maps");

/* NULL: nothing is to be done. Else what is to be read at once: an event that interrupts a trace
 * puts its own sample there. */
static __always_inline const struct behind *keep(const struct count_key *k, const void *regs)
{
	bool traces = trace_turn(k);
	enum callpath_turn walks = callpath_turn(k);
	uint32_t zero = 0;
	struct behind *b = NULL;

	if (traces || walks)
		b = bpf_map_lookup_elem(&behind, &zero);
	if (b)
		*b = (struct behind){ *k, regs, traces, walks };
	return b;
}

static __always_inline void behind_event(struct bpf_perf_event_data *ctx, const struct count_key *k)
{
	const struct behind *b = keep(k, NULL);
	uint32_t walks;

	if (!b)
		return;
	walks = *(volatile const uint32_t *)&b->walks;
	if (*(volatile const bool *)&b->traces)
		trace_of_event(ctx, &b->key);
	if (walks)
		callpath_of_event(ctx, &b->key, walks == CALLPATH_LOOKS_ONLY);
}

static __always_inline void behind_tick(void *ctx, const void *regs, const struct count_key *k)
{
	const struct behind *b = keep(k, regs);
	uint32_t walks;

	if (!b)
		return;
	walks = *(volatile const uint32_t *)&b->walks;
	if (*(volatile const bool *)&b->traces)
		trace_of_tick(b->regs, &b->key);
	if (walks)
		callpath_of_tick(ctx, b->regs, &b->key, walks == CALLPATH_LOOKS_ONLY);
}
