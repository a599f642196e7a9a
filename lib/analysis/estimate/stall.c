/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the time of a procedure goes: samples divided among execution and the causes of stalls that
 * the code, the frequencies and the other events do not rule out.
 */
#include <elf.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stall.h"

#define STALL_CHANCE_LEAST 1e-6
struct stall_work {
	const struct stall_input *in;
	const struct flow *f;
	struct stall *out;
	double per_run; /* mean samples of an instruction for each of its executions */
	double pace;	/* samples of one instruction's execution, at best */
	bool *in_cache; /* indexed by block: a loop that fits the instruction cache */
	/* Indexed by block: how often its code may be fetched anew: at each entry of its loop (or
	 * of the block, without a loop), and at each call from there. */
	double *fetched;
	/* Indexed by block, upper bounds for the edges that enter it: how often they are taken
	 * after a wrong prediction, and the samples that this takes. INFINITY: not known. */
	double *wrong, *mispredicted;
	/* Indexed by loop and register: how many cache lines the register advances; NULL: not
	 * known. */
	double *moved;
	double *new_lines; /* indexed by instruction: the probability that its loads touch a new
			    * cache line
			    */
	uint32_t *stack, *order, *component;
};

/* Executions of a block, or 1 where they are not known. */
static double stall_runs(const struct stall_work *w, uint32_t b)
{
	return w->in->block ? w->in->block[b] : 1;
}

static double stall_samples_in(const struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	double sum = 0;

	for (uint32_t i = 0; i < block->nr_insns; i++)
		sum += w->in->samples[block->insn + i];
	return sum;
}

/* ---- new lines of memory --------------------------------------------------------------------- */

enum {
	LINE = 64,
	REGISTERS = 32,
	SCALE_MAX = 8,	      /* the largest scale of an index */
	BLOCKS_MAX = 1 << 16, /* larger procedures are not analysed for this */
};

/* The number of cache lines by which such an instruction advances a register, at most one: then
 * the line is another one. */
static double lines_moved(const struct insn *insn)
{
	return insn->step ? fmin(abs(insn->step), LINE) / LINE : 1;
}

static void sum_edge_counts(struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	double *moved = &w->moved[(size_t)w->component[b] * REGISTERS];

	for (uint32_t i = block->insn; i < block->insn + block->nr_insns; i++) {
		const struct insn *insn = &w->f->insns[i];

		for (uint32_t regs = (uint32_t)insn->writes.gpr; regs; regs &= regs - 1)
			moved[__builtin_ctz(regs)] += lines_moved(insn) * stall_runs(w, b);
	}
}

static int find_steps(struct stall_work *w)
{
	if (!w->in->edge || w->f->nr_blocks > BLOCKS_MAX)
		return 0;
	w->moved = calloc((size_t)w->f->nr_blocks + 1, REGISTERS * sizeof(*w->moved));
	if (!w->moved)
		return -ENOMEM;
	for (uint32_t b = 0; b < w->f->nr_blocks; b++)
		sum_edge_counts(w, b);
	return 0;
}

static double edge_counts_of(const struct stall_work *w, uint32_t b, uint8_t reg)
{
	return reg < REGISTERS ? w->moved[(size_t)w->component[b] * REGISTERS + reg] : 0;
}

/* The part of its executions in which the load at @insn of @b can touch a new cache line, as
 * stall_chance. If an address advances by 8 bytes, it is one in eight. */
static double stall_new_lines(const struct stall_work *w, uint32_t b, uint32_t insn)
{
	const struct insn *i = &w->f->insns[insn];
	double lines;

	if (!w->moved || stall_runs(w, b) <= 0)
		return 1;
	lines = w->fetched[b] + edge_counts_of(w, b, i->base) +
		SCALE_MAX * edge_counts_of(w, b, i->index);
	return fmax(fmin(lines / stall_runs(w, b), 1), STALL_CHANCE_LEAST);
}

enum {
	/* A cause with less than one in so many of the samples is not counted; fewer samples may
	 * be noise. */
	HARDLY = 50,
	FEW = 3,
};

/* ---- candidates ------------------------------------------------------------------------------ */

static bool is_call(const struct insn *insn)
{
	return insn->flow == INSN_CALL || insn->flow == INSN_INDIRECT_CALL;
}

/* The causes for which an instruction of this kind may wait. */
static uint16_t by_kind(const struct insn *insn)
{
	uint16_t c = 0;

	if (insn->kinds & (INSN_ATOMIC | INSN_BARRIER | INSN_SERIALIZE))
		return 1 << STALL_SYNCHRONIZATION |
		       (insn->kinds & INSN_LOAD ? 1 << STALL_MEMORY : 0);
	if (insn->kinds & INSN_LOAD)
		c |= 1 << STALL_MEMORY;
	if (insn->kinds & INSN_STORE)
		c |= 1 << STALL_STORE;
	if (insn->kinds & (INSN_DIVIDE | INSN_FP_DIVIDE))
		c |= 1 << STALL_DIVISION;
	else if (insn->kinds & (INSN_MULTIPLY | INSN_FP))
		c |= 1 << STALL_ARITHMETIC;
	return c;
}

