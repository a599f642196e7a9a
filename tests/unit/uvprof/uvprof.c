/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handler runs against a second count of the same event: the records that the kernel wrote into the
 * event's ring, or the CPU clock that the timer follows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "uvprof.h"

enum { PERIOD = 1000000, RING = 8 * 4096, NR_THREADS = 16 };

static _Thread_local volatile unsigned int sink;

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void burn(unsigned int ms)
{
	uint64_t until = cpu_ns() + ms * 1000000ull;

	while (cpu_ns() < until) {
		for (int i = 0; i < 10000; i++)
			sink++;
	}
}

static void count(void *arg, void *pc, void *context)
{
	(void)context;
	if (pc)
		++*(volatile uint64_t *)arg;
}

static int start(uvprof_handler *handler, void *arg, unsigned int source)
{
	struct uvprof_request request = { handler, arg, PERIOD, UVPROF_TASK_CLOCK, source };

	return uvprof_start(&request);
}

static bool can(unsigned int source)
{
	uint64_t runs = 0;

	if (start(count, &runs, source) < 0)
		return false;
	uvprof_stop();
	return true;
}

static uint64_t records(const struct perf_event_mmap_page *ring)
{
	const char *data = (const char *)ring + 4096;
	uint64_t nr = 0;

	for (uint64_t at = 0; at < ring->data_head;) {
		const struct perf_event_header *record = (const void *)(data + at);

		nr += record->type == PERF_RECORD_SAMPLE;
		at += record->size;
	}
	return nr;
}

/* The calling thread's runs are within 1 of the event's records. */
static bool runs_are_records(void)
{
	uint64_t runs = 0, before, samples;
	struct uvprof_counts counts;
	void *ring;

	if (start(count, &runs, UVPROF_PERF) < 0)
		return false;
	uvprof_read(&counts);
	ring = mmap(NULL, 4096 + RING, PROT_READ, MAP_SHARED, counts.fd, 0);
	if (ring == MAP_FAILED)
		return false;
	before = *(volatile uint64_t *)&runs;
	burn(16);
	uvprof_stop();
	uvprof_read(&counts);
	samples = records(ring);
	munmap(ring, 4096 + RING);
	return samples > 5 && counts.runs == runs && runs - before + 1 >= samples &&
	       runs - before <= samples + 1;
}

static void perf_runs_are_samples(void **state)
{
	(void)state;
	if (!can(UVPROF_PERF))
		skip();
	assert_true(runs_are_records());
}

struct tick {
	uint64_t runs, missed, at;
};

static void at_tick(void *arg, void *pc, void *context)
{
	struct uvprof_counts counts;
	struct tick *tick = arg;

	(void)pc;
	(void)context;
	uvprof_read(&counts);
	tick->at = cpu_ns();
	tick->missed = counts.missed;
	tick->runs++;
}

/*
 * Every expiration of the timer is a run or missed. At each run, their sum is the CPU time so far
 * in periods, however late the scheduler's tick is that looks at the timer.
 */
static bool runs_are_ticks(void)
{
	uint64_t from = cpu_ns(), used, seen;
	struct uvprof_counts counts;
	struct tick tick = { 0 };

	if (start(at_tick, &tick, UVPROF_TIMER) < 0)
		return false;
	do
		burn(16);
	while (!*(volatile uint64_t *)&tick.runs);
	uvprof_stop();
	uvprof_read(&counts);
	used = (tick.at - from) / PERIOD;
	seen = tick.runs + tick.missed;
	return tick.runs && counts.runs == tick.runs && seen <= used + 1 && seen + 1 >= used;
}

static void timer_runs_are_ticks(void **state)
{
	(void)state;
	assert_true(runs_are_ticks());
}

static void *one_thread(void *perf)
{
	return (void *)(uintptr_t)(perf ? runs_are_records() : runs_are_ticks());
}

static void threads_of(bool perf)
{
	pthread_t threads[NR_THREADS];
	void *good;

	for (int i = 0; i < NR_THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, one_thread, perf ? threads : NULL), 0);
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_join(threads[i], &good);
		assert_non_null(good);
	}
}

static void each_thread(void **state)
{
	(void)state;
	if (can(UVPROF_PERF))
		threads_of(true);
	threads_of(false);
}

static sigjmp_buf out;

static void jump(void *arg, void *pc, void *context)
{
	(void)pc;
	(void)context;
	++*(volatile uint64_t *)arg;
	siglongjmp(out, 1);
}

