/* SPDX-License-Identifier: BSD-2-Clause */
/* The names that need no sysfs. As users of perf know them; then DCPI's own for the same. */
#include <linux/perf_event.h>
#include <string.h>

#include "event.h"

#define HARDWARE(name, id, what)                                                                   \
	{                                                                                          \
		name, EVENT_HARDWARE, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id, false, what          \
	}
#define SOFTWARE(name, id, what)                                                                   \
	{                                                                                          \
		name, EVENT_SOFTWARE, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id, false, what          \
	}
#define CLOCK(name, id, what)                                                                      \
	{                                                                                          \
		name, EVENT_SOFTWARE, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id, true, what           \
	}
#define CACHE_CONFIG(cache, op, result)                                                            \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##op << 8 |                          \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)
#define CACHE_ONE(name, cache, op, result, what)                                                   \
	{                                                                                          \
		name, EVENT_CACHE, PERF_TYPE_HW_CACHE, CACHE_CONFIG(cache, op, result), false,     \
			what                                                                       \
	}
#define LOADS(text, cache, what)                                                                   \
	CACHE_ONE(text "-loads", cache, READ, ACCESS, "reads of the " what),                       \
		CACHE_ONE(text "-load-misses", cache, READ, MISS, "reads that missed the " what)
#define STORES(text, cache, what)                                                                  \
	CACHE_ONE(text "-stores", cache, WRITE, ACCESS, "writes to the " what),                    \
		CACHE_ONE(text "-store-misses", cache, WRITE, MISS,                                \
			  "writes that missed the " what)
#define PREFETCHES(text, cache, what)                                                              \
	CACHE_ONE(text "-prefetches", cache, PREFETCH, ACCESS, "prefetches into the " what),       \
		CACHE_ONE(text "-prefetch-misses", cache, PREFETCH, MISS,                          \
			  "prefetches that missed the " what)
#define DCPI(name, type, config, what)                                                             \
	{                                                                                          \
		name, EVENT_DCPI, PERF_TYPE_##type, config, false, what                            \
	}

