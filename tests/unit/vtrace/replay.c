/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of traces run again: what comes out is what the trace itself had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base.h"
#include "record.h"
#include "replay.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP };

static struct record record;
static struct vtrace_state original;

static void begin(enum vtrace_arch arch)
{
	memset(&record, 0, sizeof(record));
	assert_int_equal(vtrace_blocks_new(arch, &record.blocks), 0);
}

static void end(void)
{
	vtrace_blocks_free(record.blocks);
}

static void assert_same(const struct vtrace_state *a, const struct vtrace_state *b)
{
	for (unsigned int i = 0; i < VTRACE_NR_REGS; i++) {
		assert_int_equal(a->unknown[i], b->unknown[i]);
		if (!a->unknown[i])
			assert_int_equal(a->r[i], b->r[i]);
	}
	assert_int_equal(a->flags & ~a->flags_unknown, b->flags & ~b->flags_unknown);
	assert_int_equal(a->flags_unknown, b->flags_unknown);
}

/* Each instruction of the record, beside the same trace run so far. Returns how many. */
static unsigned int replay_all(enum vtrace_log log)
{
	static struct vtrace_replay r;
	struct vtrace_entry e;
	unsigned int nr = 0;
	int ret;

	/* What comes from memory now comes from nowhere else. */
	assert_int_equal(vtrace_replay_init(&r, &record.w, record.words, record_block, &record), 0);
	while ((ret = vtrace_replay_next(&r, &e)) > 0) {
		struct record again = record;

		record_run(&again, &original, log, (uint16_t)++nr);
		assert_int_equal(original.nr_insns, nr);
		assert_same(e.after, &original);
		assert_int_equal(e.target, vtrace_pc(record.blocks, &original));
	}
	assert_int_equal(ret, 0);
	return nr;
}

/* ---- known code ------------------------------------------------------------------------------ */

/* 1: mov rax,[rdi+8*rcx]; mov [rsi],rax; add qword [rsi],5; mov rdx,[rsi]; push rdx; pop rbx;
 * inc ecx; cmp ecx,4; jne 1b; movzx eax,byte [rdi+0x2000]; mov eax,fs:[0]; syscall */
static const uint8_t loop[] = { 0x48, 0x8b, 0x04, 0xcf, 0x48, 0x89, 0x06, 0x48, 0x83, 0x06,
				0x05, 0x48, 0x8b, 0x16, 0x52, 0x5b, 0xff, 0xc1, 0x83, 0xf9,
				0x04, 0x75, 0xe9, 0x0f, 0xb6, 0x87, 0x00, 0x20, 0x00, 0x00,
				0x64, 0x8b, 0x04, 0x25, 0x00, 0x00, 0x00, 0x00, 0x0f, 0x05 };
enum { LOOP_INSNS = 4 * 9 + 2 };

static void load_loop(void)
{
	begin(VTRACE_X86_64);
	memcpy(record.code, loop, sizeof(loop));
	for (uint8_t i = 0; i < 64; i++)
		record.data[i] = i;
	record.w.r[RDI] = RECORD_DATA;
	record.w.r[RSI] = RECORD_DATA + 1024;
	record.w.r[RSP] = RECORD_DATA + 2048;
	record.w.r[VTRACE_TLS] = RECORD_DATA + 16;
}

static void registers(void **state)
{
	(void)state;
	load_loop();
	assert_int_equal(record_run(&record, &original, VTRACE_LOG_READS, 100), VTRACE_SYSTEM);
	assert_int_equal(replay_all(VTRACE_LOG_READS), LOOP_INSNS);
	/* Cut off in the middle of a block. */
	assert_int_equal(record_run(&record, &original, VTRACE_LOG_READS, 14), VTRACE_FULL);
	assert_int_equal(replay_all(VTRACE_LOG_READS), 14);
	end();
}

static void next(struct vtrace_replay *r, struct vtrace_entry *e, uint64_t pc, uint8_t class)
{
	assert_int_equal(vtrace_replay_next(r, e), 1);
	assert_int_equal(e->pc, RECORD_CODE + pc);
	assert_int_equal(e->class, class);
	assert_int_equal(e->code->insns[e->index].offset + e->code->block.pc, e->pc);
}

