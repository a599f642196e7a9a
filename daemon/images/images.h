/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Images as the daemon keeps them: the table of images, the counts and values in each that are not
 * on disk yet, the account of every sample, and the files of pseudo-images.
 */
#ifndef DCPI_IMAGES_H
#define DCPI_IMAGES_H

#include <stdlib.h>

#include "base.h"
#include "driver.h"
#include "exclude.h"
#include "profdb.h"
#include "wire.h"
#include "workload.h"

/* ---- accounting (account.c) ------------------------------------------------------------------ */

/* Every way in which a received sample fails to be stored: name in status, what it means. */
#define ACCOUNT_LOSSES(X)                                                                          \
	X(LOST_RING, "ring-full", "found its ring buffer full")                                    \
	X(LOST_TABLE, "table-full", "found the kernel's table full, before a drain could be had")  \
	X(LOST_LATE, "drain-late", "found it full, 100 ms or more after a drain was asked for")    \
	X(LOST_NESTED, "nested", "interrupted the counting of another on the same CPU")            \
	X(LOST_READ, "table-unread", "lay in a table that could not be read")                      \
	X(LOST_BAD, "bad-record", "came in a record that made no sense")                           \
	X(LOST_MEMORY, "no-memory", "the daemon had no memory for it")                             \
	X(LOST_OVERFLOW, "count-overflow", "its counter was full")                                 \
	X(LOST_EXCLUDED, "excluded", "its image or process is not to be stored")                   \
	X(LOST_UNWRITTEN, "unwritten", "could not be written before the daemon ended")

/* Names under which samples in no image are stored (PROFDB_NAMED profiles). */
#define ACCOUNT_BUCKETS(X)                                                                         \
	X(BUCKET_UNKNOWN, "unknown", "user address in no known mapping")                           \
	X(BUCKET_UNKNOWN_PROCESS, "unknown process", "process gone before it was known")           \
	X(BUCKET_AMBIGUOUS, "ambiguous mapping", "the address changed its file in the interval")   \
	X(BUCKET_KERNEL_UNKNOWN, "unknown kernel", "kernel address in no known image")             \
	X(BUCKET_IDLE, "idle", "the idle task, waiting")                                           \
	X(BUCKET_DYNAMIC_UNKNOWN, "dynamic, unknown", "anonymous executable memory nobody names")  \
	X(BUCKET_GENERATION, "dynamic, generation unknown", "which routine stood there is lost")   \
	X(BUCKET_REFUSED, "dynamic, image refused", "no pseudo-image can be made of what it said") \
	X(BUCKET_QUOTA, "dynamic, over quota", "the database has no room for more dynamic code")   \
	X(BUCKET_BUDGET, "dynamic, over budget",                                                   \
	  "its user has taken a user's share of the daemon")                                       \
	X(BUCKET_REUSED, "reused, time unknown", "address had several routines in the interval")   \
	X(BUCKET_OTHER, "hypervisor or guest", "neither user nor kernel mode of this machine")     \
	ACCOUNT_TIMES(X)

/* Names under which the nanoseconds of threads are stored that wait or run, as enum driver_wait. */
#define ACCOUNT_TIMES(X)                                                                           \
	X(BUCKET_RUNS, "running", "on a CPU")                                                      \
	X(BUCKET_SLEEP, "waiting, sleep", "for a time")                                            \
	X(BUCKET_DISK, "waiting, disk", "for a disk or file")                                      \
	X(BUCKET_LOCK, "waiting, lock", "for another thread: futexes, locks")                      \
	X(BUCKET_PIPE, "waiting, pipe or socket", "for data, or for room for them")                \
	X(BUCKET_FAULT, "waiting, page fault", "for a page of memory")                             \
	X(BUCKET_RUNNABLE, "waiting, run queue", "for a CPU")                                      \
	X(BUCKET_WAITS_OTHER, "waiting, other", "for something else")                              \
	X(BUCKET_WAITS_UNKNOWN, "waiting, unknown", "it is not known where")

enum account_loss {
#define X(id, name, text) ACCOUNT_##id,
	ACCOUNT_LOSSES(X)
#undef X
		ACCOUNT_NR_LOSSES
};

enum account_bucket {
#define X(id, name, text) ACCOUNT_##id,
	ACCOUNT_BUCKETS(X)
#undef X
		ACCOUNT_NR_BUCKETS
};

/* The first bucket of nanoseconds; those before it are of samples. */
#define ACCOUNT_FIRST_TIME ACCOUNT_BUCKET_RUNS

