/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Minutes of workloads in a file, range-coded. They come by image, block, workload: which of these
 * there are, and what their minutes add up to, the counts tell already. docs/format/workloads.md
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

/* Counts of workloads are summed by the blocks of code that minutes are kept by. */

/* The sums of minutes, block after block: for each workload with counts in a block, ascending.
 */
struct profdb_workload_blocks {
	struct profdb_workload_key *rows;
	uint64_t *sums; /* nr rows of so many numbers: */
	size_t nr_events;
	size_t nr, cap_rows, cap_sums;
	size_t at; /* counts before it have been */
	struct base_sort_item *items;
	size_t cap_items;
};

static void profdb_workload_blocks_release(struct profdb_workload_blocks *b)
{
	free(b->items);
	free(b->rows);
	free(b->sums);
}

/* Rows from @from on that are in its block. */
static size_t rows_of_block(const struct profdb_workload_rows *t, size_t from)
{
	const struct profdb_workload_key *first = profdb_workload_rows_key(t, from);
	size_t end = from + 1;

	for (; end < t->nr; end++) {
		const struct profdb_workload_key *key = profdb_workload_rows_key(t, end);

		if (key->image != first->image ||
		    key->off / PROFDB_MINUTE_BLOCK != first->off / PROFDB_MINUTE_BLOCK)
			break;
	}
	return end - from;
}

static int make_room(struct profdb_workload_blocks *b, size_t nr)
{
	int r = base_grow(&b->items, &b->cap_items, 2 * nr, sizeof(*b->items));

	if (r >= 0)
		r = base_grow(&b->rows, &b->cap_rows, nr, sizeof(*b->rows));
	return r < 0 ? r : base_grow(&b->sums, &b->cap_sums, nr * b->nr_events, sizeof(*b->sums));
}

static void add_up(struct profdb_workload_blocks *b, const struct base_sort_item *sorted, size_t nr)
{
	b->nr = 0;
	for (size_t i = 0; i < nr; i++) {
		const struct profdb_workload_key *key = sorted[i].of;
		const uint64_t *count = (const uint64_t *)(key + 1);
		uint64_t *sum = b->sums + b->nr * b->nr_events;

		if (b->nr && b->rows[b->nr - 1].workload == key->workload) {
			sum -= b->nr_events;
		} else {
			memset(sum, 0, b->nr_events * sizeof(*sum));
			b->rows[b->nr] = *key;
			b->rows[b->nr++].off /= PROFDB_MINUTE_BLOCK;
		}
		for (size_t k = 0; k < b->nr_events; k++)
			sum[k] += count[k];
	}
}

/* @counts: sorted; zero-initialize @b but for nr_events. 1: the next block; 0: there is none; or
 * -ENOMEM. */
static int profdb_workload_blocks_next(struct profdb_workload_blocks *b,
				       const struct profdb_workload_rows *counts)
{
	size_t nr;
	int r;

	if (b->at == counts->nr)
		return 0;
	nr = rows_of_block(counts, b->at);
	r = make_room(b, nr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < nr; i++) {
		const struct profdb_workload_key *key = profdb_workload_rows_key(counts, b->at + i);

		b->items[i] = (struct base_sort_item){ key->workload, key };
	}
	add_up(b, base_sort(b->items, b->items + nr, nr), nr);
	b->at += nr;
	return 1;
}

/* The models: */
enum {
	LENGTHS = 16,	       /* lengths of a number that tells of the next one, in bits */
	FIRST = 0,	       /* the first minute of all */
	BEGIN = 1,	       /* the first one of a sum, by the length of the sum */
	GAP = BEGIN + LENGTHS, /* gap to the next one, by that of what is left of it */
	COUNT = GAP + LENGTHS, /* of each event so many: */
	OF_FIRST = 0,	       /* models of a sum's first minute, by the length of the sum */
	OF_NEXT = LENGTHS,     /* models of the next ones, by that of the count before */
	MODELS_A_COUNT = 2 * LENGTHS
};

static size_t length_of(uint64_t v)
{
	size_t length = v ? 64 - (size_t)__builtin_clzll(v) : 0;

	return length < LENGTHS ? length : LENGTHS - 1;
}

