/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal handler, and who gets its ticks. A client is replaced as RCU does it: swap the
 * pointer, then wait until every handler that may have read the old one has left. Handlers count
 * themselves in one of two counters; the writer turns the others' way to the other one, twice, so
 * that a steady stream of ticks cannot keep it waiting.
 */
#include "inprocess_internal.h"
#include "sigcontext.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic(const struct inprocess_client *) current; /* NULL: ticks are off */
static _Atomic uint32_t readers[2];
static _Atomic uint32_t side;
static _Atomic int signo;	  /* 0: no handler of ours is installed */
static _Atomic uintptr_t beneath; /* the handler of signals that are not ours */
static _Atomic pid_t owner;	  /* the process that all this is of */

static struct inprocess_lock control; /* lock of the variables below; our handlers do not take it */
static struct sigaction before;	      /* the previous action, with flags and mask */
static const struct inprocess_client
	*given; /* the action of the last call: current, unless a tick has ended it */
static struct inprocess_signals fork_signals;
static bool hooked, fork_is_ours;

/* ---- in the handler ------------------------------------------------------------------------ */

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

/* ---- outside ------------------------------------------------------------------------------- */

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
	inprocess_signals_fill(&ours.sa_mask);
	if (sigaction(sig, NULL, &now) < 0)
		return -errno;
	if (!is_ours(&now)) {
		set_before(&now);
		if (sigaction(sig, &ours, NULL) < 0)
			return -errno;
	}
	atomic_store(&signo, sig);
	return 0;
}

/*
 * A timer's signal can be pending in some thread although the timer is gone, and the default for
 * SIGPROF is to end the process: ignoring it for an instant drops what is pending.
 */
static void uninstall(void)
{
	int sig = atomic_load(&signo);
	struct sigaction now;

	if (!sigaction(sig, NULL, &now) && is_ours(&now)) {
		signal(sig, SIG_IGN);
		sigaction(sig, &before, NULL);
	}
	atomic_store(&signo, 0);
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
	if (atomic_load(&signo))
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

int inprocess_signo(void)
{
	return atomic_load(&current) && inprocess_own() ? atomic_load(&signo) : 0;
}

uint64_t inprocess_tick_ns(void)
{
	struct timespec tick = { 0, 0 };

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) < 0 || (!tick.tv_sec && !tick.tv_nsec))
		return 10000000;
	return (uint64_t)tick.tv_sec * 1000000000 + (uint64_t)tick.tv_nsec;
}
