/* SPDX-License-Identifier: BSD-2-Clause */
/* Areas of kernel addresses: which image stands there, since when, and until when. */
#include <errno.h>
#include <stdlib.h>

#include "kernelcode_internal.h"

/* Code that was unregistered may still run until nobody uses it any more. */
#define GRACE_NS UINT64_C(1000000000)
/* How long what is gone is remembered, for samples that are handed on late. */
#define REMEMBER_NS (60 * GRACE_NS)

static uint64_t later(uint64_t time_ns, uint64_t by)
{
	return time_ns > UINT64_MAX - by ? UINT64_MAX : time_ns + by;
}

uint64_t kernel_area_over_ns(const struct kernel_area *a)
{
	return later(a->gone_ns, GRACE_NS);
}

static void drop_area(struct kernel *k, struct kernel_area *a)
{
	interval_remove(&k->areas, &a->node);
	a->image->refs--;
	free(a);
}

static bool same_code(const struct kernel_area *a, const struct kernel_area *b)
{
	return a->image == b->image && a->off - a->node.start == b->off - b->node.start;
}

/* Remove the areas that @to replaces, as of @now_ns: samples until then may belong to them. */
static void replace(struct kernel *k, struct kernel_area *to, uint64_t now_ns)
{
	struct kernel_area *old;

	while ((old = (void *)interval_overlap(&k->areas, to->node.start, to->node.end))) {
		uint64_t end_ns = kernel_area_over_ns(old), contested_ns = old->contested_ns;

		end_ns = end_ns < now_ns ? end_ns : now_ns;
		if (!same_code(old, to) && end_ns > contested_ns)
			contested_ns = end_ns;
		if (contested_ns > to->contested_ns)
			to->contested_ns = contested_ns;
		if (old->guess && old->node.start < to->node.start)
			old->node.end = to->node.start;
		else
			drop_area(k, old);
	}
}

int kernel_area_add(struct kernel *k, const struct kernel_area *area, uint64_t now_ns)
{
	struct kernel_area *a;

	if (!area->image)
		return -ENOMEM;
	if (area->node.end <= area->node.start)
		return -EINVAL;
	a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	*a = *area;
	a->gone_ns = UINT64_MAX;
	a->contested_ns = 0;
	a->image->refs++;
	replace(k, a, now_ns);
	interval_insert(&k->areas, &a->node);
	return 0;
}

struct kernel_area *kernel_area_next(const struct kernel *k, uint64_t *pos)
{
	struct kernel_area *a = (void *)interval_overlap(&k->areas, *pos, UINT64_MAX);

	if (a)
		*pos = a->node.end;
	return a;
}

static bool is_within(const struct kernel_area *a, uint64_t start, uint64_t end)
{
	return a->node.start >= start && (a->guess || a->node.end <= end);
}

void kernel_area_end(struct kernel *k, uint64_t start, uint64_t end, uint64_t now_ns)
{
	struct kernel_area *a;

	for (uint64_t pos = start; (a = kernel_area_next(k, &pos)) && a->node.start < end;)
		if (is_within(a, start, end) && now_ns < a->gone_ns)
			a->gone_ns = now_ns;
}

void kernel_area_end_module(struct kernel *k, uint64_t start, uint64_t end, uint64_t now_ns)
{
	struct kernel_area *a;

	for (uint64_t pos = start; (a = kernel_area_next(k, &pos)) && a->node.start < end;)
		if (a->module && a->node.start >= start && now_ns < a->gone_ns)
			a->gone_ns = now_ns;
}

void kernel_area_forget(struct kernel *k)
{
	uint64_t now = base_now_ns();
	struct kernel_area *a;

	for (uint64_t pos = 0; k->config.live && (a = kernel_area_next(k, &pos));)
		if (later(a->gone_ns, REMEMBER_NS) < now)
			drop_area(k, a);
}
