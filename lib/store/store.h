/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The store of a fleet: one ClickHouse database that has the profiles of many machines
 * (docs/FLEET.md). Everything that knows its tables is here: how an epoch becomes rows, how rows
 * reach a server, and how answers become a database that all tools read.
 *
 * A row is what one profile file, or one epoch, says. It has a key and the time of the flush that
 * it is of as its version; of rows with equal keys the newest counts. So a row may be sent any
 * number of times, in any order.
 *
 * Neither servers nor batches are believed: what they say is checked before it is used.
 */
#ifndef DCPI_STORE_H
#define DCPI_STORE_H

#include <signal.h>

#include "base.h"

/* ---- rows (rows.c) --------------------------------------------------------------------------- */

/*
 * Rows in ClickHouse's format RowBinary. Integers (UInt8 to UInt64) are base_buf_append_le's, and
 * base_buf_append_leb128 puts the number of an array's elements before them. Each function appends
 * one value: 0 or -ENOMEM.
 */
/* So many values that were put behind one another. */
int store_put_array(struct base_buf *to, uint64_t nr, const struct base_buf *values);
int store_put_string(struct base_buf *to, const void *text, size_t len);
int store_put_text(struct base_buf *to, const char *text); /* NULL: an empty one */
struct image;
/* An image's symbols, as its row ends with them: names, offsets, lengths. @img NULL: none. */
int store_put_symbols(struct base_buf *row, struct image *img);

/* Offsets and counts, as a row of STORE_PROF ends with them. Zero-initialize. */
struct store_offsets {
	struct base_buf lo, hi, nlo, nhi, far, nfar;
	uint64_t nr, nr_far;
};
int store_offsets_add(struct store_offsets *x, uint64_t off, uint64_t count);
int store_offsets_put(const struct store_offsets *x, struct base_buf *row);
void store_offsets_release(struct store_offsets *x);

/* Reads values again. After the first that is not there everything is 0 or empty, and @bad set. */
struct store_reader {
	const uint8_t *at, *end;
	bool bad;
};
uint64_t store_get_number(struct store_reader *r, size_t bytes);
/* The number of elements that follow, each of @least bytes at least. */
size_t store_get_count(struct store_reader *r, size_t least);
/* Points into the bytes read; not terminated. */
const char *store_get_string(struct store_reader *r, size_t *len);
const void *store_get_bytes(struct store_reader *r, size_t len);

/* ---- tables (tables.c) ----------------------------------------------------------------------- */

enum { STORE_KEY = 16 }; /* bytes of an image's key, and of a content's */

enum store_table_nr {
	STORE_PROF,    /* one profile file, of one event: counts by offset */
	STORE_TOTALS,  /* one epoch of a machine, of one event and label: counts by routine */
	STORE_WORK,    /* one epoch of a machine, of one event: counts by workload and image */
	STORE_PART,    /* one epoch of a machine: its files of workloads and call paths */
	STORE_IMAGE,   /* an image and its symbols */
	STORE_ROUTINE, /* a routine that had samples */
	STORE_CONTENT, /* the bytes of a pseudo-image, or of a kernel's */
	STORE_NR_SENT, /* machines send rows of those above; servers make the others' rows */
	STORE_SUMS = STORE_NR_SENT, /* totals of some hours or a day, of a machine or of all */
	STORE_PROFSUMS,		    /* and profiles */
	STORE_NR_TABLES,
};

struct store_column {
	const char *name, *type; /* type as ClickHouse has it */
	unsigned int together;	 /* arrays of equal number, above 0, are of equal length */
};

struct store_table {
	const char *name;
	const struct store_column *columns; /* a name that is NULL ends them */
	const char *order;		    /* the key */
	const char *partition;		    /* NULL: the table is not cut by time */
	const char *shard;		    /* an expression: which shard has the row */
	unsigned int keep_days;		    /* 0: always */
	unsigned int mark;		    /* rows for each mark of its index */
};

extern const struct store_table store_tables[STORE_NR_TABLES];
/* The rows of a batch agree in these. Zero-initialize. */
struct store_rows_facts {
	bool known; /* the other two */
	uint64_t epoch;
	char platform[256];
	uint64_t ver_max; /* no row may have a higher version; 0: any */
};
/* Checks that @rows are whole rows of @t, with what @facts tells: how many, or -DCPI_EFORMAT. */
ssize_t store_rows_check(const struct store_table *t, const void *rows, size_t len,
			 struct store_rows_facts *facts);

