/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of sampling on an idle CPU: how often a clock wakes it, and how long it stays awake, by
 * the kernel's own accounts of idling (cpuidle). The CPU that idles most is measured.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "check_internal.h"
#include "perf.h"

enum {
	MEASURE_NS = 300000000,
	NR_TRIES = 3,
	NR_CPUS_MAX = 1024,
	NR_STATES = 16,
	RING_PAGES = 8, /* some 1300 samples of 24 bytes */
};

struct idling {
	uint64_t ns, wakes, at_ns;
};

static bool read_state(int cpu, int state, const char *name, uint64_t *out)
{
	char path[128];
	int64_t n;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpuidle/state%d/%s", cpu, state,
		 name);
	n = event_number_read(path, -1);
	*out = (uint64_t)n;
	return n >= 0;
}

/* False: this kernel does not account, or there is no such CPU. */
static bool read_idling(int cpu, struct idling *out)
{
	uint64_t us, n;
	int i;

	*out = (struct idling){ .at_ns = base_now_ns() };
	for (i = 0; i < NR_STATES; i++) {
		if (!read_state(cpu, i, "time", &us) || !read_state(cpu, i, "usage", &n))
			break;
		out->ns += us * 1000;
		out->wakes += n;
	}
	return i > 0;
}

static void wait_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u) };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* The part of the time, at most all. */
static double idle_part(const struct idling *from, const struct idling *to)
{
	double part = to->at_ns > from->at_ns
			      ? seconds(to->ns - from->ns) / seconds(to->at_ns - from->at_ns)
			      : 0;

	return part > 1 ? 1 : part;
}

static double wakes_per_second(const struct idling *from, const struct idling *to)
{
	return (double)(to->wakes - from->wakes) / seconds(to->at_ns - from->at_ns);
}

/* Watch all of them for a while; the idlest into @out. */
static int find_idlest(struct check_idle *out)
{
	struct idling *from = calloc(NR_CPUS_MAX, sizeof(*from)), to;
	int nr = 0;

	if (!from)
		return -ENOMEM;
	while (nr < NR_CPUS_MAX && read_idling(nr, &from[nr]))
		nr++;
	if (nr)
		wait_ns(MEASURE_NS);
	out->cpu = -1;
	for (int cpu = 0; cpu < nr; cpu++) {
		if (!read_idling(cpu, &to) ||
		    (out->cpu >= 0 && idle_part(&from[cpu], &to) <= out->idle))
			continue;
		out->cpu = cpu;
		out->idle = idle_part(&from[cpu], &to);
		out->wakes = wakes_per_second(&from[cpu], &to);
	}
	free(from);
	return nr ? 0 : -EOPNOTSUPP;
}

/* ---- the samples of idling ------------------------------------------------------------------- */

struct sample {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
};

/* The ring was never read, so all stands there from its beginning. */
static uint64_t count_idle_samples(const void *map, size_t ring_len)
{
	const struct perf_event_mmap_page *page = map;
	const uint8_t *data = (const uint8_t *)map + (size_t)sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), nr = 0;
	struct sample s;

	for (uint64_t at = 0; at + sizeof(s) <= head && at + sizeof(s) <= ring_len;
	     at += s.header.size) {
		memcpy(&s, data + at, sizeof(s));
		if (s.header.size < sizeof(s.header))
			break;
		nr += s.header.type == PERF_RECORD_SAMPLE && s.pid == 0;
	}
	return nr;
}

static int sample_idling(uint64_t frequency, struct check_idle *out)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
		.sample_period = 1000000000u / frequency,
		.disabled = 1,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct idling from, to;
	int fd = perf_event_try(&attr, -1, out->cpu);
	void *map;
	double idle;

	if (fd < 0)
		return fd;
	map = mmap(NULL, (RING_PAGES + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		int r = -errno;

		close(fd);
		return r;
	}
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	read_idling(out->cpu, &from);
	wait_ns(MEASURE_NS);
	read_idling(out->cpu, &to);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	idle = idle_part(&from, &to);
	out->idle_on = idle;
	out->wakes_on = wakes_per_second(&from, &to);
	if (idle > 0)
		out->samples = (double)count_idle_samples(map, RING_PAGES * page) /
			       (idle * seconds(to.at_ns - from.at_ns));
	munmap(map, (RING_PAGES + 1) * page);
	close(fd);
	return 0;
}

/* Other work that runs on the CPU in one of the two halves would be charged to sampling. */
int check_idle_measure(uint64_t frequency, struct check_idle *out)
{
	int r = -EBUSY;

	for (int i = 0; i < NR_TRIES && r == -EBUSY; i++) {
		*out = (struct check_idle){ 0 };
		r = find_idlest(out);
		if (r >= 0)
			r = sample_idling(frequency, out);
		if (r >= 0 && (out->idle < 0.8 || out->idle_on < 0.8))
			r = -EBUSY;
	}
	return r;
}
