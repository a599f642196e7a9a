/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profile database: <db>/<epoch YYYYMMDDHHMM[SS]>/<platform>/<profile>, with <db>/dyn/ for
 * pseudo-images and <db>/kernel/ for the kernels' images. The only code that knows the layout on
 * disk and the profile files' formats (docs/format/dcpiformat.md).
 *
 * Readers need no daemon and no lock. One writer per platform (profdb_lock).
 */
#ifndef DCPI_PROFDB_H
#define DCPI_PROFDB_H

#include <fcntl.h>
#include <time.h>

#include "base.h"
#include "isample.h"

/* A name is YYYYMMDDHHMM, UTC; with seconds behind it for a further epoch that begins in a minute.
 */
#define PROFDB_EPOCH_LEN    14
#define PROFDB_EPOCH_MINUTE 12
#define PROFDB_TIME_LEN	    14 /* with seconds, as profiles tell when their epoch began */
#define PROFDB_PLATFORM_MAX 64
#define PROFDB_NR_EVENTS    16 /* events in one profile at most */
#define PROFDB_EVENT_NAME   32
#define PROFDB_NR_PATHS	    64	       /* paths kept of one image */
#define PROFDB_FILE_MAX	    (1u << 30) /* longest profile file that is read */
/* Bytes kept of a path: mappings may tell of megabytes, and so many paths fit into a header however
 * they are escaped. */
#define PROFDB_PATH_MAX 4000

/* ---- profiles in memory ---------------------------------------------------------------------- */

/* The unit of a profile's offsets. */
enum profdb_kind {
	PROFDB_FILE,	/* ordinary ELF file: file offsets */
	PROFDB_KERNEL,	/* offsets from the kernel's base; image in <db>/kernel/ */
	PROFDB_DYNAMIC, /* pseudo-image in <db>/dyn/: its image offsets */
	PROFDB_VDSO,	/* file offsets; image in <db>/kernel/ */
	PROFDB_NAMED,	/* samples in no image, under the name in path: offset 0 alone */
};

struct profdb_event {
	char name[PROFDB_EVENT_NAME]; /* "cycles", "cpu-clock": no blanks */
	uint64_t period;	      /* mean; cycles or events, for clocks nanoseconds */
	uint64_t sum;		      /* samples, of all offsets (kept by profdb_profile_add) */
	double enabled; /* fraction of the time it was counted, 1 where not multiplexed */
};

struct profdb_entry {
	uint64_t off;
	uint64_t count[]; /* one per event */
};

struct profdb_profile; /* opaque: a header and counts by (offset, event) */

struct profdb_profile *profdb_profile_new(enum profdb_kind kind, const struct base_id *image,
					  const char *path);
void profdb_profile_free(struct profdb_profile *p);

enum profdb_kind profdb_profile_kind(const struct profdb_profile *p);
/* "file", "kernel", …: as profile files have it. */
const char *profdb_kind_name(enum profdb_kind kind);
int profdb_kind_find(const char *name); /* or -ENOENT */
const struct base_id *profdb_profile_image(const struct profdb_profile *p);
/* The image gets a new identity (a pseudo-image that grew); offsets stay. */
void profdb_profile_set_image(struct profdb_profile *p, const struct base_id *image);
/* Paths under which the image was seen; the first is the one it was made with. NULL past the end.
 */
const char *profdb_profile_path(const struct profdb_profile *p, size_t index);
/* Once each; beyond PROFDB_NR_PATHS (and an empty one) left out, beyond PROFDB_PATH_MAX cut. 0 or
 * -ENOMEM. */
int profdb_profile_add_path(struct profdb_profile *p, const char *path);
/* Header words beyond those with functions here (epoch, platform, tsize, cpuspeed, and unknown
 * lines): NULL where absent. */
const char *profdb_profile_word(const struct profdb_profile *p, const char *word);
/* Replaces the first line of @word, or adds one; NULL removes all. -EINVAL: a word that has
 * functions here, or a value that its line could not hold (empty; no number where the word is one).
 * -DCPI_ELIMIT: lines are as many as a profile may have (docs/format/dcpiformat.md).
 */
int profdb_profile_set_word(struct profdb_profile *p, const char *word, const char *value);

/* Line @index of those, in the order of the file, repeated ones too: its value, and into @word its
 * word; NULL past the end. */
const char *profdb_profile_line(const struct profdb_profile *p, size_t index, const char **word);

size_t profdb_profile_nr_events(const struct profdb_profile *p);
const struct profdb_event *profdb_profile_event(const struct profdb_profile *p, size_t index);
/* Index of the event, added where missing. Negative: -DCPI_ELIMIT, -EINVAL (name), -ENOMEM. */
int profdb_profile_event_add(struct profdb_profile *p, const char *name, uint64_t period);
/* Fraction of the time that the event was counted, 0 to 1. 0 or -EINVAL. */
int profdb_profile_event_set_enabled(struct profdb_profile *p, size_t index, double enabled);
/* The period, where it was not known when the event was added. 0 or -EINVAL. */
int profdb_profile_event_set_period(struct profdb_profile *p, size_t index, uint64_t period);
int profdb_profile_event_find(const struct profdb_profile *p, const char *name); /* or -ENOENT */

/* Add @n samples. 0, -ENOMEM, or -DCPI_EOVERFLOW (64 bits; nothing changed). */
int profdb_profile_add(struct profdb_profile *p, uint64_t off, size_t event, uint64_t n);
/* Samples on their way to an offset of a profile. */
struct profdb_add {
	struct profdb_profile *to;
	uint64_t off, n;
	uint32_t event;
	int r; /* negative: it is left out; after that the result of profdb_profile_add */
};

/* Add them in their order. Their rows are brought into the caches together, as they lie far apart.
 */
void profdb_profiles_add(struct profdb_add *v, size_t nr);
/* All of @from into @to: events matched by name, paths united, words that @to lacks. Same errors.
 */
int profdb_profile_merge(struct profdb_profile *to, const struct profdb_profile *from);
/* Drop all counts, moves and instruction samples, keep the header. */
void profdb_profile_clear(struct profdb_profile *p);
/* Drop all moves and instruction samples alone. */
void profdb_profile_details_clear(struct profdb_profile *p);
size_t profdb_profile_nr_entries(const struct profdb_profile *p);
/* Ascending by offset; valid until the next change. */
const struct profdb_entry *profdb_profile_entry(const struct profdb_profile *p, size_t index);

/* ---- moves: what traces saw of a program's way ----------------------------------------------- */