/* Is the instruction the first one fetched from its cache line, on some path? */
static bool begins_line(const struct stall_work *w, uint32_t b, uint32_t insn)
{
	const struct insn *i = &w->f->insns[insn];
	uint64_t last = i->vaddr + i->len - 1;

	if (insn == w->f->blocks[b].insn)
		return true;
	return (i[-1].vaddr + i[-1].len - 1) / LINE != last / LINE;
}

/* The causes by which the instruction at index @insn of @b may have delayed the one behind it. */
static uint16_t causes_of(const struct stall_work *w, uint32_t b, uint32_t insn, double samples)
{
	uint16_t c = by_kind(&w->f->insns[insn]);

	/* If it is a call, the samples lie in the callee. */
	if (insn == w->f->blocks[b].insn && w->mispredicted[b] * HARDLY >= samples &&
	    !is_call(&w->f->insns[insn]))
		c |= 1 << STALL_BRANCH;
	if (!w->in_cache[b] && begins_line(w, b, insn))
		c |= 1 << STALL_FRONT_END;
	return c;
}

/* The causes of the instructions that others may have waited for, and the instruction, if it is
 * a single one. */
struct suspects {
	uint16_t causes;
	uint32_t insn;	  /* FLOW_OUTSIDE: none, or several */
	double new_lines; /* the largest probability among its loads */
};

static void suspect(const struct stall_work *w, uint32_t b, uint32_t insn, double samples,
		    struct suspects *s)
{
	uint16_t c = causes_of(w, b, insn, samples);

	if (!c)
		return;
	if (c & 1 << STALL_MEMORY)
		s->new_lines = fmax(s->new_lines, stall_new_lines(w, b, insn));
	s->insn = s->causes ? FLOW_OUTSIDE : insn;
	s->causes |= c;
}

/* Samples in the blocks that @b's edges enter. */
static double samples_behind(const struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	double sum = 0;

	for (uint32_t i = 0; i < block->nr_out; i++) {
		uint32_t to = w->f->edges[w->f->out_of[block->out + i]].to;

		if (to != FLOW_OUTSIDE)
			sum += w->in->samples[w->f->blocks[to].insn];
	}
	return sum;
}

/*
 * Does @b end in a comparison with memory that the processor may fuse with its branch? Code that
 * waits for such a load lies behind both. A branch that is not fused retires after the comparison
 * at the earliest, so that the wait for the comparison lies on the branch.
 */
static bool ends_joined(const struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	uint32_t last = block->insn + block->nr_insns - 1;
	const struct insn *branch = &w->f->insns[last];
	double between = w->in->samples[last];

	return block->nr_insns > 1 && branch->flow == INSN_BRANCH &&
	       branch->reads.gpr & branch[-1].writes.gpr & INSN_FLAGS &&
	       branch[-1].kinds == INSN_LOAD &&
	       (between < FEW || between * HARDLY < samples_behind(w, b));
}

/* An edge that is hardly taken brings hardly any samples. */
static bool hardly_gone(const struct stall_work *w, uint32_t edge, uint32_t to)
{
	return w->in->edge && w->in->edge[edge] * HARDLY < stall_runs(w, to);
}

/* The last instructions of the blocks that lead to @b. */
static void suspect_before(const struct stall_work *w, uint32_t b, double samples,
			   struct suspects *s)
{
	const struct flow_block *block = &w->f->blocks[b];

	for (uint32_t i = 0; i < block->nr_in; i++) {
		uint32_t edge = w->f->into[block->in + i], from = w->f->edges[edge].from;
		const struct flow_block *source;

		if (from == FLOW_OUTSIDE || hardly_gone(w, edge, b))
			continue;
		source = &w->f->blocks[from];
		suspect(w, from, source->insn + source->nr_insns - 1, samples, s);
	}
}

/* Adds causes on the edges to @b: a wrong prediction, and the load that the branch depends on. */
static void suspect_ways(const struct stall_work *w, uint32_t b, double samples, struct suspects *s)
{
	const struct flow_block *block = &w->f->blocks[b];

	for (uint32_t i = 0; i < block->nr_in; i++) {
		uint32_t edge = w->f->into[block->in + i], from = w->f->edges[edge].from;
		const struct flow_block *source;

		if (from == FLOW_OUTSIDE || hardly_gone(w, edge, b) || !ends_joined(w, from))
			continue;
		source = &w->f->blocks[from];
		suspect(w, from, source->insn + source->nr_insns - 2, samples, s);
	}
	if (w->mispredicted[b] * HARDLY >= samples)
		s->causes |= 1 << STALL_BRANCH;
}

/* ---- what comes from outside ----------------------------------------------------------------- */

