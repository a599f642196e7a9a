/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening of the sampler: requests to the kernel, features, CPUs; failures said plainly. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "perf_internal.h"

/* ---- requests to the kernel ------------------------------------------------------------------ */

enum { SECOND_NS = 1000000000 };

uint64_t perf_frequency(uint64_t wanted, uint64_t max_rate)
{
	if (wanted)
		return wanted;
	return max_rate && max_rate < PERF_FREQUENCY ? max_rate : PERF_FREQUENCY;
}

uint64_t perf_spec_period(const struct event_spec *spec, uint64_t frequency)
{
	if (spec->period || !spec->clock)
		return spec->period;
	return SECOND_NS / frequency;
}

static void attr_common(struct perf_event_attr *attr, int32_t pid, unsigned int features)
{
	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.sample_type = PERF_SAMPLES,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	if (features & PERF_USE_LOST)
		attr->read_format |= PERF_FORMAT_LOST;
	if (pid > 0) {
		attr->inherit = 1;
		attr->exclude_kernel = 1;
		attr->exclude_hv = 1;
	}
}

/* The fields that the hardware tells of the sampled instruction follow those of every sample. */
static uint64_t told_fields(const struct event_spec *spec)
{
	if (spec->hardware == EVENT_HW_IBS_OP || spec->hardware == EVENT_HW_IBS_FETCH)
		return PERF_SAMPLE_RAW;
	return spec->precise ? PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC : 0;
}

void perf_attr_sampling(struct perf_event_attr *attr, const struct event_spec *spec,
			uint64_t period, uint64_t frequency, int32_t pid, unsigned int features)
{
	attr_common(attr, pid, features);
	attr->type = spec->type;
	attr->config = spec->config;
	attr->config1 = spec->config1;
	attr->config2 = spec->config2;
	attr->precise_ip = spec->precise & 3;
	attr->sample_type |= told_fields(spec);
	attr->exclude_user |= spec->exclude_user;
	attr->exclude_kernel |= spec->exclude_kernel;
	attr->exclude_hv |= spec->exclude_hv;
	if (spec->type != PERF_TYPE_SOFTWARE)
		attr->exclude_guest = features & PERF_USE_EXCLUDE_GUEST ? 1 : 0;
	attr->freq = !period;
	if (period)
		attr->sample_period = period;
	else
		attr->sample_freq = frequency;
}

void perf_attr_tracking(struct perf_event_attr *attr, size_t ring_len, int32_t pid,
			unsigned int features)
{
	attr_common(attr, pid, features);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_DUMMY;
	/* Woken when half a ring is full, not for each record. */
	attr->watermark = 1;
	attr->wakeup_watermark = (uint32_t)(ring_len / 2);
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
	attr->build_id = features & PERF_USE_BUILD_ID ? 1 : 0;
	if (pid > 0)
		return;
	attr->text_poke = features & PERF_USE_POKE ? 1 : 0;
	attr->ksymbol = features & PERF_USE_KSYMBOL ? 1 : 0;
}

int perf_attr_fallback(unsigned int features, unsigned int may_drop, int error)
{
	/* How a kernel refuses a bit that it does not know; the rest has other reasons. */
	if (error != EINVAL && error != E2BIG && error != EOPNOTSUPP)
		return -1;
	for (unsigned int f = PERF_USE_LOST; f < PERF_USE_ALL; f <<= 1) {
		if (features & may_drop & f)
			return (int)(features & ~f);
	}
	return -1;
}

/* How often @spec comes in a second; 0: nobody knows before. */
static uint64_t rate_of(const struct event_spec *spec, uint64_t frequency)
{
	if (!spec->period)
		return frequency;
	return spec->clock ? SECOND_NS / spec->period : 0;
}