static void memory(void **state)
{
	static struct vtrace_replay r;
	struct vtrace_entry e;

	(void)state;
	load_loop();
	record_run(&record, &original, VTRACE_LOG_READS, 100);
	memset(record.data, 0xee, sizeof(record.data));
	assert_int_equal(vtrace_replay_init(&r, &record.w, record.words, record_block, &record), 0);
	next(&r, &e, 0, VTRACE_CLASS_LOAD);
	assert_true(e.has_addr && !e.memory_unknown);
	assert_int_equal(e.addr, RECORD_DATA);
	assert_int_equal(e.addr_width, 8);
	assert_int_equal(e.memory, 0x0706050403020100);
	assert_int_equal(e.store.width, 0);
	next(&r, &e, 4, VTRACE_CLASS_STORE);
	assert_int_equal(e.addr, RECORD_DATA + 1024);
	assert_int_equal(e.memory, 0x0706050403020100);
	assert_int_equal(e.load.width, 0);
	/* Read, changed, written: what stands there behind it. */
	next(&r, &e, 7, VTRACE_CLASS_MODIFY);
	assert_int_equal(e.load.value, 0x0706050403020100);
	assert_int_equal(e.memory, 0x0706050403020105);
	next(&r, &e, 11, VTRACE_CLASS_LOAD);
	assert_int_equal(e.memory, 0x0706050403020105);
	next(&r, &e, 14, VTRACE_CLASS_PUSH);
	assert_int_equal(e.addr, RECORD_DATA + 2040);
	next(&r, &e, 15, VTRACE_CLASS_POP);
	assert_int_equal(e.addr, RECORD_DATA + 2040);
	assert_int_equal(e.after->r[RBX], 0x0706050403020105);
	next(&r, &e, 16, VTRACE_CLASS_ADD);
	assert_false(e.has_addr);
	next(&r, &e, 18, VTRACE_CLASS_COMPARE);
	next(&r, &e, 21, VTRACE_CLASS_BRANCH);
	assert_true(e.taken);
	assert_int_equal(e.target, RECORD_CODE);
	for (int i = 0; i < 3 * 9; i++)
		assert_int_equal(vtrace_replay_next(&r, &e), 1);
	assert_false(e.taken);
	/* A page that is not there. */
	next(&r, &e, 23, VTRACE_CLASS_LOAD);
	assert_int_equal(e.memory_unknown, 1);
	assert_int_equal(e.after->unknown[RAX], 1);
	next(&r, &e, 30, VTRACE_CLASS_LOAD);
	assert_int_equal(e.memory, 0x13121110);
	assert_int_equal(vtrace_replay_next(&r, &e), 0);
	assert_int_equal(vtrace_replay_next(&r, &e), 0);
	end();
}

/* The jump leads to the second instruction of its block. */
static void a_loop_within(void **state)
{
	static struct vtrace_replay r;
	struct vtrace_entry e;

	(void)state;
	load_loop();
	record.code[22] += 4;
	assert_int_equal(record_run(&record, &original, VTRACE_LOG_READS, 100), VTRACE_SYSTEM);
	assert_int_equal(replay_all(VTRACE_LOG_READS), LOOP_INSNS - 3);
	assert_int_equal(vtrace_replay_init(&r, &record.w, record.words, record_block, &record), 0);
	for (int i = 0; i < 9; i++)
		assert_int_equal(vtrace_replay_next(&r, &e), 1);
	assert_int_equal(e.target, RECORD_CODE + 4);
	next(&r, &e, 4, VTRACE_CLASS_STORE);
	assert_int_equal(e.index, 1);
	assert_int_equal(e.code->block.pc, RECORD_CODE);
	end();
}

static void times(void **state)
{
	static struct vtrace_replay r;
	struct vtrace_entry e;

	(void)state;
	load_loop();
	record_run(&record, &original, VTRACE_LOG_TIMES, 100);
	assert_int_equal(replay_all(VTRACE_LOG_TIMES), LOOP_INSNS);
	/* The first block's first load, and the one of its third instruction. */
	record.words[2] = 123;
	record.words[4] = 45;
	assert_int_equal(vtrace_replay_init(&r, &record.w, record.words, record_block, &record), 0);
	next(&r, &e, 0, VTRACE_CLASS_LOAD);
	assert_int_equal(e.ns, 123);
	next(&r, &e, 4, VTRACE_CLASS_STORE);
	assert_int_equal(e.ns, 0);
	next(&r, &e, 7, VTRACE_CLASS_MODIFY);
	assert_int_equal(e.ns, 45);
	end();
}

