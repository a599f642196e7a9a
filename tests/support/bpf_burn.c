/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_burn SECONDS [AGAIN]: a BPF program that burns time in its own code, loaded, run for that
 * long, and unloaded; with AGAIN, loaded anew so many times in between. Prints its tag and how long
 * it ran. Made by hand, so that no compiler for BPF is needed.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 20000, REPEAT = 100 };

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

#define INSN(op, dst, src, o, i)                                                                   \
	{                                                                                          \
		.code = (op), .dst_reg = (dst), .src_reg = (src), .off = (o), .imm = (i)           \
	}

/*
 * r6 = turns; r7 = a kernel function's answer; do r7 = r7 * 3 + 1 while (--r6); a map's address and
 * a call stand for all that depends on where the kernel lies.
 */
static int load(int map)
{
	const struct bpf_insn code[] = {
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ktime_get_ns),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 7, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 6, 0, 0, TURNS),
		INSN(BPF_ALU64 | BPF_MUL | BPF_K, 7, 0, 0, 3),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 7, 0, 0, 1),
		INSN(BPF_ALU64 | BPF_SUB | BPF_K, 6, 0, 0, 1),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 6, 0, -4, 0),
		INSN(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_VALUE, 0, map),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_STX | BPF_MEM | BPF_DW, 1, 7, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	static char log[1 << 16];
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = sizeof(code) / sizeof(code[0]);
	attr.license = (uintptr_t) "GPL";
	attr.log_buf = (uintptr_t)log;
	attr.log_size = sizeof(log);
	attr.log_level = 4;
	memcpy(attr.prog_name, "dcpi_burn", sizeof("dcpi_burn"));
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0)
		fprintf(stderr, "cannot load: %s\n%s\n", strerror(errno), log);
	return fd;
}

static int make_map(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = 4;
	attr.value_size = 8;
	attr.max_entries = 1;
	return bpf(BPF_MAP_CREATE, &attr);
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int print_tag(int fd)
{
	struct bpf_prog_info info;
	union bpf_attr attr;

	memset(&info, 0, sizeof(info));
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)&info;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) < 0)
		return -1;
	printf("tag ");
	for (size_t i = 0; i < sizeof(info.tag); i++)
		printf("%02x", info.tag[i]);
	printf("\n");
	return 0;
}

/* Seconds of a CPU that it took (next to nothing but the program costs any), or negative. */
static double run(int fd, double seconds)
{
	double end = now(CLOCK_MONOTONIC) + seconds, before = now(CLOCK_THREAD_CPUTIME_ID);

	while (now(CLOCK_MONOTONIC) < end) {
		static uint8_t packet[64];
		union bpf_attr attr;

		memset(&attr, 0, sizeof(attr));
		attr.test.prog_fd = (uint32_t)fd;
		attr.test.data_in = (uintptr_t)packet;
		attr.test.data_size_in = sizeof(packet);
		attr.test.repeat = REPEAT;
		if (bpf(BPF_PROG_TEST_RUN, &attr) < 0)
			return -1;
	}
	return now(CLOCK_THREAD_CPUTIME_ID) - before;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1, inside = 0;
	int times = 1 + (argc > 2 ? atoi(argv[2]) : 0), map = make_map();

	for (int i = 0; map >= 0 && i < times; i++) {
		int fd = load(map);
		double part = fd < 0 ? -1 : run(fd, seconds / times);

		if (part < 0 || (i == 0 && print_tag(fd) < 0))
			return 1;
		inside += part;
		close(fd);
	}
	printf("seconds %.3f\n", inside);
	return map < 0;
}
