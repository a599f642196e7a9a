/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source "bpf" from within. A program counts in the interrupt of each sample (driver/bpf/), in
 * a table of its CPU (count_table.h); each CPU has two, of which one is in use, the other read and
 * empty (bpf_tables_linux.c). Load events come through the same tracking events as those of the
 * source "perf" (struct perf_sampler of perf_internal.h), and counts are handed on among them by
 * the time of their last sample (bpf_counts.c).
 *
 * Horizon of a drain: the time read just before tables are exchanged. A program reads the clock
 * after it has chosen its table, or (the tick) puts its time off to since_ns (bpf/sample.h), so no
 * count of the new tables is older; and the exchange returns when no program is in the old ones any
 * more, and nobody is putting an older record into a ring. So all up to the horizon is there, and
 * is handed on; what is younger waits.
 */
#ifndef DCPI_BPF_INTERNAL_H
#define DCPI_BPF_INTERNAL_H

#include "bpf_table.h"
#include "driver_internal.h"
#include "perf_internal.h"

/* ---- counts on their way (bpf_counts.c: no kernel needed) ------------------------------------ */

struct bpf_counts {
	struct count_entry *entries;
	size_t nr, cap;
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

/* ---- tables (bpf_tables_linux.c) ------------------------------------------------------------- */

struct sample_shared; /* bpf/sample.h */

struct bpf_cpu {
	union count_bucket *sets[2]; /* mapped; NULL: not made */
};

struct bpf_tables {
	int fd;			      /* the map of maps; not owned */
	struct sample_shared *shared; /* the one that programs read; not owned */
	struct count_shape shape;
	struct bpf_cpu *cpus; /* by number */
	size_t nr_cpus;
	int any_fd;    /* one of the tables, to wait with; -1: there is none */
	uint32_t any;  /* where it stands */
	bool unwaited; /* the kernel did not wait at the last exchange */
};

int bpf_tables_init(struct bpf_tables *t, uint32_t table_len, size_t nr_cpus);
void bpf_tables_release(struct bpf_tables *t);
/* A table like all others, to load programs with: a descriptor, the caller's, or -errno. */
int bpf_tables_template(const struct bpf_tables *t);
/* Make those of @cpu, if that is not done. 0, or -errno: its samples are lost, but those in a table
 * that could be made. */
int bpf_tables_add(struct bpf_tables *t, unsigned int cpu);
/*
 * Exchange the tables of all CPUs, in one instant, not before @now_ns. Returns when nobody is in
 * the old ones; -errno: the kernel would not wait for that, so they were left alone for a tenth of
 * a second.
 */
int bpf_tables_swap(struct bpf_tables *t, uint64_t now_ns);
/* That of @cpu that is not counted in, or NULL. */
union count_bucket *bpf_tables_old(const struct bpf_tables *t, size_t cpu);

/* ---- programs (bpf_program_linux.c) ---------------------------------------------------------- */

struct sample; /* the skeleton: programs and maps */

struct bpf_programs {
	/* By event, each with a program of its own; maps are those of the first. */
	struct sample *objects[DRIVER_NR_EVENTS];
	size_t nr;
	void *tick;		 /* link, or NULL */
	void *on_exec, *on_exit; /* links, while there are clients */
};

/* Load what @specs need. Errors with cause and hint: -DCPI_ENOEVENTS, -DCPI_EUNSUPPORTED. */
int bpf_programs_open(struct bpf_programs *p, const struct event_spec *specs, size_t nr,
		      const struct bpf_tables *t, struct base_err *err);
void bpf_programs_close(struct bpf_programs *p);
int bpf_programs_tables_fd(const struct bpf_programs *p);
/* What programs share with us: one line of words, and samples without a table, by event. */
struct sample_shared *bpf_programs_shared(const struct bpf_programs *p);
const volatile uint64_t *bpf_programs_untabled(const struct bpf_programs *p);
/* Descriptor of the program of perf event @event; -1 of the tick. */
int bpf_programs_fd(const struct bpf_programs *p, size_t event);
/* Ring in which tables ask for a drain. */
int bpf_programs_notes_fd(const struct bpf_programs *p);
/* 0 or -errno; nothing to do without a tick event. */
int bpf_programs_tick(struct bpf_programs *p, bool on);
/* Say why BPF was refused: @what failed with @error (negative). */
int bpf_refused(struct base_err *err, int error, const char *what);

/* Where the scheduler's tick can be found (bpf_tick_linux.c). -DCPI_EUNSUPPORTED with the reason.
 */
int bpf_tick_find(uint64_t *function, int64_t *irq_regs_delta, struct base_err *err);
/* The function of its timer, from what @kallsyms lists. -ENOENT; -EPERM: addresses are hidden. */
int bpf_tick_function(FILE *kallsyms, uint64_t *function);
/* Nanoseconds between two ticks. */
uint64_t bpf_tick_period(void);

/* ---- processes with ranges (bpf_clients_linux.c) --------------------------------------------- */

/* See driver_ranges_set. */
int bpf_clients_set(struct bpf_programs *p, int32_t pid, const struct driver_range *ranges,
		    size_t nr);
/* No program on everybody's exec and exit when there is no client any more. */
void bpf_clients_sweep(struct bpf_programs *p);

/* ---- the source (bpf_open_linux.c, bpf_source_linux.c) --------------------------------------- */

struct bpf {
	struct driver base;
	struct perf_sampler sampler;
	struct bpf_programs programs;
	struct bpf_tables tables;
	struct bpf_counts counts;
	struct driver_stats taken;	     /* of the tables read so far */
	uint64_t untabled[DRIVER_NR_EVENTS]; /* told to the sampler: see bpf_programs_untabled */
	struct event_spec specs[DRIVER_NR_EVENTS];
	uint32_t drain_ms;
	int timer_fd;
	uint64_t registry_ns; /* of the last drain for the sake of a new registry */
	void *notes;	      /* reader of the ring */
	bool noted;	      /* a table asked for a drain */
	int refusal;	      /* why the kernel did not wait at the last exchange; 0 */
	const char *why;      /* behind the description */
	char said[320];	      /* the same with the refusal */
	bool running;
};

extern const struct driver_ops bpf_ops;

/* Tables for all CPUs that have events. 0 or -errno, of some. */
int bpf_add_tables(struct bpf *b);
/* For a CPU that is about to get events. 0 or -errno. */
int bpf_add_cpu(struct driver *d, unsigned int cpu);

#endif
