/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dynamic code: the clients that say what they make, the runtimes that write it into files, which
 * routine was at an address when, and the pseudo-images that keep it.
 */
#ifndef DCPI_JIT_H
#define DCPI_JIT_H

#include "track.h"

struct watch;

struct dyn;	   /* all clients */
struct dyn_client; /* one registry of one process life (a fork's child shares its parent's until it
		      has its own) */

struct dyn_config {
	const char *run_dir;	/* hand-over socket is made here; NULL: none (replay) */
	const char *queue_name; /* doorbell; NULL: none (replay) */
	const char *helper_dir; /* where dcpid-pseudoimg is */
	const char *host;
	struct profdb *db;
	struct images *images;
	struct image_moves *moves; /* profiles that are to follow their images; may be NULL */
	struct reader *reader;	   /* the caller's; NULL: none (replay) */
	struct budgets *budgets;   /* likewise: shares of users; NULL: none is refused anything */
	bool keep_all;		   /* routines that got no sample, too */
	uint64_t process_quota;	   /* bytes kept of one process; 0: as much as there is room for */
	uint64_t quota;		   /* bytes of <db>/dyn, a half of which copies of files may take */
	/* Called now and then while images are written; may be NULL. */
	void (*meanwhile)(void *ctx);
	void *meanwhile_ctx;
	/* Told of everything read, for recording; may be NULL. @data as dyn_records takes it. */
	void (*record)(void *ctx, int32_t pid, uint64_t time_ns, const void *data, size_t len);
	void *record_ctx;
};

#define DYN_MADE_NS 10000000u /* files have the time of the last tick */

int dyn_open(const struct dyn_config *config, struct dyn **out, struct base_err *err);
void dyn_close(struct dyn *d);
/* Descriptors to wait on besides the driver's; returns how many were stored (at most @max). */
size_t dyn_poll_fds(const struct dyn *d, int *fds, size_t max);
/*
 * Take hand-overs and doorbells, all that are there, without waiting. @find: the process of a pid
 * (made if needed), so that its client can be attached; @time_ns: when its registry was made, at
 * most DYN_MADE_NS before, or now: the taking may be late, and that pid another program since.
 */
int dyn_take(struct dyn *d, struct process *(*find)(void *ctx, int32_t pid, uint64_t time_ns),
	     void *ctx);
/* The marker mapping /memfd:dbgdyn was seen at [addr, addr+len) of @p (mmap event or initial scan).
 */
void dyn_marker(struct dyn *d, struct process *p, uint64_t addr, uint64_t len);
/*
 * A file that the runtime of @p writes its code into (its descriptor is taken over) is followed
 * until @p, and whoever inherited its code, have ended. 0, -EEXIST: it is already; -EPERM: it is
 * not its user's; or negative.
 */
struct reader_dump;
int dyn_dump(struct dyn *d, struct process *p, const struct reader_dump *dump);
/* @p has made memory for code: look for a perf map, and for GDB's descriptor, from now on. */
void dyn_watch(struct dyn *d, struct process *p);
/* @p has mapped a file for its code, which may have a descriptor. */
void dyn_mapped(const struct process *p);
/*
 * The first sample of a file's image (not @m->image->watched): while @p has it mapped it is looked
 * now and then whether it was removed, and then copied into <db>/dyn by the next dyn_write_ended or
 * dyn_write_images.
 */
void dyn_sampled(struct dyn *d, const struct process *p, const struct map *m);
/* @p will end when its counts are settled: what is only there now and then is looked for now, and
 * what was left alone for a while is read. */
void dyn_leaving(struct process *p);
/*
 * Inherited code is looked up as it was at the fork: @time_ns (CLOCK_MONOTONIC), and as of the
 * parent's change *@cursor, where that was told (else NULL).
 */
void dyn_fork(struct dyn *d, struct process *parent, struct process *child, uint64_t time_ns,
	      const uint64_t *cursor);
/*
 * No event told of the fork of @child, and @ancestor it descends from: its memory, or its own
 * registry, says what it inherited of @ancestor's registry. True: it did, and that is known now.
 */
bool dyn_inherit(struct dyn *d, struct process *ancestor, struct process *child);
/* The registry of @from is that of @to, which has none; what @from inherited stays. 0 or -ENOMEM.
 */
int dyn_hand_on(struct process *from, struct process *to);
/*
 * exec or exit of @p, before its samples are looked up a last time: what it told up to then is
 * read, also where its user has had a turn.
 */
