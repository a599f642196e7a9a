/* SPDX-License-Identifier: BSD-2-Clause */
/* Real events, where this machine and user may have them: a child that forks, execs, spins, ends.
 */
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver.h"
#include "work.h"

struct seen {
	int32_t child;
	uint64_t counts, child_user, last_ns, disorder;
	int step; /* 1 fork, 2 exec, 3 mapping, 4 exit: each only behind the one before */
	bool exe_id;
	int fail_after; /* refuse after so many counts; 0: never */
};

static struct driver *d;

static void see_time(struct seen *s, uint64_t time_ns)
{
	s->disorder += time_ns < s->last_ns;
	s->last_ns = time_ns;
}

static int on_load(void *ctx, const struct driver_load *l)
{
	struct seen *s = ctx;

	if (l->kind != DRIVER_LOAD_LOST)
		see_time(s, l->time_ns);
	if (l->pid != s->child)
		return 0;
	if (l->kind == DRIVER_LOAD_FORK && s->step == 0 && l->ppid == getpid())
		s->step = 1;
	if (l->kind == DRIVER_LOAD_EXEC && s->step == 1 && !strncmp(l->path, "unit_driver", 11))
		s->step = 2;
	if (l->kind == DRIVER_LOAD_MMAP && s->step == 2 && strstr(l->path, "unit_driver")) {
		s->step = 3;
		s->exe_id = l->id.len || l->inode;
	}
	if (l->kind == DRIVER_LOAD_EXIT && s->step == 3)
		s->step = 4;
	return 0;
}

static int on_count(void *ctx, const struct driver_count *c)
{
	struct seen *s = ctx;

	see_time(s, c->time_ns);
	s->counts += c->count;
	s->child_user += c->pid == s->child && c->mode == DRIVER_USER;
	return s->fail_after && s->counts >= (uint64_t)s->fail_after ? -1 : 0;
}

/* What "unit_… spin" does: CPU time, not wall time, for the machine may be busy. */
static void spin(int ms)
{
	struct work w = { 0 };
	volatile unsigned int work = 0;

	while (work_ms(&w) < ms) {
		for (int i = 0; i < 100000; i++)
			work = work + 1;
	}
}

static uint64_t ms_of(const struct rusage *used)
{
	return (uint64_t)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000 +
	       (uint64_t)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) / 1000;
}

/* Wait for a child that ends well: the milliseconds of CPU time that it had. */
static uint64_t wait_for(pid_t pid)
{
	struct rusage used;
	int status = -1;

	assert_true(pid > 0);
	assert_int_equal(wait4(pid, &status, 0, &used), pid);
	assert_int_equal(status, 0);
	return ms_of(&used);
}

/* The samples at 1000 Hz that @ms of CPU time may have at most: periods are up to 4 % shorter, and
 * it is by chance which ends fall into one. */
static uint64_t most_in(uint64_t ms)
{
	return ms + ms / 5 + 20;
}

static pid_t start_spinner(void)
{
	char self[4096] = { 0 };
	pid_t pid;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return -1;
	pid = fork();

	if (!pid) {
		execl(self, "unit_driver_perf_live", "spin", (char *)NULL);
		_exit(1);
	}
	return pid;
}

static void check_law(const struct seen *s, uint64_t held)
{
	struct driver_stats st;

	driver_stats_get(d, &st);
	assert_int_equal(st.held, held);
	assert_int_equal(st.received[0], s->counts + st.held + st.lost_ring + st.lost_bad);
	assert_int_equal(st.lost_bad, 0);
	assert_int_equal(st.lost_load, 0);
}

static void child_is_seen_in_order(void **state)
{
	struct seen s = { 0 };
	struct driver_sink sink = { .load = on_load, .count = on_count, .ctx = &s };
	struct driver_stats st;
	uint64_t ms;

	(void)state;
	assert_false(driver_is_recorded(d));
	assert_int_equal(driver_recorded_utc(d), -1);
	assert_int_equal(driver_start(d, NULL), 0);
	s.child = start_spinner();
	ms = wait_for(s.child);
	assert_int_equal(driver_drain(d, false, &sink, NULL), 0);
	driver_stats_get(d, &st);
	check_law(&s, st.held);
	assert_int_equal(driver_drain(d, true, &sink, NULL), 0);
	check_law(&s, 0);
	driver_stop(d);
	assert_int_equal(driver_drain(d, true, &sink, NULL), 0);
	check_law(&s, 0);
	assert_int_equal(s.step, 4);
	assert_true(s.exe_id);
	assert_int_equal(s.disorder, 0);
	/* 0.3 s at 1000 Hz, and while the machine stood still none. */
	assert_in_range(s.child_user, 100, most_in(ms));
}

