/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks for what windows met and nobody had translated. Code is read by the reader process and
 * translated by the jailed one; whoever makes code faster than that is worth is not kept up with.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "windows_internal.h"

/* Time for translating: half a second at the start, later a fiftieth of one CPU. */
#define BUDGET_NS    500000000ull
#define BUDGET_SHARE 50
/* Places of one process in a second. */
enum { PLACES_MAX = 1000 };
/* Of a program that makes code at ever new addresses all is forgotten now and then. */
enum { KNOWN_MAX = 131072 };
/* So often a place may get other code; from then on windows end there. */
enum { CHANGES_MAX = 64 };
/* A process without windows for so long gives its room to others. */
#define IDLE_NS 60000000000ull
/* What the driver has no room for is not tried again so soon. */
#define FULL_NS 5000000000ull

/* A place of a program where blocks were put. */
struct known {
	uint64_t put_ns;
	unsigned int changes;
};

/* One life of a tgid, as far as its blocks go. */
struct windows_program {
	uint32_t tgid;
	struct base_map known; /* by struct key */
	uint64_t first_ns;     /* when its first block was put */
	uint64_t used_ns;      /* its last window */
	uint64_t second_ns;    /* when that began of which nr_places were served */
	unsigned int nr_places;
	bool over; /* to be forgotten */
};

struct key {
	uint64_t pc;
	uint32_t generation, pad;
};

/* ---- programs -------------------------------------------------------------------------------- */

static void free_program(struct windows_program *p)
{
	void *k;

	for (size_t pos = 0; base_map_next(&p->known, &pos, &k);)
		free(k);
	base_map_release(&p->known);
	free(p);
}

void windows_code_release(struct windows_code *c)
{
	void *p;

	for (size_t pos = 0; base_map_next(&c->by_tgid, &pos, &p);)
		free_program(p);
	base_map_release(&c->by_tgid);
}

static struct windows_program *program_find(const struct windows *t, uint32_t tgid)
{
	return base_map_get(&t->code.by_tgid, &tgid, sizeof(tgid));
}

static struct windows_program *program_get(struct windows *t, uint32_t tgid)
{
	struct windows_program *p = program_find(t, tgid);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->tgid = tgid;
	p->first_ns = p->used_ns = base_now_ns();
	if (base_map_set(&t->code.by_tgid, &tgid, sizeof(tgid), p) == 0)
		return p;
	free(p);
	return NULL;
}

static void forget(struct windows *t, struct windows_program *p)
{
	t->calls->forget(t->config.driver, p->tgid);
	base_map_del(&t->code.by_tgid, &p->tgid, sizeof(p->tgid));
	free_program(p);
}

void windows_code_used(struct windows *t, uint32_t tgid, uint64_t time_ns)
{
	struct windows_program *p = program_find(t, tgid);

	if (p && time_ns > p->used_ns)
		p->used_ns = time_ns;
}

void windows_ended(struct windows *t, int32_t tgid, uint64_t time_ns)
{
	struct windows_program *p = program_find(t, (uint32_t)tgid);

	windows_values_ended(t, tgid, time_ns);
	/* Blocks are put before the event of an exec is seen: then they are the new program's. */
	if (p && p->first_ns <= time_ns)
		p->over = true;
}

void windows_code_settle(struct windows *t)
{
	void *value;

	for (size_t pos = 0; base_map_next(&t->code.by_tgid, &pos, &value);) {
		struct windows_program *p = value;

		if (!p->over)
			continue;
		forget(t, p);
		pos = 0;
	}
}

/* The driver has no room: who needs it least goes. */
static void make_room(struct windows *t)
{
	uint64_t now = base_now_ns();
	struct windows_program *oldest = NULL;
	void *value;

	for (size_t pos = 0; base_map_next(&t->code.by_tgid, &pos, &value);) {
		struct windows_program *p = value;

		if (!oldest || p->used_ns < oldest->used_ns)
			oldest = p;
	}
	if (oldest && now - oldest->used_ns > IDLE_NS)
		forget(t, oldest);
	else
		t->code.full_ns = now;
}

/* ---- what may be served ---------------------------------------------------------------------- */

static void refill(struct windows_code *c)
{
	uint64_t now = base_now_ns();

	if (!c->refilled_ns)
		c->budget_ns = BUDGET_NS;
	else
		c->budget_ns += (now - c->refilled_ns) / BUDGET_SHARE;
	c->budget_ns = c->budget_ns > BUDGET_NS ? BUDGET_NS : c->budget_ns;
	c->refilled_ns = now;
}

static bool has_share(struct windows_program *p)
{
	uint64_t now = base_now_ns();

	if (now - p->second_ns > 1000000000) {
		p->second_ns = now;
		p->nr_places = 0;
	}
	return p->nr_places++ < PLACES_MAX;
}

static struct known *known_find(const struct windows_program *p, uint64_t pc, uint32_t generation)
{
	const struct key key = { .pc = pc, .generation = generation };

	return base_map_get(&p->known, &key, sizeof(key));
}

