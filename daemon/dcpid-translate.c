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

struct work {
	struct vtrace_translator *translators[2];
	struct translator_request q;
	uint8_t code[TRANSLATOR_CODE];
	struct vtrace_code blocks[TRANSLATOR_BLOCKS];
	size_t nr;
};

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

/* What does not lie in the code that is here is somebody else's to ask for. */
static int add(struct work *w, uint64_t pc)
{
	uint64_t off = pc - w->q.base;
	int r;

	if (w->nr == TRANSLATOR_BLOCKS || off >= w->q.len || is_there(w, pc) ||
	    w->q.len - off < vtrace_place_len(pc))
		return 0;
	r = vtrace_translate(w->translators[w->q.arch], w->code + off, w->q.len - off, pc,
			     &w->blocks[w->nr]);
	w->nr += r == 0;
	return r;
}

static int translate(struct work *w)
{
	size_t at = 0;
	int r = open_translator(w);

	w->nr = 0;
	if (r == 0)
		r = add(w, w->q.pc);
	for (int depth = 0; r == 0 && depth < TRANSLATOR_DEPTH; depth++) {
		size_t end = w->nr;

		for (; r == 0 && at < end; at++)
			for (int i = 0; r == 0 && i < w->blocks[at].nr_successors; i++)
				r = add(w, w->blocks[at].successors[i]);
	}
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
