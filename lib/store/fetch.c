/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions about a fleet: servers add up, and what they answer becomes a database of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "fetch.h"

/* Epochs of machines that are copied as they are at most; and up to which that is done for call
 * paths. */
enum { HOURS_MAX = 2500, HOURS_FEW = 250 };

/* ---- questions ------------------------------------------------------------------------------- */

/* Asks @sql, which becomes empty, and has each row of the answer taken. 0 or negative with @err. */
static int ask(struct fetch *f, struct base_buf *sql, enum fetch_row row, struct base_err *err)
{
	struct base_buf answer = { 0 };
	int r = base_buf_printf(sql, " FORMAT RowBinary");

	if (r >= 0)
		r = store_ask(f->s, (const char *)sql->data, &answer, err);
	if (r >= 0)
		r = fetch_rows(f, &answer, row, err);
	base_buf_release(&answer);
	base_buf_clear(sql);
	return r;
}

/* The name of what is added up tells of how many machines it is. */
static int name_fleet(struct fetch *f, struct base_err *err)
{
	struct base_buf sql = { 0 };
	uint64_t nr = 0;
	int r = base_buf_printf(&sql, "SELECT uniqExact(platform) FROM totals WHERE %s%s%s",
				fetch_text(&f->where), fetch_text(&f->event),
				fetch_text(&f->labels));

	if (r >= 0)
		r = store_ask_number(f->s, &sql, &nr, err);
	snprintf(f->fleet, sizeof(f->fleet), "fleet-of-%llu", (unsigned long long)nr);
	snprintf(f->quoted_fleet, sizeof(f->quoted_fleet), "'%s'", f->fleet);
	base_buf_release(&sql);
	return r;
}

static const char *epoch_column(const struct fetch *f)
{
	return f->w->by_epoch ? "toUInt32(epoch)" : "toUInt32(min(epoch))";
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
		r = ask(f, &sql, FETCH_EVENT, err);
	base_buf_release(&sql);
	return r;
}

/* Heads are few where an image is meant; each is asked for apart then, which is much faster. */
enum { HEADS_APART = 64 };

/* Rows of profiles of which none is an older one of another are read without FINAL, which takes
 * several times as long. */
static int need_final(struct fetch *f, bool *out, struct base_err *err)
{
	struct base_buf sql = { 0 };
	uint64_t once = 0;
	int r = base_buf_printf(&sql,
				"SELECT toUInt64(count() = uniqExact(event, image, file, platform, "
				"epoch)) FROM prof WHERE %s%s%s",
				fetch_text(&f->where), fetch_text(&f->event),
				fetch_text(&f->images));

	if (r >= 0)
		r = store_ask_number(f->s, &sql, &once, err);
	*out = !once;
	base_buf_release(&sql);
	return r;
}

static int ask_heads(struct fetch *f, struct base_buf *answer, struct base_err *err)
{
	struct base_buf sql = { 0 };
	bool final = true;
	/* All images have too many rows to look at first. */
	int r = f->images.len ? need_final(f, &final, err) : 0;

	if (r >= 0)
		r = base_buf_printf(
			&sql,
			"SELECT event, image, label, %s, %s, "
			"sum(toFloat64(samples) * period) / sum(samples), "
			"sum(toFloat64(samples) * enabled) / sum(samples) FROM prof%s "
			"WHERE %s%s%s%s GROUP BY event, image, label%s HAVING sum(samples) > 0 "
			"ORDER BY sum(samples) DESC, image, label FORMAT RowBinary",
			fetch_platform_column(f), epoch_column(f), final ? " FINAL" : "",
			fetch_text(&f->where), fetch_text(&f->event), fetch_text(&f->labels),
			fetch_text(&f->images), fetch_group_more(f));
	if (r >= 0)
		r = store_ask(f->s, (const char *)sql.data, answer, err);
	base_buf_release(&sql);
	return r;
}

