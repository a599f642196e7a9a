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

/* ---- what a store has (spool.c) -------------------------------------------------------------- */

/* Images and routines that were sent, as a file of keys: lost, they are sent once more. */
struct known {
	struct base_map keys;
	struct base_buf new; /* since the file was written */
	int dir_fd;	     /* the spool's */
};

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
/* A joined epoch is not sent, as parts of it were. */
bool spool_is_left_out(const struct spool *s, const char *epoch, const char *platform);
/* Bytes of the batches that wait, and their number. */
uint64_t spool_waiting(const struct spool *s, size_t *nr);
/*
 * Writes a batch that lasts, beside all that wait, and that nobody sees yet: its name goes to
 * spool_show or spool_drop. One that a killed program had held is shown at the next spool_open
 * where its epoch is noted as shipped, or its version in the file of keys; else it is removed.
 * -ENOSPC: the spool's limit is reached.
 */
#define SPOOL_NAME (PROFDB_EPOCH_LEN + PROFDB_PLATFORM_MAX + 40)
int spool_hold(struct spool *s, const char *epoch, const char *platform, uint64_t ver,
	       const struct store_batch *b, char name[SPOOL_NAME], struct base_err *err);
int spool_show(struct spool *s, const char *name, struct base_err *err);

/* ---- packing (spool.c) ----------------------------------------------------------------------- */

struct gather {
	const char *prog;
	const char *platform;		   /* NULL: all of the database */
	const char *as;			   /* its name in the store, or NULL */
	bool open;			   /* epochs that are still written, too */
	const volatile sig_atomic_t *stop; /* no further epoch where it is not 0; or NULL */
	uint64_t packed;		   /* result: number of epochs */
};

/* Every epoch that is finished, or with @open has changed, goes into the spool. */
int gather_epochs(struct spool *s, const char *db, struct gather *g, struct base_err *err);
typedef int gather_visit(void *ctx, const char *epoch, const char *platform, struct base_err *err);
/* Calls @visit for each epoch and platform that @g means and of which all was sent. What it returns
 * below 0 ends it. -DCPI_EUSAGE: all platforms of an epoch would get the name @g->as. */
int gather_visit_sent(const struct spool *s, struct profdb *db, const struct gather *g,
		      gather_visit *visit, void *ctx, struct base_err *err);

/* ---- what is tried later (send.c) ------------------------------------------------------------ */

/*
 * Batches that a store did not take, though each was sent alone. A turn in which it took no batch
 * says nothing about one, and the next turn tries others first. A batch that is refused while
 * others are taken has a fault of its own: it is tried alone, behind the others, after pauses that
 * grow from a minute to an hour. Batches in a folder where one was refused come behind those of
 * other folders for an hour. After three turns in a row in which it took none the store is left
 * alone for a minute, and in the end for ten: a full ClickHouse keeps what it could not write for a
 * day. All of it is forgotten at the end of the program, which costs a turn. Zero-initialize.
 */
struct later {
	struct base_map by_name;
	struct base_map folders; /* the turn of the oldest of a folder's batches */
	struct base_map skipped; /* folders with a batch that was refused in this turn */
	uint64_t turn;
	unsigned int troubles; /* turns in a row in which the store took none */
	int64_t not_before;    /* the next turn that is more than a pause */
};

enum later_class {
	LATER_FIRST,
	LATER_BEHIND,
	LATER_ALONE,
	LATER_NOT_YET,
};

struct later_rank {
	enum later_class class;
	int64_t when; /* within a class the lowest comes first */
};

/* A turn begins, or has ended, in which the store @took some batch, or was in @trouble. -ENOMEM;
 * the number of batches that have a fault of their own since now. */
int later_begin(struct later *l);
size_t later_end(struct later *l, bool took, bool trouble, int64_t now);
/* @name is "NAME", or "FOLDER/NAME". */
struct later_rank later_rank(struct later *l, const char *name, int64_t now);
/* It was refused in this turn. 0 or -ENOMEM. */
int later_note(struct later *l, const char *name);
/* Another one of its folder was refused in this turn: it waits for the next. */
bool later_skip(const struct later *l, const char *name);
void later_release(struct later *l);

/* ---- sending (send.c) ------------------------------------------------------------------------ */

struct send {
	const char *prog;
	struct known *known;	 /* the spool's own; NULL: a folder that others fill */
	struct later later;	 /* outlasts a turn; later_release ends it */
	uint64_t batches, bytes; /* result of a turn */
};

/*
 * One turn: sends the batches in the folder, several at once, and removes them. One that is damaged
 * is set aside, as NAME.bad, and told of; one that the store refuses is told of, and waits. What
 * was known of the store is forgotten in both cases, as its images may be in that batch alone.
 * Negative: some were refused, or not tried, and wait.
 */
int send_batches(struct store_server *s, int dir_fd, struct send *out, struct base_err *err);

/* ---- checking (verify.c) --------------------------------------------------------------------- */

/*
 * Compares the sums of all epochs of the spool with those of the store. Those that differ are
 * compared again for @seconds, as the replica that answers may lag behind. 1: all are equal; 0.
 */
int verify(const struct spool *sp, struct store_server *s, const char *db, const struct gather *g,
	   unsigned int seconds, struct base_err *err);

#endif
