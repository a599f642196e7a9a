/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples of the chosen epochs and platforms, by image. Every number is a 64-bit count; every
 * table keeps the total that it was made from, so that sums can be checked.
 */
#ifndef DCPI_SAMPLES_H
#define DCPI_SAMPLES_H

#include "base.h"
#include "image.h"
#include "profdb.h"

struct paths;

/* ---- the chosen samples (gather.c) ----------------------------------------------------------- */

#define ANALYSIS_NR_EVENTS PROFDB_NR_EVENTS /* number of events in all profiles together */

struct analysis_selection {
	const char *db;
	const char *shown;    /* the database as the user named it, where it is a copy; or NULL */
	const char *epoch;    /* as profdb_epoch_select; NULL: the newest */
	const char *platform; /* NULL: all */
	const char *event;    /* NULL: all */
	const char *const *labels; /* only samples with one of these labels; none: all */
	size_t nr_labels;
	bool apart;    /* profiles that dcpid -bypid separated by process stay separate */
	bool by_label; /* profiles of different labels stay separate */
	bool sums;     /* the caller needs sums of images only: profiles may lack their counts */
	const char *const *files; /* files that may be images at other paths than recorded */
	size_t nr_files;
	const char *const *maps; /* maps by dcpiscan, for the same purpose */
	size_t nr_maps;
	bool timed; /* only epochs with a part of [since, until); of all, if @epoch is NULL */
	bool whole; /* the caller's output has no minutes: an epoch is to share one at least */
	int64_t since, until;
};

struct analysis_event {
	char name[PROFDB_EVENT_NAME];
	uint64_t period;
	bool mixed; /* profiles have different periods */
	uint64_t sum;
	double whole; /* estimate of the sum if each profile's event had been counted all the time
		       */
};

struct analysis_epoch {
	char *name;
	bool open;	 /* still being written: its last flush is shown */
	uint64_t lost;	 /* samples that its daemons could not write before they ended */
	bool inside;	 /* no window is chosen, or all of it is in that, as it was opened */
	bool unrecorded; /* a platform of it keeps no workloads, as was seen when they were read */
	bool whole;	 /* it counts as a whole: it, or what is shown, has no minutes */
};

/* The state of an image, which explains missing procedures. */
enum analysis_state {
	ANALYSIS_UNOPENED,
	ANALYSIS_OPEN,	     /* the image was found and opened */
	ANALYSIS_MISSING,    /* no file was found */
	ANALYSIS_CHANGED,    /* the file has another build-id */
	ANALYSIS_UNREADABLE, /* permission is missing, or the file system does not answer */
	ANALYSIS_DAMAGED,    /* not an ELF file, or a truncated one */
};

/* An image and all its chosen samples. */
struct analysis_image {
	enum profdb_kind kind;
	struct profdb_profile *profile; /* all epochs and platforms together */
	char *name; /* name to show; of an opened pseudo-image "facility[pid]", or "dynamic code of
		       uid 1000, not readable" */
	char *facility;	     /* facility of an opened or unreadable pseudo-image, or NULL */
	size_t nr_processes; /* number of processes whose code it holds; 0: not known */
	uint64_t *count;     /* indexed by event */
	size_t event_of[PROFDB_NR_EVENTS]; /* indexed by event of the profile: index in analysis, or
					      SIZE_MAX */
	enum analysis_state state;
	struct base_err why; /* the reason, unless state is one of the first two */
	bool guessed;	     /* image_guessed is true of the opened image */
	bool stripped;	     /* so is image_stripped */
	bool asked;	     /* the user named it, or a procedure of it */
	/* A file with the same build-id and other code, or code that could not be read; or NULL. */
	const struct analysis_image *twin;
	struct paths *paths; /* its instruction traces, made at the first request */
	bool paths_made;
};

/* A profile file that could not be read; its samples are missing from every sum. */
struct analysis_bad {
	char *file;
	struct base_err err;
};

/* The labels that were chosen, and those that the database has. */
struct analysis_labels {
	const char *const *v; /* the caller's; none: profiles of all labels are read */
	size_t nr;
	bool *seen;		/* indexed by chosen label: a profile has it */
	struct base_buf others; /* labels of profiles that were not chosen: " NAME NAME …" */
};

/* One option by which the caller has restricted the samples to workloads or times: "comm" and its
 * values. */
struct analysis_kept {
	const char *name;
	const char *const *v;
	size_t nr;
};

/* The places where images are searched. */
struct analysis_sources {
	const char *const *files; /* the caller's */
	size_t nr_files;
	struct image_map map; /* all maps together */
	struct image_store *store;
};

