/* SPDX-License-Identifier: BSD-2-Clause */
/* The sums of a database's epochs are compared with those that the store has of them. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "ship.h"

struct sums {
	struct profdb_event v[PROFDB_NR_EVENTS];
	size_t nr;
};

struct checking {
	struct store_server *s;
	struct profdb *db;
	const struct gather *g;
	struct sums here;
	size_t checked;
	bool tell;	       /* differences are printed */
	struct base_buf wrong; /* "EPOCH/PLATFORM" of those that differ, each ended by a 0 */
};

static int add(struct sums *s, const struct profdb_event *e)
{
	for (size_t i = 0; i < s->nr; i++)
		if (strcmp(s->v[i].name, e->name) == 0) {
			s->v[i].sum += e->sum;
			return 0;
		}
	if (s->nr == PROFDB_NR_EVENTS)
		return -DCPI_ELIMIT;
	s->v[s->nr++] = *e;
	return 0;
}

static int take(void *ctx, const char *file, struct profdb_profile *p)
{
	struct checking *c = ctx;
	int r = 0;

	(void)file;
	for (size_t i = 0; i < profdb_profile_nr_events(p) && r >= 0; i++)
		r = add(&c->here, profdb_profile_event(p, i));
	profdb_profile_free(p);
	return r;
}

/* The store's sum of one event: by files, by offsets, or by routines. */
static int ask(struct checking *c, const char *what, const char *table, const char *event,
	       const char *epoch, const char *platform, uint64_t *out, struct base_err *err)
{
	struct base_buf sql = { 0 }, answer = { 0 };
	int r = base_buf_printf(&sql,
				"SELECT %s FROM %s FINAL WHERE epoch = toDateTime(%" PRId64
				") AND platform = ",
				what, table, profdb_epoch_begin_time(epoch));

	if (r >= 0)
		r = store_quote(&sql, platform, strlen(platform));
	if (r >= 0)
		r = base_buf_printf(&sql, " AND event = ");
	if (r >= 0)
		r = store_quote(&sql, event, strlen(event));
	if (r >= 0)
		r = base_buf_printf(&sql, " FORMAT RowBinary");
	if (r >= 0)
		r = store_ask(c->s, (const char *)sql.data, &answer, err);
	if (r >= 0) {
		struct store_reader reader = { answer.data, answer.data + answer.len, false };

		*out = store_get_number(&reader, 8);
	}
	base_buf_release(&sql);
	base_buf_release(&answer);
	return r;
}

/* The store keeps rows of this table no longer. */
static bool is_over(const struct store_table *table, const char *epoch)
{
	int64_t age = (int64_t)time(NULL) - profdb_epoch_begin_time(epoch);

	return table->keep_days && age / 86400 + 1 >= table->keep_days;
}

static int compare(struct checking *c, const char *epoch, const char *platform,
		   const struct profdb_event *e, bool *good, struct base_err *err)
{
	static const struct {
		const char *sum, *what;
		enum store_table_nr table;
	} sums[] = {
		{ "sum(samples)", "files", STORE_PROF },
		{ "sum(arraySum(n) + arraySum(nlo) + 256 * arraySum(nhi) + arraySum(nfar))",
		  "offsets", STORE_PROF },
		{ "sum(samples)", "epochs", STORE_TOTALS },
		{ "sum(arraySum(n))", "routines", STORE_TOTALS },
	};
	const char *as = c->g->as ? c->g->as : platform;
	int r = 0;

	for (size_t i = 0; i < sizeof(sums) / sizeof(*sums) && r >= 0; i++) {
		const struct store_table *table = &store_tables[sums[i].table];
		uint64_t there = 0;

		if (is_over(table, epoch))
			continue;
		r = ask(c, sums[i].sum, table->name, e->name, epoch, as, &there, err);
		if (r < 0 || there == e->sum)
			continue;
		*good = false;
		if (!c->tell)
			break;
		printf("%s/%s %s: %" PRIu64 " samples, by %s %" PRIu64 " in the store\n", epoch,
		       platform, e->name, e->sum, sums[i].what, there);
	}
	return r;
}

static int check_sums(struct checking *c, const char *epoch, const char *platform,
		      struct base_err *err)
{
	bool good = true;
	int r;

	c->here.nr = 0;
	r = profdb_walk(c->db, epoch, platform, take, NULL, c, err);
	for (size_t i = 0; i < c->here.nr && r >= 0; i++)
		r = compare(c, epoch, platform, &c->here.v[i], &good, err);
	if (r >= 0 && !good)
		r = base_buf_printf(&c->wrong, "%s/%s", epoch, platform);
	return r < 0 || good ? r : base_buf_append(&c->wrong, "", 1);
}

static int check(void *ctx, const char *epoch, const char *platform, struct base_err *err)
{
	struct checking *c = ctx;

	c->checked++;
	return check_sums(c, epoch, platform, err);
}

/* Epochs that differed are compared once more. */
static int check_again(struct checking *c, struct base_err *err)
{
	struct base_buf before = c->wrong;
	char *name, *slash;
	int r = 0;

	memset(&c->wrong, 0, sizeof(c->wrong));
	for (size_t at = 0, len; r >= 0 && at < before.len; at += len) {
		name = (char *)before.data + at;
		len = strlen(name) + 1;
		slash = strchr(name, '/');
		*slash = 0;
		r = check_sums(c, name, slash + 1, err);
	}
	base_buf_release(&before);
	return r;
}

/* A server whose replica has not all rows yet has them soon; the last comparison tells. */
static int check_later(struct checking *c, unsigned int seconds, struct base_err *err)
{
	uint64_t pause = 100, left = UINT64_C(1000) * seconds; /* ms */
	int r = 0;

	while (r >= 0 && c->wrong.len && left && !(c->g->stop && *c->g->stop)) {
		pause = pause < left ? pause : left;
		poll(NULL, 0, (int)pause);
		left -= pause;
		pause *= 2;
		c->tell = !left;
		r = check_again(c, err);
	}
	return r;
}

static size_t nr_wrong(const struct checking *c)
{
	size_t nr = 0;

	for (size_t i = 0; i < c->wrong.len; i++)
		nr += !c->wrong.data[i];
	return nr;
}

int verify(const struct spool *sp, struct store_server *s, const char *db, const struct gather *g,
	   unsigned int seconds, struct base_err *err)
{
	struct checking c = { .s = s, .g = g, .tell = !seconds };
	size_t wrong, waiting;
	int r = profdb_open(db, false, &c.db, err);

	if (r >= 0)
		r = gather_visit_sent(sp, c.db, g, check, &c, err);
	if (r >= 0)
		r = check_later(&c, seconds, err);
	wrong = nr_wrong(&c);
	base_buf_release(&c.wrong);
	profdb_close(c.db);
	if (r < 0)
		return base_fail_errno(err, r, "cannot compare '%s' with the store", db);
	printf("%zu epochs compared, %zu differ\n", c.checked, wrong);
	spool_waiting(sp, &waiting);
	if (wrong && waiting)
		printf("%zu batches wait, and are not in the store yet\n", waiting);
	return !wrong;
}
