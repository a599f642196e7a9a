/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where samples and load events come from. One interface, several sources: "bpf" (counts made in
 * the kernel), "perf" (system-wide perf_event_open, a ring per CPU), "replay" (a recorded stream or
 * a perf.data file), "inprocess" (a program that samples itself: dcpirun). Load events and counts
 * come out in the order of time; what the daemon does with them is its own. So do, where they are
 * asked for, traces: the instructions that the sampled programs executed next (lib/vtrace).
 */
#ifndef DCPI_DRIVER_H
#define DCPI_DRIVER_H

#include "base.h"
#include "vtrace.h"
#include "insn_trace.h"
#include "isample.h"

#define DRIVER_NR_EVENTS 16

/* One sampled event, as asked for and as it came out. */
struct driver_event {
	char name[32];	 /* "cycles", "cpu-clock", "cycles:pp" */
	uint64_t period; /* mean distance of samples: events, or nanoseconds for clocks; of events
			    sampled at a frequency it is measured, 0 before the first drain */
	double enabled;	 /* fraction of the time that it was counted (multiplexing), 0 to 1; 1
			    before the first drain */
};

struct driver_config {
	const char *source; /* NULL: "bpf", and where that is refused "perf": describe says why */
	const char *replay_path; /* source replay */
	int stop_fd; /* replay of a pipe: while this is readable, silence ends it; 0: none */
	/*
	 * The events to sample: each slot names events that are counted at the same time,
	 * "NAME[:MODIFIERS][:PERIOD]" joined by '+'; several slots are counted in turn
	 * (multiplexed). An event may be in several slots, with the same period; tick, which has no
	 * turns, only in all. None: hardware cycles if available; otherwise the scheduler's tick
	 * (bpf, and no frequency given) or a clock.
	 */
	const char *const *slots;
	size_t nr_slots;
	uint64_t frequency; /* samples per second and CPU of events without a period; 0: 1000,
			       or what the kernel allows where that is less */
	bool fixed_period;  /* do not draw periods anew (to show what that does) */
	uint32_t slot_ms;   /* how long a slot has its turn; 0: 1000 */
	size_t ring_pages;  /* data pages per CPU, a power of two; 0: 128 */
	size_t table_len;   /* bpf: entries of a CPU's table, a power of two; 0: 16384 */
	uint32_t drain_ms;  /* bpf: longest time between two swaps of the tables; 0: 5000 */
	int32_t pid; /* above 0: this process and its later children alone, their user mode (perf,
			inprocess); 0: everything */
	const char *run_dir; /* inprocess: folder in which the program's agents put their rings */
	/*
	 * One in so many user-mode samples of the first event gets a trace (bpf); 0: none.
	 * -DCPI_EUNSUPPORTED, also by other sources, if traces are not possible and not optional.
	 */
	uint32_t trace_every;
	/*
	 * Where they are not possible, or the first event is not of time: none, and describe says
	 * why; else with small tables, and trace_every is for 1000 samples a second: at another
	 * rate it is another, so that as many come.
	 */
	bool trace_optional;
	uint16_t trace_insns; /* how many instructions at most; 0: 64 */
	uint8_t trace_log;    /* enum vtrace_log */
	bool trace_kernel;    /* traces of samples in kernel mode too */
	/* One in so many samples gets a call path (bpf); 0: none. -DCPI_EUNSUPPORTED, also by other
	 * sources, if call paths are not possible. */
	uint32_t callpath_every;
	/* callpath_every is for 1000 samples a second: at another rate it is another, so that as
	 * many come. */
	bool callpath_scaled;
	/*
	 * How long threads wait and run, added up in the kernel (bpf): two more events, "wait" and
	 * "run", whose counts are nanoseconds, behind those that are sampled. They need call paths.
	 * -DCPI_EUNSUPPORTED, also by other sources, if that is not possible.
	 */
	bool waits;
};

/* ---- what comes out -------------------------------------------------------------------------- */

