/* SPDX-License-Identifier: BSD-2-Clause */
#include "jitdump.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

struct header {
	uint32_t magic, version, total_size, elf_mach, pad, pid;
	uint64_t timestamp, flags;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

FILE *jitdump_open(const char *dir)
{
	struct header h = { .magic = 0x4a695444,
			    .version = 1,
			    .total_size = sizeof(h),
			    .elf_mach = MACHINE,
			    .pid = (uint32_t)getpid(),
			    .timestamp = now_ns() };
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/jit-%d.dump", dir, getpid());
	f = fopen(path, "we+");
	if (!f || fwrite(&h, sizeof(h), 1, f) != 1 || fflush(f))
		return NULL;
	/* Whoever records finds the file by this mapping. */
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0) == MAP_FAILED)
		return NULL;
	return f;
}

void jitdump_write(FILE *f, const void *code, size_t len, const char *name, uint64_t index)
{
	size_t name_size = strlen(name) + 1;
	struct jitdump_load l = { .total_size = (uint32_t)(sizeof(l) + name_size + len),
				  .pid = (uint32_t)getpid(),
				  .tid = (uint32_t)gettid(),
				  .vma = (uintptr_t)code,
				  .code_addr = (uintptr_t)code,
				  .code_size = len,
				  .code_index = index };

	/* Times may not fall from record to record. */
	flockfile(f);
	l.timestamp = now_ns();
	fwrite(&l, sizeof(l), 1, f);
	fwrite(name, name_size, 1, f);
	fwrite(code, len, 1, f);
	funlockfile(f);
}
