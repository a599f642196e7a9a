/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpid from within. One thread, one loop (loop.c): drain the driver, track processes and their
 * mappings (process.c), turn counts into (image, offset, event) (attrib.c), keep them by image
 * (image.c), follow JIT clients (dyn.c) through a reader process (reader.c, dcpid-reader.c), and
 * put all of it on disk (flush.c) at intervals and on demand (control.c).
 *
 * Order of one drain, on which exactness rests: take hand-overs -> driver_drain -> read every
 * registry that changed (dyn_refresh) -> resolve the counts that fell into dynamic code. A routine
 * is in its registry before it runs, so a sample's routine is always in what is read after the
 * sample.
 */
#ifndef DCPI_DAEMON_INTERNAL_H
#define DCPI_DAEMON_INTERNAL_H

#include "base.h"
#include "driver.h"
#include "profdb.h"
#include "wire.h"

/* ---- accounting (account.c) ---------------------------------------------------------------- */

/* Every way in which a received sample fails to be stored: name in status, what it means. */
#define ACCOUNT_LOSSES(X)                                                                          \
	X(LOST_RING, "ring-full", "found its ring buffer full")                                    \
	X(LOST_TABLE, "table-full", "found the kernel's table full, before a drain could be had")  \
	X(LOST_LATE, "drain-late", "found it full, 100 ms or more after a drain was asked for")    \
	X(LOST_NESTED, "nested", "interrupted the counting of another on the same CPU")            \
	X(LOST_READ, "table-unread", "lay in a table that could not be read")                      \
	X(LOST_BAD, "bad-record", "came in a record that made no sense")                           \
	X(LOST_MEMORY, "no-memory", "the daemon had no memory for it")                             \
	X(LOST_OVERFLOW, "count-overflow", "its counter was full")                                 \
	X(LOST_EXCLUDED, "excluded", "its image or process is not to be stored")

/* Names under which samples in no image are stored (PROFDB_NAMED profiles). */
#define ACCOUNT_BUCKETS(X)                                                                         \
	X(BUCKET_UNKNOWN, "unknown", "user address in no known mapping")                           \
	X(BUCKET_UNKNOWN_PROCESS, "unknown process", "process gone before it was known")           \
	X(BUCKET_AMBIGUOUS, "ambiguous mapping", "the address changed its file in the interval")   \
	X(BUCKET_KERNEL_UNKNOWN, "unknown kernel", "kernel address in no known image")             \
	X(BUCKET_IDLE, "idle", "the idle task, waiting")                                           \
	X(BUCKET_DYNAMIC_UNKNOWN, "dynamic, unknown", "anonymous executable memory nobody names")  \
	X(BUCKET_GENERATION, "dynamic, generation unknown", "which routine stood there is lost")   \
	X(BUCKET_REFUSED, "dynamic, image refused", "no pseudo-image can be made of what it said") \
	X(BUCKET_QUOTA, "dynamic, over quota", "the database has no room for more dynamic code")   \
	X(BUCKET_REUSED, "reused, time unknown", "address had several routines in the interval")   \
	X(BUCKET_OTHER, "hypervisor or guest", "neither user nor kernel mode of this machine")

enum account_loss {
#define X(id, name, text) ACCOUNT_##id,
	ACCOUNT_LOSSES(X)
#undef X
		ACCOUNT_NR_LOSSES
};

enum account_bucket {
#define X(id, name, text) ACCOUNT_##id,
	ACCOUNT_BUCKETS(X)
#undef X
		ACCOUNT_NR_BUCKETS
};

/* received == stored + pending + sum(lost) at every moment between two drains. */
struct account {
	uint64_t received; /* from driver_stats */
	uint64_t stored;   /* in profiles, on disk or to be flushed */
	uint64_t pending;  /* held for order, or for a registry to be read */
	uint64_t lost[ACCOUNT_NR_LOSSES];
	uint64_t bucket[ACCOUNT_NR_BUCKETS]; /* part of stored */
};

const char *account_loss_name(enum account_loss loss);
const char *account_bucket_name(enum account_bucket bucket);

/*
 * The daemon's own part of an account becomes the whole one: @own holds stored, its own pending
 * and losses; the driver adds what it received, holds and lost.
 */
void account_total(const struct account *own, const struct driver_stats *driver,
		   struct account *out);
/* Law 1: received == stored + pending + sum(lost). */
bool account_balanced(const struct account *total);
uint64_t account_lost(const struct account *a);