static int rate_refuse(const struct event_spec *spec, uint64_t rate, uint64_t max_rate,
		       struct base_err *err)
{
	base_fail(err, -DCPI_EUSAGE,
		  "cannot sample '%s' %" PRIu64 " times a second: "
		  "kernel.perf_event_max_sample_rate is %" PRIu64,
		  spec->name, rate, max_rate);
	base_hint(err,
		  "ask for a lower rate, or raise the limit: sysctl "
		  "kernel.perf_event_max_sample_rate=%" PRIu64
		  " (the kernel lowers it where samples take long: "
		  "kernel.perf_cpu_time_max_percent)",
		  rate);
	return -DCPI_EUSAGE;
}

const char *perf_rate_unused(const struct event_spec *specs, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!specs[i].tick && !specs[i].period)
			return "";
	return " (no event takes the rate: each has its own)";
}

int perf_rate_check(const struct event_spec *specs, size_t nr, uint64_t frequency,
		    uint64_t max_rate, struct base_err *err)
{
	for (size_t i = 0; max_rate && i < nr; i++) {
		uint64_t rate = specs[i].tick ? 0 : rate_of(&specs[i], frequency);

		if (rate > max_rate)
			return rate_refuse(&specs[i], rate, max_rate, err);
	}
	return 0;
}

/* ---- periods that vary ----------------------------------------------------------------------- */

/* AMD's IBS takes multiples of 16 alone. */
static uint64_t unit(uint64_t nominal)
{
	return nominal % 16 ? 1 : 16;
}

/* A hundredth, or a little more. */
static uint64_t nearest(uint64_t nominal)
{
	uint64_t least = nominal / 100 + (nominal % 100 != 0), u = unit(nominal);

	return (least + u - 1) / u * u;
}

static uint64_t farthest(uint64_t nominal)
{
	return nominal / 25 / unit(nominal) * unit(nominal);
}

static bool has_space(uint64_t nominal)
{
	return nominal && farthest(nominal) >= nearest(nominal);
}

static bool only_longer(uint64_t nominal, uint64_t least)
{
	return nominal - farthest(nominal) < least;
}

/*
 * The smallest valid period of @spec: of a clock, as the kernel and @max_rate a second (0: unknown)
 * limit it.
 */
static uint64_t least_period(const struct event_spec *spec, uint64_t max_rate)
{
	uint64_t by_rate = max_rate ? SECOND_NS / max_rate : 0;

	if (!spec->clock)
		return 0;
	return by_rate > EVENT_CLOCK_LEAST ? by_rate : EVENT_CLOCK_LEAST;
}

uint64_t perf_period_draw(uint64_t nominal, uint64_t least, uint64_t *random)
{
	uint64_t near = nearest(nominal), far = farthest(nominal), u = unit(nominal);
	uint64_t r = base_random64(random), off;

	if (!has_space(nominal))
		return nominal;
	off = near + (r >> 1) % ((far - near) / u + 1) * u;
	return r & 1 || only_longer(nominal, least) ? nominal + off : nominal - off;
}

uint64_t perf_period_mean(uint64_t nominal, uint64_t least)
{
	if (!has_space(nominal) || !only_longer(nominal, least))
		return nominal;
	return nominal + (nearest(nominal) + farthest(nominal)) / 2;
}

uint64_t perf_sampler_period(struct perf_sampler *s, size_t event)
{
	uint64_t nominal = s->periods[event];

	if (!s->turn.draws || !nominal)
		return nominal;
	return perf_period_draw(nominal, least_period(&s->specs[event], s->max_rate),
				&s->turn.random);
}

/* ---- opening --------------------------------------------------------------------------------- */

enum {
	PERF_RING_PAGES = 128,
	PERF_RING_PAGES_LEAST = 8,
	PERF_RING_PAGES_MAX = 1 << 18,
	PERF_SLOT_MS = 1000,
};

/* ---- messages -------------------------------------------------------------------------------- */