/*
 * A trace is the row of instructions that ran next at a sample (lib/vtrace). A profile keeps what
 * of it lies in the image, as the row of control transfers in there: what lies in other images
 * between is left out, so that a call into a library and back is one move from the call to what
 * follows it. Each conditional branch is a move, taken or not (then @to is the next instruction),
 * and so are jumps, calls and returns; to run on without a branch is none. Offsets are of the
 * profile's kind, as those of its counts.
 */
#define PROFDB_OUTSIDE UINT64_MAX
/* In @start: not known any more, as the profile had too many moves. */
#define PROFDB_ANY_START (UINT64_MAX - 1)

/* Moves that a profile keeps with their start. Further ones are added up without it, so many again;
 * beyond that all go into the one from PROFDB_OUTSIDE to PROFDB_OUTSIDE, so that the sum is right.
 */
#define PROFDB_NR_EDGES 400000

struct profdb_edge {
	uint64_t start; /* offset of the instruction at which the trace began; PROFDB_OUTSIDE: in
			   another image */
	uint64_t from;	/* the instruction after which it went elsewhere; PROFDB_OUTSIDE: the trace
			   begins, or first comes into the image, at @to */
	uint64_t to;	/* where it went on; PROFDB_OUTSIDE: @from was the last instruction in the
			   image that ran */
	uint64_t count[2]; /* in traces of even and of odd number: two independent halves */
};

/* Added to the one that is equal in start, from and to. 0, -ENOMEM, or -DCPI_EOVERFLOW (the sum of
 * all moves, of one half, above 64 bits; nothing changed). */
int profdb_profile_edge_add(struct profdb_profile *p, const struct profdb_edge *m);
/* These will be added now: what that looks at is brought into the caches, for all at once. */
void profdb_profile_edges_fetch(const struct profdb_profile *p, const struct profdb_edge *m,
				size_t nr);
size_t profdb_profile_nr_edges(const struct profdb_profile *p);
/* Ascending by start, from, to; valid until the next change. NULL past the end. */
const struct profdb_edge *profdb_profile_edge(const struct profdb_profile *p, size_t index);

/* ---- instruction samples: what the hardware told of sampled instructions --------------------- */

/*
 * Samples of an offset and event of which the hardware told the same (isample.h). They are samples
 * of the counts once more, so that those of an event are no more than its sum; samples of which it
 * told nothing are not among them.
 */
struct profdb_insn {
	uint64_t off; /* PROFDB_OUTSIDE: there was no room for what was told; nothing is known */
	uint64_t known, bits;
	uint64_t count;
	uint64_t sum[ISAMPLE_NR_COUNTERS]; /* sums of the known counters, at most 2^64 - 1 */
	uint32_t event;
};

/* A profile keeps so many with an offset. */
#define PROFDB_NR_INSNS 200000

/* Added to what is equal in off, event, known and bits. 0, -ENOMEM, -EINVAL. */
int profdb_profile_insn_add(struct profdb_profile *p, const struct profdb_insn *m);
/* Room for so many more, so that adding them cannot fail. 0 or -ENOMEM. */
int profdb_profile_insns_reserve(struct profdb_profile *p, size_t more);
size_t profdb_profile_nr_insns(const struct profdb_profile *p);
/* Ascending by off, event, known, bits; valid until the next change. NULL past the end. */
const struct profdb_insn *profdb_profile_insn(const struct profdb_profile *p, size_t index);

/* ---- images of files that are about all images (image_table.c) ------------------------------- */

/* An image, as files of call paths and workloads name it. */
struct profdb_image_ref {
	enum profdb_kind kind;
	struct base_id id;
	const char *path; /* as the first one of its profile; the name, for PROFDB_NAMED */
	const char *stem; /* DYNAMIC: name of its file in dyn/; else NULL */
};

/* ---- call paths (callpaths.c) ---------------------------------------------------------------- */

/*
 * Call paths of one platform and epoch, as a calling-context tree: a node is a frame below its
 * callers, and has the samples whose path ends (at the sampled address) there. Samples are those of
 * which the call path was kept, one in so many; profiles have all of them.
 */
enum profdb_callpath_end {
	PROFDB_CALLPATH_COMPLETE,   /* the outermost frame is that of its thread, or the kernel's */
	PROFDB_CALLPATH_CUT,	    /* deeper than paths may be */
	PROFDB_CALLPATH_UNREADABLE, /* its stack could not be read further */
	PROFDB_CALLPATH_NO_ROWS,    /* nothing tells how the outermost frame known was called */
	PROFDB_CALLPATH_CONTRADICTED, /* the routine that is said to have called it does not */
	PROFDB_NR_CALLPATH_ENDS
};

/* "stack unreadable" for people, and "unreadable", one word, for programs. */
const char *profdb_callpath_end_text(enum profdb_callpath_end end);
const char *profdb_callpath_end_word(enum profdb_callpath_end end);

/* Image @image of the file, and an offset in it, as profiles have it: the interrupted instruction,
 * or of a caller the last byte of its call. */
struct profdb_frame {
	uint32_t image;
	uint64_t off;
};

/*
 * The image of a node that is no frame: it stands right below an end, has no samples of its own,
 * and its offset is the number of the workload that all paths below it are of. Other paths below
 * the end are of nobody that is known.
 */
#define PROFDB_CALLPATH_WORKLOAD UINT32_MAX
#define PROFDB_CALLPATH_NOBODY	 UINT32_MAX

struct profdb_callpath_node {
	uint32_t parent; /* number of the caller's node, lower than its own; of outermost frames:
			    the end of the path (enum profdb_callpath_end), which has no frame */
	struct profdb_frame frame;
	const uint64_t *count; /* samples at this very node, one number for each event */
};

/* Nodes that there may be: a file of so many can still be read and written. */
#define PROFDB_NR_CALLNODES (UINT32_C(1) << 25)

struct profdb;
struct profdb_workload;
struct profdb_callpaths; /* opaque */

struct profdb_callpaths *profdb_callpaths_new(void); /* NULL: no memory */
void profdb_callpaths_free(struct profdb_callpaths *c);
/* The number of an image, added where missing; equal: kind, id and path, DYNAMIC: stem (and it has
 * the id given last). Or -ENOMEM, -DCPI_ELIMIT, -EINVAL (a stem, but not DYNAMIC, or vice versa).
 */
int profdb_callpaths_image_add(struct profdb_callpaths *c, const struct profdb_image_ref *i);
size_t profdb_callpaths_nr_images(const struct profdb_callpaths *c);
const struct profdb_image_ref *profdb_callpaths_image(const struct profdb_callpaths *c,
						      size_t index);