/* Clocks that were stopped stand still; their CPUs are not gone for that. */
static void a_stop_leaves_the_cpus_where_they_are(void **state)
{
	struct seen s = { 0 };
	struct driver_sink sink = { .load = on_load, .count = on_count, .ctx = &s };
	char before[512];

	(void)state;
	assert_int_equal(driver_start(d, NULL), 0);
	spin(10);
	driver_stop(d);
	assert_int_equal(driver_drain(d, true, &sink, NULL), 0);
	snprintf(before, sizeof(before), "%s", driver_describe(d));
	usleep(30000);
	assert_int_equal(driver_drain(d, true, &sink, NULL), 0);
	assert_string_equal(driver_describe(d), before);
	assert_int_equal(driver_start(d, NULL), 0);
	spin(10);
	driver_stop(d);
	s.counts = 0;
	assert_int_equal(driver_drain(d, true, &sink, NULL), 0);
	assert_true(s.counts > 0);
}

static void sink_refuses_and_nothing_is_lost(void **state)
{
	struct seen s = { .fail_after = 1 };
	struct driver_sink sink = { .load = on_load, .count = on_count, .ctx = &s };

	(void)state;
	assert_int_equal(driver_start(d, NULL), 0);
	spin(50);
	driver_stop(d);
	assert_int_equal(driver_drain(d, true, &sink, NULL), -1);
	assert_int_equal(s.counts, 1);
	s.fail_after = 0;
	s.counts = 0;
	assert_int_equal(driver_drain(d, true, &sink, NULL), 0);
	assert_true(s.counts > 0);
}

/* Spin until @fd is readable, at most a minute of CPU time. */
static bool spin_until_due(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	clock_t end = clock() + 60 * CLOCKS_PER_SEC;

	while (clock() < end) {
		if (poll(&p, 1, 0) == 1)
			return true;
	}
	return false;
}

static void small_rings_ask_to_be_drained(void **state)
{
	const struct driver_config config = { .source = "perf",
					      .slots = (const char *const[]){ "cpu-clock" },
					      .nr_slots = 1,
					      .ring_pages = 1 };
	struct seen s = { 0 };
	const struct driver_sink sink = { .load = on_load, .count = on_count, .ctx = &s };
	struct driver *saved = d;
	struct pollfd p = { .events = POLLIN };
	int due = 1;

	(void)state;
	assert_int_equal(driver_open(&config, &d, NULL), 0);
	assert_int_equal(driver_start(d, NULL), 0);
	p.fd = driver_poll_fd(d);
	for (int i = 0; i < 3; i++) {
		assert_true(spin_until_due(p.fd));
		assert_int_equal(driver_drain(d, false, &sink, NULL), 0);
		/* Another CPU may ask just now, some more than once: but not for ever. */
		for (int k = 0; k < 5000 && (due = poll(&p, 1, 0)) == 1; k++) {
			assert_int_equal(driver_drain(d, false, &sink, NULL), 0);
			usleep(500);
		}
		assert_int_equal(due, 0);
	}
	driver_close(d);
	d = saved;
}

/* A ring far too small: what does not fit is counted by the kernel, to the sample. */
static void full_rings_are_accounted_for(void **state)
{
	const struct driver_config config = {
		.source = "perf",
		.slots = (const char *const[]){ "cpu-clock" },
		.nr_slots = 1,
		.ring_pages = 1,
		.frequency = 2000,
	};
	struct seen s = { 0 };
	const struct driver_sink sink = { .load = on_load, .count = on_count, .ctx = &s };
	struct driver_stats st;
	struct driver *saved = d;

	(void)state;
	assert_int_equal(driver_open(&config, &d, NULL), 0);
	assert_int_equal(driver_start(d, NULL), 0);
	for (int i = 0; i < 2; i++) {
		spin(150);
		assert_int_equal(driver_drain(d, true, &sink, NULL), 0);
	}
	driver_stop(d);
	assert_int_equal(driver_drain(d, true, &sink, NULL), 0);
	driver_stats_get(d, &st);
	assert_true(st.lost_ring > 0);
	assert_int_equal(st.lost_bad + st.held, 0);
	assert_int_equal(st.received[0], s.counts + st.lost_ring);
	/* 0.3 s of spinning on some CPU at 2000 Hz, by periods up to 4 % longer. */
	assert_true(st.received[0] + st.missed[0] >= 560);
	driver_close(d);
	d = saved;
}

