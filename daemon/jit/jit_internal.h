/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dynamic-code tracker from within.
 *
 * A registry (registry.c) is one memfd of one process life. It has facilities, each of which is
 * one pseudo-image: a list of runs (vaddr -> image offset) and the records that go into its file
 * (facility.c). Which routine lived at an address, and when, is one question for the whole
 * registry: its changes begin and end lifetimes (lifetime.c), in which registry.c looks. A client
 * is what a process holds: its own registry, if it has one (intake.c takes it over), and what it
 * inherited by fork.
 *
 * Calls go one way. jit.c alone tells the kinds apart: registries are read by registry.c, what
 * others wrote by source.c. What they read goes through apply.c and lifetime.c into facilities and
 * lifetimes, which write.c writes; as part of which image is for merge.c to say.
 */
#ifndef DCPI_DYN_INTERNAL_H
#define DCPI_DYN_INTERNAL_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "jit.h"
#include "routine.h"
#include "spool.h"
#include "bound.h"
#include "budget.h"
#include "interval.h"
#include "foreign.h"
#include "pseudoimg.h"
#include "registry.h"

/* ---- facilities (facility.c) ----------------------------------------------------------------- */

/* Image offsets end here; ranges whose sum is larger are lies. */
#define DYN_IMAGE_MAX (1ull << 60)
/* Bytes of range contents kept for one registry, and for all. */
#define DYN_REGISTRY_BYTES_MAX (256ull << 20)
#define DYN_ALL_BYTES_MAX      (2048ull << 20)
#define DYN_REPLACES_MAX       16384
/* The bound of one registry's routines: runs stay as long as it does. */
#define DYN_RUNS_MAX (1u << 19)
/* Routines of one registry, and of all, named or not: with 60 bytes each, 256 MiB and 1 GiB. */
#define DYN_ROUTINES_MAX     (1u << 22)
#define DYN_ALL_ROUTINES_MAX (1u << 24)

struct dyn_registry;

/* Pages of the ELF's addresses and the image offset of the first one. */
struct dyn_run {
	struct interval_node node;
	uint64_t img_off;
	struct dyn_run *next; /* in order of registration */
};

/* A declared range. */
struct dyn_range {
	struct wire_range range;
	bool known;
	bool read;		  /* its contents were read at least once */
	bool limited;		  /* contents left out for lack of room (counted once) */
	bool refused;		  /* changed DST (counted once) */
	uint64_t lo;		  /* samples up to here are from before it was declared */
	uint64_t hi;		  /* samples from here on are not */
	struct base_buf contents; /* from its base on, as last read, without trailing zeros */
	struct interval_tree
		patches;  /* struct dyn_patch: pages of code changed after it was read */
	uint64_t seen_ns; /* when its contents began to be read last */
};

struct dyn_facility {
	struct dyn_registry *registry;
	uint32_t index, machine;
	char name[WIRE_FACILITY_NAME + 1]; /* as given, for the image */
	uint32_t name_len;
	char *stem; /* file name in <db>/dyn */
	struct image *image;

	struct dyn_run *first_run, *last_run;
	struct interval_tree pages;   /* struct dyn_run */
	const struct dyn_run **hints; /* the run found last, for each page; NULL: not yet made */
	uint64_t next_off;
	uint32_t next_private; /* in units of 16 bytes, + 1 */
	uint32_t unnamed;      /* the same of where samples of nameless routines are; 0: none yet */
	uint32_t nr_routines;  /* kept, of the daemon's figure */

	bool changed;	     /* since all of it was written */
	bool owned_changed;  /* declared ranges or their contents, since the image was written */
	uint32_t nr_refused; /* times that the helper would not make an image of it */
	uint32_t nr_bad; /* bad records that it is made of, as the helper said last and at most */
	bool apart;	 /* it could not be folded: it has an image of its own, as while it lived */
	bool merged;	 /* its image is part of another, or what others are folded onto */
	bool joining;	 /* it is being made part of another, or of the image that others join */
	struct dyn_facility *next_ended; /* the list of dyn_merge, or of those that join */
	struct dyn_task *writing;	 /* the file is being written (write.c); or NULL */
	uint32_t flush_written; /* its registry's flush_ready that all of it was written for */
	struct base_id *replaced;
	size_t nr_replaced, cap_replaced;
};

int dyn_facility_new(struct dyn_registry *reg, const struct wire_facility_rec *rec,
		     struct dyn_facility **out);
