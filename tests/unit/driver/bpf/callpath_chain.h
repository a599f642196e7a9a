/* SPDX-License-Identifier: BSD-2-Clause */
/* Work behind known callers. */
#ifndef DCPI_TEST_CALLPATH_CHAIN_H
#define DCPI_TEST_CALLPATH_CHAIN_H

#include <stdint.h>

enum chain_how {
	CHAIN_SELF,   /* in chain_burn itself, behind CHAIN_LEN callers */
	CHAIN_LIBC,   /* in a routine of libc that it calls, likewise */
	CHAIN_KERNEL, /* in a call of the kernel, likewise */
	CHAIN_DEEP,   /* behind a recursion of CHAIN_DEPTH */
	CHAIN_SIGNAL, /* in a handler of a signal that is raised */
};

enum { CHAIN_LEN = 30, CHAIN_DEPTH = 900 };

struct chain_truth {
	volatile unsigned int work;
	uint64_t called_from[CHAIN_LEN]; /* return addresses, of chain_burn first */
};

extern struct chain_truth *chain_truth;

#define CHAIN_SECTION __attribute__((noinline, aligned(4096), section(".text.chain")))

/* Some milliseconds of it. */
unsigned int chain_run(enum chain_how how);
unsigned int chain_burn(enum chain_how how, unsigned int n);
void chain_burn_end(void);

#endif
