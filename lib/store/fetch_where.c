/* SPDX-License-Identifier: BSD-2-Clause */
/* A user's wishes become parts of SQL: conditions of times, platforms, labels and images, and the
 * number of a row's replicate. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fetch.h"

enum { DAY = 86400 };

const char *fetch_text(const struct base_buf *b)
{
	return b->len ? (const char *)b->data : "";
}

/* ---- which rows ------------------------------------------------------------------------------ */

static int64_t time_of(int64_t s)
{
	return s < 0 ? 0 : s > UINT32_MAX ? UINT32_MAX : s;
}

/* The times that are wanted begin at @s, or later. */
static int add_from(struct fetch *f, int64_t s)
{
	f->from = time_of(s) > f->from ? time_of(s) : f->from;
	return base_buf_printf(&f->where, " AND epoch >= toDateTime(%lld)", (long long)time_of(s));
}

/* And end before @s, or earlier. */
static int add_to(struct fetch *f, int64_t s)
{
	f->to = time_of(s) < f->to ? time_of(s) : f->to;
	return base_buf_printf(&f->where, " AND epoch < toDateTime(%lld)", (long long)time_of(s));
}

/* The digits of an epoch's name: the first time that it may mean, or (@end) the one after the last.
 */
static int epoch_time(const char *digits, size_t len, bool end, int64_t *out, struct base_err *err)
{
	struct tm tm = { .tm_mday = 1 };
	int *const fields[] = { &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec };
	size_t nr = len / 2 - 2;

	if (len < 4 || len > PROFDB_EPOCH_LEN || len % 2 || strspn(digits, "0123456789") < len) {
		base_fail(err, -DCPI_EUSAGE, "malformed epoch '%.*s'", (int)len, digits);
		base_hint(err, "an epoch is YYYYMMDDHHMM, or its first digits");
		return -DCPI_EUSAGE;
	}
	for (size_t i = 0; i < 4; i++)
		tm.tm_year = tm.tm_year * 10 + (digits[i] - '0');
	tm.tm_year -= 1900;
	for (size_t i = 0; i < nr; i++)
		*fields[i] = (digits[4 + 2 * i] - '0') * 10 + (digits[5 + 2 * i] - '0') - (i == 0);
	if (end)
		++*(nr ? fields[nr - 1] : &tm.tm_year);
	*out = timegm(&tm);
	return 0;
}

static int add_epochs(struct fetch *f, const char *spec, struct base_err *err)
{
	const char *dots = strstr(spec, ".."), *to = dots ? dots + 2 : spec;
	size_t from_len = dots ? (size_t)(dots - spec) : strlen(spec);
	int64_t at;
	int r = 0;

	if (strcmp(spec, "all") == 0)
		return 0;
	if (from_len) {
		r = epoch_time(spec, from_len, false, &at, err);
		r = r < 0 ? r : add_from(f, at);
	}
	if (r >= 0 && *to) {
		r = epoch_time(to, strlen(to), true, &at, err);
		r = r < 0 ? r : add_to(f, at);
	}
	return r;
}

static int add_last_day(struct fetch *f, struct base_err *err)
{
	struct base_buf sql = { 0 };
	uint64_t last = 0;
	/* A machine whose clock is ahead is not where the others are. */
	int r = base_buf_printf(&sql, "SELECT toUInt64(max(epoch)) FROM totals "
				      "WHERE epoch <= now() + 86400");

	if (r >= 0)
		r = store_ask_number(f->s, &sql, &last, err);
	base_buf_release(&sql);
	return r < 0 ? r : add_from(f, (int64_t)last - DAY + 1);
}

static int add_equal(struct base_buf *where, const char *column, const char *text)
{
	int r = base_buf_printf(where, " AND %s = ", column);

	return r < 0 ? r : store_quote(where, text, strlen(text));
}

/* A glob becomes a regular expression of ClickHouse's. Further members of a platform (profdb.h) are
 * meant, too. */
static int add_platforms(struct base_buf *where, const char *glob)
{
	struct base_buf regex = { 0 };
	int r = base_buf_printf(&regex, "^");

	for (const char *c = glob; *c && r >= 0; c++)
		r = *c == '*'			  ? base_buf_printf(&regex, ".*")
		    : *c == '?'			  ? base_buf_printf(&regex, ".")
		    : strchr(".^$+(){}[]|\\", *c) ? base_buf_printf(&regex, "\\%c", *c)
						  : base_buf_append(&regex, c, 1);
	if (r >= 0)
		r = base_buf_printf(&regex, "([+][0-9]+)?$");
	if (r >= 0)
		r = base_buf_printf(where, " AND match(platform, ");
	if (r >= 0)
		r = store_quote(where, (const char *)regex.data, regex.len);
	base_buf_release(&regex);
	return r < 0 ? r : base_buf_printf(where, ")");
}

