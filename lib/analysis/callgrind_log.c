/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines are "--PID-- text" (what -v adds) and "==PID== text". Wording is that of valgrind 3.19 and
 * of later ones up to 3.24; what is worded otherwise counts as nothing that matters.
 */
#include <string.h>

#include "callgrind.h"

struct text {
	const char *at, *end;
};

static bool starts(struct text *t, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(t->end - t->at) < len || memcmp(t->at, word, len) != 0)
		return false;
	t->at += len;
	return true;
}

static bool number(struct text *t, unsigned int base, uint64_t *out)
{
	const char *from = t->at;
	uint64_t v = 0;

	for (; t->at < t->end; t->at++) {
		char c = *t->at;
		unsigned int d = c >= '0' && c <= '9'	? (unsigned int)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10
							: 99;

		if (d >= base)
			break;
		if (base_mul_overflow(v, base, &v) || base_add_overflow(v, d, &v))
			return false;
	}
	*out = v;
	return t->at > from;
}

static bool pid_number(struct text *t, uint32_t *out)
{
	uint64_t v;

	if (!number(t, 10, &v) || v > INT32_MAX)
		return false;
	*out = (uint32_t)v;
	return true;
}

static void rest(struct callgrind_line *out, enum callgrind_line_kind kind, const struct text *t)
{
	out->kind = kind;
	out->path = t->at;
	out->path_len = (size_t)(t->end - t->at);
}

/* "svma 0x00000022d0, avma 0x000010a2d0", of which a later version may write more. */
static void place(struct callgrind_line *out, struct text *t)
{
	if (!number(t, 16, &out->svma) || !starts(t, ", avma 0x") || !number(t, 16, &out->avma))
		return;
	out->kind = CALLGRIND_PLACE;
}

static void verbose(struct callgrind_line *out, struct text *t)
{
	uint64_t nr;

	if (starts(t, "Reading syms from "))
		rest(out, CALLGRIND_IMAGE, t);
	else if (starts(t, "   svma 0x"))
		place(out, t);
	else if (starts(t, "Start dumping at BB ") && number(t, 10, &nr) &&
		 starts(t, " (Prg.Term.)"))
		out->kind = CALLGRIND_LAST;
	else if (starts(t, "Dump to "))
		rest(out, CALLGRIND_DUMP, t);
	else if (starts(t, "Dumping done."))
		out->kind = CALLGRIND_DUMPED;
}

static void message(struct callgrind_line *out, struct text *t)
{
	if (starts(t, "Parent PID: ")) {
		if (pid_number(t, &out->parent))
			out->kind = CALLGRIND_BEGIN;
	} else if (starts(t, "Process terminating with ") || starts(t, "valgrind: ")) {
		rest(out, CALLGRIND_ALARM, t);
	}
}

void callgrind_log_line(const char *line, size_t len, struct callgrind_line *out)
{
	struct text t = { line, line + len };
	bool dashes;

	*out = (struct callgrind_line){ 0 };
	if (starts(&t, "vex ")) { /* "vex amd64->IR: unhandled instruction bytes: …" */
		t.at = line;
		rest(out, CALLGRIND_ALARM, &t);
		return;
	}
	dashes = starts(&t, "--");
	if ((!dashes && !starts(&t, "==")) || !pid_number(&t, &out->pid) ||
	    !starts(&t, dashes ? "-- " : "== "))
		return;
	if (dashes)
		verbose(out, &t);
	else
		message(out, &t);
}
