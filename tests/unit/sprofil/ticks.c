/* SPDX-License-Identifier: BSD-2-Clause */
/* The machinery: every thread ticks by its own CPU time, and stops when told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "burn.h"
#include "inprocess_internal.h"

enum { NR_SLOTS = 64 };
struct count {
	_Atomic int32_t tid;
	_Atomic uint32_t nr;
	_Atomic uint64_t last_ns; /* the thread's CPU clock at its last tick */
};
static struct count counts[NR_SLOTS];
static _Atomic int nr_forked;

static struct count *slot(int32_t tid)
{
	for (int i = 0; i < NR_SLOTS; i++) {
		int32_t none = 0;

		if (atomic_load(&counts[i].tid) == tid ||
		    atomic_compare_exchange_strong(&counts[i].tid, &none, tid) || none == tid)
			return &counts[i];
	}
	abort();
}

static int32_t self(void)
{
	return (int32_t)syscall(SYS_gettid);
}

static int on_tick(void *ctx, const struct inprocess_tick *tick)
{
	struct count *count = slot(self());

	(void)ctx;
	if (!tick->pc || !tick->nr)
		abort();

	atomic_fetch_add(&count->nr, tick->nr);
	atomic_store(&count->last_ns, burn_cpu_ns());
	return 0;
}

static void on_fork(void *ctx)
{
	(void)ctx;
	atomic_fetch_add(&nr_forked, 1);
}

static const struct inprocess_client counter = { on_tick, on_fork, NULL };

/*
 * From switching on until the last tick, ticks are CPU time: what a preempted thread or a late tick
 * left out came with the next one. One is due at once; one of slack for what passes between the
 * signal and our look at the clock. After the last tick CPU time is open, by chance any amount.
 */
static void check_ticks(const struct count *count, uint64_t from_ns)
{
	double expected = (double)(count->last_ns - from_ns) / (double)inprocess_tick_ns() + 1;

	if (count->nr < 3 || count->nr < expected - 2 || count->nr > expected + 1)
		fail_msg("%u ticks for a CPU time of %.1f", count->nr, expected);
}

/* Use CPU time until the thread has seen so many ticks; a busy machine delays them. */
static void burn_ticks(uint32_t nr)
{
	for (int i = 0; i < 1000 && slot(self())->nr < nr; i++)
		burn(5000000);
}

static int reset(void **state)
{
	(void)state;
	memset(counts, 0, sizeof(counts));
	atomic_store(&nr_forked, 0);
	return 0;
}

static int off(void **state)
{
	(void)state;
	return inprocess_set(NULL, SIGPROF, NULL);
}

/* Locks are for who has all signals blocked: a tick would wait for its own thread otherwise. */
static size_t timers(void)
{
	struct inprocess_signals old;
	size_t nr;

	inprocess_signals_block(&old);
	nr = inprocess_threads_nr();
	inprocess_signals_restore(&old);
	return nr;
}

static int scan(void)
{
	struct inprocess_signals old;
	int ret;

	inprocess_signals_block(&old);
	ret = inprocess_threads_scan(true);
	inprocess_signals_restore(&old);
	return ret;
}

static void test_tick(void **state)
{
	uint64_t ns = inprocess_tick_ns();

	(void)state;
	assert_in_range(ns, 100000, 20000000);
}

static void test_self(void **state)
{
	uint64_t from = burn_cpu_ns();

	(void)state;
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	burn_ticks(40);
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	check_ticks(slot(self()), from);
}

struct work {
	uint32_t nr;
	uint64_t from;
	struct count count;
};

static void *worker(void *arg)
{
	struct work *work = arg;

	work->from = burn_cpu_ns();
	burn_ticks(work->nr);
	work->count = *slot(self());
	return NULL;
}

static int worker_c11(void *arg)
{
	worker(arg);
	return 7;
}

/*
 * How often those that count timers may try: a tick's look at the list of threads may find one that
 * has just ended, and give it a timer until the next look. By chance, not each time.
 */
enum { CHANCES = 4 };

/*
 * Main sleeps in join all the while, so nobody but their creation tells of them. Whether as many
 * timers are left as before.
 */