/* It was put, or tried, now. */
static int known_set(struct windows_program *p, uint64_t pc, uint32_t generation)
{
	const struct key key = { .pc = pc, .generation = generation };
	struct known *k = known_find(p, pc, generation);
	int r;

	if (k) {
		k->put_ns = base_now_ns();
		k->changes++;
		return 0;
	}
	k = calloc(1, sizeof(*k));
	r = k ? base_map_set(&p->known, &key, sizeof(key), k) : -ENOMEM;
	if (r < 0)
		free(k);
	else
		k->put_ns = base_now_ns();
	return r;
}

/* The window may be older than the block that it lacked. */
static bool is_served(const struct windows_program *p, const struct vtrace_window *w)
{
	const struct known *k = known_find(p, w->end_pc, w->end_generation);

	return k && (w->time_ns <= k->put_ns || k->changes > CHANGES_MAX);
}

/* ---- the code -------------------------------------------------------------------------------- */

/* Two pages; windows that end near to each other share them within one call. */
static void fetch(struct windows *t, const struct vtrace_window *w)
{
	struct windows_code *c = &t->code;
	uint64_t base = w->end_pc & ~4095ull;
	ssize_t n;

	if (c->fetched_len && c->fetched_tgid == w->tgid && c->fetched_base == base)
		return;
	c->fetched_len = 0;
	if (!t->config.reader || w->has & VTRACE_WINDOW_KERNEL)
		return;
	n = reader_code_read(t->config.reader, (int32_t)w->tgid, base, c->code, sizeof(c->code));
	if (n <= 0)
		return;
	c->fetched_tgid = w->tgid;
	c->fetched_base = base;
	c->fetched_len = (size_t)n;
}

/* What the window brought stood there at that instant; the rest may have changed since. */
static bool code_of(struct windows *t, const struct vtrace_window *w, struct translator_request *q,
		    const uint8_t **code)
{
	struct windows_code *c = &t->code;
	size_t len = w->code_len < VTRACE_WINDOW_CODE ? w->code_len : VTRACE_WINDOW_CODE;
	uint64_t off = w->end_pc & 4095;

	fetch(t, w);
	q->pc = w->end_pc;
	if (off < c->fetched_len) {
		if (len > c->fetched_len - off)
			len = c->fetched_len - off;
		memcpy(c->code + off, w->code, len);
		q->base = c->fetched_base;
		q->len = (uint32_t)c->fetched_len;
		*code = c->code;
		return true;
	}
	q->base = w->end_pc;
	q->len = (uint32_t)len;
	*code = w->code;
	return len > 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* 0, or negative: no more of them. */
static int put(struct windows *t, struct windows_program *p, uint32_t generation,
	       const struct vtrace_code *c)
{
	int r = t->calls->put(t->config.driver, p->tgid, generation, c);

	if (r >= 0) {
		t->stats.translated++;
		return known_set(p, c->block.pc, generation);
	}
	t->stats.refused++;
	return r;
}

/* What comes later is put where it is not yet; the place itself is another one than was known. */
static int put_all(struct windows *t, struct windows_program *p, uint32_t generation,
		   const struct vtrace_code *blocks, size_t nr)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < nr; i++)
		if (i == 0 || !known_find(p, blocks[i].block.pc, generation))
			r = put(t, p, generation, &blocks[i]);
	return r;
}

static void translate(struct windows *t, struct windows_program *p, const struct vtrace_window *w)
{
	struct translator_request q = { 0 };
	const struct vtrace_code *blocks;
	enum vtrace_arch arch;
	const uint8_t *code;
	int nr = translator_arch(&arch);

	if (nr < 0 || !code_of(t, w, &q, &code)) {
		known_set(p, w->end_pc, w->end_generation);
		return;
	}
	q.arch = arch;
	nr = translator_call(t->translator, &q, code, &blocks);
	if (nr < 0) {
		t->stats.failed++;
		known_set(p, w->end_pc, w->end_generation);
		return;
	}
	if (put_all(t, p, w->end_generation, blocks, (size_t)nr) == -DCPI_ELIMIT)
		make_room(t);
}

static int on_missing(void *ctx, const struct vtrace_window *w)
{
	struct windows *t = ctx;
	struct windows_code *c = &t->code;
	uint64_t began = base_now_ns(), took;
	struct windows_program *p;

	t->stats.missing++;
	windows_values_met(t, w);
	p = program_get(t, w->tgid);
	if (!p || is_served(p, w))
		return 0;
	if (p->known.nr >= KNOWN_MAX) {
		forget(t, p);
		return 0;
	}
	if (!c->budget_ns || (c->full_ns && began - c->full_ns < FULL_NS) || !has_share(p)) {
		t->stats.postponed++;
		return 0;
	}
	translate(t, p, w);
	took = base_now_ns() - began;
	c->budget_ns -= took < c->budget_ns ? took : c->budget_ns;
	return 0;
}

bool windows_serve(struct windows *t)
{
	uint64_t before = t->stats.missing;

	if (!t->translator)
		return false;
	refill(&t->code);
	t->code.fetched_len = 0;
	t->calls->missing(t->config.driver, on_missing, t);
	return t->stats.missing != before;
}
