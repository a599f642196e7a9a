/* SPDX-License-Identifier: BSD-2-Clause */
/* One poll of a registry reads its tables, its ring, and its heap where that is wanted. */
#include <errno.h>

#include "registry_internal.h"

int registry_parse(int fd, const struct registry_memory *memory, struct registry_place *place,
		   struct base_buf *out)
{
	struct parse p = { .fd = fd, .memory = memory, .out = out };
	struct registry_place to = *place;
	struct wire_registry after;
	uint64_t from = place->tail;
	int r = registry_header_read(fd, &p.h);

	p.deadline_ns = base_now_ns() + REGISTRY_CALL_NS;
	/* The head before the tables: what a record refers to is then in them. */
	if (r == 0)
		r = registry_table_put(&p);
	if (r == 0)
		r = registry_ring_take(&p, &to);
	if (r == 0 && to.list_at != REGISTRY_NO_LIST && to.tail == p.h.head)
		r = registry_heap_list(&p, &to);
	if (r == 0)
		r = registry_header_read(fd, &after);
	if (r == 0 && to.tail != from && after.head > from && after.head - from > p.h.ring_len &&
	    p.h.head - from <= p.h.ring_len)
		r = -ESTALE;
	if (r < 0)
		return r;
	*place = to;
	return (int)(p.nr_bad & INT32_MAX);
}
