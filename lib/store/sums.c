/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Servers add up what machines had by routine in some hours and in a day, so that questions about
 * many hours read few rows. The rows of sums are copies: nothing is known from them alone.
 */
#include <errno.h>
#include <string.h>

#include "store_internal.h"

const uint32_t store_spans[STORE_NR_SPANS] = { 86400, 21600 };

/* Machines that one statement adds up: a server needs some megabytes for each. */
enum { AT_ONCE = 50 };

int store_sums_bad(struct base_buf *sql, uint32_t span, const char *totals, const char *sums,
		   const char *final)
{
	return base_buf_printf(
		sql,
		"SELECT platform, b FROM ("
		"SELECT platform, toUInt32(intDiv(toUInt32(epoch), %u) * %u) AS b, " STORE_PRINT
		" AS x, toUInt64(0) AS y FROM totals%s WHERE %s UNION ALL "
		"SELECT platform, toUInt32(epoch) AS b, toUInt64(0) AS x, print AS y "
		"FROM sums FINAL WHERE span = %u AND %s) "
		"GROUP BY platform, b HAVING sum(x) != sum(y)",
		span, span, final, totals, span, sums);
}

/* ---- what is to be made ---------------------------------------------------------------------- */

struct summing {
	struct store_server *s;
	int64_t since, now;
	uint64_t ver, rows;
	struct base_buf event; /* quoted */
	uint32_t span;
	struct base_err *err;
};

/* Spans that have ended, from the one on in which @since lies. */
static int add_times(const struct summing *x, struct base_buf *sql)
{
	int64_t from = x->since > 0 ? x->since - x->since % x->span : 0;
	int64_t to = x->now > 0 ? x->now - x->now % x->span : 0;

	return base_buf_printf(sql,
			       "event = %s AND epoch >= toDateTime(%lld) AND "
			       "epoch < toDateTime(%lld)",
			       (const char *)x->event.data, (long long)from, (long long)to);
}

/* (platform, b), sorted so that machines which stand together in the table are asked for together. */
static int ask_missing(struct summing *x, struct base_buf *answer)
{
	struct base_buf times = { 0 }, sql = { 0 };
	int r = add_times(x, &times);

	if (r >= 0)
		r = store_sums_bad(&sql, x->span, (const char *)times.data,
				   (const char *)times.data, " FINAL");
	if (r >= 0)
		r = base_buf_printf(&sql, " ORDER BY b, platform FORMAT RowBinary");
	if (r >= 0)
		r = store_ask(x->s, (const char *)sql.data, answer, x->err);
	base_buf_release(&times);
	base_buf_release(&sql);
	return r;
}

/* ---- the rows -------------------------------------------------------------------------------- */

/* The machines of one statement, quoted, with commas between them. */
struct group {
	struct base_buf list, first, last;
	uint32_t begin;
	size_t nr;
};

static void group_clear(struct group *g)
{
	base_buf_clear(&g->list);
	base_buf_clear(&g->first);
	base_buf_clear(&g->last);
	g->nr = 0;
}

static int group_add(struct group *g, uint32_t begin, const char *platform, size_t len)
{
	int r = g->nr ? base_buf_printf(&g->list, ", ") : store_quote(&g->first, platform, len);

	if (r >= 0)
		r = store_quote(&g->list, platform, len);
	base_buf_clear(&g->last);
	if (r >= 0)
		r = store_quote(&g->last, platform, len);
	g->begin = begin;
	g->nr++;
	return r;
}

/* The rows and their fingerprint come from one reading of the table, and so belong together. */
static int make_rows(struct summing *x, struct group *g)
{
	struct base_buf sql = { 0 };
	int r = g->nr ? base_buf_printf(
				&sql,
				"INSERT INTO sums (event, span, epoch, platform, label, ver, "
				"print, samples, r, n) SELECT %s, toUInt32(%u), toDateTime(%u), "
				"platform, label, toUInt64(%llu), p, s, tupleElement(m, 1), "
				"tupleElement(m, 2) FROM (SELECT platform, label, sum(" STORE_PRINT
				") AS p, sum(samples) AS s, sumMap(r, n) AS m FROM totals FINAL "
				"WHERE event = %s AND epoch >= toDateTime(%u) AND "
				"epoch < toDateTime(%u) AND platform >= %s AND platform <= %s AND "
				"platform IN (%s) GROUP BY platform, label)",
				(const char *)x->event.data, x->span, g->begin,
				(unsigned long long)x->ver, (const char *)x->event.data, g->begin,
				g->begin + x->span, (const char *)g->first.data,
				(const char *)g->last.data, (const char *)g->list.data)
		      : 0;

	if (r >= 0 && g->nr)
		r = store_do(x->s, (const char *)sql.data, x->err);
	if (r >= 0)
		x->rows += g->nr;
	base_buf_release(&sql);
	group_clear(g);
	return r;
}

static int make_missing(struct summing *x)
{
	struct base_buf answer = { 0 };
	struct group g = { .nr = 0 };
	int r = ask_missing(x, &answer);
	struct store_reader reader = { answer.data, answer.data + answer.len, false };

	while (r >= 0 && reader.at < reader.end) {
		size_t len;
		const char *platform = store_get_string(&reader, &len);
		uint32_t begin = (uint32_t)store_get_number(&reader, 4);

		if (reader.bad)
			r = base_fail(x->err, -EHOSTUNREACH, "the server's answer is malformed");
		if (r >= 0 && (g.nr == AT_ONCE || (g.nr && begin != g.begin)))
			r = make_rows(x, &g);
		if (r >= 0)
			r = group_add(&g, begin, platform, len);
	}
	if (r >= 0)
		r = make_rows(x, &g);
	base_buf_release(&g.list);
	base_buf_release(&g.first);
	base_buf_release(&g.last);
	base_buf_release(&answer);
	return r;
}

static int ask_events(struct summing *x, struct base_buf *answer)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql,
				"SELECT event FROM totals WHERE epoch >= toDateTime(%lld) AND "
				"epoch < toDateTime(%lld) GROUP BY event FORMAT RowBinary",
				(long long)(x->since > 86400 ? x->since - 86400 : 0),
				(long long)x->now);

	if (r >= 0)
		r = store_ask(x->s, (const char *)sql.data, answer, x->err);
	base_buf_release(&sql);
	return r;
}

int store_sum(struct store_server *s, int64_t since, int64_t now, uint64_t *rows,
	      struct base_err *err)
{
	struct summing x = { .s = s,
			     .since = since,
			     .now = now,
			     .ver = (uint64_t)now * 1000000000,
			     .err = err };
	struct base_buf answer = { 0 };
	int r = ask_events(&x, &answer);
	struct store_reader reader = { answer.data, answer.data + answer.len, false };

	while (r >= 0 && reader.at < reader.end) {
		size_t len;
		const char *event = store_get_string(&reader, &len);

		base_buf_clear(&x.event);
		r = event ? store_quote(&x.event, event, len)
			  : base_fail(err, -EHOSTUNREACH, "the server's answer is malformed");
		for (size_t i = STORE_NR_SPANS; i-- && r >= 0;) {
			x.span = store_spans[i];
			r = make_missing(&x);
		}
	}
	*rows = x.rows;
	base_buf_release(&x.event);
	base_buf_release(&answer);
	return r < 0 ? base_fail_errno(err, r, "cannot add up what the store has") : 0;
}