static void hint_rights(int32_t pid, struct base_err *err)
{
	int level = (int)event_number_read("/proc/sys/kernel/perf_event_paranoid", -2);
	int most = pid > 0 ? 2 : 0;
	const char *else_do = pid > 0 ? "" : "; 'dcpirun PROGRAM' needs no rights";
	char is[24] = "";

	if (level != -2)
		snprintf(is, sizeof(is), ", it is %d", level);
	/* Debian's kernels know 3, and begin with it: then that right is not enough. */
	if (level > 2 && pid <= 0)
		base_hint(err,
			  "%s or with CAP_SYS_ADMIN, or set kernel.perf_event_paranoid to 2, it "
			  "is %d, and run with CAP_PERFMON%s",
			  driver_run_as_root(), level, else_do);
	else if (level == -2 || level > most)
		base_hint(err,
			  "%s or with CAP_PERFMON, or lower kernel.perf_event_paranoid to %d%s%s",
			  driver_run_as_root(), most, is, else_do);
	else if (pid > 0)
		base_hint(err,
			  "only one's own processes can be sampled, and none that changed its "
			  "user; or %s or with CAP_PERFMON",
			  driver_run_as_root());
	else
		base_hint(err, "something else than kernel.perf_event_paranoid forbids it: a "
			       "container's filter of system calls, or a security module");
}

/* Errors of perf_event_open that mean "no such event". */
static bool means_no_event(int r)
{
	return r == -ENOENT || r == -ENODEV || r == -EOPNOTSUPP;
}

static bool is_hardware(const struct event_spec *spec)
{
	return spec && spec->type != PERF_TYPE_SOFTWARE;
}

static void hint_open(const struct perf_sampler *s, const struct event_spec *spec, int error,
		      bool mapping, struct base_err *err)
{
	if (mapping && (error == -EPERM || error == -ENOMEM))
		base_hint(err, "raise kernel.perf_event_mlock_kb, or ask for smaller rings");
	else if (error == -EPERM || error == -EACCES)
		hint_rights(s->pid, err);
	else if (error == -EMFILE || error == -ENFILE)
		base_hint(err,
			  "%zu open files for each CPU are needed: raise the limit (ulimit -n)",
			  s->d->nr_events + 1);
	else if (error == -ENOSYS)
		base_hint(err, "this kernel has no perf events; recorded streams can be replayed");
	else if (error == -ESRCH)
		base_hint(err, "it has ended");
	else if (is_hardware(spec))
		base_hint(err, "this machine may have no hardware counters: try cpu-clock");
}

/* Say why an event (NULL: the tracking one) could not be opened, or its ring not mapped. */
static int open_failed(const struct perf_sampler *s, const struct event_spec *spec, int error,
		       bool mapping, struct base_err *err)
{
	const char *what = mapping ? "map the ring of" : "sample";
	const char *name = spec ? spec->name : s->specs[0].name;
	const char *why = means_no_event(error) && spec ? "this machine has no such event"
							: base_strerror(error);

	if (s->pid > 0)
		base_fail(err, -DCPI_ENOEVENTS, "cannot %s '%s' of process %d: %s", what, name,
			  s->pid, why);
	else
		base_fail(err, -DCPI_ENOEVENTS, "cannot %s '%s' on all CPUs: %s", what, name, why);
	hint_open(s, spec, error, mapping, err);
	return -DCPI_ENOEVENTS;
}

/* ---- what to sample -------------------------------------------------------------------------- */

/* 0 where it is not told. */
static uint64_t max_rate(void)
{
	return (uint64_t)event_number_read("/proc/sys/kernel/perf_event_max_sample_rate", 0);
}

static int probe_cpu(const struct event_spec *spec, int32_t pid, uint64_t frequency,
		     unsigned int cpu)
{
	unsigned int features = is_hardware(spec) ? PERF_USE_EXCLUDE_GUEST : 0;
	struct perf_event_attr attr;
	int fd, next;

	for (;;) {
		perf_attr_sampling(&attr, spec, perf_spec_period(spec, frequency), frequency, pid,
				   features);
		fd = perf_event_try(&attr, pid > 0 ? pid : -1, (int)cpu);
		if (fd >= 0)
			return close(fd);
		next = perf_attr_fallback(features, features, -fd);
		if (next < 0)
			return fd;
		features = (unsigned int)next;
	}
}