static int add_labels(struct fetch *f)
{
	int r = f->w->nr_labels ? base_buf_printf(&f->labels, " AND label IN (") : 0;

	for (size_t i = 0; i < f->w->nr_labels && r >= 0; i++) {
		r = i ? base_buf_printf(&f->labels, ", ") : 0;
		if (r >= 0)
			r = store_quote(&f->labels, f->w->labels[i], strlen(f->w->labels[i]));
	}
	return r < 0 || !f->w->nr_labels ? r : base_buf_printf(&f->labels, ")");
}

/* The times and platforms of all tables, then the labels, which not all have. */
static int make_where(struct fetch *f, struct base_err *err)
{
	const struct store_want *w = f->w;
	bool timed = w->since != INT64_MIN || w->until != INT64_MAX;
	int r = base_buf_printf(&f->where, "1");

	f->to = INT64_MAX;

	if (r >= 0 && w->epoch && strcmp(w->epoch, "latest") != 0)
		r = add_epochs(f, w->epoch, err);
	else if (r >= 0 && !timed)
		r = add_last_day(f, err);
	if (r >= 0 && w->since != INT64_MIN)
		r = add_from(f, w->since);
	if (r >= 0 && w->until != INT64_MAX)
		r = add_to(f, w->until);
	if (r >= 0 && w->event)
		r = add_equal(&f->event, "event", w->event);
	if (r >= 0 && w->platform)
		r = add_platforms(&f->platforms, w->platform);
	if (r >= 0)
		r = base_buf_printf(&f->where, "%s", fetch_text(&f->platforms));
	return r < 0 ? r : add_labels(f);
}

/* Which images the user means: by path, base name, shown name, or the first digits of an identity.
 */
int fetch_image_names(struct fetch *f, struct base_buf *to)
{
	int r = base_buf_printf(to, "SELECT image FROM image WHERE 0");

	for (size_t i = 0; i < f->w->nr_images && r >= 0; i++) {
		const char *name = f->w->images[i];
		size_t len = strlen(name);

		r = base_buf_printf(to, " OR path = ");
		r = r < 0 ? r : store_quote(to, name, len);
		r = r < 0 ? r : base_buf_printf(to, " OR name = ");
		r = r < 0 ? r : store_quote(to, name, len);
		r = r < 0 ? r : base_buf_printf(to, " OR endsWith(path, concat('/', ");
		r = r < 0 ? r : store_quote(to, name, len);
		r = r < 0 ? r : base_buf_printf(to, "))");
		if (r >= 0 && len >= 4 && strspn(name, "0123456789abcdef") == len)
			r = base_buf_printf(to, " OR startsWith(id, '%s')", name);
	}
	return r;
}

/* "IN (…)" keys. With GLOBAL before it, which questions need on a cluster, a server of version 18
 * would not look into its index. */
int fetch_keys(struct base_buf *to, const uint8_t *keys, size_t nr)
{
	int r = base_buf_printf(to, "IN (%s", nr ? "" : "''");

	for (size_t i = 0; i < nr && r >= 0; i++) {
		r = i ? base_buf_printf(to, ", ") : 0;
		if (r >= 0)
			r = store_quote(to, (const char *)keys + i * STORE_KEY, STORE_KEY);
	}
	return r < 0 ? r : base_buf_printf(to, ")");
}

static int add_question(struct base_buf *to, const char *sql)
{
	return base_buf_printf(to, "GLOBAL IN (%s)", sql);
}

/* Few are asked for by their keys, which the tables are sorted by. */
static int add_images(struct fetch *f, struct base_err *err)
{
	struct base_buf sql = { 0 }, answer = { 0 };
	int r = fetch_image_names(f, &sql);
	size_t len;

	if (r >= 0)
		r = base_buf_printf(&sql, " GROUP BY image");
	len = sql.len;
	if (r >= 0)
		r = base_buf_printf(&sql, " FORMAT RowBinary");
	if (r >= 0)
		r = store_ask(f->s, (const char *)sql.data, &answer, err);
	if (r >= 0)
		sql.data[len] = 0;
	if (r >= 0)
		r = base_buf_printf(&f->images, " AND image ");
	if (r >= 0 && answer.len <= FETCH_KEYS * STORE_KEY)
		r = fetch_keys(&f->images, answer.data, answer.len / STORE_KEY);
	else if (r >= 0)
		r = add_question(&f->images, (const char *)sql.data);
	base_buf_release(&sql);
	base_buf_release(&answer);
	return r;
}

static int make_images(struct fetch *f, struct base_err *err)
{
	int r;

	if (!f->w->nr_images)
		return 0;
	r = add_images(f, err);
	if (r >= 0)
		r = base_buf_printf(&f->routines,
				    " AND place GLOBAL IN (SELECT r FROM routine WHERE 1%s)",
				    (const char *)f->images.data);
	return r;
}

/* ---- replicates ------------------------------------------------------------------------------ */

/*
 * Replicates are parts of the samples, by machine and epoch, whose differences show how samples
 * vary. They are divided as dcpiregress divides those of a database (tools/regress_sets.c): each
 * machine and epoch is one; where these are too many, each has several epochs, and then several
 * machines.
 */

