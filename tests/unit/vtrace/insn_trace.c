/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces over code whose effects are known by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base.h"
#include "vtrace_blocks.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP };

#define CODE  0x10000ull
#define DATA  0x20000ull
#define STACK 0x30000ull
enum { PAGE = 4096 };

struct trial {
	uint8_t code[PAGE], data[PAGE], stack[PAGE];
	size_t code_len; /* what comes behind cannot be read */
	struct vtrace_blocks *blocks;
	struct vtrace_state s;
};

static int read_trial(void *ctx, void *to, size_t len, uint64_t addr)
{
	const struct trial *t = ctx;
	const struct {
		uint64_t start, len;
		const uint8_t *bytes;
	} parts[] = { { CODE, t->code_len, t->code },
		      { DATA, PAGE, t->data },
		      { STACK, PAGE, t->stack } };

	for (size_t i = 0; i < 3; i++) {
		if (addr < parts[i].start || addr + len > parts[i].start + parts[i].len)
			continue;
		memcpy(to, parts[i].bytes + (addr - parts[i].start), len);
		return 0;
	}
	return -EFAULT;
}

static int setup(void **state)
{
	static struct trial t;

	memset(&t, 0, sizeof(t));
	*state = &t;
	return vtrace_blocks_new(VTRACE_X86_64, &t.blocks);
}

static int teardown(void **state)
{
	vtrace_blocks_free(((struct trial *)*state)->blocks);
	return 0;
}

/* All general registers are known: 0, but rdi and rsi at the data, rsp in the stack. */
static void load(struct trial *t, const uint8_t *code, size_t len)
{
	memcpy(t->code, code, len);
	t->code_len = PAGE;
	memset(t->s.unknown, 0xff, sizeof(t->s.unknown));
	memset(t->s.unknown, 0, 16);
	memset(t->s.r, 0, sizeof(t->s.r));
	t->s.r[RDI] = DATA;
	t->s.r[RSI] = DATA + 64;
	t->s.r[RSP] = STACK + 2048;
	t->s.flags = t->s.flags_unknown = 0;
	t->s.pc = CODE;
}

static enum vtrace_end run(struct trial *t, uint16_t max)
{
	const struct vtrace_memory m = { read_trial, t };

	vtrace_begin(&t->s, max);
	return vtrace_run(t->blocks, &m, &t->s);
}

