/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces made by the real program, of a child that runs a loop of known machine code in anonymous
 * memory. What a trace says is compared with a model of that loop, written in C by hand.
 */
#include <sys/mman.h>

#include "live.h"
#include "vtrace.h"

#if defined(__x86_64__)

enum { RAX, RDX, RCX, RBX, RSI, RDI };

enum { FACTOR_AT = 16, TABLE_LEN = 256 };

static const uint8_t loop_code[] = {
	0x31, 0xc0,				  /*  0 xor eax,eax */
	0x31, 0xd2,				  /*  2 xor edx,edx */
	0x31, 0xdb,				  /*  4 xor ebx,ebx */
	0x48, 0x8b, 0x0c, 0xc7,			  /*  6 mov rcx,[rdi+8*rax] */
	0x48, 0x01, 0xcb,			  /* 10 add rbx,rcx */
	0x48, 0x69, 0xdb, 0x01, 0x00, 0x01, 0x00, /* 13 imul rbx,rbx,0x10001 */
	0x48, 0xff, 0xc2,			  /* 20 inc rdx */
	0x89, 0xd0,				  /* 23 mov eax,edx */
	0x25, 0xff, 0x00, 0x00, 0x00,		  /* 25 and eax,255 */
	0xf6, 0xc2, 0x01,			  /* 30 test dl,1 */
	0x74, 0x03,				  /* 33 jz 38 */
	0x48, 0x31, 0xcb,			  /* 35 xor rbx,rcx */
	0x48, 0x89, 0x5f, 0xf8,			  /* 38 mov [rdi-8],rbx */
	0x48, 0x8b, 0x77, 0xf8,			  /* 42 mov rsi,[rdi-8] */
	0xeb, 0xd6,				  /* 46 jmp 6 */
};

/* In memory that the child shares: code, its words of generations, and what it reads. */
struct shared {
	uint8_t code[BLOCK];
	uint32_t generations[BLOCK / 4];
	uint64_t stored, table[TABLE_LEN];
};

static struct shared *shared;

struct model {
	uint64_t r[INSN_TRACE_REGS];
	uint64_t pc;
};

/* One instruction at offset pc; where it goes on without one behind the other. */
static void model_step(struct model *m, uint64_t factor)
{
	static const uint8_t next[48] = {
		[6] = 10,  [10] = 13, [13] = 20, [20] = 23, [23] = 25, [25] = 30,
		[30] = 33, [35] = 38, [38] = 42, [42] = 46, [46] = 6
	};
	uint64_t *r = m->r;

	if (m->pc == 6)
		r[RCX] = shared->table[r[RAX]];
	else if (m->pc == 10)
		r[RBX] += r[RCX];
	else if (m->pc == 13)
		r[RBX] *= factor;
	else if (m->pc == 20)
		r[RDX]++;
	else if (m->pc == 23)
		r[RAX] = (uint32_t)r[RDX];
	else if (m->pc == 25)
		r[RAX] &= 255;
	else if (m->pc == 35)
		r[RBX] ^= r[RCX];
	else if (m->pc == 42)
		r[RSI] = r[RBX];
	m->pc = m->pc == 33 ? (r[RDX] & 1 ? 35 : 38) : next[m->pc];
}

/* ---- a trace, run once more ------------------------------------------------------------------ */

struct watched {
	struct seen s; /* first: on_load and on_count take it */
	struct vtrace_translator *translator;
	uint64_t factor;    /* of the loop now */
	uint64_t factor_ns; /* since when */
	uint64_t nr, full, code, missing, of_generation[4];
	uint64_t announced, put, missed_again;
	uint64_t base;			    /* where the loop stands */
	uint64_t put_ns[sizeof(loop_code)]; /* since when there is a block of what stands there */
	bool given;			    /* it has all blocks: no other is put */
	bool tick;	 /* one that comes late may know nothing of what it interrupted: lost_bad */
	uint64_t handed; /* of everybody */
};

struct again {
	const uint64_t *reads;
	size_t nr;
};

