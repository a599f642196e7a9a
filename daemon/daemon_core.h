/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpid's core: what loop, process tracking, attribution, flush and control share. The parts that
 * follow dynamic code and the kernel need none of it: they see daemon_internal.h alone.
 */
#ifndef DCPI_DAEMON_CORE_H
#define DCPI_DAEMON_CORE_H

#include <sys/socket.h>
#include <sys/un.h>

#include "daemon_internal.h"
#include "daily.h"
#include "exclude.h"
#include "image_move.h"

/* ---- accounting (account.c) ---------------------------------------------------------------- */

/*
 * The daemon's own part of an account becomes the whole one: @own holds stored, its own pending
 * and losses; the driver adds what it received, holds and lost.
 */
void account_total(const struct account *own, const struct driver_stats *driver,
		   struct account *out);
/* Law 1: received == stored + pending + sum(lost). */
bool account_balanced(const struct account *total);
uint64_t account_lost(const struct account *a);

/* ---- the machine (machine.c) ----------------------------------------------------------------- */

/* MHz: the highest of the first CPU, as @root (a folder with "sys" and "proc", "" for /) names it;
 * 0: it does not. */
uint64_t machine_cpu_mhz(const char *root);

/* ---- images (image.c) ---------------------------------------------------------------------- */

/* Forget files that no mapping shows, pseudo-images of no facility, when they hold no samples. */
void images_drop_unused(struct images *t);
/* What @p (NULL: anybody) counts in, instead of @img: a profile of its own, where that is kept
 * apart; one of its label's. Not for pseudo-images. NULL: no memory. */
struct image *images_of_process(struct images *t, struct image *img, const struct process *p);
size_t images_nr(const struct images *t);
/* References held by mappings and facilities; @img may be NULL. */
struct image *image_get(struct image *img);
void image_put(struct image *img);

/* ---- maps of a process (map.c) ------------------------------------------------------------- */

/* The mapping at @addr, or NULL. */
const struct map *map_find(const struct process *p, uint64_t addr);
/*
 * @m (a reference of its image is taken) stands there from @m->since_ns on; what it covers of older
 * mappings is cut away. Where it stood already it keeps its time. -ENOMEM: nothing changed.
 */
int map_insert(struct process *p, const struct map *m);
/* The same of an event from before the last reading of /proc (known_ns): what was listed stays. */
int map_recall(struct process *p, const struct map *m);
int map_copy(struct process *to, const struct process *from);
void map_clear(struct process *p);
/* A life that was listed only later began at @time_ns: what events told of the one before is gone.
 */
void map_restart(struct process *p, uint64_t time_ns);

/* ---- processes (process.c) ----------------------------------------------------------------- */

struct processes;

struct processes *processes_new(void);
/* Frees what is left; @end sees each process before (may be NULL). */
void processes_free(struct processes *t, void (*end)(void *ctx, struct process *p), void *ctx);
struct process *processes_find(struct processes *t, int32_t pid);
/* The last life of @pid that is over and not yet reaped, or NULL. */
struct process *processes_find_over(const struct processes *t, int32_t pid);
/* A new life; an older one of that pid is over. NULL: no memory. */
struct process *processes_add(struct processes *t, int32_t pid);
/* The life is over; it stays until the next reaping, for counts that still refer to it. Its
 * mappings go at once, unless @p->unsettled. */
void processes_end(struct processes *t, struct process *p);
/* Free the lives that are over but for those that are unsettled; @end sees each before (may be
 * NULL). */
void processes_reap(struct processes *t, void (*end)(void *ctx, struct process *p), void *ctx);
/* Whoever was returned last may be ended: then go on with --*pos. */
bool processes_next(const struct processes *t, size_t *pos, struct process **out);
size_t processes_nr(const struct processes *t);

/*
 * ---- which life of a pid it is (instance.c) --------------------------------------------------
 *
 * Counts of some sources tell it (struct driver_count); events do not, but say that one begins. So
 * the first count of a life says which it is, if it can be: not of a process forked later, and with
 * as many programs executed as its parent's instance and the events told. Events that were lost
 * make that number too low and never too high, so a count of another life does not fit.
 */

