/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Traces: behind one sample in so many, what the program goes on with, interpreted. Included by
 * behind.bpf.c.
 */
struct run;
static __always_inline int trace_read(const struct run *kernel, void *to, uint32_t len,
				      uint64_t addr);

#define VTRACE_INLINE			static __always_inline
#define VTRACE_READ(ctx, to, len, addr) trace_read(ctx, to, len, addr)
#define VTRACE_NOW()			bpf_ktime_get_ns()

#include "interp.h"
#include "blocks.h"

/* ---- set before loading ---------------------------------------------------------------------- */

const volatile bool traced = true; /* its samples get traces */
const volatile uint16_t trace_insns = 64;
const volatile uint8_t trace_log = VTRACE_LOG_PATH;
const volatile bool trace_kernel = false;
const volatile uint32_t trace_nr_buckets = TRACE_NR_BLOCKS / TRACE_BLOCKS_EACH;
const volatile uint32_t trace_ring_len = TRACE_RING_LEN;

/* ---- maps ------------------------------------------------------------------------------------ */

/* A block whose code was compared: in which trace, and where it stands. */
struct trace_seen {
	uint64_t pc;
	uint32_t number, trace;
};

enum {
	TRACE_NR_SEEN = 16,    /* a power of two */
	TRACE_NR_BEGUN = 2048, /* likewise, and no more than bytes in a page */
};

struct trace_cpu {
	struct trace_counts counts;
	uint32_t number; /* number of the trace */
	struct trace_seen seen[TRACE_NR_SEEN];
	/* The block with which the last trace began that began there in a page; only a hint. */
	uint32_t begun[TRACE_NR_BEGUN];
	/* Where a block is looked for, and the code before it. */
	struct vtrace_place place;
	uint8_t before[VTRACE_BLOCK_BYTES];
	uint64_t code[VTRACE_BLOCK_WORDS]; /* what is compared with a block */
	struct kernel_user_regs regs;
	struct insn_trace w;
	struct vtrace_state s;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* replaced when the source is opened */
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct trace_cpu));
} trace_cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TRACE_NR_BLOCKS); /* so many, or fewer, of these three */
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct trace_block));
} trace_blocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TRACE_NR_BLOCKS / TRACE_BLOCKS_EACH);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct trace_bucket));
} trace_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TRACE_NR_BLOCKS *TRACE_UOPS_EACH);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct vtrace_uop));
} trace_uops SEC(".maps");

/* struct insn_trace and its words. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TRACE_RING_LEN);
} traces SEC(".maps");

/* ---- registers ------------------------------------------------------------------------------- */

static __always_inline bool is_interpreted(const struct kernel_user_regs *r)
{
#if defined(DCPI_BPF_x86_64)
	return r->cs == KERNEL_CS_USER_64 || !KERNEL_IS_USER(r->cs);
#else
	return !(r->pstate & KERNEL_PSTATE_32);
#endif
}

#if defined(DCPI_BPF_x86_64)
/* As DWARF numbers them; the kernel has r15, r14, r13, r12, bp, bx, r11 to r8, ax, cx, dx, si, di.
 */
static __always_inline void fill_general(struct vtrace_state *s, const struct kernel_user_regs *r)
{
	s->r[0] = r->general[10];
	s->r[1] = r->general[12];
	s->r[2] = r->general[11];
	s->r[3] = r->general[5];
	s->r[4] = r->general[13];
	s->r[5] = r->general[14];
	s->r[6] = r->general[4];
	s->r[7] = r->sp;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < 4; i++) {
		s->r[8 + i] = r->general[9 - i];
		s->r[12 + i] = r->general[3 - i];
	}
	s->flags = (r->flags & 1 ? VTRACE_C : 0) | (r->flags & 4 ? VTRACE_P : 0) |
		   (r->flags & 0x40 ? VTRACE_Z : 0) | (r->flags & 0x80 ? VTRACE_S : 0) |
		   (r->flags & 0x800 ? VTRACE_O : 0);
}

