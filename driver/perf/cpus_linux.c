/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CPUs of a sampler: the events of each, opened, enabled in turns, read and added up; which are
 * there, were taken away, came back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
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

static uint64_t periods_since_draw(const struct perf_count *c)
{
	uint64_t counted = c->is_time ? c->now.running_ns - c->drawn.running_ns
				      : c->now.value - c->drawn.value;

	return c->period ? counted / c->period : 0;
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

double perf_count_enabled(uint64_t running_ns, uint64_t all_ns)
{
	double part = all_ns ? (double)running_ns / (double)all_ns : 1;

	return part > 0.999 ? 1 : part;
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
	pthread_mutex_init(&c->lock, NULL);
	for (size_t i = 0; i < nr; i++)
		events[i] = (struct perf_event){ .fd = -1 };
}

static int ring_map(struct perf_cpu *c, size_t ring_len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, page + ring_len, PROT_READ | PROT_WRITE, MAP_SHARED, c->track_fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	pthread_mutex_lock(&c->lock);
	c->map = map;
	c->map_len = page + ring_len;
	c->ring = (struct perf_ring){ .data = (uint8_t *)map + page, .len = ring_len };
	pthread_mutex_unlock(&c->lock);
	return 0;
}

/* The tracking event and its ring. 0, or -errno; *@mapping: of mmap. Closed on failure. */
static int perf_cpu_track(struct perf_cpu *c, const struct perf_event_attr *attr, int32_t pid,
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

/* An event beside it, with @program (-1: into the ring). 0 or -errno. */
static int perf_cpu_sample(struct perf_cpu *c, size_t event, const struct perf_event_attr *attr,
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
	pthread_mutex_lock(&c->lock);
	if (c->map)
		munmap(c->map, c->map_len);
	if (c->track_fd >= 0)
		close(c->track_fd);
	c->map = NULL;
	c->ring = (struct perf_ring){ 0 };
	base_buf_release(&c->spilled);
	base_buf_release(&c->unread);
	c->unread_at = 0;
	pthread_mutex_unlock(&c->lock);
	c->track_fd = -1;
	perf_count_close(&c->track);
}

static int event_enable(int fd, bool on)
{
	unsigned long what = on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;

	return ioctl(fd, what, 0) < 0 ? -errno : 0;
}

/* 0 or -errno. */
static int event_period(struct perf_event *e, uint64_t period)
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

/* What cannot be read keeps its last value. */
static void perf_cpu_read(struct perf_cpu *c, size_t nr_events, bool with_lost)
{
	for (size_t i = 0; i < nr_events; i++)
		read_event(c->events[i].fd, &c->events[i].count, with_lost);
	read_event(c->track_fd, &c->track, with_lost);
}

/* ---- all of them ----------------------------------------------------------------------------- */

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

/* @nr below 0: none. */
static bool is_listed(unsigned int cpu, const unsigned int *cpus, int nr)
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
		c->events[i].count.is_time = s->specs[i].clock;
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

/* Open @c with its features and periods. 0 or -errno; *@failed: the event, or -1: tracking. */
static int open_cpu(struct perf_sampler *s, struct perf_cpu *c, int *failed, bool *mapping)
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

/* The first event that is open on no CPU, or -1. */
static int missing(const struct perf_sampler *s)
{
	for (size_t i = 0; i < s->d->nr_events; i++) {
		bool open = s->specs[i].tick;

		for (size_t k = 0; k < s->nr_cpus; k++)
			open |= s->cpus[k].events[i].fd >= 0;
		if (!open)
			return (int)i;
	}
	return -1;
}

int perf_sampler_open_online(struct perf_sampler *s, int *failed, bool *mapping)
{
	unsigned int *online = NULL;
	int nr = perf_cpus_list("online", &online), r = nr < 0 ? nr : 0;
	size_t opened = 0;

	for (size_t i = 0; i < s->nr_cpus && r >= 0; i++) {
		if (!is_listed(s->cpus[i].cpu, online, nr))
			continue;
		r = open_cpu(s, &s->cpus[i], failed, mapping);
		if (r >= 0)
			opened++;
		else if (r == -ENODEV && opened)
			r = 0; /* went offline since the list was read */
	}
	free(online);
	if (r < 0 || !opened)
		return r < 0 ? r : -ENODEV;
	*failed = missing(s);
	return *failed < 0 ? 0 : -ENOENT;
}

/* ---- enabled, and in turns ------------------------------------------------------------------- */

/*
 * Enable what has its turn. Tracking first and last, so that no sample comes without the load
 * events before it. 0 or -errno.
 */
static int enable_cpu(struct perf_sampler *s, struct perf_cpu *c)
{
	int r = event_enable(c->track_fd, true);

	for (size_t i = 0; i < s->d->nr_events && r >= 0; i++) {
		if (c->events[i].fd >= 0 && perf_is_in_slot(s, i, s->turn.slot))
			r = event_enable(c->events[i].fd, true);
	}
	c->alive_ns = base_now_ns();
	return r;
}

static void disable_cpu(struct perf_sampler *s, struct perf_cpu *c)
{
	for (size_t i = 0; i < s->d->nr_events; i++) {
		if (c->events[i].fd >= 0)
			event_enable(c->events[i].fd, false);
	}
	if (c->track_fd >= 0)
		event_enable(c->track_fd, false);
}

static void arm_timer(struct perf_sampler *s)
{
	uint64_t at = s->running ? perf_turn_next_ns(&s->turn) : 0;
	const struct itimerspec when = { .it_value = { .tv_sec = (time_t)(at / 1000000000u),
						       .tv_nsec = (long)(at % 1000000000u) } };

	timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

int perf_sampler_start(struct perf_sampler *s, struct base_err *err)
{
	perf_turn_start(&s->turn, base_now_ns());
	for (size_t i = 0; i < s->nr_cpus; i++) {
		int r = s->cpus[i].track_fd < 0 ? 0 : enable_cpu(s, &s->cpus[i]);

		if (r < 0 && r != -ENODEV)
			return base_fail_errno(err, r, "cannot start sampling on CPU %u",
					       s->cpus[i].cpu);
	}
	s->running = true;
	arm_timer(s);
	return 0;
}

void perf_sampler_stop(struct perf_sampler *s)
{
	for (size_t i = 0; i < s->nr_cpus; i++)
		disable_cpu(s, &s->cpus[i]);
	s->running = false;
	arm_timer(s);
}

/*
 * New periods once a second. A daemon's clock of a second is a little early now and then; without
 * any clock a draw is due half a second late.
 */
#define DRAW_LEAST_NS 900000000u
#define DRAW_MOST_NS  1500000000u

void perf_turn_start(struct perf_turn *t, uint64_t now_ns)
{
	t->slot = 0;
	t->slot_since = t->drawn_since = now_ns;
}

bool perf_turn_rotate(struct perf_turn *t, uint64_t now_ns)
{
	if (t->nr_slots < 2 || now_ns < t->slot_since + t->slot_ns)
		return false;
	t->slot = (t->slot + 1) % t->nr_slots;
	t->slot_since = now_ns;
	return true;
}

bool perf_turn_draw(struct perf_turn *t, uint64_t now_ns)
{
	if (!t->draws || now_ns < t->drawn_since + DRAW_LEAST_NS)
		return false;
	t->drawn_since = now_ns;
	return true;
}

uint64_t perf_turn_next_ns(const struct perf_turn *t)
{
	if (t->nr_slots > 1)
		return t->slot_since + t->slot_ns;
	return t->draws ? t->drawn_since + DRAW_MOST_NS : 0;
}

/* Enable the events of one slot that are not in the other; events in both continue. */
static void enable_slot(struct perf_sampler *s, struct perf_cpu *c, uint32_t slot, uint32_t other,
			bool on)
{
	for (size_t i = 0; i < s->d->nr_events; i++) {
		if (c->events[i].fd >= 0 && perf_is_in_slot(s, i, slot) &&
		    !perf_is_in_slot(s, i, other))
			perf_sampler_trouble(s, c, event_enable(c->events[i].fd, on));
	}
}

static void draw_periods(struct perf_sampler *s, struct perf_cpu *c)
{
	for (size_t i = 0; i < s->d->nr_events; i++) {
		struct perf_event *e = &c->events[i];
		uint64_t period;
		int r;

		if (e->fd < 0 || !perf_count_may_draw(&e->count))
			continue;
		period = perf_sampler_period(s, i);
		r = event_period(e, period);
		if (r >= 0)
			perf_count_draw(&e->count, period);
		perf_sampler_trouble(s, c, r);
	}
}

void perf_sampler_turn(struct perf_sampler *s, uint64_t now_ns)
{
	uint32_t from = s->turn.slot;
	bool rotate, draw;

	if (!s->running)
		return;
	rotate = perf_turn_rotate(&s->turn, now_ns);
	draw = perf_turn_draw(&s->turn, now_ns);
	if (draw)
		perf_sampler_read_counters(s);
	for (size_t i = 0; i < s->nr_cpus; i++) {
		if (rotate) {
			enable_slot(s, &s->cpus[i], from, s->turn.slot, false);
			enable_slot(s, &s->cpus[i], s->turn.slot, from, true);
		}
		if (draw)
			draw_periods(s, &s->cpus[i]);
	}
	if (rotate || draw)
		arm_timer(s);
}

/* ---- coming and going ------------------------------------------------------------------------ */

/*
 * Events of a CPU that went offline stay dead when it comes back, and nothing tells: on some
 * kernels they hang up, on others only the time for which they were enabled stands still. (That
 * the time of one that lives lags behind the clock is no such thing: an idle CPU's may, by 0.1 s.)
 * A process's events sleep with it, and those that we stopped stand still.
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
		if (s->running && s->pid < 0 && c->track.now.enabled_ns == had_ns &&
		    before_ns - c->alive_ns > STILL_NS)
			c->gone = true;
		c->alive_ns = base_now_ns();
	}
}

/* There is nothing in the ring, nor taken from it and not read. */
static bool is_read(struct perf_cpu *c)
{
	const struct perf_event_mmap_page *page = c->map;
	bool is;

	pthread_mutex_lock(&c->lock);
	c->ring.head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	is = c->ring.head == c->ring.tail && !c->spilled.len && c->unread_at == c->unread.len;
	pthread_mutex_unlock(&c->lock);
	return is;
}

/* Its samples have been read: its ring is empty and stays so. */
static void close_gone(struct perf_sampler *s, struct perf_cpu *c)
{
	if (!is_read(c))
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
	int failed, r = open_cpu(s, c, &failed, &mapping);

	if (r >= 0 && s->new_cpu)
		perf_sampler_trouble(s, c, s->new_cpu(s->d, c->cpu));
	if (r >= 0)
		r = enable_cpu(s, c);
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
		if (s->cpus[i].track_fd < 0 && is_listed(s->cpus[i].cpu, online, nr))
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

/* ---- reading --------------------------------------------------------------------------------- */

/*
 * A descriptor that hangs up would wake the daemon for ever: a CPU that went offline, a process
 * that ended.
 */
static void drop_gone(struct perf_sampler *s)
{
	struct epoll_event e[16];
	int n;

	n = epoll_wait(s->epoll_fd, e, 16, 0);
	for (int i = 0; i < n; i++) {
		struct perf_cpu *c = e[i].data.ptr;

		if (!c || !(e[i].events & (EPOLLHUP | EPOLLERR)))
			continue;
		epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, c->track_fd, NULL);
		c->gone = true;
	}
}

int perf_sampler_read(struct perf_sampler *s, uint64_t until, bool counters)
{
	int r;

	drop_gone(s);
	if (counters && !s->counted)
		perf_sampler_read_counters(s);
	r = perf_sampler_read_rings(s, until);
	if (r >= 0)
		perf_sampler_look_for_cpus(s, base_now_ns());
	return r;
}

/* ---- counting -------------------------------------------------------------------------------- */

/* A counter counts on behind an overflow whose interrupt waits, so that its value has those that
 * it lost. What a PMU of another kind, or a precise event, counts may be less exact. */
static bool counts_exactly(const struct event_spec *spec)
{
	return !spec->precise && (spec->type == PERF_TYPE_HARDWARE ||
				  spec->type == PERF_TYPE_HW_CACHE || spec->type == PERF_TYPE_RAW);
}

/* A clock that some mode stops continues while its samples are kept back: nothing tells them. */
static bool tells_missed(const struct perf_sampler *s, size_t event)
{
	const struct event_spec *spec = &s->specs[event];

	if (s->pid >= 0)
		return false;
	return spec->clock ? !spec->exclude_user && !spec->exclude_kernel : counts_exactly(spec);
}

static void account_event(struct perf_sampler *s, size_t event, bool received)
{
	uint64_t value = 0, running = 0, all_ns = 0, came = s->somewhere[event], lost = 0,
		 missed = 0;
	struct driver_stats *st = &s->d->stats;
	struct driver_event *e = &s->d->events[event];

	for (size_t i = 0; i < s->nr_cpus; i++) {
		struct perf_count *c = &s->cpus[i].events[event].count;

		if (received && tells_missed(s, event))
			perf_count_miss(c);
		missed += c->missed;
		value += perf_count_value(c);
		running += perf_count_running_ns(c);
		if (!s->cpus[i].events[event].absent)
			all_ns += perf_count_running_ns(&s->cpus[i].track);
		came += c->received;
		lost += perf_count_lost(c);
	}
	/* A sample received without its CPU counts as missed on that CPU. */
	if (missed > st->missed[event] + s->somewhere[event])
		st->missed[event] = missed - s->somewhere[event];
	e->enabled = perf_count_enabled(running, all_ns);
	if (received && !s->periods[event] && came + lost)
		e->period = value / (came + lost);
	if (s->programs[event] >= 0)
		return;
	/* The kernel counts records by event: samples but for a few notes of throttling. */
	lost = (s->features & PERF_USE_LOST ? lost : s->lost_said[event]) + s->unsent[event];
	st->lost_ring += lost;
	st->received[event] = came + lost;
}

/* Before PERF_FORMAT_LOST, whatever a ring lost may have been a load event, a sample or not. */
uint64_t perf_sampler_lost_load(const struct perf_sampler *s)
{
	uint64_t lost = s->load_bad;

	for (size_t i = 0; i < s->nr_cpus; i++)
		lost += perf_count_lost(&s->cpus[i].track);
	for (size_t i = 0; i < s->d->nr_events && !(s->features & PERF_USE_LOST); i++)
		lost += s->lost_said[i];
	return lost;
}

void perf_sampler_account(struct perf_sampler *s, bool received)
{
	struct driver_stats *st = &s->d->stats;

	s->counted = false;
	st->lost_load = perf_sampler_lost_load(s);
	st->held = s->order.nr_samples;
	st->lost_ring = 0;
	for (size_t i = 0; i < s->d->nr_events; i++) {
		if (!s->specs[i].tick)
			account_event(s, i, received);
	}
	/* The event of these samples is unknown. */
	st->lost_bad = s->sample_bad;
	if (!s->in_kernel)
		st->received[0] += s->sample_bad;
}
