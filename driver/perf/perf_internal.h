/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf events from within, for the sources "perf" and "bpf". What both share is struct
 * perf_sampler: on each CPU a *tracking* event that owns a ring and puts load events into it, and
 * the sampling events. Those of "perf" put their samples into the same ring; those of "bpf" run a
 * program and use no ring. The source "bpf" needs this header's first part alone, up to "parts".
 *
 * Only the *_linux.c files make system calls. Facts of the records: perf_event_open(2) and
 * <linux/perf_event.h>.
 */
#ifndef DCPI_PERF_INTERNAL_H
#define DCPI_PERF_INTERNAL_H

#include <limits.h>
#include <linux/perf_event.h>

#include "driver_internal.h"

/* ---- counters of one event on one CPU (perf_count.c) ----------------------------------------- */

/* As the kernel counts, from an event's opening on. */
struct perf_reading {
	uint64_t value;
	uint64_t enabled_ns; /* wanted: its slot had its turn */
	uint64_t running_ns; /* had a counter */
	uint64_t lost;	     /* records that found the ring full (PERF_USE_LOST) */
};

/* A CPU that goes offline and comes back opens its events again: nothing here shrinks then. */
struct perf_count {
	struct perf_reading now,
		past;		   /* of this opening; of those before, together (but enabled) */
	uint64_t period;	   /* since the last draw; 0: by frequency */
	struct perf_reading drawn; /* at the last draw, of this opening */
	uint64_t due;		   /* whole periods in the intervals before the last draw */
	uint64_t received, missed;
};

/* ---- one CPU --------------------------------------------------------------------------------- */

/* A ring of @len bytes (a power of two), written up to @head, read up to @tail; both only grow. */
struct perf_ring {
	const uint8_t *data;
	size_t len;
	uint64_t head, tail;
};

struct perf_event {
	int fd;	     /* -1: not open */
	bool absent; /* this CPU was opened, and is of a kind that has no such event */
	uint64_t id; /* the kernel's, stands in its samples */
	struct perf_count count;
};

struct perf_cpu {
	unsigned int cpu;
	int track_fd; /* owns the ring; -1: the CPU is offline, or was refused */
	void *map;
	size_t map_len;
	struct perf_ring ring;
	struct perf_count track;
	struct perf_event *events; /* by event, as driver_event_get numbers them */
	uint64_t alive_ns;	   /* when its counters were last read */
	bool gone;		   /* its events will deliver nothing more: closed once read */
};

/* ---- order (perf_order.c) -------------------------------------------------------------------- */

/* Room for many load events, which nearly all go in the order in which they came. */
struct perf_chunk;

/* A load event, its data and path behind it. */
struct perf_load {
	struct perf_chunk *chunk;
	struct driver_load load;
	uint64_t bytes[];
};

/* What waits for its turn by count.time_ns. @load: the order's; NULL: a count. */
struct perf_item {
	struct driver_count count;
	struct perf_load *load;
};

struct perf_queue {
	struct perf_item *items;
	size_t first, end, cap; /* [first, end) are in use */
};

struct perf_head {
	uint64_t time_ns; /* of the first item */
	size_t queue;
};

/* Queues, each sorted by time, merged by a heap of their first items. */
struct perf_order {
	struct perf_queue *queues;
	struct perf_head *heap; /* of queues that are not empty, earliest first */
	size_t nr_queues, nr_heap;
	uint64_t nr_samples;		  /* in items without a load */
	struct perf_chunk *chunk, *spare; /* where the next load goes; an empty one; or NULL */
};

/* ---- turns of slots and periods (perf_turn.c) ------------------------------------------------ */

struct perf_turn {
	uint32_t nr_slots, slot; /* whose turn it is */
	uint64_t slot_ns;
	uint64_t slot_since, drawn_since; /* CLOCK_MONOTONIC */
	bool draws;			  /* periods are drawn anew */
	uint64_t random;		  /* state of the generator */
};

/* ---- threads and processes (perf_threads.c) -------------------------------------------------- */

/*
 * How many threads each process has, so that its exit is that of its last thread, whichever that
 * is. Known from the process's fork or exec on; of older processes nothing is known, and the exit
 * of the main thread stands for that of the process (it may outlive it; its later samples still
 * carry its pid).
 */
struct perf_threads {
	struct base_map counts; /* pid -> number, as the value itself */
};

/* ---- the sampler: what "perf" and "bpf" share (perf_open_linux.c, perf_sampler_linux.c) -------
 */

enum { PERF_RECORD_LEN_MAX = 65536 };