/* Asks for the different values of a column, in order. */
static int ask_distinct(struct fetch *f, const char *column, const char *as, unsigned int limit,
			struct base_buf *answer, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql, "SELECT %s FROM totals WHERE %s%s%s GROUP BY %s ORDER BY %s",
				as, fetch_text(&f->where), fetch_text(&f->event),
				fetch_text(&f->labels), column, column);

	if (r >= 0 && limit)
		r = base_buf_printf(&sql, " LIMIT %u", limit);
	if (r >= 0)
		r = base_buf_printf(&sql, " FORMAT RowBinary");
	if (r >= 0)
		r = store_ask(f->s, (const char *)sql.data, answer, err);
	base_buf_release(&sql);
	return r;
}

/* The list of platforms, quoted; returns how many, or negative. */
static int quote_platforms(const struct base_buf *answer, struct base_buf *list)
{
	struct store_reader reader = { answer->data, answer->data + answer->len, false };
	int nr = 0, r = 0;

	for (; r >= 0 && reader.at < reader.end; nr++) {
		size_t len;
		const char *text = store_get_string(&reader, &len);

		if (!text)
			return -EHOSTUNREACH;
		r = nr ? base_buf_printf(list, ", ") : 0;
		if (r >= 0)
			r = store_quote(list, text, len);
	}
	return r < 0 ? r : nr;
}

/* transform(platform, [NAMES], [0, PER, 2 PER …], 0): the first replicate of a machine. */
static int add_machine(struct fetch *f, const char *names, size_t nr, size_t per)
{
	int r = base_buf_printf(&f->replicate, "toUInt8(transform(platform, [%s], [", names);

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = base_buf_printf(&f->replicate, "%s%zu", i ? ", " : "", i * per);
	return r < 0 ? r : base_buf_printf(&f->replicate, "], 0)");
}

/* + (epoch >= BEGIN) …: how many of the machine's replicates are earlier. Version 18 does not find
 * a column that only a lambda names. */
static int add_begins(struct fetch *f, const struct base_buf *epochs, size_t per)
{
	size_t nr = epochs->len / 4;
	int r = 0;

	for (size_t i = 1; i < per && r >= 0; i++) {
		const uint8_t *at = epochs->data + i * nr / per * 4;
		struct store_reader reader = { at, at + 4, false };

		r = base_buf_printf(&f->replicate, " + (toUInt32(epoch) >= %u)",
				    (unsigned int)store_get_number(&reader, 4));
	}
	return r < 0 ? r : base_buf_printf(&f->replicate, ")");
}

/* A machine's name tells its replicate where there are more machines than replicates. */
static int add_hash(struct fetch *f)
{
	return base_buf_printf(&f->replicate,
			       "bitAnd(reinterpretAsUInt8(substring(SHA256(platform), 1, 1)), %d)",
			       STORE_REPLICATES - 1);
}

static int divide(struct fetch *f, const char *names, size_t nr, struct base_err *err)
{
	struct base_buf epochs = { 0 };
	int r = ask_distinct(f, "epoch", "toUInt32(epoch)", 0, &epochs, err);
	size_t per = epochs.len / 4;

	if (per > STORE_REPLICATES / nr)
		per = STORE_REPLICATES / nr;
	f->replicate_epochs = per > 1;
	if (r >= 0)
		r = add_machine(f, names, nr, per);
	if (r >= 0)
		r = add_begins(f, &epochs, per);
	base_buf_release(&epochs);
	return r;
}

/* Makes the expression that numbers the replicates of rows. 0 or negative with @err. */
static int find_replicates(struct fetch *f, struct base_err *err)
{
	struct base_buf platforms = { 0 }, names = { 0 };
	int r = ask_distinct(f, "platform", "platform", STORE_REPLICATES + 1, &platforms, err), nr;

	nr = r < 0 ? r : quote_platforms(&platforms, &names);
	if (nr == -EHOSTUNREACH)
		base_fail(err, nr, "the server's answer is malformed");
	if (nr > STORE_REPLICATES)
		r = add_hash(f);
	else
		r = nr <= 0 ? nr : divide(f, fetch_text(&names), (size_t)nr, err);
	base_buf_release(&platforms);
	base_buf_release(&names);
	return r;
}

int fetch_conditions(struct fetch *f, struct base_err *err)
{
	int r = make_where(f, err);

	if (r >= 0)
		r = make_images(f, err);
	return r < 0 || !f->w->replicates ? r : find_replicates(f, err);
}

int fetch_from(struct fetch *f, struct base_buf *sql, const char *table, const char *columns,
	       const char *where, const char *arrays)
{
	if (!f->replicate.len)
		return base_buf_printf(sql, "%s ARRAY JOIN %s WHERE %s", table, arrays, where);
	return base_buf_printf(
		sql, "(SELECT %s, %s AS replicate FROM %s WHERE %s) ARRAY JOIN %s WHERE 1", columns,
		fetch_text(&f->replicate), table, where, arrays);
}
