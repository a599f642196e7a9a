/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables are made, checked, and filled. On a cluster each server has tables of its own,
 * NAME_here, and tables NAME that distribute rows and questions over all of them.
 */
#include <errno.h>
#include <string.h>

#include "store_internal.h"

static int add_columns(const struct store_table *t, struct base_buf *to)
{
	int r = 0;

	for (const struct store_column *c = t->columns; c->name && r >= 0; c++)
		r = base_buf_printf(to, "%s%s %s", c == t->columns ? "" : ", ", c->name, c->type);
	return r;
}

static int add_engine(const struct store_table *t, const char *database,
		      const struct store_schema_how *how, struct base_buf *to)
{
	int r = base_buf_printf(to, ") ENGINE = ");

	if (r >= 0 && how->replicas)
		r = base_buf_printf(to,
				    "ReplicatedReplacingMergeTree('%s/{shard}/%s/%s', "
				    "'{replica}', ver)",
				    how->replicas, database, t->name);
	else if (r >= 0)
		r = base_buf_printf(to, "ReplacingMergeTree(ver)");
	if (r >= 0 && t->partition)
		r = base_buf_printf(to, " PARTITION BY %s", t->partition);
	if (r >= 0)
		r = base_buf_printf(to, " ORDER BY (%s)", t->order);
	if (r >= 0 && how->ttl && t->keep_days)
		r = base_buf_printf(to, " TTL toDate(epoch) + %u", t->keep_days);
	return r < 0 ? r : base_buf_printf(to, " SETTINGS index_granularity = %u", t->mark);
}

/* A statement ends with a 0, which base_buf_printf does not count. */
static int end_statement(struct base_buf *to)
{
	return base_buf_append(to, "", 1);
}

static int add_table(const struct store_table *t, const char *database,
		     const struct store_schema_how *how, struct base_buf *to)
{
	int r = base_buf_printf(to, "CREATE TABLE IF NOT EXISTS %s%s (", t->name,
				how->cluster ? "_here" : "");

	if (r >= 0)
		r = add_columns(t, to);
	if (r >= 0)
		r = add_engine(t, database, how, to);
	if (r >= 0)
		r = end_statement(to);
	if (r < 0 || !how->cluster)
		return r;
	r = base_buf_printf(to,
			    "CREATE TABLE IF NOT EXISTS %s AS %s_here ENGINE = "
			    "Distributed(%s, %s, %s_here, %s)",
			    t->name, t->name, how->cluster, database, t->name, t->shard);
	return r < 0 ? r : end_statement(to);
}

/* The row of version 1 has a text that tells this making of the tables from every other, but for
 * clusters, whose servers are one. */
static int add_version(const struct store_schema_how *how, struct base_buf *to)
{
	int r = base_buf_printf(to, "CREATE TABLE IF NOT EXISTS schema (version UInt32, id String) "
				    "ENGINE = ReplacingMergeTree ORDER BY version");

	if (r >= 0)
		r = end_statement(to);
	if (r >= 0)
		r = base_buf_printf(to, "INSERT INTO schema SELECT %d, ", STORE_SCHEMA);
	if (r >= 0 && how->cluster)
		r = base_buf_printf(to, "'cluster %.50s'", how->cluster);
	else if (r >= 0)
		r = base_buf_printf(to, "toString(generateUUIDv4())");
	if (r >= 0)
		r = base_buf_printf(to, " WHERE (SELECT count() FROM schema) = 0");
	return r < 0 ? r : end_statement(to);
}

int store_schema(const char *database, const struct store_schema_how *how, struct base_buf *out)
{
	int r = 0;

	for (size_t i = 0; i < STORE_NR_TABLES && r >= 0; i++)
		r = add_table(&store_tables[i], database, how, out);
	return r < 0 ? r : add_version(how, out);
}

