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
	CHAIN_STACK,  /* as CHAIN_SELF, on a stack of its own, behind whose end nothing is mapped */
	CHAIN_CODE,   /* as CHAIN_SELF, called by code that was written into memory (chain_code) */
};

enum { CHAIN_LEN = 30, CHAIN_DEPTH = 900 };

struct chain_truth {
	volatile unsigned int work;
	uint64_t called_from[CHAIN_LEN]; /* return addresses, of chain_burn first */
};

/* Where chain_code_write wrote its code, and instructions that move its stack pointer. */
enum { CHAIN_CODE_PUSHED = 1, CHAIN_CODE_MOVED = 5, CHAIN_CODE_LEN = 24 };
extern uint8_t *chain_code;
/* For CHAIN_CODE. 0, or -1: there is none for this machine, or no memory. */
int chain_code_write(void);

extern struct chain_truth *chain_truth;

#define CHAIN_SECTION __attribute__((noinline, aligned(4096), section(".text.chain")))

/* Some milliseconds of it. */
unsigned int chain_run(enum chain_how how);
unsigned int chain_burn(enum chain_how how, unsigned int n);
void chain_burn_end(void);

#endif
