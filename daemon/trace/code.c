/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks for what traces met and nobody had translated. Code is read by the reader process and
 * translated by the jailed one; whoever makes code faster than that is worth is not kept up with.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace_parts.h"

/* CPU time for translating: three seconds for what is new, and then one in so many of one CPU's;
 * where traces are on by default, of each. */
#define BUDGET_NS 3000000000ull
enum { CODE_SHARE = 20, CODE_SHARE_DEFAULT = 5000 };
/* The longest time of one turn: while helpers work, or wait for a CPU, dcpid reads nothing else. */
#define SERVE_NS 100000000ull
/* The part of it for code ahead, which can wait until the misses that came meanwhile are served. */
#define AHEAD_NS 10000000ull
/* Only what the first blocks lead to: of those further on most never run. */
enum { AHEAD_BLOCKS = 8 };
/* Places of one process in a second. */
enum { PLACES_MAX = 1000 };
/* Beyond that all is forgotten. */
enum { KNOWN_MAX = 131072 };
/* So often in a row a place may get other code; then traces end there for a while. */
enum { CHANGES_MAX = 64 };
#define PATIENCE_NS 10000000000ull
/* Traces that miss code between two turns, for which it is worth to look again soon. */
enum { MISSES_MANY = 8 };
/* A block that did not fit into the driver's table is not tried again before this time. */
#define FULL_NS 500000000ull

/* A place where a block was put, or tried. */
struct known {
	uint64_t put_ns;
	unsigned int changes; /* since there was none for PATIENCE_NS */
};

/* ---- what may be served ---------------------------------------------------------------------- */

static void refill(struct trace_code *c, uint32_t nr_cpus)
{
	uint64_t now = base_now_ns(), passed = now - c->refilled_ns;

	if (!c->refilled_ns)
		c->budget_ns = BUDGET_NS;
	else
		c->budget_ns +=
			nr_cpus ? passed * nr_cpus / CODE_SHARE_DEFAULT : passed / CODE_SHARE;
	c->budget_ns = c->budget_ns > BUDGET_NS ? BUDGET_NS : c->budget_ns;
	c->refilled_ns = now;
}

/* Two processes on one share begin each other's count anew; then the budget of all bounds them. */
static bool has_share(struct trace_code *c, uint32_t tgid)
{
	struct trace_share *s = &c->shares[tgid % TRACE_NR_SHARES];
	uint64_t now = base_now_ns();

	if (s->tgid != tgid || now - s->second_ns > 1000000000)
		*s = (struct trace_share){ .second_ns = now, .tgid = tgid };
	return s->nr_places++ < PLACES_MAX;
}

static struct known *known_find(const struct trace_code *c, const struct vtrace_place *place)
{
	return base_map_get(&c->known, place, sizeof(*place));
}

/* It was put, or tried, now. */
static int known_set(struct trace_code *c, const struct vtrace_place *place)
{
	struct known *k = known_find(c, place);
	uint64_t now = base_now_ns();
	int r;

	if (k) {
		k->changes = now - k->put_ns < PATIENCE_NS ? k->changes + 1 : 0;
		k->put_ns = now;
		return 0;
	}
	if (c->known.nr >= KNOWN_MAX)
		trace_code_release(c);
	k = calloc(1, sizeof(*k));
	r = k ? base_map_set(&c->known, place, sizeof(*place), k) : -ENOMEM;
	if (r < 0)
		free(k);
	else
		k->put_ns = now;
	return r;
}

/* The trace may be older than the block that it lacked. */
static bool is_served(const struct trace_code *c, const struct insn_trace *w,
		      const struct vtrace_place *place)
{
	const struct known *k = known_find(c, place);

	return k && (w->time_ns <= k->put_ns ||
		     (k->changes > CHANGES_MAX && base_now_ns() - k->put_ns < PATIENCE_NS));
}

/* ---- the code -------------------------------------------------------------------------------- */

/* Two pages; what is near to each other shares them within one call. 1; 0: nothing is there;
 * negative: they cannot be read. */
static int fetch(struct traces *t, uint32_t tgid, uint64_t pc)
{
	struct trace_code *c = &t->code;
	uint64_t base = pc & ~4095ull;
	ssize_t n;

	if (c->fetched_len && c->fetched_tgid == tgid && c->fetched_base == base)
		return 1;
	c->fetched_len = 0;
	if (!t->config.reader)
		return -ESRCH;
	n = reader_code_read(t->config.reader, (int32_t)tgid, base, c->code, sizeof(c->code));
	if (n <= 0)
		return n == -EFAULT ? 0 : (int)n;
	c->fetched_tgid = tgid;
	c->fetched_base = base;
	c->fetched_len = (size_t)n;
	return 1;
}

