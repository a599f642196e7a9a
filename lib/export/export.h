/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples of a database as stacks, for the formats of other programs. The sums of their counts
 * are those of the flat profile, for each instruction and each event exactly, so that the total
 * which another program shows is the one that dcpiprof shows.
 */
#ifndef DCPI_EXPORT_H
#define DCPI_EXPORT_H

#include "samples.h"
#include "workload.h"

enum { EXPORT_NONE = UINT32_MAX };

/* Names are numbers of x->texts, which are UTF-8 without control characters and without marks that
 * turn the direction of text. Number 0 is "". */

struct export_image {
	uint32_t name;
	char id[BASE_ID_TEXT_LEN]; /* "": it has none */
	enum profdb_kind kind;
	uint64_t begin, end; /* addresses of its ELF that it spans: those of all its places, and its
				code; where it could not be opened they are offsets */
	uint64_t off;	     /* the offset in it that stands at begin */
	bool open, lines, inlined;
};

struct export_function {
	uint32_t name;	  /* as people read it */
	uint32_t linkage; /* as the linker has it */
	uint32_t image;	  /* EXPORT_NONE: it is in none (samples in no image, ends of paths) */
	uint32_t file;	  /* 0: unknown */
	uint64_t begin; /* address of its first instruction; 0: an inlined function, no function */
	uint32_t line;	/* line of its definition; 0: unknown */
};

struct export_frame {
	uint32_t function, file, line;
};

/* An instruction, or the end of a path. */
struct export_place {
	uint32_t image;	    /* EXPORT_NONE */
	uint32_t first, nr; /* in x->frames: innermost first, all but the last inlined; at least one
			     */
	uint64_t vaddr;
};

/* A caller and its callers. */
struct export_caller {
	uint32_t caller; /* lower than its own number; or EXPORT_NONE */
	uint32_t place;
	bool used; /* a stack has it, directly or through others */
};

struct export_stack {
	uint32_t place;	 /* the sampled instruction */
	uint32_t caller; /* EXPORT_NONE: none is known */
	uint32_t owner;	 /* workload of x->paths whose path it is; PROFDB_CALLPATH_NOBODY */
};

/* The number of WORKLOAD_NR_KEYS as key: which of several stacks is whose is an estimate. */
struct export_tag {
	uint32_t key; /* enum workload_key */
	uint32_t text;
};

/* The tags of a workload: numbers of x->tags. */
struct export_owner {
	uint32_t first, nr; /* in x->owner_tags */
};

/* Samples of a stack that are of one workload. */
struct export_part {
	uint32_t stack;
	uint32_t owner;	    /* EXPORT_NONE: it is not known */
	uint32_t estimated; /* 1: that they are of this stack is not known */
};

struct export
{
	const struct analysis *a;
	char **texts;
	size_t nr_texts, cap_texts;
	struct base_map by_text;
	struct export_image *images; /* indexed as a->images */
	size_t nr_images;
	struct export_function *functions;
	size_t nr_functions, cap_functions;
	struct base_map by_function;
	struct export_frame *frames;
	size_t nr_frames, cap_frames;
	struct export_place *places;
	size_t nr_places, cap_places;
	struct base_map by_place;
	struct export_caller *callers;
	size_t nr_callers;
	struct export_stack *stacks;
	uint64_t *counts; /* [stack * a->nr_events + event] */
	size_t nr_stacks, cap_stacks, cap_counts;
	struct base_map by_stack;
	struct export_part *parts; /* of export_whose; together all samples of all stacks */
	uint64_t *part_counts;	   /* as counts */
	size_t nr_parts;
	struct export_owner *owners; /* indexed by workload; NULL: none are known */
	struct export_tag *tags;
	uint32_t *owner_tags;
	size_t nr_tags, nr_owner_tags;
	uint32_t estimated;		/* the tag that estimated parts have */
	size_t deepest;			/* places of the longest stack */
	struct profdb_callpaths *paths; /* NULL: there are none */
	uint32_t *events;		/* the events that formats write, in this order */
	size_t nr_events;
};

struct export_how {
	bool flat;	/* without call paths */
	bool owners;	/* stacks of different workloads differ */
	bool unchecked; /* as struct callpath_how */
};

/*
 * Makes the stacks of all samples of @a, which must outlive them; released with export_free. Paths
 * that do not reach the begin of their thread have their end as outermost place. 0 or negative with
 * @err; damage is noted in @a.
 */
int export_make(struct analysis *a, const struct export_how *how, struct export **out,
		struct base_err *err);
void export_free(struct export *x);
/*
 * Makes the parts: divides samples among workloads @w (NULL: none are known) as @f has chosen them
 * of @a. The sum of a workload at an instruction is exact. 0 or negative with @err.
 */
int export_whose(struct export *x, struct analysis *a, const struct profdb_workloads *w,
		 const struct workload_filter *f, struct base_err *err);

/* The places of a stack, innermost first, into @out (x->deepest of them); returns how many. */
size_t export_places(const struct export *x, size_t stack, uint32_t *out);
/* The sum of all stacks. */
uint64_t export_sum(const struct export *x, size_t event);
static inline uint64_t export_count(const struct export *x, size_t stack, size_t event)
{
	return x->counts[stack * x->a->nr_events + event];
}
static inline uint64_t export_part_count(const struct export *x, size_t part, size_t event)
{
	return x->part_counts[part * x->a->nr_events + event];
}
/* Has the stack samples of an event that is written? */
bool export_wanted(const struct export *x, size_t stack);
/* Has the image a place? */
bool export_has_image(const struct export *x, uint32_t image);
/* Is the event sampled by time, with a period in nanoseconds? */
bool export_is_clock(const struct export *x, size_t event);
/* When the first of its epochs began: seconds since 1970, UTC; 0: not known. */
uint64_t export_begin(const struct export *x);

/* ---- formats, a file each -------------------------------------------------------------------- */

struct export_format {
	const char *name;
	/* Writes all of @x->events to @to: 0, or negative. What @to refuses is found in its error
	 * flag. */
	int (*write)(const struct export *x, FILE *to);
	bool gzip;   /* always compressed */
	bool single; /* it holds one event */
	bool tags;   /* it says whose samples are: export_whose is asked for before */
};

extern const struct export_format export_pprof, export_folded, export_speedscope, export_firefox,
	export_callgrind, export_perf, export_otlp;

/* A stream that writes what it gets to @to, compressed by gzip, which fclose() completes; @to stays
 * open. NULL: no memory. */
FILE *export_gzip(FILE *to);

#endif
