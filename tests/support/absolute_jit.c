/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * absolute_jit SECONDS STEP: three routines in turn, at an address of the kernel's choice. "alone"
 * has the same bytes in each run, "absolute" holds an address of its own memory, "stepped" adds the
 * byte STEP.
 */
#include <dbgdyn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { APART = 64, ADDRESS_AT = 2, STEP_AT = 3, TURNS = 100000 };

static const unsigned char alone[] = {
	0x48, 0xff, 0xcf, /* dec rdi */
	0x75, 0xfb,	  /* jnz back */
	0xc3,		  /* ret */
};
static const unsigned char absolute[] = {
	0x48, 0xb8, 0,	  0, 0, 0, 0, 0, 0, 0, /* movabs rax, address */
	0x48, 0xff, 0xcf,		       /* dec rdi */
	0x75, 0xfb,			       /* jnz back */
	0xc3,				       /* ret */
};
static const unsigned char stepped[] = {
	0x48, 0x83, 0xc0, 0, /* add rax, STEP */
	0x48, 0xff, 0xcf,    /* dec rdi */
	0x75, 0xf7,	     /* jnz back */
	0xc3,		     /* ret */
};

static const struct {
	const char *name;
	const unsigned char *code;
	size_t len;
} routines[] = { { "alone", alone, sizeof(alone) },
		 { "absolute", absolute, sizeof(absolute) },
		 { "stepped", stepped, sizeof(stepped) } };

enum { NR = sizeof(routines) / sizeof(routines[0]) };

int main(int argc, char **argv)
{
	clock_t end = clock() + (clock_t)((argc > 2 ? atof(argv[1]) : 0) * CLOCKS_PER_SEC);
	unsigned char *code =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*run[NR])(unsigned long turns);
	dbgdyn_context context;

	if (argc < 3 || code == MAP_FAILED)
		return 2;
	for (size_t i = 0; i < NR; i++) {
		memcpy(code + i * APART, routines[i].code, routines[i].len);
		run[i] = (void (*)(unsigned long))(void *)(code + i * APART);
	}
	memcpy(code + APART + ADDRESS_AT, &code, sizeof(code));
	code[2 * APART + STEP_AT] = (unsigned char)atoi(argv[2]);
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC) < 0)
		return 1;
	if (dbgdyn_begin("absolute", strlen("absolute"), NULL, &context) != DBGDYN_OK)
		return 1;
	for (size_t i = 0; i < NR; i++) {
		struct dbgdyn_routine r = { .size = sizeof(r),
					    .name = { routines[i].name, strlen(routines[i].name) },
					    .code = code + i * APART,
					    .code_len = routines[i].len };

		if (dbgdyn_register(context, &r, NULL) != DBGDYN_OK)
			return 1;
	}
	while (clock() < end)
		for (size_t i = 0; i < NR; i++)
			run[i](TURNS / 8 * (1 + (unsigned long)rand() % 15));
	dbgdyn_end(context);
	return 0;
}
