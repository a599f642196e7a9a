/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace_cost path|reads|times HZ SECONDS PROGRAM ARG…: what traces of 64 instructions cost, over
 * the CPU time of PROGRAM, which is run again and again: one at each sample in user mode, after a
 * second in which code is translated. Prints
 *   "NS_TRACE NS_PLAIN WINDOWS FULL"
 * the run time of the trace program for 64 instructions, and of the one that counts alone (by the
 * kernel's account, whose own cost is part of both), traces of PROGRAM, and of these the ones that
 * reached their end; then, a line each, for which reasons they ended. Traces of other processes,
 * of which little is translated, are taken off at what an empty trace costs.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

#ifdef __x86_64__
#define ARCH VTRACE_X86_64
#else
#define ARCH VTRACE_AARCH64
#endif

struct run {
	struct driver *d;
	struct vtrace_translator *translator;
	int32_t pid; /* PROGRAM's; 0: none runs */
	char **command;
	bool empty; /* put nothing */
	uint64_t traces, others, full, insns, by_end[VTRACE_NR_ENDS];
};

struct cost {
	uint64_t runs, ns;
};

/* ---- the kernel's account -------------------------------------------------------------------- */

static uint32_t last_program(void)
{
	uint32_t id = 0, next;

	while (bpf_prog_get_next_id(id, &next) == 0)
		id = next;
	return id;
}

static int read_program(uint32_t id, struct bpf_prog_info *info)
{
	uint32_t len = sizeof(*info);
	int fd = bpf_prog_get_fd_by_id(id), r;

	if (fd < 0)
		return fd;
	memset(info, 0, sizeof(*info));
	r = bpf_obj_get_info_by_fd(fd, info, &len);
	close(fd);
	return r;
}

/* Ours, the first of its name that was loaded after @before; 0: none. */
static uint32_t find_program(uint32_t before)
{
	struct bpf_prog_info info;
	uint32_t id = before;

	while (bpf_prog_get_next_id(id, &id) == 0) {
		if (read_program(id, &info) == 0 && !strcmp(info.name, "sample_event"))
			return id;
	}
	return 0;
}

static struct cost cost_of(uint32_t id)
{
	struct bpf_prog_info info;
	struct cost c = { 0 };

	if (read_program(id, &info) == 0)
		c = (struct cost){ info.run_cnt, info.run_time_ns };
	return c;
}

/* ---- the program ----------------------------------------------------------------------------- */

static void keep_running(struct run *r)
{
	if (r->pid && waitpid(r->pid, NULL, WNOHANG) == 0)
		return;
	r->pid = fork();
	if (r->pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null, STDOUT_FILENO);
		execv(r->command[0], r->command);
		_exit(127);
	}
}