/* Tables forget by themselves from ClickHouse 19.6 on. */
static int has_ttl(struct store_server *s, bool *out, struct base_err *err)
{
	struct base_buf answer = { 0 };
	int r = store_ask(s, "SELECT version() FORMAT RowBinary", &answer, err);
	struct store_reader reader = { answer.data, answer.data + answer.len, false };
	size_t len;
	const char *text = r < 0 ? NULL : store_get_string(&reader, &len);
	char version[32] = "";
	unsigned int major = 0, minor = 0;

	if (text && len < sizeof(version))
		memcpy(version, text, len);
	if (r >= 0 && sscanf(version, "%u.%u", &major, &minor) != 2)
		r = base_fail(err, -EHOSTUNREACH, "the server tells no version");
	*out = major > 19 || (major == 19 && minor >= 6);
	base_buf_release(&answer);
	return r;
}

static int do_each(struct store_server *s, const struct base_buf *sql, struct base_err *err)
{
	int r = 0;

	for (size_t at = 0; r >= 0 && at < sql->len;) {
		const char *one = (const char *)sql->data + at;

		r = store_do(s, one, err);
		at += strlen(one) + 1;
	}
	return r;
}

/* ---- versions -------------------------------------------------------------------------------- */

/* The version of the store's tables and the mark of their making, or -DCPI_EVERSION. */
static int ask_version(struct store_server *s, uint64_t *version, char id[64], struct base_err *err)
{
	struct base_buf answer = { 0 };
	int r = store_ask(s,
			  "SELECT version, id FROM schema ORDER BY version DESC LIMIT 1 "
			  "FORMAT RowBinary",
			  &answer, err);
	struct store_reader reader = { answer.data, answer.data + answer.len, false };
	size_t len = 0;
	const char *text;

	*version = r < 0 ? 0 : store_get_number(&reader, 4);
	text = r < 0 ? NULL : store_get_string(&reader, &len);
	if (r >= 0 && (!text || reader.at != reader.end || !len || len > 63))
		r = base_fail(err, -DCPI_EVERSION, "'%s' is no store of profiles",
			      store_database(s));
	if (r >= 0) {
		memcpy(id, text, len);
		id[len] = 0;
	}
	base_buf_release(&answer);
	return r;
}

static int fail_version(struct store_server *s, uint64_t version, unsigned int wanted,
			struct base_err *err)
{
	base_fail(err, -DCPI_EVERSION, "store '%s' has version %u, not %u", store_database(s),
		  (unsigned int)version, wanted);
	base_hint(err, version > wanted
			       ? "this program is older than the store"
			       : "this program is newer than the store: 'dcpiship -make-schema' "
				 "brings the tables to its version");
	return -DCPI_EVERSION;
}

int store_schema_check(struct store_server *s, char id[64], struct base_err *err)
{
	uint64_t version;
	int r = ask_version(s, &version, id, err);

	return r >= 0 && version != STORE_SCHEMA ? fail_version(s, version, STORE_SCHEMA, err) : r;
}

/* ---- from one version to the next ------------------------------------------------------------ */

/* Version 2 also added a table, of sums. Tables are made before a version's columns. */
static const struct store_step steps[] = {
	{ 2, STORE_PROF, "lo", "Array(UInt16)" },
	{ 2, STORE_PROF, "hi", "Array(UInt16)" },
	{ 2, STORE_PROF, "nlo", "Array(UInt8)" },
	{ 2, STORE_PROF, "nhi", "Array(UInt8)" },
	{ 0, STORE_PROF, NULL, NULL },
};

/* A column that is there is not added, as a migration may be cut, or be made by another server.
 * (ClickHouse 18 has no ADD COLUMN IF NOT EXISTS.) */
static int has_column(struct store_server *s, const char *table, const char *column, bool *out,
		      struct base_err *err)
{
	struct base_buf sql = { 0 };
	uint64_t nr = 0;
	int r = base_buf_printf(&sql,
				"SELECT count() FROM system.columns WHERE database = '%s' AND "
				"table = '%s' AND name = '%s'",
				store_database(s), table, column);

