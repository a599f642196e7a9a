/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a fetch, between the questions (fetch.c) and the database (fetch_db.c). */
#ifndef DCPI_STORE_FETCH_H
#define DCPI_STORE_FETCH_H

#include "pseudoimg.h"
#include "store_internal.h"

/* Where samples outside every routine are put: no image has code there. */
#define FETCH_OUTSIDE (UINT64_C(1) << 62)

/* An image of the store. */
struct fetch_image {
	struct store_key key, content;
	enum profdb_kind kind;
	struct base_id id;
	char *path, *text, *stem;	  /* "": none */
	bool used;			  /* a profile is of it */
	bool whole;			  /* all its symbols are here */
	struct pseudoimg_symbol *symbols; /* their names are allocated */
	size_t nr_symbols, cap_symbols;
};

struct fetch_routine {
	uint64_t number, off;
	size_t image;
	bool placed; /* else it is outside every routine */
};

/* A profile of the database that is made; or the workloads of a platform and epoch. */
struct fetch_profile {
	char *platform;
	uint32_t epoch; /* 0: that of the whole database */
	struct profdb_profile *p;
	struct profdb_workloads *w;
	int replicated; /* number of its image among those of replicates, + 1 */
};

struct fetch_part {
	char *platform, *kind;
	uint32_t epoch;
	struct base_buf bytes;
};

struct fetch_content {
	struct store_key key;
	struct base_buf bytes;
};

struct fetch {
	struct store_server *s;
	const struct store_want *w;
	/* conditions of SQL: times and platforms; " AND …" of the others; platforms alone */
	struct base_buf where, event, labels, images, routines, platforms;
	int64_t from, to; /* the times of @where, UTC seconds: @to is outside */
	/* Events of the chosen rows: mean period, and part of the time that they were counted. */
	struct profdb_event events[PROFDB_NR_EVENTS];
	size_t nr_events;
	bool symbols;	  /* images are asked for with theirs */
	uint64_t skipped; /* rows that no machine of ours has made */
	/* the name of all platforms that are added up, and that as SQL has it */
	char fleet[48], quoted_fleet[52];
	struct base_buf replicate; /* SQL: the number of a row's replicate; "": they are not told */
	bool replicate_epochs;	   /* it differs within a machine */
	struct fetch_replicates {
		struct profdb_workloads *w;
		int workload[STORE_REPLICATES]; /* number + 1 */
	} replicates;
	struct fetch_image *v;
	size_t nr, cap;
	struct fetch_routine *r;
	size_t nr_r, cap_r;
	struct fetch_content *contents;
	size_t nr_contents, cap_contents;
	struct fetch_profile *profiles;
	size_t nr_profiles, cap_profiles;
	struct fetch_part *parts;
	size_t nr_parts, cap_parts;
	struct profdb_callpaths *paths;
	uint64_t with_paths, have_paths; /* as store_fetched has them */
	struct base_map placed;		 /* a facility's key and a routine's name: its offset */
	struct base_map by_key, by_routine, by_profile, by_content; /* index + 1 */
	struct base_map wanted; /* numbers of routines that have samples */
	uint32_t begin;		/* the first epoch */
};

static inline struct fetch_image *fetch_image_of(struct fetch *f, const struct store_key *key)
{
	size_t at = (size_t)(uintptr_t)base_map_get(&f->by_key, key, sizeof(*key));

	return at ? &f->v[at - 1] : NULL;
}

/* "" where nothing was printed. */
const char *fetch_text(const struct base_buf *b);

/* ---- questions (fetch.c, fetch_routines.c) --------------------------------------------------- */

/* Images of which @which ("IN …") is true, with their symbols and contents, or without. 0 or
 * negative with @err. */
int fetch_images(struct fetch *f, bool symbols, const char *which, struct base_err *err);
/* The images of these keys; with symbols also their contents. */
int fetch_images_of(struct fetch *f, const struct base_buf *keys, bool symbols,
		    struct base_err *err);
/* Profiles whose routines have all samples at their first instruction. */
int fetch_by_routine(struct fetch *f, struct base_err *err);