/* ---- any code -------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint64_t random_next(void)
{
	random_state = random_state * 6364136223846793005 + 1442695040888963407;
	return random_state >> 33 ^ random_state << 31;
}

static void fill_random(void)
{
	for (unsigned int i = 0; i < 256; i += 8) {
		uint64_t v = random_next();

		memcpy(record.code + i, &v, 8);
	}
	for (unsigned int i = 0; i < INSN_TRACE_REGS; i++)
		record.w.r[i] =
			random_next() & 1 ? RECORD_DATA + random_next() % 2048 : random_next();
	record.w.r[VTRACE_ZERO] = 0;
	record.w.flags = random_next() & VTRACE_FLAGS;
}

static void random_code(enum vtrace_arch arch)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < 2000; i++) {
		random_state = i + 1;
		begin(arch);
		fill_random();
		record_run(&record, &original, VTRACE_LOG_READS, 32);
		nr += replay_all(VTRACE_LOG_READS);
		end();
	}
	assert_true(nr > 200);
}

static void random_x86_64(void **state)
{
	(void)state;
	random_code(VTRACE_X86_64);
}

static void random_aarch64(void **state)
{
	(void)state;
	random_code(VTRACE_AARCH64);
}

/* ---- bad records ----------------------------------------------------------------------------- */

static int result_of(void)
{
	static struct vtrace_replay r;
	struct vtrace_entry e;
	int ret = vtrace_replay_init(&r, &record.w, record.words, record_block, &record);

	if (ret < 0)
		return ret;
	while ((ret = vtrace_replay_next(&r, &e)) > 0)
		;
	/* There is no way on. */
	assert_int_equal(vtrace_replay_next(&r, &e), 0);
	return ret;
}

