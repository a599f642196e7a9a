/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks and signal masks that hold in signal handlers. */
#include "inprocess_internal.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FREE, TAKEN, WAITED };
enum {
	WAIT = 0 | 128,
	WAKE = 1 | 128
}; /* FUTEX_…_PRIVATE; musl comes without the kernel's headers */

bool inprocess_lock_try(struct inprocess_lock *lock)
{
	uint32_t expected = FREE;

	return atomic_compare_exchange_strong(&lock->word, &expected, TAKEN);
}

void inprocess_lock_take(struct inprocess_lock *lock)
{
	if (inprocess_lock_try(lock))
		return;
	while (atomic_exchange(&lock->word, WAITED) != FREE)
		syscall(SYS_futex, &lock->word, WAIT, WAITED, NULL, NULL, 0);
}

void inprocess_lock_drop(struct inprocess_lock *lock)
{
	if (atomic_exchange(&lock->word, FREE) == WAITED)
		syscall(SYS_futex, &lock->word, WAKE, 1, NULL, NULL, 0);
}

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

void inprocess_signals_fill(sigset_t *set)
{
	memset(set, 0xff, sizeof(*set));
}