static bool known(const struct trial *t, uint8_t reg)
{
	return !t->s.unknown[reg];
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* xor eax,eax; mov ecx,10; 1: add rax,rcx; dec ecx; jnz 1b; syscall */
static const uint8_t sum[] = { 0x31, 0xc0, 0xb9, 0x0a, 0x00, 0x00, 0x00, 0x48,
			       0x01, 0xc8, 0xff, 0xc9, 0x75, 0xf9, 0x0f, 0x05 };

static void a_loop(void **state)
{
	struct trial *t = *state;

	load(t, sum, sizeof(sum));
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_int_equal(t->s.nr_insns, 2 + 3 * 10);
	assert_int_equal(t->s.r[RAX], 55);
	assert_int_equal(t->s.r[RCX], 0);
	assert_int_equal(vtrace_pc(t->blocks, &t->s), CODE + 14);
	/* As many as were asked for, in the middle of a block. */
	load(t, sum, sizeof(sum));
	assert_int_equal(run(t, 6), VTRACE_FULL);
	assert_int_equal(t->s.r[RAX], 19);
	assert_int_equal(vtrace_pc(t->blocks, &t->s), CODE + 10);
}

/* The words tell each block that was run, and how much of it. */
static void the_trace(void **state)
{
	struct trial *t = *state;
	const struct vtrace_code *c;
	struct vtrace_visit v = { 0 };
	unsigned int insns = 0, nr;

	load(t, sum, sizeof(sum));
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	for (nr = 0; vtrace_visit_read(t->s.words, t->s.nr_words, v.end, &v) > 0; nr++) {
		c = vtrace_blocks_get(t->blocks, v.id);
		assert_non_null(c);
		assert_int_equal(v.pc, nr == 0 ? CODE : nr < 10 ? CODE + 7 : CODE + 14);
		/* The loop begins on the third instruction of the block that leads to it. */
		assert_int_equal(c->block.pc, nr < 10 ? CODE : CODE + 14);
		assert_int_equal(vtrace_code_at(c, v.pc), nr && nr < 10 ? 2 : 0);
		assert_int_equal(v.generation, 0);
		insns += v.nr_insns;
	}
	assert_int_equal(nr, 11);
	assert_int_equal(insns, t->s.nr_insns);
	c = vtrace_blocks_get(t->blocks, 0);
	assert_int_equal(c->insns[2].class, VTRACE_CLASS_ADD);
	assert_int_equal(c->insns[4].class, VTRACE_CLASS_BRANCH);
	assert_int_equal(c->nr_successors, 2);
}

/* vzeroall; movq rax,xmm15; syscall */
static void vectors_cleared(void **state)
{
	static const uint8_t code[] = {
		0xc5, 0xfc, 0x77, 0x66, 0x4c, 0x0f, 0x7e, 0xf8, 0x0f, 0x05
	};
	struct trial *t = *state;

	load(t, code, sizeof(code));
	t->s.r[RAX] = 1;
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_true(known(t, RAX));
	assert_int_equal(t->s.r[RAX], 0);
}

/* vpcmpeqb k6,zmm3,[rbx]; kmovd ecx,k6; mov eax,5; syscall: such wide vectors are not modelled, but
 * * what they write is known to be unknown. */
static void wide_vectors(void **state)
{
	static const uint8_t code[] = { 0x62, 0xf1, 0x65, 0x48, 0x74, 0x33, 0xc5, 0xfb, 0x93,
					0xce, 0xb8, 0x05, 0x00, 0x00, 0x00, 0x0f, 0x05 };
	struct trial *t = *state;

	load(t, code, sizeof(code));
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_false(known(t, RCX));
	assert_true(known(t, RAX) && known(t, RBX));
	assert_int_equal(t->s.r[RAX], 5);
}

/* clzero; vp2intersectd k0,zmm1,zmm2; rep stosb to edi: what these write is not told, so a trace
 * ends before them. */
static void not_told(void **state)
{
	static const struct {
		uint8_t code[8];
		size_t len;
	} insns[] = {
		{ { 0x0f, 0x01, 0xfc }, 3 },
		{ { 0x62, 0xf2, 0x77, 0x48, 0x68, 0xc2 }, 6 },
		{ { 0x67, 0xf3, 0xaa }, 3 },
	};
	struct trial *t = *state;

	for (size_t i = 0; i < sizeof(insns) / sizeof(insns[0]); i++) {
		vtrace_blocks_free(t->blocks);
		assert_int_equal(vtrace_blocks_new(VTRACE_X86_64, &t->blocks), 0);
		load(t, insns[i].code, insns[i].len);
		assert_int_equal(run(t, 100), VTRACE_UNDECODED);
		assert_int_equal(t->s.nr_insns, 0);
	}
}

/* mov qword [rdi],0x11223344; mov byte [rdi+1],0x55; mov eax,[rdi]; mov bx,[rdi+7]; syscall */
static void stores_are_seen(void **state)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0x07, 0x44, 0x33, 0x22, 0x11, 0xc6, 0x47, 0x01,
					0x55, 0x8b, 0x07, 0x66, 0x8b, 0x5f, 0x07, 0x0f, 0x05 };
	struct trial *t = *state;

	load(t, code, sizeof(code));
	t->data[8] = 0x77;
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_int_equal(t->s.r[RAX], 0x11225544);
	/* Half of it was stored, half stood there. */
	assert_int_equal(t->s.r[RBX], 0x7700);
	assert_int_equal(t->data[0], 0);
}

