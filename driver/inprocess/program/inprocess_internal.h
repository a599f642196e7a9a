/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ticks of every thread of one's own process, by the thread's own CPU time: what libsprofil and
 * dcpirun's agent are built on. It needs libc alone, no rights, and starts no thread.
 *
 * Each thread has a POSIX timer on its CPU clock that signals the thread itself; the kernel
 * looks at such timers at its tick, so that is the rate, whatever would be asked. Threads are
 * found in /proc/self/task when ticks are switched on, and from then on by pthread_create and
 * thrd_create (interposed by ticks_linux.c) and by looking there again from the signal handler, ten
 * times a second at most, for threads made by other means. After fork the child has timers of its
 * own; a child by clone or _Fork, of which no hook tells, has none, nor have its children, until it
 * calls inprocess_set; exec ends everything.
 *
 * One copy of this machinery per shared object; copies in one process do not disturb each other
 * (each knows its own signals and passes others on to the handler that was there before).
 */
#ifndef DCPI_INPROCESS_INTERNAL_H
#define DCPI_INPROCESS_INTERNAL_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- ticks ----------------------------------------------------------------------------------- */

struct inprocess_tick {
	uint64_t pc;	      /* vaddr of the instruction that was to run next */
	uint32_t nr;	      /* ticks' worth of CPU time: 1, and what the timer overran since */
	const void *ucontext; /* as signal handlers get it */
};

/*
 * Both are called with all signals blocked and errno saved, and must be async-signal-safe: they
 * run inside a signal handler on whatever stack the thread has there (the alternate one if there
 * is one): keep below 1 KiB of it, take no lock that anybody holds with signals let through.
 */
struct inprocess_client {
	/* On each tick, in the thread that ticked; several threads at once. Negative: switch off.
	 */
	int (*tick)(void *ctx, const struct inprocess_tick *tick);
	/* In a child after fork, before its first tick; it has one thread. May be NULL. */
	void (*forked)(void *ctx);
	void *ctx;
};

/*
 * From now on @client (which must stay until it is replaced) gets the ticks instead of the one
 * before; NULL: nobody. When it returns, no call to the one before is running or will come, so
 * what that used may be freed. With NULL the timers are gone, no signal of theirs is pending, and
 * the disposition of @signo that was found at first is back, unless the program has set
 * another since. @old (may be NULL) gets the client of the call before, also where a tick has
 * switched it off since, or NULL. Same @signo (SIGPROF) in each call until then. From any thread;
 * not from a tick. 0, or -errno (-EAGAIN: the calling thread could have no timer, nothing has
 * changed).
 */
int inprocess_set(const struct inprocess_client *client, int signo,
		  const struct inprocess_client **old);

/*
 * The action for signals of that number that do not come from our timers, read and set as by
 * sigaction(2): for an object that keeps the program from setting it itself. Only if inprocess_own.
 * From any thread, and from signal handlers, but not from a tick.
 */
void inprocess_before(const struct sigaction *act, struct sigaction *old);

/* False in a process that no ticks were ever asked for in, as in a child by vfork, clone or _Fork.
 */
bool inprocess_own(void);

/* The time between two ticks: the kernel's tick, as CLOCK_MONOTONIC_COARSE tells it. */
uint64_t inprocess_tick_ns(void);

/* ---- locks that may be taken in a signal handler --------------------------------------------- */

/*
 * The holder must have all signals blocked (in a tick they are). A waiter sleeps, so that a holder
 * of a lower priority gets to run.
 */
struct inprocess_lock {
	_Atomic uint32_t word; /* 0 free, 1 taken, 2 taken and waited for */
};

void inprocess_lock_take(struct inprocess_lock *lock);
void inprocess_lock_drop(struct inprocess_lock *lock);

/* All signals, also those that libc keeps to itself (cancellation would leave locks taken). */
struct inprocess_signals {
	uint64_t words[2];
};
void inprocess_signals_block(struct inprocess_signals *old);
void inprocess_signals_restore(const struct inprocess_signals *old);
/* The kernel's set has _NSIG - 1 bits, libc's is larger. */
enum { INPROCESS_SET_LEN = (_NSIG - 1) / 8 };

/* ---- memory that may not be there ------------------------------------------------------------ */

/*
 * Copy between memory of our own and addresses that may not be mapped, or not be writable: through
 * the kernel, so that there is no fault to catch and no race with munmap. 0; -EFAULT; -errno of
 * what the copy needed (descriptors, where process_vm_readv is not there). Async-signal-safe.
 */
int inprocess_copy_from(void *to, uint64_t vaddr, size_t len);
int inprocess_copy_to(uint64_t vaddr, const void *from, size_t len);

/* ---- threads and their timers (only for the files of this folder) ---------------------------- */

/* Signals from timers carry this address, unique to this copy of the machinery. */
extern char inprocess_cookie;

/* Both take the table's lock, with all signals blocked. */
int inprocess_threads_scan(bool wait); /* arm all, forget dead ones; 0 or -errno */
size_t inprocess_threads_nr(void);     /* with a timer */

#endif
