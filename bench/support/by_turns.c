/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compare programs on a machine whose speed changes.
 *
 *	by_turns ROUNDS INPUT PROGRAM... -- [ARG...]
 *
 * All of them run at once on the last CPU, each for 2 ms in its turn while the others are stopped:
 * what slows the CPU slows all alike. One that has ended runs again, unmeasured, until the slowest
 * has ended, so that all have the same neighbours; their order is drawn anew each time around.
 * Prints for each round the CPU time of each, in seconds. All have the same arguments, and read
 * INPUT; what they print is thrown away.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX = 16, TURN_NS = 2000000 };

struct arm {
	char *program;
	pid_t pid;
	double seconds; /* of the round's first run; 0: it has not ended */
};

static void die(const char *what, const char *of)
{
	fprintf(stderr, "by_turns: %s '%s': %s\n", what, of, strerror(errno));
	exit(1);
}

static void on_last_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void become(const char *program, const char *input, char **argv)
{
	int in = open(input, O_RDONLY), out = open("/dev/null", O_WRONLY);

	if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		die("cannot open", input);
	close(in);
	close(out);
	on_last_cpu();
	/* Nothing else would let a stopped one go on. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	raise(SIGSTOP);
	execv(program, argv);
	die("cannot run", program);
}

/* It is stopped when this returns. */
static void start(struct arm *a, const char *input, char **argv)
{
	int status;

	argv[0] = a->program;
	a->pid = fork();
	if (a->pid == 0)
		become(a->program, input, argv);
	if (a->pid < 0 || waitpid(a->pid, &status, WUNTRACED) != a->pid || !WIFSTOPPED(status))
		die("cannot start", a->program);
}

static double of(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* True when a run has ended. */
static bool turn(struct arm *a, struct rusage *used)
{
	const struct timespec length = { .tv_nsec = TURN_NS };
	int status;

	kill(a->pid, SIGCONT);
	nanosleep(&length, NULL);
	kill(a->pid, SIGSTOP);
	if (wait4(a->pid, &status, WUNTRACED, used) != a->pid)
		die("cannot wait for", a->program);
	if (WIFSTOPPED(status))
		return false;
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		errno = ECHILD;
		die("failed:", a->program);
	}
	return true;
}

static void shuffle(size_t *order, size_t nr)
{
	for (size_t i = nr - 1; i > 0; i--) {
		size_t k = (size_t)random() % (i + 1), was = order[i];

		order[i] = order[k];
		order[k] = was;
	}
}

static void play(struct arm *arms, size_t nr, const char *input, char **argv)
{
	size_t order[MAX], left = nr;
	struct rusage used;

	for (size_t i = 0; i < nr; i++) {
		arms[i].seconds = 0;
		start(&arms[i], input, argv);
		order[i] = i;
	}
	while (left) {
		shuffle(order, nr);
		for (size_t i = 0; i < nr && left; i++) {
			struct arm *a = &arms[order[i]];

			if (!turn(a, &used))
				continue;
			if (!a->seconds) {
				a->seconds = of(used.ru_utime) + of(used.ru_stime);
				left--;
			}
			start(a, input, argv);
		}
	}
	for (size_t i = 0; i < nr; i++) {
		kill(arms[i].pid, SIGKILL);
		waitpid(arms[i].pid, NULL, 0);
		printf("%.6f%c", arms[i].seconds, i + 1 < nr ? ' ' : '\n');
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct arm arms[MAX] = { 0 };
	int i = 3, nr = 0, rounds = argc > 1 ? atoi(argv[1]) : 0;

	for (; i < argc && strcmp(argv[i], "--") != 0 && nr < MAX; i++)
		arms[nr++].program = argv[i];
	if (rounds <= 0 || !nr || i == argc || strcmp(argv[i], "--") != 0) {
		fputs("usage: by_turns ROUNDS INPUT PROGRAM… -- [ARG…]\n", stderr);
		return 2;
	}
	while (rounds--)
		play(arms, (size_t)nr, argv[2], argv + i);
	return 0;
}
