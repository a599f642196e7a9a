/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libuvprof: has a thread's counter interrupts call a handler of the program, by a perf event that
 * sends SIGTRAP, or by a timer of the thread's CPU time.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "uvprof.h"

#include "sigcontext.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define MIN_PERIOD 1000
#ifndef TRAP_PERF
#define TRAP_PERF 6
#endif
#define FLAG_ASYNC 1u /* TRAP_PERF_FLAG_ASYNC of the kernel */

/* The kernel's siginfo of a perf event; older libcs do not name its fields. */
struct perf_siginfo {
	int signo, err, code;
	void *addr;
	unsigned long data;
	uint32_t type, flags;
};

struct thread {
	struct uvprof_request request;
	struct uvprof_counts counts;
	int timer;
	volatile sig_atomic_t active;
	/* Interrupts of this start carry the mark: the thread's address, and above it the start's
	 * number, as a signal of an earlier one may still be pending. */
	uintptr_t starts, mark;
};

#define MARK_SHIFT 48 /* addresses leave the bits from here on free */

/* initial-exec: a signal handler must not be the first to allocate it. */
static _Thread_local struct thread self
	__attribute__((tls_model("initial-exec"))) = { .counts.fd = -1 };
static pthread_key_t at_exit;
static bool has_key;
/* Linux before 5.18 ends a program whose event overflows while SIGTRAP is blocked. */
static bool has_sigtrap;
static struct sigaction before_trap, before_prof;
static int installed_trap, installed_prof;

/* The handler may longjmp, so nothing is left to do behind its call but for errno. */
static void run(ucontext_t *context)
{
	int error = errno;

	self.counts.runs++;
	self.request.handler(self.request.arg, (void *)sigcontext_pc(context), context);
	errno = error;
}

/* A signal that is not ours does as it did before uvprof_start. */
static void pass_on(const struct sigaction *before, int sig, siginfo_t *info, void *context)
{
	if (before->sa_flags & SA_SIGINFO) {
		before->sa_sigaction(sig, info, context);
	} else if (before->sa_handler == SIG_DFL) {
		signal(sig, SIG_DFL);
		raise(sig);
	} else if (before->sa_handler != SIG_IGN) {
		before->sa_handler(sig);
	}
}

static bool is_own(uintptr_t mark)
{
	return (mark ^ (uintptr_t)&self) << (64 - MARK_SHIFT) == 0;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	const struct perf_siginfo *perf = (const void *)info;

	if (info->si_code != TRAP_PERF || !is_own(perf->data)) {
		pass_on(&before_trap, sig, info, context);
	} else if (self.active && perf->data == self.mark) {
		self.counts.late += perf->flags & FLAG_ASYNC;
		run(context);
	}
}

static void on_prof(int sig, siginfo_t *info, void *context)
{
	const uintptr_t mark = (uintptr_t)info->si_value.sival_ptr;

	if (info->si_code != SI_TIMER || !is_own(mark)) {
		pass_on(&before_prof, sig, info, context);
	} else if (self.active && mark == self.mark) {
		self.counts.missed += (uint64_t)info->si_overrun;
		run(context);
	}
}

