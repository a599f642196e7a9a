/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts and minutes of workloads through the range coder. Counts come by image, offset, workload.
 * Minutes come by image, block, workload: which there are, and what they add up to, the counts tell
 * already. docs/format/workloads.md
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

enum {
	HEAD = 16,
	ROWS_A_BYTE = 4, /* so that who reads knows what memory a file may take */
	LENGTHS = 16,	 /* of a number that tells of the next one, in bits */
	/* The models: */
	STEP = 0,	       /* how a count's key follows the one before, by how that one did */
	FIRST = 3,	       /* the first offset of an image; the first minute of all */
	OFF = 4,	       /* gap to the next offset */
	WORKLOAD = 5,	       /* the first workload of an offset */
	NEXT = 6,	       /* gap to its next one */
	BEGIN = 7,	       /* the first minute of a sum, by the length of the sum */
	GAP = BEGIN + LENGTHS, /* gap to the next one, by that of what is left of it */
	COUNT = GAP + LENGTHS, /* of each event so many: */
	OF_FIRST = 0,	       /* a sum's first minute, by the length of the sum */
	OF_NEXT = LENGTHS,     /* the next ones, by that of the one before */
	OF_COUNT = 2 * LENGTHS,
	MODELS_A_COUNT,
};

static bool fits(uint64_t nr, size_t len)
{
	return nr / ROWS_A_BYTE < len;
}

static size_t length_of(uint64_t v)
{
	size_t length = v ? 64 - (size_t)__builtin_clzll(v) : 0;

	return length < LENGTHS ? length : LENGTHS - 1;
}

/* ---- either direction ------------------------------------------------------------------------ */

struct coder {
	bool writes; /* numbers go out, else they come in */
	struct profdb_range_encoder to;
	struct profdb_range_decoder from;
	struct profdb_range_model *models;
	size_t nr_images, nr_workloads, nr_events;
	int error;
};

static void code(struct coder *c, size_t model, uint64_t *v)
{
	if (c->error < 0)
		*v = 0;
	else if (c->writes)
		profdb_range_put(&c->to, &c->models[model], *v);
	else
		c->error = profdb_range_get(&c->from, &c->models[model], v);
}

static size_t model_of_count(size_t event, size_t which)
{
	return COUNT + event * MODELS_A_COUNT + which;
}

static int coder_begin(struct coder *c, const struct profdb_workloads *w)
{
	c->nr_images = w->images.nr;
	c->nr_workloads = w->nr;
	c->nr_events = w->header->nr_events;
	c->models = profdb_range_models(model_of_count(c->nr_events, 0));
	return c->models ? 0 : -ENOMEM;
}

/* ---- keys of counts -------------------------------------------------------------------------- */

struct place {
	bool any; /* there is a count before */
	uint64_t step;
	uint64_t image, off, workload;
};

/* 0: the same offset, another workload; 1: another offset; else 1 more than images further. */
static uint64_t step_to(const struct place *p, const struct profdb_workload_key *key)
{
	if (!p->any)
		return 2 + (uint64_t)key->image;
	return key->image != p->image ? 1 + key->image - p->image : key->off != p->off;
}

/* Gaps by which @p goes on: one of another image, of another offset, and of the workload. */
struct gaps {
	uint64_t off, workload;
};

static struct gaps gaps_to(const struct place *p, const struct profdb_workload_key *key)
{
	return (struct gaps){
		.off = p->step == 1 ? key->off - p->off - 1 : key->off,
		.workload = p->step ? key->workload : key->workload - p->workload - 1,
	};
}

/* False: out of bounds. */
static bool go(struct place *p, uint64_t step, const struct gaps *gaps)
{
	uint64_t image = p->any ? p->image : UINT64_MAX, off = gaps->off, workload = gaps->workload;

	if (!step && !p->any)
		return false;
	if (step > 1 && step - 1 > UINT32_MAX)
		return false;
	if (step > 1)
		image += step - 1;
	if (step == 1 && (!p->any || base_add_overflow(p->off, off, &off) || ++off == 0))
		return false;
	if (!step) {
		off = p->off;
		if (base_add_overflow(p->workload, workload, &workload) || ++workload == 0)
			return false;
	}
	*p = (struct place){ true, step, image, off, workload };
	return true;
}

/* @key: the next one, which the reader gets. */
static void code_key(struct coder *c, struct place *p, struct profdb_workload_key *key)
{
	uint64_t how = p->step < 2 ? p->step : 2, step = c->writes ? step_to(p, key) : 0;
	struct gaps gaps = { 0 };

	code(c, STEP + how, &step);
	p->step = step;
	if (c->writes)
		gaps = gaps_to(p, key);
	if (step)
		code(c, step == 1 ? OFF : FIRST, &gaps.off);
	code(c, step ? WORKLOAD : NEXT, &gaps.workload);
	if (c->error >= 0 &&
	    (!go(p, step, &gaps) || p->image >= c->nr_images || p->workload >= c->nr_workloads))
		c->error = -DCPI_EFORMAT;
	*key = (struct profdb_workload_key){ .off = p->off,
					     .image = (uint32_t)p->image,
					     .workload = (uint32_t)p->workload };
}