/* Is @instance (not 0) that of @p? Where nothing told before, it is from now on. */
bool instance_fits(struct process *p, uint64_t instance);
/* @p begins, by fork (@parent may be NULL), or by exec of the life @old (may be NULL, or @p). */
void instance_fork(struct process *p, const struct process *parent, uint64_t boot_ns);
void instance_exec(struct process *p, const struct process *old, uint64_t boot_ns);
/* @p->start_time_ns, read from /proc, can be that of @instance. */
bool instance_is_listed(const struct process *p, uint64_t instance);
/* /proc was read, and tells from now on what @p is. */
void instance_listed(struct process *p);

/* ---- labels (label.c) ----------------------------------------------------------------------- */

enum { LABEL_MAX = 64, LABELS_MAX = 1024, LABELS_OF_USER = 64 };

struct label {
	char *text;
	bool given; /* by @uid, in @epoch at last */
	uint32_t uid;
	uint64_t epoch;
};

/* That a process had under a daemon before us. */
struct label_kept {
	int32_t pid;
	uint64_t start_ns; /* since boot */
	const char *text;
};

/* Zero-initialize. A text once in it stays where it is until labels_release. */
struct labels {
	struct label *items;
	size_t nr, cap;
	uint64_t epoch; /* a number, from 0 */

	/* label_keep.c */
	struct label_kept *kept; /* of processes that were not met yet */
	size_t nr_kept, cap_kept;
	struct base_buf written; /* what stands in the file */
	uint64_t written_ns;	 /* when it was looked at last */
	bool changed;		 /* some process got one since */
	bool failed;		 /* it could not be written, and that was said */
};

/* @len bytes from anybody: 0, or -EINVAL with @err, which has the first of them. */
int label_check(const char *text, size_t len, struct base_err *err);
/* The text that processes refer to; NULL: no memory. */
const char *labels_get(struct labels *t, const char *text);
/* @uid wants to give it: 0, -DCPI_ELIMIT (so many labels in one epoch; root has all that are left),
 * -ENOMEM. */
int labels_give(struct labels *t, const char *text, uint32_t uid, struct base_err *err);
void labels_new_epoch(struct labels *t);
void labels_release(struct labels *t);

/*
 * Over a restart of the daemon (label_keep.c). @run_dir/labels holds a first line with the boot's
 * id, then a line PID START-TIME LABEL for each process that has one; there is none where none has.
 * Failures are logged.
 */
void labels_keep_read(struct labels *t, const char *run_dir);
void labels_keep_write(struct labels *t, const struct processes *processes, const char *run_dir);
/* @p, whose start time is known, gets back what it had; once. */
void labels_keep_restore(struct labels *t, struct process *p);
/* The file's text. Of another @boot nothing is taken. 0, -DCPI_EVERSION, -DCPI_EFORMAT (nothing is
 * taken), -DCPI_ELIMIT, -ENOMEM. */
int labels_keep_parse(struct labels *t, const char *text, size_t len, const char *boot);
/* Append the file's text to @out. Of how many processes it tells, or -ENOMEM. */
int labels_keep_format(const struct labels *t, const struct processes *processes, const char *boot,
		       struct base_buf *out);

/* ---- identity of mapped files that brought no build-id (identity.c) -------------------------- */

struct identity;

/* @reader may be NULL (replay): then paths are all that tells. */
struct identity *identity_new(struct reader *reader);
void identity_free(struct identity *t);
/*
 * Identity of the file of mapping @l of @p: its build-id or contents as the reader process tells,
 * else, of a process that is gone with its file, what the same (device, inode, path) was the last
 * time since identity_forget, else a hash of these (*@by_path is set). Of an ELF file that was
 * written over since @l->time_ns (0: not known) a hash that no file has. What is no image but a
 * runtime's dump goes to *@dump (fd; else -1), which also says of a file that was read whether it
 * is ELF. With @l->time_ns 0 the reader is asked once for each @p->known_ns. 0 or -ENOMEM.
 */