/* The handler stays for the life of the process: another thread may need it. */
static int install(int sig, int *installed, struct sigaction *before,
		   void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction now = { .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	struct sigaction was;

	if (__atomic_load_n(installed, __ATOMIC_ACQUIRE))
		return 0;
	now.sa_sigaction = handler;
	sigemptyset(&now.sa_mask);
	if (sigaction(sig, NULL, &was) < 0)
		return -1;
	if (!(was.sa_flags & SA_SIGINFO) || was.sa_sigaction != handler)
		*before = was;
	if (sigaction(sig, &now, NULL) < 0)
		return -1;
	__atomic_store_n(installed, 1, __ATOMIC_RELEASE);
	return 0;
}

static void describe(struct perf_event_attr *attr, const struct uvprof_request *request)
{
	static const struct {
		uint32_t type;
		uint64_t config;
	} events[] = {
		[UVPROF_TASK_CLOCK] = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
		[UVPROF_CPU_CLOCK] = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
		[UVPROF_CYCLES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		[UVPROF_INSTRUCTIONS] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	};

	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = events[request->event].type;
	attr->config = events[request->event].config;
	attr->sample_period = request->period;
	attr->sample_type = PERF_SAMPLE_IP;
	attr->disabled = 1;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	attr->sigtrap = 1;
	attr->remove_on_exec = 1; /* sigtrap asks for it */
	attr->sig_data = self.mark;
}

static int start_perf(void)
{
	struct perf_event_attr attr;
	int fd;

	if (!has_sigtrap) {
		errno = ENOSYS;
		return -1;
	}
	describe(&attr, &self.request);
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -1;
	if (install(SIGTRAP, &installed_trap, &before_trap, on_trap) < 0) {
		close(fd);
		return -1;
	}
	self.counts.source = UVPROF_PERF;
	self.counts.fd = fd;
	self.active = 1;
	return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

/* The kernel's own calls: those of libc may allocate memory. */
static int start_timer(void)
{
	uint64_t period = self.request.period;
	struct itimerspec spec = { .it_value = { (time_t)(period / 1000000000),
						 (long)(period % 1000000000) } };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };

	if (install(SIGPROF, &installed_prof, &before_prof, on_prof) < 0)
		return -1;
	event.sigev_value.sival_ptr = (void *)self.mark;
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &self.timer) < 0)
		return -1;
	self.counts.source = UVPROF_TIMER;
	self.active = 1;
	spec.it_interval = spec.it_value;
	return (int)syscall(SYS_timer_settime, self.timer, 0, &spec, NULL);
}

/* No handler of the program comes between the steps of a start or a stop. */
static void block_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

static void stop(void)
{
	int error = errno;

	if (!self.active)
		return;
	self.active = 0;
	if (self.counts.source == UVPROF_TIMER) {
		syscall(SYS_timer_delete, self.timer);
	} else {
		/* A child of fork may hold the descriptor too, so closing it is not enough. */
		ioctl(self.counts.fd, PERF_EVENT_IOC_DISABLE, 0);
		close(self.counts.fd);
		self.counts.fd = -1;
	}
	errno = error;
}

static int start_source(void)
{
	bool timed = self.request.event <= UVPROF_CPU_CLOCK;

	if (self.request.source == UVPROF_TIMER && !timed) {
		errno = ENOENT;
		return -1;
	}
	if (self.request.source != UVPROF_TIMER && start_perf() == 0)
		return 0;
	if (self.request.source == UVPROF_PERF || !timed)
		return -1;
	stop();
	return start_timer();
}

static int start(const struct uvprof_request *request)
{
	if (self.active) {
		errno = EBUSY;
		return -1;
	}
	self.request = *request;
	self.counts = (struct uvprof_counts){ .fd = -1 };
	self.mark = (uintptr_t)&self ^ ++self.starts << MARK_SHIFT;
	if (has_key)
		pthread_setspecific(at_exit, &self);
	if (start_source() == 0)
		return 0;
	stop();
	return -1;
}

int uvprof_start(const struct uvprof_request *request)
{
	sigset_t before;
	int r, error;

	if (!request || !request->handler || request->period < MIN_PERIOD ||
	    request->event > UVPROF_INSTRUCTIONS || request->source > UVPROF_TIMER) {
		errno = EINVAL;
		return -1;
	}
	block_signals(&before);
	r = start(request);
	error = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return r;
}

void uvprof_stop(void)
{
	sigset_t before;

	block_signals(&before);
	stop();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void uvprof_read(struct uvprof_counts *counts)
{
	*counts = self.counts;
}

static void thread_exits(void *thread)
{
	(void)thread;
	uvprof_stop();
}

/* The event and the timer belong to the parent's thread; the child only gives back its descriptor.
 */
static void in_child(void)
{
	if (self.active && self.counts.fd >= 0)
		close(self.counts.fd);
	self.active = 0;
	self.counts.fd = -1;
}

__attribute__((constructor)) static void prepare(void)
{
	struct utsname name;
	unsigned int major, minor;

	has_sigtrap = uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
		      (major > 5 || (major == 5 && minor >= 18));
	has_key = pthread_key_create(&at_exit, thread_exits) == 0;
	pthread_atfork(NULL, NULL, in_child);
}
