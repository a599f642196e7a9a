/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent in programs that do with signals and children what they like: this one, run again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program/inprocess_ring.h"
#include "sigcontext.h"

#define SIGNO (SIGRTMAX - 7) /* dcpirun(1) */

enum { LIMIT_S = 60 }; /* nothing takes so long, but on a machine that stands still */

/* ---- inside ---------------------------------------------------------------------------------- */

static _Atomic int nr_calls, nr_infos, value;

static void called(int signo)
{
	if (signo == SIGNO) /* NOLINT(bugprone-signal-handler,cert-sig30-c) */
		atomic_fetch_add(&nr_calls, 1);
}

static void informed(int signo, siginfo_t *info, void *context)
{
	if (signo == SIGNO && context)
		atomic_fetch_add(&nr_infos, 1);
	atomic_store(&value, info->si_value.sival_int);
}

static uint64_t tick_ns(void)
{
	struct timespec tick;

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return (uint64_t)tick.tv_nsec;
}

static _Atomic int nr_ticks;

static void ticked(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	atomic_fetch_add(&nr_ticks, 1 + info->si_overrun);
}

/*
 * Works until as many ticks as those of the agent's timers have come for the caller, by a timer of
 * the same kind. CPU time tells less: beside other load a thread may run for 60 ticks' time always
 * between two ticks, and what is due then comes with the first tick that finds it running.
 */
static bool burn(int ticks)
{
	struct sigaction act = { .sa_sigaction = ticked, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2 };
	const struct itimerspec period = { { 0, (long)tick_ns() }, { 0, (long)tick_ns() } };
	timer_t timer;

	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	atomic_store(&nr_ticks, 0);
	if (sigaction(SIGUSR2, &act, NULL) || timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer))
		return false;
	if (timer_settime(timer, 0, &period, NULL))
		return false;
	while (atomic_load(&nr_ticks) < ticks)
		;
	return timer_delete(timer) == 0;
}

static void *burner(void *arg)
{
	return burn(30) ? arg : NULL;
}

static bool burn_in_thread(void)
{
	pthread_t thread;
	void *done = NULL;

	return !pthread_create(&thread, NULL, burner, &value) && !pthread_join(thread, &done) &&
	       done;
}

/* One signal stands for all ticks of that time. The calls that the agent has would not block it. */
static int blocked(void)
{
	const uint64_t set = UINT64_C(1) << (SIGNO - 1);

	if (syscall(SYS_rt_sigprocmask, (long)SIG_BLOCK, &set, NULL, 8L))
		return 1;
	if (!burn(60))
		return 2;
	return syscall(SYS_rt_sigprocmask, (long)SIG_UNBLOCK, &set, NULL, 8L) ? 3 : 0;
}

static int plain(void)
{
	return !burn(30);
}

static int foreign_default(void)
{
	raise(SIGNO);
	return 1;
}

static int foreign_handled(void)
{
	struct sigaction act = { .sa_flags = SA_SIGINFO }, old;
	union sigval seven = { .sival_int = 7 };

	act.sa_sigaction = informed;
	if (sigaction(SIGNO, &act, &old) || old.sa_handler != SIG_DFL)
		return 1;
	if (sigqueue(getpid(), SIGNO, seven) || nr_infos != 1 || value != 7)
		return 2;
	if (signal(SIGNO, called) != act.sa_handler || raise(SIGNO) || nr_calls != 1)
		return 3;
	if (signal(SIGNO, SIG_IGN) != called || raise(SIGNO) || nr_calls != 1 || nr_infos != 1)
		return 4;
	return !burn(30) || nr_calls != 1 || nr_infos != 1;
}

/* What a child by vfork sets is its own, though it has its parent's memory. */
static int vfork_resets(void)
{
	int status = -1;
	pid_t pid;

	signal(SIGNO, called);
	pid = vfork();
	if (!pid) {
		alarm(LIMIT_S);
		signal(SIGNO, SIG_DFL);
		raise(SIGNO);
		_exit(1);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) || WTERMSIG(status) != SIGNO)
		return 1;
	return raise(SIGNO) || nr_calls != 1;
}

