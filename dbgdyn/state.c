/* SPDX-License-Identifier: BSD-2-Clause */
/* The page of private state that fork wipes, and the lock that guards it. */
#include "dbgdyn_internal.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* A constant address through fork: the child finds the page wiped, or (check_pid) not its own. */
static struct dbgdyn_state *state;

static bool foreign(const struct dbgdyn_state *s)
{
	return s->check_pid && s->pid != (uint32_t)getpid();
}

static struct dbgdyn_state *state_new(void)
{
	size_t allowed = dbgdyn_layout_allowed();
	bool wiped = false;
	struct dbgdyn_layout l;
	struct dbgdyn_state *s = NULL;
	uint8_t *area = NULL;

	/*
	 * The area that the registry will want, in one piece with the state where it can be had.
	 * The state comes last, near what the process has mapped: page tables are there already.
	 */
	if (dbgdyn_layout_make(&l, allowed))
		area = dbgdyn_memory_page(l.area_len + WIRE_PAGE, &wiped);
	if (area) {
		s = (void *)(area + l.area_len);
		s->area_len = l.area_len;
	} else {
		s = dbgdyn_memory_page(WIRE_PAGE, &wiped);
	}
	if (s)
		s->allowed_len = allowed;
	if (s && !wiped) {
		s->pid = (uint32_t)getpid();
		s->check_pid = 1;
	}
	return s;
}

struct dbgdyn_state *dbgdyn_state_get(bool make)
{
	struct dbgdyn_state *s = __atomic_load_n(&state, __ATOMIC_ACQUIRE), *fresh;

	if (s && !foreign(s))
		return s;
	if (!make)
		return NULL;
	fresh = state_new();
	if (!fresh)
		return NULL;
	/* A foreign page is left to leak: another thread of the child may look at it just now. */
	if (__atomic_compare_exchange_n(&state, &s, fresh, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return fresh;
	munmap((uint8_t *)fresh - fresh->area_len, fresh->area_len + WIRE_PAGE);
	return s;
}

/* A call of dbgdyn_register comes here too: it is no cancellation point and leaves errno alone. */
static void nap(void)
{
	int error = errno, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	pthread_setcancelstate(cancel, &cancel);
	errno = error;
}

static void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Where no system call is allowed, all that can be done is to spin: as many turns as take that
 * long. */
#define QUIET_TURNS 1000u

static void relax(const struct dbgdyn_state *s, unsigned int turn)
{
	if (__atomic_load_n(&s->no_syscalls, __ATOMIC_RELAXED)) {
		for (unsigned int i = 0; i < QUIET_TURNS; i++)
			pause_cpu();
		return;
	}
	/* Yields first; then sleeps, as a yield lets no thread of lower priority run. */
	if (turn < 100)
		return;
	if (turn < 1100)
		sched_yield();
	else
		nap();
}

/*
 * No futex and no pthread mutex: neither may be used in a signal handler, and a fork's child would
 * inherit one locked. Nothing that can sleep happens under this lock but at the first begin.
 */
bool dbgdyn_lock(struct dbgdyn_state *s)
{
	uintptr_t self = (uintptr_t)pthread_self();

	for (unsigned int turn = 0; turn < 2500; turn++) {
		uintptr_t holder = 0;

		if (__atomic_compare_exchange_n(&s->lock, &holder, self, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
		if (holder == self)
			return false;
		relax(s, turn);
	}
	return false;
}

void dbgdyn_unlock(struct dbgdyn_state *s)
{
	__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

struct dbgdyn_state *dbgdyn_context_find(uint64_t context, uint32_t *index)
{
	struct dbgdyn_state *s = dbgdyn_state_get(false);
	uint64_t generation = s ? __atomic_load_n(&s->generation, __ATOMIC_ACQUIRE) : 0;

	*index = (uint32_t)(context & 0xff) - 1;
	if (!generation || context >> 8 != generation || *index >= WIRE_NR_FACILITIES)
		return NULL;
	return __atomic_load_n(&s->open[*index], __ATOMIC_ACQUIRE) ? s : NULL;
}
