/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon as a whole: what the loop, flush, the commands and the maintenance share. */
#ifndef DCPI_CORE_H
#define DCPI_CORE_H

#include "control.h"
#include "counts.h"
#include "maintain.h"
#include "service.h"

/* ---- the machine (machine.c) ----------------------------------------------------------------- */

/* MHz: the highest of the first CPU, as @root (a folder with "sys" and "proc", "" for /) names it;
 * 0: it does not. */
uint64_t machine_cpu_mhz(const char *root);
/* Time of all CPUs since the machine was booted, and the part of it that they idled. */
struct machine_idle {
	uint64_t idle_ms, all_ms;
};
/* As /proc below @root says it; false: it does not. */
bool machine_idle(const char *root, struct machine_idle *out);

/* ---- the machine suspended, the clock set (loop.c) ------------------------------------------- */

struct suspends {
	uint64_t ahead_ns; /* as looked at last */
	uint64_t nr, ns;   /* since the daemon started */
	bool looked;
};
/*
 * @ahead_ns is base_boot_ahead_ns() now: returns for how long the machine was suspended since the
 * last look, and counts it. 0: it was not, or this is the first look.
 */
uint64_t suspends_look(struct suspends *s, uint64_t ahead_ns);

struct clock_sets {
	int64_t offset_ns; /* of UTC from the time since boot, as looked at last */
	uint64_t nr;	   /* since the daemon started */
	bool looked;
};
/*
 * @utc_ns was read between @before_ns and @after_ns, times since boot, suspended ones too: returns
 * by how many seconds the clock was set ahead (negative: back) since the last look, and counts it.
 * 0: by less than two, or this is the first look, or what came between the three says nothing. A
 * clock that is slowed or hurried step by step is not set.
 */
int64_t clock_sets_look(struct clock_sets *s, uint64_t before_ns, int64_t utc_ns,
			uint64_t after_ns);

struct daemon;

/* ---- the database that was removed (database.c) ---------------------------------------------- */

/* Is it, or its open epoch? Said once; gone_ns is set then, and flush_error says so. */
void database_look(struct daemon *d);
/*
 * Before a flush: where it was removed, go on with what stands at its path now, in an epoch that is
 * begun there; everything that it needs to be read is written again. -ENOENT: nothing stands there;
 * as of profdb_reopen and daemon_turn_epoch: it is gone still.
 */
int database_find(struct daemon *d, struct base_err *err);
/* The daemon ends, which no longer samples, though the last flush has failed: @err says how many
 * samples that costs, and @why. Returns @why's code. */
int database_give_up(struct daemon *d, const struct base_err *why, struct base_err *err);

/* ---- the daemon (loop.c, flush.c, command.c, status.c, start.c, dcpid.c) --------------------- */

struct options {
	const char *database;
	struct base_opt_list events; /* all counted at the same time */
	struct base_opt_list slots;  /* each has its turn; not both */
	struct base_opt_list bypid;  /* images and facilities whose processes are kept apart */
	const char *exclusions;
	const char *platform, *run_dir, *queue, *replay, *record, *log;
	const char *format;	 /* of profile files, as profdb_format_find takes it */
	const char *epoch_every; /* as every_parse takes it */
	int64_t epoch_every_s;	 /* length of an epoch; 0: epochs begin on request */
	int64_t rate, flush_s, table_len, drain_ms, ring_pages;
	int64_t quota_mib, process_quota_mib; /* 0: the default */
	int64_t gc_size_mib;		      /* 0: whatever it takes */
	bool gc_daily;
	bool quiet, verbose, background, nodaemon, new_epoch, no_scan, unknown;
	bool fixed_period, keep_all;
	bool list_events, check; /* dcpid.c alone */
	int64_t trace_every;	 /* one user sample in so many; 0: none; below, as dcpid begins: by
				    default */
	bool trace_optional;	 /* none where they are not possible */
	bool trace_kernel;
	int64_t callpath_every;	    /* one sample in so many; 0: none; negative: the default */
	bool waits;		    /* how long threads wait and run */
	bool values, values_replay; /* the built-in profilers */
	struct base_opt_list value_profilers; /* absolute paths */
	int64_t step_pid;		      /* whose steps give values too; 0: nobody's */
	bool value_contexts;
	const char *source; /* as driver_config takes it */
	int32_t pid;	    /* above 0: this process and its children alone */
	/* One program of the user's own (dcpirun): no control socket, no doorbell, nothing of the
	 * kernel's but the vdso. */
	bool own;
};

