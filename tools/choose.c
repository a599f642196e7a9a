/* SPDX-License-Identifier: BSD-2-Clause */
/* A command's arguments choose images and procedures, or a hint says why they do not. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "demangle.h"
#include "report.h"

/* Overloaded: the parameters tell them apart. */
static bool hint_names(const struct analysis_founds *f, size_t event, struct base_err *err)
{
	const char *one = demangle_shown(f->v[0].name), *two = demangle_shown(f->v[1].name);

	if (strcmp(f->v[0].name, f->v[1].name) == 0 || strcmp(one, two) == 0 ||
	    strlen(one) + strlen(two) > 160)
		return false;
	base_hint(err, "name one of them: '%s' (%" PRIu64 "), '%s' (%" PRIu64 ")%s", one,
		  f->v[0].count[event], two, f->v[1].count[event], f->nr > 2 ? ", …" : "");
	return true;
}

static void hint_candidates(const struct analysis_founds *f, size_t event, struct base_err *err)
{
	static const char what[] = "name one by an address in it, and its image", more[] = ", …";
	char text[sizeof(err->hint) - sizeof(what) - sizeof(more)] = "";
	size_t len = 0, shown = 0;

	if (f->nr > 1 && hint_names(f, event, err))
		return;

	for (; shown < f->nr && shown < 4; shown++) {
		int n = snprintf(text + len, sizeof(text) - len, "%s0x%" PRIx64 " %s (%" PRIu64 ")",
				 shown ? ", " : ": ", f->v[shown].vaddr, f->v[shown].image->name,
				 f->v[shown].count[event]);

		/* Half of an address is another address. */
		if (n < 0 || (size_t)n >= sizeof(text) - len)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	base_hint(err, "%s%s%s", what, text, shown && shown < f->nr ? more : "");
}

/* The first, and with it all others if there are: they have the same code. */
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

/* A routine that was compiled anew, or differently in each process: the versions that are not
 * shown. */
static void tell_versions(const struct analysis_founds *f, size_t nr_shown, size_t event)
{
	size_t last = nr_shown + 4 < f->nr ? nr_shown + 4 : f->nr;

	fputs("note: '", stderr);
	report_print_name(stderr, f->v[0].name);
	fprintf(stderr,
		"' is %zu versions; others than the one with most samples:", f->nr - nr_shown + 1);
	for (size_t i = nr_shown; i < last; i++) {
		fprintf(stderr, "%s 0x%" PRIx64 " ", i > nr_shown ? "," : "", f->v[i].vaddr);
		report_print_clean(stderr, f->v[i].image->name);
		fprintf(stderr, " (%" PRIu64 ")", f->v[i].count[event]);
	}
	fputs(last < f->nr ? ", \xe2\x80\xa6\n" : "\n", stderr);
}

int choose_procedure(struct analysis *a, const char *what, const char *image,
		     struct analysis_listing **out, struct base_err *err)
{
	size_t event = analysis_event_default(a), nr;
	struct analysis_founds found = { 0 }, shown;
	int r = analysis_find(a, what, image, event, &found, err);

	if (r >= 0 && found.nr > 1 && !analysis_founds_versions(&found)) {
		base_fail(err, -DCPI_EUSAGE, "'%s' is %zu procedures", what, found.nr);
		hint_candidates(&found, event, err);
		r = -EEXIST;
	} else if (r >= 0) {
		nr = found.nr > 1 ? analysis_founds_alike(a, &found) : 1;
		shown = (struct analysis_founds){ .v = found.v, .nr = nr };
		if (nr < found.nr)
			tell_versions(&found, nr, event);
		r = open_found(a, &shown, out, err);
	}
	if (r >= 0)
		analysis_image_ask(a, found.v[0].image);
	analysis_founds_release(&found);
	return r;
}

bool choose_names(struct analysis *a, struct analysis_image *ai, int nr, char **what, bool *used)
{
	bool named = false;

	for (int i = 0; i < nr; i++)
		if (analysis_image_match(a, ai, what[i]))
			named = used[i] = true;
	if (named)
		analysis_image_ask(a, ai);
	return named || nr == 0;
}

int choose_images(struct analysis *a, int nr, char **what, struct analysis_image ***out,
		  size_t *nr_out, struct base_err *err)
{
	struct analysis_image **images = calloc(a->nr_images + 1, sizeof(*images));
	bool *used = calloc((size_t)nr + 1, sizeof(*used));
	int r = 0;

	*nr_out = 0;
	if (!used || !images)
		r = base_fail_errno(err, -ENOMEM, "cannot choose images");
	for (size_t i = 0; r >= 0 && i < a->nr_images; i++)
		if (choose_names(a, a->images[i], nr, what, used))
			images[(*nr_out)++] = a->images[i];
	for (int i = 0; r >= 0 && i < nr; i++)
		if (!used[i])
			r = analysis_image_unknown(a, what[i], err);
	free(used);
	*out = images;
	return r;
}

static int several(const struct analysis_image *one, const struct analysis_image *two,
		   const char *what, struct base_err *err)
{
	char id[2][BASE_ID_TEXT_LEN] = { "", "" };

	base_fail(err, -EEXIST, "'%s' is several images", what);
	if (strcmp(one->name, two->name) != 0) {
		base_hint(err, "two of them: '%s', '%s'", one->name, two->name);
		return -EEXIST;
	}
	base_id_text(profdb_profile_image(one->profile), id[0]);
	base_id_text(profdb_profile_image(two->profile), id[1]);
	base_hint(err, "two builds of '%s': name one by its build-id, %s or %s", one->name, id[0],
		  id[1]);
	return -EEXIST;
}

int choose_image(struct analysis *a, const char *what, struct analysis_image **out,
		 struct base_err *err)
{
	*out = NULL;
	for (size_t i = 0; i < a->nr_images; i++) {
		struct analysis_image *ai = a->images[i];

		if (ai->kind == PROFDB_NAMED || !analysis_image_match(a, ai, what))
			continue;
		if (*out)
			return several(*out, ai, what, err);
		*out = ai;
	}
	if (!*out)
		return analysis_image_unknown(a, what, err);
	analysis_image_ask(a, *out);
	return 0;
}
