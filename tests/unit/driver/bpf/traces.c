/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of blocks, and traces on their way. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf_blocks.h"
#include "bpf_traces.h"

/* ---- blocks ---------------------------------------------------------------------------------- */

static int setup(void **state)
{
	struct bpf_blocks *b = calloc(1, sizeof(*b));

	b->max = TRACE_NR_BLOCKS;
	b->blocks = calloc(TRACE_NR_BLOCKS, sizeof(*b->blocks));
	b->buckets = calloc(TRACE_NR_BLOCKS / TRACE_BLOCKS_EACH, sizeof(*b->buckets));
	b->uops = calloc(TRACE_NR_BLOCKS * TRACE_UOPS_EACH, sizeof(*b->uops));
	b->mix[0] = 0x9e3779b97f4a7c15ull;
	b->mix[1] = 0xc2b2ae3d27d4eb4full;
	*state = b;
	return b->blocks && b->buckets && b->uops ? bpf_blocks_init(b) : -1;
}

static int teardown(void **state)
{
	struct bpf_blocks *b = *state;
	void *arrays[] = { b->blocks, b->buckets, b->uops, b };

	bpf_blocks_release(b);
	for (size_t i = 0; i < 4; i++)
		free(arrays[i]);
	return 0;
}

/* A block of @nr micro-ops, each with @rest as its number, of code that begins with @begin. */
static const struct vtrace_code *code_of(uint64_t pc, uint16_t nr, uint64_t begin, uint32_t rest)
{
	static struct vtrace_code c;

	memset(&c, 0, sizeof(c));
	c.block.pc = pc;
	c.block.nr_uops = nr;
	c.block.nr_insns = 1;
	c.block.len = 20;
	memcpy(c.block.code, &begin, sizeof(begin));
	memcpy(c.block.code + 16, &rest, sizeof(rest));
	vtrace_place_of(pc, c.block.code, c.block.len, &c.place);
	for (uint16_t i = 0; i < nr; i++)
		c.uops[i] = (struct vtrace_uop){ .op = VTRACE_CONST, .w = 8, .imm = rest };
	return &c;
}

static void check_block(const struct bpf_blocks *b, uint32_t number, uint64_t pc, uint64_t rest)
{
	const struct vtrace_code *c = bpf_blocks_get(b, number);
	const struct vtrace_block *w = &b->blocks[number].block;

	assert_non_null(c);
	assert_int_equal(c->block.pc, pc);
	assert_int_equal(c->block.id, number);
	assert_memory_equal(&c->block, w, sizeof(*w));
	for (uint32_t i = 0; i < w->nr_uops; i++) {
		assert_int_equal(c->uops[i].imm, rest);
		assert_memory_equal(&b->uops[w->first + i], &c->uops[i], sizeof(c->uops[i]));
	}
}

static void blocks_are_found_by_code(void **state)
{
	struct bpf_blocks *b = *state;
	int one = bpf_blocks_put(b, code_of(0x1000, 3, 10, 1), 100);
	int other = bpf_blocks_put(b, code_of(0x1000, 128, 10, 2), 100);
	int third = bpf_blocks_put(b, code_of(0x1004, 5, 10, 3), 100);

	assert_true(one > 0 && other > 0 && third > 0);
	check_block(b, (uint32_t)one, 0x1000, 1);
	check_block(b, (uint32_t)other, 0x1000, 2);
	check_block(b, (uint32_t)third, 0x1004, 3);
	/* Wherever its page is; there is but one. */
	assert_int_equal(bpf_blocks_find(b, code_of(0x1000, 3, 10, 1)), one);
	assert_int_equal(bpf_blocks_find(b, code_of(0x7000, 3, 10, 1)), one);
	assert_int_equal(bpf_blocks_put(b, code_of(0x7000, 3, 10, 1), 100), one);
	assert_int_equal(bpf_blocks_find(b, code_of(0x1000, 1, 10, 2)), other);
	assert_int_equal(bpf_blocks_find(b, code_of(0x1004, 1, 10, 3)), third);
	assert_int_equal(bpf_blocks_find(b, code_of(0x1004, 1, 10, 1)), 0);
	assert_int_equal(bpf_blocks_find(b, code_of(0x1000, 1, 11, 1)), 0);
	assert_int_equal(b->nr, 3);
	assert_null(bpf_blocks_get(b, 0));
	assert_null(bpf_blocks_get(b, 4));
	assert_null(bpf_blocks_get(b, UINT32_MAX));
}

