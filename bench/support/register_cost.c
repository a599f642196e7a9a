/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * register_cost WHAT FILE: what it costs to tell of one routine (256 bytes of code, a name of 40
 * bytes, 10 lines of one file), mean over a million. The routines stand at 16,384 addresses, each
 * of which is taken again and again, so that from the second time on each one ends another. Prints
 * "STEADY FIRST" in ns, FIRST being the mean over the first time around.
 *   alone     libdbgdyn, no daemon
 *   daemon    libdbgdyn and a daemon that reads 2 MiB of the ring at a time. It is in this very
 *             thread, so that all it takes is in the figure.
 *   perfmap   a line in a perf map, flushed
 *   jitdump   a record of a jitdump, buffered: clock, header, name, bytes
 * Or: begin: microseconds of the first dbgdyn_begin of a process. syscalls: how many system calls
 * 1,000 registrations make, with a daemon (a traced child).
 */
#include "jitdump.h"
#include "wire.h"

#include <dbgdyn.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PLACES = 16384, CODE = 256, NAME = 40, LINES = 10, MILLION = 1000000, TRACED = 100000 };

static uint8_t *code;
static char (*names)[NAME + 1];
static struct dbgdyn_line lines[LINES];
static const struct dbgdyn_string source = { "/home/me/src/engine/fib.js", 26 };
static uint64_t context;
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

/* ---- a daemon ----------------------------------------------------------------------------------
 */

static int listener = -1, registry = -1;
static uint64_t nr_read, next_seq = 1, nr_missing;
/* As much as the real one reads at a time. */
#ifndef CHUNK
#define CHUNK (1 << 20)
#endif
static uint8_t drained[CHUNK] __attribute__((aligned(8)));

static void daemon_listen(void)
{
	struct mq_attr attr = { .mq_maxmsg = 10, .mq_msgsize = sizeof(struct wire_doorbell) };
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/" WIRE_DYN_NAME, getenv("DCPI_RUN"));
	unlink(a.sun_path);
	must(mq_open(getenv("DCPI_QUEUE"), O_RDONLY | O_CREAT, 0600, &attr) != (mqd_t)-1, "queue");
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	must(bind(listener, (void *)&a, sizeof(a)) == 0 && listen(listener, 8) == 0, a.sun_path);
}

static void daemon_attach(void)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct wire_doorbell b;
	struct iovec part = { &b, sizeof(b) };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	uint32_t attached = 1;
	int conn = accept(listener, NULL, NULL);

	must(recvmsg(conn, &msg, 0) == (ssize_t)sizeof(b) && CMSG_FIRSTHDR(&msg), "hand-over");
	memcpy(&registry, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(registry));
	must(pwrite(registry, &attached, 4, offsetof(struct wire_registry, attached)) == 4,
	     "attach");
	close(conn);
}

/* Read what the ring holds; that nothing is missing shows that all was paid for, and that no other
 * daemon took it. */
static void daemon_drain(void)
{
	struct wire_registry reg;
	const struct wire_head *h;

	must(pread(registry, &reg, sizeof(reg), 0) == sizeof(reg), "header");
	while (reg.tail < reg.head) {
		uint64_t pos = reg.tail % reg.ring_len, len = reg.head - reg.tail;
		size_t at;

		if (len > reg.ring_len - pos)
			len = reg.ring_len - pos;
		if (len > CHUNK)
			len = CHUNK;
		must(pread(registry, drained, len, (off_t)(reg.ring_off + pos)) == (ssize_t)len,
		     "ring");
		for (at = 0; (h = wire_next(drained, len, &at));) {
			if (h->type != WIRE_ROUTINE)
				continue;
			nr_missing +=
				((const struct wire_routine *)(const void *)h)->seq - next_seq;
			next_seq = ((const struct wire_routine *)(const void *)h)->seq + 1;
			nr_read++;
		}
		reg.tail += at; /* without the one that was cut */
	}
	must(pwrite(registry, &reg.tail, 8, offsetof(struct wire_registry, tail)) == 8, "tail");
}

/* ---- what is compared --------------------------------------------------------------------------
 */

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
	uint64_t handle;

	must(dbgdyn_register(context, &r, &handle) == DBGDYN_OK, "dbgdyn_register");
}

static void put_daemon(size_t i)
{
	put_alone(i);
	/* 3,800 of these records are 2 MiB. */
	if (i % 3800 == 3799)
		daemon_drain();
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

/* ---- measuring ---------------------------------------------------------------------------------
 */

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
	steady = cpu_ns();
	while (i < PLACES + MILLION)
		put(i++);
	printf("%.2f %.2f\n", (cpu_ns() - steady) / MILLION, (steady - start) / PLACES);
}

static void begin(void)
{
	must(dbgdyn_begin("bench", 5, NULL, &context) == DBGDYN_OK, "dbgdyn_begin");
}

/* The first page of everything that a call's result is printed with is not begin's. */
static void measure_begin(void)
{
	double start = cpu_ns(), end;

	start = cpu_ns();
	begin();
	end = cpu_ns();
	printf("%.2f\n", (end - start) / 1e3);
}

/* ---- system calls ------------------------------------------------------------------------------
 */

#define MARK SYS_getppid

static void run_traced(void)
{
	must(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0, "ptrace");
	begin();
	raise(SIGSTOP);
	syscall(MARK);
	for (size_t i = 0; i < TRACED; i++)
		put_alone(i);
	syscall(MARK);
	_exit(0);
}

/* The daemon reads whenever it is told, which takes a system call. */
static void count_syscalls(void)
{
	struct __ptrace_syscall_info info;
	int marks = 0, status, calls = 0;
	pid_t pid = fork();

	if (pid == 0)
		run_traced();
	must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "traced child");
	daemon_attach();
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
		daemon_drain();
	}
	must(marks == 2, "traced child");
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
	if (strcmp(what, "begin") == 0)
		return measure_begin(), 0;
	make_routines();
	out = fopen(argv[2], "we");
	must(out != NULL, argv[2]);
	if (strcmp(what, "daemon") == 0 || strcmp(what, "syscalls") == 0)
		daemon_listen();
	if (strcmp(what, "syscalls") == 0) {
		count_syscalls();
	} else if (strcmp(what, "alone") == 0) {
		begin();
		measure(put_alone);
	} else if (strcmp(what, "daemon") == 0) {
		begin();
		daemon_attach();
		measure(put_daemon);
		daemon_drain();
	} else {
		measure(strcmp(what, "jitdump") == 0 ? put_jitdump : put_perfmap);
	}
	fclose(out);
	if (listener >= 0)
		mq_unlink(getenv("DCPI_QUEUE"));
	if (nr_missing) {
		fputs("register_cost: records were read by another (is there a dcpid on this "
		      "machine?)\n",
		      stderr);
		return 1;
	}
	return 0;
}
