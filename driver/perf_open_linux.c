/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening of the source "perf": which event, which features, which CPUs; failures said plainly. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
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

/* What perf_event_open answers where there is no such event. */
static bool means_no_event(int r)
{
	return r == -ENOENT || r == -ENODEV || r == -EOPNOTSUPP;
}

/* Say why an event could not be opened (or its ring not mapped). */
static int open_failed(const struct perf *p, int error, bool mapping, struct base_err *err)
{
	const char *what = mapping ? "cannot map the ring of" : "cannot sample";

	base_fail(err, -DCPI_ENOEVENTS, "%s '%s' on all CPUs: %s", what, p->kind->name,
		  means_no_event(error) ? "this machine has no such event" : base_strerror(error));
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

/* Choose the event and the features that this machine has. */
static int choose(struct perf *p, const char *wanted, struct base_err *err)
{
	const char *why = "";
	int r = probe(p, true, PERF_USE_KERNEL);

	p->kind = perf_kind_find(wanted ? wanted : "cycles");
	if (r >= 0)
		r = probe(p, false, PERF_USE_EXCLUDE_GUEST);
	if (!wanted && (means_no_event(r) || r == -EINVAL)) {
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

	if (config->nr_slots && !perf_kind_find(config->slots[0])) {
		base_fail(err, -DCPI_EUSAGE, "unknown event '%s'", config->slots[0]);
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

static void announce(struct perf *p)
{
	struct driver_event *e = &p->base.events[0];

	p->base.nr_events = 1;
	snprintf(e->name, sizeof(e->name), "%s", p->kind->name);
	e->enabled = 1;
	if (p->kind->clock)
		e->period = 1000000000u / p->frequency;
}

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
		r = choose(p, config->nr_slots ? config->slots[0] : NULL, err);
	if (r >= 0)
		r = open_rings(p, err);
	if (r < 0) {
		perf_ops.close(&p->base);
		return r;
	}
	announce(p);
	*out = &p->base;
	return 0;
}
