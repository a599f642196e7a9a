/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions about a fleet: servers add up, and what they answer becomes a database of its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fetch.h"

enum { DAY = 86400, PARTS_MAX = 5000 };

/* ---- which rows ------------------------------------------------------------------------------ */

static int add_time(struct base_buf *where, const char *op, int64_t s)
{
	return base_buf_printf(where, " AND epoch %s toDateTime(%lld)", op,
			       (long long)(s < 0	    ? 0
					   : s > UINT32_MAX ? UINT32_MAX
							    : s));
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

static int add_epochs(struct base_buf *where, const char *spec, struct base_err *err)
{
	const char *dots = strstr(spec, ".."), *to = dots ? dots + 2 : spec;
	size_t from_len = dots ? (size_t)(dots - spec) : strlen(spec);
	int64_t at;
	int r = 0;

	if (strcmp(spec, "all") == 0)
		return 0;
	if (from_len) {
		r = epoch_time(spec, from_len, false, &at, err);
		r = r < 0 ? r : add_time(where, ">=", at);
	}
	if (r >= 0 && *to) {
		r = epoch_time(to, strlen(to), true, &at, err);
		r = r < 0 ? r : add_time(where, "<", at);
	}
	return r;
}

static int add_last_day(struct fetch *f, struct base_err *err)
{
	struct base_buf answer = { 0 };
	/* A machine whose clock is ahead is not where the others are. */
	int r = store_ask(f->s,
			  "SELECT toUInt32(max(epoch)) FROM totals WHERE epoch <= now() + 86400 "
			  "FORMAT RowBinary",
			  &answer, err);
	struct store_reader reader = { answer.data, answer.data + answer.len, false };
	int64_t last = r < 0 ? 0 : (int64_t)store_get_number(&reader, 4);

	base_buf_release(&answer);
	return r < 0 ? r : add_time(&f->where, ">", last - DAY);
}

static int add_equal(struct base_buf *where, const char *column, const char *text)
{
	int r = base_buf_printf(where, " AND %s = ", column);

	return r < 0 ? r : store_quote(where, text, strlen(text));
}

/* A glob becomes a regular expression of ClickHouse's. */
static int add_glob(struct base_buf *where, const char *column, const char *glob)
{
	struct base_buf regex = { 0 };
	int r = base_buf_printf(&regex, "^");

	for (const char *c = glob; *c && r >= 0; c++)
		r = *c == '*'			  ? base_buf_printf(&regex, ".*")
		    : *c == '?'			  ? base_buf_printf(&regex, ".")
		    : strchr(".^$+(){}[]|\\", *c) ? base_buf_printf(&regex, "\\%c", *c)
						  : base_buf_append(&regex, c, 1);
	if (r >= 0)
		r = base_buf_printf(&regex, "$");
	if (r >= 0)
		r = base_buf_printf(where, " AND match(%s, ", column);
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

	if (r >= 0 && w->epoch && strcmp(w->epoch, "latest") != 0)
		r = add_epochs(&f->where, w->epoch, err);
	else if (r >= 0 && !timed)
		r = add_last_day(f, err);
	if (r >= 0 && w->since != INT64_MIN)
		r = add_time(&f->where, ">=", w->since);
	if (r >= 0 && w->until != INT64_MAX)
		r = add_time(&f->where, "<", w->until);
	if (r >= 0 && w->event)
		r = add_equal(&f->event, "event", w->event);
	if (r >= 0 && w->platform)
		r = add_glob(&f->where, "platform", w->platform);
	return r < 0 ? r : add_labels(f);
}

/* Which images the user means: by path, base name, shown name, or the first digits of an identity.
 */
static int add_image_names(struct fetch *f, struct base_buf *to)
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

static int make_images(struct fetch *f)
{
	int r;

	if (!f->w->nr_images)
		return 0;
	r = base_buf_printf(&f->images, " AND image GLOBAL IN (");
	if (r >= 0)
		r = add_image_names(f, &f->images);
	if (r >= 0)
		r = base_buf_printf(&f->images, ")");
	if (r >= 0)
		r = base_buf_printf(&f->routines,
				    " AND rr GLOBAL IN (SELECT r FROM routine WHERE 1%s)",
				    (const char *)f->images.data);
	return r;
}

/* ---- questions ------------------------------------------------------------------------------- */

const char *fetch_text(const struct base_buf *b)
{
	return b->len ? (const char *)b->data : "";
}

/* Asks, and has each row read by @row until the answer ends. */
static int ask(struct fetch *f, struct base_buf *sql,
	       int (*row)(struct fetch *f, struct store_reader *r), struct base_err *err)
{
	struct base_buf answer = { 0 };
	struct store_reader reader;
	int r = base_buf_printf(sql, " FORMAT RowBinary");

	if (r >= 0)
		r = store_ask(f->s, (const char *)sql->data, &answer, err);
	reader = (struct store_reader){ answer.data, answer.data + answer.len, false };
	while (r >= 0 && reader.at < reader.end) {
		r = row(f, &reader);
		if (reader.bad)
			r = base_fail(err, -EHOSTUNREACH, "the server's answer is malformed");
		/* Any machine may have sent it, and the rows of others are good. */
		f->skipped += r < 0 && r != -ENOMEM && !reader.bad;
		r = r == -ENOMEM || reader.bad ? r : 0;
	}
	base_buf_release(&answer);
	base_buf_clear(sql);
	return r;
}

/* The name of what is added up tells of how many machines it is. */
static int name_fleet(struct fetch *f, struct base_err *err)
{
	struct base_buf sql = { 0 }, answer = { 0 };
	struct store_reader reader;
	int r = base_buf_printf(&sql,
				"SELECT uniqExact(platform) FROM totals WHERE %s%s%s "
				"FORMAT RowBinary",
				fetch_text(&f->where), fetch_text(&f->event),
				fetch_text(&f->labels));

	if (r >= 0)
		r = store_ask(f->s, (const char *)sql.data, &answer, err);
	reader = (struct store_reader){ answer.data, answer.data + answer.len, false };
	snprintf(f->fleet, sizeof(f->fleet), "'fleet-of-%llu'",
		 r < 0 ? 0ULL : (unsigned long long)store_get_number(&reader, 8));
	base_buf_release(&sql);
	base_buf_release(&answer);
	return r;
}

/* The columns that keep rows apart, or constants in their place. */
static const char *platform_column(const struct fetch *f)
{
	return f->w->by_platform ? "platform" : f->fleet;
}

static const char *epoch_column(const struct fetch *f)
{
	return f->w->by_epoch ? "toUInt32(epoch)" : "toUInt32(min(epoch))";
}

static const char *group_more(const struct fetch *f)
{
	return f->w->by_platform ? (f->w->by_epoch ? ", platform, epoch" : ", platform")
				 : (f->w->by_epoch ? ", epoch" : "");
}

/* The same of the counts by offset, whose epoch need not be told where they are added up. */
static const char *epoch_or_none(const struct fetch *f)
{
	return f->w->by_epoch ? "toUInt32(epoch)" : "toUInt32(0)";
}

static int ask_events(struct fetch *f, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(
		&sql,
		"SELECT event, sum(toFloat64(samples) * period) / sum(samples), "
		"sum(toFloat64(samples) * enabled) / sum(samples) FROM totals FINAL "
		"WHERE %s%s%s GROUP BY event HAVING sum(samples) > 0 "
		"ORDER BY sum(samples) DESC LIMIT %d",
		fetch_text(&f->where), fetch_text(&f->event), fetch_text(&f->labels),
		PROFDB_NR_EVENTS);

	if (r >= 0)
		r = ask(f, &sql, fetch_take_event, err);
	base_buf_release(&sql);
	return r;
}

static int ask_heads(struct fetch *f, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(
		&sql,
		"SELECT event, image, label, %s, %s, "
		"sum(toFloat64(samples) * period) / sum(samples), "
		"sum(toFloat64(samples) * enabled) / sum(samples) FROM prof FINAL "
		"WHERE %s%s%s%s GROUP BY event, image, label%s HAVING sum(samples) > 0 "
		"ORDER BY sum(samples) DESC, image, label",
		platform_column(f), epoch_column(f), fetch_text(&f->where), fetch_text(&f->event),
		fetch_text(&f->labels), fetch_text(&f->images), group_more(f));

	if (r >= 0)
		r = ask(f, &sql, fetch_take_head, err);
	base_buf_release(&sql);
	return r;
}

static int ask_counts(struct fetch *f, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql,
				"SELECT event, image, label, %s, %s, off, sum(c) FROM prof FINAL "
				"ARRAY JOIN arrayConcat(arrayCumSum(doff), far) AS off, "
				"arrayConcat(n, nfar) AS c WHERE %s%s%s%s "
				"GROUP BY event, image, label, off%s",
				platform_column(f), epoch_or_none(f), fetch_text(&f->where),
				fetch_text(&f->event), fetch_text(&f->labels),
				fetch_text(&f->images), group_more(f));

	if (r >= 0)
		r = ask(f, &sql, fetch_take_count, err);
	base_buf_release(&sql);
	return r;
}

