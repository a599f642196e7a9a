/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums by routine of one event, or by offset of one image. Of whole days, and of whole parts of a
 * day, the store has rows that were added up before (sums.c); they are read where they are of the
 * rows that the store has now. The rest of the time, and machines that have no such rows, are read
 * hour by hour.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fetch.h"

/* Machines of a span, and in all, that are read by shorter rows alone; else the whole span is. */
enum { APART_OF_SPAN = 50, APART = 1000 };
/* A question is asked so often while machines send. */
enum { TRIES = 3 };

/* Facts of an event's rows that are known before their arrays are read, which is little work. */
struct facts {
	uint32_t first, last; /* epochs */
	uint64_t samples, print;
	bool once; /* no row is an older one of another */
};

/* A row of one label may have become one of another, or of none, where it is empty now: so rows of
 * all labels are looked at. */
static int ask_facts(struct fetch *f, const struct fetch_sums *q, bool final, struct facts *out,
		     struct base_err *err)
{
	struct base_buf sql = { 0 }, answer = { 0 };
	struct store_reader reader;
	const char *label = q->label;
	int r = base_buf_printf(&sql,
				"SELECT toUInt32(minIf(epoch, 1%s)), toUInt32(maxIf(epoch, 1%s)), "
				"sumIf(samples, 1%s), sumIf(%s, 1%s), count() = uniqExact(%s) "
				"FROM %s%s WHERE %s AND %s FORMAT RowBinary",
				label, label, label, q->source->print, label, q->source->own,
				q->source->hours, final ? " FINAL" : "", q->which,
				fetch_text(&f->where));

	if (r >= 0)
		r = store_ask(f->s, (const char *)sql.data, &answer, err);
	reader = (struct store_reader){ answer.data, answer.data + answer.len, false };
	out->first = (uint32_t)store_get_number(&reader, 4);
	out->last = (uint32_t)store_get_number(&reader, 4);
	out->samples = store_get_number(&reader, 8);
	out->print = store_get_number(&reader, 8);
	out->once = store_get_number(&reader, 1);
	base_buf_release(&sql);
	base_buf_release(&answer);
	return r;
}

/* ---- which rows ------------------------------------------------------------------------------ */

struct range {
	int64_t from, to; /* UTC seconds; @to is outside */
};

struct ranges {
	struct range *v;
	size_t nr, cap;
};

/* The rows of one table that are read: of hours, or of sums. */
struct piece {
	bool sums;
	struct base_buf where;
};

struct plan {
	const struct fetch_sums *q;
	const char *final;   /* " FINAL" where the hours' rows need it */
	struct ranges left;  /* times that no piece has yet */
	struct base_buf lag; /* " OR (platform, …) IN (…)": machines that lack rows of sums */
	size_t nr_apart;
	struct piece pieces[STORE_LEVELS_MAX + 1];
	size_t nr;
};

static void plan_release(struct plan *p)
{
	for (size_t i = 0; i < p->nr; i++)
		base_buf_release(&p->pieces[i].where);
	base_buf_release(&p->lag);
	free(p->left.v);
}

static int add_range(struct ranges *to, int64_t from, int64_t end)
{
	if (from >= end)
		return 0;
	if (base_grow(&to->v, &to->cap, to->nr + 1, sizeof(*to->v)) < 0)
		return -ENOMEM;
	to->v[to->nr++] = (struct range){ from, end };
	return 0;
}

/* "(epoch >= … AND epoch < … OR …)" */
static int print_ranges(struct base_buf *sql, const struct ranges *ranges, const char *more)
{
	int r = base_buf_printf(sql, "(");

	for (size_t i = 0; i < ranges->nr && r >= 0; i++)
		r = base_buf_printf(sql, "%sepoch >= toDateTime(%lld) AND epoch < toDateTime(%lld)",
				    i ? " OR " : "", (long long)ranges->v[i].from,
				    (long long)ranges->v[i].to);
	if (r >= 0 && !ranges->nr)
		r = base_buf_printf(sql, "0");
	return r < 0 ? r : base_buf_printf(sql, "%s)", more);
}

