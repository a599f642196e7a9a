/* SPDX-License-Identifier: BSD-2-Clause */
/* Handlers of profiling signals: the parts that differ by machine and libc. Nothing of base. */
#ifndef DCPI_SIGCONTEXT_H
#define DCPI_SIGCONTEXT_H

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

#ifndef sigev_notify_thread_id /* not every libc names it */
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* The instruction that the signal interrupted. @context: the handler's third argument. */
static inline uintptr_t sigcontext_pc(const void *context)
{
	const ucontext_t *u = context;
#if defined(__x86_64__)
	return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return u->uc_mcontext.pc;
#elif defined(__s390x__)
	return u->uc_mcontext.psw.addr;
#elif defined(__riscv)
	return u->uc_mcontext.__gregs[REG_PC];
#else
#error "where does this machine's ucontext keep the pc?"
#endif
}

#endif