	if (r >= 0)
		r = store_ask_number(s, &sql, &nr, err);
	*out = nr;
	base_buf_release(&sql);
	return r;
}

static int add_column(struct store_server *s, const char *table, const char *suffix,
		      const struct store_step *step, struct base_err *err)
{
	struct base_buf sql = { 0 };
	char name[64];
	bool has;
	int r;

	snprintf(name, sizeof(name), "%s%s", table, suffix);
	r = has_column(s, name, step->column, &has, err);
	if (r < 0 || has)
		return r;
	r = base_buf_printf(&sql, "ALTER TABLE %s ADD COLUMN %s %s", name, step->column,
			    step->type);
	if (r >= 0)
		r = store_do(s, (const char *)sql.data, err);
	base_buf_release(&sql);
	return r;
}

/* The version comes last: what was cut is done once more. */
static int set_version(struct store_server *s, unsigned int target, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql,
				"INSERT INTO schema SELECT %u, any(id) FROM schema "
				"HAVING max(version) < %u",
				target, target);

	if (r >= 0)
		r = store_do(s, (const char *)sql.data, err);
	base_buf_release(&sql);
	return r;
}

static int do_steps(struct store_server *s, const struct store_step *step, uint64_t from,
		    unsigned int target, const struct store_schema_how *how, struct base_err *err)
{
	int r = 0;

	for (; step->version && r >= 0; step++) {
		const char *table = store_tables[step->table].name;

		if (step->version <= from || step->version > target)
			continue;
		if (how->cluster)
			r = add_column(s, table, "_here", step, err);
		if (r >= 0)
			r = add_column(s, table, "", step, err);
	}
	return r < 0 ? r : set_version(s, target, err);
}

/* On a cluster the rows are in other tables than on a server alone. */
static int check_cluster(struct store_server *s, const char *id, const struct store_schema_how *how,
			 struct base_err *err)
{
	char expected[64] = "";

	if (how->cluster)
		snprintf(expected, sizeof(expected), "cluster %.50s", how->cluster);
	if (strncmp(id, "cluster ", 8) != 0 ? !how->cluster : strcmp(id, expected) == 0)
		return 0;
	base_fail(err, -DCPI_EUSAGE, "store '%s' was not made with that -cluster",
		  store_database(s));
	if (strncmp(id, "cluster ", 8) == 0)
		base_hint(err, "it was made with -cluster '%s'", id + 8);
	return -DCPI_EUSAGE;
}

int store_schema_migrate(struct store_server *s, const struct store_step *all, unsigned int target,
			 const struct store_schema_how *how, struct base_err *err)
{
	struct base_buf sql = { 0 };
	struct base_err why = { 0 };
	uint64_t version;
	char id[64];
	int r = ask_version(s, &version, id, &why);

	if (r == -ENOENT || (r == -DCPI_EVERSION && !version))
		return 0; /* the tables are to be made first */
	if (r < 0 && err)
		*err = why;
	if (r >= 0 && version > target)
		r = fail_version(s, version, target, err);
	if (r < 0 || version == target)
		return r;
	r = check_cluster(s, id, how, err);
	if (r >= 0)
		r = store_schema(store_database(s), how, &sql);
	if (r >= 0)
		r = do_each(s, &sql, err);
	base_buf_release(&sql);
	if (r >= 0)
		r = do_steps(s, all, version, target, how, err);
	return r;
}

int store_schema_make(struct store_server *s, const struct store_schema_how *how,
		      struct base_err *err)
{
	struct store_schema_how full = *how;
	struct base_buf sql = { 0 };
	int r = has_ttl(s, &full.ttl, err);

