/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where samples and load events come from. One interface, several sources: "perf" (system-wide
 * perf_event_open, a ring per CPU), "replay" (a recorded stream), later "bpf" and "inprocess".
 * Load events and counts come out in the order of time; what the daemon does with them is its own.
 */
#ifndef DCPI_DRIVER_H
#define DCPI_DRIVER_H

#include "base.h"

#define DRIVER_NR_EVENTS 16

/* One sampled event, as asked for and as it came out. */
struct driver_event {
	char name[32];	 /* "cycles", "cpu-clock" */
	uint64_t period; /* mean distance of samples: events, or nanoseconds for clocks; of events
			    sampled at a frequency it is measured, 0 before the first drain */
};

struct driver_config {
	const char *source;	 /* "perf", "replay"; NULL: perf */
	const char *replay_path; /* source replay */
	const char *event;  /* NULL: hardware cycles where there are any, cpu-clock otherwise */
	uint64_t frequency; /* samples per second and CPU; 0: 1000 */
	size_t ring_pages;  /* data pages per CPU, a power of two; 0: 128 */
};

/* ---- what comes out ------------------------------------------------------------------------ */

enum driver_load_kind {
	DRIVER_LOAD_MMAP,    /* an executable mapping appeared: addr, len, file_off, id, path */
	DRIVER_LOAD_FORK,    /* pid is a child of ppid (not for threads) */
	DRIVER_LOAD_EXEC,    /* pid has a new program; its mappings are gone; comm in path */
	DRIVER_LOAD_COMM,    /* pid's main thread changed its name: path */
	DRIVER_LOAD_EXIT,    /* the process (not a mere thread) has ended */
	DRIVER_LOAD_KSYMBOL, /* kernel code at addr, len, named path appeared (flags: gone) */
	DRIVER_LOAD_KERNEL,  /* replay only: kernel text at addr, len; id */
	DRIVER_LOAD_DYN,     /* replay only: data/data_len holds wire records of pid's registry */
};

#define DRIVER_LOAD_GONE 1u /* flags: KSYMBOL unregistered */

struct driver_load {
	enum driver_load_kind kind;
	uint64_t time_ns;	/* CLOCK_MONOTONIC; 0 in the initial state */
	int32_t pid, ppid, tid; /* as the daemon's PID namespace numbers them */
	uint32_t flags;
	uint64_t addr, len, file_off;
	uint32_t prot;		       /* PROT_*; MMAP */
	uint32_t dev_major, dev_minor; /* MMAP without build-id */
	uint64_t inode;
	struct base_id id; /* build-id; len 0: the file has none, or the kernel did not tell */
	const char *path;  /* valid during the call; MMAP: "[vdso]", "//anon", "/memfd:dbgdyn
			      (deleted)" */
	const void *data;  /* 8-byte aligned */
	size_t data_len;
};

enum driver_mode { DRIVER_USER, DRIVER_KERNEL, DRIVER_OTHER /* hypervisor, guest: no image */ };

/* @count samples of @event at @addr by process @pid at @time_ns (or in the interval that ends
 * there). */
struct driver_count {
	uint64_t time_ns;
	int32_t pid, tid; /* 0: the idle task; -1: unknown */
	uint32_t event;	  /* index, see driver_event_get */
	enum driver_mode mode;
	uint32_t generation; /* 0 until sources tell */
	uint64_t addr;
	uint64_t count;
};

/* Callbacks return 0, or negative to stop the drain (which returns it). */
struct driver_sink {
	int (*load)(void *ctx, const struct driver_load *load);
	int (*count)(void *ctx, const struct driver_count *count);
	void *ctx;
};

/* The accounting law's left side and the losses below the daemon; all only grow. */
struct driver_stats {
	uint64_t received[DRIVER_NR_EVENTS]; /* handed to count() + still held + lost */
	uint64_t held;			     /* read from the rings, waiting for order */
	uint64_t lost_ring;		     /* samples that found a ring full */
	uint64_t lost_load; /* side-band records lost: attribution may suffer; not samples */
	uint64_t lost_bad;  /* samples whose record made no sense */
	uint64_t missed[DRIVER_NR_EVENTS]; /* enabled time / period - received: never delivered */
	uint64_t throttled;		   /* times the kernel throttled an event */
};

/* ---- calls --------------------------------------------------------------------------------- */

struct driver;

/*
 * Open a source, not yet counting. Errors: -DCPI_ENOEVENTS with cause and hint (rights, paranoid
 * level, no perf events), -DCPI_EUSAGE for an unknown source or event, replay: those of its file.
 */
int driver_open(const struct driver_config *config, struct driver **out, struct base_err *err);
/* Start. From here on load events are recorded: scan running processes after this call. */
int driver_start(struct driver *d, struct base_err *err);
/*
 * Hand everything available to @sink, in order of time. Without @all, records younger than what
 * another CPU may still deliver are held for the next call; with it (after stop, or for a flush:
 * the order is then settled up to now) nothing is held. Replay: returns 1 while there is more, 0 at
 * its end.
 */
int driver_drain(struct driver *d, bool all, const struct driver_sink *sink, struct base_err *err);
/* A descriptor that becomes readable when a drain is due, or -1: drain by the clock. */
int driver_poll_fd(const struct driver *d);
/* Stop counting; what is in the rings can still be drained. */
void driver_stop(struct driver *d);
void driver_close(struct driver *d);

size_t driver_nr_events(const struct driver *d);
const struct driver_event *driver_event_get(const struct driver *d, size_t index);
void driver_stats_get(const struct driver *d, struct driver_stats *out);
/* One line for people: "perf: cpu-clock at 1000 Hz on 2 CPUs (no hardware cycles here)". */
const char *driver_describe(const struct driver *d);
/* True for a source whose time and processes are not this machine's present (replay). */
bool driver_is_recorded(const struct driver *d);
/* UTC seconds at which a recorded stream began, -1 for a live source. */
int64_t driver_recorded_utc(const struct driver *d);

/* ---- recorded streams (docs/format/replay.md) ---------------------------------------------- */

/* Write the stream's head, then what a live source delivers: "dcpid -record FILE". 0 or -errno. */
int driver_record_head(FILE *to, const struct driver *d, int64_t utc);
int driver_record_load(FILE *to, const struct driver_load *load);
int driver_record_count(FILE *to, const struct driver_count *count);

#endif