/* mov rax,[rsi]; mov rbx,rax; xor rbx,rbx; add rdx,1; test rax,rax; je 1f; nop; 1: syscall */
static void unknown_goes_on(void **state)
{
	static const uint8_t code[] = { 0x48, 0x8b, 0x06, 0x48, 0x89, 0xc3, 0x48,
					0x31, 0xdb, 0x48, 0x83, 0xc2, 0x01, 0x48,
					0x85, 0xc0, 0x74, 0x01, 0x90, 0x0f, 0x05 };
	struct trial *t = *state;

	load(t, code, sizeof(code));
	t->s.r[RSI] = 0x999000;
	assert_int_equal(run(t, 100), VTRACE_UNKNOWN_IF);
	assert_int_equal(t->s.nr_insns, 5);
	assert_false(known(t, RAX));
	assert_true(known(t, RBX));
	assert_int_equal(t->s.r[RBX], 0);
	assert_int_equal(t->s.r[RDX], 1);
	assert_int_equal(vtrace_pc(t->blocks, &t->s), CODE + 16);
	load(t, code, sizeof(code));
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
}

/* mov [rsi],rdx; mov eax,[rdi]; syscall */
static void store_who_knows_where(void **state)
{
	static const uint8_t code[] = { 0x48, 0x89, 0x16, 0x8b, 0x07, 0x0f, 0x05 };
	struct trial *t = *state;

	load(t, code, sizeof(code));
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_true(known(t, RAX));
	load(t, code, sizeof(code));
	t->s.unknown[RSI] = 0xff;
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_false(known(t, RAX));
}

/* mov ah,0x12; mov al,0x34; mov bx,ax; mov ecx,eax; syscall */
static void parts_of_registers(void **state)
{
	static const uint8_t code[] = { 0xb4, 0x12, 0xb0, 0x34, 0x66, 0x89,
					0xc3, 0x89, 0xc1, 0x0f, 0x05 };
	struct trial *t = *state;

	load(t, code, sizeof(code));
	t->s.r[RAX] = t->s.r[RBX] = t->s.r[RCX] = 0xaaaabbbbccccddddull;
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_true(t->s.r[RAX] == 0xaaaabbbbcccc1234ull);
	assert_true(t->s.r[RBX] == 0xaaaabbbbcccc1234ull);
	assert_true(t->s.r[RCX] == 0xcccc1234ull);
}

/* xor edx,edx; mov eax,7; div ebx; syscall */
static void division(void **state)
{
	static const uint8_t code[] = { 0x31, 0xd2, 0xb8, 0x07, 0x00, 0x00,
					0x00, 0xf7, 0xf3, 0x0f, 0x05 };
	struct trial *t = *state;

	load(t, code, sizeof(code));
	t->s.r[RBX] = 3;
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_int_equal(t->s.r[RAX], 2);
	assert_int_equal(t->s.r[RDX], 1);
	load(t, code, sizeof(code));
	assert_int_equal(run(t, 100), VTRACE_FAULTS);
	assert_int_equal(t->s.nr_insns, 2);
	assert_int_equal(t->s.r[RAX], 7);
}

/* call 1f; syscall; 1: ret */
static void call_and_return(void **state)
{
	static const uint8_t code[] = { 0xe8, 0x02, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xc3 };
	struct trial *t = *state;

	load(t, code, sizeof(code));
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_int_equal(t->s.nr_insns, 2);
	assert_int_equal(t->s.r[RSP], STACK + 2048);
	/* Nobody knows where to. */
	load(t, code + 7, 1);
	t->s.unknown[RSP] = 0xff;
	assert_int_equal(run(t, 100), VTRACE_UNKNOWN_JUMP);
	assert_int_equal(t->s.nr_insns, 0);
}

/* mov eax,[rdi]; rep stosb; mov ecx,[rsi]; syscall */
static void repeated_stores(void **state)
{
	static const uint8_t code[] = { 0x8b, 0x07, 0xf3, 0xaa, 0x8b, 0x0e, 0x0f, 0x05 };
	struct trial *t = *state;

	load(t, code, sizeof(code));
	t->s.r[RCX] = 64;
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_int_equal(t->s.r[RDI], DATA + 64);
	assert_true(known(t, RCX));
	load(t, code, sizeof(code));
	t->s.r[RCX] = 65;
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_false(known(t, RCX));
}

/* 1: mov [rdi],rcx; add rdi,8; dec ecx; jnz 1b; mov rax,[rdi-1600]; mov rbx,[rdi-8]; mov rdx,[rsi];
 * syscall */
