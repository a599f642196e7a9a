/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpid-translate: the jailed helper of dcpid that makes micro-ops of machine code (translator.h).
 * Not for people: it is started with its socket as descriptor 0, and ends when that is closed.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "translator.h"

enum {
	NR_ANNOUNCED = 1 << 17, /* a power of two */
	NR_NODES = 4 * TRANSLATOR_BLOCKS,
	MEMORY_BYTES = 1 << 30,
};

/* A block that was answered, by its place, and where it goes on, from where it stands. Of other
 * code that begins alike that is elsewhere, and one that takes another's slot is forgotten: both
 * cost a translation. */
struct announced {
	uint64_t hash; /* 0: nothing */
	int32_t by[3]; /* 0: nowhere */
	int32_t depth; /* so much behind it was answered too */
};

/* A block on the way from the one that is asked for. */
struct node {
	uint64_t pc, hash;
	int level; /* blocks between it and that one */
	int32_t by[3];
};

struct work {
	struct vtrace_translator *translators[2];
	struct translator_request q;
	uint8_t code[TRANSLATOR_CODE];
	struct vtrace_code blocks[TRANSLATOR_BLOCKS]; /* the answer */
	size_t nr;
	struct node nodes[NR_NODES];
	size_t nr_nodes;
	struct announced announced[NR_ANNOUNCED];
};

static struct announced *announced_at(struct work *w, uint64_t hash)
{
	return &w->announced[hash / 2 % NR_ANNOUNCED];
}

/* All that follows was answered up to level @done. */
static void remember(struct work *w, int done)
{
	for (size_t i = 0; i < w->nr_nodes; i++) {
		const struct node *n = &w->nodes[i];
		struct announced *t = announced_at(w, n->hash);
		int depth = done > n->level ? done - n->level : 0;

		if (t->hash == n->hash && t->depth >= depth)
			continue;
		*t = (struct announced){ .hash = n->hash, .depth = depth };
		memcpy(t->by, n->by, sizeof(t->by));
	}
}

static int open_translator(struct work *w)
{
	if (w->q.arch > VTRACE_AARCH64)
		return -DCPI_EUNSUPPORTED;
	if (w->translators[w->q.arch])
		return 0;
	return vtrace_translator_open((enum vtrace_arch)w->q.arch, &w->translators[w->q.arch]);
}

static bool is_full(const struct work *w)
{
	return w->nr == TRANSLATOR_BLOCKS || w->nr_nodes == NR_NODES;
}

static bool is_there(const struct work *w, uint64_t pc)
{
	for (size_t i = 0; i < w->nr_nodes; i++)
		if (w->nodes[i].pc == pc)
			return true;
	return false;
}

/* Further than any request reaches is nowhere. */
static int32_t distance(const struct node *n, uint64_t pc)
{
	int64_t by = (int64_t)(pc - n->pc);

	return by == (int32_t)by ? (int32_t)by : 0;
}

/* Continue behind a call, where it returns to, and at the targets of a table of jumps. */
static int make(struct work *w, struct node *n)
{
	struct vtrace_code *c = &w->blocks[w->nr];
	uint64_t off = n->pc - w->q.base;
	int r = vtrace_translate(w->translators[w->q.arch], w->code + off, w->q.len - off, n->pc,
				 c);

	if (r < 0)
		return r;
	w->nr++;
	for (int i = 0; i < c->nr_successors; i++)
		n->by[i] = distance(n, c->successors[i]);
	n->by[2] = c->block.len;
	return 0;
}

/*
 * Add a block. Code outside the bytes given is left to another request; a block that was answered
 * before is not repeated unless it is the one asked for.
 */
static int add(struct work *w, uint64_t pc, int level)
{
	struct node *n = &w->nodes[w->nr_nodes];
	uint64_t off = pc - w->q.base;
	const struct announced *t;
	struct vtrace_place place;
	int r = 0;

	if (is_full(w) || off >= w->q.len || is_there(w, pc) ||
	    !vtrace_place_of(pc, w->code + off, w->q.len - off, &place))
		return 0;
	*n = (struct node){ .pc = pc, .level = level };
	n->hash = (base_hash64(&place, sizeof(place)) ^ w->q.arch << 1) | 1;
	t = announced_at(w, n->hash);
	if (level && t->hash == n->hash && t->depth >= TRANSLATOR_DEPTH - level)
		return 0;
	if (level && t->hash == n->hash)
		memcpy(n->by, t->by, sizeof(n->by));
	else
		r = make(w, n);
	w->nr_nodes += r == 0;
	return r;
}

static int follow(struct work *w, const struct node *n)
{
	int r = 0;

	for (int i = 0; r == 0 && i < 3; i++)
		if (n->by[i])
			r = add(w, n->pc + (uint64_t)(int64_t)n->by[i], n->level + 1);
	return r;
}

static int translate(struct work *w)
{
	size_t at = 0;
	int r = open_translator(w), level = 0;

	w->nr = w->nr_nodes = 0;
	if (r == 0)
		r = add(w, w->q.pc, 0);
	for (; r == 0 && level < TRANSLATOR_DEPTH && !is_full(w); level++) {
		size_t end = w->nr_nodes;

		for (; r == 0 && at < end; at++)
			r = follow(w, &w->nodes[at]);
	}
	/* One that is full may lack some of its last level. */
	remember(w, is_full(w) ? level - 1 : level);
	return r;
}

static int serve_one(struct work *w)
{
	struct translator_answer a = { 0 };
	int r = base_read_all(TRANSLATOR_SOCKET, &w->q, sizeof(w->q));

	if (r < 0 || !w->q.len || w->q.len > TRANSLATOR_CODE)
		return r < 0 ? r : -DCPI_EFORMAT;
	r = base_read_all(TRANSLATOR_SOCKET, w->code, w->q.len);
	if (r < 0)
		return r;
	r = translate(w);
	if (r < 0)
		return r;
	a.nr = (uint32_t)w->nr;
	r = base_write_all(TRANSLATOR_SOCKET, &a, sizeof(a));
	return r < 0 ? r : base_write_all(TRANSLATOR_SOCKET, w->blocks, w->nr * sizeof(*w->blocks));
}

int main(int argc, char **argv)
{
	const struct base_jail jail = { .nr_fds = 1, .memory = MEMORY_BYTES };
	struct base_err err = { 0 };
	struct work *w;

	(void)argv;
	if (argc != 1 || isatty(TRANSLATOR_SOCKET)) {
		fputs("dcpid-translate: not for use by hand: dcpid starts it\n", stderr);
		return BASE_EXIT_USAGE;
	}
	/* Terminal signals are dcpid's, which lets us go when it is done. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	w = calloc(1, sizeof(*w));
	if (!w || base_jail_enter(&jail, &err) < 0)
		return BASE_EXIT_FAILED;
	while (serve_one(w) >= 0)
		;
	/* Not by exit(): nothing that may run there is allowed any more. */
	_exit(BASE_EXIT_OK);
}