enum driver_load_kind {
	DRIVER_LOAD_MMAP,    /* an executable mapping appeared: addr, len, file_off, id, path */
	DRIVER_LOAD_FORK,    /* pid is a child of ppid (not for threads) */
	DRIVER_LOAD_EXEC,    /* pid has a new program; its mappings are gone; comm in path */
	DRIVER_LOAD_COMM,    /* pid's main thread changed its name: path */
	DRIVER_LOAD_EXIT,    /* the process (not a mere thread) has ended */
	DRIVER_LOAD_KSYMBOL, /* kernel code at addr, len, named path appeared (flags: gone) */
	DRIVER_LOAD_KERNEL,  /* replay only: kernel text at addr, len; id */
	DRIVER_LOAD_DYN,     /* replay only: data/data_len holds wire records of pid's registry */
	DRIVER_LOAD_POKE,    /* the kernel changed its own code at addr: data holds the new bytes */
	DRIVER_LOAD_LABEL,   /* replay only: what pid executes next, and all that comes of that, has
				the label in path */
	DRIVER_LOAD_LOST,    /* more events of processes were lost, len in all (pid 0, no time):
				counts from here on may lie in what they told of; perf, bpf */
};

#define DRIVER_LOAD_GONE   1u /* flags: KSYMBOL unregistered */
#define DRIVER_LOAD_CURSOR 2u /* flags: FORK, of a client's process: cursor is valid */

struct driver_load {
	enum driver_load_kind kind;
	uint64_t time_ns;	/* CLOCK_MONOTONIC; 0 in the initial state */
	int32_t pid, ppid, tid; /* as the daemon's PID namespace numbers them */
	int32_t ptid;		/* FORK: the thread that forked; 0: not told */
	uint32_t flags;
	uint64_t addr, len, file_off;
	uint64_t cursor; /* FORK: the parent's at that instant, see struct driver_client */
	uint32_t prot;	 /* PROT_*; MMAP */
	/* FORK, EXEC: how long it lives from then on, as its end was read too; 0: not known. */
	uint64_t lives_ns;
	uint32_t dev_major, dev_minor; /* MMAP without build-id */
	uint64_t inode;
	struct base_id id;   /* build-id; len 0: the file has none, or the kernel did not tell */
	struct base_id text; /* its code, where the daemon knows that already; no source tells it */
	const char *path;    /* valid during the call; MMAP: "[vdso]", "//anon", "/memfd:dbgdyn
				(deleted)" */
	const void *data;    /* DYN: 8-byte aligned */
	size_t data_len;
};

enum driver_mode { DRIVER_USER, DRIVER_KERNEL, DRIVER_OTHER /* hypervisor, guest: no image */ };

/*
 * A life of a process in a number: when it was forked, since boot (CLOCK_BOOTTIME, in units, modulo
 * 2^48), and, so many times the other, how many programs it and who it stems from have executed
 * (modulo 2^16; a child begins with its parent's number).
 */
#define DRIVER_INSTANCE_UNIT 1024 /* nanoseconds */
#define DRIVER_INSTANCE_EXEC (UINT64_C(1) << 48)

/*
 * @count samples of @event at @addr, all in one life of process @pid (between fork, exec and exit),
 * the first at @first_ns, the last at @time_ns. They come in the order of time_ns, between the load
 * events before and after it.
 */
struct driver_count {
	uint64_t first_ns, time_ns;
	uint64_t instance; /* which life of @pid, see DRIVER_INSTANCE_EXEC; 0: not told. In
			      kernel mode it may be that of before an exec which was told, or 0
			      of a process that ends, and counts may come behind its exit */
	int32_t pid, tid;  /* in kernel mode too; 0: the idle task; -1: unknown */
	uint32_t thread;   /* name of its thread, see driver_thread_name; 0: not known */
	uint32_t event;	   /* index, see driver_event_get */
	enum driver_mode mode;
	/*
	 * Generation of the code at addr, see struct driver_client; neither read nor unread: not
	 * asked for.
	 */
	uint32_t generation;
	bool generation_read;
	bool generation_unread; /* its word could not be read */
	uint64_t addr;
	uint64_t count;
	/* The attributes that the hardware told of the instruction at addr, valid during the call;
	 * NULL: it told none. */
	const struct isample *insn;
};

/* Why a call path ends where it does. */
enum driver_callpath_end {
	DRIVER_CALLPATH_COMPLETE,   /* its last frame is the outermost one of its thread */
	DRIVER_CALLPATH_CUT,	    /* it has DRIVER_NR_FRAMES frames, and the last one a caller */
	DRIVER_CALLPATH_UNREADABLE, /* memory of its stack was not present, or may not be read */
	DRIVER_CALLPATH_NO_ROWS,    /* the code of its last frame has no unwind rows (unwind.h) */
	DRIVER_CALLPATH_ASTRAY, /* the rows of its last frame lead to no code, or down the stack */
	DRIVER_NR_CALLPATH_ENDS
};

