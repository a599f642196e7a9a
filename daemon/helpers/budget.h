/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each user's share of the daemon: of the time of its main loop, and of places in tables that all
 * users' code is kept in. A user is a user id, that of root too: one whose share is spent waits, or
 * is refused, and no other user notices.
 */
#ifndef DCPI_BUDGET_H
#define DCPI_BUDGET_H

#include "base.h"

/* Tables that all users share. */
enum budget_place {
	BUDGET_ROUTINES,       /* of registries, named or not */
	BUDGET_CONTENTS,       /* bytes of declared ranges */
	BUDGET_RECORDS,	       /* bytes of routines' records */
	BUDGET_ROOTS,	       /* root folders in which a perf map is looked for */
	BUDGET_HANDED,	       /* registries that were handed over and wait for a turn */
	BUDGET_REGISTRATIONS,  /* images that were registered since the last flush */
	BUDGET_FILES,	       /* mapped files that may be removed */
	BUDGET_COPIES,	       /* bytes of their copies since the epoch began */
	BUDGET_WORKLOADS,      /* names of workloads since the epoch began */
	BUDGET_WORKLOAD_TEXTS, /* bytes of these */
	BUDGET_IMAGES,	       /* bytes of pseudo-images on disk, while these are over the quota */
	BUDGET_NR_PLACES,
};

struct budgets;

/* NULL: no memory. */
struct budgets *budgets_new(void);
void budgets_free(struct budgets *b);

/* ---- time: every call but budgets_free may be given no budgets, which refuses nothing -------- */

/*
 * How long the loop may wait for the memory or the files of @uid's processes, in milliseconds. 0:
 * not at all, until some time has passed; that is counted, and told by the log once in a while.
 */
unsigned int budget_wait_ms(struct budgets *b, uint32_t uid);
/*
 * It took @ns, for @busy_ns of which the helper ran, and brought @bytes. What an answer of that
 * length may take costs nothing, nor does the helper's own work, within one turn.
 */
void budget_waited(struct budgets *b, uint32_t uid, uint64_t ns, uint64_t busy_ns, uint64_t bytes);
/* The loop begins to serve everybody anew. */
void budget_turn(struct budgets *b);
/* The loop may still do something for @uid in this turn: it has had nothing yet, or neither it nor
 * all users together have had their time. */
bool budget_has_turn(const struct budgets *b, uint32_t uid);
/* It begins to; what is waited for meanwhile is part of it. Returns when. */
uint64_t budget_begin(struct budgets *b);
void budget_end(struct budgets *b, uint32_t uid, uint64_t since_ns);

/* ---- places ---------------------------------------------------------------------------------- */

/*
 * @n more of @max that there are, for @uid: a user may have half of what the others leave, so that
 * there is always some left for the next one. False: nothing was taken.
 */
bool budget_take(struct budgets *b, uint32_t uid, enum budget_place place, uint64_t n,
		 uint64_t max);
void budget_give_back(struct budgets *b, uint32_t uid, enum budget_place place, uint64_t n);
/* How much of it @uid has. */
uint64_t budget_has(const struct budgets *b, uint32_t uid, enum budget_place place);
/* All of it is free again. */
void budget_clear(struct budgets *b, enum budget_place place);
/* May the log tell of something that @uid did? Once a minute for each user. */
bool budget_may_tell(struct budgets *b, uint32_t uid);

struct budget_stats {
	uint64_t users_over;	   /* users who were ever refused time */
	uint64_t requests_refused; /* of all of them */
};
void budget_stats_get(const struct budgets *b, struct budget_stats *out);

#endif