int identity_find(struct identity *t, const struct process *p, const struct driver_load *l,
		  struct base_id *id, bool *by_path, struct reader_dump *dump);
void identity_forget(struct identity *t);

/* ---- the way of a sample (attrib.c: counts; track.c: load events; scan.c: /proc) ------------- */

/* A count that waits: for the registries to be read, or for the events before a reading of /proc.
 */
struct pending {
	struct process *p;
	uint64_t first_ns, time_ns, addr, count;
	uint64_t map_start;  /* of its mapping; 0: in none */
	struct image *image; /* where it is if nobody told of code there; or NULL. A reference */
	uint64_t off;
	uint64_t mapped_ns; /* of that image, as dyn_query has it */
	uint64_t until_ns;  /* base_now_ns up to which the next reading of its registry is waited
			       for; 0: it was not looked up yet */
	int32_t pid;
	uint32_t event, generation;
	bool generation_read, generation_unread;
	bool dynamic; /* it lay in a MAP_DYNAMIC mapping */
};

struct pendings {
	struct pending *items;
	size_t nr, cap;
};

/*
 * Counts that wait for files (waiting.c). Runtimes write them late, so some wait until the next
 * flush, and they are looked up again only when something new was told of their process. Those of
 * one place are joined when there are many: no more of them than there is code.
 */
struct waiting {
	struct process *p;
	struct pendings counts;
	uint64_t first_ns; /* not after the first of them */
	uint64_t news;	   /* dyn_news when they were looked up last */
};

/* Zero-initialize. */
struct waitings {
	struct waiting **items;
	size_t nr, cap;
	size_t joined_nr; /* how many counts were left when they were joined last */
};

struct attrib;

/* True: it waits no more. It may be changed. */
typedef bool waiting_fn(void *ctx, struct pending *c);

/* Of c->p, which has no registry and lives. 0 or -ENOMEM. */
int waiting_add(struct waitings *t, const struct pending *c);
/* Looked up last at @news of @p's: may a look-up say something else now? Also of who ended, or has
 * a registry since. */
bool waiting_is_due(const struct process *p, uint64_t news);
/*
 * May what @p's code met wait on? For its registry a reading or two more, of which *@until_ns (0 at
 * first) keeps the end; who writes files writes them late, so for these until the next flush. A
 * life that is over has told all.
 */
bool waiting_may(const struct attrib *a, const struct process *p, uint64_t *until_ns);
/* @fn of @all, or of those that are due. To be called before processes are let go. */
void waiting_look(struct waitings *t, bool all, waiting_fn *fn, void *ctx);
void waiting_release(struct waitings *t);

/* A load event that is not the driver's: a client told of it (told.c). */
struct told {
	struct driver_load load;
	char *path; /* its own */
};

struct tolds {
	struct told *items; /* in the order of time */
	size_t nr, cap;
};

/*
 * Counts on their way into profiles. Those of a drain are of places all over the tables of rows, of
 * which none is in the caches: it is asked for when a count comes, and the count is added when so
 * many more have come.
 */
enum { ATTRIB_AHEAD = 32 }; /* a power of two */

struct attrib_stores {
	struct attrib_place {
		struct image *image;
		uint64_t off, count;
		uint32_t event;
	} items[ATTRIB_AHEAD];
	uint32_t first, end; /* both only grow */
};

struct attrib {
	/* set by the caller */
	struct images *images;
	struct processes *processes;
	struct identity *identity;
	struct dyn *dyn;       /* may be NULL in tests */
	struct kernel *kernel; /* likewise */
	struct driver_event events[DRIVER_NR_EVENTS];
	size_t nr_events;
	bool live; /* /proc tells of these processes */
	/* driver_client_set, or NULL: nobody needs to know where code changes. */
	int (*client_set)(struct driver *d, int32_t pid, const struct driver_client *client);
	struct driver *driver;	       /* its first argument */
	const struct exclude *exclude; /* processes whose samples are not stored; may be NULL */
	struct windows *windows;       /* NULL: none are wanted */
	FILE *record;		       /* where events are recorded, or NULL */
	bool flushing;		       /* what waits for files is to be told now */
	bool log_unknown;	       /* each user sample in no image goes to the log too */

