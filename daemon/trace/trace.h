/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows, the next instructions behind a sample (lib/vtrace), in the daemon: what they met and
 * nobody has translated is translated (code.c); each is attributed as a count is, block by
 * block, by its process's mappings at that time (place.c), and becomes moves in the profiles of
 * the images it went through (edges.c).
 */
#ifndef DCPI_DAEMON_WINDOWS_H
#define DCPI_DAEMON_WINDOWS_H

#include "attribute.h"
#include "follow.h"
#include "replay.h"
#include "translator.h"

/* Every way in which a received window fails to be stored: name in status, what it means. */
#define WINDOWS_LOSSES(X)                                                                          \
	X(RING, "ring-full", "found the ring of windows full")                                     \
	X(BUSY, "busy", "was due while another one ran on its CPU")                                \
	X(READ, "unread", "lay in the ring, but made no sense there")                              \
	X(BAD, "malformed", "does not fit the blocks that it names")                               \
	X(PROCESS, "unknown-process", "its process was gone before it was known")                  \
	X(UNKNOWN, "unknown", "began in no known mapping, or in code that nobody names")           \
	X(AMBIGUOUS, "ambiguous-mapping", "its address changed its file at that time")             \
	X(REUSED, "reused", "its address had several routines at that time")                       \
	X(GENERATION, "generation-unknown", "which routine stood there is lost")                   \
	X(QUOTA, "over-quota", "the database has no room for more dynamic code")                   \
	X(REFUSED, "image-refused", "what its program said of the code makes no image")            \
	X(EXCLUDED, "excluded", "its image or process is not to be stored")                        \
	X(MEMORY, "no-memory", "the daemon had no memory for it")                                  \
	X(OVERFLOW, "count-overflow", "its counter was full")

enum windows_loss {
#define X(id, name, text) WINDOWS_LOST_##id,
	WINDOWS_LOSSES(X)
#undef X
		WINDOWS_NR_LOSSES
};

/* What became of the values of windows, beside what values.h counts. */
struct windows_values_stats {
	uint64_t not_sent; /* windows: too many waited to be sent, or one could not be */
	uint64_t stored;   /* values in profiles */
	uint64_t unplaced; /* values of code that could not be attributed, or whose image was
			      refused, or without memory */
};

const char *windows_loss_name(enum windows_loss loss);

/* received == stored + pending + sum(lost) between two drains. */
struct windows_stats {
	uint64_t received; /* from driver_window_stats, as what is not in the daemon's hands */
	uint64_t stored;   /* some part of it is in a profile */
	uint64_t pending;  /* held for order, or for a registry or /proc to be read */
	uint64_t lost[WINDOWS_NR_LOSSES];
	uint64_t missing;    /* places that windows met without a block */
	uint64_t translated; /* blocks put */
	uint64_t refused;    /* blocks that the driver did not take */
	uint64_t postponed;  /* places not served: the process, or all of them, had their share */
	uint64_t failed;     /* places of which the helper made nothing: it was replaced */
};

/* ---- the blocks of a window ------------------------------------------------------------------ */

enum { WINDOWS_INSNS = 64, WINDOWS_STEPS = WINDOWS_INSNS + 2 };

/* One block of it, as far as it ran. */
struct windows_step {
	uint64_t pc, next; /* of the block, and behind it */
	uint64_t last;	   /* of its last instruction that ran */
	bool ran;	   /* there is one. Else it is but where the window would have gone on */
	bool transfers;	   /* that one is a branch, jump, call or return */
	uint32_t generation;
	uint64_t memory; /* start of the memory for code that it lay in then; 0: in none */
	/* Where it is: */
	enum windows_where { WINDOWS_OPEN, WINDOWS_PLACED, WINDOWS_LOST } where;
	enum windows_loss loss; /* WINDOWS_LOST */
	struct image *image;	/* a reference, also of what is OPEN and lies in a file's mapping */
	uint64_t off, last_off;
	uint64_t mapped_ns; /* of that image, as dyn_query has it */
};