struct daemon {
	struct options opt;
	char platform[PROFDB_PLATFORM_MAX + 1];
	char run_dir[256];
	char helper_dir[512];
	char epoch[PROFDB_EPOCH_LEN + 1];
	char unindexed[PROFDB_EPOCH_LEN + 1]; /* finished; its index is still to be made */
	struct driver *driver;
	struct profdb *db;
	struct images *images;
	struct workloads *workloads; /* NULL: they are not wanted */
	struct image_moves moves;
	struct processes *processes;
	struct identity *identity;
	struct reader *reader;
	struct reader *rows_reader; /* makes unwind tables; NULL: there are none */
	struct budgets *budgets;
	struct kernel *kernel;
	struct dyn *dyn;
	struct control *control;
	struct store store;
	struct attribute attribute;
	struct follow follow;
	struct counts counts;
	struct traces *traces;	      /* NULL: none are wanted */
	struct callpaths *callpaths;  /* NULL: none are wanted, or there can be none */
	struct base_err no_callpaths; /* why the default is none; code 0 */
	struct values *values;	      /* NULL: likewise */
	size_t nr_profilers;
	struct step *step; /* NULL: likewise */
	FILE *record;
	struct quota quota;
	struct daily daily;
	struct suspends suspends;
	struct clock_sets clock_sets;
	struct machine_idle idle; /* as it was noted last */
	struct exclude exclude;
	struct service service;

	uint64_t resynced_ns; /* when /proc was read for lost events last */
	uint64_t ranges_read_ns;
	uint64_t watched_ns, watched_anew_ns; /* the last drain for a viewer, and for a new one */
	uint64_t next_watched_ns;	      /* images are not written for viewers before */
	uint64_t next_flush_ns;
	uint64_t next_turn_ns; /* no epoch is begun by itself before */
	uint64_t status_ns;    /* of the status that is kept while a turn takes long; 0: none is */
	uint64_t asked_ns;     /* when a client asked for it last */
	uint64_t meanwhile_ns; /* the last time that was looked up */
	uint64_t longest_turn_ns;
	bool stepped;		      /* a flush that is asked for had its part of this turn */
	bool in_turns;		      /* a flush leaves for the next turn what takes long */
	uint64_t unfinished_until_ns; /* so long; 0: nothing was left */
	uint64_t kernel_until_ns;     /* it waits so long for files of kernel code; 0: not at all */
	uint64_t nr_left;	      /* samples that the last flush left, as its time was over */
	uint64_t gone_ns;	/* since when the database is known to be removed; 0: it is there */
	bool reopened;		/* since then, and its epoch is not begun */
	uint64_t nr_before;	/* samples that this daemon put into earlier epochs */
	int dyn_error;		/* why pseudo-images were not written the last time, 0: they were */
	int64_t last_flush_utc; /* 0: none yet */
	uint64_t nr_flushes;
	size_t heap_unused; /* bytes freed and given back, as far as they were not used again */
	struct base_err flush_error;  /* of the last flush; code 0: it worked */
	struct base_err source_error; /* the driver failed: no more will come from it */
	bool record_failed;	      /* logged */
	bool streaming;		      /* in a replay, whose rest a flush does not wait for */
	int stop_fd;		      /* of a replay: readable when a signal ends it; 0: none */
	bool finished;		      /* everything is on disk, the epoch is finished */
};