/* Events, as of profiles. */
int profdb_callpaths_event_add(struct profdb_callpaths *c, const char *name, uint64_t period);
size_t profdb_callpaths_nr_events(const struct profdb_callpaths *c);
const struct profdb_event *profdb_callpaths_event(const struct profdb_callpaths *c, size_t index);
/* Words of its header (epoch, platform, …); its events have their sums. */
const struct profdb_profile *profdb_callpaths_header(const struct profdb_callpaths *c);
/* @n samples of @event with this path, the sampled frame first. 0, -EINVAL, -ENOMEM,
 * -DCPI_EOVERFLOW, -DCPI_ELIMIT (more than PROFDB_NR_CALLNODES; nothing changed). */
int profdb_callpaths_add(struct profdb_callpaths *c, size_t event, enum profdb_callpath_end end,
			 const struct profdb_frame *frames, size_t nr, uint64_t n);
/* The number of a workload, added where missing; its pid, thread and processes are not kept. Or
 * -ENOMEM; where there are too many, that of one of which nothing is known. */
int profdb_callpaths_workload_add(struct profdb_callpaths *c, const struct profdb_workload *k);
size_t profdb_callpaths_nr_workloads(const struct profdb_callpaths *c);
const struct profdb_workload *profdb_callpaths_workload(const struct profdb_callpaths *c,
							size_t index);
/* As profdb_callpaths_add, of a workload, or of PROFDB_CALLPATH_NOBODY. */
int profdb_callpaths_add_of(struct profdb_callpaths *c, uint32_t workload, size_t event,
			    enum profdb_callpath_end end, const struct profdb_frame *frames,
			    size_t nr, uint64_t n);
/* All of @from into @to. Same errors. */
int profdb_callpaths_merge(struct profdb_callpaths *to, const struct profdb_callpaths *from);
/* The paths of those workloads of @from that are true in @wanted into @to; NULL: all paths. Without
 * @owners they are of no workload there. Same errors. */
int profdb_callpaths_select(struct profdb_callpaths *to, const struct profdb_callpaths *from,
			    const bool *wanted, bool owners);
/* Nodes 0 to PROFDB_NR_CALLPATH_ENDS - 1 are the ends; each other node stands behind its parent. */
size_t profdb_callpaths_nr_nodes(const struct profdb_callpaths *c);
struct profdb_callpath_node profdb_callpaths_node(const struct profdb_callpaths *c, size_t index);
/* The same, but the parent of each outermost frame is its end, whosever it is. */
struct profdb_callpath_node profdb_callpaths_frame(const struct profdb_callpaths *c, size_t index);
/* The workload that the path of a frame is of, or PROFDB_CALLPATH_NOBODY. */
uint32_t profdb_callpaths_owner(const struct profdb_callpaths *c, size_t index);

/* As profdb_profile_parse (fuzzed), and profdb_profile_format. */
int profdb_callpaths_parse(const void *data, size_t len, struct profdb_callpaths **out,
			   struct base_err *err);
int profdb_callpaths_format(const struct profdb_callpaths *c, struct base_buf *out,
			    struct base_err *err);
/* Reads the call paths of an epoch and platform, as of one flush; -ENOENT (without @err): it has
 * none. */
int profdb_callpaths_load(struct profdb *db, const char *epoch, const char *platform,
			  struct profdb_callpaths **out, struct base_err *err);
/* The same file's bytes. */
int profdb_callpaths_bytes(struct profdb *db, const char *epoch, const char *platform,
			   struct base_buf *out, struct base_err *err);

/* ---- workloads (workloads.c) ----------------------------------------------------------------- */

/*
 * The samples of one platform and epoch once more, divided among workloads, and among minutes. Each
 * sample of the profiles is in exactly one count and in exactly one minute; so the sums by image
 * equal those of the profiles.
 */
struct profdb_workload {
	const char *comm;   /* name of the process; "" where not known */
	const char *exe;    /* path of its program, in its own root; "": kernel thread, not known */
	const char *cgroup; /* path in the unified hierarchy, else in the first of version 1; "" */
	const char *label;  /* "": none */
	const char *thread; /* name of the thread; "": not known, or not kept */
	uint32_t uid;	    /* UINT32_MAX: not known */
	int32_t pid;	    /* 0: not kept; the idle task, whose comm is "(idle)" */
	uint64_t processes; /* number of processes that it stands for; adds up where merged */
};

/* Bytes of each of its names, without the 0; longer ones are cut. */
#define PROFDB_WORKLOAD_NAME PROFDB_PATH_MAX
enum { PROFDB_NR_WORKLOADS = 65536 };

/* Minutes keep counts by pieces of code of so many bytes. */
enum { PROFDB_MINUTE_BLOCK = 1024 };

struct profdb_workload_count {
	uint32_t workload, image;
	uint64_t off;
	const uint64_t *count; /* one number for each event */
};

struct profdb_workload_minute {
	int64_t minute; /* UTC seconds since 1970 / 60 */
	uint32_t workload, image;
	uint64_t block; /* offset / PROFDB_MINUTE_BLOCK */
	const uint64_t *count;
};

/* Why time has no samples, or twice as many; and what the kernel says of idle CPUs. */
enum profdb_note_kind {
	PROFDB_NOTE_START,   /* the daemon was started: none of it ran before that */
	PROFDB_NOTE_SUSPEND, /* the machine was suspended, up to then for n seconds */
	PROFDB_NOTE_CLOCK, /* the clock was set to that time, by n seconds ahead (below 0: back) */
	PROFDB_NOTE_IDLE,  /* since the note before, n ms of all CPUs' @of were idle */
	PROFDB_NR_NOTE_KINDS
};

struct profdb_note {
	int64_t utc; /* seconds since 1970, as the clock showed it */
	enum profdb_note_kind kind;
	int64_t n;
	uint64_t of; /* of PROFDB_NOTE_IDLE alone */
};

/* Further ones of a file are left out. */
enum { PROFDB_NR_NOTES = 1 << 18 };

struct profdb_workloads; /* opaque */

struct profdb_workloads *profdb_workloads_new(void); /* NULL: no memory */
void profdb_workloads_free(struct profdb_workloads *w);
/* Images, events and the header: as of call paths. */
int profdb_workloads_image_add(struct profdb_workloads *w, const struct profdb_image_ref *i);
size_t profdb_workloads_nr_images(const struct profdb_workloads *w);
const struct profdb_image_ref *profdb_workloads_image(const struct profdb_workloads *w,
						      size_t index);
int profdb_workloads_event_add(struct profdb_workloads *w, const char *name, uint64_t period);
size_t profdb_workloads_nr_events(const struct profdb_workloads *w);
const struct profdb_event *profdb_workloads_event(const struct profdb_workloads *w, size_t index);
const struct profdb_profile *profdb_workloads_header(const struct profdb_workloads *w);
/* The number of a workload, added where missing; all but processes tell it, which is added to what
 * it has. Or -ENOMEM, -DCPI_ELIMIT (more than PROFDB_NR_WORKLOADS). */
