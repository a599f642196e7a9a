/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call paths in the daemon. The sampler gets the unwind tables that it lacks (rows.c); each frame
 * of a path is attributed as a sample is (callpath.c), and the paths are kept as a calling-context
 * tree until a flush writes them (tree.c).
 */
#ifndef DCPI_DAEMON_CALLPATH_H
#define DCPI_DAEMON_CALLPATH_H

#include "attribute.h"
#include "follow.h"
#include "reader.h"

/* Every way in which a received path fails to be stored: name in status, what it means. */
#define CALLPATH_LOSSES(X)                                                                         \
	X(RING, "ring-full", "found no room for its frames in the ring")                           \
	X(BUSY, "busy", "was due while another one was walked on its CPU")                         \
	X(READ, "unread", "lay in the ring, but made no sense there")                              \
	X(EXCLUDED, "excluded", "its process, or an image in it, is not to be stored")             \
	X(FULL, "too-many", "there were more different paths than are kept up to a flush")         \
	X(MEMORY, "no-memory", "the daemon had no memory for it")                                  \
	X(UNFIT, "count-overflow", "it did not fit into the database's file")

enum callpath_loss {
#define X(id, name, text) CALLPATH_LOST_##id,
	CALLPATH_LOSSES(X)
#undef X
		CALLPATH_NR_LOSSES
};

/* In samples: received == stored + pending + sum(lost) between two drains. */
struct callpath_stats {
	uint64_t received; /* from driver_callpath_stats */
	uint64_t stored;   /* on disk or to be flushed */
	uint64_t pending;  /* held for order, or for a registry or /proc to be read */
	uint64_t lost[CALLPATH_NR_LOSSES];
	uint64_t nodes;		 /* frames below their callers that are in memory now */
	uint64_t tables_put;	 /* unwind tables that the driver took */
	uint64_t tables_none;	 /* files that have none, or that could not be read */
	uint64_t tables_waiting; /* files that are to be read now */
};

/* Calls of the driver, which tests answer themselves. */
struct callpath_driver {
	int (*missing)(struct driver *d, int (*fn)(void *ctx, const struct driver_rows_missing *m),
		       void *ctx);
	int (*put)(struct driver *d, const struct driver_file *file,
		   const struct unwind_table *table);
	void (*again)(struct driver *d, const struct driver_file *file);
	void (*forget)(struct driver *d, const struct driver_file *files, size_t nr);
	bool (*rule)(struct driver *d, const struct driver_file *file, uint64_t off,
		     struct unwind_rule *rule);
	void (*stats)(const struct driver *d, struct driver_callpath_stats *out);
};

struct callpath_config {
	struct driver *driver;
	const struct callpath_driver *calls; /* NULL: driver.h's */
	struct reader *reader;		     /* NULL: there are no unwind tables */
	struct attribute *attribute;
	struct follow *follow;
	size_t nr_events;
	size_t nr_timed; /* so many of these, the last ones, count nanoseconds and no samples */
	const struct exclude *exclude; /* processes whose paths are not stored; may be NULL */
	struct workloads *workloads;   /* NULL: whose paths are is not kept */
	size_t nr_nodes;	       /* at most; 0: the default */
};

struct callpaths;

int callpath_open(const struct callpath_config *config, struct callpaths **out,
		  struct base_err *err);
/* Before the processes are released. */
void callpath_close(struct callpaths *t);

/* ---- what comes in (callpath.c) -------------------------------------------------------------- */

/* A path, at its place in the order of time among counts and load events. @p: where it has frames
 * in a process, that one, or NULL; @life: whose it is, or 0. */
void callpath_take(struct callpaths *t, const struct driver_callpath *c, const uint64_t *frames,
		   struct process *p, uint32_t life);
/* A function that paths from now on may go through. */
void callpath_function(struct callpaths *t, const struct driver_function *f);
/* Paths that wait. */
extern const struct attribute_later callpath_later;
/* The driver's part included; @timed: of events that count nanoseconds, of which received is what
 * was taken, without what is of all. */
void callpath_stats_get(const struct callpaths *t, bool timed, struct callpath_stats *out);
/* The same of events that count nanoseconds: received is what was taken; without what is of all. */
uint64_t callpath_lost(const struct callpath_stats *s);
/* For the rest of its numbers. */
void callpath_driver_stats_get(const struct callpaths *t, struct driver_callpath_stats *out);

/* ---- unwind tables (rows.c) ------------------------------------------------------------------ */

/* A load event, which may say what file lacks its table. */
void callpath_load(struct callpaths *t, const struct driver_load *l);
/* Tables for the files that lack them, in a share of the time that is small but at the start. True:
 * some are left, or more may come soon. */
bool callpath_serve(struct callpaths *t);
/* Behind callpath_serve, and now and then: code waits whose process is not known, as its events
 * were not taken yet. */
bool callpath_wants_events(struct callpaths *t);

/* ---- what goes out (tree.c) ------------------------------------------------------------------ */

/* @from became part of @to, at the offsets that @map gives: so do its frames, those still to come
 * too. */
void callpath_moved(struct callpaths *t, const struct image *from, const struct wire_replaces *map,
		    struct image *to);
/* Frames in images that will never be on disk become the bucket's; at the end (@all) also those in
 * images that are not there yet. How many images, or -ENOMEM. */
int callpath_give_up(struct callpaths *t, bool all);
/*
 * Within a flush, after the profiles: put the paths all of whose images are on disk. @events: as
 * the driver describes them now. 0, or negative with @err, in which nothing is yet: -ENOMEM, or a
 * failure of profdb_flush_put_callpaths; those of which no later flush can be better are logged,
 * and cost the paths.
 */
int callpath_put(struct callpaths *t, struct profdb *db, const struct driver_event *events,
		 struct base_err *err);
/* The paths that were put are on disk: forget them. */
void callpath_written(struct callpaths *t);
/* Marks the lives of paths that are in memory: before workload_sweep. */
void callpath_mark_lives(const struct callpaths *t);

#endif