enum { PERF_NR_CODE_PIDS = 256 };

struct perf_sampler {
	struct driver *d; /* whose events, stats and description are kept up */
	struct event_spec specs[DRIVER_NR_EVENTS];
	uint64_t periods[DRIVER_NR_EVENTS]; /* nominal; 0: by frequency */
	bool in_kernel;			    /* samples run programs, and do not go into rings */
	int programs[DRIVER_NR_EVENTS];	    /* -1: none */
	uint64_t frequency, max_rate;
	size_t ring_len; /* of the next ring */
	bool ring_usual; /* nobody asked for that, so smaller ones will do */
	int32_t pid;	 /* above 0: this process and its later children; else -1 */
	unsigned int features;
	/* Told of a CPU that came online, before its events are enabled; NULL: nobody. */
	int (*new_cpu)(struct driver *d, unsigned int cpu);
	bool counted;	       /* the counters were read in this drain */
	const char *why;       /* behind the description */
	char trouble[80];      /* "; CPU 1 refused: …", or empty */
	uint64_t trouble_ns;   /* when it was seen last */
	struct perf_cpu *cpus; /* all possible ones */
	size_t nr_cpus;
	struct perf_event *events; /* of all CPUs: one allocation */
	struct perf_order order;   /* a queue per CPU, and a last one: perf_sampler_add */
	struct perf_threads threads;
	uint64_t nr_loads; /* records of load events read so far */
	bool code_seen;	   /* in a ring: dynamic code is announced; reset by who drains */
	int32_t code_pids[PERF_NR_CODE_PIDS]; /* who has made memory for code, by pid */
	struct perf_turn turn;
	int epoll_fd, timer_fd;
	bool running;
	uint64_t looked_ns;		      /* when CPUs were last looked for */
	uint64_t unsent[DRIVER_NR_EVENTS];    /* PERF_RECORD_LOST_SAMPLES */
	uint64_t lost_said[DRIVER_NR_EVENTS]; /* by PERF_RECORD_LOST, without PERF_USE_LOST */
	uint64_t load_bad;   /* load records that made no sense, times when a CPU was unseen,
				ends of rings that made none */
	uint64_t sample_bad; /* samples of that kind, and such ends where rings hold samples */
	uint64_t distrusted; /* losses at which the threads were last forgotten */
	uint64_t told_lost;  /* side-band losses of which the sink was last told */
	uint64_t somewhere[DRIVER_NR_EVENTS]; /* received on PERF_CPU_UNKNOWN */
	uint8_t scratch[PERF_RECORD_LEN_MAX];
};

/*
 * What @config asks for, or, where it names nothing, what this machine has: hardware cycles or
 * cpu-clock (then *why says so, else it is ""). At most DRIVER_NR_EVENTS. The number, or
 * -DCPI_EUSAGE, -DCPI_ENOEVENTS.
 */
int perf_specs_choose(const struct driver_config *config, struct event_spec *out, const char **why,
		      struct base_err *err);
/* Frequency and size of the rings, before anything is opened. 0 or -DCPI_EUSAGE. */
int perf_config_check(const struct driver_config *config, struct base_err *err);
/*
 * Can it be sampled here and now, on some CPU at least? 0, the -errno of perf_event_open, or
 * -ERANGE: not so often. @pid, @frequency as in driver_config.
 */
int perf_spec_probe(const struct event_spec *spec, int32_t pid, uint64_t frequency);
/*
 * Open @nr events on all CPUs, not yet counting, and announce them in @d (events, nr_events,
 * describe). Tick events get a number, but no perf event. @programs: for each event the descriptor
 * of a program to run (the caller's; it must outlive @s); NULL: samples go into the rings. @why
 * stands behind the description. Errors: -DCPI_EUSAGE, -DCPI_ENOEVENTS, with hints. Also after a
 * failure @s must be closed; zeroed memory may be, too.
 */
int perf_sampler_open(struct perf_sampler *s, struct driver *d, const struct driver_config *config,
		      const struct event_spec *specs, size_t nr, const int *programs,
		      const char *why, struct base_err *err);
void perf_sampler_close(struct perf_sampler *s);
int perf_sampler_start(struct perf_sampler *s, struct base_err *err);
void perf_sampler_stop(struct perf_sampler *s);
/* Readable when a ring is half full or a slot's turn has ended: then drain. */
int perf_sampler_poll_fd(const struct perf_sampler *s);
/* Make it readable with @fd, too. 0 or -errno. */
int perf_sampler_poll_add(struct perf_sampler *s, int fd);
/* Write the description anew, as events, CPUs and trouble are now. */
void perf_sampler_describe(struct perf_sampler *s);
/* @r below 0: the kernel refused something of @c; stands in the description for a while. */
void perf_sampler_trouble(struct perf_sampler *s, const struct perf_cpu *c, int r);
/* Numbers of the CPUs that "possible" or "online" of sysfs lists, to be freed; how many or -errno.
 */
