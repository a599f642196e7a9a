/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program is stopped, its registers and memory are read, and its single steps become traces over
 * translated blocks. Its instructions are executed by a child without memory of its own, the
 * shadow.
 */
#include <cpuid.h>
#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
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

#include "step_record.h"

/* Code segment of 64-bit programs. */
enum { CODE_64 = 0x33 };
/* Where XSAVE says what it holds: as the kernel puts it there for debuggers. */
enum { FEATURES_AT = 464 };
enum { FEATURE_AVX = 2, FEATURE_MASKS = 5, FEATURE_UPPER = 7 };
enum { XMM_AT = 160, TASKS_MAX = 4096 };

/* ---- registers ------------------------------------------------------------------------------- */

static int step_regs_get(pid_t tid, struct step_regs *out)
{
	struct iovec v = { out->x, sizeof(out->x) };

	if (ptrace(PTRACE_GETREGS, tid, NULL, &out->u) < 0 ||
	    ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &v) < 0)
		return -errno;
	out->len = v.iov_len;
	return 0;
}

static int step_regs_put(pid_t tid, const struct step_regs *r)
{
	struct iovec v = { (void *)(uintptr_t)r->x, r->len };

	if (ptrace(PTRACE_SETREGSET, tid, (void *)NT_X86_XSTATE, &v) < 0 ||
	    ptrace(PTRACE_SETREGS, tid, NULL, &r->u) < 0)
		return -errno;
	return 0;
}

static void set(struct step_values *out, unsigned int reg, uint64_t value)
{
	out->r[reg] = value;
	out->has[reg] = true;
}

/* Where XSAVE puts them, in a machine in which to ask costs more than a step. */
static uint32_t offset_of(unsigned int nr)
{
	static uint32_t offsets[FEATURE_UPPER + 1];
	unsigned int size, at, c, d;

	if (!offsets[nr] && __get_cpuid_count(0xd, nr, &size, &at, &c, &d))
		offsets[nr] = at;
	return offsets[nr];
}

/* Where a feature's registers, of @len bytes, stand; NULL: this processor, or system, has none. */
static const uint8_t *feature(const struct step_regs *r, unsigned int nr, size_t len)
{
	uint64_t has;
	uint32_t at;

	memcpy(&has, r->x + FEATURES_AT, sizeof(has));
	at = has >> nr & 1 ? offset_of(nr) : 0;
	return at && at + len <= r->len ? r->x + at : NULL;
}

/* @nr registers of @stride bytes, of which @nr_chunks chunks of eight are set from @chunk on. */
static void set_chunks(struct step_values *out, unsigned int first, const uint8_t *from,
		       unsigned int nr, unsigned int stride, unsigned int chunk,
		       unsigned int nr_chunks)
{
	for (unsigned int v = 0; from && v < nr; v++) {
		for (unsigned int i = 0; i < nr_chunks; i++) {
			uint64_t value;

			memcpy(&value, from + v * stride + 8 * i, sizeof(value));
			set(out, VTRACE_VECTOR + 4 * (first + v) + chunk + i, value);
		}
	}
}

static void set_vectors(const struct step_regs *r, struct step_values *out)
{
	const uint8_t *masks = feature(r, FEATURE_MASKS, 8 * 8);

	set_chunks(out, 0, r->x + XMM_AT, 16, 16, 0, 2);
	set_chunks(out, 0, feature(r, FEATURE_AVX, 16 * 16), 16, 16, 2, 2);
	set_chunks(out, 16, feature(r, FEATURE_UPPER, 16 * 64), 16, 64, 0, 4);
	for (unsigned int i = 0; masks && i < 8; i++) {
		uint64_t value;

		memcpy(&value, masks + 8 * i, sizeof(value));
		set(out, VTRACE_MASK + i, value);
	}
}

static uint8_t flags_of(uint64_t e)
{
	return (uint8_t)((e & 1 ? VTRACE_C : 0) | (e & 4 ? VTRACE_P : 0) |
			 (e & 0x40 ? VTRACE_Z : 0) | (e & 0x80 ? VTRACE_S : 0) |
			 (e & 0x800 ? VTRACE_O : 0));
}

