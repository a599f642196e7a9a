/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jit_place [OPTION…]: a JIT in a place where it may do little, whose routines come and go.
 * Prints each one's CPU time, "ROUTINE SECONDS" lines.
 *
 *	-seconds S    (2)
 *	-facility F   (place)
 *	-sandbox      after begin all system calls end the process but those that read a clock,
 *	              write, and exit
 *	-broker       another process makes its registry; it may not make memory of that kind itself
 */
#include <dbgdyn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth_jit.h"

static int die(const char *what)
{
	fprintf(stderr, "jit_place: %s: %s\n", what, strerror(errno));
	return 1;
}

#define NR (uint32_t) offsetof(struct seccomp_data, nr)
#define LET(call)                                                                                  \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(call), 0, 1),                               \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int apply(const struct sock_filter *filter, size_t len)
{
	struct sock_fprog prog = { (unsigned short)len, (struct sock_filter *)(uintptr_t)filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		return die("seccomp");
	return 0;
}

static int shut(void)
{
	static const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NR),
		LET(SYS_clock_gettime),
		LET(SYS_write),
		LET(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};

	return apply(filter, sizeof(filter) / sizeof(*filter));
}

static int no_memory(void)
{
	static const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NR),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return apply(filter, sizeof(filter) / sizeof(*filter));
}

static int work(const char *facility, double seconds, bool sandbox, int fd)
{
	struct dbgdyn_options opts = { .size = sizeof(opts) };
	static char buffer[16384];
	unsigned char *code = truth_map(TRUTH_BLOCKS * TRUTH_BLOCK);
	double ran[TRUTH_SLOTS] = { 0 };
	uint64_t context, random = 11;
	int r;

	if (!code)
		return die("mmap");
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer)); /* memory before the door closes */
	if (sandbox)
		opts.flags |= DBGDYN_NO_SYSCALLS;
	if (fd >= 0) {
		opts.flags |= DBGDYN_REGISTRY_FD;
		opts.registry_fd = fd;
	}
	r = dbgdyn_begin(facility, strlen(facility), &opts, &context);
	if (r != DBGDYN_OK)
		return fprintf(stderr, "jit_place: begin: %s\n", dbgdyn_strerror(r)), 1;
	/* Until a daemon that can be reached has it, nothing tells who lives at an address. */
	if (!sandbox)
		dbgdyn_flush(context);
	else if (shut())
		return 1;
	truth_live(context, code, "place", seconds, ran, &random);
	r = dbgdyn_end(context);
	if (r != (sandbox ? DBGDYN_EINPROGRESS : DBGDYN_OK) && r != DBGDYN_ENODAEMON)
		return 1;
	truth_print("place", ran);
	fflush(stdout);
	/* _exit does more with a sanitizer. */
	syscall(SYS_exit_group, 0);
	return 1;
}

int main(int argc, char **argv)
{
	const char *facility = "place";
	bool sandbox = false, broker = false;
	double seconds = 2;
	int fd = -1, status;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-sandbox"))
			sandbox = true;
		else if (!strcmp(argv[i], "-broker"))
			broker = true;
		else if (!strcmp(argv[i], "-facility") && i + 1 < argc)
			facility = argv[++i];
		else if (!strcmp(argv[i], "-seconds") && i + 1 < argc)
			seconds = atof(argv[++i]);
		else
			return 2;
	}
	if (!broker)
		return work(facility, seconds, sandbox, fd);
	fd = dbgdyn_registry_make();
	if (fd < 0)
		return die("broker");
	if (fork() == 0)
		_exit(no_memory() ? 1 : work(facility, seconds, sandbox, fd));
	return wait(&status) > 0 && status == 0 ? 0 : 1;
}
