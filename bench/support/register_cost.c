/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * register_cost WHAT FILE: what it costs to tell of one routine (256 bytes of code, a name of 40
 * bytes, 10 lines of one file), mean over a million. The routines stand at 16,384 addresses, each
 * of which is taken again and again, so that from the second time on each one ends another. Prints
 * "STEADY FIRST" in ns, FIRST being the mean over the first time around.
 *
 *	alone     libdbgdyn, no daemon
 *	daemon    libdbgdyn and the dcpid that DCPI_RUN and DCPI_QUEUE name, which reads all of
 *	          them: this process waits for it where the ring is half full. The daemon's own
 *	          time is not in the figure, nor is the wait.
 *	perfmap   a line in a perf map, flushed
 *	jitdump   a record of a jitdump, buffered: clock, header, name, bytes
 *
 * Or:
 *
 *	begin     "US KIB": microseconds of the first dbgdyn_begin of a process, and what it and ten
 *	          routines add to the process's resident memory
 *	syscalls  how many system calls 1,000 registrations make, with a daemon (a traced child)
 */
#include "jitdump.h"
#include "wire.h"

#include <dbgdyn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PLACES = 16384, CODE = 256, NAME = 40, LINES = 10, MILLION = 1000000, TRACED = 100000 };

static uint8_t *code;
static char (*names)[NAME + 1];
static struct dbgdyn_line lines[LINES];
static const struct dbgdyn_string source = { "/home/me/src/engine/fib.js", 26 };
static dbgdyn_context context;
static FILE *out;

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static double clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Of this process, so that others on the machine are not in it; nor are waits for a disk. */
static double cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

/* Of this process, as the library has it mapped. */
static volatile struct wire_registry *registry;
/* The CPU time that this process spent waiting for the daemon. */
static double waited_ns;

static void find_registry(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, off;
	char line[512];

	must(maps != NULL, "/proc/self/maps");
	while (!registry && fgets(line, sizeof(line), maps))
		if (strstr(line, "/memfd:dbgdyn") &&
		    sscanf(line, "%lx-%*x %*s %lx", &start, &off) == 2 && off == 0)
			registry = (void *)start;
	fclose(maps);
	must(registry != NULL && registry->magic == WIRE_REGISTRY_MAGIC, "registry");
}

/* Until the daemon has read the records but for @left bytes. Where @calls is 0, without a system
 * call. */
static void wait_read(uint64_t left, int calls)
{
	double start = clock_ns(CLOCK_MONOTONIC);

	while (registry->head - registry->tail > left) {
		if (!calls)
			continue;
		usleep(1000);
		if (clock_ns(CLOCK_MONOTONIC) - start > 60e9) {
			fputs("register_cost: the daemon does not read\n", stderr);
			exit(1);
		}
	}
}

static void daemon_attach(void)
{
	double start = clock_ns(CLOCK_MONOTONIC);

	find_registry();
	while (!registry->attached) {
		usleep(1000);
		if (clock_ns(CLOCK_MONOTONIC) - start > 20e9) {
			fputs("register_cost: no daemon attaches\n", stderr);
			exit(1);
		}
	}
}

/* That no record found the ring full shows that all were paid for. */
static void daemon_done(void)
{
	wait_read(0, 1);
	if (!registry->nr_dropped && !registry->nr_unlisted)
		return;
	fputs("register_cost: records found no room\n", stderr);
	exit(1);
}

/* ---- what is compared ------------------------------------------------------------------------ */

static void put_alone(size_t i)
{
	struct dbgdyn_routine r = { .size = sizeof(r),
				    .name = { names[i % PLACES], NAME },
				    .code = code + i % PLACES * CODE,
				    .code_len = CODE,
				    .lines = lines,
				    .nr_lines = LINES,
				    .files = &source,
				    .nr_files = 1 };
	dbgdyn_handle handle;

	must(dbgdyn_register(context, &r, &handle) == DBGDYN_OK, "dbgdyn_register");
}

/* Looks every 256 records (140 KiB) whether the ring is half full: then the daemon has its turn. */
static void put_daemon(size_t i)
{
	double start;

	put_alone(i);
	if (i % 256 != 255 || registry->head - registry->tail <= registry->ring_len / 2)
		return;
	start = cpu_ns();
	wait_read(0, 1);
	waited_ns += cpu_ns() - start;
}

static void put_perfmap(size_t i)
{
	fprintf(out, "%lx %x %s\n", (unsigned long)(code + i % PLACES * CODE), CODE,
		names[i % PLACES]);
	fflush(out);
}

