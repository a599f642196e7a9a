/* SPDX-License-Identifier: BSD-2-Clause */
/* The source "perf", once it is open: started, drained, counted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "perf_internal.h"

/*
 * A record gets its time before it can be seen in its ring; the time between is microseconds, but
 * for a virtual CPU that its host takes away just then. Waiting costs nothing but delay.
 */
#define PERF_SLACK_NS 10000000u

/* ---- reading --------------------------------------------------------------------------------- */

static int queue_load(struct perf *p, size_t index, const struct driver_load *load)
{
	size_t len = load->path ? strlen(load->path) + 1 : 0;
	struct perf_item item = { .time_ns = load->time_ns };
	int r;

	item.load = malloc(sizeof(*item.load) + len);
	if (!item.load)
		return -ENOMEM;
	item.load->load = *load;
	if (len) {
		memcpy(item.load->path, load->path, len);
		item.load->load.path = item.load->path;
	}
	r = perf_order_add(&p->order, index, &item);
	if (r < 0)
		free(item.load);
	return r;
}

static int queue_sample(struct perf *p, size_t index, const struct driver_count *c)
{
	const struct perf_item item = {
		.time_ns = c->time_ns,
		.addr = c->addr,
		.pid = c->pid,
		.tid = c->tid,
		.mode = c->mode,
	};
	int r = perf_order_add(&p->order, index, &item);

	if (r >= 0)
		p->cpus[index].received++;
	return r;
}

static void count_bad(struct perf *p, const struct perf_record *rec)
{
	if (rec->what == PERF_SAMPLE)
		p->sample_bad++;
	else if (rec->what == PERF_LOAD)
		p->load_bad++;
}

/* Queue or count a good record. Negative: no memory, it stays in the ring. */
static int keep(struct perf *p, size_t index, const struct perf_record *rec)
{
	switch (rec->what) {
	case PERF_SAMPLE:
		return queue_sample(p, index, &rec->count);
	case PERF_LOAD:
		return queue_load(p, index, &rec->load);
	case PERF_LOST:
		p->lost_said += rec->nr;
		break;
	case PERF_UNSENT:
		p->unsent += rec->nr;
		break;
	case PERF_THROTTLED:
		p->base.stats.throttled++;
		break;
	case PERF_SKIP:
		break;
	}
	return 0;
}

/* Read a ring up to the first record younger than @until. */
static int read_ring(struct perf *p, size_t index, uint64_t until)
{
	struct perf_cpu *c = &p->cpus[index];
	struct perf_record rec;
	const uint8_t *bytes;
	int len, r = 0;

	perf_cpu_look(c);
	while ((len = perf_ring_peek(&c->ring, p->scratch, &bytes)) > 0) {
		if (perf_record_parse(bytes, (size_t)len, &rec) < 0) {
			count_bad(p, &rec);
		} else {
			r = rec.time_ns > until ? 1 : keep(p, index, &rec);
			if (r)
				break;
		}
		c->ring.tail += (uint64_t)len;
	}
	if (len < 0) {
		p->sample_bad++;
		c->ring.tail = c->ring.head;
	}
	perf_cpu_release(c);
	return r < 0 ? r : 0;
}

/* CPUs that went offline hang up; left in the set they would wake the daemon for ever. */
static void drop_gone(struct perf *p)
{
	struct epoll_event e[16];
	int n;

	n = epoll_wait(p->epoll_fd, e, 16, 0);
	for (int i = 0; i < n; i++) {
		struct perf_cpu *c = &p->cpus[e[i].data.u64];

		if (!(e[i].events & (EPOLLHUP | EPOLLERR)))
			continue;
		epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
		c->gone = true;
	}
}

/* ---- counting -------------------------------------------------------------------------------- */

static void read_counters(struct perf *p)
{
	bool with_lost = p->features & PERF_USE_LOST;

	for (size_t i = 0; i < p->nr_cpus; i++) {
		if (!p->cpus[i].gone)
			perf_cpu_read(&p->cpus[i], with_lost);
	}
}

/*
 * Counters were read before the rings, so that what lies between was delivered, not missed. What
 * this CPU could have had less what came; it never shrinks, a sample may come late.
 */
static uint64_t cpu_missed(const struct perf *p, const struct perf_cpu *c)
{
	uint64_t due, had = c->received + c->lost;

	if (!p->kind->clock)
		return 0;
	due = c->enabled_ns / p->base.events[0].period;
	return due > had && due - had > c->missed ? due - had : c->missed;
}