static void more_stores_than_fit(void **state)
{
	static const uint8_t code[] = { 0x48, 0x89, 0x0f, 0x48, 0x83, 0xc7, 0x08, 0xff, 0xc9,
					0x75, 0xf5, 0x48, 0x8b, 0x87, 0xc0, 0xf9, 0xff, 0xff,
					0x48, 0x8b, 0x5f, 0xf8, 0x48, 0x8b, 0x16, 0x0f, 0x05 };
	struct trial *t = *state;

	load(t, code, sizeof(code));
	t->s.r[RCX] = 200;
	t->s.r[RSI] = DATA + 2048;
	t->data[2048] = 0x77;
	assert_int_equal(run(t, 2000), VTRACE_SYSTEM);
	assert_true(known(t, RAX));
	assert_int_equal(t->s.r[RAX], 200);
	/* The last one found no room, so nobody knows; what lies elsewhere is what it was. */
	assert_false(known(t, RBX));
	assert_true(known(t, RDX));
	assert_int_equal(t->s.r[RDX], 0x77);
}

/* bzhi edx,eax,edx; syscall */
static void low_bits(void **state)
{
	static const uint8_t code[] = { 0xc4, 0xe2, 0x68, 0xf5, 0xd0, 0x0f, 0x05 };
	static const struct {
		uint64_t value, nr, want;
		uint8_t flags;
	} cases[] = {
		{ 0xffff, 8, 0xff, 0 },
		{ 0xffff, 0x300, 0, VTRACE_Z },
		{ 0xffff, 32, 0xffff, VTRACE_C },
		{ 0x1ffffffff, 31, 0x7fffffff, 0 },
		{ 0x80000000, 255, 0x80000000, VTRACE_C | VTRACE_S },
		/* All eight bits of the index count, and no ninth. */
		{ 0xffff, 0x28, 0xffff, VTRACE_C },
		{ 0xffff, 0x48, 0xffff, VTRACE_C },
		{ 0xffff, 0x88, 0xffff, VTRACE_C },
		{ 0xffff, 0x108, 0xff, 0 },
	};
	struct trial *t = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		load(t, code, sizeof(code));
		t->s.flags = VTRACE_O;
		t->s.r[RAX] = cases[i].value;
		t->s.r[RDX] = cases[i].nr;
		assert_int_equal(run(t, 100), VTRACE_SYSTEM);
		assert_true(known(t, RDX));
		assert_int_equal(t->s.r[RDX], cases[i].want);
		assert_int_equal(t->s.flags_unknown, VTRACE_P);
		assert_int_equal(t->s.flags & ~VTRACE_P, cases[i].flags);
	}
	/* Of bits that it cuts off nothing need be known. */
	load(t, code, sizeof(code));
	t->s.r[RDX] = 8;
	t->s.unknown[RAX] = 0xfe;
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_true(known(t, RDX));
}

/* bzhi rdx,rax,rdx; syscall */
static void low_bits_of_64(void **state)
{
	static const uint8_t code[] = { 0xc4, 0xe2, 0xe8, 0xf5, 0xd0, 0x0f, 0x05 };
	static const struct {
		uint64_t nr, want;
		uint8_t flags;
	} cases[] = {
		{ 0, 0, VTRACE_Z },
		{ 63, INT64_MAX, 0 },
		{ 64, UINT64_MAX, VTRACE_C | VTRACE_S },
		{ 0x88, UINT64_MAX, VTRACE_C | VTRACE_S },
		{ 0x120, UINT32_MAX, 0 },
	};
	struct trial *t = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		load(t, code, sizeof(code));
		t->s.r[RAX] = UINT64_MAX;
		t->s.r[RDX] = cases[i].nr;
		assert_int_equal(run(t, 100), VTRACE_SYSTEM);
		assert_true(known(t, RDX));
		assert_int_equal(t->s.r[RDX], cases[i].want);
		assert_int_equal(t->s.flags & ~VTRACE_P, cases[i].flags);
	}
}

