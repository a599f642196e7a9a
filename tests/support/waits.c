/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of known waits: threads that sleep, wait for a mutex, read a pipe, read a file from its
 * disk, and one that works. Each has a name and prints by its own clock how long it waited, how
 * long it ran, how long it lived and how often it left its CPU: "NAME WAITED_NS RUN_NS LIFE_NS
 * SWITCHES".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 65536, FILE_BLOCKS = 256 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t turn;
static int ends[2], rounds;
static const char *path;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void pass(long ms)
{
	const struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

static uint64_t sleeps(void)
{
	uint64_t at = now();

	for (int i = 0; i < rounds; i++)
		pass(20);
	return now() - at;
}

/* The other thread has the mutex, and gives it free after a time. */
static uint64_t locks(void)
{
	uint64_t sum = 0, at;

	for (int i = 0; i < rounds; i++) {
		pthread_barrier_wait(&turn);
		at = now();
		pthread_mutex_lock(&mutex);
		sum += now() - at;
		pthread_mutex_unlock(&mutex);
		at = now();
		pthread_barrier_wait(&turn);
		sum += now() - at;
	}
	return sum;
}

/* Barriers are futexes too. */
static uint64_t holds(void)
{
	for (int i = 0; i < rounds; i++) {
		pthread_mutex_lock(&mutex);
		pthread_barrier_wait(&turn);
		pass(20);
		pthread_mutex_unlock(&mutex);
		pthread_barrier_wait(&turn);
	}
	return 0;
}

static uint64_t reads(void)
{
	uint64_t at = now();
	char c;

	for (int i = 0; i < rounds; i++)
		if (read(ends[0], &c, 1) != 1)
			exit(1);
	return now() - at;
}

static uint64_t writes(void)
{
	for (int i = 0; i < rounds; i++) {
		pass(20);
		if (write(ends[1], "x", 1) != 1)
			exit(1);
	}
	return 0;
}

static uint64_t disk(void)
{
	int fd = open(path, O_RDONLY | O_DIRECT);
	uint64_t sum = 0, at;
	void *to;

	if (fd < 0 || posix_memalign(&to, 4096, BLOCK))
		return 0;
	for (int i = 0; i < 20 * rounds; i++) {
		at = now();
		if (pread(fd, to, BLOCK, (off_t)(i % FILE_BLOCKS) * BLOCK) != BLOCK)
			exit(1);
		sum += now() - at;
	}
	free(to);
	close(fd);
	return sum;
}

static uint64_t works(void)
{
	volatile uint64_t x = 1;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < (uint64_t)rounds * 20000000)
		for (int i = 0; i < 10000; i++)
			x = x * 3 + (uint64_t)i;
	return 0;
}

static const struct job {
	const char *name;
	uint64_t (*run)(void);
} jobs[] = {
	{ "w-sleep", sleeps }, { "w-lock", locks }, { "w-hold", holds }, { "w-read", reads },
	{ "w-write", writes }, { "w-disk", disk },  { "w-work", works },
};

enum { NR_JOBS = sizeof(jobs) / sizeof(jobs[0]) };

static void *run(void *arg)
{
	const struct job *j = arg;
	uint64_t born = now(), waited;
	struct rusage used;

	pthread_setname_np(pthread_self(), j->name);
	waited = j->run();
	getrusage(RUSAGE_THREAD, &used);
	printf("%s %llu %llu %llu %ld\n", j->name, (unsigned long long)waited,
	       (unsigned long long)clock_ns(CLOCK_THREAD_CPUTIME_ID),
	       (unsigned long long)(now() - born), used.ru_nvcsw + used.ru_nivcsw);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[NR_JOBS];

	rounds = atoi(argv[1]);
	path = argc > 2 ? argv[2] : "";
	if (pipe(ends) || pthread_barrier_init(&turn, NULL, 2))
		return 1;
	for (int i = 0; i < NR_JOBS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)&jobs[i]))
			return 1;
	for (int i = 0; i < NR_JOBS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
