/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples of processes and threads: chosen by what these are, and in groups. The profiles say
 * where samples fell; the workloads of the same epochs say once more whose each of them was.
 */
#ifndef DCPI_WORKLOAD_H
#define DCPI_WORKLOAD_H

#include "samples.h"

/* ---- keys (keys.c) --------------------------------------------------------------------------- */

enum workload_key {
	WORKLOAD_COMM,
	WORKLOAD_EXE,
	WORKLOAD_PID,
	WORKLOAD_UID,
	WORKLOAD_CGROUP,
	WORKLOAD_UNIT,	    /* innermost systemd unit of the cgroup's path */
	WORKLOAD_CONTAINER, /* innermost container of the cgroup's path: its id, or its name */
	WORKLOAD_THREAD,
	WORKLOAD_LABEL,
	WORKLOAD_NR_KEYS
};

/* "comm", "exe", …: as options and databases have it. */
const char *workload_key_name(enum workload_key key);
/* 0, or -ENOENT. */
int workload_key_find(const char *name, enum workload_key *out);
/*
 * Appends the text of a key, which is empty where it is not known or there is none: uid and pid in
 * digits (the idle task has pid 0), all others as the kernel has them. 0 or -ENOMEM.
 */
int workload_key_of(const struct profdb_workload *k, enum workload_key key, struct base_buf *out);
/* The idle task of the kernel. */
bool workload_is_idle(const struct profdb_workload *k);
/* The workload was too small for this key to be kept, which may be so of pid and thread. */
static inline bool workload_key_dropped(const struct profdb_workload *k, enum workload_key key)
{
	return !workload_is_idle(k) &&
	       ((key == WORKLOAD_PID && !k->pid) || (key == WORKLOAD_THREAD && !*k->thread));
}

/* The kind that all workloads of a group are, besides the text of its key. */
enum workload_class {
	WORKLOAD_KEPT,
	WORKLOAD_DROPPED, /* by this key */
	WORKLOAD_IDLE,	  /* whatever the key */
};
/* Appends what is equal for workloads of one group alone: its class in a byte, and the text of the
 * key, which ends with a 0 that does not count. 0 or -ENOMEM. */
int workload_group_key(const struct profdb_workload *k, enum workload_key key,
		       struct base_buf *out);
/* The text to show for a group whose key has none. */
const char *workload_key_missing(enum workload_key key, enum workload_class class);

/* Parts of a cgroup's path. Each appends nothing where there is none. 0 or -ENOMEM. */
int workload_unit(const char *cgroup, struct base_buf *out);
int workload_container(const char *cgroup, struct base_buf *out);
int workload_pod(const char *cgroup, struct base_buf *out); /* uid of the Kubernetes pod */

/* ---- the chosen ones (keys.c) ---------------------------------------------------------------- */

/*
 * A workload is chosen if, of each key that has globs, one of them matches its text: fnmatch, where
 * neither '/' nor '\' nor a leading '.' is special. A path of a program is matched by its base name
 * too, a container by the uid of its pod too. Samples are chosen if their minute begins in [since,
 * until), UTC seconds; INT64_MIN and INT64_MAX: any.
 */
struct workload_filter {
	const char *const *globs[WORKLOAD_NR_KEYS];
	size_t nr[WORKLOAD_NR_KEYS];
	int64_t since, until;
};

/* One that chooses everything. */
void workload_filter_init(struct workload_filter *f);
/* Chooses some workloads, of whatever time. */
static inline bool workload_filter_has_keys(const struct workload_filter *f)
{
	for (size_t i = 0; i < WORKLOAD_NR_KEYS; i++)
		if (f->nr[i])
			return true;
	return false;
}

/* Chooses a time within which an epoch may be only in part. */
bool workload_filter_has_time(const struct workload_filter *f);
static inline bool workload_filter_is_all(const struct workload_filter *f)
{
	return !workload_filter_has_keys(f) && !workload_filter_has_time(f);
}

/* Minutes that no clock shows are never chosen: seconds of others may be subtracted. */
bool workload_filter_minute(const struct workload_filter *f, int64_t minute);
/*
 * Marks the chosen workloads in @chosen, of so many as @w has; those of other labels than @a has
 * chosen (-label) are not. @but: that key is not looked at; WORKLOAD_NR_KEYS: all are. 0 or
 * -ENOMEM.
 */
int workload_mark(const struct analysis *a, const struct profdb_workloads *w,
		  const struct workload_filter *f, enum workload_key but, bool *chosen);

