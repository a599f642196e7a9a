/* SPDX-License-Identifier: BSD-2-Clause */
/* Work behind known callers, compiled without frame pointers: for callpath_live.c. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "callpath_chain.h"

struct chain_truth *chain_truth;

/* Something is left to do behind the call: it is no jump. */
#define BEHIND(r) __asm__ volatile("" : "+r"(r)::"memory")

#define TRUTH(i) (chain_truth->called_from[i] = (uint64_t)__builtin_return_address(0))

/* ---- work ------------------------------------------------------------------------------------ */

static void by_itself(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		chain_truth->work = chain_truth->work * 3 + i;
}

CHAIN_SECTION unsigned int chain_burn(enum chain_how how, unsigned int n)
{
	static char buffer[1 << 20];
	static int zero = -1;
	unsigned int r = n;

	TRUTH(0);
	if (how == CHAIN_LIBC) {
		for (unsigned int i = 0; i < 20; i++)
			r += (unsigned int)(memchr(buffer, 1, sizeof(buffer)) != NULL);
	} else if (how == CHAIN_KERNEL) {
		if (zero < 0)
			zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
		for (unsigned int i = 0; i < 20; i++)
			r += (unsigned int)read(zero, buffer, sizeof(buffer));
	} else {
		by_itself(1000000);
	}
	BEHIND(r);
	return r;
}

CHAIN_SECTION void chain_burn_end(void)
{
	__asm__ volatile("");
}

/* ---- callers --------------------------------------------------------------------------------- */

static __attribute__((noinline)) unsigned int innermost(enum chain_how how, unsigned int n)
{
	unsigned int r;

	TRUTH(1); /* NOLINT(bugprone-signal-handler,cert-sig30-c): no call */
	r = chain_burn(how, n);
	BEHIND(r);
	return r;
}

static __attribute__((noinline)) unsigned int deeper(enum chain_how how, unsigned int n)
{
	unsigned int r;

	r = n ? deeper(how, n - 1) : innermost(how, n);
	BEHIND(r);
	return r;
}

static void on_signal(int sig)
{
	unsigned int r = (unsigned int)sig;

	r = innermost(CHAIN_SELF, r);
	BEHIND(r);
}

static __attribute__((noinline)) unsigned int raises(unsigned int n)
{
	unsigned int r = n;

	TRUTH(2);
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	BEHIND(r);
	return r;
}

static __attribute__((noinline)) unsigned int chain_2(enum chain_how how, unsigned int n)
{
	unsigned int r;

	TRUTH(2);
	r = innermost(how, n);
	BEHIND(r);
	return r;
}

/* Frames of different sizes, and registers that are saved. */
#define LINK(i, inner)                                                                             \
	static __attribute__((noinline)) unsigned int chain_##i(enum chain_how how,                \
								unsigned int n)                    \
	{                                                                                          \
		volatile unsigned int kept[(i) % 7 * 5 + 1];                                       \
		unsigned int r, a = n * (i), b = n ^ (i);                                          \
                                                                                                   \
		TRUTH(i);                                                                          \
		kept[0] = n;                                                                       \
		BEHIND(a);                                                                         \
		BEHIND(b);                                                                         \
		r = chain_##inner(how, n + 1);                                                     \
		BEHIND(r);                                                                         \
		return r + a + b + kept[0];                                                        \
	}

LINK(3, 2)
LINK(4, 3)
LINK(5, 4)
LINK(6, 5)
LINK(7, 6)
LINK(8, 7)
LINK(9, 8)
LINK(10, 9)
LINK(11, 10)
LINK(12, 11)
LINK(13, 12)
LINK(14, 13)
LINK(15, 14)
LINK(16, 15)
LINK(17, 16)
LINK(18, 17)
LINK(19, 18)
LINK(20, 19)
LINK(21, 20)
LINK(22, 21)
LINK(23, 22)
LINK(24, 23)
LINK(25, 24)
LINK(26, 25)
LINK(27, 26)
LINK(28, 27)
LINK(29, 28)

/* ---- code in memory -------------------------------------------------------------------------- */

uint8_t *chain_code;

int chain_code_write(void)
{
#if defined(__x86_64__)
	/* push %rbx; sub $32, %rsp; movabs $chain_29, %rax; call *%rax; add $32, %rsp; pop %rbx;
	 * ret */
	static const uint8_t code[CHAIN_CODE_LEN] = { 0x53, 0x48, 0x83, 0xec, 0x20, 0x48,
						      0xb8, 0,	  0,	0,    0,    0,
						      0,    0,	  0,	0xff, 0xd0, 0x48,
						      0x83, 0xc4, 0x20, 0x5b, 0xc3 };
	unsigned int (*callee)(enum chain_how how, unsigned int n) = chain_29;

	chain_code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (chain_code == MAP_FAILED)
		return -1;
	memcpy(chain_code, code, sizeof(code));
	memcpy(chain_code + 7, &callee, sizeof(callee));
	return 0;
#else
	return -1;
#endif
}

static unsigned int run_code(unsigned int n)
{
	unsigned int (*code)(enum chain_how how, unsigned int n), r;

	memcpy(&code, &chain_code, sizeof(code));
	r = code(CHAIN_CODE, n);
	BEHIND(r);
	return r;
}

static void begin_stack(void)
{
	unsigned int r = chain_29(CHAIN_STACK, 1);

	BEHIND(r);
}

static unsigned int run_on_stack(void)
{
	enum { STACK_LEN = 64 << 10 };
	static ucontext_t back, there;
	static char *stack;

	if (!stack) {
		stack = mmap(NULL, 2 * STACK_LEN, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (stack == MAP_FAILED || munmap(stack + STACK_LEN, STACK_LEN) < 0)
			_exit(1);
	}
	if (getcontext(&there) < 0)
		_exit(1);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK_LEN;
	there.uc_link = &back;
	makecontext(&there, begin_stack, 0);
	return (unsigned int)swapcontext(&back, &there);
}

unsigned int chain_run(enum chain_how how)
{
	if (how == CHAIN_STACK)
		return run_on_stack();
	if (how == CHAIN_CODE)
		return run_code(1);
	if (how == CHAIN_DEEP)
		return deeper(how, CHAIN_DEPTH - 1);
	if (how == CHAIN_SIGNAL)
		return raises(1);
	return chain_29(how, 1);
}