static void step_regs_values(const struct step_regs *r, struct step_values *out)
{
	const struct user_regs_struct *u = &r->u;
	const uint64_t general[16] = { u->rax, u->rdx, u->rcx, u->rbx, u->rsi, u->rdi,
				       u->rbp, u->rsp, u->r8,  u->r9,  u->r10, u->r11,
				       u->r12, u->r13, u->r14, u->r15 };

	memset(out->has, 0, sizeof(out->has));
	for (unsigned int i = 0; i < 16; i++)
		set(out, i, general[i]);
	set(out, VTRACE_TLS, u->fs_base);
	set(out, VTRACE_GS, u->gs_base);
	out->flags = flags_of(u->eflags);
	set_vectors(r, out);
}

/* ---- which process --------------------------------------------------------------------------- */

/* A line of /proc/PID/status, behind its name; false: there is none. */
static bool status_line(pid_t pid, const char *name, char *to, size_t cap)
{
	char path[64], line[256];
	size_t len = strlen(name);
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		found = strncmp(line, name, len) == 0 && line[len] == ':';
		if (found)
			snprintf(to, cap, "%s", line + len + 1);
	}
	if (f)
		fclose(f);
	return found;
}

static int fail(pid_t pid, int code, const char *why, struct base_err *err)
{
	return base_fail(err, code, "cannot step process %d: %s", (int)pid, why);
}

/* Check that none of its threads is traced by another process. */
static int check_tracer(pid_t pid, struct base_err *err)
{
	char text[64], why[64];
	long tracer;

	if (!status_line(pid, "TracerPid", text, sizeof(text)))
		return fail(pid, -ESRCH, "there is none", err);
	tracer = strtol(text, NULL, 10);
	if (!tracer)
		return 0;
	snprintf(why, sizeof(why), "process %ld traces it already", tracer);
	return fail(pid, -EBUSY, why, err);
}

/* Users who may stop a process may look at it. */
static int check_rights(const struct step_target *t, struct base_err *err)
{
	char byte;
	struct iovec to = { &byte, 1 }, from = { NULL, 1 };

	if (process_vm_readv(t->pid, &to, 1, &from, 1, 0) >= 0 || errno == EFAULT)
		return 0;
	if (errno == ESRCH)
		return fail(t->pid, -ESRCH, "it has ended", err);
	fail(t->pid, -EPERM, "this user may not", err);
	base_hint(err, "whose it is may, with ptrace allowed, and root");
	return -EPERM;
}

int step_target_open(pid_t pid, struct step_target *t, struct base_err *err)
{
	char text[64];
	int r;

	*t = (struct step_target){ .pid = pid, .fd = -1 };
	if (!status_line(pid, "Tgid", text, sizeof(text)))
		return fail(pid, -ESRCH, "there is none", err);
	if (strtol(text, NULL, 10) != pid)
		return fail(pid, -ESRCH, "that is a thread of another one", err);
	if (!status_line(pid, "VmSize", text, sizeof(text)))
		return fail(pid, -EINVAL, "it has no memory: a kernel thread, or ended", err);
	r = check_tracer(pid, err);
	if (r < 0)
		return r;
	t->fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (t->fd < 0)
		return base_fail_errno(err, -errno, "cannot step process %d", (int)pid);
	r = check_rights(t, err);
	if (r < 0)
		step_target_close(t);
	return r;
}

void step_target_close(struct step_target *t)
{
	if (t->fd >= 0)
		close(t->fd);
	free(t->tids);
	free(t->maps);
	*t = (struct step_target){ .fd = -1 };
}

static bool is_gone(const struct step_target *t)
{
	struct pollfd p = { .fd = t->fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* ---- its threads ----------------------------------------------------------------------------- */

static void list_threads(struct step_target *t)
{
	char path[64];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)t->pid);
	dir = opendir(path);
	t->nr_tids = t->next = 0;
	while (dir && t->nr_tids < TASKS_MAX && (e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]) ||
		    base_grow(&t->tids, &t->cap_tids, t->nr_tids + 1, sizeof(*t->tids)) < 0)
			continue;
		t->tids[t->nr_tids++] = (pid_t)strtol(e->d_name, NULL, 10);
	}
	if (dir)
		closedir(dir);
}

