/* SPDX-License-Identifier: BSD-2-Clause */
/* Load events and counts of several queues, handed out in order of time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf_internal.h"

/* ---- room for loads ------------------------------------------------------------------------- */

enum { CHUNK_LEN = 64 << 10 };

/* Cut off from the front; all of it is free again when none of its loads is left. */
struct perf_chunk {
	size_t len, used; /* capacity and used length, in bytes */
	size_t nr_loads;
	uint64_t bytes[];
};

static struct perf_chunk *chunk_with(struct perf_order *o, size_t len)
{
	struct perf_chunk *c = o->chunk;

	if (c && c->len - c->used >= len)
		return c;
	/* One that holds loads is let go of with the last of these. */
	if (c && !c->nr_loads)
		free(c);
	o->chunk = c = o->spare;
	o->spare = NULL;
	if (c && c->len >= len)
		return c;
	free(c);
	len = len > CHUNK_LEN ? len : CHUNK_LEN;
	o->chunk = c = malloc(sizeof(*c) + len);
	if (c)
		*c = (struct perf_chunk){ .len = len };
	return c;
}

static struct perf_load *load_new(struct perf_order *o, size_t len)
{
	size_t need = (sizeof(struct perf_load) + len + 7) / 8 * 8;
	struct perf_chunk *c = chunk_with(o, need);
	struct perf_load *load;

	if (!c)
		return NULL;
	load = (struct perf_load *)(c->bytes + c->used / 8);
	load->chunk = c;
	c->used += need;
	c->nr_loads++;
	return load;
}

void perf_order_drop(struct perf_order *o, struct perf_load *load)
{
	struct perf_chunk *c = load->chunk;

	if (--c->nr_loads)
		return;
	c->used = 0;
	if (c == o->chunk)
		return;
	if (o->spare)
		free(c);
	else
		o->spare = c;
}

/* ---- queues --------------------------------------------------------------------------------- */

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

		for (size_t k = q->first; k < q->end; k++) {
			if (q->items[k].load)
				perf_order_drop(o, q->items[k].load);
			perf_order_drop_count(&q->items[k].count);
		}
		free(q->items);
	}
	free(o->queues);
	free(o->heap);
	free(o->chunk);
	free(o->spare);
	*o = (struct perf_order){ 0 };
}

/* A count owns what is told of its instruction. */
void perf_order_drop_count(const struct driver_count *count)
{
	free((void *)count->insn);
}

/* Where an item of @time_ns goes, or NULL. */
static struct perf_item *place(struct perf_order *o, size_t queue, uint64_t time_ns)
{
	struct perf_queue *q = &o->queues[queue];
	size_t at;

	/* Taken items are overwritten once they are half of the array: amortized one move each. */
	if (q->first && q->first >= q->end - q->first) {
		memmove(q->items, q->items + q->first, (q->end - q->first) * sizeof(*q->items));
		q->end -= q->first;
		q->first = 0;
	}
	if (base_grow(&q->items, &q->cap, q->end + 1, sizeof(*q->items)) < 0)
		return NULL;
	/* One CPU's records are in order but where an interrupt came between: a step or two. */
	for (at = q->end++; at > q->first && q->items[at - 1].count.time_ns > time_ns; at--)
		q->items[at] = q->items[at - 1];
	return &q->items[at];
}

int perf_order_add(struct perf_order *o, size_t queue, const struct driver_count *count)
{
	struct isample *insn = count->insn ? malloc(sizeof(*insn)) : NULL;
	struct perf_item *item = !insn == !count->insn ? place(o, queue, count->time_ns) : NULL;

	if (!item) {
		free(insn);
		return -ENOMEM;
	}
	if (insn)
		*insn = *count->insn;
	*item = (struct perf_item){ .count = *count };
	item->count.insn = insn;
	o->nr_samples += count->count;
	return 0;
}

int perf_order_add_load(struct perf_order *o, size_t queue, const struct driver_load *load)
{
	size_t path_len = load->path ? strlen(load->path) + 1 : 0;
	size_t data_len = load->data ? load->data_len : 0;
	size_t at = (data_len + 7) / 8 * 8;
	struct perf_load *copy = load_new(o, at + path_len);
	struct perf_item *item = copy ? place(o, queue, load->time_ns) : NULL;

	if (copy && !item)
		perf_order_drop(o, copy);
	if (!item)
		return -ENOMEM;
	copy->load = *load;
	if (data_len)
		copy->load.data = memcpy(copy->bytes, load->data, data_len);
	if (path_len)
		copy->load.path = memcpy((char *)copy->bytes + at, load->path, path_len);
	*item = (struct perf_item){ .count.time_ns = load->time_ns, .load = copy };
	return 0;
}

static struct perf_head head_of(const struct perf_order *o, size_t queue)
{
	const struct perf_queue *q = &o->queues[queue];

	return (struct perf_head){ q->items[q->first].count.time_ns, queue };
}

/* Equal times: the lower queue first, so that equal input gives equal output. */
static bool heap_less(const struct perf_order *o, size_t a, size_t b)
{
	const struct perf_head *x = &o->heap[a], *y = &o->heap[b];

	return x->time_ns < y->time_ns || (x->time_ns == y->time_ns && x->queue < y->queue);
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
		struct perf_head swap = o->heap[at];

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
			o->heap[o->nr_heap++] = head_of(o, i);
	}
	for (size_t at = o->nr_heap / 2; at-- > 0;)
		heap_sift(o, at);
}

const struct perf_item *perf_order_take(struct perf_order *o, uint64_t horizon)
{
	const struct perf_item *item;
	struct perf_queue *q;

	if (!o->nr_heap || o->heap[0].time_ns > horizon)
		return NULL;
	q = &o->queues[o->heap[0].queue];
	item = &q->items[q->first++];
	if (!item->load)
		o->nr_samples -= item->count.count;
	if (q->first == q->end) {
		q->first = q->end = 0;
		o->heap[0] = o->heap[--o->nr_heap];
	} else {
		o->heap[0] = head_of(o, o->heap[0].queue);
	}
	heap_sift(o, 0);
	return item;
}
