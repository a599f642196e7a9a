/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads made while ticks are on: pthread_create and thrd_create as the program calls them, with
 * libc's behind. The new thread arms its own timer before its first instruction of the program, and
 * drops it at its end. While ticks are off nothing is added.
 */
#include "inprocess_internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

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

int inprocess_create_init(void)
{
	return -pthread_key_create(&key, leave);
}

/* What to pass on in place of the program's start, or NULL: nothing is to be added. */
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