enum { DRIVER_NR_FRAMES = 1024 };

/*
 * A frame of a call path: an address in its code. This flag is in the frame of a user-mode address
 * that was interrupted: the sampled one, and the one that a signal handler returns to. Any other
 * frame is a return address, which stands behind its call and may belong to the next routine: look
 * up the address before it.
 */
#define DRIVER_FRAME_EXACT (UINT64_C(1) << 63)
/*
 * A frame that is of a function which an interpreter runs, in place of the interpreter's own: no
 * address, but the key of the function in its process (DRIVER_FRAME_KEY) and the number of an
 * instruction in it. driver_function tells of it.
 */
#define DRIVER_FRAME_FUNCTION	  (UINT64_C(1) << 62)
#define DRIVER_FRAME_KEY_SHIFT	  16
#define DRIVER_FRAME_KEY(frame)	  (((frame) & (DRIVER_FRAME_FUNCTION - 1)) >> DRIVER_FRAME_KEY_SHIFT)
#define DRIVER_FRAME_INSTR(frame) ((uint32_t)((frame)&0xffff)) /* 0xffff: it, or a later one */

/* A state of a thread, whose time is not sampled but measured. */
enum driver_wait {
	DRIVER_WAIT_NONE, /* it is a sample */
	DRIVER_WAIT_RUNS, /* it runs: no wait */
	DRIVER_WAIT_SLEEP,
	DRIVER_WAIT_DISK,
	DRIVER_WAIT_LOCK,
	DRIVER_WAIT_PIPE, /* pipe, socket, queue of messages, or for one of several of these */
	DRIVER_WAIT_FAULT,
	DRIVER_WAIT_RUNNABLE, /* woken or preempted: for a CPU */
	DRIVER_WAIT_OTHER,    /* for something else: a child, a signal, work for the kernel */
	DRIVER_WAIT_UNKNOWN,  /* its path is not known */
	DRIVER_NR_WAITS
};

/*
 * @count samples, as in driver_count, of one call path; or so many nanoseconds of a thread that
 * waits or runs (@wait): then the first frame is no address but that, what is sampled counts as
 * "DRIVER_KERNEL", and its callers stand behind it.
 */
struct driver_callpath {
	uint64_t first_ns, time_ns, instance, count;
	int32_t pid, tid;
	uint32_t event;
	uint32_t thread; /* of a wait: as in driver_count */
	enum driver_wait wait;
	enum driver_mode mode; /* mode of the sample: with DRIVER_KERNEL nr_kernel is above 0 */
	uint32_t generation;   /* generation of the code at the first frame, as in driver_count */
	bool generation_read, generation_unread;
	enum driver_callpath_end end;
	/* The sampled address first, its callers behind it: frames in the kernel, then in the
	 * process. Of frames in the kernel the first is exact, without a flag; of an event that is
	 * sampled precisely (":p") there are no others. */
	uint16_t nr_kernel, nr;
	/* A path that ends without rows, where they may come, brings the last frame's
	 * state, and so many bytes of the stack from its stack pointer on, valid during the call.
	 * Others: NULL. */
	const struct unwind_state *state;
	const uint64_t *stack;
	uint32_t stack_len;
};

/* Characters as they lie in a process, perhaps cut: @len bytes, @kind of them (1: Latin-1, 2, 4) a
 * character. No byte of them is believed. */
struct driver_string {
	const uint8_t *text;
	size_t len;
	uint16_t kind;
};

/* A function that an interpreter runs in a process. It comes before paths that it is on; not always
 * once only. */
struct driver_function {
	uint64_t time_ns, instance, key;
	int32_t pid;
	uint32_t nr;   /* instructions */
	uint32_t line; /* its first */
	uint32_t uid;  /* the process's user then: real, effective and saved */
	struct driver_string name, file;
	const uint8_t *lines; /* CPython's table of locations; cut off, or none, where it is long */
	size_t lines_len;
};