static int ask_all_counts(struct fetch *f, struct base_err *err)
{
	const struct store_source *source = &store_sources[STORE_BY_PLACE];
	struct base_buf sql = { 0 }, where = { 0 }, columns = { 0 };
	int r = base_buf_printf(&where, "%s%s%s%s", fetch_text(&f->where), fetch_text(&f->event),
				fetch_text(&f->labels), fetch_text(&f->images));

	if (r >= 0)
		r = base_buf_printf(&columns, "event, image, label, %s", source->columns);

	if (r >= 0)
		r = base_buf_printf(&sql, "SELECT event, image, label, %s, %s, place, sum(c) FROM ",
				    fetch_counts_column(f), epoch_or_none(f));
	if (r >= 0)
		r = fetch_from(f, &sql, "prof FINAL", (const char *)columns.data,
			       (const char *)where.data, source->arrays);
	if (r >= 0)
		r = base_buf_printf(&sql, " GROUP BY event, image, label, place%s",
				    fetch_counts_group(f));
	if (r >= 0)
		r = ask(f, &sql, FETCH_COUNT, err);
	base_buf_release(&sql);
	base_buf_release(&where);
	base_buf_release(&columns);
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

static int make_alike(struct fetch *f, const struct quoted *head, struct fetch_alike *out)
{
	const char *image = fetch_text(&head->image), *label = fetch_text(&head->label);
	int r = base_buf_printf(&out->which, " AND image = toFixedString(%s, 16) AND label = %s",
				image, label);

	return r < 0 ? r
		     : base_buf_printf(
			       &out->columns, "%s AS e, toFixedString(%s, 16) AS i, %s AS l, %s",
			       fetch_text(&head->event), image, label, fetch_counts_column(f));
}

/* The counts of all heads of an event: @which is true of their images. */
static int ask_sums(struct fetch *f, const char *which, const struct fetch_alike *alike, size_t nr,
		    struct base_err *err)
{
	const struct fetch_sums q = { .source = &store_sources[STORE_BY_PLACE],
				      .which = which,
				      .label = fetch_text(&f->labels),
				      .numbers = "",
				      .apart = true,
				      .no_epoch = true,
				      .alike = alike,
				      .nr_alike = nr };
	struct base_buf answer = { 0 };
	int r = fetch_ask_sums(f, &q, &answer, err);

	if (r >= 0)
		r = fetch_rows(f, &answer, FETCH_COUNT, err);
	base_buf_release(&answer);
	return r;
}

static bool same_event(const struct quoted *a, const struct quoted *b)
{
	return strcmp(fetch_text(&a->event), fetch_text(&b->event)) == 0;
}

/* One question is for all images of an event: builds of a program are many. */
static int ask_event(struct fetch *f, const struct quoted *heads, size_t first, size_t nr,
		     struct base_err *err)
{
	struct fetch_alike alike[HEADS_APART] = { 0 };
	struct base_buf which = { 0 };
	size_t nr_alike = 0;
	int r = base_buf_printf(&which, "event = %s AND image IN (",
				fetch_text(&heads[first].event));

	for (size_t i = first; i < nr && r >= 0; i++) {
		if (!same_event(&heads[i], &heads[first]))
			continue;
		r = base_buf_printf(&which, "%s%s", nr_alike ? ", " : "",
				    fetch_text(&heads[i].image));
		if (r >= 0)
			r = make_alike(f, &heads[i], &alike[nr_alike++]);
	}
	if (r >= 0)
		r = base_buf_printf(&which, ")");
	if (r >= 0)
		r = ask_sums(f, (const char *)which.data, alike, nr_alike, err);
	for (size_t i = 0; i < nr_alike; i++) {
		base_buf_release(&alike[i].which);
		base_buf_release(&alike[i].columns);
	}
	base_buf_release(&which);
	return r;
}

static int ask_events_of(struct fetch *f, const struct quoted *heads, size_t nr,
			 struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++) {
		bool asked = false;

		for (size_t k = 0; k < i; k++)
			asked |= same_event(&heads[k], &heads[i]);
		if (!asked)
			r = ask_event(f, heads, i, nr, err);
	}
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
		r = ask(f, &sql, FETCH_CONTENT, err);
	base_buf_release(&sql);
	return r;
}

