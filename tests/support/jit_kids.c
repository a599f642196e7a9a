/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JIT processes by the hundred, each a program of its own:
 *
 *	jit_kids kill SEED FROM COUNT   they die by SIGKILL, the odd ones less than 2 ms after begin
 *	                                returned, the others less than 60, while every CPU is busy;
 *	                                number FROM on, whose fates SEED tells
 *	jit_kids work COUNT ROUTINES    they make so many routines, run each, and exit; prints the
 *	                                routines' CPU time, "ROUTINE SECONDS" lines
 *	jit_kids many COUNT             children of a fork that begin, run a routine, and, the even
 *	                                ones, end: how many began, ended, and in what time
 *	jit_kids live SECONDS           one, whose routines come and go: prints that likewise
 */
#include <dbgdyn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "truth_jit.h"

enum { AT_ONCE = 4 };

static unsigned char *code;
static double ran[TRUTH_SLOTS]; /* seconds */

static int die(const char *what)
{
	fprintf(stderr, "jit_kids: %s: %s\n", what, strerror(errno));
	return 1;
}

/* ---- what a process does --------------------------------------------------------------------- */

static void die_after(timer_t timer, long ns)
{
	struct itimerspec when = { .it_value = { 0, ns > 0 ? ns : 1 } };

	timer_settime(timer, 0, &when, NULL);
}

static int be_killed(uint64_t random, long ns)
{
	struct sigevent kill = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	uint64_t context;
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &kill, &timer) < 0)
		return die("timer");
	if (dbgdyn_begin("kid", 3, NULL, &context) != DBGDYN_OK)
		return die("begin");
	die_after(timer, ns);
	truth_live(context, code, "kid", 10, ran, &random);
	return die("not killed");
}

/* wait_cpu gives a worker a random phase: on a busy machine programs begin with a tick, and the
 * sampler's period is a multiple of that. It stands behind the first routine told, as what follows
 * that often takes 100 us of this clock outside the routine (seen with ASan); a routine runs 30. */
static void wait_cpu(double seconds)
{
	double end = truth_clock(CLOCK_THREAD_CPUTIME_ID) + seconds;

	while (truth_clock(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static int be_worker(uint64_t random, int routines, int to)
{
	uint64_t context;

	dbgdyn_begin("work", 4, NULL, &context);
	for (int i = 0; i < routines; i++) {
		truth_make(context, code + i * TRUTH_BLOCK, "work", i, NULL);
		if (i == 0)
			wait_cpu(1e-9 * (double)(random * 7919 % 2000003));
		ran[i] = truth_run(code + i * TRUTH_BLOCK, CLOCK_THREAD_CPUTIME_ID, 2e-5, &random);
	}
	/* Short enough to be written as one. */
	return write(to, ran, sizeof(ran)) == sizeof(ran) ? 0 : die("pipe");
}

/* ---- many of them ---------------------------------------------------------------------------- */

static pid_t start(const char *how, uint64_t random, long arg, int fd)
{
	char text[3][32];
	pid_t pid = fork();

	if (pid)
		return pid;
	snprintf(text[0], sizeof(text[0]), "%llu", (unsigned long long)random);
	snprintf(text[1], sizeof(text[1]), "%ld", arg);
	snprintf(text[2], sizeof(text[2]), "%d", fd);
	execl("/proc/self/exe", "jit_kids", how, text[0], text[1], text[2], (char *)NULL);
	_exit(die("exec"));
}

static void spin_on_all(void)
{
	for (long i = sysconf(_SC_NPROCESSORS_ONLN); i > 0; i--)
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (volatile unsigned long n = 0;; n++)
				;
		}
}

static int kill_all(uint64_t seed, long from, long count)
{
	long early = 0, killed = 0;

	spin_on_all();
	for (long i = from; i < from + count; i++) {
		uint64_t random = (seed + 1) * 1000003 + (uint64_t)i;
		long ns;
		int status;

		truth_random(&random);
		ns = (long)(truth_random(&random) % (i % 2 ? 2000000 : 60000000));
		early += ns < 2000000;
		if (waitpid(start("be_killed", random, ns, -1), &status, 0) < 0)
			return die("wait");
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	}
	printf("killed %ld early %ld\n", killed, early);
	return killed == count ? 0 : 1;
}

static int work_all(long count, int routines)
{
	double all[TRUTH_SLOTS] = { 0 }, one[TRUTH_SLOTS];
	int fds[2], running = 0, bad = 0, status;

	if (pipe(fds) < 0)
		return die("pipe");
	for (long i = 0; i < count || running;) {
		if (i < count && running < AT_ONCE) {
			running += start("be_worker", (uint64_t)++i, routines, fds[1]) > 0;
			continue;
		}
		if (wait(&status) < 0)
			return die("wait");
		running--;
		if (status || read(fds[0], one, sizeof(one)) != sizeof(one)) {
			bad++;
			continue;
		}
		for (int s = 0; s < TRUTH_SLOTS; s++)
			all[s] += one[s];
	}
	truth_print("work", all);
	return bad ? die("a worker failed") : 0;
}

/* Exit status: bit 0 where it began, bit 1 where it asked for its end. */
static int begin_and_end(long number)
{
	struct dbgdyn_options options = { .size = sizeof(options), .timeout_ms = 1 };
	uint64_t context, random = (uint64_t)number + 1;
	int r, slot = (int)(number % TRUTH_SLOTS);

	if (dbgdyn_begin("many", 4, &options, &context) != DBGDYN_OK)
		return 0;
	truth_make(context, code, "many", slot, NULL);
	truth_run(code, CLOCK_THREAD_CPUTIME_ID, 2e-5, &random);
	if (number % 2)
		return 1;
	r = dbgdyn_end(context);
	return r == DBGDYN_OK || r == DBGDYN_ETIMEDOUT ? 3 : 1;
}

static int begin_many(long count)
{
	double start = truth_clock(CLOCK_MONOTONIC);
	long begun = 0, ended = 0, bad = 0;
	int running = 0, status;

	for (long i = 0; i < count || running;) {
		if (i < count && running < AT_ONCE) {
			if (fork() == 0)
				_exit(begin_and_end(i));
			i++;
			running++;
			continue;
		}
		if (wait(&status) < 0)
			return die("wait");
		running--;
		bad += !WIFEXITED(status);
		begun += WIFEXITED(status) && WEXITSTATUS(status) & 1;
		ended += WIFEXITED(status) && WEXITSTATUS(status) & 2;
	}
	printf("begun %ld ended %ld seconds %.1f\n", begun, ended,
	       truth_clock(CLOCK_MONOTONIC) - start);
	return bad != 0;
}

static int live_one(double seconds)
{
	uint64_t context, random = 7;

	dbgdyn_begin("live", 4, NULL, &context);
	truth_live(context, code, "live", seconds, ran, &random);
	dbgdyn_end(context);
	truth_print("live", ran);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	long second = argc > 3 ? atol(argv[3]) : 0, third = argc > 4 ? atol(argv[4]) : 0;

	code = truth_map(TRUTH_BLOCKS * TRUTH_BLOCK);
	if (!code)
		return die("mmap");
	if (!strcmp(what, "kill"))
		return kill_all(number, second, third);
	if (!strcmp(what, "work"))
		return work_all((long)number, (int)second);
	if (!strcmp(what, "many"))
		return begin_many((long)number);
	if (!strcmp(what, "live"))
		return live_one(atof(argv[2]));
	if (!strcmp(what, "be_killed"))
		return be_killed(number, second);
	if (!strcmp(what, "be_worker"))
		return be_worker(number, (int)second, (int)third);
	return 2;
}