static void put_jitdump(size_t i)
{
	struct jitdump_load l = { .total_size = sizeof(l) + NAME + 1 + CODE,
				  .timestamp = (uint64_t)clock_ns(CLOCK_MONOTONIC),
				  .pid = 1,
				  .tid = 1,
				  .vma = (uintptr_t)(code + i % PLACES * CODE),
				  .code_addr = (uintptr_t)(code + i % PLACES * CODE),
				  .code_size = CODE,
				  .code_index = i };

	fwrite(&l, sizeof(l), 1, out);
	fwrite(names[i % PLACES], NAME + 1, 1, out);
	fwrite((void *)(uintptr_t)l.code_addr, CODE, 1, out);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void make_routines(void)
{
	code = mmap(NULL, (size_t)PLACES * CODE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	names = malloc(PLACES * sizeof(*names));
	must(code != MAP_FAILED && names, "memory");
	for (size_t i = 0; i < PLACES; i++) {
		memset(code + i * CODE, (int)i, CODE);
		snprintf(names[i], sizeof(names[i]), "Engine.compile.routine(int, float)/%05zu", i);
	}
	for (uint32_t i = 0; i < LINES; i++)
		lines[i] = (struct dbgdyn_line){ .code_off = i * 25, .line = 100 + i };
}

static void measure(void (*put)(size_t))
{
	double start = cpu_ns(), steady;
	size_t i = 0;

	while (i < PLACES)
		put(i++);
	steady = cpu_ns() - waited_ns;
	while (i < PLACES + MILLION)
		put(i++);
	printf("%.2f %.2f\n", (cpu_ns() - waited_ns - steady) / MILLION, (steady - start) / PLACES);
}

static void begin(void)
{
	must(dbgdyn_begin("bench", 5, NULL, &context) == DBGDYN_OK, "dbgdyn_begin");
}

static long resident_kib(void)
{
	char text[128];
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	long pages;

	must(n > 0, "/proc/self/statm");
	close(fd);
	text[n] = '\0';
	must(sscanf(text, "%*d %ld", &pages) == 1, "/proc/self/statm");
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The first page of everything that a call's result is printed with is not begin's. */
static void measure_begin(void)
{
	double start = cpu_ns(), end;
	long before = resident_kib();

	before = resident_kib();
	start = cpu_ns();
	begin();
	end = cpu_ns();
	for (size_t i = 0; i < 10; i++)
		put_alone(i);
	printf("%.2f %ld\n", (end - start) / 1e3, resident_kib() - before);
}

/* ---- system calls ---------------------------------------------------------------------------- */

#define MARK SYS_getppid

static void run_traced(void)
{
	must(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0, "ptrace");
	begin();
	daemon_attach();
	raise(SIGSTOP);
	syscall(MARK);
	for (size_t i = 0; i < TRACED; i++) {
		put_alone(i);
		if (i % 256 == 255 && registry->head - registry->tail > registry->ring_len / 2)
			wait_read(0, 0);
	}
	syscall(MARK);
	daemon_done();
	_exit(0);
}

static void count_syscalls(void)
{
	struct __ptrace_syscall_info info;
	int marks = 0, status, calls = 0;
	pid_t pid = fork();

	if (pid == 0)
		run_traced();
	must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "traced child");
	while (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP)
		must(ptrace(PTRACE_CONT, pid, NULL, NULL) == 0 && waitpid(pid, &status, 0) == pid,
		     "traced child");
	must(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0,
	     "ptrace");
	while (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0 && waitpid(pid, &status, 0) == pid &&
	       !WIFEXITED(status)) {
		must(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0, "syscall");
		if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
			continue;
		if (info.entry.nr == MARK)
			marks++;
		else
			calls += marks == 1;
	}
	must(marks == 2 && WEXITSTATUS(status) == 0, "traced child");
	printf("%.3f\n", calls * 1000.0 / TRACED);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc != 3) {
		fputs("usage: register_cost alone|daemon|perfmap|jitdump|begin|syscalls FILE\n",
		      stderr);
		return 2;
	}
	make_routines();
	if (strcmp(what, "begin") == 0)
		return measure_begin(), 0;
	out = fopen(argv[2], "we");
	must(out != NULL, argv[2]);
	if (strcmp(what, "syscalls") == 0) {
		count_syscalls();
	} else if (strcmp(what, "alone") == 0) {
		begin();
		measure(put_alone);
	} else if (strcmp(what, "daemon") == 0) {
		begin();
		daemon_attach();
		measure(put_daemon);
		daemon_done();
	} else {
		measure(strcmp(what, "jitdump") == 0 ? put_jitdump : put_perfmap);
	}
	fclose(out);
	return 0;
}
