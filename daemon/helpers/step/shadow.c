/* SPDX-License-Identifier: BSD-2-Clause */
/* A child without memory of its own executes the stepped program's instructions. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define HAS_RSEQ 1
#endif

#include "base.h"
#include "step_shadow.h"

/* All that the shadow has of its own: one page, where hardly a program has something. */
#define OWN_PAGE UINT64_C(0x10000)
#define USER_END UINT64_C(0x7ffffffff000)
/* Its one descriptor. */
enum { OWN_FD = 0 };
enum { FAULTS_MAX = 16 }; /* pages that one instruction may touch */

/* ---- in the child ---------------------------------------------------------------------------- */

static void drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { 0 };

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &head, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		_exit(1);
}

/* The kernel writes into that memory, which will soon be unmapped. */
static void unregister_rseq(void)
{
#ifdef HAS_RSEQ
	if (__rseq_size && syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset,
				   sizeof(struct rseq), RSEQ_FLAG_UNREGISTER, RSEQ_SIG) < 0)
		_exit(1);
#endif
}

static void map_own_page(void)
{
	void *at = (void *)(uintptr_t)OWN_PAGE;

	if (mmap(at, STEP_PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, OWN_FD,
		 0) != at)
		_exit(1);
}

/* Memory is all that it may ask for. */
static void set_filter(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { .len = sizeof(f) / sizeof(f[0]), .filter = f };

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) < 0)
		_exit(1);
}

static void become_shadow(pid_t parent, int fd)
{
	drop_capabilities();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent ||
	    dup2(fd, OWN_FD) < 0 || syscall(SYS_close_range, OWN_FD + 1, ~0u, 0) < 0)
		_exit(1);
	unregister_rseq();
	map_own_page();
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(1);
	set_filter();
	__asm__ volatile("int3");
	__builtin_unreachable();
}

/* ---- its life -------------------------------------------------------------------------------- */