/*
 * Take the code that the trace brought, which stood there at that instant; the rest may have
 * changed since.
 */
static void code_of(struct traces *t, const struct insn_trace *w, struct translator_request *q,
		    const uint8_t **code)
{
	struct trace_code *c = &t->code;
	size_t len = w->code_len;
	uint64_t off = w->end_pc & 4095;

	q->pc = w->end_pc;
	if (!(w->has & INSN_TRACE_KERNEL) && fetch(t, w->tgid, w->end_pc) > 0 &&
	    off + vtrace_place_len(w->end_pc) <= c->fetched_len) {
		if (len > c->fetched_len - off)
			len = c->fetched_len - off;
		memcpy(c->code + off, w->code, len);
		q->base = c->fetched_base;
		q->len = (uint32_t)c->fetched_len;
		*code = c->code;
		return;
	}
	q->base = w->end_pc;
	q->len = (uint32_t)len;
	*code = w->code;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* 0, or negative: no more of them. */
static int put(struct traces *t, const struct vtrace_code *c)
{
	int r = t->calls->put(t->config.driver, c);

	if (r >= 0) {
		t->stats.translated++;
		return known_set(&t->code, &c->place);
	}
	t->stats.refused++;
	return r;
}

/* Put blocks where none is yet; at the place itself the code differs from the known one. */
static int put_all(struct traces *t, const struct vtrace_code *blocks, size_t nr)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < nr; i++)
		if (i == 0 || !known_find(&t->code, &blocks[i].place))
			r = put(t, &blocks[i]);
	return r;
}

/* Once for each process, or nearly so: a slot that another one took is read again. */
static bool is_looked_at(struct trace_code *c, uint32_t tgid, uint64_t pc, bool now)
{
	const uint64_t key[2] = { tgid, pc };
	uint64_t hash = base_hash64(key, sizeof(key));
	uint64_t *looked = &c->looked[hash % TRACE_NR_LOOKED];
	bool is = *looked == hash;

	if (now)
		*looked = hash;
	return is;
}

/* Note the targets of blocks outside the bytes that were read: called routines, most of all. */
static void look_ahead(struct trace_code *c, uint32_t tgid, const struct translator_request *q,
		       const struct vtrace_code *blocks, size_t nr)
{
	for (size_t i = 0; i < nr && i < AHEAD_BLOCKS; i++)
		for (size_t j = 0; j < blocks[i].nr_successors; j++) {
			uint64_t pc = blocks[i].successors[j], off = pc - q->base;

			if (c->nr_ahead < TRACE_NR_AHEAD &&
			    (off >= q->len || q->len - off < vtrace_place_len(pc)) &&
			    !is_looked_at(c, tgid, pc, false))
				c->ahead[c->nr_ahead++] =
					(struct trace_ahead){ .pc = pc, .tgid = tgid };
		}
}

/* How many blocks there are of it now, in *@blocks, or negative. */
static int translate(struct traces *t, struct translator_request *q, const uint8_t *code,
		     const struct vtrace_place *place, const struct vtrace_code **blocks)
{
	enum vtrace_arch arch;
	int nr = translator_arch(&arch);

	if (nr >= 0) {
		q->arch = arch;
		nr = translator_call(t->translator, q, code, blocks);
		t->stats.failed += nr < 0;
	}
	if (nr < 0)
		known_set(&t->code, place);
	else if (put_all(t, *blocks, (size_t)nr) == -DCPI_ELIMIT)
		t->code.full_ns = base_now_ns();
	return nr;
}

/* ---- time ------------------------------------------------------------------------------------ */

static bool may_continue(const struct trace_code *c)
{
	uint64_t now = base_now_ns();

	return c->budget_ns && now < c->until_ns && !(c->full_ns && now - c->full_ns < FULL_NS);
}

/* CPU time of ours and of those that read and translate code. */
static uint64_t cpu_ns(const struct traces *t)
{
	return translator_cpu_ns(t->translator) +
	       (t->config.reader ? reader_cpu_ns(t->config.reader) : 0);
}

/* Charge the CPU time since @before. A helper may be another one now. */
static void spend(struct traces *t, uint64_t before)
{
	uint64_t now = cpu_ns(t), took = now > before ? now - before : 0;

	t->code.budget_ns -= took < t->code.budget_ns ? took : t->code.budget_ns;
}

/* ---- what is missing ------------------------------------------------------------------------- */

static void serve_one(struct traces *t, const struct insn_trace *w,
		      const struct vtrace_place *place)
{
	struct translator_request q = { 0 };
	const struct vtrace_code *blocks;
	const uint8_t *code;
	int nr;

	code_of(t, w, &q, &code);
	nr = translate(t, &q, code, place, &blocks);
	if (nr > 0 && code != w->code)
		look_ahead(&t->code, w->tgid, &q, blocks, (size_t)nr);
}

