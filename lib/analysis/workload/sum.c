/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds up the samples of workloads. */
#include "workload.h"

static int visit_minutes(const struct profdb_workloads *w, const struct workload_filter *f,
			 int (*fn)(void *ctx, uint32_t workload, uint32_t image,
				   const uint64_t *count),
			 void *ctx)
{
	int r = 0;

	for (size_t i = 0; i < profdb_workloads_nr_minutes(w) && r >= 0; i++) {
		struct profdb_workload_minute m = profdb_workloads_minute(w, i);

		if (workload_filter_minute(f, m.minute))
			r = fn(ctx, m.workload, m.image, m.count);
	}
	return r < 0 ? r : 0;
}

int workload_visit(const struct profdb_workloads *w, const struct workload_filter *f,
		   int (*fn)(void *ctx, uint32_t workload, uint32_t image, const uint64_t *count),
		   void *ctx)
{
	int r = 0;

	if (workload_filter_has_time(f))
		return visit_minutes(w, f, fn, ctx);
	for (size_t i = 0; i < profdb_workloads_nr_counts(w) && r >= 0; i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);

		r = fn(ctx, c.workload, c.image, c.count);
	}
	return r < 0 ? r : 0;
}

struct sum {
	size_t event[PROFDB_NR_EVENTS], nr_events;
	const bool *chosen;
	uint64_t *count;
};

static int add(void *ctx, uint32_t workload, uint32_t image, const uint64_t *count)
{
	const struct sum *s = ctx;

	(void)image;
	for (size_t e = 0; e < s->nr_events; e++)
		if ((!s->chosen || s->chosen[workload]) && s->event[e] != SIZE_MAX)
			s->count[s->event[e]] += count[e];
	return 0;
}

void workload_sum(const struct analysis *a, const struct profdb_workloads *w,
		  const struct workload_filter *f, const bool *chosen, uint64_t *count)
{
	struct sum s = { .nr_events = profdb_workloads_nr_events(w),
			 .chosen = chosen,
			 .count = count };

	workload_events(a, w, s.event);
	workload_visit(w, f, add, &s);
}