/* ---- images (image.c) ------------------------------------------------------------------------ */

/* An image and the counts not yet on disk. Lives as long as the daemon or until dropped unused. */
struct image {
	enum profdb_kind kind;
	struct base_id id;
	char *path;
	char *stem; /* for the profile's file name; DYNAMIC: the pseudo-image's file name */
	struct profdb_profile *counts;
	bool dirty;   /* counts hold samples that are not on disk */
	bool behind;  /* DYNAMIC: routines with samples are not in the file on disk yet: the profile
			 waits (law 3) */
	bool refused; /* DYNAMIC: what the program said makes no image; its counts go to a bucket */
	bool apart;   /* each process has a profile of it (dcpid -bypid) */
	bool excluded;		     /* its samples are counted as such, not stored */
	bool put;		     /* DYNAMIC: profiles on disk may hold its build-id */
	char *process;		     /* of such a one: "PID-START"; else NULL */
	char *label;		     /* that all of its samples have, or NULL */
	struct image_values *values; /* not on disk yet; or NULL */
	/* DYNAMIC: windows of which counts hold a part, and no image does that cannot be refused;
	 * those of single steps are of the same kind, but have values alone */
	uint64_t windows, stepped;
	uint32_t refs;
};

struct images; /* the table, by kind and identity (DYNAMIC: by stem) */

struct images *images_new(void);
void images_free(struct images *t);
/* Find or make; a new @path of a known identity is added to its profile. NULL: no memory. */
struct image *images_get(struct images *t, enum profdb_kind kind, const struct base_id *id,
			 const char *path, const char *stem);
struct image *images_bucket(struct images *t, enum account_bucket bucket);
/* Whose processes are kept apart: paths, base names, facilities. Before the first image; the list
 * must outlive @t. */
void images_keep_apart(struct images *t, const struct base_opt_list *names);
/* Whose samples are not stored; likewise. */
struct exclude;
void images_exclude(struct images *t, const struct exclude *exclude);
bool images_is_excluded(const struct images *t, const char *name);
/* Is it (a path or a facility; NULL: a path that is not known) among those, or may be? */
bool images_is_apart(const struct images *t, const char *name);
bool images_next(const struct images *t, size_t *pos, struct image **out);
/* All of a pseudo-image's samples have it, for a process has one label while it runs one program.
 * 0 or negative. */
int image_set_label(struct image *img, const char *label);
/* A pseudo-image on disk has a new build-id. */
void image_set_id(struct image *img, const struct base_id *id);

/* ---- processes (process.c) ------------------------------------------------------------------- */

enum map_kind {
	MAP_IMAGE,   /* image set; offset = file_off + (addr - start) */
	MAP_DYNAMIC, /* anonymous, memfd or written-to executable memory: ask dyn */
};

struct map {
	uint64_t start, end; /* vaddr, [start, end) */
	uint64_t file_off;
	uint64_t since_ns; /* until then others stood at these addresses; 0: nobody did */
	enum map_kind kind;
	struct image *image;
	bool listed; /* read from /proc, not told by an event */
};

struct ranges; /* ranges.c */

/* One life of a pid between fork, exec and exit. */
struct process {
	int32_t pid;
	int32_t ppid;		/* from /proc; 0 where unknown */
	uint64_t start_time_ns; /* since boot, from /proc; 0 where unknown */
	uint32_t uid;
	char comm[16];
	char *exe;	   /* path of its program, as the first mapping after exec told; or NULL */
	const char *label; /* of this life, or NULL; both are kept by struct labels */
	const char *next_label; /* of what it executes next; NULL: the same */
	uint64_t labelled_ns;	/* when it got that */
	struct map *maps;	/* ascending, disjoint */
	size_t nr_maps, cap_maps;
	struct dyn_client *dyn; /* NULL: no registry known (for this life); counted reference */
	bool exited;	   /* this life is over (exit or exec); kept until its counts are settled */
	bool hollow;	   /* nothing is known of it but its pid */
	bool begins;	   /* exec was seen, the mapping of its program not yet */
	bool asked;	   /* it was looked for in /proc */
	bool watched;	   /* a perf map of it is looked for, or was */
	bool unsettled;	   /* counts wait for events of before its mappings were listed */
	bool gone;	   /* /proc had it no more when it was looked for */
	uint64_t began_ns; /* when it was forked: ns since boot, of a recorded stream its time; or 0
			    */
	uint64_t execed_ns; /* when its program began: ns since boot; or 0: not known, or as it was
			       forked */
	uint64_t known_ns;  /* CLOCK_MONOTONIC of the reading of /proc that maps come from, or 0 */
	/* Which life it is, as counts tell (instance.c); a source that does not tell leaves it. */
	uint64_t instance; /* 0: none told yet */
	uint64_t born_ns;  /* it was forked by then: ns since boot; or 0 */
	uint64_t seen_ns;  /* when an event or a count told last that it lived */
	uint16_t execs;	   /* of its instance to be, if execs_told */
	bool execs_told;
	uint64_t attached_ns;	 /* when the registry last handed over was made (at most DYN_MADE_NS
				    less), or 0 */
	struct process *later;	 /* a life after this one, of which only its hand-over has told */
	struct ranges *told;	 /* what the driver was told of its dynamic code, or NULL */
	struct waiting *waiting; /* its counts that wait for files (waiting.c), or NULL */
};

