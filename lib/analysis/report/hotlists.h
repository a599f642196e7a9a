/* SPDX-License-Identifier: BSD-2-Clause */
/* The values seen at instructions: the value profiles of the chosen epochs and platforms. */
#ifndef DCPI_HOTLISTS_H
#define DCPI_HOTLISTS_H

#include "listing.h"

/* A value, and the estimated number of times it was seen. */
struct hotlist_pair {
	uint64_t value;
	double count;
};

/* The values seen at one place, for all callers. */
struct hotlist_spot {
	uint64_t vtot; /* values seen */
	uint64_t thld; /* one in so many new values was taken up; the highest of several lists */
	struct hotlist_pair *v; /* the distinct values that were kept; most frequent first */
	size_t nv, cap;
};

/* Adds a hotlist to *@s, which is zero at first. 0 or -ENOMEM. */
int hotlist_spot_add(struct hotlist_spot *s, const struct profdb_hotlist *h, bool concise);
/* The part of the pair in all values seen at the spot: 0 to 1. */
double hotlist_share(const struct hotlist_spot *s, size_t index);
void hotlist_spot_release(struct hotlist_spot *s);

struct hotlists_image {
	struct analysis_image *ai; /* NULL: the image has no samples */
	struct profdb_values *v;   /* all epochs and platforms together */
};

/* All value profiles of one profiler. Zero-initialize. */
struct hotlists {
	struct hotlists_image *images;
	size_t nr, cap;
	struct base_err *denied; /* files of other users */
	size_t nr_denied, cap_denied;
	/* State while files are read: */
	struct analysis *a;
	const char *epoch, *platform;
};

/*
 * Reads the profiles of @profiler ("values", or the name of a value profiler) into @out, which is
 * released also on failure. A file of another user is recorded in @denied, a damaged one in
 * @a->bad. -ENOENT with a hint: there is no readable file.
 */
int hotlists_open(struct analysis *a, const char *profiler, struct hotlists *out,
		  struct base_err *err);
void hotlists_release(struct hotlists *v);
/* Returns the image's value profile, or NULL. */
const struct profdb_values *hotlists_of(const struct hotlists *v, const struct analysis_image *ai);
/* Returns the image of a context's place; NULL: unknown, or without samples. */
struct analysis_image *hotlists_context_image(struct analysis *a, const struct profdb_values *v,
					      const struct profdb_context *context);
/* Merges the hotlists from @index on that have the same offset into *@out (zero at first).
 * Returns the index behind them, or -ENOMEM. */
ssize_t hotlist_spot_at(const struct profdb_values *v, size_t index, bool concise,
			struct hotlist_spot *out);

/* A procedure of an image with samples or seen values. */
struct hotlists_procedure {
	const struct image_symbol *symbol; /* owned by the image */
	uint64_t samples;		   /* samples of the event */
	uint64_t vtot;
};
/* Lists the procedures by samples, then values, most first; the caller frees *@out. Returns
 * their number, or -ENOMEM. */
ssize_t hotlists_procedures(const struct hotlists *v, const struct analysis_image *ai,
			    struct image *img, size_t event, struct hotlists_procedure **out);

/* The spot of each unit of a listing, merged over all places that its samples come from. */
struct hotlists_listing {
	struct hotlist_spot *v;
	size_t nr;
	uint64_t total; /* sum of this procedure */
};
/* Fills @out, which the caller zero-initializes and releases, also on failure. 0 or -ENOMEM. */
int hotlists_listing_make(const struct hotlists *v, const struct analysis_listing *l, bool concise,
			  struct hotlists_listing *out);
void hotlists_listing_release(struct hotlists_listing *x);

#endif