/* The program is told where each of the first instructions begins. */
static void blocks_are_entered_anywhere(void **state)
{
	struct bpf_blocks *b = *state;
	struct vtrace_code c = *code_of(0x1000, 3 * VTRACE_BLOCK_INSNS, 10, 1);
	const struct trace_block *w;
	uint64_t starts = 0;

	c.block.nr_insns = VTRACE_BLOCK_INSNS;
	c.block.len = 2 * VTRACE_BLOCK_INSNS;
	for (int i = 0; i < VTRACE_BLOCK_INSNS; i++)
		c.insns[i] = (struct vtrace_insn){ .offset = (uint8_t)(2 * i),
						   .len = 2,
						   .first = (uint8_t)(3 * i) };
	w = &b->blocks[bpf_blocks_put(b, &c, 100)];
	for (int i = 0; i < TRACE_ENTRIES; i++) {
		starts |= 1ull << 2 * i;
		assert_int_equal(w->first[i], 3 * i);
	}
	assert_int_equal(w->starts, starts);
}

/* Of code that begins alike some have room; what had to go can be asked for until no trace names
 * it any more. */
static void replaced_block_keeps_its_number_for_a_while(void **state)
{
	struct bpf_blocks *b = *state;
	uint32_t numbers[TRACE_WAYS + 1], last;

	for (uint32_t i = 0; i <= TRACE_WAYS; i++) {
		if (i == TRACE_WAYS)
			bpf_blocks_used(b, numbers[0], 150);
		numbers[i] = (uint32_t)bpf_blocks_put(b, code_of(0x1000, 3, 1, i), 100 + i);
	}
	assert_int_equal(b->nr, TRACE_WAYS);
	assert_int_equal(bpf_blocks_find(b, code_of(0x1000, 3, 1, 0)), numbers[0]);
	assert_int_equal(bpf_blocks_find(b, code_of(0x1000, 3, 1, 1)), 0);
	assert_int_equal(bpf_blocks_find(b, code_of(0x1000, 3, 1, TRACE_WAYS)),
			 numbers[TRACE_WAYS]);
	assert_int_equal(b->blocks[numbers[1]].alive, 0);
	bpf_blocks_reuse(b, 100 + TRACE_WAYS);
	check_block(b, numbers[1], 0x1000, 1);
	last = (uint32_t)bpf_blocks_put(b, code_of(0x2000, 3, 2, 0), 300);
	assert_int_not_equal(last, numbers[1]);
	bpf_blocks_reuse(b, 101 + TRACE_WAYS);
	assert_null(bpf_blocks_get(b, numbers[1]));
	check_block(b, numbers[0], 0x1000, 0);
	assert_int_equal(bpf_blocks_put(b, code_of(0x3000, 3, 3, 4), 400), numbers[1]);
	check_block(b, numbers[1], 0x3000, 4);
}

/* However often blocks come and go, no room is lost; what finds none is refused and counted. */
static void room_is_used_again(void **state)
{
	enum { NR = TRACE_NR_BLOCKS + 1000, ROUNDS = 3 };
	struct bpf_blocks *b = *state;
	uint32_t nr[ROUNDS] = { 0 }, sum = 0;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < NR; i++)
			nr[round] +=
				bpf_blocks_put(b,
					       code_of(0x1000 + 7 * i, (uint16_t)(1 + i * 31 % 12),
						       round * NR + i, i),
					       1 + round) > 0;
		sum += nr[round];
		assert_int_equal(b->no_room, (round + 1) * NR - sum);
		assert_in_range(b->nr, TRACE_NR_BLOCKS / 4 * 3 - 100, TRACE_NR_BLOCKS);
		bpf_blocks_reuse(b, 2 + round);
	}
	assert_int_equal(nr[0], TRACE_NR_BLOCKS - 1);
	assert_in_range(nr[1], (TRACE_NR_BLOCKS / BPF_SPARE_PART) - 100,
			(TRACE_NR_BLOCKS / BPF_SPARE_PART) + 100);
	assert_in_range(nr[2], nr[1] - 100, nr[1] + 100);
}

