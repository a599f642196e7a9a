/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines are "--PID-- text" (what -v adds) and "==PID== text". Wording is that of valgrind 3.19 and
 * of later ones up to 3.24; what is worded otherwise counts as nothing that matters.
 */
#include "callgrind_internal.h"

static void rest(struct callgrind_line *out, enum callgrind_line_kind kind,
		 const struct callgrind_text *t)
{
	out->kind = kind;
	out->path = t->at;
	out->path_len = (size_t)(t->end - t->at);
}

/* "svma 0x00000022d0, avma 0x000010a2d0", of which a later version may write more. */
static void place(struct callgrind_line *out, struct callgrind_text *t)
{
	if (callgrind_number(t, 16, &out->svma) < 0 || !callgrind_starts(t, ", avma 0x") ||
	    callgrind_number(t, 16, &out->avma) < 0)
		return;
	out->kind = CALLGRIND_PLACE;
}

static void verbose(struct callgrind_line *out, struct callgrind_text *t)
{
	uint64_t nr;

	if (callgrind_starts(t, "Reading syms from "))
		rest(out, CALLGRIND_IMAGE, t);
	else if (callgrind_starts(t, "   svma 0x"))
		place(out, t);
	else if (callgrind_starts(t, "Start dumping at BB ") && callgrind_number(t, 10, &nr) == 0 &&
		 callgrind_starts(t, " (Prg.Term.)"))
		out->kind = CALLGRIND_LAST;
	else if (callgrind_starts(t, "Dump to "))
		rest(out, CALLGRIND_DUMP, t);
	else if (callgrind_starts(t, "Dumping done."))
		out->kind = CALLGRIND_DUMPED;
}

static void message(struct callgrind_line *out, struct callgrind_text *t)
{
	struct callgrind_text whole = *t;

	if (callgrind_starts(t, "Parent PID: ")) {
		if (callgrind_pid(t, &out->parent) == 0)
			out->kind = CALLGRIND_BEGIN;
	} else if (callgrind_starts(t, "Process terminating with ") ||
		   callgrind_starts(t, "valgrind: ")) {
		rest(out, CALLGRIND_ALARM, &whole);
	}
}

void callgrind_log_line(const char *line, size_t len, struct callgrind_line *out)
{
	struct callgrind_text t = { line, line + len };
	bool dashes;

	*out = (struct callgrind_line){ 0 };
	if (callgrind_starts(&t, "vex ")) { /* "vex amd64->IR: unhandled instruction bytes: …" */
		t.at = line;
		rest(out, CALLGRIND_ALARM, &t);
		return;
	}
	dashes = callgrind_starts(&t, "--");
	if ((!dashes && !callgrind_starts(&t, "==")) || callgrind_pid(&t, &out->pid) < 0 ||
	    !callgrind_starts(&t, dashes ? "-- " : "== "))
		return;
	if (dashes)
		verbose(out, &t);
	else
		message(out, &t);
}
