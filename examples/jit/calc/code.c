/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for code. All of it is reserved at once, so that routines reach one another and a program
 * makes one range. Pages are writable while a routine is copied there, and executable before and
 * after, never both: with one thread nothing runs in them meanwhile.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calc_internal.h"

#define ALIGNMENT 32

int calc_code_open(struct calc_code *code)
{
	void *p = mmap(NULL, CALC_MAX_CODE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	code->base = p;
	code->used = 0;
	return 0;
}

void calc_code_close(struct calc_code *code)
{
	if (code->base)
		munmap(code->base, CALC_MAX_CODE);
	code->base = NULL;
}

void *calc_code_place(struct calc_code *code, const void *bytes, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t first = code->used / page * page;
	size_t end = (code->used + len + page - 1) / page * page;
	uint8_t *at = code->base + code->used;

	if (CALC_MAX_CODE - code->used < len + ALIGNMENT)
		return NULL;
	if (mprotect(code->base + first, end - first, PROT_READ | PROT_WRITE) < 0)
		return NULL;
	memcpy(at, bytes, len);
	if (mprotect(code->base + first, end - first, PROT_READ | PROT_EXEC) < 0)
		return NULL;
	/* The instruction cache may hold what was there; a no-op on x86. */
	__builtin___clear_cache((char *)at, (char *)at + len);
	code->used = (code->used + len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	return at;
}