/* Where this process has its ring. */
static uint8_t *find_ring(size_t *len)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start = 0, end = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (strstr(line, "/" INPROCESS_PREFIX) &&
		    sscanf(line, "%lx-%lx", &start, &end) == 2)
			break;
		start = end = 0;
	}
	if (maps)
		fclose(maps);
	*len = end - start;
	return (uint8_t *)(uintptr_t)start;
}

/* The ring is not there in such a child, but what is there now is the child's own. */
static int in_raw_child(uint8_t *at, size_t len)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, status = -1;
	pid_t pid;

	alarm(LIMIT_S);
	if (mmap(at, len, PROT_READ | PROT_WRITE, flags, -1, 0) != at)
		return 3;
	if (!burn_in_thread())
		return 4;
	for (size_t i = 0; i < len; i++)
		if (at[i])
			return 5;
	signal(SIGNO, SIG_DFL); /* after which a tick would be the end, also of its child */
	pid = fork();
	if (!pid)
		_exit(!burn_in_thread());
	return waitpid(pid, &status, 0) == pid && !status ? 0 : 6;
}

static int child_without_hooks(void)
{
	size_t len;
	uint8_t *at = find_ring(&len);
	int status = -1;
	pid_t pid;

	if (!len)
		return 1;
	pid = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
	if (!pid)
		_exit(in_raw_child(at, len));
	if (!burn(30))
		return 7;
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static pthread_t waiter;

/* First a signal of the agent's number, to the one thread that waits; then one that is waited for.
 */
static void *sender(void *arg)
{
	usleep(30000);
	pthread_kill(waiter, SIGNO);
	usleep(30000);
	pthread_kill(waiter, SIGUSR1);
	return arg;
}

static int wait_by_fd(const sigset_t *set)
{
	int fd = signalfd(-1, set, SFD_CLOEXEC);
	struct signalfd_siginfo info = { 0 };

	while (read(fd, &info, sizeof(info)) < 0 && errno == EINTR)
		;
	close(fd);
	return (int)info.ssi_signo;
}

static int wait_once(int way, const sigset_t *set)
{
	const struct timespec limit = { LIMIT_S, 0 };
	siginfo_t info = { 0 };
	int signo = 0;

	if (way == 0)
		return sigwait(set, &signo) ? -1 : signo;
	if (way == 1)
		while ((signo = sigwaitinfo(set, &info)) < 0 && errno == EINTR)
			;
	else if (way == 2)
		while ((signo = sigtimedwait(set, &info, &limit)) < 0 && errno == EINTR)
			;
	else
		signo = wait_by_fd(set);
	return signo;
}

static int waits_for_all(void)
{
	sigset_t set;

	sigfillset(&set);
	if (pthread_sigmask(SIG_SETMASK, &set, NULL))
		return 1;
	waiter = pthread_self();
	signal(SIGNO, called);
	for (int way = 0; way < 4; way++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, sender, NULL))
			return 2;
		if (wait_once(way, &set) != SIGUSR1 || nr_calls != way + 1)
			return 10 + way;
		pthread_join(thread, NULL);
	}
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} programs[] = {
	{ "plain", plain },
	{ "blocked", blocked },
	{ "foreign_default", foreign_default },
	{ "foreign_handled", foreign_handled },
	{ "vfork_resets", vfork_resets },
	{ "child_without_hooks", child_without_hooks },
	{ "waits_for_all", waits_for_all },
};

static int inside(const char *name)
{
	alarm(LIMIT_S); /* what spins shall not do so for ever */
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		if (!strcmp(programs[i].name, name))
			return programs[i].run();
	return 99;
}

/* ---- outside --------------------------------------------------------------------------------- */

static char folder[64];