/* Calls of the driver, which tests answer themselves. */
struct windows_driver {
	int (*missing)(struct driver *d, int (*fn)(void *ctx, const struct vtrace_window *w),
		       void *ctx);
	int (*put)(struct driver *d, const struct vtrace_code *code);
	const struct vtrace_code *(*get)(const struct driver *d, uint32_t id);
	void (*stats)(const struct driver *d, struct driver_window_stats *out);
};

/*
 * The blocks of @w in the order in which they ran, and, where the last instruction was a transfer
 * that ran, the place that it led to. How many (at most WINDOWS_STEPS), or -DCPI_EFORMAT.
 */
int windows_walk(vtrace_block_fn *get, void *ctx, const struct vtrace_window *w,
		 const uint64_t *words, struct windows_step *steps);
/*
 * The moves (profdb.h) of the images in which @steps are PLACED; count is @count. Those of one
 * image that follow each other come in one call. Goes on when @fn fails, and returns its first
 * failure.
 */
int windows_moves(const struct windows_step *steps, size_t nr, const uint64_t count[2],
		  int (*fn)(void *ctx, struct image *image, const struct profdb_move *m, size_t nr),
		  void *ctx);

/* ---- all of it ------------------------------------------------------------------------------- */

struct windows;

struct windows_config {
	struct driver *driver;
	const struct windows_driver *calls; /* NULL: driver.h's */
	struct reader *reader;		    /* of the code of processes; NULL: what windows bring */
	const char *helper_dir;		    /* where dcpid-translate is; NULL: nobody translates */
	struct values *values;		    /* whom windows are sent; NULL: nobody */
	size_t nr_profilers;
	struct step *step; /* whose windows come besides; or NULL */
	struct attribute *attribute;
	struct follow *follow;
	struct store *store;
	const struct exclude *exclude; /* processes whose windows are not stored; may be NULL */
	bool log_unknown;	       /* each window in no image goes to the log too */
};

int windows_open(const struct windows_config *config, struct windows **out, struct base_err *err);
void windows_close(struct windows *t);

/* A window, at its place in the order of time among counts and load events. */
void windows_take(struct windows *t, const struct vtrace_window *w, const uint64_t *words);
/* Windows of single steps that have come (step.h): taken when all before them was. They give values
 * and no moves, as they begin more often in what runs longer between two system calls. */
void windows_step_turn(struct windows *t);
/* What comes now happened at @time_ns: of windows before a reading of /proc up to then the mappings
 * are certain. */
void windows_pass(struct windows *t, uint64_t time_ns);
/* @image will never be on disk, and what is in it since it was is dropped: its windows and values
 * are no more stored. */
void windows_given_up(struct windows *t, struct image *image);
/* @from became part of @to, at the offsets that @map gives: what is still to come of it is there.
 */
void windows_moved(struct windows *t, const struct image *from, const struct wire_replaces *map,
		   struct image *to);
/* After dyn_refresh: those that wait for it; @last: nothing is to be waited for. */
void windows_resolve(struct windows *t, bool last);
/* Lives of processes have ended (follow->ends): what these had mapped is still known. */
void windows_take_ends(struct windows *t);
/* Since @time_ns any life may have ended without a word. @t may be NULL. */
void windows_doubted(struct windows *t, uint64_t time_ns);
/*
 * Translate what is missing, in a share of the time that is small but at the start. True: there was
 * so much that more may come soon.
 */
bool windows_serve(struct windows *t);
/* Send what waits to be sent, take what has come. Negative: a failure of values_receive. */
int windows_values_turn(struct windows *t);
/* At the end: wait for what is still to come, a second at most. */
void windows_values_finish(struct windows *t);
/* Account of the windows of single steps, as that of the others. False: there are none. */
bool windows_stepped_stats_get(const struct windows *t, struct windows_stats *out);
/* Readable when windows_values_turn has something to do; -1: nothing is to be waited for now. */
int windows_poll_fd(const struct windows *t);
/* False: no values are wanted. */
bool windows_values_stats_get(const struct windows *t, struct windows_values_stats *out,
			      size_t *nr_waiting);
/* The driver's part included. */
void windows_stats_get(const struct windows *t, struct windows_stats *out);
uint64_t windows_lost(const struct windows_stats *s);
/* For the rest of its numbers. */
void windows_driver_stats_get(const struct windows *t, struct driver_window_stats *out);

#endif
