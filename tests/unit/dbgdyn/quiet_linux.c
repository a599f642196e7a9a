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

/* The child's exit status where nobody may trace it. */
#define UNTRACED 77
/* System calls with which the child tells where it is. */
#define MARK SYS_getppid

static dbgdyn_context context;
static char code[1 << 20];
static struct fake fake;

/* In the child: what goes wrong is its exit status. */
static void must(int result)
{
	if (result != DBGDYN_OK)
		_exit(1);
}

static void begin(void)
{
	must(dbgdyn_begin("jit", 3, NULL, &context));
}

static void second_begin(void)
{
	dbgdyn_context other;

	must(dbgdyn_begin("other", 5, NULL, &other));
}

static void register_thousands(void)
{
	for (int i = 0; i < 10000; i++) {
		struct dbgdyn_routine r = fake_routine("routine", code + i * 32, 32);

		must(dbgdyn_register(context, &r, NULL));
	}
}

/* In a sandbox that allows nothing after begin and add; a daemon has the registry. */
static void begin_quiet(void)
{
	struct dbgdyn_options o = { .size = sizeof(o), .flags = DBGDYN_NO_SYSCALLS };

	must(dbgdyn_begin("quiet", 5, &o, &context));
}

/* More than half a ring, all of a ring, and new regions. */
static void change_quietly(void)
{
	dbgdyn_handle handle = { 0 };

	for (int i = 0; i < 3000; i++) {
		struct dbgdyn_routine r = fake_routine("quiet", code + i * 16, 4000);

		must(dbgdyn_register(context, &r, &handle));
	}
	must(dbgdyn_retire(context, handle));
	must(dbgdyn_retire_code(context, code, sizeof(code)));
}

static void flush(void)
{
	if (dbgdyn_flush(context) != DBGDYN_EINPROGRESS)
		_exit(1);
}

static void end(void)
{
	dbgdyn_end(context);
}

#define NR_STEPS 4
typedef void (*const steps_t[NR_STEPS])(void);
static steps_t alone = { begin, second_begin, register_thousands, end };
static steps_t quiet = { begin_quiet, change_quietly, flush, end };

static void run_steps(steps_t steps)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(UNTRACED);
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

static void count_call(struct count counts[NR_STEPS], int *step, uint64_t nr)
{
	if (nr == MARK)
		++*step;
	else if (*step >= 0 && *step % 2 == 0 && *step / 2 < NR_STEPS) {
		counts[*step / 2].calls++;
		counts[*step / 2].forbidden += is_forbidden(nr);
	}
}

/* The child's status where it cannot be traced. */
static int give_up(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return -1;
}

/* Let the child run to its end. Its wait status; -1: what it calls cannot be seen. */
static int trace_steps(pid_t pid, struct count counts[NR_STEPS])
{
	struct __ptrace_syscall_info info;
	int step = -1, status, sig = 0;

	while (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(intptr_t)sig) == 0) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status))
			return status;
		/* Any other signal is the child's, which may well die of it. */
		sig = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
		if (sig)
			continue;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0)
			return give_up(pid);
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
			count_call(counts, &step, info.entry.nr);
	}
	fail_msg("the traced child is lost");
	return -1;
}

/* The same, with the child stopped at its start, or ended already, by @status. */
static int trace_from(pid_t pid, int status, struct count counts[NR_STEPS])
{
	if (!WIFSTOPPED(status))
		return WIFEXITED(status) && WEXITSTATUS(status) == UNTRACED ? -1 : status;
	if (ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0)
		return give_up(pid);
	return trace_steps(pid, counts);
}

/* False where tracing is not to be had (user-mode emulation, another tracer). */
static bool trace(steps_t steps, struct count counts[NR_STEPS])
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		run_steps(steps);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	status = trace_from(pid, status, counts);
	if (status == -1)
		return false;
	/* All steps were made, and each did what it should. */
	assert_int_equal(status, 0);
	return true;
}

static void test_few_system_calls(void **state)
{
	struct count counts[NR_STEPS] = { 0 };

	(void)state;
	fake_open(&fake, 0);
	if (!trace(alone, counts)) {
		fake_close(&fake);
		skip();
	}
	fake_close(&fake);
	for (int i = 0; i < NR_STEPS; i++)
		assert_int_equal(counts[i].forbidden, 0);
	/* begin makes a page, a memfd with seals and two mappings, and looks for a daemon */
	assert_in_range(counts[0].calls, 5, 25);
	assert_in_range(counts[1].calls, 1, 5);
	/* Nobody has the registry: no doorbell, nothing at all. */
	assert_int_equal(counts[2].calls, 0);
	assert_in_range(counts[3].calls, 1, 6);
}

static void test_no_system_calls(void **state)
{
	struct count counts[NR_STEPS] = { 0 };

	(void)state;
	fake_open(&fake, FAKE_SOCKET | FAKE_QUEUE);
	if (!trace(quiet, counts)) {
		fake_close(&fake);
		skip();
	}
	assert_true(fake_take(&fake) && fake_bells(&fake) == 1);
	fake_close(&fake);
	assert_in_range(counts[0].calls, 5, 40);
	for (int i = 1; i < NR_STEPS; i++)
		assert_int_equal(counts[i].calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_system_calls),
		cmocka_unit_test(test_few_system_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
