/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a count through the daemon, stage by stage: its process and mapping are found
 * (follow), it gets a verdict (attribute) and an owner (owner), and is stored (images). It waits
 * here between two of them where events or the verdict are not there yet.
 */
#ifndef DCPI_COUNTS_H
#define DCPI_COUNTS_H

#include "attribute.h"
#include "callpath.h"
#include "owner.h"
#include "trace.h"

struct pendings {
	struct sample *items;
	size_t nr, cap;
};

/*
 * Counts that wait for files (counts.c). Runtimes write them late, so some wait until the next
 * flush, and they are looked up again only when something new was told of their process. Those of
 * one place are joined when there are many: no more of them than there is code.
 */
struct waiting {
	struct process *p;
	struct pendings counts;
	uint64_t first_ns; /* not after the first of them */
	uint64_t news;	   /* dyn_news when they were looked up last */
};

/* Zero-initialize. */
struct waitings {
	struct waiting **items;
	size_t nr, cap;
	size_t joined_nr; /* how many counts were left when they were joined last */
};

/* True: it waits no more. It may be changed. */
typedef bool waiting_fn(void *ctx, struct sample *s);

/* @s waits; its process has no registry, and lives. 0 or -ENOMEM. */
int waiting_add(struct waitings *t, const struct sample *s);
/* @fn of @all, or of those that are due. To be called before processes are let go. */
void waiting_look(struct waitings *t, bool all, waiting_fn *fn, void *ctx);
void waiting_release(struct waitings *t);

/*
 * The pool of instruction attributes, as the hardware told them, of counts that are on their way
 * (counts.c); a sample has the number of its own. Zero-initialize.
 */
struct insns {
	struct isample *v;
	uint32_t *free; /* numbers that are free again */
	size_t nr, cap, nr_free, cap_free;
};

struct counts {
	/* set by the caller */
	struct attribute *attribute;
	struct follow *follow;
	struct store *store;
	struct owners owners;	       /* its follow and store */
	struct traces *traces;	       /* NULL: no traces are wanted */
	struct callpaths *callpaths;   /* NULL: no call paths are wanted */
	const struct exclude *exclude; /* processes whose samples are not stored; NULL: none */
	bool log_unknown;	       /* each user sample in no image goes to the log too */
	int64_t recorded_utc_ns;       /* when a recorded stream began */

	/* kept here; zero-initialize */
	struct pendings dynamic;   /* lie in dynamic code: resolved when the registries were read */
	struct waitings waiting;   /* of these, those for which no registry told then */
	struct pendings unsettled; /* older than the listing of their mapping: settled after the
				      events up to then were seen; or of a time of doubt */
	uint64_t unsettled_ns;	   /* the first of these */
	struct insns insns;
	uint64_t due_ns; /* a count before that finds nothing to do first; 0: not known */
};

/* ---- counts and what waits (counts.c) -------------------------------------------------------- */

/* A sink for driver_drain: records go to @c by the callbacks below, kinds that it wants alone. */
struct driver_sink counts_sink(struct counts *c);
/* @ctx: struct counts. They return 0. */
int counts_count(void *ctx, const struct driver_count *c);
int counts_load(void *ctx, const struct driver_load *l);
int counts_trace(void *ctx, const struct insn_trace *w, const uint64_t *words);
int counts_callpath(void *ctx, const struct driver_callpath *c, const uint64_t *frames);
int counts_function(void *ctx, const struct driver_function *f);
/*
 * After dyn_refresh: resolve what is pending and let go of processes that are over. @until_ns: what
 * there is up to then has been seen; 0: up to the last count or event.
 */
void counts_resolve(struct counts *c, uint64_t until_ns);
/* Processes were read from /proc: the ends that this showed are told. */
void counts_scanned(struct counts *c);
/* /proc was read for the @nr load events that were lost so far. */
void counts_resynchronised(struct counts *c, uint64_t nr);
/* A new epoch has begun, of a daemon that keeps workloads. */
void counts_new_epoch(struct counts *c);
/* Counts that wait here are dropped. Before follow_release. */
void counts_release(struct counts *c);

#endif
