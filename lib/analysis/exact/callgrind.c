/* SPDX-License-Identifier: BSD-2-Clause */
/* The dumps and the log that callgrind writes, taken apart. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callgrind.h"

/* A line of a dump or of the log, while it is taken apart. */
struct callgrind_text {
	const char *at, *end;
};

#define UNKNOWN_OBJECT "???"

struct names {
	struct base_map by_id;
	char **owned;
	size_t nr, cap;
};

struct dump {
	const struct callgrind_sink *sink;
	struct names objects;
	const char *object, *to_object; /* of the lines that follow; of the next call, or NULL */
	uint64_t last;			/* address that "+3" counts from */
	bool has_last, has_instr, has_events, has_total;
	bool far;      /* the next jump leaves its function */
	bool call;     /* the next line tells where the edge begins */
	bool has_edge; /* likewise */
	uint64_t edge_count, edge_to;
	uint64_t sum, total;
};

/* Does it go on with that? Then it is passed. */
static bool callgrind_starts(struct callgrind_text *t, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(t->end - t->at) < len || memcmp(t->at, word, len) != 0)
		return false;
	t->at += len;
	return true;
}

/* The digits that come next, of which there must be one. 0 or -DCPI_EFORMAT. */
static int callgrind_number(struct callgrind_text *t, unsigned int base, uint64_t *out)
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
			return -DCPI_EFORMAT;
	}
	*out = v;
	return t->at > from ? 0 : -DCPI_EFORMAT;
}

/* The same, of 31 bits, decimal. */
static int callgrind_pid(struct callgrind_text *t, uint32_t *out)
{
	uint64_t v;

	if (callgrind_number(t, 10, &v) < 0 || v > INT32_MAX)
		return -DCPI_EFORMAT;
	*out = (uint32_t)v;
	return 0;
}

/* ---- a dump ---------------------------------------------------------------------------------- */

static void skip_blanks(struct callgrind_text *l)
{
	while (l->at < l->end && *l->at == ' ')
		l->at++;
}

/* Decimal, or hexadecimal behind 0x. */
static int number(struct callgrind_text *l, uint64_t *out)
{
	return callgrind_number(l, callgrind_starts(l, "0x") ? 16 : 10, out);
}

