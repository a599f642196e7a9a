/* SPDX-License-Identifier: BSD-2-Clause */
/* The source "perf": system-wide events, opened, drained and counted. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "perf_internal.h"

enum {
	PERF_CPUS_MAX = 8192,
	PERF_FREQUENCY = 1000,
	PERF_FREQUENCY_MAX = 100000, /* the kernel's clocks go no faster: 10 us */
	PERF_RING_PAGES = 128,
	PERF_RING_PAGES_MAX = 1 << 18,
};

/*
 * A record gets its time before it can be seen in its ring; the time between is microseconds, but
 * for a virtual CPU that its host takes away just then. Waiting costs nothing but delay.
 */
#define PERF_SLACK_NS 10000000u

struct perf {
	struct driver base;
	const struct perf_kind *kind;
	uint64_t frequency;
	size_t ring_len;
	unsigned int features;
	struct perf_cpu *cpus;
	size_t nr_cpus;
	struct perf_order order;
	struct perf_threads threads;
	int epoll_fd;
	bool running;
	uint64_t unsent;     /* PERF_RECORD_LOST_SAMPLES */
	uint64_t lost_said;  /* by PERF_RECORD_LOST, where the kernel does not count by event */
	uint64_t load_bad;   /* load records that made no sense */
	uint64_t sample_bad; /* samples of that kind, and ends of rings that made none */
	uint64_t taken;	     /* good samples read from rings */
	uint64_t distrusted; /* losses at which the threads were last forgotten */
	uint8_t scratch[PERF_RECORD_LEN_MAX];
};

/* ---- opening ----------------------------------------------------------------------------------
 */

static int online_cpus(unsigned int *cpus)
{
	struct base_buf text = { 0 };
	int r = base_file_read(AT_FDCWD, "/sys/devices/system/cpu/online", 65536, &text, NULL);

	if (r >= 0)
		r = base_buf_append(&text, "", 1);
	if (r >= 0)
		r = perf_cpus_parse((const char *)text.data, cpus, PERF_CPUS_MAX);
	base_buf_release(&text);
	if (r > 0)
		return r;
	/* No sysfs: the usual numbering. */
	r = (int)sysconf(_SC_NPROCESSORS_ONLN);
	for (int i = 0; i < r && i < PERF_CPUS_MAX; i++)
		cpus[i] = (unsigned int)i;
	return r > 0 && r <= PERF_CPUS_MAX ? r : -ENODEV;
}

