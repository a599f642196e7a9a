/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interruption CPU HZ ROUNDS FOLDER [jit|deep]: what the interrupt of a sample costs whoever is
 * interrupted, as the median gap that a thread on CPU sees (spin.h), with each of these sampling
 * all CPUs at HZ:
 *	bare	a clock event, whose samples nobody takes
 *	empty	the same with an empty program
 *	ours	our driver
 *	perf	"perf record -a"
 *	perf-g	"perf record -a -g"; both write into FOLDER
 *	dwarf	with "deep": "perf record -a --call-graph dwarf", likewise
 * All are there all the time, and one at a time is enabled, for 40 ms: what the host does to this
 * machine changes within a second by more than what is sought, so they are compared within less.
 * The thread does nothing else, or, with "jit", runs routines of dynamic code by chance, with
 * generation words: then what samples touch is in no cache, and addresses seldom come again. With
 * "deep" it stands below twenty calls.
 * Prints a line for each round, the medians in this order (nanoseconds); within a round the order
 * is drawn.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base.h"
#include "driver.h"
#include "jit_code.h"
#include "perf_internal.h"
#include "spin.h"

#define SLICE_S 0.04
/* Who reads what was sampled gets the CPU again; and no real-time thread may have all of it. */
#define REST_NS 5000000

enum { BARE, EMPTY, OURS, PERF, PERF_G, PERF_DWARF, NR_KINDS, CPUS_MAX = 256 };
enum { NR_ROUTINES = 2000, COUNT = 5000, NR_WORDS = 65536, DEPTH = 20 };

static struct jit_code routines;
static uint32_t *words;
static int words_fd;
static bool deep;
static int nr_kinds = NR_KINDS - 1;

/* How perf is to walk stacks; NULL: not at all. */
static const char *const walks[NR_KINDS] = { [PERF_G] = "fp", [PERF_DWARF] = "dwarf" };

struct kind {
	int events[CPUS_MAX];  /* BARE, EMPTY: by CPU, ended by -1 */
	struct driver *driver; /* OURS */
	pid_t perf;	       /* PERF and behind: the process, … */
	int orders, answers;   /* … told what to do, and what it says to that */
};

static int fail(const char *what)
{
	fprintf(stderr, "interruption: %s: %s\n", what, strerror(errno));
	return -1;
}

/* ---- events of our own ----------------------------------------------------------------------- */

static int load_empty(void)
{
	struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_PERF_EVENT,
				.insns = (uint64_t)(uintptr_t)code,
				.insn_cnt = 2,
				.license = (uint64_t)(uintptr_t) "BSD" };

	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int open_events(struct kind *k, uint64_t hz, int program)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_type = PERF_SAMPLE_IP,
					.sample_period = 1000000000u / hz,
					.disabled = 1 };
	int nr = (int)sysconf(_SC_NPROCESSORS_ONLN);

	nr = nr < CPUS_MAX ? nr : CPUS_MAX - 1;
	for (int cpu = 0; cpu < nr; cpu++) {
		k->events[cpu] = perf_event_try(&attr, -1, cpu);
		if (k->events[cpu] < 0)
			return fail("clock event");
		if (program >= 0 && ioctl(k->events[cpu], PERF_EVENT_IOC_SET_BPF, program) < 0)
			return fail("empty program");
	}
	k->events[nr] = -1;
	return 0;
}

static int open_empty(struct kind *k, uint64_t hz)
{
	int program = load_empty();

	return program < 0 ? fail("empty program") : open_events(k, hz, program);
}

/* ---- ours ------------------------------------------------------------------------------------ */

static bool stand_always(void *ctx)
{
	(void)ctx;
	return true;
}

