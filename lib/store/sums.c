/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts of machines by routine and by offset are added up for some hours and for a day, so that
 * questions about many hours read few rows. The rows of sums are copies: nothing is known from them
 * alone.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store_internal.h"

const uint32_t store_spans[STORE_NR_SPANS] = { 86400, 21600 };

#define LABEL_OWN "concat(label, '/', toString(toUInt32(epoch)))"
#define PLACES	  "arrayMap((v1, v2) -> toUInt64(65536 * v2 + v1), lo, hi)"
#define COUNTS	  "arrayMap((v1, v2) -> toUInt64(256 * v2 + v1), nlo, nhi)"

const struct store_source store_sources[STORE_NR_SOURCES] = {
	[STORE_BY_NUMBER] = { .hours = "totals",
			      .sums = "sums",
			      .print = "cityHash64(label, toUInt32(epoch), ver, samples)",
			      .own = "label, platform, epoch",
			      .own_text = LABEL_OWN,
			      .key = "",
			      .arrays = "r AS place, n AS c",
			      .sums_arrays = "r AS place, n AS c",
			      .columns = "r, n",
			      .sums_columns = "r, n" },
	[STORE_BY_PLACE] = { .hours = "prof",
			     .sums = "profsums",
			     .print = "cityHash64(file, label, toUInt32(epoch), ver, samples)",
			     .own = "file, platform, epoch",
			     .own_text = "concat(file, '/', toString(toUInt32(epoch)))",
			     .key = "image, ",
			     .arrays = "arrayConcat(" PLACES ", off, far) AS place, "
				       "arrayConcat(" COUNTS ", n, nfar) AS c",
			     .sums_arrays = "arrayConcat(" PLACES ", far) AS place, "
					    "arrayConcat(" COUNTS ", nfar) AS c",
			     .columns = "off, n, lo, hi, nlo, nhi, far, nfar",
			     .sums_columns = "lo, hi, nlo, nhi, far, nfar" },
};
static const enum store_table_nr tables[STORE_NR_SOURCES] = {
	[STORE_BY_NUMBER] = STORE_SUMS,
	[STORE_BY_PLACE] = STORE_PROFSUMS,
};

int store_sums_bad(struct base_buf *sql, const struct store_source *source, uint32_t span,
		   const char *which, const char *final)
{
	return base_buf_printf(
		sql,
		"SELECT %splatform, b FROM ("
		"SELECT %splatform, toUInt32(intDiv(toUInt32(epoch), %u) * %u) AS b, "
		"%s AS x, toUInt64(0) AS y FROM %s%s WHERE %s UNION ALL "
		"SELECT %splatform, toUInt32(epoch) AS b, toUInt64(0) AS x, print AS y "
		"FROM %s FINAL WHERE span = %u AND %s) "
		"GROUP BY %splatform, b HAVING sum(x) != sum(y)",
		source->key, source->key, span, span, source->print, source->hours, final, which,
		source->key, source->sums, span, which, source->key);
}

/* ---- numbers and counts, in order ------------------------------------------------------------ */

struct count {
	uint64_t number, n;
};

/* Rows that are added up: their first columns, and what they have together. */
struct sum {
	uint8_t image[STORE_KEY];
	char *platform, *label;
	uint64_t print, samples;
	struct count *v;
	size_t nr;
};

static uint64_t number_at(const uint8_t *values, size_t i)
{
	uint64_t v;

	memcpy(&v, values + 8 * i, sizeof(v));
	return le64toh(v);
}

/* Adds @nr counts whose numbers ascend. */
static int add_ascending(struct sum *s, const uint8_t *numbers, const uint8_t *counts, size_t nr)
{
	struct count *to = malloc((s->nr + nr + 1) * sizeof(*to));
	size_t i = 0, k = 0, at = 0;

	if (!to)
		return -ENOMEM;
	while (i < s->nr || k < nr) {
		uint64_t number = k < nr ? number_at(numbers, k) : UINT64_MAX;

		if (i < s->nr && (k == nr || s->v[i].number <= number)) {
			if (k < nr && s->v[i].number == number)
				s->v[i].n += number_at(counts, k++);
			to[at++] = s->v[i++];
		} else {
			to[at++] = (struct count){ number, number_at(counts, k++) };
		}
	}
	free(s->v);
	s->v = to;
	s->nr = at;
	return 0;
}

