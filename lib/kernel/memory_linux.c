/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's memory is read by a BPF program of ten instructions that runs when it is told to. It
 * stands here as it is loaded: so it needs neither compiler nor library, and no symbol of a kernel.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"

enum { TRACE = 64 << 10, PHDRS_MAX = 1024 };

struct kernel_memory {
	int map, prog;	      /* -1: not by BPF */
	const uint8_t *trace; /* the map's one element */
	int kcore;
	Elf64_Phdr *segments; /* segments of kcore */
	size_t nr_segments;
};

static int bpf(int cmd, union bpf_attr *attr)
{
	long r = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return r < 0 ? -errno : (int)r;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* The request and the state of its processing. */
struct request {
	uint64_t addr;
	uint64_t len;	/* in: at most WINDOW */
	int64_t result; /* out: 0 or -errno */
};

#define INSN(op, dst, src, o, i)                                                                   \
	{                                                                                          \
		.code = (op), .dst_reg = (dst), .src_reg = (src), .off = (o), .imm = (i)           \
	}

static int load_program(int map)
{
	static const char license[] = "Dual BSD/GPL";
	const struct bpf_insn code[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, 2, 6, offsetof(struct request, len), 0),
		INSN(BPF_JMP | BPF_JGT | BPF_K, 2, 0, 5, TRACE),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, 3, 6, offsetof(struct request, addr), 0),
		INSN(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_VALUE, 0, map),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_probe_read_kernel),
		INSN(BPF_STX | BPF_MEM | BPF_DW, 6, 0, offsetof(struct request, result), 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SYSCALL;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = sizeof(code) / sizeof(code[0]);
	attr.license = (uintptr_t)license;
	attr.prog_flags = BPF_F_SLEEPABLE;
	memcpy(attr.prog_name, "dcpi_read", sizeof("dcpi_read"));
	return bpf(BPF_PROG_LOAD, &attr);
}

static int make_map(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = TRACE;
	attr.max_entries = 1;
	attr.map_flags = BPF_F_MMAPABLE;
	memcpy(attr.map_name, "dcpi_read", sizeof("dcpi_read"));
	return bpf(BPF_MAP_CREATE, &attr);
}

static int open_program(struct kernel_memory *k)
{
	void *p;

	k->map = make_map();
	if (k->map < 0)
		return k->map;
	p = mmap(NULL, TRACE, PROT_READ, MAP_SHARED, k->map, 0);
	if (p == MAP_FAILED)
		return -errno;
	k->trace = p;
	k->prog = load_program(k->map);
	return k->prog < 0 ? k->prog : 0;
}

static int run_program(const struct kernel_memory *k, uint64_t addr, uint8_t *to, size_t len)
{
	struct request request = { .addr = addr, .len = len, .result = -EFAULT };
	union bpf_attr attr;
	int r;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)k->prog;
	attr.test.ctx_in = (uintptr_t)&request;
	attr.test.ctx_size_in = sizeof(request);
	r = bpf(BPF_PROG_TEST_RUN, &attr);
	if (r < 0)
		return r;
	if (request.result == 0)
		memcpy(to, k->trace, len);
	return request.result == 0 ? 0 : -EFAULT;
}

/* ---- /proc/kcore ----------------------------------------------------------------------------- */

static int open_kcore(struct kernel_memory *k)
{
	Elf64_Ehdr h;
	int r;

	k->kcore = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
	if (k->kcore < 0)
		return -errno;
	r = base_read_at(k->kcore, 0, &h, sizeof(h));
	if (r < 0)
		return r;
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_phentsize != sizeof(Elf64_Phdr) ||
	    h.e_phnum > PHDRS_MAX)
		return -DCPI_EFORMAT;
	k->segments = calloc(h.e_phnum + 1u, sizeof(*k->segments));
	if (!k->segments)
		return -ENOMEM;
	k->nr_segments = h.e_phnum;
	return base_read_at(k->kcore, h.e_phoff, k->segments, h.e_phnum * sizeof(*k->segments));
}

static int read_kcore(const struct kernel_memory *k, uint64_t addr, void *to, size_t len)
{
	for (size_t i = 0; i < k->nr_segments; i++) {
		const Elf64_Phdr *s = &k->segments[i];

		if (s->p_type == PT_LOAD && addr >= s->p_vaddr && addr - s->p_vaddr < s->p_memsz &&
		    len <= s->p_memsz - (addr - s->p_vaddr))
			return base_read_at(k->kcore, s->p_offset + (addr - s->p_vaddr), to, len);
	}
	return -EFAULT;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

int kernel_memory_open(struct kernel_memory **out, struct base_err *err)
{
	struct kernel_memory *k = malloc(sizeof(*k));
	int r, by_bpf;

	*out = NULL;
	if (!k)
		return base_fail_errno(err, -ENOMEM, "cannot read the kernel's memory");
	*k = (struct kernel_memory){ .map = -1, .prog = -1, .kcore = -1 };
	r = by_bpf = open_program(k);
	if (r < 0)
		r = open_kcore(k);
	if (r < 0) {
		kernel_memory_close(k);
		return base_fail_errno(err, by_bpf, "cannot read the kernel's memory");
	}
	*out = k;
	return 0;
}

void kernel_memory_close(struct kernel_memory *k)
{
	if (!k)
		return;
	if (k->trace)
		munmap((void *)(uintptr_t)k->trace, TRACE);
	close_fd(k->map);
	close_fd(k->prog);
	close_fd(k->kcore);
	free(k->segments);
	free(k);
}

int kernel_memory_read(struct kernel_memory *k, uint64_t addr, void *to, size_t len)
{
	uint8_t *at = to;
	int r = 0;

	while (len && r == 0) {
		size_t part = len < TRACE ? len : TRACE;

		r = k->prog >= 0 ? run_program(k, addr, at, part) : read_kcore(k, addr, at, part);
		addr += part;
		at += part;
		len -= part;
	}
	return r;
}
