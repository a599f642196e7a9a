/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's own account of the run time of BPF programs.
 *
 *	PREFIX SECONDS [PID…]  of all whose names begin so: "RUNS NS" (nanoseconds a run, the
 *	                       cost of the account included: subtract an empty program's);
 *	                       with PIDs a line for each, of the programs that it holds
 *	-empty HZ SECONDS      of an empty program on cpu-clock at HZ on all CPUs
 *	-empty-tick SECONDS    of an empty one on the end of timers, as "-event tick" has
 *	-maps                  the memory of all BPF maps, bytes
 */
#include <dirent.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

struct total {
	uint64_t runs, ns;
};

/* Programs that are counted together: all, or those of one process. */
struct programs {
	bool all;
	uint32_t ids[256];
	size_t nr;
	struct total before, after;
};

static bool is_one(const struct programs *p, uint32_t id)
{
	for (size_t i = 0; i < p->nr; i++)
		if (p->ids[i] == id)
			return true;
	return p->all;
}

static void add_id(const char *dir, const char *name, struct programs *p)
{
	char path[384], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	while (f && p->nr < sizeof(p->ids) / sizeof(p->ids[0]) && fgets(line, sizeof(line), f))
		if (sscanf(line, "prog_id: %u", &p->ids[p->nr]) == 1)
			p->nr++;
	if (f)
		fclose(f);
}

static void programs_of(const char *pid, struct programs *p)
{
	char dir[64];
	DIR *d;

	snprintf(dir, sizeof(dir), "/proc/%ld/fdinfo", strtol(pid, NULL, 10));
	d = opendir(dir);
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.')
			add_id(dir, e->d_name, p);
	if (d)
		closedir(d);
}

static int add_program(uint32_t id, const char *prefix, struct total *t)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr attr = { .prog_id = id };
	long fd = bpf(BPF_PROG_GET_FD_BY_ID, &attr);

	if (fd < 0)
		return -1;
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uint64_t)(uintptr_t)&info;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) == 0 &&
	    strncmp(info.name, prefix, strlen(prefix)) == 0) {
		t->runs += info.run_cnt;
		t->ns += info.run_time_ns;
	}
	close((int)fd);
	return 0;
}

static struct total sum(const char *prefix, const struct programs *p)
{
	struct total t = { 0 };
	union bpf_attr attr = { 0 };

	while (bpf(BPF_PROG_GET_NEXT_ID, &attr) == 0) {
		uint32_t id = attr.next_id;

		if (is_one(p, id))
			add_program(id, prefix, &t);
		memset(&attr, 0, sizeof(attr));
		attr.start_id = id;
	}
	return t;
}

static int load_empty(enum bpf_prog_type type)
{
	struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = { .prog_type = type,
				.insns = (uint64_t)(uintptr_t)code,
				.insn_cnt = 2,
				.license = (uint64_t)(uintptr_t) "BSD" };

	strcpy(attr.prog_name, "bench_empty");
	return (int)bpf(BPF_PROG_LOAD, &attr);
}

static int attach_to_timers(int prog)
{
	union bpf_attr attr = {
		.raw_tracepoint = { .name = (uint64_t)(uintptr_t) "hrtimer_expire_entry",
				    .prog_fd = (uint32_t)prog },
	};

	return (int)bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
}

static int attach_to_clock(int prog, unsigned long hz)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = 1000000000ul / hz };

	for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++) {
		long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd < 0 || ioctl((int)fd, PERF_EVENT_IOC_SET_BPF, prog) < 0)
			return -1;
	}
	return 0;
}

/* "memlock:" in what /proc tells of a descriptor. */
static uint64_t map_memory(int fd)
{
	unsigned long long bytes = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	if (f)
		fclose(f);
	return bytes;
}

static uint64_t all_maps(void)
{
	union bpf_attr attr = { 0 };
	uint64_t sum = 0;

	while (bpf(BPF_MAP_GET_NEXT_ID, &attr) == 0) {
		uint32_t id = attr.next_id;
		long fd;

		memset(&attr, 0, sizeof(attr));
		attr.map_id = id;
		fd = bpf(BPF_MAP_GET_FD_BY_ID, &attr);
		if (fd >= 0) {
			sum += map_memory((int)fd);
			close((int)fd);
		}
		memset(&attr, 0, sizeof(attr));
		attr.start_id = id;
	}
	return sum;
}

static void sleep_for(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds };

	t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
	nanosleep(&t, NULL);
}

static int start_empty(bool tick, const char *hz)
{
	int prog = load_empty(tick ? BPF_PROG_TYPE_RAW_TRACEPOINT : BPF_PROG_TYPE_PERF_EVENT);

	if (prog < 0)
		return prog;
	return tick ? attach_to_timers(prog) : attach_to_clock(prog, strtoul(hz, NULL, 10));
}

/* Measures @nr of them over some seconds. 0, or 1 where one has no program that ran. */
static int measure(const char *prefix, double seconds, struct programs *p, int nr)
{
	for (int i = 0; i < nr; i++)
		p[i].before = sum(prefix, &p[i]);
	sleep_for(seconds);
	for (int i = 0; i < nr; i++)
		p[i].after = sum(prefix, &p[i]);
	for (int i = 0; i < nr; i++) {
		uint64_t runs = p[i].after.runs - p[i].before.runs,
			 ns = p[i].after.ns - p[i].before.ns;

		if (!runs) {
			fprintf(stderr, "bpf_time: no program '%s…' ran\n", prefix);
			return 1;
		}
		printf("%llu %.1f\n", (unsigned long long)runs, (double)ns / (double)runs);
	}
	return 0;
}

int main(int argc, char **argv)
{
	bool clock = argc == 4 && strcmp(argv[1], "-empty") == 0;
	bool tick = argc == 3 && strcmp(argv[1], "-empty-tick") == 0, empty = clock || tick;
	union bpf_attr attr = { .enable_stats.type = BPF_STATS_RUN_TIME };
	struct programs programs[8] = { { .all = empty || argc == 3 } };
	int nr = programs[0].all ? 1 : argc - 3;

	if (argc == 2 && strcmp(argv[1], "-maps") == 0) {
		printf("%llu\n", (unsigned long long)all_maps());
		return 0;
	}
	if (argc < 3 || nr > 8) {
		fputs("usage: bpf_time PREFIX SECONDS [PID…] | -empty HZ SECONDS |\n"
		      "       bpf_time -empty-tick SECONDS | -maps\n",
		      stderr);
		return 2;
	}
	if (bpf(BPF_ENABLE_STATS, &attr) < 0) {
		perror("bpf_time: run time statistics");
		return 1;
	}
	if (empty && start_empty(tick, argv[2]) < 0) {
		perror("bpf_time: empty program");
		return 1;
	}
	for (int i = 0; !programs[0].all && i < nr; i++)
		programs_of(argv[3 + i], &programs[i]);
	return measure(empty ? "bench_empty" : argv[1], atof(argv[empty ? argc - 1 : 2]), programs,
		       nr);
}
