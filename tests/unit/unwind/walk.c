/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program walks its own stack from many places, by the tables of the files in it, and each walk
 * has the frames that the compiler's unwinder finds there.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "routines.h"
#include "unwind_rows.h"
#include "unwind.h"

enum { MAX_MAPPINGS = 64, MAX_FRAMES = 512 };

/* ---- the code of this process ---------------------------------------------------------------- */

static struct mapping {
	uint64_t start, end, off;
	struct unwind_table *table;
} mappings[MAX_MAPPINGS];
static size_t nr_mappings;

static struct unwind_table *table_of(const char *path, const struct mapping *m)
{
	struct unwind_table *t = NULL;
	struct base_err err = { 0 };
	int fd;

	if (strcmp(path, "[vdso]") == 0) {
		assert_int_equal(image_rows_of_bytes((const void *)(uintptr_t)m->start,
						     m->end - m->start, path, &t, &err),
				 0);
		return t;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (image_rows_read(fd, path, &t, &err) < 0)
		fail_msg("%s", err.text);
	close(fd);
	return t;
}

static int find_mappings(void **state)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096], path[4096];

	(void)state;
	while (fgets(line, sizeof(line), maps)) {
		struct mapping m = { 0 };
		char perms[8];

		path[0] = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095s", &m.start,
			   &m.end, perms, &m.off, path) < 4 ||
		    !strchr(perms, 'x') || nr_mappings == MAX_MAPPINGS)
			continue;
		m.table = table_of(path, &m);
		if (m.table)
			mappings[nr_mappings++] = m;
	}
	fclose(maps);
	return 0;
}

static int free_mappings(void **state)
{
	(void)state;
	while (nr_mappings)
		unwind_free(mappings[--nr_mappings].table);
	return 0;
}

static const struct unwind_rule *rule_at(void *ctx, uint64_t addr)
{
	static const struct unwind_rule none = { .how = UNWIND_NONE };

	(void)ctx;
	for (size_t i = 0; i < nr_mappings; i++)
		if (addr >= mappings[i].start && addr < mappings[i].end)
			return unwind_find(mappings[i].table,
					   addr - mappings[i].start + mappings[i].off);
	return &none;
}

/* The stack has what sanitizers poison. */
__attribute__((no_sanitize("address", "undefined"))) static int read_stack(void *ctx, uint64_t addr,
									   uint64_t *value)
{
	(void)ctx;
	if (addr % 8 || addr < 4096)
		return -EFAULT;
	*value = *(const volatile uint64_t *)(uintptr_t)addr;
	return 0;
}

static const struct unwind_memory own = { .read = read_stack, .rule = rule_at };

/* ---- registers ------------------------------------------------------------------------------- */

static struct unwind_state state_of(const ucontext_t *u)
{
	struct unwind_state s = { .exact = 1 };
#if defined(__x86_64__)
	static const uint8_t place[UNWIND_NR_REGS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
		REG_R8,	 REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	};

	for (size_t i = 0; i < UNWIND_NR_REGS; i++)
		s.reg[i] = (uint64_t)u->uc_mcontext.gregs[place[i]];
	s.pc = (uint64_t)u->uc_mcontext.gregs[REG_RIP];
	s.known = UINT16_MAX;
#else
	s.reg[UNWIND_FP] = u->uc_mcontext.regs[29];
	s.reg[UNWIND_LINK] = u->uc_mcontext.regs[30];
	s.reg[UNWIND_SP] = u->uc_mcontext.sp;
	s.pc = u->uc_mcontext.pc;
	s.known = 1u << UNWIND_FP | 1u << UNWIND_LINK | 1u << UNWIND_SP;
#endif
	return s;
}

/* ---- the two unwinders ----------------------------------------------------------------------- */

struct frames {
	struct unwind_frame v[MAX_FRAMES];
	size_t nr;
};

/* libgcc's, by the ABI of C++: its header has the name of ours. */
struct _Unwind_Context;
enum { REASON_NONE = 0, REASON_END_OF_STACK = 5 };
extern int _Unwind_Backtrace(int (*)(struct _Unwind_Context *, void *), void *);
extern uintptr_t _Unwind_GetIPInfo(struct _Unwind_Context *, int *);

static int take(struct _Unwind_Context *c, void *ctx)
{
	struct frames *f = ctx;
	int exact = 0;
	uintptr_t pc = _Unwind_GetIPInfo(c, &exact);

	if (!pc || f->nr == MAX_FRAMES)
		return REASON_END_OF_STACK;
	f->v[f->nr++] = (struct unwind_frame){ .pc = pc, .exact = exact != 0 };
	return REASON_NONE;
}

static struct frames theirs, ours;
static size_t nr_walks, nr_frames, nr_complete, nr_wrong;
static enum unwind_step last_end;

static void report(size_t i)
{
	if (nr_wrong++ < 5)
		fprintf(stderr,
			"walk %zu, frame %zu of %zu (%zu): %#" PRIx64 ", not %#" PRIx64 "\n",
			nr_walks, i, ours.nr, theirs.nr, i < ours.nr ? ours.v[i].pc : 0,
			i < theirs.nr ? theirs.v[i].pc : 0);
}

