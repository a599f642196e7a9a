/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unwinder against programs' own shadow stacks (call_shapes.h): a program is stopped again and
 * again, wherever it is, its stack is walked by the tables of its files, and each frame is
 *compared. call_walk NR SYMBOLS PROGRAM [ARGUMENT…] until NR frames were compared; SYMBOLS is
 *PROGRAM before it was stripped. Prints counts, and each wrong path; fails if there was one in a
 *path called complete.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libelf.h>
#include <gelf.h>
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

#include "call_shapes.h"
#include "unwind_rows.h"
#include "unwind.h"

enum { NR_FRAMES = 2 * SHAPES_DEPTH, NR_MAPS = 256, MEMORY = 1 << 20, SHOWN = 5 };

struct mapping {
	uint64_t start, end, off;
	const struct unwind_table *table;
	char path[256];
};

struct symbol {
	uint64_t addr, len;
	bool hooked, hook;
	char *name;
};

struct frame {
	uint64_t function; /* start of a hooked function; 0: it is none */
	bool hook;
	uint64_t pc;
	bool exact;
	bool leaves; /* its caller may be in the shadow or not */
};

static struct mapping maps[NR_MAPS];
static size_t nr_maps;
static struct symbol *symbols;
static size_t nr_symbols;
static char **names;
static size_t nr_names;
static uint64_t bias, state_addr, state_vaddr;
static const char *program;
static pid_t pid;
/* A stack as it was when the program stopped. */
static uint8_t memory[MEMORY];
static uint64_t memory_start, memory_len;

static void die(const char *what)
{
	fprintf(stderr, "call_walk: %s: %s\n", what, strerror(errno));
	if (pid > 0)
		kill(pid, SIGKILL);
	exit(2);
}

static bool read_memory(uint64_t addr, void *to, size_t len)
{
	struct iovec mine = { to, len }, its = { (void *)(uintptr_t)addr, len };

	return process_vm_readv(pid, &mine, 1, &its, 1, 0) == (ssize_t)len;
}

static int read_word(void *ctx, uint64_t addr, uint64_t *to)
{
	(void)ctx;
	if (addr - memory_start + sizeof(*to) <= memory_len && addr >= memory_start) {
		memcpy(to, memory + (addr - memory_start), sizeof(*to));
		return 0;
	}
	return read_memory(addr, to, sizeof(*to)) ? 0 : -1;
}

/* ---- the program's files --------------------------------------------------------------------- */

static const struct unwind_table *table_of(const struct mapping *m)
{
	struct base_err err = { 0 };
	struct unwind_table *t = NULL;
	static uint8_t vdso[1 << 16];
	int fd, r = 0;

	for (size_t i = 0; i < nr_maps; i++)
		if (strcmp(maps[i].path, m->path) == 0)
			return maps[i].table;
	fd = *m->path == '/' ? open(m->path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0)
		r = image_rows_read(fd, m->path, &t, &err);
	else if (strcmp(m->path, "[vdso]") == 0 && m->end - m->start <= sizeof(vdso) &&
		 read_memory(m->start, vdso, m->end - m->start))
		r = image_rows_of_bytes(vdso, m->end - m->start, m->path, &t, &err);
	if (r < 0)
		die(err.text);
	close(fd);
	return t;
}

static void read_maps(void)
{
	char line[512], name[64];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "re");
	if (!f)
		die(name);
	while (fgets(line, sizeof(line), f) && nr_maps < NR_MAPS) {
		struct mapping *m = &maps[nr_maps];
		char prot[8];

		*m = (struct mapping){ 0 };
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %255s", &m->start,
			   &m->end, prot, &m->off, m->path) < 4 ||
		    prot[2] != 'x')
			continue;
		m->table = table_of(m);
		nr_maps++;
	}
	fclose(f);
}

static const struct mapping *map_of(uint64_t pc)
{
	for (size_t i = 0; i < nr_maps; i++)
		if (pc >= maps[i].start && pc < maps[i].end)
			return &maps[i];
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

static void read_names(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[4096];

	if (!f)
		die(path);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		names = realloc(names, (nr_names + 1) * sizeof(*names));
		names[nr_names++] = strdup(line);
	}
	fclose(f);
}