/* Of a table that is nearly full those go that no trace entered for longest, before the others
 * those that none ever did. */
static void old_blocks_make_room(void **state)
{
	enum { NR = TRACE_NR_BLOCKS - (TRACE_NR_BLOCKS / BPF_SPARE_PART) };
	const uint64_t now = 1000 + 2 * NR;
	struct bpf_blocks *b = *state;
	uint32_t early = 0, late = 0;

	for (uint32_t i = 1; i < NR; i++)
		assert_int_equal(
			bpf_blocks_put(b, code_of(0x1000 + 16 * i, 1, i, i), i % 16 ? 1 : now - NR),
			i);
	for (uint32_t i = 1; i < NR; i++)
		if (i % 16)
			bpf_blocks_used(b, i, 1000 + i);
	bpf_blocks_used(b, TRACE_NR_BLOCKS + 10, now);
	/* Some went where a bucket was full. */
	while (b->nr < NR)
		assert_true(bpf_blocks_put(b, code_of(0x10, 1, b->nr, 0), now) > 0);
	for (uint32_t i = 1; i < NR; i++)
		early += !b->blocks[i].alive;
	assert_true(early < 100);
	assert_true(bpf_blocks_put(b, code_of(0x20, 1, 0, 0), now) > 0);
	assert_in_range(b->nr, NR - (TRACE_NR_BLOCKS / BPF_SPARE_PART),
			NR - (TRACE_NR_BLOCKS / BPF_SPARE_PART) * 3 / 4);
	for (uint32_t i = 1; i < NR; i++)
		if (i % 16 == 0 || i < NR / 32)
			assert_false(b->blocks[i].alive);
		else if (i > NR / 8)
			late += !b->blocks[i].alive;
	assert_true(late < 100);
	assert_int_equal(b->no_room, 0);
}

/* ---- traces ---------------------------------------------------------------------------------- */

static const size_t short_head = offsetof(struct insn_trace, failed);

struct record {
	struct insn_trace w;
	uint64_t words[4];
};

/* A record of @nr words (1, 2, …) as the program writes it; its length. */
static size_t record_of(struct record *r, uint64_t time_ns, uint16_t nr, bool values)
{
	size_t head = values ? sizeof(r->w) : short_head;

	memset(r, 0, sizeof(*r));
	r->w.time_ns = time_ns;
	r->w.pc = r->w.end_pc = 16 * time_ns;
	r->w.tgid = 10;
	r->w.nr_words = nr;
	r->w.end = VTRACE_FULL;
	r->w.has = values ? INSN_TRACE_VALUES : 0;
	for (uint64_t i = 0; i < nr; i++) {
		uint64_t word = i + 1;

		memcpy((char *)r + head + 8 * i, &word, sizeof(word));
	}
	return head + 8u * nr;
}

struct taken {
	uint64_t times[16], nr, refuse_at;
};

static int take(void *ctx, const struct insn_trace *w, const uint64_t *words)
{
	struct taken *t = ctx;

	assert_int_equal(w->pc, 16 * w->time_ns);
	for (uint16_t i = 0; i < w->nr_words; i++)
		assert_int_equal(words[i], i + 1);
	t->times[t->nr++] = w->time_ns;
	return t->nr == t->refuse_at ? -EPIPE : 0;
}

