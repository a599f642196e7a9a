/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the kernel: attributes of events, rates, periods. */
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "perf_internal.h"

enum { SECOND_NS = 1000000000 };

uint64_t perf_frequency(uint64_t wanted, uint64_t max_rate)
{
	if (wanted)
		return wanted;
	return max_rate && max_rate < PERF_FREQUENCY ? max_rate : PERF_FREQUENCY;
}

uint64_t perf_spec_period(const struct event_spec *spec, uint64_t frequency)
{
	if (spec->period || !spec->clock)
		return spec->period;
	return SECOND_NS / frequency;
}

static void attr_common(struct perf_event_attr *attr, int32_t pid, unsigned int features)
{
	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.sample_type = PERF_SAMPLES,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	if (features & PERF_USE_LOST)
		attr->read_format |= PERF_FORMAT_LOST;
	if (pid > 0) {
		attr->inherit = 1;
		attr->exclude_kernel = 1;
		attr->exclude_hv = 1;
	}
}

void perf_attr_sampling(struct perf_event_attr *attr, const struct event_spec *spec,
			uint64_t period, uint64_t frequency, int32_t pid, unsigned int features)
{
	attr_common(attr, pid, features);
	attr->type = spec->type;
	attr->config = spec->config;
	attr->config1 = spec->config1;
	attr->config2 = spec->config2;
	attr->precise_ip = spec->precise & 3;
	attr->exclude_user |= spec->exclude_user;
	attr->exclude_kernel |= spec->exclude_kernel;
	attr->exclude_hv |= spec->exclude_hv;
	if (spec->type != PERF_TYPE_SOFTWARE)
		attr->exclude_guest = features & PERF_USE_EXCLUDE_GUEST ? 1 : 0;
	attr->freq = !period;
	if (period)
		attr->sample_period = period;
	else
		attr->sample_freq = frequency;
}

void perf_attr_tracking(struct perf_event_attr *attr, size_t ring_len, int32_t pid,
			unsigned int features)
{
	attr_common(attr, pid, features);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_DUMMY;
	/* Woken when half a ring is full, not for each record. */
	attr->watermark = 1;
	attr->wakeup_watermark = (uint32_t)(ring_len / 2);
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
	attr->build_id = features & PERF_USE_BUILD_ID ? 1 : 0;
	if (pid > 0)
		return;
	attr->text_poke = features & PERF_USE_POKE ? 1 : 0;
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

/* How often @spec comes in a second; 0: nobody knows before. */
static uint64_t rate_of(const struct event_spec *spec, uint64_t frequency)
{
	if (!spec->period)
		return frequency;
	return spec->clock ? SECOND_NS / spec->period : 0;
}

static int rate_refuse(const struct event_spec *spec, uint64_t rate, uint64_t max_rate,
		       struct base_err *err)
{
	base_fail(err, -DCPI_EUSAGE,
		  "cannot sample '%s' %" PRIu64 " times a second: "
		  "kernel.perf_event_max_sample_rate is %" PRIu64,
		  spec->name, rate, max_rate);
	base_hint(err,
		  "ask for a lower rate, or raise the limit: sysctl "
		  "kernel.perf_event_max_sample_rate=%" PRIu64
		  " (the kernel lowers it where samples take long: "
		  "kernel.perf_cpu_time_max_percent)",
		  rate);
	return -DCPI_EUSAGE;
}

const char *perf_rate_unused(const struct event_spec *specs, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!specs[i].tick && !specs[i].period)
			return "";
	return " (no event takes the rate: each has its own)";
}

int perf_rate_check(const struct event_spec *specs, size_t nr, uint64_t frequency,
		    uint64_t max_rate, struct base_err *err)
{
	for (size_t i = 0; max_rate && i < nr; i++) {
		uint64_t rate = specs[i].tick ? 0 : rate_of(&specs[i], frequency);

		if (rate > max_rate)
			return rate_refuse(&specs[i], rate, max_rate, err);
	}
	return 0;
}

/* ---- periods that vary ----------------------------------------------------------------------- */

/* AMD's IBS takes multiples of 16 alone. */
static uint64_t unit(uint64_t nominal)
{
	return nominal % 16 ? 1 : 16;
}

/* A hundredth, or a little more. */
static uint64_t nearest(uint64_t nominal)
{
	uint64_t least = nominal / 100 + (nominal % 100 != 0), u = unit(nominal);

	return (least + u - 1) / u * u;
}

static uint64_t farthest(uint64_t nominal)
{
	return nominal / 25 / unit(nominal) * unit(nominal);
}

static bool has_space(uint64_t nominal)
{
	return nominal && farthest(nominal) >= nearest(nominal);
}

static bool only_longer(uint64_t nominal, uint64_t least)
{
	return nominal - farthest(nominal) < least;
}

uint64_t perf_least_period(const struct event_spec *spec, uint64_t max_rate)
{
	uint64_t by_rate = max_rate ? SECOND_NS / max_rate : 0;

	if (!spec->clock)
		return 0;
	return by_rate > EVENT_CLOCK_LEAST ? by_rate : EVENT_CLOCK_LEAST;
}

uint64_t perf_period_draw(uint64_t nominal, uint64_t least, uint64_t *random)
{
	uint64_t near = nearest(nominal), far = farthest(nominal), u = unit(nominal);
	uint64_t r = base_random64(random), off;

	if (!has_space(nominal))
		return nominal;
	off = near + (r >> 1) % ((far - near) / u + 1) * u;
	return r & 1 || only_longer(nominal, least) ? nominal + off : nominal - off;
}

uint64_t perf_period_mean(uint64_t nominal, uint64_t least)
{
	if (!has_space(nominal) || !only_longer(nominal, least))
		return nominal;
	return nominal + (nearest(nominal) + farthest(nominal)) / 2;
}