/* A row's numbers ascend but for those that did not fit into its first columns. */
static int add_counts(struct sum *s, const uint8_t *numbers, const uint8_t *counts, size_t nr)
{
	int r = 0;

	for (size_t from = 0, to; from < nr && r >= 0; from = to) {
		for (to = from + 1; to < nr && number_at(numbers, to - 1) < number_at(numbers, to);)
			to++;
		r = add_ascending(s, numbers + 8 * from, counts + 8 * from, to - from);
	}
	return r;
}

/* ---- what is to be made ---------------------------------------------------------------------- */

/* Machines, or images of machines, that one question is for. */
struct group {
	struct base_buf list, images; /* "('IMAGE', 'NAME'), …" or "'NAME', …"; "'IMAGE', …" */
	struct base_buf first, last;  /* names, quoted */
	uint8_t image[STORE_KEY];     /* the last one's */
	uint32_t begin;
	size_t nr;
};

struct summing {
	struct store_server *s;
	int64_t since, now;
	uint64_t ver, rows;
	const struct store_source *source;
	const struct store_table *table;
	const char *event; /* not quoted */
	struct base_buf quoted_event;
	size_t level, most; /* most: of a group */
	struct group group;
	struct sum *v;
	size_t nr, cap;
	struct base_map by_key; /* index + 1 */
	struct base_map seen;	/* rows that were added up */
	bool twice;		/* one of them has an older one */
	struct base_buf out;	/* rows that are to be inserted */
	struct base_err *err;
};

/* An answer has some hundred megabytes at most, and a question's text less than ClickHouse takes.
 */
enum { MACHINES = 50, IMAGES = 500, TEXT = 60000, OUT = 32 << 20 };

static int malformed(struct summing *x)
{
	return base_fail(x->err, -EHOSTUNREACH, "the server's answer is malformed");
}

static uint32_t span_of(const struct summing *x)
{
	return store_spans[x->level];
}

static bool of_images(const struct summing *x)
{
	return x->source->key[0];
}