static void trace_come_in_order_of_time(void **state)
{
	static const uint64_t times[] = { 5, 3, 9, 7, 1 }, until_8[] = { 1, 3, 5, 7 };
	struct bpf_traces q = { 0 };
	struct taken t = { 0 };
	const struct driver_sink sink = { .trace = take, .ctx = &t };
	struct record r;

	(void)state;
	for (size_t i = 0; i < 5; i++)
		bpf_traces_add(&q, &r, record_of(&r, times[i], (uint16_t)i, i % 2));
	assert_int_equal(bpf_traces_hand(&q, 8, &sink), 0);
	assert_int_equal(t.nr, 4);
	assert_memory_equal(t.times, until_8, sizeof(until_8));
	assert_int_equal(bpf_queue_nr(&q.queue), 1);
	bpf_queue_tidy(&q.queue);
	assert_int_equal(bpf_queue_nr(&q.queue), 1);
	bpf_traces_add(&q, &r, record_of(&r, 8, 1, false));
	bpf_traces_add(&q, &r, record_of(&r, 10, 1, false));
	t.refuse_at = 6;
	assert_int_equal(bpf_traces_hand(&q, 11, &sink), -EPIPE);
	assert_int_equal(bpf_queue_nr(&q.queue), 1);
	assert_int_equal(t.times[4], 8);
	assert_int_equal(t.times[5], 9);
	assert_int_equal(q.handed, 6);
	assert_int_equal(q.by_end[VTRACE_FULL], 7);
	bpf_traces_release(&q);
}

/* However long some are always left, room is used again; what stays is what it was. */
static void handed_traces_leave_no_room_behind(void **state)
{
	struct bpf_traces q = { 0 };
	struct taken t = { 0 };
	const struct driver_sink sink = { .trace = take, .ctx = &t };
	struct record r;

	(void)state;
	for (uint64_t i = 1; i <= 1000; i++) {
		t.nr = 0;
		/* Of two, the older one is behind the younger. */
		bpf_traces_add(&q, &r, record_of(&r, 2 * i + 1, i % 4, i % 3 == 0));
		bpf_traces_add(&q, &r, record_of(&r, 2 * i, 3, i % 2));
		assert_int_equal(bpf_traces_hand(&q, 2 * i + 1, &sink), 0);
		assert_int_equal(t.times[t.nr - 1], 2 * i);
		bpf_queue_tidy(&q.queue);
		assert_int_equal(bpf_queue_nr(&q.queue), 1);
	}
	assert_in_range(q.queue.cap, 1, 16);
	assert_in_range(q.queue.cap_words, 1, 1024);
	assert_int_equal(bpf_traces_hand(&q, UINT64_MAX, &sink), 0);
	bpf_queue_tidy(&q.queue);
	assert_int_equal(q.queue.nr_words, 0);
	assert_int_equal(q.handed, 2000);
	/* Nor does what a flood took. */
	for (uint64_t i = 0; i < 40000; i++)
		bpf_traces_add(&q, &r, record_of(&r, i, 4, true));
	q.queue.first = q.queue.nr;
	bpf_queue_tidy(&q.queue);
	assert_int_equal(q.queue.cap_words, 0);
	bpf_traces_add(&q, &r, record_of(&r, 5, 4, true));
	t.nr = 0;
	assert_int_equal(bpf_traces_hand(&q, UINT64_MAX, &sink), 0);
	assert_int_equal(t.nr, 1);
	bpf_traces_release(&q);
}

/* A ring, whose records are read up to the one that is still being written. */
struct fake_ring {
	struct bpf_traces *q;
	uint64_t times[4];
	unsigned long nr, read;		   /* records */
	unsigned long busy;		   /* the number of that one */
	unsigned int nr_looks, written_at; /* how often it was looked for; when it is written */
};

static void read_fake(void *ctx)
{
	struct fake_ring *f = ctx;
	struct record r;

	if (++f->nr_looks == f->written_at)
		f->busy = ULONG_MAX;
	for (; f->read < f->nr && f->read != f->busy; f->read++)
		bpf_traces_add(f->q, &r, record_of(&r, f->times[f->read], 0, false));
}