static void hint_rights(struct base_err *err)
{
	struct base_buf text = { 0 };
	int r = base_file_read(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", 64, &text, NULL);

	if (r >= 0 && text.len && text.data[text.len - 1] == '\n')
		text.len--;
	base_hint(err,
		  "run as root or with CAP_PERFMON, or lower kernel.perf_event_paranoid to 0%s%.*s",
		  r >= 0 ? ", it is " : "", r >= 0 ? (int)text.len : 0, (const char *)text.data);
	base_buf_release(&text);
}

/* Say why an event could not be opened (or its ring not mapped). */
static int open_failed(const struct perf *p, int error, bool mapping, struct base_err *err)
{
	const char *what = mapping ? "cannot map the ring of" : "cannot sample";

	base_fail(err, -DCPI_ENOEVENTS, "%s '%s' on all CPUs: %s", what, p->kind->name,
		  base_strerror(error));
	if (mapping && (error == -EPERM || error == -ENOMEM))
		base_hint(err, "raise kernel.perf_event_mlock_kb, or ask for smaller rings");
	else if (error == -EPERM || error == -EACCES)
		hint_rights(err);
	else if (error == -EMFILE || error == -ENFILE)
		base_hint(err,
			  "two open files for each CPU are needed: raise the limit (ulimit -n)");
	else if (error == -ENOSYS)
		base_hint(err, "this kernel has no perf events; recorded streams can be replayed");
	else if (error == -EINVAL && !p->kind->clock)
		base_hint(err, "the frequency may be above kernel.perf_event_max_sample_rate");
	else if (!p->kind->clock)
		base_hint(err, "this machine may have no hardware counters: try cpu-clock");
	return -DCPI_ENOEVENTS;
}

/* Try @attr on the first CPU that is there, giving up features of @may_drop. 0 or -errno. */
static int probe(struct perf *p, bool tracking, unsigned int may_drop)
{
	struct perf_event_attr attr;
	int fd, next;

	for (;;) {
		if (tracking)
			perf_attr_tracking(&attr, p->ring_len, p->features);
		else
			perf_attr_sampling(&attr, p->kind, p->frequency, p->ring_len, p->features);
		fd = perf_event_try(&attr, p->cpus[0].cpu);
		if (fd >= 0)
			return close(fd);
		next = perf_attr_fallback(p->features, may_drop, -fd);
		if (next < 0)
			return fd;
		p->features = (unsigned int)next;
	}
}

static bool means_no_counters(int r)
{
	return r == -ENOENT || r == -ENODEV || r == -EOPNOTSUPP || r == -EINVAL;
}

/* Choose the event and the features that this machine has. */
static int choose(struct perf *p, const char *wanted, struct base_err *err)
{
	const char *why = "";
	int r = probe(p, true, PERF_USE_KERNEL);

	p->kind = perf_kind_find(wanted ? wanted : "cycles");
	if (r >= 0)
		r = probe(p, false, PERF_USE_EXCLUDE_GUEST);
	if (!wanted && means_no_counters(r)) {
		p->kind = perf_kind_find("cpu-clock");
		why = " (no hardware cycles here)";
		r = probe(p, false, 0);
	}
	if (r < 0)
		return open_failed(p, r, false, err);
	snprintf(p->base.describe, sizeof(p->base.describe),
		 "perf: %s at %" PRIu64 " Hz on %zu CPU%s%s", p->kind->name, p->frequency,
		 p->nr_cpus, p->nr_cpus == 1 ? "" : "s", why);
	return 0;
}

static int poll_add(struct perf *p, size_t index)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = index };

	return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->cpus[index].fd, &e) < 0 ? -errno : 0;
}

static int open_rings(struct perf *p, struct base_err *err)
{
	struct perf_event_attr sampling, tracking;
	bool mapping = false;
	size_t kept = 0;
	int r = 0;

	perf_attr_sampling(&sampling, p->kind, p->frequency, p->ring_len, p->features);
	perf_attr_tracking(&tracking, p->ring_len, p->features);
	for (size_t i = 0; i < p->nr_cpus && r >= 0; i++) {
		p->cpus[kept] = p->cpus[i];
		r = perf_cpu_open(&p->cpus[kept], &sampling, &tracking, p->ring_len, &mapping);
		if (r >= 0)
			r = poll_add(p, kept);
		if (r >= 0)
			kept++;
		else if (r == -ENODEV && (kept || i + 1 < p->nr_cpus))
			r = 0; /* went offline since the list was read */
	}
	if (r < 0)
		return open_failed(p, r, mapping, err);
	p->nr_cpus = kept;
	return 0;
}

static int check_config(const struct driver_config *config, struct base_err *err)
{
	size_t pages = config->ring_pages;

	if (config->event && !perf_kind_find(config->event)) {
		base_fail(err, -DCPI_EUSAGE, "unknown event '%s'", config->event);
		base_hint(err, "events are: %s", perf_kind_names());
		return -DCPI_EUSAGE;
	}
	if (config->frequency > PERF_FREQUENCY_MAX)
		return base_fail(err, -DCPI_EUSAGE, "frequency %" PRIu64 " is above %d",
				 config->frequency, PERF_FREQUENCY_MAX);
	if (pages & (pages - 1) || pages > PERF_RING_PAGES_MAX)
		return base_fail(err, -DCPI_EUSAGE,
				 "ring of %zu pages: not a power of two up to %d", pages,
				 PERF_RING_PAGES_MAX);
	return 0;
}