/* ---- several events, slots, periods, one process --------------------------------------------- */

struct tally {
	uint64_t counts[DRIVER_NR_EVENTS];
	int32_t pid; /* whose distances of samples are noted */
	uint64_t at[1000];
	size_t nr_at;
	uint64_t others, kernel; /* samples of others than pid, in other modes than the user's */
	uint64_t loads_of_others;
	uint64_t least_ns, most_ns; /* on the clock, while it counted: at the least, and the most */
	uint64_t ms;		    /* of CPU time that we had */
};

static int tally_load(void *ctx, const struct driver_load *l)
{
	struct tally *t = ctx;

	t->loads_of_others += l->pid != t->pid && l->kind != DRIVER_LOAD_LOST;
	return 0;
}

static int tally_count(void *ctx, const struct driver_count *c)
{
	struct tally *t = ctx;

	t->counts[c->event] += c->count;
	t->others += c->pid != t->pid;
	t->kernel += c->mode != DRIVER_USER;
	if (c->pid == t->pid && t->nr_at < 1000)
		t->at[t->nr_at++] = c->time_ns;
	return 0;
}

/* Fresh memory, so that there are page faults: 256 or so. */
static void fault(void)
{
	const size_t len = 1 << 20;
	void *fresh = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(fresh != MAP_FAILED);
	memset(fresh, 1, len);
	munmap(fresh, len);
}

/* As the linker names what stands in for ioctl(2), and the true one. */
int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __real_ioctl(int fd, unsigned long request, void *arg);

static bool was_disabled[1024]; /* by descriptor, since a source was started */
static size_t nr_disabled;

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	assert_in_range(fd, 0, sizeof(was_disabled) - 1);
	if (request == PERF_EVENT_IOC_DISABLE && !was_disabled[fd]) {
		was_disabled[fd] = true;
		nr_disabled++;
	}
	return __real_ioctl(fd, request, arg);
}

static size_t nr_disabled_at_stop; /* before that */

typedef bool (*enough_fn)(struct driver *own, const struct tally *t);

/* Spin for 100 ms, and until there is enough: as long as that takes, but not for ever. */
static void work_until(struct driver *own, struct tally *t, enough_fn enough)
{
	const struct driver_sink sink = { .load = tally_load, .count = tally_count, .ctx = t };
	struct pollfd p = { .fd = driver_poll_fd(own), .events = POLLIN };
	struct work w = { 0 };

	while (work_ms(&w) < 100 || (!enough(own, t) && work_ms(&w) < 20000)) {
		spin(2);
		fault();
		/* What @enough looks at is as of the last drain. */
		if (poll(&p, 1, 0) == 1 || work_ms(&w) >= 100)
			assert_int_equal(driver_drain(own, false, &sink, NULL), 0);
	}
}

/* Start @own, work until @enough, drain by its descriptor; close it after @look. */
static void with_source(const struct driver_config *config, struct tally *t, enough_fn enough,
			void (*look)(struct driver *own, const struct tally *t))
{
	const struct driver_sink sink = { .load = tally_load, .count = tally_count, .ctx = t };
	struct rusage before, after;
	struct driver *own;
	uint64_t began_ns;

	assert_int_equal(driver_open(config, &own, NULL), 0);
	getrusage(RUSAGE_SELF, &before);
	began_ns = base_now_ns();
	assert_int_equal(driver_start(own, NULL), 0);
	memset(was_disabled, 0, sizeof(was_disabled));
	nr_disabled = 0;
	t->least_ns = base_now_ns();
	work_until(own, t, enough);
	nr_disabled_at_stop = nr_disabled;
	t->least_ns = base_now_ns() - t->least_ns;
	driver_stop(own);
	t->most_ns = base_now_ns() - began_ns;
	getrusage(RUSAGE_SELF, &after);
	t->ms = ms_of(&after) - ms_of(&before);
	assert_int_equal(driver_drain(own, true, &sink, NULL), 0);
	look(own, t);
	driver_close(own);
}