/* One that began later, and is being written, hides one that began before what is handed on. */
static void hidden_traces_come_in_their_turn(void **state)
{
	static const uint64_t times[] = { 5, 25, 50 };
	struct bpf_traces q = { 0 };
	struct fake_ring f = { .q = &q, .times = { 5, 50, 25 }, .nr = 3, .busy = 1 };
	const struct bpf_ring ring = { &f.read, &f.nr, read_fake, &f };
	struct taken t = { 0 };
	const struct driver_sink sink = { .trace = take, .ctx = &t };

	(void)state;
	f.nr = 1;
	assert_int_equal(bpf_queue_whole(&q.queue, &ring, 10), 10);
	f.nr = 3;
	/* It does not come in time: what began since the last time has to wait. */
	assert_int_equal(bpf_queue_whole(&q.queue, &ring, 30), 10);
	assert_int_equal(bpf_traces_hand(&q, 10, &sink), 0);
	assert_int_equal(t.nr, 1);
	/* It does soon. */
	f.written_at = f.nr_looks + 3;
	assert_int_equal(bpf_queue_whole(&q.queue, &ring, 40), 40);
	assert_int_equal(f.nr_looks, f.written_at);
	assert_int_equal(bpf_traces_hand(&q, 40, &sink), 0);
	assert_int_equal(bpf_traces_hand(&q, 60, &sink), 0);
	assert_int_equal(t.nr, 3);
	assert_memory_equal(t.times, times, sizeof(times));
	/* Others may have come behind since: positions are compared as they wrap. */
	f.nr = f.read = ULONG_MAX;
	assert_int_equal(bpf_queue_whole(&q.queue, &ring, 70), 70);
	f.read = 5;
	f.nr = 5;
	assert_int_equal(bpf_queue_whole(&q.queue, &ring, 80), 80);
	bpf_traces_release(&q);
}

static void nonsense_is_lost_by_name(void **state)
{
	struct bpf_traces q = { 0 };
	struct record r;
	size_t len = record_of(&r, 5, 3, true);

	(void)state;
	for (size_t cut = 0; cut < len; cut++)
		bpf_traces_add(&q, &r, cut);
	r.w.end = VTRACE_NR_ENDS;
	bpf_traces_add(&q, &r, len);
	r.w.end = VTRACE_CODE;
	r.w.code_len = INSN_TRACE_CODE + 1;
	bpf_traces_add(&q, &r, len);
	assert_int_equal(q.lost_read, len + 2);
	assert_int_equal(bpf_queue_nr(&q.queue), 0);
	bpf_traces_release(&q);
}

static int tell(void *ctx, const struct insn_trace *w)
{
	struct taken *t = ctx;

	t->times[t->nr++] = w->time_ns;
	return t->nr == t->refuse_at ? -EPIPE : 0;
}

static void miss(struct bpf_traces *q, uint64_t time_ns, uint64_t end_pc, uint32_t tgid,
		 uint8_t code, uint8_t len)
{
	struct record r;
	size_t record_len = record_of(&r, time_ns, 0, true);

	r.w.end = VTRACE_UNTRANSLATED;
	r.w.end_pc = end_pc;
	r.w.tgid = tgid;
	r.w.code_len = len;
	r.w.code[VTRACE_PLACE_BYTES - 1] = code;
	bpf_traces_add(q, &r, record_len);
}