int fetch_images(struct fetch *f, bool symbols, const char *which, struct base_err *err)
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

	f->symbols = symbols;
	if (r >= 0)
		r = ask(f, &sql, FETCH_IMAGE, err);
	if (r >= 0 && symbols)
		r = ask_contents(f, which, err);
	base_buf_release(&sql);
	return r;
}

static int ask_profiles(struct fetch *f, const struct base_buf *answer, struct base_err *err)
{
	struct quoted heads[HEADS_APART] = { 0 };
	size_t nr = 0;
	int r = list_heads(answer, heads, &nr);

	if (r >= 0)
		r = nr > HEADS_APART ? ask_all_counts(f, err) : ask_events_of(f, heads, nr, err);
	for (size_t i = 0; i < nr && i < HEADS_APART; i++)
		quoted_release(&heads[i]);
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
		r = fetch_images(f, true, (const char *)which.data, err);
	if (r >= 0)
		r = fetch_rows(f, &heads, FETCH_HEAD, err);
	if (r >= 0)
		r = ask_profiles(f, &heads, err);
	base_buf_release(&heads);
	base_buf_release(&which);
	return r;
}

/* ---- by platform and by workload ------------------------------------------------------------- */

/* Samples of chosen images: those of their routines. */
static int by_platform_of_images(struct fetch *f, struct base_err *err)
{
	struct base_buf answer = { 0 };
	int r = 0;

	for (size_t i = 0; i < f->nr_events && r >= 0; i++) {
		r = fetch_event_sums(f, f->events[i].name, false, &answer, err);
		if (r >= 0)
			r = fetch_rows(f, &answer, FETCH_PLATFORM, err);
	}
	base_buf_release(&answer);
	return r;
}

/* @row takes the sums of all workloads together. */
static int by_platform(struct fetch *f, enum fetch_row row, struct base_err *err)
{
	struct base_buf sql = { 0 };
	bool part = f->w->nr_images;
	int r = base_buf_printf(&sql,
				"SELECT event, %s, %s, %s AS nr "
				"FROM totals FINAL%s WHERE %s%s%s%s GROUP BY event%s HAVING nr > 0 "
				"ORDER BY nr DESC",
				fetch_platform_column(f), epoch_column(f),
				part ? "sum(c)" : "sum(samples)",
				part ? " ARRAY JOIN r AS place, n AS c" : "", fetch_text(&f->where),
				fetch_text(&f->event), fetch_text(&f->labels),
				fetch_text(&f->routines), fetch_group_more(f));

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
		fetch_platform_column(f), epoch_column(f), fetch_text(&f->where),
		fetch_text(&f->event));

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
				    fetch_group_more(f));
	if (r >= 0)
		r = ask(f, &sql, FETCH_WORKLOAD, err);
	base_buf_release(&sql);
	return r < 0 ? r : by_platform(f, FETCH_REST, err);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* How many epochs of machines are meant. */
static int count_hours(struct fetch *f, uint64_t *nr, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql, "SELECT uniqExact(platform, epoch) FROM totals WHERE %s",
				fetch_text(&f->where));

	if (r >= 0)
		r = store_ask_number(f->s, &sql, nr, err);
	base_buf_release(&sql);
	return r;
}

static int files(struct fetch *f, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = by_offset(f, err);

	if (r >= 0)
		r = base_buf_printf(&sql,
				    "SELECT platform, toUInt32(epoch), kind, bytes FROM part FINAL "
				    "WHERE %s",
				    fetch_text(&f->where));
	if (r >= 0)
		r = ask(f, &sql, FETCH_PART, err);
	if (r >= 0)
		r = fetch_callers(f, err);
	base_buf_release(&sql);
	return r;
}

/* Few machines' profiles are copied as they are. Else call paths come with sums. */
static int choose_files(struct fetch *f, struct store_want *w, struct base_err *err)
{
	uint64_t nr;
	int r = count_hours(f, &nr, err);

	if (r >= 0 && w->detail == STORE_PATHS && nr <= HOURS_FEW)
		w->detail = STORE_FILES;
	if (r < 0 || w->detail == STORE_PATHS || nr <= HOURS_MAX)
		return r;
	r = base_fail(err, -DCPI_ELIMIT,
		      "the workloads of %llu epochs of machines are meant, %d may be read",
		      (unsigned long long)nr, HOURS_MAX);
	base_hint(err, "choose fewer machines or hours: -platform, -since, -epoch");
	return r;
}

