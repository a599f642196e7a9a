/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run_for SECONDS SIGNAL PROGRAM [ARG…]: run it, end it by SIGNAL (a number) after SECONDS, and
 * print the CPU time that it and all its descendants took, in nanoseconds, on descriptor 3.
 */
#include <errno.h>
#include <signal.h>
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

int main(int argc, char **argv)
{
	struct timespec wait = { 0 };
	struct rusage used;
	double seconds;
	int status;
	pid_t pid;

	if (argc < 4) {
		fputs("usage: run_for SECONDS SIGNAL PROGRAM [ARG…]\n", stderr);
		return 2;
	}
	seconds = atof(argv[1]);
	wait.tv_sec = (time_t)seconds;
	wait.tv_nsec = (long)((seconds - (double)wait.tv_sec) * 1e9);
	pid = fork();
	if (pid == 0) {
		execvp(argv[3], argv + 3);
		perror(argv[3]);
		_exit(127);
	}
	if (pid < 0)
		return 1;
	nanosleep(&wait, NULL);
	kill(pid, atoi(argv[2]));
	while (wait4(pid, &status, 0, &used) < 0)
		if (errno != EINTR)
			return 1;
	if (dprintf(3, "%lld\n", ns_of(&used.ru_utime) + ns_of(&used.ru_stime)) < 0)
		return 1;
	return WIFEXITED(status) && WEXITSTATUS(status) == 127;
}
