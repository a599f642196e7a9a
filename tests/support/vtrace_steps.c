/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vtrace_steps WINDOWS INSTRUCTIONS SEED PROGRAM…: stop the program again and again, let the
 * interpreter run from there, then the processor step by step, and compare all registers that the
 * interpreter calls known. Prints what ended the traces; exit status 1 where something differs.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vtrace_blame.h"

static struct vtrace_state state, begun, again;

static int read_memory(void *ctx, void *to, size_t len, uint64_t addr)
{
	return pread(*(const int *)ctx, to, len, (off_t)addr) == (ssize_t)len ? 0 : -EFAULT;
}

/* By DWARF's numbers. */
static void registers(const struct user_regs_struct *u, uint64_t r[16])
{
	const uint64_t all[16] = { u->rax, u->rdx, u->rcx, u->rbx, u->rsi, u->rdi, u->rbp, u->rsp,
				   u->r8,  u->r9,  u->r10, u->r11, u->r12, u->r13, u->r14, u->r15 };

	memcpy(r, all, sizeof(all));
}

static uint8_t flags(uint64_t eflags)
{
	return (eflags & 1 ? VTRACE_C : 0) | (eflags & 4 ? VTRACE_P : 0) |
	       (eflags & 0x40 ? VTRACE_Z : 0) | (eflags & 0x80 ? VTRACE_S : 0) |
	       (eflags & 0x800 ? VTRACE_O : 0);
}

static void begin(struct vtrace_state *s, const struct user_regs_struct *u, uint16_t max)
{
	memset(s->unknown, 0xff, sizeof(s->unknown));
	memset(s->unknown, 0, 16);
	registers(u, s->r);
	s->r[VTRACE_TLS] = u->fs_base;
	s->r[VTRACE_GS] = u->gs_base;
	s->unknown[VTRACE_TLS] = s->unknown[VTRACE_GS] = 0;
	s->flags = flags(u->eflags);
	s->flags_unknown = 0;
	s->pc = u->rip;
	vtrace_begin(s, max);
}

/* false: the program has ended or had a signal. */
static bool go(pid_t pid, int how, struct user_regs_struct *u)
{
	int status;

	return ptrace(how, pid, NULL, NULL) >= 0 && waitpid(pid, &status, 0) >= 0 &&
	       WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP &&
	       ptrace(PTRACE_GETREGS, pid, NULL, u) >= 0;
}

/* Up to @pc, by a breakpoint: step by step millions of repetitions would take minutes. */
static bool go_to(pid_t pid, uint64_t pc, struct user_regs_struct *u)
{
	long code = ptrace(PTRACE_PEEKTEXT, pid, (void *)pc, NULL);

	if (ptrace(PTRACE_POKETEXT, pid, (void *)pc, (void *)((code & ~0xffl) | 0xcc)) < 0 ||
	    !go(pid, PTRACE_CONT, u))
		return false;
	u->rip = pc;
	return ptrace(PTRACE_POKETEXT, pid, (void *)pc, (void *)code) >= 0 &&
	       ptrace(PTRACE_SETREGS, pid, NULL, u) >= 0;
}

/* A host's emulation of cpuid executed the next instruction too: its trap came one late. */
static bool trap_was_late;

/* One instruction, all its repetitions. */
static bool step(pid_t pid, struct user_regs_struct *u)
{
	uint64_t pc = u->rip, code = (uint64_t)ptrace(PTRACE_PEEKTEXT, pid, (void *)pc, NULL);
	bool repeated = (code & 0xff) == 0xf3 || (code & 0xff) == 0xf2, first = true;
	uint8_t rex = (code >> 8 & 0xf0) == 0x40, opcode = (uint8_t)(code >> (rex ? 16 : 8));

	do {
		if (!go(pid, PTRACE_SINGLESTEP, u))
			return false;
		/* movs and stos, which jump nowhere. */
		if (first && u->rip == pc && u->rcx > 64 &&
		    ((opcode & 0xfe) == 0xa4 || (opcode & 0xfe) == 0xaa))
			return go_to(pid, pc + 2 + rex, u);
		first = false;
	} while (u->rip == pc && repeated);
	trap_was_late |= (code & 0xffff) == 0xa20f && u->rip != pc + 2;
	return true;
}

