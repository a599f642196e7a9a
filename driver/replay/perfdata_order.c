/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of a perf.data file, held until their order in time is known. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata_internal.h"

static int add(struct perfdata_order *o, struct perfdata_item *item, size_t len)
{
	int r = base_grow(&o->items, &o->cap, o->nr + 1, sizeof(*o->items));

	if (r < 0)
		return r;
	item->seq = o->seq++;
	if (item->time_ns > o->youngest_ns)
		o->youngest_ns = item->time_ns;
	o->items[o->nr++] = *item;
	o->len += sizeof(*item) + len;
	return 0;
}

static size_t load_len(const struct driver_load *l)
{
	return sizeof(struct perfdata_load) + l->data_len + (l->path ? strlen(l->path) + 1 : 0);
}

int perfdata_order_load(struct perfdata_order *o, uint64_t time_ns, const struct driver_load *load)
{
	struct perfdata_item item = { .time_ns = time_ns };
	size_t len = load_len(load);
	struct perfdata_load *copy = malloc(len);
	int r;

	if (!copy)
		return -ENOMEM;
	copy->load = *load;
	if (load->data_len) {
		memcpy(copy->bytes, load->data, load->data_len);
		copy->load.data = copy->bytes;
	}
	if (load->path) {
		strcpy((char *)copy->bytes + load->data_len, load->path);
		copy->load.path = (char *)copy->bytes + load->data_len;
	}
	item.load = copy;
	r = add(o, &item, len);
	if (r < 0)
		free(copy);
	return r;
}

int perfdata_order_sample(struct perfdata_order *o, uint64_t time_ns,
			  const struct driver_count *count)
{
	struct perfdata_item item = {
		.time_ns = time_ns,
		.addr = count->addr,
		.pid = count->pid,
		.tid = count->tid,
		.event = (uint8_t)count->event,
		.mode = (uint8_t)count->mode,
	};
	int r = add(o, &item, 0);

	o->nr_samples += r >= 0;
	return r;
}

int perfdata_order_lost(struct perfdata_order *o, uint64_t time_ns)
{
	struct perfdata_item item = { .time_ns = time_ns, .lost = true };

	return add(o, &item, 0);
}

static int compare(const void *a, const void *b)
{
	const struct perfdata_item *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->seq < y->seq ? -1 : 1;
}

static void sort(struct perfdata_order *o)
{
	for (size_t i = 1; i < o->nr; i++) {
		if (compare(&o->items[i - 1], &o->items[i]) < 0)
			continue;
		qsort(o->items, o->nr, sizeof(*o->items), compare);
		break;
	}
}

/* No record behind a round is older than the youngest before the round before it. */
uint64_t perfdata_order_round(struct perfdata_order *o)
{
	uint64_t until = o->round_ns;

	o->round_ns = o->youngest_ns;
	return until;
}

bool perfdata_order_full(struct perfdata_order *o, uint64_t *until)
{
	if (o->len <= PERFDATA_HELD_MAX)
		return false;
	sort(o);
	*until = o->items[o->nr / 2].time_ns;
	return true;
}

static void drop_first(struct perfdata_order *o, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct perfdata_item *item = &o->items[i];

		o->len -= sizeof(*item) + (item->load ? load_len(&item->load->load) : 0);
		o->nr_samples -= !item->load && !item->lost;
		free(item->load);
	}
	o->nr -= nr;
	if (o->nr)
		memmove(o->items, o->items + nr, o->nr * sizeof(*o->items));
}

int perfdata_order_hand(struct perfdata_order *o, uint64_t until,
			int (*fn)(void *ctx, struct perfdata_item *item), void *ctx)
{
	size_t n = 0;
	int r = 0;

	sort(o);
	while (r >= 0 && n < o->nr && o->items[n].time_ns <= until)
		r = fn(ctx, &o->items[n++]);
	drop_first(o, n);
	return r < 0 ? r : 0;
}

void perfdata_order_release(struct perfdata_order *o)
{
	drop_first(o, o->nr);
	free(o->items);
	*o = (struct perfdata_order){ 0 };
}