/*
 * The window of time that the caller has chosen. An epoch that is in it only in part is restricted
 * to its minutes (lib/analysis/workload, window.c), or taken as a whole if it keeps none.
 */
struct analysis_window {
	bool chosen;
	int64_t since, until; /* UTC seconds; INT64_MIN, INT64_MAX: open */
	bool cut;	      /* epochs were restricted to minutes */
};

struct analysis {
	bool apart, by_label, sums; /* as in the selection */
	struct analysis_labels labels;
	struct analysis_sources sources;
	struct profdb *db;
	const char *shown; /* as in the selection */
	struct analysis_epoch *epochs;
	size_t nr_epochs, cap_epochs;
	char **platforms;
	size_t nr_platforms, cap_platforms;
	struct analysis_event *events;
	size_t nr_events, cap_events;
	struct analysis_image **images;
	size_t nr_images, cap_images;
	struct base_map by_identity; /* images, for gather.c */
	struct base_map by_header;   /* while indexes are read: struct known_header of gather.c */
	struct analysis_bad *bad;
	size_t nr_bad, cap_bad;
	/* Procedures that the samples were called from, where the caller has restricted them so,
	 * and on how many call paths that rests. */
	const char *const *callers;
	size_t nr_callers;
	uint64_t caller_paths[ANALYSIS_NR_EVENTS];
	/* The same of workloads: the options, and by event the samples before that. */
	struct analysis_kept *kept;
	size_t nr_kept;
	uint64_t kept_of[ANALYSIS_NR_EVENTS];
	/* Whose call paths are chosen (owners.c); all of them, where @by_owner is false. */
	struct base_map owners;
	bool by_owner;
	bool asked;	    /* some of the images were named */
	bool moves_dropped; /* profiles had moves of traces: no workload, no minute has them */
	struct analysis_window window;
	/* Sentences for heads of reports, each behind a 0: what restricting could not tell. */
	struct base_buf remarks;
};

/*
 * Reads every selected profile into *@out, released with analysis_close. Errors, with @err: those
 * of profdb (no database, unknown epoch), -ENOENT for an unknown platform or event, with the
 * existing ones in the hint. A profile file that cannot be read is recorded in @bad, and the others
 * are read.
 */
int analysis_open(const struct analysis_selection *sel, struct analysis **out,
		  struct base_err *err);
/*
 * The same without samples, for those of a running daemon, whose events analysis_event_add adds and
 * whose images analysis_image_of. @db (may be NULL) need not be readable: pseudo-images and kernels
 * are not found then. @files: as in the selection.
 */
int analysis_open_empty(const char *db, const char *const *files, size_t nr_files,
			struct analysis **out, struct base_err *err);
/* 0, -ENOMEM, -DCPI_ELIMIT. */
int analysis_event_add(struct analysis *a, const struct profdb_event *event);
void analysis_close(struct analysis *a);
/* The database, as it is shown. */
const char *analysis_database(const struct analysis *a);
/* Are these the samples of some labels, workloads or minutes alone? Values are not kept for such a
 * part. */
static inline bool analysis_is_part(const struct analysis *a)
{
	return a->labels.nr || a->nr_kept || a->window.cut;
}

/* The remark behind @last; NULL @last: the first. NULL: there is none. */
const char *analysis_remark_next(const struct analysis *a, const char *last);
/* Sums again, after the profiles of images were changed. 0, -ENOMEM, -DCPI_EOVERFLOW. */
int analysis_sum(struct analysis *a);
/* Adds the profiles of a chosen epoch and platform once more, after those of images were cleared;
 * without moves of traces, if those were dropped. analysis_sum is to follow. 0 or negative with
 * @err. */
int analysis_add_again(struct analysis *a, const char *epoch, const char *platform,
		       struct base_err *err);
/* Adds a platform that exists to @seen, once, for the hint of analysis_no_platform. 0 or
 * -ENOMEM. */
int analysis_platform_seen(struct base_buf *seen, const char *name);
/* Reports that no chosen epoch has platform @name, with @seen in the hint. Returns -ENOENT. */
int analysis_no_platform(const char *name, const struct base_buf *seen, struct base_err *err);
/* Returns the index of an event by name, or -ENOENT with the existing ones in the hint. */
int analysis_event_find(const struct analysis *a, const char *name, struct base_err *err);
/* The index of the event to sort by if the user names none: cycles, else a clock, else the
 * first. */
size_t analysis_event_default(const struct analysis *a);

