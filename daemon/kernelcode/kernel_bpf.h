/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's own dump of the code it made of BPF programs. Needs CAP_SYS_ADMIN. */
#ifndef DCPI_KERNEL_BPF_H
#define DCPI_KERNEL_BPF_H

#include "base.h"
#include "wire.h"

/* bpf(2): what it returns, or -errno. */
typedef long kernel_bpf_call(void *ctx, int cmd, void *attr, size_t attr_len);

/* Where the functions of a program lie: one for all of them. */
struct kernel_bpf_layout {
	unsigned int refs;
	uint32_t nr;
	uint64_t addrs[];
};

/* A function of a loaded program, as it lies in the kernel. */
struct kernel_bpf_func {
	uint32_t prog; /* the kernel's number */
	uint32_t
		index; /* 0: the program itself; its functions have names but no tag of their own */
	bool sure;     /* the program it belongs to was asked for by its tag */
	char tag[17];  /* hex, of the program */
	uint64_t addr;
	struct kernel_bpf_layout *layout; /* counted reference */
	uint8_t *code;
	size_t len;
	struct wire_line *lines; /* ascending, may be NULL */
	uint32_t nr_lines;
	struct base_buf files; /* as a WIRE_ROUTINE has them */
	uint32_t nr_files;
};

struct kernel_bpf {
	kernel_bpf_call *call;
	void *ctx;
	uint32_t last_id;
	bool refused;		       /* the right is missing: said once, not asked again */
	struct kernel_bpf_func *fresh; /* read, not taken yet */
	size_t nr_fresh, cap_fresh;
	size_t fresh_bytes;
};

/* @call NULL: this machine's. */
static inline void kernel_bpf_init(struct kernel_bpf *b, kernel_bpf_call *call, void *ctx)
{
	*b = (struct kernel_bpf){ .call = call, .ctx = ctx };
}
void kernel_bpf_release(struct kernel_bpf *b);
/*
 * The function of @len bytes at @addr that the kernel announced as @name; programs that were loaded
 * since the last call are read. Its contents are the caller's then: kernel_bpf_func_release. False
 * where it is gone already, or cannot be read. @len 0: not known. Ask for a program before its
 * functions.
 */
bool kernel_bpf_take(struct kernel_bpf *b, const char *name, uint64_t addr, uint64_t len,
		     struct kernel_bpf_func *out);
/* Read all programs, which are those that kallsyms names now: their functions need no order. */
void kernel_bpf_read_all(struct kernel_bpf *b);
void kernel_bpf_func_release(struct kernel_bpf_func *f);

#endif