/* Causes that delay a value, and all causes. */
enum {
	LATE_VALUE = 1 << STALL_MEMORY | 1 << STALL_DIVISION | 1 << STALL_ARITHMETIC,
	ANYTHING = (1 << STALL_NR_CAUSES) - 1,
};

struct convention {
	uint32_t machine;
	struct insn_registers arguments, results;
};

/* The C calling conventions, with the registers' numbers as flow.h has them. */
static const struct convention *convention_of(uint32_t machine)
{
	static const struct convention known[] = {
		/* rdi, rsi, rdx, rcx, r8, r9, xmm0-7; rax, rdx, xmm0-1, st */
		{ EM_X86_64, { 0x3c6, 0xff }, { 0x5, 1ull << 40 | 0x3 } },
		/* on the stack; eax, edx, st */
		{ EM_386, { 0, 0 }, { 0x5, 1ull << 40 } },
		/* x0-8, v0-7; x0-1, v0-3 */
		{ EM_AARCH64, { 0x1ff, 0xff }, { 0x3, 0xf } },
		/* a0-7, fa0-7; a0-1, fa0-1 */
		{ EM_RISCV, { 0x3fc00, 0x3fc00 }, { 0xc00, 0xc00 } },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i].machine == machine)
			return &known[i];
	return NULL;
}

/* May control come to the first instruction of @b from outside, or back from a call? */
static void look_before(const struct stall_work *w, uint32_t b, bool *entry, bool *call)
{
	const struct flow_block *block = &w->f->blocks[b];

	for (uint32_t i = 0; i < block->nr_in; i++) {
		uint32_t from = w->f->edges[w->f->into[block->in + i]].from;
		const struct flow_block *source;

		if (from == FLOW_OUTSIDE) {
			*entry = true;
			continue;
		}
		source = &w->f->blocks[from];
		*call |= is_call(&w->f->insns[source->insn + source->nr_insns - 1]);
	}
}

/* Does control come to the instruction from outside, and may a value from there delay it? */
static bool waits_for_outside(const struct stall_work *w, uint32_t b, uint32_t insn, bool *comes)
{
	const struct insn_registers *reads = &w->f->insns[insn].reads;
	const struct convention *c = convention_of(w->in->machine);
	bool entry = false, call = false;
	struct insn_registers handed = { 0 };

	if (insn > w->f->blocks[b].insn)
		call = is_call(&w->f->insns[insn - 1]);
	else
		look_before(w, b, &entry, &call);
	*comes = entry || call;
	if (*comes && w->in->outside == STALL_PESSIMISTIC)
		return true;
	/* The convention covers only the procedure's start. */
	if (c && entry && b == w->f->entry)
		handed = c->arguments;
	if (c && call) {
		handed.gpr |= c->results.gpr;
		handed.vector |= c->results.vector;
	}
	return (reads->gpr & handed.gpr) || (reads->vector & handed.vector);
}