/* The law, event by event: nothing of one counts as another's. */
static void check_each(struct driver *own, const struct tally *t)
{
	struct driver_stats st;

	driver_stats_get(own, &st);
	assert_int_equal(st.lost_ring + st.lost_bad + st.held + st.lost_load, 0);
	for (size_t i = 0; i < driver_nr_events(own); i++) {
		assert_true(t->counts[i] > 0);
		assert_int_equal(st.received[i], t->counts[i]);
	}
}

static double enabled(const struct driver *own, size_t event)
{
	return driver_event_get(own, event)->enabled;
}

/* A CPU that was slow to begin is ever less of the time; one that has turns stays where it is. */
static bool all_the_time(struct driver *own, const struct tally *t)
{
	return t->counts[0] >= 50 && t->counts[1] > 0 && t->counts[2] >= 100 &&
	       enabled(own, 0) > 0.97 && enabled(own, 1) > 0.97 && enabled(own, 2) > 0.97;
}

static void look_together(struct driver *own, const struct tally *t)
{
	static const char *const names[] = { "cpu-clock", "page-faults", "task-clock" };

	assert_int_equal(driver_nr_events(own), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(driver_event_get(own, i)->name, names[i]);
		assert_true(enabled(own, i) > 0.95);
	}
	assert_int_equal(driver_event_get(own, 0)->period, 1000000);
	assert_int_equal(driver_event_get(own, 1)->period, 40);
	assert_int_equal(driver_event_get(own, 2)->period, 500000);
	check_each(own, t);
	assert_true(t->counts[0] >= 50);
	assert_true(t->counts[2] >= 100);
}

static void events_of_a_slot_count_together(void **state)
{
	const struct driver_config config = {
		.source = "perf",
		.slots = (const char *const[]){ "cpu-clock+page-faults:40+task-clock:500000" },
		.nr_slots = 1,
	};
	struct tally t = { 0 };

	(void)state;
	with_source(&config, &t, all_the_time, look_together);
}

static bool is_about(double value, double about, double aside)
{
	return value > about - aside && value < about + aside;
}

/* Where the machine stood still, one of them had a long turn; with time that evens out. */
static bool half_the_time(struct driver *own, const struct tally *t)
{
	return t->counts[0] > 50 && t->counts[1] > 50 && is_about(enabled(own, 0), 0.5, 0.13) &&
	       is_about(enabled(own, 1), 0.5, 0.13) &&
	       is_about(enabled(own, 0) + enabled(own, 1), 0.99, 0.009);
}

static void look_in_turn(struct driver *own, const struct tally *t)
{
	double sum = 0, part, due, sampled;
	struct driver_stats st;

	check_each(own, t);
	driver_stats_get(own, &st);
	for (size_t i = 0; i < 2; i++) {
		part = enabled(own, i);
		sum += part;
		assert_true(is_about(part, 0.5, 0.15));
		/* Due was what its own turns held, by periods up to 4 % beside 1 ms. */
		due = (double)sysconf(_SC_NPROCESSORS_ONLN) * part / 1e6;
		sampled = (double)(st.received[i] + st.missed[i]);
		assert_true(sampled > due * (double)t->least_ns * 0.94 - 10);
		assert_true(sampled < due * (double)t->most_ns * 1.06 + 10);
	}
	/* One or the other, but for what lies between two calls of the kernel. */
	assert_true(sum > 0.98 && sum < 1.001);
}

static void slots_take_turns(void **state)
{
	const struct driver_config config = {
		.source = "perf",
		.slots = (const char *const[]){ "cpu-clock", "task-clock" },
		.nr_slots = 2,
		.slot_ms = 20,
	};
	struct tally t = { 0 };

	(void)state;
	with_source(&config, &t, half_the_time, look_in_turn);
}

static bool pairs_in_turn(struct driver *own, const struct tally *t)
{
	return nr_disabled >= 2 * (size_t)sysconf(_SC_NPROCESSORS_ONLN) && t->counts[0] &&
	       t->counts[1] && t->counts[2] && is_about(enabled(own, 0), 0.5, 0.13) &&
	       enabled(own, 1) > 0.985 && is_about(enabled(own, 2), 0.5, 0.13);
}

