/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces, the next instructions behind a sample (lib/vtrace), in the daemon: what they met and
 * nobody has translated is translated (code.c); each is attributed as a count is, block by
 * block, by its process's mappings at that time, and becomes edges in the profiles of the images
 * it went through (trace.c); its values come from other processes (values.c).
 */
#ifndef DCPI_DAEMON_TRACES_H
#define DCPI_DAEMON_TRACES_H

#include "attribute.h"
#include "follow.h"
#include "replay.h"
#include "translator.h"

/* Every way in which a received trace fails to be stored: name in status, what it means. */
#define TRACE_LOSSES(X)                                                                            \
	X(RING, "ring-full", "found the ring of traces full")                                      \
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

enum trace_loss {
#define X(id, name, text) TRACE_LOST_##id,
	TRACE_LOSSES(X)
#undef X
		TRACE_NR_LOSSES
};

/* The fate of the values of traces, beside the counts in values.h. */
struct trace_values_stats {
	uint64_t not_sent; /* traces: too many waited to be sent, or one could not be */
	uint64_t stored;   /* values in profiles */
	uint64_t unplaced; /* values of code that could not be attributed, or whose image was
			      refused, or without memory */
};

const char *trace_loss_name(enum trace_loss loss);

/* received == stored + pending + sum(lost) between two drains. */
struct trace_stats {
	uint64_t received; /* from driver_trace_stats, as what is not in the daemon's hands */
	uint64_t stored;   /* some part of it is in a profile */
	uint64_t pending;  /* held for order, or for a registry or /proc to be read */
	uint64_t lost[TRACE_NR_LOSSES];
	uint64_t missing;    /* places that traces met without a block */
	uint64_t translated; /* blocks put */
	uint64_t refused;    /* blocks that the driver did not take */
	uint64_t postponed;  /* places not served: the process, or all of them, had their share */
	uint64_t failed;     /* places of which the helper made nothing: it was replaced */
};

/* ---- the blocks of a trace ------------------------------------------------------------------- */

enum { TRACE_INSNS = 64, TRACE_STEPS = TRACE_INSNS + 2 };

/* One block of it, as far as it ran. */
struct trace_step {
	uint64_t pc, next; /* addresses of the block, and of the one behind it */
	uint64_t last;	   /* address of its last instruction that ran */
	bool ran;	   /* there is one. Else it is but where the trace would have gone on */
	bool transfers;	   /* that one is a branch, jump, call or return */
	uint32_t generation;
	uint64_t memory; /* start of the memory for code that it lay in then; 0: in none */
	/* Where it is: */
	enum trace_where { TRACE_OPEN, TRACE_PLACED, TRACE_LOST } where;
	enum trace_loss loss; /* TRACE_LOST */
	struct image *image;  /* a reference, also of what is OPEN and lies in a file's mapping */
	uint64_t off, last_off;
	uint64_t mapped_ns; /* time of that image's mapping, as for dyn_query */
};

/* Calls of the driver, which tests answer themselves. */
struct trace_driver {
	int (*missing)(struct driver *d, int (*fn)(void *ctx, const struct insn_trace *w),
		       void *ctx);
	int (*put)(struct driver *d, const struct vtrace_code *code);
	const struct vtrace_code *(*get)(const struct driver *d, uint32_t id);
	void (*every)(struct driver *d, uint32_t every);
	void (*stats)(const struct driver *d, struct driver_trace_stats *out);
};

/* ---- all of it ------------------------------------------------------------------------------- */

struct traces;

struct trace_config {
	struct driver *driver;
	const struct trace_driver *calls; /* NULL: driver.h's */
	struct reader
		*reader; /* reads the code of processes; NULL: use the code that traces bring */
	const char *helper_dir; /* where dcpid-translate is; NULL: nobody translates */
	struct values *values;	/* receiver of traces; NULL: none */
	size_t nr_profilers;
	struct step *step; /* the stepper, a further source of traces; or NULL */
	struct attribute *attribute;
	struct follow *follow;
	struct store *store;
	const struct exclude *exclude; /* processes whose traces are not stored; may be NULL */
	/* Above 0: traces are few enough to cost a small part of so many CPUs. They begin with one
	 * in @every samples. */
	uint32_t nr_cpus, every;
	bool log_unknown; /* each trace in no image goes to the log too */
};

int trace_open(const struct trace_config *config, struct traces **out, struct base_err *err);
void trace_close(struct traces *t);

/* A trace, at its place in the order of time among counts and load events. */
void trace_take(struct traces *t, const struct insn_trace *w, const uint64_t *words);
/* Traces of single steps that have come (step.h): taken when all before them was. They give values
 * and no moves, as they begin more often in what runs longer between two system calls. */
void trace_step_turn(struct traces *t);
/* One in so many samples gets a trace now; of what is chosen here, at 1000 samples a second. */
uint32_t trace_every(const struct traces *t);
/* Traces that wait. */
extern const struct attribute_later trace_later;
/* @image will never be on disk, and what is in it since it was is dropped: its traces and values
 * are no more stored. */
void trace_given_up(struct traces *t, struct image *image);
/* @from became part of @to, at the offsets that @map gives: what is still to come of it is there.
 */
void trace_moved(struct traces *t, const struct image *from, const struct wire_replaces *map,
		 struct image *to);
/* Lives of processes have ended (follow->ends): what these had mapped is still known. */
void trace_take_ends(struct traces *t);
/* Since @time_ns any life may have ended without a word. @t may be NULL. */
void trace_events_lost(struct traces *t, uint64_t time_ns);
/*
 * Translate what is missing, in a share of the time that is small but at the start. True: there was
 * so much that more may come soon.
 */
bool trace_serve(struct traces *t);
/* Send what waits to be sent, take what has come. Negative: a failure of values_receive. */
int trace_values_turn(struct traces *t);
/* At the end: wait for what is still to come, a second at most. */
void trace_values_finish(struct traces *t);
/* False: no values are wanted. */
bool trace_values_stats_get(const struct traces *t, struct trace_values_stats *out,
			    size_t *nr_waiting);
/* The driver's part included; @stepped: the account of traces of single steps, which has none. */
void trace_stats_get(const struct traces *t, bool stepped, struct trace_stats *out);
static inline uint64_t trace_lost(const struct trace_stats *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < TRACE_NR_LOSSES; i++)
		sum += s->lost[i];
	return sum;
}
/* For the rest of its numbers. */
void trace_driver_stats_get(const struct traces *t, struct driver_trace_stats *out);

#endif