/* Callbacks return 0, or negative to stop the drain (which returns it). */
struct driver_sink {
	int (*load)(void *ctx, const struct driver_load *load);
	int (*count)(void *ctx, const struct driver_count *count);
	/* Among them by its time_ns, and behind a count of that time; NULL: not wanted. @words:
	 * w->nr_words. Both are valid during the call. */
	int (*trace)(void *ctx, const struct insn_trace *w, const uint64_t *words);
	/* Likewise. @frames: c->nr. */
	int (*callpath)(void *ctx, const struct driver_callpath *c, const uint64_t *frames);
	int (*function)(void *ctx, const struct driver_function *f);
	void *ctx;
};

/* The accounting law's left side and the losses below the daemon; all only grow. */
struct driver_stats {
	uint64_t received[DRIVER_NR_EVENTS]; /* handed to count() + still held + lost */
	uint64_t held;			     /* read from rings or tables, waiting for order */
	uint64_t lost_ring;		     /* samples that found a ring full */
	uint64_t lost_table;  /* bpf: found the table full before a drain could be had, or none */
	uint64_t lost_late;   /* bpf: the same, 100 ms or more after a drain was asked for */
	uint64_t lost_nested; /* bpf: interrupted the counting of another on the same CPU */
	uint64_t lost_read;   /* bpf: no memory for what lay in a table, or its head told of more */
	uint64_t lost_load;   /* side-band records lost: attribution may suffer; not samples (before
				 Linux 6.0, of perf, it may be that the samples of lost_ring are
				 in it too) */
	uint64_t lost_bad;    /* samples whose record made no sense */
	/*
	 * Samples that were never delivered: of a clock time enabled / period - received, of a
	 * hardware event its count / period - received. 0 where the number due is unknown: events
	 * by frequency, precise ones, other PMUs', of one process, and clocks of one mode.
	 */
	uint64_t missed[DRIVER_NR_EVENTS];
	uint64_t throttled; /* times the kernel throttled an event; bpf: always 0, nobody tells */
	uint64_t nr_unread; /* inprocess, once stopped: processes without a ring that was read */
};

/* ---- a source -------------------------------------------------------------------------------- */

struct driver;
struct driver_client;
struct driver_file;
struct driver_rows_missing;
struct driver_trace_stats;
struct driver_callpath_stats;
struct driver_wait_stats;
struct unwind_table;
struct unwind_state;
struct unwind_rule;

/* Operations of a source with traces, while traces are asked for: each as the call below that has
 * its name. */
struct driver_trace_ops {
	int (*missing)(struct driver *d, int (*fn)(void *ctx, const struct insn_trace *w),
		       void *ctx);
	int (*block_put)(struct driver *d, const struct vtrace_code *code);
	const struct vtrace_code *(*block_get)(const struct driver *d, uint32_t id);
	void (*every)(struct driver *d, uint32_t every);
	void (*stats)(const struct driver *d, struct driver_trace_stats *out);
};

/* Operations of a source with call paths, likewise. */
struct driver_callpath_ops {
	int (*missing)(struct driver *d, int (*fn)(void *ctx, const struct driver_rows_missing *m),
		       void *ctx);
	int (*put)(struct driver *d, const struct driver_file *file,
		   const struct unwind_table *table);
	void (*again)(struct driver *d, const struct driver_file *file);
	void (*forget)(struct driver *d, const struct driver_file *files, size_t nr);
	bool (*rule)(struct driver *d, const struct driver_file *file, uint64_t off,
		     struct unwind_rule *rule);
	void (*stats)(const struct driver *d, struct driver_callpath_stats *out);
};

/* Operations of a source that measures waits. */
struct driver_wait_ops {
	void (*stats)(const struct driver *d, struct driver_wait_stats *out);
};

/* Operations of every source, likewise. */
struct driver_ops {
	int (*start)(struct driver *d, struct base_err *err);
	int (*drain)(struct driver *d, bool all, const struct driver_sink *sink,
		     struct base_err *err);
	int (*poll_fd)(const struct driver *d);
	/* Both NULL: it cannot tell */
	int (*look)(struct driver *d);
	int (*wake_at_exec)(struct driver *d);
	void (*busy)(struct driver *d, bool busy); /* NULL: nothing is lost meanwhile */
	/* NULL: every sample is handed on by itself */
	int (*client_set)(struct driver *d, int32_t pid, const struct driver_client *client);
	/* Both NULL: it tells no names. */
	const char *(*thread_name)(const struct driver *d, uint32_t thread);
	void (*threads_forget)(struct driver *d);
	void (*stop)(struct driver *d);
	void (*close)(struct driver *d); /* frees @d; also called on a half-opened source */
};

