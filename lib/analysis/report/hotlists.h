/* SPDX-License-Identifier: BSD-2-Clause */
/* Which values passed at instructions: the value profiles of the chosen epochs and platforms. */
#ifndef DCPI_HOTLISTS_H
#define DCPI_HOTLISTS_H

#include "listing.h"

/* A value, and how many of those seen were it, as far as can be estimated. */
struct hotlist_pair {
	uint64_t value;
	double count;
};

/* What was seen at one place, by whatever callers. */
struct hotlist_spot {
	uint64_t vtot; /* values seen */
	uint64_t thld; /* a new value was taken up once in so many times; of several lists the
			* highest */
	struct hotlist_pair *v; /* different ones that were kept; most frequent first */
	size_t nv, cap;
};

/* Add what a hotlist has; *@s is zero at first. 0 or -ENOMEM. */
int hotlist_spot_add(struct hotlist_spot *s, const struct profdb_hotlist *h, bool concise);
/* How much of all that was seen there the pair is: 0 to 1. */
double hotlist_share(const struct hotlist_spot *s, size_t index);
void hotlist_spot_release(struct hotlist_spot *s);

struct hotlists_image {
	struct analysis_image *ai; /* NULL: one without samples */
	struct profdb_values *v;   /* of all epochs and platforms together */
};

/* All value profiles of one profiler. Zero-initialize. */
struct hotlists {
	struct hotlists_image *images;
	size_t nr, cap;
	struct base_err *denied; /* of files that belong to somebody else */
	size_t nr_denied, cap_denied;
	/* While files are read: */
	struct analysis *a;
	const char *epoch, *platform;
};

/*
 * Read what @profiler ("values", or what a value profiler calls itself) stored. A file that is
 * somebody else's is noted in @denied, one that is damaged in @a->bad. -ENOENT where there is none
 * at all, those that may not be read included, with a hint. Release it also on failure.
 */
int hotlists_open(struct analysis *a, const char *profiler, struct hotlists *out,
		  struct base_err *err);
void hotlists_release(struct hotlists *v);
/* The image's, or NULL. */
const struct profdb_values *hotlists_of(const struct hotlists *v, const struct analysis_image *ai);
/* How many values were seen in it, in all files that could be read. */
uint64_t hotlists_sum(const struct hotlists *v, const struct analysis_image *ai);
/* The image of a place that a profile tells contexts by; NULL: unknown, or one without samples. */
struct analysis_image *hotlists_context_image(struct analysis *a, const struct profdb_values *v,
					      const struct profdb_context *context);
/* Of a profile from @index on, all that is at the same offset, into *@out (zero at first): the
 * index behind it, or -ENOMEM. */
ssize_t hotlist_spot_at(const struct profdb_values *v, size_t index, bool concise,
			struct hotlist_spot *out);

/* A procedure of an image in which samples fell, or values were seen. */
struct hotlists_procedure {
	const struct image_symbol *symbol; /* the image's */
	uint64_t samples;		   /* of the event */
	uint64_t vtot;
};
/* By samples, then values, most first; *@out is the caller's to free. How many, or -ENOMEM. */
ssize_t hotlists_procedures(const struct hotlists *v, const struct analysis_image *ai,
			    struct image *img, size_t event, struct hotlists_procedure **out);

/* For each unit of a listing, of all places that its samples come from. */
struct hotlists_listing {
	struct hotlist_spot *v;
	size_t nr;
	uint64_t total; /* of this procedure */
};
/* Zero-initialize @out; release it also on failure. 0 or -ENOMEM. */
int hotlists_listing_make(const struct hotlists *v, const struct analysis_listing *l, bool concise,
			  struct hotlists_listing *out);
void hotlists_listing_release(struct hotlists_listing *x);

#endif