/* A system call that waits is not to be interrupted: some of them would tell. */
static bool runs(const struct step_target *t, pid_t tid)
{
	char path[80], text[256];
	const char *name_end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)t->pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	name_end = strrchr(text, ')');
	return name_end && strncmp(name_end, ") R", 3) == 0;
}

/* A thread of it that runs now, each in its turn; 0: none does. */
static pid_t step_target_next(struct step_target *t)
{
	if (t->next >= t->nr_tids)
		list_threads(t);
	while (t->next < t->nr_tids) {
		pid_t tid = t->tids[t->next++];

		if (runs(t, tid))
			return tid;
	}
	return 0;
}

/* With @sig, if that is not 0. The end of one that was killed meanwhile is seen here first.
 */
static void let_go(pid_t tid, int sig)
{
	int status;

	while (ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)sig) < 0 &&
	       waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status))
		;
}

/* Behind a system call, or of 32 bits, or stepping itself: nothing for us. */
static bool is_fit(const struct step_regs *r)
{
	return (int64_t)r->u.orig_rax < 0 && r->u.cs == CODE_64 && !(r->u.eflags & 0x100);
}

/*
 * Stop @tid. 1: it stands between two instructions of its own, and step_target_release is to let it
 * go; 0: it does not, and goes on already; -errno: it was not stopped.
 */
static int step_target_stop(struct step_target *t, pid_t tid, struct step_regs *regs)
{
	int status;

	t->has_maps = false;
	t->nr_maps = 0;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return -errno;
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	if (waitpid(tid, &status, __WALL) < 0 || !WIFSTOPPED(status))
		return -ESRCH;
	/* It has a signal of its own, which it is to get, or another process stopped it. */
	if (status >> 8 != (SIGTRAP | PTRACE_EVENT_STOP << 8)) {
		let_go(tid, status >> 16 ? 0 : WSTOPSIG(status));
		return 0;
	}
	if (is_gone(t) || step_regs_get(tid, regs) < 0 || !is_fit(regs)) {
		let_go(tid, 0);
		return 0;
	}
	return 1;
}

static void step_target_release(pid_t tid)
{
	let_go(tid, 0);
}

/* ---- its memory ------------------------------------------------------------------------------ */

/* While one of its threads stands. 0, -EFAULT. */
static int step_target_read(const struct step_target *t, void *to, size_t len, uint64_t addr)
{
	struct iovec local = { to, len }, remote = { (void *)(uintptr_t)addr, len };

	return process_vm_readv(t->pid, &local, 1, &remote, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

static int prot_of(const char *text)
{
	return (text[0] == 'r' ? PROT_READ : 0) | (text[1] == 'w' ? PROT_WRITE : 0) |
	       (text[2] == 'x' ? PROT_EXEC : 0);
}

static void read_maps(struct step_target *t)
{
	char path[64], perms[8], *line = NULL;
	struct step_map m;
	size_t cap = 0;
	FILE *f;

	t->has_maps = true;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)t->pid);
	f = fopen(path, "re");
	while (f && getline(&line, &cap, f) > 0) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &m.start, &m.end, perms) != 3 ||
		    base_grow(&t->maps, &t->cap_maps, t->nr_maps + 1, sizeof(*t->maps)) < 0)
			continue;
		m.prot = prot_of(perms);
		t->maps[t->nr_maps++] = m;
	}
	free(line);
	if (f)
		fclose(f);
}

/* PROT_… of the page at @addr, or -EFAULT. */
static int step_target_prot(struct step_target *t, uint64_t addr)
{
	if (!t->has_maps)
		read_maps(t);
	for (size_t i = 0; i < t->nr_maps; i++)
		if (addr >= t->maps[i].start && addr < t->maps[i].end)
			return t->maps[i].prot;
	return -EFAULT;
}

/* All that the shadow has of its own: one page, where hardly a program has something. */
#define OWN_PAGE UINT64_C(0x10000)
#define USER_END UINT64_C(0x7ffffffff000)
/* Its one descriptor. */
enum { OWN_FD = 0 };
enum { FAULTS_MAX = 16 }; /* pages that one instruction may touch */

