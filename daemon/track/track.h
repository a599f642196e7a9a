/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes: the lives of each pid, what each has mapped, which life it is, its label, what /proc
 * says of it, and the identity of the files that it maps.
 */
#ifndef DCPI_TRACK_H
#define DCPI_TRACK_H

#include <string.h>

#include "images.h"
#include "reader.h"

/* ---- a process and its mappings -------------------------------------------------------------- */

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

struct ranges; /* follow/attach.c */

/* One life of a pid between fork, exec and exit. */
struct process {
	int32_t pid;
	int32_t ppid;		/* from /proc; 0 where unknown */
	uint64_t start_time_ns; /* since boot, from /proc; 0 where unknown */
	uint32_t uid;
	bool uid_known;
	bool identified;       /* its number in the workloads is of what it is now */
	uint32_t workload;     /* that number; 0: it has none */
	uint64_t seen_into_ns; /* since then its user may see its samples; 0: not asked; UINT64_MAX:
				  never */
	uint32_t placed;       /* the number of the epoch in which proc_place was done last */
	uint32_t place_drain;  /* the number of the drain in which that was tried last */
	uint32_t place_tries;  /* how often in vain since it was done */
	char comm[16];
	char *exe;	   /* path of its program, as the first mapping after exec told; or NULL */
	char *cgroup;	   /* path of its cgroup, as /proc told of it or its parent; or NULL */
	const char *label; /* label of this life, or NULL; struct labels keeps both */
	const char *next_label; /* label of the next program that it executes; NULL: the same */
	uint64_t labelled_ns;	/* when it got that */
	struct map *maps;	/* ascending, disjoint */
	size_t nr_maps, cap_maps;
	uint64_t maps_version;	/* another one with each change; no two processes have the same */
	struct dyn_client *dyn; /* NULL: no registry known (for this life); counted reference */
	bool exited;	   /* this life is over (exit or exec); kept until its counts are settled */
	bool placeholder;  /* nothing is known of it but its pid */
	bool begins;	   /* exec was seen, the mapping of its program not yet */
	bool asked;	   /* it was looked for in /proc */
	bool watched;	   /* what tells of its code beside a registry needs no look (dyn_watch) */
	bool unsettled;	   /* counts wait for events of before its mappings were listed */
	uint32_t nr_paths; /* call paths that may go on through its mappings, which stay so long */
	bool gone;	   /* /proc had it no more when it was looked for */
	uint64_t began_ns; /* when it was forked: ns since boot, of a recorded stream its time; or 0
			    */
	uint64_t execed_ns; /* when its program began: ns since boot; or 0: not known, or as it was
			       forked */
	/* How long it lives from fork or exec on, of one that ended before that was drained: /proc
	 * is not asked of it; 0: not known. */
	uint64_t lives_ns;
	uint64_t known_ns; /* CLOCK_MONOTONIC of the reading of /proc that maps come from, or 0 */
	/* When it was asked last whether its paths lead elsewhere than root's (identity.c); or 0 */
	uint64_t paths_asked_ns;
	bool paths_elsewhere;
	/* Which life it is, as counts tell (proc.c); a source that does not tell leaves it. */
	uint64_t instance; /* 0: none told yet */
	uint64_t born_ns;  /* it was forked by then: ns since boot; or 0 */
	uint64_t seen_ns;  /* when an event or a count told last that it lived */
	uint16_t execs;	   /* execs of its future instance, if execs_announced */
	bool execs_announced;
	uint64_t attached_ns;  /* when the registry last handed over was made (at most DYN_MADE_NS
				  less), or 0 */
	struct process *later; /* a life after this one, of which only its hand-over has told */
	struct ranges *announced; /* the driver's copy of its dynamic code, or NULL */
	struct waiting *waiting;  /* its counts that wait for files (counts.c), or NULL */
};

/* ---- maps of a process (map.c) --------------------------------------------------------------- */

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

/* ---- processes (process.c) ------------------------------------------------------------------- */

struct processes;