void dyn_facility_free(struct dyn_facility *f);
/* Give image offsets to the pages of [elf, elf + len). 0, -ENOMEM, -DCPI_ELIMIT. */
int dyn_facility_cover(struct dyn_facility *f, uint64_t elf, uint64_t len);
/*
 * A place in the ELF: for who lives its own address where no other routine of the facility has it,
 * else (where @room) room of its own. 0, also where it has none now; or negative.
 */
int dyn_facility_place(struct dyn_facility *f, uint32_t index, bool space);
/* Where @r, which has a place, stands: in step with its true address as far as a 16-byte block
 * goes. */
static inline uint64_t dyn_facility_elf(const struct dyn_routine *r)
{
	return r->place == DYN_PLACE_OWN ? r->addr
					 : PSEUDOIMG_MODULE + (r->place - 1) * 16ull + r->addr % 16;
}
/* The kept record of a routine, until the next call; NULL where it cannot be read. */
const struct wire_routine *dyn_facility_record(const struct dyn_facility *f,
					       const struct dyn_routine *r);
/* Image offset of an ELF address, or -ENOENT. */
int dyn_facility_offset(const struct dyn_facility *f, uint64_t elf, uint64_t *off);
/* The job of the pseudo-image, written to @fd: what must be kept, and (@full) all that lives. 0 or
 * -errno. */
int dyn_facility_job(const struct dyn_facility *f, bool full, int fd);
/* It is on disk. */
void dyn_facility_written(struct dyn_facility *f, bool full);
/* There is something to write, or (not @full) something that must not be lost. */
bool dyn_facility_is_behind(const struct dyn_facility *f, bool full);
/* Forget routines in a registry's list that are not needed any more. */
void dyn_facility_drop_unused(struct dyn_registry *reg);

/* ---- folding of what has ended (merge.c) ----------------------------------------------------- */

struct dyn_merge; /* processes of one executable, facility, uid, machine and label */

/*
 * Its process has ended and its samples are resolved: its image is to be part of another one. Not
 * where processes are kept apart, where its application owns ranges, or where that was tried and
 * failed.
 */
bool dyn_merge_wants(const struct dyn_facility *f);
/* A life that is over, is on disk, and that nobody looks up is forgotten. */
void dyn_merge_settle(struct dyn_registry *reg);

/* ---- changes that were not read (lifetime.c) ------------------------------------------------- */

#define DYN_GAPS_MAX 4096

struct dyn_gap {
	uint64_t from, to; /* seq, both missing */
};

struct dyn_gaps {
	struct dyn_gap *items; /* ascending, disjoint */
	size_t nr, cap;
};

/* Above all that were missing before. Where there is no room more than these are missing. -ENOMEM.
 */
int dyn_gap_add(struct dyn_gaps *g, uint64_t from, uint64_t to);
/* The lowest and the highest missing one in [from, to], or 0. */
/* The first that ends at @seq or above. */
static inline size_t dyn_gap_from(const struct dyn_gaps *g, uint64_t seq)
{
	return BASE_LOWER_BOUND(g->items, g->nr, to, seq);
}
static inline uint64_t dyn_gap_first(const struct dyn_gaps *g, uint64_t from, uint64_t to)
{
	size_t i = dyn_gap_from(g, from);
	uint64_t seq;

	if (from > to || i == g->nr || g->items[i].from > to)
		return 0;
	seq = g->items[i].from;
	return seq > from ? seq : from;
}
uint64_t dyn_gap_last(const struct dyn_gaps *g, uint64_t from, uint64_t to);
static inline void dyn_gap_release(struct dyn_gaps *g)
{
	free(g->items);
	*g = (struct dyn_gaps){ 0 };
}

/* ---- lifetimes (lifetime.c) ------------------------------------------------------------------ */

/*
 * A change of a registry: its number, and when it came. Registries are read now and then, so that a
 * change is known to lie in a trace: after @lo (the reading before, which did not show it) and up
 * to @hi. Times are CLOCK_MONOTONIC.
 */
struct dyn_interval {
	uint64_t seq, lo, hi;
};

struct dyn_poll {
	uint64_t lo, hi;
};