	if (r >= 0)
		r = store_schema_migrate(s, steps, STORE_SCHEMA, &full, err);
	if (r >= 0)
		r = store_schema(store_database(s), &full, &sql);
	if (r >= 0)
		r = do_each(s, &sql, err);
	base_buf_release(&sql);
	return r < 0 ? base_fail_errno(err, r, "cannot make the tables") : 0;
}

/* ---- what is old ----------------------------------------------------------------------------- */

/* The server's own tables: NAME, or on a cluster NAME_here. */
static int drop(struct store_server *s, const char *table, const char *partition,
		struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql, "ALTER TABLE %s DROP PARTITION ", table);

	if (r >= 0)
		r = store_quote(&sql, partition, strlen(partition));
	if (r >= 0)
		r = store_do(s, (const char *)sql.data, err);
	base_buf_release(&sql);
	return r;
}

/* Partitions are named by the first of their days. */
static int ask_old(struct store_server *s, const struct store_table *t, int64_t now,
		   struct base_buf *answer, struct base_err *err)
{
	unsigned int span = strcmp(t->partition, "toDate(epoch)") == 0 ? 1 : 7;
	struct base_buf sql = { 0 };
	int r = base_buf_printf(
		&sql,
		"SELECT table, partition FROM system.parts WHERE database = '%s' AND active "
		"AND table IN ('%s', '%s_here') AND toDate(partition) + %u < "
		"toDate(toDateTime(%lld)) GROUP BY table, partition FORMAT RowBinary",
		store_database(s), t->name, t->name, t->keep_days + span, (long long)now);

	if (r >= 0)
		r = store_ask(s, (const char *)sql.data, answer, err);
	base_buf_release(&sql);
	return r;
}

static int expire(struct store_server *s, const struct store_table *t, struct store_reader *reader,
		  void (*removed)(void *ctx, const char *table, const char *partition), void *ctx,
		  struct base_err *err)
{
	size_t table_len, len;
	const char *table = store_get_string(reader, &table_len);
	const char *name = store_get_string(reader, &len);
	char own[64], partition[64];
	int r;

	snprintf(own, sizeof(own), "%s%s", t->name,
		 table && table_len > strlen(t->name) ? "_here" : "");
	if (!name || len >= sizeof(partition))
		return base_fail(err, -EHOSTUNREACH, "the server's answer is malformed");
	memcpy(partition, name, len);
	partition[len] = 0;
	r = drop(s, own, partition, err);
	if (r >= 0)
		removed(ctx, t->name, partition);
	return r;
}

int store_expire(struct store_server *s, int64_t now,
		 void (*removed)(void *ctx, const char *table, const char *partition), void *ctx,
		 struct base_err *err)
{
	struct base_buf answer = { 0 };
	int r = 0;

	for (size_t i = 0; i < STORE_NR_TABLES && r >= 0; i++) {
		struct store_reader reader;

		if (!store_tables[i].keep_days)
			continue;
		r = ask_old(s, &store_tables[i], now, &answer, err);
		reader = (struct store_reader){ answer.data, answer.data + answer.len, false };
		while (r >= 0 && reader.at < reader.end)
			r = expire(s, &store_tables[i], &reader, removed, ctx, err);
	}
	base_buf_release(&answer);
	return r < 0 ? base_fail_errno(err, r, "cannot remove what is old") : 0;
}

/* ---- what is new ----------------------------------------------------------------------------- */

/* Rows come behind all that they refer to. */
int store_send(struct store_server *s, const struct store_batch *b, struct base_err *err)
{
	static const enum store_table_nr order[STORE_NR_SENT] = {
		STORE_CONTENT, STORE_IMAGE, STORE_ROUTINE, STORE_PART,
		STORE_WORK,    STORE_PROF,  STORE_TOTALS,
	};
	int r = 0;

	for (size_t i = 0; i < STORE_NR_SENT && r >= 0; i++)
		r = store_insert(s, &store_tables[order[i]], &b->rows[order[i]], err);
	return r;
}