enum { NR_GENERAL = 16, TRACE_INSN_ALIGN = 1 };
#else
static __always_inline void fill_general(struct vtrace_state *s, const struct kernel_user_regs *r)
{
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < 31; i++)
		s->r[i] = r->general[i];
	s->r[31] = r->sp;
	s->flags = (r->pstate >> 31 & 1 ? VTRACE_S : 0) | (r->pstate >> 30 & 1 ? VTRACE_Z : 0) |
		   (r->pstate >> 29 & 1 ? VTRACE_C : 0) | (r->pstate >> 28 & 1 ? VTRACE_O : 0);
}

enum { NR_GENERAL = 32, TRACE_INSN_ALIGN = 4 };
#endif

/* The other registers are unknown, except the base of thread-local storage. */
static __always_inline void fill(struct vtrace_state *s, const struct kernel_user_regs *r)
{
	uint64_t *unknown = (uint64_t *)s->unknown;

	vtrace_begin(s, trace_insns);
	s->log = trace_log;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < VTRACE_NR_REGS / 8; i++)
		unknown[i] = i < NR_GENERAL / 8 ? 0 : ~0ull;
	s->unknown[VTRACE_ZERO] = 0;
	s->unknown[VTRACE_TLS] = 0;
	fill_general(s, r);
	s->r[VTRACE_TLS] = bpf_get_current_task_btf()->thread.KERNEL_THREAD_TLS;
	s->flags_unknown = 0;
	s->pc = r->ip;
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct run {
	uint32_t cpu;
	uint32_t tgid, generation; /* process and generation of the code at this place */
	uint32_t at, end;	   /* micro-ops of the block that are left */
	uint32_t number;	   /* number of the block; 0: it begins */
	uint8_t kernel, client;	   /* its process's code is of several generations */
	int why;
	uint64_t direct[2], stack; /* ranges of kernel memory that may be read */
};

#if defined(DCPI_BPF_x86_64)
static __always_inline void find_memory(struct run *run)
{
	bpf_probe_read_kernel(&run->direct[0], sizeof(uint64_t), &page_offset_base);
	bpf_probe_read_kernel(&run->direct[1], sizeof(uint64_t), &vmalloc_base);
}

/* The kernel and its modules. */
static __always_inline bool is_image(uint64_t addr)
{
	return addr >= KERNEL_IMAGE_START && addr < KERNEL_IMAGE_END;
}
#else
static __always_inline void find_memory(struct run *run)
{
	run->direct[0] = KERNEL_DIRECT_START;
	run->direct[1] = KERNEL_DIRECT_END;
}

static __always_inline bool is_image(uint64_t addr)
{
	return addr >= (uint64_t)&_stext && addr < (uint64_t)&_end;
}
#endif

/*
 * Reading a device has effects. Devices are mapped in the area in which the kernel allocates piece
 * by piece, where its stacks are too.
 */
static __always_inline bool is_harmless(const struct run *run, uint64_t addr)
{
	return is_image(addr) || addr - run->stack < KERNEL_STACK_LEN ||
	       (addr >= run->direct[0] && addr < run->direct[1]);
}