int profdb_workloads_workload_add(struct profdb_workloads *w, const struct profdb_workload *k);
size_t profdb_workloads_nr(const struct profdb_workloads *w);
const struct profdb_workload *profdb_workloads_workload(const struct profdb_workloads *w,
							size_t index);
/* @n samples of @event at @off of an image, in that minute. 0, -EINVAL, -ENOMEM, -DCPI_EOVERFLOW,
 * -DCPI_ELIMIT (nothing changed). */
int profdb_workloads_add(struct profdb_workloads *w, uint32_t workload, uint32_t image,
			 uint64_t off, size_t event, int64_t minute, uint64_t n);
/* Keeps a note. 0, -EINVAL (no such kind or time), -ENOMEM. */
int profdb_workloads_note(struct profdb_workloads *w, const struct profdb_note *n);
size_t profdb_workloads_nr_notes(const struct profdb_workloads *w);
/* Ascending by time; NULL beyond the last one. Valid until the next change. */
const struct profdb_note *profdb_workloads_note_at(const struct profdb_workloads *w, size_t index);
/* All of @from into @to. Same errors. Where @to would have more than PROFDB_NR_WORKLOADS, those for
 * which there is no room lose their pid; or the thread, too; or all but their counts. */
int profdb_workloads_merge(struct profdb_workloads *to, const struct profdb_workloads *from);
/* Ascending by image, off, workload; and by minute, image, block, workload. Valid until the next
 * change. */
size_t profdb_workloads_nr_counts(const struct profdb_workloads *w);
struct profdb_workload_count profdb_workloads_count(const struct profdb_workloads *w, size_t index);
size_t profdb_workloads_nr_minutes(const struct profdb_workloads *w);
struct profdb_workload_minute profdb_workloads_minute(const struct profdb_workloads *w,
						      size_t index);

/* As of call paths. */
int profdb_workloads_parse(const void *data, size_t len, struct profdb_workloads **out,
			   struct base_err *err);
int profdb_workloads_format(const struct profdb_workloads *w, struct base_buf *out,
			    struct base_err *err);
int profdb_workloads_load(struct profdb *db, const char *epoch, const char *platform,
			  struct profdb_workloads **out, struct base_err *err);
/* As load, in half the time and memory: counts alone. They have no minutes, nor has what they are
 * merged into, and neither can be written (-EINVAL). */
int profdb_workloads_load_counts(struct profdb *db, const char *epoch, const char *platform,
				 struct profdb_workloads **out, struct base_err *err);
/* As load_counts, but without counts: images, workloads, and the sums of events. */
int profdb_workloads_load_images(struct profdb *db, const char *epoch, const char *platform,
				 struct profdb_workloads **out, struct base_err *err);
int profdb_workloads_bytes(struct profdb *db, const char *epoch, const char *platform,
			   struct base_buf *out, struct base_err *err);

/* ---- profile files --------------------------------------------------------------------------- */

enum profdb_format { PROFDB_FORMAT_1, PROFDB_FORMAT_0_07, PROFDB_FORMAT_0_06 };

/* "1", "0.07", "0.06" (NULL: 1) as users say it. 0, or -DCPI_EUSAGE. */
int profdb_format_find(const char *name, enum profdb_format *out, struct base_err *err);

/*
 * Read any known version. Errors: -DCPI_EFORMAT, -DCPI_EVERSION, -DCPI_ECHECKSUM, -DCPI_ETRUNCATED,
 * -errno; never wrong counts silently. Does not block on FIFOs or devices. @shown: the file in
 * messages.
 */
int profdb_profile_read_at(int dir_fd, const char *name, const char *shown,
			   struct profdb_profile **out, struct base_err *err);
static inline int profdb_profile_read(const char *path, struct profdb_profile **out,
				      struct base_err *err)
{
	return profdb_profile_read_at(AT_FDCWD, path, path, out, err);
}

int profdb_profile_parse(const void *data, size_t len, struct profdb_profile **out,
			 struct base_err *err); /* the same from memory; fuzzed */
/* Into @out. Old formats hold one event (@event) and 32-bit counts: -DCPI_EOVERFLOW where one does
 * not fit. */
int profdb_profile_format(const struct profdb_profile *p, enum profdb_format format, size_t event,
			  struct base_buf *out, struct base_err *err);

/* ---- value profiles -------------------------------------------------------------------------- */

/*
 * Values that a profiler of values (lib/vtrace, dcpid -vprof) saw at instructions of one image: for
 * each offset, and for each pair of callers where callers were asked for, the most frequent values.
 * Values are secrets: their files belong to the daemon's user (docs/format/values.md). A list is a
 * concise and counting sample (Gibbons and Matias: "New sampling-based summary statistics for
 * improving approximate query answers", SIGMOD 1998) of all values that were added. A value enters
 * with probability 1 / thld; when more than PROFDB_NR_HOT values are in the list, thld grows and
 * the list is thinned to the counts that it would have had with the new thld.
 */
#define PROFDB_NR_HOT	   16
#define PROFDB_NR_HOTLISTS 65536 /* kept in one file */
#define PROFDB_PROFILER	   64	 /* bytes of a profiler's name, with its 0 */

/* Names that no other profiler has. */
#define PROFDB_VALUES	     "values"
#define PROFDB_VALUES_REPLAY "values.replay"
#define PROFDB_VALUES_ARG    "values.arg" /* and the argument's number, from 0 */

struct profdb_hot {
	uint64_t value;
	uint64_t concise;  /* times that it was chosen with probability 1 / thld; above 0 */
	uint64_t counting; /* times that it was seen since it came in for good */
};

/* From where it was called: @off in image number @image of the file (profdb_values_image). 0: not
 * known, or not asked for; @off is 0 then. */
struct profdb_context {
	uint32_t image;
	uint64_t off;
};

struct profdb_hotlist {
	uint64_t off;
	struct profdb_context context[2]; /* contexts of the procedure and of its caller */
	uint64_t vtot;			  /* values added */
	uint64_t thld;			  /* 1 / probability to come in */
	uint32_t nv;
	struct profdb_hot v[PROFDB_NR_HOT]; /* most frequent first, by counting */
};

/* About how often @l->v[i] was added, of @l->vtot: by its counting sample, or its concise one. */
double profdb_hot_count(const struct profdb_hotlist *l, size_t i, bool concise);

struct profdb_values; /* opaque: a header, images for contexts, hotlists */

/* @profiler: 1 to 63 bytes above 0x20. NULL: no memory, or no such name. */
struct profdb_values *profdb_values_new(enum profdb_kind kind, const struct base_id *image,
					const char *path, const char *profiler);