/* As dcpid says it of a process that uses libdbgdyn. 0 or -errno. */
static int tell_client(struct driver *d)
{
	const uint64_t start = (uintptr_t)routines.arena;
	const struct driver_range range = { start, start + JIT_CODE_MAX * JIT_CODE_APART,
					    DRIVER_RANGE_WORDS };
	const struct driver_client client = { .ranges = &range,
					      .nr_ranges = 1,
					      .words = (uintptr_t)words,
					      .nr_words = NR_WORDS,
					      .words_ino = 1,
					      .words_fd = words_fd,
					      .stands = stand_always };

	return routines.arena ? driver_client_set(d, getpid(), &client) : 0;
}

static int open_ours(struct kind *k, uint64_t hz)
{
	const char *slot = "cpu-clock";
	const struct driver_config config = {
		.source = "bpf", .slots = &slot, .nr_slots = 1, .frequency = hz
	};
	struct base_err err = { 0 };
	int r;

	if (driver_open(&config, &k->driver, &err) < 0) {
		fprintf(stderr, "interruption: %s\n", err.text);
		return -1;
	}
	r = tell_client(k->driver);
	if (r < 0)
		fprintf(stderr, "interruption: client: %s\n", base_strerror(r));
	return r;
}

static int on_load(void *ctx, const struct driver_load *load)
{
	(void)ctx;
	(void)load;
	return 0;
}

static int on_count(void *ctx, const struct driver_count *count)
{
	(void)ctx;
	(void)count;
	return 0;
}

static int enable_ours(struct driver *d, bool on)
{
	const struct driver_sink sink = { .load = on_load, .count = on_count };
	struct base_err err = { 0 };
	int r = 0;

	if (on) {
		r = driver_start(d, &err);
	} else {
		driver_stop(d);
		r = driver_drain(d, true, &sink, &err);
	}
	if (r < 0)
		fprintf(stderr, "interruption: %s\n", err.text);
	return r;
}

/* ---- perf ------------------------------------------------------------------------------------ */

static void become_perf(const int orders[2], const int answers[2], const char *walk, uint64_t hz,
			const char *folder)
{
	char control[64], period[32], to[4096];
	const char *argv[] = { "perf",	    "record", "-q", "-a", "-e",
			       "cpu-clock", "-D",     "-1", "-c", period,
			       "--control", control,  "-o", to,	  walk ? "--call-graph" : NULL,
			       walk,	    NULL };
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	snprintf(control, sizeof(control), "fd:%d,%d", orders[0], answers[1]);
	snprintf(period, sizeof(period), "%llu", 1000000000ull / (unsigned long long)hz);
	snprintf(to, sizeof(to), "%s/perf-%s.data", folder, walk ? walk : "flat");
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	close(orders[1]);
	close(answers[0]);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execvp("perf", (char **)(uintptr_t)argv);
	_exit(127);
}

static int open_perf(struct kind *k, const char *walk, uint64_t hz, const char *folder)
{
	int orders[2], answers[2];

	if (pipe(orders) < 0 || pipe(answers) < 0)
		return fail("pipe");
	k->perf = fork();
	if (k->perf == 0)
		become_perf(orders, answers, walk, hz, folder);
	close(orders[0]);
	close(answers[1]);
	fcntl(orders[1], F_SETFD, FD_CLOEXEC);
	fcntl(answers[0], F_SETFD, FD_CLOEXEC);
	k->orders = orders[1];
	k->answers = answers[0];
	return k->perf < 0 ? fail("fork") : 0;
}

