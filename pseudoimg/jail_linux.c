/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What parses an application's bytes runs without rights, and with the system calls alone that
 * reading, writing and memory need.
 */
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
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

enum {
	NOBODY = 65534,
	CPU_SECONDS = 120,
};
#define MEMORY_BYTES (UINT64_C(4) << 30)
#define FILE_BYTES   (UINT64_C(16) << 30)

static int limit(int what, rlim_t value)
{
	const struct rlimit l = { value, value };
	struct rlimit now;

	if (setrlimit((__rlimit_resource_t)what, &l) == 0)
		return 0;
	/* One that is tighter already cannot be raised, and need not be. */
	if (errno == EPERM && getrlimit((__rlimit_resource_t)what, &now) == 0 &&
	    now.rlim_max <= value)
		return 0;
	return -errno;
}

static int set_limits(struct base_err *err)
{
	const struct {
		int what;
		rlim_t value;
	} limits[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_CPU, CPU_SECONDS },
		{ RLIMIT_FSIZE, FILE_BYTES },
		{ RLIMIT_NPROC, 0 },
		{ RLIMIT_NOFILE, 3 },
		/* A sanitizer's shadow alone reserves terabytes. */
		{ RLIMIT_AS, SANITIZED ? RLIM_INFINITY : MEMORY_BYTES },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		int r = limit(limits[i].what, limits[i].value);

		if (r < 0)
			return base_fail_errno(err, r, "cannot limit resource %d", limits[i].what);
	}
	return 0;
}

static int drop_ids(struct base_err *err)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return base_fail_errno(err, -errno, "cannot become nobody");
	return 0;
}

static int drop_capabilities(struct base_err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { 0 };

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &head, none) < 0)
		return base_fail_errno(err, -errno, "cannot drop capabilities");
	return 0;
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
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return base_fail_errno(err, -errno, "cannot renounce new privileges");
	r = set_limits(err);
	if (r >= 0)
		r = drop_ids(err);
	if (r >= 0)
		r = drop_capabilities(err);
	/* After the ids, whose change sets it anew. */
	if (r >= 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = base_fail_errno(err, -errno, "cannot forbid inspection");
	return r < 0 ? r : set_filter(err);
}