static void look_at_pairs(struct driver *own, const struct tally *t)
{
	static const double parts[] = { 0.5, 1, 0.5 };

	check_each(own, t);
	assert_int_equal(driver_nr_events(own), 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(is_about(enabled(own, i), parts[i], 0.15));
	/* Of three events on each CPU only two are ever off: not even for the moment of a turn. */
	assert_int_equal(nr_disabled_at_stop, 2 * sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(enabled(own, 1) > 0.98); /* starting takes a moment */
	assert_string_equal(driver_event_get(own, 1)->name, "page-faults");
	assert_non_null(strstr(driver_describe(own), "cpu-clock at 1000 Hz + page-faults each 40, "
						     "page-faults each 40 + task-clock at 1000 Hz "
						     "on "));
}

/* As DCPI's cycles and retires, then retires and bmiss: to compare each pair by itself. */
static void an_event_of_all_slots_goes_on(void **state)
{
	const struct driver_config config = {
		.source = "perf",
		.slots = (const char *const[]){ "cpu-clock+page-faults:40",
						"page-faults:40+task-clock" },
		.nr_slots = 2,
		.slot_ms = 20,
	};
	struct tally t = { 0 };

	(void)state;
	with_source(&config, &t, pairs_in_turn, look_at_pairs);
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/*
 * The distances of samples, as parts per thousand of 2 ms: how many. One timer made them all, as we
 * keep to one CPU; where another program had that CPU, several periods went by.
 */
static size_t distances(const struct tally *t, int64_t *of)
{
	size_t nr = 0;

	for (size_t i = 1; i < t->nr_at; i++) {
		uint64_t gap = t->at[i] - t->at[i - 1], periods = (gap + 1000000) / 2000000;

		if (periods > 0 && periods < 10)
			of[nr++] = (int64_t)(gap / periods / 2000);
	}
	return nr;
}

static bool enough_distances(struct driver *own, const struct tally *t)
{
	int64_t of[1000];

	(void)own;
	return t->nr_at == 1000 || distances(t, of) >= 40;
}

static void look_fixed(struct driver *own, const struct tally *t)
{
	int64_t of[1000];
	size_t nr = distances(t, of);

	(void)own;
	assert_true(nr > 20);
	qsort(of, nr, sizeof(*of), compare);
	assert_in_range(of[nr / 2], 995, 1005);
}

/* 1 to 4 % beside the nominal period, which is what is told: one time above, another below. */
static void look_drawn(struct driver *own, const struct tally *t)
{
	int64_t of[1000];
	size_t nr = distances(t, of);

	assert_int_equal(driver_event_get(own, 0)->period, 2000000);
	assert_true(nr > 20);
	for (size_t i = 0; i < nr; i++)
		of[i] = of[i] < 1000 ? 1000 - of[i] : of[i] - 1000;
	qsort(of, nr, sizeof(*of), compare);
	assert_in_range(of[nr / 2], 6, 45);
}

static void periods_are_drawn_or_fixed(void **state)
{
	struct driver_config config = { .source = "perf",
					.slots = (const char *const[]){ "cpu-clock:2000000" },
					.nr_slots = 1,
					.fixed_period = true };
	struct tally fixed = { .pid = getpid() }, drawn = fixed;
	cpu_set_t old, one;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(old), &old), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	with_source(&config, &fixed, enough_distances, look_fixed);
	config.fixed_period = false;
	with_source(&config, &drawn, enough_distances, look_drawn);
	assert_int_equal(sched_setaffinity(0, sizeof(old), &old), 0);
}

static bool at_once(struct driver *own, const struct tally *t)
{
	(void)own;
	(void)t;
	return true;
}

static void look_alone(struct driver *own, const struct tally *t)
{
	struct driver_stats st;

	check_each(own, t);
	driver_stats_get(own, &st);
	assert_int_equal(st.missed[0], 0);
	assert_int_equal(t->others + t->kernel + t->loads_of_others, 0);
	assert_in_range(t->counts[0], 20, most_in(t->ms));
	assert_non_null(strstr(driver_describe(own), "of process "));
}

/* Ourselves; the other spins at the same time and is not seen. */
static void one_process_can_be_seen_alone(void **state)
{
	const struct driver_config config = { .source = "perf",
					      .slots = (const char *const[]){ "cpu-clock" },
					      .nr_slots = 1,
					      .pid = getpid() };
	struct tally t = { .pid = getpid() };
	pid_t other = start_spinner();

	(void)state;
	assert_true(other > 0);
	with_source(&config, &t, at_once, look_alone);
	wait_for(other);
}

static void look_child(struct driver *own, const struct tally *t, uint64_t ms)
{
	struct driver_stats st;

	driver_stats_get(own, &st);
	assert_int_equal(st.received[0], t->counts[0]);
	/* The child's, 300 ms of it, beside our own. */
	assert_in_range(t->others, 100, most_in(ms));
}

static void its_later_children_are_seen_too(void **state)
{
	const struct driver_config config = { .source = "perf",
					      .slots = (const char *const[]){ "cpu-clock" },
					      .nr_slots = 1,
					      .pid = getpid() };
	struct tally t = { .pid = getpid() };
	const struct driver_sink sink = { .load = tally_load, .count = tally_count, .ctx = &t };
	struct driver *own;
	uint64_t ms;

	(void)state;
	assert_int_equal(driver_open(&config, &own, NULL), 0);
	assert_int_equal(driver_start(own, NULL), 0);
	ms = wait_for(start_spinner());
	driver_stop(own);
	assert_int_equal(driver_drain(own, true, &sink, NULL), 0);
	look_child(own, &t, ms);
	assert_true(t.loads_of_others > 3); /* fork, exec, mappings, exit */
	driver_close(own);
}

static void a_process_that_is_not_there_is_said_so(void **state)
{
	struct driver_config config = { .source = "perf",
					.slots = (const char *const[]){ "cpu-clock" },
					.nr_slots = 1 };
	struct base_err err = { 0 };
	struct driver *own;
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	config.pid = child;
	assert_int_equal(driver_open(&config, &own, &err), -DCPI_ENOEVENTS);
	assert_non_null(strstr(err.text, "of process "));
	assert_non_null(strstr(err.hint, "it has ended"));
}

/* Descriptors run out half way: an error that says how many are needed, and nothing stays open. */
static void too_few_descriptors_are_said_so(void **state)
{
	const struct driver_config config = {
		.source = "perf",
		.slots = (const char *const[]){ "cpu-clock+task-clock+page-faults" },
		.nr_slots = 1
	};
	struct base_err err = { 0 };
	struct rlimit old, few;
	struct driver *own;
	int next = dup(0), after;

	(void)state;
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = (struct rlimit){ (rlim_t)next + 5, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(driver_open(&config, &own, &err), -DCPI_ENOEVENTS);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_non_null(strstr(err.text, "Too many open files"));
	assert_non_null(strstr(err.hint, "4 open files for each CPU are needed"));
	after = dup(0);
	close(after);
	assert_int_equal(after, next);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child_is_seen_in_order),
		cmocka_unit_test(a_stop_leaves_the_cpus_where_they_are),
		cmocka_unit_test(sink_refuses_and_nothing_is_lost),
		cmocka_unit_test(small_rings_ask_to_be_drained),
		cmocka_unit_test(full_rings_are_accounted_for),
		cmocka_unit_test(events_of_a_slot_count_together),
		cmocka_unit_test(slots_take_turns),
		cmocka_unit_test(an_event_of_all_slots_goes_on),
		cmocka_unit_test(periods_are_drawn_or_fixed),
		cmocka_unit_test(one_process_can_be_seen_alone),
		cmocka_unit_test(its_later_children_are_seen_too),
		cmocka_unit_test(a_process_that_is_not_there_is_said_so),
		cmocka_unit_test(too_few_descriptors_are_said_so),
	};
	struct base_err err = { 0 };
	int r;

	if (argc > 1 && !strcmp(argv[1], "spin")) {
		spin(300);
		return 0;
	}
	r = driver_open(&(struct driver_config){ .source = "perf" }, &d, &err);
	if (r == -DCPI_ENOEVENTS) {
		base_err_print(&err, "skipped", stdout);
		return BASE_EXIT_SKIP;
	}
	if (r < 0)
		return 1;
	printf("%s\n", driver_describe(d));
	r = cmocka_run_group_tests(tests, NULL, NULL);
	driver_close(d);
	return r;
}
