/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Applications that break the rules of the original contract, one each, and some that keep to them
 * in unusual ways, for tests/system/dst-rules.sh:
 *
 *	dst_rules CASE SECONDS	runs code for about so much CPU time; the facility's name is the
 *case's
 */
#include <dbgdyn_vms.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, APART = 64 };

#if defined(__x86_64__)
/* xor eax, eax; again: add rax, rdi; dec rdi; jnz again; ret */
static const unsigned char loop[] = { 0x31, 0xc0, 0x48, 0x01, 0xf8, 0x48,
				      0xff, 0xcf, 0x75, 0xf8, 0xc3 };
/* The same, with sub rax, rdi. */
static const unsigned char other[] = { 0x31, 0xc0, 0x48, 0x29, 0xf8, 0x48,
				       0xff, 0xcf, 0x75, 0xf8, 0xc3 };
#elif defined(__aarch64__)
static const uint32_t loop[] = { 0xd2800001, 0x8b000021, 0xf1000400, 0x54ffffc1, 0xd65f03c0 };
static const uint32_t other[] = { 0xd2800001, 0xcb000021, 0xf1000400, 0x54ffffc1, 0xd65f03c0 };
#endif

static int die(const char *what)
{
	fprintf(stderr, "dst_rules: %s\n", what);
	exit(1);
}

