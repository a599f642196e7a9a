/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Run a command again and again until its runs together have used some CPU time in user mode; says
 * how many they were. Little else than the command is executed meanwhile.
 *   repeat SECONDS COMMAND [ARG …]
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double run(char **argv)
{
	struct rusage used;
	int status;
	pid_t pid = vfork();

	if (pid == 0) {
		execvp(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid || status) {
		fprintf(stderr, "repeat: '%s' fails\n", argv[0]);
		exit(1);
	}
	return (double)used.ru_utime.tv_sec + 1e-6 * (double)used.ru_utime.tv_usec;
}

int main(int argc, char **argv)
{
	double wanted = argc > 2 ? atof(argv[1]) : 0, used = 0;
	int nr = 0;

	if (wanted <= 0) {
		fprintf(stderr, "usage: repeat SECONDS COMMAND [ARG …]\n");
		return 2;
	}
	for (; used < wanted; nr++)
		used += run(argv + 2);
	fprintf(stderr, "%d runs, %.3f s\n", nr, used);
	return 0;
}