static bool is_name(const char *name)
{
	for (size_t i = 0; i < nr_names; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static bool is_unhooked(Elf *elf, const GElf_Sym *s)
{
	Elf_Scn *scn = elf_getscn(elf, s->st_shndx);
	const char *section = NULL;
	GElf_Shdr sh;
	size_t index;

	if (scn && elf_getshdrstrndx(elf, &index) >= 0 && gelf_getshdr(scn, &sh))
		section = elf_strptr(elf, index, sh.sh_name);
	return !section || strcmp(section, "unhooked") == 0;
}

static void add_symbol(Elf *elf, const GElf_Shdr *strings, const GElf_Sym *s)
{
	const char *name = elf_strptr(elf, strings->sh_link, s->st_name);

	if (name && strcmp(name, "shapes_state") == 0)
		state_vaddr = s->st_value;
	if (GELF_ST_TYPE(s->st_info) != STT_FUNC || !name || !s->st_size)
		return;
	symbols = realloc(symbols, (nr_symbols + 1) * sizeof(*symbols));
	symbols[nr_symbols++] = (struct symbol){
		.addr = s->st_value,
		.len = s->st_size,
		.hook = strstr(name, "__cyg_"),
		.hooked = is_name(name) && !is_unhooked(elf, s),
		.name = strdup(name),
	};
}

static void read_symbols(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf;
	Elf_Scn *scn = NULL;

	elf_version(EV_CURRENT);
	elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		die(path);
	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;
		GElf_Shdr sh;
		GElf_Sym s;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_SYMTAB)
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; data && gelf_getsym(data, i, &s); i++)
			add_symbol(elf, &sh, &s);
	}
	elf_end(elf);
	close(fd);
	qsort(symbols, nr_symbols, sizeof(*symbols), by_address);
}

/* The whole function that a part in another place (".cold") is of. */
static const struct symbol *whole(const struct symbol *s)
{
	const char *cold = strstr(s->name, ".cold");

	for (size_t i = 0; cold && i < nr_symbols; i++)
		if (strlen(symbols[i].name) == (size_t)(cold - s->name) &&
		    strncmp(symbols[i].name, s->name, (size_t)(cold - s->name)) == 0)
			return &symbols[i];
	return s;
}

static const struct symbol *symbol_of(uint64_t addr)
{
	for (size_t i = 0; i < nr_symbols; i++)
		if (addr - symbols[i].addr < symbols[i].len)
			return whole(&symbols[i]);
	return NULL;
}

/* ---- one stop -------------------------------------------------------------------------------- */

static bool start_state(struct unwind_state *s)
{
#if defined(__x86_64__)
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &r) < 0)
		return false;
	*s = (struct unwind_state){ .pc = r.rip, .exact = 1, .known = 0xffff };
	{
		const uint64_t by_number[] = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi,
					       r.rbp, r.rsp, r.r8,  r.r9,  r.r10, r.r11,
					       r.r12, r.r13, r.r14, r.r15 };

		memcpy(s->reg, by_number, sizeof(by_number));
	}
	return true;
#else
	(void)s;
	return false;
#endif
}

static void keep_stack(uint64_t sp)
{
	memory_start = sp & ~UINT64_C(4095);
	memory_len = 0;
	for (size_t len = MEMORY; len >= 4096 && !memory_len; len /= 2)
		if (read_memory(memory_start, memory, len))
			memory_len = len;
}

/* The unwinder of exceptions: the function that has called it to go on has called its exit's hook.
 */
static bool is_resume(const struct mapping *m, const struct symbol *s)
{
	return (m && strstr(m->path, "libgcc_s")) || (s && strcmp(s->name, "_Unwind_Resume") == 0);
}

static struct frame frame_of(const struct unwind_frame *u)
{
	const uint64_t at = u->exact ? u->pc : u->pc - 1;
	const struct mapping *m = map_of(at);
	const struct symbol *s = m && strcmp(m->path, program) == 0 ? symbol_of(at - bias) : NULL;

	return (struct frame){
		.pc = u->pc,
		.exact = u->exact,
		.leaves = (s && s->hook) || is_resume(m, s),
		.function = s && s->hooked && !s->hook ? s->addr + bias : 0,
		.hook = s && s->hook,
	};
}

static const struct unwind_rule *rule_at(void *ctx, uint64_t addr)
{
	static const struct unwind_rule none;
	const struct mapping *m = map_of(addr);

	(void)ctx;
	return m && m->table ? unwind_find(m->table, addr - m->start + m->off) : &none;
}

static enum unwind_step walk(struct frame *frames, size_t *nr)
{
	static const struct unwind_memory process = { .read = read_word, .rule = rule_at };
	static struct unwind_frame walked[NR_FRAMES];
	struct unwind_state s;
	enum unwind_step end;

	if (!start_state(&s))
		die("PTRACE_GETREGS");
	keep_stack(s.reg[UNWIND_SP]);
	*nr = unwind_walk(&process, &s, walked, NR_FRAMES, &end);
	for (size_t i = 0; i < *nr; i++)
		frames[i] = frame_of(&walked[i]);
	return end;
}

/* Has @caller called @function, which has jumped to its exit's hook and is no frame any more? */
static bool has_jumped(const struct frame *hook, const struct frame *caller, uint64_t function)
{
	uint8_t call[5];
	int32_t to;

	if (!hook->hook || !hook->exact || caller->exact ||
	    !read_memory(caller->pc - sizeof(call), call, sizeof(call)) || call[0] != 0xe8)
		return false;
	memcpy(&to, call + 1, sizeof(to));
	return caller->pc + (uint64_t)(int64_t)to == function;
}

/*
 * Are the frames those of the shadow? An interrupted function may not have called its hook yet, or
 * be about to return behind that of its exit; so may one whose hook was interrupted.
 */
