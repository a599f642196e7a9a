/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * named NS NAME…: a thread for each name (a thread's own), which computes for NS nanoseconds of CPU
 * time, a part of them in libc and in the kernel. Prints "NAME NS" for each, as its own clock says.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

static uint64_t wanted_ns;

struct one {
	const char *name;
	uint64_t spent_ns;
	pthread_t thread;
};

static uint64_t spent(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static volatile uint64_t sink;

static void compute(void)
{
	char text[4096];
	struct stat st;

	for (uint64_t i = 0; i < 20000; i++)
		sink += i * i;
	memset(text, (int)sink, sizeof(text));
	sink += strnlen(text, sizeof(text));
	for (int i = 0; i < 20; i++)
		sink += (uint64_t)stat("/proc/self/status", &st);
}

static void *run(void *arg)
{
	struct one *o = arg;

	prctl(PR_SET_NAME, o->name);
	while (spent() < wanted_ns)
		compute();
	o->spent_ns = spent();
	return NULL;
}

int main(int argc, char **argv)
{
	struct one all[16] = { 0 };
	int nr = argc - 2;

	if (argc < 3 || nr > 16)
		return 2;
	wanted_ns = strtoull(argv[1], NULL, 10);
	for (int i = 0; i < nr; i++) {
		all[i].name = argv[2 + i];
		if (pthread_create(&all[i].thread, NULL, run, &all[i]) != 0)
			return 1;
	}
	for (int i = 0; i < nr; i++) {
		pthread_join(all[i].thread, NULL);
		printf("%s %llu\n", all[i].name, (unsigned long long)all[i].spent_ns);
	}
	return 0;
}