int perf_cpus_list(const char *which, unsigned int **out);

/*
 * A drain is, in this order:
 *   perf_sampler_turn     the next slot, new periods (these read the counters): what is due;
 *   perf_sampler_read     the counters, if @counters and not yet read, the rings into the queues,
 *                         CPUs that came back;
 *   perf_sampler_add      (bpf) each count of the tables;
 *   perf_sampler_received (bpf) what each CPU's tables say they received;
 *   perf_sampler_hand_on  everything up to a horizon, in order;
 *   perf_sampler_account  into d->stats and d->events.
 * bpf swaps its tables between read and add, so that what came between counts as received.
 */
void perf_sampler_turn(struct perf_sampler *s, uint64_t now_ns);
/*
 * Queue records up to the first of each ring that is younger than @until; younger ones stay in
 * their ring. 0 or -errno: no memory, the rest stays in the rings. To read a counter costs an
 * interrupt of its CPU, idle or not: @counters false leaves them alone.
 */
int perf_sampler_read(struct perf_sampler *s, uint64_t until, bool counters);
/*
 * The rings alone: bpf, to see whether dynamic code was announced, and again when its tables are
 * exchanged and no older record can come.
 */
int perf_sampler_read_rings(struct perf_sampler *s, uint64_t until);
/*
 * Queue a count by its time_ns; cheap where they come in ascending order (within 10 or so). What is
 * younger than the horizon waits for the next drain. 0 or -ENOMEM.
 */
int perf_sampler_add(struct perf_sampler *s, const struct driver_count *count);
/* @nr more samples of @event were received on CPU number @cpu, or nobody knows where. Told only
 * when that is complete: what is not received by the time of perf_sampler_account counts as missed.
 */
#define PERF_CPU_UNKNOWN UINT_MAX
void perf_sampler_received(struct perf_sampler *s, unsigned int cpu, size_t event, uint64_t nr);
/* 0, or what the sink said; the item it refused is gone, the others stay. Side-band records that
 * were lost, as the counters tell, come first: DRIVER_LOAD_LOST. */
int perf_sampler_hand_on(struct perf_sampler *s, uint64_t horizon, const struct driver_sink *sink);
/*
 * Events: enabled, and the period of those sampled at a frequency. Stats: missed, held, lost_load;
 * of events without a program also received, lost_ring, lost_bad (and throttled, by reading).
 * @received: everything was told that came up to the counters' reading (bpf: this drain read the
 * tables; perf: all of the rings), so that missed and periods can be.
 */
void perf_sampler_account(struct perf_sampler *s, bool received);
/* stats.lost_load, as the counters were last read. */
uint64_t perf_sampler_lost_load(const struct perf_sampler *s);

/* ==== parts: of no concern to the source "bpf" ================================================ */

/* ---- what is asked of the kernel (perf_attr.c) ----------------------------------------------- */

/* The same for all events, so that every record of a ring ends alike. */
#define PERF_SAMPLES (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

/* What older kernels or some machines refuse; dropped one after another in this order. */
enum perf_feature {
	PERF_USE_LOST = 1,	     /* PERF_FORMAT_LOST: Linux 6.0 */
	PERF_USE_BUILD_ID = 2,	     /* Linux 5.12 */
	PERF_USE_POKE = 4,	     /* text_poke: Linux 5.9 */
	PERF_USE_KSYMBOL = 8,	     /* Linux 5.1 */
	PERF_USE_EXCLUDE_GUEST = 16, /* not every machine can */
	PERF_USE_ALL = 31,
	PERF_USE_KERNEL = 15, /* depend on the kernel alone, so the tracking event tells */
};

enum {
	PERF_FREQUENCY = 1000,
	PERF_FREQUENCY_MAX = 1000000000 / EVENT_CLOCK_LEAST,
};

/* @wanted; 0: 1000 a second, or @max_rate (0: unknown) where that is less. */
uint64_t perf_frequency(uint64_t wanted, uint64_t max_rate);
/* The nominal period of @spec: its own, or a clock's at @frequency; 0: it is sampled by frequency.
 */
