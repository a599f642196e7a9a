/* SPDX-License-Identifier: BSD-2-Clause */
/* What the chosen epochs and platforms hold: profile by profile, or by the index of an epoch. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gather.h"

enum { ATTEMPTS = 20 };

struct walk {
	struct analysis *a;
	const char *epoch, *platform;
	struct profdb_sums *sums; /* of what is walked; NULL: they are not wanted */
};

static int on_profile(void *ctx, const char *file, struct profdb_profile *p)
{
	struct walk *w = ctx;

	(void)file;
	/* Without its sums the platform is only slower to read next time. */
	if (w->sums && profdb_sums_add(w->sums, p) < 0)
		w->sums = NULL;
	return analysis_take_profile(w->a, p, NULL);
}

/* ---- of an index ----------------------------------------------------------------------------- */

/* Most headers stand in all epochs, in the same bytes: each is read once. */
struct known_header {
	struct analysis_image *ai; /* NULL: its label is not wanted */
	struct base_id id;	   /* a pseudo-image's changes; the newest holds */
};

static int new_header(struct analysis *a, const struct profdb_sum *s)
{
	struct known_header *h = calloc(1, sizeof(*h));
	struct profdb_profile *p = NULL;
	int r = h ? profdb_sum_profile(s, &p) : -ENOMEM;

	if (r >= 0) {
		h->id = *profdb_profile_image(p);
		r = analysis_take_profile(a, p, &h->ai);
	}
	if (r >= 0)
		r = base_map_set(&a->by_header, s->header, s->header_len, h);
	if (r < 0)
		free(h);
	return r;
}

static int on_sum(void *ctx, const struct profdb_sum *s)
{
	struct analysis *a = ((struct walk *)ctx)->a;
	struct known_header *h = base_map_get(&a->by_header, s->header, s->header_len);
	int r = 0;

	if (!h)
		return new_header(a, s);
	if (!h->ai)
		return 0;
	for (size_t i = 0; r >= 0 && i < s->nr_events; i++) {
		r = analysis_note_period(a, &s->events[i]);
		if (r >= 0)
			r = profdb_profile_add_sum(h->ai->profile, &s->events[i]);
	}
	if (r >= 0 && h->id.len)
		profdb_profile_set_image(h->ai->profile, &h->id);
	return r;
}

void analysis_forget_headers(struct analysis *a)
{
	size_t pos = 0;
	void *h;

	while (base_map_next(&a->by_header, &pos, &h))
		free(h);
	base_map_release(&a->by_header);
}

void analysis_note_bad(struct analysis *a, const char *epoch, const char *platform,
		       const char *file, const struct base_err *err)
{
	struct analysis_bad *bad;
	char *name;

	if (base_grow(&a->bad, &a->cap_bad, a->nr_bad + 1, sizeof(*a->bad)) < 0)
		return;
	if (asprintf(&name, "%s/%s/%s", epoch, platform, file) < 0)
		return;
	bad = &a->bad[a->nr_bad++];
	memset(bad, 0, sizeof(*bad));
	bad->file = name;
	base_fail(&bad->err, err->code, "%s (epoch %s, platform %s)", err->text, epoch, platform);
	if (*err->hint)
		base_hint(&bad->err, "%s", err->hint);
}

static void on_bad(void *ctx, const char *file, const struct base_err *err)
{
	const struct walk *w = ctx;

	analysis_note_bad(w->a, w->epoch, w->platform, file, err);
}

static int note_platform(struct analysis *a, const char *name)
{
	int r;

	for (size_t i = 0; i < a->nr_platforms; i++)
		if (strcmp(a->platforms[i], name) == 0)
			return 0;
	r = base_grow(&a->platforms, &a->cap_platforms, a->nr_platforms + 1, sizeof(*a->platforms));
	if (r < 0)
		return r;
	a->platforms[a->nr_platforms] = strdup(name);
	return a->platforms[a->nr_platforms] ? (int)a->nr_platforms++ : -ENOMEM;
}

static int walk_platform(struct analysis *a, struct analysis_epoch *epoch, const char *platform,
			 struct base_err *err)
{
	struct profdb_sums sums = { 0 };
	struct walk w = { a, epoch->name, platform, NULL };
	size_t nr_bad = a->nr_bad;
	int r = note_platform(a, platform);

