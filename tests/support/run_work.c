/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work of known shares for tests of dcpirun: alpha and beta in turn, in slices of random length,
 * the time of each told by the CPU clock of the thread that ran it. Prints "NAME PERCENT %" of
 * each and "cpu SECONDS s" of both.
 *
 *   run_work threads SECONDS      in three threads, one of which blocks all signals
 *   run_work fork SECONDS         beta in forked children, short-lived ones too
 *   run_work plugins SECONDS A B  the function of the same name in modules A.so and B.so,
 *                                 loaded and unloaded in turn: mostly at the same address
 *   run_work die SECONDS          then SIGKILL to itself
 *   run_work reset SECONDS        with all signals reset to their defaults
 *   run_work left SECONDS         in a thread that the main one has left alone
 *   run_work orphan SECONDS       leaves a child behind that works on for as long
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long work_fn(unsigned long turns);

enum { NR_THREADS = 3, TURNS_MIN = 100000, TURNS_SPREAD = 6000000 };

static double limit;
static double spent[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

work_fn alpha, beta;

__attribute__((noinline)) unsigned long alpha(unsigned long turns)
{
	volatile unsigned long sum = 0;

	for (unsigned long i = 0; i < turns; i++)
		sum += i ^ (sum >> 3);
	return sum;
}

__attribute__((noinline)) unsigned long beta(unsigned long turns)
{
	volatile unsigned long sum = 1;

	for (unsigned long i = 0; i < turns; i++)
		sum += i ^ (sum >> 5);
	return sum;
}

static double clock_of(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Never in step with anything. */
static unsigned long turns(unsigned int *seed)
{
	return TURNS_MIN + (unsigned long)rand_r(seed) % TURNS_SPREAD;
}

/*
 * CPU time goes on while a virtual machine's host runs something else, and one sample comes of it:
 * a slice, of 15 ms or less on a machine of our time, counts for 40 ms at most. (Shorter ones would
 * not do: who reads this clock is preempted there rather than at a tick, and ticks are samples.)
 */
static double slice(work_fn *work, unsigned int *seed)
{
	double start = clock_of(CLOCK_THREAD_CPUTIME_ID), took;

	work(turns(seed));
	took = clock_of(CLOCK_THREAD_CPUTIME_ID) - start;
	return took < 0.04 ? took : 0.04;
}

static void tell(const char *first, const char *second)
{
	double all = spent[0] + spent[1];

	printf("%-10s %.1f %%\n%-10s %.1f %%\ncpu %.3f s\n", first, 100 * spent[0] / all, second,
	       100 * spent[1] / all, all);
	fflush(stdout);
}

/* Two slices of alpha to one of beta. */
static void both(double seconds, unsigned int seed)
{
	double mine[2] = { 0 };

	while (mine[0] + mine[1] < seconds) {
		mine[0] += slice(alpha, &seed) + slice(alpha, &seed);
		mine[1] += slice(beta, &seed);
	}
	pthread_mutex_lock(&lock);
	spent[0] += mine[0];
	spent[1] += mine[1];
	pthread_mutex_unlock(&lock);
}

static void *thread(void *arg)
{
	unsigned int seed = (unsigned int)(size_t)arg;
	sigset_t all;

	sigfillset(&all);
	if (seed == 1)
		pthread_sigmask(SIG_BLOCK, &all, NULL);
	both(limit / NR_THREADS, seed);
	return NULL;
}

static int run_threads(void)
{
	pthread_t threads[NR_THREADS];

	for (size_t i = 0; i < NR_THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread, (void *)(i + 1)))
			return 1;
	for (size_t i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	tell("alpha", "beta");
	return 0;
}

/* A child's slice of beta; its time comes back through a pipe. */
static double child_slice(unsigned int *seed)
{
	double used = 0;
	int fds[2], status;
	pid_t pid;

	if (pipe(fds) < 0)
		exit(1);
	pid = fork();
	if (pid == 0) {
		used = slice(beta, seed);
		_exit(write(fds[1], &used, sizeof(used)) != sizeof(used));
	}
	close(fds[1]);
	if (pid < 0 || read(fds[0], &used, sizeof(used)) != sizeof(used))
		exit(1);
	close(fds[0]);
	waitpid(pid, &status, 0);
	rand_r(seed);
	return used;
}

static int run_fork(void)
{
	unsigned int seed = 5;

	while (spent[0] + spent[1] < limit) {
		spent[0] += slice(alpha, &seed);
		spent[1] += child_slice(&seed);
	}
	tell("alpha", "beta");
	return 0;
}

#ifdef NO_MODULES
static int run_plugins(char **modules)
{
	(void)modules;
	return 2;
}
#else
static int run_plugins(char **modules)
{
	unsigned int seed = 6, at = 0, was = 0, same = 0, changes = 0;
	void *before = NULL;

	/* Loading is work of the loader's: the slices are long against it. */
	for (; spent[0] + spent[1] < limit; at = rand_r(&seed) % 3 == 0) {
		void *module = dlopen(modules[at], RTLD_NOW | RTLD_LOCAL);
		char name[32];
		work_fn *work;

		snprintf(name, sizeof(name), "plugin_%s", at ? "two" : "one");
		work = module ? (work_fn *)dlsym(module, name) : NULL;
		if (!work)
			return 1;
		changes += at != was;
		same += at != was && (void *)work == before;
		was = at;
		before = (void *)work;
		spent[at] += slice(work, &seed);
		dlclose(module);
	}
	tell("plugin_one", "plugin_two");
	printf("same %u of %u changes\n", same, changes);
	return 0;
}
#endif

static int run_reset(void)
{
	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	both(limit, 7);
	tell("alpha", "beta");
	return 0;
}

static void *left_thread(void *main_thread)
{
	pthread_join(*(pthread_t *)main_thread, NULL);
	both(limit, 10);
	tell("alpha", "beta");
	exit(0);
}

static int run_left(void)
{
	static pthread_t self;
	pthread_t other;

	self = pthread_self();
	if (pthread_create(&other, NULL, left_thread, &self))
		return 1;
	pthread_exit(NULL);
}

static int run_orphan(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		both(limit, 8);
		tell("child", "child");
		return 0;
	}
	return pid < 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	limit = argc > 2 ? atof(argv[2]) : 0;
	if (!strcmp(what, "threads"))
		return run_threads();
	if (!strcmp(what, "fork"))
		return run_fork();
	if (!strcmp(what, "plugins") && argc == 5)
		return run_plugins(argv + 3);
	if (!strcmp(what, "reset"))
		return run_reset();
	if (!strcmp(what, "left"))
		return run_left();
	if (!strcmp(what, "orphan"))
		return run_orphan();
	if (!strcmp(what, "die")) {
		both(limit, 9);
		tell("alpha", "beta");
		raise(SIGKILL);
	}
	return 2;
}