/* A lifetime of the past. */
struct dyn_past {
	uint32_t routine;
	uint32_t len; /* length of the routine */
	uint64_t addr;
	bool reuses;
	uint64_t seq;		     /* number of its registration */
	uint64_t until_first, until; /* it ended with a change from the one to the other */
	uint64_t order;		     /* ascending, at least until */
	uint64_t lo;		     /* it began after */
	uint64_t whole_ns;	     /* until then it was still there, if it was the only one */
	uint64_t until_hi;	     /* from then on it was gone for certain; ascending */
};

/* A lifetime that was gone so long before the last samples that came is forgotten. */
#define DYN_PAST_NS  (10 * 1000000000ull)
#define DYN_PAST_MAX 131072 /* 13,000 a second; 11 MiB */
/* Times of changes: where each has its own there is one for each change; 4 MiB. */
#define DYN_POLLS_MAX 262144
/* Steps that the records of one answer may waste. */
#define DYN_MISSES_MAX 1000000u

struct dyn_lifetimes {
	struct dyn_routines routines;
	uint32_t dead[WIRE_NR_FACILITIES]; /* trees of those that keep their own address */
	struct dyn_past *past;
	size_t nr_past, cap_past;
	struct dyn_past_bucket *past_buckets; /* past.c */
	size_t nr_past_buckets;
	uint64_t past_shifts; /* sizes of blocks that there are */
	uint32_t *unused;     /* routines that may be needed no more */
	size_t nr_unused, cap_unused;
	struct dyn_poll *polls;
	size_t nr_polls, cap_polls;
	uint32_t first_poll;
	uint64_t pruned_ns;    /* the readings before the first one ended up to here */
	uint64_t early_ns;     /* the same of those that had to go though they may be asked for */
	uint64_t forgotten_ns; /* lifetimes that ended up to here may be missing from past */
	uint64_t forgotten_seq;
	uint64_t *forks; /* times of forks whose children still live, ascending */
	size_t nr_forks, cap_forks;
	bool reused;	/* some address may have had more than one lifetime */
	bool has_holes; /* some routine ever was one */

	uint64_t last_seq; /* all changes up to here were read or missed */
	struct dyn_gaps gaps;
	uint64_t nr_missed; /* ever */
	bool wants_list;   /* a list would tell what became of those that lived, or of their code */
	uint64_t codeless; /* the first change since the last list that came without code, or 0 */
	uint64_t missed_lo_ns;	 /* it was not missed yet */
	struct dyn_poll reading; /* what is told now happened after .lo, and before .hi */
	uint32_t nr_misses;	 /* at most DYN_MISSES_MAX */

	uint8_t list;	 /* number of the next list */
	bool list_ended; /* one was told to its end, and not yet acted upon */
	uint64_t list_before, list_after, nr_unlisted;
	uint64_t nr_lost_listed; /* which a list told, but for whom there was no room */
	uint64_t confirmed;	 /* routines of the last list lived then */
	uint64_t complete;	 /* no other routine lived then */
};

/* One more of the past (past.c). 0 or -ENOMEM. */
int dyn_past_add(struct dyn_lifetimes *t, const struct dyn_past *p);
/* Some were taken out, or moved. */
void dyn_past_index(struct dyn_lifetimes *t);
void dyn_past_release(struct dyn_lifetimes *t);
/* A past routine stood in [addr, addr + len), or may have: after DYN_MISSES_MAX steps. */
bool dyn_past_overlaps(struct dyn_lifetimes *t, uint64_t addr, uint64_t len);
/*
 * Past routines that stood at @addr, from past[from] on, some twice: of each size of blocks the
 * oldest first. Zero-initialize the rest.
 */
struct dyn_past_walk {
	uint64_t addr;
	size_t from;
	const struct dyn_past *p;
	size_t i;
	unsigned int shift, next_shift;
};
bool dyn_past_next(const struct dyn_lifetimes *t, struct dyn_past_walk *w);
/* The next one is of another size: of this one it has all that it wants. */
static inline void dyn_past_skip(struct dyn_past_walk *w)
{
	w->i = SIZE_MAX;
}

/* Numbers of polls wrap. */
static inline bool dyn_poll_is_pruned(const struct dyn_lifetimes *t, uint32_t number)
{
	return number - t->first_poll >= t->nr_polls;
}
/*
 * Polls of long ago are kept as one: no sample asks for times before its end, but for those pruned
 * early.
 */
