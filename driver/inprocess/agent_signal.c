/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's signal is nobody else's: a program that resets or blocks all signals (before it
 * executes another one, in threads of its own) means those it knows. A reset one would end it at
 * the next tick. libc's calls as the program makes them, with libc's behind.
 */
#include "agent.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef int action_fn(int, const struct sigaction *, struct sigaction *);
typedef int mask_fn(int, const sigset_t *, sigset_t *);
typedef void (*handler)(int);
typedef handler signal_fn(int, handler);

static _Atomic(void *) libc_sigaction, libc_sigprocmask, libc_pthread_sigmask, libc_signal;
static _Atomic int kept; /* the signal, 0: none yet */
static struct sigaction pretended;

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
}

void agent_signal_keep(int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	((mask_fn *)libc(&libc_pthread_sigmask, "pthread_sigmask"))(SIG_UNBLOCK, &set, NULL);
	atomic_store(&kept, signo);
}

EXPORTED int sigaction(int signo, const struct sigaction *act, struct sigaction *old)
{
	action_fn *next = (action_fn *)libc(&libc_sigaction, "sigaction");
	int ours = atomic_load_explicit(&kept, memory_order_relaxed);
	struct sigaction without;

	if (!ours)
		return next(signo, act, old);
	if (signo == ours) {
		struct sigaction was = pretended;

		if (act)
			pretended = *act;
		if (old)
			*old = was;
		return 0;
	}
	if (act) {
		without = *act;
		sigdelset(&without.sa_mask, ours);
	}
	return next(signo, act ? &without : NULL, old);
}

EXPORTED handler signal(int signo, handler to)
{
	signal_fn *next = (signal_fn *)libc(&libc_signal, "signal");
	handler was;

	if (!signo || signo != atomic_load_explicit(&kept, memory_order_relaxed))
		return next(signo, to);
	was = pretended.sa_handler;
	memset(&pretended, 0, sizeof(pretended));
	pretended.sa_handler = to;
	return was;
}

static int change_mask(mask_fn *next, int how, const sigset_t *set, sigset_t *old)
{
	int ours = atomic_load_explicit(&kept, memory_order_relaxed);
	sigset_t without;

	if (!ours || !set || how == SIG_UNBLOCK)
		return next(how, set, old);
	without = *set;
	sigdelset(&without, ours);
	return next(how, &without, old);
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