/* movdqu xmm0,[rdi]; pxor xmm1,xmm1; pcmpeqb xmm0,xmm1; pmovmskb eax,xmm0; bsf ecx,eax; syscall */
static void string_code(void **state)
{
	static const uint8_t code[] = { 0xf3, 0x0f, 0x6f, 0x07, 0x66, 0x0f, 0xef,
					0xc9, 0x66, 0x0f, 0x74, 0xc1, 0x66, 0x0f,
					0xd7, 0xc0, 0x0f, 0xbc, 0xc8, 0x0f, 0x05 };
	struct trial *t = *state;

	load(t, code, sizeof(code));
	memcpy(t->data, "thirteen char", 14);
	t->data[15] = 'x';
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_true(known(t, RAX));
	assert_int_equal(t->s.r[RAX], 3 << 13 & ~(1 << 15));
	assert_int_equal(t->s.r[RCX], 13);
}

/* movdqu xmm0,[rsi]; movdqu xmm1,[rdi]; pcmpistri xmm0,xmm1,2; syscall */
static void words_are_found(void **state)
{
	static const uint8_t code[] = { 0xf3, 0x0f, 0x6f, 0x06, 0xf3, 0x0f, 0x6f, 0x0f,
					0x66, 0x0f, 0x3a, 0x63, 0xc1, 0x02, 0x0f, 0x05 };
	struct trial *t = *state;

	load(t, code, sizeof(code));
	/* What stands behind the end of the set is none of it. */
	memcpy(t->data + 64, ":; \0eeeeeeeeeeee", 16);
	memcpy(t->data, "one two\0three fo", 16);
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_true(known(t, RCX));
	assert_int_equal(t->s.r[RCX], 3);
	assert_int_equal(t->s.flags_unknown, 0);
	assert_int_equal(t->s.flags, VTRACE_C | VTRACE_Z | VTRACE_S);
	load(t, code, sizeof(code));
	memcpy(t->data, "one_two\0three fo", 16);
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_int_equal(t->s.r[RCX], 16);
	assert_int_equal(t->s.flags, VTRACE_Z | VTRACE_S);
	/* Nobody knows the set. */
	load(t, code, sizeof(code));
	t->s.r[RSI] = 0x999000;
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_false(known(t, RCX));
}

/* movdqu xmm0,[rdi]; pshufb xmm0,[rsi]; psrldq xmm0,1; pextrq rax,xmm0,0; syscall */
static void bytes_change_places(void **state)
{
	static const uint8_t code[] = { 0xf3, 0x0f, 0x6f, 0x07, 0x66, 0x0f, 0x38, 0x00,
					0x06, 0x66, 0x0f, 0x73, 0xd8, 0x01, 0x66, 0x48,
					0x0f, 0x3a, 0x16, 0xc0, 0x00, 0x0f, 0x05 };
	static const uint8_t by[16] = { 0, 15, 0x80, 3, 0x8f, 8, 7, 0, 1 };
	struct trial *t = *state;

	load(t, code, sizeof(code));
	memcpy(t->data, "0123456789abcdef", 16);
	memcpy(t->data + 64, by, sizeof(by));
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_true(known(t, RAX));
	assert_memory_equal(&t->s.r[RAX], "f\0003\00087010", 8);
}

/* movsd xmm0,[rdi]; comisd xmm0,[rdi+8]; seta al; cvttsd2si ecx,xmm0; cvtsi2sd xmm1,ecx;
 * movq rdx,xmm1; addsd xmm0,xmm1; movq rbx,xmm0; syscall */
static void floating_point(void **state)
{
	static const uint8_t code[] = { 0xf2, 0x0f, 0x10, 0x07, 0x66, 0x0f, 0x2f, 0x47, 0x08,
					0x0f, 0x97, 0xc0, 0xf2, 0x0f, 0x2c, 0xc8, 0xf2, 0x0f,
					0x2a, 0xc9, 0x66, 0x48, 0x0f, 0x7e, 0xca, 0xf2, 0x0f,
					0x58, 0xc1, 0x66, 0x48, 0x0f, 0x7e, 0xc3, 0x0f, 0x05 };
	const double numbers[2] = { -2.75, -3.5 };
	struct trial *t = *state;
	double back;

	load(t, code, sizeof(code));
	memcpy(t->data, numbers, sizeof(numbers));
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_int_equal(t->s.r[RAX], 1);
	assert_int_equal((int32_t)t->s.r[RCX], -2);
	memcpy(&back, &t->s.r[RDX], sizeof(back));
	assert_true(back == -2.0);
	/* Nobody adds here. */
	assert_false(known(t, RBX));
}