static size_t model_of_count(size_t event, size_t which)
{
	return COUNT + event * MODELS_A_COUNT + which;
}

/* ---- one sum --------------------------------------------------------------------------------- */

/* The rest of the minutes of one block and workload. */
struct sum {
	const struct profdb_workload_key *key;
	uint64_t left[PROFDB_NR_EVENTS], last[PROFDB_NR_EVENTS];
	size_t nr_events;
	bool any;	 /* there is a minute before: */
	uint64_t minute; /* else the first one of the file */
};

static uint64_t left_of(const struct sum *s, size_t from)
{
	uint64_t all = 0;

	for (size_t k = from; k < s->nr_events; k++)
		if (base_add_overflow(all, s->left[k], &all))
			return UINT64_MAX;
	return all;
}

static void code_minute(struct profdb_workload_coder *c, struct sum *s, int64_t *minute)
{
	size_t length = length_of(left_of(s, 0));
	uint64_t base = s->any ? s->minute + 1 : s->minute;
	uint64_t gap = c->writes ? (uint64_t)*minute - base : 0;

	profdb_workload_code(c, (s->any ? GAP : BEGIN) + length, &gap);
	if (base > INT64_MAX || gap > INT64_MAX - base)
		c->error = -DCPI_EFORMAT;
	s->minute = c->error < 0 ? 0 : base + gap;
	*minute = (int64_t)s->minute;
}

/* At least @least. */
static void code_count(struct profdb_workload_coder *c, struct sum *s, size_t k, uint64_t least,
		       uint64_t *count)
{
	size_t which = s->any ? OF_NEXT + length_of(s->last[k]) : OF_FIRST + length_of(s->left[k]);
	uint64_t more = c->writes ? *count - least : 0;

	if (s->left[k] > least)
		profdb_workload_code(c, model_of_count(k, which), &more);
	if (more > s->left[k] - least)
		c->error = -DCPI_EFORMAT;
	*count = c->error < 0 ? least : least + more;
	s->last[k] = *count;
	s->left[k] -= *count;
}

/* One event at least has some. */
static void code_counts(struct profdb_workload_coder *c, struct sum *s, uint64_t *count)
{
	bool some = false;

	for (size_t k = 0; c->error >= 0 && k < s->nr_events; k++) {
		bool must = !some && s->left[k] && !left_of(s, k + 1);

		code_count(c, s, k, must, &count[k]);
		some = some || count[k];
	}
	s->any = true;
}

static struct sum sum_begin(const struct profdb_workload_blocks *b, size_t row, uint64_t first)
{
	struct sum s = { .key = &b->rows[row], .nr_events = b->nr_events, .minute = first };

	memcpy(s.left, b->sums + row * b->nr_events, b->nr_events * sizeof(*s.left));
	return s;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Pointers to keys, sorted by image, block, workload, minute. NULL: no memory. */
static struct base_sort_item *by_block(const struct profdb_workload_rows *minutes,
				       struct base_sort_item **sorted)
{
	size_t nr = minutes->nr;
	struct base_sort_item *v = calloc(2 * nr + 1, sizeof(*v));