struct processes *processes_new(void);
/* Frees what is left; @end sees each process before (may be NULL). */
void processes_free(struct processes *t, void (*end)(void *ctx, struct process *p), void *ctx);
struct process *processes_find(struct processes *t, int32_t pid);
/* The last life of @pid that is over and not yet reaped, or NULL. */
struct process *processes_find_over(const struct processes *t, int32_t pid);
/* A new life; an older one of that pid is over. NULL: no memory. */
struct process *processes_add(struct processes *t, int32_t pid);
/* The life is over; it stays until the next reaping, for counts that still refer to it. */
void processes_end(struct processes *t, struct process *p);
/* As processes_next, of the lives that are over. */
bool processes_next_over(const struct processes *t, size_t *pos, struct process **out);
/* Forget the mappings of lives that are over, but for those that are unsettled or have call paths.
 */
void processes_forget_maps(struct processes *t);
/* Free the lives that are over but for those that are unsettled; @end sees each before (may be
 * NULL). */
void processes_reap(struct processes *t, void (*end)(void *ctx, struct process *p), void *ctx);
/* The process returned last may be ended: then continue with --*pos. */
bool processes_next(const struct processes *t, size_t *pos, struct process **out);
size_t processes_nr(const struct processes *t);

/* Its name; another one than it had makes it another workload. */
void process_set_comm(struct process *p, const char *comm);
/* The process as profiles are kept apart by it; @p may be NULL. */
struct images_owner process_owner(const struct process *p);

/* ---- a sample on its way --------------------------------------------------------------------- */

/* Samples of one address of a process. sample_locate sets what is of its mapping. */
struct sample {
	struct process *p;     /* NULL: there is none */
	const struct map *map; /* of addr, while no event comes between; NULL: none */
	uint64_t first_ns, time_ns, addr, count;
	uint64_t map_start;  /* start of its mapping; 0: in none */
	struct image *image; /* where it is if no client told of code there; or NULL. A reference */
	uint64_t off;
	uint64_t mapped_ns; /* time of that image's mapping, as for dyn_query */
	uint64_t until_ns;  /* base_now_ns up to which the next poll of its registry is waited
			       for; 0: it was not looked up yet */
	int32_t pid;
	uint32_t thread; /* number of its name: the driver's, if threaded is set the workloads' */
	uint32_t event, generation;
	uint32_t insn; /* number of its attributes in core's pool; 0: the hardware told none */
	bool generation_read, generation_unread;
	bool dynamic; /* it lies in a MAP_DYNAMIC mapping */
	bool threaded;
	bool waits; /* its mapping did not tell: the registries have to */
	enum driver_mode mode;
	enum account_bucket bucket; /* DRIVER_OTHER: where it belongs */
};

/* The mapping of its address, as it is now (map.c). */
void sample_locate(struct sample *s);

/*
 * ---- which life of a pid it is (proc.c) ------------------------------------------------------
 *
 * Counts of some sources tell it (struct driver_count); events do not, but say that one begins. So
 * the first count of a life says which it is, if it can be: not of a process forked later, and with
 * as many programs executed as its parent's instance and the events told. Events that were lost
 * make that number too low and never too high, so a count of another life does not fit.
 */

/* Is @instance (not 0) that of @p? Where nothing told before, it is from now on. */
bool instance_fits(struct process *p, uint64_t instance);

/* ---- labels that users give to processes (label.c), also over a restart (label_keep.c) ------- */

enum { LABEL_MAX = 64, LABELS_MAX = 1024, LABELS_OF_USER = 64 };