static uint16_t from_outside(const struct stall_work *w, uint32_t b, uint32_t insn)
{
	bool waits, comes;

	if (w->in->outside == STALL_OPTIMISTIC)
		return 0;
	waits = waits_for_outside(w, b, insn, &comes);
	if (comes && w->in->outside == STALL_PESSIMISTIC)
		return ANYTHING;
	if (!waits && insn > w->f->blocks[b].insn)
		waits = waits_for_outside(w, b, insn - 1, &comes);
	return waits ? LATE_VALUE : 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The candidates of the samples on @insn: the instruction before it waited, or itself (where the
 * machine shows that one). */
static uint16_t candidates_of(const struct stall_work *w, uint32_t b, uint32_t insn,
			      uint32_t *culprit)
{
	double samples = w->in->samples[insn];
	struct suspects s = { .insn = FLOW_OUTSIDE };
	uint32_t first = w->f->blocks[b].insn;
	uint16_t c, outside;

	if (insn > first)
		suspect(w, b, insn - 1, samples, &s);
	else
		suspect_before(w, b, samples, &s);
	if (!s.causes)
		suspect(w, b, insn, samples, &s);
	/* The first two instructions may retire together: then one of them has the samples of
	 * both. */
	if (insn == first || (insn == first + 1 && s.causes & 1 << STALL_BRANCH))
		suspect_ways(w, b, samples, &s);
	outside = from_outside(w, b, insn);
	c = s.causes | outside;
	w->new_lines[insn] = outside & 1 << STALL_MEMORY ? 1 : s.new_lines;
	*culprit = FLOW_OUTSIDE;
	if (__builtin_popcount(c) == 1 && s.insn != FLOW_OUTSIDE &&
	    c == by_kind(&w->f->insns[s.insn]) && c != 1 << STALL_STORE)
		*culprit = s.insn;
	return c;
}

static double stall_at_most(double samples);

/* ---- how often a cause can occur ------------------------------------------------------------- */

enum {
	/*
	 * The time of a wrong prediction: at most 25 cycles (A. Fog, The microarchitecture of
	 * Intel, AMD and VIA CPUs: 15 to 20 on current ones), each of eight instructions at the
	 * best pace. That pace may have no samples; then two instructions in a cycle at the average
	 * pace are assumed.
	 */
	PENALTY_BEST = 25 * 8,
	PENALTY_AVERAGE = 25 * 2,
	/* Frequencies of medium confidence may be off by this factor. */
	UNSURE = 2,
};

/* An upper bound of how often an edge is taken: the estimate, or the number that the samples
 * behind it imply where no other edge leads there. An estimate may starve one of two arms. */
static double gone(const struct stall_work *w, uint32_t edge)
{
	double n = w->in->edge[edge], by_samples;
	uint32_t to = w->f->edges[edge].to;

	if (to == FLOW_OUTSIDE || w->f->blocks[to].nr_in > 1 || w->per_run <= 0)
		return n;
	by_samples = stall_samples_in(w, to) / (w->f->blocks[to].nr_insns * w->per_run);
	return by_samples > n ? by_samples : n;
}

/* Calls and returns are predicted well. */
static bool ends_in_branch(const struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	uint8_t flow = w->f->insns[block->insn + block->nr_insns - 1].flow;

	return flow == INSN_BRANCH || flow == INSN_INDIRECT_JUMP;
}

/* The sum of the edges out of a block's branch. */
struct ways {
	double gone, samples; /* how often they are taken; samples in the blocks that they enter */
	uint32_t blind;	      /* number of edges whose cost may not be visible */
};

/* The samples of a block of one instruction may lie in the next block. */
static bool is_blind(const struct stall_work *w, uint32_t to)
{
	return to == FLOW_OUTSIDE || w->f->blocks[to].nr_insns < 2;
}

/* Adds an edge; @sign -1: removes it. */
static void ways_add(struct ways *ways, const struct stall_work *w, uint32_t edge, int sign)
{
	uint32_t to = w->f->edges[edge].to;

	ways->gone += sign * gone(w, edge);
	ways->samples += to == FLOW_OUTSIDE ? 0 : sign * stall_samples_in(w, to);
	ways->blind += is_blind(w, to) ? (uint32_t)sign : 0;
}

/*
 * Bounds how often @edge was taken against the prediction: at most as often as it, or the other
 * edges, were taken, as no edge is predicted more often than it is taken. So the most usual edge is
 * mispredicted at most as often as the others are taken, and takes at most the samples behind them.
 */
static void add_wrong(struct stall_work *w, uint32_t edge, const struct ways *all)
{
	double mine = gone(w, edge), most, wrong;
	double penalty = fmax(PENALTY_BEST * w->pace, PENALTY_AVERAGE * w->per_run);
	uint32_t to = w->f->edges[edge].to;
	struct ways others = *all;

	ways_add(&others, w, edge, -1);
	wrong = fmin(mine, fmax(others.gone, 0));
	most = wrong * penalty;
	if (mine > others.gone && !others.blind)
		most = fmin(most, UNSURE * stall_at_most(fmax(others.samples, 0)));
	w->wrong[to] += wrong;
	w->mispredicted[to] += most;
}

/* The edges of each branch are summed once, as tables have thousands of them. */
/* Fills @wrong and @mispredicted, once the pace is known. */
static void stall_find_mispredicted(struct stall_work *w)
{
	for (uint32_t b = 0; b < w->f->nr_blocks; b++) {
		const struct flow_block *block = &w->f->blocks[b];
		const uint32_t *out = &w->f->out_of[block->out];
		struct ways all = { 0 };

		if (!ends_in_branch(w, b))
			continue;
		for (uint32_t i = 0; w->in->edge && i < block->nr_out; i++)
			ways_add(&all, w, out[i], 1);
		for (uint32_t i = 0; i < block->nr_out; i++) {
			uint32_t to = w->f->edges[out[i]].to;

			if (to == FLOW_OUTSIDE)
				continue;
			if (w->in->edge)
				add_wrong(w, out[i], &all);
			else
				w->wrong[to] = w->mispredicted[to] = INFINITY;
		}
	}
}

/* A value of the edges to @b, and to a block of one instruction before it, whose samples lie in
 * @b. */
static double near(const struct stall_work *w, uint32_t b, const double *of_ways)
{
	const struct flow_block *block = &w->f->blocks[b];
	double sum = of_ways[b];

	for (uint32_t i = 0; i < block->nr_in; i++) {
		uint32_t from = w->f->edges[w->f->into[block->in + i]].from;

		if (from != FLOW_OUTSIDE && from != b && w->f->blocks[from].nr_insns == 1)
			sum += of_ways[from];
	}
	return sum;
}

/* The largest number of @b's samples that wrong predictions can have taken; INFINITY: not known. */
static double stall_at_most_mispredicted(const struct stall_work *w, uint32_t b)
{
	return w->in->outside == STALL_PESSIMISTIC ? INFINITY : near(w, b, w->mispredicted);
}

/* The part of @b's executions in which the cause can occur: above 0, up to 1. */
static double stall_chance(const struct stall_work *w, uint32_t b, int cause)
{
	double chance = 1;

	if (stall_runs(w, b) <= 0 || w->in->outside == STALL_PESSIMISTIC)
		return 1;
	if (cause == STALL_BRANCH)
		chance = near(w, b, w->wrong) / stall_runs(w, b);
	if (cause == STALL_FRONT_END)
		chance = w->fetched[b] / stall_runs(w, b);
	return fmax(fmin(chance, 1), STALL_CHANCE_LEAST);
}

/* ---- limits from samples of other events ----------------------------------------------------- */

static double stall_at_most(double samples)
{
	return samples + 1.645 * sqrt(samples) + 3;
}

static double events_in(const struct stall_work *w, uint32_t b, const struct stall_evidence *e)
{
	const struct flow_block *block = &w->f->blocks[b];
	double sum = 0;

	for (uint32_t i = 0; i < block->nr_insns; i++)
		sum += e->samples[block->insn + i];
	return sum;
}

/* The event's samples in the block and its neighbours; a block both before and behind it counts
 * twice, which suits a limit. */
static double events_near(const struct stall_work *w, uint32_t b, const struct stall_evidence *e)
{
	const struct flow_block *block = &w->f->blocks[b];
	uint32_t nr = block->nr_in + block->nr_out;
	double sum = events_in(w, b, e);

	for (uint32_t i = 0; i < nr; i++) {
		bool in = i < block->nr_in;
		uint32_t other = in ? w->f->edges[w->f->into[block->in + i]].from
				    : w->f->edges[w->f->out_of[block->out + i - block->nr_in]].to;

		if (other != FLOW_OUTSIDE && other != b)
			sum += events_in(w, other, e);
	}
	return sum;
}

/* The part of the block's stalled samples that an event allows its cause. */
static double allowed(const struct stall_work *w, uint32_t b, const struct stall_evidence *e,
		      double stalled)
{
	double beside = e->beside ? e->beside[b] : 0, near = events_near(w, b, e);

	if (near <= 0 && beside <= 0 && 3 * e->each <= stalled)
		return 0;
	return stall_at_most(near) * e->each + beside;
}

/* Does the event limit the cause? Memory stalls that begin outside have their events there, so
 * these limit the cause under STALL_OPTIMISTIC alone. */
static bool speaks(const struct stall_work *w, const struct stall_evidence *e, int cause)
{
	return e->cause == (enum stall_cause)cause &&
	       (cause != STALL_MEMORY || w->in->outside == STALL_OPTIMISTIC);
}

/* Limits each cause: @high is its stalled samples in the block, and @part becomes the part of
 * them that the events, and for branches the flow, allow; 1 without any limit. */
static void stall_parts(const struct stall_work *w, uint32_t b, double stalled, const double *high,
			double *part)
{
	for (int c = 0; c < STALL_NR_CAUSES; c++) {
		double most = INFINITY, more = 0;

		for (size_t i = 0; high[c] > 0 && i < w->in->nr_evidence; i++) {
			const struct stall_evidence *e = &w->in->evidence[i];

			if (!speaks(w, e, c))
				continue;
			if (e->adds)
				more += allowed(w, b, e, stalled);
			else
				most = fmin(most, allowed(w, b, e, stalled));
		}
		if (c == STALL_BRANCH)
			most = fmin(most, stall_at_most_mispredicted(w, b));
		part[c] = most + more < high[c] ? (most + more) / high[c] : 1;
	}
}

enum {
	LOOP_MAX = 16 << 10, /* bytes of code that stay in any instruction cache */
	TRACE = 2, /* instructions that may retire together, so that one has the samples of both */
};

const char *stall_cause_name(enum stall_cause cause)
{
	static const char *const names[STALL_NR_CAUSES] = {
		[STALL_MEMORY] = "memory",
		[STALL_STORE] = "stores",
		[STALL_SYNCHRONIZATION] = "synchronization",
		[STALL_DIVISION] = "division",
		[STALL_ARITHMETIC] = "arithmetic",
		[STALL_BRANCH] = "branch misprediction",
		[STALL_FRONT_END] = "front end",
	};

	return cause < STALL_NR_CAUSES ? names[cause] : "unexplained";
}

char stall_cause_letter(enum stall_cause cause)
{
	static const char letters[STALL_NR_CAUSES + 1] = {
		[STALL_MEMORY] = 'd',	 [STALL_STORE] = 'w',	   [STALL_SYNCHRONIZATION] = 'y',
		[STALL_DIVISION] = 'v',	 [STALL_ARITHMETIC] = 'a', [STALL_BRANCH] = 'p',
		[STALL_FRONT_END] = 'I', [STALL_NR_CAUSES] = '?',
	};

	return letters[cause];
}

/* The likely samples of a cause, or the unexplained ones. */
static double likely(const struct stall_tally *t, enum stall_cause cause)
{
	return cause < STALL_NR_CAUSES ? t->cause[cause].likely : t->unexplained;
}

size_t stall_order(const struct stall_tally *t, enum stall_cause order[STALL_NR_CAUSES + 1])
{
	size_t nr = 0;

	for (int k = 0; k <= STALL_NR_CAUSES; k++) {
		double mine = likely(t, (enum stall_cause)k);
		size_t at = nr;

		if (mine <= 0)
			continue;
		for (; at > 0 && likely(t, order[at - 1]) < mine; at--)
			order[at] = order[at - 1];
		order[at] = (enum stall_cause)k;
		nr++;
	}
	return nr;
}

/* ---- the pace -------------------------------------------------------------------------------- */

struct trace {
	double pace, weight;
};

static int by_pace(const void *a, const void *b)
{
	const struct trace *x = a, *y = b;

	return (x->pace > y->pace) - (x->pace < y->pace);
}

/* Collects each run of a few instructions of an executed block. */
static uint32_t traces(const struct stall_work *w, struct trace *v)
{
	uint32_t nr = 0;

	for (uint32_t b = 0; b < w->f->nr_blocks; b++) {
		const struct flow_block *block = &w->f->blocks[b];

		for (uint32_t i = 0; i < block->nr_insns; i += TRACE) {
			uint32_t n = block->nr_insns - i < TRACE ? block->nr_insns - i : TRACE;
			double samples = 0;

			if (stall_runs(w, b) <= 0 || (n < TRACE && block->nr_insns > TRACE))
				continue;
			for (uint32_t k = 0; k < n; k++)
				samples += w->in->samples[block->insn + i + k];
			v[nr++] = (struct trace){ samples / (stall_runs(w, b) * n),
						  stall_runs(w, b) * n };
		}
	}
	return nr;
}

/* The pace is the lower tenth: some runs have hardly any samples, as their neighbours have them. */
static int find_pace(struct stall_work *w)
{
	struct trace *v = calloc((size_t)w->f->nr_insns + 1, sizeof(*v));
	double total = 0, sum = 0, samples = 0;
	uint32_t nr;

	if (!v)
		return -ENOMEM;
	nr = traces(w, v);
	qsort(v, nr, sizeof(*v), by_pace);
	for (uint32_t i = 0; i < nr; i++) {
		total += v[i].weight;
		samples += v[i].pace * v[i].weight;
	}
	w->per_run = total > 0 ? samples / total : 0;
	for (uint32_t i = 0; i < nr && sum < total / 10; i++) {
		sum += v[i].weight;
		w->pace = v[i].pace;
	}
	free(v);
	return 0;
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* Strongly connected components (Kosaraju): blocks in order of finishing, then against the
 * edges. */
static void finish_order(struct stall_work *w, uint32_t *next)
{
	const struct flow *f = w->f;
	uint32_t nr = 0;

	memset(w->component, 0, f->nr_blocks * sizeof(*w->component));
	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		uint32_t depth = 0;

		if (w->component[b])
			continue;
		w->component[b] = 1;
		w->stack[depth++] = b;
		while (depth) {
			uint32_t at = w->stack[depth - 1], to;

			if (next[at] == f->blocks[at].nr_out) {
				w->order[nr++] = at;
				depth--;
				continue;
			}
			to = f->edges[f->out_of[f->blocks[at].out + next[at]++]].to;
			if (to != FLOW_OUTSIDE && !w->component[to]) {
				w->component[to] = 1;
				w->stack[depth++] = to;
			}
		}
	}
}

static void collect(struct stall_work *w, uint32_t b, uint32_t number)
{
	const struct flow *f = w->f;
	uint32_t depth = 0;

	w->component[b] = number;
	w->stack[depth++] = b;
	while (depth) {
		const struct flow_block *block = &f->blocks[w->stack[--depth]];

		for (uint32_t i = 0; i < block->nr_in; i++) {
			uint32_t from = f->edges[f->into[block->in + i]].from;

			if (from == FLOW_OUTSIDE || w->component[from] != UINT32_MAX)
				continue;
			w->component[from] = number;
			w->stack[depth++] = from;
		}
	}
}

static bool is_loop(const struct flow *f, uint32_t b, const uint32_t *component)
{
	for (uint32_t i = 0; i < f->blocks[b].nr_out; i++) {
		uint32_t to = f->edges[f->out_of[f->blocks[b].out + i]].to;

		if (to != FLOW_OUTSIDE && component[to] == component[b])
			return true;
	}
	return false;
}

/* How often control enters @b from outside of its loop, or returns there from a call. */
static double fetches(const struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	double sum = block->nr_calls * stall_runs(w, b);

	for (uint32_t i = 0; w->in->edge && i < block->nr_in; i++) {
		uint32_t edge = w->f->into[block->in + i], from = w->f->edges[edge].from;

		if (from == FLOW_OUTSIDE || w->component[from] != w->component[b])
			sum += w->in->edge[edge];
	}
	return sum;
}

static int count_fetches(struct stall_work *w)
{
	uint32_t nr = w->f->nr_blocks;
	double *of_loop = calloc((size_t)nr + 1, sizeof(*of_loop));

	if (!of_loop)
		return -ENOMEM;
	for (uint32_t b = 0; b < nr; b++)
		of_loop[w->component[b]] += fetches(w, b);
	for (uint32_t b = 0; b < nr; b++)
		w->fetched[b] = w->in->edge ? of_loop[w->component[b]] : stall_runs(w, b);
	free(of_loop);
	return 0;
}

/* Marks the loops that stay in the cache, by the size of their executed code. */
static void judge_loops(struct stall_work *w, uint64_t *size, bool *calls)
{
	const struct flow *f = w->f;

	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		if (stall_samples_in(w, b) <= 0)
			continue;
		size[w->component[b]] += f->blocks[b].end - f->blocks[b].vaddr;
		calls[w->component[b]] |= f->blocks[b].nr_calls > 0;
	}
	for (uint32_t b = 0; b < f->nr_blocks; b++)
		w->in_cache[b] = is_loop(f, b, w->component) && !calls[w->component[b]] &&
				 size[w->component[b]] <= LOOP_MAX;
}

