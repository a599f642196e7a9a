/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mix N: work for tests/system/perfdata.sh: routines of known names, new pages, threads, children
 * that go on after their fork, and children that execute this program anew.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sum;

static __attribute__((noinline)) void mix_add(long n)
{
	for (long i = 0; i < n; i++)
		sum += (unsigned long)i;
}

static __attribute__((noinline)) void mix_multiply(long n)
{
	for (long i = 0; i < n; i++)
		sum ^= (unsigned long)i * 7;
}

static __attribute__((noinline)) void mix_touch(size_t len)
{
	char *pages = malloc(len);

	for (size_t i = 0; pages && i < len; i += 4096)
		((volatile char *)pages)[i] = 1;
	free(pages);
}

static __attribute__((noinline)) void mix_child(long n)
{
	for (long i = 0; i < n; i++)
		sum -= (unsigned long)i;
}

static void *mix_thread(void *arg)
{
	mix_multiply((long)(size_t)arg);
	return NULL;
}

static void spawn(const char *self, long round)
{
	pid_t child = fork();

	if (child == 0) {
		mix_child(2000000);
		if (round % 2 == 0)
			execl(self, self, "-once", (char *)NULL);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "-once")) {
		mix_multiply(2000000);
		return 0;
	}
	for (long i = 0; i < atol(argv[1]); i++) {
		int r = pthread_create(&thread, NULL, mix_thread, (void *)(size_t)2000000);

		mix_add(6000000);
		mix_touch(1 << 20);
		if (r == 0)
			pthread_join(thread, NULL);
		spawn(argv[0], i);
	}
	return 0;
}
