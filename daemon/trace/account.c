/* SPDX-License-Identifier: BSD-2-Clause */
/* The account of traces, and the translated blocks that their words name. */
#include "trace_parts.h"

const char *trace_loss_name(enum trace_loss loss)
{
	static const char *const names[] = {
#define X(id, name, text) name,
		TRACE_LOSSES(X)
#undef X
	};

	return (unsigned int)loss < TRACE_NR_LOSSES ? names[loss] : "?";
}

void trace_driver_stats_get(const struct traces *t, struct driver_trace_stats *out)
{
	t->calls->stats(t->config.driver, out);
}

void trace_stats_get(const struct traces *t, bool stepped, struct trace_stats *out)
{
	struct driver_trace_stats d = { 0 };

	*out = stepped ? t->stepped.stats : t->stats;
	if (stepped)
		return;
	trace_driver_stats_get(t, &d);
	out->received = d.received;
	out->pending += d.held;
	out->lost[TRACE_LOST_RING] += d.lost_ring;
	out->lost[TRACE_LOST_BUSY] += d.lost_busy;
	out->lost[TRACE_LOST_READ] += d.lost_read;
}

uint32_t trace_every(const struct traces *t)
{
	return t->pace.nr_cpus ? (uint32_t)t->pace.every : t->config.every;
}

const struct vtrace_code *trace_block(void *ctx, uint32_t id)
{
	const struct traces *t = ctx;
	const struct vtrace_code *stepped = step_block(t->config.step, id);

	/* No driver gives a block the number of one of the stepper's. */
	return stepped ? stepped : t->calls->get(t->config.driver, id);
}