static bool equal(const struct frame *f, size_t nr, const struct shapes_stack *s, uint64_t left,
		  bool optional)
{
	for (size_t i = 0; i < nr; i++) {
		optional = f[i].function ? optional || f[i].exact : f[i].leaves;
		if (left && i + 1 < nr && has_jumped(&f[i], &f[i + 1], s->function[left - 1]))
			left--;
		if (!f[i].function)
			continue;
		if (optional && equal(f + i + 1, nr - i - 1, s, left, false))
			return true;
		if (!left || s->function[left - 1] != f[i].function)
			return false;
		left--;
		optional = false;
	}
	return left == 0;
}

static void show(const char *what, const struct frame *f, size_t nr, const struct shapes_stack *s)
{
	printf("%s: shadow of %" PRIu64 ":", what, s->nr);
	for (uint64_t i = s->nr; i > 0; i--) {
		const struct symbol *y = symbol_of(s->function[i - 1] - bias);

		printf(" %s", y ? y->name : "?");
	}
	printf("\n  walked %zu:", nr);
	for (size_t i = 0; i < nr; i++) {
		const struct mapping *m = map_of(f[i].pc);
		const struct symbol *y = m && strcmp(m->path, program) == 0
						 ? symbol_of(f[i].pc - !f[i].exact - bias)
						 : NULL;

		printf(" %s%s+%" PRIx64, f[i].exact ? "!" : "",
		       y   ? y->name
		       : m ? m->path
			   : "?",
		       y   ? f[i].pc - bias - y->addr
		       : m ? f[i].pc - m->start + m->off
			   : f[i].pc);
	}
	printf("\n");
}

static struct {
	uint64_t frames, wrong, deepest, unsettled, paths;
	uint64_t by_step[UNWIND_STEP_ASTRAY + 1];
} total;

static void compare(void)
{
	static struct frame frames[NR_FRAMES];
	static struct shapes_stack shadow;
	struct shapes_state state;
	enum unwind_step step;
	size_t nr;

	if (!read_memory(state_addr, &state, sizeof(state)) || !state.stack)
		return;
	if (state.unsettled) {
		total.unsettled++;
		return;
	}
	if (!read_memory(state.stack, &shadow, sizeof(shadow)))
		die("the shadow stack");
	step = walk(frames, &nr);
	total.paths++;
	total.by_step[step]++;
	if (step != UNWIND_STEP_COMPLETE) {
		if (total.paths - total.by_step[UNWIND_STEP_COMPLETE] <= SHOWN)
			show("incomplete", frames, nr, &shadow);
		return;
	}
	total.frames += nr;
	if (nr > total.deepest)
		total.deepest = nr;
	if (equal(frames, nr, &shadow, shadow.nr, false))
		return;
	if (total.wrong++ < SHOWN)
		show("wrong", frames, nr, &shadow);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void start(char **argv)
{
	int in[2], out[2];
	char line[64] = "";
	ssize_t n;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		die("pipe");
	pid = fork();
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execv(argv[0], argv);
		_exit(127);
	}
	n = read(out[0], line, sizeof(line) - 1);
	if (n <= 0)
		die(argv[0]);
	state_addr = strtoull(line, NULL, 16);
	read_maps();
	bias = state_addr - state_vaddr;
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		die("PTRACE_SEIZE");
	if (write(in[1], "\n", 1) != 1)
		die("write");
}

/* False: the program has ended. */
static bool stop_and_compare(void)
{
	const struct timespec pause = { .tv_nsec = 20000 + rand() % 400000 };
	int status;

	nanosleep(&pause, NULL);
	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
		return false;
	for (;;) {
		if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
			return false;
		if (status >> 16 == PTRACE_EVENT_STOP)
			break;
		/* A signal is on its way: that is as good a place. */
		compare();
		ptrace(PTRACE_CONT, pid, NULL, WSTOPSIG(status));
	}
	compare();
	return ptrace(PTRACE_CONT, pid, NULL, NULL) == 0;
}

int main(int argc, char **argv)
{
	char path[4096];
	uint64_t wanted;

	if (argc < 5) {
		fprintf(stderr, "usage: call_walk NR NAMES SYMBOLS PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	wanted = strtoull(argv[1], NULL, 10);
	if (!realpath(argv[4], path))
		die(argv[4]);
	program = argv[4] = path;
	read_names(argv[2]);
	read_symbols(argv[3]);
	start(argv + 4);
	while (total.frames < wanted && stop_and_compare())
		;
	kill(pid, SIGKILL);
	printf("paths %" PRIu64 " complete %" PRIu64 " unreadable %" PRIu64 " no_rows %" PRIu64
	       " astray %" PRIu64 " unsettled %" PRIu64 "\nframes %" PRIu64 " deepest %" PRIu64
	       " wrong %" PRIu64 "\n",
	       total.paths, total.by_step[UNWIND_STEP_COMPLETE],
	       total.by_step[UNWIND_STEP_UNREADABLE], total.by_step[UNWIND_STEP_NO_ROWS],
	       total.by_step[UNWIND_STEP_ASTRAY], total.unsettled, total.frames, total.deepest,
	       total.wrong);
	return total.wrong || total.frames < wanted;
}