static int on_missing(void *ctx, const struct insn_trace *w)
{
	struct traces *t = ctx;
	struct trace_code *c = &t->code;
	struct vtrace_place place;
	uint64_t before;

	trace_values_met(t, w);
	t->stats.missing += w->code_len > 0;
	/* With fewer bytes than blocks are found by, none can be put. */
	if (w->code_len > sizeof(w->code) ||
	    !vtrace_place_of(w->end_pc, w->code, w->code_len, &place) || is_served(c, w, &place))
		return 0;
	if (!may_continue(c) || !has_share(c, w->tgid)) {
		t->stats.postponed++;
		return 0;
	}
	before = cpu_ns(t);
	serve_one(t, w, &place);
	spend(t, before);
	return 0;
}

/* Each look costs as much as some traces do: once there are many, until there are none. */
static bool is_busy(struct traces *t)
{
	struct trace_code *c = &t->code;
	struct driver_trace_stats d = { 0 };

	trace_driver_stats_get(t, &d);
	c->busy = d.missed - c->missed >= (c->busy ? 1 : MISSES_MANY);
	c->missed = d.missed;
	return c->busy;
}

/* ---- what lies ahead ------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct trace_ahead *x = a, *y = b;

	if (x->tgid != y->tgid)
		return (x->tgid > y->tgid) - (x->tgid < y->tgid);
	return (x->pc > y->pc) - (x->pc < y->pc);
}

/* 0, or negative where its process cannot be read. */
static int serve_place(struct traces *t, const struct trace_ahead *ahead)
{
	struct trace_code *c = &t->code;
	struct translator_request q = { .pc = ahead->pc };
	uint64_t off = q.pc & 4095;
	const struct vtrace_code *blocks;
	struct vtrace_place place;
	int r;

	if (is_looked_at(c, ahead->tgid, q.pc, true))
		return 0;
	r = fetch(t, ahead->tgid, q.pc);
	if (r <= 0 || off >= c->fetched_len)
		return r < 0 ? r : 0;
	q.base = c->fetched_base;
	q.len = (uint32_t)c->fetched_len;
	if (!vtrace_place_of(q.pc, c->code + off, q.len - off, &place) || known_find(c, &place))
		return 0;
	translate(t, &q, c->code, &place, &blocks);
	return 0;
}

/* Where time is short it is for what was met. */
static bool may_look_ahead(const struct trace_code *c, uint64_t until_ns)
{
	return may_continue(c) && c->budget_ns >= BUDGET_NS / 2 && base_now_ns() < until_ns;
}

/*
 * Where blocks that were met lead. One step, no further: most code never runs, and what does is
 * met. Where a place cannot be read, those of its process that follow are left out: the reader may
 * have had to wait for it.
 */
static void serve_ahead(struct traces *t)
{
	struct trace_code *c = &t->code;
	uint64_t until_ns = base_now_ns() + AHEAD_NS, before;
	size_t i = 0, nr = c->nr_ahead;
	int r;

	/* Places in one page share one read. */
	qsort(c->ahead, nr, sizeof(*c->ahead), by_place);
	for (; i < nr && may_look_ahead(c, until_ns); i++) {
		const struct trace_ahead ahead = c->ahead[i];

		before = cpu_ns(t);
		r = serve_place(t, &ahead);
		spend(t, before);
		while (r < 0 && i + 1 < nr && c->ahead[i + 1].tgid == ahead.tgid)
			i++;
	}
	if (c->budget_ns < BUDGET_NS / 2)
		i = c->nr_ahead;
	c->nr_ahead -= i;
	memmove(c->ahead, c->ahead + i, c->nr_ahead * sizeof(*c->ahead));
}

/* As many traces as their part of the machine allows. */
static void keep_pace(struct traces *t)
{
	struct driver_trace_stats d = { 0 };

	trace_driver_stats_get(t, &d);
	if (trace_pace_look(&t->pace, base_now_ns(), d.ran_ns + t->taken_ns))
		t->calls->every(t->config.driver, trace_every(t));
}

bool trace_serve(struct traces *t)
{
	if (t->pace.nr_cpus)
		keep_pace(t);
	if (!t->translator)
		return false;
	refill(&t->code, t->config.nr_cpus);
	t->code.fetched_len = 0;
	t->code.until_ns = base_now_ns() + SERVE_NS;
	t->calls->missing(t->config.driver, on_missing, t);
	serve_ahead(t);
	return is_busy(t) || t->code.nr_ahead;
}