/* ---- dynamic code (dyn.c; dyn_write.c: images) ---------------------------------------------- */

struct dyn;	   /* all clients */
struct dyn_client; /* one registry of one process life (a fork's child shares its parent's until it
		      has its own) */

struct dyn_config {
	const char *run_dir;	/* hand-over socket is made here; NULL: none (replay) */
	const char *queue_name; /* doorbell; NULL: none (replay) */
	const char *helper_dir; /* where dcpid-pseudoimg is */
	const char *host;
	struct profdb *db;
	struct images *images;
	struct image_moves *moves; /* profiles that are to follow their images; may be NULL */
	struct reader *reader;	   /* the caller's; NULL: none (replay) */
	bool keep_all;		   /* routines that got no sample, too */
	uint64_t process_quota;	   /* bytes kept of one process; 0: as much as there is room for */
	/* Told of everything read, for recording; may be NULL. @data as dyn_records takes it. */
	void (*record)(void *ctx, int32_t pid, uint64_t time_ns, const void *data, size_t len);
	void *record_ctx;
};

#define DYN_MADE_NS 10000000u /* files have the time of the last tick */

int dyn_open(const struct dyn_config *config, struct dyn **out, struct base_err *err);
void dyn_close(struct dyn *d);
/* Descriptors to wait on besides the driver's; returns how many were stored (at most @max). */
size_t dyn_poll_fds(const struct dyn *d, int *fds, size_t max);
/*
 * Take hand-overs and doorbells, all that are there, without waiting. @find: the process of a pid
 * (made if needed), so that its client can be attached; @time_ns: when its registry was made, at
 * most DYN_MADE_NS before, or now: the taking may be late, and that pid another program since.
 */
int dyn_take(struct dyn *d, struct process *(*find)(void *ctx, int32_t pid, uint64_t time_ns),
	     void *ctx);
/* The marker mapping /memfd:dbgdyn was seen at [addr, addr+len) of @p (mmap event or initial scan).
 */
void dyn_marker(struct dyn *d, struct process *p, uint64_t addr, uint64_t len);
/*
 * A file that the runtime of @p writes its code into (its descriptor is taken over) is followed
 * until @p, and whoever inherited its code, have ended. 0, -EEXIST: it is already; -EPERM: it is
 * not its user's; or negative.
 */
struct reader_dump;
int dyn_dump(struct dyn *d, struct process *p, const struct reader_dump *dump);
/* @p has made memory for code: look for a perf map, and for GDB's descriptor, from now on. */
void dyn_watch(struct dyn *d, struct process *p);
/* @p has mapped a file for its code, which may have a descriptor. */
void dyn_mapped(const struct process *p);
/* @p will end when its counts are settled: what is only there now and then is looked for now, and
 * what was left alone for a while is read. */
void dyn_leaving(struct process *p);
/*
 * Inherited code is looked up as it was at the fork: @time_ns (CLOCK_MONOTONIC), and as of the
 * parent's change *@cursor, where that was told (else NULL).
 */
void dyn_fork(struct dyn *d, struct process *parent, struct process *child, uint64_t time_ns,
	      const uint64_t *cursor);
/*
 * No event told of the fork of @child, and @ancestor it descends from: its memory, or its own
 * registry, says what it inherited of @ancestor's registry. True: it did, and that is known now.
 */