static unsigned char *map(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static unsigned char *map_code(void)
{
	return map(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void put_code(unsigned char *to, const void *code)
{
	memcpy(to, code, sizeof(loop));
	__builtin___clear_cache((char *)to, (char *)to + sizeof(loop));
}

static void run(const unsigned char *code, double seconds)
{
	struct timespec t;
	double end = 0, now;

	do {
		((void (*)(unsigned long))(uintptr_t)code)(100000);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
		now = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
		end = end ? end : now + seconds;
	} while (now < end);
}

static void module(struct dbgdyn_dst *d, const void *base, uint32_t at, const char *name,
		   size_t name_len)
{
	static const struct dbgdyn_dst_line line = { 0, 7 };
	static const char file[] = "/src/rules.c";
	int bad = 0;

	if (base)
		bad |= dbgdyn_dst_base_put(d, base);
	bad |= dbgdyn_dst_modbeg_put(d, DBGDYN_DST_C, "rules", 5, "", 0);
	bad |= dbgdyn_dst_file_put(d, 1, file, sizeof(file) - 1);
	bad |= dbgdyn_dst_source_put(d, 1, 1, 1, 100);
	bad |= dbgdyn_dst_rtnbeg_put(d, at, name, name_len);
	bad |= dbgdyn_dst_prolog_put(d, at);
	bad |= dbgdyn_dst_blkbeg_put(d, at, "", 0);
	bad |= dbgdyn_dst_blkend_put(d, 4);
	bad |= dbgdyn_dst_lines_put(d, at, sizeof(loop), &line, 1);
	bad |= dbgdyn_dst_rtnend_put(d, sizeof(loop));
	bad |= dbgdyn_dst_modend_put(d);
	if (bad)
		die("no room for DST");
}

/* ---- one facility with a page of code and a page of DST -------------------------------------- */

static const char *facility;
static unsigned char *code;
static struct dbgdyn_dst dst;
static uint64_t context;

static void begin(void)
{
	const struct dsc$descriptor_s name = { (uint16_t)strlen(facility), DSC$K_DTYPE_T,
					       DSC$K_CLASS_S, facility };

	if (!(DBG$DYN_BEGIN(&name, PAGE, (uintptr_t)code, PAGE, (uintptr_t)dst.base, &context) & 1))
		die("DBG$DYN_BEGIN");
}

static void end(void)
{
	uint32_t status = DBG$DYN_END(&context);

	if (!(status & 1))
		fprintf(stderr, "dst_rules: DBG$DYN_END: %u\n", status), exit(1);
}

static void flush(void)
{
	if (dbgdyn_flush((dbgdyn_context){ context }) != DBGDYN_OK)
		die("flush");
}

/* Code in no range: another's page, and its own before begin. */
static void outside(double seconds)
{
	unsigned char *nowhere = map_code();

	put_code(nowhere, loop);
	put_code(code, loop);
	put_code(code + APART, loop);
	run(code + APART, seconds / 3);
	/* A file's times, by which ranges are dated, are those of the last tick of the clock. */
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	begin();
	module(&dst, NULL, 0, facility, strlen(facility));
	run(nowhere, seconds / 3);
	run(code, seconds / 3);
	end();
}

/* No record tells of the code; it runs after END as well. */
static void nodst(double seconds)
{
	begin();
	put_code(code, loop);
	run(code, seconds / 2);
	end();
	run(code, seconds / 2);
}

static void hole(double seconds)
{
	begin();
	put_code(code, loop);
	put_code(code + APART, loop);
	module(&dst, NULL, 0, "before_hole", 11);
	dst.used += 8;
	module(&dst, NULL, APART, "behind_hole", 11);
	run(code, seconds / 2);
	run(code + APART, seconds / 2);
	end();
}

static void rest(double seconds)
{
	begin();
	put_code(code, loop);
	module(&dst, NULL, 0, "before_rest", 11);
	memset(dst.base + dst.used, 0xa5, dst.len - dst.used);
	run(code, seconds);
	end();
}

static void changed(double seconds)
{
	begin();
	put_code(code, loop);
	module(&dst, NULL, 0, "patched", 7);
	run(code, seconds / 2);
	flush();
	put_code(code, other);
	flush();
	run(code, seconds / 2);
	end();
}

static void dstchanged(double seconds)
{
	begin();
	put_code(code, loop);
	module(&dst, NULL, 0, "said_first", 10);
	flush();
	for (unsigned char *p = dst.base; p < dst.base + dst.used; p++)
		if (!memcmp(p, "said_first", 10))
			memcpy(p, "said_later", 10);
	run(code, seconds);
	end();
}

/* What was read stays when its memory goes, and another's that is not there harms nobody. */
static void unmapped(double seconds)
{
	begin();
	put_code(code, loop);
	module(&dst, NULL, 0, "was_there", 9);
	run(code, seconds);
	flush();
	munmap(code, PAGE);
	munmap(dst.base, PAGE);
	flush();
	end();
}

/* A port from OpenVMS, where addresses have 32 bits: DST holds them as they are. */
static void absolute(double seconds)
{
	code = mmap((void *)0x30000000, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (code == MAP_FAILED)
		die("mmap below 4 GB");
	begin();
	put_code(code, loop);
	module(&dst, NULL, (uint32_t)(uintptr_t)code, "ported", 6);
	run(code, seconds);
	end();
}

/* ---- names and ranges ------------------------------------------------------------------------ */

static void add(uint32_t type, int64_t len, const void *base)
{
	if (!(DBG$DYN_ADD(type, len, (uintptr_t)base, &context) & 1))
		die("DBG$DYN_ADD");
}

static void refused(uint32_t type, int64_t len, uint64_t base)
{
	if (DBG$DYN_ADD(type, len, base, &context) & 1)
		die("a range was taken that cannot be");
}

static void bad(double seconds)
{
	static const struct dbgdyn_string names[] = {
		{ "two\nlines", 9 },	   { "nul\0byte", 8 },	 { "not\xff\xfeutf8", 9 },
		{ "../../../escape", 15 }, { "\x1b[31mred", 8 }, { "", 0 },
	};
	static char longest[DBGDYN_DST_NAME_MAX];
	const size_t huge = (size_t)1 << 44;
	uint32_t at = 0;

	begin();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++, at += APART) {
		put_code(code + at, loop);
		module(&dst, NULL, at, names[i].text, names[i].len);
	}
	memset(longest, 'n', sizeof(longest));
	put_code(code + at, loop);
	module(&dst, NULL, at, longest, sizeof(longest));
	/* Ranges that wrap, or say nothing. */
	refused(DBG$C_CODE, PAGE, UINT64_MAX - 100);
	refused(DBG$C_DST, -1, (uintptr_t)dst.base);
	refused(DBG$C_DST, 0, (uintptr_t)dst.base);
	refused(3, PAGE, (uintptr_t)code);
	/* The same again, overlapping, unmapped, huge, of no access, beyond all memory; DST that is
	 * code. */
	add(DBG$C_CODE, PAGE, code);
	add(DBG$C_CODE, 2 * PAGE, code - PAGE);
	add(DBG$C_CODE, PAGE, (void *)(uintptr_t)0x10000);
	add(DBG$C_DST, PAGE, (void *)(uintptr_t)0x20000);
	add(DBG$C_CODE, (int64_t)huge, map(huge, PROT_READ));
	add(DBG$C_DST, (int64_t)huge, map(huge, PROT_NONE));
	add(DBG$C_DST, PAGE, code);
	add(DBG$C_CODE, INT64_MAX, code);
	run(code, seconds);
	end();
}

/* ---- several facilities, ranges from several threads ----------------------------------------- */

enum { NR_THREADS = 4, NR_RANGES = 12 };

static void *add_ranges(void *arg)
{
	unsigned int self = *(unsigned int *)arg;
	char name[32];

	for (unsigned int i = 0; i < NR_RANGES; i++) {
		unsigned char *mine = map_code();
		struct dbgdyn_dst d = { .base = map(PAGE, PROT_READ | PROT_WRITE), .len = PAGE };

		/* DST of it may come before it does, and grow after it was told of. */
		snprintf(name, sizeof(name), "thread%u_%u", self, i);
		add(DBG$C_DST, PAGE, d.base);
		put_code(mine, loop);
		module(&d, mine, 0, name, strlen(name));
		add(DBG$C_CODE, PAGE, mine);
		run(mine, 0.02);
		put_code(mine + APART, loop);
		strcat(name, "_more");
		module(&d, mine, APART, name, strlen(name));
		run(mine + APART, 0.02);
	}
	return NULL;
}

static void threads(double seconds)
{
	pthread_t thread[NR_THREADS];
	unsigned int self[NR_THREADS];
	uint64_t second, first;

	begin();
	first = context;
	facility = "second";
	begin();
	second = context;
	context = first;
	for (unsigned int i = 0; i < NR_THREADS; i++) {
		self[i] = i;
		if (pthread_create(&thread[i], NULL, add_ranges, &self[i]) != 0)
			die("pthread_create");
	}
	for (unsigned int i = 0; i < NR_THREADS; i++)
		pthread_join(thread[i], NULL);
	run(code, seconds);
	end();
	context = second;
	end();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*play)(double seconds);
	} cases[] = { { "outside", outside },
		      { "nodst", nodst },
		      { "hole", hole },
		      { "rest", rest },
		      { "changed", changed },
		      { "bad", bad },
		      { "dstchanged", dstchanged },
		      { "unmapped", unmapped },
		      { "absolute", absolute },
		      { "threads", threads } };

	if (argc < 3)
		return 2;
	facility = argv[1];
	code = map(3 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) + PAGE;
	dst = (struct dbgdyn_dst){ .base = map(PAGE, PROT_READ | PROT_WRITE), .len = PAGE };
	put_code(code, loop); /* threads runs it */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(argv[1], cases[i].name))
			return cases[i].play(atof(argv[2])), 0;
	return 2;
}
