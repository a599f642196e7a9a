/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source "perf" from within. Per CPU two events with one ring (perf_ring_linux.c): the sampling
 * one, and a dummy that tracks mappings and processes, so that the kernel counts what each of them
 * lost. Rings are walked record by record (perf_ring.c), records parsed (perf_record.c), queued per
 * CPU and merged by time (perf_order.c), forks and exits of threads told from those of processes
 * (perf_threads.c), and handed on (perf_linux.c). Only the *_linux.c files make system calls.
 *
 * Facts of the records: perf_event_open(2) and <linux/perf_event.h>.
 */
#ifndef DCPI_PERF_INTERNAL_H
#define DCPI_PERF_INTERNAL_H

#include <linux/perf_event.h>

#include "driver_internal.h"

/* ---- what is asked of the kernel (perf_attr.c) ----------------------------------------------- */

/* The same for both events, so that every record of a ring ends alike. */
#define PERF_SAMPLES (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

/* What older kernels or some machines refuse; dropped one after another in this order. */
enum perf_feature {
	PERF_USE_LOST = 1,	    /* PERF_FORMAT_LOST: Linux 6.0 */
	PERF_USE_BUILD_ID = 2,	    /* Linux 5.12 */
	PERF_USE_KSYMBOL = 4,	    /* Linux 5.1 */
	PERF_USE_EXCLUDE_GUEST = 8, /* not every machine can */
	PERF_USE_ALL = 15,
	PERF_USE_KERNEL = 7, /* depend on the kernel alone, so the tracking event tells */
};

struct perf_kind {
	const char *name;
	uint32_t type;
	uint64_t config;
	bool clock; /* counts nanoseconds: has a fixed period, and can be said to miss samples */
};

/* NULL for an unknown name. */
const struct perf_kind *perf_kind_find(const char *name);
/* "cycles, instructions, …", for hints. */
const char *perf_kind_names(void);
void perf_attr_sampling(struct perf_event_attr *attr, const struct perf_kind *kind,
			uint64_t frequency, size_t ring_len, unsigned int features);
void perf_attr_tracking(struct perf_event_attr *attr, size_t ring_len, unsigned int features);
/*
 * Which features to try next after the kernel said @error (positive errno), giving up one of
 * @may_drop; -1: it has other reasons.
 */
int perf_attr_fallback(unsigned int features, unsigned int may_drop, int error);

/* ---- rings (perf_ring.c) --------------------------------------------------------------------- */

/* A ring of @len bytes (a power of two), written up to @head, read up to @tail; both only grow. */
struct perf_ring {
	const uint8_t *data;
	size_t len;
	uint64_t head, tail;
};

enum { PERF_RECORD_LEN_MAX = 65536 };

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
	uint64_t nr;
	struct driver_count count;
	struct driver_load load; /* path points into the record */
};

/*
 * Parse one record of @len bytes, any alignment. 0, or -DCPI_EFORMAT where it is too short for its
 * type or a string has no end; then what says only what it would have been.
 */
int perf_record_parse(const uint8_t *rec, size_t len, struct perf_record *out);
/*
 * What lies between head and trailer of a record that is no sample, into , which is empty; false
 * where it is too short or a string has no end. No times, and nothing sorted out (perf.data).
 */
bool perf_record_parse_body(uint32_t type, uint16_t misc, const uint8_t *body, size_t len,
			    struct perf_record *out);

/* ---- order (perf_order.c) -------------------------------------------------------------------- */

/* A record waiting for its turn. @load is owned; NULL: a sample. */
struct perf_item {
	uint64_t time_ns;
	uint64_t addr;
	int32_t pid, tid;
	enum driver_mode mode;
	struct perf_load *load;
};

/* A load event with its path behind it, one allocation. */
struct perf_load {
	struct driver_load load;
	char path[];
};

struct perf_queue {
	struct perf_item *items;
	size_t first, end, cap; /* [first, end) are in use */
};

