/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions about a fleet: servers add up, and what they answer becomes a database of its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fetch.h"

enum { PARTS_MAX = 5000 };

/* ---- questions ------------------------------------------------------------------------------- */

/* Has each row read by @row until the answer ends. */
static int take_rows(struct fetch *f, const struct base_buf *answer,
		     int (*row)(struct fetch *f, struct store_reader *r), struct base_err *err)
{
	struct store_reader reader = { answer->data, answer->data + answer->len, false };
	int r = 0;

	while (r >= 0 && reader.at < reader.end) {
		r = row(f, &reader);
		if (reader.bad)
			return base_fail(err, -EHOSTUNREACH, "the server's answer is malformed");
		/* Any machine may have sent it, and the rows of others are good. */
		f->skipped += r < 0 && r != -ENOMEM;
		r = r == -ENOMEM ? r : 0;
	}
	return r;
}

static int ask(struct fetch *f, struct base_buf *sql,
	       int (*row)(struct fetch *f, struct store_reader *r), struct base_err *err)
{
	struct base_buf answer = { 0 };
	int r = base_buf_printf(sql, " FORMAT RowBinary");

	if (r >= 0)
		r = store_ask(f->s, (const char *)sql->data, &answer, err);
	if (r >= 0)
		r = take_rows(f, &answer, row, err);
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

/* Heads are few where an image is meant; each is asked for apart then, which is much faster. */
enum { HEADS_APART = 64 };

static int ask_heads(struct fetch *f, struct base_buf *answer, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(
		&sql,
		"SELECT event, image, label, %s, %s, "
		"sum(toFloat64(samples) * period) / sum(samples), "
		"sum(toFloat64(samples) * enabled) / sum(samples) FROM prof FINAL "
		"WHERE %s%s%s%s GROUP BY event, image, label%s HAVING sum(samples) > 0 "
		"ORDER BY sum(samples) DESC, image, label FORMAT RowBinary",
		platform_column(f), epoch_column(f), fetch_text(&f->where), fetch_text(&f->event),
		fetch_text(&f->labels), fetch_text(&f->images), group_more(f));

	if (r >= 0)
		r = store_ask(f->s, (const char *)sql.data, answer, err);
	base_buf_release(&sql);
	return r;
}

#define PLACES "ARRAY JOIN arrayConcat(off, far) AS place, arrayConcat(n, nfar) AS c"

static int ask_all_counts(struct fetch *f, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql,
				"SELECT event, image, label, %s, %s, place, sum(c) "
				"FROM prof FINAL " PLACES " WHERE %s%s%s%s "
				"GROUP BY event, image, label, place%s",
				platform_column(f), epoch_or_none(f), fetch_text(&f->where),
				fetch_text(&f->event), fetch_text(&f->labels),
				fetch_text(&f->images), group_more(f));

	if (r >= 0)
		r = ask(f, &sql, fetch_take_count, err);
	base_buf_release(&sql);
	return r;
}

/* The counts of one event, image, and label, which are constants of SQL. */
static int ask_counts(struct fetch *f, const char *event, const char *image, const char *label,
		      struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(
		&sql,
		"SELECT %s AS e, toFixedString(%s, 16) AS i, %s AS l, %s, %s, place, sum(c) "
		"FROM prof FINAL " PLACES " WHERE event = e AND image = i "
		"AND label = l AND %s GROUP BY place%s",
		event, image, label, platform_column(f), epoch_or_none(f), fetch_text(&f->where),
		group_more(f));

	if (r >= 0)
		r = ask(f, &sql, fetch_take_count, err);
	base_buf_release(&sql);
	return r;
}

/* The event, image, and label that a head begins with, quoted. */
struct quoted {
	struct base_buf event, image, label;
};

static void quoted_release(struct quoted *q)
{
	base_buf_release(&q->event);
	base_buf_release(&q->image);
	base_buf_release(&q->label);
}

static int quote_head(struct store_reader *reader, struct quoted *q)
{
	size_t len;
	const char *text = store_get_string(reader, &len);
	int r = text ? store_quote(&q->event, text, len) : 0;

	text = store_get_bytes(reader, STORE_KEY);
	if (text && r >= 0)
		r = store_quote(&q->image, text, STORE_KEY);
	text = store_get_string(reader, &len);
	if (text && r >= 0)
		r = store_quote(&q->label, text, len);
	return r;
}

