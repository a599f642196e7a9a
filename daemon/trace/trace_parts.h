/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of windows.h. */
#ifndef DCPI_DAEMON_WINDOWS_INTERNAL_H
#define DCPI_DAEMON_WINDOWS_INTERNAL_H

#include "step.h"
#include "values.h"
#include "trace.h"

/* A window that waits, with all that is needed to go on. */
struct windows_pending {
	struct process *p;
	struct vtrace_window w;
	uint64_t number;
	uint64_t *words;   /* its own, where values are wanted; or NULL */
	uint64_t until_ns; /* base_now_ns up to which it waits for its registry; 0: not asked yet */
	uint64_t news;	   /* dyn_news when its places were looked up last; 0: they were not */
	bool unsettled;	   /* see struct attrib */
	struct windows_past *past; /* a reference, once the process's life is over; or NULL */
	size_t nr;
	struct windows_step steps[WINDOWS_STEPS];
};

/* What a process was served of the places of a second. */
struct windows_share {
	uint64_t second_ns;
	uint32_t tgid;
	unsigned int nr_places;
};

/* A place that what was translated leads to. */
struct windows_ahead {
	uint64_t pc;
	uint32_t tgid;
};

enum { WINDOWS_NR_SHARES = 256, WINDOWS_NR_AHEAD = 1024, WINDOWS_NR_LOOKED = 8192 };

/* Of what code blocks were put. */
struct windows_code {
	struct base_map known; /* by struct vtrace_place */
	struct windows_share shares[WINDOWS_NR_SHARES];
	uint64_t missed;    /* windows that met what nobody had translated, up to the last turn */
	bool busy;	    /* there were many of them in that */
	uint64_t budget_ns; /* CPU time that may be spent on translating now */
	uint64_t refilled_ns;
	uint64_t until_ns; /* base_now_ns at which this turn of it is over */
	uint64_t full_ns;  /* the driver had no room then; 0 */
	struct windows_ahead ahead[WINDOWS_NR_AHEAD]; /* to be looked at */
	size_t nr_ahead;
	uint64_t looked[WINDOWS_NR_LOOKED]; /* hashes of processes' such places */
	uint32_t fetched_tgid;
	uint64_t fetched_base;
	size_t fetched_len; /* 0: nothing is in code[] */
	uint8_t code[TRANSLATOR_CODE];
};

/* A window whose values are wanted, where its blocks are. */
struct windows_ticket {
	struct windows_ticket *next; /* to be sent */
	uint64_t *words;	     /* until it was sent */
	struct vtrace_window w;
	struct values_owner *owner; /* a reference, or NULL: nobody's */
	bool over;		    /* its process has ended, or runs another program … */
	struct windows_past *past;  /* … which had this; a reference, or NULL */
	uint32_t nr_answers;	    /* of profilers */
	size_t nr;
	struct windows_step steps[]; /* with references */
};

struct windows_values {
	struct values *client; /* NULL: nobody wants values */
	size_t nr_profilers;
	struct windows_ticket *first, *last; /* to be sent */
	size_t nr_queued;
	unsigned int thinned; /* times since nothing was queued: one of 2^thinned is taken */
	uint64_t random;      /* of base_random64 */
	struct base_map sent; /* struct windows_ticket by number, not yet answered by all */
	size_t nr_sent;
	uint64_t next_ticket;
	struct base_map owners; /* struct values_owner by tgid: of lives that go on */
	struct windows_values_stats stats;
};

/* A window of single steps, for which its time has not come. */
struct windows_early {
	struct windows_early *next;
	struct vtrace_window w;
	uint64_t words[];
};

struct windows_stepped {
	struct windows_stats stats;
	struct windows_early *first, *last; /* in the order of time */
	size_t nr;
};

struct windows {
	struct windows_config config;
	const struct windows_driver *calls;
	struct translator *translator;
	struct windows_stats stats; /* the daemon's part */
	uint64_t number;	    /* of the next window */
	uint64_t unsettled_ns;	    /* the first of known_ns of those that are; UINT64_MAX */
	struct windows_pending **waiting;
	size_t nr_waiting, cap_waiting;
	struct windows_code code;
	struct windows_values values;
	struct windows_stepped stepped;
};

/* The block of a word. */
const struct vtrace_code *windows_block(void *ctx, uint32_t id);

/* place.c */

/* The mappings of @p (NULL: the kernel's code) say where the blocks of @w are; what they do not say
 * stays OPEN. */
void trace_place(const struct windows_config *c, struct process *p, const struct vtrace_window *w,
		 struct windows_step *steps, size_t nr);
/* The registries of its process say it. False: a later poll may; not where @last. */
bool trace_place_dynamic(const struct windows_config *c, const struct windows_pending *k,
			 struct windows_step *s, bool last);
/* It was, by what /proc listed and no event up to then has contradicted. */
void windows_place_listed(const struct windows_config *c, struct windows_pending *k);
/* It is older than the reading of /proc that its process's mappings come from, or waits for one. */
bool trace_is_unsettled(const struct windows_config *c, const struct process *p,
			const struct vtrace_window *w);
/* @s is in @image (may be NULL) from now on, as far as is known. */
void trace_step_put(struct windows_step *s, struct image *image);

/* stepped.c */

static inline bool windows_is_stepped(const struct vtrace_window *w)
{
	return w->has & VTRACE_WINDOW_STEPPED;
}

/* Where @w is accounted for. */
static inline struct windows_stats *windows_account(struct windows *t,
						    const struct vtrace_window *w)
{
	return windows_is_stepped(w) ? &t->stepped.stats : &t->stats;
}

/* The next one whose time is up to @time_ns, to be freed by the caller; or NULL. */
struct windows_early *windows_stepped_next(struct windows *t, uint64_t time_ns);
void windows_stepped_release(struct windows_stepped *s);

/* code.c */

void windows_code_release(struct windows_code *c);

/* past.c */

/* A life of a process that is over, while windows of it wait or values of it are to come. */
struct windows_past {
	uint32_t refs;
	struct values_owner *owner; /* a reference, or NULL: nobody */
	struct process p; /* its mappings alone; none where other code than the files' may have
			     stood in them */
};

/* Of @p, which ends; one reference. NULL: no memory. */
struct windows_past *windows_past_new(const struct process *p, struct values_owner *owner);
struct windows_past *windows_past_get(struct windows_past *past);
void windows_past_put(struct windows_past *past);
/* What the process of @k has mapped, or had when it ended; NULL: that is not known. */
const struct process *windows_mapped_by(const struct windows *t, const struct windows_ticket *k);

/* values.c */

void windows_values_release(struct windows_values *v);
/* All blocks of @k are placed or lost: its values are wanted. */
void windows_values_add(struct windows *t, const struct windows_pending *k, const uint64_t *words);
/* Before its window comes in the order of time: a short life may be over then. */
void windows_values_met(struct windows *t, const struct vtrace_window *w);

#endif
