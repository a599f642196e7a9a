/* SPDX-License-Identifier: BSD-2-Clause */
/* How many threads each process has, so that its exit is known from those of its threads. */
#include "perf.h"

static uintptr_t count_get(const struct perf_threads *t, int32_t pid)
{
	return (uintptr_t)base_map_get(&t->counts, &pid, sizeof(pid));
}

/* No memory for it: the process counts as unknown, and its main thread's exit as its own. */
static void count_set(struct perf_threads *t, int32_t pid, uintptr_t nr)
{
	if (!nr || base_map_set(&t->counts, &pid, sizeof(pid), (void *)nr) < 0)
		base_map_del(&t->counts, &pid, sizeof(pid));
}

static bool pass_fork(struct perf_threads *t, const struct driver_load *load)
{
	uintptr_t nr = count_get(t, load->pid);

	if (load->pid != load->ppid) {
		count_set(t, load->pid, 1);
		return true;
	}
	if (nr)
		count_set(t, load->pid, nr + 1);
	return false;
}

static bool is_end(const struct driver_load *load)
{
	return load->kind == DRIVER_LOAD_EXIT && load->tid == load->pid;
}

/* Without memory for it nothing is known of that end until it comes. */
void perf_threads_read(struct perf_threads *t, const struct driver_load *load)
{
	if (is_end(load))
		(void)base_map_set(&t->ends, &load->pid, sizeof(load->pid),
				   (void *)(uintptr_t)load->time_ns);
}

uint64_t perf_threads_end(const struct perf_threads *t, int32_t pid)
{
	return (uintptr_t)base_map_get(&t->ends, &pid, sizeof(pid));
}

static void pass_end(struct perf_threads *t, const struct driver_load *load)
{
	if (perf_threads_end(t, load->pid) == load->time_ns)
		base_map_del(&t->ends, &load->pid, sizeof(load->pid));
}

static bool pass_exit(struct perf_threads *t, const struct driver_load *load)
{
	uintptr_t nr = count_get(t, load->pid);

	if (is_end(load))
		pass_end(t, load);

	if (!nr)
		return load->tid == load->pid;
	count_set(t, load->pid, nr - 1);
	return nr == 1;
}

bool perf_threads_pass(struct perf_threads *t, const struct driver_load *load)
{
	switch (load->kind) {
	case DRIVER_LOAD_FORK:
		return pass_fork(t, load);
	case DRIVER_LOAD_EXIT:
		return pass_exit(t, load);
	case DRIVER_LOAD_EXEC:
		/* The kernel has ended all other threads before it says so. */
		count_set(t, load->pid, 1);
		return true;
	case DRIVER_LOAD_COMM:
		return load->tid == load->pid;
	default:
		return true;
	}
}

void perf_threads_forget(struct perf_threads *t)
{
	base_map_release(&t->counts);
	base_map_release(&t->ends);
	*t = (struct perf_threads){ 0 };
}
