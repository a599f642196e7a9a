/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perf_internal.h"

int perf_event_try(const struct perf_event_attr *attr, int32_t pid, int cpu)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

void perf_cpu_init(struct perf_cpu *c, unsigned int cpu, struct perf_event *events, size_t nr)
{
	*c = (struct perf_cpu){ .cpu = cpu, .track_fd = -1, .events = events };
	for (size_t i = 0; i < nr; i++)
		events[i] = (struct perf_event){ .fd = -1 };
}

static int ring_map(struct perf_cpu *c, size_t ring_len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, page + ring_len, PROT_READ | PROT_WRITE, MAP_SHARED, c->track_fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	c->map = map;
	c->map_len = page + ring_len;
	c->ring = (struct perf_ring){ .data = (uint8_t *)map + page, .len = ring_len };
	return 0;
}

int perf_cpu_track(struct perf_cpu *c, const struct perf_event_attr *attr, int32_t pid,
		   size_t ring_len, bool *mapping)
{
	int fd = perf_event_try(attr, pid, (int)c->cpu), r;

	*mapping = false;
	if (fd < 0)
		return fd;
	c->track_fd = fd;
	c->gone = false;
	c->alive_ns = base_now_ns();
	r = ring_map(c, ring_len);
	*mapping = r < 0;
	if (r < 0)
		perf_cpu_close(c, 0);
	return r;
}

/* Its program runs instead of a record being written, or its records go into the CPU's ring. */
static int connect(const struct perf_cpu *c, struct perf_event *e, int program)
{
	if (program >= 0)
		return ioctl(e->fd, PERF_EVENT_IOC_SET_BPF, program) < 0 ? -errno : 0;
	if (ioctl(e->fd, PERF_EVENT_IOC_ID, &e->id) < 0 ||
	    ioctl(e->fd, PERF_EVENT_IOC_SET_OUTPUT, c->track_fd) < 0)
		return -errno;
	return 0;
}

int perf_cpu_sample(struct perf_cpu *c, size_t event, const struct perf_event_attr *attr,
		    int32_t pid, int program)
{
	struct perf_event *e = &c->events[event];
	int fd = perf_event_try(attr, pid, (int)c->cpu);

	if (fd < 0)
		return fd;
	e->fd = fd;
	return connect(c, e, program);
}

void perf_cpu_close(struct perf_cpu *c, size_t nr_events)
{
	for (size_t i = 0; i < nr_events; i++) {
		struct perf_event *e = &c->events[i];

		if (e->fd >= 0)
			close(e->fd);
		e->fd = -1;
		perf_count_close(&e->count);
	}
	if (c->map)
		munmap(c->map, c->map_len);
	if (c->track_fd >= 0)
		close(c->track_fd);
	c->map = NULL;
	c->ring = (struct perf_ring){ 0 };
	c->track_fd = -1;
	perf_count_close(&c->track);
}

int perf_event_enable(int fd, bool on)
{
	unsigned long what = on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;

	return ioctl(fd, what, 0) < 0 ? -errno : 0;
}

int perf_event_period(struct perf_event *e, uint64_t period)
{
	return ioctl(e->fd, PERF_EVENT_IOC_PERIOD, &period) < 0 ? -errno : 0;
}

/* An event of a CPU that is gone reads as an error, as nothing, or as it was. */
static void read_event(int fd, struct perf_count *c, bool with_lost)
{
	uint64_t v[4] = { 0 };
	size_t want = (with_lost ? 4 : 3) * sizeof(v[0]);

	if (fd >= 0 && read(fd, v, sizeof(v)) == (ssize_t)want)
		perf_count_read(c, &(struct perf_reading){ v[0], v[1], v[2], v[3] });
}

void perf_cpu_read(struct perf_cpu *c, size_t nr_events, bool with_lost)
{
	for (size_t i = 0; i < nr_events; i++)
		read_event(c->events[i].fd, &c->events[i].count, with_lost);
	read_event(c->track_fd, &c->track, with_lost);
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
