/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perf_internal.h"

int perf_event_try(const struct perf_event_attr *attr, unsigned int cpu)
{
	long fd = syscall(SYS_perf_event_open, attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

void perf_cpu_init(struct perf_cpu *c, unsigned int cpu)
{
	*c = (struct perf_cpu){ .cpu = cpu, .fd = -1, .track_fd = -1 };
}

static int ring_map(struct perf_cpu *c, size_t ring_len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, page + ring_len, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	c->map = map;
	c->map_len = page + ring_len;
	c->ring = (struct perf_ring){ .data = (uint8_t *)map + page, .len = ring_len };
	return 0;
}

int perf_cpu_open(struct perf_cpu *c, const struct perf_event_attr *sampling,
		  const struct perf_event_attr *tracking, size_t ring_len, bool *mapping)
{
	int r;

	*mapping = false;
	c->fd = r = perf_event_try(sampling, c->cpu);
	if (r < 0)
		goto out;
	c->track_fd = r = perf_event_try(tracking, c->cpu);
	if (r < 0)
		goto out;
	*mapping = true;
	r = ring_map(c, ring_len);
	if (r < 0)
		goto out;
	if (ioctl(c->track_fd, PERF_EVENT_IOC_SET_OUTPUT, c->fd) < 0)
		r = -errno;
out:
	if (r < 0)
		perf_cpu_close(c);
	return r < 0 ? r : 0;
}

void perf_cpu_close(struct perf_cpu *c)
{
	if (c->map)
		munmap(c->map, c->map_len);
	if (c->track_fd >= 0)
		close(c->track_fd);
	if (c->fd >= 0)
		close(c->fd);
	perf_cpu_init(c, c->cpu);
}

/* Tracking first and last, so that no sample comes without the load events before it. */
int perf_cpu_enable(struct perf_cpu *c, bool on)
{
	unsigned long what = on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
	int r = ioctl(on ? c->track_fd : c->fd, what, 0);

	if (r < 0)
		return -errno;
	return ioctl(on ? c->fd : c->track_fd, what, 0) < 0 ? -errno : 0;
}

void perf_cpu_read(struct perf_cpu *c, bool with_lost)
{
	uint64_t v[3], t[2];
	ssize_t want = with_lost ? sizeof(v) : 2 * sizeof(v[0]);

	/* An event of a CPU that is gone reads as an error or as nothing. */
	if (read(c->fd, v, sizeof(v)) == want) {
		c->value = v[0];
		c->enabled_ns = v[1];
		if (with_lost)
			c->lost = v[2];
	}
	if (with_lost && read(c->track_fd, t, sizeof(t)) == (ssize_t)sizeof(t))
		c->lost_track = t[1];
}

void perf_cpu_look(struct perf_cpu *c)
{
	const struct perf_event_mmap_page *page = c->map;

	c->ring.head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

void perf_cpu_release(struct perf_cpu *c)
{
	struct perf_event_mmap_page *page = c->map;

	__atomic_store_n(&page->data_tail, c->ring.tail, __ATOMIC_RELEASE);
}