static void count_stats(struct perf *p)
{
	struct driver_stats *s = &p->base.stats;
	uint64_t lost = 0, lost_track = 0, missed = 0, value = 0, received = 0;

	for (size_t i = 0; i < p->nr_cpus; i++) {
		struct perf_cpu *c = &p->cpus[i];

		lost += c->lost;
		lost_track += c->lost_track;
		value += c->value;
		received += c->received;
		missed += c->missed = cpu_missed(p, c);
	}
	/* The kernel counts records by event; of the sampling one they are samples but for a few
	 * notes of throttling. Without that count, a lost record may have been of either kind: of
	 * samples there are far more. */
	s->lost_ring = (p->features & PERF_USE_LOST ? lost : p->lost_said) + p->unsent;
	s->lost_load = lost_track + p->load_bad;
	s->lost_bad = p->sample_bad;
	s->held = p->order.nr_samples;
	s->received[0] = received + s->lost_ring + s->lost_bad;
	s->missed[0] = missed;
	if (!p->kind->clock && received + lost)
		p->base.events[0].period = value / (received + lost);
}

/* ---- handing on ------------------------------------------------------------------------------ */

/* Of side-band records: by the kernel's counts, by its word, by their contents. */
static uint64_t load_losses(const struct perf *p)
{
	uint64_t lost = p->load_bad + p->lost_said;

	for (size_t i = 0; i < p->nr_cpus; i++)
		lost += p->cpus[i].lost_track;
	return lost;
}

/*
 * Whatever reaches over a loss may be wrong: counts from before this drain must not judge its
 * records, nor its own counts those of the next.
 */
static void distrust_threads(struct perf *p, uint64_t lost)
{
	if (p->distrusted != lost)
		perf_threads_forget(&p->threads);
}

static int hand_load(struct perf *p, struct perf_load *load, const struct driver_sink *sink)
{
	int r = 0;

	if (perf_threads_pass(&p->threads, &load->load))
		r = sink->load(sink->ctx, &load->load);
	free(load);
	return r;
}

static int hand_sample(const struct perf_item *item, const struct driver_sink *sink)
{
	const struct driver_count count = {
		.first_ns = item->time_ns,
		.time_ns = item->time_ns,
		.pid = item->pid,
		.tid = item->tid,
		.mode = item->mode,
		.addr = item->addr,
		.count = 1,
	};

	return sink->count(sink->ctx, &count);
}

static int hand_on(struct perf *p, uint64_t horizon, const struct driver_sink *sink)
{
	struct perf_item item;
	int r = 0;

	perf_order_settle(&p->order);
	while (r >= 0 && perf_order_take(&p->order, horizon, &item))
		r = item.load ? hand_load(p, item.load, sink) : hand_sample(&item, sink);
	return r < 0 ? r : 0;
}

/* ---- the source ------------------------------------------------------------------------------ */

static int perf_start(struct driver *d, struct base_err *err)
{
	struct perf *p = (struct perf *)d;

	for (size_t i = 0; i < p->nr_cpus; i++) {
		int r = perf_cpu_enable(&p->cpus[i], true);

		if (r < 0)
			return base_fail_errno(err, r, "cannot start sampling on CPU %u",
					       p->cpus[i].cpu);
	}
	p->running = true;
	return 0;
}

static void perf_stop(struct driver *d)
{
	struct perf *p = (struct perf *)d;

	for (size_t i = 0; i < p->nr_cpus; i++)
		perf_cpu_enable(&p->cpus[i], false);
	p->running = false;
}

/*
 * A full drain of a running source leaves younger records in the rings, unread: of one CPU they
 * would overtake those that another is just writing.
 */
static int perf_drain(struct driver *d, bool all, const struct driver_sink *sink,
		      struct base_err *err)
{
	struct perf *p = (struct perf *)d;
	uint64_t now = base_now_ns();
	uint64_t until = all && p->running ? now : UINT64_MAX;
	uint64_t horizon = all ? UINT64_MAX : now - PERF_SLACK_NS, lost;
	int r = 0, handed;

	drop_gone(p);
	read_counters(p);
	for (size_t i = 0; i < p->nr_cpus && r >= 0; i++)
		r = read_ring(p, i, until);
	lost = load_losses(p);
	distrust_threads(p, lost);
	handed = hand_on(p, horizon, sink);
	distrust_threads(p, lost);
	p->distrusted = lost;
	count_stats(p);
	if (handed < 0)
		return handed;
	return r < 0 ? base_fail_errno(err, r, "cannot read the rings") : 0;
}

static int perf_poll_fd(const struct driver *d)
{
	return ((const struct perf *)d)->epoll_fd;
}

static void perf_close(struct driver *d)
{
	struct perf *p = (struct perf *)d;

	for (size_t i = 0; i < p->nr_cpus; i++)
		perf_cpu_close(&p->cpus[i]);
	if (p->epoll_fd >= 0)
		close(p->epoll_fd);
	perf_order_release(&p->order);
	perf_threads_forget(&p->threads);
	free(p->cpus);
	free(p);
}

const struct driver_ops perf_ops = {
	.start = perf_start,
	.drain = perf_drain,
	.poll_fd = perf_poll_fd,
	.stop = perf_stop,
	.close = perf_close,
};
