/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf events: the source "perf", and what the sources "bpf" and "replay" share with it. What both
 * share is struct perf_sampler: on each CPU a *tracking* event that owns a ring and puts load
 * events into it, and the sampling events. Those of "perf" put their samples into the same ring;
 * those of "bpf" run a program and use no ring.
 *
 * Only the *_linux.c files make system calls. Facts of the records: perf_event_open(2) and
 * <linux/perf_event.h>.
 */
#ifndef DCPI_PERF_H
#define DCPI_PERF_H

#include <limits.h>
#include <linux/perf_event.h>
#include <pthread.h>

#include "event.h"
#include "isample.h"
#include "source.h"

/* ---- counters of one event on one CPU (cpus_linux.c) ----------------------------------------- */

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
		past;	 /* values of this opening; sums of earlier ones (without enabled) */
	uint64_t period; /* since the last draw; 0: by frequency */
	bool is_time;	 /* a clock: periods are of running time, else of the value */
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
	pthread_mutex_t lock; /* guards the ring, spilled and unreadable (sampler_linux.c) */
	struct base_buf spilled;
	bool unreadable;	/* something of the ring was */
	struct base_buf unread; /* records taken from there, read up to unread_at */
	size_t unread_at;
	struct perf_count track;
	struct perf_event *events; /* events, as driver_event_get numbers them */
	uint64_t alive_ns;	   /* when its counters were last read */
	bool gone;		   /* its events will deliver nothing more: closed once read */
};

/* ---- order (sampler_linux.c) ----------------------------------------------------------------- */

/* Room for many load events, which nearly all go in the order in which they came. */
struct perf_chunk;

/* A load event, its data and path behind it. */
struct perf_load {
	struct perf_chunk *chunk;
	struct driver_load load;
	uint64_t bytes[];
};

/* An item that waits for its turn by count.time_ns. @load: owned by the order; NULL: a count. */
struct perf_item {
	struct driver_count count;
	struct perf_load *load;
};

struct perf_queue {
	struct perf_item *items;
	size_t first, end, cap; /* [first, end) are in use */
};

struct perf_head {
	uint64_t time_ns; /* time of the first item */
	size_t queue;
};

/* Queues, each sorted by time, merged by a heap of their first items. */
struct perf_order {
	struct perf_queue *queues;
	struct perf_head *heap; /* heads of the queues that are not empty, earliest first */
	size_t nr_queues, nr_heap;
	uint64_t nr_samples;		  /* in items without a load */
	struct perf_chunk *chunk, *spare; /* where the next load goes; an empty one; or NULL */
};

/* ---- turns of slots and periods (cpus_linux.c) ----------------------------------------------- */

struct perf_turn {
	uint32_t nr_slots, slot; /* number of slots, and the current one */
	uint64_t slot_ns;
	uint64_t slot_since, drawn_since; /* CLOCK_MONOTONIC */
	bool draws;			  /* periods are drawn anew */
	uint64_t random;		  /* state of the generator */
};

/* ---- threads and processes (threads.c) ------------------------------------------------------- */

/*
 * How many threads each process has, so that its exit is that of its last thread, whichever that
 * is. Known from the process's fork or exec on; of older processes nothing is known, and the exit
 * of the main thread stands for that of the process (it may outlive it; its later samples still
 * carry its pid).
 */
struct perf_threads {
	struct base_map counts; /* pid -> number, as the value itself */
	/* pid -> time of the exit of its main thread, which was read and is to come (the last of
	 * these), as the value itself */
	struct base_map ends;
};

/* ---- names of threads (names.c) -------------------------------------------------------------- */

enum { PERF_NAME_LEN = 16 }; /* with its NUL */

/* Zero-initialize. A thread that no event named has number 0. */
struct perf_names {
	struct base_map threads, numbers; /* tid, text -> number, as the value itself */
	char (*texts)[PERF_NAME_LEN];	  /* indexed by number, from 1 */
	size_t nr, cap;
};