/* @kernel: NULL in user mode. */
static __always_inline int trace_read(const struct run *kernel, void *to, uint32_t len,
				      uint64_t addr)
{
	if (!trace_kernel || !kernel)
		return (int)bpf_probe_read_user(to, len, (void *)addr);
	if (!is_harmless(kernel, addr) || !is_harmless(kernel, addr + len - 1))
		return -1;
	return (int)bpf_probe_read_kernel(to, len, (void *)addr);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The generation at @pc; false: nobody can say. */
static __always_inline bool find_generation(struct run *run, uint64_t pc)
{
	struct place place = { 0 };
	enum range_found found;

	if (!run->client)
		return true;
	run->generation = 0;
	found = range_find(run->tgid, pc, &place);
	if (found == RANGE_UNREAD)
		return false;
	return found != RANGE_WORDS || generation_read(&run->generation, &place);
}

static __always_inline struct trace_block *block_at(uint32_t number)
{
	return bpf_map_lookup_elem(&trace_blocks, &number);
}

/* How many bytes of it stand before @pc, if it is it. */
static __always_inline uint64_t block_offset(const struct trace_block *b, uint64_t pc)
{
	return (pc - b->block.pc) % VTRACE_PAGE;
}

/* Does one of its instructions stand at @pc, and all of it there? This and block_find are not
 * static so that the verifier looks at them once, by themselves. */
__noinline int is_block(struct run *run, const struct trace_block *b, uint64_t pc)
{
	uint32_t cpu = run ? run->cpu : 0;
	struct trace_cpu *c = bpf_map_lookup_elem(&trace_cpus, &cpu);
	uint64_t off;

	if (!run || !c || !b || !*(volatile const uint32_t *)&b->alive)
		return false;
	off = block_offset(b, pc);
	return off < VTRACE_BLOCK_BYTES && b->starts >> off & 1 &&
	       vtrace_code_read_is(run->kernel ? run : NULL, &b->block, pc - off, c->code);
}

/* That, of a block of this trace only once: a loop is a few of them again and again, and nothing
 * else runs here meanwhile. */
static __always_inline bool is_block_now(struct run *run, struct trace_cpu *c, uint32_t number,
					 const struct trace_block *b, uint64_t pc)
{
	struct trace_seen *seen = &c->seen[number % TRACE_NR_SEEN];

	if (seen->number == number && seen->pc == pc && seen->trace == c->number)
		return true;
	if (!is_block(run, b, pc))
		return false;
	*seen = (struct trace_seen){ pc, number, c->number };
	return true;
}

/* How the code at @pc begins. */
static __always_inline bool place_read(const struct run *run, uint64_t pc, struct vtrace_place *p)
{
	uint32_t len = vtrace_place_len(pc);

	p->where = vtrace_where(pc);
	p->code[0] = p->code[1] = 0;
	/* As the verifier wants to see it. */
	return len && len <= sizeof(p->code) &&
	       trace_read(run->kernel ? run : NULL, p->code, len, pc) == 0;
}

enum { BLOCK_UNREAD = TRACE_NR_BLOCKS };

/* One that begins like @place and has an instruction at @pc; 0: there is none. */
__noinline uint32_t block_find(struct run *run, const struct vtrace_place *place, uint64_t pc)
{
	uint64_t hash, entry;
	const struct trace_bucket *bucket;
	const struct trace_block *b;
	uint32_t at;

	if (!run || !place)
		return 0;
	hash = trace_hash(place, mix[0], mix[1]);
	at = hash & (trace_nr_buckets - 1);
	bucket = bpf_map_lookup_elem(&trace_buckets, &at);
	if (!bucket)
		return 0;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < TRACE_WAYS; i++) {
		entry = *(volatile const uint64_t *)&bucket->way[i];
		if ((entry ^ hash) >> 32 || !entry)
			continue;
		b = block_at(TRACE_ENTRY_NUMBER(entry));
		if (b && is_block(run, b, pc))
			return TRACE_ENTRY_NUMBER(entry);
	}
	return 0;
}

struct search {
	struct run *run;
	uint64_t pc;
	uint32_t nr; /* bytes of code before it, of the same page */
	uint32_t found;
};