static int find_loops(struct stall_work *w)
{
	const struct flow *f = w->f;
	uint32_t *next = calloc((size_t)f->nr_blocks + 1, sizeof(*next)), number = 0;
	uint64_t *size = calloc((size_t)f->nr_blocks + 1, sizeof(*size));
	bool *calls = calloc((size_t)f->nr_blocks + 1, sizeof(*calls));
	int r = next && size && calls ? 0 : -ENOMEM;

	if (r >= 0) {
		finish_order(w, next);
		for (uint32_t b = 0; b < f->nr_blocks; b++)
			w->component[b] = UINT32_MAX;
		for (uint32_t i = f->nr_blocks; i--;)
			if (w->component[w->order[i]] == UINT32_MAX)
				collect(w, w->order[i], number++);
		judge_loops(w, size, calls);
		r = count_fetches(w);
	}
	free(next);
	free(size);
	free(calls);
	return r;
}

/* ---- tallies --------------------------------------------------------------------------------- */

/*
 * Divides samples in proportion to how often each cause can occur, but no cause gets more than its
 * part. A cause that has its full part leaves more to the others, so the shares are computed again.
 */
static void divide(uint16_t causes, const double *part, const double *chance, double *share)
{
	double left = 1;

	for (uint16_t open = causes, full = 1; open && full;) {
		double sum = 0, given = 0;

		full = 0;
		for (int c = 0; c < STALL_NR_CAUSES; c++)
			sum += open >> c & 1 ? chance[c] : 0;
		for (int c = 0; c < STALL_NR_CAUSES; c++) {
			if (!(open >> c & 1))
				continue;
			share[c] = fmin(part[c], left * chance[c] / sum);
			if (share[c] < part[c])
				continue;
			full |= (uint16_t)(1 << c);
			given += part[c];
		}
		open &= (uint16_t)~full;
		left -= given;
	}
}

