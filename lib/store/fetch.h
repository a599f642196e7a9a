/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a fetch, between the questions (fetch.c) and the database (fetch_db.c). */
#ifndef DCPI_STORE_FETCH_H
#define DCPI_STORE_FETCH_H

#include "pseudoimg.h"
#include "store_internal.h"

/* An image of the store. */
struct fetch_image {
	struct store_key key, content;
	enum profdb_kind kind;
	struct base_id id;
	char *path, *text, *stem;	  /* "": none */
	bool used;			  /* a profile is of it */
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
	/* conditions of SQL: times and platforms; " AND …" of the others */
	struct base_buf where, event, labels, images, routines;
	/* Events of the chosen rows: mean period, and part of the time that they were counted. */
	struct profdb_event events[PROFDB_NR_EVENTS];
	size_t nr_events;
	uint64_t skipped; /* rows that no machine of ours has made */
	char fleet[48];	  /* the name of all platforms that are added up, quoted */
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
	struct base_map by_key, by_routine, by_profile, by_content; /* index + 1 */
	struct base_map wanted; /* numbers of routines that have samples */
	uint32_t begin;		/* the first epoch */
};

/* "" where nothing was printed. */
const char *fetch_text(const struct base_buf *b);

/* Keys of images that a question names; where they are more, they are a question within it. */
enum { FETCH_KEYS = 1000 };

/* Fills the conditions. 0 or negative with @err. */
int fetch_conditions(struct fetch *f, struct base_err *err);
/* A question for the keys of the images that are wanted by name. 0 or -ENOMEM. */
int fetch_image_names(struct fetch *f, struct base_buf *to);
int fetch_keys(struct base_buf *to, const uint8_t *keys, size_t nr);

/* Each takes one row of the answer to the question of its name. 0 or negative. */
int fetch_take_event(struct fetch *f, struct store_reader *r);
int fetch_take_image(struct fetch *f, struct store_reader *r);
int fetch_take_content(struct fetch *f, struct store_reader *r);
int fetch_take_head(struct fetch *f, struct store_reader *r);
int fetch_take_count(struct fetch *f, struct store_reader *r);
int fetch_take_routine(struct fetch *f, struct store_reader *r);
int fetch_take_total(struct fetch *f, struct store_reader *r);
int fetch_take_platform(struct fetch *f, struct store_reader *r);
int fetch_take_workload(struct fetch *f, struct store_reader *r);
/* As of platforms: what workloads have less of than that belongs to none. */
int fetch_take_rest(struct fetch *f, struct store_reader *r);
int fetch_take_part(struct fetch *f, struct store_reader *r);

/* Refuses a folder with files: samples of a database that is there would be added to. */
int fetch_check_empty(const char *path, struct base_err *err);
/* Makes the database. */
int fetch_write(struct fetch *f, const char *path, struct store_fetched *out, struct base_err *err);
void fetch_release(struct fetch *f);

#endif
