/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pseudo-images, files of kernels and costs of blocks that no epoch refers to any more, and before
 * them epochs that are old, or too much (dcpid -gc, what a daemon runs each day, or when its
 * database is over its quota). Beside running daemons: what one wrote since its last flush, or has
 * samples for, is newer than that flush.
 */
#ifndef DCPI_RETAIN_H
#define DCPI_RETAIN_H

#include "base.h"
#include "profdb.h"

/* ---- removal (gc.c) -------------------------------------------------------------------------- */

enum gc_folder { GC_DYN, GC_KERNEL, GC_COSTS, GC_NR_FOLDERS };

/* A file of <db>/dyn, kernel or costs. */
struct gc_file {
	char *name;
	enum gc_folder folder;
	uint64_t len, time_ns; /* bytes; last written */
	uint64_t ino;
	size_t last; /* rank of the last epoch to go that refers to it, by a build-id that it has
			or replaces, or by name; 0: none does */
	bool used;   /* that one stays */
	bool remove; /* chosen */
};

struct gc_config {
	bool dry_run; /* remove nothing, say what would be */
	/* Limit of the bytes of pseudo-images that remain; 0: remove all that may go. */
	uint64_t quota;
	bool old; /* epochs go first that are old, as profdb_epochs_expire has it at @now (UTC) */
	int64_t now;
	/* Then finished ones, the oldest first, until the whole database, each file in blocks of 4
	 * KiB, takes no more bytes than this; 0: as many as it takes. */
	uint64_t size;
	/* Told of each file that is removed, in order; and of what is kept for it cannot be read.
	 */
	void (*removed)(void *ctx, const struct gc_file *file);
	void (*removed_epoch)(void *ctx, const char *epoch); /* with old or size */
	void (*kept)(void *ctx, const struct base_err *why);
	void *ctx;
};

struct gc_result {
	size_t nr_removed, nr_left;
	uint64_t removed_len, left_len; /* bytes */
	size_t nr_epochs;		/* removed */
	uint64_t size;			/* where one was asked for: what is left of all */
};

/*
 * Nothing is removed where it cannot be told what an epoch refers to (-DCPI_EFORMAT, with @err
 * naming the profile), or while a daemon writes images without end, or removes or joins epochs
 * (-DCPI_EBUSY). 0 or negative.
 */
int gc_run(struct profdb *db, const struct gc_config *config, struct gc_result *result,
	   struct base_err *err);
/*
 * Choose: of those that are not used and older than @young_ns the oldest first, until at most
 * @quota bytes are left (0: all of them). Sorts @files that way.
 */
void gc_choose(struct gc_file *files, size_t nr, uint64_t young_ns, uint64_t quota);
/* Bytes and files of <db>/dyn. 0 or -errno. */
int gc_measure(struct profdb *db, uint64_t *len, size_t *nr);
/* The images of one user's code take so much. */
struct quota_user {
	uint32_t uid;
	uint64_t len;
};

/* Bytes by the user whose code they hold; those of no other user are the daemon's own. @users are
 * the caller's to free, also where that fails. 0 or negative. */
int gc_measure_users(struct profdb *db, struct quota_user **users, size_t *nr);

/* ---- a child that does it (gc_child.c) ------------------------------------------------------- */

/*
 * A child of the daemon's that runs gc: it reads what applications made, and takes as long as the
 * database is large. It closes every descriptor, keeps no right but that to remove files, ends with
 * the daemon, and exits with 0 or BASE_EXIT_FAILED. @config's functions are not called. What it
 * did, or why it could not, it writes to *@report as a line, whose reading end the caller owns;
 * NULL: nowhere. Lines before that begin with GC_CHILD_NOTE: warnings. Its pid, or -errno.
 */
#define GC_CHILD_NOTE "note: "
int32_t gc_child_start(const char *path, const struct gc_config *config, int *report);

#endif
