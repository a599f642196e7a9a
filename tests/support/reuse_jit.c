/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reuse_jit [OPTION…]: a JIT that puts routines at one address in turn, and measures by its own
 * clock how much CPU time each of them got: "ROUTINE SECONDS" lines.
 *
 *	-routines N    how many (2)
 *	-turn MS       mean length of a stay (10); drawn between the half and one and a half
 *	-seconds S     how long (5)
 *	-retire        say when a routine is gone; else the next one's registration says it
 *	-threads       a second thread does the same beside the first one, ten times as often
 *	-perfmap       write /tmp/perf-PID.map too, each line flushed
 *	-jitdump DIR   write DIR/jit-PID.dump too
 *	-alone         tell libdbgdyn nothing
 *	-facility F    (reuse)
 *	-seed N
 */
#include <dbgdyn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jitdump.h"
#include "truth_jit.h"

static struct {
	int routines;
	double turn_s, seconds;
	int retire, threads, alone;
	const char *facility, *jitdump;
	uint64_t context;
	FILE *map, *dump;
} o = { .routines = 2, .turn_s = 0.01, .seconds = 5, .facility = "reuse" };

struct worker {
	const char *prefix;
	unsigned char *code;
	double turn_s;
	uint64_t random;
	double ran[TRUTH_SLOTS]; /* seconds */
	unsigned long turns;
};

/* ---- what others are told -------------------------------------------------------------------- */

static FILE *map_open(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	return fopen(path, "we");
}

static void tell_others(const struct worker *w, int slot)
{
	static uint64_t index;
	char name[64];

	snprintf(name, sizeof(name), "%s_%d", w->prefix, slot);
	if (o.map) {
		fprintf(o.map, "%lx %x %s\n", (unsigned long)(uintptr_t)w->code, TRUTH_BLOCK, name);
		fflush(o.map);
	}
	if (o.dump)
		jitdump_write(o.dump, w->code, TRUTH_BLOCK, name, index++);
}

/* ---- work ------------------------------------------------------------------------------------ */

static int next_slot(struct worker *w, int slot)
{
	/* Any but the one that is there. */
	return (slot + 1 + (int)(truth_random(&w->random) % (uint64_t)(o.routines - 1))) %
	       o.routines;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	double end = truth_clock(CLOCK_THREAD_CPUTIME_ID) + o.seconds;
	uint64_t handle = 0;
	int slot = 0;

	while (truth_clock(CLOCK_THREAD_CPUTIME_ID) < end) {
		double part = (double)(truth_random(&w->random) % 1000000) / 1e6;

		if (o.retire && handle && dbgdyn_retire(o.context, handle) != DBGDYN_OK)
			abort();
		handle = 0;
		slot = next_slot(w, slot);
		truth_make(o.context, w->code, w->prefix, slot, &handle);
		tell_others(w, slot);
		w->ran[slot] += truth_run(w->code, CLOCK_THREAD_CPUTIME_ID,
					  w->turn_s * (0.5 + part), &w->random);
		w->turns++;
	}
	return NULL;
}

static int parse(int argc, char **argv, uint64_t *seed)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
		int took = 1;

		if (!strcmp(name, "-routines"))
			o.routines = atoi(value);
		else if (!strcmp(name, "-turn"))
			o.turn_s = atof(value) / 1e3;
		else if (!strcmp(name, "-seconds"))
			o.seconds = atof(value);
		else if (!strcmp(name, "-facility"))
			o.facility = value;
		else if (!strcmp(name, "-jitdump"))
			o.jitdump = value;
		else if (!strcmp(name, "-seed"))
			*seed = strtoull(value, NULL, 0);
		else
			took = 0;
		i += took;
		if (took)
			continue;
		if (!strcmp(name, "-retire"))
			o.retire = 1;
		else if (!strcmp(name, "-threads"))
			o.threads = 1;
		else if (!strcmp(name, "-alone"))
			o.alone = 1;
		else if (!strcmp(name, "-perfmap"))
			o.map = map_open();
		else
			return fprintf(stderr, "reuse_jit: what is '%s'?\n", name), -1;
	}
	return o.routines >= 2 && o.routines <= TRUTH_SLOTS ? 0 : -1;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	/* Both in one page: what the one does to its place must not move samples of the other. */
	unsigned char *code = truth_map(4096);
	struct worker w[2] = { { .prefix = "a", .code = code },
			       { .prefix = "b", .code = code + 2048 } };
	pthread_t other;

	if (parse(argc, argv, &seed) < 0 || !code)
		return 2;
	if (o.jitdump && !(o.dump = jitdump_open(o.jitdump)))
		return perror("reuse_jit: jitdump"), 1;
	w[0].random = seed * 2 + 1;
	w[1].random = seed * 2 + 1000001;
	w[0].turn_s = o.turn_s;
	w[1].turn_s = o.turn_s / 10;
	if (!o.alone)
		dbgdyn_begin(o.facility, strlen(o.facility), NULL, &o.context);
	/* Until a daemon, if there is one, has it, nothing tells who lives at an address. */
	dbgdyn_flush(o.context);
	if (o.threads && pthread_create(&other, NULL, work, &w[1]))
		return 1;
	work(&w[0]);
	if (o.threads)
		pthread_join(other, NULL);
	dbgdyn_end(o.context);
	for (int i = 0; i < 2 * o.routines; i++) {
		struct worker *of = &w[i / o.routines];
		int slot = i % o.routines;

		if (of->turns)
			printf("%s_%d %.6f\n", of->prefix, slot, of->ran[slot]);
	}
	fprintf(stderr, "%lu %lu turns, code at %lx\n", w[0].turns, w[1].turns,
		(unsigned long)(uintptr_t)code);
	if (o.dump)
		fclose(o.dump);
	return 0;
}
