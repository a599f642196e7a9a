/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source "bpf" from within. A program counts in the interrupt of each sample (kernel/), in
 * a table of its CPU (count_table.h); each CPU has two, of which one is in use, the other read and
 * empty (source_linux.c). Load events come through the same tracking events as those of the
 * source "perf" (struct perf_sampler of perf.h), and counts are handed on among them by
 * the time of their last sample (counts.c).
 *
 * Horizon of a drain: the time read just before tables are exchanged. A program reads the clock
 * after it has chosen its table, or (the tick) puts its time off to since_ns (kernel/sample.h), so
 * no count of the new tables is older; and the exchange returns when no program is in the old ones
 * any more, and nobody is putting an older record into a ring. So all up to the horizon is there,
 * and is handed on; what is younger waits.
 */
#ifndef DCPI_BPF_INTERNAL_H
#define DCPI_BPF_INTERNAL_H

#include "bpf_blocks.h"
#include "bpf_maps.h"
#include "bpf_table.h"
#include "bpf_waits.h"
#include "kernel/sample.h"
#include "kernel/thread_names.h"
#include "bpf_source.h"
#include "perf.h"

/* ---- counts on their way (counts.c: no kernel needed) ---------------------------------------- */

struct bpf_counts {
	struct count_entry *entries;
	size_t nr, cap;
	struct base_sort_item *order; /* room for sorting twice as many as there are entries */
	size_t cap_order;
};

/*
 * Everything in @table, which is empty then; what it received and lost is added to @stats. Without
 * memory its counts become lost_read, as do those that the head tells of and no entry holds.
 */
void bpf_counts_take(struct bpf_counts *c, union count_bucket *table, const struct count_shape *s,
		     struct driver_stats *stats);
/*
 * All of them to @add, ascending by the time of their last sample; equal input in equal order. What
 * @add refuses (negative) becomes lost_read.
 */
void bpf_counts_hand(struct bpf_counts *c, int (*add)(void *ctx, const struct driver_count *count),
		     void *ctx, struct driver_stats *stats);
void bpf_counts_release(struct bpf_counts *c);

/* ---- tables (source_linux.c) ----------------------------------------------------------------- */

struct bpf_tables {
	struct sample_shared *shared; /* the one that programs read; not owned */
	struct count_shape shape;
	uint32_t stride, nr_elements; /* from one table to the next; of all */
	union count_bucket *all;      /* mapped */
	size_t nr_cpus;		      /* number of CPUs present at the open */
	int gate_fd, inner_fd;	      /* a map of maps to wait with, and what stands in it */
};

int bpf_tables_init(struct bpf_tables *t, uint32_t table_len, size_t nr_cpus);
/*
 * Exchange the tables of all CPUs, in one instant, not before @now_ns. Returns when nobody is in
 * the old ones; -errno: the kernel would not wait for that, so they were left alone for a tenth of
 * a second. In the new ones threads have numbers of @bank (0 or 1).
 */
int bpf_tables_swap(struct bpf_tables *t, uint64_t now_ns, uint32_t bank);
/* Returns when all programs that run now have ended; as above where the kernel would not wait. */
int bpf_tables_wait(const struct bpf_tables *t);
static inline union count_bucket *bpf_tables_at(const struct bpf_tables *t, size_t cpu,
						uint32_t set)
{
	return t->all + SAMPLE_TABLE(cpu, set) * t->stride;
}

/* That of @cpu that is not counted in. */
union count_bucket *bpf_tables_old(const struct bpf_tables *t, size_t cpu);

/* ---- names of threads (source_linux.c) ------------------------------------------------------- */

struct bpf_threads {
	struct thread_name *names; /* the table that programs write; not owned */
	char (*texts)[THREAD_NAME_LEN];
	uint32_t bank;	/* programs give numbers of this one */
	uint32_t whole; /* exchanges of tables, one behind the other, that were waited for */
	bool forget;	/* the bank is to be exchanged too, when that is possible */
};

/* 0 or -ENOMEM. @names: THREAD_NR_NAMES. */
int bpf_threads_init(struct bpf_threads *t, struct thread_name *names);
void bpf_threads_release(struct bpf_threads *t);
/* See driver_thread_name. */
const char *bpf_threads_name(const struct bpf_threads *t, uint32_t number);
/*
 * The bank for an exchange of tables that begins now. The other one, empty, if numbers are to be
 * given anew, and none of the other bank can be in a table or in a count that is @held.
 */