void profdb_values_free(struct profdb_values *v);
/* Where the coins that it throws begin: else nobody knows, but of values that were read, where it
 * hangs on what was. */
void profdb_values_seed(struct profdb_values *v, uint64_t seed);
/* Image, kind, paths and words of its header, which has no events. */
const struct profdb_profile *profdb_values_header(const struct profdb_values *v);
void profdb_values_set_image(struct profdb_values *v, const struct base_id *image);
const char *profdb_values_profiler(const struct profdb_values *v);

/* Its number for contexts, from 1. 0: there is no room, so it is not known. Or -ENOMEM. */
int profdb_values_image_add(struct profdb_values *v, const struct base_id *id, const char *path);
/* Number @index, from 1; its identity (length 0: none) into @id. NULL past the end. */
const char *profdb_values_image(const struct profdb_values *v, size_t index, struct base_id *id);

/* Value @value at @off. @context: NULL for none. 0, -ENOMEM, -EINVAL (an image that it has not),
 * -DCPI_EOVERFLOW (more than 64 bits of values). Where a list too many would be needed it is
 * counted as lost. */
int profdb_values_add(struct profdb_values *v, uint64_t off, const struct profdb_context context[2],
		      uint64_t value);
uint64_t profdb_values_lost(const struct profdb_values *v);
/* All of @from into @to, of the same profiler. Same errors, and -EINVAL: it is another profiler's.
 */
int profdb_values_merge(struct profdb_values *to, const struct profdb_values *from);
/* The same, at offsets that @moved gives; contexts stay. */
int profdb_values_move(struct profdb_values *to, const struct profdb_values *from,
		       uint64_t (*moved)(void *ctx, uint64_t off), void *ctx);
size_t profdb_values_nr(const struct profdb_values *v);
/* Ascending by offset, then contexts; valid until the next change. NULL past the end. */
const struct profdb_hotlist *profdb_values_at(const struct profdb_values *v, size_t index);

/* As profdb_profile_read, profdb_profile_parse (fuzzed), and profdb_profile_format. */
int profdb_values_read_at(int dir_fd, const char *name, const char *shown,
			  struct profdb_values **out, struct base_err *err);
static inline int profdb_values_read(const char *path, struct profdb_values **out,
				     struct base_err *err)
{
	return profdb_values_read_at(AT_FDCWD, path, path, out, err);
}

int profdb_values_parse(const void *data, size_t len, struct profdb_values **out,
			struct base_err *err);
int profdb_values_format(const struct profdb_values *v, struct base_buf *out, struct base_err *err);

/* ---- databases ------------------------------------------------------------------------------- */

struct profdb;

/* Is it the address of a fleet's store (lib/store), which DCPIDB may name for the tools? */
bool profdb_is_store(const char *path);
/* -DCPI_EUSAGE, with a hint, where @path is such an address. Else 0. */
int profdb_refuse_store(const char *path, struct base_err *err);
/* -DCPI_EUSAGE: it is the address of a store. @create: make the folder (an empty or missing one
 * becomes a database), else -DCPI_ENOTDB. */
int profdb_open(const char *path, bool create, struct profdb **out, struct base_err *err);
void profdb_close(struct profdb *db);
const char *profdb_path(const struct profdb *db);
int profdb_dir_fd(const struct profdb *db);
/* Its folder, or of those in it one that is open here, was removed: nothing can be written any
 * more. */
bool profdb_is_gone(const struct profdb *db);
/*
 * Where it is gone, go on with the folder that stands at its path now, empty or a database: locked
 * as before, without an open epoch. That folder itself is not made. 1: what was written into dyn/
 * and kernel/ is not, or may not be, there any more; 0: it is. Negative as of profdb_open (-ENOENT:
 * there is no folder) and profdb_lock: it is gone still.
 */
int profdb_reopen(struct profdb *db, struct base_err *err);
/* Descriptor of <db>/dyn or <db>/kernel; owned by @db. Made when the database was opened with
 * create. */
int profdb_dyn_fd(struct profdb *db);
int profdb_kernel_fd(struct profdb *db);
int profdb_costs_fd(struct profdb *db); /* descriptor of <db>/costs, if there is one */
/*
 * Descriptor of <db>/index, which holds data that can be made again (docs/format/index.md); the
 * folder is made if that is allowed.
 */
int profdb_index_fd(struct profdb *db);

/* Names, ascending, NULL-terminated, one allocation: free(). */
char **profdb_epochs(struct profdb *db, struct base_err *err);
char **profdb_platforms(struct profdb *db, const char *epoch, struct base_err *err);
/*
 * "NAME", "latest", "all", "FROM..TO" (each end a name, the first digits of one, or nothing), or
 * NULL (the newest): the list of epochs meant, as above. The newest has a platform, if any has: an
 * empty folder is nobody's epoch yet. -ENOENT with the existing ones named in the hint, -EINVAL
 * for no range.
 */
int profdb_epoch_select(struct profdb *db, const char *spec, char ***out, struct base_err *err);
/* UTC seconds at which the epoch began, as its name says. */
int64_t profdb_epoch_begin_time(const char *epoch);
/*
 * The time that its samples may be of, [*@begin, *@end): from its name to its last flush, or the
 * other way round where the clock was set back behind its name.
 */
void profdb_epoch_span(struct profdb *db, const char *epoch, int64_t *begin, int64_t *end);
/* Keeps of @epochs, a list as above, those whose span has a part of [since, until). Returns their
 * number. */
size_t profdb_epochs_within(struct profdb *db, char **epochs, int64_t since, int64_t until);
/* The epochs and platforms that became a part of it when it was joined: "EPOCH/PLATFORM", as a list
 * as above. NULL: no memory, or a list that cannot be read. */
char **profdb_epoch_parts(struct profdb *db, const char *epoch, struct base_err *err);
/* A daemon still writes it (or died without closing it). */
bool profdb_epoch_open(struct profdb *db, const char *epoch, const char *platform);
/* Samples that its daemon received and could not write (profdb_epoch_lose); 0 also where nothing
 * tells. */
uint64_t profdb_epoch_lost(struct profdb *db, const char *epoch, const char *platform);
/* Note in the current epoch that @nr more are lost. That needs no room on the disk. 0 or -errno. */
int profdb_epoch_lose(struct profdb *db, uint64_t nr);
/* The record of its last flush is damaged, as @why says: whoever goes on there sets it aside. */
bool profdb_epoch_damaged(struct profdb *db, const char *epoch, const char *platform,
			  struct base_err *why);
/* When the last flush into it was committed, or (none yet) it began: as stat has it, ns. 0: it is
 * not there. */
uint64_t profdb_epoch_written(struct profdb *db, const char *epoch, const char *platform);