static int64_t floor_to(int64_t t, int64_t span)
{
	return t - t % span;
}

/* There is no row before the first: a span that begins before it is whole, unless the user wants
 * less. The same behind the last. */
static int whole_time(struct fetch *f, const struct store_source *source, const struct facts *facts,
		      struct ranges *out)
{
	int64_t from = f->from, to = f->to;

	for (size_t i = 0; i < source->nr_levels; i++) {
		int64_t span = source->levels[i].span, begin = floor_to(facts->first, span);
		int64_t end = floor_to(facts->last, span) + span;

		from = begin >= f->from ? begin : from;
		to = end <= f->to ? end : to;
	}
	return add_range(out, from < 0 ? 0 : from, to > UINT32_MAX ? UINT32_MAX : to);
}

/* Divides the times that are left into whole spans, and others. */
static int divide(const struct plan *p, int64_t span, struct ranges *whole, struct ranges *rest)
{
	int r = 0;

	for (size_t i = 0; i < p->left.nr && r >= 0; i++) {
		const struct range *x = &p->left.v[i];
		int64_t from = floor_to(x->from + span - 1, span), to = floor_to(x->to, span);

		if (from >= to) {
			r = add_range(rest, x->from, x->to);
			continue;
		}
		r = add_range(rest, x->from, from);
		if (r >= 0)
			r = add_range(whole, from, to);
		if (r >= 0)
			r = add_range(rest, to, x->to);
	}
	return r;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* Short ranges may be a whole span together. */
static void join_ranges(struct ranges *x)
{
	size_t nr = 0;

	if (x->nr)
		qsort(x->v, x->nr, sizeof(*x->v), compare_ranges);
	for (size_t i = 0; i < x->nr; i++) {
		if (nr && x->v[nr - 1].to == x->v[i].from)
			x->v[nr - 1].to = x->v[i].to;
		else
			x->v[nr++] = x->v[i];
	}
	x->nr = nr;
}

/* ---- what lacks rows of sums ----------------------------------------------------------------- */

static int ask_bad(struct fetch *f, const struct plan *p, const struct store_level *level,
		   const struct ranges *whole, struct base_buf *answer, struct base_err *err)
{
	struct base_buf where = { 0 }, bad = { 0 }, sql = { 0 };
	int r = base_buf_printf(&where, "%s%s AND ", p->q->which, p->q->label);

	if (r >= 0)
		r = print_ranges(&where, whole, "");
	if (r >= 0)
		r = base_buf_printf(&where, "%s", fetch_text(&f->platforms));
	if (r >= 0)
		r = store_sums_bad(&bad, p->q->source, "", level, (const char *)where.data,
				   p->final);
	if (r >= 0)
		r = base_buf_printf(&sql,
				    "SELECT b, count(), groupArray(%d)(p) FROM (%s) "
				    "GROUP BY b ORDER BY b FORMAT RowBinary",
				    APART_OF_SPAN, (const char *)bad.data);
	if (r >= 0)
		r = store_ask(f->s, (const char *)sql.data, answer, err);
	base_buf_release(&where);
	base_buf_release(&bad);
	base_buf_release(&sql);
	return r;
}

/* Takes the span that begins at @begin out of whole ones, which are asked for in order. */
static int take_out(struct ranges *whole, int64_t begin, int64_t span)
{
	for (size_t i = whole->nr; i--;) {
		struct range x = whole->v[i];

		if (begin < x.from || begin >= x.to)
			continue;
		whole->v[i].to = begin;
		return add_range(whole, begin + span, x.to);
	}
	return 0;
}

/* Machines of one span, as "('NAME', BEGIN), …". */
static int print_apart(struct store_reader *reader, uint64_t nr, uint32_t begin,
		       struct base_buf *list)
{
	int r = 0;

	for (uint64_t i = 0; i < nr && r >= 0 && !reader->bad; i++) {
		size_t len;
		const char *text = store_get_string(reader, &len);

		r = list->len ? base_buf_printf(list, ", ") : 0;
		if (r >= 0)
			r = base_buf_printf(list, "(");
		if (r >= 0 && text)
			r = store_quote(list, text, len);
		if (r >= 0)
			r = base_buf_printf(list, ", %u)", begin);
	}
	return r;
}

/* Few machines that lack their rows of a span are read apart; else the span is left to others. */
static int take_bad(struct plan *p, struct store_reader *reader, const struct store_level *level,
		    struct ranges *whole, struct ranges *rest, struct base_buf *list)
{
	uint32_t begin = (uint32_t)store_get_number(reader, 4);
	uint64_t nr = store_get_number(reader, 8), told = store_get_count(reader, 1);
	struct base_buf names = { 0 };
	bool apart = !level->fleet && nr == told && p->nr_apart + nr <= APART;
	int r = print_apart(reader, told, begin, &names);

	if (r >= 0 && apart)
		r = base_buf_printf(list, "%s%s", list->len ? ", " : "", (const char *)names.data);
	else if (r >= 0)
		r = take_out(whole, begin, level->span);
	if (r >= 0 && !apart)
		r = add_range(rest, begin, (int64_t)begin + level->span);
	p->nr_apart += apart ? nr : 0;
	base_buf_release(&names);
	return r;
}

/* The spans that sums are read of become a piece. */
static int add_span_piece(struct fetch *f, struct plan *p, const struct store_level *level,
			  const struct ranges *whole, const struct base_buf *list)
{
	struct piece *piece = &p->pieces[p->nr++];
	struct base_buf *where = &piece->where;
	int r = base_buf_printf(where, "%s%s AND span = %u AND ", p->q->which, p->q->label,
				store_level_span(level));

	piece->sums = true;
	if (r >= 0)
		r = print_ranges(where, whole, "");
	if (r >= 0)
		r = base_buf_printf(where, "%s", fetch_text(&f->platforms));
	if (r < 0 || !list->len)
		return r;
	r = base_buf_printf(where, " AND (platform, toUInt32(epoch)) NOT IN (%s)",
			    (const char *)list->data);
	if (r >= 0)
		r = base_buf_printf(&p->lag,
				    " OR (platform, toUInt32(intDiv(toUInt32(epoch), %u) * %u)) "
				    "IN (%s)",
				    level->span, level->span, (const char *)list->data);
	return r;
}

static int plan_level(struct fetch *f, struct plan *p, const struct store_level *level,
		      struct base_err *err)
{
	struct ranges whole = { 0 }, rest = { 0 };
	struct base_buf answer = { 0 }, list = { 0 };
	struct store_reader reader;
	int r = divide(p, level->span, &whole, &rest);

	if (r >= 0 && whole.nr)
		r = ask_bad(f, p, level, &whole, &answer, err);
	reader = (struct store_reader){ answer.data, answer.data + answer.len, false };
	while (r >= 0 && reader.at < reader.end) {
		r = take_bad(p, &reader, level, &whole, &rest, &list);
		if (reader.bad)
			r = base_fail(err, -EHOSTUNREACH, "the server's answer is malformed");
	}
	for (size_t i = 0; i < whole.nr && r >= 0; i++)
		if (whole.v[i].from < whole.v[i].to) {
			r = add_span_piece(f, p, level, &whole, &list);
			break;
		}
	free(p->left.v);
	join_ranges(&rest);
	p->left = rest;
	free(whole.v);
	base_buf_release(&answer);
	base_buf_release(&list);
	return r;
}

static int add_hours(struct fetch *f, struct plan *p)
{
	struct piece *piece = &p->pieces[p->nr++];
	int r = base_buf_printf(&piece->where, "%s%s AND ", p->q->which, p->q->label);

	if (r >= 0 && p->nr > 1)
		r = print_ranges(&piece->where, &p->left, fetch_text(&p->lag));
	if (r >= 0)
		r = base_buf_printf(&piece->where, "%s",
				    fetch_text(p->nr > 1 ? &f->platforms : &f->where));
	return r;
}

/* @spans: rows of sums may be read; else the hours are read alone. */
static int make_plan(struct fetch *f, struct plan *p, const struct facts *facts, bool spans,
		     struct base_err *err)
{
	const struct store_source *source = p->q->source;
	bool fleet = !f->w->by_platform && !f->platforms.len && !f->replicate.len;
	int r = spans ? whole_time(f, source, facts, &p->left) : 0;

	for (size_t i = source->nr_levels; i-- && r >= 0 && spans;)
		if (fleet || !source->levels[i].fleet)
			r = plan_level(f, p, &source->levels[i], err);
	if (r >= 0 && (!p->nr || p->left.nr || p->lag.len))
		r = add_hours(f, p);
	return r;
}

/* ---- reading them ---------------------------------------------------------------------------- */

static const char *table_of(const struct plan *p, const struct piece *piece)
{
	return piece->sums ? p->q->source->sums : p->q->source->hours;
}

/* The samples that the pieces have, before their arrays are read. */
static int ask_samples(struct fetch *f, const struct plan *p, const char *final, uint64_t *out,
		       struct base_err *err)
{
	struct base_buf sql = { 0 };
	uint64_t samples;
	int r = 0;

	*out = 0;
	for (size_t i = 0; i < p->nr && r >= 0; i++) {
		r = base_buf_printf(&sql, "SELECT sum(samples) FROM %s%s WHERE %s",
				    table_of(p, &p->pieces[i]), final,
				    (const char *)p->pieces[i].where.data);
		if (r >= 0)
			r = store_ask_number(f->s, &sql, &samples, err);
		*out += r < 0 ? 0 : samples;
	}
	base_buf_release(&sql);
	return r;
}

/* The epoch is a constant where rows of all epochs are added up. */
static int add_columns(struct fetch *f, const struct plan *p, const struct fetch_alike *alike,
		       const struct facts *facts, struct base_buf *sql)
{
	int r = base_buf_printf(sql, "SELECT %s, ", fetch_text(&alike->columns));

	if (r >= 0 && f->w->by_epoch)
		r = base_buf_printf(sql, "toUInt32(epoch)");
	else if (r >= 0)
		r = base_buf_printf(sql, "toUInt32(%u)", p->q->no_epoch ? 0 : facts->first);
	return r < 0 ? r : base_buf_printf(sql, "%s, sum(c) FROM ", p->q->apart ? ", place" : "");
}

static int ask_piece(struct fetch *f, const struct plan *p, const struct piece *piece,
		     const struct fetch_alike *alike, const struct facts *facts, const char *final,
		     struct base_buf *answer, struct base_err *err)
{
	const struct store_source *source = p->q->source;
	const char *group = fetch_counts_group(f); /* of platforms it is never empty */
	struct base_buf sql = { 0 }, where = { 0 }, one = { 0 };
	char table[32];
	int r = add_columns(f, p, alike, facts, &sql);

	group += p->q->apart ? 0 : strlen(", ");
	snprintf(table, sizeof(table), "%s%s", table_of(p, piece), final);
	if (r >= 0)
		r = base_buf_printf(&where, "%s%s", (const char *)piece->where.data,
				    fetch_text(&alike->which));
	if (r >= 0)
		r = fetch_from(f, &sql, table, piece->sums ? source->sums_columns : source->columns,
			       (const char *)where.data,
			       piece->sums ? source->sums_arrays : source->arrays);
	if (r >= 0)
		r = base_buf_printf(&sql, "%s GROUP BY %s%s FORMAT RowBinary", p->q->numbers,
				    p->q->apart ? "place" : "", group);
	if (r >= 0)
		r = store_ask(f->s, (const char *)sql.data, &one, err);
	if (r >= 0)
		r = base_buf_append(answer, one.data, one.len);
	base_buf_release(&sql);
	base_buf_release(&where);
	base_buf_release(&one);
	return r;
}

static int ask_pieces(struct fetch *f, const struct plan *p, const struct facts *facts,
		      const char *final, struct base_buf *answer, struct base_err *err)
{
	int r = 0;

	base_buf_clear(answer);
	for (size_t i = 0; i < p->nr; i++)
		for (size_t k = 0; k < p->q->nr_alike && r >= 0; k++)
			r = ask_piece(f, p, &p->pieces[i], &p->q->alike[k], facts, final, answer,
				      err);
	return r;
}

/*
 * FINAL costs as much again and is left out where the rows' own sum is that which they have with
 * FINAL: no row has an older one then. Rows may come between the questions: 1 where what was
 * read is what there was before and after it, 0 where it is to be read again.
 */
static int try(struct fetch *f, const struct fetch_sums *q, struct base_buf *answer,
	       struct base_err *err)
{
	struct plan p = { .q = q, .final = "" };
	bool spans = !f->w->by_epoch && !f->replicate_epochs;
	struct facts plain, facts, after;
	uint64_t samples = 0;
	bool once = false, alone = false;
	int r = ask_facts(f, q, false, &plain, err);

	facts = plain;
	if (r >= 0 && !plain.once) {
		p.final = " FINAL";
		r = ask_facts(f, q, true, &facts, err);
	}
	if (r >= 0)
		r = make_plan(f, &p, &facts, spans, err);
	if (r >= 0)
		r = ask_samples(f, &p, "", &samples, err);
	once = samples == facts.samples;
	if (r >= 0 && !once)
		r = ask_samples(f, &p, " FINAL", &samples, err);
	alone = !once && p.nr == 1 && !p.pieces[0].sums;
	if (r >= 0 && (alone || samples == facts.samples))
		r = ask_pieces(f, &p, &facts, once ? "" : " FINAL", answer, err);
	if (r >= 0)
		r = ask_facts(f, q, false, &after, err);
	plan_release(&p);
	if (r < 0)
		return r;
	return alone || (samples == facts.samples && after.print == plain.print);
}

/* One statement that reads the hours with FINAL is right whatever comes meanwhile. */
static int ask_final(struct fetch *f, const struct fetch_sums *q, struct base_buf *answer,
		     struct base_err *err)
{
	struct plan p = { .q = q, .final = " FINAL" };
	struct facts facts;
	int r = ask_facts(f, q, true, &facts, err);

	if (r >= 0)
		r = make_plan(f, &p, &facts, false, err);
	if (r >= 0)
		r = ask_pieces(f, &p, &facts, " FINAL", answer, err);
	plan_release(&p);
	return r;
}

int fetch_ask_sums(struct fetch *f, const struct fetch_sums *q, struct base_buf *answer,
		   struct base_err *err)
{
	int r = 0;

	for (int i = 0; i < TRIES && r == 0; i++)
		r = try(f, q, answer, err);
	return r < 0 ? r : r ? 0 : ask_final(f, q, answer, err);
}

int fetch_event_sums(struct fetch *f, const char *event, bool routines, struct base_buf *answer,
		     struct base_err *err)
{
	struct base_buf quoted = { 0 }, which = { 0 };
	struct fetch_alike all = { .which = { 0 } };
	int r = store_quote(&quoted, event, strlen(event));

	if (r >= 0)
		r = base_buf_printf(&which, "event = %s", (const char *)quoted.data);
	if (r >= 0)
		r = base_buf_printf(&all.columns, "%s AS e, %s", (const char *)quoted.data,
				    fetch_counts_column(f));
	if (r >= 0) {
		const struct fetch_sums q = { .source = &store_sources[STORE_BY_NUMBER],
					      .which = (const char *)which.data,
					      .label = fetch_text(&f->labels),
					      .numbers = fetch_text(&f->routines),
					      .apart = routines,
					      .alike = &all,
					      .nr_alike = 1 };

		r = fetch_ask_sums(f, &q, answer, err);
	}
	base_buf_release(&quoted);
	base_buf_release(&which);
	base_buf_release(&all.columns);
	return r;
}
