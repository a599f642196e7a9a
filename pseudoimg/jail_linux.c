/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What parses an application's bytes runs without rights, and with the system calls alone that
 * reading, writing and memory need.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pseudoimg_internal.h"

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
#error "the jail does not know this machine"
#endif

enum { CPU_SECONDS = 120 };
#define MEMORY_BYTES (UINT64_C(4) << 30)
#define FILE_BYTES   (UINT64_C(16) << 30)

static int set_limits(struct base_err *err)
{
	static const struct base_limit limits[] = {
		{ RLIMIT_CORE, 0 },  { RLIMIT_CPU, CPU_SECONDS }, { RLIMIT_FSIZE, FILE_BYTES },
		{ RLIMIT_NPROC, 0 }, { RLIMIT_NOFILE, 3 },	  { RLIMIT_AS, MEMORY_BYTES },
	};

	return base_limits_set(limits, sizeof(limits) / sizeof(limits[0]), err);
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

enum {
	NR_ALLOWED = sizeof(allowed) / sizeof(allowed[0]),
	NR_MEMORY = sizeof(memory) / sizeof(memory[0]),
	NR_HEAD = 4,
	/* behind the comparisons: load, test, then the two verdicts */
	NR_INSNS = NR_HEAD + NR_ALLOWED + NR_MEMORY + 1 + 2 + 2,
	AT_PROT = NR_HEAD + NR_ALLOWED + NR_MEMORY + 1,
	AT_ALLOW = NR_INSNS - 2,
};

static int set_filter(struct base_err *err)
{
	struct sock_filter f[NR_INSNS];
	const struct sock_fprog prog = { .len = NR_INSNS, .filter = f };
	size_t n = 0;

	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, arch));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, JAIL_ARCH, 1, 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < NR_ALLOWED; i++, n++)
		f[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed[i],
						    (uint8_t)(AT_ALLOW - n - 1), 0);
	for (size_t i = 0; i < NR_MEMORY; i++, n++)
		f[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)memory[i],
						    (uint8_t)(AT_PROT - n - 1), 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, args[2]));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		return base_fail_errno(err, -errno, "cannot filter system calls");
	return 0;
}

int pseudoimg_jail_enter(unsigned int nr_fds, struct base_err *err)
{
	int r;

	if (close_range(nr_fds, ~0u, 0) < 0)
		return base_fail_errno(err, -errno, "cannot close descriptors");
	r = set_limits(err);
	if (r >= 0)
		r = base_rights_drop(err);
	return r < 0 ? r : set_filter(err);
}
