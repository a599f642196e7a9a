/* SPDX-License-Identifier: BSD-2-Clause */
/* The cost of a sample on a busy CPU: of its interrupt, and of the programs of BPF. */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "check_internal.h"
#include "perf.h"

/* ---- the interrupt --------------------------------------------------------------------------- */

enum {
	SPIN_NS = 400000000,
	PERIOD_NS = 100000,
	NR_STEPS = 1001,
	NR_GAPS = 32768,
	NR_MIN = 500, /* interrupts that must stand out, or the machine is too uneasy to tell */
};

struct gaps {
	uint64_t *ns;
	size_t nr;
};

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* How long one reading takes, when nothing interrupts. */
static uint64_t median_step(void)
{
	uint64_t steps[NR_STEPS], last = base_now_ns();

	for (size_t i = 0; i < NR_STEPS; i++) {
		uint64_t now = base_now_ns();

		steps[i] = now - last;
		last = now;
	}
	qsort(steps, NR_STEPS, sizeof(steps[0]), compare);
	return steps[NR_STEPS / 2];
}

static void spin_gaps(uint64_t step, struct gaps *g)
{
	uint64_t last = base_now_ns(), end = last + SPIN_NS, now;
	/* Nothing between a slow reading of the clock and a fast interrupt. */
	uint64_t least = step * 8 > 400 ? step * 8 : 400;

	for (g->nr = 0; last < end; last = now) {
		now = base_now_ns();
		if (now - last > least && g->nr < NR_GAPS)
			g->ns[g->nr++] = now - last - step;
	}
	if (g->nr)
		qsort(g->ns, g->nr, sizeof(*g->ns), compare);
}

/* Spin on this CPU for that long. */
static void check_spin(uint64_t ns)
{
	uint64_t end = base_now_ns() + ns;

	while (base_now_ns() < end)
		;
}

/* This CPU's clock, or where that is not allowed this thread's. No ring: the bare interrupt. */
static int open_clock(bool *own)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = PERF_SAMPLE_IP,
		.sample_period = PERIOD_NS,
		.disabled = 1,
	};
	int fd = perf_event_try(&attr, -1, sched_getcpu());

	*own = fd == -EACCES || fd == -EPERM;
	if (!*own)
		return fd;
	attr.exclude_kernel = attr.exclude_hv = 1;
	return perf_event_try(&attr, 0, -1);
}

static int measure(struct gaps *g, struct check_cost *out)
{
	uint64_t step = median_step();
	size_t before;
	int fd;

	spin_gaps(step, g);
	before = g->nr;
	fd = open_clock(&out->own);
	if (fd < 0)
		return fd;
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	spin_gaps(step, g);
	close(fd);
	out->nr = g->nr;
	out->measured = g->nr > NR_MIN && g->nr > 3 * before;
	if (g->nr) {
		out->gap_ns = g->ns[g->nr / 2];
		out->gap_90_ns = g->ns[g->nr * 9 / 10];
	}
	return 0;
}

/* Stay on this CPU; where one was before is put into @old. 0 or -errno. */
static int check_pin(cpu_set_t *old)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	if (cpu < 0 || sched_getaffinity(0, sizeof(*old), old) < 0)
		return -errno;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) < 0 ? -errno : 0;
}

int check_cost_measure(struct check_cost *out)
{
	struct gaps g = { .ns = calloc(NR_GAPS, sizeof(*g.ns)) };
	cpu_set_t old;
	int r = g.ns ? check_pin(&old) : -ENOMEM;

	*out = (struct check_cost){ 0 };
	if (r >= 0) {
		r = measure(&g, out);
		sched_setaffinity(0, sizeof(old), &old);
	}
	free(g.ns);
	return r;
}

/* ---- BPF ------------------------------------------------------------------------------------- */

/*
 * BPF on this machine: does the kernel take a program, and what does a run of the source's programs
 * take, by the kernel's own account (BPF_ENABLE_STATS), which it keeps of an empty one too.
 */

enum { MEASURE_NS = 400000000, FREQUENCY = 4000 };

static int load_empty(void)
{
	static const struct bpf_insn program[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "dcpi_empty", "GPL", program,
			     sizeof(program) / sizeof(program[0]), NULL);
}