/* One that begins a byte before the last one that was looked for. */
static long block_before(uint32_t i, struct search *s)
{
	uint32_t cpu = s->run->cpu, at = s->nr - 1 - i;
	struct trace_cpu *c = bpf_map_lookup_elem(&trace_cpus, &cpu);
	struct vtrace_place *p;

	if (!c || at >= VTRACE_BLOCK_BYTES)
		return 1;
	p = &c->place;
	p->where--;
	p->code[1] = p->code[1] << 8 | p->code[0] >> 56;
	p->code[0] = p->code[0] << 8 | c->before[at];
	if (p->where % TRACE_INSN_ALIGN == 0)
		s->found = block_find(s->run, p, s->pc);
	return s->found != 0;
}

/*
 * Find a block by its code alone: one that begins at @pc, or one that has an instruction there. 0:
 * there is none; BLOCK_UNREAD.
 */
__noinline uint32_t block_search(struct run *run, uint64_t pc)
{
	struct search s = { .run = run, .pc = pc, .nr = pc % VTRACE_PAGE };
	uint32_t cpu = run ? run->cpu : 0;
	struct trace_cpu *c = bpf_map_lookup_elem(&trace_cpus, &cpu);

	if (!run || !c || !place_read(run, pc, &c->place))
		return BLOCK_UNREAD;
	s.found = block_find(run, &c->place, pc);
	if (s.nr > sizeof(c->before))
		s.nr = sizeof(c->before);
	if (!s.found &&
	    trace_read(run->kernel ? run : NULL, c->before, sizeof(c->before), pc - s.nr) == 0)
		bpf_loop(s.nr, block_before, &s, 0);
	return s.found;
}

/* Which it was the last time, behind the block before or at the beginning of a trace. Pages stand
 * elsewhere in each process. */
static __always_inline uint32_t *block_link(const struct run *run, struct trace_cpu *c,
					    struct trace_block *last)
{
	const struct vtrace_state *s = &c->s;

	return run->number ? &last->link[s->pc != s->block_pc + last->block.len]
			   : &c->begun[s->pc % TRACE_NR_BEGUN];
}

/* The one whose code stands at the state; most often it is the same as last time. A number, or as
 * block_search. */
static __always_inline uint32_t block_next(struct run *run, struct trace_cpu *c)
{
	struct trace_block *last = block_at(run->number), *b;
	uint32_t *link, number;

	if (!last)
		return 0;
	link = block_link(run, c, last);
	number = *(volatile uint32_t *)link;
	b = block_at(number);
	if (b && number && is_block_now(run, c, number, b, c->s.pc))
		return number;
	number = block_search(run, c->s.pc);
	if (number && number < TRACE_NR_BLOCKS)
		*(volatile uint32_t *)link = number;
	return number;
}

static __noinline int enter(struct run *run, struct trace_cpu *c)
{
	const struct trace_block *b;
	struct vtrace_state *s = &c->s;
	uint64_t off, nr;
	int end;

	if (!find_generation(run, s->pc))
		return VTRACE_CODE;
	run->number = block_next(run, c);
	b = block_at(run->number);
	if (!run->number || !b)
		return run->number ? VTRACE_CODE : VTRACE_UNTRANSLATED;
	off = block_offset(b, s->pc) % VTRACE_BLOCK_BYTES;
	nr = vtrace_ones(b->starts & ((1ull << off) - 1));
	run->at = b->block.first + (nr < TRACE_ENTRIES ? b->first[nr] : 0);
	run->end = b->block.first + b->block.nr_uops;
	end = vtrace_enter(s, &b->block, off);
	if (!end && run->generation)
		vtrace_tag(s, run->generation);
	return end;
}

/* Not static, likewise: the verifier looks at it once, and not at each way that leads here. */
__noinline int run_uop(struct run *run, struct vtrace_state *s, const struct vtrace_uop *u)
{
	return run && s && u ? vtrace_step(run->kernel ? run : NULL, s, u) : VTRACE_CODE;
}