/*
 * A file or folder that a daemon of the whole machine has made gets this mode, the group dcpi if
 * there is one, and whoever called sudo as a reader. 0 or -errno.
 */
int daemon_restrict(int fd, mode_t mode);
/* Open everything; on failure daemon_close releases what there is. */
int daemon_open(struct daemon *d, struct base_err *err);
/* The parts that are open get to know each other; again when there are more of them. */
void daemon_connect(struct daemon *d);
/* The database keeps that this happens now to the time of a live daemon's samples. */
void daemon_note(struct daemon *d, enum profdb_note_kind kind, int64_t n);
/* Begin to sample, and read what runs already. */
int daemon_start(struct daemon *d, struct base_err *err);
/* 0, or negative: the record (-record) is not complete, which is logged. */
int daemon_close(struct daemon *d);
/*
 * One drain; @all: nothing is held back. 1: a replay has more. Exactness rests on its order: take
 * the registries that were handed over, drain the driver, read every registry that changed, then
 * resolve the counts that fell into dynamic code. A routine is in its registry before it runs, so
 * the routine of a sample is always in what is read after the sample.
 */
int daemon_drain(struct daemon *d, bool all, struct base_err *err);
/* All that the driver has, for a viewer; /proc and owned ranges of code are not read more often for
 * that. */
int daemon_drain_counts(struct daemon *d, struct base_err *err);
/* A live daemon does this whenever it wakes: drain, answer clients, flush when it is due. */
int daemon_turn(struct daemon *d, struct base_err *err);
/* Clients that ask for the status while the loop is busy are told what is true now, or was a moment
 * ago; before a turn of which nothing is known, and while no client asks, it may be some seconds.
 */
void daemon_keep_status(struct daemon *d, bool takes_long);
/* For stop_fd: a descriptor, or negative. Before the loop a signal ends us as it does others. */
int daemon_stop_open(void);
/* Until a signal, quit, or the end of a recorded stream. */
int daemon_loop(struct daemon *d, struct base_err *err);
/*
 * Everything received so far onto disk. On failure nothing is lost: the counts stay. Where
 * d->in_turns is set, -EINPROGRESS: clients' code is left to be read or written, as their users
 * have had their turn; call it again in the next one.
 */
int daemon_flush(struct daemon *d, struct base_err *err);
/* After images were written: measure them, and begin to remove some where there are too many. */
void daemon_keep_quota(struct daemon *d);
/* Whenever the loop wakes: what was begun may be done, the day's maintenance may be due. */
void daemon_maintain(struct daemon *d);
/* The children that were begun are waited for. */
void daemon_maintain_close(struct daemon *d);
/* Flush (as above) and continue in a new epoch. */
int daemon_new_epoch(struct daemon *d, struct base_err *err);
/* The next epoch, without a flush: that of the other machines, if they have a newer one (at the
 * start not with -epoch), else a new one. */
int daemon_turn_epoch(struct daemon *d, struct base_err *err);
/* Stored samples that no flush has put on disk yet; @timed: nanoseconds, of events that count them.
 */
uint64_t daemon_unwritten(const struct daemon *d, bool timed);
/* Stop sampling, flush, finish the epoch. After a failure it can be called again. */
int daemon_finish(struct daemon *d, struct base_err *err);
/* A control_fn; ctx: struct daemon. */
int daemon_command(void *ctx, const struct control_request *request,
		   const struct control_peer *peer, struct base_buf *reply);
/* The answer to "status", a line of JSON. 0 or -ENOMEM. */
int daemon_status(struct daemon *d, struct base_buf *out);
/* The answer to "watch" onto @reply. 0 or -ENOMEM. */
int daemon_watch(struct daemon *d, const struct control_peer *peer, struct base_buf *reply);

#endif