/* received == stored + pending + sum(lost) at every moment between two drains. */
struct account {
	uint64_t received; /* from driver_stats */
	uint64_t stored;   /* in profiles, on disk or to be flushed */
	uint64_t pending;  /* held for order, or for a registry to be read */
	uint64_t lost[ACCOUNT_NR_LOSSES];
	uint64_t bucket[ACCOUNT_NR_BUCKETS]; /* part of stored */
};

const char *account_loss_name(enum account_loss loss);
const char *account_bucket_name(enum account_bucket bucket);

/*
 * The daemon's own part of an account becomes the whole one: @own holds stored, its own pending
 * and losses; the driver adds what it received, holds and lost.
 */
void account_total(const struct account *own, const struct driver_stats *driver,
		   struct account *out);
/* The same of the nanoseconds of threads. */
void account_times_total(const struct account *own, const struct driver_wait_stats *driver,
			 struct account *out);
/* The bucket of @wait, which is not DRIVER_WAIT_NONE. */
enum account_bucket account_bucket_of(enum driver_wait wait);
/* Invariant 1: received == stored + pending + sum(lost). */
bool account_balanced(const struct account *total);
uint64_t account_lost(const struct account *a);

/* ---- images (image.c) ------------------------------------------------------------------------ */

/* An image and the counts not yet on disk. Lives as long as the daemon or until dropped unused. */
struct image {
	enum profdb_kind kind;
	struct base_id id;
	struct base_id text; /* FILE: its code, which tells it from others of its id, or none */
	char *path;
	char *stem; /* for the profile's file name; DYNAMIC: the pseudo-image's file name */
	struct profdb_profile *counts;
	uint32_t nr_events; /* so many of the store's events are in its profile */
	uint32_t nr_ahead;  /* counts of it in the batch that is being stored */
	struct workload_table
		*workloads; /* the same counts by process; NULL: none, or not wanted */
	bool dirty;	    /* counts hold samples that are not on disk */
	bool behind;  /* DYNAMIC: routines with samples are not in the file on disk yet: the profile
			 waits (invariant 3) */
	bool writing; /* DYNAMIC: so it does while the file is being written */
	bool refused; /* DYNAMIC: what the program said makes no image; its counts go to a bucket */
	bool apart;   /* each process has a profile of it (dcpid -bypid) */
	bool excluded;		     /* its samples are counted as such, not stored */
	bool watched;		     /* FILE: a sample in it is no news (dyn_sampled) */
	bool put;		     /* DYNAMIC: profiles on disk may hold its build-id */
	char *process;		     /* process of such an image: "PID-START"; else NULL */
	char *label;		     /* that all of its samples have, or NULL */
	struct image_values *values; /* not on disk yet; or NULL */
	/* DYNAMIC: traces of which counts hold a part, and no image does that cannot be refused;
	 * those of single steps are of the same kind, but have values alone */
	uint64_t traces, stepped;
	enum account_bucket bucket; /* NAMED: which it is */
	uint32_t refs;
};

struct images; /* the table, by kind and identity (DYNAMIC: by stem) */

struct images *images_new(void);
void images_free(struct images *t);
/* Find or make; a new @path of a known identity is added to its profile. NULL: no memory. */
struct image *images_get(struct images *t, enum profdb_kind kind, const struct base_id *id,
			 const char *path, const char *stem);
/* The same of a file whose code (len 0: none) tells it from others of its identity, which anybody
 * can write into a file. */
struct image *images_get_file(struct images *t, const struct base_id *id,
			      const struct base_id *text, const char *path, const char *stem);
struct image *images_bucket(struct images *t, enum account_bucket bucket);
/*
 * Keep the processes of the names @apart apart: paths, base names, facilities; and store no samples
 * of the images in @exclude (may be NULL, as @apart). Call it before the first image; both must
 * outlive @t.
 */
void images_choose(struct images *t, const struct base_opt_list *apart,
		   const struct exclude *exclude);
bool images_is_excluded(const struct images *t, const char *name);
/* Is it (a path or a facility; NULL: a path that is not known) among those, or may be? */
bool images_is_apart(const struct images *t, const char *name);
bool images_next(const struct images *t, size_t *pos, struct image **out);
/* All of a pseudo-image's samples have it, for a process has one label while it runs one program.
 * 0 or negative. */
int image_set_label(struct image *img, const char *label);
/* A pseudo-image gets the label (may be NULL) of the process that its samples are of. */
void image_label(struct image *img, const char *label);
/*
 * A pseudo-image reaches the disk before what refers to it (invariant 3): one that is not there
 * yet, or lacks routines that have samples, holds that back.
 */
bool image_must_wait(const struct image *img);
/* Say in the profile where the code wants to be and its size (DCPI's tstart and tsize), if @e
 * tells.
 */
