/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests/machine/upcalls.sh: upcalls EVENT PERIOD has sixteen threads compute while libuvprof
 * runs a handler in each, and compares its runs with the kernel's own count of the event, and with
 * the samples in its ring. Prints a line for each thread; exits 1 where one is off by more than 1,
 * 3 where the event cannot be had.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "uvprof.h"

enum { NR_THREADS = 16, PAGE = 4096, RING = 8 * PAGE, ENOUGH = 20 };

static const char *const names[] = { [UVPROF_TASK_CLOCK] = "task-clock",
				     [UVPROF_CPU_CLOCK] = "cpu-clock",
				     [UVPROF_CYCLES] = "cycles",
				     [UVPROF_INSTRUCTIONS] = "instructions" };
static struct uvprof_request request = { .source = UVPROF_PERF };

struct thread {
	pthread_t id;
	int error;
	volatile uint64_t runs;
	uint64_t before, records, value;
};

static void count(void *arg, void *pc, void *context)
{
	struct thread *t = arg;

	(void)context;
	t->runs += pc != NULL;
}

static uint64_t samples_in(const struct perf_event_mmap_page *ring)
{
	const char *data = (const char *)ring + PAGE;
	uint64_t nr = 0;

	for (uint64_t at = 0; at < ring->data_head && at < RING;) {
		const struct perf_event_header *record = (const void *)(data + at);

		nr += record->type == PERF_RECORD_SAMPLE;
		at += record->size;
	}
	return nr;
}

static void compute(const struct thread *t)
{
	volatile unsigned int sink = 0;

	while (t->runs < ENOUGH)
		sink++;
}

static void *run(void *arg)
{
	struct uvprof_request own = request;
	struct uvprof_counts counts;
	struct thread *t = arg;
	void *ring;

	own.arg = t;
	own.handler = count;
	if (uvprof_start(&own) < 0) {
		t->error = errno;
		return NULL;
	}
	uvprof_read(&counts);
	ring = mmap(NULL, PAGE + RING, PROT_READ, MAP_SHARED, counts.fd, 0);
	t->before = t->runs;
	compute(t);
	if (ring == MAP_FAILED || read(counts.fd, &t->value, sizeof(t->value)) < 0)
		t->error = errno;
	uvprof_stop();
	if (!t->error)
		t->records = samples_in(ring);
	return NULL;
}

static int is_off(uint64_t a, uint64_t b)
{
	return a > b + 1 || b > a + 1;
}

static int judge(const struct thread *t)
{
	/* A clock's count continues in the kernel, where this event has no samples. */
	const uint64_t due =
		request.event <= UVPROF_CPU_CLOCK ? t->runs : t->value / request.period;
	const int off = is_off(t->runs, due) || is_off(t->runs - t->before, t->records);

	printf("%llu runs, %llu due, %llu samples behind the first %llu%s\n",
	       (unsigned long long)t->runs, (unsigned long long)due, (unsigned long long)t->records,
	       (unsigned long long)t->before, off ? ": off" : "");
	return off;
}

static int choose(const char *name)
{
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		request.event = i;
		if (!strcmp(names[i], name))
			return 0;
	}
	return -1;
}

int main(int argc, char **argv)
{
	static struct thread threads[NR_THREADS];
	int bad = 0;

	if (argc != 3 || choose(argv[1]) < 0)
		return 2;
	request.period = strtoull(argv[2], NULL, 10);
	for (int i = 0; i < NR_THREADS; i++)
		if (pthread_create(&threads[i].id, NULL, run, &threads[i]))
			return 2;
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i].id, NULL);
	for (int i = 0; i < NR_THREADS; i++) {
		if (threads[i].error) {
			printf("%s: %s\n", argv[1], strerror(threads[i].error));
			return 3;
		}
		bad += judge(&threads[i]);
	}
	return bad > 0;
}