/* Other code stands there than was translated, again and again: no value of the other one. */
static void changed_code(void **state)
{
	/* mov eax,1; syscall */
	uint8_t code[] = { 0xb8, 0x01, 0x00, 0x00, 0x00, 0x0f, 0x05 };
	struct trial *t = *state;

	load(t, code, sizeof(code));
	assert_int_equal(run(t, 100), VTRACE_SYSTEM);
	assert_int_equal(t->s.r[RAX], 1);
	for (uint8_t constant = 2; constant < 50; constant++) {
		const struct vtrace_code *before = vtrace_blocks_get(t->blocks, constant - 2u);
		const struct vtrace_memory m = { read_trial, t };

		code[1] = constant;
		load(t, code, sizeof(code));
		assert_non_null(before);
		vtrace_begin(&t->s, 100);
		assert_false(vtrace_code_is((void *)&m, &before->block, CODE));
		assert_int_equal(run(t, 100), VTRACE_SYSTEM);
		assert_int_equal(t->s.r[RAX], constant);
	}
}

/* A head with a generation, and heads and reads that are cut off. */
static void heads(void **state)
{
	uint64_t words[] = { VTRACE_WORD(7) | 3,
			     0x1000,
			     VTRACE_WORD(70000) | VTRACE_WORD_TAGGED | 0x201,
			     0x2000,
			     0xfffffffe,
			     11,
			     12 };
	struct vtrace_visit v = { 0 };

	(void)state;
	assert_int_equal(vtrace_visit_read(words, 7, 0, &v), 1);
	assert_int_equal(v.id, 7);
	assert_int_equal(v.pc, 0x1000);
	assert_int_equal(v.nr_insns, 3);
	assert_int_equal(v.generation, 0);
	assert_int_equal(v.reads, 2);
	assert_int_equal(v.end, 2);
	assert_int_equal(vtrace_visit_read(words, 7, 2, &v), 1);
	assert_int_equal(v.id, 70000);
	assert_int_equal(v.pc, 0x2000);
	assert_int_equal(v.nr_insns, 1);
	assert_int_equal(v.generation, 0xfffffffe);
	assert_int_equal(v.reads, 5);
	assert_int_equal(v.end, 7);
	assert_int_equal(vtrace_visit_read(words, 7, 7, &v), 0);
	assert_int_equal(v.end, 7);
	for (size_t cut = 3; cut < 7; cut++)
		assert_int_equal(vtrace_visit_read(words, cut, 2, &v), -DCPI_EFORMAT);
	assert_int_equal(vtrace_visit_read(words, 1, 0, &v), -DCPI_EFORMAT);
}

/* What a block depends on of its address, and what it is found by. */
static void places(void **state)
{
	static const uint8_t code[20] = {
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17
	};
	struct vtrace_place a, b;

	(void)state;
	assert_int_equal(vtrace_where(0x7f0012345678), vtrace_where(0x550087654678));
	assert_int_not_equal(vtrace_where(0x7f0012345678), vtrace_where(0x7f0012345679));
	assert_int_not_equal(vtrace_where(0x7f0012345678), vtrace_where(0x12345678));
	assert_int_not_equal(vtrace_where(0x7f0012345678), vtrace_where(0xffff7f0012345678));
	assert_true(vtrace_place_of(0x7f0012345678, code, 20, &a));
	assert_true(vtrace_place_of(0x550087654678, code, 16, &b));
	assert_memory_equal(&a, &b, sizeof(a));
	assert_false(vtrace_place_of(0x7f0012345678, code, 15, &b));
	assert_memory_not_equal(&a, &b, sizeof(a));
	/* None of the next page. */
	assert_true(vtrace_place_of(0x7f0012345ffd, code, 3, &a));
	assert_true(vtrace_place_of(0x7f0012345ffd, code, 20, &b));
	assert_memory_equal(&a, &b, sizeof(a));
}

