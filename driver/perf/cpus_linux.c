/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPUs of a sampler: which there are, their opening, which were taken away, which came back. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "perf_internal.h"

enum { PERF_CPUS_MAX = 8192 };

#define LOOK_NS	   1000000000u /* between looks for CPUs that came back */
#define TROUBLE_NS 3000000000u /* a refusal is told for so long after it was last seen */
#define STILL_NS   20000000u   /* an event whose clock stood for longer than that is dead */

/* ---- lists of CPUs --------------------------------------------------------------------------- */

/* A number without sign or blanks, below a million. */
static int number_take(const char **at, unsigned long *out)
{
	char *end;

	if (**at < '0' || **at > '9')
		return -EINVAL;
	*out = strtoul(*at, &end, 10);
	*at = end;
	return *out < 1000000 ? 0 : -EINVAL;
}

int perf_cpus_parse(const char *text, unsigned int *cpus, size_t max)
{
	unsigned long from, to;
	size_t nr = 0;

	for (;; text++) {
		if (number_take(&text, &from) < 0)
			return -EINVAL;
		to = from;
		if (*text == '-' && (text++, number_take(&text, &to) < 0))
			return -EINVAL;
		if (to < from)
			return -EINVAL;
		for (; from <= to && nr < max; from++)
			cpus[nr++] = (unsigned int)from;
		if (*text != ',')
			break;
	}
	return *text == '\0' || *text == '\n' ? (int)nr : -EINVAL;
}

bool perf_cpu_is_listed(unsigned int cpu, const unsigned int *cpus, int nr)
{
	for (int i = 0; i < nr; i++) {
		if (cpus[i] == cpu)
			return true;
	}
	return false;
}

/* No sysfs: the usual numbering. */
static int cpus_guess(unsigned int *cpus)
{
	int nr = (int)sysconf(_SC_NPROCESSORS_ONLN);

	for (int i = 0; i < nr && i < PERF_CPUS_MAX; i++)
		cpus[i] = (unsigned int)i;
	return nr > 0 && nr <= PERF_CPUS_MAX ? nr : -ENODEV;
}

int perf_cpus_list(const char *which, unsigned int **out)
{
	unsigned int *cpus = calloc(PERF_CPUS_MAX, sizeof(*cpus));
	struct base_buf text = { 0 };
	char path[64];
	int r;

	if (!cpus)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s", which);
	r = base_file_read(AT_FDCWD, path, 65536, &text, NULL);
	if (r >= 0)
		r = base_buf_append(&text, "", 1);
	if (r >= 0)
		r = perf_cpus_parse((const char *)text.data, cpus, PERF_CPUS_MAX);
	base_buf_release(&text);
	if (r <= 0)
		r = cpus_guess(cpus);
	if (r < 0)
		free(cpus);
	else
		*out = cpus;
	return r;
}

/* ---- opening --------------------------------------------------------------------------------- */

uint64_t perf_sampler_period(struct perf_sampler *s, size_t event)
{
	uint64_t nominal = s->periods[event];

	if (!s->turn.draws || !nominal)
		return nominal;
	return perf_period_draw(nominal, perf_least_period(&s->specs[event], s->max_rate),
				&s->turn.random);
}

/* The tracking event tells what the kernel knows, on the first CPU that is there. 0 or -errno. */
static int open_tracking(struct perf_sampler *s, struct perf_cpu *c, bool *mapping)
{
	struct perf_event_attr attr;
	int r, next;

	for (;;) {
		perf_attr_tracking(&attr, s->ring_len, s->pid, s->features);
		r = perf_cpu_track(c, &attr, s->pid, s->ring_len, mapping);
		if (r >= 0 || *mapping)
			return r;
		next = perf_attr_fallback(s->features, PERF_USE_KERNEL, -r);
		if (next < 0)
			return r;
		s->features = (unsigned int)next;
	}
}

static int open_sampling(struct perf_sampler *s, struct perf_cpu *c, size_t i)
{
	struct perf_event_attr attr;
	uint64_t period = perf_sampler_period(s, i);
	int r, next;

	for (;;) {
		perf_attr_sampling(&attr, &s->specs[i], period, s->frequency, s->pid, s->features);
		/* A program reads no sample, so none is made for it. */
		if (s->programs[i] >= 0)
			attr.sample_type = 0;
		c->events[i].count.period = period;
		r = perf_cpu_sample(c, i, &attr, s->pid, s->programs[i]);
		if (r >= 0 || s->specs[i].type == PERF_TYPE_SOFTWARE)
			return r;
		next = perf_attr_fallback(s->features, PERF_USE_EXCLUDE_GUEST, -r);
		if (next < 0)
			return r;
		s->features = (unsigned int)next;
	}
}

static int poll_cpu(struct perf_sampler *s, struct perf_cpu *c)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, c->track_fd, &e) < 0 ? -errno : 0;
}