static int list_cpus(struct perf *p)
{
	unsigned int *cpus = calloc(PERF_CPUS_MAX, sizeof(*cpus));
	int r = cpus ? online_cpus(cpus) : -ENOMEM;

	if (r >= 0) {
		p->cpus = calloc((size_t)r, sizeof(*p->cpus));
		p->nr_cpus = p->cpus ? (size_t)r : 0;
		for (size_t i = 0; i < p->nr_cpus; i++)
			perf_cpu_init(&p->cpus[i], cpus[i]);
		r = p->cpus ? perf_order_init(&p->order, p->nr_cpus) : -ENOMEM;
	}
	free(cpus);
	return r;
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

static void announce(struct perf *p)
{
	struct driver_event *e = &p->base.events[0];

	p->base.nr_events = 1;
	snprintf(e->name, sizeof(e->name), "%s", p->kind->name);
	if (p->kind->clock)
		e->period = 1000000000u / p->frequency;
}

/* ---- reading ----------------------------------------------------------------------------------
 */

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

	if (r >= 0) {
		p->taken++;
		p->cpus[index].received++;
	}
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

/* ---- counting ---------------------------------------------------------------------------------
 */

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
	uint64_t lost = 0, lost_track = 0, missed = 0, value = 0, had = 0;

	for (size_t i = 0; i < p->nr_cpus; i++) {
		struct perf_cpu *c = &p->cpus[i];

		lost += c->lost;
		lost_track += c->lost_track;
		value += c->value;
		had += c->received + c->lost;
		missed += c->missed = cpu_missed(p, c);
	}
	/* Without counts by event, a lost record may have been of either kind: of samples there
	 * are far more. */
	s->lost_ring = (p->features & PERF_USE_LOST ? lost : p->lost_said) + p->unsent;
	s->lost_load = lost_track + p->load_bad;
	if (p->distrusted != s->lost_load + p->lost_said)
		perf_threads_forget(&p->threads);
	p->distrusted = s->lost_load + p->lost_said;
	s->lost_bad = p->sample_bad;
	s->held = p->order.nr_samples;
	s->received[0] = p->taken + s->lost_ring + s->lost_bad;
	s->missed[0] = missed;
	if (!p->kind->clock && had)
		p->base.events[0].period = value / had;
}

/* ---- handing on -------------------------------------------------------------------------------
 */

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

/* ---- the source -------------------------------------------------------------------------------
 */

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
	uint64_t horizon = all ? UINT64_MAX : now - PERF_SLACK_NS;
	int r = 0, handed;

	drop_gone(p);
	read_counters(p);
	for (size_t i = 0; i < p->nr_cpus && r >= 0; i++)
		r = read_ring(p, i, until);
	handed = hand_on(p, horizon, sink);
	count_stats(p);
	if (handed < 0)
		return handed;
	return r < 0 ? base_fail_errno(err, r, "cannot read the rings") : 0;
}

static int perf_poll_fd(const struct driver *d)
{
	return ((const struct perf *)d)->epoll_fd;
}

static const struct driver_ops perf_ops = {
	.start = perf_start,
	.drain = perf_drain,
	.poll_fd = perf_poll_fd,
	.stop = perf_stop,
	.close = perf_close,
};

int perf_open(const struct driver_config *config, struct driver **out, struct base_err *err)
{
	struct perf *p;
	int r = check_config(config, err);

	if (r < 0)
		return r;
	p = calloc(1, sizeof(*p));
	if (!p)
		return base_fail_errno(err, -ENOMEM, "cannot sample");
	p->base.ops = &perf_ops;
	p->base.utc = -1;
	p->features = PERF_USE_ALL;
	p->frequency = config->frequency ? config->frequency : PERF_FREQUENCY;
	p->ring_len = (config->ring_pages ? config->ring_pages : PERF_RING_PAGES) *
		      (size_t)sysconf(_SC_PAGESIZE);
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r = p->epoll_fd < 0 ? -errno : list_cpus(p);
	if (r < 0)
		base_fail_errno(err, r, "cannot sample");
	if (r >= 0)
		r = choose(p, config->event, err);
	if (r >= 0)
		r = open_rings(p, err);
	if (r < 0) {
		perf_close(&p->base);
		return r;
	}
	announce(p);
	*out = &p->base;
	return 0;
}