uint64_t perf_spec_period(const struct event_spec *spec, uint64_t frequency);
/* @period 0: by @frequency. @pid above 0: a process's, with its children, in user mode. */
void perf_attr_sampling(struct perf_event_attr *attr, const struct event_spec *spec,
			uint64_t period, uint64_t frequency, int32_t pid, unsigned int features);
void perf_attr_tracking(struct perf_event_attr *attr, size_t ring_len, int32_t pid,
			unsigned int features);
/*
 * Which features to try next after the kernel said @error (positive errno), giving up one of
 * @may_drop; -1: it has other reasons.
 */
int perf_attr_fallback(unsigned int features, unsigned int may_drop, int error);
/* What to say of a rate that was asked for: "" where an event is sampled by it. */
const char *perf_rate_unused(const struct event_spec *specs, size_t nr);
/* -DCPI_EUSAGE where an event would come more often than @max_rate a second (0: unknown). */
int perf_rate_check(const struct event_spec *specs, size_t nr, uint64_t frequency,
		    uint64_t max_rate, struct base_err *err);

/* ---- counters (perf_count.c) ----------------------------------------------------------------- */

/* What was read now; what would shrink stays. */
void perf_count_read(struct perf_count *c, const struct perf_reading *r);
/* It counted for long enough since the last draw that its broken last period does not matter. */
bool perf_count_may_draw(const struct perf_count *c);
/* The period from what was last read on. */
void perf_count_draw(struct perf_count *c, uint64_t period);
/* The opening ends; nothing more is read of it. */
void perf_count_close(struct perf_count *c);
/* Of a clock: periods that passed less samples that came. */
void perf_count_miss(struct perf_count *c);
uint64_t perf_count_value(const struct perf_count *c);
uint64_t perf_count_running_ns(const struct perf_count *c);
uint64_t perf_count_lost(const struct perf_count *c);
/* @running of @all: near 1 is 1, as what lies between two calls is no multiplexing. */
double perf_count_enabled(uint64_t running_ns, uint64_t all_ns);

/* ---- turns (perf_turn.c) --------------------------------------------------------------------- */

/* It begins; slot 0 has its turn. */
void perf_turn_start(struct perf_turn *t, uint64_t now_ns);
/* Is it the next slot's turn? If so, it has it. */
bool perf_turn_rotate(struct perf_turn *t, uint64_t now_ns);
/* Are new periods due? If so, they count as drawn. */
bool perf_turn_draw(struct perf_turn *t, uint64_t now_ns);
/* When to be woken; 0: never. */
uint64_t perf_turn_next_ns(const struct perf_turn *t);
/*
 * A period beside @nominal: 1 to 4 % shorter or longer, all alike, so that the mean is nominal and
 * the nominal one never comes; multiples of 16 stay such. Where the shortest is below @least, only
 * longer ones; where there is no such period (@nominal is small), @nominal itself.
 */
uint64_t perf_period_draw(uint64_t nominal, uint64_t least, uint64_t *random);
uint64_t perf_period_mean(uint64_t nominal, uint64_t least);

/* ---- rings (perf_ring.c) --------------------------------------------------------------------- */

/*
 * The record at the tail, made contiguous in @scratch (PERF_RECORD_LEN_MAX bytes) where it wraps.
 * Returns its length, 0 when the ring is empty, -DCPI_EFORMAT where a size lies: nothing behind it
 * can be found then. The tail stays: add the length to it.
 */
int perf_ring_peek(const struct perf_ring *ring, uint8_t *scratch, const uint8_t **rec);

/* ---- records (perf_record.c) ----------------------------------------------------------------- */

enum perf_what {
	PERF_SKIP,   /* of no interest */
	PERF_SAMPLE, /* count */
	PERF_LOAD, /* load; also forks and exits of threads, names of threads: perf_threads_pass */
	PERF_LOST, /* nr records found the ring full */
	PERF_UNSENT, /* nr samples never reached the ring (PERF_RECORD_LOST_SAMPLES) */
	PERF_THROTTLED,
};

struct perf_record {
	enum perf_what what;
	uint64_t time_ns;
	uint64_t id; /* of the event that put it into the ring */
	uint64_t nr;
	struct driver_count count; /* without event */
	struct driver_load load;   /* path and data point into the record, data at any alignment */
};

/*
 * Parse one record of @len bytes, any alignment. 0, or -DCPI_EFORMAT where it is too short for its
 * type or a string has no end; then what says only what it would have been.
 */
int perf_record_parse(const uint8_t *rec, size_t len, struct perf_record *out);
/* In what mode the CPU was, by the misc of a sample's header. */
enum driver_mode perf_mode_of(uint16_t misc);
/*
 * What lies between head and trailer of a record that is no sample, into @out, which is empty;
 * false where it is too short or a string has no end. No times, and nothing sorted out (perf.data).
 */
