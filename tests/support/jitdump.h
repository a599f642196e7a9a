/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A writer of perf's jitdump, version 1, for test programs and benches. Layout:
 * tools/perf/Documentation/jitdump-specification.txt of Linux.
 */
#ifndef TESTS_JITDUMP_H
#define TESTS_JITDUMP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* JIT_CODE_LOAD; behind it the name with its 0, then the code. */
struct jitdump_load {
	uint32_t id, total_size;
	uint64_t timestamp; /* ns of CLOCK_MONOTONIC */
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

/* DIR/jit-PID.dump, with its header. NULL and errno where that cannot be. */
FILE *jitdump_open(const char *dir);

/* The record of one routine, buffered. Threads may write at once. */
void jitdump_write(FILE *f, const void *code, size_t len, const char *name, uint64_t index);

#endif