static inline struct dyn_poll dyn_poll_get(const struct dyn_lifetimes *t, uint32_t number)
{
	if (dyn_poll_is_pruned(t, number))
		return (struct dyn_poll){ .lo = t->early_ns, .hi = t->pruned_ns };
	return t->polls[number - t->first_poll];
}
/* Up to this change @r was seen alive. */
static inline uint64_t dyn_alive_until(const struct dyn_lifetimes *t, const struct dyn_routine *r)
{
	bool listed = r->list == t->list || r->list == (uint8_t)(t->list - 1);
	uint64_t seq = listed ? t->confirmed : 0;

	return seq > r->seq ? seq : r->seq;
}
/* The routine that lives at @addr and was registered or moved there by change @handle, or 0. */
static inline uint32_t dyn_lifetime_handle(const struct dyn_lifetimes *t, uint64_t addr,
					   uint64_t handle)
{
	uint32_t i = dyn_routine_living(&t->routines, addr);
	const struct dyn_routine *r = i ? dyn_routine_get(&t->routines, i) : NULL;

	return r && r->addr == addr && r->seq == handle ? i : 0;
}

/* Change @m->seq is told, or (not @told) was made: those before that no record told are missed. */
void dyn_lifetime_reached(struct dyn_lifetimes *t, const struct dyn_interval *m, bool announced);
/*
 * Routine @index lives from now on; what it overlaps is gone. @flags: DYN_REUSES, DYN_LISTED. 0 or
 * -ENOMEM.
 */
int dyn_lifetime_enter(struct dyn_lifetimes *t, uint32_t index, unsigned int flags,
		       const struct dyn_interval *m);
/* Once the last change of a list that has ended was reached, routines that were not in it are gone.
 */
void dyn_lifetime_sweep(struct dyn_lifetimes *t, const struct dyn_interval *m);
/* How many of the forks were up to @time_ns. */
static inline size_t dyn_first_fork(const struct dyn_lifetimes *t, uint64_t time_ns)
{
	return BASE_BOUND(i, t->nr_forks, t->forks[i] <= time_ns);
}
/* A child that was forked then has what lived then: it is not forgotten until the child is gone
 * (jit.c). */
int dyn_lifetime_fork_add(struct dyn_lifetimes *t, uint64_t fork_ns);
/* No sample will ask for long before @settled_ns. */
void dyn_lifetime_forget(struct dyn_lifetimes *t, uint64_t settled_ns);

/* ---- registries (registry.c) ----------------------------------------------------------------- */

/* Sources that tell of code. An earlier one's answer for an address holds. */
enum dyn_kind {
	DYN_REGISTRY, /* libdbgdyn */
	DYN_JITDUMP,
	DYN_GDB,
	DYN_PERFMAP,
	DYN_UNNAMED,   /* no source: pages that samples fell into */
	DYN_FUNCTIONS, /* functions that an interpreter runs, at addresses that no code has */
};

struct dyn_registry {
	struct dyn *dyn;
	struct dyn_registry *next;
	enum dyn_kind kind;
	uint32_t refs; /* clients */
	int fd;	       /* -1: recorded, or nothing (source.c) */
	uint64_t dev, ino;
	int32_t pid;
	uint32_t uid;
	uint64_t start_time_ns; /* start of the process, since boot */
	/* registry_process_life, of a program that has the registry mapped; 0: no memory is read */
	uint64_t life;
	uint64_t created_s; /* UTC */
	char exe[256];
	bool attached;
	bool counted;	   /* among the figures' clients */
	bool over;	   /* the process life is over */
	bool refused;	   /* it lied about its header, or its user is another: read no more */
	bool no_words;	   /* the sampler reads none of its words: they are not where it says */
	bool unresponsive; /* the memory of one of its heirs did not answer (dyn_inherit) */
	bool skipped;	   /* it was not looked at: its user has had the turn */
	bool starved;	   /* it was not read the last time, for its user's budget is spent */

	struct wire_registry h; /* header as last read; only the library's line is looked at */
	bool dirty;		/* the header moved, and was not yet followed */
	struct registry_place place;
	uint64_t made_ns;     /* not before it was made; 0: not known */
	uint64_t served_ns;   /* what it told up to then is written (dyn_begin_flush) */
	uint64_t read_ns;     /* before the last reading began; 0: never */
	uint32_t flush_noted; /* flush_wanted when flush_seq was the last change */
	uint64_t flush_seq, flush_until_ns;
	uint32_t flush_ready;	 /* flush_wanted before everything was read last */
	int flush_error;	 /* error of that reading, or 0 */
	uint32_t flush_answered; /* as told to the library */
	uint64_t nr_bad;
	uint64_t nr_changes;		   /* a lookup may say something else since (dyn_news) */
	uint64_t budget_ns;		   /* one reading begins no request after so long */
	uint64_t pause_until_ns, pause_ns; /* after its reading took too long */