/*
 * Divides an instruction's stalled samples among its causes, each of which gets at most its part. A
 * cause gets @low samples if the others together cannot take them.
 */
static double add_stall(struct stall_tally *t, uint16_t causes, double samples, const double *part,
			const double *chance)
{
	double sum = 0, unexplained, share[STALL_NR_CAUSES] = { 0 };

	for (int c = 0; c < STALL_NR_CAUSES; c++)
		sum += causes >> c & 1 ? part[c] : 0;
	unexplained = sum < 1 ? (1 - sum) * samples : 0;
	t->unexplained += unexplained;
	divide(causes, part, chance, share);
	for (int c = 0; c < STALL_NR_CAUSES; c++) {
		double others = sum - part[c];

		if (!(causes >> c & 1) || part[c] <= 0)
			continue;
		t->cause[c].high += part[c] * samples;
		t->cause[c].likely += share[c] * samples;
		t->cause[c].low += fmax(0, fmin(part[c], 1 - others)) * samples;
	}
	return unexplained;
}

/* Removes candidates that the events rule out. */
static void strike_out(struct stall *out, uint32_t insn, const double *part)
{
	for (int c = 0; c < STALL_NR_CAUSES; c++)
		if (part[c] <= 0)
			out->candidates[insn] &= (uint16_t) ~(1 << c);
	if (!out->candidates[insn])
		out->culprit[insn] = FLOW_OUTSIDE;
}

