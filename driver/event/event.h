/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events by name: the names every machine's users know (name.c), the PMUs of this machine as its
 * sysfs describes them (sysfs.c), and the text around them (event.c).
 *
 * Facts: perf_event_open(2), perf-list(1), and Documentation/ABI/testing/
 * sysfs-bus-event_source-devices-{format,events} of the kernel.
 */
#ifndef DCPI_EVENT_H
#define DCPI_EVENT_H

#include "source.h"

#define EVENT_SYSFS "/sys/bus/event_source/devices"

enum {
	EVENT_NAME_LEN = 32,   /* lengths of struct event_spec, terminator included */
	EVENT_TEXT_MAX = 1024, /* longest text of an event */
};

/* ---- events by name (event.c) ---------------------------------------------------------------- */

/* Nanoseconds: the kernel's clocks go no faster. */
enum { EVENT_CLOCK_LEAST = 10000 };

/* Hardware that tells more of a sampled instruction in records of its own. */
enum event_hardware { EVENT_HW_OTHER, EVENT_HW_IBS_OP, EVENT_HW_IBS_FETCH, EVENT_HW_SPE };

/* The name of a PMU tells its hardware, also where terms follow. */
enum event_hardware event_hardware_of(const char *pmu);

/* The event to sample, before any system call. Numbers as perf_event_open(2) takes them. */
struct event_spec {
	char name[32]; /* as announced and stored: the text without its period */
	bool tick;     /* the scheduler's tick: no perf event at all */
	bool clock;    /* counts nanoseconds: can be said to miss samples */
	uint32_t type; /* PERF_TYPE_*, or a PMU's number from sysfs */
	uint64_t config, config1, config2;
	uint64_t period;      /* 0: by frequency */
	unsigned int precise; /* precise_ip, 0 to 3 */
	bool exclude_user, exclude_kernel, exclude_hv;
	enum event_hardware hardware;
	bool told;	/* asked for by a name that says that more is wanted than the address */
	uint64_t slots; /* bit i: has its turn with slot i; events of one slot count together */
};

/*
 * "NAME[:MODIFIERS][:PERIOD]". @sysfs: the folder of PMUs (NULL: '/sys/bus/event_source/devices').
 * -DCPI_EUSAGE: no such event (the nearest names as hint), or a bad modifier or period.
 */
int event_parse(const char *text, const char *sysfs, struct event_spec *out, struct base_err *err);
/*
 * All slots, in order: at most EVENT_NR_SLOTS, of DRIVER_NR_EVENTS different events. An event may
 * be in several slots, all alike; tick, which has no turns, only in all. The number of events, or
 * as above.
 */
enum { EVENT_NR_SLOTS = 63 };
int event_parse_slots(const char *const *slots, size_t nr_slots, const char *sysfs,
		      struct event_spec *out, struct base_err *err);

/* ---- names (name.c) -------------------------------------------------------------------------- */

enum event_class { EVENT_HARDWARE, EVENT_CACHE, EVENT_SOFTWARE, EVENT_TICK, EVENT_DCPI };

struct event_name {
	const char *name;
	enum event_class class;
	uint32_t type;
	uint64_t config;
	bool clock;
	const char *what; /* a few words for people; NULL: the name says it, or an alias */
};

/* NULL for an unknown one. */
const struct event_name *event_name_find(const char *name);
/* All of them, those of a class together; NULL at the end. */
const struct event_name *event_name_nth(size_t index);

/* The few names nearest to a word, for hints. */
struct event_near {
	char word[64];
	unsigned int reach; /* names further away are no slip of the fingers */
	struct {
		char name[64];
		unsigned int distance;
	} best[3];
	size_t nr;
};

void event_near_init(struct event_near *n, const char *word);
/* @near: a struct event_near; as event_sysfs_list wants it. Returns 0. */
int event_near_add(void *near, const char *name);
/* "did you mean 'a', 'b'?", or @otherwise where nothing is near. */
void event_near_hint(const struct event_near *n, const char *otherwise, struct base_err *err);

/* ---- PMUs (sysfs.c) -------------------------------------------------------------------------- */

/* A decimal number in the file <sysfs>/<pmu>/<folder>/<file> (what is NULL is left out). */
int event_sysfs_number(const char *sysfs, const char *pmu, const char *folder, const char *file,
		       uint64_t max, uint64_t *out);
/* The decimal number that is all there is in the file @path; @otherwise where it cannot be read. */
int64_t event_number_read(const char *path, int64_t otherwise);
/* Call @each with every name in that folder that can be one of an event or PMU, sorted, until it
 * returns other than 0, which is returned. @pmu NULL: names of PMUs. -errno. */
int event_sysfs_list(const char *sysfs, const char *pmu, const char *folder,
		     int (*each)(void *ctx, const char *name), void *ctx);
/* A PMU that counts what a CPU executes (of several the first by name) and that knows the event
 * @name, into @pmu (EVENT_PMU_LEN bytes). 0 or -ENOENT. */
enum { EVENT_PMU_LEN = 64 };
int event_sysfs_core(const char *sysfs, const char *name, char *pmu);

/*
 * Type and config words of "TERM[=VALUE],…" of @pmu into @out; "name=…" goes into @name
 * (EVENT_NAME_LEN bytes, "" where there is none), "period=…" into out->period.
 */
int event_sysfs_resolve(const char *sysfs, const char *pmu, const char *terms,
			struct event_spec *out, char *name, struct base_err *err);

#endif