int check_bpf_load(void)
{
	int fd = load_empty();

	return fd < 0 ? fd : close(fd);
}

/* ---- run times ------------------------------------------------------------------------------- */

struct runs {
	uint64_t ns, nr;
};

static int read_runs(int fd, struct runs *add, const char *prefix)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return -errno;
	if (strncmp(info.name, prefix, strlen(prefix)) != 0)
		return 0;
	add->ns += info.run_time_ns;
	add->nr += info.run_cnt;
	return 0;
}

static uint32_t last_program(void)
{
	uint32_t id = 0, next;

	while (bpf_prog_get_next_id(id, &next) == 0)
		id = next;
	return id;
}

/*
 * Sum the programs that were loaded in between: those of the source, since no other program is
 * loaded at this moment.
 */
static int sum_runs(uint32_t after, uint32_t last, const char *name, struct runs *out)
{
	uint32_t id = after, next;

	while (bpf_prog_get_next_id(id, &next) == 0 && next <= last) {
		int fd = bpf_prog_get_fd_by_id(next);

		id = next;
		if (fd < 0)
			continue; /* gone since */
		read_runs(fd, out, name);
		close(fd);
	}
	return out->nr ? 0 : -ENOENT;
}

/* ---- an empty program's ---------------------------------------------------------------------- */

static int time_empty(struct check_program *out)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = PERF_SAMPLE_IP,
		.sample_period = 1000000000u / FREQUENCY,
		.disabled = 1,
	};
	struct runs runs = { 0 };
	int program = load_empty(), fd, r;

	if (program < 0)
		return program;
	fd = perf_event_try(&attr, -1, sched_getcpu());
	r = fd;
	if (fd >= 0 && (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) < 0 ||
			ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0))
		r = -errno;
	if (r >= 0) {
		check_spin(MEASURE_NS / 2);
		r = read_runs(program, &runs, "dcpi_empty");
	}
	if (runs.nr)
		out->empty = runs.ns / runs.nr;
	if (fd >= 0)
		close(fd);
	close(program);
	return r;
}

/* ---- the source's ---------------------------------------------------------------------------- */

static int ignore_load(void *ctx, const struct driver_load *l)
{
	(void)ctx;
	(void)l;
	return 0;
}

static int ignore_count(void *ctx, const struct driver_count *c)
{
	(void)ctx;
	(void)c;
	return 0;
}

static int run_source(struct driver *d, uint32_t before, const char *name,
		      struct check_program *out)
{
	uint32_t last = last_program();
	const struct driver_sink sink = { .load = ignore_load, .count = ignore_count };
	struct driver_stats stats;
	struct runs runs = { 0 };
	uint64_t spent;
	int r = driver_start(d, NULL);

	if (r < 0)
		return r;
	check_spin(MEASURE_NS);
	driver_stop(d);
	r = sum_runs(before, last, name, &runs);
	if (r >= 0)
		r = driver_drain(d, true, &sink, NULL);
	driver_stats_get(d, &stats);
	out->nr = stats.received[0];
	if (r >= 0 && !out->nr)
		r = -ENOENT;
	if (r < 0)
		return r;
	out->runs = runs.nr;
	spent = out->empty * runs.nr;
	spent = spent < runs.ns ? runs.ns - spent : 0;
	out->ns = spent / out->nr;
	return 0;
}

int check_bpf_measure(const char *event, struct check_program *out)
{
	const struct driver_config config = {
		.source = "bpf", .slots = &event, .nr_slots = 1, .frequency = FREQUENCY
	};
	struct driver *d = NULL;
	uint32_t before;
	cpu_set_t old;
	bool is_tick = !strcmp(event, "tick");
	int r, stats;

	*out = (struct check_program){ 0 };
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (stats < 0)
		return -errno;
	r = check_pin(&old);
	if (r >= 0) {
		r = time_empty(out);
		before = last_program();
		if (r >= 0)
			r = driver_open(&config, &d, NULL);
		if (r >= 0)
			r = run_source(d, before, is_tick ? "sample_tick" : "sample_event", out);
		driver_close(d);
		sched_setaffinity(0, sizeof(old), &old);
	}
	close(stats);
	return r;
}
