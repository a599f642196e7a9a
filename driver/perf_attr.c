/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "perf_internal.h"

static const struct perf_kind kinds[] = {
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false },
	{ "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false },
	{ "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false },
	{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true },
	{ "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true },
};

const struct perf_kind *perf_kind_find(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	}
	return NULL;
}

const char *perf_kind_names(void)
{
	return "cycles, instructions, cache-misses, branch-misses, cpu-clock, task-clock";
}

static void attr_common(struct perf_event_attr *attr, size_t ring_len)
{
	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.sample_type = PERF_SAMPLES,
		.disabled = 1,
		.sample_id_all = 1,
		/* Woken when half a ring is full, not for each sample. */
		.watermark = 1,
		.wakeup_watermark = (uint32_t)(ring_len / 2),
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

void perf_attr_sampling(struct perf_event_attr *attr, const struct perf_kind *kind,
			uint64_t frequency, size_t ring_len, unsigned int features)
{
	attr_common(attr, ring_len);
	attr->type = kind->type;
	attr->config = kind->config;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	if (features & PERF_USE_LOST)
		attr->read_format |= PERF_FORMAT_LOST;
	if (kind->clock) {
		/* One fixed period: a loop that runs in step with it is seen at one point only.
		 * Varied periods are a later matter. */
		attr->sample_period = 1000000000u / frequency;
		return;
	}
	attr->freq = 1;
	attr->sample_freq = frequency;
	attr->exclude_guest = features & PERF_USE_EXCLUDE_GUEST ? 1 : 0;
}

void perf_attr_tracking(struct perf_event_attr *attr, size_t ring_len, unsigned int features)
{
	attr_common(attr, ring_len);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_DUMMY;
	attr->read_format = features & PERF_USE_LOST ? PERF_FORMAT_LOST : 0;
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
	attr->build_id = features & PERF_USE_BUILD_ID ? 1 : 0;
	attr->ksymbol = features & PERF_USE_KSYMBOL ? 1 : 0;
}

int perf_attr_fallback(unsigned int features, unsigned int may_drop, int error)
{
	/* How a kernel refuses a bit that it does not know; the rest has other reasons. */
	if (error != EINVAL && error != E2BIG && error != EOPNOTSUPP)
		return -1;
	for (unsigned int f = PERF_USE_LOST; f < PERF_USE_ALL; f <<= 1) {
		if (features & may_drop & f)
			return (int)(features & ~f);
	}
	return -1;
}
