/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpid-translate: the jailed helper of dcpid that makes micro-ops of machine code (translator.h).
 * Not for people: it is started with its socket as descriptor 0, and ends when that is closed.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pseudoimg_internal.h"
#include "translator.h"

/* Places that were answered before; a power of two. */
enum { NR_TOLD = 1 << 15 };
#define TOLD_DEPTH 7

struct work {
	struct vtrace_translator *translators[2];
	struct translator_request q;
	uint8_t code[TRANSLATOR_CODE];
	struct vtrace_code blocks[TRANSLATOR_BLOCKS];
	int level[TRANSLATOR_BLOCKS]; /* blocks between it and the one that is asked for */
	size_t nr;
	/* By the hash of a place, which it keeps, with how far what follows was answered in its
	 * lowest bits; 0: nothing. One that takes another's slot costs a translation. */
	uint64_t told[NR_TOLD];
};

_Static_assert((int)TRANSLATOR_DEPTH < TOLD_DEPTH, "0 is nothing");

static uint64_t hash_of(const struct work *w, const struct vtrace_place *place)
{
	return base_hash64(place, sizeof(*place)) ^ w->q.arch;
}

/* It was answered, and @depth blocks behind it. */
static bool is_told(const struct work *w, const struct vtrace_place *place, int depth)
{
	uint64_t hash = hash_of(w, place), told = w->told[hash / (TOLD_DEPTH + 1) % NR_TOLD];

	return (told | TOLD_DEPTH) == (hash | TOLD_DEPTH) && (int)(told & TOLD_DEPTH) > depth;
}

/* All that follows was answered up to level @done. */
static void remember(struct work *w, int done)
{
	for (size_t i = 0; i < w->nr; i++) {
		uint64_t hash = hash_of(w, &w->blocks[i].place);
		int depth = done > w->level[i] ? done - w->level[i] : 0;

		if (!is_told(w, &w->blocks[i].place, depth))
			w->told[hash / (TOLD_DEPTH + 1) % NR_TOLD] =
				(hash & ~(uint64_t)TOLD_DEPTH) | (uint64_t)(depth + 1);
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

static bool is_there(const struct work *w, uint64_t pc)
{
	for (size_t i = 0; i < w->nr; i++)
		if (w->blocks[i].block.pc == pc)
			return true;
	return false;
}

/* What does not lie in the code that is here is somebody else's to ask for; what was answered
 * before, with as much of what follows, need not be again, unless it is what is asked for. */
static int add(struct work *w, uint64_t pc, int level)
{
	uint64_t off = pc - w->q.base;
	struct vtrace_place place;
	int r;

	if (w->nr == TRANSLATOR_BLOCKS || off >= w->q.len || is_there(w, pc) ||
	    !vtrace_place_of(pc, w->code + off, w->q.len - off, &place) ||
	    (level && is_told(w, &place, TRANSLATOR_DEPTH - level)))
		return 0;
	r = vtrace_translate(w->translators[w->q.arch], w->code + off, w->q.len - off, pc,
			     &w->blocks[w->nr]);
	w->level[w->nr] = level;
	w->nr += r == 0;
	return r;
}

/* What stands behind a call is returned to; behind a jump, what a table of jumps leads to. */
static int follow(struct work *w, const struct vtrace_code *c, int level)
{
	int r = 0;

	for (int i = 0; r == 0 && i < c->nr_successors; i++)
		r = add(w, c->successors[i], level);
	return r == 0 ? add(w, c->block.pc + c->block.len, level) : r;
}

static int translate(struct work *w)
{
	size_t at = 0;
	int r = open_translator(w), level = 0;

	w->nr = 0;
	if (r == 0)
		r = add(w, w->q.pc, 0);
	for (; r == 0 && level < TRANSLATOR_DEPTH && w->nr < TRANSLATOR_BLOCKS; level++) {
		size_t end = w->nr;

		for (; r == 0 && at < end; at++)
			r = follow(w, &w->blocks[at], level + 1);
	}
	/* One that is full may lack some of its last level. */
	remember(w, w->nr < TRANSLATOR_BLOCKS ? level : level - 1);
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
	struct work *w = calloc(1, sizeof(*w));
	struct base_err err = { 0 };

	(void)argv;
	if (argc != 1 || isatty(TRANSLATOR_SOCKET)) {
		fputs("dcpid-translate: not for use by hand: dcpid starts it\n", stderr);
		return BASE_EXIT_USAGE;
	}
	/* Terminal signals are dcpid's, which lets us go when it is done. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (!w || pseudoimg_jail_enter(1, &err) < 0)
		return BASE_EXIT_FAILED;
	while (serve_one(w) >= 0)
		;
	/* Not by exit(): nothing that may run there is allowed any more. */
	_exit(BASE_EXIT_OK);
}
