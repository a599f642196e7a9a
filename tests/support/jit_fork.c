/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jit_fork COUNT [-threads]: a JIT that forks, again and again. Each time it puts another routine
 * at an address, forks, and goes on by putting yet another one there, while the child runs what it
 * inherited; then the child begins a facility of its own. Every third child is another program
 * after that, which begins anew. Every fifth puts its own routine, and runs nothing else, at that
 * address. With -threads a second thread of the parent makes code all the time.
 *
 * jit_fork COUNT -late: COUNT children with inherited code, every second with a facility of its own
 * besides; the parent puts another routine at one of the addresses, prints "ready" and waits for a
 * byte on its standard input. Only then they all run. What nobody else has any more has no line.
 *
 * Each routine works in bytes of its own, so that inherited code charged to what the parent put
 * there later is found out. Prints CPU times, "ROUTINE SECONDS" lines: of "up", the parent's,
 * inherited ones included, "other", its second thread's, "down", the children's own, and "over",
 * those over inherited code.
 */
#include <dbgdyn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth_jit.h"

#define STAY 0.02 /* seconds */
enum { LATE_MAX = 8 };

static struct shared {
	double up[TRUTH_SLOTS], down[TRUTH_SLOTS], over[TRUTH_SLOTS];
} * sum; /* of all children so far; -late: of each */

static unsigned char *code;
static atomic_bool stop;
static double others[TRUTH_SLOTS];

static int die(const char *what)
{
	fprintf(stderr, "jit_fork: %s: %s\n", what, strerror(errno));
	return 1;
}

static double stay(size_t block, uint64_t *random)
{
	return truth_run(code + block * TRUTH_BLOCK, CLOCK_THREAD_CPUTIME_ID, STAY, random);
}

static void *make_all_the_time(void *arg)
{
	uint64_t context = *(uint64_t *)arg, random = 3;

	while (!atomic_load(&stop)) {
		int slot = (int)(truth_random(&random) % TRUTH_SLOTS);

		truth_make(context, code + 2 * TRUTH_BLOCK, "other", slot, NULL);
		others[slot] +=
			truth_run(code + 2 * TRUTH_BLOCK, CLOCK_THREAD_CPUTIME_ID, 1e-4, &random);
		/* In step with no sampler. */
		usleep(200 + (useconds_t)(truth_random(&random) % 2000));
	}
	return NULL;
}

/* Its own code, elsewhere or over what it inherited. */
static int own(const char *facility, size_t block, double *ran, uint64_t *random)
{
	uint64_t context;
	int slot = (int)(truth_random(random) % TRUTH_SLOTS);

	if (dbgdyn_begin(facility, strlen(facility), NULL, &context) != DBGDYN_OK)
		return 1;
	truth_make(context, code + block * TRUTH_BLOCK, facility, slot, NULL);
	ran[slot] += stay(block, random);
	return 0;
}

static int child(uint64_t context, int slot, int i, const char *self)
{
	uint64_t random = (uint64_t)i + 100;
	char number[16];

	/* The parent's facility is the parent's. */
	if (truth_register(context, code, "wrong", 0, NULL) != DBGDYN_EREFUSED)
		return 1;
	if (i % 5 == 0)
		return own("over", 0, sum->over, &random);
	sum->up[slot] += stay(0, &random);
	sum->up[TRUTH_SLOTS - 1] += stay(1, &random);
	if (own("down", 3, sum->down, &random))
		return 1;
	if (i % 3)
		return 0;
	snprintf(number, sizeof(number), "%d", i);
	execl(self, "jit_fork", "-again", number, (char *)NULL);
	return die("exec");
}

/* After exec: nothing of what was is there. */
static int again(int i)
{
	uint64_t context, random = (uint64_t)i + 200;
	int slot = i % TRUTH_SLOTS;

	if (dbgdyn_begin("again", 5, NULL, &context) != DBGDYN_OK)
		return 1;
	truth_make(context, code, "again", slot, NULL);
	stay(0, &random);
	return 0;
}

