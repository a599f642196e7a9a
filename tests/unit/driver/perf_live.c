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
	clock_t end = clock() + CLOCKS_PER_SEC / 1000 * ms;
	volatile unsigned int work = 0;

	while (clock() < end) {
		for (int i = 0; i < 100000; i++)
			work = work + 1;
	}
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
	struct driver_sink sink = { on_load, on_count, NULL, &s };
	struct driver_stats st;
	int status;

	(void)state;
	assert_false(driver_is_recorded(d));
	assert_int_equal(driver_recorded_utc(d), -1);
	assert_int_equal(driver_start(d, NULL), 0);
	s.child = start_spinner();
	assert_true(s.child > 0);
	assert_int_equal(waitpid(s.child, &status, 0), s.child);
	assert_int_equal(status, 0);
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
	/* 0.3 s at 1000 Hz, with much room for a slow host. */
	assert_in_range(s.child_user, 100, 400);
}

/* Clocks that were stopped stand still; their CPUs are not gone for that. */
static void a_stop_leaves_the_cpus_where_they_are(void **state)
{
	struct seen s = { 0 };
	struct driver_sink sink = { on_load, on_count, NULL, &s };
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
	struct driver_sink sink = { on_load, on_count, NULL, &s };

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

/* Spin until @fd is readable, at most a second of CPU time. */
static bool spin_until_due(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	clock_t end = clock() + CLOCKS_PER_SEC;

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
	const struct driver_sink sink = { on_load, on_count, NULL, &s };
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
		for (int k = 0; k < 200 && (due = poll(&p, 1, 0)) == 1; k++) {
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
	const struct driver_sink sink = { on_load, on_count, NULL, &s };
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
	/* 0.3 s of spinning on some CPU at 2000 Hz reached us, or found the ring full. */
	assert_true(st.received[0] + st.missed[0] >= 600);
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
	uint64_t wall_ns; /* while it counted */
};

static int tally_load(void *ctx, const struct driver_load *l)
{
	struct tally *t = ctx;

	t->loads_of_others += l->pid != t->pid;
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

/* Start @own, let @work_ms of spinning go by, drain by its descriptor; close it after @look. */
static void with_source(const struct driver_config *config, int work_ms, struct tally *t,
			void (*look)(struct driver *own, const struct tally *t))
{
	const struct driver_sink sink = { tally_load, tally_count, NULL, t };
	clock_t end = clock() + CLOCKS_PER_SEC / 1000 * work_ms;
	struct driver *own;
	struct pollfd p = { .events = POLLIN };

	assert_int_equal(driver_open(config, &own, NULL), 0);
	assert_int_equal(driver_start(own, NULL), 0);
	memset(was_disabled, 0, sizeof(was_disabled));
	nr_disabled = 0;
	t->wall_ns = base_now_ns();
	p.fd = driver_poll_fd(own);
	while (clock() < end) {
		spin(2);
		fault();
		if (poll(&p, 1, 0) == 1)
			assert_int_equal(driver_drain(own, false, &sink, NULL), 0);
	}
	nr_disabled_at_stop = nr_disabled;
	driver_stop(own);
	t->wall_ns = base_now_ns() - t->wall_ns;
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

static void look_together(struct driver *own, const struct tally *t)
{
	static const char *const names[] = { "cpu-clock", "page-faults", "task-clock" };

	assert_int_equal(driver_nr_events(own), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(driver_event_get(own, i)->name, names[i]);
		/* All the time, but for a CPU that was slow to begin: no share of it. */
		assert_true(driver_event_get(own, i)->enabled > 0.95);
	}
	assert_int_equal(driver_event_get(own, 0)->period, 1000000);
	assert_int_equal(driver_event_get(own, 1)->period, 40);
	assert_int_equal(driver_event_get(own, 2)->period, 500000);
	check_each(own, t);
	/* 100 ms of CPU time here at the least. */
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
	with_source(&config, 100, &t, look_together);
}

static void look_in_turn(struct driver *own, const struct tally *t)
{
	double sum = 0, part, due;
	struct driver_stats st;

	check_each(own, t);
	driver_stats_get(own, &st);
	for (size_t i = 0; i < 2; i++) {
		part = driver_event_get(own, i)->enabled;
		sum += part;
		assert_true(part > 0.35 && part < 0.65);
		/* Due was what its own turns held, by periods up to 4 % beside 1 ms. */
		due = (double)t->wall_ns / 1e6 * (double)sysconf(_SC_NPROCESSORS_ONLN) * part;
		assert_true((double)(st.received[i] + st.missed[i]) > due * 0.94 - 10);
		assert_true((double)(st.received[i] + st.missed[i]) < due * 1.06 + 10);
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
	with_source(&config, 200, &t, look_in_turn);
}

static void look_at_pairs(struct driver *own, const struct tally *t)
{
	static const double parts[] = { 0.5, 1, 0.5 };

	check_each(own, t);
	assert_int_equal(driver_nr_events(own), 3);
	for (size_t i = 0; i < 3; i++) {
		double part = driver_event_get(own, i)->enabled;

		assert_true(part > parts[i] - 0.15 && part < parts[i] + 0.15);
	}
	/* Of three events on each CPU only two are ever off: not even for the moment of a turn. */
	assert_int_equal(nr_disabled_at_stop, 2 * sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(driver_event_get(own, 1)->enabled > 0.98); /* starting takes a moment */
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
	with_source(&config, 200, &t, look_at_pairs);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * The middle one of the distances of samples, as parts per thousand of 2 ms. One timer made them
 * all, as we keep to one CPU; where another program had that CPU, several periods went by.
 */
static int64_t distance(const struct tally *t)
{
	uint64_t gaps[1000];
	size_t nr = 0;

	for (size_t i = 1; i < t->nr_at; i++) {
		uint64_t gap = t->at[i] - t->at[i - 1], periods = (gap + 1000000) / 2000000;

		if (periods > 0 && periods < 10)
			gaps[nr++] = gap / periods;
	}
	assert_true(nr > 20);
	qsort(gaps, nr, sizeof(*gaps), compare_times);
	return (int64_t)(gaps[nr / 2] / 2000);
}

static void look_fixed(struct driver *own, const struct tally *t)
{
	(void)own;
	assert_in_range(distance(t), 995, 1005);
}

/* 1 to 4 % beside the nominal period, which is what is told. */
static void look_drawn(struct driver *own, const struct tally *t)
{
	int64_t off = distance(t) - 1000;

	assert_int_equal(driver_event_get(own, 0)->period, 2000000);
	assert_in_range(off < 0 ? -off : off, 6, 45);
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
	with_source(&config, 100, &fixed, look_fixed);
	config.fixed_period = false;
	with_source(&config, 100, &drawn, look_drawn);
	assert_int_equal(sched_setaffinity(0, sizeof(old), &old), 0);
}

static void look_alone(struct driver *own, const struct tally *t)
{
	struct driver_stats st;

	check_each(own, t);
	driver_stats_get(own, &st);
	assert_int_equal(st.missed[0], 0);
	assert_int_equal(t->others + t->kernel + t->loads_of_others, 0);
	assert_in_range(t->counts[0], 20, 120);
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
	with_source(&config, 100, &t, look_alone);
	assert_int_equal(waitpid(other, NULL, 0), other);
}

static void look_child(struct driver *own, const struct tally *t)
{
	struct driver_stats st;

	driver_stats_get(own, &st);
	assert_int_equal(st.received[0], t->counts[0]);
	/* The child's, 300 ms of it, beside our own. */
	assert_in_range(t->others, 150, 320);
}

static void its_later_children_are_seen_too(void **state)
{
	const struct driver_config config = { .source = "perf",
					      .slots = (const char *const[]){ "cpu-clock" },
					      .nr_slots = 1,
					      .pid = getpid() };
	struct tally t = { .pid = getpid() };
	const struct driver_sink sink = { tally_load, tally_count, NULL, &t };
	struct driver *own;
	pid_t child;

	(void)state;
	assert_int_equal(driver_open(&config, &own, NULL), 0);
	assert_int_equal(driver_start(own, NULL), 0);
	child = start_spinner();
	assert_int_equal(waitpid(child, NULL, 0), child);
	driver_stop(own);
	assert_int_equal(driver_drain(own, true, &sink, NULL), 0);
	look_child(own, &t);
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