/* ---- images (images.c) ----------------------------------------------------------------------- */

/* Returns @event of the image's merged profile, or NULL if it has none. */
const struct profdb_event *analysis_image_event(const struct analysis_image *ai, size_t event);
/*
 * Returns the units of @event (cycles, nanoseconds, …) that one sample in @ai stands for, including
 * the time in which other events were counted in turn (dcpid -slot): the mean over its profiles,
 * whose periods may differ. Without @event in @ai, the value of another image is used. 1: not
 * known.
 */
double analysis_sample_units(const struct analysis *a, const struct analysis_image *ai,
			     size_t event);
/* Opens the image into *@out, which the caller closes, and sets its state. Negative with @err
 * where it cannot be opened; -ENOENT for named buckets. */
int analysis_image_open(struct analysis *a, struct analysis_image *ai, struct image **out,
			struct base_err *err);
/* Whether a file of that identity still has code with the hash @text (a profile's word). */
bool analysis_image_has_text(struct analysis *a, const struct analysis_image *ai, const char *text);
/* The text in place of procedure names where there are none: "(no symbol)", "(image missing)",
 * …; for a bucket its name. */
const char *analysis_image_label(const struct analysis_image *ai);
/*
 * Returns the instruction traces of the image in *@out, which @ai owns; they are made at the first
 * request. NULL: the profile has none, or none that fits the code. @img is the opened image. 0 or
 * -ENOMEM.
 */
int analysis_image_paths(struct analysis_image *ai, struct image *img, const struct paths **out,
			 struct base_err *err);
/* Does @what name the image? It may be a path (also relative, or through links), a base name, a
 * shown name, a facility, or a prefix of the build-id (at least 4 digits). */
bool analysis_image_match(struct analysis *a, struct analysis_image *ai, const char *what);
/*
 * Finds the image of a file that the user names: the one with samples of that identity, or a new
 * one without samples, which @a owns. Errors: those of image_identify, -ENOMEM.
 */
int analysis_image_add(struct analysis *a, const char *path, struct analysis_image **out,
		       struct base_err *err);
/*
 * Finds the image of a profile with this head, or adds one without samples, which @a owns. @path:
 * of a pseudo-image its file's name. 0 or -ENOMEM. Not where processes or labels are kept apart.
 */
int analysis_image_of(struct analysis *a, enum profdb_kind kind, const struct base_id *id,
		      const char *path, struct analysis_image **out);
/* Reports that no image is named @what, with the nearest names in the hint. Returns
 * -DCPI_ENOIMAGE. */
int analysis_image_unknown(struct analysis *a, const char *what, struct base_err *err);

/* ---- what is wrong with it (remark.c) -------------------------------------------------------- */

/* The user named @ai, or a procedure of it: what is not known of others, unless they are named too,
 * is none of the report. An image that could not be opened may have more of what was asked for. */
void analysis_image_ask(struct analysis *a, struct analysis_image *ai);
/* All are, where none was named. */
bool analysis_image_is_asked(const struct analysis *a, const struct analysis_image *ai);
/* It could not be opened. */
bool analysis_image_is_lost(const struct analysis_image *ai);
/*
 * Says in @out what is wrong with the image, or not known of it, with a hint of what helps: it is
 * lost, nothing has named its code, or it has no symbols, while it has a hundredth of the samples,
 * or its procedures are guessed, or another file has its build-id. False: nothing.
 */
bool analysis_image_remark(const struct analysis *a, const struct analysis_image *ai,
			   struct base_err *out);

/* ---- whose call paths are chosen (owners.c) -------------------------------------------------- */

/* Those of processes that are equal to @k but for pid and thread are, from now on these alone. 0 or
 * -ENOMEM. */
int analysis_owner_choose(struct analysis *a, const struct profdb_workload *k);
/* Are those of @k chosen? 1, 0 or -ENOMEM. */
int analysis_owner_chosen(const struct analysis *a, const struct profdb_workload *k);

/* ---- entries of a profile -------------------------------------------------------------------- */

/* Does the entry of @ai's profile have samples of a chosen event? */
bool analysis_entry_wanted(const struct analysis_image *ai, const struct profdb_entry *e);
/* Adds the entry's chosen samples to @count, by event, and to @total (may be NULL). */
void analysis_entry_add(const struct analysis_image *ai, const struct profdb_entry *e,
			uint64_t *count, uint64_t *total);

/* Records a profile file that cannot be read in @a->bad. */
void analysis_note_bad(struct analysis *a, const char *epoch, const char *platform,
		       const char *file, const struct base_err *err);

#endif
