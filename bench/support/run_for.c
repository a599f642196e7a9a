/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run_for MARK SECONDS SIGNAL PROGRAM [ARG…]: run it, end it by SIGNAL (a number) after SECONDS,
 * and print the CPU time that it and all its descendants took behind the first MARK seconds, in
 * nanoseconds, on descriptor 3. It fails where the program had ended before, or ends otherwise than
 * by that signal or with exit status 0.
 */
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long ns_of(const struct timeval *t)
{
	return t->tv_sec * 1000000000ll + t->tv_usec * 1000ll;
}

static void sleep_for(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds };

	t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
	nanosleep(&t, NULL);
}

static long long cpu_of(pid_t pid)
{
	struct timespec t = { 0 };
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
		return 0;
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* So far: the process and the children that its threads have now; of those gone by then nothing is
 * known. */
static long long cpu_so_far(pid_t pid)
{
	long long ns = cpu_of(pid);
	char pattern[64];
	glob_t lists;
	int child;

	snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/children", (int)pid);
	if (glob(pattern, GLOB_NOSORT, NULL, &lists) != 0)
		return ns;
	for (size_t i = 0; i < lists.gl_pathc; i++) {
		FILE *f = fopen(lists.gl_pathv[i], "re");

		while (f && fscanf(f, "%d", &child) == 1)
			ns += cpu_of(child);
		if (f)
			fclose(f);
	}
	globfree(&lists);
	return ns;
}

/* Left to be waited for. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid;
}

static bool ended_well(int status, int signo)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) == signo
				   : WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
	double mark, seconds;
	struct rusage used;
	long long before;
	int status, signo;
	pid_t pid;

	if (argc < 5) {
		fputs("usage: run_for MARK SECONDS SIGNAL PROGRAM [ARG…]\n", stderr);
		return 2;
	}
	mark = atof(argv[1]);
	seconds = atof(argv[2]);
	signo = atoi(argv[3]);
	pid = fork();
	if (pid == 0) {
		execvp(argv[4], argv + 4);
		perror(argv[4]);
		_exit(127);
	}
	if (pid < 0)
		return 1;
	sleep_for(mark);
	before = cpu_so_far(pid);
	sleep_for(seconds - mark);
	if (has_ended(pid)) {
		fprintf(stderr, "run_for: '%s' has ended by itself\n", argv[4]);
		return 1;
	}
	kill(pid, signo);
	while (wait4(pid, &status, 0, &used) < 0)
		if (errno != EINTR)
			return 1;
	if (!ended_well(status, signo)) {
		fprintf(stderr, "run_for: '%s' ends with wait status %#x\n", argv[4],
			(unsigned int)status);
		return 1;
	}
	if (dprintf(3, "%lld\n", ns_of(&used.ru_utime) + ns_of(&used.ru_stime) - before) < 0)
		return 1;
	return 0;
}