static const struct event_name names[] = {
	HARDWARE("cycles", CPU_CYCLES, "the CPU's clock, as fast as it runs at the moment"),
	HARDWARE("cpu-cycles", CPU_CYCLES, NULL),
	HARDWARE("instructions", INSTRUCTIONS, "instructions completed"),
	HARDWARE("cache-references", CACHE_REFERENCES, "accesses to the last cache"),
	HARDWARE("cache-misses", CACHE_MISSES, "accesses that missed the last cache"),
	HARDWARE("branches", BRANCH_INSTRUCTIONS, "branches completed"),
	HARDWARE("branch-instructions", BRANCH_INSTRUCTIONS, NULL),
	HARDWARE("branch-misses", BRANCH_MISSES, "branches predicted wrong"),
	HARDWARE("bus-cycles", BUS_CYCLES, "the bus's clock"),
	HARDWARE("ref-cycles", REF_CPU_CYCLES, "the CPU's clock at its nominal speed"),
	HARDWARE("stalled-cycles-frontend", STALLED_CYCLES_FRONTEND, "cycles without instructions"),
	HARDWARE("idle-cycles-frontend", STALLED_CYCLES_FRONTEND, NULL),
	HARDWARE("stalled-cycles-backend", STALLED_CYCLES_BACKEND, "cycles waiting for operands"),
	HARDWARE("idle-cycles-backend", STALLED_CYCLES_BACKEND, NULL),

	LOADS("L1-dcache", L1D, "first data cache"),
	STORES("L1-dcache", L1D, "first data cache"),
	PREFETCHES("L1-dcache", L1D, "first data cache"),
	LOADS("L1-icache", L1I, "first instruction cache"),
	PREFETCHES("L1-icache", L1I, "first instruction cache"),
	LOADS("LLC", LL, "last cache"),
	STORES("LLC", LL, "last cache"),
	PREFETCHES("LLC", LL, "last cache"),
	LOADS("dTLB", DTLB, "data translation buffer"),
	STORES("dTLB", DTLB, "data translation buffer"),
	PREFETCHES("dTLB", DTLB, "data translation buffer"),
	LOADS("iTLB", ITLB, "instruction translation buffer"),
	LOADS("branch", BPU, "branch predictor"),
	LOADS("node", NODE, "memory of the CPU's own node"),
	STORES("node", NODE, "memory of the CPU's own node"),
	PREFETCHES("node", NODE, "memory of the CPU's own node"),

	CLOCK("cpu-clock", CPU_CLOCK, "a timer of the kernel's on each CPU"),
	CLOCK("task-clock", TASK_CLOCK, "a timer that runs while the CPU does"),
	SOFTWARE("page-faults", PAGE_FAULTS, "page faults"),
	SOFTWARE("faults", PAGE_FAULTS, NULL),
	SOFTWARE("minor-faults", PAGE_FAULTS_MIN, "page faults that needed no disk"),
	SOFTWARE("major-faults", PAGE_FAULTS_MAJ, "page faults that waited for a disk"),
	SOFTWARE("context-switches", CONTEXT_SWITCHES, "switches to another thread"),
	SOFTWARE("cs", CONTEXT_SWITCHES, NULL),
	SOFTWARE("cpu-migrations", CPU_MIGRATIONS, "moves of a thread to another CPU"),
	SOFTWARE("migrations", CPU_MIGRATIONS, NULL),
	SOFTWARE("cgroup-switches", CGROUP_SWITCHES, "switches to a thread of another cgroup"),
	SOFTWARE("alignment-faults", ALIGNMENT_FAULTS, "unaligned accesses mended by the kernel"),
	SOFTWARE("emulation-faults", EMULATION_FAULTS, "instructions done by the kernel"),

	{ "tick", EVENT_TICK, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, false,
	  "the scheduler's own tick: no interrupt more than without" },

	DCPI("imiss", HW_CACHE, CACHE_CONFIG(L1I, READ, MISS), "L1-icache-load-misses"),
	DCPI("dmiss", HW_CACHE, CACHE_CONFIG(L1D, READ, MISS), "L1-dcache-load-misses"),
	DCPI("itbmiss", HW_CACHE, CACHE_CONFIG(ITLB, READ, MISS), "iTLB-load-misses"),
	DCPI("dtbmiss", HW_CACHE, CACHE_CONFIG(DTLB, READ, MISS), "dTLB-load-misses"),
	DCPI("bmiss", HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "cache-misses"),
	DCPI("branchmp", HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, "branch-misses"),
	DCPI("retires", HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions"),
};

const struct event_name *event_name_nth(size_t index)
{
	return index < sizeof(names) / sizeof(names[0]) ? &names[index] : NULL;
}

const struct event_name *event_name_find(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i].name, name))
			return &names[i];
	return NULL;
}

/* ---- the nearest names ----------------------------------------------------------------------- */

void event_near_init(struct event_near *n, const char *word)
{
	*n = (struct event_near){ 0 };
	snprintf(n->word, sizeof(n->word), "%.63s", word);
	n->reach = (unsigned int)strlen(n->word) / 3 + 2;
}

int event_near_add(void *near, const char *name)
{
	struct event_near *n = near;
	const size_t max = sizeof(n->best) / sizeof(n->best[0]);
	unsigned int d = base_name_distance(n->word, name);
	size_t at = n->nr;

	if (d >= n->reach || d >= strlen(name))
		return 0;
	while (at > 0 && d < n->best[at - 1].distance)
		at--;
	if (at == max)
		return 0;
	if (n->nr < max)
		n->nr++;
	memmove(&n->best[at + 1], &n->best[at], (n->nr - 1 - at) * sizeof(n->best[0]));
	snprintf(n->best[at].name, sizeof(n->best[at].name), "%.63s", name);
	n->best[at].distance = d;
	return 0;
}

void event_near_hint(const struct event_near *n, const char *otherwise, struct base_err *err)
{
	switch (n->nr) {
	case 0:
		base_hint(err, "%s", otherwise);
		break;
	case 1:
		base_hint(err, "did you mean '%s'?", n->best[0].name);
		break;
	case 2:
		base_hint(err, "did you mean '%s' or '%s'?", n->best[0].name, n->best[1].name);
		break;
	default:
		base_hint(err, "did you mean '%s', '%s' or '%s'?", n->best[0].name, n->best[1].name,
			  n->best[2].name);
	}
}