/*
 * A source's own struct begins with this one, and is given out as one. The fields are the source's:
 * all other code has the calls below.
 */
struct driver {
	const struct driver_ops *ops;
	const struct driver_trace_ops *traces;	     /* NULL: there are none */
	const struct driver_callpath_ops *callpaths; /* likewise */
	const struct driver_wait_ops *waits;	     /* likewise */
	struct driver_event events[DRIVER_NR_EVENTS];
	size_t nr_events; /* that are sampled */
	size_t nr_timed;  /* behind them, those whose counts are nanoseconds */
	struct driver_stats stats;
	int64_t utc;	   /* when the recorded stream began; -1: live */
	char refused[256]; /* why it is not the source that would be better; or empty */
	char describe[640];
	char *agent_env; /* see driver_agent_env; the source's */
};

/* ---- calls ----------------------------------------------------------------------------------- */

/*
 * Open a source, not yet counting. Errors: -DCPI_ENOEVENTS with cause and hint (rights, paranoid
 * level, no perf events), -DCPI_EUSAGE for an unknown source or event, replay: those of its file.
 */
int driver_open(const struct driver_config *config, struct driver **out, struct base_err *err);
/* Start. From here on load events are recorded: scan running processes after this call. */
static inline int driver_start(struct driver *d, struct base_err *err)
{
	return d->ops->start(d, err);
}

/*
 * Hand everything available to @sink, in order of time. Without @all, records younger than what
 * another CPU may still deliver are held for the next call, and bpf's tables are read only when
 * that is due. With it (after stop, or for a flush) nothing is held that had arrived before the
 * call; perf: a record that a CPU had its time for, but had not yet put into its ring when a flush
 * came, is handed on by the next call, behind younger ones of other CPUs. Replay: returns 1 while
 * there is more, 0 at its end; behind driver_stop nothing more is read.
 */
static inline int driver_drain(struct driver *d, bool all, const struct driver_sink *sink,
			       struct base_err *err)
{
	return d->ops->drain(d, all, sink, err);
}

/* A descriptor that becomes readable when a drain is due, or -1: drain by the clock. */
static inline int driver_poll_fd(const struct driver *d)
{
	return d->ops->poll_fd(d);
}

/*
 * The news since the last look: nothing, load events, or one that must not wait for its drain (a
 * registry, known by its mapping alone). Cheap enough for several calls a second, also by a caller
 * that takes long for what driver_drain hands on: the news are then in memory for the next drain.
 * -DCPI_EUNSUPPORTED: this source cannot tell.
 */
enum driver_look { DRIVER_QUIET = 0, DRIVER_NEWS, DRIVER_URGENT };
static inline int driver_look(struct driver *d)
{
	return d->ops->look ? d->ops->look(d) : -DCPI_EUNSUPPORTED;
}

/* The caller begins what may take long, or has done it: load events that come meanwhile do not
 * depend on its looks. */
static inline void driver_busy(struct driver *d, bool busy)
{
	if (d->ops->busy)
		d->ops->busy(d, busy);
}

/*
 * For who looks no more: the next program that begins, on whatever CPU, makes the descriptor of
 * driver_poll_fd readable; once. 0 or negative: nobody will be told.
 */
static inline int driver_wake_at_exec(struct driver *d)
{
	return d->ops->wake_at_exec ? d->ops->wake_at_exec(d) : -DCPI_EUNSUPPORTED;
}

/* Stop counting; what is in the rings and tables can still be drained. */
static inline void driver_stop(struct driver *d)
{
	d->ops->stop(d);
}

static inline void driver_close(struct driver *d)
{
	if (d)
		d->ops->close(d);
}

/* Events by index: first those that are sampled, then those whose counts are nanoseconds. */
static inline size_t driver_nr_events(const struct driver *d)
{
	return d->nr_events + d->nr_timed;
}

static inline size_t driver_nr_sampled(const struct driver *d)
{
	return d->nr_events;
}