	/* kept here */
	struct account account;	     /* the daemon's part */
	struct labels labels;	     /* that processes have */
	struct tolds told;	     /* what clients said, until its time comes */
	struct attrib_stores stores; /* none between two drains */
	struct pendings dynamic;   /* lie in dynamic code: resolved when the registries were read */
	struct waitings waiting;   /* of these, those that nobody told of then */
	struct pendings unsettled; /* older than the listing of their mapping: settled after the
				      events up to then were seen; or of a time of doubt */
	uint64_t unsettled_ns;	   /* the first of these */
	uint64_t now_ns;	   /* time of the last count or event */
	uint64_t lost_mended;	   /* load events that were lost before /proc was read for them */
	bool doubt;		   /* others were since: counts wait for that */
	bool hollow_made;	   /* there may be hollow processes */
	bool later_made;	   /* there may be processes with a later life */
	bool ranges_changed;	   /* of some process the driver may have to be told */
	bool ranges_refused;	   /* of some process it did not take them in this round */
	uint64_t ranges_round;	   /* a round: from one flush to the next */
	uint64_t resolved_ns;	   /* base_now_ns when pending ones were to be looked up last */
	uint64_t dynamic_ns; /* when counts in dynamic code, or a new client, were seen last; 0 */
	int record_error;    /* first failure of writing the record, or 0 */
};

/* Callbacks for driver_drain; @ctx: struct attrib. They return 0. */
int attrib_count(void *ctx, const struct driver_count *c);
int attrib_load(void *ctx, const struct driver_load *l);
int attrib_window(void *ctx, const struct vtrace_window *w, const uint64_t *words);
/* Parts of a window of @p (NULL: of the kernel) in @img. *@nr_stored: how many are in its profile,
 * none where it is not to be stored. 0, or the first failure: -ENOMEM, -DCPI_EOVERFLOW. */
int attrib_moves(struct attrib *a, const struct process *p, struct image *img,
		 const struct profdb_move *m, size_t nr, size_t *nr_stored);
/*
 * After dyn_refresh: resolve what is pending and let go of processes that are over. @until_ns: what
 * there is up to then has been seen; 0: up to the last count or event.
 */
void attrib_resolve(struct attrib *a, uint64_t until_ns);
/* /proc was read for the load events that were lost (lost_mended). */
void attrib_mended(struct attrib *a);
/* For dyn_take: the process of a pid, or its life to be; hollow where no event told of it yet. */
struct process *attrib_find(void *ctx, int32_t pid, uint64_t time_ns);
/* Everything kept here, and the processes; settles nothing. */
void attrib_release(struct attrib *a);
/*
 * @l (MMAP or LABEL) happens at its time, which is not before that of the last one told: when the
 * driver's events and counts up to then have been seen. -DCPI_ELIMIT: too many wait. -ENOMEM.
 */
int told_add(struct tolds *t, const struct driver_load *l);
/* Handle those up to @time_ns. */
void told_handle(struct attrib *a, uint64_t time_ns);
void told_release(struct tolds *t);
/* Put a load event into the record, if there is one. */
void attrib_record_load(struct attrib *a, const struct driver_load *l);
/* Add to an image, and to the account. */
void attrib_store(struct attrib *a, struct image *img, uint64_t off, uint32_t event, uint64_t n);
/* What is on its way into profiles gets there; attrib_resolve does that, too. */
void attrib_store_all(struct attrib *a);

enum track_how {
	TRACK_EVENT,  /* it happened now: covers what was there */
	TRACK_LATE,   /* /proc was read after it: what that listed stays, its age is told */
	TRACK_LISTED, /* /proc lists it */
};
void track_load(struct attrib *a, const struct driver_load *l);
/* Of a mapping that /proc lists: memory that programs write code into themselves. */
bool track_is_dynamic(const struct driver_load *l);
/* @p has memory for code: look for what tells of it. */
void track_watch(struct attrib *a, struct process *p);
void track_mmap(struct attrib *a, struct process *p, const struct driver_load *l,
		enum track_how how);