/* What is read was told. */
static int read_again(void *ctx, void *to, size_t len, uint64_t addr)
{
	struct again *a = ctx;

	(void)addr;
	assert_true(a->nr > 0);
	a->nr--;
	memcpy(to, a->reads++, len);
	return 0;
}

/* One block of a trace: the program's own micro-ops, with what its loads had read. */
static void run_block(struct vtrace_state *s, struct model *m, const struct vtrace_visit *visit,
		      const uint64_t *words, uint64_t factor)
{
	const struct vtrace_code *c = driver_block_get(d, visit->id);
	struct again again = { words + visit->reads, visit->end - visit->reads };
	const struct vtrace_memory memory = { read_again, &again };
	uint32_t left = visit->nr_insns;
	int first;

	assert_non_null(c);
	first = vtrace_code_at(c, visit->pc);
	assert_true(first >= 0);
	s->block_pc = visit->pc - c->insns[first].offset;
	for (uint32_t i = c->insns[first].first; i < c->block.nr_uops && left; i++) {
		assert_int_equal(vtrace_step((void *)&memory, s, &c->uops[i]), VTRACE_CONTINUES);
		if (!(c->uops[i].marks & VTRACE_LAST))
			continue;
		left--;
		model_step(m, factor);
	}
	assert_int_equal(left, 0);
	assert_int_equal(again.nr, 0);
}

/* The path is the model's, and so are the registers at its end. */
static void check_trace(const struct watched *v, const struct insn_trace *w, const uint64_t *words)
{
	static struct vtrace_state s;
	struct model m = { .pc = w->pc - v->base };
	struct vtrace_visit visit = { 0 };
	size_t nr_insns = 0;

	memcpy(m.r, w->r, sizeof(m.r));
	memset(s.unknown, 0xff, sizeof(s.unknown));
	memset(s.unknown, 0, 16);
	vtrace_begin(&s, 1);
	memcpy(s.r, w->r, sizeof(w->r));
	s.flags = w->flags;
	s.flags_unknown = w->flags_unknown;
	while (vtrace_visit_read(words, w->nr_words, visit.end, &visit) > 0) {
		assert_int_equal(visit.pc, v->base + m.pc);
		run_block(&s, &m, &visit, words, v->factor);
		nr_insns += visit.nr_insns;
	}
	assert_int_equal(nr_insns, w->nr_insns);
	assert_memory_equal(m.r, s.r, 16 * sizeof(m.r[0]));
	for (size_t i = 0; i < 16; i++)
		assert_int_equal(s.unknown[i], 0);
	if (w->end != VTRACE_FULL)
		assert_int_equal(w->end_pc, v->base + m.pc);
}

/* Of each block the generation is told: what stood in the words at some time since. */
static void check_generations(const struct insn_trace *w, const uint64_t *words)
{
	struct vtrace_visit visit = { 0 };

	while (vtrace_visit_read(words, w->nr_words, visit.end, &visit) > 0)
		assert_in_range(visit.generation, w->generation, w->end_generation);
}

/* ---- what is seen ---------------------------------------------------------------------------- */

static int on_trace(void *ctx, const struct insn_trace *w, const uint64_t *words)
{
	struct watched *v = ctx;

	see_time(&v->s, w->time_ns);
	v->handed++;
	if ((int32_t)w->tgid != v->s.pid || w->pc < v->base + 6 ||
	    w->pc >= v->base + sizeof(loop_code))
		return 0;
	v->nr++;
	v->full += w->end == VTRACE_FULL;
	v->code += w->end == VTRACE_CODE;
	v->missing += w->end == VTRACE_UNTRANSLATED;
	if (w->generation < 4)
		v->of_generation[w->generation]++;
	assert_int_equal(w->tid, w->tgid);
	assert_true(w->end == VTRACE_FULL || w->end == VTRACE_CODE ||
		    w->end == VTRACE_UNTRANSLATED);
	check_generations(w, words);
	if (w->end == VTRACE_UNTRANSLATED && w->time_ns > v->put_ns[w->end_pc - v->base])
		v->missed_again++;
	if (w->has & INSN_TRACE_VALUES && w->time_ns > v->factor_ns)
		check_trace(v, w, words);
	return 0;
}