int perf_spec_probe(const struct event_spec *spec, int32_t pid, uint64_t frequency)
{
	uint64_t most = max_rate(), wanted = perf_frequency(frequency, most);
	unsigned int *cpus = NULL;
	int nr = perf_cpus_list("online", &cpus), r = nr < 0 ? nr : -ENOENT;

	/* Cores may be of several kinds. */
	for (int i = 0; i < nr && (r == -ENOENT || r == -ENODEV); i++)
		r = probe_cpu(spec, pid, most && wanted > most ? most : wanted, cpus[i]);
	free(cpus);
	if (r >= 0 && perf_rate_check(spec, 1, wanted, most, NULL) < 0)
		return -ERANGE;
	return r;
}

/* The first event that is there. Rights and the like are told of later, by opening it. */
static int choose_default(const struct driver_config *config, struct event_spec *out,
			  const char **why, struct base_err *err)
{
	const char *const hardware = "cycles", *const clock = "cpu-clock";
	int r = event_parse_slots(&hardware, 1, NULL, out, err);

	if (r >= 0)
		r = perf_spec_probe(out, config->pid, config->frequency);
	else if (r != -DCPI_EUSAGE)
		return r;
	if (r >= 0 || !(r == -DCPI_EUSAGE || means_no_event(r) || r == -EINVAL))
		return 1;
	if (err)
		*err = (struct base_err){ 0 };
	*why = " (no hardware cycles here)";
	return event_parse_slots(&clock, 1, NULL, out, err);
}

int perf_specs_choose(const struct driver_config *config, struct event_spec *out, const char **why,
		      struct base_err *err)
{
	*why = "";
	if (config->nr_slots)
		return event_parse_slots(config->slots, config->nr_slots, NULL, out, err);
	return choose_default(config, out, why, err);
}

int perf_config_check(const struct driver_config *config, struct base_err *err)
{
	size_t pages = config->ring_pages;

	if (config->frequency > PERF_FREQUENCY_MAX)
		return base_fail(err, -DCPI_EUSAGE, "frequency %" PRIu64 " is above %d",
				 config->frequency, PERF_FREQUENCY_MAX);
	if (pages & (pages - 1) || pages > PERF_RING_PAGES_MAX)
		return base_fail(err, -DCPI_EUSAGE,
				 "ring of %zu pages: not a power of two up to %d", pages,
				 PERF_RING_PAGES_MAX);
	return 0;
}

/* For the tick alone nobody reads counters each second: that would wake idle CPUs. */
static bool has_perf_event(const struct perf_sampler *s)
{
	for (size_t i = 0; i < s->d->nr_events; i++) {
		if (!s->specs[i].tick)
			return true;
	}
	return false;
}

static void announce(struct perf_sampler *s)
{
	for (size_t i = 0; i < s->d->nr_events; i++) {
		struct driver_event *e = &s->d->events[i];

		snprintf(e->name, sizeof(e->name), "%s", s->specs[i].name);
		e->enabled = 1;
		s->periods[i] = e->period = perf_spec_period(&s->specs[i], s->frequency);
		if (s->turn.draws && e->period)
			e->period = perf_period_mean(e->period,
						     least_period(&s->specs[i], s->max_rate));
	}
}

