/* SPDX-License-Identifier: BSD-2-Clause */
/* Bursts of a child whose values are known, run again from their records; and that whoever takes
 * them may be killed. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_registry.h"
#include "replay.h"
#include "step_record.h"

enum { XMM0 = VTRACE_VECTOR, XMM1 = VTRACE_VECTOR + 4, BURSTS = 20, TRIES = 20000 };

/* Each round it counts, and computes 1.1 * 3 + 0.25 and its root anew; the rounding is in it. */
extern const char forever[], multiplied[], rooted[], stored[], forever_end[];
double factor = 3, summand = 0.25, start = 1.1, result;
__asm__(".text\n"
	".globl forever, multiplied, rooted, stored, forever_end\n"
	"forever:\n"
	"	movsd start(%rip), %xmm0\n"
	"	mulsd factor(%rip), %xmm0\n"
	"multiplied:\n"
	"	addsd summand(%rip), %xmm0\n"
	"	sqrtsd %xmm0, %xmm1\n"
	"rooted:\n"
	"	movsd %xmm1, result(%rip)\n"
	"stored:\n"
	"	mov result(%rip), %rax\n"
	"	movq %xmm1, %rcx\n"
	"	xor %rcx, %rax\n"
	"	jnz 1f\n"
	"	incq (%rdi)\n"
	"	jmp forever\n"
	"1:	ud2\n"
	"forever_end:\n");

struct child {
	pid_t pid;
	volatile uint64_t *rounds;
};

static void child_start(struct child *c)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	pid_t parent = getpid();

	c->rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(c->rounds != MAP_FAILED);
	c->pid = fork();
	if (c->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			__asm__ volatile("jmp forever" : : "D"(c->rounds));
		_exit(0);
	}
	assert_true(c->pid > 0);
	/* Until it is in its loop. */
	for (int i = 0; i < TRIES && !*c->rounds; i++)
		nanosleep(&pause, NULL);
	assert_true(*c->rounds > 0);
}

static void child_end(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	munmap((void *)(uintptr_t)c->rounds, 4096);
}

/* It goes on: a hundred rounds more, or it never will. */
static void assert_it_runs(const struct child *c)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t before = *c->rounds;

	for (int i = 0; i < TRIES && *c->rounds - before < 100; i++)
		nanosleep(&pause, NULL);
	assert_int_equal(waitpid(c->pid, NULL, WNOHANG), 0);
	assert_true(*c->rounds - before >= 100);
}

static void recorder_open(struct step_recorder *r, pid_t pid)
{
	struct base_err err = { 0 };

	memset(r, 0, sizeof(*r));
	if (translator_open(fake_helper_dir(), &r->translator, &err) < 0 ||
	    step_target_open(pid, &r->target, &err) < 0)
		fail_msg("%s", err.text);
}