static inline const struct driver_event *driver_event_get(const struct driver *d, size_t index)
{
	return index < driver_nr_events(d) ? &d->events[index] : NULL;
}

static inline void driver_stats_get(const struct driver *d, struct driver_stats *out)
{
	*out = d->stats;
}

/*
 * The name of a thread that counts were told of, at most 15 bytes, valid until the next call of
 * driver_threads_forget; "" for 0. A number has one name until then. driver_threads_forget: numbers
 * are given anew, from some later drain on; counts of before keep their numbers, which have their
 * names until the call after that. So whoever keeps names by number drops them with the call. bpf
 * gives 8191 numbers between two calls, further names have 0.
 */
static inline const char *driver_thread_name(const struct driver *d, uint32_t thread)
{
	return d->ops->thread_name ? d->ops->thread_name(d, thread) : "";
}

static inline void driver_threads_forget(struct driver *d)
{
	if (d->ops->threads_forget)
		d->ops->threads_forget(d);
}

/* One line for people: "perf: cpu-clock at 1000 Hz on 2 CPUs (no hardware cycles here)". */
static inline const char *driver_describe(const struct driver *d)
{
	return d->describe;
}

/* True for a source whose time and processes are not this machine's present (replay). */
static inline bool driver_is_recorded(const struct driver *d)
{
	return d->utc >= 0;
}

/* UTC seconds at which a recorded stream began, -1 for a live source. */
static inline int64_t driver_recorded_utc(const struct driver *d)
{
	return d->utc;
}

/* Inprocess: what its agents are told, "NAME=VALUE" for the program's environment. NULL: no agents.
 */
static inline const char *driver_agent_env(const struct driver *d)
{
	return d->agent_env;
}

/* ---- code that is reused --------------------------------------------------------------------- */

/*
 * A process whose code comes and goes, so that a count over an interval does not tell enough. In a
 * range of kind SINGLE each sample is handed on by itself, with its time. In one of kind WORDS
 * counts come apart by generation, which the sampler reads from the process with the sample: the
 * word (32 bits) of address a is number (a >> 12) % nr_words of those at @words. A sampler that can
 * reads them where the kernel has the pages of @words_fd, which is cheaper. At the end of a
 * fork of the process the 64-bit number at @cursor is read, and handed on with that event.
 */
enum driver_range_kind { DRIVER_RANGE_SINGLE, DRIVER_RANGE_WORDS };

struct driver_range {
	uint64_t start, end; /* vaddr, [start, end); where two overlap, the first one holds */
	enum driver_range_kind kind;
};

enum { DRIVER_NR_RANGES = 16 }; /* ranges of one process */

struct driver_client {
	const struct driver_range *ranges;
	size_t nr_ranges;
	uint64_t words;	   /* vaddr, a multiple of 4 */
	uint32_t nr_words; /* a power of two */
	uint64_t cursor;   /* vaddr, a multiple of 8; 0: none */
	/* The same words in a file, whose length cannot shrink; 0: in none that is known. */
	uint64_t words_ino; /* its inode */
	uint64_t words_off; /* where they begin, a multiple of 4096 */
	int words_fd;	    /* read and write; during the call only */
	/*
	 * Asked during the call, when the end of the program that runs now would not be missed any
	 * more, and before anything is read at @words or @cursor: are these addresses still the
	 * process's own words? Needed where either is given.
	 */
	bool (*stands)(void *ctx);
	void *ctx;
};

/*
 * Set the ranges and words of process @pid until its exec or end (or the next call; NULL: none). 0
 * also if a source passes on every sample by itself anyway. -DCPI_ELIMIT: too many ranges or
 * processes, its samples are counted like any other's; -ESTALE: its words are not valid, and it is
 * no client any more; -EINVAL; -errno.
 */
int driver_client_set(struct driver *d, int32_t pid, const struct driver_client *client);

/* ---- traces: the instructions behind a sample ------------------------------------------------ */

/* False: none were asked for, or they were optional and are not possible. */
static inline bool driver_has_traces(const struct driver *d)
{
	return d->traces != NULL;
}