/* ---- minutes --------------------------------------------------------------------------------- */

/* What minutes of one block and workload have yet to tell. */
struct sum {
	const struct profdb_workload_key *key;
	uint64_t left[PROFDB_NR_EVENTS], last[PROFDB_NR_EVENTS];
	bool any;	 /* there is a minute before: */
	uint64_t minute; /* else the first one of the file */
};

static uint64_t left_of(const struct coder *c, const struct sum *s, size_t from)
{
	uint64_t all = 0;

	for (size_t k = from; k < c->nr_events; k++)
		if (base_add_overflow(all, s->left[k], &all))
			return UINT64_MAX;
	return all;
}

static void code_minute(struct coder *c, struct sum *s, int64_t *minute)
{
	size_t length = length_of(left_of(c, s, 0));
	uint64_t base = s->any ? s->minute + 1 : s->minute;
	uint64_t gap = c->writes ? (uint64_t)*minute - base : 0;

	code(c, (s->any ? GAP : BEGIN) + length, &gap);
	if (base > INT64_MAX || gap > INT64_MAX - base)
		c->error = -DCPI_EFORMAT;
	s->minute = c->error < 0 ? 0 : base + gap;
	*minute = (int64_t)s->minute;
}

/* At least @least. */
static void code_count(struct coder *c, struct sum *s, size_t k, uint64_t least, uint64_t *count)
{
	size_t which = s->any ? OF_NEXT + length_of(s->last[k]) : OF_FIRST + length_of(s->left[k]);
	uint64_t more = c->writes ? *count - least : 0;

	if (s->left[k] > least)
		code(c, model_of_count(k, which), &more);
	if (more > s->left[k] - least)
		c->error = -DCPI_EFORMAT;
	*count = c->error < 0 ? least : least + more;
	s->last[k] = *count;
	s->left[k] -= *count;
}

/* One event at least has some. */
static void code_counts(struct coder *c, struct sum *s, uint64_t *count)
{
	bool some = false;

	for (size_t k = 0; c->error >= 0 && k < c->nr_events; k++) {
		bool must = !some && s->left[k] && !left_of(c, s, k + 1);

		code_count(c, s, k, must, &count[k]);
		some = some || count[k];
	}
	s->any = true;
}