/* ---- batches (batch.c) ----------------------------------------------------------------------- */

/* Rows for each table, on their way to a server. Zero-initialize. */
struct store_batch {
	struct base_buf rows[STORE_NR_SENT];
};

void store_batch_release(struct store_batch *b);
static inline size_t store_batch_len(const struct store_batch *b)
{
	size_t len = 0;

	for (size_t i = 0; i < STORE_NR_SENT; i++)
		len += b->rows[i].len;
	return len;
}
/* All of @from behind what @to has. 0 or -ENOMEM. */
int store_batch_add(struct store_batch *to, const struct store_batch *from);
/* A batch as a file: compressed, with a checksum. */
int store_batch_format(const struct store_batch *b, struct base_buf *out);
/* -DCPI_EFORMAT, -DCPI_EVERSION, -DCPI_ECHECKSUM, -DCPI_ELIMIT (above 512 MiB); fuzzed. */
int store_batch_parse(const void *data, size_t len, struct store_batch *out, struct base_err *err);

/* ---- epochs to rows (pack.c) ----------------------------------------------------------------- */

struct profdb;
struct store_pack;

/* Reads @db, which must outlive it; images are looked for as all tools do. */
int store_pack_open(struct profdb *db, const char *path, struct store_pack **out,
		    struct base_err *err);
void store_pack_close(struct store_pack *p);
/* The key of a row of STORE_PROF or STORE_TOTALS, as its first columns have it. */
struct store_row_key {
	enum store_table_nr table;
	const void *data;
	size_t len;
};
/*
 * Adds the rows of an epoch and platform as of one flush to @out. Rows that an earlier flush of it
 * had sent (@before) and this one lacks become empty. @row is told of each row's key. 0 or negative
 * with @err; profiles that cannot be read are told to @bad, and are not in the rows.
 */
struct store_pack_how {
	const struct store_row_key *before;
	size_t nr_before;
	uint64_t above; /* rows get a higher version than this */
	uint64_t *ver;	/* result: the rows' version; may be NULL */
	int (*row)(void *ctx, const struct store_row_key *key);		      /* may be NULL */
	void (*bad)(void *ctx, const char *file, const struct base_err *err); /* may be NULL */
	void *ctx;
	const char *rename; /* the platform's name in the store; NULL: its own */
	/* Images and routines that the store has are left out: @has is asked for each (a key of
	 * STORE_KEY bytes, or a routine's of 8), and @sent told of those that the batch has. Both
	 * may be NULL. */
	bool (*has)(void *known, const void *key, size_t len);
	void (*sent)(void *known, const void *key, size_t len);
	void *known;
};
int store_pack_epoch(struct store_pack *p, const char *epoch, const char *platform,
		     const struct store_pack_how *how, struct store_batch *out,
		     struct base_err *err);

/* ---- servers (http.c, schema.c) -------------------------------------------------------------- */

/* "clickhouse://[USER@]HOST[:PORT]/DATABASE", or clickhouses:// for TLS. */
struct store_url {
	char *server;	/* "http://HOST:PORT/" */
	char *database; /* letters, digits, and _ */
	char *user;	/* NULL: the server's default */
};
bool store_is_url(const char *text);
int store_url_parse(const char *text, struct store_url *out, struct base_err *err);
void store_url_release(struct store_url *u);

struct store_server;
/*
 * Nothing is asked yet. @credentials: a file with the password, or with USER:PASSWORD, in its first
 * line, which only its owner and group may read; NULL: $DCPI_STORE_CREDENTIALS, else none.
 * $DCPI_STORE_CA: a file of certificates to trust in place of the system's.
 */
int store_open(const char *url, const char *credentials, struct store_server **out,
	       struct base_err *err);
void store_close(struct store_server *s);
/* Milliseconds that a question may take, or an insert without progress: 60,000 at first. */
void store_set_timeout(struct store_server *s, unsigned int ms);
/* A request ends soon, with -ECANCELED, once *@stop is not 0. */
void store_set_stop(struct store_server *s, const volatile sig_atomic_t *stop);
/*
 * Errors: -EHOSTUNREACH (away, slow, not to be trusted, garbage), -EAGAIN (the server refuses, for
 * any reason that is not listed here: ask again later), -EACCES (it refuses this user),
 * -DCPI_EVERSION (another schema), -ENOENT (no such database or table), -EPROTO (it says that rows
 * are malformed), -ECANCELED.
 */