/* The heads, each once though it may be there for many platforms and epochs. */
static int list_heads(const struct base_buf *answer, struct quoted *heads, size_t *nr)
{
	struct store_reader reader = { answer->data, answer->data + answer->len, false };
	struct base_map seen = { 0 };
	size_t len;
	int r = 0;

	while (r >= 0 && reader.at < reader.end && !reader.bad && *nr <= HEADS_APART) {
		const uint8_t *from = reader.at;
		struct quoted q = { 0 };
		bool first;

		r = quote_head(&reader, &q);
		first = !base_map_get(&seen, from, (size_t)(reader.at - from));
		if (r >= 0 && first)
			r = base_map_set(&seen, from, (size_t)(reader.at - from), heads);
		store_get_string(&reader, &len);
		store_get_bytes(&reader, 4 + 8 + 8);
		if (r >= 0 && first && *nr < HEADS_APART)
			heads[*nr] = q;
		else
			quoted_release(&q);
		*nr += first;
	}
	base_map_release(&seen);
	return r;
}

static int ask_images(struct fetch *f, bool symbols, const char *which, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql,
				"SELECT image, ver, kind, id, path, text, name, stem, content, "
				"machine, %s FROM image FINAL WHERE image %s",
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
				"(SELECT content FROM image FINAL WHERE image %s)",
				which);

	if (r >= 0)
		r = ask(f, &sql, fetch_take_content, err);
	base_buf_release(&sql);
	return r;
}

static int ask_profiles(struct fetch *f, const struct base_buf *answer, struct base_err *err)
{
	struct quoted heads[HEADS_APART] = { 0 };
	size_t nr = 0;
	int r = list_heads(answer, heads, &nr);

	if (r >= 0 && nr > HEADS_APART)
		r = ask_all_counts(f, err);
	for (size_t i = 0; i < nr && i < HEADS_APART; i++) {
		if (r >= 0 && nr <= HEADS_APART)
			r = ask_counts(f, (const char *)heads[i].event.data,
				       (const char *)heads[i].image.data,
				       (const char *)heads[i].label.data, err);
		quoted_release(&heads[i]);
	}
	return r;
}

/* The images that heads are of: their keys, or a question where they are many. */
static int which_images(struct fetch *f, const struct base_buf *heads, struct base_buf *out,
			struct base_err *err)
{
	struct store_reader reader = { heads->data, heads->data + heads->len, false };
	struct base_map seen = { 0 };
	struct base_buf keys = { 0 };
	size_t len;
	int r = 0;

	while (r >= 0 && reader.at < reader.end && !reader.bad &&
	       keys.len <= FETCH_KEYS * STORE_KEY) {
		const void *key = (store_get_string(&reader, &len), store_get_bytes(&reader, 16));

		store_get_string(&reader, &len);
		store_get_string(&reader, &len);
		store_get_bytes(&reader, 4 + 8 + 8);
		if (!key || base_map_get(&seen, key, STORE_KEY))
			continue;
		r = base_map_set(&seen, key, STORE_KEY, f);
		if (r >= 0)
			r = base_buf_append(&keys, key, STORE_KEY);
	}
	if (reader.bad)
		r = base_fail(err, -EHOSTUNREACH, "the server's answer is malformed");
	else if (r >= 0 && keys.len <= FETCH_KEYS * STORE_KEY)
		r = fetch_keys(out, keys.data, keys.len / STORE_KEY);
	else if (r >= 0)
		r = base_buf_printf(out, "GLOBAL IN (SELECT image FROM prof WHERE %s%s%s%s)",
				    fetch_text(&f->where), fetch_text(&f->event),
				    fetch_text(&f->labels), fetch_text(&f->images));
	base_map_release(&seen);
	base_buf_release(&keys);
	return r;
}

static int by_offset(struct fetch *f, struct base_err *err)
{
	struct base_buf heads = { 0 }, which = { 0 };
	int r = ask_heads(f, &heads, err);

	if (r >= 0)
		r = which_images(f, &heads, &which, err);
	if (r >= 0)
		r = ask_images(f, true, (const char *)which.data, err);
	if (r >= 0)
		r = ask_contents(f, (const char *)which.data, err);
	if (r >= 0)
		r = take_rows(f, &heads, fetch_take_head, err);
	if (r >= 0)
		r = ask_profiles(f, &heads, err);
	base_buf_release(&heads);
	base_buf_release(&which);
	return r;
}

