/* SPDX-License-Identifier: BSD-2-Clause */
/* Real events, where this machine and user may have them: a child that forks, execs, spins, ends.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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
	struct driver_sink sink = { on_load, on_count, &s };
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

static void sink_refuses_and_nothing_is_lost(void **state)
{
	struct seen s = { .fail_after = 1 };
	struct driver_sink sink = { on_load, on_count, &s };

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
	const struct driver_sink sink = { on_load, on_count, &s };
	struct driver *saved = d;
	struct pollfd p = { .events = POLLIN };

	(void)state;
	assert_int_equal(driver_open(&config, &d, NULL), 0);
	assert_int_equal(driver_start(d, NULL), 0);
	p.fd = driver_poll_fd(d);
	for (int i = 0; i < 3; i++) {
		assert_true(spin_until_due(p.fd));
		assert_int_equal(driver_drain(d, false, &sink, NULL), 0);
		/* Another CPU may ask just now, but not again and again. */
		for (int k = 0; k < 5 && poll(&p, 1, 0) == 1; k++)
			assert_int_equal(driver_drain(d, false, &sink, NULL), 0);
		assert_int_equal(poll(&p, 1, 0), 0);
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
	const struct driver_sink sink = { on_load, on_count, &s };
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child_is_seen_in_order),
		cmocka_unit_test(sink_refuses_and_nothing_is_lost),
		cmocka_unit_test(small_rings_ask_to_be_drained),
		cmocka_unit_test(full_rings_are_accounted_for),
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