	/* State of files (source.c). */
	struct foreign_place file;
	struct foreign_seen seen; /* the file, when it was read last */
	uint64_t announced_ns;	  /* stamp of the latest change told */
	uint64_t waiting_ns;	  /* samples from then on are not looked up for good */
	int root;	   /* root folder of a process whose perf map was not found yet, or -1 */
	int32_t ns_pid;	   /* its number there */
	uint64_t since_ns; /* CLOCK_REALTIME of its beginning: older maps are not its */
	uint64_t look_ns, look_pause_ns;
	struct dyn_gdb *gdb;			  /* state of kind DYN_GDB (source.c) */
	void (*gdb_release)(struct dyn_gdb *gdb); /* frees it: source.c, which calls us */
	uint64_t list_ns;			  /* its list is read then at the soonest */

	/* State of kind DYN_FUNCTIONS (function.c). */
	struct base_map functions; /* their addresses, by key */
	uint32_t nr_functions;
	uint64_t functions_len; /* addresses that were given */

	struct dyn_facility *facilities[WIRE_NR_FACILITIES];
	struct dyn_range *ranges; /* indexed by slot */
	size_t nr_ranges, cap_ranges;
	size_t next_range; /* to be read first: not always the same when time is short */
	struct dyn_lifetimes lifetimes;
	struct dyn_store store; /* records of its routines */
	uint32_t nr_patches;	/* versions of pages, of DYN_PATCHES_MAX */
	uint32_t nr_runs;	/* runs of pages, at most DYN_RUNS_MAX */
	/* Room for routines, of DYN_ROUTINES_MAX: used again, never given back. */
	uint32_t nr_slots;
	bool crowded;	    /* there was no more (said once) */
	uint64_t low, high; /* hold the pages of all facilities that are not PSEUDOIMG_MODULE */
	uint64_t bytes;	    /* contents of ranges, at most DYN_REGISTRY_BYTES_MAX */
};

/* Shared by what holds the registry of one life; counted, see struct process. */
#define DYN_SOURCES_MAX 6
struct dyn_client {
	uint32_t refs;
	struct dyn_registry *own;		       /* or NULL */
	struct dyn_registry *sources[DYN_SOURCES_MAX]; /* other kinds, ascending */
	size_t nr_sources;
	struct dyn_client *inherited; /* or NULL: looked up as of the fork */
	uint64_t fork_ns;
	uint64_t fork_seq; /* the parent's last change then; known where has_seq */
	bool has_seq;
};

/*
 * A registry for @p, in the list of @d; of kind DYN_REGISTRY its header is read. @fd is taken over,
 * also on failure, where *@out is NULL.
 */
int dyn_registry_new(struct dyn *d, const struct process *p, enum dyn_kind kind, int fd,
		     struct dyn_registry **out);
void dyn_registry_free(struct dyn_registry *reg);
/* Look at the header: dirty, flush wanted. 0 or negative (then it is refused). */
int dyn_registry_peek(struct dyn_registry *reg);
/* Read what is new; owned ranges that were never read, or all of them. True: there was something.
 */
bool dyn_registry_read(struct dyn_registry *reg, bool ranges);
/* Answer a flush request. */
bool dyn_registry_wants_flush(const struct dyn_registry *reg);
/* Tell the client: its registry's header gets the value. 0 or -errno. */
static inline int dyn_registry_put(const struct dyn_registry *reg, size_t off, const void *value,
				   size_t len)
{
	ssize_t n = pwrite(reg->fd, value, len, (off_t)off);

	return n < 0 ? -errno : n == (ssize_t)len ? 0 : -EIO;
}
#define DYN_PUT(reg, field, value)                                                                 \
	dyn_registry_put((reg), offsetof(struct wire_registry, field), (value), sizeof(*(value)))
/* Not all of what it wants flushed was read yet. */
bool dyn_registry_is_catching_up(const struct dyn_registry *reg);
/* To read it again at once makes no sense: its user's budget is spent, or it did not answer. */
static inline bool dyn_registry_is_put_off(const struct dyn_registry *reg)
{
	return reg->starved || base_now_ns() < reg->pause_until_ns;
}
/* Its process is over, and no other has its code. */
static inline bool dyn_registry_has_ended(const struct dyn_registry *reg)
{
	return reg->over && !reg->refs;
}
/* Nothing more is read of it: what is open for that is let go. */
void dyn_registry_detach(struct dyn_registry *reg);
/* @first and those behind it, which had to wait, are the first ones the next time. NULL: none had
 * to. */
