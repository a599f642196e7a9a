/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * single_step STEPS: a child is single-stepped by ptrace, both on one CPU, where that is cheapest.
 * Prints nanoseconds a step.
 */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void stay_here(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static _Noreturn void be_stepped(void)
{
	volatile unsigned int work = 0;

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	for (;;)
		work++;
}

int main(int argc, char **argv)
{
	long steps = argc == 2 ? atol(argv[1]) : 0;
	uint64_t begun;
	int status = 0;
	pid_t pid;

	if (steps <= 0) {
		fputs("usage: single_step STEPS\n", stderr);
		return 2;
	}
	stay_here();
	pid = fork();
	if (pid == 0)
		be_stepped();
	waitpid(pid, &status, 0);
	begun = now_ns();
	for (long i = 0; i < steps && WIFSTOPPED(status); i++) {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
			break;
		waitpid(pid, &status, 0);
	}
	begun = now_ns() - begun;
	kill(pid, SIGKILL);
	if (!WIFSTOPPED(status)) {
		fputs("single_step: the child has ended\n", stderr);
		return 1;
	}
	printf("%.1f\n", (double)begun / (double)steps);
	return 0;
}