/* The answer of a question that ends with FORMAT RowBinary, whole. */
int store_ask(struct store_server *s, const char *sql, struct base_buf *out, struct base_err *err);
int store_do(struct store_server *s, const char *sql, struct base_err *err);
int store_insert(struct store_server *s, const struct store_table *t, const struct base_buf *rows,
		 struct base_err *err);
/* A text as SQL has it, quoted. 0 or -ENOMEM. */
int store_quote(struct base_buf *to, const char *text, size_t len);

enum { STORE_SCHEMA = 2 };
struct store_schema_how {
	const char *cluster;  /* NULL: one server */
	const char *replicas; /* path in ZooKeeper: tables are replicated; NULL: they are not */
	bool ttl;	      /* rows are removed by the server itself; store_schema_make asks it */
};
/* The statements that make the tables, each ended by a 0. 0 or -ENOMEM. */
int store_schema(const char *database, const struct store_schema_how *how, struct base_buf *out);
int store_schema_make(struct store_server *s, const struct store_schema_how *how,
		      struct base_err *err);
/* The store has tables of this version, and @id (a text of its own for each making) of them. */
int store_schema_check(struct store_server *s, char id[64], struct base_err *err);
/*
 * Removes what is older than its table keeps, by whole partitions, from the server's own tables:
 * for servers that do not do it themselves. @removed is told of each. 0 or negative with @err.
 */
int store_expire(struct store_server *s, int64_t now,
		 void (*removed)(void *ctx, const char *table, const char *partition), void *ctx,
		 struct base_err *err);
/* Every table's rows of the batch, images first. */
int store_send(struct store_server *s, const struct store_batch *b, struct base_err *err);

/* ---- sums of many hours (sums.c) ------------------------------------------------------------- */

/*
 * Adds up what each machine, and all together, had by routine and by offset in each span of time
 * that begins at @since or later and has ended at @now, both UTC seconds, where no row of sums is
 * of the rows that the store has. Readers take a row of sums only if its fingerprint is that of the
 * rows which it stands for: so it may be missing, late or old, and be made by two servers at once.
 * @rows: result, how many rows were made.
 */
int store_sum(struct store_server *s, int64_t since, int64_t now, uint64_t *rows,
	      struct base_err *err);

/* ---- answers (fetch.c) ----------------------------------------------------------------------- */

enum store_detail {
	STORE_BY_OFFSET,   /* everything that profiles have */
	STORE_BY_ROUTINE,  /* the first instruction of a routine has all its samples */
	STORE_BY_WORKLOAD, /* samples of workloads, without pids and threads, in one image */
	STORE_BY_PLATFORM, /* samples of each platform, in one image */
	STORE_FILES,	   /* as the machines have it: with call paths, and workloads whole */
	/* The same where these files are few; else sums by routine, with call paths of some
	 * machines and epochs, which are chosen by chance. */
	STORE_PATHS,
	STORE_SYMBOLS, /* all symbols of images, which are given by their identities; no samples */
};

/* Samples may be divided among so many replicates, by platform and epoch, which are the workloads
 * of the database: their names are "replicate N". */
enum { STORE_REPLICATES = 64 };

struct store_want {
	enum store_detail detail;
	const char *epoch;    /* NAME, FROM..TO, "all"; NULL: the last day that the store has */
	int64_t since, until; /* UTC seconds; INT64_MIN, INT64_MAX: open */
	const char *event;    /* NULL: all */
	const char *platform; /* a glob; NULL: all */
	const char *const *labels, *const *images; /* images: as tools name them */
	size_t nr_labels, nr_images;		   /* 0: all */
	bool by_platform, by_epoch; /* these stay apart, else they are added up by the server */
	bool replicates; /* for details by offset and by routine, where platforms and epochs are
			    added up */
	bool symbols; /* by routine: images get all their symbols, not those with samples alone */
};

struct store_fetched {
	uint64_t platforms, epochs, profiles;
	uint64_t skipped; /* rows that no machine of ours has made, and that were left out */
	/* Epochs of machines that call paths were taken of, and that have some; 0: of all. */
	uint64_t with_paths, have_paths;
};

/* Fills the folder @path, empty or missing, with a database of what is wanted. */
int store_fetch(struct store_server *s, const struct store_want *w, const char *path,
		struct store_fetched *out, struct base_err *err);

#endif