void image_set_extent(struct image *img, const struct base_extent *e);
/* A pseudo-image on disk has a new build-id. */
void image_set_id(struct image *img, const struct base_id *id);
/* Forget files that no mapping shows, pseudo-images of no facility, when they hold no samples. */
void images_drop_unused(struct images *t);

/* A process, as far as profiles of one file are kept apart by it. */
struct images_owner {
	int32_t pid;
	uint64_t began_ns; /* when it began; 0: not known */
	const char *label; /* or NULL */
};
/* The image in which @owner counts instead of @img: a profile of its own, where that is kept apart;
 * one of its label's. Not for pseudo-images. NULL: no memory. */
struct image *images_of(struct images *t, struct image *img, const struct images_owner *owner);
size_t images_nr(const struct images *t);
/* References held by mappings and facilities; @img may be NULL. */
struct image *image_get(struct image *img);
void image_put(struct image *img);

/* ---- counts on their way into profiles (store.c) --------------------------------------------- */

/*
 * The counts of a drain lie all over the tables of rows, none of which is in the caches. So many
 * are added together: their rows are asked for first.
 */
enum { STORE_AHEAD = 64 };

/* Samples of one place. */
struct store_count {
	uint64_t off, n;
	uint32_t event;
	struct workload_where where; /* their owner and time */
	uint32_t reader; /* the user other than root who may see them in the running daemon, or 0 */
	bool kernel;	 /* they were in the kernel, for a process or not */
	/* The attributes that the hardware told of their instruction, valid during the call; NULL:
	 * it told none. */
	const struct isample *insn;
};

struct store {
	/* set by the caller */
	struct images *images;
	struct driver_event events[DRIVER_NR_EVENTS];
	size_t nr_events;
	size_t nr_timed; /* so many of these, the last ones, count nanoseconds and no samples */
	struct workloads *workloads; /* NULL: whose samples are is not kept */
	struct watch *watch;	     /* viewers; NULL: there can be none */

	/* kept here; zero-initialize */
	struct account account; /* the daemon's part */
	struct account times;	/* the same of nanoseconds */
	struct store_place {
		struct image *image;
		struct store_count count;
	} ahead[STORE_AHEAD];
	size_t nr; /* in @ahead */
};

/* Samples in @img (NULL: there was no memory for it) are pending until they are added to its
 * profile, to its workloads, and to the account: stored, or lost by one name. */
void store_soon(struct store *s, struct image *img, const struct store_count *c);
/* The same of samples in a bucket, at its offset 0: its image for @owner. */
void store_bucket(struct store *s, enum account_bucket bucket, const struct images_owner *owner,
		  const struct store_count *c);
/* Add all that is on its way. */
void store_all(struct store *s);
/* Edges of a trace in @img, of a process with @label (may be NULL). *@nr_stored: how many are in
 * its profile, none where it is not to be stored. 0, or the first failure: -ENOMEM,
 * -DCPI_EOVERFLOW. */
int store_edges(struct store *s, struct image *img, const char *label, const struct profdb_edge *m,
		size_t nr, size_t *nr_stored);

/* ---- images that became part of others (move.c) ---------------------------------------------- */

/*
 * A pseudo-image became part of another one. In memory its counts move at once; the profile of the
 * open epoch follows at the next flush, those of finished epochs stay, for the other image names
 * the build-ids that it replaces.
 */

/* The workloads of @from to those of @to, in which there is room for them, at the offsets that @map
 * gives; NULL: all to 0. */
void image_workloads_move(struct image *from, const struct wire_replaces *map, struct image *to);

/* The counts and moves of @from, at the offsets that @map gives them, onto @to. 0, -ENOMEM,
 * -DCPI_EOVERFLOW, -DCPI_ELIMIT (then some of them are there). */
int image_move_counts(const struct profdb_profile *from, const struct wire_replaces *map,
		      struct profdb_profile *to);

struct image_move {
	struct image *from, *to; /* references */
	struct wire_replaces *map;
};

/* Zero-initialize. */
struct image_moves {
	struct image_move *items;
	size_t nr, cap;
};

/*
 * With the next flush the counts of @from in the open epoch go to @to; @map is copied. 0 or
 * -ENOMEM.
 */
int image_moves_add(struct image_moves *t, struct image *from, struct image *to,
		    const struct wire_replaces *map);
void image_moves_clear(struct image_moves *t);

/* ---- values (values.c) ----------------------------------------------------------------------- */

/*
 * Values (profdb.h) of an image that are not on disk yet, by profiler. They are secrets: with them
 * is kept whose code alone they are of, who may read them then.
 *
 * Whose a process is can be asked now, but its values are older. All of its user ids being one, and
 * the kernel letting that user see into it (which it does not where the program has given up rights
 * since its exec), what it knows is that user's since that exec. So the answer is good for all of a
 * life (up to exec or exit) in which it was asked, which shows when events up to then were seen.
 * Where events were lost it is good up to then, and is asked for anew.
 */