/*
 * They run through blocks that were put where the interpreter finds them. A block is of code,
 * wherever that stands and whoever runs it. Traces of the kernel have tgid 0 and instance 0.
 *
 * Code that traces met and that nobody has put: the @w of each (VTRACE_UNTRANSLATED, VTRACE_CODE)
 * to @fn, as soon as it is read, not in order of time; of one place (place.h) once a call. What is
 * to be put stands at w->end_pc, code_len bytes of it in the trace. Of traces with values also
 * the first of each process, now and then one more, with code_len 0 where nothing is missing. They
 * come out by driver_drain too. Cheap where there is none: to be called at each turn. 0, or what
 * @fn returned below 0.
 */
static inline int driver_traces_missing(struct driver *d,
					int (*fn)(void *ctx, const struct insn_trace *w), void *ctx)
{
	return d->traces ? d->traces->missing(d, fn, ctx) : 0;
}

/*
 * Give the interpreter a block for code at this place; it is copied (block.id and .first are the
 * driver's). Returns the id by which words of traces name it (>= 0; no other block gets it while a
 * trace may name this one), or that of an equal block; -DCPI_ELIMIT: the table is full (when it is
 * nearly full, blocks that were longest without a trace are removed, so there is space soon);
 * -EINVAL: an invalid micro-op, or no block; -ENOMEM; -DCPI_EUNSUPPORTED: no traces were asked for.
 */
int driver_block_put(struct driver *d, const struct vtrace_code *code);
/* NULL: none. Valid while a trace may name it: until all those were handed on that came before
 * it had to go. */
static inline const struct vtrace_code *driver_block_get(const struct driver *d, uint32_t id)
{
	return d->traces ? d->traces->block_get(d, id) : NULL;
}

/* From now on one in so many samples gets a trace: at 1000 samples a second, as trace_optional. */
static inline void driver_trace_every(struct driver *d, uint32_t every)
{
	if (d->traces)
		d->traces->every(d, every);
}

struct driver_trace_stats {
	/* Traces begun, or that were due: handed to trace() + held + lost. */
	uint64_t received;
	uint64_t held;	    /* waiting for order, or for room in the kernel's ring to be read */
	uint64_t lost_ring; /* found the ring full */
	uint64_t lost_busy; /* due while another one ran on its CPU */
	uint64_t lost_read; /* no memory for what lay in the ring, or it made no sense */
	/* Samples whose turn it was, but of a program that is not interpreted: its registers are
	 * 32 bits wide, its generation could not be read. Not received. */
	uint64_t skipped;
	uint64_t by_end[VTRACE_NR_ENDS]; /* ends of the traces that were read */
	uint64_t missed;		 /* brought code that had not been put, read or not yet */
	uint64_t no_room;		 /* blocks that were refused for want of room */
	uint64_t ran_ns;		 /* that traces took of the CPUs that they interrupted */
	uint32_t nr_blocks, max_blocks;
};

/* All only grow, but held and nr_blocks. All 0 where no traces were asked for. */
static inline void driver_trace_stats_get(const struct driver *d, struct driver_trace_stats *out)
{
	*out = (struct driver_trace_stats){ 0 };
	if (d->traces)
		d->traces->stats(d, out);
}

/*
 * 0, or why there can be no traces on Linux @release, which is the release, the version and on
 * Ubuntu its signature ("6.1.0-13-amd64 #1 SMP Debian 6.1.55-1"; NULL: the one that runs):
 * -DCPI_EUNSUPPORTED with a hint. Before 6.1.36 in 6.1, and before 6.4 else, user memory must not
 * be read in the interrupt.
 */
int driver_traces_possible(const char *release, struct base_err *err);

/* ---- call paths: who called the sampled code ------------------------------------------------- */

/*
 * A file as the kernel knows one that is mapped, or memory that a process writes code into. Only a
 * key: what it is, the mapping tells.
 */
struct driver_file {
	uint64_t dev; /* major << 20 | minor, as in /proc/PID/maps */
	uint64_t ino, size, changed;
};

enum driver_rows_kind {
	DRIVER_ROWS_FILE,
	DRIVER_ROWS_VDSO, /* the vdso's: not in a file system, the same for all processes */
	/* Memory of this life of process pid, from start to end, that is of no file: its program
	 * writes code into it. Offsets of its table are addresses. */
	DRIVER_ROWS_CODE,
};

/* Code that a call path met, of a file for which no unwind table was put. */
struct driver_rows_missing {
	struct driver_file file;
	uint64_t instance, addr; /* met there, in process pid */
	uint64_t start, end;	 /* the mapping */
	uint64_t file_off;	 /* offset of its start in the file */
	int32_t pid;
	enum driver_rows_kind kind;
};

