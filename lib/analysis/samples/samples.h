/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples of the chosen epochs and platforms by image. Every number is a 64-bit count; every
 * table keeps the total that it was made from, so that sums can be checked.
 */
#ifndef DCPI_SAMPLES_H
#define DCPI_SAMPLES_H

#include "base.h"
#include "image.h"
#include "profdb.h"

struct paths;

/* ---- the chosen samples (gather.c) --------------------------------------------------------- */

#define ANALYSIS_NR_EVENTS PROFDB_NR_EVENTS /* in all profiles together */

struct analysis_selection {
	const char *db;
	const char *epoch;	   /* as profdb_epoch_select; NULL: the newest */
	const char *platform;	   /* NULL: all */
	const char *event;	   /* NULL: all */
	const char *const *labels; /* samples that have one of these; none: all */
	size_t nr_labels;
	bool apart;		  /* profiles that dcpid -bypid kept apart by process stay so */
	bool sums;		  /* sums of images suffice: profiles may lack their counts */
	const char *const *files; /* where images may be that are not at their own place */
	size_t nr_files;
	const char *const *maps; /* dcpiscan's, likewise */
	size_t nr_maps;
};

struct analysis_event {
	char name[PROFDB_EVENT_NAME];
	uint64_t period;
	bool mixed; /* profiles disagree on the period */
	uint64_t sum;
	double whole; /* what sum would be, had each profile's been counted all the time */
};

/* The part of the time in which it was counted, 0 to 1: below 1 where events took turns. */
double analysis_event_enabled(const struct analysis_event *ev);

struct analysis_epoch {
	char *name;
	bool open; /* still being written: what is shown is its last flush */
};

/* Why an image's samples have no procedures. */
enum analysis_state {
	ANALYSIS_UNOPENED,
	ANALYSIS_OPEN,	     /* it was there */
	ANALYSIS_MISSING,    /* nowhere found */
	ANALYSIS_CHANGED,    /* another build-id */
	ANALYSIS_UNREADABLE, /* no rights, or its file system does not answer */
	ANALYSIS_DAMAGED,    /* no ELF, or cut */
};

/* An image and all its chosen samples. */
struct analysis_image {
	enum profdb_kind kind;
	struct profdb_profile *profile; /* all epochs and platforms together */
	char *name;	     /* to show; of a pseudo-image "facility[pid]" once it was opened, or
				"dynamic code of uid 1000, not readable" */
	char *facility;	     /* of a pseudo-image that was opened (or that class), or NULL */
	size_t nr_processes; /* whose code it holds; 0: not known */
	uint64_t *count;     /* by event */
	size_t event_of[PROFDB_NR_EVENTS]; /* of the profile's events: index in analysis, SIZE_MAX
					    */
	enum analysis_state state;
	struct base_err why; /* where state is none of the first two */
	bool guessed;	     /* it was opened, and image_guessed */
	struct paths *paths; /* what its windows tell, once it was asked for */
	bool paths_made;
};

/* A profile file that could not be read; its samples are missing from every sum. */
struct analysis_bad {
	char *file;
	struct base_err err;
};

struct analysis {
	bool apart, sums; /* these and the next as the selection has them; */
	const char *const *labels;
	size_t nr_labels;
	bool *label_seen;	      /* of each: a profile has it */
	struct base_buf other_labels; /* of profiles that were not chosen: " NAME NAME …" */
	const char *const *files;     /* the caller's */
	size_t nr_files;
	struct image_map map; /* all maps together */
	struct profdb *db;
	struct image_store *store;
	struct analysis_epoch *epochs;
	size_t nr_epochs, cap_epochs;
	char **platforms;
	size_t nr_platforms, cap_platforms;
	struct analysis_event *events;
	size_t nr_events, cap_events;
	struct analysis_image **images;
	size_t nr_images, cap_images;
	struct base_map by_identity;
	struct base_map by_header; /* of indexes: struct known_header */
	struct analysis_bad *bad;
	size_t nr_bad, cap_bad;
};

/*
 * Read every profile that is meant. Errors: those of profdb (no database, unknown epoch), -ENOENT
 * for a platform or event that is not there, the existing ones named in the hint. A profile file
 * that cannot be read is noted in @bad and the rest is gathered.
 */
int analysis_open(const struct analysis_selection *sel, struct analysis **out,
		  struct base_err *err);
void analysis_close(struct analysis *a);
/* Add to @seen, for the hint of the next, a platform that is there; once. 0 or -ENOMEM. */
int analysis_platform_seen(struct base_buf *seen, const char *name);
/* -ENOENT: of the chosen epochs none is of platform @name. */
int analysis_no_platform(const char *name, const struct base_buf *seen, struct base_err *err);
/* Index of an event by name, or -ENOENT with the existing ones in the hint. */
int analysis_event_find(const struct analysis *a, const char *name, struct base_err *err);
/* The event to sort by when none is named: cycles, else a clock, else the first. */
size_t analysis_event_default(const struct analysis *a);

/* ---- images (images.c) --------------------------------------------------------------------- */

/* Of its profiles together, or NULL: it has none of @event. */
const struct profdb_event *analysis_image_event(const struct analysis_image *ai, size_t event);
/*
 * Units of @event (cycles, nanoseconds, …) that a sample in @ai stands for, those of the time in
 * which others were counted in turn (dcpid -slot) included: the mean of its profiles, whose periods
 * may differ; where it has none of @event, what another image's are. 1 where that is unknown.
 */
double analysis_sample_units(const struct analysis *a, const struct analysis_image *ai,
			     size_t event);
/* Open it and set its state; negative with @err where it cannot be. Named buckets: -ENOENT. */
int analysis_image_open(struct analysis *a, struct analysis_image *ai, struct image **out,
			struct base_err *err);
/* What stands for its procedures where there are none: "(no symbol)", "(image missing)", …; of a
 * bucket its name. */
const char *analysis_image_label(const struct analysis_image *ai);
/*
 * What windows tell of it, made when first asked for; NULL where the profile has none, or none that
 * its code explains. @img is the opened image. 0 or -ENOMEM.
 */
int analysis_image_paths(struct analysis_image *ai, struct image *img, const struct paths **out,
			 struct base_err *err);
/* Is it what the user means: path (also relative, or by links), base name, shown name, facility,
 * build-id prefix (4 digits)? */
bool analysis_image_match(struct analysis *a, struct analysis_image *ai, const char *what);
/*
 * The image of a file that the user names: the one with samples of that identity, else one without
 * any, which is @a's from then on. Errors: those of image_identify, -ENOMEM.
 */
int analysis_image_add(struct analysis *a, const char *path, struct analysis_image **out,
		       struct base_err *err);
/* -DCPI_ENOIMAGE, with the nearest names in the hint. */
int analysis_image_unknown(struct analysis *a, const char *what, struct base_err *err);

/* ---- entries of a profile ------------------------------------------------------------------ */

/* Has the entry of @ai's profile samples of a chosen event? */
bool analysis_entry_wanted(const struct analysis_image *ai, const struct profdb_entry *e);
/* Add its chosen samples by event, to @total (may be NULL) as well. */
void analysis_entry_add(const struct analysis_image *ai, const struct profdb_entry *e,
			uint64_t *count, uint64_t *total);

/* A profile file that cannot be read: into @a->bad. */
void analysis_note_bad(struct analysis *a, const char *epoch, const char *platform,
		       const char *file, const struct base_err *err);

#endif
