/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that claims to be CPython 3.13, with frames that lie: chains without an end, addresses
 * of nothing, strings and tables as long as numbers can be, functions without number. Usage:
 * hostile_python SECONDS.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { NR_FRAMES = 4096, OWNER_C = 3 };

/* Objects as the table below has them. */
struct object {
	uint64_t count;
	const void *type;
	int64_t len;
	uint32_t hash, unused;
	uint32_t state;
	uint8_t bytes[92];
};

struct code {
	struct object head;
	uint64_t line;
	const void *file, *name, *lines;
	uint8_t instructions[64];
};

struct frame {
	struct frame *previous;
	const struct code *code;
	const uint8_t *instr;
	uint8_t owner;
};

struct thread {
	struct thread *next;
	uint64_t id;
	struct frame *frame;
};

struct interpreter {
	struct thread *threads;
};

/* ---- what CPython exports -------------------------------------------------------------------- */

uint64_t Py_Version = 0x030d00f0;
uint64_t PyCode_Type[4];

struct {
	uint64_t table[71];
	struct interpreter *interpreters; /* at the table's word 5 */
} _PyRuntime = { .table = {
			 0x7970677562656478, /* "xdebugpy" */
			 0x030d00f0,
			 0,
			 0,
			 0,
			 71 * 8,
			 [9] = 0,
			 [21] = offsetof(struct thread, next),
			 [23] = offsetof(struct thread, frame),
			 [24] = offsetof(struct thread, id),
			 [29] = offsetof(struct frame, previous),
			 [30] = offsetof(struct frame, code),
			 [31] = offsetof(struct frame, instr),
			 [33] = offsetof(struct frame, owner),
			 [35] = offsetof(struct code, file),
			 [37] = offsetof(struct code, name),
			 [38] = offsetof(struct code, lines),
			 [39] = offsetof(struct code, line),
			 [43] = offsetof(struct code, instructions),
			 [45] = 8,
			 [66] = 32,
			 [68] = 32,
			 [69] = 16,
			 [70] = 40,
		 } };

/* ---- what lies ------------------------------------------------------------------------------- */

static struct object a_name, a_file, lines, *no_end;
static struct code codes[NR_FRAMES];
static struct frame frames[NR_FRAMES];
static struct thread self;
static struct interpreter interpreter = { .threads = &self };

static void string(struct object *o, const char *text)
{
	o->len = (int64_t)strlen(text);
	o->state = 1 << 2 | 1 << 5 | 1 << 6; /* one byte a character, compact, ASCII */
	strcpy((char *)o + 40, text);
}

/* @nr functions, each of which called the one before it; the last one of @entry. */
static void chain(size_t nr, struct frame *entry)
{
	for (size_t i = 0; i < nr; i++) {
		codes[i] = (struct code){ .head = { .type = PyCode_Type, .len = 32 },
					  .line = i + 1,
					  .file = &a_file,
					  .name = &a_name,
					  .lines = &lines };
		frames[i] = (struct frame){ .previous = i + 1 < nr ? &frames[i + 1] : entry,
					    .code = &codes[i],
					    .instr = codes[i].instructions + 8 };
	}
	self.frame = &frames[0];
}

static void honest(struct frame *entry)
{
	chain(3, entry);
}

static void loops(struct frame *entry)
{
	chain(2, entry);
	frames[1].previous = &frames[0];
}

static void wild(struct frame *entry)
{
	chain(NR_FRAMES, entry);
	for (size_t i = 8; i < NR_FRAMES; i++)
		frames[i].previous = (void *)((uint64_t)rand() << 33 ^ (uint64_t)rand() << 3);
}

static void wild_code(struct frame *entry)
{
	chain(8, entry);
	frames[5].code = (void *)((uint64_t)rand() << 33 ^ (uint64_t)rand() << 3);
}

/* Texts that end where nothing is mapped, or beyond all memory. */
static void long_texts(struct frame *entry)
{
	chain(8, entry);
	codes[1].name = no_end;
	codes[2].lines = no_end;
	codes[3].file = (void *)-16ll;
	codes[4].head.len = INT64_MAX;
	codes[5].head.len = 0;
}

/* As many functions as there can be, and other ones each time. */
static void flood(struct frame *entry)
{
	static uint64_t line;

	chain(NR_FRAMES, entry);
	for (size_t i = 0; i < NR_FRAMES; i++)
		codes[i].line = ++line;
}

/* The frame that ends the chunk does not stand where it must. */
static void elsewhere(struct frame *entry)
{
	static struct frame *far;

	if (!far)
		far = mmap((void *)0x7ffff0000000, 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*far = (struct frame){ .owner = OWNER_C };
	chain(3, far);
	(void)entry;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

__attribute__((noinline)) unsigned long _PyEval_EvalFrameDefault(void (*lie)(struct frame *),
								 double seconds)
{
	struct frame entry = { .owner = OWNER_C };
	unsigned long x = 1;

	for (double end = now() + seconds; now() < end;) {
		lie(&entry);
		for (int i = 0; i < 200000; i++)
			x = x * 31 + (unsigned long)i;
	}
	self.frame = NULL;
	return x;
}

int main(int argc, char **argv)
{
	static void (*const lies[])(struct frame *) = { honest,	    loops, wild,     wild_code,
							long_texts, flood, elsewhere };
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	unsigned long x = 0;

	uint8_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	string(&a_name, "f");
	string(&a_file, "/w/liar.py");
	/* Behind it nothing is mapped. */
	munmap(page + 4096, 4096);
	no_end = (void *)(page + 4096 - 64);
	memcpy(no_end, &a_name, 64);
	no_end->len = 1000;
	self.id = (uint64_t)pthread_self();
	_PyRuntime.interpreters = &interpreter;
	_PyRuntime.table[5] = 71 * 8;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		x += _PyEval_EvalFrameDefault(lies[i], seconds);
	printf("%lu\n", x & 1);
	return 0;
}
