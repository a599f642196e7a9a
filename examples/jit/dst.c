/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The original contract of DCPI for OpenVMS: the application owns code ranges and debug-symbol
 * (DST) ranges, names them by DBG$DYN_BEGIN and DBG$DYN_ADD, writes code and records into them, and
 * says DBG$DYN_END when no more will come. Each routine is a module of its own: source file,
 * routine, and the line of this very file that emitted each instruction.
 *
 * The first DST range is small, so that DBG$DYN_ADD is needed; the last routine lies in a second
 * code range, which a BASE record names.
 *
 *	cc dst.c $(pkg-config --cflags --libs dbgdyn) -o dst && ./dst [SECONDS]
 */
#include <dbgdyn_vms.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define CODE_LEN 4096u
#define DST_LEN	 4096u
/* The first DST range: one module fits, not two. */
#define DST_SMALL (300u + sizeof(__FILE__))
#define APART	  64u /* bytes between two routines */

static struct routine {
	const char *name;
	unsigned long turns;
	void (*run)(unsigned long turns);
	double seconds; /* CPU time that it took, as we measure it */
} routines[] = { { .name = "dst_half", .turns = 500000 },
		 { .name = "dst_third", .turns = 300000 },
		 { .name = "dst_rest", .turns = 200000 } };

#define NR_ROUTINES (sizeof(routines) / sizeof(routines[0]))

/* Where code goes, and which line of this file it came from. */
struct emitter {
	unsigned char *base; /* of the code range */
	uint32_t start, at;  /* offsets from it */
	struct dbgdyn_dst_line lines[16];
	size_t nr_lines;
};

static void emit(struct emitter *e, uint32_t line, const void *bytes, size_t len)
{
	e->lines[e->nr_lines].code_off = e->at - e->start;
	e->lines[e->nr_lines++].line = line;
	memcpy(e->base + e->at, bytes, len);
	e->at += (uint32_t)len;
}

#if defined(__x86_64__)
#define EMIT(e, ...)                                                                               \
	emit(e, __LINE__, (unsigned char[]){ __VA_ARGS__ },                                        \
	     sizeof((unsigned char[]){ __VA_ARGS__ }))
static void emit_loop(struct emitter *e)
{
	EMIT(e, 0x31, 0xc0);	   /* xor eax, eax */
	EMIT(e, 0x48, 0x01, 0xf8); /* again: add rax, rdi */
	EMIT(e, 0x48, 0xff, 0xcf); /* dec rdi */
	EMIT(e, 0x75, 0xf8);	   /* jnz again */
	EMIT(e, 0xc3);		   /* ret */
}
#elif defined(__aarch64__)
#define EMIT(e, word) emit(e, __LINE__, &(uint32_t){ word }, 4)
static void emit_loop(struct emitter *e)
{
	EMIT(e, 0xd2800001); /* mov x1, #0 */
	EMIT(e, 0x8b000021); /* again: add x1, x1, x0 */
	EMIT(e, 0xf1000400); /* subs x0, x0, #1 */
	EMIT(e, 0x54ffffc1); /* b.ne again */
	EMIT(e, 0xd65f03c0); /* ret */
}
#else
#error "dst speaks x86-64 and aarch64 only"
#endif

static void *must(void *p, const char *what)
{
	if (p != MAP_FAILED)
		return p;
	perror(what);
	exit(1);
}

static void *map(size_t len)
{
	return must(mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		    "dst: mmap");
}

static void check(uint32_t status, const char *call)
{
	if (!(status & 1))
		fprintf(stderr, "dst: %s: status %u\n", call, status);
}

/*
 * A module for one routine. What is written does not change, and a module does not span DST
 * ranges: so it is made apart, and copied if it fits. Else the caller takes a new range.
 */
