/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ticks of all threads of the process: a timer for each thread, and the signal handler. A client is
 * replaced as RCU does it: swap the pointer, then wait until every handler that may have read the
 * old one has left. Handlers count themselves in one of two counters; the writer turns the others'
 * way to the other one, twice, so that a steady stream of ticks cannot keep it waiting. Locks and
 * signal masks that hold in signal handlers.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "inprocess_internal.h"
#include "sigcontext.h"

/* ---- locks that may be taken in a signal handler --------------------------------------------- */

enum { FREE, TAKEN, WAITED };
enum {
	WAIT = 0 | 128,
	WAKE = 1 | 128
}; /* FUTEX_…_PRIVATE; musl comes without the kernel's headers */

static bool lock_try(struct inprocess_lock *lock)
{
	uint32_t expected = FREE;

	return atomic_compare_exchange_strong(&lock->word, &expected, TAKEN);
}

void inprocess_lock_take(struct inprocess_lock *lock)
{
	if (lock_try(lock))
		return;
	while (atomic_exchange(&lock->word, WAITED) != FREE)
		syscall(SYS_futex, &lock->word, WAIT, WAITED, NULL, NULL, 0);
}

void inprocess_lock_drop(struct inprocess_lock *lock)
{
	if (atomic_exchange(&lock->word, FREE) == WAITED)
		syscall(SYS_futex, &lock->word, WAKE, 1, NULL, NULL, 0);
}

/* ---- signal masks ---------------------------------------------------------------------------- */

/* Block by system calls: libc's would let its own signals through. */
void inprocess_signals_block(struct inprocess_signals *old)
{
	struct inprocess_signals all = { { UINT64_MAX, UINT64_MAX } };

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, all.words, old->words, (long)INPROCESS_SET_LEN);
}

void inprocess_signals_restore(const struct inprocess_signals *old)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, old->words, NULL, (long)INPROCESS_SET_LEN);
}

/* ---- what is on ------------------------------------------------------------------------------ */

static _Atomic(const struct inprocess_client *) current; /* NULL: ticks are off */
static _Atomic uint32_t readers[2];
static _Atomic uint32_t side;
static _Atomic int installed;	  /* 0: no handler of ours is installed */
static _Atomic uintptr_t beneath; /* the handler of signals that are not ours */
static _Atomic pid_t owner;	  /* the process that all this is of */

static struct inprocess_lock control; /* lock of the variables below; our handlers do not take it */
static struct sigaction before;	      /* the previous action, with flags and mask */
static const struct inprocess_client
	*given; /* the action of the last call: current, unless a tick has ended it */
static struct inprocess_signals fork_signals;
static bool hooked, fork_is_ours;

/* ---- timers of threads ----------------------------------------------------------------------- */

/*
 * A timer for each thread, on the thread's CPU clock, and the table of who has one: open addressing
 * by tid. It is used in signal handlers, so it grows by mmap, and reads /proc by system calls.
 */

enum {
	FIRST_LEN = 256,
	SCAN_NS = 100000000,
	SCAN_SHARE = 100, /* looking for threads takes at most this part of the time */
};

struct thread {
	int32_t tid; /* 0: free place */
	int32_t timer;
	uint32_t seen; /* the last scan that saw it */
};

static struct inprocess_lock lock; /* lock of everything below */
static struct thread first[FIRST_LEN];
static struct thread *table = first;
static size_t table_len = FIRST_LEN, nr_threads;
static uint32_t nr_scans;
static _Atomic uint64_t next_scan_ns;

char inprocess_cookie;