void dyn_begin_with(struct dyn *d, struct dyn_registry *first);
/* A count that a client says: no more than makes sense. */
static inline uint64_t dyn_believed(uint64_t nr)
{
	return nr < 1ull << 32 ? nr : 1ull << 32;
}
/* A lookup by time, or, where @by_seq, as of change @seq. */
struct dyn_ask {
	uint64_t addr, first_ns, time_ns, seq;
	uint64_t mapped_ns; /* as dyn_query has it */
	bool by_seq;
	bool forked;	  /* as of a fork: who came after that is not meant */
	bool awaits_next; /* a vacant address is that of the routine which a later poll may tell */
};
/* As dyn_lookup; @sure: what DYN_FOUND says needs nobody else's word. */
enum dyn_where dyn_registry_lookup(struct dyn_registry *reg, const struct dyn_ask *ask,
				   struct image **image, uint64_t *off, bool *sure);
/*
 * Find the routine that lived at @addr as of change @seq, which is not above last_seq: DYN_FOUND,
 * DYN_NONE or DYN_GENERATION. @sure: one of this registry had come there by then; else an inherited
 * one may have stood there.
 */
enum dyn_where dyn_lifetime_find_seq(const struct dyn_lifetimes *t, uint64_t addr, uint64_t seq,
				     uint32_t *index, bool *sure);
/*
 * Find it by time: DYN_FOUND: the one lifetime of the interval, all the time; @sure: certainly, not
 * only as far as this registry tells. DYN_NONE: no lifetime at any time of it. DYN_REUSED.
 */
enum dyn_where dyn_lifetime_find(const struct dyn_lifetimes *t, uint64_t addr, uint64_t first_ns,
				 uint64_t time_ns, uint32_t *index, bool *sure);
/* When it was known at the latest that @index stands where it does; 0: long ago. */
uint64_t dyn_lifetime_announced_ns(const struct dyn_lifetimes *t, uint32_t index);

/* No more changes than these come between two readings. */
#define DYN_AHEAD_MAX (1u << 24)
/*
 * The change that word @generation of a sample means; it may not have been read yet. A word holds
 * the low half of a number. Those just above what was read are new; else it is the nearest one
 * below.
 */
static inline uint64_t dyn_registry_seq(const struct dyn_registry *reg, uint32_t generation)
{
	uint64_t last = reg->lifetimes.last_seq;
	uint32_t ahead = generation - (uint32_t)last;

	if (ahead && ahead < DYN_AHEAD_MAX)
		return last + ahead;
	return generation > last ? generation : last - (uint32_t)((uint32_t)last - generation);
}
/* ---- what tells of code without libdbgdyn (source.c) ----------------------------------------- */

/* The client of @p, made where it has none yet. NULL: no memory. */
struct dyn_client *dyn_client_of(struct process *p);
struct dyn_registry *dyn_source_find(const struct dyn_client *c, enum dyn_kind kind);
/* One more for @p, which is a client; of kind DYN_GDB it has no facility yet. @fd is taken over,
 * also on failure. 0 or negative. */
int dyn_source_new(struct dyn *d, struct process *p, enum dyn_kind kind, int fd,
		   struct dyn_registry **out);
/* When it is looked for, or read, again; the pause grows. */
void dyn_source_look_later(struct dyn_registry *reg);
/* Read what is new; @all: at whatever cost. True: there was something. */
bool dyn_source_read(struct dyn_registry *reg, bool all);

/* ---- changes (lifetime.c, apply.c) ----------------------------------------------------------- */

/* ROUTINE, OBJECT, RETIRE, MOVE, LISTED (lifetime.c). 0 or negative. */
int dyn_change_apply(struct dyn_registry *reg, const struct wire_head *rec, struct dyn_interval *m);
/* Normalized records, read in the trace (lo, hi]. Returns how many could not be used. */
int dyn_apply(struct dyn_registry *reg, const void *data, size_t len, uint64_t lo, uint64_t hi);
/*
 * Contents of one range (WIRE_BYTES records), read within @when. What was read first stays: a page
 * of code that was changed is told apart from then on, changed DST is refused; either counts as
 * bad. 0, -ENOMEM, -DCPI_ELIMIT.
 */
