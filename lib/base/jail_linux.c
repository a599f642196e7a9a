/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A helper that parses an application's bytes runs without rights, and with the system calls alone
 * that reading, writing and memory need.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#if defined(__x86_64__)
#define JAIL_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define JAIL_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define JAIL_ARCH AUDIT_ARCH_RISCV64
#else
#define JAIL_ARCH 0 /* how its calls pass their arguments is not known */
#endif

static int set_limits(const struct base_jail *jail, struct base_err *err)
{
	const struct base_limit limits[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_NPROC, 0 },
		/* One more than stay, for those that come. */
		{ RLIMIT_NOFILE, jail->nr_fds + jail->receives },
		{ RLIMIT_AS, jail->memory },
		{ RLIMIT_FSIZE, jail->file },
		{ RLIMIT_CPU, jail->cpu_s },
	};
	size_t nr = sizeof(limits) / sizeof(limits[0]);

	return base_limits_set(limits, jail->cpu_s ? nr : nr - 1, err);
}

/* ---- system calls ---------------------------------------------------------------------------- */

static const int allowed[] = {
	SYS_read,
	SYS_write,
	SYS_pread64,
	SYS_pwrite64,
	SYS_lseek,
	SYS_munmap,
	SYS_mremap,
	SYS_brk,
	SYS_futex,
	SYS_exit,
	SYS_exit_group,
	SYS_rt_sigreturn,
	SYS_clock_gettime,
	SYS_getrandom,
	SYS_ftruncate,
	SYS_sysinfo, /* the C library's qsort asks how much memory there is */
#if SANITIZED
	/* Its allocator and its reports. */
	SYS_madvise,
	SYS_sched_yield,
	SYS_getpid,
	SYS_gettid,
	SYS_rt_sigprocmask,
	SYS_sigaltstack,
#endif
};

/* Memory, but none that can be executed: the third argument of both is the protection. */
static const int memory[] = { SYS_mmap, SYS_mprotect };

/* Descriptors come over a socket. */
static const int receive[] = { SYS_recvmsg, SYS_fstat, SYS_close };

/* A helper syncs its file before it answers. */
static const int sync_calls[] = { SYS_fdatasync };

/* Libraries that look for more than they were given are told that it may not be had. */
static const int refused[] = {
#ifdef SYS_open
	SYS_open,
#endif
#ifdef SYS_readlink
	SYS_readlink,
#endif
	SYS_openat,   SYS_readlinkat, SYS_newfstatat,
};

#define NR(array) (sizeof(array) / sizeof((array)[0]))

enum {
	NR_HEAD = 4,
	NR_TESTS = NR(allowed) + NR(memory) + NR(receive) + NR(sync_calls) + NR(refused),
	/* Behind the comparisons stand the verdicts. */
	AT_KILL = NR_HEAD + NR_TESTS,
	AT_REFUSE,
	AT_PROT, /* two instructions, which end at one of the next two */
	AT_ALLOW = AT_PROT + 2,
	AT_KILL_EXEC,
	NR_INSNS,
};

struct filter {
	struct sock_filter insns[NR_INSNS];
	size_t nr;
};

static void put(struct filter *f, struct sock_filter insn)
{
	f->insns[f->nr++] = insn;
}

/* Each of @calls leads to the verdict @to. */
static void put_calls(struct filter *f, const int *calls, size_t nr, size_t to)
{
	for (size_t i = 0; i < nr; i++)
		put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i],
						    (uint8_t)(to - f->nr - 1), 0));
}

static void put_verdicts(struct filter *f)
{
	put(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
	put(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES));
	put(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					    offsetof(struct seccomp_data, args[2])));
	put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0));
	put(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	put(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
}

static int set_filter(const struct base_jail *jail, struct base_err *err)
{
	struct filter f = { .nr = 0 };
	struct sock_fprog prog = { .filter = f.insns };

	put(&f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					     offsetof(struct seccomp_data, arch)));
	put(&f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, JAIL_ARCH, 1, 0));
	put(&f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
	put(&f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					     offsetof(struct seccomp_data, nr)));
	put_calls(&f, allowed, NR(allowed), AT_ALLOW);
	put_calls(&f, memory, NR(memory), AT_PROT);
	put_calls(&f, receive, NR(receive), jail->receives ? AT_ALLOW : AT_KILL);
	put_calls(&f, sync_calls, NR(sync_calls), jail->syncs ? AT_ALLOW : AT_KILL);
	put_calls(&f, refused, NR(refused), jail->receives ? AT_REFUSE : AT_KILL);
	put_verdicts(&f);
	prog.len = (unsigned short)f.nr;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		return base_fail_errno(err, -errno, "cannot filter system calls");
	return 0;
}

int base_jail_enter(const struct base_jail *jail, struct base_err *err)
{
	int r;

	if (!JAIL_ARCH)
		return base_fail(err, -ENOTSUP, "there is no jail for programs on this machine");
	if (close_range(jail->nr_fds, ~0u, 0) < 0)
		return base_fail_errno(err, -errno, "cannot close descriptors");
	r = set_limits(jail, err);
	if (r >= 0)
		r = base_rights_drop(err);
	/* After the ids, whose change undoes it. */
	if (r >= 0 && jail->ends_with_parent && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		r = base_fail_errno(err, -errno, "cannot end with the parent");
	return r < 0 ? r : set_filter(jail, err);
}