/* siglongjmp restores the mask, so the next interrupt comes too. */
static void longjmp_leaves(void **state)
{
	(void)state;
	for (unsigned int source = UVPROF_PERF; source <= UVPROF_TIMER; source++) {
		volatile uint64_t runs = 0;

		if (!can(source))
			continue;
		sigsetjmp(out, 1);
		if (runs == 0)
			assert_int_equal(start(jump, (void *)&runs, source), 0);
		while (runs < 3)
			burn(1);
		uvprof_stop();
		assert_true(runs >= 3);
	}
}

static jmp_buf plain;

static void jump_masked(void *arg, void *pc, void *context)
{
	(void)pc;
	(void)context;
	++*(volatile uint64_t *)arg;
	longjmp(plain, 1);
}

/* longjmp leaves the signal blocked: no run more until the program unblocks it. */
static void longjmp_blocks(void **state)
{
	(void)state;
	for (unsigned int source = UVPROF_PERF; source <= UVPROF_TIMER; source++) {
		volatile uint64_t runs = 0;
		struct uvprof_counts counts;
		sigset_t mask;

		if (!can(source))
			continue;
		if (setjmp(plain) == 0) {
			assert_int_equal(start(jump_masked, (void *)&runs, source), 0);
			for (;;)
				burn(1);
		}
		burn(20);
		assert_int_equal(runs, 1);
		sigemptyset(&mask);
		sigaddset(&mask, SIGTRAP);
		sigaddset(&mask, SIGPROF);
		if (setjmp(plain) == 0) {
			pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
			for (;;)
				burn(1);
		}
		uvprof_stop();
		pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
		uvprof_read(&counts);
		assert_int_equal(runs, 2);
		assert_int_equal(counts.runs, 2);
		/* The second was waiting, so its pc is where the signal was unblocked. */
		assert_int_equal(counts.late, source == UVPROF_PERF);
	}
}

/* An interrupt that was pending when its start was stopped is none of the next start. */
static void pending_at_stop(void **state)
{
	(void)state;
	for (unsigned int source = UVPROF_PERF; source <= UVPROF_TIMER; source++) {
		uint64_t old = 0, runs = 0;
		struct uvprof_request rare = { count, &runs, 1000 * (uint64_t)PERIOD * PERIOD,
					       UVPROF_TASK_CLOCK, source };
		struct uvprof_counts counts;
		sigset_t mask, pending;

		if (!can(source))
			continue;
		sigemptyset(&mask);
		sigaddset(&mask, SIGTRAP);
		sigaddset(&mask, SIGPROF);
		pthread_sigmask(SIG_BLOCK, &mask, NULL);
		assert_int_equal(start(count, &old, source), 0);
		do {
			burn(1);
			sigpending(&pending);
		} while (!sigismember(&pending, SIGTRAP) && !sigismember(&pending, SIGPROF));
		uvprof_stop();
		assert_int_equal(uvprof_start(&rare), 0);
		pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
		burn(1);
		uvprof_read(&counts);
		uvprof_stop();
		assert_int_equal(old, 0);
		assert_int_equal(runs, 0);
		assert_int_equal(counts.runs + counts.late + counts.missed, 0);
	}
}

struct naps {
	volatile uint64_t runs, moved;
	uint64_t cpu_ns;
};

static volatile uint64_t steps;
static volatile bool enough;

static void *step(void *arg)
{
	while (!enough)
		steps++;
	return arg;
}

static void nap(void *arg, void *pc, void *context)
{
	struct timespec ts = { 0, 2000000 };
	struct naps *naps = arg;
	uint64_t from = cpu_ns(), before = steps;

	(void)pc;
	(void)context;
	nanosleep(&ts, NULL);
	naps->moved += steps != before;
	naps->cpu_ns += cpu_ns() - from;
	naps->runs++;
}

/* A handler that blocks uses no CPU time, and stops its own thread alone. */
static void blocking(void **state)
{
	struct naps naps = { 0 };
	pthread_t other;

	(void)state;
	assert_int_equal(pthread_create(&other, NULL, step, NULL), 0);
	assert_int_equal(start(nap, &naps, UVPROF_ANY), 0);
	/* On a busy machine the other thread may get no CPU during the first ones. */
	for (int i = 0; i < 5000 && (naps.runs < 3 || !naps.moved); i++)
		burn(1);
	uvprof_stop();
	enough = true;
	pthread_join(other, NULL);
	assert_true(naps.moved > 0);
	assert_true(naps.cpu_ns < naps.runs * 1000000);
}

