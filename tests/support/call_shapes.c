/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of every shape that compilers make, below each other at random, in a program that keeps a
 * shadow stack of its own (call_shapes.h).
 *	call_shapes [SECONDS]	after the address of its state it waits for a byte, then runs so
 *long
 */
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "call_shapes.h"

/* Such a function is not in the shadow, which its section tells. */
#define NO_HOOK __attribute__((no_instrument_function, section("unhooked")))
#define APART	__attribute__((noinline, noclone))

volatile struct shapes_state shapes_state;
static struct shapes_stack main_stack, coroutine_stack;
static struct shapes_stack *stack = &main_stack;
static uint32_t random_state = 1;
volatile uint64_t sink;

/* ---- hooks ----------------------------------------------------------------------------------- */

void __cyg_profile_func_enter(void *function, void *site) NO_HOOK;
void __cyg_profile_func_exit(void *function, void *site) NO_HOOK;

APART void __cyg_profile_func_enter(void *function, void *site)
{
	struct shapes_stack *s = stack;

	(void)site;
	if (s->nr >= SHAPES_DEPTH)
		abort();
	s->function[s->nr] = (uint64_t)(uintptr_t)function;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)&s->nr = s->nr + 1;
}

APART void __cyg_profile_func_exit(void *function, void *site)
{
	struct shapes_stack *s = stack;

	(void)site;
	if (!s->nr || s->function[s->nr - 1] != (uint64_t)(uintptr_t)function)
		abort();
	*(volatile uint64_t *)&s->nr = s->nr - 1;
}

NO_HOOK uint64_t shapes_depth(void)
{
	return stack->nr;
}

NO_HOOK void shapes_cut(uint64_t depth)
{
	*(volatile uint64_t *)&stack->nr = depth;
}

NO_HOOK uint32_t shapes_random(uint32_t limit)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % limit;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* No call below it, and no stack. */
APART static uint64_t leaf(uint64_t n)
{
	for (int i = 0; i < 20; i++)
		n = n * 6364136223846793005u + (n >> 33);
	return n;
}

APART static uint64_t plain(uint32_t left)
{
	return shapes_down(left - 1) + left;
}

APART static uint64_t dynamic(uint32_t left)
{
	const size_t len = 16 + shapes_random(700);
	volatile char *room = alloca(len);

	memset((char *)room, (int)left, len);
	return shapes_down(left - 1) + (uint64_t)room[len / 2];
}

/* Its frame is aligned more than its caller's. */
APART static uint64_t aligned(uint32_t left)
{
	_Alignas(128) volatile uint64_t room[32];
	uint64_t sum;

	room[5] = left;
	sum = shapes_down(left - 1);
	return sum + room[5] + ((uintptr_t)room & 127);
}

APART static uint64_t aligned_dynamic(uint32_t left)
{
	_Alignas(64) volatile uint64_t room[8];
	volatile char *more = alloca(1 + shapes_random(300));

	room[3] = left;
	more[0] = 1;
	return shapes_down(left - 1) + room[3] + (uint64_t)more[0];
}

APART static uint64_t big(uint32_t left)
{
	volatile char room[9000];

	room[shapes_random(sizeof(room))] = 1;
	return shapes_down(left - 1) + (uint64_t)room[0] * 0;
}

APART static uint64_t many(uint32_t left, ...)
{
	uint64_t sum = 0;
	va_list ap;

	va_start(ap, left);
	for (int i = 0; i < 12; i++)
		sum += va_arg(ap, uint64_t);
	va_end(ap);
	return sum + shapes_down(left - 1);
}

APART static uint64_t many_arguments(uint32_t left)
{
	const uint64_t n = left;

	return many(left, n, n, n, n, n, n, n, n, n, n, n, n) + 1;
}

static uint32_t compare_left;

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (compare_left && shapes_random(4) == 0) {
		const uint32_t left = compare_left;

		compare_left = 0;
		sink += shapes_down(left);
	}
	return (x > y) - (x < y);
}

/* Frames of libc stand between it and what it calls. */
APART static uint64_t sorted(uint32_t left)
{
	uint32_t v[24];

	for (size_t i = 0; i < 24; i++)
		v[i] = shapes_random(1000);
	compare_left = left - 1;
	qsort(v, 24, sizeof(v[0]), compare);
	compare_left = 0;
	return v[3];
}

static jmp_buf out;

/* Its last instruction is a call: what that returns to is the next function. */
APART __attribute__((noreturn)) static void leave(uint32_t left)
{
	sink += leaf(left);
	shapes_state.unsettled++; /* until jumped has cut the shadow */
	longjmp(out, 1);
}

APART static void never_returns(uint32_t left)
{
	sink += leaf(left);
	leave(left);
}

APART static uint64_t jumped(uint32_t left)
{
	const uint64_t depth = shapes_depth();

	if (!setjmp(out))
		never_returns(left);
	shapes_cut(depth);
	shapes_state.unsettled--;
	return shapes_down(left / 2);
}

/* ---- tail calls ------------------------------------------------------------------------------ */