/* What a block knows of addresses is relative to where it runs. */
static void a_block_elsewhere(void **state)
{
	/* lea rax,[rip+16]; mov rdx,[rip-32]; call +256 */
	static const uint8_t code[32] = { 0x48, 0x8d, 0x05, 0x10, 0x00, 0x00, 0x00,
					  0x48, 0x8b, 0x15, 0xe0, 0xff, 0xff, 0xff,
					  0xe8, 0x00, 0x01, 0x00, 0x00 };
	const uint64_t far = DATA - CODE, at = DATA + 64;
	const struct vtrace_memory m = { read_trial, *state };
	struct vtrace_translator *translator;
	struct trial *t = *state;
	struct vtrace_code c;

	load(t, sum, sizeof(sum));
	assert_int_equal(vtrace_translator_open(VTRACE_X86_64, &translator), 0);
	assert_int_equal(vtrace_translate(translator, code, sizeof(code), at - far, &c), 0);
	vtrace_translator_close(translator);
	memcpy(t->data + 64, code, sizeof(code));
	memcpy(t->data + 64 + 14 - 32, &(uint64_t){ 4711 }, 8);
	vtrace_begin(&t->s, 100);
	assert_true(vtrace_code_is((void *)&m, &c.block, at));
	assert_false(vtrace_code_is((void *)&m, &c.block, at + 1));
	assert_int_equal(vtrace_code_at(&c, at), 0);
	assert_int_equal(vtrace_code_at(&c, at + 7), 1);
	assert_int_equal(vtrace_code_at(&c, at + 14 + 4096), 2);
	assert_int_equal(vtrace_code_at(&c, at + 1), -1);
	assert_int_equal(vtrace_code_at(&c, at + 19), -1);
	assert_int_equal(vtrace_code_at(&c, at - 7), -1);
	assert_int_equal(vtrace_code_at(&c, at + 7 + (1ull << 63) + (1ull << 55)), -1);
	t->s.pc = at;
	assert_int_equal(vtrace_enter(&t->s, &c.block, 0), VTRACE_CONTINUES);
	assert_int_equal(t->s.words[1], at);
	for (unsigned int i = 0; i < c.block.nr_uops; i++)
		assert_int_equal(vtrace_step((void *)&m, &t->s, &c.uops[i]), VTRACE_CONTINUES);
	assert_int_equal(t->s.r[RAX], at + 7 + 16);
	assert_int_equal(t->s.r[RDX], 4711);
	assert_int_equal(t->s.pc, at + 19 + 256);
	assert_int_equal(t->s.r[RSP], STACK + 2048 - 8);
	assert_int_equal(vtrace_store_find(&t->s, t->s.r[RSP], false)->value, at + 19);
}

/* A prefix that means nothing beside REX.W, and one by which processors of two makers go to
 * different places. */
static void prefixed_jumps(void **state)
{
	static const uint8_t codes[][8] = { { 0x66, 0x48, 0xe9, 0x00, 0x10, 0x20, 0x00 },
					    { 0x66, 0x66, 0x48, 0xe8, 0xf8, 0xff, 0xff, 0xff },
					    { 0x66, 0x0f, 0x84, 0x00, 0x10, 0x00, 0x00 },
					    { 0x66, 0xe8, 0x00, 0x10, 0x20, 0x00 } };
	const uint64_t pc = 0x555555554000;
	struct vtrace_translator *t;
	struct vtrace_code c;

	(void)state;
	assert_int_equal(vtrace_translator_open(VTRACE_X86_64, &t), 0);
	assert_int_equal(vtrace_translate(t, codes[0], 8, pc, &c), 0);
	assert_int_equal(c.insns[0].class, VTRACE_CLASS_JUMP);
	assert_int_equal(c.successors[0], pc + 7 + 0x201000);
	assert_int_equal(vtrace_translate(t, codes[1], 8, pc, &c), 0);
	assert_int_equal(c.insns[0].class, VTRACE_CLASS_CALL);
	assert_int_equal(c.successors[0], pc);
	for (size_t i = 2; i < 4; i++) {
		assert_int_equal(vtrace_translate(t, codes[i], 8, pc, &c), 0);
		assert_int_equal(c.nr_successors, 0);
		assert_int_equal(c.uops[c.block.nr_uops - 1].op, VTRACE_STOP);
	}
	vtrace_translator_close(t);
}