static bool run_later_threads(void)
{
	struct work work[3] = { { .nr = 10 }, { .nr = 30 }, { .nr = 20 } };
	size_t before, after;
	pthread_t posix[2];
	thrd_t c11;
	int result = 0;

	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	before = timers();
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&posix[i], NULL, worker, &work[i]), 0);
	assert_int_equal(thrd_create(&c11, worker_c11, &work[2]), thrd_success);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(posix[i], NULL), 0);
	assert_int_equal(thrd_join(c11, &result), thrd_success);
	assert_int_equal(result, 7);
	after = timers();
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	for (int i = 0; i < 3; i++)
		check_ticks(&work[i].count, work[i].from);
	return after == before;
}

/* What ended has given its timer back. */
static void test_later_threads(void **state)
{
	bool good = false;

	for (int i = 0; i < CHANCES && !good; i++) {
		reset(state);
		good = run_later_threads();
	}
	assert_true(good);
}

/* Threads that the table of timers looks for in one place. */
enum { PLACES = 256 };

struct parked {
	int32_t like; /* 0: any */
	_Atomic int32_t tid;
	_Atomic int go;
};

static bool is_alike(const struct parked *p)
{
	return !p->like || (p->tid - p->like) % PLACES == 0;
}

static void *park(void *arg)
{
	struct parked *p = arg;

	p->tid = (int32_t)syscall(SYS_gettid);
	while (is_alike(p) && !atomic_load(&p->go))
		usleep(1000);
	return NULL;
}

static bool park_alike(struct parked *p, int32_t like, pthread_t *out)
{
	for (int i = 0; i < 20 * PLACES; i++) {
		*p = (struct parked){ .like = like };
		assert_int_equal(pthread_create(out, NULL, park, p), 0);
		while (!atomic_load(&p->tid))
			sched_yield();
		if (is_alike(p))
			return true;
		assert_int_equal(pthread_join(*out, NULL), 0);
	}
	return false;
}

static bool end_by_turns(void)
{
	struct parked parked[3];
	pthread_t threads[3];
	size_t nr_timers = timers();
	bool good = true;
	int nr = 0;

	while (nr < 3 && park_alike(&parked[nr], nr ? parked[0].tid : 0, &threads[nr]))
		nr++;
	/* Numbers are given in turn: of 256 new threads, or some more, one fits. */
	assert_int_equal(nr, 3);
	for (int i = 0; i < nr; i++) {
		atomic_store(&parked[i].go, 1);
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		good &= timers() == nr_timers + (size_t)(nr - 1 - i);
	}
	return good;
}

static int no_count(void *ctx, const struct inprocess_tick *tick)
{
	(void)ctx;
	(void)tick;
	return 0;
}

/* One that ends leaves the others to be found. They are more than there are counts. */
static void test_threads_of_one_place(void **state)
{
	static const struct inprocess_client client = { no_count, NULL, NULL };
	bool good = false;

	(void)state;
	assert_int_equal(inprocess_set(&client, SIGPROF, NULL), 0);
	for (int i = 0; i < CHANCES && !good; i++) {
		assert_int_equal(scan(), 0);
		good = end_by_turns();
	}
	assert_true(good);
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
}

struct gate {
	_Atomic int open;
	struct work work;
};

static void *gated(void *arg)
{
	struct gate *gate = arg;

	while (!atomic_load(&gate->open))
		usleep(10000);
	return worker(&gate->work);
}

static void test_earlier_thread(void **state)
{
	struct gate gate = { .work = { .nr = 25 } };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, gated, &gate), 0);
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	atomic_store(&gate.open, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	check_ticks(&gate.work.count, gate.work.from);
}