#define IMAGE_VALUES_NOBODY UINT32_MAX /* the values have several users, or the user is unknown */

/* The owner of one life of a process. */
struct values_owner {
	uint32_t refs;
	uint32_t uid; /* or IMAGE_VALUES_NOBODY */
	uint64_t asked_ns;
	bool certain; /* it was asked in that life */
};

/* The life was over at @time_ns. */
static inline void values_owner_end(struct values_owner *o, uint64_t time_ns)
{
	if (o->asked_ns > time_ns)
		o->uid = IMAGE_VALUES_NOBODY;
	o->certain = true;
}
static inline void values_owner_put(struct values_owner *o)
{
	if (o && --o->refs == 0)
		free(o);
}

struct image_values {
	struct profdb_values *values;
	struct values_owner **owners; /* references, of lives not known to be over */
	size_t nr_owners, cap_owners;
	bool owned;   /* uid is set */
	uint32_t uid; /* the user of the certain ones, or IMAGE_VALUES_NOBODY */
	struct image_values *next;
};

/*
 * The values of @profiler in @img, which contain code of @o (NULL: no known owner) from now on.
 * NULL: no memory.
 */
struct profdb_values *image_values_get(struct image *img, const char *profiler,
				       struct values_owner *o);
/*
 * Add the values of @from to those of @to, at the offsets that @map gives them. 0, -ENOMEM,
 * -DCPI_EOVERFLOW: then some of them are lost.
 */
int image_values_move(struct image *from, const struct wire_replaces *map, struct image *to);
/* Put all of them within a flush (profdb_flush_put_values), and log what is damaged there; events
 * up to @now_ns were seen. 0, or negative with @err, in which nothing is yet. */
int image_values_put(struct profdb *db, const struct image *img, uint64_t now_ns,
		     struct base_err *err);
/* How many were added. */
uint64_t image_values_total(const struct image *img);
void image_values_clear(struct image *img);

/* ---- files of pseudo-images, of dynamic code and of the kernel's (file.c) -------------------- */

struct pseudoimg_result;
struct pseudoimg_helper;

/* A holder of the lock on dyn/ removes files, which takes far less. */
enum { IMAGE_FILE_LOCK_MS = 1000 };
/*
 * Empty file @name, to be committed, for the daemon's user, its group and the uid @reader (may be
 * NULL). The disk may take its time: the helper's (may be NULL) @meanwhile is called now and then.
 */
int image_file_create(struct base_file *file, int dir_fd, const char *name,
		      const struct pseudoimg_helper *helper, const uint32_t *reader,
		      struct base_err *err);
/*
 * A call of @fn in a thread, while the caller does other things; what @fn uses is not to be touched
 * until its end, of which @wake_fd tells, an eventfd (or -1). NULL: no thread or no memory.
 */
struct image_task;
struct image_task *image_task_begin(const struct pseudoimg_helper *helper, int wake_fd,
				    int (*fn)(void *arg), void *arg);
/* It has ended, now or within @wait_ms, in which @helper's meanwhile is called now and then. */
bool image_task_is_done(struct image_task *t, unsigned int wait_ms);
/* Wait for its end likewise; its result. @t is freed. */
int image_task_end(struct image_task *t);
/*
 * Call @fn, which may wait for the disk, in a thread, while @meanwhile is called now and then,
 * which must touch nothing that @fn uses. Its result.
 */
int image_file_wait(const struct pseudoimg_helper *helper, int (*fn)(void *arg), void *arg);
/* base_file_commit, likewise. */
int image_file_commit(struct base_file *file, const struct pseudoimg_helper *helper,
		      struct base_err *err);
/* Deadline of a helper with so many bytes to read: several times the need on a quiet host. */
static inline unsigned int image_file_timeout_ms(uint64_t len)
{
	return 5000 + (unsigned int)(len >> 20) * 400;
}
/* A failure of one image, by what its client said; not of this machine's disk or memory, or of
 * starting the helper, for which flushes fail. */
bool image_file_refusal(int r);
/*
 * Let the jailed helper make @name from @job (a descriptor, at its beginning): complete or not at
 * all, for the daemon's user, its group and the uid @reader (may be NULL).
 */
int image_file_put(int dir_fd, const char *name, const struct pseudoimg_helper *helper,
		   const uint32_t *reader, int job, struct pseudoimg_result *result,
		   struct base_err *err);
/* One more refusal (counted in @nr_refused); after the third the image is given up: true. */
bool image_file_give_up(struct image *img, uint32_t *nr_refused);

#endif