/* "0x12", "+3", "-3", "*": relative to the line before. */
static int position(const struct dump *d, struct callgrind_text *l, uint64_t *out)
{
	uint64_t v = 0;
	char sign = l->at < l->end ? *l->at : 0;
	int r;

	if (sign == '*' || sign == '+' || sign == '-') {
		l->at++;
		if (!d->has_last || (sign != '*' && number(l, &v) < 0))
			return -DCPI_EFORMAT;
		*out = sign == '-' ? d->last - v : d->last + v;
		return 0;
	}
	r = number(l, &v);
	*out = v;
	return r;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int name_keep(struct names *n, const struct callgrind_text *l, char **out)
{
	int r = base_grow(&n->owned, &n->cap, n->nr + 1, sizeof(*n->owned));

	if (r < 0)
		return r;
	*out = strndup(l->at, (size_t)(l->end - l->at));
	n->owned[n->nr] = *out;
	if (!*out)
		return -ENOMEM;
	n->nr++;
	return 0;
}

/* "(3) name" says that 3 is that name, "(3)" means it; or the name as it is. */
static int name(struct names *n, struct callgrind_text *l, const char **out)
{
	uint64_t id;
	char *kept;
	int r;

	if (l->at == l->end)
		return -DCPI_EFORMAT;
	if (!callgrind_starts(l, "(")) {
		r = name_keep(n, l, &kept);
		*out = r < 0 ? NULL : kept;
		return r;
	}
	if (number(l, &id) < 0 || !callgrind_starts(l, ")"))
		return -DCPI_EFORMAT;
	skip_blanks(l);
	if (l->at < l->end) {
		r = name_keep(n, l, &kept);
		if (r >= 0)
			r = base_map_set(&n->by_id, &id, sizeof(id), kept);
		if (r < 0)
			return r;
	}
	*out = base_map_get(&n->by_id, &id, sizeof(id));
	return *out ? 0 : -DCPI_EFORMAT;
}

static void names_release(struct names *n)
{
	for (size_t i = 0; i < n->nr; i++)
		free(n->owned[i]);
	free(n->owned);
	base_map_release(&n->by_id);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* "calls=COUNT TARGET", "jump=COUNT TARGET", "jcnd=COUNT/EXECUTED TARGET"; where from follows. */
static int edge(struct dump *d, struct callgrind_text *l, bool call)
{
	uint64_t executed;

	if (d->has_edge || number(l, &d->edge_count) < 0)
		return -DCPI_EFORMAT;
	if (callgrind_starts(l, "/") && number(l, &executed) < 0)
		return -DCPI_EFORMAT;
	skip_blanks(l);
	if (position(d, l, &d->edge_to) < 0)
		return -DCPI_EFORMAT;
	d->has_edge = true;
	d->call = call;
	return 0;
}

static int put_edge(struct dump *d, uint64_t from)
{
	const char *to = d->call && d->to_object ? d->to_object : d->object;
	int r;

	if (!d->call && d->far)
		to = NULL;
	r = d->sink->edge(d->sink->ctx, d->object, from, to, d->edge_to, d->edge_count);
	if (d->call)
		d->to_object = NULL;
	d->far = d->has_edge = false;
	return r;
}

/* "POSITION COST …": of the events only the first, instructions, is of interest. */
static int cost(struct dump *d, struct callgrind_text *l)
{
	uint64_t at, n = 0;

	if (!d->has_instr || !d->has_events || !d->object || position(d, l, &at) < 0)
		return -DCPI_EFORMAT;
	d->last = at;
	d->has_last = true;
	skip_blanks(l);
	if (l->at < l->end && number(l, &n) < 0)
		return -DCPI_EFORMAT;
	if (d->has_edge)
		return put_edge(d, at);
	if (base_add_overflow(d->sum, n, &d->sum))
		return -DCPI_EOVERFLOW;
	return n ? d->sink->count(d->sink->ctx, d->object, at, n) : 0;
}

static int total(struct dump *d, struct callgrind_text *l)
{
	skip_blanks(l);
	if (d->has_total || number(l, &d->total) < 0)
		return -DCPI_EFORMAT;
	d->has_total = true;
	return 0;
}

static bool blank(const struct callgrind_text *l)
{
	return l->at == l->end || *l->at == '#';
}

static bool is_position(const struct callgrind_text *l)
{
	return strchr("0123456789+-*", *l->at) != NULL;
}

static int parse_creator(struct callgrind_text *l, struct callgrind_head *head)
{
	size_t len;

	skip_blanks(l);
	len = (size_t)(l->end - l->at);
	if (!len || len > 63 || memchr(l->at, ' ', len))
		return -DCPI_EFORMAT;
	memcpy(head->creator, l->at, len);
	head->creator[len] = '\0';
	return 0;
}

static int parse_line(struct dump *d, struct callgrind_text *l, struct callgrind_head *head)
{
	if (blank(l))
		return 0;
	if (memchr(l->at, '\0', (size_t)(l->end - l->at)))
		return -DCPI_EFORMAT;
	if (is_position(l))
		return cost(d, l);
	if (d->has_edge)
		return -DCPI_EFORMAT;
	if (callgrind_starts(l, "calls="))
		return edge(d, l, true);
	if (callgrind_starts(l, "jump=") || callgrind_starts(l, "jcnd="))
		return edge(d, l, false);
	if (callgrind_starts(l, "ob="))
		return name(&d->objects, l, &d->object);
	if (callgrind_starts(l, "cob="))
		return name(&d->objects, l, &d->to_object);
	if (callgrind_starts(l, "jfn="))
		d->far = true;
	else if (callgrind_starts(l, "positions:")) /* no lines: one position in a line */
		d->has_instr = l->end - l->at == 6 && callgrind_starts(l, " instr");
	else if (callgrind_starts(l, "events:"))
		d->has_events = callgrind_starts(l, " Ir") && (l->at == l->end || *l->at == ' ');
	else if (callgrind_starts(l, "totals:"))
		return total(d, l);
	else if (callgrind_starts(l, "creator:"))
		return parse_creator(l, head);
	else if (callgrind_starts(l, "pid:")) {
		skip_blanks(l);
		return callgrind_pid(l, &head->pid);
	}
	return 0;
}

static int parse_lines(struct dump *d, const char *at, const char *end, struct callgrind_head *head,
		       size_t *nr)
{
	int r = 0;

	for (*nr = 0; at < end && r >= 0; ++*nr) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct callgrind_text l = { at, newline ? newline : end };

		if (!newline)
			return -DCPI_ETRUNCATED;
		r = parse_line(d, &l, head);
		at = newline + 1;
	}
	return r;
}

int callgrind_parse(const void *data, size_t len, const char *name_shown,
		    const struct callgrind_sink *sink, struct callgrind_head *head,
		    struct base_err *err)
{
	struct dump d = { .sink = sink, .object = UNKNOWN_OBJECT };
	size_t nr;
	int r = parse_lines(&d, data, (const char *)data + len, head, &nr);

	names_release(&d.objects);
	if (r == -DCPI_EFORMAT)
		return base_fail_errno(err, r, "cannot read dump '%s': line %zu", name_shown, nr);
	if (r >= 0 && (!d.has_total || d.has_edge))
		r = -DCPI_ETRUNCATED;
	if (r < 0)
		return base_fail_errno(err, r, "cannot read dump '%s'", name_shown);
	if (d.sum != d.total)
		return base_fail(err, -DCPI_EFORMAT,
				 "cannot read dump '%s': its counts do not add up to its total",
				 name_shown);
	return 0;
}

/* ---- the log ------------------------------------------------------------------------------- */

/*
 * Lines are "--PID-- text" (what -v adds) and "==PID== text". Wording is that of valgrind 3.19 and
 * of later ones up to 3.24; what is worded otherwise counts as nothing that matters.
 */

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