/* ---- by routine ------------------------------------------------------------------------------ */

/* Numbers of routines in one question, which a server takes up to 256 KiB long. */
enum { NUMBERS_AT_ONCE = 8000 };

/* Facts of an event's rows that are known before their arrays are read, which is little work. */
struct facts {
	uint32_t epoch; /* the first */
	uint64_t samples;
};

static int ask_facts(struct fetch *f, const char *event, bool final, struct facts *out,
		     struct base_err *err)
{
	struct base_buf sql = { 0 }, answer = { 0 };
	struct store_reader reader;
	int r = base_buf_printf(
		&sql,
		"SELECT toUInt32(min(epoch)), sum(samples) FROM totals%s WHERE event = %s AND %s%s "
		"FORMAT RowBinary",
		final ? " FINAL" : "", event, fetch_text(&f->where), fetch_text(&f->labels));

	if (r >= 0)
		r = store_ask(f->s, (const char *)sql.data, &answer, err);
	reader = (struct store_reader){ answer.data, answer.data + answer.len, false };
	out->epoch = (uint32_t)store_get_number(&reader, 4);
	out->samples = store_get_number(&reader, 8);
	base_buf_release(&sql);
	base_buf_release(&answer);
	return r;
}

/* The epoch is a constant where rows of all epochs are added up. */
static int ask_sums(struct fetch *f, const char *event, const struct facts *facts, bool final,
		    struct base_buf *answer, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql, "SELECT %s AS e, %s, ", event, platform_column(f));

	if (r >= 0 && f->w->by_epoch)
		r = base_buf_printf(&sql, "toUInt32(epoch)");
	else if (r >= 0)
		r = base_buf_printf(&sql, "toUInt32(%u)", facts->epoch);
	if (r >= 0)
		r = base_buf_printf(&sql,
				    ", rr, sum(c) FROM totals%s ARRAY JOIN r AS rr, n AS c WHERE "
				    "event = %s AND %s%s%s "
				    "GROUP BY rr%s ORDER BY sum(c) DESC, rr FORMAT RowBinary",
				    final ? " FINAL" : "", event, fetch_text(&f->where),
				    fetch_text(&f->labels), fetch_text(&f->routines),
				    group_more(f));
	if (r >= 0)
		r = store_ask(f->s, (const char *)sql.data, answer, err);
	base_buf_release(&sql);
	return r;
}

/*
 * Each event is asked for apart: a server adds up much faster where the key is one number. FINAL
 * costs as much again and is left out where no row has an older one: as long as the rows' own sum
 * is that which it has with FINAL. @event is quoted; the answer is kept, as names come between.
 */
static int ask_totals(struct fetch *f, const char *event, struct base_buf *answer,
		      struct base_err *err)
{
	struct facts facts, plain, after;
	int r = ask_facts(f, event, true, &facts, err);
	bool once;

	if (r >= 0)
		r = ask_facts(f, event, false, &plain, err);
	if (r < 0)
		return r;
	once = facts.samples == plain.samples;
	r = ask_sums(f, event, &facts, !once, answer, err);
	if (r < 0 || !once)
		return r;
	r = ask_facts(f, event, false, &after, err);
	if (r >= 0 && after.samples != plain.samples)
		r = ask_sums(f, event, &facts, true, answer, err);
	return r;
}

/* The totals of all events, each in a buffer of its own. */
static int ask_all_totals(struct fetch *f, struct base_buf totals[PROFDB_NR_EVENTS],
			  struct base_err *err)
{
	struct base_buf quoted = { 0 };
	int r = 0;

	for (size_t i = 0; i < f->nr_events && r >= 0; i++) {
		base_buf_clear(&quoted);
		r = store_quote(&quoted, f->events[i].name, strlen(f->events[i].name));
		if (r >= 0)
			r = ask_totals(f, (const char *)quoted.data, &totals[i], err);
	}
	base_buf_release(&quoted);
	return r;
}

/* The routines of an answer, once each. */
static int note_wanted(struct fetch *f, const struct base_buf *answer, struct base_buf *numbers)
{
	struct store_reader reader = { answer->data, answer->data + answer->len, false };
	size_t len;
	int r = 0;

	while (r >= 0 && reader.at < reader.end && !reader.bad) {
		uint64_t number;

		store_get_string(&reader, &len);
		store_get_string(&reader, &len);
		store_get_number(&reader, 4);
		number = store_get_number(&reader, 8);
		store_get_bytes(&reader, 8);
		if (reader.bad || base_map_get(&f->wanted, &number, sizeof(number)))
			continue;
		r = base_map_set(&f->wanted, &number, sizeof(number), f);
		if (r >= 0)
			r = base_buf_append(numbers, &number, sizeof(number));
	}
	return r;
}