/* A queue for each ring, each sorted by time, merged by a heap of their first items. */
struct perf_order {
	struct perf_queue *queues;
	size_t *heap; /* queues that are not empty, earliest first */
	size_t nr_queues, nr_heap;
	uint64_t nr_samples; /* items without a load */
};

int perf_order_init(struct perf_order *o, size_t nr_queues);
/* Frees the loads that still wait. */
void perf_order_release(struct perf_order *o);
/* 0 or -ENOMEM; takes item->load on success. Stable for equal times of one queue. */
int perf_order_add(struct perf_order *o, size_t queue, const struct perf_item *item);
/* After adding, before taking. */
void perf_order_settle(struct perf_order *o);
/* Take the earliest item if it is older than @horizon or of that age; its load is the caller's. */
bool perf_order_take(struct perf_order *o, uint64_t horizon, struct perf_item *out);

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

/* Feed every load event in order of time. False: it is about a mere thread, do not hand it on. */
bool perf_threads_pass(struct perf_threads *t, const struct driver_load *load);
/* Events were lost: forget the counts, which may be wrong now. */
void perf_threads_forget(struct perf_threads *t);

/* ---- CPUs (perf_cpus.c) ---------------------------------------------------------------------- */

/* "0-3,8" as sysfs writes it; at most @max numbers into @cpus. How many, or -EINVAL. */
int perf_cpus_parse(const char *text, unsigned int *cpus, size_t max);

/* ---- one CPU's events (perf_ring_linux.c) ---------------------------------------------------- */

struct perf_cpu {
	unsigned int cpu;
	int fd;	      /* sampling; owns the ring */
	int track_fd; /* load events, put into the same ring */
	void *map;
	size_t map_len;
	struct perf_ring ring;
	bool gone; /* the CPU went offline: nothing more will come */

	uint64_t value, enabled_ns; /* of the sampling event */
	uint64_t lost, lost_track;  /* by the kernel's own count (PERF_USE_LOST) */
	uint64_t received;	    /* samples read from the ring */
	uint64_t missed;
};

/* Empty, so that perf_cpu_close is always allowed. */
void perf_cpu_init(struct perf_cpu *c, unsigned int cpu);
/* A mere perf_event_open on @cpu for all processes: descriptor or -errno. */
int perf_event_try(const struct perf_event_attr *attr, unsigned int cpu);
/* 0, or -errno of perf_event_open or mmap; *@mapping tells which. @c is closed on failure. */
int perf_cpu_open(struct perf_cpu *c, const struct perf_event_attr *sampling,
		  const struct perf_event_attr *tracking, size_t ring_len, bool *mapping);
void perf_cpu_close(struct perf_cpu *c);
int perf_cpu_enable(struct perf_cpu *c, bool on);
/* Read the counters; what cannot be read keeps its last value. */
void perf_cpu_read(struct perf_cpu *c, bool with_lost);
/* See what the kernel has written; tell it what was read. */
void perf_cpu_look(struct perf_cpu *c);
void perf_cpu_release(struct perf_cpu *c);

/* ---- the source (opened by perf_open_linux.c, run by perf_linux.c) --------------------------- */

struct perf {
	struct driver base;
	const struct perf_kind *kind;
	uint64_t frequency;
	size_t ring_len;
	unsigned int features;
	struct perf_cpu *cpus;
	size_t nr_cpus;
	struct perf_order order; /* a queue per CPU */
	struct perf_threads threads;
	int epoll_fd;
	bool running;
	uint64_t unsent;     /* PERF_RECORD_LOST_SAMPLES */
	uint64_t lost_said;  /* by PERF_RECORD_LOST, where the kernel does not count by event */
	uint64_t load_bad;   /* load records that made no sense */
	uint64_t sample_bad; /* samples of that kind, and ends of rings that made none */
	uint64_t distrusted; /* losses at which the threads were last forgotten */
	uint8_t scratch[PERF_RECORD_LEN_MAX];
};

extern const struct driver_ops perf_ops;

#endif