int dyn_apply_contents(struct dyn_registry *reg, struct dyn_range *range, const void *data,
		       size_t len, const struct dyn_poll *when);

/* ---- code changed in an owned range (apply.c) ------------------------------------------------ */

/* Versions of pages of one registry; what changes more often is not told apart. */
#define DYN_PATCHES_MAX 4096

/* Where in the ELF that stands which stood there then: DYN_FOUND or DYN_REUSED. */
enum dyn_where dyn_patch_find(const struct dyn_range *range, const struct dyn_ask *ask,
			      uint64_t *elf);
/* Call @fn for each contents that has a place of its own. Ends with what @fn returns, unless 0. */
int dyn_patch_each(const struct dyn_range *range,
		   int (*fn)(void *ctx, uint64_t vaddr, uint64_t elf, uint64_t len,
			     const struct base_buf *bytes),
		   void *ctx);
void dyn_patch_release(struct dyn_range *range);

/* ---- hand-over and doorbell (intake.c) ------------------------------------------------------- */

#define DYN_NR_WAITING 64
/* Registries whose users have had their turn. */
#define DYN_NR_HANDED 1024
/* One of which the reader did not tell whose it is is asked about again after that. */
#define DYN_HANDED_PAUSE_NS 1000000000ull

struct dyn_intake {
	int epoll, listener, queue;
	int spare; /* given up for a moment when there are no more descriptors */
	bool own_socket;
	char socket_path[108], queue_name[64];
	size_t queue_msg_len;
	struct {
		int fd;
		uint32_t uid;
		uint64_t since_ns;
	} waiting[DYN_NR_WAITING]; /* connected, nothing said yet */
	size_t nr_waiting;
	uint64_t nr_refused;
};

int dyn_intake_open(struct dyn_intake *in, const char *run_dir, const char *queue_name,
		    struct base_err *err);
void dyn_intake_close(struct dyn_intake *in);
/* No client has anything to say, and none is waited for. */
bool dyn_intake_is_quiet(const struct dyn_intake *in);
/* True if the doorbell rang. */
bool dyn_intake_drain_queue(struct dyn_intake *in);
/* The process that handed over a registry, and its user then. */
struct dyn_peer {
	int32_t pid;
	uint32_t uid;
	int pidfd; /* the caller's to close; -1: it has ended */
};
/*
 * The next registry handed over: its descriptor (sealed memfd) and its process. -EAGAIN: no more
 * for now. Else one connection was of no use, which the caller counts: -ENODATA, a doorbell;
 * -EINPROGRESS, it said nothing yet, and waits; else it was refused (counted).
 */
int dyn_intake_next(struct dyn_intake *in, struct dyn_peer *peer);
/* Closes it, and registries that wait for a turn. */
void dyn_intake_release(struct dyn *d);

/* ---- all of it (jit.c) ----------------------------------------------------------------------- */

struct dyn {
	struct dyn_config config;
	char *host, *program;
	struct pseudoimg_helper helper;
	char boot[40]; /* boot id of this machine; empty for recorded streams */
	uint32_t id;   /* put into `attached`, not 0 */
	struct dyn_intake intake;
	struct dyn_handed {
		int fd;
		uint64_t dev, ino, made_ns;
		uint64_t again_ns; /* not before, for the reader did not answer; or 0 */
		bool found;	   /* a marker showed it, and no client passed it */
		struct dyn_peer peer;
	} handed[DYN_NR_HANDED]; /* wait for a turn */
	size_t nr_handed;
	struct dyn_registry *registries;
	struct dyn_merge *merges;
	struct dyn_task *tasks; /* files that are being written; or NULL */
	int wake_fd;		/* an eventfd: one of these is done; or -1 */
	uint64_t grace_until_ns;
	bool hasty;		   /* dyn_set_hasty */
	bool unread;		   /* some registries' users have had their turn */
	bool unwritten;		   /* the same of images */
	uint64_t flush_ns;	   /* dyn_begin_flush */
	const struct watch *watch; /* dyn_write_watched, while it runs */
	unsigned int nr_roots;	   /* descriptors of root folders, of DYN_ROOTS_MAX */
#define DYN_ROOTS_MAX 512
#define DYN_AGAIN_NS  (10 * 1000000000ull)
	uint64_t merge_after_ns; /* not before, but for a flush: the disk or memory failed */
	uint64_t bytes;		 /* contents of ranges, at most DYN_ALL_BYTES_MAX */
	uint32_t nr_slots;	 /* slots of routines, at most DYN_ALL_ROUTINES_MAX */
	struct dyn_spool spool;
	struct dyn_trace trace; /* state of dyn_facility_record */
	uint64_t settled_ns;	/* samples up to here have been looked up */
	bool full;		/* the database is over its quota: for users who have */
	uint64_t share;		/* so many bytes in it, or more */
	struct dyn_file *files; /* write.c */
	size_t nr_files, cap_files;
	struct dyn_stats stats;
	uint64_t bad_gone, dropped_gone, left_out_gone,
		missed_gone; /* counts of registries that are gone */
};

