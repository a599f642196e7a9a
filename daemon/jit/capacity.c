/* SPDX-License-Identifier: BSD-2-Clause */
/* How much is kept of one process, and of all. */
#include "jit_internal.h"

uint64_t dyn_room_left(const struct dyn_registry *reg)
{
	uint64_t quota = reg->dyn->config.process_quota, used = reg->store.used + reg->bytes;

	if (!quota)
		return UINT64_MAX;
	return used < quota ? quota - used : 0;
}

bool dyn_room_take(struct dyn_registry *reg, uint64_t len)
{
	if (len > dyn_room_left(reg) || len > DYN_REGISTRY_BYTES_MAX - reg->bytes ||
	    len > DYN_ALL_BYTES_MAX - reg->dyn->bytes)
		return false;
	reg->bytes += len;
	reg->dyn->bytes += len;
	return true;
}

void dyn_room_give_back(struct dyn_registry *reg, uint64_t len)
{
	reg->bytes -= len;
	reg->dyn->bytes -= len;
}