static int ask_images(struct fetch *f, bool symbols, const char *which, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql,
				"SELECT image, ver, kind, id, path, text, name, stem, content, "
				"machine, %s FROM image FINAL WHERE image GLOBAL IN (%s)",
				symbols ? "symbol, off, len"
					: "emptyArrayString() AS no_symbol, "
					  "emptyArrayUInt64() AS no_off, "
					  "emptyArrayUInt64() AS no_len",
				which);

	if (r >= 0)
		r = ask(f, &sql, fetch_take_image, err);
	base_buf_release(&sql);
	return r;
}

static int ask_contents(struct fetch *f, const char *which, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql,
				"SELECT content, bytes FROM content FINAL WHERE content GLOBAL IN "
				"(SELECT content FROM image FINAL WHERE image GLOBAL IN (%s))",
				which);

	if (r >= 0)
		r = ask(f, &sql, fetch_take_content, err);
	base_buf_release(&sql);
	return r;
}

static int by_offset(struct fetch *f, struct base_err *err)
{
	struct base_buf which = { 0 };
	int r = base_buf_printf(&which, "SELECT image FROM prof WHERE %s%s%s%s",
				fetch_text(&f->where), fetch_text(&f->event),
				fetch_text(&f->labels), fetch_text(&f->images));

	if (r >= 0)
		r = ask_images(f, true, (const char *)which.data, err);
	if (r >= 0)
		r = ask_contents(f, (const char *)which.data, err);
	if (r >= 0)
		r = ask_heads(f, err);
	if (r >= 0)
		r = ask_counts(f, err);
	base_buf_release(&which);
	return r;
}