static void missing_code_is_told_once(void **state)
{
	static const uint64_t announced[] = { 1, 4, 5, 8, 9 };
	struct bpf_traces q = { 0 };
	struct taken t = { 0 };

	(void)state;
	miss(&q, 1, 0x1000, 10, 0, 64);
	miss(&q, 2, 0x1000, 10, 0, 64);
	miss(&q, 3, 0x7000, 10, 0, 64);
	miss(&q, 4, 0x1000, 10, 1, 64);
	miss(&q, 5, 0x1ff8, 10, 0, 8);
	miss(&q, 6, 0x1ff8, 10, 1, 64); /* the next page's */
	miss(&q, 7, 0x1020, 10, 0, 0);	/* nobody could read it */
	/* Of each process the first. */
	miss(&q, 8, 0x1000, 11, 0, 64);
	miss(&q, 9, 0x1000, 12, 0, 0);
	miss(&q, 10, 0x1000, 11, 0, 0);
	assert_int_equal(bpf_traces_missing(&q, tell, &t), 0);
	assert_int_equal(t.nr, 5);
	assert_memory_equal(t.times, announced, sizeof(announced));
	assert_int_equal(bpf_traces_missing(&q, tell, &t), 0);
	assert_int_equal(t.nr, 5);
	miss(&q, 7, 0x1000, 10, 0, 64);
	t.refuse_at = 6;
	assert_int_equal(bpf_traces_missing(&q, tell, &t), -EPIPE);
	for (uint64_t i = 0; i < 2 * BPF_NR_MISSING; i++)
		miss(&q, 8, 8 * i, 10, 0, 64);
	assert_int_equal(q.nr_missing, BPF_NR_MISSING);
	assert_int_equal(bpf_queue_nr(&q.queue), 11 + 2 * BPF_NR_MISSING);
	bpf_traces_release(&q);
}

/* ---- where they are possible ----------------------------------------------------------------- */

static void old_kernels_are_refused(void **state)
{
	static const char *const good[] = {
		"6.4.0",
		"6.18.5-amd64",
		"10.0",
		"6.1.36",
		"6.1.120-0-lts #1-Alpine SMP",
		"6.1.0-56-cloud-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-09-01)",
		"6.1.0-1036-oem #36-Ubuntu SMP Ubuntu 6.1.0-1036.36-oem 6.1.66",
	};
	static const char *const bad[] = {
		"5.19.17",
		"mine",
		"",
		"6.2.16",
		"6.3.1",
		"6.1.35",
		"6.1.0-13-amd64",
		"6.1.0-9-amd64 #1 SMP Debian 6.1.27-1 (2023-05-08)",
		"6.1.0-1-oem #1 SMP built for 6.4.2 Ubuntu 6.1.0-1.1-oem 6.1.3",
	};
	struct base_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(driver_traces_possible(good[i], NULL), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(driver_traces_possible(bad[i], NULL), -DCPI_EUNSUPPORTED);
	driver_traces_possible("6.1.0-9-amd64 #1 SMP Debian 6.1.27-1", &err);
	assert_string_equal(err.text, "no traces on Linux '6.1.0-9-amd64'");
	assert_non_null(strstr(err.hint, "6.1.36"));
}

static void other_sources_refuse_traces(void **state)
{
	static const char *const names[] = { "perf", "replay", "inprocess" };
	struct driver *d;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const struct driver_config config = { .source = names[i], .trace_every = 1 };
		struct base_err err = { 0 };

		assert_int_equal(driver_open(&config, &d, &err), -DCPI_EUNSUPPORTED);
		assert_non_null(strstr(err.text, names[i]));
		assert_non_null(strstr(err.hint, "bpf"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(blocks_are_found_by_code, setup, teardown),
		cmocka_unit_test_setup_teardown(replaced_block_keeps_its_number_for_a_while, setup,
						teardown),
		cmocka_unit_test_setup_teardown(blocks_are_entered_anywhere, setup, teardown),
		cmocka_unit_test_setup_teardown(room_is_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(old_blocks_make_room, setup, teardown),
		cmocka_unit_test(trace_come_in_order_of_time),
		cmocka_unit_test(handed_traces_leave_no_room_behind),
		cmocka_unit_test(hidden_traces_come_in_their_turn),
		cmocka_unit_test(nonsense_is_lost_by_name),
		cmocka_unit_test(missing_code_is_told_once),
		cmocka_unit_test(old_kernels_are_refused),
		cmocka_unit_test(other_sources_refuse_traces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