static void bad_records(void **state)
{
	(void)state;
	load_loop();
	record_run(&record, &original, VTRACE_LOG_READS, 100);
	assert_int_equal(result_of(), 0);
	record.w.has = 0;
	assert_int_equal(result_of(), -DCPI_EFORMAT);
	record.w.has = INSN_TRACE_VALUES;
	record.w.nr_words = VTRACE_NR_WORDS + 1;
	assert_int_equal(result_of(), -DCPI_EFORMAT);
	/* Reads of the last block that are not there. */
	record_run(&record, &original, VTRACE_LOG_READS, 100);
	record.w.nr_words--;
	assert_int_equal(result_of(), -DCPI_EFORMAT);
	/* A block that nobody has; less of a block than ran; more reads than it has loads. */
	record_run(&record, &original, VTRACE_LOG_READS, 100);
	record.words[0] += VTRACE_WORD(1000);
	assert_int_equal(result_of(), -DCPI_EFORMAT);
	record_run(&record, &original, VTRACE_LOG_READS, 100);
	record.words[0]--;
	assert_int_equal(result_of(), -DCPI_EFORMAT);
	record_run(&record, &original, VTRACE_LOG_READS, 100);
	record.words[0] += VTRACE_WORD_ONE_READ;
	assert_int_equal(result_of(), -DCPI_EFORMAT);
	/* A head that is cut off; a block that stands elsewhere, or cannot stand there. */
	record_run(&record, &original, VTRACE_LOG_READS, 100);
	record.w.nr_words = 1;
	assert_int_equal(result_of(), -DCPI_EFORMAT);
	record_run(&record, &original, VTRACE_LOG_READS, 100);
	record.words[1] += 4096;
	assert_int_equal(result_of(), -DCPI_EFORMAT);
	record_run(&record, &original, VTRACE_LOG_READS, 100);
	record.words[1] += 2;
	record.w.pc += 2;
	assert_int_equal(result_of(), -DCPI_EFORMAT);
	/* It begins elsewhere. */
	record_run(&record, &original, VTRACE_LOG_READS, 100);
	record.w.pc++;
	assert_int_equal(result_of(), -DCPI_EFORMAT);
	end();
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* 1: addsd xmm0,xmm1; movsd [rdi],xmm0; add rax,[rdi]; jc 1b; syscall */
static const uint8_t sums[] = { 0xf2, 0x0f, 0x58, 0xc1, 0xf2, 0x0f, 0x11, 0x07,
				0x48, 0x03, 0x07, 0x72, 0xf3, 0x0f, 0x05 };

static struct {
	uint64_t words[VTRACE_NR_WORDS];
	struct vtrace_fix fixes[4];
} stepped;

/* The sum is unknown, so the load of it too, and at the branch on that the trace ends: were it not
 * for what the processor says. */
static void make_steps(void)
{
	begin(VTRACE_X86_64);
	memcpy(record.code, sums, sizeof(sums));
	record.w.r[RDI] = RECORD_DATA;
	assert_int_equal(record_run(&record, &original, VTRACE_LOG_READS, 100), VTRACE_UNKNOWN_IF);
	assert_int_equal(record.w.nr_insns, 3);
	assert_int_equal(record.w.nr_words, 3);
	memset(&stepped, 0, sizeof(stepped));
	stepped.words[0] = record.words[0] + 1;
	stepped.words[1] = record.words[1];
	stepped.words[2] = 42; /* what stood in memory when the load came */
	stepped.fixes[0] = (struct vtrace_fix){ .reg = VTRACE_VECTOR + 4, .value = 7 };
	stepped.fixes[1] = (struct vtrace_fix){ .before = 1, .reg = VTRACE_VECTOR, .value = 42 };
	stepped.fixes[2] = (struct vtrace_fix){ .before = 3, .reg = VTRACE_FIX_FLAGS };
	memmove(&stepped.words[3], stepped.fixes, sizeof(stepped.fixes));
	record.w.nr_insns = 4;
	record.w.nr_fixes = 3;
	record.w.has |= INSN_TRACE_STEPPED;
}

static void steps(void **state)
{
	static struct vtrace_replay r;
	struct vtrace_entry e;

	(void)state;
	make_steps();
	assert_int_equal(vtrace_replay_init(&r, &record.w, stepped.words, record_block, &record),
			 0);
	assert_int_equal(r.s.unknown[VTRACE_VECTOR + 4], 0);
	assert_int_equal(r.s.r[VTRACE_VECTOR + 4], 7);
	assert_int_equal(vtrace_replay_next(&r, &e), 1);
	assert_int_equal(e.after->unknown[VTRACE_VECTOR], 0);
	assert_int_equal(e.after->r[VTRACE_VECTOR], 42);
	assert_int_equal(vtrace_replay_next(&r, &e), 1);
	assert_int_equal(e.memory, 42);
	assert_int_equal(e.memory_unknown, 0);
	assert_int_equal(vtrace_replay_next(&r, &e), 1);
	assert_int_equal(e.after->unknown[RAX], 0);
	assert_int_equal(e.after->r[RAX], 42);
	assert_int_equal(vtrace_replay_next(&r, &e), 1);
	assert_false(e.taken);
	assert_int_equal(vtrace_replay_next(&r, &e), 0);
	end();
}

static void bad_steps(void **state)
{
	static struct vtrace_replay r;

	(void)state;
	make_steps();
	record.w.nr_fixes = VTRACE_NR_FIXES + 1;
	assert_int_equal(vtrace_replay_init(&r, &record.w, stepped.words, record_block, &record),
			 -DCPI_EFORMAT);
	/* Zero stays zero. */
	record.w.nr_fixes = 1;
	((struct vtrace_fix *)&stepped.words[3])->reg = VTRACE_ZERO;
	assert_int_equal(vtrace_replay_init(&r, &record.w, stepped.words, record_block, &record),
			 -DCPI_EFORMAT);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers),	  cmocka_unit_test(memory),
		cmocka_unit_test(times),	  cmocka_unit_test(random_x86_64),
		cmocka_unit_test(random_aarch64), cmocka_unit_test(bad_records),
		cmocka_unit_test(steps),	  cmocka_unit_test(bad_steps),
		cmocka_unit_test(a_loop_within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