static void crash(void *arg, void *pc, void *context)
{
	(void)arg;
	(void)pc;
	(void)context;
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

/* A crash in the handler is the program's own, with its own signal. */
static void crashing(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		start(crash, NULL, UVPROF_ANY);
		burn(1000);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

/* A child begins without; its parent goes on, and a child may start one of its own. */
static void forks(void **state)
{
	uint64_t runs = 0, mine = 0, before;
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(start(count, &runs, UVPROF_ANY), 0);
	child = fork();
	if (child == 0) {
		before = runs;
		burn(20);
		if (runs != before || start(count, &mine, UVPROF_ANY) < 0)
			_exit(1);
		while (!*(volatile uint64_t *)&mine)
			burn(1);
		uvprof_stop();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	before = runs;
	while (*(volatile uint64_t *)&runs == before)
		burn(1);
	uvprof_stop();
}

static volatile sig_atomic_t others;

static void other(int sig)
{
	(void)sig;
	others++;
}

static void other_told(int sig, siginfo_t *info, void *context)
{
	others += info->si_signo == sig && info->si_pid == getpid() && context;
}

/* The status of a child that has @action for both signals, starts, and raises them itself. */
static int raise_own(const struct sigaction *action)
{
	uint64_t runs = 0;
	pid_t child = fork();
	int status = -1;

	if (child != 0) {
		assert_int_equal(waitpid(child, &status, 0), child);
		return status;
	}
	sigaction(SIGPROF, action, NULL);
	sigaction(SIGTRAP, action, NULL);
	for (unsigned int source = UVPROF_PERF; source <= UVPROF_TIMER; source++) {
		bool runs_here = start(count, &runs, source) == 0;

		raise(SIGPROF);
		raise(SIGTRAP);
		runs = 0;
		while (runs_here && !*(volatile uint64_t *)&runs)
			burn(1);
		uvprof_stop();
	}
	_exit(others == 4 ? 0 : 1);
}

/* Signals of the program's own reach the handlers that it had. The first test of all: the library's
 * own are for the life of a process. */
static void own_signals(void **state)
{
	struct sigaction plain_one = { .sa_handler = other }, none = { .sa_handler = SIG_DFL };
	struct sigaction told = { .sa_sigaction = other_told, .sa_flags = SA_SIGINFO };

	(void)state;
	assert_int_equal(raise_own(&plain_one), 0);
	assert_int_equal(raise_own(&told), 0);
	/* The end of the first signal that the library took. */
	assert_int_equal(raise_own(&none), SIGPROF);
}

static uint64_t from_handler;
static volatile sig_atomic_t failed;

static void begin_or_end(int sig)
{
	struct uvprof_counts counts;

	uvprof_read(&counts);
	if (sig == SIGUSR1)
		failed |= start(count, &from_handler, UVPROF_ANY) < 0;
	else
		uvprof_stop();
}

/* A program's own signal handler begins and ends. */
static void in_signal_handlers(void **state)
{
	struct sigaction action = { .sa_handler = begin_or_end };
	uint64_t runs;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
	for (int i = 0; i < 3; i++) {
		raise(SIGUSR1);
		assert_false(failed);
		from_handler = 0;
		while (*(volatile uint64_t *)&from_handler < 2)
			burn(1);
		raise(SIGUSR2);
		runs = from_handler;
		burn(10);
		assert_int_equal(from_handler, runs);
	}
}

static sigjmp_buf early;

static void leave(void *arg, void *pc, void *context)
{
	(void)pc;
	(void)context;
	/* The next one may come before this one has left: it returns, or they would fill the stack.
	 */
	if (++*(volatile uint64_t *)arg == 1)
		siglongjmp(early, 1);
}

/* A first run that comes as soon as signals are let in again, before uvprof_start has returned, may
 * leave it for good. */
static void first_run_leaves(void **state)
{
	static volatile uint64_t runs;
	struct uvprof_request request = { leave, (void *)&runs, 100000, UVPROF_TASK_CLOCK,
					  UVPROF_ANY };

	(void)state;
	for (volatile int i = 0; i < 20; i++) {
		runs = 0;
		if (sigsetjmp(early, 1) == 0) {
			assert_int_equal(uvprof_start(&request), 0);
			while (runs == 0)
				burn(1);
		}
		uvprof_stop();
	}
}

/* What a program of 16 threads computes, with signals and children of its own. */
static uint64_t computed[NR_THREADS];

static void *compute(void *arg)
{
	uint64_t *sum = arg, v = (uint64_t)(sum - computed) + 1;

	for (int i = 0; i < 200000; i++) {
		v = v * 6364136223846793005u + 1442695040888963407u;
		*sum ^= v >> 7;
		if (i % 50000 == 0)
			raise(SIGUSR1);
	}
	return NULL;
}

static void *compute_sampled(void *arg)
{
	uint64_t runs = 0;
	struct uvprof_request request = { count, &runs, 50000, UVPROF_TASK_CLOCK, UVPROF_ANY };
	bool good = uvprof_start(&request) == 0;

	do
		compute(arg);
	while (good && !*(volatile uint64_t *)&runs && !(*(uint64_t *)arg = 0));
	uvprof_stop();
	return good && runs ? NULL : arg;
}

static int program(void *(*thread)(void *arg), uint64_t results[NR_THREADS])
{
	pthread_t threads[NR_THREADS];
	int status = 0, children = 0, bad = 0;
	void *failure;

	memset(computed, 0, sizeof(computed));
	others = 0;
	signal(SIGUSR1, other);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, thread, &computed[i]);
	for (; children < 4; children++) {
		pid_t child = fork();

		if (child == 0)
			_exit(children);
		bad += waitpid(child, &status, 0) != child || WEXITSTATUS(status) != children;
	}
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_join(threads[i], &failure);
		bad += failure != NULL;
	}
	memcpy(results, computed, sizeof(computed));
	return bad;
}

/* A program with threads, forks and signals of its own works as without. */
static void program_as_without(void **state)
{
	uint64_t without[NR_THREADS], with[NR_THREADS];
	int signals;

	(void)state;
	assert_int_equal(program(compute, without), 0);
	signals = others > 0;
	assert_int_equal(program(compute_sampled, with), 0);
	assert_memory_equal(without, with, sizeof(with));
	assert_true(signals && others > 0);
}

/*
 * From here on the kernel answers system call @nr with EACCES where its second argument is @second
 * (0: whatever it is). An emulator that has no filters has no perf events either.
 */
static void refuse(unsigned int nr, unsigned int second)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, second ? 1 : 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Whatever the kernel refuses of an event, the timer takes its place; or the error is told. */
static void refused_events(void **state)
{
	static const unsigned int calls[][2] = { { SYS_perf_event_open, 0 },
						 { SYS_ioctl, PERF_EVENT_IOC_ENABLE } };

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int status, dup_of_next = dup(0);
		pid_t child = fork();

		if (child == 0) {
			uint64_t runs = 0;
			struct uvprof_counts counts;

			refuse(calls[i][0], calls[i][1]);
			if (start(count, &runs, UVPROF_PERF) == 0 ||
			    start(count, &runs, UVPROF_ANY) < 0)
				_exit(1);
			while (!*(volatile uint64_t *)&runs)
				burn(1);
			uvprof_read(&counts);
			uvprof_stop();
			/* No descriptor of a refused event is left behind. */
			_exit(counts.source == UVPROF_TIMER && dup(0) == dup_of_next + 1 ? 0 : 2);
		}
		close(dup_of_next);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

static void refusals(void **state)
{
	struct uvprof_request request = { count, NULL, PERIOD, 99, UVPROF_ANY };
	uint64_t runs = 0;

	(void)state;
	assert_int_equal(uvprof_start(NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(uvprof_start(&request), -1);
	assert_int_equal(errno, EINVAL);
	request.event = UVPROF_INSTRUCTIONS;
	request.source = UVPROF_TIMER;
	assert_int_equal(uvprof_start(&request), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(start(count, &runs, UVPROF_ANY), 0);
	assert_int_equal(start(count, &runs, UVPROF_ANY), -1);
	assert_int_equal(errno, EBUSY);
	uvprof_stop();
	uvprof_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_signals),
		cmocka_unit_test(perf_runs_are_samples),
		cmocka_unit_test(timer_runs_are_ticks),
		cmocka_unit_test(each_thread),
		cmocka_unit_test(longjmp_leaves),
		cmocka_unit_test(longjmp_blocks),
		cmocka_unit_test(pending_at_stop),
		cmocka_unit_test(blocking),
		cmocka_unit_test(crashing),
		cmocka_unit_test(forks),
		cmocka_unit_test(in_signal_handlers),
		cmocka_unit_test(first_run_leaves),
		cmocka_unit_test(program_as_without),
		cmocka_unit_test(refused_events),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