/* Rows that are alike in all but their epoch and machine. */
struct fetch_alike {
	struct base_buf which;	 /* " AND …": what is true of these alone, or "" */
	struct base_buf columns; /* what the answer's rows begin with */
};
/* A question for sums (fetch_sums.c). */
struct fetch_sums {
	const struct store_source *source;
	const char *which;   /* a condition that is true of all these rows */
	const char *label;   /* " AND label …": those of them that are meant, or "" */
	const char *numbers; /* " AND place …": those that are meant, or "" */
	bool apart;	     /* the answer has a sum for each number */
	bool no_epoch;	     /* the answer has 0 in place of the first epoch */
	const struct fetch_alike *alike;
	size_t nr_alike;
};
/*
 * Rows (columns, epoch, number where they are apart, samples); a number may have several. Counts of
 * rows that are not alike are added up apart: a server does that much faster where the key is one
 * number. 0 or negative with @err.
 */
int fetch_ask_sums(struct fetch *f, const struct fetch_sums *q, struct base_buf *answer,
		   struct base_err *err);
/* The same of an event's routines: rows (event, platform, epoch, routine, samples), without
 * @routines not apart. */
int fetch_event_sums(struct fetch *f, const char *event, bool routines, struct base_buf *answer,
		     struct base_err *err);

/* Sums by routine, and call paths of machines and epochs that are chosen by chance (fetch_paths.c).
 */
int fetch_paths(struct fetch *f, struct base_err *err);
/* Asks for images that are on call paths alone: of the paths that were chosen, and of files of
 * paths; one that cannot be read is copied all the same. 0 or negative with @err. */
int fetch_callers(struct fetch *f, struct base_err *err);

/* ---- conditions (fetch_where.c) -------------------------------------------------------------- */

/* Keys of images that a question names; where they are more, they are a question within it. */
enum { FETCH_KEYS = 1000 };

/* Fills the conditions, and what numbers replicates. 0 or negative with @err. */
int fetch_conditions(struct fetch *f, struct base_err *err);
/* A question for the keys of the images that are wanted by name. 0 or -ENOMEM. */
int fetch_image_names(struct fetch *f, struct base_buf *to);
int fetch_keys(struct base_buf *to, const uint8_t *keys, size_t nr);
/* The columns that keep rows apart, or constants in their place; and what to group by for them. */
static inline const char *fetch_platform_column(const struct fetch *f)
{
	return f->w->by_platform ? "platform" : f->quoted_fleet;
}

static inline const char *fetch_group_more(const struct fetch *f)
{
	return f->w->by_platform ? (f->w->by_epoch ? ", platform, epoch" : ", platform")
				 : (f->w->by_epoch ? ", epoch" : "");
}

/* The same of counts, which replicates may keep apart. */
static inline const char *fetch_counts_column(const struct fetch *f)
{
	return f->replicate.len ? "toString(replicate)" : fetch_platform_column(f);
}

static inline const char *fetch_counts_group(const struct fetch *f)
{
	return f->replicate.len ? ", replicate" : fetch_group_more(f);
}

/* Appends what a question about counts is put to, with its arrays joined. Replicates are
 * told for each row, as a server would else do it for each element. 0 or -ENOMEM. */
int fetch_from(struct fetch *f, struct base_buf *sql, const char *table, const char *columns,
	       const char *where, const char *arrays);

/* ---- answers (fetch_take.c) ------------------------------------------------------------------ */

/* The offset of a routine of a facility, whose routines stand nowhere: each gets one. 0: no memory.
 */
uint64_t fetch_place(struct fetch *f, const struct store_key *facility, const char *name);

/* Rows of answers, by the questions that are answered. */
enum fetch_row {
	FETCH_IMAGE,
	FETCH_CONTENT,
	FETCH_HEAD,
	FETCH_COUNT,
	FETCH_ROUTINE,
	FETCH_TOTAL,
	FETCH_PLATFORM,
	FETCH_WORKLOAD,
	FETCH_PART,
	FETCH_EVENT,
	FETCH_REST, /* as of platforms: what workloads have less of than that belongs to none */
	FETCH_NR_ROWS
};
/* Takes one row. 0 or negative. */
int fetch_take(struct fetch *f, enum fetch_row row, struct store_reader *r);
/* Takes each row of the answer. 0 or negative with @err. */
int fetch_rows(struct fetch *f, const struct base_buf *answer, enum fetch_row row,
	       struct base_err *err);

void fetch_release(struct fetch *f);

/* ---- the database (fetch_db.c) --------------------------------------------------------------- */

/* Makes the database. */
int fetch_write(struct fetch *f, const char *path, struct store_fetched *out, struct base_err *err);

#endif
