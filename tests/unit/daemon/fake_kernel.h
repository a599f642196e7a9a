/* SPDX-License-Identifier: BSD-2-Clause */
/* A kernel of our own: its /proc and /sys in a folder, its memory and bpf(2) in functions. */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include "kernelcode_internal.h"

#define FAKE_TEXT UINT64_C(0xffffffff81000000)

struct fake_kernel {
	char root[64];
	struct kernel *k;
	struct images *images;
	struct profdb *db; /* NULL: none */
	/* What the kernel has at memory_at. */
	const uint8_t *memory;
	size_t memory_len;
	uint64_t memory_at;
	unsigned int nr_reads;
};

/* A file of the folder. */
void fake_kernel_file(struct fake_kernel *f, const char *name, const void *data, size_t len);
void fake_kernel_text(struct fake_kernel *f, const char *name, const char *text);
void fake_kernel_note(struct fake_kernel *f, const char *name, uint8_t first_byte);
/* Zeroed @f gets its folder; then open. */
void fake_kernel_init(struct fake_kernel *f);
/* With a database in the folder, and the pseudo-image helper. */
void fake_kernel_database(struct fake_kernel *f);
void fake_kernel_open(struct fake_kernel *f, kernel_bpf_call *bpf);
void fake_kernel_close(struct fake_kernel *f);

/* A sample of then: its image's path, NULL: none; offset. */
const char *fake_kernel_sample(struct fake_kernel *f, uint64_t addr, uint64_t first_ns,
			       uint64_t time_ns, uint64_t *off, bool *idle);
void fake_kernel_load(struct fake_kernel *f, enum driver_load_kind kind, uint64_t addr,
		      uint64_t len, const char *name, bool gone, uint64_t time_ns);

#endif