/*
 * Visit every profile of (epoch, platform), in file name order, as of one flush: never half of one,
 * whatever the daemon does meanwhile. @fn owns the profile. A file that cannot be read goes
 * to @bad (may be NULL) with its error and the walk goes on. Returns the first negative of @fn, or
 * 0; -EAGAIN where flushes came faster than the files could be read.
 */
int profdb_walk(struct profdb *db, const char *epoch, const char *platform,
		int (*fn)(void *ctx, const char *file, struct profdb_profile *p),
		void (*bad)(void *ctx, const char *file, const struct base_err *err), void *ctx,
		struct base_err *err);

/*
 * The same of value profiles, which profdb_walk passes by: those of @profiler, or (NULL) all. @fn
 * owns them. Who may not read one is told so (@bad: -EACCES, with a hint).
 */
int profdb_walk_values(struct profdb *db, const char *epoch, const char *platform,
		       const char *profiler,
		       int (*fn)(void *ctx, const char *file, struct profdb_values *v),
		       void (*bad)(void *ctx, const char *file, const struct base_err *err),
		       void *ctx, struct base_err *err);

/* The same of the files of profiles, or of @values of any profiler: their bytes, and a profile or
 * the values' header; @fn owns nothing. */
int profdb_walk_files(struct profdb *db, const char *epoch, const char *platform, bool values,
		      int (*fn)(void *ctx, const char *file, const struct base_buf *bytes,
				const struct profdb_profile *header),
		      void (*bad)(void *ctx, const char *file, const struct base_err *err),
		      void *ctx, struct base_err *err);

/* ---- indexes of finished epochs (sums.c) ----------------------------------------------------- */

/*
 * The sum of one profile: its header without epoch and events, as in files of version 1 (equal
 * headers are equal bytes); its events and their sums.
 */
struct profdb_sum {
	const uint8_t *header;
	size_t header_len, nr_events;
	struct profdb_event events[PROFDB_NR_EVENTS];
};

/* Zero-initialize; what is to become an index. */
struct profdb_sums {
	struct base_buf events, entries;
	uint32_t nr;
	struct timespec as_of; /* the time of the profiles' folder */
};

/*
 * Visit the sums of all profiles of a finished epoch, if they are indexed: -ENOENT (nobody was
 * visited), the first negative of @fn, -errno, or 0.
 */
int profdb_sums_walk(struct profdb *db, const char *epoch, const char *platform,
		     int (*fn)(void *ctx, const struct profdb_sum *s), void *ctx);
/* The same of a file's bytes: also -DCPI_EVERSION, -DCPI_ECHECKSUM, -DCPI_EFORMAT; fuzzed. */
int profdb_sums_parse(const void *data, size_t len,
		      int (*fn)(void *ctx, const struct profdb_sum *s), void *ctx);
/* A profile without counts whose events have those sums, so that it can be merged. 0 or negative.
 */
int profdb_sum_profile(const struct profdb_sum *s, struct profdb_profile **out);
/* Samples of which nobody says where: into the event's sum alone. As profdb_profile_add, and
 * -DCPI_ELIMIT, -EINVAL. */
int profdb_profile_add_sum(struct profdb_profile *p, const struct profdb_event *from);
/* Before the profiles are read: for who owns the folder, of a finished epoch; else -EPERM. 0 or
 * -errno. */
int profdb_sums_begin(struct profdb *db, const char *epoch, const char *platform,
		      struct profdb_sums *s);
/* One more profile, whose word "epoch" is lost by it. 0 or negative. */
int profdb_sums_add(struct profdb_sums *s, struct profdb_profile *p);
static inline void profdb_sums_release(struct profdb_sums *s)
{
	base_buf_release(&s->events);
	base_buf_release(&s->entries);
	s->nr = 0;
}

/* Keep them beside the profiles. As profdb_sums_begin, and -EAGAIN: the folder has changed since
 * that, or just now. */
int profdb_sums_write(struct profdb *db, const char *epoch, const char *platform,
		      const struct profdb_sums *s);

/*
 * Read all profiles and keep their sums, as above; at once where they are kept already. Also
 * -DCPI_EFORMAT: a profile cannot be read, -DCPI_ELIMIT: there are more than @max.
 */
int profdb_sums_make(struct profdb *db, const char *epoch, const char *platform, size_t max);

/*
 * The platform that <db>/hosts says @host belongs to: 1; else @host itself, made fit to be a name:
 * 0. -errno, -DCPI_EFORMAT with the line. The syntax: dcpihosts(5).
 */
int profdb_platform_of(struct profdb *db, const char *host, char platform[PROFDB_PLATFORM_MAX + 1],
		       struct base_err *err);
/* The same from memory (@len bytes): 1 found, 0 not listed; fuzzed. */
int profdb_hosts_find(const char *text, size_t len, const char *host,
		      char platform[PROFDB_PLATFORM_MAX + 1], struct base_err *err);

/* ---- housekeeping (keep.c, expire.c, join.c) ------------------------------------------------- */

/*
 * Be the only one that removes or joins epochs, until profdb_close; not in a handle that has locked
 * a platform. What somebody before us left half-way is completed. The functions below that change
 * something call it. -DCPI_EBUSY: somebody else is at it, or took it from us: who is at it for long
 * calls profdb_lock_heartbeat.
 */
int profdb_keep(struct profdb *db, struct base_err *err);
/*
 * The same for who only removes epochs, which is what makes room on a full disk: there 0 without
 * it, for nobody else can begin either. An epoch loses its name before its removal frees anything,
 * so who can begin then finds it gone; each further removal tries again.
 */
int profdb_keep_removing(struct profdb *db, struct base_err *err);
/*
 * Remove the epochs that are more than a week old, began so and written so long ago, but for the
 * three newest and those that a daemon has open (as the original's dcpid -gc); @removed is told of
 * each.
 * @dry_run: tell only. How many, or negative.
 */
int profdb_epochs_expire(struct profdb *db, int64_t now, bool dry_run,
			 void (*removed)(void *ctx, const char *epoch), void *ctx,
			 struct base_err *err);

/*
 * Remove entries of <db>/index made more than a week before @now; a tool that needs one makes it
 * again. Returns the number of files, or -errno.
 */
int profdb_index_expire(struct profdb *db, int64_t now);
/*
 * Remove any of its files until they had @excess bytes together, in blocks of 4 KiB. Returns how
 * many bytes they had; @dry_run: the files stay.
 */
uint64_t profdb_index_shrink(struct profdb *db, uint64_t excess, bool dry_run);