static int begin(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/dcpi-agent-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	DIR *dir = opendir(folder);
	struct dirent *e;

	(void)state;
	while ((e = readdir(dir)))
		unlinkat(dirfd(dir), e->d_name, 0);
	closedir(dir);
	return rmdir(folder);
}

static uint64_t ran_ns; /* CPU time of the program run last */

static int run_at(const char *name, uint64_t period_ns)
{
	struct rusage used;
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		char orders[128];

		snprintf(orders, sizeof(orders), "%llu:4096:%s", (unsigned long long)period_ns,
			 folder);
		setenv(INPROCESS_ENV, orders, 1);
		setenv("LD_PRELOAD", TEST_AGENT, 1);
		/* A sanitizer's runtime wants to be first, before what is preloaded. */
		setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
		execl("/proc/self/exe", "agent_inside", name, NULL);
		_exit(98);
	}
	assert_int_equal(wait4(pid, &status, 0, &used), pid);
	ran_ns = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000 +
		 (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
	return status;
}

static int run(const char *name)
{
	return run_at(name, 4000000);
}

static uint64_t missed; /* of the rings counted last */

/* Rings made, and samples in all of them. */
static int count_rings(uint64_t *received)
{
	DIR *dir = opendir(folder);
	struct dirent *e;
	int nr = 0;

	*received = missed = 0;
	while ((e = readdir(dir))) {
		struct inprocess_head head;
		int fd;

		if (strncmp(e->d_name, INPROCESS_PREFIX, strlen(INPROCESS_PREFIX)) != 0)
			continue;
		fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC);
		assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
		close(fd);
		*received += head.received;
		missed += head.missed;
		nr++;
	}
	closedir(dir);
	return nr;
}

static void sampled(void **state)
{
	uint64_t received;

	(void)state;
	assert_int_equal(run("plain"), 0);
	assert_int_equal(count_rings(&received), 1);
	assert_true(received >= 1 && received + missed >= 25);
}

/*
 * A third of the ticks are samples, also of those that one signal stands for; of those at its
 * begin and end chance decides.
 */
static void missed_are_counted(void **state)
{
	uint64_t received;

	(void)state;
	assert_int_equal(run_at("blocked", 3 * tick_ns()), 0);
	assert_int_equal(count_rings(&received), 1);
	/* Whoever counts each tick has three times as many. */
	assert_in_range(received + missed, 18, ran_ns / (3 * tick_ns()) + 10);
	assert_in_range(received, 1, 12);
}

static void default_is_the_end(void **state)
{
	int status = run("foreign_default");

	(void)state;
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGNO);
}

static void handlers_are_called(void **state)
{
	uint64_t received;

	(void)state;
	assert_int_equal(run("foreign_handled"), 0);
	assert_int_equal(count_rings(&received), 1);
	/* And the ticks are still ours. */
	assert_true(received >= 1 && received + missed >= 25);
}

static void vfork_leaves_the_parent_alone(void **state)
{
	(void)state;
	assert_int_equal(run("vfork_resets"), 0);
}

static void raw_children_are_left_alone(void **state)
{
	uint64_t received;

	(void)state;
	assert_int_equal(run("child_without_hooks"), 0);
	assert_int_equal(count_rings(&received), 1);
	/* They are of the parent alone. */
	assert_true(received >= 1 && received + missed >= 25);
}

static void waits_do_not_take_it(void **state)
{
	(void)state;
	assert_int_equal(run("waits_for_all"), 0);
}

int main(int argc, char **argv)
{
#define TRIAL(test) cmocka_unit_test_setup_teardown(test, begin, end)
	const struct CMUnitTest tests[] = {
		TRIAL(sampled),
		TRIAL(missed_are_counted),
		TRIAL(default_is_the_end),
		TRIAL(handlers_are_called),
		TRIAL(vfork_leaves_the_parent_alone),
		TRIAL(raw_children_are_left_alone),
		TRIAL(waits_do_not_take_it),
	};

	if (argc > 1)
		return inside(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