/*
 * The process of a pid at @time_ns, which an event or a count has just named. One of which nothing
 * is known is looked for in /proc, once; so is @instance (0: not told) where it is not the life
 * that is known: that one is over. NULL: no memory.
 */
struct process *track_find(struct attrib *a, int32_t pid, uint64_t time_ns, uint64_t instance);

/* Read one process from /proc: start time, uid, name, mappings. -ESRCH where it is gone, -ESTALE
 * where another one has its pid. */
int scan_process(struct attrib *a, struct process *p);
/* Start time, parent, uid and name alone. -ESTALE: that pid is another process's by now, and
 * nothing is written; -ESRCH where it is gone. */
int scan_describe(struct process *p);
/* 0: all of the process's uids are @uid; -EPERM; -ESRCH. */
int scan_check_owner(int32_t pid, uint32_t uid);
/* 0: all of [start, end) is executable memory of the process; -ENOENT; -errno. */
int scan_check_code(int32_t pid, uint64_t start, uint64_t end);
/* Read all of them; returns how many. */
int scan_all(struct attrib *a);
/* Read those again that are known, and end those whose pid is another process's. */
void scan_known(struct attrib *a);
/* Forget processes that /proc no longer has (their end was lost). */
void scan_sweep(struct attrib *a);
/*
 * Calls @fn with the executable memory of @p that is in no file, as it is now, and what adjoins it
 * of other such memory: runtimes reserve more than they use yet.
 */
void scan_dynamic(const struct process *p, void (*fn)(void *ctx, uint64_t start, uint64_t end),
		  void *ctx);
/* One line of /proc/PID/maps into @l (path points into @line, which is changed): 1 executable, 0
 * other, -DCPI_EFORMAT. */
int scan_parse_line(char *line, struct driver_load *l);

/* ---- where code changes, for the driver (ranges.c) ------------------------------------------- */

/* Tell the driver what it does not know yet of each process of whose addresses one had two
 * routines.
 */
void ranges_tell(struct attrib *a);
/* A flush begins: let the next telling try those again that the driver has refused, once. */
void ranges_retry(struct attrib *a);
/* @p is over: the driver may forget its ranges. */
void ranges_end(struct attrib *a, struct process *p);

/* ---- control requests (request.c: parsing; control.c: the socket; command.c: what they do) --- */

#define CONTROL_LINE_MAX (64u << 10)
#define CONTROL_CLIENTS	 64

enum control_command {
	CONTROL_STATUS,
	CONTROL_FLUSH,
	CONTROL_EPOCH,
	CONTROL_QUIT,
	CONTROL_LABEL,
	CONTROL_REGISTER,
	CONTROL_LOG,
};

enum { CONTROL_PATH_MAX = 4095, CONTROL_NAME_MAX = 255 };

struct control_request {
	enum control_command command;
	int32_t pid;		   /* LABEL (0: the client), REGISTER */
	char label[LABEL_MAX + 1]; /* LABEL; checked */
	uint64_t lines;		   /* LOG: at most so many */
	/* REGISTER: [start, start + len) of the process is the file's, from file_off on. */
	uint64_t start, len, file_off, inode, dev_major, dev_minor;
	struct base_id id;		 /* that the file must have; len 0: any */
	char path[CONTROL_PATH_MAX + 1]; /* of the file, absolute */
	char name[CONTROL_NAME_MAX + 1]; /* another of the image, or "" */
};

/* Who asks, as the kernel tells. */
struct control_peer {
	int32_t pid; /* 0: not one that can be seen from here */
	uint32_t uid;
	bool privileged; /* root, the daemon's user, group dcpi */
};

/* One line without its newline. 0, or negative with @err: -DCPI_EFORMAT, -DCPI_EUNSUPPORTED,
 * -EINVAL (no label, no path). */
int control_request_parse(const char *line, size_t len, struct control_request *out,
			  struct base_err *err);