static long step(uint32_t i, struct run *run)
{
	uint32_t cpu = run->cpu, at = run->at;
	struct trace_cpu *c = bpf_map_lookup_elem(&trace_cpus, &cpu);
	const struct vtrace_uop *u;

	(void)i;
	if (!c)
		return 1;
	if (at == run->end) {
		run->why = enter(run, c);
		if (run->why)
			return 1;
		at = run->at;
	}
	u = bpf_map_lookup_elem(&trace_uops, &at);
	if (!u)
		return 1;
	run->at = at + 1;
	run->why = run_uop(run, &c->s, u);
	if (!run->why && u->marks & VTRACE_LAST)
		run->why = vtrace_commit(&c->s);
	return run->why != 0;
}

/* ---- records --------------------------------------------------------------------------------- */

static __always_inline void begin_record(struct insn_trace *w, const struct vtrace_state *s,
					 const struct count_key *k, const struct run *run)
{
	struct task_struct *task = bpf_get_current_task_btf();

	w->time_ns = bpf_ktime_get_ns();
	w->instance = run->kernel ? 0 : k->instance;
	w->pc = s->pc;
	w->tgid = run->tgid;
	w->tid = task->pid;
	w->generation = run->generation;
	w->event = COUNT_WHAT_EVENT(k->what);
	w->flags = s->flags;
	w->flags_unknown = s->flags_unknown;
	w->has = run->kernel ? INSN_TRACE_KERNEL : 0;
	if (!trace_log)
		return;
	w->has |= INSN_TRACE_VALUES;
	if (trace_log == VTRACE_LOG_TIMES)
		w->has |= INSN_TRACE_TIMES;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < INSN_TRACE_REGS; i++)
		w->r[i] = s->r[i];
}

/* The code at the end, for somebody to translate it. */
static __always_inline void read_code(struct insn_trace *w, const struct run *kernel)
{
	uint32_t left = VTRACE_PAGE - w->end_pc % VTRACE_PAGE;

	if (trace_read(kernel, w->code, sizeof(w->code), w->end_pc) == 0)
		w->code_len = sizeof(w->code);
	else if (left < sizeof(w->code) && trace_read(kernel, w->code, left, w->end_pc) == 0)
		w->code_len = (uint8_t)left;
}

static __always_inline void end_record(struct insn_trace *w, const struct vtrace_state *s,
				       const struct run *run)
{
	/* Micro-ops without end. */
	w->end = (uint8_t)(run->why ? run->why : VTRACE_TRACE);
	w->end_pc = s->pc;
	w->end_generation = run->generation;
	w->nr_insns = s->nr_insns;
	w->nr_words = s->nr_words < VTRACE_NR_WORDS ? s->nr_words : VTRACE_NR_WORDS;
	w->code_len = 0;
	if (w->end == VTRACE_UNTRANSLATED || w->end == VTRACE_CODE)
		read_code(w, run->kernel ? run : NULL);
	if (!trace_log)
		return;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < INSN_TRACE_FAILED; i++)
		w->failed[i] = s->failed[i];
}

/* A few misses do not wake the daemon, nor do further ones before the daemon looked. */
static __always_inline uint64_t how_to_tell(const struct trace_cpu *c)
{
	uint32_t looked = *(volatile const uint32_t *)&c->counts.looked;
	bool many = c->w.code_len && (uint32_t)c->counts.missed + 1 - looked == TRACE_MISSES;

	return !many && bpf_ringbuf_query(&traces, BPF_RB_AVAIL_DATA) < trace_ring_len / 2
		       ? BPF_RB_NO_WAKEUP
		       : BPF_RB_FORCE_WAKEUP;
}

static __always_inline void hand_on(struct trace_cpu *c)
{
	const uint32_t head = trace_log ? sizeof(c->w) : offsetof(struct insn_trace, failed);
	uint32_t len = c->w.nr_words * sizeof(c->s.words[0]);
	struct bpf_dynptr record;

	if (len > sizeof(c->s.words))
		len = sizeof(c->s.words);
	if (bpf_ringbuf_reserve_dynptr(&traces, head + len, 0, &record) < 0) {
		c->counts.lost_ring++;
		bpf_ringbuf_discard_dynptr(&record, BPF_RB_NO_WAKEUP);
		return;
	}
	bpf_dynptr_write(&record, 0, &c->w, head, 0);
	if (len)
		bpf_dynptr_write(&record, head, c->s.words, len, 0);
	bpf_ringbuf_submit_dynptr(&record, how_to_tell(c));
}