/* The signal that it stopped with, or -ESRCH: it is no more. */
static int wait_for(struct step_shadow *s)
{
	int status;

	while (waitpid(s->pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return -ESRCH;
	if (WIFSTOPPED(status))
		return WSTOPSIG(status);
	s->pid = 0;
	return -ESRCH;
}

void step_shadow_close(struct step_shadow *s)
{
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		while (waitpid(s->pid, NULL, __WALL) < 0 && errno == EINTR)
			;
	}
	if (s->has_fd)
		close(s->fd);
	*s = (struct step_shadow){ 0 };
}

/* Pages that are filled before they are mapped: services may make none of theirs executable. */
static int make_pages(void)
{
	static const uint8_t code[] = { 0x0f, 0x05, 0xcc }; /* syscall; int3 */
	int fd = memfd_create("dcpid-step", MFD_CLOEXEC), e;

	if (fd >= 0 && ftruncate(fd, (1 + STEP_PAGES_MAX) * STEP_PAGE) == 0 &&
	    pwrite(fd, code, sizeof(code), 0) == (ssize_t)sizeof(code))
		return fd;
	e = errno;
	if (fd >= 0)
		close(fd);
	return -e;
}

int step_shadow_open(struct step_shadow *s)
{
	pid_t parent = getpid();
	int e;

	*s = (struct step_shadow){ .fd = make_pages() };
	if (s->fd < 0)
		return s->fd;
	s->has_fd = true;
	s->pid = fork();
	if (s->pid == 0)
		become_shadow(parent, s->fd);
	if (s->pid < 0) {
		e = errno;
		step_shadow_close(s);
		return -e;
	}
	/* The shadow holds the program's data: it must not outlive us. */
	if (wait_for(s) != SIGTRAP ||
	    ptrace(PTRACE_SETOPTIONS, s->pid, NULL, (void *)PTRACE_O_EXITKILL) < 0 ||
	    ptrace(PTRACE_GETREGS, s->pid, NULL, &s->idle) < 0) {
		step_shadow_close(s);
		return -DCPI_EHELPER;
	}
	return 0;
}

/* Have it make a system call. -ENOMEM: that did not give @want. */
static int call(struct step_shadow *s, struct user_regs_struct *u, uint64_t want)
{
	if (ptrace(PTRACE_SETREGS, s->pid, NULL, u) < 0 ||
	    ptrace(PTRACE_CONT, s->pid, NULL, NULL) < 0 || wait_for(s) != SIGTRAP ||
	    ptrace(PTRACE_GETREGS, s->pid, NULL, u) < 0)
		return -ESRCH;
	return u->rax == want ? 0 : -ENOMEM;
}

static struct user_regs_struct call_of(const struct step_shadow *s, int nr)
{
	struct user_regs_struct u = s->idle;

	u.rip = OWN_PAGE;
	u.rax = (unsigned int)nr;
	u.orig_rax = ~0ull;
	return u;
}

static int unmap(struct step_shadow *s, uint64_t start, uint64_t end)
{
	struct user_regs_struct u = call_of(s, SYS_munmap);

	u.rdi = start;
	u.rsi = end - start;
	return call(s, &u, 0);
}

static int map(struct step_shadow *s, uint64_t page, int prot, uint64_t off)
{
	struct user_regs_struct u = call_of(s, SYS_mmap);

	u.rdi = page;
	u.rsi = STEP_PAGE;
	u.rdx = (unsigned int)prot;
	u.r10 = MAP_PRIVATE | MAP_FIXED;
	u.r8 = OWN_FD;
	u.r9 = off;
	return call(s, &u, page);
}

int step_shadow_begin(struct step_shadow *s, const struct step_regs *regs)
{
	int r = unmap(s, 0, OWN_PAGE);

	s->nr_pages = 0;
	if (r == 0)
		r = unmap(s, OWN_PAGE + STEP_PAGE, USER_END);
	return r < 0 ? r : step_regs_put(s->pid, regs);
}

/* ---- its memory ------------------------------------------------------------------------------ */

static bool has_page(const struct step_shadow *s, uint64_t page)
{
	for (size_t i = 0; i < s->nr_pages; i++)
		if (s->pages[i] == page)
			return true;
	return false;
}

/* A page as the program has it. 0; -EFAULT: it has none that would do. */
static int bring(struct step_shadow *s, struct step_target *t, uint64_t page)
{
	uint64_t off = (1 + s->nr_pages) * STEP_PAGE;
	int prot = step_target_prot(t, page), r;
	uint8_t bytes[STEP_PAGE];

	if (prot <= 0 || page == OWN_PAGE || has_page(s, page) || s->nr_pages == STEP_PAGES_MAX ||
	    step_target_read(t, bytes, sizeof(bytes), page) < 0 ||
	    pwrite(s->fd, bytes, sizeof(bytes), (off_t)off) != (ssize_t)sizeof(bytes))
		return -EFAULT;
	r = map(s, page, prot, off);
	/* Where no page may be written and executed both: executed is what it is needed for. */
	if (r == -ENOMEM && prot & PROT_EXEC)
		r = map(s, page, prot & ~PROT_WRITE, off);
	if (r == 0)
		s->pages[s->nr_pages++] = page;
	return r;
}

/*
 * The shadow stopped for memory that it does not have yet. 1: now it has it; 0: the program has
 * none there.
 */
static int serve_fault(struct step_shadow *s, struct step_target *t)
{
	struct user_regs_struct u;
	siginfo_t info;
	int r;

	if (ptrace(PTRACE_GETSIGINFO, s->pid, NULL, &info) < 0 ||
	    ptrace(PTRACE_GETREGS, s->pid, NULL, &u) < 0)
		return -ESRCH;
	r = bring(s, t, (uint64_t)(uintptr_t)info.si_addr & ~(uint64_t)(STEP_PAGE - 1));
	if (r == -ESRCH)
		return r;
	u.orig_rax = ~0ull;
	if (ptrace(PTRACE_SETREGS, s->pid, NULL, &u) < 0)
		return -ESRCH;
	return r == 0;
}

int step_shadow_step(struct step_shadow *s, struct step_target *t, struct step_regs *regs)
{
	for (int i = 0; i < FAULTS_MAX; i++) {
		int sig, r;

		if (ptrace(PTRACE_SINGLESTEP, s->pid, NULL, NULL) < 0)
			return -ESRCH;
		sig = wait_for(s);
		if (sig < 0)
			return sig;
		if (sig == SIGTRAP)
			return step_regs_get(s->pid, regs) < 0 ? -ESRCH : 1;
		r = sig == SIGSEGV ? serve_fault(s, t) : 0;
		if (r <= 0)
			return r;
	}
	return 0;
}

static int read_own(const struct step_shadow *s, void *to, size_t len, uint64_t addr)
{
	struct iovec local = { to, len }, remote = { (void *)(uintptr_t)addr, len };

	return process_vm_readv(s->pid, &local, 1, &remote, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

int step_shadow_read(const struct step_shadow *s, const struct step_target *t, void *to, size_t len,
		     uint64_t addr)
{
	int r = 0;

	while (r == 0 && len) {
		size_t rest = STEP_PAGE - (addr & (STEP_PAGE - 1)), part = len < rest ? len : rest;

		r = has_page(s, addr & ~(uint64_t)(STEP_PAGE - 1))
			    ? read_own(s, to, part, addr)
			    : step_target_read(t, to, part, addr);
		to = (char *)to + part;
		addr += part;
		len -= part;
	}
	return r;
}
