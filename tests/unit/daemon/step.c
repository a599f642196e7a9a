/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that steps, as dcpid sees it; and messages that it would never send. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_registry.h"
#include "step.h"
#include "step_wire.h"

enum { LIMIT_MS = 30000 };

/* ---- messages -------------------------------------------------------------------------------- */

static struct {
	struct step_block head;
	struct vtrace_uop uops[2];
	struct vtrace_insn insns[2];
} block;

/* inc eax; jmp: as far as micro-ops go, two that do nothing. */
static void make_block(void)
{
	memset(&block, 0, sizeof(block));
	block.head.type = STEP_BLOCK;
	block.head.block = (struct vtrace_block){ .pc = 0x1000,
						  .id = STEP_ID_FIRST,
						  .nr_uops = 2,
						  .nr_insns = 2,
						  .len = 4,
						  .code = { 0xff, 0xc0, 0xeb, 0xfc } };
	for (unsigned int i = 0; i < 2; i++) {
		block.uops[i] = (struct vtrace_uop){ .w = 8, .marks = VTRACE_LAST };
		block.insns[i] = (struct vtrace_insn){ (uint8_t)(2 * i), 2, 0, (uint8_t)i };
	}
}

static void assert_no_block(size_t len)
{
	struct vtrace_code *c = NULL;

	assert_int_equal(step_block_take(&block, len, &c), -DCPI_EFORMAT);
	assert_null(c);
	make_block();
}

static void blocks_are_checked(void **state)
{
	struct vtrace_code *c;

	(void)state;
	make_block();
	assert_int_equal(step_block_take(&block, sizeof(block), &c), 0);
	assert_int_equal(c->block.pc, 0x1000);
	assert_int_equal(c->insns[1].offset, 2);
	assert_int_equal(c->uops[1].marks, VTRACE_LAST);
	free(c);

	assert_no_block(sizeof(block) - 1);
	assert_no_block(3);
	block.head.block.id = STEP_ID_FIRST - 1;
	assert_no_block(sizeof(block));
	block.head.block.id = STEP_ID_END;
	assert_no_block(sizeof(block));
	block.head.block.len = 5;
	assert_no_block(sizeof(block));
	block.uops[1].op = VTRACE_NR_OPS;
	assert_no_block(sizeof(block));
	block.uops[0].w = 3;
	assert_no_block(sizeof(block));
	block.insns[1].class = VTRACE_NR_CLASSES;
	assert_no_block(sizeof(block));
	block.head.block.nr_uops = VTRACE_BLOCK_UOPS + 1;
	assert_no_block(sizeof(block));
}

static void trace_are_checked(void **state)
{
	static struct {
		struct step_trace head;
		uint64_t words[1 + 2];
	} m;
	const struct step_trace good = {
		.type = STEP_TRACE,
		.w = { .has = INSN_TRACE_VALUES | INSN_TRACE_STEPPED,
		       .nr_words = 1,
		       .nr_insns = 1,
		       .nr_fixes = 1 },
	};

	(void)state;
	m.head = good;
	assert_int_equal(step_trace_check(&m, sizeof(m)), 0);
	assert_int_equal(step_trace_check(&m, sizeof(m) - 8), -DCPI_EFORMAT);
	m.head.w.nr_fixes = 0;
	assert_int_equal(step_trace_check(&m, sizeof(m)), -DCPI_EFORMAT);
	m.head = good;
	m.head.w.has |= INSN_TRACE_KERNEL;
	assert_int_equal(step_trace_check(&m, sizeof(m)), -DCPI_EFORMAT);
	m.head = good;
	m.head.w.nr_insns = STEP_INSNS + 1;
	assert_int_equal(step_trace_check(&m, sizeof(m)), -DCPI_EFORMAT);
	m.head = good;
	m.head.w.end = VTRACE_NR_ENDS;
	assert_int_equal(step_trace_check(&m, sizeof(m)), -DCPI_EFORMAT);
}

/* ---- the process ----------------------------------------------------------------------------- */

struct got {
	const struct step *step;
	unsigned int traces, blocks;
};

static void take(void *ctx, const struct insn_trace *w, const uint64_t *words)
{
	struct got *g = ctx;
	struct vtrace_visit v = { 0 };

	g->traces++;
	while (vtrace_visit_read(words, w->nr_words, v.end, &v) > 0) {
		assert_true(step_has_id(v.id));
		assert_non_null(step_block(g->step, v.id));
		g->blocks++;
	}
	assert_int_equal(v.end, w->nr_words);
}

/*
 * Asks for its parent rarely: what stops a thread reaches it a while later on some virtual
 * machines, and a thread that is stopped in a system call is not stepped.
 */
static pid_t spin(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		volatile double x = 1;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			for (int i = 0; i < 1000000; i++)
				x = x * 1.25 - (int)x;
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

/* Until @traces have come, or none will come any more. */
static void receive(struct step *s, struct got *g, unsigned int traces)
{
	while (g->traces < traces && step_poll_fd(s) >= 0) {
		struct pollfd p = { .fd = step_poll_fd(s), .events = POLLIN };

		assert_true(poll(&p, 1, LIMIT_MS) > 0);
		step_receive(s, take, g);
	}
}

static struct step *open_step(pid_t pid)
{
	struct base_err err = { 0 };
	struct step *s = NULL;

	if (step_open(fake_helper_dir(), pid, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static void its_program_ends(void **state)
{
	struct got g = { 0 };
	struct step_stats stats;
	pid_t pid;

	(void)state;
	if (!fake_can_exec("dcpid-step"))
		skip();
	pid = spin();
	g.step = open_step(pid);
	receive((struct step *)(uintptr_t)g.step, &g, 5);
	assert_true(g.traces >= 5 && g.blocks >= 5);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	receive((struct step *)(uintptr_t)g.step, &g, ~0u);
	step_stats_get(g.step, &stats);
	assert_true(stats.ended && stats.instructions >= g.traces && stats.stopped_ns);
	step_close((struct step *)(uintptr_t)g.step);
}

static void it_is_killed(void **state)
{
	struct got g = { 0 };
	struct step_stats stats;
	struct step *s;
	pid_t pid;

	(void)state;
	if (!fake_can_exec("dcpid-step"))
		skip();
	pid = spin();
	g.step = s = open_step(pid);
	receive(s, &g, 1);
	assert_true(step_pid(s) > 0);
	kill(step_pid(s), SIGKILL);
	receive(s, &g, ~0u);
	step_stats_get(s, &stats);
	assert_true(stats.ended);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	step_close(s);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void who_is_not_there(void **state)
{
	struct base_err err = { 0 };
	struct step *s;
	pid_t pid;

	(void)state;
	if (!fake_can_exec("dcpid-step"))
		skip();
	pid = spin();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(step_open(fake_helper_dir(), pid, &s, &err), -ESRCH);
	assert_non_null(strstr(err.text, "there is none"));
	assert_null(s);
	assert_int_equal(step_open("/nowhere", pid, &s, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_checked), cmocka_unit_test(trace_are_checked),
		cmocka_unit_test(its_program_ends),   cmocka_unit_test(it_is_killed),
		cmocka_unit_test(who_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