static unsigned int compare(const struct vtrace_state *s, const struct user_regs_struct *u,
			    uint64_t pc, unsigned int *known)
{
	static const char *const names[] = {
		"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
		"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"
	};
	uint64_t r[16];
	unsigned int bad = 0;

	registers(u, r);
	for (int i = 0; i < 16; i++) {
		*known += !s->unknown[i];
		if (!((s->r[i] ^ r[i]) & ~vtrace_spread(s->unknown[i])))
			continue;
		printf("%s is %#llx, not %#llx\n", names[i], (unsigned long long)r[i],
		       (unsigned long long)s->r[i]);
		bad++;
	}
	if (pc != u->rip) {
		printf("pc is %#llx, not %#llx\n", (unsigned long long)u->rip,
		       (unsigned long long)pc);
		bad++;
	}
	return bad;
}

static void print_registers(const char *when, const struct vtrace_state *s)
{
	printf("  %s: pc %#llx flags %#x/%#x", when, (unsigned long long)s->pc, s->flags,
	       s->flags_unknown);
	for (int i = 0; i < 16; i++)
		printf(" %#llx/%#x", (unsigned long long)s->r[i], s->unknown[i]);
	printf("\n");
}

/* All that is needed to find out why. */
static void print_trace(const struct vtrace_blocks *b, const struct vtrace_state *s)
{
	struct vtrace_visit v = { 0 };

	print_registers("before", &begun);
	print_registers("after", s);
	for (int i = 0; i < VTRACE_NR_STORES; i++)
		if (vtrace_has_store(s, (uint32_t)i))
			printf("  stored %#llx: %#llx, written %#x, unknown %#x\n",
			       (unsigned long long)s->stores[i].addr,
			       (unsigned long long)s->stores[i].value, s->stores[i].written,
			       s->stores[i].unknown);
	while (vtrace_visit_read(s->words, s->nr_words, v.end, &v) > 0) {
		const struct vtrace_code *c = vtrace_blocks_get(b, v.id);

		if (!c)
			continue;
		printf("  %#llx %u:", (unsigned long long)v.pc, v.nr_insns);
		for (unsigned int at = 0; at < c->block.len; at++)
			printf(" %02x", c->block.code[at]);
		printf("\n");
	}
}

static void sleep_us(unsigned int us)
{
	const struct timespec t = { .tv_sec = us / 1000000,
				    .tv_nsec = (long)(us % 1000000) * 1000 };

	nanosleep(&t, NULL);
}

/* ---- the program ----------------------------------------------------------------------------- */

struct run {
	char **argv;
	pid_t pid;
	int memory;
	uint16_t max;
	struct vtrace_blocks *blocks;
	unsigned long traces, insns, late, bad, full_known, ends[VTRACE_NR_ENDS];
};

/* Traced from its first instruction on, without anything to read or to write to. */
static bool start(struct run *run)
{
	char path[64];
	int status;

	run->pid = fork();
	if (run->pid == 0) {
		int null = open("/dev/null", O_RDWR);

		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execvp(run->argv[0], run->argv);
		_exit(127);
	}
	if (run->pid < 0 || waitpid(run->pid, &status, 0) < 0 || !WIFSTOPPED(status))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)run->pid);
	run->memory = open(path, O_RDONLY | O_CLOEXEC);
	return run->memory >= 0;
}

static void end(struct run *run)
{
	kill(run->pid, SIGKILL);
	waitpid(run->pid, NULL, 0);
	close(run->memory);
}

/* What comes before ours is passed on. */
static bool wait_for_stop(pid_t pid)
{
	int status, sig;

	while (waitpid(pid, &status, 0) >= 0 && WIFSTOPPED(status)) {
		sig = WSTOPSIG(status);
		if (sig == SIGSTOP)
			return true;
		ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)(sig == SIGTRAP ? 0 : sig));
	}
	return false;
}

