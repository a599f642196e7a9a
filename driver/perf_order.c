/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf_internal.h"

int perf_order_init(struct perf_order *o, size_t nr_queues)
{
	*o = (struct perf_order){ .nr_queues = nr_queues };
	o->queues = calloc(nr_queues, sizeof(*o->queues));
	o->heap = calloc(nr_queues, sizeof(*o->heap));
	if (o->queues && o->heap)
		return 0;
	perf_order_release(o);
	return -ENOMEM;
}

void perf_order_release(struct perf_order *o)
{
	for (size_t i = 0; o->queues && i < o->nr_queues; i++) {
		struct perf_queue *q = &o->queues[i];

		for (size_t k = q->first; k < q->end; k++)
			free(q->items[k].load);
		free(q->items);
	}
	free(o->queues);
	free(o->heap);
	*o = (struct perf_order){ 0 };
}

int perf_order_add(struct perf_order *o, size_t queue, const struct perf_item *item)
{
	struct perf_queue *q = &o->queues[queue];
	size_t at;
	int r;

	/* Taken items are overwritten once they are half of the array: amortized one move each. */
	if (q->first && q->first >= q->end - q->first) {
		memmove(q->items, q->items + q->first, (q->end - q->first) * sizeof(*q->items));
		q->end -= q->first;
		q->first = 0;
	}
	r = base_grow(&q->items, &q->cap, q->end + 1, sizeof(*q->items));
	if (r < 0)
		return r;
	/* One CPU's records are in order but where an interrupt came between: a step or two. */
	for (at = q->end++; at > q->first && q->items[at - 1].count.time_ns > item->count.time_ns;
	     at--)
		q->items[at] = q->items[at - 1];
	q->items[at] = *item;
	if (!item->load)
		o->nr_samples += item->count.count;
	return 0;
}

int perf_order_add_load(struct perf_order *o, size_t queue, const struct driver_load *load)
{
	size_t path_len = load->path ? strlen(load->path) + 1 : 0;
	size_t data_len = load->data ? load->data_len : 0;
	size_t at = (data_len + 7) / 8 * 8;
	struct perf_item item = { .count.time_ns = load->time_ns };
	int r;

	item.load = malloc(sizeof(*item.load) + at + path_len);
	if (!item.load)
		return -ENOMEM;
	item.load->load = *load;
	if (data_len)
		item.load->load.data = memcpy(item.load->bytes, load->data, data_len);
	if (path_len)
		item.load->load.path = memcpy((char *)item.load->bytes + at, load->path, path_len);
	r = perf_order_add(o, queue, &item);
	if (r < 0)
		free(item.load);
	return r;
}

static uint64_t heap_time(const struct perf_order *o, size_t at)
{
	const struct perf_queue *q = &o->queues[o->heap[at]];

	return q->items[q->first].count.time_ns;
}

/* Equal times: the lower queue first, so that equal input gives equal output. */
static bool heap_less(const struct perf_order *o, size_t a, size_t b)
{
	uint64_t ta = heap_time(o, a), tb = heap_time(o, b);

	return ta < tb || (ta == tb && o->heap[a] < o->heap[b]);
}

static void heap_sift(struct perf_order *o, size_t at)
{
	for (;;) {
		size_t least = at, child = 2 * at + 1;

		if (child < o->nr_heap && heap_less(o, child, least))
			least = child;
		if (child + 1 < o->nr_heap && heap_less(o, child + 1, least))
			least = child + 1;
		if (least == at)
			return;
		size_t swap = o->heap[at];

		o->heap[at] = o->heap[least];
		o->heap[least] = swap;
		at = least;
	}
}

void perf_order_settle(struct perf_order *o)
{
	o->nr_heap = 0;
	for (size_t i = 0; i < o->nr_queues; i++) {
		if (o->queues[i].first < o->queues[i].end)
			o->heap[o->nr_heap++] = i;
	}
	for (size_t at = o->nr_heap / 2; at-- > 0;)
		heap_sift(o, at);
}

bool perf_order_take(struct perf_order *o, uint64_t horizon, struct perf_item *out)
{
	struct perf_queue *q;

	if (!o->nr_heap || heap_time(o, 0) > horizon)
		return false;
	q = &o->queues[o->heap[0]];
	*out = q->items[q->first++];
	if (!out->load)
		o->nr_samples -= out->count.count;
	if (q->first == q->end) {
		q->first = q->end = 0;
		o->heap[0] = o->heap[--o->nr_heap];
	}
	heap_sift(o, 0);
	return true;
}
