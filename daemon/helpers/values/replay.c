/* SPDX-License-Identifier: BSD-2-Clause */
/* The built-in profiler values.replay counts loads that an earlier store in the trace has fed. */
#include "values_replay.h"

static uint32_t find(const struct values_stores *s, const struct vtrace_access *load,
		     uint32_t index, bool *covered)
{
	uint64_t end = load->addr + load->width;
	uint32_t first = s->nr < VALUES_NR_STORES ? 0 : s->nr - VALUES_NR_STORES;

	for (uint32_t i = s->nr; i > first; i--) {
		uint32_t k = (i - 1) % VALUES_NR_STORES;

		if (s->at[k].addr >= end || s->at[k].end <= load->addr)
			continue;
		*covered = s->at[k].addr <= load->addr && s->at[k].end >= end;
		return index - s->at[k].index;
	}
	return 0;
}

uint32_t values_stores_add(struct values_stores *s, const struct vtrace_entry *e, uint32_t index,
			   bool *covered)
{
	uint32_t distance = 0, k;

	*covered = false;
	if (e->load.width && e->load.has_addr)
		distance = find(s, &e->load, index, covered);
	if (e->store.width && e->store.has_addr) {
		k = s->nr++ % VALUES_NR_STORES;
		s->at[k].addr = e->store.addr;
		s->at[k].end = e->store.addr + e->store.width;
		s->at[k].index = index;
	}
	return distance;
}
