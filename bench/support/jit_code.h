/* SPDX-License-Identifier: BSD-2-Clause */
/* What a JIT of the benches makes and runs: many small routines, called by chance. */
#ifndef DCPI_BENCH_JIT_CODE_H
#define DCPI_BENCH_JIT_CODE_H

#include <stddef.h>

enum { JIT_CODE_MAX = 100000, JIT_CODE_APART = 64 };

struct jit_code {
	unsigned char *arena; /* JIT_CODE_MAX * JIT_CODE_APART bytes, the routines so far apart */
	size_t nr;	      /* routines, from its start on */
	unsigned int seed;
};

extern const size_t jit_code_len; /* of a routine */

/* A routine of one argument, which counts down from that, to where @at is. */
void jit_code_put(unsigned char *at);
/* 0, or -1 with errno. */
int jit_code_begin(struct jit_code *j);
/* One more, up to JIT_CODE_MAX. Returns where it is. */
unsigned char *jit_code_make(struct jit_code *j);
/* Run one of them. */
void jit_code_call(struct jit_code *j, unsigned long count);

#endif