bool perf_record_parse_body(uint32_t type, uint16_t misc, const uint8_t *body, size_t len,
			    struct perf_record *out);

/* ---- order (perf_order.c) -------------------------------------------------------------------- */

int perf_order_init(struct perf_order *o, size_t nr_queues);
/* Frees the loads that still wait. */
void perf_order_release(struct perf_order *o);
/* 0 or -ENOMEM. Stable for equal times of one queue. */
int perf_order_add(struct perf_order *o, size_t queue, const struct driver_count *count);
/* The same with a copy of @load, its path and data. */
int perf_order_add_load(struct perf_order *o, size_t queue, const struct driver_load *load);
/* After adding, before taking. */
void perf_order_settle(struct perf_order *o);
/* Take the earliest item if it is older than @horizon or of that age, else NULL. It is there until
 * something is added, its load until perf_order_drop. */
const struct perf_item *perf_order_take(struct perf_order *o, uint64_t horizon);
/* Of each load that was taken, once. */
void perf_order_drop(struct perf_order *o, struct perf_load *load);

/* ---- threads (perf_threads.c) ---------------------------------------------------------------- */

/* Feed every load event in order of time. False: it is about a mere thread, do not hand it on. */
bool perf_threads_pass(struct perf_threads *t, const struct driver_load *load);
/* Events were lost: forget the counts, which may be wrong now. */
void perf_threads_forget(struct perf_threads *t);

/* ---- CPUs by name (perf_cpus.c) -------------------------------------------------------------- */

/* "0-3,8" as sysfs writes it; at most @max numbers into @cpus. How many, or -EINVAL. */
int perf_cpus_parse(const char *text, unsigned int *cpus, size_t max);
/* @nr below 0: none. */
bool perf_cpu_is_listed(unsigned int cpu, const unsigned int *cpus, int nr);

/* ---- one CPU's events (perf_cpu_linux.c) ----------------------------------------------------- */

/* Not open. @events: as many as there are, the sampler's. */
void perf_cpu_init(struct perf_cpu *c, unsigned int cpu, struct perf_event *events, size_t nr);
/* A mere perf_event_open: descriptor or -errno. @pid -1: all processes; @cpu -1: any. */
int perf_event_try(const struct perf_event_attr *attr, int32_t pid, int cpu);
/* The tracking event and its ring. 0, or -errno; *@mapping: of mmap. Closed on failure. */
int perf_cpu_track(struct perf_cpu *c, const struct perf_event_attr *attr, int32_t pid,
		   size_t ring_len, bool *mapping);
/* An event beside it, with @program (-1: into the ring). 0 or -errno. */
int perf_cpu_sample(struct perf_cpu *c, size_t event, const struct perf_event_attr *attr,
		    int32_t pid, int program);
/* The counts stay. */
void perf_cpu_close(struct perf_cpu *c, size_t nr_events);
/* Read the counters; what cannot be read keeps its last value. */
void perf_cpu_read(struct perf_cpu *c, size_t nr_events, bool with_lost);
int perf_event_enable(int fd, bool on);
/* 0 or -errno. */
int perf_event_period(struct perf_event *e, uint64_t period);
/* See what the kernel has written; tell it what was read. */
void perf_cpu_look(struct perf_cpu *c);
void perf_cpu_release(struct perf_cpu *c);

/* ---- inside the sampler ---------------------------------------------------------------------- */

/* Open @c with its features and periods. 0 or -errno; *@failed: the event, or -1: tracking. */
int perf_sampler_open_cpu(struct perf_sampler *s, struct perf_cpu *c, int *failed, bool *mapping);
/* Enable what has its turn. 0 or -errno. */
int perf_sampler_enable_cpu(struct perf_sampler *s, struct perf_cpu *c);
/* Also tells which CPUs are gone. */
void perf_sampler_read_counters(struct perf_sampler *s);
/* CPUs that are gone are closed once their rings were read, those that came back opened. */
void perf_sampler_look_for_cpus(struct perf_sampler *s, uint64_t now_ns);
/* The period of an event from now on: drawn, or the nominal one. */
uint64_t perf_sampler_period(struct perf_sampler *s, size_t event);

/* ---- the source "perf" (perf_linux.c) -------------------------------------------------------- */

struct perf {
	struct driver base;
	struct perf_sampler sampler;
};

extern const struct driver_ops perf_ops;

#endif
