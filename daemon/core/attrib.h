/* SPDX-License-Identifier: BSD-2-Clause */
/* The way of a sample: counts (attrib.c, waiting.c), load events (track.c, told.c), and what the
 * driver is told of code that changes (ranges.c). */
#ifndef DCPI_DAEMON_ATTRIB_H
#define DCPI_DAEMON_ATTRIB_H

#include <stdio.h>

#include "exclude.h"
#include "label.h"
#include "process.h"

/* A count that waits: for the registries to be read, or for the events before a reading of /proc.
 */
struct pending {
	struct process *p;
	uint64_t first_ns, time_ns, addr, count;
	uint64_t map_start;  /* of its mapping; 0: in none */
	struct image *image; /* where it is if nobody told of code there; or NULL. A reference */
	uint64_t off;
	uint64_t mapped_ns; /* of that image, as dyn_query has it */
	uint64_t until_ns;  /* base_now_ns up to which the next reading of its registry is waited
			       for; 0: it was not looked up yet */
	int32_t pid;
	uint32_t event, generation;
	bool generation_read, generation_unread;
	bool dynamic; /* it lay in a MAP_DYNAMIC mapping */
};

struct pendings {
	struct pending *items;
	size_t nr, cap;
};

/*
 * Counts that wait for files (waiting.c). Runtimes write them late, so some wait until the next
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

struct attrib;

/* True: it waits no more. It may be changed. */
typedef bool waiting_fn(void *ctx, struct pending *c);

/* Of c->p, which has no registry and lives. 0 or -ENOMEM. */
int waiting_add(struct waitings *t, const struct pending *c);
/* Looked up last at @news of @p's: may a look-up say something else now? Also of who ended, or has
 * a registry since. */
bool waiting_is_due(const struct process *p, uint64_t news);
/*
 * May what @p's code met wait on? For its registry a reading or two more, of which *@until_ns (0 at
 * first) keeps the end; who writes files writes them late, so for these until the next flush. A
 * life that is over has told all.
 */
bool waiting_may(const struct attrib *a, const struct process *p, uint64_t *until_ns);
/* @fn of @all, or of those that are due. To be called before processes are let go. */
void waiting_look(struct waitings *t, bool all, waiting_fn *fn, void *ctx);
void waiting_release(struct waitings *t);

/* A load event that is not the driver's: a client told of it (told.c). */
struct told {
	struct driver_load load;
	char *path; /* its own */
};

struct tolds {
	struct told *items; /* in the order of time */
	size_t nr, cap;
};

/*
 * Counts on their way into profiles. Those of a drain are of places all over the tables of rows, of
 * which none is in the caches: it is asked for when a count comes, and the count is added when so
 * many more have come.
 */
enum { ATTRIB_AHEAD = 32 }; /* a power of two */

struct attrib_stores {
	struct attrib_place {
		struct image *image;
		uint64_t off, count;
		uint32_t event;
	} items[ATTRIB_AHEAD];
	uint32_t first, end; /* both only grow */
};

struct attrib {
	/* set by the caller */
	struct images *images;
	struct processes *processes;
	struct identity *identity;
	struct dyn *dyn;       /* may be NULL in tests */
	struct kernel *kernel; /* likewise */
	struct driver_event events[DRIVER_NR_EVENTS];
	size_t nr_events;
	bool live; /* /proc tells of these processes */
	/* driver_client_set, or NULL: nobody needs to know where code changes. */
	int (*client_set)(struct driver *d, int32_t pid, const struct driver_client *client);
	struct driver *driver;	       /* its first argument */
	const struct exclude *exclude; /* processes whose samples are not stored; may be NULL */
	struct windows *windows;       /* NULL: none are wanted */
	FILE *record;		       /* where events are recorded, or NULL */
	bool flushing;		       /* what waits for files is to be told now */
	bool log_unknown;	       /* each user sample in no image goes to the log too */