struct label {
	char *text;
	bool given; /* given by @uid, last in @epoch */
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
	struct label_kept *kept; /* labels of processes that were not met yet */
	size_t nr_kept, cap_kept;
	struct base_buf written; /* contents of the file */
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
static inline void labels_new_epoch(struct labels *t)
{
	t->epoch++;
}
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

/* ---- identity of mapped files (identity.c) --------------------------------------------------- */

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
 * is ELF, what its code is (text) and where (extent). With @l->time_ns 0 the reader is asked once
 * for each
 * @p->known_ns. 0 or -ENOMEM.
 */
int identity_find(struct identity *t, const struct process *p, const struct driver_load *l,
		  struct base_id *id, bool *by_path, struct reader_dump *dump);
/*
 * The code (struct reader_dump) of the file of mapping @l of @p, which brought a build-id: as the
 * reader process tells; of a process that is gone, what that build-id at that path had the last
 * time; and where it wants to be. One byte, 0: nothing tells.
 */
void identity_text(struct identity *t, struct process *p, const struct driver_load *l,
		   struct base_id *text, struct base_extent *extent);
/* Closes the descriptor of a dump that is not wanted, as reader_release. */
void identity_release_dump(struct identity *t, const struct reader_dump *dump);
/* That of the ELF file which user @uid sent (reader_file_id), into @l. 0 or negative. */
int identity_of_sent(struct identity *t, uint32_t uid, int sock, struct driver_load *l);
void identity_forget(struct identity *t);

/* ---- /proc (proc.c) -------------------------------------------------------------------------- */

/* Start time, parent, uid and name of @p. -ESTALE: that pid is another process's by now, and
 * nothing is written; -ESRCH where it is gone. */
int proc_describe(struct process *p);
/*
 * Uid and cgroup of @p, and the path of its program where no event told that (proc.c): as its
 * pid has them now, if that is still this process's; where @named, only if it has the name that is
 * known, too: after an exec whose event is still queued it has another one mostly. Names of kernel
 * threads are not compared. 0, -ESTALE, -ESRCH, or -errno: all of them stay.
 */
int proc_place(struct process *p, bool named);
/*
 * The path in /proc/PID/cgroup (@text is changed): that in the unified hierarchy; where it is the
 * root there, or is not there, the first other one that is not the root. NULL: none is told.
 */
char *proc_parse_cgroup(char *text);
/*
 * Mappings are read by @reader, for a program may make that take long; NULL: by ourselves, where it
 * is our user's own.
 */
struct reader;
/* 0: all of [start, end) is executable memory of the process; -ENOENT; -errno. */
int proc_check_code(struct reader *reader, int32_t pid, uint64_t start, uint64_t end);
/* Calls @fn with each mapping of @pid, and whether it is executable. 0 or -errno. */
int proc_each_map(struct reader *reader, int32_t pid,
		  void (*fn)(void *ctx, struct driver_load *l, bool exec), void *ctx);
/*
 * Calls @fn with the executable memory of @p that is in no file, as it is now, and what adjoins it
 * of other such memory: runtimes reserve more than they use yet.
 */
void proc_dynamic(struct reader *reader, const struct process *p,
		  void (*fn)(void *ctx, uint64_t start, uint64_t end), void *ctx);
/* One line of /proc/PID/maps into @l (path points into @line, which is changed): 1 executable, 0
 * other, -DCPI_EFORMAT. */
int proc_parse_line(char *line, struct driver_load *l);
/* The pid of @p belongs to another life by now, so that the end of @p was lost. A life that has
 * handed over a registry waits for its own events. */
bool proc_is_other_life(const struct process *p);

/* ---- mappings by their names (mapping.c) ----------------------------------------------------- */

enum mapping_kind {
	MAPPING_FILE,
	MAPPING_CODE,	/* memory that programs write code into themselves */
	MAPPING_MARKER, /* the page by which libdbgdyn shows that there is a registry */
	MAPPING_VDSO,
	MAPPING_VSYSCALL, /* a page of the kernel's that every process lists */
};
/* @event: an event told of it as it was made; else /proc lists it. */
enum mapping_kind mapping_kind(const struct driver_load *l, bool event);
/* It is of a file, if one without a name in any folder. */
static inline bool mapping_is_of_file(const char *path)
{
	return path[0] == '/' && (path[1] != '/' || strcmp(path, "//anon") != 0);
}
/* The path ends as those of files that were removed do; *@len (may be NULL) is its length without
 * that. */
bool mapping_is_deleted(const char *path, size_t *len);

#endif
