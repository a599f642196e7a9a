/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the sampler (perf.h), for the files of this folder and their tests. */
#ifndef DCPI_PERF_INTERNAL_H
#define DCPI_PERF_INTERNAL_H

#include "perf.h"

/* ---- what is asked of the kernel (open_linux.c) ---------------------------------------------- */

/* The same for all events, so that every record of a ring ends alike. */
#define PERF_SAMPLES (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

/*
 * Features that older kernels or some machines refuse; they are dropped one after another in this
 * order.
 */
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
/* The message for a requested rate: "" if an event is sampled by it. */
const char *perf_rate_unused(const struct event_spec *specs, size_t nr);
/* -DCPI_EUSAGE where an event would come more often than @max_rate a second (0: unknown). */
int perf_rate_check(const struct event_spec *specs, size_t nr, uint64_t frequency,
		    uint64_t max_rate, struct base_err *err);

/*
 * A period beside @nominal: 1 to 4 % shorter or longer, all alike, so that the mean is nominal and
 * the nominal one never comes; multiples of 16 stay such. Where the shortest is below @least, only
 * longer ones; where there is no such period (@nominal is small), @nominal itself.
 */
uint64_t perf_period_draw(uint64_t nominal, uint64_t least, uint64_t *random);
uint64_t perf_period_mean(uint64_t nominal, uint64_t least);
/* The period of an event from now on: drawn, or the nominal one. */
uint64_t perf_sampler_period(struct perf_sampler *s, size_t event);

/* ---- counters (cpus_linux.c) ----------------------------------------------------------------- */

/* Store a new reading; values that would shrink stay. */
void perf_count_read(struct perf_count *c, const struct perf_reading *r);
/* It counted for long enough since the last draw that its broken last period does not matter. */
bool perf_count_may_draw(const struct perf_count *c);
/* The period from what was last read on. */
void perf_count_draw(struct perf_count *c, uint64_t period);
/* The opening ends; nothing more is read of it. */
void perf_count_close(struct perf_count *c);
/* Compute the missed samples: periods that passed less samples that came. */
void perf_count_miss(struct perf_count *c);
uint64_t perf_count_value(const struct perf_count *c);
uint64_t perf_count_running_ns(const struct perf_count *c);
static inline uint64_t perf_count_lost(const struct perf_count *c)
{
	return c->past.lost + c->now.lost;
}

/* @running of @all: near 1 is 1, as what lies between two calls is no multiplexing. */
double perf_count_enabled(uint64_t running_ns, uint64_t all_ns);

/* ---- rings (sampler_linux.c) ----------------------------------------------------------------- */

/*
 * The record at the tail, made contiguous in @scratch (PERF_RECORD_LEN_MAX bytes) where it wraps.
 * Returns its length, 0 when the ring is empty, -DCPI_EFORMAT where a size lies: nothing behind it
 * can be found then. The tail stays: add the length to it.
 */
int perf_ring_peek(const struct perf_ring *ring, uint8_t *scratch, const uint8_t **rec);

/* ---- order (sampler_linux.c) ----------------------------------------------------------------- */

int perf_order_init(struct perf_order *o, size_t nr_queues);
/* Frees the loads that still wait. */
void perf_order_release(struct perf_order *o);
/* 0 or -ENOMEM. Stable for equal times of one queue. What is told of its instruction is copied. */
int perf_order_add(struct perf_order *o, size_t queue, const struct driver_count *count);
/* The same with a copy of @load, its path and data. */
int perf_order_add_load(struct perf_order *o, size_t queue, const struct driver_load *load);
/* After adding, before taking. */
void perf_order_settle(struct perf_order *o);
/* Take the earliest item if it is older than @horizon or of that age, else NULL. It is there until
 * something is added, its load until perf_order_drop. */
const struct perf_item *perf_order_take(struct perf_order *o, uint64_t horizon);
/* Release a count that was taken, once for each. */
void perf_order_drop_count(const struct driver_count *count);
/* Release a load that was taken, once for each. */
void perf_order_drop(struct perf_order *o, struct perf_load *load);

/* ---- lists of CPUs (cpus_linux.c) ------------------------------------------------------------ */

/* "0-3,8" as sysfs writes it; at most @max numbers into @cpus. How many, or -EINVAL. */
int perf_cpus_parse(const char *text, unsigned int *cpus, size_t max);

/* ---- one CPU's events (cpus_linux.c) --------------------------------------------------------- */

/* Not open. @events: as many as there are, the sampler's. */
void perf_cpu_init(struct perf_cpu *c, unsigned int cpu, struct perf_event *events, size_t nr);
/* The counts stay. */
void perf_cpu_close(struct perf_cpu *c, size_t nr_events);

/* ---- turns (cpus_linux.c) -------------------------------------------------------------------- */

/* It begins; slot 0 has its turn. */
void perf_turn_start(struct perf_turn *t, uint64_t now_ns);
/* Is it the next slot's turn? If so, it has it. */
bool perf_turn_rotate(struct perf_turn *t, uint64_t now_ns);
/* Are new periods due? If so, they count as drawn. */
bool perf_turn_draw(struct perf_turn *t, uint64_t now_ns);
/* When to be woken; 0: never. */
uint64_t perf_turn_next_ns(const struct perf_turn *t);

/* ---- the CPUs of a sampler (cpus_linux.c) ---------------------------------------------------- */

/* Open all that are online. 0 or -errno; *@failed: the event, or -1: tracking; *@mapping: its ring.
 */
int perf_sampler_open_online(struct perf_sampler *s, int *failed, bool *mapping);
/* Does @event have its turn with @slot? */
static inline bool perf_is_in_slot(const struct perf_sampler *s, size_t event, uint32_t slot)
{
	return s->specs[event].slots >> slot & 1;
}

/* Also tells which CPUs are gone. */
void perf_sampler_read_counters(struct perf_sampler *s);
/* CPUs that are gone are closed once their rings were read, those that came back opened. */
void perf_sampler_look_for_cpus(struct perf_sampler *s, uint64_t now_ns);
/* stats.lost_load, as the counters were last read. */
uint64_t perf_sampler_lost_load(const struct perf_sampler *s);

/* ---- the source (source_linux.c) ------------------------------------------------------------- */

struct perf {
	struct driver base;
	struct perf_sampler sampler;
};

extern const struct driver_ops perf_ops;

#endif
