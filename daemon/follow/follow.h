/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Load events and /proc change the table of processes, and tell the modules of dynamic code and of
 * the kernel what they have to know. Events come in one order of time, those that clients announce
 * among those of the driver.
 */
#ifndef DCPI_FOLLOW_H
#define DCPI_FOLLOW_H

#include <stdio.h>

#include "jit.h"
#include "kernelcode.h"
#include "track.h"

/* A load event that is not the driver's: a client announced it. */
struct follow_queued {
	struct driver_load load;
	char *path; /* its own */
};

struct follow_queue {
	struct follow_queued *items; /* in the order of time */
	size_t nr, cap;
};

/* The end of one life of a process, whose mappings stay until follow_ends_clear. */
struct follow_end {
	struct process *p; /* NULL: it was not known */
	int32_t pid;
	uint64_t time_ns;
	bool lost; /* no event told when */
};

struct follow_ends {
	struct follow_end *items;
	size_t nr, cap;
	bool lost; /* there was no memory for one */
};

struct follow {
	/* set by the caller */
	struct images *images;
	struct processes *processes;
	struct identity *identity;
	struct reader *reader; /* of mappings; may be NULL */
	struct dyn *dyn;       /* may be NULL in tests */
	struct kernel *kernel; /* likewise */
	bool live;	       /* /proc tells of these processes */
	bool wants_ends;       /* the ends of lives are queued */
	bool wants_extents;    /* profiles say where their images' code wants to be */
	/* driver_client_set, or NULL: the driver need not know where code changes. */
	int (*client_set)(struct driver *d, int32_t pid, const struct driver_client *client);
	struct driver *driver; /* its first argument */
	FILE *record;	       /* where events are recorded, or NULL */

	/* kept here; zero-initialize */
	struct labels labels; /* that processes have */
	struct follow_queue queue;
	struct follow_ends ends;
	bool lives_ended;      /* since follow_ends_clear */
	uint64_t now_ns;       /* time of the last count or event */
	uint64_t lost_read;    /* load events that were lost before /proc was read for them */
	bool events_lost;      /* others were lost since: counts wait until /proc is read */
	bool placeholder_made; /* there may be placeholder processes */
	bool later_made;       /* there may be processes with a later life */
	bool ranges_changed;   /* the driver may need new ranges of some process */
	bool ranges_refused;   /* the driver refused some process's ranges in this round */
	uint64_t ranges_round; /* a round: from one flush to the next */
	uint64_t attached_ns;  /* base_now_ns when a client came last; 0 */
	int record_error;      /* first failure of writing the record, or 0 */
};

/* Everything kept here, and the processes; settles nothing. */
void follow_release(struct follow *f);

/* ---- events (load.c) ------------------------------------------------------------------------- */

/* The events that clients announced up to @time_ns happen; what comes next is at that time. */
void follow_until(struct follow *f, uint64_t time_ns);
/* A load event of the driver's; not LOST. */
void follow_load(struct follow *f, const struct driver_load *l);
/*
 * @l (MMAP or LABEL) happens at its time, which is not before that of the last one queued: when the
 * driver's events and counts up to then have been seen. -DCPI_ELIMIT: too many wait. -ENOMEM.
 */
int follow_queue_add(struct follow_queue *q, const struct driver_load *l);
/*
 * The process of a pid at @time_ns, which an event or a count has just named. One of which nothing
 * is known is looked for in /proc, once; so is @instance (0: not told) where it is not the life
 * that is known: that one is over. NULL: no memory.
 */
struct process *follow_find(struct follow *f, int32_t pid, uint64_t time_ns, uint64_t instance);
/*
 * The process and the mapping of a count in user mode go into @s. False: events may come, or /proc
 * be read, that change the mapping of that time; where events were lost, only if it may @wait.
 */
bool follow_count(struct follow *f, const struct driver_count *c, struct sample *s, bool wait);
/* The ends of lives were taken: their mappings may go. */
void follow_ends_clear(struct follow *f);

/* ---- clients (attach.c) ---------------------------------------------------------------------- */

/* For dyn_take (@ctx: struct follow): the process of a pid, or its life to be; a placeholder where
 * no event told of it yet. */
struct process *follow_attach(void *ctx, int32_t pid, uint64_t time_ns);
/* Placeholders of which /proc told nothing end: their pids may mean other processes at the next
 * drain. */
void follow_end_placeholder(struct follow *f);
/* Counts up to now are settled: lives that are over are let go. */
void follow_reap(struct follow *f);

/* ---- /proc (scan.c) -------------------------------------------------------------------------- */

/* Read one process from /proc: start time, uid, name, mappings. -ESRCH where it is gone, -ESTALE
 * where another one has its pid. */
int follow_scan(struct follow *f, struct process *p);
/* Read all of them; returns how many. */
int follow_scan_all(struct follow *f);
/* Read those again that are known, and end those whose pid is another process's. */
void follow_scan_known(struct follow *f);
/* Forget processes that /proc no longer has (their end was lost). */
void follow_sweep(struct follow *f);

/* ---- the record of a stream (load.c) --------------------------------------------------------- */

/* Put a load event into the record, if there is one. */
void follow_record(struct follow *f, const struct driver_load *l);
/* Put a count into the record, which is there. */
void follow_record_count(struct follow *f, const struct driver_count *c);

/* ---- where code changes, for the driver (attach.c) ------------------------------------------- */

/* Tell the driver what it does not know yet of each process of whose addresses one had two
 * routines. */
void ranges_tell(struct follow *f);
/* A flush begins: let the next telling try those again that the driver has refused, once. */
void ranges_retry(struct follow *f);

#endif