static void test_fork(void **state)
{
	int status = -1;
	pid_t pid;

	(void)state;
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	pid = fork();
	if (!pid) {
		burn_ticks(10);
		inprocess_set(NULL, SIGPROF, NULL);
		_exit(atomic_load(&nr_forked) == 1 && slot(self())->nr >= 10 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	assert_int_equal(status, 0);
	assert_int_equal(nr_forked, 0);
}

static void *burner(void *arg)
{
	burn(40000000);
	return arg;
}

static bool burn_in_thread(void)
{
	pthread_t thread;

	return !pthread_create(&thread, NULL, burner, NULL) && !pthread_join(thread, NULL);
}

static uint32_t all_ticks(void)
{
	uint32_t nr = 0;

	for (int i = 0; i < NR_SLOTS; i++)
		nr += atomic_load(&counts[i].nr);
	return nr;
}

/* A client is told of children by fork alone; in others there is nothing to call it with. */
static void test_child_without_hooks(void **state)
{
	int status = -1;
	pid_t pid;

	(void)state;
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	burn_ticks(1);
	pid = _Fork();
	if (!pid) {
		uint32_t before = all_ticks();
		pid_t grandchild;

		if (!burn_in_thread() || all_ticks() != before)
			_exit(1);
		/* Its program may do what it likes with the signal: no timer of ours is there. */
		signal(SIGPROF, SIG_DFL);
		grandchild = fork();
		if (!grandchild)
			_exit(burn_in_thread() && all_ticks() == before ? 0 : 2);
		if (waitpid(grandchild, &status, 0) != grandchild || status)
			_exit(3);
		if (inprocess_set(&counter, SIGPROF, NULL))
			_exit(4);
		/* On a busy machine 40 ms of a thread may pass without one. */
		for (int i = 0; i < 50 && all_ticks() == before; i++) {
			if (!burn_in_thread())
				_exit(5);
		}
		_exit(all_ticks() == before);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(burn_in_thread());
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
}

#ifndef TEST_EMULATED /* QEMU itself fails when a program of several threads forks */
static _Atomic int nr_switched;
static _Atomic bool enough;

static void *switcher(void *arg)
{
	while (!atomic_load(&enough)) {
		inprocess_set(&counter, SIGPROF, NULL);
		inprocess_set(NULL, SIGPROF, NULL);
		atomic_fetch_add(&nr_switched, 1);
	}
	return arg;
}

static void *asker(void *arg)
{
	return inprocess_set(&counter, SIGPROF, NULL) ? NULL : arg;
}

/* Two threads of it ask at once; each may find what a thread of the parent had locked. */
static int ask_in_child(void)
{
	pthread_t thread;
	void *asked = NULL;

	if (pthread_create(&thread, NULL, asker, &asked) ||
	    inprocess_set(&counter, SIGPROF, NULL) || pthread_join(thread, &asked) || !asked)
		return 1;
	return inprocess_set(NULL, SIGPROF, NULL) ? 2 : 0;
}

/* What waits for a lock has all signals blocked: no alarm ends it. */
static int wait_or_kill(pid_t pid)
{
	int status = -1;

	for (int i = 0; i < 5000; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		usleep(1000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return status;
}

/* Another thread switches ticks on and off when it happens. */
static void test_child_of_switching(void **state)
{
	pthread_t thread;
	int status = 0;

	(void)state;
	atomic_store(&nr_switched, 0);
	atomic_store(&enough, false);
	assert_int_equal(pthread_create(&thread, NULL, switcher, NULL), 0);
	while (!atomic_load(&nr_switched))
		sched_yield();
	for (int i = 0; i < 50 && !status; i++) {
		pid_t pid = _Fork();

		if (!pid)
			_exit(ask_in_child());
		status = wait_or_kill(pid);
	}
	atomic_store(&enough, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(status, 0);
}
#endif

static int off_at_third(void *ctx, const struct inprocess_tick *tick)
{
	uint32_t *nr = ctx;

	(void)tick;
	return ++*nr == 3 ? -1 : 0;
}

static void test_switched_off_by_tick(void **state)
{
	uint32_t nr = 0;
	const struct inprocess_client client = { off_at_third, NULL, &nr };
	size_t nr_timers;

	(void)state;
	assert_int_equal(inprocess_set(&client, SIGPROF, NULL), 0);
	nr_timers = timers();
	for (int i = 0; i < 1000 && nr < 3; i++)
		burn(5000000);
	/* Its timer goes with the tick after. */
	for (int i = 0; i < 1000 && timers() == nr_timers; i++)
		burn(5000000);
	assert_int_equal(timers(), nr_timers - 1);
	assert_int_equal(nr, 3);
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	burn_ticks(5);
	assert_true(slot(self())->nr >= 5);
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
}

static _Atomic int nr_foreign;

static void foreign(int sig)
{
	(void)sig;
	atomic_fetch_add(&nr_foreign, 1);
}

static void test_disposition(void **state)
{
	struct sigaction mine, now;

	(void)state;
	memset(&mine, 0, sizeof(mine));
	mine.sa_handler = foreign;
	assert_int_equal(sigaction(SIGPROF, &mine, NULL), 0);
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	assert_int_equal(raise(SIGPROF), 0);
	assert_int_equal(nr_foreign, 1); /* handed on, not counted */
	burn_ticks(5);
	assert_int_equal(nr_foreign, 1); /* our own are not */
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	assert_int_equal(sigaction(SIGPROF, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, foreign);
	mine.sa_handler = SIG_DFL;
	assert_int_equal(sigaction(SIGPROF, &mine, NULL), 0);
}

/* What the program has set meanwhile stays. */
static void test_disposition_taken(void **state)
{
	struct sigaction mine, now;

	(void)state;
	memset(&mine, 0, sizeof(mine));
	mine.sa_handler = foreign;
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	assert_int_equal(sigaction(SIGPROF, &mine, &now), 0);
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	assert_int_equal(sigaction(SIGPROF, &now, &mine), 0); /* ours, which is harmless */
	assert_ptr_equal(mine.sa_handler, foreign);
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	burn_ticks(3);
	assert_true(slot(self())->nr >= 3);
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	assert_int_equal(sigaction(SIGPROF, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, SIG_DFL);
}

/* It may go back to the default when profiling is off, to which the next tick would be the end. */
static void test_taken_and_reset(void **state)
{
	(void)state;
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	assert_true(signal(SIGPROF, foreign) != SIG_ERR);
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	assert_ptr_equal(signal(SIGPROF, SIG_DFL), foreign);
	reset(state);
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	burn_ticks(3);
	assert_true(slot(self())->nr >= 3);
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	assert_ptr_equal(signal(SIGPROF, SIG_DFL), SIG_DFL);
}

static void check_taken_and_left(bool off_between)
{
	void *none = NULL;

	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	assert_true(signal(SIGPROF, foreign) != SIG_ERR);
	if (off_between)
		assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	reset(&none);
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	burn_ticks(3);
	assert_true(slot(self())->nr >= 3);
	atomic_store(&nr_foreign, 0);
	assert_int_equal(raise(SIGPROF), 0);
	assert_int_equal(nr_foreign, 1);
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	assert_ptr_equal(signal(SIGPROF, SIG_DFL), foreign);
}

static void test_taken_and_left(void **state)
{
	(void)state;
	check_taken_and_left(true);
	check_taken_and_left(false);
}

static struct sigaction chained;

static void chaining(int sig, siginfo_t *info, void *context)
{
	atomic_fetch_add(&nr_foreign, 1);
	chained.sa_sigaction(sig, info, context);
}

/* A handler over ours that hands on to it, and ours over that one again: not for ever. */
static void test_chaining_handler(void **state)
{
	struct sigaction mine, now;
	sigset_t tick;

	(void)state;
	memset(&mine, 0, sizeof(mine));
	mine.sa_sigaction = chaining;
	mine.sa_flags = SA_SIGINFO;
	sigemptyset(&tick);
	sigaddset(&tick, SIGPROF);
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	/* The handler is there before @chained is written. */
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &tick, NULL), 0);
	assert_int_equal(sigaction(SIGPROF, &mine, &chained), 0);
	assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &tick, NULL), 0);
	burn_ticks(3);
	assert_true(slot(self())->nr >= 3);
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	reset(state);
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	for (int i = 1; i <= 3; i++) {
		atomic_store(&nr_foreign, 0);
		assert_int_equal(raise(SIGPROF), 0);
		assert_int_equal(nr_foreign, 1);
		burn_ticks((uint32_t)i);
		assert_true(slot(self())->nr >= (uint32_t)i);
	}
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	assert_int_equal(sigaction(SIGPROF, NULL, &now), 0);
	assert_ptr_equal(now.sa_sigaction, chaining);
	assert_true(signal(SIGPROF, SIG_DFL) != SIG_ERR);
}

/* One that leaves by a jump is called the next time too. */
static jmp_buf out;

static void jumping(int sig)
{
	(void)sig;
	atomic_fetch_add(&nr_foreign, 1);
	siglongjmp(out, 1);
}

static void test_jumping_handler(void **state)
{
	(void)state;
	atomic_store(&nr_foreign, 0);
	assert_true(signal(SIGPROF, jumping) != SIG_ERR);
	assert_int_equal(inprocess_set(&counter, SIGPROF, NULL), 0);
	for (volatile int i = 1; i <= 3; i++) {
		if (!sigsetjmp(out, 1))
			raise(SIGPROF);
		assert_int_equal(nr_foreign, i);
	}
	assert_int_equal(inprocess_set(NULL, SIGPROF, NULL), 0);
	assert_ptr_equal(signal(SIGPROF, SIG_DFL), jumping);
}

/* A call that fails, while a thread has a timer still that a tick has switched off. */
static int fail_beside_a_timer(void)
{
	struct gate gate = { .work = { .nr = 1 } };
	struct rlimit none = { 0, 0 };
	uint32_t nr = 0;
	const struct inprocess_client client = { off_at_third, NULL, &nr };
	pthread_t thread;

	if (inprocess_set(&client, SIGPROF, NULL) || pthread_create(&thread, NULL, gated, &gate))
		return 1;
	/* It has its timer before the third tick of this one. */
	for (int i = 0; i < 5000 && timers() < 2; i++)
		usleep(1000);
	for (int i = 0; i < 1000 && (nr < 3 || timers() > 1); i++)
		burn(5000000);
	if (timers() != 1 || setrlimit(RLIMIT_SIGPENDING, &none))
		return 2;
	if (inprocess_set(&counter, SIGPROF, NULL) != -EAGAIN || timers())
		return 3;
	atomic_store(&gate.open, 1);
	burn(60000000);
	return 0;
}

static void test_failed_beside_a_timer(void **state)
{
	int status = -1;

	(void)state;
	/* The one that waits may meet a tick too, by chance. */
	for (int i = 0; i < CHANCES && status && !WIFSIGNALED(status); i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(fail_beside_a_timer());
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	assert_int_equal(status, 0);
}

static void test_default_disposition(void **state)
{
	int status = -1;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		inprocess_set(&counter, SIGPROF, NULL);
		raise(SIGPROF);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tick, reset, off),
		cmocka_unit_test_setup_teardown(test_self, reset, off),
		cmocka_unit_test_setup_teardown(test_later_threads, reset, off),
		cmocka_unit_test_setup_teardown(test_threads_of_one_place, reset, off),
		cmocka_unit_test_setup_teardown(test_earlier_thread, reset, off),
		cmocka_unit_test_setup_teardown(test_fork, reset, off),
		cmocka_unit_test_setup_teardown(test_switched_off_by_tick, reset, off),
		cmocka_unit_test_setup_teardown(test_disposition, reset, off),
		cmocka_unit_test_setup_teardown(test_disposition_taken, reset, off),
		cmocka_unit_test_setup_teardown(test_child_without_hooks, reset, off),
#ifndef TEST_EMULATED
		cmocka_unit_test_setup_teardown(test_child_of_switching, reset, off),
#endif
		cmocka_unit_test_setup_teardown(test_taken_and_reset, reset, off),
		cmocka_unit_test_setup_teardown(test_taken_and_left, reset, off),
		cmocka_unit_test_setup_teardown(test_chaining_handler, reset, off),
		cmocka_unit_test_setup_teardown(test_jumping_handler, reset, off),
		cmocka_unit_test_setup_teardown(test_failed_beside_a_timer, reset, off),
		cmocka_unit_test_setup_teardown(test_default_disposition, reset, off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
