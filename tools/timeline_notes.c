/* SPDX-License-Identifier: BSD-2-Clause */
/* Below the table dcpitimeline tells of slices without samples, and of what else happened to the
 * clock, the machine and the daemon, as the daemon noted it. */
#include <inttypes.h>

#include "terminal.h"
#include "timeline.h"

enum { LINES_MAX = 20 };

/* What stands before a text behind times: on a terminal, where both seldom fit, a line. */
static const char *before_text(const char *elsewhere)
{
	return terminal_columns() && !terminal_wide ? "\n                 " : elsewhere;
}

/* Nothing tells which of several machines a note is of. */
static size_t nr_notes(const struct timeline *t)
{
	return t->a->nr_platforms > 1 ? 0 : profdb_workloads_nr_notes(t->w);
}

/* It was the cause that the slices from @first up to @end have no samples. */
static bool explains(const struct timeline *t, const struct profdb_note *n, size_t first,
		     size_t end)
{
	int64_t from = t->slices.begin + (int64_t)first * t->slices.span,
		until = t->slices.begin + (int64_t)end * t->slices.span;

	/* The slice in which the daemon begins has samples. */
	if (n->kind == PROFDB_NOTE_START)
		return n->utc >= from && n->utc < until + t->slices.span;
	return (n->kind == PROFDB_NOTE_SUSPEND || n->kind == PROFDB_NOTE_CLOCK) && n->n > 0 &&
	       n->utc > from && n->utc - n->n < until;
}

/* The slices from @*first on that have no samples, up to @*end; false: there are none. */
static bool next_gap(const struct timeline *t, size_t *first, size_t *end)
{
	const struct slices *s = &t->slices;

	while (*first < s->nr && s->recorded[*first])
		++*first;
	for (*end = *first; *end < s->nr && !s->recorded[*end];)
		++*end;
	return *first < s->nr;
}

static void print_what(const struct profdb_note *n, FILE *to)
{
	if (n->kind == PROFDB_NOTE_SUSPEND)
		fprintf(to, "the machine was suspended for %" PRId64 " s", n->n);
	else if (n->kind == PROFDB_NOTE_CLOCK && n->n >= 0)
		fprintf(to, "the clock was set ahead by %" PRId64 " s", n->n);
	else if (n->kind == PROFDB_NOTE_CLOCK)
		fprintf(to,
			"the clock was set back by %" PRId64 " s: times shown twice are added up",
			-n->n);
	else
		fputs("the daemon was started again", to);
}

static void print_causes(const struct timeline *t, size_t first, size_t end, FILE *to)
{
	bool started = false;
	int nr = 0;

	for (size_t i = 0; i < nr_notes(t); i++) {
		const struct profdb_note *n = profdb_workloads_note_at(t->w, i);

		if (!explains(t, n, first, end) || (n->kind == PROFDB_NOTE_START && started) ||
		    nr == LINES_MAX)
			continue;
		fputs(before_text(nr++ ? "; " : ": "), to);
		if (n->kind == PROFDB_NOTE_START)
			fputs("no daemon ran", to);
		else
			print_what(n, to);
		started |= n->kind == PROFDB_NOTE_START;
	}
}

static void print_gaps(const struct timeline *t, const char *sign, FILE *to)
{
	const struct slices *s = &t->slices;
	char from[WHEN_TEXT], until[WHEN_TEXT];
	const char *head = "not recorded";

	for (size_t i = 0, end; next_gap(t, &i, &end); i = end) {
		fprintf(to, "%-12s  %s  %s to %s", head, sign,
			when_text(s->begin + (int64_t)i * s->span, from),
			when_text(s->begin + (int64_t)end * s->span, until));
		print_causes(t, i, end, to);
		fputc('\n', to);
		head = "";
	}
}

static bool explains_any(const struct timeline *t, const struct profdb_note *n)
{
	for (size_t i = 0, end; next_gap(t, &i, &end); i = end)
		if (explains(t, n, i, end))
			return true;
	return false;
}

/* Within the slices; that a daemon began is news where another one had recorded something. */
static bool is_news(const struct timeline *t, const struct profdb_note *n)
{
	int64_t at = n->utc - t->slices.begin;

	if (n->kind == PROFDB_NOTE_IDLE || at < 0 || at / t->slices.span >= (int64_t)t->slices.nr)
		return false;
	return n->kind != PROFDB_NOTE_START ||
	       (profdb_workloads_nr_minutes(t->w) &&
		profdb_workloads_minute(t->w, 0).minute < n->utc / 60);
}

/* Notes that explain no gap. */
static void print_notes(const struct timeline *t, FILE *to)
{
	char text[WHEN_TEXT];
	size_t nr = 0;

	for (size_t i = 0; i < nr_notes(t); i++) {
		const struct profdb_note *n = profdb_workloads_note_at(t->w, i);

		if (!is_news(t, n) || explains_any(t, n) || nr++ >= LINES_MAX)
			continue;
		fprintf(to, "%-12s     %s%s", nr == 1 ? "noted" : "", when_text(n->utc, text),
			before_text(": "));
		print_what(n, to);
		fputc('\n', to);
	}
	if (nr > LINES_MAX)
		fprintf(to, "%-12s     %zu more: -json has all of them\n", "", nr - LINES_MAX);
}

void timeline_print_notes(const struct timeline *t, const char *sign, FILE *to)
{
	print_gaps(t, sign, to);
	print_notes(t, to);
}

struct json_object *timeline_json_notes(const struct timeline *t)
{
	static const char *const kinds[] = { "started", "suspended", "clock set", "idle" };
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < nr_notes(t); i++) {
		const struct profdb_note *n = profdb_workloads_note_at(t->w, i);
		struct json_object *o;

		if (!is_news(t, n))
			continue;
		o = json_object_new_object();
		json_object_object_add(o, "at", json_object_new_int64(n->utc));
		json_object_object_add(o, "what", json_object_new_string(kinds[n->kind]));
		json_object_object_add(o, "seconds", json_object_new_int64(n->n));
		json_object_array_add(list, o);
	}
	return list;
}