/* ---- workloads of the chosen epochs (load.c, only.c, by.c) ----------------------------------- */

/* The part of workloads that is read; without their minutes it takes half the time and memory. */
enum workload_part {
	WORKLOAD_COUNTS,
	WORKLOAD_MINUTES, /* these too */
	WORKLOAD_CUT,	  /* both, of epochs that are in the window only in part */
};
/*
 * Reads the workloads of the epochs and platforms of @a, merged, into *@out. What cannot be read is
 * noted in @a, as are epochs that have none (unrecorded). 0 or negative with @err.
 */
int workload_load(struct analysis *a, enum workload_part part, struct profdb_workloads **out,
		  struct base_err *err);
/* Appends the names of the epochs that have none, " NAME NAME …". 0 or -ENOMEM. */
int workload_unrecorded(const struct analysis *a, struct base_buf *out);
/* Indexed by event of @w: that of @a, or SIZE_MAX. */
void workload_events(const struct analysis *a, const struct profdb_workloads *w,
		     size_t event[PROFDB_NR_EVENTS]);
/* The image of @a that an image of @w is; 0 or negative. */
int workload_image(struct analysis *a, const struct profdb_workloads *w, size_t image,
		   struct analysis_image **out);
/* Adds the samples of the marked workloads (NULL: of all) within the filter's time to @count, by
 * event of @a. */
void workload_sum(const struct analysis *a, const struct profdb_workloads *w,
		  const struct workload_filter *f, const bool *chosen, uint64_t *count);
/* @n samples at @c's place and of its workload; @event is one of the workloads, and @c->count are
 * those of all the epoch. Negative ends it. */
typedef int workload_each_fn(void *ctx, const struct profdb_workload_count *c, size_t event,
			     uint64_t n);
/* Calls @fn for the samples that the filter chooses, divided as workload_only says. 0, -ENOMEM, or
 * what @fn returned below 0. */
int workload_each(const struct analysis *a, const struct profdb_workloads *w,
		  const struct workload_filter *f, workload_each_fn *fn, void *ctx);
/*
 * Replaces the counts of all images by those that the filter chooses, and sums again; moves of
 * traces are dropped, as they are not kept by workload. Times choose minutes, which keep blocks of
 * code: what was in a block is divided among its offsets in proportion to the workload's counts of
 * the epoch, and sums stay exact. 0, -ENOMEM, -DCPI_EOVERFLOW, with @err.
 */
int workload_only(struct analysis *a, const struct profdb_workloads *w,
		  const struct workload_filter *f, struct base_err *err);
/* Divides @total in proportion to @count by largest remainders, the first of equal ones; nothing is
 * given where all counts are 0. @rest: room for @nr numbers. */
void workload_divide(const uint64_t *count, size_t nr, uint64_t total, uint64_t *share,
		     uint64_t *rest);

/* ---- windows of time (window.c) -------------------------------------------------------------- */

/*
 * To follow workload_only with a filter of that window: adds the epochs that keep no minutes, each
 * as a whole, which is noted there, and sums again. 0 or negative with @err.
 */
int workload_window_fill(struct analysis *a, struct base_err *err);
/* Restricts @a to its window; only the workloads of epochs that are in it in part are read. 0 or
 * negative with @err. */
int workload_window_restrict(struct analysis *a, struct base_err *err);

/* ---- groups (by.c) --------------------------------------------------------------------------- */

struct workload_group {
	char *name; /* text of the key; "": there is none, see workload_key_missing */
	enum workload_class class;
	char *comm;	    /* name of its processes, "" where these have several */
	uint64_t *count;    /* indexed by event of the analysis */
	uint64_t processes; /* number of them */
};

struct workload_groups {
	struct workload_group *v; /* most samples first */
	size_t nr, cap;
	size_t nr_events;
	struct base_map by_name; /* their number + 1 */
};

/*
 * The samples that the filter chooses by the text of a key. Their sums are those that workload_only
 * leaves in the images. @wanted (NULL: all) says of each image whether it counts; groups without
 * samples are left out; processes are counted that have some. 0 or -ENOMEM.
 */
int workload_by(struct analysis *a, const struct profdb_workloads *w,
		const struct workload_filter *f, enum workload_key key,
		bool (*wanted)(void *ctx, struct analysis_image *ai), void *ctx,
		struct workload_groups *out);
/* Most samples of @event first, then by name. 0 or -ENOMEM. */
int workload_groups_sort(struct workload_groups *g, size_t event);
void workload_groups_release(struct workload_groups *g);

#endif