void dyn_read_ended(struct dyn *d, struct process *p);
/*
 * exec or exit of @p, called when its counts are settled: its client is read a last time and closed
 * when nobody else holds it; p->dyn is NULL after.
 */
void dyn_end(struct dyn *d, struct process *p);
/* Records from a recorded stream (replay), as the reader delivered them at @time_ns. */
int dyn_records(struct dyn *d, struct process *p, uint64_t time_ns, const void *data, size_t len);
/* Read every registry whose header moved; owned ranges too when @ranges. True: something was new.
 */
bool dyn_refresh(struct dyn *d, bool ranges);
/* The same of the one registry of @p itself, if it was not read for @after_ns, little is new, and
 * its user has some of the turn left: between two calls of dyn_refresh, where something waits for
 * what it says. */
bool dyn_read_early(struct dyn *d, const struct process *p, uint64_t after_ns);
/* All samples up to @time_ns have been looked up. */
void dyn_settled(struct dyn *d, uint64_t time_ns);
/* Another number whenever what is told of @p's code, by whomever, may have changed: a lookup that
 * ended in DYN_LATER does so again until then, but for one that is the last. */
uint64_t dyn_news(const struct process *p);
/* Samples of @p from @first_ns on will be looked up again: for one more dyn_refresh, who lived then
 * is not forgotten. dyn_lookup says so itself of what it answers by DYN_LATER. */
void dyn_wait(const struct process *p, uint64_t first_ns);
/* A registry of its own is attached to this life; it can have no other. */
bool dyn_has_registry(const struct process *p);
/* An address in @p's own registry may have had more than one routine by now. */
bool dyn_reuses(const struct process *p);
/* @p said that it has put code of its own there, in a mapping of a file though it may be. */
bool dyn_claims(const struct process *p, uint64_t addr);
/* Calls @fn with the routines that live in [start, end) of @p, as far as was told, and the numbers
 * of their registrations; of several that overlap, all. Where @p has none of its own there, it is
 * what it inherited and what is there since. */
void dyn_living(const struct process *p, uint64_t start, uint64_t end,
		void (*fn)(void *ctx, uint64_t addr, uint64_t len, uint64_t seq), void *ctx);
/* A routine of @p's own lives at @addr, and no other one that is known did at @time_ns or later: it
 * was told of before, or is the first one there. */
bool dyn_lived(const struct process *p, uint64_t addr, uint64_t time_ns);
/* The frames of one of them, as its runtime told, at most @max: how many. */
struct wire_frame;
size_t dyn_frames(const struct process *p, uint64_t addr, uint64_t seq, struct wire_frame *frames,
		  size_t max);
/* Calls @fn with the addresses where @p said that code is or comes. */
void dyn_ranges(const struct process *p, void (*fn)(void *ctx, uint64_t start, uint64_t end),
		void *ctx);

/* Where the generation words of @p are, and the number of its last change, goes into @client.
 * False: it has none. */
bool dyn_words(const struct process *p, struct driver_client *client);
/*
 * Are they there: is @p still the program of its user that its registry is of, and does it have
 * that mapped at these addresses? False: dyn_words says from then on that it has none, unless
 * that could not be found out.
 */
bool dyn_words_stand(const struct process *p);

/* @count samples at @addr, taken from @first_ns to @time_ns, as driver_count tells. */
struct dyn_query {
	uint64_t addr, first_ns, time_ns, count;
	uint32_t generation;
	bool generation_read, generation_unread;
	bool last;	    /* no reading is to be waited for */
	bool dynamic;	    /* it lies in memory that programs write code into … */
	uint64_t map_start; /* … which begins there */
	/* It lies in a file that was mapped then in place of something else: who was told of before
	 * is gone. 0: not known. */
	uint64_t mapped_ns;
	/* Samples of which this is the first: the others are looked up next, one by one. */
	const struct sample *next;
	size_t nr_next; /* may be 0 */
};

enum dyn_where {
	DYN_NONE,	/* in no range and no routine */
	DYN_FOUND,	/* the address had this lifetime, and no other, all the time */
	DYN_REUSED,	/* it had several, or one for a part of the time, as far as readings tell */
	DYN_GENERATION, /* who lived there in this generation is not known, or which it was */
	DYN_NO_CAPACITY, /* it is not on disk, and the database is full (dyn_set_full) */
	DYN_NO_BUDGET,	 /* it was not read, or is not kept: its user's share is spent (budget.h) */
	DYN_LATER,	 /* the next reading of the registry may tell; not where @last */
};
/*
 * Where samples belong (any time up to the last dyn_refresh; they may have been held over several).
 * By their generation where that was read, else by time. DYN_FOUND stores image and offset.
 */