/* ---- the shadow: in the child ---------------------------------------------------------------- */

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

/* ---- the shadow: its life -------------------------------------------------------------------- */

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

static void step_shadow_close(struct step_shadow *s)
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

/* Start it. 0, -errno. */
static int step_shadow_open(struct step_shadow *s)
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

/* Without memory, with these registers. 0, or -errno: then it is of no use any more. */
static int step_shadow_begin(struct step_shadow *s, const struct step_regs *regs)
{
	int r = unmap(s, 0, OWN_PAGE);

	s->nr_pages = 0;
	if (r == 0)
		r = unmap(s, OWN_PAGE + STEP_PAGE, USER_END);
	return r < 0 ? r : step_regs_put(s->pid, regs);
}

/* ---- the shadow: its memory ------------------------------------------------------------------ */

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

/*
 * One instruction, with what it touches of @t's memory. 1: @regs are those behind it; 0: it does
 * not run to its end (no memory there, a division by zero, …); -errno: the shadow is lost.
 */
static int step_shadow_step(struct step_shadow *s, struct step_target *t, struct step_regs *regs)
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

/* Its memory, and where it has none @t's. 0, -EFAULT. */
static int step_shadow_read(const struct step_shadow *s, const struct step_target *t, void *to,
			    size_t len, uint64_t addr)
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

static int read_memory(void *ctx, void *to, size_t len, uint64_t addr)
{
	const struct step_recorder *r = ctx;

	return step_shadow_read(&r->shadow, &r->target, to, len, addr);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* @c is copied. */
static int keep(struct step_recorder *r, const struct vtrace_code *c)
{
	struct step_blocks *b = &r->blocks;
	size_t len = offsetof(struct vtrace_code, uops) + c->block.nr_uops * sizeof(c->uops[0]);
	struct vtrace_code *copy;

	if (b->nr == STEP_ID_END - STEP_ID_FIRST)
		return -DCPI_ELIMIT;
	if (base_grow(&b->all, &b->cap, b->nr + 1, sizeof(*b->all)) < 0)
		return -ENOMEM;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, c, len);
	copy->block.id = (uint32_t)(STEP_ID_FIRST + b->nr);
	b->all[b->nr++] = copy;
	return base_map_set(&b->by_pc, &copy->block.pc, sizeof(copy->block.pc), copy);
}

static const struct vtrace_code *find(const struct step_recorder *r, uint64_t pc)
{
	return base_map_get(&r->blocks.by_pc, &pc, sizeof(pc));
}

/* Two pages from that of @pc on, as far as they are there. */
static uint32_t fetch(const struct step_recorder *r, uint64_t base, uint8_t *code)
{
	uint32_t len = 0;

	while (len < TRANSLATOR_CODE &&
	       step_target_read(&r->target, code + len, STEP_PAGE, base + len) == 0)
		len += STEP_PAGE;
	return len;
}

/*
 * Put translated blocks where none is known yet; at the place itself the code differs from the
 * known one.
 */
static int translate(struct step_recorder *r, uint64_t pc)
{
	static uint8_t code[TRANSLATOR_CODE];
	struct translator_request q = { .pc = pc, .base = pc & ~(uint64_t)(STEP_PAGE - 1) };
	const struct vtrace_code *blocks;
	enum vtrace_arch arch;
	int nr = translator_arch(&arch);

	q.arch = arch;
	q.len = fetch(r, q.base, code);
	if (nr == 0)
		nr = q.len ? translator_call(r->translator, &q, code, &blocks) : -EFAULT;
	for (int i = 0; i < nr; i++)
		if ((i == 0 || !find(r, blocks[i].block.pc)) && keep(r, &blocks[i]) < 0)
			return -ENOMEM;
	return nr < 0 ? nr : 0;
}