bool dyn_inherit(struct dyn *d, struct process *ancestor, struct process *child);
/* The registry of @from is that of @to, which has none; what @from inherited stays. 0 or -ENOMEM.
 */
int dyn_hand_on(struct process *from, struct process *to);
/*
 * exec or exit of @p, called when its counts are settled: its client is read a last time and closed
 * when nobody else holds it; p->dyn is NULL after.
 */
void dyn_end(struct dyn *d, struct process *p);
/* Records from a recorded stream (replay), as the reader delivered them at @time_ns. */
int dyn_records(struct dyn *d, struct process *p, uint64_t time_ns, const void *data, size_t len);
/* Read every registry whose header moved; owned ranges too when @ranges. True: something was new.
 */
bool dyn_refresh(struct dyn *d, bool ranges);
/* All samples up to @time_ns have been looked up. */
void dyn_settled(struct dyn *d, uint64_t time_ns);
/* Another number whenever what is told of @p's code, by whomever, may have changed: a lookup that
 * ended in DYN_LATER does so again until then, but for one that is the last. */
uint64_t dyn_news(const struct process *p);
/* Samples of @p from @first_ns on will be looked up again: for one more dyn_refresh, who lived then
 * is not forgotten. dyn_lookup says so itself of what it answers by DYN_LATER. */
void dyn_wait(const struct process *p, uint64_t first_ns);
/* A registry of its own is attached to this life; it can have no other. */
bool dyn_has_registry(const struct process *p);
/* An address in @p's own registry may have had more than one routine by now. */
bool dyn_reuses(const struct process *p);
/* @p said that it has put code of its own there, in a mapping of a file though it may be. */
bool dyn_claims(const struct process *p, uint64_t addr);
/* Calls @fn with the addresses where @p said that code is or comes. */
void dyn_ranges(const struct process *p, void (*fn)(void *ctx, uint64_t start, uint64_t end),
		void *ctx);

/* Where the generation words of @p are, and the number of its last change, goes into @client.
 * False: it has none. */
bool dyn_words(const struct process *p, struct driver_client *client);

/* @count samples at @addr, taken from @first_ns to @time_ns, as driver_count tells. */
struct dyn_query {
	uint64_t addr, first_ns, time_ns, count;
	uint32_t generation;
	bool generation_read, generation_unread;
	bool last;	    /* no reading is to be waited for */
	bool dynamic;	    /* it lies in memory that programs write code into … */
	uint64_t map_start; /* … which begins there */
	/* It lies in a file that was mapped then in place of something else: who was told of before
	 * is gone. 0: not known. */
	uint64_t mapped_ns;
};

enum dyn_where {
	DYN_NONE,	/* in no range and no routine */
	DYN_FOUND,	/* the address had this tenant, and no other, all the time */
	DYN_REUSED,	/* it had several, or one for a part of the time, as far as readings tell */
	DYN_GENERATION, /* who lived there in this generation is not known, or which it was */
	DYN_NO_ROOM,	/* it is not on disk, and the database is full (dyn_set_full) */
	DYN_LATER,	/* the next reading of the registry may tell; not where @last */
};
/*
 * Where samples belong (any time up to the last dyn_refresh; they may have been held over several).
 * By their generation where that was read, else by time. DYN_FOUND stores image and offset.
 */
enum dyn_where dyn_lookup(struct dyn *d, struct process *p, const struct dyn_query *q,
			  struct image **image, uint64_t *off);
/* That will be looked up soon (@p may be NULL): as profdb_profile_expect. */
void dyn_expect(const struct process *p, uint64_t addr, unsigned int step);
/*
 * Write every pseudo-image that changed, durable before it returns, answer flush requests. Called
 * before the profiles of a flush are put (law 3), and at once when a client wants a flush
 * (dyn_wants_flush). A failure is logged, answered to the client, and tried again next time. One
 * that lies in what the client said is no failure of the flush: after three tries its image is
 * refused.
 */
int dyn_write_images(struct dyn *d, struct base_err *err);
bool dyn_wants_flush(const struct dyn *d);
/*
 * The database is over its quota: what would make it larger is not written, but for routines that
 * got samples before; who waits for an image is told so.
 */
void dyn_set_full(struct dyn *d, bool full);
/* Images of what lives are newer than the last flush from now on: dcpid -gc leaves them alone. */
void dyn_spare_images(const struct dyn *d);
/* A client waits for what was not all read yet: call dyn_refresh again soon. */
bool dyn_is_catching_up(const struct dyn *d);
/*
 * Processes that have ended join the pseudo-image of others of their executable, facility,
 * uid, machine and label, with the counts they have in memory. Called before dyn_write_images,
 * which leaves out what waits for this. 0, or negative where the disk or memory failed: tried again
 * next time.
 */