/* ---- by routine ------------------------------------------------------------------------------ */

/* The routines that have samples, of tables' rows that are meant. */
static int which_routines(struct fetch *f, struct base_buf *out)
{
	return base_buf_printf(
		out, "SELECT rr FROM totals ARRAY JOIN r AS rr WHERE %s%s%s%s GROUP BY rr",
		fetch_text(&f->where), fetch_text(&f->event), fetch_text(&f->labels),
		fetch_text(&f->routines));
}

static int ask_routines(struct fetch *f, const char *which, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql,
				"SELECT r, image, symbol, off, len FROM routine FINAL "
				"WHERE r GLOBAL IN (%s)",
				which);

	if (r >= 0)
		r = ask(f, &sql, fetch_take_routine, err);
	base_buf_release(&sql);
	return r;
}

static int ask_totals(struct fetch *f, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(
		&sql,
		"SELECT event, %s, %s, rr, sum(c) "
		"FROM totals FINAL ARRAY JOIN r AS rr, n AS c WHERE %s%s%s%s GROUP BY event, rr%s "
		"ORDER BY sum(c) DESC, rr",
		platform_column(f), epoch_column(f), fetch_text(&f->where), fetch_text(&f->event),
		fetch_text(&f->labels), fetch_text(&f->routines), group_more(f));

	if (r >= 0)
		r = ask(f, &sql, fetch_take_total, err);
	base_buf_release(&sql);
	return r;
}

static int by_routine(struct fetch *f, struct base_err *err)
{
	struct base_buf which = { 0 }, images = { 0 };
	int r = which_routines(f, &which);

	if (r >= 0)
		r = base_buf_printf(&images, "SELECT image FROM routine WHERE r GLOBAL IN (%s)",
				    (const char *)which.data);
	if (r >= 0)
		r = ask_images(f, false, (const char *)images.data, err);
	if (r >= 0)
		r = ask_routines(f, (const char *)which.data, err);
	if (r >= 0)
		r = ask_totals(f, err);
	base_buf_release(&which);
	base_buf_release(&images);
	return r;
}

/* ---- by platform and by workload ---------------------------------------------------------------
 */