enum dyn_where dyn_lookup(struct dyn *d, struct process *p, const struct dyn_query *q,
			  struct image **image, uint64_t *off);
/*
 * A function that an interpreter runs in @p; one that is known already is no news. 0 or negative:
 * frames of it are in no image then.
 */
int dyn_function_add(struct dyn *d, struct process *p, const struct driver_function *f);
/* The place of an instruction of the function with this key: DYN_FOUND, DYN_NO_CAPACITY, DYN_NONE.
 */
enum dyn_where dyn_function_find(const struct process *p, uint64_t key, uint32_t instr,
				 struct image **image, uint64_t *off);
/*
 * Write every pseudo-image that changed, durable before it returns, answer flush requests. Called
 * before the profiles of a flush are put (invariant 3). A failure is logged, answered to the
 * client, and tried again next time. One that lies in what the client said is no failure of the
 * flush: after three tries its image is refused.
 */
int dyn_write_images(struct dyn *d, struct base_err *err);
/*
 * Between flushes, for clients that wait for their images: read what they told. True: all that one
 * of them told is read, so that dyn_write_waited, which is for such alone, has something to write.
 */
bool dyn_read_waited(struct dyn *d);
int dyn_write_waited(struct dyn *d, struct base_err *err);
/* Between flushes, for viewers of the running daemon: the code that they are shown samples of. */
int dyn_write_watched(struct dyn *d, const struct watch *watch, struct base_err *err);
/*
 * The database is over its quota: of users who have @share bytes in it or more (BUDGET_IMAGES),
 * what would make it larger is not written, but for routines that got samples before; a client that
 * waits for an image is told so.
 */
void dyn_set_full(struct dyn *d, bool full, uint64_t share);
/* Images of what lives are newer than the last flush from now on: dcpid -gc leaves them alone. */
void dyn_spare_images(struct dyn *d);
/* A client waits for what was not all read yet: call dyn_refresh again soon. */
bool dyn_is_catching_up(const struct dyn *d);
/*
 * A flush that takes several turns: in haste (dyn_set_hasty) code is not read, merged or written
 * whose users have had a turn. It is behind while some is left of registries that were made before
 * it began; what comes later is the next flush's, or where processes begin and end all the time,
 * it would not end.
 */
void dyn_begin_flush(struct dyn *d);
bool dyn_is_behind(const struct dyn *d);
/*
 * Processes that have ended join the pseudo-image of others of their executable, facility,
 * uid, machine and label, with the counts they have in memory. Called before dyn_write_images,
 * which leaves out what waits for this. 0, or negative where the disk or memory failed: tried again
 * next time.
 */
int dyn_merge(struct dyn *d, struct base_err *err);
/*
 * A part of those that have ended and keep images of their own, so that a crowd of them does not
 * hold up sampling: 0.1 s of them, the next call goes on. @hasty: dyn_write_images takes no longer
 * for these either, nor dyn_write_images and dyn_refresh for one user (budget_has_turn); what is
 * left waits, its profiles too.
 */
int dyn_write_ended(struct dyn *d, struct base_err *err);
void dyn_set_hasty(struct dyn *d, bool hasty);
/* In haste, files that are being written are waited for 0.05 s from now on, or from dyn_set_hasty
 * on. */
void dyn_tasks_grace(struct dyn *d);
/* So many have ended that it should not wait for the flush. */
bool dyn_wants_merge(const struct dyn *d);
/* A new epoch has its own images of those that end in it. */
void dyn_merge_forget(struct dyn *d);
/* Images that were written are not on disk any more: those that can be made again are behind. */
void dyn_images_lost(struct dyn *d);
struct dyn_stats {
	uint64_t clients, facilities, routines, images_written, records_bad, records_dropped;
	uint64_t registries_refused; /* and other connections that brought none */
	uint64_t entries_left_out;   /* of routines' tables, by the programs */
	uint64_t routines_refused;   /* found no room: their process's quota, or the database's */
	uint64_t changes_missed;     /* of what lives, that no record told */
	uint64_t generations_unread; /* samples whose generation could not be read */
	uint64_t images_merged;	     /* processes whose image became part of another */
	uint64_t files_kept;	     /* copies of removed files */
	uint64_t merges_failed;	     /* those that keep one of their own, for that failed */
};
void dyn_stats_get(const struct dyn *d, struct dyn_stats *out);

#endif