int dyn_fold(struct dyn *d, struct base_err *err);
/*
 * A part of those that have ended and keep images of their own, so that a crowd of them does not
 * hold up sampling: 0.2 s of them, the next call goes on. @hasty: dyn_write_images takes no longer
 * for these either; their profiles wait.
 */
int dyn_write_ended(struct dyn *d, struct base_err *err);
void dyn_set_hasty(struct dyn *d, bool hasty);
/* So many have ended that it should not wait for the flush. */
bool dyn_wants_fold(const struct dyn *d);
/* A new epoch has its own images of those that end in it. */
void dyn_fold_forget(struct dyn *d);
/* What was written is not on disk any more: images that can be made again are behind. */
void dyn_images_lost(struct dyn *d);
struct dyn_stats {
	uint64_t clients, facilities, routines, images_written, records_bad, records_dropped;
	uint64_t routines_refused;   /* found no room: their process's quota, or the database's */
	uint64_t changes_missed;     /* of what lives, that no record told */
	uint64_t generations_unread; /* samples whose generation could not be read */
	uint64_t images_folded;	     /* processes whose image became part of another */
	uint64_t folds_failed;	     /* those that keep one of their own, for that failed */
};
void dyn_stats_get(const struct dyn *d, struct dyn_stats *out);

/* ---- the reader process (reader.c; program dcpid-reader) ------------------------------------- */

/*
 * Reading a process's memory, or a file it names, can block without end and parses outside bytes:
 * only this helper does it, one request at a time; a request that takes longer than a second fails
 * with -ETIMEDOUT and the helper is killed and replaced.
 */
struct reader;

int reader_open(const char *helper_dir, struct reader **out, struct base_err *err);
void reader_close(struct reader *r);
/* Give back the memory of the last answer, of a registry's eight MiB; the next one takes it anew.
 */
void reader_trim(struct reader *r);
/* A file that is no image but one that a runtime writes its code into (jitdump), to read. */
struct reader_dump {
	int fd; /* the caller's; -1: it is an image */
	uint32_t owner;
	bool no_elf; /* nor an ELF file: what it holds, its program alone knows */
};
/*
 * Identity of the file that mapping @l of @pid was of when the kernel told of it: build-id, else a
 * hash of the file's heads. -ESTALE: neither the mapping nor the path leads to that file any more;
 * -ETXTBSY: it was changed since @l->time_ns (0: not known), and may have been written over;
 * -EREMOTE: a dump where it cannot be followed. @dump may be NULL.
 */
int reader_image_id(struct reader *r, int32_t pid, const struct driver_load *l, struct base_id *id,
		    struct reader_dump *dump);
/* Descriptor, to read and write, of the registry that @pid has mapped there (checked: sealed
 * against shrinking, header; not: who made it). -EPERM also without the right to open map_files. */
int reader_registry_open(struct reader *r, int32_t pid, uint64_t map_start, uint64_t map_end);
/*
 * Parse a registry from *@place on (registry.h): its tables, its ring's records, and where @place
 * asks for it what lives, as normalized records, about 8 MiB of them; @place says how far that was.
 * Returns how many were malformed. Code that is not in a record comes from the process (flag
 * WIRE_ROUTINE_FETCHED), if that still is @life (registry_process_life) and @uid's, who will see
 * it. -ESTALE: what was at @place->tail is overwritten. @place moves on success only.
 */
struct registry_place;
int reader_registry_read(struct reader *r, int fd, int32_t pid, uint32_t uid, uint64_t life,
			 struct registry_place *place, struct base_buf *out);
/* Contents of owned ranges (trailing zeros left out), as WIRE_BYTES records. -ESRCH: it is not that
 * life any more, or its memory is not @uid's to see (set-uid, or not to be dumped). */
int reader_range_read(struct reader *r, int32_t pid, uint32_t uid, uint64_t life,
		      const struct wire_range *range, struct base_buf *out);
/* The root folder of @pid (O_PATH), and its number in its own PID namespace. Or negative. */
int reader_root_find(struct reader *r, int32_t pid, int32_t *ns_pid);
/*
 * Descriptor, to read, of the perf map that process @ns_pid of @uid has below @root, written since
 * @since_ns (CLOCK_REALTIME). -ENOENT; others: there is one that is not to be read (not the user's,
 * a link, a FIFO, on a file system that may not answer).
 */
