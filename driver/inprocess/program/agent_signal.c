/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's signal is nobody else's: a program that resets, blocks or waits for all signals
 * (before it executes another one, in threads of its own) means those it knows. A reset one would
 * end it at the next tick. libc's calls as the program makes them, with libc's behind. The handler
 * that a program sets gets the signals of that number that are not the agent's. Children by vfork
 * and the like have no ticks: their calls are let through, what they set is not the parent's.
 */
#include "agent.h"
#include "inprocess_internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/signalfd.h>

#define EXPORTED __attribute__((visibility("default")))

typedef int action_fn(int, const struct sigaction *, struct sigaction *);
typedef int mask_fn(int, const sigset_t *, sigset_t *);
typedef void (*handler)(int);
typedef handler signal_fn(int, handler);
typedef int wait_fn(const sigset_t *, int *);
typedef int waitinfo_fn(const sigset_t *, siginfo_t *);
typedef int timedwait_fn(const sigset_t *, siginfo_t *, const struct timespec *);
typedef int signalfd_fn(int, const sigset_t *, int);

static _Atomic(void *) libc_sigaction, libc_sigprocmask, libc_pthread_sigmask, libc_signal;
static _Atomic(void *) libc_sigwait, libc_sigwaitinfo, libc_sigtimedwait, libc_signalfd;
static _Atomic int kept; /* the signal, 0: none yet */

/* Signal handlers may come here: what they need was looked up before, in all but odd cases. */
static void *libc(_Atomic(void *) *slot, const char *name)
{
	void *found = atomic_load_explicit(slot, memory_order_relaxed);

	if (!found) {
		found = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(slot, found, memory_order_relaxed);
	}
	return found;
}

void agent_signal_prepare(void)
{
	libc(&libc_sigaction, "sigaction");
	libc(&libc_sigprocmask, "sigprocmask");
	libc(&libc_pthread_sigmask, "pthread_sigmask");
	libc(&libc_signal, "signal");
	libc(&libc_sigwait, "sigwait");
	libc(&libc_sigwaitinfo, "sigwaitinfo");
	libc(&libc_sigtimedwait, "sigtimedwait");
	libc(&libc_signalfd, "signalfd");
}

void agent_signal_keep(int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	((mask_fn *)libc(&libc_pthread_sigmask, "pthread_sigmask"))(SIG_UNBLOCK, &set, NULL);
	atomic_store(&kept, signo);
}

static int kept_signo(void)
{
	return atomic_load_explicit(&kept, memory_order_relaxed);
}

/* @set, or a copy of it in @room that is without ours. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *space)
{
	int ours = kept_signo();

	if (!ours || !set || sigismember(set, ours) != 1 || !inprocess_own())
		return set;
	*space = *set;
	sigdelset(space, ours);
	return space;
}

EXPORTED int sigaction(int signo, const struct sigaction *act, struct sigaction *old)
{
	action_fn *next = (action_fn *)libc(&libc_sigaction, "sigaction");
	struct sigaction without;
	sigset_t space;

	if (signo && signo == kept_signo() && inprocess_own()) {
		inprocess_before(act, old);
		return 0;
	}
	if (act && without_ours(&act->sa_mask, &space) == &space) {
		without = *act;
		without.sa_mask = space;
		act = &without;
	}
	return next(signo, act, old);
}

EXPORTED handler signal(int signo, handler to)
{
	signal_fn *next = (signal_fn *)libc(&libc_signal, "signal");
	struct sigaction act, was;

	if (!signo || signo != kept_signo() || !inprocess_own())
		return next(signo, to);
	memset(&act, 0, sizeof(act));
	act.sa_handler = to;
	inprocess_before(&act, &was);
	return was.sa_handler;
}

static int change_mask(mask_fn *next, int how, const sigset_t *set, sigset_t *old)
{
	sigset_t space;

	return next(how, how == SIG_UNBLOCK ? set : without_ours(set, &space), old);
}

EXPORTED int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return change_mask((mask_fn *)libc(&libc_sigprocmask, "sigprocmask"), how, set, old);
}

EXPORTED int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return change_mask((mask_fn *)libc(&libc_pthread_sigmask, "pthread_sigmask"), how, set,
			   old);
}

/* A tick that falls into the call itself must not be what the program waited for. */

EXPORTED int sigwait(const sigset_t *set, int *signo)
{
	wait_fn *next = (wait_fn *)libc(&libc_sigwait, "sigwait");
	sigset_t space;

	return next(without_ours(set, &space), signo);
}

EXPORTED int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	waitinfo_fn *next = (waitinfo_fn *)libc(&libc_sigwaitinfo, "sigwaitinfo");
	sigset_t space;

	return next(without_ours(set, &space), info);
}

EXPORTED int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	timedwait_fn *next = (timedwait_fn *)libc(&libc_sigtimedwait, "sigtimedwait");
	sigset_t space;

	return next(without_ours(set, &space), info, timeout);
}

EXPORTED int signalfd(int fd, const sigset_t *set, int flags)
{
	signalfd_fn *next = (signalfd_fn *)libc(&libc_signalfd, "signalfd");
	sigset_t space;

	return next(fd, without_ours(set, &space), flags);
}