/*
 * Files whose code call paths met and that have no table: each to @fn as soon as it is read, once
 * until a table is put or has made way; of more than some hundred in a second the rest later. Cheap
 * where there is none: to be called at each turn. 0, or what @fn returned below 0.
 */
static inline int driver_rows_missing(struct driver *d,
				      int (*fn)(void *ctx, const struct driver_rows_missing *m),
				      void *ctx)
{
	return d->callpaths ? d->callpaths->missing(d, fn, ctx) : 0;
}

/*
 * Give the unwinder the table of this file, whose rows are by file offset; it is copied. NULL:
 * there is none to be had, and the file is not missing any more. -DCPI_ELIMIT: it is larger than
 * all tables may be; where they are full those that were not used for longest make way. -ENOMEM;
 * -DCPI_EUNSUPPORTED: no call paths were asked for.
 */
static inline int driver_rows_put(struct driver *d, const struct driver_file *file,
				  const struct unwind_table *table)
{
	return d->callpaths ? d->callpaths->put(d, file, table) : -DCPI_EUNSUPPORTED;
}

/*
 * The process that met this file cannot show it any more: the next path that meets it is told of as
 * the first one was. Of a file of which that happens again and again no more is told.
 */
static inline void driver_rows_again(struct driver *d, const struct driver_file *file)
{
	if (d->callpaths)
		d->callpaths->again(d, file);
}

/* The tables of these @nr files are old: their code has changed, or is gone. They make way, and the
 * next path that meets one of them is told of. */
static inline void driver_rows_forget(struct driver *d, const struct driver_file *files, size_t nr)
{
	if (d->callpaths)
		d->callpaths->forget(d, files, nr);
}

/* The rule at an offset of a file's table, as it is now. False: it has no table, or no rule there.
 */
static inline bool driver_rows_rule(struct driver *d, const struct driver_file *file, uint64_t off,
				    struct unwind_rule *rule)
{
	return d->callpaths && d->callpaths->rule(d, file, off, rule);
}

struct driver_callpath_stats {
	/* Samples whose turn it was: handed to callpath() + held + lost. */
	uint64_t received;
	uint64_t held;
	uint64_t lost_ring; /* found no room for its frames */
	uint64_t lost_busy; /* due while another one was walked on its CPU */
	uint64_t lost_read; /* no memory for what lay in the ring, or it made no sense */
	uint64_t by_end[DRIVER_NR_CALLPATH_ENDS]; /* ends of what was handed on */
	uint64_t frames;			  /* in what was handed on */
	uint64_t nr_tables, table_bytes, evicted;
};

/* All only grow, but held, nr_tables and table_bytes. All 0 where no call paths were asked for. */
static inline void driver_callpath_stats_get(const struct driver *d,
					     struct driver_callpath_stats *out)
{
	*out = (struct driver_callpath_stats){ 0 };
	if (d->callpaths)
		d->callpaths->stats(d, out);
}

/* As driver_traces_possible. */
int driver_callpaths_possible(const char *release, struct base_err *err);

/* ---- waiting and running threads ------------------------------------------------------------- */

/* In nanoseconds: received == handed to callpath() + held + lost. All but held only grow. */
struct driver_wait_stats {
	uint64_t received, held;
	uint64_t lost_full;  /* found no room among the kernel's sums */
	uint64_t lost_read;  /* no memory for what lay there */
	uint64_t lost_paths; /* how many paths found no room, whose waits have none; not lost */
	uint64_t keys;	     /* sums that were handed on */
};

/* All 0 where none was asked for. */
static inline void driver_wait_stats_get(const struct driver *d, struct driver_wait_stats *out)
{
	*out = (struct driver_wait_stats){ 0 };
	if (d->waits)
		d->waits->stats(d, out);
}

/* ---- recorded streams (docs/format/replay.md) ------------------------------------------------ */

/* Write the stream's head, then what a live source delivers: "dcpid -record FILE". 0 or -errno. */
int driver_record_head(FILE *to, const struct driver *d, int64_t utc);
int driver_record_load(FILE *to, const struct driver_load *load);
int driver_record_count(FILE *to, const struct driver_count *count);

#endif
