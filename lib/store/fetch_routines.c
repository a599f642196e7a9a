/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums by routine: servers add them up, and tell the names of the routines that have samples. */
#include <string.h>

#include "fetch.h"

/* Numbers of routines in one question, which a server takes up to 256 KiB long. */
enum { NUMBERS_AT_ONCE = 8000 };

/* The totals of all events, each in a buffer of its own. */
static int ask_all_totals(struct fetch *f, struct base_buf totals[PROFDB_NR_EVENTS],
			  struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < f->nr_events && r >= 0; i++)
		r = fetch_event_sums(f, f->events[i].name, true, &totals[i], err);
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

/* Names and images of the routines that @which, a condition, is true of; the answer is kept. */
static int ask_routines(struct fetch *f, const char *which, struct base_buf *answer,
			struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql,
				"SELECT r, image, symbol, off, len FROM routine FINAL "
				"WHERE %s FORMAT RowBinary",
				which);

	if (r >= 0)
		r = store_ask(f->s, (const char *)sql.data, answer, err);
	base_buf_release(&sql);
	return r;
}

static int ask_some_routines(struct fetch *f, const uint64_t *numbers, size_t nr,
			     struct base_buf *answer, struct base_err *err)
{
	struct base_buf which = { 0 };
	int r = base_buf_printf(&which, "r IN (");

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = base_buf_printf(&which, "%s%llu", i ? "," : "", (unsigned long long)numbers[i]);
	if (r >= 0)
		r = base_buf_printf(&which, ")");
	if (r >= 0)
		r = ask_routines(f, (const char *)which.data, answer, err);
	base_buf_release(&which);
	return r;
}

static int count_rows(struct fetch *f, const char *table, uint64_t *out, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql, "SELECT count() FROM %s", table);

	if (r >= 0)
		r = store_ask_number(f->s, &sql, out, err);
	base_buf_release(&sql);
	return r;
}

/* Where many of the store's routines are meant, all are asked for: that is one question. The same
 * is done with images, but for their symbols, which may be too long an answer. */
static int ask_names(struct fetch *f, const struct base_buf *numbers, struct base_buf *answer,
		     struct base_err *err)
{
	const uint64_t *v = (const uint64_t *)numbers->data;
	size_t nr = numbers->len / sizeof(*v);
	uint64_t all;
	int r = count_rows(f, "routine", &all, err);

	if (r >= 0 && nr > NUMBERS_AT_ONCE && nr > all / 8)
		return ask_routines(f, "1", answer, err);
	for (size_t i = 0; i < nr && r >= 0; i += NUMBERS_AT_ONCE)
		r = ask_some_routines(f, v + i, nr - i < NUMBERS_AT_ONCE ? nr - i : NUMBERS_AT_ONCE,
				      answer, err);
	return r;
}

/* ---- their images ---------------------------------------------------------------------------- */

/* The images of routines that have samples, once each. */
static int list_images(struct fetch *f, const struct base_buf *routines, struct base_buf *keys)
{
	struct store_reader reader = { routines->data, routines->data + routines->len, false };
	struct base_map seen = { 0 };
	int r = 0;

	while (r >= 0 && reader.at < reader.end && !reader.bad) {
		uint64_t number = store_get_number(&reader, 8);
		const void *key = store_get_bytes(&reader, STORE_KEY);
		size_t len;

		store_get_string(&reader, &len);
		store_get_bytes(&reader, 8 + 8);
		if (reader.bad || !base_map_get(&f->wanted, &number, sizeof(number)) ||
		    base_map_get(&seen, key, STORE_KEY))
			continue;
		r = base_map_set(&seen, key, STORE_KEY, f);
		if (r >= 0)
			r = base_buf_append(keys, key, STORE_KEY);
	}
	base_map_release(&seen);
	return r;
}

int fetch_images_of(struct fetch *f, const struct base_buf *keys, bool symbols,
		    struct base_err *err)
{
	struct base_buf which = { 0 };
	size_t nr = keys->len / STORE_KEY;
	uint64_t all = 0;
	int r = nr > FETCH_KEYS && !symbols ? count_rows(f, "image", &all, err) : 0;

	if (r >= 0 && all && nr > all / 16)
		return fetch_images(f, false, "!= toFixedString('', 16)", err);
	for (size_t i = 0; i < nr && r >= 0; i += FETCH_KEYS) {
		base_buf_clear(&which);
		r = fetch_keys(&which, keys->data + i * STORE_KEY,
			       nr - i < FETCH_KEYS ? nr - i : FETCH_KEYS);
		if (r >= 0)
			r = fetch_images(f, symbols, (const char *)which.data, err);
	}
	base_buf_release(&which);
	return r;
}

/* Images come before their routines. */
static int take_names(struct fetch *f, const struct base_buf *routines, struct base_err *err)
{
	struct base_buf keys = { 0 };
	int r = list_images(f, routines, &keys);

	if (r >= 0)
		r = fetch_images_of(f, &keys, f->w->symbols, err);
	if (r >= 0)
		r = fetch_rows(f, routines, FETCH_ROUTINE, err);
	base_buf_release(&keys);
	return r;
}

int fetch_by_routine(struct fetch *f, struct base_err *err)
{
	struct base_buf totals[PROFDB_NR_EVENTS] = { { 0 } }, numbers = { 0 }, names = { 0 };
	size_t nr = f->nr_events;
	int r = ask_all_totals(f, totals, err);

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = note_wanted(f, &totals[i], &numbers);
	if (r >= 0)
		r = ask_names(f, &numbers, &names, err);
	if (r >= 0)
		r = take_names(f, &names, err);
	base_buf_release(&names);
	for (size_t i = 0; i < nr; i++) {
		if (r >= 0)
			r = fetch_rows(f, &totals[i], FETCH_TOTAL, err);
		base_buf_release(&totals[i]);
	}
	base_buf_release(&numbers);
	return r;
}
