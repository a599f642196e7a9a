/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork_load SECONDS: as many programs started as the machine can, one after the other in a process
 * for each CPU. Prints how many.
 */
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t work(double end)
{
	char *args[] = { (char *)"/bin/true", NULL };
	uint64_t nr = 0;
	pid_t pid;

	for (; now() < end; nr++) {
		if (posix_spawn(&pid, args[0], NULL, NULL, args, environ) != 0)
			return nr;
		waitpid(pid, NULL, 0);
	}
	return nr;
}

int main(int argc, char **argv)
{
	long nr = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t *done, sum = 0;
	double end;

	if (argc < 2 || nr < 1) {
		fputs("usage: fork_load SECONDS\n", stderr);
		return 2;
	}
	done = mmap(NULL, (size_t)nr * sizeof(*done), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (done == MAP_FAILED)
		return 1;
	end = now() + atof(argv[1]);
	for (long i = 0; i < nr; i++)
		if (fork() == 0) {
			done[i] = work(end);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	for (long i = 0; i < nr; i++)
		sum += done[i];
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
