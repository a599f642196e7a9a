/* SPDX-License-Identifier: BSD-2-Clause */
/* How images and routines are keyed, and what the files that pack an epoch share. */
#ifndef DCPI_STORE_INTERNAL_H
#define DCPI_STORE_INTERNAL_H

#include "profdb.h"
#include "samples.h"
#include "store.h"

const char *store_database(const struct store_server *s);
/* The answer of a question for one number of 64 bits. @sql, which becomes empty, has no FORMAT. */
int store_ask_number(struct store_server *s, struct base_buf *sql, uint64_t *out,
		     struct base_err *err);

/* ---- versions of the tables (schema.c) ------------------------------------------------------- */

/* A column that a table has from @version on. */
struct store_step {
	unsigned int version; /* 0 ends a list */
	enum store_table_nr table;
	const char *column, *type; /* type: with its default, as SQL has it */
};
/*
 * Brings the tables of an older store to version @target. A store that has none yet is left alone.
 * 0, -DCPI_EVERSION (it is newer), -DCPI_EUSAGE (it was made with another cluster), or another
 * error.
 */
int store_schema_migrate(struct store_server *s, const struct store_step *all, unsigned int target,
			 const struct store_schema_how *how, struct base_err *err);

enum {
	STORE_SYMBOLS_MAX = 1 << 20,   /* of an image; the rest of a larger one is not sent */
	STORE_CONTENT_MAX = 256 << 20, /* bytes of a content */
};

/* ---- spans of time (sums.c) ------------------------------------------------------------------ */

/* Rows of sums that stand for so many seconds: of one machine, or of all machines together. */
struct store_level {
	uint32_t span;
	bool fleet; /* the row's platform is "", and its span in the table is 1 more */
	int from;   /* the level whose rows are added up; STORE_HOURS: those of hours */
};
enum { STORE_HOURS = -1, STORE_LEVELS_MAX = 5 };
/* Rows of hours that are added up, and the table of their sums. */
struct store_source {
	const char *hours, *sums;
	const struct store_level *levels; /* in the order in which they are made */
	size_t nr_levels;
	/* The number that stands for a row of hours. Those of the rows that were added up give,
	 * added up themselves, the fingerprint of their sums. */
	const char *print;
	const char *own;      /* columns that tell rows of one event and image apart */
	const char *own_text; /* the same of one machine, too, as a text */
	const char *key;      /* "image, " where sums are of an image, or "" */
	/* Numbers and counts, as arrays of 64 bits: of hours, of sums; and the columns for that. */
	const char *arrays, *sums_arrays, *columns, *sums_columns;
};
enum { STORE_BY_NUMBER, STORE_BY_PLACE, STORE_NR_SOURCES };
extern const struct store_source store_sources[STORE_NR_SOURCES];
/* The level's span as the table has it. */
static inline uint32_t store_level_span(const struct store_level *level)
{
	return level->span + level->fleet;
}
/*
 * Appends a question for (p, b) of spans (p: platform; b: UTC seconds) whose sums are not those of
 * the rows there are; @key: the source's, which comes before p then, or "", which compares all
 * images together. @which: a condition of the rows that are compared, true of hours and of sums;
 * @final: " FINAL" where hours may have older rows, or "". 0 or -ENOMEM.
 */
int store_sums_bad(struct base_buf *sql, const struct store_source *source, const char *key,
		   const struct store_level *level, const char *which, const char *final);

/* ---- keys (key.c) ---------------------------------------------------------------------------- */

struct store_key {
	uint8_t bytes[STORE_KEY];
};

/*
 * The key of a profile's image: of its kind and identity, and of the hash of its code where the
 * profile has one (a file that has another's build-id); a bucket's is of its name, and that of a
 * pseudo-image, which grows, of its machine's name and its file's.
 */
void store_image_key(const struct profdb_profile *p, const char *platform, struct store_key *out);
/* The same of an image that call paths refer to, which tell no hash of code. */
void store_ref_key(const struct profdb_image_ref *ref, const char *platform, struct store_key *out);
/* The same of all but pseudo-images, which a batch is checked by. @text may be NULL. */
void store_file_key(const char *kind, const struct base_id *id, const char *text, const char *path,
		    struct store_key *out);
/* The key that all pseudo-images of a facility share, where routines are counted. */
void store_facility_key(const char *facility, struct store_key *out);
void store_content_key(const void *data, size_t len, struct store_key *out);
/* The number of a routine of that image: of its name, and where names may repeat its offset. */
uint64_t store_routine_key(const struct store_key *image, const char *symbol, uint64_t off);

/* ---- packing (pack.c, pack_work.c) ----------------------------------------------------------- */

/* A key that was met in this epoch. */
struct store_met {
	struct store_key key;
	struct profdb_profile *header; /* its first profile, without counts */
	bool named;		       /* its row is in the batch, or the store has it */
};

struct store_pack {
	struct profdb *db;
	char *path;
	/* while an epoch is packed: */
	const char *epoch, *platform, *name; /* name: the platform's in the store */
	uint32_t begin;			     /* UTC seconds of the epoch */
	uint64_t written, ver;
	const struct store_pack_how *how;
	struct store_batch *out;
	struct store_met *met;
	size_t nr_met, cap_met;
	struct base_map by_key, rows; /* rows: the keys of this flush */
	struct base_map offered;      /* keys of images and routines that this try has */
	struct base_buf offers;	      /* the same, each with its length before it */
	struct base_err *err;
};

/* Sums by workload, and the files of workloads and call paths. */
int store_pack_work(struct store_pack *p);

#endif