/* It tells of code: one client more, until it is gone. */
static inline void dyn_registry_count(struct dyn_registry *reg)
{
	reg->counted = true;
	reg->dyn->stats.clients++;
}

/* Bytes that its process may still keep. */
static inline uint64_t dyn_capacity_left(const struct dyn_registry *reg)
{
	uint64_t quota = reg->dyn->config.process_quota, used = reg->store.used + reg->bytes;

	if (!quota)
		return UINT64_MAX;
	return used < quota ? quota - used : 0;
}
/* Bytes of contents, to the limits of the registry and of the daemon. */
static inline void dyn_capacity_give_back(struct dyn_registry *reg, uint64_t len)
{
	reg->bytes -= len;
	reg->dyn->bytes -= len;
	budget_give_back(reg->dyn->config.budgets, reg->uid, BUDGET_CONTENTS, len);
}

/* In loops that take long, each round of which may wait for the disk. */
static inline void dyn_meanwhile(const struct dyn *d)
{
	if (d->config.meanwhile)
		d->config.meanwhile(d->config.meanwhile_ctx);
}

/* ---- files that were removed (write.c) ------------------------------------------------------- */

/* A file with samples, whose copy is to be kept if it is removed. */
struct dyn_file {
	struct image *image; /* a reference */
	/* Where a process has it mapped. */
	int32_t pid;
	uint32_t uid;
	uint64_t start, end;
	uint64_t age_s;		   /* of the file, at the last look; 0: not known */
	uint64_t next_ns, wait_ns; /* base_now_ns of the next look, and from the last one to it */
	bool kept;
};

/* Look at those that are due, and keep what was removed. */
void dyn_files_look(struct dyn *d);
/* As dyn_spare_images; copies that are gone are made again. */
void dyn_files_spare(struct dyn *d);
void dyn_files_release(struct dyn *d);

/* ---- what takes long (task.c) ---------------------------------------------------------------- */

/*
 * In haste each file is written in a thread, from a job that nothing changes any more: a few at a
 * time, and of them a few of one user. What has ended is taken by the next call that meets it.
 */
struct dyn_task {
	struct dyn_task *next;
	struct image_task *task;
	uint32_t uid;
	uint64_t begun_ns;
	void (*release)(struct dyn_task *t); /* of one that is not waited for any more */
};

/* False: there is no thread or no memory. */
bool dyn_task_begin(struct dyn *d, struct dyn_task *t, uint32_t uid, int (*fn)(void *arg),
		    void *arg);
/* Not in haste it is waited for. */
bool dyn_task_is_done(const struct dyn *d, const struct dyn_task *t);
int dyn_task_end(struct dyn *d, struct dyn_task *t);
/* @uid may begin none now. */
bool dyn_task_must_wait(const struct dyn *d, uint32_t uid);
/* Some have ended. */
bool dyn_tasks_await(const struct dyn *d);

/* ---- their images (write.c; images.h: any) --------------------------------------------------- */

/*
 * Write the facility's image if it is behind (see there); durable when it returns 0. -EAGAIN, in
 * haste: it is being written, and will be durable when a later call returns 0.
 */
int dyn_image_write(struct dyn_facility *f, bool full, struct base_err *err);
/* There is no place on disk for more of @uid's code (dyn_set_full). */
static inline bool dyn_is_full(const struct dyn *d, uint32_t uid)
{
	return d->full && (!d->config.budgets ||
			   budget_has(d->config.budgets, uid, BUDGET_IMAGES) >= d->share);
}
/* Profiles may hold the build-id that it has: the next image names that. 0 or -ENOMEM. */
int dyn_image_remember(struct dyn_facility *f);

#endif
