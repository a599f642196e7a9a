/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests/machine/deaf.sh: deaf PROGRAM ARGUMENT… runs it while a timer's interrupt, every two
 * milliseconds, keeps its CPU from all other interrupts by a BPF program, "deaf", that computes.
 * Prints how often that was, and how long in all, in ns; then a line for each of the program's
 * instructions that were interrupted so: its number (of 128, by its address), and how often.
 */
#include <asm/ptrace.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS = 20000, EVERY_NS = 2000000, PLACES = 128 };

struct told {
	uint64_t times, ns;
	uint64_t at[PLACES];
};

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

#define INSN(op, dst, src, o, i)                                                                   \
	{                                                                                          \
		.code = (op), .dst_reg = (dst), .src_reg = (src), .off = (o), .imm = (i)           \
	}
#define TIMES_3(r) INSN(BPF_ALU64 | BPF_MUL | BPF_K, r, 0, 0, 3)

/*
 * r9 = the interrupted address; r8 = now; r6 = TURNS; do r7 *= 3, some times, while (--r6); the map
 * counts the time since r8, and, where r9 is one of a static program's, the instruction there.
 */
static int load(int map)
{
	const struct bpf_insn code[] = {
		INSN(BPF_LDX | BPF_MEM | BPF_DW, 9, 1, offsetof(struct user_pt_regs, pc), 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ktime_get_ns),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 8, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 7, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 6, 0, 0, TURNS),
		TIMES_3(7),
		TIMES_3(7),
		TIMES_3(7),
		TIMES_3(7),
		TIMES_3(7),
		TIMES_3(7),
		TIMES_3(7),
		TIMES_3(7),
		INSN(BPF_ALU64 | BPF_SUB | BPF_K, 6, 0, 0, 1),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 6, 0, -10, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ktime_get_ns),
		INSN(BPF_ALU64 | BPF_SUB | BPF_X, 0, 8, 0, 0),
		INSN(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_VALUE, 0, map),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 1, 0, 8, BPF_ADD),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 1),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 1, 2, 0, BPF_ADD),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 3, 9, 0, 0),
		INSN(BPF_ALU64 | BPF_RSH | BPF_K, 3, 0, 0, 32),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 3, 0, 5, 0),
		INSN(BPF_ALU64 | BPF_RSH | BPF_K, 9, 0, 0, 2),
		INSN(BPF_ALU64 | BPF_AND | BPF_K, 9, 0, 0, PLACES - 1),
		INSN(BPF_ALU64 | BPF_LSH | BPF_K, 9, 0, 0, 3),
		INSN(BPF_ALU64 | BPF_ADD | BPF_X, 1, 9, 0, 0),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 1, 2, offsetof(struct told, at), BPF_ADD),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_PERF_EVENT;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = sizeof(code) / sizeof(code[0]);
	attr.license = (uintptr_t) "GPL";
	strcpy(attr.prog_name, "deaf");
	return bpf(BPF_PROG_LOAD, &attr);
}

static int make_map(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = 4;
	attr.value_size = sizeof(struct told);
	attr.max_entries = 1;
	return bpf(BPF_MAP_CREATE, &attr);
}

static int read_map(int map, struct told *out)
{
	union bpf_attr attr;
	uint32_t key = 0;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)out;
	return bpf(BPF_MAP_LOOKUP_ELEM, &attr);
}

/* The timer of CPU 0, with the program; it runs. */
static int start(int program)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = EVERY_NS,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) < 0 ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return -1;
	return fd;
}

static int run(char **argv)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		execv(argv[0], argv);
		_exit(127);
	}
	return pid < 0 || waitpid(pid, &status, 0) < 0 ? -1 : status;
}

int main(int argc, char **argv)
{
	int map = make_map(), program = map < 0 ? -1 : load(map), timer, status;
	struct told told;

	timer = program < 0 ? -1 : start(program);
	if (argc < 2 || timer < 0) {
		perror("deaf");
		return 1;
	}
	status = run(argv + 1);
	ioctl(timer, PERF_EVENT_IOC_DISABLE, 0);
	if (status != 0 || read_map(map, &told) < 0) {
		perror("deaf");
		return 1;
	}
	printf("%llu %llu\n", (unsigned long long)told.times, (unsigned long long)told.ns);
	for (unsigned int i = 0; i < PLACES; i++)
		if (told.at[i])
			printf("%u %llu\n", i, (unsigned long long)told.at[i]);
	return 0;
}