static void stop_running(struct run *r)
{
	if (r->pid > 0) {
		kill(r->pid, SIGKILL);
		waitpid(r->pid, NULL, 0);
	}
	r->pid = 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void put(struct run *r, const uint8_t *bytes, size_t len, uint64_t pc, int memory, int depth)
{
	struct vtrace_code code;
	uint8_t next[VTRACE_BLOCK_BYTES];
	ssize_t got;

	if (vtrace_translate(r->translator, bytes, len, pc, &code) < 0 ||
	    driver_block_put(r->d, &code) < 0)
		return;
	for (uint8_t i = 0; i < code.nr_successors && depth; i++) {
		got = pread(memory, next, sizeof(next), (off_t)code.successors[i]);
		if (got > 0)
			put(r, next, (size_t)got, code.successors[i], memory, depth - 1);
	}
}

static int on_missing(void *ctx, const struct insn_trace *w)
{
	struct run *r = ctx;
	char path[32];
	int memory;

	if ((int32_t)w->tgid != r->pid || r->empty)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", r->pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	put(r, w->code, w->code_len, w->end_pc, memory, 2);
	if (memory >= 0)
		close(memory);
	return 0;
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

static int on_trace(void *ctx, const struct insn_trace *w, const uint64_t *words)
{
	struct run *r = ctx;

	(void)words;
	if (!w->nr_insns) {
		r->others++;
		return 0;
	}
	r->traces++;
	r->full += w->end == VTRACE_FULL;
	r->insns += w->nr_insns;
	r->by_end[w->end]++;
	return 0;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int work(struct run *r, double seconds)
{
	const struct driver_sink sink = {
		.load = on_load, .count = on_count, .trace = on_trace, .ctx = r
	};
	uint64_t until = base_now_ns() + (uint64_t)(seconds * 1e9);
	struct base_err err = { 0 };

	while (base_now_ns() < until) {
		keep_running(r);
		usleep(5000);
		if (driver_traces_missing(r->d, on_missing, r) < 0 ||
		    driver_drain(r->d, false, &sink, &err) < 0) {
			base_err_print(&err, "window_cost", stderr);
			return -1;
		}
	}
	return driver_drain(r->d, true, &sink, &err);
}

/* Runs of our program in @seconds, behind a second that does not count. */
static int measure(struct run *r, const struct driver_config *config, double seconds,
		   struct cost *out)
{
	struct base_err err = { 0 };
	struct cost before;
	uint32_t last = last_program(), id;
	int e = driver_open(config, &r->d, &err);

	if (e >= 0)
		e = driver_start(r->d, &err);
	if (e < 0) {
		base_err_print(&err, "window_cost", stderr);
		return e;
	}
	id = find_program(last);
	e = work(r, 1);
	before = cost_of(id);
	r->traces = r->others = r->full = r->insns = 0;
	memset(r->by_end, 0, sizeof(r->by_end));
	if (e >= 0)
		e = work(r, seconds);
	*out = cost_of(id);
	out->runs -= before.runs;
	out->ns -= before.ns;
	stop_running(r);
	driver_close(r->d);
	return e;
}

static int log_of(const char *name)
{
	static const char *const names[] = { "path", "reads", "times" };

	for (int i = 0; i < 3; i++) {
		if (!strcmp(names[i], name))
			return i;
	}
	return -1;
}

/* Without traces, with empty ones, and with those that are meant. */
static int measure_all(struct run *r, struct driver_config *config, double seconds,
		       struct cost cost[3])
{
	int e = measure(r, config, seconds, &cost[0]);

	config->trace_every = 1;
	r->empty = true;
	if (e >= 0)
		e = measure(r, config, seconds, &cost[1]);
	r->empty = false;
	if (e >= 0)
		e = measure(r, config, seconds, &cost[2]);
	return e < 0 || !r->insns || !cost[0].runs || !cost[1].runs ? -1 : 0;
}

static double mean_ns(const struct cost *c)
{
	return (double)c->ns / (double)c->runs;
}

int main(int argc, char **argv)
{
	static const char *const event[] = { "cpu-clock:u" };
	struct driver_config config = { .source = "bpf", .slots = event, .nr_slots = 1 };
	struct run r = { .command = argv + 4 };
	struct cost cost[3];
	double insns, ns;
	int log = argc > 4 ? log_of(argv[1]) : -1;

	if (log < 0) {
		fputs("usage: window_cost path|reads|times HZ SECONDS PROGRAM ARG…\n", stderr);
		return 2;
	}
	config.trace_log = (uint8_t)log;
	config.frequency = strtoul(argv[2], NULL, 10);
	if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0 ||
	    vtrace_translator_open(ARCH, &r.translator) < 0) {
		perror("window_cost");
		return 1;
	}
	if (measure_all(&r, &config, atof(argv[3]), cost) < 0)
		return 1;
	insns = (double)r.insns / (double)r.traces;
	ns = ((double)cost[2].ns - (double)(cost[2].runs - r.traces) * mean_ns(&cost[1])) /
	     (double)r.traces;
	ns = mean_ns(&cost[1]) + (ns - mean_ns(&cost[1])) * 64 / insns;
	printf("%.1f %.1f %llu %llu\n", ns, mean_ns(&cost[0]), (unsigned long long)r.traces,
	       (unsigned long long)r.full);
	for (int i = 1; i < VTRACE_NR_ENDS; i++)
		printf("%s: %llu\n", vtrace_end_name(i), (unsigned long long)r.by_end[i]);
	vtrace_translator_close(r.translator);
	return 0;
}
