/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * With no daemon the library does nothing noticeable. Not by the clock, but by what the kernel is
 * asked: a traced child makes the calls, its system calls between two marks are counted.
 */
#include "fake.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

/* System calls with which the child tells where it is. */
#define MARK SYS_getppid

static uint64_t context;
static const char code[32];
static struct fake fake;

static void begin(void)
{
	dbgdyn_begin("jit", 3, NULL, &context);
}

static void second_begin(void)
{
	uint64_t other;

	dbgdyn_begin("other", 5, NULL, &other);
}

static void register_thousands(void)
{
	struct dbgdyn_routine r = fake_routine("routine", code, sizeof(code));

	for (int i = 0; i < 10000; i++)
		dbgdyn_register(context, &r, NULL);
}

static void end(void)
{
	dbgdyn_end(context);
}

static void (*const steps[])(void) = { begin, second_begin, register_thousands, end };
#define NR_STEPS 4

static void run_steps(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(1);
	raise(SIGSTOP);
	for (int i = 0; i < NR_STEPS; i++) {
		syscall(MARK);
		steps[i]();
		syscall(MARK);
	}
	_exit(0);
}

/* What a traced child did between two marks. */
struct count {
	int calls;
	int forbidden; /* makes a file, thread or process, or writes */
};

static bool is_forbidden(uint64_t nr)
{
	static const long list[] = { SYS_openat,  SYS_write,	SYS_clone,	 SYS_clone3,
				     SYS_execve,  SYS_sendto,	SYS_sendmsg,	 SYS_mq_timedsend,
				     SYS_mkdirat, SYS_unlinkat, SYS_rt_sigaction };

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (nr == (uint64_t)list[i])
			return true;
	return false;
}

static bool trace_step(pid_t pid, struct count counts[NR_STEPS])
{
	struct __ptrace_syscall_info info;
	int step = -1, status;

	while (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0) {
		if (waitpid(pid, &status, 0) != pid || WIFEXITED(status))
			break;
		if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0)
			return false;
		if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
			continue;
		if (info.entry.nr == MARK)
			step++;
		else if (step % 2 == 0 && step / 2 < NR_STEPS) {
			counts[step / 2].calls++;
			counts[step / 2].forbidden += is_forbidden(info.entry.nr);
		}
	}
	return step == 2 * NR_STEPS - 1;
}

/* False where tracing is not to be had (user-mode emulation, another tracer). */
static bool trace(struct count counts[NR_STEPS])
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		run_steps();
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return false;
	if (ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return false;
	}
	return trace_step(pid, counts);
}

static void test_few_system_calls(void **state)
{
	struct count counts[NR_STEPS] = { 0 };

	(void)state;
	fake_open(&fake, 0);
	if (!trace(counts)) {
		fake_close(&fake);
		skip();
	}
	fake_close(&fake);
	for (int i = 0; i < NR_STEPS; i++)
		assert_int_equal(counts[i].forbidden, 0);
	/* begin makes a page, a memfd with seals and two mappings, and looks for a daemon */
	assert_in_range(counts[0].calls, 5, 25);
	assert_in_range(counts[1].calls, 1, 5);
	/* 10,000 records of 96 bytes stay below half a ring: no doorbell, nothing at all. */
	assert_int_equal(counts[2].calls, 0);
	assert_in_range(counts[3].calls, 1, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_system_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