static void end_of_memory(void **state)
{
	struct trial *t = *state;

	/* nop up to the end of what can be read, and one that is cut off. */
	load(t, sum, sizeof(sum));
	memset(t->code, 0x90, PAGE);
	t->code[PAGE - 1] = 0xb8;
	t->s.pc = CODE + PAGE - 10;
	assert_int_equal(run(t, 100), VTRACE_UNDECODED);
	assert_int_equal(t->s.nr_insns, 9);
	t->s.pc = CODE + PAGE;
	assert_int_equal(run(t, 100), VTRACE_CODE);
	/* What is no instruction. */
	load(t, (const uint8_t[]){ 0x06 }, 1);
	assert_int_equal(run(t, 100), VTRACE_UNDECODED);
	assert_int_equal(t->s.nr_insns, 0);
}

static void names(void **state)
{
	(void)state;
	for (int i = 0; i < VTRACE_NR_CLASSES; i++)
		assert_non_null(vtrace_class_name((enum vtrace_class)i));
	for (int i = 0; i < VTRACE_NR_ENDS; i++)
		assert_non_null(vtrace_end_name((enum vtrace_end)i));
	assert_in_range(VTRACE_NR_CLASSES, 1, 63);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* xpaclri; svc 0 */
static const uint8_t strip[64] = { 0xff, 0x20, 0x03, 0xd5, 0x01, 0x00, 0x00, 0xd4 };
static uint64_t strip_at;

static int read_strip(void *ctx, void *to, size_t len, uint64_t addr)
{
	(void)ctx;
	if (addr < strip_at || addr + len > strip_at + sizeof(strip))
		return -EFAULT;
	memcpy(to, strip + (addr - strip_at), len);
	return 0;
}

/* A signed pointer becomes one of the half of the address space in which its code stands. Of code
 * that stands low it is not known how many bits were the signature. A user's top byte is a tag. */
static void signed_pointers(void **state)
{
	static const struct {
		uint64_t at, pointer;
		bool known;
	} e[] = {
		{ 0x550000000000, 0xab00550000001234, true },
		{ 0xffff800010000000, 0xffff550000001234, true },
		{ 0x10000, 0, false },
		{ 0xffffffff80000000, 0, false },
	};
	const struct vtrace_memory m = { read_strip, NULL };
	static struct vtrace_state s;

	(void)state;
	for (size_t i = 0; i < sizeof(e) / sizeof(e[0]); i++) {
		struct vtrace_blocks *blocks;

		assert_int_equal(vtrace_blocks_new(VTRACE_AARCH64, &blocks), 0);
		memset(&s, 0, sizeof(s));
		s.pc = strip_at = e[i].at;
		s.r[30] = 0xabcd550000001234;
		vtrace_begin(&s, 100);
		assert_int_equal(vtrace_run(blocks, &m, &s), VTRACE_SYSTEM);
		assert_int_equal(!s.unknown[30], e[i].known);
		if (e[i].known)
			assert_int_equal(s.r[30], e[i].pointer);
		vtrace_blocks_free(blocks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_loop),
		TEST(the_trace),
		TEST(vectors_cleared),
		TEST(wide_vectors),
		TEST(not_told),
		TEST(stores_are_seen),
		TEST(unknown_goes_on),
		TEST(store_who_knows_where),
		TEST(parts_of_registers),
		TEST(division),
		TEST(call_and_return),
		TEST(repeated_stores),
		TEST(more_stores_than_fit),
		TEST(low_bits),
		TEST(low_bits_of_64),
		TEST(string_code),
		TEST(words_are_found),
		TEST(bytes_change_places),
		TEST(floating_point),
		TEST(changed_code),
		TEST(end_of_memory),
		TEST(a_block_elsewhere),
		cmocka_unit_test(signed_pointers),
		cmocka_unit_test(prefixed_jumps),
		cmocka_unit_test(heads),
		cmocka_unit_test(places),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