/* A function that ends in a jump to another one has no exit of its own, and has gone when that
 * runs: neither is in the shadow. */
NO_HOOK APART static uint64_t tail_end(uint32_t left)
{
	return shapes_down(left - 1) * 3;
}

NO_HOOK APART static uint64_t tail_middle(uint32_t left)
{
	sink += left;
	return tail_end(left);
}

APART static uint64_t tail(uint32_t left)
{
	return tail_middle(left) + 1;
}

/* ---- signals --------------------------------------------------------------------------------- */

static uint32_t signal_left, nr_handlers;
static bool in_coroutine;

static void on_trap(int number, siginfo_t *info, void *context)
{
	const uint32_t left = signal_left;

	(void)number;
	(void)info;
	signal_left = 0;
	nr_handlers++;
	sink += shapes_down(left);
	nr_handlers--;
	/* Behind the instruction that does not exist. */
#if defined(__x86_64__)
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
#elif defined(__aarch64__)
	((ucontext_t *)context)->uc_mcontext.pc += 4;
#endif
}

/* It interrupts the hooks too. */
NO_HOOK static void on_timer(int number)
{
	(void)number;
	for (int i = 0; i < 20; i++)
		sink += sink >> 3;
}

APART static uint64_t trapped(uint32_t left)
{
	/* From the coroutine's stack the kernel would begin the handlers' stack anew. */
	if (signal_left || (in_coroutine && nr_handlers))
		return leaf(left);
	signal_left = left / 2 + 1;
#if defined(__x86_64__)
	__asm__ volatile("ud2");
#elif defined(__aarch64__)
	__asm__ volatile("udf #0");
#endif
	return left;
}

APART static uint64_t raised(uint32_t left)
{
	raise(SIGUSR1);
	return shapes_down(left / 2);
}

/* ---- coroutines ------------------------------------------------------------------------------ */

static ucontext_t main_context, coroutine_context;
static uint32_t coroutine_left;

NO_HOOK static void switch_to(struct shapes_stack *to, ucontext_t *from_context,
			      ucontext_t *to_context)
{
	shapes_state.unsettled++;
	stack = to;
	shapes_state.stack = (uint64_t)(uintptr_t)to;
	swapcontext(from_context, to_context);
	shapes_state.unsettled--;
}

NO_HOOK static void coroutine(void)
{
	shapes_state.unsettled--; /* switch_to has not returned here */
	for (;;) {
		sink += shapes_down(coroutine_left);
		switch_to(&main_stack, &coroutine_context, &main_context);
	}
}

APART static uint64_t resumed(uint32_t left)
{
	if (in_coroutine)
		return leaf(left);
	in_coroutine = true;
	coroutine_left = left / 2;
	switch_to(&coroutine_stack, &main_context, &coroutine_context);
	in_coroutine = false;
	return left;
}

/* ---- all of them ----------------------------------------------------------------------------- */

uint64_t shapes_down(uint32_t left)
{
	static uint64_t (*const shapes[])(uint32_t left) = {
		plain,		 plain,	  plain,	  dynamic, aligned,
		aligned_dynamic, big,	  many_arguments, sorted,  tail,
		jumped,		 trapped, raised,	  resumed, shapes_throw,
	};

	if (!left || shapes_random(64) == 0)
		return leaf(left);
	return shapes[shapes_random(sizeof(shapes) / sizeof(shapes[0]))](left);
}

/* As deep as programs that recurse over a list. */
APART static uint64_t deep(uint32_t left)
{
	volatile uint64_t kept = left;

	return left ? deep(left - 1) + kept : leaf(left) + shapes_down(20);
}

NO_HOOK static void start(void)
{
	static uint64_t alternate[1 << 17], coroutine_memory[1 << 17];
	struct sigaction trap = { .sa_sigaction = on_trap,
				  .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
	struct sigaction timer = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	struct itimerval every = { .it_interval = { .tv_usec = 3000 },
				   .it_value = { .tv_usec = 3000 } };
	stack_t alternative = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	sigaltstack(&alternative, NULL);
	sigaction(SIGILL, &trap, NULL);
	sigaction(SIGUSR1, &timer, NULL);
	sigaction(SIGPROF, &timer, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = coroutine_memory;
	coroutine_context.uc_stack.ss_size = sizeof(coroutine_memory);
	makecontext(&coroutine_context, coroutine, 0);
	shapes_state.stack = (uint64_t)(uintptr_t)&main_stack;
	shapes_state.hooks[0] = (uint64_t)(uintptr_t)__cyg_profile_func_enter;
	shapes_state.hooks[1] = (uint64_t)(uintptr_t)__cyg_profile_func_exit;
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? atof(argv[1]) : 1;
	const clock_t end = (clock_t)(seconds * CLOCKS_PER_SEC);

	printf("%p\n", (void *)&shapes_state);
	fflush(stdout);
	start();
	if (getchar() == EOF)
		return 1;
	while (clock() < end)
		sink += shapes_random(8) ? shapes_down(40) : deep(100 + shapes_random(850));
	return 0;
}
