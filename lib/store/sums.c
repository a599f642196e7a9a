/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts by routine and by offset are added up for some hours and for a day, of each machine and of
 * all together, so that questions about many hours read few rows. The rows of sums are copies:
 * nothing is known from them alone.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store_internal.h"

enum { HOUR = 3600, PART = 21600, DAY = 86400 };
static const struct store_level number_levels[] = {
	{ PART, false, STORE_HOURS },
	{ DAY, false, 0 },
	{ HOUR, true, STORE_HOURS },
	{ PART, true, 2 },
	{ DAY, true, 3 },
};
/* An hour of an image is read fast enough. */
static const struct store_level place_levels[] = {
	{ PART, false, STORE_HOURS },
	{ DAY, false, 0 },
	{ PART, true, 0 },
	{ DAY, true, 2 },
};

#define LABEL_OWN "concat(label, '/', toString(toUInt32(epoch)))"
#define PLACES	  "arrayMap((v1, v2) -> toUInt64(65536 * v2 + v1), lo, hi)"
#define COUNTS	  "arrayMap((v1, v2) -> toUInt64(256 * v2 + v1), nlo, nhi)"

const struct store_source store_sources[STORE_NR_SOURCES] = {
	[STORE_BY_NUMBER] = { .hours = "totals",
			      .sums = "sums",
			      .levels = number_levels,
			      .nr_levels = sizeof(number_levels) / sizeof(*number_levels),
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
			     .levels = place_levels,
			     .nr_levels = sizeof(place_levels) / sizeof(*place_levels),
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

int store_sums_bad(struct base_buf *sql, const struct store_source *source, const char *key,
		   const struct store_level *level, const char *which, const char *final)
{
	/* Version 18 fails where a constant comes from other servers. */
	const char *platform = level->fleet ? "materialize('')" : "platform";

	return base_buf_printf(
		sql,
		"SELECT %sp, b FROM ("
		"SELECT %s%s AS p, toUInt32(intDiv(toUInt32(epoch), %u) * %u) AS b, "
		"%s AS x, toUInt64(0) AS y FROM %s%s WHERE %s UNION ALL "
		"SELECT %s%s AS p, toUInt32(epoch) AS b, toUInt64(0) AS x, print AS y "
		"FROM %s FINAL WHERE span = %u AND %s) "
		"GROUP BY %sp, b HAVING sum(x) != sum(y)",
		key, key, platform, level->span, level->span, source->print, source->hours, final,
		which, key, platform, source->sums, store_level_span(level), which, key);
}

/* ---- numbers and counts, in order ------------------------------------------------------------ */

struct count {
	uint64_t number, n;
};

struct counts {
	struct count *v;
	size_t nr;
};

/* Rows that are added up: their first columns, and what they have together. */
struct sum {
	uint8_t image[STORE_KEY];
	char *platform, *label;
	uint64_t print, samples;
	/* A row is added to few counts at first: many rows would else be added to very many. */
	struct counts few, all;
};

static uint64_t number_at(const uint8_t *values, size_t i)
{
	uint64_t v;

	memcpy(&v, values + 8 * i, sizeof(v));
	return le64toh(v);
}

/* Adds counts whose numbers ascend to others. */
static int merge(struct counts *to, const struct counts *from)
{
	struct count *v = malloc((to->nr + from->nr + 1) * sizeof(*v));
	size_t i = 0, k = 0, at = 0;

	if (!v)
		return -ENOMEM;
	while (i < to->nr && k < from->nr) {
		if (to->v[i].number == from->v[k].number)
			to->v[i].n += from->v[k++].n;
		else if (to->v[i].number < from->v[k].number)
			v[at++] = to->v[i++];
		else
			v[at++] = from->v[k++];
	}
	while (i < to->nr)
		v[at++] = to->v[i++];
	while (k < from->nr)
		v[at++] = from->v[k++];
	free(to->v);
	*to = (struct counts){ v, at };
	return 0;
}

static int merge_few(struct sum *s)
{
	int r = merge(&s->all, &s->few);

	free(s->few.v);
	s->few = (struct counts){ 0 };
	return r;
}

static int add_ascending(struct sum *s, const uint8_t *numbers, const uint8_t *counts, size_t nr)
{
	struct counts row = { malloc((nr + 1) * sizeof(*row.v)), nr };
	int r;

	if (!row.v)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		row.v[i] = (struct count){ number_at(numbers, i), number_at(counts, i) };
	r = merge(&s->few, &row);
	free(row.v);
	return r >= 0 && s->few.nr > s->all.nr / 4 ? merge_few(s) : r;
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
	const struct store_level *level;
	size_t most; /* of a group */
	struct group group;
	bool ended; /* the next group is of another span */
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
enum { MACHINES = 50, FLEET_MACHINES = 200, IMAGES = 500, TEXT = 60000, OUT = 32 << 20 };

static int malformed(struct summing *x)
{
	return base_fail(x->err, -EHOSTUNREACH, "the server's answer is malformed");
}

static bool of_images(const struct summing *x)
{
	return x->source->key[0];
}

/* The rows that sums of all machines lack are those of each machine. */
static int list_machines(const struct summing *x, const char *which, const char *bad,
			 struct base_buf *sql)
{
	const char *key = x->source->key;

	return base_buf_printf(
		sql,
		"SELECT %splatform, b FROM (SELECT %splatform, "
		"toUInt32(intDiv(toUInt32(epoch), %u) * %u) AS b FROM %s WHERE %s "
		"GROUP BY %splatform, b) WHERE (%sb) GLOBAL IN (SELECT %sb FROM (%s))"
		" ORDER BY b, %splatform",
		key, key, x->level->span, x->level->span, x->source->hours, which, key, key, key,
		bad, key);
}

/* Rows that are added up are those of machines. */
static bool of_machines(const struct summing *x)
{
	return x->level->from == STORE_HOURS || !x->source->levels[x->level->from].fleet;
}

/* Spans that have ended, from the one on in which @since lies. */
static int ask_missing(struct summing *x, struct base_buf *answer)
{
	struct base_buf which = { 0 }, bad = { 0 }, sql = { 0 };
	int64_t since = x->since > 0 ? x->since : 0, span = x->level->span;
	int r = base_buf_printf(&which,
				"event = %s AND epoch >= toDateTime(%lld) AND "
				"epoch < toDateTime(%lld)",
				(const char *)x->quoted_event.data,
				(long long)(since - since % span),
				(long long)(x->now - x->now % span));

	if (r >= 0)
		r = store_sums_bad(&bad, x->source, x->source->key, x->level,
				   (const char *)which.data, " FINAL");
	if (r >= 0 && x->level->fleet && of_machines(x))
		r = list_machines(x, (const char *)which.data, (const char *)bad.data, &sql);
	else if (r >= 0)
		r = base_buf_printf(&sql, "%s ORDER BY b, %sp", (const char *)bad.data,
				    x->source->key);
	if (r >= 0)
		r = base_buf_printf(&sql, " FORMAT RowBinary");
	if (r >= 0)
		r = store_ask(x->s, (const char *)sql.data, answer, x->err);
	base_buf_release(&which);
	base_buf_release(&bad);
	base_buf_release(&sql);
	return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void sum_release(struct sum *s)
{
	free(s->platform);
	free(s->label);
	free(s->few.v);
	free(s->all.v);
}

static void clear(struct base_map *m)
{
	base_map_release(m);
	*m = (struct base_map){ 0 };
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

/* A row of an answer; everything in it points there. */
struct row {
	const void *image; /* or NULL */
	struct text platform, label, own;
	uint64_t print, samples;
	const uint8_t *numbers, *counts;
	size_t nr;
};

static int get_row(struct summing *x, struct store_reader *r, struct row *out)
{
	out->image = of_images(x) ? store_get_bytes(r, STORE_KEY) : NULL;
	out->platform = get_text(r);
	out->label = get_text(r);
	out->own = get_text(r);
	out->print = store_get_number(r, 8);
	out->samples = store_get_number(r, 8);
	out->nr = store_get_count(r, 8);
	out->numbers = store_get_bytes(r, 8 * out->nr);
	r->bad |= store_get_count(r, 8) != out->nr;
	out->counts = store_get_bytes(r, 8 * out->nr);
	return r->bad ? malformed(x) : 0;
}

static int add_row(struct summing *x, const struct row *row)
{
	static const struct text none = { "", 0 };
	struct sum *s;
	int r = find_sum(x, row->image, x->level->fleet ? &none : &row->platform, &row->label, &s);

	if (r < 0)
		return r;
	s->print += row->print;
	s->samples += row->samples;
	return add_counts(s, row->numbers, row->counts, row->nr);
}

/* Is a row there twice, as an older one of it is? 1, 0, or negative. */
static int look_for_twice(struct summing *x, const struct base_buf *answer)
{
	struct store_reader reader = { answer->data, answer->data + answer->len, false };
	struct row row;
	int r = 0;

	x->twice = false;
	while (r >= 0 && reader.at < reader.end && !x->twice) {
		r = get_row(x, &reader, &row);
		if (r >= 0)
			r = note_row(x, row.image, &row.platform, &row.own);
	}
	clear(&x->seen);
	return r < 0 ? r : x->twice;
}

static int add_rows(struct summing *x, const struct base_buf *answer)
{
	struct store_reader reader = { answer->data, answer->data + answer->len, false };
	struct row row;
	int r = 0;

	while (r >= 0 && reader.at < reader.end) {
		r = get_row(x, &reader, &row);
		if (r >= 0)
			r = add_row(x, &row);
	}
	return r;
}

/* Levels are made of others: fingerprints add up likewise. */
static int make_question(struct summing *x, const char *final, struct base_buf *sql)
{
	const struct store_source *s = x->source;
	struct group *g = &x->group;
	bool hours = x->level->from == STORE_HOURS;
	int r = base_buf_printf(
		sql, "SELECT %splatform, label, %s, %s, samples, %s FROM %s%s WHERE ", s->key,
		hours ? s->own_text : LABEL_OWN, hours ? s->print : "print",
		hours ? s->arrays : s->sums_arrays, hours ? s->hours : s->sums, final);

	if (r >= 0 && !hours)
		r = base_buf_printf(sql, "span = %u AND ",
				    store_level_span(&s->levels[x->level->from]));
	if (r >= 0)
		r = base_buf_printf(sql,
				    "event = %s AND epoch >= toDateTime(%u) AND "
				    "epoch < toDateTime(%u) AND ",
				    (const char *)x->quoted_event.data, g->begin,
				    g->begin + x->level->span);
	if (r >= 0 && of_images(x))
		r = base_buf_printf(sql, "image IN (%s) AND (image, platform) IN (%s)",
				    (const char *)g->images.data, (const char *)g->list.data);
	else if (r >= 0)
		r = base_buf_printf(sql, "platform >= %s AND platform <= %s AND platform IN (%s)",
				    (const char *)g->first.data, (const char *)g->last.data,
				    (const char *)g->list.data);
	return r < 0 ? r : base_buf_printf(sql, " FORMAT RowBinary");
}

static int ask_rows(struct summing *x, const char *final, struct base_buf *answer)
{
	struct base_buf sql = { 0 };
	int r = make_question(x, final, &sql);

	if (r >= 0)
		r = store_ask(x->s, (const char *)sql.data, answer, x->err);
	base_buf_release(&sql);
	return r;
}

/* FINAL costs as much again, and few rows have an older one. */
static int read_group(struct summing *x)
{
	struct base_buf answer = { 0 };
	int r = ask_rows(x, "", &answer);

	if (r >= 0)
		r = look_for_twice(x, &answer);
	if (r > 0)
		r = ask_rows(x, " FINAL", &answer);
	if (r >= 0)
		r = add_rows(x, &answer);
	base_buf_release(&answer);
	return r;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int put_numbers(const struct sum *s, struct base_buf *row)
{
	const struct counts *all = &s->all;
	int r = base_buf_append_leb128(row, all->nr);

	for (size_t i = 0; i < all->nr && r >= 0; i++)
		r = base_buf_append_le(row, all->v[i].number, 8);
	if (r >= 0)
		r = base_buf_append_leb128(row, all->nr);
	for (size_t i = 0; i < all->nr && r >= 0; i++)
		r = base_buf_append_le(row, all->v[i].n, 8);
	return r;
}

static int put_places(const struct sum *s, struct base_buf *row)
{
	struct store_offsets o = { .nr = 0 };
	int r = 0;

	for (size_t i = 0; i < s->all.nr && r >= 0; i++)
		r = store_offsets_add(&o, s->all.v[i].number, s->all.v[i].n);
	if (r >= 0)
		r = store_offsets_put(&o, row);
	store_offsets_release(&o);
	return r;
}

static int put_sum(struct summing *x, struct sum *s)
{
	struct base_buf *row = &x->out;
	int r = merge_few(s);

	if (r >= 0)
		r = store_put_text(row, x->event);
	if (r >= 0 && of_images(x))
		r = base_buf_append(row, s->image, STORE_KEY);
	if (r >= 0)
		r = base_buf_append_le(row, store_level_span(x->level), 4);
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

static int index_sum(struct summing *x, size_t at)
{
	const struct sum *s = &x->v[at];
	const struct text platform = { s->platform, strlen(s->platform) };
	const struct text label = { s->label, strlen(s->label) };
	struct base_buf key = { 0 };
	int r = make_key(&key, of_images(x) ? s->image : NULL, &platform, &label);

	if (r >= 0)
		r = base_map_set(&x->by_key, key.data, key.len, (void *)(uintptr_t)(at + 1));
	base_buf_release(&key);
	return r;
}

/* More machines of a span may come, and of the last image. */
static bool is_whole(const struct summing *x, const struct sum *s)
{
	return !x->level->fleet || x->ended ||
	       (of_images(x) && memcmp(s->image, x->group.image, STORE_KEY) != 0);
}

static int put_whole(struct summing *x)
{
	size_t nr = x->nr;
	int r = 0;

	x->nr = 0;
	clear(&x->by_key);
	for (size_t i = 0; i < nr; i++) {
		struct sum s = x->v[i];

		if (!is_whole(x, &s)) {
			x->v[x->nr++] = s;
			r = r < 0 ? r : index_sum(x, x->nr - 1);
			continue;
		}
		r = r < 0 ? r : put_sum(x, &s);
		sum_release(&s);
	}
	return r;
}

/* Rows and their fingerprints come from one reading of the table, and so belong together. */
static int make_group(struct summing *x)
{
	struct group *g = &x->group;
	int r = g->nr ? read_group(x) : 0;

	if (r >= 0)
		r = put_whole(x);
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
		x->ended = begin != x->group.begin;
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

	x->ended = true;
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

	x->most = of_images(x) ? IMAGES : x->level->fleet ? FLEET_MACHINES : MACHINES;
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
		for (size_t l = 0; l < x->source->nr_levels && r >= 0; l++) {
			x->level = &x->source->levels[l];
			r = make_missing(x);
		}
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
	for (size_t i = 0; i < x->nr; i++)
		sum_release(&x->v[i]);
	free(x->v);
	clear(&x->by_key);
	clear(&x->seen);
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