static int fork_all(uint64_t context, int count, uint64_t *random, double up[TRUTH_SLOTS])
{
	int bad = 0, status;

	truth_make(context, code + TRUTH_BLOCK, "up", TRUTH_SLOTS - 1, NULL);
	/* Until the daemon has it, nothing tells who lives at an address that is used again: with
	 * a daemon that comes to it after a second that is a sixth of all samples. */
	if (dbgdyn_flush(context) != DBGDYN_OK)
		return 1;
	for (int i = 0; i < count; i++) {
		int slot = i % (TRUTH_SLOTS - 1);
		pid_t pid;

		truth_make(context, code, "up", slot, NULL);
		pid = fork();
		if (pid == 0)
			_exit(child(context, slot, i, "/proc/self/exe"));
		slot = (slot + 20) % (TRUTH_SLOTS - 1);
		truth_make(context, code, "up", slot, NULL);
		up[slot] += stay(0, random);
		bad |= pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
	}
	return bad;
}

static int late_child(int i, int slot, int wait_fd)
{
	uint64_t context, random = (uint64_t)i + 100;
	char end;

	if (i % 2) {
		if (dbgdyn_begin("down", 4, NULL, &context) != DBGDYN_OK)
			return 1;
		truth_make(context, code + 3 * TRUTH_BLOCK, "down", slot, NULL);
	}
	if (read(wait_fd, &end, 1) != 0)
		return 1;
	for (int n = 0; n < 10; n++) {
		stay(0, &random);
		sum[i].up[TRUTH_SLOTS - 1] += stay(1, &random);
		if (i % 2)
			sum[i].down[slot] += stay(3, &random);
	}
	return 0;
}

static int late_parent(uint64_t context, int count, double up[TRUTH_SLOTS],
		       double down[TRUTH_SLOTS])
{
	uint64_t random = 7;
	int bad = 0, status, fds[2];
	char end;

	truth_make(context, code + TRUTH_BLOCK, "up", TRUTH_SLOTS - 1, NULL);
	if (pipe(fds) < 0)
		return die("pipe");
	for (int i = 0; i < count; i++) {
		truth_make(context, code, "up", i, NULL);
		if (fork() == 0) {
			close(fds[1]);
			_exit(late_child(i, i, fds[0]));
		}
	}
	truth_make(context, code, "up", count, NULL);
	fprintf(stderr, "ready\n");
	bad |= read(0, &end, 1) != 1;
	close(fds[1]);
	for (int n = 0; n < 10; n++)
		up[count] += stay(0, &random);
	for (int i = 0; i < count; i++)
		bad |= wait(&status) < 0 || status != 0;
	for (int i = 0; i < count; i++)
		for (int slot = 0; slot < TRUTH_SLOTS; slot++) {
			up[slot] += sum[i].up[slot];
			down[slot] += sum[i].down[slot];
		}
	return bad;
}

static int late(int count)
{
	double up[TRUTH_SLOTS] = { 0 }, down[TRUTH_SLOTS] = { 0 };
	uint64_t context;
	int bad;

	if (count > LATE_MAX || dbgdyn_begin("up", 2, NULL, &context) != DBGDYN_OK)
		return die("begin");
	bad = late_parent(context, count, up, down);
	dbgdyn_end(context);
	truth_print("up", up);
	truth_print("down", down);
	return bad;
}

int main(int argc, char **argv)
{
	bool threads = argc > 2 && !strcmp(argv[2], "-threads");
	uint64_t context, random = 5;
	double up[TRUTH_SLOTS] = { 0 };
	pthread_t other;
	int bad;

	code = truth_map(4096);
	sum = mmap(NULL, LATE_MAX * sizeof(*sum), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!code || sum == MAP_FAILED)
		return die("mmap");
	if (argc > 2 && !strcmp(argv[1], "-again"))
		return again(atoi(argv[2]));
	if (argc > 2 && !strcmp(argv[2], "-late"))
		return late(atoi(argv[1]));
	if (dbgdyn_begin("up", 2, NULL, &context) != DBGDYN_OK)
		return die("begin");
	if (threads && pthread_create(&other, NULL, make_all_the_time, &context))
		return die("thread");
	bad = fork_all(context, argc > 1 ? atoi(argv[1]) : 20, &random, up);
	atomic_store(&stop, true);
	if (threads)
		pthread_join(other, NULL);
	dbgdyn_end(context);
	for (int i = 0; i < TRUTH_SLOTS; i++)
		up[i] += sum->up[i];
	truth_print("up", up);
	truth_print("other", others);
	truth_print("down", sum->down);
	truth_print("over", sum->over);
	return bad;
}