/* {"ok":false,"error":…,"hint":…} and a newline onto @out. 0 or -ENOMEM. */
int control_reply_error(struct base_buf *out, const struct base_err *err);

struct control;
/* Does the work and appends one line to @reply; a negative return only for lack of memory. */
typedef int (*control_fn)(void *ctx, const struct control_request *request,
			  const struct control_peer *peer, struct base_buf *reply);

/* Make <run_dir>/control. -DCPI_EBUSY: a live daemon answers there. */
int control_open(const char *run_dir, control_fn fn, void *ctx, struct control **out,
		 struct base_err *err);
/* Sends what is still to be sent, as far as it can be without waiting long. */
void control_close(struct control *c);
/* Readable when control_serve has something to do. */
int control_poll_fd(const struct control *c);
/* Serve what there is; never waits for a client. */
void control_serve(struct control *c);

/* ---- the quota of pseudo-images (quota.c) --------------------------------------------------- */

#define QUOTA_MIB 10240 /* unless told */

struct quota {
	uint64_t max, len; /* bytes of <db>/dyn: allowed, when measured last */
	bool over;
	bool checked, told;
	uint64_t images_written; /* when measured */
	uint64_t next_ns;	 /* base_now_ns before which no other begins, while */
	uint64_t epochs_ns;	 /* the database's folder was changed then last */
	uint64_t wait_ns;	 /* between them; 0: the last removed something */
	uint64_t tried_len;	 /* len when it began */
	int32_t child;		 /* removes what nothing refers to; 0: none */
};

struct daemon;

/* At the start, and after a flush: measure, and begin to remove where it is too much. */
void quota_check(struct daemon *d);
/* See whether that is done. */
void quota_turn(struct daemon *d);
void quota_close(struct daemon *d);

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

/* ---- the day's housekeeping (daily.c) -------------------------------------------------------- */

struct dailies {
	struct daily when;
	int64_t stored;	  /* of when.last, in the database */
	int64_t started;  /* UTC, by the child */
	uint64_t next_ns; /* base_now_ns of the next look */
	int32_t child;	  /* 0: none */
	int report;	  /* what it says at its end */
};

/* Begin it when it is due, and see whether it is done. */
void daily_turn(struct daemon *d);
void daily_close(struct daemon *d);

/* ---- the service's manager (service.c) ------------------------------------------------------- */

/* Whom to tell, by the protocol of sd_notify(3): datagrams to $NOTIFY_SOCKET. Zeroed: nobody. */
struct service {
	int fd;
	struct sockaddr_un to;
	socklen_t to_len;  /* 0: nobody */
	uint64_t every_ns; /* 0: no watchdog ($WATCHDOG_USEC, $WATCHDOG_PID) */
	uint64_t next_ns;
};

/* Does @fd lead to the journal ($JOURNAL_STREAM)? */
bool service_on_journal(int fd);
/* From the environment. 0 (nobody is to be told, too), or negative where that makes no sense. */
int service_open(struct service *s, struct base_err *err);
void service_close(struct service *s);
/* Sampling has begun and control requests are answered. */
void service_ready(struct service *s, const char *source);
/* Each time round the loop; tells at half of the watchdog's time. */
void service_alive(struct service *s, const char *epoch, uint64_t stored);
void service_stopping(struct service *s);
void service_failed(struct service *s, const struct base_err *err);

/* ---- the machine suspended, the clock set (suspend.c) ---------------------------------------- */

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

/* ---- the daemon (loop.c, flush.c, command.c, status.c, start.c, dcpid.c) --------------------- */