/* Frames of @ours from @mine on are those of @theirs from @other on. */
static void compare(size_t mine, size_t other)
{
	nr_walks++;
	nr_complete += last_end == UNWIND_STEP_COMPLETE;
	for (; mine < ours.nr || other < theirs.nr; mine++, other++, nr_frames++) {
		if (mine < ours.nr && other < theirs.nr && ours.v[mine].pc == theirs.v[other].pc &&
		    ours.v[mine].exact == theirs.v[other].exact)
			continue;
		report(mine);
		return;
	}
}

/* From here. The first frame is this routine's, at another place of it. */
static void check_here(void)
{
	struct unwind_state s;
	ucontext_t u;

	theirs.nr = 0;
	_Unwind_Backtrace(take, &theirs);
	getcontext(&u);
	s = state_of(&u);
	ours.nr = unwind_walk(&own, &s, ours.v, MAX_FRAMES, &last_end);
	compare(1, 1);
}

static void begin(void)
{
	nr_walks = nr_frames = nr_complete = nr_wrong = 0;
}

static void expect_equal(size_t walks, size_t frames)
{
	assert_int_equal(nr_wrong, 0);
	assert_int_equal(nr_complete, nr_walks);
	assert_true(nr_walks >= walks);
	assert_true(nr_frames >= frames);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void recursion(void **state)
{
	(void)state;
	begin();
	for (unsigned int depth = 0; depth < 100; depth++)
		routines_plain(depth, check_here);
	expect_equal(100, 10000);
}

static void callbacks_of_libc(void **state)
{
	(void)state;
	begin();
	routines_sort(check_here);
	expect_equal(15, 100);
}

/* An emulator of aarch64 lets handlers return to code of its own. */
#if defined(__x86_64__)
/* Both unwinders start at the interrupted routine: one from its registers, the other below the
 * handler. */
static void handler(int sig, siginfo_t *info, void *context)
{
	struct unwind_state s = state_of(context);
	size_t first = 0;

	(void)sig;
	(void)info;
	check_here();
	theirs.nr = 0;
	_Unwind_Backtrace(take, &theirs);
	while (first < theirs.nr && !(theirs.v[first].exact && theirs.v[first].pc == s.pc))
		first++;
	ours.nr = unwind_walk(&own, &s, ours.v, MAX_FRAMES, &last_end);
	compare(0, first);
}

static void handle(int sig, int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

	assert_int_equal(sigaction(sig, &action, NULL), 0);
}

static void raise_user(void)
{
	raise(SIGUSR1);
}

static void signals(void **state)
{
	(void)state;
	begin();
	handle(SIGUSR1, 0);
	for (unsigned int depth = 0; depth < 20; depth++)
		routines_plain(depth, raise_user);
	expect_equal(40, 800);
}

static void use_stack(void *stack, size_t len)
{
	stack_t own_stack = { .ss_sp = stack, .ss_size = len, .ss_flags = stack ? 0 : SS_DISABLE };

	assert_int_equal(sigaltstack(&own_stack, NULL), 0);
}

/* Above and below the stack of the routine that was interrupted. */
static void signals_on_a_stack_of_their_own(void **state)
{
	static char below[1 << 18];
	char above[1 << 17];

	(void)state;
	begin();
	handle(SIGUSR1, SA_ONSTACK);
	use_stack(below, sizeof(below));
	routines_plain(20, raise_user);
	use_stack(above, sizeof(above));
	routines_plain(20, raise_user);
	use_stack(NULL, 0);
	expect_equal(4, 80);
}

/* A trap behind each instruction, until it is taken back; with rows of their own. */
void trap_each(void);
void trap_no_more(void);
#define CHANGE_FLAGS(name, how)                                                                    \
	__asm__(".text\n" name ": .cfi_startproc\n"                                                \
		"pushfq\n.cfi_adjust_cfa_offset 8\n" how ", (%rsp)\n"                              \
		"popfq\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n")
CHANGE_FLAGS("trap_each", "orq $0x100");
CHANGE_FLAGS("trap_no_more", "andq $~0x100");

/* Prologues, epilogues, leafs, stubs of the linker and what resolves names behind them. */
static void each_instruction(void **state)
{
	(void)state;
	begin();
	handle(SIGTRAP, 0);
	trap_each();
	routines_work(2);
	trap_no_more();
	signal(SIGTRAP, SIG_DFL);
	print_message("%zu walks, %zu frames\n", nr_walks, nr_frames);
	expect_equal(2000, 30000);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recursion),
		cmocka_unit_test(callbacks_of_libc),
#if defined(__x86_64__)
		cmocka_unit_test(signals),
		cmocka_unit_test(signals_on_a_stack_of_their_own),
		cmocka_unit_test(each_instruction),
#endif
	};

	return cmocka_run_group_tests_name("unwind/walk", tests, find_mappings, free_mappings);
}