/* Finds the causes of the stalled samples, which out->stalled has by instruction. */
static void tally_stalls(const struct stall_work *w, uint32_t b, struct stall_tally *t,
			 double stalled)
{
	const struct flow_block *block = &w->f->blocks[b];
	double high[STALL_NR_CAUSES] = { 0 }, part[STALL_NR_CAUSES], chance[STALL_NR_CAUSES];
	struct stall *out = w->out;

	for (uint32_t i = block->insn; i < block->insn + block->nr_insns; i++) {
		if (out->stalled[i] <= 0)
			continue;
		out->candidates[i] = candidates_of(w, b, i, &out->culprit[i]);
		for (int c = 0; c < STALL_NR_CAUSES; c++)
			high[c] += out->candidates[i] >> c & 1 ? out->stalled[i] : 0;
	}
	stall_parts(w, b, stalled, high, part);
	for (int c = 0; c < STALL_NR_CAUSES; c++)
		chance[c] = stall_chance(w, b, c);
	for (uint32_t i = block->insn; i < block->insn + block->nr_insns; i++) {
		strike_out(out, i, part);
		chance[STALL_MEMORY] = w->new_lines[i];
		out->unexplained[i] =
			add_stall(t, out->candidates[i], out->stalled[i], part, chance);
	}
}

