/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The events of one CPU: opened, their counters read, the ring into which they put their records.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perf_internal.h"

/* ---- counters -------------------------------------------------------------------------------- */

/* New periods break the running one off; at most a two-hundredth of all is lost by that. */
enum { PERIODS_BETWEEN_DRAWS = 100 };

static void grow(uint64_t *to, uint64_t value)
{
	if (value > *to)
		*to = value;
}

void perf_count_read(struct perf_count *c, const struct perf_reading *r)
{
	grow(&c->now.value, r->value);
	grow(&c->now.enabled_ns, r->enabled_ns);
	grow(&c->now.running_ns, r->running_ns);
	grow(&c->now.lost, r->lost);
}

/* A clock's value is the time that it ran; that of others says nothing of what was missed. */
static uint64_t periods_since_draw(const struct perf_count *c)
{
	return c->period ? (c->now.running_ns - c->drawn.running_ns) / c->period : 0;
}

bool perf_count_may_draw(const struct perf_count *c)
{
	return c->period && (c->now.value - c->drawn.value) / PERIODS_BETWEEN_DRAWS >= c->period;
}

void perf_count_draw(struct perf_count *c, uint64_t period)
{
	c->due += periods_since_draw(c);
	c->drawn = c->now;
	c->period = period;
}

void perf_count_close(struct perf_count *c)
{
	c->due += periods_since_draw(c);
	c->past.value += c->now.value;
	c->past.running_ns += c->now.running_ns;
	c->past.lost += c->now.lost;
	c->now = c->drawn = (struct perf_reading){ 0 };
}

/* It never shrinks: a sample may come late. */
void perf_count_miss(struct perf_count *c)
{
	uint64_t due = c->due + periods_since_draw(c), had = c->received + perf_count_lost(c);

	if (due > had)
		grow(&c->missed, due - had);
}

uint64_t perf_count_value(const struct perf_count *c)
{
	return c->past.value + c->now.value;
}

uint64_t perf_count_running_ns(const struct perf_count *c)
{
	return c->past.running_ns + c->now.running_ns;
}

uint64_t perf_count_lost(const struct perf_count *c)
{
	return c->past.lost + c->now.lost;
}

double perf_count_enabled(uint64_t running_ns, uint64_t all_ns)
{
	double part = all_ns ? (double)running_ns / (double)all_ns : 1;

	return part > 0.999 ? 1 : part;
}

/* ---- the ring -------------------------------------------------------------------------------- */

/* Bytes of the ring from position @from on, over its end where needed. */
static const uint8_t *ring_bytes(const struct perf_ring *ring, uint64_t from, size_t len,
				 uint8_t *scratch)
{
	size_t at = (size_t)(from & (ring->len - 1)), first = ring->len - at;

	if (len <= first)
		return ring->data + at;
	memcpy(scratch, ring->data + at, first);
	memcpy(scratch + first, ring->data, len - first);
	return scratch;
}

int perf_ring_peek(const struct perf_ring *ring, uint8_t *scratch, const uint8_t **rec)
{
	uint64_t left = ring->head - ring->tail;
	struct perf_event_header h;

	if (!left)
		return 0;
	if (left > ring->len || left < sizeof(h))
		return -DCPI_EFORMAT;
	memcpy(&h, ring_bytes(ring, ring->tail, sizeof(h), scratch), sizeof(h));
	if (h.size < sizeof(h) || h.size > left)
		return -DCPI_EFORMAT;
	*rec = ring_bytes(ring, ring->tail, h.size, scratch);
	return h.size;
}

/* ---- events ---------------------------------------------------------------------------------- */

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