struct options {
	const char *database;
	struct base_opt_list events; /* all counted at the same time */
	struct base_opt_list slots;  /* each has its turn; not both */
	struct base_opt_list bypid;  /* images and facilities whose processes are kept apart */
	const char *exclusions;
	const char *platform, *run_dir, *queue, *replay, *record, *log;
	const char *format; /* of profile files, as profdb_format_find takes it */
	int64_t rate, flush_s, table_len, drain_ms, ring_pages;
	int64_t quota_mib, process_quota_mib; /* 0: the default */
	int64_t gc_size_mib;		      /* 0: whatever it takes */
	bool gc_daily;
	bool quiet, verbose, background, nodaemon, new_epoch, no_scan, unknown;
	bool fixed_period, keep_all;
	bool list_events, check; /* dcpid.c alone */
	int64_t windows_every;	 /* one user sample in so many; 0: none */
	bool windows_kernel;
	bool values, values_replay;	      /* the built-in profilers */
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
	struct image_moves moves;
	struct processes *processes;
	struct identity *identity;
	struct reader *reader;
	struct kernel *kernel;
	struct dyn *dyn;
	struct control *control;
	struct attrib attrib;
	struct windows *windows; /* NULL: none are wanted */
	struct values *values;	 /* NULL: likewise */
	size_t nr_profilers;
	struct step *step; /* NULL: likewise */
	FILE *record;
	struct quota quota;
	struct dailies daily;
	struct suspends suspends;
	struct clock_sets clock_sets;
	struct exclude exclude;
	struct service service;

	uint64_t mended_ns; /* when /proc was read for lost events last */
	uint64_t ranges_read_ns;
	uint64_t next_flush_ns;
	uint64_t gone_ns;	/* since when the database is known to be removed; 0: it is there */
	bool reopened;		/* since then, and its epoch is not begun */
	uint64_t nr_before;	/* samples that this daemon put into earlier epochs */
	int dyn_error;		/* why pseudo-images were not written the last time, 0: they were */
	int64_t last_flush_utc; /* 0: none yet */
	uint64_t nr_flushes;
	size_t heap_unused; /* bytes freed and given back, as far as they were not used again */
	unsigned int nr_registrations; /* since the last flush */
	struct base_err flush_error;   /* of the last flush; code 0: it worked */
	struct base_err source_error;  /* the driver failed: no more will come from it */
	bool record_failed;	       /* logged */
	bool streaming;		       /* in a replay, whose rest a flush does not wait for */
	int stop_fd;		       /* of a replay: readable when a signal ends it; 0: none */
	bool finished;		       /* everything is on disk, the epoch is finished */
};

/* Open everything; on failure daemon_close releases what there is. */
int daemon_open(struct daemon *d, struct base_err *err);
/* Begin to sample, and read what runs already. */
int daemon_start(struct daemon *d, struct base_err *err);
/* 0, or negative: the record (-record) is not complete, which is logged. */
int daemon_close(struct daemon *d);
/* One drain in the order that daemon_internal.h tells; @all: nothing is held back. 1: a replay has
 * more. */
int daemon_drain(struct daemon *d, bool all, struct base_err *err);
/* What a live daemon does whenever it wakes: drain, answer clients, flush when it is due. */
int daemon_turn(struct daemon *d, struct base_err *err);
/* For stop_fd: a descriptor, or negative. Before the loop a signal ends us as it does others. */
int daemon_stop_open(void);
/* Until a signal, quit, or the end of a recorded stream. */
int daemon_loop(struct daemon *d, struct base_err *err);
/* Everything received so far onto disk. On failure nothing is lost: the counts stay. */
int daemon_flush(struct daemon *d, struct base_err *err);
/* Flush and go on in a new epoch. */
int daemon_new_epoch(struct daemon *d, struct base_err *err);
/* The next epoch, without a flush: that of the other machines, if they have a newer one (at the
 * start not with -epoch), else a new one. */
int daemon_turn_epoch(struct daemon *d, struct base_err *err);
/* Stored samples that no flush has put on disk yet. */
uint64_t daemon_unwritten(const struct daemon *d);
/* Stop sampling, flush, finish the epoch. After a failure it can be called again. */
int daemon_finish(struct daemon *d, struct base_err *err);
/* A control_fn; ctx: struct daemon. */
int daemon_command(void *ctx, const struct control_request *request,
		   const struct control_peer *peer, struct base_buf *reply);
/* The answer to "status", a line of JSON. 0 or -ENOMEM. */
int daemon_status(struct daemon *d, struct base_buf *out);

#endif
