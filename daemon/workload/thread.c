/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of threads have numbers that outlive the driver's, as counts may wait over an epoch's end.
 */
#include <stdlib.h>
#include <string.h>

#include "workload_internal.h"

static uint32_t add(struct workloads *w, const char *name, size_t len)
{
	uint32_t number = (uint32_t)w->nr_threads;

	if (w->nr_threads > WORKLOAD_NR_THREADS ||
	    base_grow(&w->threads, &w->cap_threads, w->nr_threads + 1, sizeof(*w->threads)) < 0 ||
	    base_map_set(&w->by_thread, name, len, (void *)(uintptr_t)number) < 0)
		return 0;
	memset(w->threads[number], 0, sizeof(*w->threads));
	memcpy(w->threads[number], name, len);
	w->nr_threads++;
	return number;
}

static uint32_t number_of(struct workloads *w, const char *name)
{
	size_t len = strnlen(name, WORKLOAD_THREAD_LEN - 1);
	uintptr_t number = len ? (uintptr_t)base_map_get(&w->by_thread, name, len) : 0;

	return number || !len ? (uint32_t)number : add(w, name, len);
}

uint32_t workload_thread(struct workloads *w, uint32_t thread,
			 const char *(*name)(const void *ctx, uint32_t thread), const void *ctx)
{
	uint32_t number;

	if (!thread)
		return 0;
	if (thread < w->nr_of_driver && w->of_driver[thread])
		return w->of_driver[thread] - 1;
	number = number_of(w, name(ctx, thread));
	if (base_grow(&w->of_driver, &w->cap_of_driver, (size_t)thread + 1, sizeof(*w->of_driver)) <
	    0)
		return number;
	for (; w->nr_of_driver <= thread; w->nr_of_driver++)
		w->of_driver[w->nr_of_driver] = 0;
	w->of_driver[thread] = number + 1;
	return number;
}

const char *workload_thread_name(const struct workloads *w, uint32_t number)
{
	return number < w->nr_threads ? w->threads[number] : "";
}

bool workload_threads_forget(struct workloads *w)
{
	w->nr_of_driver = 0;
	if (w->nr_threads <= WORKLOAD_NR_THREADS / 2)
		return false;
	for (struct workload_table *t = w->tables; t; t = t->next)
		for (size_t i = 0; i < t->cap; i++)
			t->places[i].thread = 0;
	base_map_release(&w->by_thread);
	w->nr_threads = 1;
	return true;
}