/* @row takes the sums of all workloads together. */
static int by_platform(struct fetch *f, int (*row)(struct fetch *f, struct store_reader *r),
		       struct base_err *err)
{
	struct base_buf sql = { 0 };
	bool part = f->w->nr_images;
	int r = base_buf_printf(&sql,
				"SELECT event, %s, %s, %s AS nr "
				"FROM totals FINAL%s WHERE %s%s%s%s GROUP BY event%s HAVING nr > 0 "
				"ORDER BY nr DESC",
				platform_column(f), epoch_column(f),
				part ? "sum(c)" : "sum(samples)",
				part ? " ARRAY JOIN r AS rr, n AS c" : "", fetch_text(&f->where),
				fetch_text(&f->event), fetch_text(&f->labels),
				fetch_text(&f->routines), group_more(f));

	if (r >= 0)
		r = ask(f, &sql, row, err);
	base_buf_release(&sql);
	return r;
}

static int by_workload(struct fetch *f, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(
		&sql,
		"SELECT event, %s, %s, comm[k + 1] AS a, exe[k + 1] AS b, cgroup[k + 1] AS g, "
		"label[k + 1] AS l, uid[k + 1] AS u, sum(c) "
		"FROM work FINAL ARRAY JOIN w AS k, image AS i, n AS c WHERE %s%s",
		platform_column(f), epoch_column(f), fetch_text(&f->where), fetch_text(&f->event));

	if (r >= 0 && f->labels.len) /* " AND label IN (…)" */
		r = base_buf_printf(&sql, " AND label[k + 1]%s",
				    fetch_text(&f->labels) + strlen(" AND label"));
	if (r >= 0 && f->images.len) {
		r = base_buf_printf(&sql, " AND i GLOBAL IN (");
		if (r >= 0)
			r = add_image_names(f, &sql);
		if (r >= 0)
			r = base_buf_printf(&sql, ")");
	}
	if (r >= 0)
		r = base_buf_printf(&sql, " GROUP BY event, a, b, g, l, u%s ORDER BY sum(c) DESC",
				    group_more(f));
	if (r >= 0)
		r = ask(f, &sql, fetch_take_workload, err);
	base_buf_release(&sql);
	return r < 0 ? r : by_platform(f, fetch_take_rest, err);
}

/* ---- files -------------------------------------------------------------------------------------
 */

static int files(struct fetch *f, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = by_offset(f, err);

	if (r >= 0)
		r = base_buf_printf(&sql,
				    "SELECT platform, toUInt32(epoch), kind, bytes FROM part FINAL "
				    "WHERE %s LIMIT %d",
				    fetch_text(&f->where), PARTS_MAX + 1);
	if (r >= 0)
		r = ask(f, &sql, fetch_take_part, err);
	base_buf_release(&sql);
	if (r >= 0 && f->nr_parts > PARTS_MAX) {
		r = base_fail(err, -DCPI_ELIMIT,
			      "more than %d files of workloads and call paths are meant",
			      PARTS_MAX);
		base_hint(err, "choose fewer machines or hours: -platform, -since, -epoch");
	}
	return r;
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

static int gather(struct fetch *f, struct base_err *err)
{
	switch (f->w->detail) {
	case STORE_BY_OFFSET:
		return by_offset(f, err);
	case STORE_BY_ROUTINE:
		return by_routine(f, err);
	case STORE_BY_PLATFORM:
		return by_platform(f, fetch_take_platform, err);
	case STORE_BY_WORKLOAD:
		return by_workload(f, err);
	case STORE_FILES:
		return files(f, err);
	}
	return -EINVAL;
}

int store_fetch(struct store_server *s, const struct store_want *w, const char *path,
		struct store_fetched *out, struct base_err *err)
{
	struct store_want want = *w;
	struct fetch f = { .s = s, .w = &want };
	char id[64];
	int r = store_schema_check(s, id, err);

	if (want.detail == STORE_BY_PLATFORM || want.detail == STORE_FILES)
		want.by_platform = true;
	if (want.detail == STORE_FILES)
		want.by_epoch = true;
	if (r >= 0)
		r = make_where(&f, err);
	if (r >= 0)
		r = make_images(&f);
	if (r >= 0 && !want.by_platform)
		r = name_fleet(&f, err);
	if (r >= 0)
		r = ask_events(&f, err);
	if (r >= 0)
		r = gather(&f, err);
	if (r >= 0)
		r = fetch_write(&f, path, out, err);
	fetch_release(&f);
	return r < 0 ? base_fail_errno(err, r, "cannot read the store") : 0;
}
