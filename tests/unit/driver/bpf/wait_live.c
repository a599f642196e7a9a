/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits measured by the real programs: a child that sleeps, reads a pipe, waits for a mutex and
 * works, for times that its own clock tells.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "live.h"

enum { ROUNDS = 20, ROUND_NS = 20000000 };

/* By the child's own clock. */
struct truth {
	uint64_t sleep_ns, pipe_ns, lock_ns, begun_ns, ended_ns;
};

static struct truth *truth;

struct waited {
	struct seen s; /* first: on_load and on_count take it */
	int32_t pid;
	uint64_t handed, ns[DRIVER_NR_WAITS], nr_paths, nr_complete, bad;
	uint64_t drained_ns[2], nr_sleeps, nr_old; /* walked before the last drain but one */
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the child ------------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];

static void sleep_one(void)
{
	const struct timespec one = { .tv_nsec = ROUND_NS };

	nanosleep(&one, NULL);
}

static void *hold(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		sleep_one();
		if (write(ends[1], "x", 1) != 1)
			_exit(2);
	}
	sleep_one();
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void work(void)
{
	pthread_t other;
	uint64_t at = now();
	char c;

	truth->begun_ns = at;
	for (int i = 0; i < ROUNDS; i++)
		sleep_one();
	truth->sleep_ns = now() - at;
	pthread_mutex_lock(&mutex);
	if (pipe(ends) < 0 || pthread_create(&other, NULL, hold, NULL))
		_exit(3);
	at = now();
	for (int i = 0; i < ROUNDS; i++)
		if (read(ends[0], &c, 1) != 1)
			_exit(4);
	truth->pipe_ns = now() - at;
	at = now();
	pthread_mutex_lock(&mutex);
	truth->lock_ns = now() - at;
	spin(100);
	truth->ended_ns = now();
}

/* ---- what comes ------------------------------------------------------------------------------ */

static int on_path(void *ctx, const struct driver_callpath *c, const uint64_t *frames)
{
	struct waited *v = ctx;

	if (!c->wait)
		return 0;
	v->handed += c->count;
	v->bad += c->nr < 1 || frames[0] || c->first_ns > c->time_ns || !c->nr_kernel ||
		  (c->wait == DRIVER_WAIT_RUNS) != (c->event == driver_nr_sampled(d) + 1);
	if (c->pid != v->pid)
		return 0;
	v->ns[c->wait] += c->count;
	v->nr_paths += c->wait != DRIVER_WAIT_RUNS;
	v->nr_sleeps += c->wait == DRIVER_WAIT_SLEEP;
	v->nr_old += c->wait == DRIVER_WAIT_SLEEP && c->first_ns < v->drained_ns[0];
	v->nr_complete += c->wait != DRIVER_WAIT_RUNS && c->nr > c->nr_kernel;
	return 0;
}

static void drain_waits(struct waited *v, bool all)
{
	const struct driver_sink sink = {
		.load = on_load, .count = on_count, .callpath = on_path, .ctx = v
	};
	struct driver_wait_stats w;
	struct base_err err = { 0 };

	assert_true(driver_drain(d, all, &sink, &err) >= 0);
	v->drained_ns[0] = v->drained_ns[1];
	v->drained_ns[1] = now();
	driver_wait_stats_get(d, &w);
	assert_int_equal(w.received, v->handed + w.held + w.lost_full + w.lost_read);
	assert_int_equal(v->bad, 0);
}

static uint64_t sum_of(const struct waited *v)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < DRIVER_NR_WAITS; i++)
		sum += v->ns[i];
	return sum;
}

static void is_near(const char *what, uint64_t is, uint64_t truth_ns, uint64_t slack_ns)
{
	print_message("%s: %.3f ms, truth %.3f ms\n", what, (double)is / 1e6,
		      (double)truth_ns / 1e6);
	if (is + slack_ns < truth_ns || truth_ns + slack_ns < is)
		fail_msg("%s: more than %.3f ms apart", what, (double)slack_ns / 1e6);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* The main thread's own clock has its waits for a CPU too, which have a kind of their own. */
static void sums_are_the_childs(void **state)
{
	const struct driver_config config = {
		.slots = clock_event, .nr_slots = 1, .callpath_every = 40, .waits = true
	};
	static struct waited v;
	uint64_t slack, begun, ended;
	int status;

	(void)state;
	start(&config);
	begun = now();
	v.pid = fork_child();
	if (!v.pid) {
		work();
		_exit(0);
	}
	while (waitpid(v.pid, &status, WNOHANG) == 0) {
		usleep(50000);
		drain_waits(&v, true);
	}
	ended = now();
	assert_int_equal(status, 0);
	driver_stop(d);
	drain_waits(&v, true);
	for (size_t i = 1; i < DRIVER_NR_WAITS; i++)
		print_message("kind %zu: %.3f ms\n", i, (double)v.ns[i] / 1e6);
	slack = v.ns[DRIVER_WAIT_RUNNABLE] + v.ns[DRIVER_WAIT_RUNS] - (uint64_t)100 * 1000000;
	/* The other thread sleeps for each byte, and once more. */
	is_near("sleep", v.ns[DRIVER_WAIT_SLEEP],
		truth->sleep_ns + (uint64_t)(ROUNDS + 1) * ROUND_NS, slack);
	is_near("pipe", v.ns[DRIVER_WAIT_PIPE], truth->pipe_ns, slack);
	is_near("lock", v.ns[DRIVER_WAIT_LOCK], truth->lock_ns, slack);
	assert_true(v.ns[DRIVER_WAIT_RUNS] >= 95000000);
	/* Both threads' lives; the child began and ended within ours. */
	assert_true(sum_of(&v) >=
		    (truth->ended_ns - truth->begun_ns) + truth->pipe_ns + truth->lock_ns - slack);
	assert_true(sum_of(&v) <= 2 * (ended - begun));
	assert_true(v.nr_complete * 2 > v.nr_paths);
	/* A thread that sleeps again and again is walked anew for each set. */
	print_message("%llu of %llu sleeps with old paths\n", (unsigned long long)v.nr_old,
		      (unsigned long long)v.nr_sleeps);
	assert_true(v.nr_old * 4 < v.nr_sleeps);
}

static void need_call_paths(void **state)
{
	const struct driver_config config = {
		.source = "bpf", .slots = clock_event, .nr_slots = 1, .waits = true
	};
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(driver_open(&config, &d, &err), -DCPI_EUSAGE);
}

/* They have two events of their own. */
static void need_room_for_events(void **state)
{
	static const char *const slots[] = { "r1+r2+r3+r4+r5+"
					     "r6+r7+r8+r9+ra+"
					     "rb+rc+rd+re+rf" };
	const struct driver_config config = {
		.source = "bpf", .slots = slots, .nr_slots = 1, .callpath_every = 40, .waits = true
	};
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(driver_open(&config, &d, &err), -DCPI_EUSAGE);
	assert_non_null(strstr(err.text, "more than 16"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(sums_are_the_childs),
		cmocka_unit_test(need_call_paths),
		cmocka_unit_test(need_room_for_events),
	};
	int r = live_begin(argc, argv);

	if (r >= 0)
		return r;
	if (driver_callpaths_possible(NULL, NULL) < 0)
		return BASE_EXIT_SKIP;
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