static struct sum sum_begin(const struct coder *c, const struct profdb_workload_blocks *b,
			    size_t row, uint64_t first)
{
	struct sum s = { .key = &b->rows[row], .minute = first };

	memcpy(s.left, b->sums + row * c->nr_events, c->nr_events * sizeof(*s.left));
	return s;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* By image, block, workload, minute: pointers to keys. NULL: no memory. */
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

static void put_counts(struct coder *c, const struct profdb_workload_rows *counts)
{
	struct place p = { 0 };

	for (size_t i = 0; c->error >= 0 && i < counts->nr; i++) {
		struct profdb_workload_key key = *profdb_workload_rows_key(counts, i);

		code_key(c, &p, &key);
		for (size_t k = 0; k < c->nr_events; k++)
			code(c, model_of_count(k, OF_COUNT),
			     &profdb_workload_rows_counts(counts, i)[k]);
	}
}

static bool is_of(const struct profdb_workload_key *key, const struct sum *s)
{
	return key->image == s->key->image && key->off == s->key->off &&
	       key->workload == s->key->workload;
}

/* The minutes of one sum from @*at on. */
static void put_sum(struct coder *c, struct sum *s, const struct base_sort_item **at,
		    const struct base_sort_item *end)
{
	while (c->error >= 0 && left_of(c, s, 0)) {
		const struct profdb_workload_key *key = *at < end ? (*at)->of : NULL;
		uint64_t count[PROFDB_NR_EVENTS];
		int64_t minute;

		if (!key || !is_of(key, s)) {
			c->error = -EINVAL;
			return;
		}
		minute = key->minute;
		memcpy(count, key + 1, c->nr_events * sizeof(*count));
		code_minute(c, s, &minute);
		code_counts(c, s, count);
		++*at;
	}
}

static int put_minutes(struct coder *c, const struct profdb_workloads *w)
{
	struct profdb_workload_blocks b = { .nr_events = c->nr_events };
	struct base_sort_item *sorted, *items = by_block(&w->minutes, &sorted);
	const struct base_sort_item *at = sorted, *end = sorted + w->minutes.nr;
	uint64_t first = (uint64_t)profdb_workload_rows_key(&w->minutes, 0)->minute;
	int r = items ? 1 : -ENOMEM;

	if (items)
		code(c, FIRST, &first);
	while (r > 0 && (r = profdb_workload_blocks_next(&b, &w->counts)) > 0)
		for (size_t i = 0; i < b.nr; i++) {
			struct sum s = sum_begin(c, &b, i, first);

			put_sum(c, &s, &at, end);
		}
	profdb_workload_blocks_release(&b);
	free(items);
	return r;
}

/* What the range coder made shorter than a reader would trust is filled up. */
static int fill_up(struct base_buf *out, size_t start, uint64_t nr)
{
	size_t len = out->len - start;

	return fits(nr, len) ? 0 : base_buf_extend(out, nr / ROWS_A_BYTE + 1 - len, NULL);
}

int profdb_workload_counts_print(const struct profdb_workloads *w, struct base_buf *out)
{
	struct coder c = { .writes = true };
	size_t start = out->len;
	uint8_t head[HEAD];
	int r = coder_begin(&c, w);

	profdb_workload_rows_sort((struct profdb_workload_rows *)&w->counts);
	profdb_workload_rows_sort((struct profdb_workload_rows *)&w->minutes);
	profdb_put64(head, w->counts.nr);
	profdb_put64(head + 8, w->minutes.nr);
	if (r >= 0)
		r = base_buf_append(out, head, sizeof(head));
	if (r >= 0) {
		profdb_range_begin(&c.to, out);
		put_counts(&c, &w->counts);
		r = w->counts.nr ? put_minutes(&c, w) : 0;
	}
	free(c.models);
	if (r >= 0)
		r = c.error < 0 ? c.error : profdb_range_end(&c.to);
	return r < 0 ? r : fill_up(out, start, w->counts.nr + w->minutes.nr);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int add_sums(struct profdb_profile *h, const uint64_t *count)
{
	bool any = false;

	for (size_t k = 0; k < h->nr_events; k++) {
		if (base_add_overflow(h->events[k].sum, count[k], &h->events[k].sum))
			return -DCPI_EFORMAT;
		any = any || count[k];
	}
	return any ? 0 : -DCPI_EFORMAT;
}

static int get_counts(struct coder *c, struct profdb_workloads *w, uint64_t nr)
{
	struct place p = { 0 };
	struct profdb_workload_key key;
	uint64_t *count;
	int r = 0;

	for (uint64_t i = 0; r >= 0 && i < nr; i++) {
		code_key(c, &p, &key);
		r = c->error < 0 ? c->error : profdb_workload_rows_append(&w->counts, &key, &count);
		for (size_t k = 0; r >= 0 && k < c->nr_events; k++) {
			code(c, model_of_count(k, OF_COUNT), &count[k]);
			r = c->error;
		}
		if (r >= 0)
			r = add_sums(w->header, count);
	}
	return r;
}

/* @nr minutes at most. */
static int get_sum(struct coder *c, struct sum *s, struct profdb_workload_rows *minutes,
		   uint64_t nr)
{
	int r = 0;

	while (r >= 0 && left_of(c, s, 0)) {
		struct profdb_workload_key key = *s->key;
		uint64_t *count;

		code_minute(c, s, &key.minute);
		r = c->error < 0	? c->error
		    : minutes->nr == nr ? -DCPI_EFORMAT
					: profdb_workload_rows_append(minutes, &key, &count);
		if (r < 0)
			break;
		code_counts(c, s, count);
		r = c->error;
	}
	return r;
}

static int get_minutes(struct coder *c, struct profdb_workloads *w, uint64_t nr)
{
	struct profdb_workload_blocks b = { .nr_events = c->nr_events };
	uint64_t first = 0;
	int r = 1;

	code(c, FIRST, &first);
	if (first > INT64_MAX)
		r = -DCPI_EFORMAT;
	while (r > 0 && (r = profdb_workload_blocks_next(&b, &w->counts)) > 0)
		for (size_t i = 0; r >= 0 && i < b.nr; i++) {
			struct sum s = sum_begin(c, &b, i, first);

			r = get_sum(c, &s, &w->minutes, nr);
			r = r < 0 ? r : 1;
		}
	profdb_workload_blocks_release(&b);
	return r;
}

static bool all_zero(const uint8_t *p, size_t len)
{
	for (; len; len--)
		if (*p++)
			return false;
	return true;
}

int profdb_workload_counts_parse(struct profdb_workloads *w, const struct profdb_payload *s)
{
	struct coder c = { 0 };
	uint64_t counts, minutes, all;
	int r;

	if (s->len < HEAD || profdb_range_open(&c.from, s->data + HEAD, s->len - HEAD) < 0)
		return -DCPI_EFORMAT;
	counts = profdb_get64(s->data);
	minutes = profdb_get64(s->data + 8);
	if (base_add_overflow(counts, minutes, &all) || !fits(all, s->len))
		return -DCPI_EFORMAT;
	r = coder_begin(&c, w);
	if (r >= 0)
		r = get_counts(&c, w, counts);
	if (r >= 0 && counts)
		r = get_minutes(&c, w, minutes);
	free(c.models);
	if (r < 0)
		return r;
	return w->minutes.nr == minutes && c.from.pos <= c.from.len &&
			       all_zero(c.from.data + c.from.pos, c.from.len - c.from.pos)
		       ? 0
		       : -DCPI_EFORMAT;
}
