/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exec_twice PROCESSES ITERATIONS SECONDS PROGRAM…: as many processes, two at a time, each of which
 * executes two of the programs (spin_slot), chosen by chance, with ITERATIONS on the average. They
 * share four pids, which are used over and over (clone3 with set_tid, as root), and end after
 * SECONDS at the latest. Times of the programs go to standard output; how many processes there were
 * and how often a pid was reused, to standard error.
 */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NR_PIDS = 4, AT_ONCE = 2 };

/* The highest pids there can be: nobody has come so far. */
static pid_t first_pid(void)
{
	FILE *f = fopen("/proc/sys/kernel/pid_max", "r");
	int max = 0;

	if (!f || fscanf(f, "%d", &max) != 1)
		max = 32768;
	if (f)
		fclose(f);
	return max - 1 - NR_PIDS;
}

static pid_t fork_as(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD,
				   .set_tid = (uintptr_t)&pid,
				   .set_tid_size = 1 };

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void run(char **programs, int nr, const long *chance, unsigned long iterations)
{
	char first[32], second[32], log[] = "1";
	char *argv[6];

	snprintf(first, sizeof(first), "%lu",
		 iterations / 2 + (unsigned long)chance[0] % iterations);
	snprintf(second, sizeof(second), "%lu",
		 iterations / 2 + (unsigned long)chance[1] % iterations);
	argv[0] = programs[chance[2] % nr];
	argv[1] = log;
	argv[2] = first;
	argv[3] = programs[chance[3] % nr];
	argv[4] = second;
	argv[5] = NULL;
	execv(argv[0], argv);
	_exit(127);
}

static time_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

int main(int argc, char **argv)
{
	int wanted = argc > 4 ? atoi(argv[1]) : 0, begun = 0, running = 0, failed = 0;
	unsigned long iterations = argc > 4 ? strtoul(argv[2], NULL, 10) : 0;
	time_t end = seconds() + (argc > 4 ? atoi(argv[3]) : 0);
	pid_t base = first_pid(), slots[NR_PIDS] = { 0 };
	int next = 0, nr_taken = 0;

	if (wanted <= 0 || !iterations)
		return fprintf(stderr,
			       "usage: exec_twice PROCESSES ITERATIONS SECONDS PROGRAM...\n"),
		       2;
	while (running || (begun < wanted && seconds() < end)) {
		while (running < AT_ONCE && begun < wanted && seconds() < end) {
			long chance[4] = { random(), random(), random(), random() };
			pid_t pid;

			while (slots[next % NR_PIDS])
				next++;
			pid = fork_as(base + next % NR_PIDS);
			if (pid == 0)
				run(argv + 4, argc - 4, chance, iterations);
			/* Somebody else was just given it. */
			if (pid < 0 && errno == EEXIST && nr_taken++ < 1000) {
				next++;
				continue;
			}
			if (pid < 0)
				return perror("exec_twice: clone3"), 1;
			slots[next++ % NR_PIDS] = pid;
			begun++;
			running++;
		}
		int status;
		pid_t pid = wait(&status);

		if (pid < 0)
			return perror("exec_twice: wait"), 1;
		failed += status != 0;
		slots[pid - base] = 0;
		running--;
	}
	fprintf(stderr, "processes %d reused %d\n", begun, begun - NR_PIDS);
	return failed ? fprintf(stderr, "exec_twice: %d processes failed\n", failed), 1 : 0;
}