uint32_t bpf_threads_bank(struct bpf_threads *t, bool held);
/* The exchange is over; @waited: no program is in the old tables. */
void bpf_threads_exchanged(struct bpf_threads *t, bool waited);

/* ---- programs (program_linux.c) -------------------------------------------------------------- */

struct sample; /* the skeletons: programs and maps */
struct sample_behind;
struct sample_waiting;
struct bpf_clients;

struct bpf_programs {
	/* Programs by event, one each; all use the maps of the first. */
	struct sample *objects[DRIVER_NR_EVENTS];
	size_t nr;
	bool older; /* those for kernels that lack functions */
	/* In place of the events' programs, or NULL: traces are of the first event only. */
	struct sample_behind *behind[DRIVER_NR_EVENTS];
	struct sample_waiting *waiting; /* NULL: waits are not measured */
	struct bpf_wait_kinds kinds;	/* for these, until that stream is opened */
	uint64_t mix[COUNT_NR_MIX];	/* see COUNT_MIX */
	int pins_fd;			/* see bpf_pins_make; -1: this kernel pins nothing */
	void *tick, *on_begin;		/* links, or NULL */
	struct bpf_clients *clients;
	void *on_exec, *on_exit, *on_fork; /* links, while there are clients */
	/* Maps, of the first object: tables; rings of bytes, each an enum sample_note, and of
	 * struct sample_fork. */
	int tables_fd, notes_fd, forks_fd;
	struct sample_shared *shared;	   /* one line of words, which programs and we share */
	const volatile uint64_t *untabled; /* samples without a table, by event */
	struct thread_name *names;	   /* names of threads, by number */
};

/* Load what @specs and @config's traces and call paths need. Errors with cause and hint:
 * -DCPI_ENOEVENTS, -DCPI_EUNSUPPORTED. */
int bpf_programs_open(struct bpf_programs *p, const struct driver_config *config,
		      const struct event_spec *specs, size_t nr, const struct bpf_tables *t,
		      struct base_err *err);
void bpf_programs_close(struct bpf_programs *p);
/* Descriptor of the program of perf event @event; -1 of the tick. */
int bpf_programs_fd(const struct bpf_programs *p, size_t event);
/* The next program that begins leaves a note there; no other one until the next call. 0 or -errno.
 */
int bpf_programs_wake_at_exec(struct bpf_programs *p);
/* 0 or -errno; nothing to do without a tick event. */
int bpf_programs_tick(struct bpf_programs *p, bool on);
/* Say why BPF was refused: @what failed with @error (negative). */
int bpf_refused(struct base_err *err, int error, const char *what);

/* The function of its timer, from what @kallsyms lists. -ENOENT; -EPERM: addresses are hidden. */
int bpf_tick_function(FILE *kallsyms, uint64_t *function);
/* Nanoseconds between two ticks. */
uint64_t bpf_tick_period(void);
enum { BPF_DEFAULT_RATE = 1000 };
/* Samples of @spec per second and CPU, as far as that is known beforehand. */
uint64_t bpf_rate(const struct driver_config *config, const struct event_spec *spec);
/* One in so many samples by default, at @rate: in the same time as at the default rate. */
static inline uint32_t bpf_scaled(uint32_t every, uint64_t rate)
{
	return (uint32_t)((every * rate + BPF_DEFAULT_RATE - 1) / BPF_DEFAULT_RATE);
}

/* ---- clients (clients_linux.c) --------------------------------------------------------------- */

/* See driver_client_set, which has checked its arguments. */
int bpf_clients_set(struct bpf_programs *p, int32_t pid, const struct driver_client *client);
/* Let go of who has ended; no program on everybody's exec and exit when there is no client. */
void bpf_clients_sweep(struct bpf_programs *p);
void bpf_clients_close(struct bpf_programs *p);

/* ---- pinned pages of clients' words (clients_linux.c) ---------------------------------------- */

/* The storage of pins: a descriptor; or -errno: this kernel has no such thing. */
int bpf_pins_make(void);
/* Before an object is loaded: @map (struct bpf_map) of it is that storage, or is left out. */
int bpf_pins_use(const struct bpf_programs *p, void *map);

/* ---- forks of clients (source_linux.c) ------------------------------------------------------- */