	/* kept here */
	struct account account;	     /* the daemon's part */
	struct labels labels;	     /* that processes have */
	struct tolds told;	     /* what clients said, until its time comes */
	struct attrib_stores stores; /* none between two drains */
	struct pendings dynamic;   /* lie in dynamic code: resolved when the registries were read */
	struct waitings waiting;   /* of these, those that nobody told of then */
	struct pendings unsettled; /* older than the listing of their mapping: settled after the
				      events up to then were seen; or of a time of doubt */
	uint64_t unsettled_ns;	   /* the first of these */
	uint64_t now_ns;	   /* time of the last count or event */
	uint64_t lost_mended;	   /* load events that were lost before /proc was read for them */
	bool doubt;		   /* others were since: counts wait for that */
	bool hollow_made;	   /* there may be hollow processes */
	bool later_made;	   /* there may be processes with a later life */
	bool ranges_changed;	   /* of some process the driver may have to be told */
	bool ranges_refused;	   /* of some process it did not take them in this round */
	uint64_t ranges_round;	   /* a round: from one flush to the next */
	uint64_t resolved_ns;	   /* base_now_ns when pending ones were to be looked up last */
	uint64_t dynamic_ns; /* when counts in dynamic code, or a new client, were seen last; 0 */
	int record_error;    /* first failure of writing the record, or 0 */
};

/* Callbacks for driver_drain; @ctx: struct attrib. They return 0. */
int attrib_count(void *ctx, const struct driver_count *c);
int attrib_load(void *ctx, const struct driver_load *l);
int attrib_window(void *ctx, const struct vtrace_window *w, const uint64_t *words);
/* Parts of a window of @p (NULL: of the kernel) in @img. *@nr_stored: how many are in its profile,
 * none where it is not to be stored. 0, or the first failure: -ENOMEM, -DCPI_EOVERFLOW. */
int attrib_moves(struct attrib *a, const struct process *p, struct image *img,
		 const struct profdb_move *m, size_t nr, size_t *nr_stored);
/*
 * After dyn_refresh: resolve what is pending and let go of processes that are over. @until_ns: what
 * there is up to then has been seen; 0: up to the last count or event.
 */
void attrib_resolve(struct attrib *a, uint64_t until_ns);
/* /proc was read for the load events that were lost (lost_mended). */
void attrib_mended(struct attrib *a);
/* For dyn_take: the process of a pid, or its life to be; hollow where no event told of it yet. */
struct process *attrib_find(void *ctx, int32_t pid, uint64_t time_ns);
/* Everything kept here, and the processes; settles nothing. */
void attrib_release(struct attrib *a);
/*
 * @l (MMAP or LABEL) happens at its time, which is not before that of the last one told: when the
 * driver's events and counts up to then have been seen. -DCPI_ELIMIT: too many wait. -ENOMEM.
 */
int told_add(struct tolds *t, const struct driver_load *l);
/* Handle those up to @time_ns. */
void told_handle(struct attrib *a, uint64_t time_ns);
void told_release(struct tolds *t);
/* Put a load event into the record, if there is one. */
void attrib_record_load(struct attrib *a, const struct driver_load *l);
/* Add to an image, and to the account. */
void attrib_store(struct attrib *a, struct image *img, uint64_t off, uint32_t event, uint64_t n);
/* What is on its way into profiles gets there; attrib_resolve does that, too. */
void attrib_store_all(struct attrib *a);

enum track_how {
	TRACK_EVENT,  /* it happened now: covers what was there */
	TRACK_LATE,   /* /proc was read after it: what that listed stays, its age is told */
	TRACK_LISTED, /* /proc lists it */
};
void track_load(struct attrib *a, const struct driver_load *l);
/* Of a mapping that /proc lists: memory that programs write code into themselves. */
bool track_is_dynamic(const struct driver_load *l);
/* @p has memory for code: look for what tells of it. */
void track_watch(struct attrib *a, struct process *p);
void track_mmap(struct attrib *a, struct process *p, const struct driver_load *l,
		enum track_how how);
/*
 * The process of a pid at @time_ns, which an event or a count has just named. One of which nothing
 * is known is looked for in /proc, once; so is @instance (0: not told) where it is not the life
 * that is known: that one is over. NULL: no memory.
 */
struct process *track_find(struct attrib *a, int32_t pid, uint64_t time_ns, uint64_t instance);

/* ---- where code changes, for the driver (ranges.c) ------------------------------------------- */

/* Tell the driver what it does not know yet of each process of whose addresses one had two
 * routines.
 */
void ranges_tell(struct attrib *a);
/* A flush begins: let the next telling try those again that the driver has refused, once. */
void ranges_retry(struct attrib *a);
/* @p is over: the driver may forget its ranges. */
void ranges_end(struct attrib *a, struct process *p);

#endif
