/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parts_jit SECONDS: a JIT that was compiled with the newest header, and uses what that has last: a
 * routine in several ranges, which are retired by one handle, and of which other code takes one.
 * Prints "ROUTINE SECONDS" lines, the CPU time of each range.
 */
#include <dbgdyn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "truth_jit.h"

enum { PLACE = 4096, NR_PLACES = 4, ROUNDS = 20 };

static struct dbgdyn_line lines[NR_PLACES][2]; /* of each slot */
static const struct dbgdyn_string file = DBGDYN_STR("/src/truth.jit");
static const struct dbgdyn_frame called = { .cfa_off = 8 };

/* Code of @slot, at @code, with all that can be told of it. */
static struct dbgdyn_routine made(unsigned char *code, int slot, const char *name)
{
	struct dbgdyn_line *l = lines[slot];

	truth_put(code, slot);
	l[0] = (struct dbgdyn_line){ .line = truth_line(slot, 0), .column = 3 };
	l[1] = (struct dbgdyn_line){ .code_off = TRUTH_HEAD, .line = truth_line(slot, TRUTH_HEAD) };
	return (struct dbgdyn_routine){ .size = sizeof(struct dbgdyn_routine),
					.name = { name, strlen(name) },
					.code = code,
					.code_len = TRUTH_BLOCK,
					.lines = l,
					.nr_lines = 2,
					.files = &file,
					.nr_files = 1,
					.frames = &called,
					.nr_frames = 1 };
}

static void must(int result, const char *what)
{
	if (result == DBGDYN_OK)
		return;
	fprintf(stderr, "parts_jit: %s: %s\n", what, dbgdyn_strerror(result));
	exit(1);
}

static void take_turns(dbgdyn_context context, unsigned char *code, double seconds, double ran[])
{
	uint64_t random = 1;

	for (int i = 0; i < ROUNDS; i++) {
		struct dbgdyn_routine r = made(code, 0, "parts_0");
		struct dbgdyn_routine parts[] = { made(code + PLACE, 1, "parts_1"),
						  made(code + 2 * PLACE, 2, "") };
		struct dbgdyn_routine other;
		dbgdyn_handle handle;

		r.parts = parts;
		r.nr_parts = 2;
		must(dbgdyn_register(context, &r, &handle), "register");
		for (int slot = 0; slot < 2; slot++)
			ran[slot] += truth_run(code + slot * PLACE, CLOCK_THREAD_CPUTIME_ID,
					       seconds / ROUNDS / 3, &random);
		must(dbgdyn_retire(context, handle), "retire");
		other = made(code + PLACE, 3, "parts_3");
		must(dbgdyn_register(context, &other, NULL), "register");
		ran[3] += truth_run(code + PLACE, CLOCK_THREAD_CPUTIME_ID, seconds / ROUNDS / 3,
				    &random);
	}
}

int main(int argc, char **argv)
{
	unsigned char *code = truth_map(NR_PLACES * PLACE);
	double ran[NR_PLACES] = { 0 };
	dbgdyn_context context;
	struct dbgdyn_routine last, cold;

	if (argc != 2 || !code)
		return 2;
	must(dbgdyn_begin("parts", 5, NULL, &context), "begin");
	must(dbgdyn_flush(context), "flush");
	take_turns(context, code, atof(argv[1]), ran);
	/* Code that lives is in the image when end has returned, also where it has not run. */
	cold = made(code + 3 * PLACE, 2, "");
	last = made(code, 0, "parts_0");
	last.parts = &cold;
	last.nr_parts = 1;
	must(dbgdyn_register(context, &last, NULL), "register");
	must(dbgdyn_end(context), "end");
	for (int i = 0; i < NR_PLACES; i++)
		if (ran[i] > 0)
			printf("parts_%d %.6f\n", i, ran[i]);
	return 0;
}
