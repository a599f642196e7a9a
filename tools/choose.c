/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>

#include "choose.h"

static void hint_candidates(const struct analysis_founds *f, size_t event, struct base_err *err)
{
	char text[200];
	size_t len = 0, shown = 0;

	for (; shown < f->nr && shown < 4 && len < sizeof(text); shown++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s%s 0x%" PRIx64 " (%" PRIu64 ")", shown ? ", " : "",
					f->v[shown].image->name, f->v[shown].vaddr,
					f->v[shown].count[event]);
	base_hint(err, "name the image, or an address in it: %s%s", text,
		  shown < f->nr ? ", …" : "");
}

/* The first, and with it all others if there are: they are the same routine. */
static int open_found(struct analysis *a, const struct analysis_founds *founds,
		      struct analysis_listing **out, struct base_err *err)
{
	struct analysis_found *f = &founds->v[0];
	const struct image_symbol *symbol;
	struct image *img;
	int r = analysis_image_open(a, f->image, &img, err);

	if (r < 0)
		return r;
	symbol = image_symbol_at(img, f->vaddr);
	if (!symbol) {
		image_close(img);
		return base_fail(err, -DCPI_ENOSYMBOL, "no procedure '%s' any more", f->name);
	}
	return analysis_listing_open(a, f->image, img, symbol, founds, out, err);
}

int choose_procedure(struct analysis *a, const char *what, const char *image,
		     struct analysis_listing **out, struct base_err *err)
{
	size_t event = analysis_event_default(a);
	struct analysis_founds found = { 0 };
	int r = analysis_find(a, what, image, event, &found, err);

	if (r >= 0 && found.nr > 1 && !analysis_founds_alike(a, &found)) {
		r = base_fail(err, -DCPI_EUSAGE, "'%s' is %zu procedures", what, found.nr);
		hint_candidates(&found, event, err);
		r = -EEXIST;
	} else if (r >= 0) {
		r = open_found(a, &found, out, err);
	}
	analysis_founds_release(&found);
	return r;
}
