/* SPDX-License-Identifier: BSD-2-Clause */
/* A range of epochs, as users name it, becomes a list of epochs here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

static int nothing_selected(char **epochs, size_t nr, const char *spec, struct base_err *err)
{
	char text[200] = "";
	size_t shown = nr < 8 ? nr : 8;

	if (!nr) {
		base_fail(err, -ENOENT, "the database has no epoch yet");
		base_hint(err, "run dcpid on it");
		return -ENOENT;
	}
	for (size_t i = nr - shown; i < nr; i++) {
		strcat(text, " ");
		strcat(text, epochs[i]);
	}
	base_fail(err, -ENOENT, "no epoch '%.60s'", spec);
	base_hint(err, "there are%s%s", nr > shown ? " …" : "", text);
	return -ENOENT;
}

/* Part of an epoch's name, as an end of a range: missing digits are the highest at its last end, as
 * they are; at the first end, what begins so is not before it. */
static int take_end(const char *text, size_t len, bool last, char out[PROFDB_EPOCH_LEN + 1])
{
	if (len > PROFDB_EPOCH_LEN || strspn(text, "0123456789") < len)
		return -EINVAL;
	memset(out, '9', PROFDB_EPOCH_LEN);
	memcpy(out, text, len);
	out[last ? PROFDB_EPOCH_LEN : len] = '\0';
	return 0;
}

static int take_range(const char *spec, const char *dots, char from[PROFDB_EPOCH_LEN + 1],
		      char to[PROFDB_EPOCH_LEN + 1], struct base_err *err)
{
	int r = take_end(spec, (size_t)(dots - spec), false, from);

	if (r >= 0)
		r = take_end(dots + 2, strlen(dots + 2), true, to);
	if (r >= 0 && strcmp(from, to) > 0)
		r = -EINVAL;
	if (r < 0) {
		base_fail(err, r, "'%.60s' is no range of epochs", spec);
		base_hint(err, "FROM..TO, each YYYYMMDDHHMM or the first digits of it, or nothing");
	}
	return r;
}

/* The place of the newest that somebody wrote; of the newest folder, where nobody wrote any. One
 * that may not be looked into is not passed over: an older one would be taken for it. */
static size_t newest(struct profdb *db, char **epochs, size_t nr)
{
	for (size_t i = nr; i-- > 0;) {
		struct base_err why = { 0 };
		char **platforms = profdb_platforms(db, epochs[i], &why);
		bool any = platforms ? *platforms != NULL : why.code != -ENOENT;

		free(platforms);
		if (any)
			return i;
	}
	return nr ? nr - 1 : 0;
}

static int choose(struct profdb *db, char **epochs, size_t nr, const char *spec, size_t *first,
		  size_t *end, struct base_err *err)
{
	char from[PROFDB_EPOCH_LEN + 1], to[PROFDB_EPOCH_LEN + 1];
	const char *dots = spec ? strstr(spec, "..") : NULL;
	int r;

	*first = 0;
	*end = nr;
	if (!spec || !strcmp(spec, "latest")) {
		*first = newest(db, epochs, nr);
		*end = nr ? *first + 1 : 0;
	} else if (dots) {
		r = take_range(spec, dots, from, to, err);
		if (r < 0)
			return r;
		while (*first < nr && strcmp(epochs[*first], from) < 0)
			++*first;
		while (*end > *first && strcmp(epochs[*end - 1], to) > 0)
			--*end;
	} else if (strcmp(spec, "all") != 0) {
		while (*first < nr && strcmp(epochs[*first], spec) != 0)
			++*first;
		*end = *first < nr ? *first + 1 : nr;
	}
	if (*first == *end)
		return nothing_selected(epochs, nr, spec ? spec : "latest", err);
	return 0;
}

int profdb_epoch_select(struct profdb *db, const char *spec, char ***out, struct base_err *err)
{
	char **epochs = profdb_epochs(db, err);
	struct profdb_names all = { .items = epochs };
	size_t first, end;
	int r;

	*out = NULL;
	if (!epochs)
		return err && err->code ? err->code : -EIO;
	while (epochs[all.nr])
		all.nr++;
	r = choose(db, epochs, all.nr, spec, &first, &end, err);
	if (r >= 0) {
		*out = profdb_names_pack(&all, first, end);
		if (!*out)
			r = base_fail_errno(err, -ENOMEM, "cannot list epochs");
	}
	free(epochs);
	return r;
}
