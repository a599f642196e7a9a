/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libuvprof: the calling thread's counter interrupts run a handler of the program itself, with the
 * interrupted pc. It needs libc alone and no daemon. The whole contract is in uvprof(3).
 */
#ifndef UVPROF_H
#define UVPROF_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define UVPROF_API __attribute__((visibility("default")))
#else
#define UVPROF_API
#endif

/*
 * It runs in the sampled thread, as a signal handler: only functions that are safe there may be
 * called. @pc is the interrupted instruction, @context the ucontext_t.
 */
typedef void uvprof_handler(void *arg, void *pc, void *context);

/* The events. Hardware events need a PMU, and have no timer in their place. */
#define UVPROF_TASK_CLOCK   0u /* nanoseconds of CPU time of the thread */
#define UVPROF_CPU_CLOCK    1u /* the same, by the CPU's clock */
#define UVPROF_CYCLES	    2u /* cycles in user mode */
#define UVPROF_INSTRUCTIONS 3u /* instructions in user mode */

/* The sources of interrupts. */
#define UVPROF_ANY   0u /* perf where the kernel permits it, else a timer */
#define UVPROF_PERF  1u /* perf_event_open with sigtrap: SIGTRAP */
#define UVPROF_TIMER 2u /* a POSIX timer of the thread's CPU time: SIGPROF */

struct uvprof_request {
	uvprof_handler *handler;
	void *arg;	 /* passed to the handler */
	uint64_t period; /* of the event; at least 1000 */
	unsigned int event;
	unsigned int source;
};

struct uvprof_counts {
	uint64_t runs;	     /* times that the handler was called */
	uint64_t late;	     /* of these, delivered after SIGTRAP was unblocked: pc is of then */
	uint64_t missed;     /* expirations of the timer that had no run of their own */
	unsigned int source; /* UVPROF_PERF or UVPROF_TIMER; 0: never started */
	int fd;		     /* descriptor of the perf event while it runs, else -1 */
};

/*
 * Begin for the calling thread. 0, or -1 with errno: EINVAL (@request), EBUSY (this thread has
 * begun already), or the error of the last source that was tried. Safe in signal handlers where the
 * C library's pthread_setspecific is, as in glibc and musl for the first keys of a program.
 */
UVPROF_API int uvprof_start(const struct uvprof_request *request);

/* Stop for the calling thread; no handler runs in it afterwards. Safe in signal handlers. */
UVPROF_API void uvprof_stop(void);

/* The calling thread's counts since it started last. Safe in signal handlers. */
UVPROF_API void uvprof_read(struct uvprof_counts *counts);

#ifdef __cplusplus
}
#endif

#endif
