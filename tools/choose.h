/* SPDX-License-Identifier: BSD-2-Clause */
/* Which procedure or images the user means, by name or address. */
#ifndef DCPI_CHOOSE_H
#define DCPI_CHOOSE_H

#include "listing.h"
#include "search.h"

/*
 * Its listing, the samples of all places included where it is one routine of a facility that stands
 * in several; of versions of it that with most samples, and a note names the others. Errors: those
 * of analysis_find and analysis_listing_open; -EEXIST where several procedures are meant, the
 * candidates named in the hint.
 */
int choose_procedure(struct analysis *a, const char *what, const char *image,
		     struct analysis_listing **out, struct base_err *err);
/* Is @ai one of the images that the @nr names mean, or are there none? Those that mean it are
 * marked in @used. */
bool choose_names(struct analysis *a, struct analysis_image *ai, int nr, char **what, bool *used);
/*
 * The images that one of the @nr names means, all where there are none: *out, which the caller
 * frees. Errors: -ENOMEM; those of analysis_image_unknown for a name that means none.
 */
int choose_images(struct analysis *a, int nr, char **what, struct analysis_image ***out,
		  size_t *nr_out, struct base_err *err);

/* The one image that @what names. Errors: -EEXIST (it names several; the hint tells two of them
 * apart), those of analysis_image_unknown. */
int choose_image(struct analysis *a, const char *what, struct analysis_image **out,
		 struct base_err *err);

#endif