static int on_missing(void *ctx, const struct insn_trace *w)
{
	static struct vtrace_code code;
	struct watched *v = ctx;
	int r;

	if ((int32_t)w->tgid != v->s.pid || !w->code_len || v->given)
		return 0;
	v->announced++;
	if (vtrace_translate(v->translator, w->code, w->code_len, w->end_pc, &code) < 0)
		return 0;
	r = driver_block_put(d, &code);
	assert_true(r >= 0);
	assert_non_null(driver_block_get(d, (uint32_t)r));
	v->put++;
	if (w->end_pc - v->base < sizeof(loop_code))
		v->put_ns[w->end_pc - v->base] = base_now_ns();
	return 0;
}

static void look(struct watched *v)
{
	const struct driver_sink sink = {
		.load = on_load, .count = on_count, .trace = on_trace, .ctx = v
	};
	struct driver_trace_stats st;
	struct base_err err = { 0 };
	uint64_t read = 0;

	if (driver_traces_missing(d, on_missing, v) < 0 || driver_drain(d, true, &sink, &err) < 0)
		fail_msg("%s", err.text);
	if (!v->tick)
		check_law(&v->s);
	driver_trace_stats_get(d, &st);
	assert_int_equal(st.received,
			 v->handed + st.held + st.lost_ring + st.lost_busy + st.lost_read);
	for (size_t i = 0; i < VTRACE_NR_ENDS; i++)
		read += st.by_end[i];
	assert_int_equal(st.lost_read, 0);
	assert_in_range(read, v->handed, v->handed + st.held);
}

/* Until @enough of what *@nr counts were seen; the machine may be slow. */
static void look_until(struct watched *v, const uint64_t *nr, uint64_t enough)
{
	for (int i = 0; i < 2000 && *nr < enough; i++) {
		usleep(10000);
		look(v);
	}
	assert_true(*nr >= enough);
}

/* Of kernel mode: some path of the kernel, which no model of ours tells. */
struct kernel_seen {
	struct watched v;
	uint64_t nr, entered;
};

