/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread empties the rings into memory while their reader is busy. A program that changes its
 * mappings as fast as it can fills a ring within 10 ms; one ring that would hold the longest turn
 * of the daemon's loop would have to be a hundred times as long, for each CPU.
 */
#include <signal.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "perf_internal.h"

/* The thread looks after the reader has been busy for so long, and again and again. */
#define FIRST_NS 2000000
#define AGAIN_NS 2000000
/* So much of one CPU's waits in memory; the rest stays in the ring. */
#define SPILLED_MAX (64u << 20)
/* Memory that was needed for once is given back. */
#define KEPT_MAX (1u << 20)

/* ---- under the CPU's lock -------------------------------------------------------------------- */

static void look(struct perf_cpu *c)
{
	const struct perf_event_mmap_page *page = c->map;

	c->ring.head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

static void release(const struct perf_cpu *c)
{
	struct perf_event_mmap_page *page = c->map;

	__atomic_store_n(&page->data_tail, c->ring.tail, __ATOMIC_RELEASE);
}

/* Whole records, for the kernel writes no others. */
static int spill(struct perf_cpu *c)
{
	size_t len = c->ring.head - c->ring.tail, before = c->spilled.len, at, first;
	int r;

	if (!len || before + len > SPILLED_MAX)
		return 0;
	/* It was overwritten: no reader makes sense of this. */
	if (len > c->ring.len) {
		c->unreadable = true;
		c->ring.tail = c->ring.head;
		return 0;
	}
	at = (size_t)(c->ring.tail & (c->ring.len - 1));
	first = c->ring.len - at < len ? c->ring.len - at : len;
	r = base_buf_append(&c->spilled, c->ring.data + at, first);
	if (r == 0 && len > first)
		r = base_buf_append(&c->spilled, c->ring.data, len - first);
	/* Without memory it stays in the ring, also its first part. */
	if (r < 0)
		c->spilled.len = before;
	else
		c->ring.tail = c->ring.head;
	return r;
}

static int empty(struct perf_cpu *c, size_t least)
{
	int r = 0;

	if (!c->map)
		return 0;
	look(c);
	if (c->ring.head - c->ring.tail >= least)
		r = spill(c);
	release(c);
	return r;
}

/* ---- for the reader -------------------------------------------------------------------------- */

int perf_cpu_take(struct perf_cpu *c)
{
	int r;

	pthread_mutex_lock(&c->lock);
	r = empty(c, 1);
	if (c->unread_at == c->unread.len) {
		struct base_buf read = c->unread;

		base_buf_clear(&read);
		c->unread = c->spilled;
		c->spilled = read;
		c->unread_at = 0;
	} else if (base_buf_append(&c->unread, c->spilled.data, c->spilled.len) == 0) {
		base_buf_clear(&c->spilled);
	}
	pthread_mutex_unlock(&c->lock);
	return r;
}

/* Positions in memory are a ring's that has not wrapped. */
struct perf_ring perf_cpu_unread(const struct perf_cpu *c)
{
	size_t len = 1;

	while (len < c->unread.len)
		len *= 2;
	return (struct perf_ring){
		.data = c->unread.data, .len = len, .head = c->unread.len, .tail = c->unread_at
	};
}

void perf_cpu_was_read(struct perf_cpu *c, uint64_t up_to)
{
	c->unread_at = (size_t)up_to;
	if (c->unread_at < c->unread.len)
		return;
	c->unread_at = 0;
	if (c->unread.cap > KEPT_MAX)
		base_buf_release(&c->unread);
	else
		base_buf_clear(&c->unread);
}

bool perf_cpu_is_read(struct perf_cpu *c)
{
	bool is;

	pthread_mutex_lock(&c->lock);
	look(c);
	is = c->ring.head == c->ring.tail && !c->spilled.len && c->unread_at == c->unread.len;
	pthread_mutex_unlock(&c->lock);
	return is;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *run(void *arg)
{
	struct perf_sampler *s = arg;
	uint64_t ticks;

	while (read(s->spill.timer_fd, &ticks, sizeof(ticks)) == sizeof(ticks) &&
	       !__atomic_load_n(&s->spill.quit, __ATOMIC_ACQUIRE))
		for (size_t i = 0; i < s->nr_cpus; i++) {
			struct perf_cpu *c = &s->cpus[i];

			pthread_mutex_lock(&c->lock);
			empty(c, c->ring.len / 8 + 1);
			pthread_mutex_unlock(&c->lock);
		}
	return NULL;
}

/* The daemon's signals are for its main thread. */
static bool start(struct perf_sampler *s)
{
	sigset_t all, old;

	s->spill.tried = true;
	s->spill.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (s->spill.timer_fd < 0)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	s->spill.runs = pthread_create(&s->spill.thread, NULL, run, s) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!s->spill.runs)
		close(s->spill.timer_fd);
	return s->spill.runs;
}

static void arm(const struct perf_sampler *s, long first_ns)
{
	const struct itimerspec when = { .it_value.tv_nsec = first_ns,
					 .it_interval.tv_nsec = first_ns ? AGAIN_NS : 0 };

	timerfd_settime(s->spill.timer_fd, 0, &when, NULL);
}

void perf_sampler_busy(struct perf_sampler *s, bool busy)
{
	if (s->spill.runs || (busy && !s->spill.tried && start(s)))
		arm(s, busy ? FIRST_NS : 0);
}

void perf_spill_stop(struct perf_sampler *s)
{
	if (!s->spill.runs)
		return;
	__atomic_store_n(&s->spill.quit, true, __ATOMIC_RELEASE);
	arm(s, 1);
	pthread_join(s->spill.thread, NULL);
	close(s->spill.timer_fd);
	s->spill.runs = false;
}