static int put_module(struct dbgdyn_dst *d, const struct emitter *e, const char *name, int base)
{
	unsigned char space[DST_LEN] = { 0 };
	struct dbgdyn_dst m = { .base = space, .len = sizeof(space) };
	uint32_t len = e->at - e->start, first = e->lines[0].line;
	uint32_t span = e->lines[e->nr_lines - 1].line - first + 1;
	int bad = 0;

	if (base)
		bad |= dbgdyn_dst_base_put(&m, e->base);
	bad |= dbgdyn_dst_modbeg_put(&m, DBGDYN_DST_C, name, strlen(name), "dst", 3);
	bad |= dbgdyn_dst_file_put(&m, 1, __FILE__, strlen(__FILE__));
	bad |= dbgdyn_dst_source_put(&m, 1, first, first, (uint16_t)span);
	bad |= dbgdyn_dst_rtnbeg_put(&m, e->start, name, strlen(name));
	bad |= dbgdyn_dst_lines_put(&m, e->start, len, e->lines, e->nr_lines);
	bad |= dbgdyn_dst_rtnend_put(&m, len);
	bad |= dbgdyn_dst_modend_put(&m);
	return bad ? DBGDYN_EFULL : dbgdyn_dst_append(d, &m);
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_for(double seconds)
{
	double end = now(CLOCK_PROCESS_CPUTIME_ID) + seconds;

	/* Calls of random length, so that no sampler's period keeps step with them. */
	while (now(CLOCK_PROCESS_CPUTIME_ID) < end)
		for (size_t i = 0; i < NR_ROUTINES; i++) {
			double before = now(CLOCK_PROCESS_CPUTIME_ID);

			routines[i].run(routines[i].turns / 8 * (1 + (unsigned long)rand() % 15));
			routines[i].seconds += now(CLOCK_PROCESS_CPUTIME_ID) - before;
		}
}

static void make(struct emitter *e, struct routine *r, struct dbgdyn_dst *dst, int base,
		 uint64_t *context)
{
	e->start = e->at = (e->at + APART - 1) / APART * APART;
	e->nr_lines = 0;
	emit_loop(e);
	r->run = (void (*)(unsigned long))(void *)(e->base + e->start);
	if (put_module(dst, e, r->name, base) == 0)
		return;
	*dst = (struct dbgdyn_dst){ .base = map(DST_LEN), .len = DST_LEN };
	check(DBG$DYN_ADD(DBG$C_DST, DST_LEN, (uintptr_t)dst->base, context), "DBG$DYN_ADD");
	if (put_module(dst, e, r->name, base) != 0)
		fprintf(stderr, "dst: no room for the records of %s\n", r->name);
}

int main(int argc, char **argv)
{
	$DESCRIPTOR(facility, "dst");
	double seconds = argc > 1 ? atof(argv[1]) : 2, all = 0;
	struct emitter first = { .base = map(CODE_LEN) }, second = { .base = map(CODE_LEN) };
	struct dbgdyn_dst dst = { .base = map(DST_LEN), .len = DST_SMALL };
	uint64_t context = 0;

	check(DBG$DYN_BEGIN(&facility, CODE_LEN, (uintptr_t)first.base, DST_SMALL,
			    (uintptr_t)dst.base, &context),
	      "DBG$DYN_BEGIN");
	make(&first, &routines[0], &dst, 0, &context);
	make(&first, &routines[1], &dst, 0, &context);
	check(DBG$DYN_ADD(DBG$C_CODE, CODE_LEN, (uintptr_t)second.base, &context), "DBG$DYN_ADD");
	make(&second, &routines[2], &dst, 1, &context);
	for (int i = 0; i < 2; i++) {
		unsigned char *base = i ? second.base : first.base;

		if (mprotect(base, CODE_LEN, PROT_READ | PROT_EXEC) < 0)
			return perror("dst: mprotect"), 1;
		__builtin___clear_cache((char *)base, (char *)base + CODE_LEN);
	}
	run_for(seconds / 2);
	check(DBG$DYN_END(&context), "DBG$DYN_END");
	run_for(seconds / 2);
	for (size_t i = 0; i < NR_ROUTINES; i++)
		all += routines[i].seconds;
	for (size_t i = 0; i < NR_ROUTINES; i++)
		printf("%-10s %5.1f %%\n", routines[i].name, 100 * routines[i].seconds / all);
	return fflush(stdout) ? perror("dst"), 1 : 0;
}