static int on_kernel_trace(void *ctx, const struct insn_trace *w, const uint64_t *words)
{
	struct kernel_seen *k = ctx;

	(void)words;
	k->v.handed++;
	if (!(w->has & INSN_TRACE_KERNEL))
		return 0;
	assert_int_equal(w->tgid, 0);
	assert_int_equal(w->instance, 0);
	assert_true((int64_t)w->pc < 0);
	k->nr++;
	k->entered += w->nr_words != 0;
	return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const struct driver_config traces = {
	.slots = clock_event,
	.nr_slots = 1,
	.frequency = 5000,
	.trace_every = 1,
	.trace_log = VTRACE_LOG_READS,
};

static void set_factor(struct watched *v, uint32_t factor)
{
	memcpy(shared->code + FACTOR_AT, &factor, sizeof(factor));
	v->factor = factor;
	v->factor_ns = base_now_ns() + 10000000;
}

static void run_loop(struct watched *v)
{
	void (*loop)(uint64_t *) = (void (*)(uint64_t *))(uintptr_t)v->base;

	v->s.pid = fork_child();
	assert_true(v->s.pid >= 0);
	if (!v->s.pid)
		loop(shared->table);
}

static void begin(struct watched *v, const struct driver_config *config)
{
	memcpy(shared->code, loop_code, sizeof(loop_code));
	memset(shared->generations, 0, sizeof(shared->generations));
	for (size_t i = 0; i < TABLE_LEN; i++)
		shared->table[i] = i * i * 0x123456789ull + 5;
	v->factor = 0x10001;
	v->factor_ns = 0;
	memset(v->put_ns, 0xff, sizeof(v->put_ns));
	assert_int_equal(vtrace_translator_open(VTRACE_X86_64, &v->translator), 0);
	v->base = (uintptr_t)shared->code;
	run_loop(v);
	start(config);
}

static void end(struct watched *v)
{
	struct driver_trace_stats st;
	int status;

	kill(v->s.pid, SIGKILL);
	waitpid(v->s.pid, &status, 0);
	driver_stop(d);
	look(v);
	driver_trace_stats_get(d, &st);
	assert_int_equal(st.held, 0);
	vtrace_translator_close(v->translator);
}

/* One sample in four has its turn. */
static void one_in_four(void **state)
{
	struct driver_config config = traces;
	struct driver_trace_stats st;
	struct driver_stats counted;
	struct watched v = { 0 };
	uint64_t user;

	(void)state;
	config.trace_every = 4;
	config.trace_log = VTRACE_LOG_PATH;
	begin(&v, &config);
	look_until(&v, &v.full, 100);
	end(&v);
	driver_trace_stats_get(d, &st);
	counted = check_law(&v.s);
	/* Of each CPU's samples in user mode; the rest of a turn may be left on each. */
	user = v.s.counts - v.s.kernel;
	assert_in_range(4 * st.received, 400, user + lost(&counted) + 4);
	assert_true(4 * (st.received + st.skipped + 1024) >= user);
}

/* From now on others have their turn: one in two of a thousand a second, of five thousand one in
 * ten. */
static void as_many_as_it_is_told(void **state)
{
	struct driver_config config = traces;
	struct driver_trace_stats before, st;
	struct driver_stats counted;
	struct watched v = { 0 };
	uint64_t user, received;

	(void)state;
	config.trace_log = VTRACE_LOG_PATH;
	begin(&v, &config);
	look_until(&v, &v.full, 20);
	driver_trace_every(d, 2);
	/* Traces are counted when they begin, samples when they are drained: more of these. */
	user = v.s.counts - v.s.kernel;
	driver_trace_stats_get(d, &before);
	look_until(&v, &v.full, v.full + 300);
	end(&v);
	driver_trace_stats_get(d, &st);
	counted = check_law(&v.s);
	user = v.s.counts - v.s.kernel - user;
	received = st.received - before.received;
	assert_in_range(10 * received, 1000, user + lost(&counted) + 1024);
	/* Loops of a few instructions take microseconds each, not nothing and not seconds. */
	assert_in_range(st.ran_ns / st.received, 100, 10000000);
}

/* Other code at the same place is never run as what it was. */
static void change_code(struct watched *v, uint32_t factor)
{
	uint64_t missing = v->missing, full;

	set_factor(v, factor);
	look_until(v, &v->missing, missing + 1);
	full = v->full;
	look_until(v, &v->full, full + 50);
}

static void trace_are_what_the_loop_does(void **state)
{
	struct watched v = { 0 };

	(void)state;
	begin(&v, &traces);
	look_until(&v, &v.full, 200);
	/* The parts of a loop are few: they are translated once. */
	assert_in_range(v.put, 3, 40);
	assert_int_equal(v.code, 0);
	for (uint32_t i = 1; i <= 3; i++)
		change_code(&v, 0x10001 + 2 * i);
	end(&v);
}

/* Where the loop begins and where its branch is not taken: no block begins anywhere else. */
static void trace_begin_within_blocks(void **state)
{
	static const uint8_t starts[] = { 6, 35 };
	struct vtrace_code code;
	struct watched v = { .given = true };

	(void)state;
	begin(&v, &traces);
	for (size_t i = 0; i < sizeof(starts); i++) {
		assert_int_equal(vtrace_translate(v.translator, shared->code + starts[i],
						  VTRACE_BLOCK_BYTES, v.base + starts[i], &code),
				 0);
		assert_true(driver_block_put(d, &code) > 0);
	}
	for (size_t i = 0; i < sizeof(loop_code); i++)
		v.put_ns[i] = base_now_ns();
	look_until(&v, &v.full, 300);
	assert_int_equal(v.missed_again, 0);
	assert_int_equal(v.code, 0);
	end(&v);
}

/* A block is of its code, whatever its generation is called; which that was the trace tells. */
static void generations_are_told(void **state)
{
	const struct driver_range code = {
		.start = (uintptr_t)shared->code,
		.end = (uintptr_t)shared->code + BLOCK,
		.kind = DRIVER_RANGE_WORDS,
	};
	const struct driver_client client = { .ranges = &code,
					      .nr_ranges = 1,
					      .words = (uintptr_t)shared->generations,
					      .nr_words = BLOCK / 4,
					      .stands = live_stands };
	struct watched v = { 0 };

	(void)state;
	begin(&v, &traces);
	assert_int_equal(driver_client_set(d, v.s.pid, &client), 0);
	for (uint32_t i = 1; i < 4; i++) {
		for (size_t k = 0; k < BLOCK / 4; k++)
			__atomic_store_n(&shared->generations[k], i, __ATOMIC_SEQ_CST);
		look_until(&v, &v.of_generation[i], 50);
		assert_int_equal(v.code, 0);
	}
	assert_int_equal(v.missed_again, 0);
	end(&v);
}

static void end_child(struct watched *v)
{
	int status;

	kill(v->s.pid, SIGKILL);
	waitpid(v->s.pid, &status, 0);
}

/* Who runs the same code has its blocks: a process that is forked, and one where it stands
 * elsewhere. */
static void others_have_the_blocks(void **state)
{
	void *elsewhere = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct watched v = { 0 };
	struct driver_trace_stats st;
	uint64_t full;

	(void)state;
	assert_true(elsewhere != MAP_FAILED);
	begin(&v, &traces);
	memcpy(elsewhere, loop_code, sizeof(loop_code));
	look_until(&v, &v.full, 300);
	for (int i = 0; i < 2; i++) {
		end_child(&v);
		look(&v);
		full = v.full;
		v.base = i ? (uintptr_t)elsewhere : v.base;
		run_loop(&v);
		look_until(&v, &v.full, full + 200);
	}
	assert_int_equal(v.missed_again, 0);
	driver_trace_stats_get(d, &st);
	assert_in_range(st.nr_blocks, 1, v.put);
	end(&v);
	munmap(elsewhere, BLOCK);
}

static void kernel_mode_has_traces(void **state)
{
	struct driver_config config = traces;
	struct kernel_seen k = { 0 };
	const struct driver_sink sink = {
		.load = on_load, .count = on_count, .trace = on_kernel_trace, .ctx = &k
	};
	struct base_err err = { 0 };

	(void)state;
	config.trace_kernel = true;
	assert_int_equal(vtrace_translator_open(VTRACE_X86_64, &k.v.translator), 0);
	start(&config);
	for (int i = 0; i < 2000 && k.entered < 20; i++) {
		spin_calling(20);
		if (driver_traces_missing(d, on_missing, &k.v) < 0 ||
		    driver_drain(d, true, &sink, &err) < 0)
			fail_msg("%s", err.text);
	}
	assert_true(k.entered >= 20);
	vtrace_translator_close(k.v.translator);
}

static void tick_has_traces(void **state)
{
	static const char *const tick[] = { "tick" };
	struct driver_config config = traces;
	struct watched v = { .tick = true };
	struct base_err err = { 0 };

	(void)state;
	config.slots = tick;
	config.frequency = 0;
	config.source = "bpf";
	if (driver_open(&config, &d, &err) < 0)
		skip();
	driver_close(d);
	begin(&v, &config);
	look_until(&v, &v.full, 50);
	end(&v);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(trace_are_what_the_loop_does),
		LIVE_TEST(one_in_four),
		LIVE_TEST(as_many_as_it_is_told),
		LIVE_TEST(generations_are_told),
		LIVE_TEST(others_have_the_blocks),
		LIVE_TEST(kernel_mode_has_traces),
		LIVE_TEST(tick_has_traces),
		LIVE_TEST(trace_begin_within_blocks),
	};
	struct base_err err = { 0 };
	int r = live_begin(argc, argv);

	if (r >= 0)
		return r;
	if (driver_traces_possible(NULL, &err) < 0) {
		base_err_print(&err, "skipped", stdout);
		return BASE_EXIT_SKIP;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE | PROT_EXEC,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	printf("skipped: the loop is of x86-64\n");
	return BASE_EXIT_SKIP;
}

#endif