/* This one, however old it is. 0, -DCPI_EBUSY (a daemon is in it), or -errno. */
int profdb_epoch_remove(struct profdb *db, const char *epoch, struct base_err *err);
/* No daemon has it open, nor left it open when it was killed. */
bool profdb_epoch_finished(struct profdb *db, const char *epoch);

/* How long an epoch becomes. UTC; a week begins on Monday. */
enum profdb_span { PROFDB_DAY, PROFDB_WEEK, PROFDB_MONTH };
/* "day", "week", "month". 0 or -DCPI_EUSAGE. */
int profdb_span_find(const char *name, enum profdb_span *out, struct base_err *err);

struct profdb_join {
	enum profdb_span span;
	int64_t before; /* UTC: epochs that began, and were written last, before it */
	bool dry_run;	/* tell only */
	/* Epochs @first to @last, @nr of them, are one now, named @first. */
	void (*joined)(void *ctx, const char *first, const char *last, size_t nr);
	/*
	 * Called for a span whose epochs stay as they are, since one of their profiles cannot be
	 * read.
	 */
	void (*kept)(void *ctx, const struct base_err *why);
	void *ctx;
};

/*
 * Finished epochs of one span become one: a profile for each platform, image, and whatever else its
 * lines say (those of its time and CPU apart), with the sums of all, in version 1. Readers see them
 * before, or the one after. Killed at any moment nothing is lost or counted twice. How many were
 * made, or negative.
 */
int profdb_epochs_join(struct profdb *db, const struct profdb_join *how, struct base_err *err);
/* Since profdb_epochs was called epochs were joined: who read several of them begins anew. */
bool profdb_epochs_changed(struct profdb *db);

/* ---- writing --------------------------------------------------------------------------------- */

/*
 * Own the platform until profdb_close: -DCPI_EBUSY names the live owner (host, pid) in @err. Where
 * the last owner was another machine and did not give it back, this watches for 45 s whether it
 * lives.
 */
int profdb_lock(struct profdb *db, const char *platform, struct base_err *err);
/*
 * Likewise of a platform that several machines may sample at the same time. Each is a member with a
 * folder and a lock of its own: PLATFORM, PLATFORM+2, PLATFORM+3. The first one that is free goes
 * into @platform. -DCPI_EBUSY: a daemon of this very host has one, or all are taken.
 */
int profdb_lock_member(struct profdb *db, char platform[PROFDB_PLATFORM_MAX + 1],
		       struct base_err *err);
/* Whether @name is @platform, or a further member of it. */
bool profdb_platform_has(const char *platform, const char *name);
/* Have @watching called before such a watch, of profdb_keep too, with a sentence for people: which
 * lock, who owns it by what its file says, and how long it takes at most. And by profdb_keep where
 * what somebody before us left is another user's: what cannot be removed, and why. It must not use
 * @db. */
typedef void profdb_watching_fn(void *ctx, const char *text);
void profdb_set_watching(struct profdb *db, profdb_watching_fn *watching, void *ctx);
/* To be called every few seconds: other machines see that we live. Mostly costs nothing. */
void profdb_lock_heartbeat(struct profdb *db);
/* Have @alive called within flushes too, for each profile at least, so that who waits for a sign of
 * us need not wait for the end of one of very many. It must not use @db. */
void profdb_set_alive(struct profdb *db, void (*alive)(void *ctx), void *ctx);
/* Whether another process holds it; true also if that cannot be told. */
bool profdb_lock_held(struct profdb *db, const char *platform);
/*
 * Lock <db>/dyn, for a process that has the database open: shared while pseudo-images are written,
 * exclusive while unreferenced ones are removed. Waits up to @timeout_ms. Returns a descriptor,
 * whose close releases the lock, or -DCPI_EBUSY, -errno.
 */
int profdb_dyn_lock(struct profdb *db, bool exclusive, unsigned int timeout_ms,
		    struct base_err *err);
/*
 * Start an epoch for the locked platform at @now (UTC seconds): the name's minute, or where that
 * epoch exists already for this platform its second (the next free one: two in a second are rare).
 * The one before is closed; it goes on where this fails. Name into @epoch.
 */
int profdb_epoch_start(struct profdb *db, int64_t now, char epoch[PROFDB_EPOCH_LEN + 1],
		       struct base_err *err);
/*
 * Epochs do not overlap, so the machines that write one database turn them together. follow: start
 * the one that another platform began after ours, the newest (1); while we have none, one that
 * another platform has open and wrote into within a day. Else 0, and nothing has changed. turn: an
 * epoch at @now that all others will follow, so newer than every other: the minute's, else the
 * second's; behind one that lies ahead, where a clock was set back. Names that are more than a day
 * ahead of @now are ignored.
 */
int profdb_epoch_follow(struct profdb *db, int64_t now, char epoch[PROFDB_EPOCH_LEN + 1],
			struct base_err *err);
int profdb_epoch_turn(struct profdb *db, int64_t now, char epoch[PROFDB_EPOCH_LEN + 1],
		      struct base_err *err);
/* Go on in the epoch that a daemon before us left open (0), or -ENOENT. Finishes or undoes a half
 * flush. */
int profdb_epoch_resume(struct profdb *db, char epoch[PROFDB_EPOCH_LEN + 1], struct base_err *err);
/* Mark the current epoch finished (also at quit). */
int profdb_epoch_finish(struct profdb *db, struct base_err *err);

/*
 * One flush: begin, put each changed profile (merged with what is on disk under the same image, in
 * a new version beside it), commit makes all of them visible at once. Crash before commit: nothing
 * has changed; after: all of it. Put reads and merges; the given profile is not changed.
 * @stem: the image's base name or the like, cleaned by the callee; the identity makes it
 * unique. For PROFDB_DYNAMIC, @stem is the pseudo-image's file name and identifies the profile, so
 * that a grown image keeps one profile.
 *
 * put returns 1 where the file on disk is damaged, or has no room for more events or a longer
 * header: it stays as it is, @err says what is wrong, and the samples go into a second file beside
 * it. After a put that failed, the others may still be
 * committed; a commit that failed has changed nothing, and the flush must be aborted.
 *
 * profdb_set_format: what is put from here on is written in that version (at first 1). In an old
 * form each event has a file of its own. What that cannot hold (32 bits) goes into a file of
 * version 1 beside it: put returns 1 once, and @err says so.
 */
void profdb_set_format(struct profdb *db, enum profdb_format format);
/* Facts about this machine for the headers of profiles put from here on; 0: none. */
void profdb_set_machine(struct profdb *db, uint64_t cpu_mhz, uint64_t nr_cpus);
int profdb_flush_begin(struct profdb *db, struct base_err *err);
int profdb_flush_put(struct profdb *db, const char *stem, const struct profdb_profile *p,
		     struct base_err *err);