static int enter(struct step_recorder *r, const struct vtrace_code **out)
{
	struct vtrace_memory m = { read_memory, r };
	uint64_t pc = r->s.pc;

	*out = find(r, pc);
	if (!*out || !vtrace_code_is(&m, &(*out)->block, pc)) {
		if (translate(r, pc) < 0 || !(*out = find(r, pc)))
			return VTRACE_UNTRANSLATED;
		if (!vtrace_code_is(&m, &(*out)->block, pc))
			return VTRACE_CODE;
	}
	return vtrace_enter(&r->s, &(*out)->block, 0);
}

/* ---- what the processor says ----------------------------------------------------------------- */

static bool add_fix(struct step_recorder *r, uint8_t reg, uint64_t value)
{
	struct insn_trace *w = &r->out.head.w;

	if (w->nr_fixes == VTRACE_NR_FIXES)
		return false;
	r->fixes[w->nr_fixes++] =
		(struct vtrace_fix){ .before = r->s.nr_insns, .reg = reg, .value = value };
	return true;
}

static bool fix_flags(struct step_recorder *r)
{
	struct vtrace_state *s = &r->s;

	if (!s->flags_unknown && s->flags == r->values.flags)
		return true;
	vtrace_flags(s, r->values.flags, VTRACE_FLAGS, 0);
	return add_fix(r, VTRACE_FIX_FLAGS, r->values.flags);
}

/* The state becomes what the processor has. False: there is no room to say so. */
static bool fix(struct step_recorder *r)
{
	struct vtrace_state *s = &r->s;

	step_regs_values(&r->regs, &r->values);
	for (unsigned int i = 0; i < VTRACE_NR_REGS; i++) {
		if (!r->values.has[i] || (!s->unknown[i] && s->r[i] == r->values.r[i]))
			continue;
		vtrace_put(s, (uint8_t)i, r->values.r[i], 0);
		if (!add_fix(r, (uint8_t)i, r->values.r[i]))
			return false;
	}
	vtrace_settle_memory(s);
	return fix_flags(r);
}

/* ---- a burst --------------------------------------------------------------------------------- */

/* Registers in the trace's head need no fix. */
static bool begin(struct step_recorder *r, pid_t tid)
{
	struct insn_trace *w = &r->out.head.w;
	struct vtrace_state *s = &r->s;

	step_regs_values(&r->regs, &r->values);
	memset(s->unknown, 0xff, sizeof(s->unknown));
	for (unsigned int i = 0; i < INSN_TRACE_REGS; i++)
		vtrace_put(s, (uint8_t)i, r->values.has[i] ? r->values.r[i] : 0, 0);
	vtrace_flags(s, r->values.flags, VTRACE_FLAGS, 0);
	s->pc = r->regs.u.rip;
	vtrace_begin(s, STEP_INSNS);
	s->log = VTRACE_LOG_READS;
	memset(&r->out.head, 0, sizeof(r->out.head));
	*w = (struct insn_trace){
		.time_ns = r->stopped_ns,
		.pc = s->pc,
		.tgid = (uint32_t)r->target.pid,
		.tid = (uint32_t)tid,
		.has = INSN_TRACE_VALUES | INSN_TRACE_STEPPED,
		.flags = s->flags,
	};
	memcpy(w->r, s->r, sizeof(w->r));
	return fix(r);
}

static bool is_over(const struct step_recorder *r)
{
	return base_now_ns() - r->stopped_ns > STEP_STOP_NS;
}

/* It goes on where the interpreter says; a string instruction, once it has been repeated. */
static int step(struct step_recorder *r, uint64_t from, uint64_t next)
{
	int ran;

	do {
		ran = step_shadow_step(&r->shadow, &r->target, &r->regs);
		if (ran <= 0)
			return ran < 0 ? ran : VTRACE_FAULTS;
		if (r->regs.u.rip == next)
			return VTRACE_CONTINUES;
	} while (r->regs.u.rip == from && !is_over(r));
	return VTRACE_SYSTEM;
}

/* The last instruction is not completely known: it leaves the trace. */
static void take_back(struct step_recorder *r)
{
	struct insn_trace *w = &r->out.head.w;

	r->s.words[r->s.block_word]--;
	r->s.nr_insns--;
	while (w->nr_fixes && r->fixes[w->nr_fixes - 1].before > r->s.nr_insns)
		w->nr_fixes--;
}