/* ---- traces ---------------------------------------------------------------------------------- */

static __always_inline struct trace_cpu *trace_cpu(uint32_t *cpu)
{
	*cpu = bpf_get_smp_processor_id();
	return bpf_map_lookup_elem(&trace_cpus, cpu);
}

/* Is it this sample's turn? Then its CPU's room is not in use. */
static __always_inline bool trace_turn(const struct count_key *k)
{
	bool user = COUNT_WHAT_MODE(k->what) == SAMPLE_USER;
	struct trace_cpu *c;
	uint32_t cpu;

	/* One that was not counted has no process; in kernel mode it is the idle task's. */
	if (!traced || !k->tgid || (!user && !trace_kernel))
		return false;
	c = trace_cpu(&cpu);
	if (!c || ++c->counts.turn < *(volatile const uint32_t *)&c->counts.every)
		return false;
	c->counts.turn = 0;
	if (!c->counts.busy)
		return true;
	__sync_fetch_and_add(&c->counts.received, 1);
	__sync_fetch_and_add(&c->counts.lost_busy, 1);
	return false;
}

static __always_inline int trace(struct trace_cpu *c, uint32_t cpu, const struct count_key *k)
{
	struct run run = { .cpu = cpu, .kernel = COUNT_WHAT_MODE(k->what) != SAMPLE_USER };

	if (!is_interpreted(&c->regs) || k->what & COUNT_WHAT_UNREAD) {
		__sync_fetch_and_add(&c->counts.skipped, 1);
		return 0;
	}
	__sync_fetch_and_add(&c->counts.received, 1);
	if (!run.kernel) {
		run.tgid = k->tgid;
		run.generation = k->generation;
		run.client = shared.nr_clients && client_find(k->tgid);
	} else if (trace_kernel) {
		find_memory(&run);
		run.stack = (uint64_t)bpf_get_current_task_btf()->stack;
	}
	fill(&c->s, &c->regs);
	begin_record(&c->w, &c->s, k, &run);
	run.why = VTRACE_TRACE;
	c->number++;
	bpf_loop(VTRACE_BLOCK_INSNS * VTRACE_BLOCK_UOPS, step, &run, 0);
	end_record(&c->w, &c->s, &run);
	hand_on(c);
	c->counts.ran_ns += bpf_ktime_get_ns() - c->w.time_ns;
	/* After: who sees it finds the record. */
	if (c->w.code_len)
		c->counts.missed++;
	return 0;
}

static __noinline int trace_of_event(struct bpf_perf_event_data *ctx, const struct count_key *k)
{
	uint32_t cpu;
	struct trace_cpu *c = traced && k ? trace_cpu(&cpu) : NULL;

	if (!c)
		return 0;
	c->counts.busy = 1;
	COUNT_BARRIER();
	__builtin_memcpy(&c->regs, &ctx->regs, sizeof(c->regs));
	trace(c, cpu, k);
	COUNT_BARRIER();
	c->counts.busy = 0;
	return 0;
}

static __noinline int trace_of_tick(const void *regs, const struct count_key *k)
{
	uint32_t cpu;
	struct trace_cpu *c = traced && k ? trace_cpu(&cpu) : NULL;

	if (!c)
		return 0;
	c->counts.busy = 1;
	COUNT_BARRIER();
	if (bpf_probe_read_kernel(&c->regs, sizeof(c->regs), regs) == 0)
		trace(c, cpu, k);
	COUNT_BARRIER();
	c->counts.busy = 0;
	return 0;
}