static int32_t self(void)
{
	return (int32_t)syscall(SYS_gettid);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* ---- timers ---------------------------------------------------------------------------------- */

static int timer_make(int32_t tid, int signo, int32_t *out)
{
	/* The kernel's name for the CPU clock of thread tid, counted by the scheduler. */
	clockid_t clock = (clockid_t)((~(uint32_t)tid << 3) | 4 | 2);
	struct sigevent event;
	int timer = -1;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = signo;
	event.sigev_value.sival_ptr = &inprocess_cookie;
	event.sigev_notify_thread_id = tid;
	if (syscall(SYS_timer_create, clock, &event, &timer) < 0)
		return -errno;
	*out = timer;
	return 0;
}

/*
 * Due at once, which means at the next tick that finds the thread running: threads that live
 * shorter than a tick would otherwise never be seen, and all threads too seldom by one tick.
 */
static int timer_start(int32_t timer)
{
	long tick = (long)inprocess_tick_ns();
	struct itimerspec when = { { tick / 1000000000, tick % 1000000000 }, { 0, 1 } };

	return syscall(SYS_timer_settime, timer, 0, &when, NULL) < 0 ? -errno : 0;
}

/* A thread's timer outlives it, disarmed; another thread may have its tid since. */
static bool timer_is_dead(int32_t timer)
{
	struct itimerspec left = { { 0, 0 }, { 0, 0 } };

	return syscall(SYS_timer_gettime, timer, &left) < 0 ||
	       (!left.it_value.tv_sec && !left.it_value.tv_nsec);
}

static void timer_drop(int32_t timer)
{
	syscall(SYS_timer_delete, timer);
}

/* ---- table ----------------------------------------------------------------------------------- */

static size_t home(int32_t tid)
{
	return ((uint32_t)tid * 2654435769u) & (table_len - 1);
}

/* The thread's place, or the free one where it belongs. */
static struct thread *place(int32_t tid)
{
	size_t i = home(tid);

	while (table[i].tid && table[i].tid != tid)
		i = (i + 1) & (table_len - 1);
	return &table[i];
}

static int grow(void)
{
	struct thread *old = table;
	size_t old_len = table_len;
	void *more = mmap(NULL, 2 * old_len * sizeof(*old), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (more == MAP_FAILED)
		return -ENOMEM;
	table = more;
	table_len = 2 * old_len;
	for (size_t i = 0; i < old_len; i++)
		if (old[i].tid)
			*place(old[i].tid) = old[i];
	if (old != first)
		munmap(old, old_len * sizeof(*old));
	return 0;
}

static void erase(size_t hole)
{
	size_t mask = table_len - 1;

	for (size_t i = (hole + 1) & mask; table[i].tid; i = (i + 1) & mask) {
		/* An entry nearer to its home than the hole stays. */
		if (((i - home(table[i].tid)) & mask) < ((i - hole) & mask))
			continue;
		table[hole] = table[i];
		hole = i;
	}
	table[hole].tid = 0;
	nr_threads--;
}

static void remove_at(size_t i)
{
	timer_drop(table[i].timer);
	erase(i);
}

static int arm(int32_t tid, int signo)
{
	struct thread *t = place(tid);
	int32_t timer = -1;
	int ret;

	if (t->tid && !timer_is_dead(t->timer)) {
		t->seen = nr_scans;
		return 0;
	}
	if (t->tid)
		remove_at((size_t)(t - table));
	if (2 * (nr_threads + 1) > table_len && grow() < 0)
		return -ENOMEM;
	ret = timer_make(tid, signo, &timer);
	if (ret < 0)
		return ret;
	*place(tid) = (struct thread){ tid, timer, nr_scans };
	nr_threads++;
	ret = timer_start(timer);
	if (ret < 0)
		remove_at((size_t)(place(tid) - table));
	return ret;
}

/* ---- the process's threads ------------------------------------------------------------------- */

static int32_t tid_parse(const char *name)
{
	int32_t tid = 0;

	for (; *name >= '0' && *name <= '9' && tid < INT32_MAX / 10; name++)
		tid = tid * 10 + (*name - '0');
	return *name ? 0 : tid;
}

static int arm_listed(int dir, int signo)
{
	/* linux_dirent64: inode 8, offset 8, length 2, type 1, name. Under the lock, not on a stack
	   that may be small. */
	static char buf[2048];
	long n;

	while ((n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
		uint16_t len;

		for (long at = 0; at < n; at += len) {
			int32_t tid = tid_parse(buf + at + 19);

			memcpy(&len, buf + at + 16, sizeof(len));
			if (tid)
				arm(tid, signo); /* it may have ended */
		}
	}
	return n < 0 ? -errno : 0;
}

static void forget_unseen(void)
{
	for (size_t i = 0; i < table_len;) {
		if (table[i].tid && table[i].seen != nr_scans)
			remove_at(i);
		else
			i++;
	}
}

static int scan(int signo)
{
	int dir = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/task",
			       O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ret;

	if (dir < 0)
		return -errno;
	nr_scans++;
	ret = arm_listed(dir, signo);
	syscall(SYS_close, dir);
	/* Another namespace's /proc has other numbers: then what is not there is not dead. */
	if (!ret && place(self())->tid && place(self())->seen == nr_scans)
		forget_unseen();
	return ret;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The signal if ticks are on in this process, else 0. */
static int inprocess_signo(void)
{
	return atomic_load(&current) && inprocess_own() ? atomic_load(&installed) : 0;
}

/* Arms it if it has no timer yet. 0 or -errno. */
static int inprocess_threads_arm_self(void)
{
	int signo, ret = 0;

	if (!inprocess_signo()) /* in a child by _Fork the lock may be taken for ever */
		return 0;
	inprocess_lock_take(&lock);
	signo = inprocess_signo();
	if (signo)
		ret = arm(self(), signo);
	inprocess_lock_drop(&lock);
	return ret;
}

static void inprocess_threads_disarm_self(bool even_if_on)
{
	struct thread *t;

	if (!inprocess_own())
		return;
	inprocess_lock_take(&lock);
	t = place(self());
	if (t->tid && (even_if_on || !inprocess_signo()))
		remove_at((size_t)(t - table));
	inprocess_lock_drop(&lock);
}

int inprocess_threads_scan(bool wait)
{
	uint64_t start, pause;
	int signo, ret;

	if (wait)
		inprocess_lock_take(&lock);
	else if (!lock_try(&lock))
		return -EBUSY;
	signo = inprocess_signo();
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	ret = signo ? scan(signo) : 0;
	pause = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) * SCAN_SHARE;
	atomic_store(&next_scan_ns,
		     clock_ns(CLOCK_MONOTONIC) + (pause > SCAN_NS ? pause : SCAN_NS));
	inprocess_lock_drop(&lock);
	return ret;
}

static bool inprocess_threads_scan_due(void)
{
	return clock_ns(CLOCK_MONOTONIC) >= atomic_load(&next_scan_ns);
}

static void inprocess_threads_disarm_all(void)
{
	inprocess_lock_take(&lock);
	for (size_t i = 0; i < table_len; i++)
		while (table[i].tid)
			remove_at(i);
	inprocess_lock_drop(&lock);
}

/* In a child: its timers never existed. */
static void inprocess_threads_forget(void)
{
	memset(first, 0, sizeof(first));
	table = first; /* a larger one is left: the parent may have been about to change it */
	table_len = FIRST_LEN;
	nr_threads = 0;
	atomic_store(&next_scan_ns, 0);
	atomic_store(&lock.word, 0);
}

/* Around fork: holds the lock. */
static void inprocess_threads_freeze(bool freeze)
{
	if (freeze)
		inprocess_lock_take(&lock);
	else
		inprocess_lock_drop(&lock);
}

size_t inprocess_threads_nr(void)
{
	size_t n;

	inprocess_lock_take(&lock);
	n = nr_threads;
	inprocess_lock_drop(&lock);
	return n;
}

/* ---- threads made while ticks are on --------------------------------------------------------- */

/*
 * Threads made while ticks are on: pthread_create and thrd_create as the program calls them, with
 * libc's behind. The new thread arms its own timer before its first instruction of the program, and
 * drops it at its end. While ticks are off nothing is added.
 */
#define EXPORTED __attribute__((visibility("default")))

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int thrd_fn(thrd_t *, thrd_start_t, void *);

struct begin {
	void *(*posix)(void *);
	thrd_start_t c11;
	void *arg;
};

static pthread_key_t key; /* its destructor runs at the end of a thread, however it ends */

static void leave(void *unused)
{
	struct inprocess_signals old;

	(void)unused;
	inprocess_signals_block(&old);
	inprocess_threads_disarm_self(true);
	inprocess_signals_restore(&old);
}

static struct begin enter(struct begin *passed)
{
	struct begin begin = *passed;
	struct inprocess_signals old;

	free(passed);
	inprocess_signals_block(&old);
	inprocess_threads_arm_self();
	inprocess_signals_restore(&old);
	pthread_setspecific(key, &key);
	return begin;
}

static void *run_posix(void *passed)
{
	struct begin begin = enter(passed);

	return begin.posix(begin.arg);
}

static int run_c11(void *passed)
{
	struct begin begin = enter(passed);

	return begin.c11(begin.arg);
}

/* Once per process, before ticks are switched on. */
static int inprocess_create_init(void)
{
	return -pthread_key_create(&key, leave);
}

/* The start to pass on instead of the program's own, or NULL: nothing is to be added. */
static struct begin *wrap(void *(*posix)(void *), thrd_start_t c11, void *arg)
{
	struct begin *begin = inprocess_signo() ? malloc(sizeof(*begin)) : NULL;

	if (begin)
		*begin = (struct begin){ posix, c11, arg };
	return begin;
}

EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			    void *arg)
{
	static _Atomic(create_fn *) libc;
	struct begin *begin;
	int ret;

	if (!atomic_load(&libc))
		atomic_store(&libc, (create_fn *)dlsym(RTLD_NEXT, "pthread_create"));
	begin = wrap(start, NULL, arg);
	if (!begin)
		return atomic_load(&libc)(thread, attr, start, arg);
	ret = atomic_load(&libc)(thread, attr, run_posix, begin);
	if (ret)
		free(begin);
	return ret;
}

EXPORTED int thrd_create(thrd_t *thread, thrd_start_t start, void *arg)
{
	static _Atomic(thrd_fn *) libc;
	struct begin *begin;
	int ret;

	if (!atomic_load(&libc))
		atomic_store(&libc, (thrd_fn *)dlsym(RTLD_NEXT, "thrd_create"));
	begin = wrap(NULL, start, arg);
	if (!begin)
		return atomic_load(&libc)(thread, start, arg);
	ret = atomic_load(&libc)(thread, run_c11, begin);
	if (ret != thrd_success)
		free(begin);
	return ret;
}

/* ---- in the handler -------------------------------------------------------------------------- */

/*
 * The program's handler may hand the signal back to us, if it was set over ours and we over it
 * then: once is enough. The mark stands where the kernel leaves zeros in each signal's information;
 * in memory of the thread it would stay there when a handler leaves by longjmp. Where they are no
 * zeros (Linux before 5.0, emulation) an old mark is told by our frame, which lies deeper when
 * nested.
 */
struct mark {
	const void *by;
	uintptr_t frame;
};

static struct mark *mark_of(siginfo_t *info)
{
	return (struct mark *)(info + 1) - 1;
}

/*
 * A signal that is not ours goes where it would have gone. Handlers are called with all three
 * arguments whatever they take, as the kernel does. Not by libc's calls: the agent has its own.
 */
static void pass_on(int sig, siginfo_t *info, void *context)
{
	static const uint64_t by_default[8]; /* the kernel's sigaction, in which 0 is SIG_DFL */
	const struct mark ours = { &inprocess_cookie, (uintptr_t)__builtin_frame_address(0) };
	uintptr_t to = atomic_load(&beneath);
	struct mark *mark = mark_of(info);

	if (mark->by == ours.by && ours.frame < mark->frame)
		return;
	if (to == (uintptr_t)SIG_DFL) {
		syscall(SYS_rt_sigaction, (long)sig, by_default, NULL, (long)INPROCESS_SET_LEN);
		/* Delivered when the handler returns. */
		syscall(SYS_tgkill, (long)getpid(), syscall(SYS_gettid), (long)sig);
	} else if (to != (uintptr_t)SIG_IGN) {
		*mark = ours;
		((void (*)(int, siginfo_t *, void *))to)(sig, info, context);
		mark->by = NULL;
	}
}

static bool hand_over(const siginfo_t *info, const void *context)
{
	uint32_t mine = atomic_load(&side);
	const struct inprocess_client *client;

	atomic_fetch_add(&readers[mine], 1);
	client = atomic_load(&current);
	if (client) {
		const struct inprocess_tick tick = {
			.pc = sigcontext_pc(context),
			.nr = 1 + (info->si_overrun > 0 ? (uint32_t)info->si_overrun : 0),
			.ucontext = context,
		};

		if (client->tick(client->ctx, &tick) < 0)
			atomic_compare_exchange_strong(&current, &client, NULL);
	}
	atomic_fetch_sub(&readers[mine], 1);
	return client;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &inprocess_cookie) {
		pass_on(sig, info, context);
	} else if (!hand_over(info, context)) {
		inprocess_threads_disarm_self(false);
	} else if (inprocess_threads_scan_due()) {
		inprocess_threads_scan(false);
	}
	errno = saved;
}

/* ---- outside --------------------------------------------------------------------------------- */

static void wait_a_moment(void)
{
	static const struct timespec moment = { 0, 50000 };

	syscall(SYS_nanosleep, &moment, NULL); /* libc's can be cancelled */
}

static void wait_for_handlers(void)
{
	for (int turn = 0; turn < 2; turn++) {
		uint32_t old = atomic_load(&side);

		atomic_store(&side, !old);
		while (atomic_load(&readers[old]))
			wait_a_moment();
	}
}

static void set_before(const struct sigaction *act)
{
	before = *act;
	atomic_store(&beneath, act->sa_flags & SA_SIGINFO ? (uintptr_t)act->sa_sigaction
							  : (uintptr_t)act->sa_handler);
}

static bool is_ours(const struct sigaction *act)
{
	return (act->sa_flags & SA_SIGINFO) && act->sa_sigaction == on_signal;
}

/* The program may have set another handler since the last time, also while ticks were on. */
static int install(int sig)
{
	struct sigaction ours, now;

	memset(&ours, 0, sizeof(ours));
	ours.sa_sigaction = on_signal;
	ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
	memset(&ours.sa_mask, 0xff, sizeof(ours.sa_mask));
	if (sigaction(sig, NULL, &now) < 0)
		return -errno;
	if (!is_ours(&now)) {
		set_before(&now);
		if (sigaction(sig, &ours, NULL) < 0)
			return -errno;
	}
	atomic_store(&installed, sig);
	return 0;
}

/*
 * A timer's signal can be pending in some thread although the timer is gone, and the default for
 * SIGPROF is to end the process: ignoring it for an instant drops what is pending.
 */
static void uninstall(void)
{
	int sig = atomic_load(&installed);
	struct sigaction now;

	if (!sigaction(sig, NULL, &now) && is_ours(&now)) {
		signal(sig, SIG_IGN);
		sigaction(sig, &before, NULL);
	}
	atomic_store(&installed, 0);
}

static void begin_child(void)
{
	atomic_store(&readers[0], 0);
	atomic_store(&readers[1], 0);
	inprocess_threads_forget();
	atomic_store(&owner, getpid());
}

/*
 * A child that no hook told of: what other threads of the parent had locked stays so. One of its
 * threads begins anew; the others wait until the lock is theirs to take.
 */
static void begin_unhooked_child(void)
{
	static _Atomic pid_t beginner;
	pid_t self = getpid(), was = atomic_load(&beginner);

	if (!atomic_load(&owner) || inprocess_own())
		return;
	if (was != self && atomic_compare_exchange_strong(&beginner, &was, self)) {
		atomic_store(&current, NULL);
		atomic_store(&control.word, 0);
		begin_child();
	}
	while (!inprocess_own())
		wait_a_moment();
}

/* The hooks run in a child by _Fork too, when it forks: nothing of this is its own then. */
static void before_fork(void)
{
	struct inprocess_signals old;

	if (!inprocess_own()) {
		fork_is_ours = false;
		return;
	}
	inprocess_signals_block(&old);
	inprocess_lock_take(&control);
	inprocess_threads_freeze(true);
	fork_signals = old;
	fork_is_ours = true;
}

static void after_fork(void)
{
	struct inprocess_signals old = fork_signals;

	if (!fork_is_ours)
		return;
	inprocess_threads_freeze(false);
	inprocess_lock_drop(&control);
	inprocess_signals_restore(&old);
}

static void after_fork_child(void)
{
	struct inprocess_signals old = fork_signals;
	const struct inprocess_client *client = atomic_load(&current);

	if (!fork_is_ours)
		return;
	begin_child();
	if (client) {
		if (client->forked)
			client->forked(client->ctx);
		inprocess_threads_arm_self();
	}
	atomic_store(&control.word, 0);
	inprocess_signals_restore(&old);
}

/* Not a constructor: a process that never asks is left alone. */
static int prepare(void)
{
	if (hooked)
		return 0;
	atomic_store(&owner, getpid());
	if (inprocess_create_init() < 0 ||
	    pthread_atfork(before_fork, after_fork, after_fork_child))
		return -ENOMEM;
	hooked = true;
	return 0;
}

static void stop(void)
{
	atomic_store(&current, NULL);
	wait_for_handlers();
	inprocess_threads_disarm_all();
	if (atomic_load(&installed))
		uninstall();
}

static int start(const struct inprocess_client *client, int sig)
{
	const struct inprocess_client *old = atomic_load(&current);
	int ret = install(sig);

	if (ret < 0)
		return ret;
	atomic_store(&current, client);
	ret = inprocess_threads_arm_self();
	if (ret < 0) {
		atomic_store(&current, old);
		wait_for_handlers();
		if (!old) /* other threads may have a timer by now, or still */
			stop();
		return ret;
	}
	/* Without /proc there is this thread, and those made from now on. */
	inprocess_threads_scan(true);
	wait_for_handlers();
	return 0;
}

int inprocess_set(const struct inprocess_client *client, int sig,
		  const struct inprocess_client **old)
{
	const struct inprocess_client *replaced = NULL;
	struct inprocess_signals signals;
	int ret = 0;

	inprocess_signals_block(&signals);
	begin_unhooked_child();
	inprocess_lock_take(&control);
	if (client)
		ret = prepare();
	if (!ret && client)
		ret = start(client, sig);
	else if (!ret && hooked)
		stop();
	if (!ret) {
		replaced = given;
		given = client;
	}
	inprocess_lock_drop(&control);
	inprocess_signals_restore(&signals);
	if (old)
		*old = replaced;
	return ret;
}

void inprocess_before(const struct sigaction *act, struct sigaction *old)
{
	struct inprocess_signals signals;
	struct sigaction was, next;

	if (act)
		next = *act;
	inprocess_signals_block(&signals);
	inprocess_lock_take(&control);
	was = before;
	if (act)
		set_before(&next);
	inprocess_lock_drop(&control);
	inprocess_signals_restore(&signals);
	if (old)
		*old = was;
}

bool inprocess_own(void)
{
	return atomic_load(&owner) == getpid();
}

uint64_t inprocess_tick_ns(void)
{
	struct timespec tick = { 0, 0 };

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) < 0 || (!tick.tv_sec && !tick.tv_nsec))
		return 10000000;
	return (uint64_t)tick.tv_sec * 1000000000 + (uint64_t)tick.tv_nsec;
}