/* Instruction @i of @c, whose micro-ops begin at @*uop. */
static int run_insn(struct step_recorder *r, const struct vtrace_code *c, unsigned int i,
		    unsigned int *uop)
{
	struct vtrace_memory m = { read_memory, r };
	uint64_t pc = c->block.pc + c->insns[i].offset, next;
	const struct vtrace_uop *u;
	int end;

	do {
		if (*uop == c->block.nr_uops)
			return VTRACE_UNDECODED;
		u = &c->uops[(*uop)++];
		end = vtrace_step(&m, &r->s, u);
	} while (end == VTRACE_CONTINUES && !(u->marks & VTRACE_LAST));
	if (end != VTRACE_CONTINUES)
		return end;
	next = i + 1u < c->block.nr_insns ? pc + c->insns[i].len : r->s.pc;
	end = step(r, pc, next);
	if (end != VTRACE_CONTINUES)
		return end;
	end = vtrace_commit(&r->s);
	if (end <= VTRACE_FULL && !fix(r)) {
		take_back(r);
		return VTRACE_TRACE;
	}
	return end;
}

/* Why it ended (VTRACE_CONTINUES: its time was over), or -errno. */
static int run(struct step_recorder *r)
{
	const struct vtrace_code *c = NULL;
	int end = enter(r, &c);

	for (unsigned int i = 0, uop = 0; end == VTRACE_CONTINUES && !is_over(r); i++) {
		if (i == c->block.nr_insns) {
			end = enter(r, &c);
			i = uop = 0;
		}
		if (end == VTRACE_CONTINUES)
			end = run_insn(r, c, i, &uop);
	}
	return end;
}

static void finish(struct step_recorder *r, int end)
{
	struct step_trace *out = &r->out.head;
	struct insn_trace *w = &out->w;
	const struct vtrace_state *s = &r->s;

	out->type = STEP_TRACE;
	w->nr_words = (uint16_t)(s->nr_words < VTRACE_NR_WORDS ? s->nr_words : VTRACE_NR_WORDS);
	w->nr_insns = s->nr_insns;
	w->end = (uint8_t)end;
	w->end_pc = s->pc;
	memcpy(w->failed, s->failed, sizeof(w->failed));
	memcpy(r->out.words, s->words, w->nr_words * sizeof(uint64_t));
	memcpy(r->out.words + w->nr_words, r->fixes, w->nr_fixes * sizeof(r->fixes[0]));
}

int step_record_open(struct step_recorder *r, pid_t pid, struct base_err *err)
{
	int ret = step_target_open(pid, &r->target, err);

	if (ret < 0)
		return ret;
	ret = step_shadow_open(&r->shadow);
	return ret < 0 ? base_fail_errno(err, ret, "cannot step") : 0;
}

int step_record(struct step_recorder *r)
{
	pid_t tid = step_target_next(&r->target);
	int end = r->shadow.pid ? 0 : step_shadow_open(&r->shadow);

	r->out.head.stopped_ns = 0;
	/* No thread stands while the translator starts, which may take longer than its patience. */
	if (end < 0 || !tid || translator_ready(r->translator) < 0 ||
	    step_target_stop(&r->target, tid, &r->regs) <= 0)
		return end;
	r->stopped_ns = base_now_ns();
	end = begin(r, tid) ? step_shadow_begin(&r->shadow, &r->regs) : -DCPI_ELIMIT;
	if (end == 0)
		end = run(r);
	step_target_release(tid);
	r->out.head.stopped_ns = base_now_ns() - r->stopped_ns;
	/* Another shadow may succeed, whatever failed. */
	if (end < 0) {
		step_shadow_close(&r->shadow);
		return 0;
	}
	finish(r, end);
	return r->s.nr_insns;
}

void step_record_release(struct step_recorder *r)
{
	for (size_t i = 0; i < r->blocks.nr; i++)
		free(r->blocks.all[i]);
	free(r->blocks.all);
	base_map_release(&r->blocks.by_pc);
	step_shadow_close(&r->shadow);
	step_target_close(&r->target);
	translator_close(r->translator);
}