	*sorted = v;
	for (size_t i = 0; v && i < nr; i++) {
		const struct profdb_workload_key *key = profdb_workload_rows_key(minutes, i);

		v[i] = (struct base_sort_item){ key->workload, key };
	}
	for (int image = 0; v && image < 2; image++) {
		*sorted = base_sort(*sorted, *sorted == v ? v + nr : v, nr);
		for (size_t i = 0; i < nr; i++) {
			const struct profdb_workload_key *key = (*sorted)[i].of;

			(*sorted)[i].key = image ? key->image : key->off;
		}
	}
	if (v)
		*sorted = base_sort(*sorted, *sorted == v ? v + nr : v, nr);
	return v;
}

static bool is_of(const struct profdb_workload_key *key, const struct sum *s)
{
	return key->image == s->key->image && key->off == s->key->off &&
	       key->workload == s->key->workload;
}

/* The minutes of one sum from @*at on. */
static void put_sum(struct profdb_workload_coder *c, struct sum *s,
		    const struct base_sort_item **at, const struct base_sort_item *end)
{
	while (c->error >= 0 && left_of(s, 0)) {
		const struct profdb_workload_key *key = *at < end ? (*at)->of : NULL;
		uint64_t count[PROFDB_NR_EVENTS];
		int64_t minute;

		if (!key || !is_of(key, s)) {
			c->error = -EINVAL;
			return;
		}
		minute = key->minute;
		memcpy(count, key + 1, s->nr_events * sizeof(*count));
		code_minute(c, s, &minute);
		code_counts(c, s, count);
		++*at;
	}
}

static int put_minutes(struct profdb_workload_coder *c, const struct profdb_workloads *w)
{
	struct profdb_workload_blocks b = { .nr_events = w->header->nr_events };
	struct base_sort_item *sorted, *items = by_block(&w->minutes, &sorted);
	const struct base_sort_item *at = sorted, *end = sorted + w->minutes.nr;
	uint64_t first = (uint64_t)profdb_workload_rows_key(&w->minutes, 0)->minute;
	int r = items ? 1 : -ENOMEM;

	if (items)
		profdb_workload_code(c, FIRST, &first);
	while (r > 0 && (r = profdb_workload_blocks_next(&b, &w->counts)) > 0)
		for (size_t i = 0; i < b.nr; i++) {
			struct sum s = sum_begin(&b, i, first);

			put_sum(c, &s, &at, end);
		}
	profdb_workload_blocks_release(&b);
	free(items);
	return r;
}

static int minutes_print(const struct profdb_workloads *w, struct base_buf *out)
{
	struct profdb_workload_coder c;
	int r = profdb_workload_coder_write(&c, model_of_count(w->header->nr_events, 0),
					    w->minutes.nr, out);

	profdb_workload_rows_sort((struct profdb_workload_rows *)&w->minutes);
	if (r >= 0 && w->minutes.nr)
		r = put_minutes(&c, w);
	if (r >= 0)
		r = profdb_workload_coder_end(&c);
	profdb_workload_coder_release(&c);
	return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int get_sum(struct profdb_workload_coder *c, struct sum *s,
		   struct profdb_workload_rows *minutes)
{
	int r = 0;

	while (r >= 0 && left_of(s, 0)) {
		struct profdb_workload_key key = *s->key;
		uint64_t *count;

		code_minute(c, s, &key.minute);
		r = c->error < 0 ? c->error
		    : minutes->nr == c->nr_rows
			    ? -DCPI_EFORMAT
			    : profdb_workload_rows_append(minutes, &key, &count);
		if (r < 0)
			break;
		code_counts(c, s, count);
		r = c->error;
	}
	return r;
}

static int get_minutes(struct profdb_workload_coder *c, struct profdb_workload_part *part)
{
	struct profdb_workload_blocks b = { .nr_events = part->nr_events };
	uint64_t first = 0;
	int r = 1;

	profdb_workload_code(c, FIRST, &first);
	if (first > INT64_MAX)
		r = -DCPI_EFORMAT;
	while (r > 0 && (r = profdb_workload_blocks_next(&b, &part->counts)) > 0)
		for (size_t i = 0; r >= 0 && i < b.nr; i++) {
			struct sum s = sum_begin(&b, i, first);

			r = get_sum(c, &s, &part->minutes);
			r = r < 0 ? r : 1;
		}
	profdb_workload_blocks_release(&b);
	return r;
}

static int minutes_parse(struct profdb_workload_part *part, const struct profdb_workloads *w,
			 const struct profdb_payload *s)
{
	struct profdb_workload_coder c;
	int r = profdb_workload_coder_read(&c, model_of_count(part->nr_events, 0), s);

	(void)w;
	if (r >= 0 && part->counts.nr)
		r = get_minutes(&c, part);
	if (r >= 0 && (part->minutes.nr != c.nr_rows || !profdb_workload_coder_done(&c)))
		r = -DCPI_EFORMAT;
	profdb_workload_coder_release(&c);
	return r;
}

const struct profdb_coded_rows profdb_coded_minutes = { minutes_parse, minutes_print };