static const struct vtrace_code *block(void *ctx, uint32_t id)
{
	const struct step_recorder *r = ctx;

	return id - STEP_ID_FIRST < r->blocks.nr ? r->blocks.all[id - STEP_ID_FIRST] : NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static double as_double(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

/* All registers, behind each instruction of the loop. */
static void assert_entry(const struct vtrace_entry *e, unsigned int seen[3])
{
	const struct vtrace_state *s = e->after;
	volatile double product = start * factor;
	double root;

	for (unsigned int i = 0; i < 16; i++) {
		assert_int_equal(s->unknown[i], 0);
		assert_int_equal(s->unknown[VTRACE_VECTOR + 4 * i], 0);
	}
	assert_int_equal(s->flags_unknown, 0);
	__asm__("sqrtsd %1, %0" : "=x"(root) : "x"(product + summand));
	if (e->target == (uint64_t)(uintptr_t)multiplied) {
		assert_true(as_double(s->r[XMM0]) == product);
		seen[0]++;
	} else if (e->target == (uint64_t)(uintptr_t)rooted) {
		assert_true(as_double(s->r[XMM0]) == product + summand);
		assert_true(as_double(s->r[XMM1]) == root);
		seen[1]++;
	} else if (e->target == (uint64_t)(uintptr_t)stored) {
		assert_int_equal(e->memory_unknown, 0);
		assert_true(as_double(e->memory) == root);
		assert_int_equal(e->addr, (uint64_t)(uintptr_t)&result);
		seen[2]++;
	}
}

static void a_burst_knows_all_registers(void **state)
{
	static struct step_recorder r;
	unsigned int bursts = 0, seen[3] = { 0 };
	static struct vtrace_replay replay;
	struct vtrace_entry e;
	struct child c;

	(void)state;
	if (!fake_can_exec("dcpid-translate"))
		skip();
	child_start(&c);
	recorder_open(&r, c.pid);
	/* Where stepping is slow a burst may not reach all of the loop. */
	for (int i = 0; i < TRIES && (bursts < BURSTS || !(seen[0] && seen[1] && seen[2])); i++) {
		uint64_t begun_ns = base_now_ns();
		int n = step_record(&r), ran = 0, ret;

		assert_true(n >= 0);
		if (!n)
			continue;
		/* Where stepping is slow a burst has no time for more. */
		if (r.out.head.w.nr_insns != STEP_INSNS)
			assert_true(base_now_ns() - begun_ns >= STEP_STOP_NS);
		assert_int_equal(
			step_trace_check(&r.out,
					 sizeof(r.out.head) + 8 * insn_trace_words(&r.out.head.w)),
			0);
		assert_int_equal(vtrace_replay_init(&replay, &r.out.head.w, r.out.words, block, &r),
				 0);
		while ((ret = vtrace_replay_next(&replay, &e)) > 0) {
			assert_in_range(e.pc, (uintptr_t)forever, (uintptr_t)forever_end - 1);
			assert_entry(&e, seen);
			ran++;
		}
		assert_int_equal(ret, 0);
		assert_int_equal(ran, n);
		bursts++;
	}
	assert_true(bursts >= BURSTS);
	assert_true(seen[0] && seen[1] && seen[2]);
	assert_it_runs(&c);
	step_record_release(&r);
	child_end(&c);
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* Who is stepped dies of it: 79 of 100 did. */
static void whoever_steps_may_be_killed(void **state)
{
	const struct timespec pause = { .tv_nsec = 3000000 };
	static struct step_recorder r;
	struct child c;

	(void)state;
	if (!fake_can_exec("dcpid-translate"))
		skip();
	child_start(&c);
	for (int i = 0; i < BURSTS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			recorder_open(&r, c.pid);
			while (step_record(&r) >= 0)
				;
			_exit(0);
		}
		assert_true(pid > 0);
		nanosleep(&pause, NULL);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		assert_it_runs(&c);
	}
	child_end(&c);
}

static int open_of(pid_t pid, const char *text)
{
	struct step_target t;
	struct base_err err = { 0 };
	int r = step_target_open(pid, &t, &err);

	if (r >= 0)
		step_target_close(&t);
	else
		assert_non_null(strstr(err.text, text));
	return r;
}

static void who_cannot_be_stepped(void **state)
{
	struct child c;
	int status;

	(void)state;
	child_start(&c);
	assert_int_equal(open_of(c.pid, ""), 0);
	assert_int_equal(ptrace(PTRACE_SEIZE, c.pid, NULL, NULL), 0);
	assert_int_equal(open_of(c.pid, "traces it already"), -EBUSY);
	kill(c.pid, SIGKILL);
	/* Ended, and not yet waited for. */
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	assert_int_equal(open_of(c.pid, "it has no memory"), -EINVAL);
	assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
	assert_int_equal(open_of(c.pid, "there is none"), -ESRCH);
	munmap((void *)(uintptr_t)c.rounds, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_knows_all_registers),
		cmocka_unit_test(whoever_steps_may_be_killed),
		cmocka_unit_test(who_cannot_be_stepped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
