/* SPDX-License-Identifier: BSD-2-Clause */
/* The account of traces, and the translated blocks that their words name. */
#include "trace_parts.h"

const char *windows_loss_name(enum windows_loss loss)
{
	static const char *const names[] = {
#define X(id, name, text) name,
		WINDOWS_LOSSES(X)
#undef X
	};

	return (unsigned int)loss < WINDOWS_NR_LOSSES ? names[loss] : "?";
}

void windows_driver_stats_get(const struct windows *t, struct driver_window_stats *out)
{
	t->calls->stats(t->config.driver, out);
}

void windows_stats_get(const struct windows *t, struct windows_stats *out)
{
	struct driver_window_stats d = { 0 };

	windows_driver_stats_get(t, &d);
	*out = t->stats;
	out->received = d.received;
	out->pending += d.held;
	out->lost[WINDOWS_LOST_RING] += d.lost_ring;
	out->lost[WINDOWS_LOST_BUSY] += d.lost_busy;
	out->lost[WINDOWS_LOST_READ] += d.lost_read;
}

uint64_t windows_lost(const struct windows_stats *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < WINDOWS_NR_LOSSES; i++)
		sum += s->lost[i];
	return sum;
}

const struct vtrace_code *windows_block(void *ctx, uint32_t id)
{
	const struct windows *t = ctx;

	return step_has_id(id) ? step_block(t->config.step, id)
			       : t->calls->get(t->config.driver, id);
}
