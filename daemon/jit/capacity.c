/* SPDX-License-Identifier: BSD-2-Clause */
/* How much is kept of one process, and of all. */
#include "jit_internal.h"

uint64_t dyn_capacity_left(const struct dyn_registry *reg)
{
	uint64_t quota = reg->dyn->config.process_quota, used = reg->store.used + reg->bytes;

	if (!quota)
		return UINT64_MAX;
	return used < quota ? quota - used : 0;
}

bool dyn_capacity_take(struct dyn_registry *reg, uint64_t len)
{
	if (len > dyn_capacity_left(reg) || len > DYN_REGISTRY_BYTES_MAX - reg->bytes ||
	    len > DYN_ALL_BYTES_MAX - reg->dyn->bytes ||
	    !budget_take(reg->dyn->config.budgets, reg->uid, BUDGET_CONTENTS, len,
			 DYN_ALL_BYTES_MAX))
		return false;
	reg->bytes += len;
	reg->dyn->bytes += len;
	return true;
}

void dyn_capacity_give_back(struct dyn_registry *reg, uint64_t len)
{
	reg->bytes -= len;
	reg->dyn->bytes -= len;
	budget_give_back(reg->dyn->config.budgets, reg->uid, BUDGET_CONTENTS, len);
}