/* ---- traces ---------------------------------------------------------------------------------- */

/* From where it stands; false: it ended on the way. */
static bool trace(struct run *run, struct user_regs_struct *u)
{
	const struct vtrace_memory m = { read_memory, &run->memory };
	struct blame blame;
	enum vtrace_end why;
	unsigned int known = 0;
	uint64_t pc;

	begin(&state, u, run->max);
	begun = state;
	why = vtrace_run(run->blocks, &m, &state);
	pc = vtrace_pc(run->blocks, &state);
	if (why == VTRACE_UNKNOWN_IF || why == VTRACE_UNKNOWN_JUMP) {
		again = begun;
		blame = vtrace_blame(run->blocks, &m, &again, &state);
		vtrace_blame_count(&blame);
	}
	for (unsigned int i = 0; i < state.nr_insns; i++)
		if (!step(run->pid, u))
			return false;
	if (trap_was_late) {
		trap_was_late = false;
		run->late++;
		return true;
	}
	run->traces++;
	run->insns += state.nr_insns;
	run->ends[why]++;
	if (compare(&state, u, pc, &known)) {
		run->bad++;
		printf("in a trace of %u instructions (%s):\n", state.nr_insns,
		       vtrace_end_name(why));
		print_trace(run->blocks, &state);
	}
	run->full_known += known;
	return true;
}

/* As many traces as there is time for; false: it has ended. */
static bool stop_and_go(struct run *run, unsigned long traces)
{
	struct user_regs_struct u;

	while (run->traces < traces) {
		if (ptrace(PTRACE_CONT, run->pid, NULL, NULL) < 0)
			return false;
		sleep_us(100 + (unsigned int)random() % 400);
		/* The one thread that is traced: others would stay stopped. */
		if (tgkill(run->pid, run->pid, SIGSTOP) < 0 || !wait_for_stop(run->pid) ||
		    ptrace(PTRACE_GETREGS, run->pid, NULL, &u) < 0)
			return false;
		/* In a system call the registers are not those of the next instruction; and strings
		 * are taken to go upwards. */
		if ((int64_t)u.orig_rax >= 0 || u.eflags & 0x400)
			continue;
		if (!trace(run, &u))
			return false;
	}
	return true;
}

static void report(const struct run *run)
{
	double n = run->traces ? (double)run->traces : 1;

	printf("traces %lu instructions %lu known %.2f differ %lu full %.1f\n", run->traces,
	       run->insns, (double)run->full_known / n, run->bad,
	       100.0 * (double)run->ends[VTRACE_FULL] / n);
	for (int i = 0; i < VTRACE_NR_ENDS; i++)
		if (run->ends[i])
			printf("%5.1f %% %s\n", 100.0 * (double)run->ends[i] / n,
			       vtrace_end_name((enum vtrace_end)i));
	if (run->late)
		printf("%lu more not compared: the host's cpuid swallows a trap\n", run->late);
	vtrace_blame_print(run->traces ? run->traces : 1);
}

int main(int argc, char **argv)
{
	struct run run = { .argv = argv + 4 };
	unsigned long traces, before;

	if (argc < 5 || vtrace_blocks_new(VTRACE_X86_64, &run.blocks) < 0) {
		fprintf(stderr, "usage: %s WINDOWS INSTRUCTIONS SEED PROGRAM…\n", argv[0]);
		return 2;
	}
	traces = strtoul(argv[1], NULL, 0);
	run.max = (uint16_t)strtoul(argv[2], NULL, 0);
	srandom((unsigned int)strtoul(argv[3], NULL, 0));
	/* Again and again, if it is a short one. */
	do {
		before = run.traces;
		if (!start(&run)) {
			fprintf(stderr, "cannot run '%s'\n", argv[4]);
			return 1;
		}
		stop_and_go(&run, traces);
		end(&run);
	} while (run.traces < traces && run.traces > before);
	report(&run);
	vtrace_blocks_free(run.blocks);
	return run.bad || run.traces < traces;
}
