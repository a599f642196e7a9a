/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of dcpiship. Epochs become batches in a folder, the spool, and batches are sent from
 * there; so a server may be away for as long as the spool has space, and the database keeps what
 * the spool has not.
 */
#ifndef DCPI_SHIP_H
#define DCPI_SHIP_H

#include "profdb.h"
#include "store.h"

#define SHIP_SUFFIX ".batch"

/* ---- what a store has (known.c) -------------------------------------------------------------- */

/* Images and routines that were sent, as a file of keys: lost, they are sent once more. */
struct known {
	struct base_map keys;
	struct base_buf new; /* since the file was written */
	int dir_fd;	     /* the spool's */
};

int known_open(struct known *k, int dir_fd, struct base_err *err);
bool known_has(void *ctx, const void *key, size_t len);
void known_add(void *ctx, const void *key, size_t len);
/* The keys that were added are in batches that last now. */
int known_keep(struct known *k, struct base_err *err);
/* The keys that were added since are in no batch. */
void known_drop(struct known *k);
/* Nothing is known any more: all is sent again. */
int known_forget(struct known *k, struct base_err *err);
/* The store @id is another one than before: nothing is known of it. 1: it is; 0; negative. */
int known_store(struct known *k, const char *id, struct base_err *err);
void known_release(struct known *k);

/* ---- the spool (spool.c) --------------------------------------------------------------------- */

struct spool {
	int dir_fd, lock_fd;
	char *path;
	struct known known;
	struct base_map shipped; /* "EPOCH/PLATFORM" */
	uint64_t limit;		 /* bytes */
};

/* A file's name is that of a batch that waits. */
bool spool_is_batch(const char *name);
/* Appends all of @data, so that it lasts, or nothing. 0 or negative. */
int spool_append(int dir_fd, const char *file, const void *data, size_t len);

/* Made where it is missing. -EBUSY: another dcpiship uses it. */
int spool_open(const char *path, uint64_t limit, struct spool **out, struct base_err *err);
/* To look at alone, while another dcpiship may use it. */
int spool_look(const char *path, struct spool **out, struct base_err *err);
void spool_close(struct spool *s);
bool spool_is_shipped(const struct spool *s, const char *epoch, const char *platform);
int spool_set_shipped(struct spool *s, const char *epoch, const char *platform,
		      struct base_err *err);
/* Some of it was sent, be it while it was open. */
bool spool_is_begun(const struct spool *s, const char *epoch, const char *platform);
/* The same of a joined epoch of @nr parts, which has the name of its first part. */
bool spool_is_joined(const struct spool *s, const char *epoch, const char *platform, size_t nr);
int spool_set_joined(struct spool *s, const char *epoch, const char *platform, size_t nr,
		     struct base_err *err);
/* A joined epoch is not sent, as parts of it were. */
bool spool_is_left_out(const struct spool *s, const char *epoch, const char *platform);
int spool_leave_out(struct spool *s, const char *epoch, const char *platform, struct base_err *err);
/* The name of the file that has the keys of an open epoch's rows. */
void spool_keys_name(const char *epoch, const char *platform, char name[128]);
/* Bytes of the batches that wait, and their number. */
uint64_t spool_waiting(const struct spool *s, size_t *nr);
/* Writes a batch that lasts, beside all that wait. -ENOSPC: the spool's limit is reached. */
int spool_put(struct spool *s, const char *epoch, const char *platform, uint64_t ver,
	      const struct store_batch *b, struct base_err *err);

/* ---- packing (gather.c) ---------------------------------------------------------------------- */

struct gather {
	const char *prog;
	const char *platform; /* NULL: all of the database */
	const char *as;	      /* its name in the store, or NULL */
	bool open;	      /* epochs that are still written, too */
	uint64_t packed;      /* result: number of epochs */
};

/* The fate of the parts of a joined epoch on one platform; @nr is 0 where it is not joined. */
struct gather_parts {
	size_t nr, shipped, begun; /* begun: some of it was sent */
};
int gather_parts(const struct spool *s, struct profdb *db, const char *epoch, const char *platform,
		 struct gather_parts *out, struct base_err *err);
/* -DCPI_EUSAGE: @platforms are more than one, and all would get the name @g->as. */
int gather_check_name(const struct gather *g, const char *epoch, char *const *platforms,
		      struct base_err *err);
/* Every epoch that is finished, or with @open has changed, goes into the spool. */
int gather_epochs(struct spool *s, const char *db, struct gather *g, struct base_err *err);

/* ---- sending (send.c) ------------------------------------------------------------------------ */

struct send {
	const char *prog;
	struct known *known;	 /* the spool's own; NULL: a folder that others fill */
	uint64_t batches, bytes; /* result */
};

/*
 * Sends the batches in the folder, several at once, and removes them. One that is damaged is set
 * aside, as NAME.bad, and told of; what was known of the store is forgotten then, as its images may
 * be in that batch alone. Negative: the store takes none, and the rest waits.
 */
int send_batches(struct store_server *s, int dir_fd, struct send *out, struct base_err *err);

/* ---- checking (verify.c) --------------------------------------------------------------------- */

/* Compares the sums of all epochs of the spool with those of the store. 1: all are equal; 0. */
int verify(const struct spool *sp, struct store_server *s, const char *db, const struct gather *g,
	   struct base_err *err);

#endif
