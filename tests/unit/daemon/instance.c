/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts that say which life of a pid they are of, where events were lost. */
#include <unistd.h>

#include "follow_internal.h"
#include "stand_ins.h"

enum { SOON_NS = 10000000 };

static struct trial t;

static int setup(void **state)
{
	(void)state;
	trial_open(&t);
	t.time_ns = 1000000000;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(t.store.account.stored, trial_sum(&t));
	trial_close(&t);
	return 0;
}

static uint64_t instance_of(uint64_t start_ns, unsigned int execs)
{
	return start_ns / DRIVER_INSTANCE_UNIT + execs * DRIVER_INSTANCE_EXEC;
}

static void count(int32_t pid, uint64_t instance)
{
	const struct driver_count c = { .first_ns = ++t.time_ns,
					.time_ns = t.time_ns,
					.instance = instance,
					.pid = pid,
					.tid = pid,
					.mode = DRIVER_USER,
					.addr = 0x1000,
					.count = 1 };

	assert_int_equal(counts_count(&t.counts, &c), 0);
}

static void executes(int32_t pid, const char *path, uint8_t id)
{
	t.time_ns += SOON_NS;
	trial_event(&t, DRIVER_LOAD_EXEC, pid, 0);
	trial_mmap(&t, pid, 0x1000, 0x1000, 0, path, id);
}

/* Process 5, which has executed four programs, has a child 10 now; when. */
static uint64_t fork_of_known(void)
{
	executes(5, "/bin/sh", 9);
	count(5, instance_of(1000, 4));
	t.time_ns += SOON_NS;
	trial_event(&t, DRIVER_LOAD_FORK, 10, 5);
	return t.time_ns;
}

static void nothing_lost(void **state)
{
	uint64_t start;

	(void)state;
	start = fork_of_known();
	count(10, instance_of(start, 4));
	executes(10, "/bin/a", 1);
	count(10, instance_of(start, 5));
	executes(10, "/bin/b", 2);
	executes(10, "/bin/c", 3);
	count(10, instance_of(start, 7));
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	t.time_ns += SOON_NS;
	trial_event(&t, DRIVER_LOAD_FORK, 10, 5);
	start = t.time_ns;
	executes(10, "/bin/d", 4);
	count(10, instance_of(start, 5));
	assert_int_equal(trial_count(&t, "/bin/sh", 0), 2);
	assert_int_equal(trial_count(&t, "/bin/a", 0), 1);
	assert_int_equal(trial_count(&t, "/bin/c", 0), 1);
	assert_int_equal(trial_count(&t, "/bin/d", 0), 1);
}

/* Its parent is older than what anybody told. */
static void first_count_tells(void **state)
{
	(void)state;
	executes(10, "/bin/a", 1);
	count(10, instance_of(77, 3));
	executes(10, "/bin/b", 2);
	count(10, instance_of(77, 4));
	assert_int_equal(trial_count(&t, "/bin/a", 0), 1);
	assert_int_equal(trial_count(&t, "/bin/b", 0), 1);
}

static void lost_exec(void **state)
{
	(void)state;
	executes(10, "/bin/a", 1);
	count(10, instance_of(77, 3));
	count(10, instance_of(77, 4));
	assert_int_equal(trial_count(&t, "/bin/a", 0), 1);
	assert_int_equal(trial_count(&t, "unknown process", 0), 1);
	/* Events tell again. */
	executes(10, "/bin/b", 2);
	count(10, instance_of(77, 5));
	assert_int_equal(trial_count(&t, "/bin/b", 0), 1);
}

/* The program before it had no sample that could tell. */
static void lost_exec_of_the_unsampled(void **state)
{
	uint64_t start;

	(void)state;
	start = fork_of_known();
	executes(10, "/bin/a", 1);
	count(10, instance_of(start, 6));
	assert_int_equal(trial_count(&t, "/bin/a", 0), 0);
	assert_int_equal(trial_count(&t, "unknown process", 0), 1);
}

/* Another process of that pid, that has executed as many programs. */
static void lost_exit_and_fork(void **state)
{
	uint64_t start;

	(void)state;
	start = fork_of_known();
	executes(10, "/bin/a", 1);
	count(10, instance_of(start + SOON_NS, 5));
	assert_int_equal(trial_count(&t, "/bin/a", 0), 0);
	assert_int_equal(trial_count(&t, "unknown process", 0), 1);
	t.time_ns += SOON_NS;
	trial_event(&t, DRIVER_LOAD_FORK, 11, 10);
	count(11, instance_of(t.time_ns, 5));
	assert_int_equal(trial_count(&t, "/bin/a", 0), 0);
}

/* Other sources, and events, do not tell. */
static void unannounced(void **state)
{
	(void)state;
	executes(10, "/bin/a", 1);
	count(10, 0);
	count(10, instance_of(77, 3));
	count(10, 0);
	assert_int_equal(trial_count(&t, "/bin/a", 0), 3);
}

/* A registry that came after the last count of the life before is the next one's. */
static void registry_of_the_next(void **state)
{
	uint64_t made_ns;

	(void)state;
	executes(10, "/bin/a", 1);
	count(10, instance_of(77, 3));
	assert_non_null(follow_attach(&t.follow, 10, t.time_ns));
	count(10, instance_of(77, 3));
	count(10, instance_of(77, 4));
	assert_int_equal(processes_find(t.follow.processes, 10)->attached_ns, 0);
	t.time_ns += 10;
	made_ns = t.time_ns;
	assert_non_null(follow_attach(&t.follow, 10, made_ns));
	count(10, instance_of(77, 5));
	assert_int_equal(processes_find(t.follow.processes, 10)->attached_ns, made_ns);
}

/* /proc has the instance itself, or another one. */
static void looked_for(void **state)
{
	struct process me = { .pid = getpid() }, *p;

	(void)state;
	assert_int_equal(proc_describe(&me), 0);
	t.follow.live = t.attribute.live = true;
	t.time_ns = base_now_ns();
	count(me.pid, instance_of(me.start_time_ns - 2 * SOON_NS, 1));
	p = processes_find(t.follow.processes, me.pid);
	assert_true(p->placeholder && !p->nr_maps);
	count(me.pid, instance_of(me.start_time_ns + SOON_NS / 2, 1));
	p = processes_find(t.follow.processes, me.pid);
	assert_true(!p->placeholder && p->nr_maps);
	/* It executed another program before it was listed: what is listed is that one's. */
	t.time_ns = p->known_ns - 10;
	count(me.pid, instance_of(me.start_time_ns + SOON_NS / 2, 2));
	assert_true(p->exited && p->placeholder && !p->nr_maps);
	p = processes_find(t.follow.processes, me.pid);
	assert_true(!p->placeholder && p->nr_maps);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_lost),
		TEST(first_count_tells),
		TEST(lost_exec),
		TEST(lost_exec_of_the_unsampled),
		TEST(lost_exit_and_fork),
		TEST(unannounced),
		TEST(registry_of_the_next),
		TEST(looked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