int reader_perfmap_find(struct reader *r, int root, int32_t ns_pid, uint32_t uid,
			uint64_t since_ns);
/*
 * What is new in a file of enum foreign_kind @kind (foreign.h), from *@place on, as normalized
 * records of facility 0. Code that is not in it comes from the process as in reader_registry_read.
 * Returns how many records were malformed, or as foreign.h has it. @place moves on success only.
 */
struct reader_who {
	int32_t pid;
	uint32_t uid;
	uint64_t life;
};
struct foreign_place;
int reader_file_read(struct reader *r, int fd, unsigned int kind, const struct reader_who *who,
		     struct foreign_place *place, struct base_buf *out);
/*
 * Bytes of @pid's memory from @addr, a page's start, on, at most @len, to translate or (dyn_heir.c)
 * to compare: how many, up to the first page that is not there. Whose they are nobody has to know:
 * they are compared with what the process runs, or with what its ancestor said, before they are
 * used, and go nowhere else.
 */
ssize_t reader_code_read(struct reader *r, int32_t pid, uint64_t addr, void *to, size_t len);
/*
 * GDB's JIT interface (foreign.h); all of them -ESRCH as reader_range_read. Find: where the process
 * has descriptors; 1: not all of its files were asked yet. List: as foreign_gdb_list, entries.
 * Object: as foreign_gdb_object; its print is stored where it was read, whatever the result.
 */
struct foreign_gdb;
struct foreign_gdb_entry;
int reader_gdb_find(struct reader *r, const struct reader_who *who, struct foreign_gdb *g);
int reader_gdb_list(struct reader *r, const struct reader_who *who, struct foreign_gdb *g,
		    struct base_buf *out);
int reader_gdb_object(struct reader *r, const struct reader_who *who, uint64_t seq,
		      struct foreign_gdb_entry *entry, struct base_buf *out);

/* ---- the kernel's own code (kernel.c) -------------------------------------------------------- */

/* kallsyms, modules, BPF and other ksymbols, vdso; their images are written into <db>/kernel/. */
struct kernel;

struct kernel_config {
	struct profdb *db; /* NULL: no files are written */
	struct images *images;
	bool live; /* this machine's kernel; else DRIVER_LOAD_KERNEL and KSYMBOL are all there is */
	const char *root;	/* where proc and sys stand; NULL: "/" */
	const char *helper_dir; /* where dcpid-pseudoimg is; NULL: no code is kept */
	const char *host;
	/* bpf(2), with its result or -errno; NULL: this machine's. */
	long (*bpf)(void *ctx, int cmd, void *attr, size_t attr_len);
	/* Reads the kernel's memory: 0 or -errno; NULL: kernel_memory_read. */
	int (*read)(void *ctx, uint64_t addr, void *to, size_t len);
	void *ctx;
};

/* Strings of @config must outlive it. */
int kernel_open(const struct kernel_config *config, struct kernel **out, struct base_err *err);
void kernel_close(struct kernel *k);
/* The vdso alone, for one that was opened without @live. 0 or negative with @err. */
int kernel_fill_vdso(struct kernel *k, struct base_err *err);
/* KSYMBOL, KERNEL, POKE */
void kernel_load(struct kernel *k, const struct driver_load *load);
/*
 * Image and offset of a kernel address; *@idle: it is in a routine in which an idle CPU waits, and
 * of the idle task. NULL: unknown, or it had several images while @c was counted.
 */
struct image *kernel_lookup(struct kernel *k, const struct driver_count *c, uint64_t *off,
			    bool *idle);
/* Read code that may be gone when the event of its coming is handed on; often, it costs a call. */
void kernel_look(struct kernel *k);
struct image *kernel_vdso(struct kernel *k); /* NULL where there is none */
/* What a recorded stream must begin with: the kernel code that is there now. */
void kernel_tell(const struct kernel *k, void (*tell)(void *ctx, const struct driver_load *load),
		 void *ctx);
/* Write images that changed, before the profiles of a flush. */
int kernel_write_images(struct kernel *k, struct base_err *err);
/* What was written is not on disk any more: pseudo-images that can be made again have no identity
 * until they are. */
void kernel_images_lost(struct kernel *k);

#endif