int perf_sampler_open_cpu(struct perf_sampler *s, struct perf_cpu *c, int *failed, bool *mapping)
{
	int r = open_tracking(s, c, mapping);

	*failed = -1;
	for (size_t i = 0; i < s->d->nr_events && r >= 0; i++) {
		if (s->specs[i].tick)
			continue;
		r = open_sampling(s, c, i);
		/* Not an event of this kind of cores; of another it may be: see missing. */
		c->events[i].absent = r == -ENOENT && s->specs[i].type != PERF_TYPE_SOFTWARE;
		if (c->events[i].absent)
			r = 0;
		if (r < 0)
			*failed = (int)i;
	}
	if (r >= 0)
		r = poll_cpu(s, c);
	if (r < 0)
		perf_cpu_close(c, s->d->nr_events);
	return r;
}

/* Tracking first and last, so that no sample comes without the load events before it. */
int perf_sampler_enable_cpu(struct perf_sampler *s, struct perf_cpu *c)
{
	int r = perf_event_enable(c->track_fd, true);

	for (size_t i = 0; i < s->d->nr_events && r >= 0; i++) {
		if (c->events[i].fd >= 0 && perf_is_in_slot(s, i, s->turn.slot))
			r = perf_event_enable(c->events[i].fd, true);
	}
	c->alive_ns = base_now_ns();
	return r;
}

/* ---- coming and going ------------------------------------------------------------------------ */

/*
 * Events of a CPU that went offline stay dead when it comes back, and nothing tells: on some
 * kernels they hang up, on others only the time for which they were enabled stands still. A
 * process's events sleep with it, and those that we stopped stand still.
 */
void perf_sampler_read_counters(struct perf_sampler *s)
{
	s->counted = true;
	for (size_t i = 0; i < s->nr_cpus; i++) {
		struct perf_cpu *c = &s->cpus[i];
		uint64_t before_ns = base_now_ns(), had_ns = c->track.now.enabled_ns;

		if (c->track_fd < 0)
			continue;
		perf_cpu_read(c, s->d->nr_events, s->features & PERF_USE_LOST);
		if (s->running && s->pid < 0 &&
		    c->track.now.enabled_ns - had_ns + STILL_NS < before_ns - c->alive_ns)
			c->gone = true;
		c->alive_ns = base_now_ns();
	}
}

/* Its samples have been read: its ring is empty and stays so. */
static void close_gone(struct perf_sampler *s, struct perf_cpu *c)
{
	perf_cpu_look(c);
	if (c->ring.head != c->ring.tail)
		return;
	perf_cpu_close(c, s->d->nr_events);
}

void perf_sampler_trouble(struct perf_sampler *s, const struct perf_cpu *c, int r)
{
	/* Gone again: the next look tells. */
	if (r >= 0 || r == -ENODEV)
		return;
	snprintf(s->trouble, sizeof(s->trouble), "; CPU %u refused: %.40s", c->cpu,
		 base_strerror(r));
	s->trouble_ns = base_now_ns();
	perf_sampler_describe(s);
}

/* Programs may have run there before its events were open: this counts as a loss of load events. */
static void bring_back(struct perf_sampler *s, struct perf_cpu *c)
{
	bool mapping;
	int failed, r = perf_sampler_open_cpu(s, c, &failed, &mapping);

	if (r >= 0 && s->new_cpu)
		perf_sampler_trouble(s, c, s->new_cpu(s->d, c->cpu));
	if (r >= 0)
		r = perf_sampler_enable_cpu(s, c);
	if (r < 0)
		perf_cpu_close(c, s->d->nr_events);
	else
		s->load_bad++;
	perf_sampler_trouble(s, c, r);
}

static void look_for_closed(struct perf_sampler *s)
{
	unsigned int *online = NULL;
	int nr = perf_cpus_list("online", &online);

	for (size_t i = 0; i < s->nr_cpus; i++) {
		if (s->cpus[i].track_fd < 0 && perf_cpu_is_listed(s->cpus[i].cpu, online, nr))
			bring_back(s, &s->cpus[i]);
	}
	free(online);
}

void perf_sampler_look_for_cpus(struct perf_sampler *s, uint64_t now_ns)
{
	bool closed = false, changed = s->trouble[0] && now_ns > s->trouble_ns + TROUBLE_NS;

	if (changed)
		s->trouble[0] = '\0';
	for (size_t i = 0; i < s->nr_cpus; i++) {
		struct perf_cpu *c = &s->cpus[i];

		if (s->pid < 0 && c->track_fd >= 0 && c->gone) {
			close_gone(s, c);
			changed = true;
		}
		closed |= c->track_fd < 0;
	}
	if (s->running && s->pid < 0 && closed && now_ns >= s->looked_ns + LOOK_NS) {
		s->looked_ns = now_ns;
		look_for_closed(s);
		changed = true;
	}
	if (changed)
		perf_sampler_describe(s);
}