/*
 * A value profile, as profdb_flush_put. @uid: whose code ran alone since the last flush, who may
 * read it while no other's is in it; UINT32_MAX: nobody's. Always of version 1.
 */
int profdb_flush_put_values(struct profdb *db, const char *stem, const struct profdb_values *v,
			    uint32_t uid, struct base_err *err);
/* Call paths, merged with those on disk; put returns 1 where these are damaged: they are moved
 * aside, and @err says so. -DCPI_ELIMIT, -DCPI_EOVERFLOW: there is no room for them. */
int profdb_flush_put_callpaths(struct profdb *db, const struct profdb_callpaths *c,
			       struct base_err *err);
int profdb_flush_put_workloads(struct profdb *db, const struct profdb_workloads *w,
			       struct base_err *err);
/*
 * Within a flush, of the open epoch: the profile of pseudo-image @stem as it is stored so far
 * (-ENOENT; -DCPI_EFORMAT: damaged), and its end once the flush is committed, for who put its
 * samples elsewhere (-EINVAL: there is none, or it was put in this flush).
 */
int profdb_flush_read(struct profdb *db, const char *stem, struct profdb_profile **out,
		      struct base_err *err);
int profdb_flush_remove(struct profdb *db, const char *stem, struct base_err *err);
/*
 * The same of all value profiles of pseudo-image @stem, in one step: they become part of those of
 * another one, at the offsets that it gives them. What cannot be read stays where it is. To be
 * called after the other one's own values were put.
 */
struct profdb_moved {
	const char *stem;
	const struct base_id *image;
	const char *path;
	uint64_t (*off)(void *ctx, uint64_t off);
	void *ctx;
};
int profdb_flush_move_values(struct profdb *db, const char *stem, const struct profdb_moved *to,
			     struct base_err *err);
int profdb_flush_commit(struct profdb *db, struct base_err *err);
void profdb_flush_abort(struct profdb *db);

/* ---- parts that travel (import.c) ------------------------------------------------------------ */

/* The files of a database that mean something in another one, by their paths in it. */
enum profdb_part {
	PROFDB_PART_PROFILE,   /* EPOCH/PLATFORM/NAME */
	PROFDB_PART_DYN,       /* dyn/NAME.dyn */
	PROFDB_PART_KERNEL,    /* kernel/NAME */
	PROFDB_PART_COSTS,     /* costs/NAME */
	PROFDB_PART_IMAGE,     /* images/.build-id/xx/NAME: copies of programs and libraries */
	PROFDB_PART_VALUES,    /* as profiles; extracted they are their owner's alone */
	PROFDB_PART_CALLPATHS, /* as profiles */
	PROFDB_PART_WORKLOADS, /* as profiles */
};
#define PROFDB_NR_PARTS 8
#define PROFDB_IMAGES	"images" /* the folder of copies */

struct profdb_place {
	enum profdb_part part;
	char epoch[PROFDB_EPOCH_LEN + 1]; /* epoch of a profile or of values */
	char platform[PROFDB_PLATFORM_MAX + 1];
	char folder[32]; /* folder of all other files, with a slash at its end */
	char name[256];
};

/* 0, or -EINVAL: no such part. Paths that it takes lead nowhere out of a database. */
int profdb_place_parse(const char *path, struct profdb_place *out);
/* Into @path, of a copy of the image @id. */
void profdb_image_path(const struct base_id *id, char path[128]);

/*
 * Files from elsewhere into @db. Whole (epoch, platform)s come, with their last step at once,
 * behind all that they refer to. begin: -EEXIST where the database has one of the profiles' epochs
 * and platforms already, be it as a part of a joined one, as its samples would count twice; named
 * in @err, with a hint.
 */
struct profdb_import;
int profdb_import_begin(struct profdb *db, const char *const *paths, size_t nr,
			struct profdb_import **out, struct base_err *err);
/*
 * 0: write into @f and commit it. 1: nothing is to be written, as the database has it: equal
 * (@sum: SHA-256 of the contents), or, all but a pseudo-image, one of that name and so of that
 * image. A pseudo-image whose name another one has gets one of its own.
 */
int profdb_import_file(struct profdb_import *i, const char *path, const uint8_t sum[32],
		       mode_t mode, struct base_file *f, struct base_err *err);
/* The profiles appear. On failure none has. */
int profdb_import_commit(struct profdb_import *i, struct base_err *err);
void profdb_import_end(struct profdb_import *i); /* undoes what was not committed */

/* ---- costs of blocks (costs.c) --------------------------------------------------------------- */

/*
 * The cost of one execution of a block, measured once by samples of a run whose executions were
 * counted: <db>/costs/<build-id>.<event>, docs/format/costs.md. Blocks are [off, off + len) by
 * img_off, ascending, and do not overlap.
 */
struct profdb_cost {
	uint64_t off, len;   /* bytes, above 0 */
	uint64_t samples;    /* that were seen in it */
	uint64_t units;	     /* units of the event: the sum of these samples' periods */
	uint64_t executions; /* above 0 */
};

struct profdb_costs {
	struct base_id image;
	char *path; /* path of the image, to show; allocated */
	char event[PROFDB_EVENT_NAME];
	struct profdb_cost *v;
	size_t nr, cap;
};

void profdb_costs_release(struct profdb_costs *c);
/* Added to the same block; other blocks that it overlaps make room, for code is cut into blocks
 * anew when more is known of it. 0, -EINVAL (no block), -DCPI_EOVERFLOW, -ENOMEM. */
int profdb_costs_add(struct profdb_costs *c, const struct profdb_cost *block);
/* This very block, or NULL. */
const struct profdb_cost *profdb_costs_at(const struct profdb_costs *c, uint64_t off, uint64_t len);
/* -ENOENT (without @err): none are kept. -DCPI_EFORMAT, -DCPI_EVERSION, -DCPI_ECHECKSUM, -errno. */
int profdb_costs_read(struct profdb *db, const struct base_id *image, const char *event,
		      struct profdb_costs *out, struct base_err *err);
/* Which image file @name of <db>/costs is about: -EINVAL where it is none of these files. */
int profdb_costs_file_id(const char *name, struct base_id *id);
/* Names of the files in <db>/costs that are about this image, as profdb_epochs; NULL: no memory. */
char **profdb_costs_files(struct profdb *db, const struct base_id *image);
/* Add to what is kept of the same image and event. Of two that do so at once one is lost. */
int profdb_costs_keep(struct profdb *db, const struct profdb_costs *more, struct base_err *err);
/* The file's text (parsing is fuzzed). */
int profdb_costs_parse(const void *data, size_t len, struct profdb_costs *out,
		       struct base_err *err);
int profdb_costs_format(const struct profdb_costs *c, struct base_buf *out);

#endif
