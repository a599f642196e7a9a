/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "jit_code.h"

/* Decrement the argument to 0, then return. */
#if defined(__x86_64__)
static const unsigned char countdown[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#elif defined(__aarch64__)
static const unsigned int countdown[] = { 0xf1000400, 0x54ffffe1, 0xd65f03c0 };
#else
#error "the benches' JIT speaks x86-64 and aarch64 only"
#endif

const size_t jit_code_len = sizeof(countdown);

void jit_code_put(unsigned char *at)
{
	memcpy(at, countdown, sizeof(countdown));
	__builtin___clear_cache((char *)at, (char *)at + sizeof(countdown));
}

int jit_code_begin(struct jit_code *j)
{
	void *arena = mmap(NULL, (size_t)JIT_CODE_MAX * JIT_CODE_APART,
			   PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*j = (struct jit_code){ .arena = arena, .seed = 1 };
	return arena == MAP_FAILED ? -1 : 0;
}

unsigned char *jit_code_make(struct jit_code *j)
{
	unsigned char *code = j->arena + j->nr++ * JIT_CODE_APART;

	jit_code_put(code);
	return code;
}

void jit_code_call(struct jit_code *j, unsigned long count)
{
	void *code = j->arena + (size_t)rand_r(&j->seed) % j->nr * JIT_CODE_APART;

	((void (*)(unsigned long))code)(count);
}
