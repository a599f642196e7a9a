/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BPF on this machine: does the kernel take a program, and what does a run of the source's programs
 * take, by the kernel's own account (BPF_ENABLE_STATS), which it keeps of an empty one too.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "check_internal.h"
#include "perf.h"

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
