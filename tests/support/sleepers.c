/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sleepers COUNT: so many processes that sleep until standard input is closed. Prints "sleepers
 * COUNT" when all are there.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static void sleep_on(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	long nr = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
	char c;

	if (nr < 1) {
		fputs("usage: sleepers COUNT\n", stderr);
		return 2;
	}
	for (long i = 0; i < nr; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("sleepers: fork");
			return 1;
		}
		if (pid == 0)
			sleep_on();
	}
	printf("sleepers %ld\n", nr);
	fflush(stdout);
	return read(STDIN_FILENO, &c, 1) < 0;
}
