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
/* Beyond that all is forgotten. */
enum { KNOWN_MAX = 131072 };
/* So often in a row a place may get other code; then windows end there for a while. */
enum { CHANGES_MAX = 64 };
#define PATIENCE_NS 10000000000ull
/* What the driver has no room for is not tried again so soon. */
#define FULL_NS 5000000000ull

/* A place where a block was put, or tried. */
struct known {
	uint64_t put_ns;
	unsigned int changes; /* since there was none for PATIENCE_NS */
};

void windows_code_release(struct windows_code *c)
{
	void *k;

	for (size_t pos = 0; base_map_next(&c->known, &pos, &k);)
		free(k);
	base_map_release(&c->known);
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

/* Two that fall on one share take it from each other: all of them have the budget. */
static bool has_share(struct windows_code *c, uint32_t tgid)
{
	struct windows_share *s = &c->shares[tgid % WINDOWS_NR_SHARES];
	uint64_t now = base_now_ns();

	if (s->tgid != tgid || now - s->second_ns > 1000000000)
		*s = (struct windows_share){ .second_ns = now, .tgid = tgid };
	return s->nr_places++ < PLACES_MAX;
}

static struct known *known_find(const struct windows_code *c, const struct vtrace_place *place)
{
	return base_map_get(&c->known, place, sizeof(*place));
}

/* It was put, or tried, now. */
static int known_set(struct windows_code *c, const struct vtrace_place *place)
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
		windows_code_release(c);
	k = calloc(1, sizeof(*k));
	r = k ? base_map_set(&c->known, place, sizeof(*place), k) : -ENOMEM;
	if (r < 0)
		free(k);
	else
		k->put_ns = now;
	return r;
}

/* The window may be older than the block that it lacked. */
static bool is_served(const struct windows_code *c, const struct vtrace_window *w,
		      const struct vtrace_place *place)
{
	const struct known *k = known_find(c, place);

	return k && (w->time_ns <= k->put_ns ||
		     (k->changes > CHANGES_MAX && base_now_ns() - k->put_ns < PATIENCE_NS));
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
static void code_of(struct windows *t, const struct vtrace_window *w, struct translator_request *q,
		    const uint8_t **code)
{
	struct windows_code *c = &t->code;
	size_t len = w->code_len;
	uint64_t off = w->end_pc & 4095;

	fetch(t, w);
	q->pc = w->end_pc;
	if (off + vtrace_place_len(w->end_pc) <= c->fetched_len) {
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
static int put(struct windows *t, const struct vtrace_code *c)
{
	int r = t->calls->put(t->config.driver, c);

	if (r >= 0) {
		t->stats.translated++;
		return known_set(&t->code, &c->place);
	}
	t->stats.refused++;
	return r;
}

/* What comes later is put where it is not yet; the place itself is another one than was known. */
static int put_all(struct windows *t, const struct vtrace_code *blocks, size_t nr)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < nr; i++)
		if (i == 0 || !known_find(&t->code, &blocks[i].place))
			r = put(t, &blocks[i]);
	return r;
}

static void translate(struct windows *t, const struct vtrace_window *w,
		      const struct vtrace_place *place)
{
	struct translator_request q = { 0 };
	const struct vtrace_code *blocks;
	enum vtrace_arch arch;
	const uint8_t *code;
	int nr = translator_arch(&arch);

	if (nr >= 0) {
		code_of(t, w, &q, &code);
		q.arch = arch;
		nr = translator_call(t->translator, &q, code, &blocks);
		t->stats.failed += nr < 0;
	}
	if (nr < 0)
		known_set(&t->code, place);
	else if (put_all(t, blocks, (size_t)nr) == -DCPI_ELIMIT)
		t->code.full_ns = base_now_ns();
}

static int on_missing(void *ctx, const struct vtrace_window *w)
{
	struct windows *t = ctx;
	struct windows_code *c = &t->code;
	uint64_t began = base_now_ns(), took;
	struct vtrace_place place;

	t->nr_told++;
	windows_values_met(t, w);
	t->stats.missing += w->code_len > 0;
	/* Less than a block is found by is none that can be put. */
	if (w->code_len > sizeof(w->code) ||
	    !vtrace_place_of(w->end_pc, w->code, w->code_len, &place) || is_served(c, w, &place))
		return 0;
	if (!c->budget_ns || (c->full_ns && began - c->full_ns < FULL_NS) ||
	    !has_share(c, w->tgid)) {
		t->stats.postponed++;
		return 0;
	}
	translate(t, w, &place);
	took = base_now_ns() - began;
	c->budget_ns -= took < c->budget_ns ? took : c->budget_ns;
	return 0;
}

bool windows_serve(struct windows *t)
{
	uint64_t before = t->nr_told;

	if (!t->translator)
		return false;
	refill(&t->code);
	t->code.fetched_len = 0;
	t->calls->missing(t->config.driver, on_missing, t);
	return t->nr_told != before;
}