struct bpf_forks {
	struct sample_fork *items;
	size_t nr, cap;
	bool sorted;
};

void bpf_forks_add(struct bpf_forks *f, const struct sample_fork *fork);
/* @load, a FORK, gets its cursor, if that was told. */
void bpf_forks_tell(struct bpf_forks *f, struct driver_load *load);
/* All events up to @until_ns were handed on. */
void bpf_forks_drop(struct bpf_forks *f, uint64_t until_ns);
void bpf_forks_release(struct bpf_forks *f);

/* ---- the source (source_linux.c) ------------------------------------------------------------- */

struct bpf {
	struct driver base;
	struct perf_sampler sampler;
	struct bpf_programs programs;
	struct bpf_tables tables;
	struct bpf_counts counts;
	struct bpf_forks forks;
	struct bpf_threads threads;
	struct bpf_trace_source *traces;       /* NULL: none were asked for */
	struct bpf_callpath_source *callpaths; /* likewise */
	struct bpf_wait_source *waits;	       /* likewise */
	struct bpf_reader *spilled;	       /* a thread empties them while we are busy */
	struct driver_stats taken;	       /* statistics of the tables read so far */
	uint64_t untabled[DRIVER_NR_EVENTS];   /* told to the sampler: see bpf_programs */
	struct event_spec specs[DRIVER_NR_EVENTS];
	uint32_t drain_ms;
	int timer_fd;
	uint64_t code_ns;	       /* time of the last drain for new code */
	uint64_t nr_loads_seen;	       /* number of loads at the last look */
	void *notes, *announced_forks; /* readers of the rings */
	bool noted;		       /* a table asked for a drain, not yet done */
	int refusal;		       /* why the kernel did not wait at the last exchange; 0 */
	const char *why;	       /* behind the description */
	char said[320];		       /* the same with the refusal */
	bool running;
};

/* @r is open, and will be closed behind the sampler. */
static inline void bpf_spill(struct bpf *b, struct bpf_reader *r)
{
	r->next = b->spilled;
	b->spilled = r;
}

/* Up to when all records of @r are in @q: @now_ns at most, which it is when nothing comes any more.
 */
static inline uint64_t bpf_reader_horizon(const struct bpf *b, struct bpf_reader *r,
					  struct bpf_queue *q, uint64_t now_ns)
{
	uint64_t whole_ns = bpf_reader_whole(r, q, b->running ? now_ns : base_now_ns());

	return b->running ? whole_ns : now_ns;
}

/* ---- streams: records beside the counts, in queues of their own ------------------------------ */

/* So many records of a stream in memory are enough: they must not wait for the next exchange. */
#define BPF_STREAM_MAX 20000u

/* Where its records were not asked for, a stream does nothing. NULL: there is nothing to do. */
struct bpf_stream_ops {
	/* Behind programs and sampler. 0 or -errno. */
	int (*open)(struct bpf *b, const struct driver_config *config);
	/* Begin or end to measure. 0 or -errno. */
	int (*run)(struct bpf *b, bool on);
	/* Before an exchange of tables: what goes on is added up to now. */
	void (*look)(struct bpf *b);
	/* After it: the sums of before are put into the queue. */
	void (*gather)(struct bpf *b);
	/* Read the rings; add how many wait to @nr. True: so many that a drain is due. */
	bool (*read)(struct bpf *b, size_t *nr);
	/* Whether one that waits has the number of a thread's name. */
	bool (*names_threads)(struct bpf *b);
	/* Nothing comes any more from before the answer, which is @now_ns at most. */
	uint64_t (*horizon)(struct bpf *b, uint64_t now_ns);
	/* The time of the first that waits; UINT64_MAX: none. */
	uint64_t (*next)(struct bpf *b);
	/* Pass what began before @until_ns to @sink, in order of time. 0, or the sink's error. */
	int (*hand_until)(struct bpf *b, uint64_t until_ns, const struct driver_sink *sink);
	/* All were handed on that had begun by then. */
	void (*settle)(struct bpf *b, uint64_t until_ns);
	void (*close)(struct bpf *b);
};

/* Instruction traces, call paths, waiting and running threads (…_linux.c). */
extern const struct bpf_stream_ops bpf_traces_ops, bpf_callpaths_ops, bpf_waits_ops;

enum { BPF_WAIT_EVENTS = 2 }; /* "wait" and "run" */

#endif