/* The names of the routines that @which, a condition, is true of, and their images. */
static int ask_routines(struct fetch *f, const char *which, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql, "GLOBAL IN (SELECT image FROM routine WHERE %s)", which);

	if (r >= 0)
		r = ask_images(f, f->w->symbols, (const char *)sql.data, err);
	if (r >= 0 && f->w->symbols)
		r = ask_contents(f, (const char *)sql.data, err);
	base_buf_clear(&sql);
	if (r >= 0)
		r = base_buf_printf(&sql,
				    "SELECT r, image, symbol, off, len FROM routine FINAL "
				    "WHERE %s",
				    which);
	if (r >= 0)
		r = ask(f, &sql, fetch_take_routine, err);
	base_buf_release(&sql);
	return r;
}

static int ask_some_routines(struct fetch *f, const uint64_t *numbers, size_t nr,
			     struct base_err *err)
{
	struct base_buf which = { 0 };
	int r = base_buf_printf(&which, "r IN (");

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = base_buf_printf(&which, "%s%llu", i ? "," : "", (unsigned long long)numbers[i]);
	if (r >= 0)
		r = base_buf_printf(&which, ")");
	if (r >= 0)
		r = ask_routines(f, (const char *)which.data, err);
	base_buf_release(&which);
	return r;
}

static int count_routines(struct fetch *f, uint64_t *out, struct base_err *err)
{
	struct base_buf answer = { 0 };
	int r = store_ask(f->s, "SELECT count() FROM routine FORMAT RowBinary", &answer, err);
	struct store_reader reader = { answer.data, answer.data + answer.len, false };

	*out = store_get_number(&reader, 8);
	base_buf_release(&answer);
	return r;
}

/* Where many of the store's routines are meant, all are asked for: that is one question. */
static int ask_names(struct fetch *f, const struct base_buf *numbers, struct base_err *err)
{
	const uint64_t *v = (const uint64_t *)numbers->data;
	size_t nr = numbers->len / sizeof(*v);
	uint64_t all;
	int r = count_routines(f, &all, err);

	if (r >= 0 && nr > NUMBERS_AT_ONCE && nr > all / 8)
		return ask_routines(f, "1", err);
	for (size_t i = 0; i < nr && r >= 0; i += NUMBERS_AT_ONCE)
		r = ask_some_routines(f, v + i, nr - i < NUMBERS_AT_ONCE ? nr - i : NUMBERS_AT_ONCE,
				      err);
	return r;
}

static int by_routine(struct fetch *f, struct base_err *err)
{
	struct base_buf totals[PROFDB_NR_EVENTS] = { { 0 } }, numbers = { 0 };
	size_t nr = f->nr_events;
	int r = ask_all_totals(f, totals, err);

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = note_wanted(f, &totals[i], &numbers);
	if (r >= 0)
		r = ask_names(f, &numbers, err);
	for (size_t i = 0; i < nr; i++) {
		if (r >= 0)
			r = take_rows(f, &totals[i], fetch_take_total, err);
		base_buf_release(&totals[i]);
	}
	base_buf_release(&numbers);
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
			r = fetch_image_names(f, &sql);
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
	int r = fetch_check_empty(path, err);

	if (r >= 0)
		r = store_schema_check(s, id, err);
	if (want.detail == STORE_BY_PLATFORM || want.detail == STORE_FILES)
		want.by_platform = true;
	if (want.detail == STORE_FILES)
		want.by_epoch = true;
	if (r >= 0)
		r = fetch_conditions(&f, err);
	if (r >= 0 && !want.by_platform)
		r = name_fleet(&f, err);
	if (r >= 0 && want.detail != STORE_BY_OFFSET && want.detail != STORE_FILES)
		r = ask_events(&f, err); /* by offset the heads tell it */
	if (r >= 0)
		r = gather(&f, err);
	if (r >= 0)
		r = fetch_write(&f, path, out, err);
	fetch_release(&f);
	return r < 0 ? base_fail_errno(err, r, "cannot read the store") : 0;
}