	if (r < 0)
		return base_fail_errno(err, r, "cannot gather profiles");
	epoch->open |= profdb_epoch_open(a->db, epoch->name, platform);
	r = a->sums ? profdb_sums_walk(a->db, epoch->name, platform, on_sum, &w) : -ENOENT;
	if (r == -ENOENT) {
		if (a->sums && profdb_sums_begin(a->db, epoch->name, platform, &sums) >= 0)
			w.sums = &sums;
		r = profdb_walk(a->db, epoch->name, platform, on_profile, on_bad, &w, err);
		if (r >= 0 && w.sums && a->nr_bad == nr_bad)
			profdb_sums_write(a->db, epoch->name, platform, &sums);
		profdb_sums_release(&sums);
	}
	return r < 0 ? base_fail_errno(err, r, "cannot gather profiles") : 0;
}

static int add_epoch(struct analysis *a, const char *name, struct base_err *err)
{
	int r = base_grow(&a->epochs, &a->cap_epochs, a->nr_epochs + 1, sizeof(*a->epochs));

	if (r >= 0) {
		a->epochs[a->nr_epochs].open = false;
		a->epochs[a->nr_epochs].name = strdup(name);
		if (!a->epochs[a->nr_epochs].name)
			r = -ENOMEM;
	}
	if (r < 0)
		return base_fail_errno(err, r, "cannot gather profiles");
	a->nr_epochs++;
	return 0;
}

/* *@seen collects the platforms' names for the hint of an error. */
static int walk_epoch(struct analysis *a, const char *name, const char *only, struct base_buf *seen,
		      struct base_err *err)
{
	char **platforms;
	int r = add_epoch(a, name, err);

	if (r < 0)
		return r;
	platforms = profdb_platforms(a->db, name, err);
	if (!platforms)
		return err && err->code ? err->code
					: base_fail_errno(err, -ENOMEM, "cannot gather profiles");
	for (size_t i = 0; platforms[i] && r >= 0; i++) {
		r = analysis_platform_seen(seen, platforms[i]);
		if (r < 0)
			base_fail_errno(err, r, "cannot gather profiles");
		else if (!only || strcmp(only, platforms[i]) == 0)
			r = walk_platform(a, &a->epochs[a->nr_epochs - 1], platforms[i], err);
	}
	free(platforms); /* one allocation, see profdb.h */
	return r;
}

int analysis_platform_seen(struct base_buf *seen, const char *name)
{
	const char *names = (const char *)seen->data;
	size_t len = strlen(name), at = 0, end;

	for (; at < seen->len; at = end) {
		end = ++at;
		while (end < seen->len && names[end] != ' ')
			end++;
		if (end - at == len && memcmp(names + at, name, len) == 0)
			return 0;
	}
	return base_buf_printf(seen, " %s", name);
}

int analysis_no_platform(const char *name, const struct base_buf *seen, struct base_err *err)
{
	base_fail(err, -ENOENT, "no platform '%s' in the chosen epochs", name);
	if (seen->len)
		base_hint(err, "platforms there:%.*s", (int)seen->len, (const char *)seen->data);
	return -ENOENT;
}

static int check_labels(const struct analysis *a, struct base_err *err)
{
	for (size_t i = 0; i < a->nr_labels; i++) {
		if (a->label_seen[i])
			continue;
		base_fail(err, -ENOENT, "no samples with label '%s' in the chosen epochs",
			  a->labels[i]);
		if (a->other_labels.len)
			base_hint(err, "labels there:%.*s", (int)a->other_labels.len,
				  (const char *)a->other_labels.data);
		else
			base_hint(err, "none there has a label: choose others by -epoch");
		return -ENOENT;
	}
	return 0;
}

static int walk_all(struct analysis *a, const struct analysis_selection *sel, struct base_err *err)
{
	struct base_buf seen = { 0 };
	char **epochs = NULL;
	int r = profdb_epoch_select(a->db, sel->epoch, &epochs, err);

	for (size_t i = 0; r >= 0 && epochs && epochs[i]; i++)
		r = walk_epoch(a, epochs[i], sel->platform, &seen, err);
	if (r >= 0 && sel->platform && !a->nr_platforms)
		r = analysis_no_platform(sel->platform, &seen, err);
	if (r >= 0)
		r = check_labels(a, err);
	free(epochs); /* one allocation, see profdb.h */
	base_buf_release(&seen);
	return r < 0 ? r : 0;
}

int analysis_walk(struct analysis *a, const struct analysis_selection *sel, struct base_err *err)
{
	struct base_err own = { 0 };
	int r = -EAGAIN;

	for (int i = 0; i < ATTEMPTS; i++) {
		own = (struct base_err){ 0 };
		r = walk_all(a, sel, &own);
		if (!profdb_epochs_changed(a->db))
			break;
		analysis_forget(a);
		r = base_fail(&own, -EAGAIN, "epochs are being joined all the time");
	}
	if (r < 0 && err && !err->code)
		*err = own;
	return r;
}