/* ---- the sampler: what "perf" and "bpf" share (open, cpus and sampler_linux.c) --------------- */

enum { PERF_RECORD_LEN_MAX = 65536 };

enum { PERF_NR_CODE_PIDS = 256 };

struct perf_sampler {
	struct driver *d; /* the driver whose events, stats and description are updated */
	struct event_spec specs[DRIVER_NR_EVENTS];
	uint64_t periods[DRIVER_NR_EVENTS]; /* nominal; 0: by frequency */
	bool in_kernel; /* samples run programs, and do not go into rings, but for some events' */
	int programs[DRIVER_NR_EVENTS]; /* -1: none */
	uint64_t frequency, max_rate;
	size_t ring_len; /* length of the next ring */
	bool ring_usual; /* no length was asked for, so smaller rings will do */
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
	struct perf_event *events; /* events of all CPUs: one allocation */
	struct perf_order order;   /* a queue per CPU, and a last one: perf_sampler_add */
	struct perf_threads threads;
	struct perf_names names; /* where samples are in the rings */
	uint64_t nr_loads;	 /* records of load events read so far */
	bool code_seen;		 /* in a ring: dynamic code is announced; reset by who drains */
	int32_t code_pids[PERF_NR_CODE_PIDS]; /* processes that have made memory for code, by pid */
	struct perf_turn turn;
	int epoll_fd, timer_fd;
	bool running;
	struct perf_spill {
		bool tried, runs, quit;
		pthread_t thread;
		int timer_fd;
		void (*more)(void *ctx); /* empties rings of others as well; NULL */
		void *ctx;
	} spill;			   /* the thread of sampler_linux.c */
	uint64_t looked_ns;		   /* when CPUs were last looked for */
	uint64_t unsent[DRIVER_NR_EVENTS]; /* PERF_RECORD_LOST_SAMPLES */
	uint64_t
		lost_said[DRIVER_NR_EVENTS]; /* losses by PERF_RECORD_LOST, without PERF_USE_LOST */
	uint64_t load_bad;	 /* load records that made no sense, times when a CPU was unseen,
				    ends of rings that made none */
	uint64_t sample_bad;	 /* samples of that kind, and such ends where rings hold samples */
	uint64_t distrusted;	 /* losses at which the threads were last forgotten */
	uint64_t announced_lost; /* side-band losses of which the sink was last told */
	uint64_t somewhere[DRIVER_NR_EVENTS]; /* received on PERF_CPU_UNKNOWN */
	uint8_t scratch[PERF_RECORD_LEN_MAX];
};

/*
 * Choose the events that @config asks for, or, if it names none, the machine's default: hardware
 * cycles or cpu-clock (then *why says so, else it is ""). At most DRIVER_NR_EVENTS. Returns the
 * number, or -DCPI_EUSAGE, -DCPI_ENOEVENTS.
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
 * of a program to run (the caller's; it must outlive @s), -1: its samples go into the rings; NULL:
 * those of all do. @why
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
/* Make it readable with @fd, too; @woken: each time that @fd is woken, and not as long as there is
 * something. 0 or -errno. */
int perf_sampler_poll_add(struct perf_sampler *s, int fd, bool woken);
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
/* The reader begins what may take long, or has done it: meanwhile a thread empties the rings. */
void perf_sampler_busy(struct perf_sampler *s, bool busy);
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

/* ---- records (record.c) ---------------------------------------------------------------------- */

/* A piece of bytes, taken from its front. */
struct perf_bytes {
	const uint8_t *at;
	size_t len;
};

/* False: fewer than @len are left, none is taken. */
bool perf_take(struct perf_bytes *b, void *to, size_t len);
bool perf_skip(struct perf_bytes *b, size_t len);

