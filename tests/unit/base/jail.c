/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the jail in a child of its own: what is allowed works, each other act ends the process. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base.h"

enum { NOT_JAILED = 99 };

static const struct base_jail jail = {
	.nr_fds = 3, .memory = UINT64_C(4) << 30, .file = 1 << 20, .cpu_s = 60
};
static const struct base_jail receiving = {
	.nr_fds = 3, .receives = true, .memory = UINT64_C(4) << 30, .file = 1 << 20
};

/* Exit status of @act in a jailed child, or minus the signal that ended it. */
static int jailed_in(const struct base_jail *where, int (*act)(void))
{
	struct base_err err = { 0 };
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(base_jail_enter(where, &err) < 0 ? NOT_JAILED : act());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int jailed(int (*act)(void))
{
	return jailed_in(&jail, act);
}

static int act_work(void)
{
	char *big = malloc(1 << 20), *p;

	if (!big)
		return 1;
	for (int i = 0; i < 1 << 20; i++)
		big[i] = (char)i;
	p = realloc(big, 8 << 20);
	if (!p)
		return 2;
	free(p);
	return lseek(STDIN_FILENO, 0, SEEK_CUR) < 0 && errno != ESPIPE ? 3 : 0;
}

static int act_open(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static int act_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static int act_fork(void)
{
	return (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static int act_exec(void)
{
	char name[] = "/bin/true";
	char *const argv[] = { name, NULL }, *const env[] = { NULL };

	return execve(name, argv, env);
}

static int act_kill(void)
{
	return (int)syscall(SYS_kill, 1, 0);
}

static int act_map_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	       MAP_FAILED;
}

static int act_make_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED || mprotect(p, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static int act_ptrace(void)
{
	return (int)syscall(SYS_ptrace, 0, 0, 0, 0);
}

#ifdef __x86_64__
/* The 32-bit way in: other numbers, so another arch to the filter. getpid there is 20, as writev
 * here. */
static int act_other_arch(void)
{
	int r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
	return r < 0;
}
#endif

static void test_work_is_allowed(void **state)
{
	(void)state;
	assert_int_equal(jailed(act_work), 0);
}

static void test_all_else_is_not(void **state)
{
	static const struct {
		const char *what;
		int (*act)(void);
	} acts[] = {
		{ "open", act_open },
		{ "socket", act_socket },
		{ "fork", act_fork },
		{ "exec", act_exec },
		{ "kill", act_kill },
		{ "map code", act_map_code },
		{ "make code", act_make_code },
		{ "ptrace", act_ptrace },
#ifdef __x86_64__
		{ "other arch", act_other_arch },
#endif
	};

	(void)state;
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		print_message("%s\n", acts[i].what);
		assert_int_equal(jailed(acts[i].act), -SIGSYS);
	}
}

/* Descriptors of the parent that were left open are closed: a read finds none. */
static int act_read_inherited(void)
{
	char byte;

	return read(40, &byte, 1) < 0 && errno == EBADF ? 0 : 1;
}

static void test_descriptors_are_closed(void **state)
{
	int fd = open("/dev/zero", O_RDONLY);

	(void)state;
	assert_int_equal(dup2(fd, 40), 40);
	assert_int_equal(jailed(act_read_inherited), 0);
	close(fd);
	close(40);
}

/* Where a descriptor is waited for, no file can be had by its name, and that ends nothing. */
static int act_names(void)
{
	char byte[1];

	return open("/etc/passwd", O_RDONLY) >= 0 || errno != EACCES ||
	       readlink("/proc/self/exe", byte, 1) >= 0 || errno != EACCES;
}

static void test_names_are_refused(void **state)
{
	(void)state;
	assert_int_equal(jailed_in(&receiving, act_names), 0);
	assert_int_equal(jailed_in(&receiving, act_socket), -SIGSYS);
	assert_int_equal(jailed_in(&receiving, act_map_code), -SIGSYS);
}

/* Asked of the child from outside, while it waits: its ids, capabilities and flags. */
static void test_rights_are_gone(void **state)
{
	char path[64], line[256];
	struct base_err err = { 0 };
	int to[2], from[2], seen = 0;
	FILE *f;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		if (base_jail_enter(&jail, &err) < 0)
			_exit(NOT_JAILED);
		_exit(write(STDOUT_FILENO, "j", 1) != 1 || read(STDIN_FILENO, line, 1) != 1);
	}
	close(from[1]);
	assert_int_equal(read(from[0], line, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long long caps;
		unsigned int id;

		if (sscanf(line, "CapEff: %llx", &caps) == 1 ||
		    sscanf(line, "CapPrm: %llx", &caps) == 1)
			seen += caps == 0;
		if (sscanf(line, "Uid: %u", &id) == 1)
			seen += getuid() == 0 ? id == BASE_HELPER_ID : id == getuid();
		if (sscanf(line, "NoNewPrivs: %u", &id) == 1)
			seen += id == 1;
		if (sscanf(line, "Seccomp: %u", &id) == 1)
			seen += id == 2;
	}
	fclose(f);
	assert_int_equal(seen, 5);
	assert_int_equal(write(to[1], "x", 1), 1);
	waitpid(pid, NULL, 0);
	close(to[0]);
	close(to[1]);
	close(from[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_work_is_allowed),
		cmocka_unit_test(test_all_else_is_not),
		cmocka_unit_test(test_descriptors_are_closed),
		cmocka_unit_test(test_names_are_refused),
		cmocka_unit_test(test_rights_are_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