static void take_config(struct perf_sampler *s, const struct driver_config *config,
			const struct event_spec *specs, size_t nr, const int *programs)
{
	for (size_t i = 0; i < nr; i++) {
		s->specs[i] = specs[i];
		s->programs[i] = programs ? programs[i] : -1;
		while (specs[i].slots >> s->turn.nr_slots)
			s->turn.nr_slots++;
	}
	s->d->nr_events = nr;
	s->in_kernel = programs != NULL;
	s->max_rate = max_rate();
	s->frequency = perf_frequency(config->frequency, s->max_rate);
	s->ring_usual = !config->ring_pages;
	s->ring_len = (config->ring_pages ? config->ring_pages : PERF_RING_PAGES) *
		      (size_t)sysconf(_SC_PAGESIZE);
	s->pid = config->pid > 0 ? config->pid : -1;
	s->features = PERF_USE_ALL;
	s->turn.draws = !config->fixed_period && has_perf_event(s);
	s->turn.slot_ns = (config->slot_ms ? config->slot_ms : PERF_SLOT_MS) * 1000000ull;
	/* Early in a boot there is nothing random yet: the time must do. */
	if (getrandom(&s->turn.random, sizeof(s->turn.random), GRND_NONBLOCK) < 0)
		s->turn.random = base_now_ns();
	announce(s);
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

static int list_cpus(struct perf_sampler *s)
{
	size_t nr_events = s->d->nr_events;
	unsigned int *cpus = NULL;
	int r = perf_cpus_list("possible", &cpus);

	if (r < 0)
		return r;
	s->cpus = calloc((size_t)r, sizeof(*s->cpus));
	s->events = calloc((size_t)r * nr_events, sizeof(*s->events));
	if (s->cpus && s->events) {
		s->nr_cpus = (size_t)r;
		for (size_t i = 0; i < s->nr_cpus; i++)
			perf_cpu_init(&s->cpus[i], cpus[i], s->events + i * nr_events, nr_events);
		r = perf_order_init(&s->order, s->nr_cpus + 1);
	} else {
		r = -ENOMEM;
	}
	free(cpus);
	return r;
}

/* Rings of the usual size are more than a user may lock who has other programs that sample. */
static bool take_less(struct perf_sampler *s, int error)
{
	if (!s->ring_usual || (error != -EPERM && error != -ENOMEM) ||
	    s->ring_len <= PERF_RING_PAGES_LEAST * (size_t)sysconf(_SC_PAGESIZE))
		return false;
	s->ring_len /= 2;
	return true;
}

static int open_cpus(struct perf_sampler *s, struct base_err *err)
{
	bool mapping = false;
	int failed = -1, r;

	while ((r = perf_sampler_open_online(s, &failed, &mapping)) < 0 && mapping &&
	       take_less(s, r)) {
		for (size_t i = 0; i < s->nr_cpus; i++)
			perf_cpu_close(&s->cpus[i], s->d->nr_events);
	}
	return r < 0 ? open_failed(s, failed < 0 ? NULL : &s->specs[failed], r, mapping, err) : 0;
}

int perf_sampler_poll_fd(const struct perf_sampler *s)
{
	return s->epoll_fd;
}

int perf_sampler_poll_add(struct perf_sampler *s, int fd, bool woken)
{
	struct epoll_event e = { .events = EPOLLIN | (woken ? EPOLLET : 0), .data.ptr = NULL };

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int open_polling(struct perf_sampler *s)
{
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return s->timer_fd < 0 ? -errno : perf_sampler_poll_add(s, s->timer_fd, false);
}

/* The kernel would take such an event, and no sample of it would come into a ring. */
static int refuse_traces(const struct event_spec *specs, size_t nr, struct base_err *err)
{
	for (size_t i = 0; i < nr; i++) {
		if (specs[i].hardware != EVENT_HW_SPE)
			continue;
		base_fail(err, -DCPI_EUSAGE,
			  "cannot sample '%s' live: its samples go into a trace of its own",
			  specs[i].name);
		base_hint(err, "'perf record' writes that trace, 'dcpid -replay' reads it");
		return -DCPI_EUSAGE;
	}
	return 0;
}

int perf_sampler_open(struct perf_sampler *s, struct driver *d, const struct driver_config *config,
		      const struct event_spec *specs, size_t nr, const int *programs,
		      const char *why, struct base_err *err)
{
	int r = perf_config_check(config, err);

	if (r >= 0)
		r = refuse_traces(specs, nr, err);
	if (r < 0)
		return r;
	s->d = d;
	s->why = config->frequency && !why[0] ? perf_rate_unused(specs, nr) : why;
	s->epoll_fd = s->timer_fd = -1;
	take_config(s, config, specs, nr, programs);
	r = perf_rate_check(specs, nr, s->frequency, s->max_rate, err);
	if (r < 0)
		return r;
	r = open_polling(s);
	if (r >= 0)
		r = list_cpus(s);
	if (r < 0)
		return base_fail_errno(err, r, "cannot sample");
	r = open_cpus(s, err);
	if (r >= 0)
		perf_sampler_describe(s);
	return r;
}