/* ---- symbols --------------------------------------------------------------------------------- */

/* An identity may be that of a file, a kernel, or a vdso. */
static int add_identity(const char *text, struct base_buf *keys, struct base_err *err)
{
	static const enum profdb_kind kinds[] = { PROFDB_FILE, PROFDB_KERNEL, PROFDB_VDSO };
	struct base_id id = { 0 };
	int r = base_id_parse(&id, text, strlen(text));

	if (r < 0 || !id.len) {
		base_fail(err, -DCPI_EUSAGE, "'%s' is no identity of an image", text);
		base_hint(err, "'-detail symbols' takes whole build-ids");
		return -DCPI_EUSAGE;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && r >= 0; i++) {
		struct store_key key;

		store_file_key(profdb_kind_name(kinds[i]), &id, NULL, NULL, &key);
		r = base_buf_append(keys, key.bytes, sizeof(key.bytes));
	}
	return r;
}

static int symbols(struct fetch *f, struct base_err *err)
{
	struct base_buf keys = { 0 };
	int r = 0;

	for (size_t i = 0; i < f->w->nr_images && r >= 0; i++)
		r = add_identity(f->w->images[i], &keys, err);
	if (r >= 0)
		r = fetch_images_of(f, &keys, true, err);
	for (size_t i = 0; i < f->nr; i++)
		f->v[i].used = true;
	base_buf_release(&keys);
	return r;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int gather(struct fetch *f, struct base_err *err)
{
	switch (f->w->detail) {
	case STORE_BY_OFFSET:
		return by_offset(f, err);
	case STORE_BY_ROUTINE:
		return fetch_by_routine(f, err);
	case STORE_BY_PLATFORM:
		return f->w->nr_images ? by_platform_of_images(f, err)
				       : by_platform(f, FETCH_PLATFORM, err);
	case STORE_BY_WORKLOAD:
		return by_workload(f, err);
	case STORE_FILES:
		return files(f, err);
	case STORE_PATHS:
		return fetch_paths(f, err);
	case STORE_SYMBOLS:
		return symbols(f, err);
	}
	return -EINVAL;
}

/* Finds out which rows are meant, and how they are to be added up. */
static int prepare(struct fetch *f, struct store_want *w, struct base_err *err)
{
	int r = fetch_conditions(f, err);

	if (r >= 0 && (w->detail == STORE_FILES || w->detail == STORE_PATHS))
		r = choose_files(f, w, err);
	w->by_platform |= w->detail == STORE_BY_PLATFORM || w->detail == STORE_FILES;
	w->by_epoch |= w->detail == STORE_FILES;
	if (r >= 0 && !w->by_platform)
		r = name_fleet(f, err);
	if (r >= 0 && w->detail != STORE_BY_OFFSET && w->detail != STORE_FILES)
		r = ask_events(f, err); /* by offset the heads tell it */
	return r;
}

/* Refuses a folder with files: samples of a database that is there would be added to. */
static int check_empty(const char *path, struct base_err *err)
{
	struct dirent *e;
	DIR *d;
	size_t nr = 0;

	if (base_dir_open(AT_FDCWD, path, &d) < 0)
		return 0;
	while ((e = readdir(d)))
		nr += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	return nr ? base_fail(err, -ENOTEMPTY, "'%s' is not empty", path) : 0;
}

int store_fetch(struct store_server *s, const struct store_want *w, const char *path,
		struct store_fetched *out, struct base_err *err)
{
	struct store_want want = *w;
	struct fetch f = { .s = s, .w = &want };
	char id[64];
	int r = check_empty(path, err);

	if (r >= 0)
		r = store_schema_check(s, id, err);
	if (r >= 0 && want.detail != STORE_SYMBOLS)
		r = prepare(&f, &want, err);
	if (r >= 0)
		r = gather(&f, err);
	if (r >= 0)
		r = fetch_write(&f, path, out, err);
	fetch_release(&f);
	return r < 0 ? base_fail_errno(err, r, "cannot read the store") : 0;
}