static void tally_block(const struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	struct stall_tally *t = &w->out->block[b];
	double per_insn = w->pace * stall_runs(w, b), stalled, above = 0;

	for (uint32_t i = block->insn; i < block->insn + block->nr_insns; i++) {
		t->samples += w->in->samples[i];
		above += w->in->samples[i] > per_insn ? w->in->samples[i] - per_insn : 0;
	}
	t->execution =
		per_insn * block->nr_insns < t->samples ? per_insn * block->nr_insns : t->samples;
	stalled = t->samples - t->execution;
	/* Samples above the pace are scaled down: they exceed the stalled ones where neighbours
	 * have none. */
	for (uint32_t i = block->insn; above > 0 && i < block->insn + block->nr_insns; i++)
		if (w->in->samples[i] > per_insn)
			w->out->stalled[i] = (w->in->samples[i] - per_insn) / above * stalled;
	if (above > 0)
		tally_stalls(w, b, t, stalled);
	else
		t->execution = t->samples;
}

void stall_tally_add(struct stall_tally *to, const struct stall_tally *t)
{
	to->samples += t->samples;
	to->execution += t->execution;
	to->unexplained += t->unexplained;
	for (int c = 0; c < STALL_NR_CAUSES; c++) {
		to->cause[c].low += t->cause[c].low;
		to->cause[c].likely += t->cause[c].likely;
		to->cause[c].high += t->cause[c].high;
	}
}

static int open_work(struct stall_work *w)
{
	size_t nr = (size_t)w->f->nr_blocks + 1;

	w->in_cache = calloc(nr, sizeof(*w->in_cache));
	w->fetched = calloc(nr, sizeof(*w->fetched));
	w->wrong = calloc(nr, sizeof(*w->wrong));
	w->mispredicted = calloc(nr, sizeof(*w->mispredicted));
	w->new_lines = calloc((size_t)w->f->nr_insns + 1, sizeof(*w->new_lines));
	w->stack = calloc(nr, sizeof(*w->stack));
	w->order = calloc(nr, sizeof(*w->order));
	w->component = calloc(nr, sizeof(*w->component));
	w->out->block = calloc(nr, sizeof(*w->out->block));
	w->out->candidates = calloc((size_t)w->f->nr_insns + 1, sizeof(*w->out->candidates));
	w->out->stalled = calloc((size_t)w->f->nr_insns + 1, sizeof(*w->out->stalled));
	w->out->unexplained = calloc((size_t)w->f->nr_insns + 1, sizeof(*w->out->unexplained));
	w->out->culprit = calloc((size_t)w->f->nr_insns + 1, sizeof(*w->out->culprit));
	if (!w->in_cache || !w->fetched || !w->wrong || !w->mispredicted || !w->new_lines ||
	    !w->stack || !w->order || !w->component || !w->out->block || !w->out->candidates ||
	    !w->out->stalled || !w->out->unexplained || !w->out->culprit)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->f->nr_insns; i++)
		w->out->culprit[i] = FLOW_OUTSIDE;
	return 0;
}

int stall_find(const struct stall_input *in, struct stall *out)
{
	struct stall_work w = { .in = in, .f = in->flow, .out = out };
	int r;

	memset(out, 0, sizeof(*out));
	r = open_work(&w);
	if (r >= 0)
		r = find_pace(&w);
	if (r >= 0)
		r = find_loops(&w);
	if (r >= 0)
		r = find_steps(&w);
	if (r >= 0)
		stall_find_mispredicted(&w);
	for (uint32_t b = 0; r >= 0 && b < w.f->nr_blocks; b++) {
		tally_block(&w, b);
		stall_tally_add(&out->total, &out->block[b]);
	}
	free(w.in_cache);
	free(w.fetched);
	free(w.wrong);
	free(w.mispredicted);
	free(w.new_lines);
	free(w.moved);
	free(w.stack);
	free(w.order);
	free(w.component);
	if (r < 0)
		stall_release(out);
	return r;
}

void stall_release(struct stall *s)
{
	free(s->block);
	free(s->candidates);
	free(s->stalled);
	free(s->unexplained);
	free(s->culprit);
	memset(s, 0, sizeof(*s));
}