static int enable_perf(struct kind *k, bool on)
{
	const char *order = on ? "enable\n" : "disable\n";
	char answer[16];

	if (write(k->orders, order, strlen(order)) < 0 ||
	    read(k->answers, answer, sizeof(answer)) <= 0)
		return fail("perf record");
	return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int enable(struct kind *k, bool on)
{
	if (k->driver)
		return enable_ours(k->driver, on);
	if (k->perf)
		return enable_perf(k, on);
	for (int i = 0; k->events[i] >= 0; i++)
		if (ioctl(k->events[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0)
			return fail("clock event");
	return 0;
}

/* perf comes first: what others open is not to be its. */
static int open_all(struct kind *k, uint64_t hz, const char *folder)
{
	int r = 0;

	for (int i = PERF; r == 0 && i < nr_kinds; i++)
		r = open_perf(&k[i], walks[i], hz, folder);
	if (r == 0)
		r = open_events(&k[BARE], hz, -1);
	if (r == 0)
		r = open_empty(&k[EMPTY], hz);
	return r < 0 ? r : open_ours(&k[OURS], hz);
}

static void close_all(struct kind *k)
{
	for (int i = PERF; i < nr_kinds; i++) {
		if (k[i].perf <= 0)
			continue;
		kill(k[i].perf, SIGTERM);
		waitpid(k[i].perf, NULL, 0);
	}
	driver_close(k[OURS].driver);
}

static volatile int returned;

/* Each call is followed by something, or it would become a jump. */
__attribute__((noinline)) static void spin_below(struct spin *s, int left)
{
	if (left)
		spin_below(s, left - 1);
	else
		spin_for(s, SLICE_S);
	returned = left;
}

static int measure(struct spin *s, struct kind *k, uint32_t *median)
{
	const struct timespec rest = { .tv_nsec = REST_NS };
	int r = enable(k, true);

	if (r < 0)
		return r;
	spin_below(s, deep ? DEPTH : 0);
	*median = spin_median(s);
	r = enable(k, false);
	nanosleep(&rest, NULL);
	return r;
}

static int one_round(struct spin *s, struct kind *kinds, unsigned int *seed, uint32_t *medians)
{
	int order[NR_KINDS], r = 0;

	for (int i = 0; i < nr_kinds; i++) {
		int at = rand_r(seed) % (i + 1);

		order[i] = order[at];
		order[at] = i;
	}
	for (int i = 0; r >= 0 && i < nr_kinds; i++)
		r = measure(s, &kinds[order[i]], &medians[order[i]]);
	return r;
}

/* ---- the work -------------------------------------------------------------------------------- */

static int make_routines(void)
{
	if (jit_code_begin(&routines) < 0)
		return fail("memory for code");
	while (routines.nr < NR_ROUTINES)
		jit_code_make(&routines);
	words_fd = memfd_create("words", MFD_CLOEXEC);
	if (words_fd < 0 || ftruncate(words_fd, NR_WORDS * sizeof(*words)) < 0)
		return fail("memory for words");
	words = mmap(NULL, NR_WORDS * sizeof(*words), PROT_READ | PROT_WRITE, MAP_SHARED, words_fd,
		     0);
	if (words == MAP_FAILED)
		return fail("memory for words");
	memset(words, 1, NR_WORDS * sizeof(*words));
	return 0;
}

static void run_one(void)
{
	jit_code_call(&routines, COUNT);
}

int main(int argc, char **argv)
{
	static struct kind kinds[NR_KINDS];
	bool jit = argc == 6 && !strcmp(argv[5], "jit");
	uint32_t medians[NR_KINDS];
	unsigned int seed = 1;
	struct spin s;
	int r;

	deep = argc == 6 && !strcmp(argv[5], "deep");
	if (argc != 5 && !jit && !deep) {
		fputs("usage: interruption CPU HZ ROUNDS FOLDER [jit|deep]\n", stderr);
		return 2;
	}
	nr_kinds = deep ? NR_KINDS : PERF_DWARF;
	r = jit ? make_routines() : 0;
	if (r >= 0)
		r = open_all(kinds, strtoull(argv[2], NULL, 10), argv[4]);
	if (r >= 0 && spin_begin(&s, atoi(argv[1]), jit ? run_one : NULL) < 0)
		r = fail("real-time thread");
	/* The first one is not as warm as those that follow. */
	for (int i = -1; r >= 0 && i < atoi(argv[3]); i++) {
		r = one_round(&s, kinds, &seed, medians);
		for (int k = 0; r >= 0 && i >= 0 && k < nr_kinds; k++)
			printf("%u%c", medians[k], k < nr_kinds - 1 ? ' ' : '\n');
	}
	close_all(kinds);
	return r < 0;
}
