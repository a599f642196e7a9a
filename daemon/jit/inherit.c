/* SPDX-License-Identifier: BSD-2-Clause */
/* A process older than the daemon inherited code by a fork of which no event told. */
#include <errno.h>

#include "jit_internal.h"

/*
 * As it stands in the memory of @child, where @from said that it does. One that holds up the reader
 * may be one of thousands: nobody else is asked for that registry.
 */
static bool inherited_read(struct dyn_registry *from, const struct process *child,
			   struct wire_inherited *out)
{
	struct reader *reader = from->dyn->config.reader;
	uint8_t page[WIRE_PAGE];
	size_t off = from->h.inherited_addr % sizeof(page), len = off + sizeof(*out);
	ssize_t n;

	if (!reader || from->unresponsive)
		return false;
	n = reader_code_read(reader, child->pid, from->h.inherited_addr - off, page, len);
	from->unresponsive = n == -ETIMEDOUT || n == -DCPI_EHELPER;
	if (n != (ssize_t)len)
		return false;
	memcpy(out, page + off, sizeof(*out));
	return true;
}

/* The time is CLOCK_MONOTONIC's, to a tick. */
static uint64_t began_ns(const struct process *child)
{
	uint64_t ahead = base_boot_ahead_ns();

	return child->start_time_ns > ahead ? child->start_time_ns - ahead : 0;
}

bool dyn_inherit(struct dyn *d, struct process *ancestor, struct process *child)
{
	struct dyn_registry *from = ancestor->dyn ? ancestor->dyn->own : NULL;
	const struct dyn_registry *own = child->dyn ? child->dyn->own : NULL;
	struct wire_inherited has = { 0 };

	if (!from || !from->h.number || !from->h.inherited_addr)
		return false;
	if (child->dyn && child->dyn->inherited)
		return false;
	if (own)
		has = own->h.inherited;
	else if (!inherited_read(from, child, &has))
		return false;
	if (has.registry != from->h.number)
		return false;
	dyn_fork(d, ancestor, child, began_ns(child), &has.seq);
	return child->dyn && child->dyn->inherited;
}