/* Spans that have ended, from the one on in which @since lies. */
static int ask_missing(struct summing *x, struct base_buf *answer)
{
	struct base_buf which = { 0 }, sql = { 0 };
	int64_t since = x->since > 0 ? x->since : 0;
	int r = base_buf_printf(&which,
				"event = %s AND epoch >= toDateTime(%lld) AND "
				"epoch < toDateTime(%lld)",
				(const char *)x->quoted_event.data,
				(long long)(since - since % span_of(x)),
				(long long)(x->now - x->now % span_of(x)));

	if (r >= 0)
		r = store_sums_bad(&sql, x->source, span_of(x), (const char *)which.data, " FINAL");
	if (r >= 0)
		r = base_buf_printf(&sql, " ORDER BY b, %splatform FORMAT RowBinary",
				    x->source->key);
	if (r >= 0)
		r = store_ask(x->s, (const char *)sql.data, answer, x->err);
	base_buf_release(&which);
	base_buf_release(&sql);
	return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void forget(struct summing *x)
{
	for (size_t i = 0; i < x->nr; i++) {
		free(x->v[i].platform);
		free(x->v[i].label);
		free(x->v[i].v);
	}
	x->nr = 0;
	base_map_release(&x->by_key);
	x->by_key = (struct base_map){ 0 };
	base_map_release(&x->seen);
	x->seen = (struct base_map){ 0 };
}

/* The columns that tell rows apart, and their sums. */
struct text {
	const char *v;
	size_t len;
};

static int make_key(struct base_buf *key, const void *image, const struct text *platform,
		    const struct text *rest)
{
	int r = image ? base_buf_append(key, image, STORE_KEY) : 0;

	if (r >= 0)
		r = store_put_string(key, platform->v, platform->len);
	return r < 0 ? r : store_put_string(key, rest->v, rest->len);
}

/* An older row may have another label than the newer one of its file. */
static int note_row(struct summing *x, const void *image, const struct text *platform,
		    const struct text *own)
{
	struct base_buf key = { 0 };
	int r = make_key(&key, image, platform, own);

	if (r >= 0 && base_map_get(&x->seen, key.data, key.len))
		x->twice = true;
	if (r >= 0)
		r = base_map_set(&x->seen, key.data, key.len, x);
	base_buf_release(&key);
	return r;
}

static int add_sum(struct summing *x, const void *image, const struct text *platform,
		   const struct text *label)
{
	struct sum *s;
	int r = base_grow(&x->v, &x->cap, x->nr + 1, sizeof(*x->v));

	if (r < 0)
		return r;
	s = &x->v[x->nr++];
	*s = (struct sum){ .platform = strndup(platform->v, platform->len),
			   .label = strndup(label->v, label->len) };
	if (image)
		memcpy(s->image, image, STORE_KEY);
	return s->platform && s->label ? 0 : -ENOMEM;
}

static int find_sum(struct summing *x, const void *image, const struct text *platform,
		    const struct text *label, struct sum **out)
{
	struct base_buf key = { 0 };
	int r = make_key(&key, image, platform, label);
	size_t at = r < 0 ? 0 : (size_t)(uintptr_t)base_map_get(&x->by_key, key.data, key.len);

	if (r >= 0 && !at) {
		r = add_sum(x, image, platform, label);
		at = x->nr;
		if (r >= 0)
			r = base_map_set(&x->by_key, key.data, key.len, (void *)(uintptr_t)at);
	}
	base_buf_release(&key);
	*out = r < 0 ? NULL : &x->v[at - 1];
	return r;
}

static struct text get_text(struct store_reader *r)
{
	struct text t;

	t.v = store_get_string(r, &t.len);
	return t;
}

static int take_row(struct summing *x, struct store_reader *r)
{
	const void *image = of_images(x) ? store_get_bytes(r, STORE_KEY) : NULL;
	struct text platform = get_text(r), label = get_text(r), own = get_text(r);
	uint64_t print = store_get_number(r, 8), samples = store_get_number(r, 8);
	const uint8_t *numbers, *counts;
	struct sum *s;
	size_t nr;
	int result;

	nr = store_get_count(r, 8);
	numbers = store_get_bytes(r, 8 * nr);
	r->bad |= store_get_count(r, 8) != nr;
	counts = store_get_bytes(r, 8 * nr);
	if (r->bad)
		return malformed(x);
	result = note_row(x, image, &platform, &own);
	if (result >= 0)
		result = find_sum(x, image, &platform, &label, &s);
	if (result < 0)
		return result;
	s->print += print;
	s->samples += samples;
	return add_counts(s, numbers, counts, nr);
}

/* The shortest span is made of hours, and others of those: fingerprints add up likewise. */
static int make_question(struct summing *x, const char *final, struct base_buf *sql)
{
	const struct store_source *s = x->source;
	struct group *g = &x->group;
	bool hours = x->level == STORE_NR_SPANS - 1;
	int r = base_buf_printf(
		sql, "SELECT %splatform, label, %s, %s, samples, %s FROM %s%s WHERE ", s->key,
		hours ? s->own_text : LABEL_OWN, hours ? s->print : "print",
		hours ? s->arrays : s->sums_arrays, hours ? s->hours : s->sums, final);

	if (r >= 0 && !hours)
		r = base_buf_printf(sql, "span = %u AND ", store_spans[x->level + 1]);
	if (r >= 0)
		r = base_buf_printf(sql,
				    "event = %s AND epoch >= toDateTime(%u) AND "
				    "epoch < toDateTime(%u) AND ",
				    (const char *)x->quoted_event.data, g->begin,
				    g->begin + span_of(x));
	if (r >= 0 && of_images(x))
		r = base_buf_printf(sql, "image IN (%s) AND (image, platform) IN (%s)",
				    (const char *)g->images.data, (const char *)g->list.data);
	else if (r >= 0)
		r = base_buf_printf(sql, "platform >= %s AND platform <= %s AND platform IN (%s)",
				    (const char *)g->first.data, (const char *)g->last.data,
				    (const char *)g->list.data);
	return r < 0 ? r : base_buf_printf(sql, " FORMAT RowBinary");
}

static int read_rows(struct summing *x, const char *final)
{
	struct base_buf sql = { 0 }, answer = { 0 };
	struct store_reader reader;
	int r = make_question(x, final, &sql);

	x->twice = false;
	if (r >= 0)
		r = store_ask(x->s, (const char *)sql.data, &answer, x->err);
	reader = (struct store_reader){ answer.data, answer.data + answer.len, false };
	while (r >= 0 && reader.at < reader.end && !x->twice)
		r = take_row(x, &reader);
	base_buf_release(&sql);
	base_buf_release(&answer);
	return r;
}

/* FINAL costs as much again, and few rows have an older one. */
static int read_group(struct summing *x)
{
	int r = read_rows(x, "");

	if (r < 0 || !x->twice)
		return r;
	forget(x);
	return read_rows(x, " FINAL");
}

/* ---- writing --------------------------------------------------------------------------------- */

static int put_numbers(const struct sum *s, struct base_buf *row)
{
	int r = base_buf_append_leb128(row, s->nr);

	for (size_t i = 0; i < s->nr && r >= 0; i++)
		r = base_buf_append_le(row, s->v[i].number, 8);
	if (r >= 0)
		r = base_buf_append_leb128(row, s->nr);
	for (size_t i = 0; i < s->nr && r >= 0; i++)
		r = base_buf_append_le(row, s->v[i].n, 8);
	return r;
}

static int put_places(const struct sum *s, struct base_buf *row)
{
	struct store_offsets o = { .nr = 0 };
	int r = 0;

	for (size_t i = 0; i < s->nr && r >= 0; i++)
		r = store_offsets_add(&o, s->v[i].number, s->v[i].n);
	if (r >= 0)
		r = store_offsets_put(&o, row);
	store_offsets_release(&o);
	return r;
}

static int put_sum(struct summing *x, const struct sum *s)
{
	struct base_buf *row = &x->out;
	int r = store_put_text(row, x->event);

	if (r >= 0 && of_images(x))
		r = base_buf_append(row, s->image, STORE_KEY);
	if (r >= 0)
		r = base_buf_append_le(row, span_of(x), 4);
	if (r >= 0)
		r = base_buf_append_le(row, x->group.begin, 4);
	if (r >= 0)
		r = store_put_text(row, s->platform);
	if (r >= 0)
		r = store_put_text(row, s->label);
	if (r >= 0)
		r = base_buf_append_le(row, x->ver, 8);
	if (r >= 0)
		r = base_buf_append_le(row, s->print, 8);
	if (r >= 0)
		r = base_buf_append_le(row, s->samples, 8);
	if (r < 0)
		return r;
	x->rows++;
	return of_images(x) ? put_places(s, row) : put_numbers(s, row);
}

static int insert(struct summing *x)
{
	int r = store_insert(x->s, x->table, &x->out, x->err);

	base_buf_clear(&x->out);
	return r;
}

/* Rows and their fingerprints come from one reading of the table, and so belong together. */
static int make_group(struct summing *x)
{
	struct group *g = &x->group;
	int r = g->nr ? read_group(x) : 0;

	for (size_t i = 0; i < x->nr && r >= 0; i++)
		r = put_sum(x, &x->v[i]);
	forget(x);
	base_buf_clear(&g->list);
	base_buf_clear(&g->images);
	base_buf_clear(&g->first);
	g->nr = 0;
	return r >= 0 && x->out.len > OUT ? insert(x) : r;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static int add_image(struct group *g, const void *image)
{
	int r = 0;

	if (!g->nr || memcmp(g->image, image, STORE_KEY) != 0) {
		r = g->nr ? base_buf_printf(&g->images, ", ") : 0;
		if (r >= 0)
			r = store_quote(&g->images, image, STORE_KEY);
		memcpy(g->image, image, STORE_KEY);
	}
	if (r >= 0)
		r = base_buf_printf(&g->list, "(");
	if (r >= 0)
		r = store_quote(&g->list, image, STORE_KEY);
	return r < 0 ? r : base_buf_printf(&g->list, ", ");
}

static int add_machine(struct group *g, const void *image, uint32_t begin, const char *platform,
		       size_t len)
{
	int r = g->nr ? base_buf_printf(&g->list, ", ") : store_quote(&g->first, platform, len);

	if (r >= 0 && image)
		r = add_image(g, image);
	if (r >= 0)
		r = store_quote(&g->list, platform, len);
	if (r >= 0 && image)
		r = base_buf_printf(&g->list, ")");
	base_buf_clear(&g->last);
	if (r >= 0)
		r = store_quote(&g->last, platform, len);
	g->begin = begin;
	g->nr++;
	return r;
}

static bool is_full(const struct summing *x)
{
	const struct group *g = &x->group;

	return g->nr >= x->most || g->list.len + g->images.len > TEXT;
}

/* The next machine that lacks sums, unless it is for another group: 1 where it is added, 0. */
static int take_machine(struct summing *x, struct store_reader *reader)
{
	const struct store_reader before = *reader;
	const void *image = of_images(x) ? store_get_bytes(reader, STORE_KEY) : NULL;
	struct text platform = get_text(reader);
	uint32_t begin = (uint32_t)store_get_number(reader, 4);
	int r;

	if (reader->bad)
		return malformed(x);
	if (x->group.nr && (begin != x->group.begin || is_full(x))) {
		*reader = before;
		return 0;
	}
	r = add_machine(&x->group, image, begin, platform.v, platform.len);
	return r < 0 ? r : 1;
}

/* Where an answer would be too long, smaller groups are made from there on. */
static int take_group(struct summing *x, struct store_reader *reader)
{
	const struct store_reader before = *reader;
	size_t nr;
	int r = 1;

	while (r > 0 && reader->at < reader->end)
		r = take_machine(x, reader);
	nr = x->group.nr;
	r = r < 0 ? r : make_group(x);
	if (r != -DCPI_ELIMIT || nr == 1)
		return r;
	x->most = nr / 8 + 1;
	*reader = before;
	return 0;
}

static int make_missing(struct summing *x)
{
	struct base_buf answer = { 0 };
	int r = ask_missing(x, &answer);
	struct store_reader reader = { answer.data, answer.data + answer.len, false };

	x->most = of_images(x) ? IMAGES : MACHINES;
	while (r >= 0 && reader.at < reader.end)
		r = take_group(x, &reader);
	if (r >= 0)
		r = insert(x);
	base_buf_release(&answer);
	return r;
}

static int sum_event(struct summing *x)
{
	int r = 0;

	for (size_t i = 0; i < STORE_NR_SOURCES && r >= 0; i++) {
		x->source = &store_sources[i];
		x->table = &store_tables[tables[i]];
		for (x->level = STORE_NR_SPANS; x->level-- && r >= 0;)
			r = make_missing(x);
	}
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

static void release(struct summing *x)
{
	forget(x);
	free(x->v);
	base_buf_release(&x->quoted_event);
	base_buf_release(&x->group.list);
	base_buf_release(&x->group.images);
	base_buf_release(&x->group.first);
	base_buf_release(&x->group.last);
	base_buf_release(&x->out);
}

int store_sum(struct store_server *s, int64_t since, int64_t now, uint64_t *rows,
	      struct base_err *err)
{
	struct summing x = {
		.s = s, .since = since, .now = now, .ver = (uint64_t)now * 1000000000, .err = err
	};
	struct base_buf answer = { 0 };
	int r = ask_events(&x, &answer);
	struct store_reader reader = { answer.data, answer.data + answer.len, false };

	while (r >= 0 && reader.at < reader.end) {
		size_t len;
		const char *text = store_get_string(&reader, &len);
		char *event = text ? strndup(text, len) : NULL;

		x.event = event;
		base_buf_clear(&x.quoted_event);
		r = event ? store_quote(&x.quoted_event, text, len) : malformed(&x);
		if (r >= 0)
			r = sum_event(&x);
		free(event);
	}
	*rows = x.rows;
	release(&x);
	base_buf_release(&answer);
	return r < 0 ? base_fail_errno(err, r, "cannot add up what the store has") : 0;
}
