/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "perf_internal.h"

/* Bytes of the ring from position @from on, over its end where needed. */
static const uint8_t *ring_bytes(const struct perf_ring *ring, uint64_t from, size_t len,
				 uint8_t *scratch)
{
	size_t at = (size_t)(from & (ring->len - 1)), first = ring->len - at;

	if (len <= first)
		return ring->data + at;
	memcpy(scratch, ring->data + at, first);
	memcpy(scratch + first, ring->data, len - first);
	return scratch;
}

int perf_ring_peek(const struct perf_ring *ring, uint8_t *scratch, const uint8_t **rec)
{
	uint64_t left = ring->head - ring->tail;
	struct perf_event_header h;

	if (!left)
		return 0;
	if (left > ring->len || left < sizeof(h))
		return -DCPI_EFORMAT;
	memcpy(&h, ring_bytes(ring, ring->tail, sizeof(h), scratch), sizeof(h));
	if (h.size < sizeof(h) || h.size > left)
		return -DCPI_EFORMAT;
	*rec = ring_bytes(ring, ring->tail, h.size, scratch);
	return h.size;
}