enum perf_what {
	PERF_SKIP,   /* a record to skip */
	PERF_SAMPLE, /* count */
	PERF_LOAD, /* load; also forks and exits of threads, names of threads: perf_threads_pass */
	PERF_LOST, /* nr records found the ring full */
	PERF_UNSENT, /* nr samples never reached the ring (PERF_RECORD_LOST_SAMPLES) */
	PERF_THROTTLED,
};

struct perf_record {
	enum perf_what what;
	uint64_t time_ns;
	uint64_t id; /* id of the event that put it into the ring */
	uint64_t nr;
	struct driver_count count; /* without event */
	uint16_t misc;		   /* of a sample's head */
	struct perf_bytes rest;	   /* of a sample: what lies behind PERF_SAMPLES, in the record */
	struct driver_load load;   /* path and data point into the record, data at any alignment */
};

/*
 * Parse one record of @len bytes, any alignment. 0, or -DCPI_EFORMAT where it is too short for its
 * type or a string has no end; then what says only what it would have been.
 */
int perf_record_parse(const uint8_t *rec, size_t len, struct perf_record *out);
/* In what mode the CPU was, by the misc of a sample's header. */
static inline enum driver_mode perf_mode_of(uint16_t misc)
{
	switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_USER:
		return DRIVER_USER;
	case PERF_RECORD_MISC_KERNEL:
		return DRIVER_KERNEL;
	default:
		return DRIVER_OTHER;
	}
}

/*
 * Parse the part between head and trailer of a record that is no sample, into @out, which is empty;
 * false: too short, or a string without an end. No times, and nothing is sorted out (perf.data).
 */
bool perf_record_parse_body(uint32_t type, uint16_t misc, const uint8_t *body, size_t len,
			    struct perf_record *out);

/* ---- instruction samples (insn.c) ------------------------------------------------------------ */

/*
 * Decodes what the hardware told of the instruction of a sample of the event @a: from the fields
 * @rest behind its period, in the kernel's order. Nothing known: it told nothing.
 */
void perf_insn_parse(enum event_hardware hw, const struct perf_event_attr *a,
		     const struct perf_bytes *rest, uint16_t misc, struct isample *out);
/* Tells of a sample whether it was chosen by a count of all operations. */
void perf_insn_chosen(enum event_hardware hw, const struct perf_event_attr *a, struct isample *out);

/* ---- threads (threads.c) --------------------------------------------------------------------- */

/* An event was read, and is to be passed when its turn comes. */
void perf_threads_read(struct perf_threads *t, const struct driver_load *load);
/* When the process that has this pid now ends by such an event; 0: that is not known. */
uint64_t perf_threads_end(const struct perf_threads *t, int32_t pid);
/* Feed every load event in order of time. False: it is about a mere thread, do not hand it on. */
bool perf_threads_pass(struct perf_threads *t, const struct driver_load *load);
/* Events were lost: forget the counts, which may be wrong now. */
void perf_threads_forget(struct perf_threads *t);

/* ---- names of threads (names.c) -------------------------------------------------------------- */

/* Feed every load event in order of time. */
void perf_names_load(struct perf_names *n, const struct driver_load *load);
uint32_t perf_names_get(const struct perf_names *n, int32_t tid);
/* See driver_thread_name. */
const char *perf_names_text(const struct perf_names *n, uint32_t number);
/* Events were lost: threads have the names that are told from now on. */
void perf_names_lose(struct perf_names *n);
/* See driver_threads_forget: does so when there are many. */
void perf_names_forget(struct perf_names *n);
void perf_names_release(struct perf_names *n);

/* ---- the system call, and the source --------------------------------------------------------- */

/* A mere perf_event_open: descriptor or -errno. @pid -1: all processes; @cpu -1: any. */
int perf_event_try(const struct perf_event_attr *attr, int32_t pid, int cpu);
/* As driver_open: samples in the rings of each CPU. */
int perf_open(const struct driver_config *config, struct driver **out, struct base_err *err);

#endif
