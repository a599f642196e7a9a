/* SPDX-License-Identifier: BSD-2-Clause */
/* The images of the chosen samples: opened, named, and matched with names that users type. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "paths.h"
#include "samples.h"

static enum image_kind kind_of(enum profdb_kind kind)
{
	switch (kind) {
	case PROFDB_KERNEL:
		return IMAGE_KERNEL;
	case PROFDB_DYNAMIC:
		return IMAGE_DYNAMIC;
	case PROFDB_VDSO:
		return IMAGE_VDSO;
	default:
		return IMAGE_FILE;
	}
}

static enum analysis_state state_of(int code)
{
	switch (code) {
	case -DCPI_ENOIMAGE:
	case -ENOENT:
		return ANALYSIS_MISSING;
	case -ESTALE:
		return ANALYSIS_CHANGED;
	case -EACCES:
	case -EPERM:
	case -ETIMEDOUT:
		return ANALYSIS_UNREADABLE;
	default:
		return ANALYSIS_DAMAGED;
	}
}

/* Names a pseudo-image "hello[4711]" by its facility and process (no process for the kernel or
 * several), in place of a file name. */
static void name_dynamic(struct analysis_image *ai, const struct image *img)
{
	const struct image_process *p = image_process(img);
	char *name;
	int n;

	if (!p)
		return;
	if (!ai->facility)
		ai->facility = strdup(p->facility);
	ai->nr_processes = p->pid ? p->nr_processes : 0;
	n = ai->nr_processes == 1 ? asprintf(&name, "%s[%u]", p->facility, p->pid)
				  : asprintf(&name, "%s", p->facility);
	if (n < 0)
		return;
	free(ai->name);
	ai->name = name;
}

/*
 * Names an unreadable pseudo-image by its class, as its file name would reveal what another user
 * runs. The file's access list, if it has one, tells the user.
 */
static void name_unreadable(const struct analysis *a, struct analysis_image *ai)
{
	const char *path = profdb_profile_path(ai->profile, 0);
	uint32_t uid = UINT32_MAX;
	char of[32] = "", *name;

	if (path && a->db)
		uid = base_reader_of(profdb_dyn_fd(a->db), path);
	if (uid != UINT32_MAX)
		snprintf(of, sizeof(of), " of uid %" PRIu32, uid);
	if (asprintf(&name, "dynamic code%s, not readable", of) < 0)
		return;
	free(ai->facility);
	ai->facility = strdup(name);
	free(ai->name);
	ai->name = name;
}

static const char **paths_of(const struct profdb_profile *p)
{
	size_t nr = 0;
	const char **paths;

	while (profdb_profile_path(p, nr))
		nr++;
	paths = calloc(nr + 1, sizeof(*paths));
	for (size_t i = 0; paths && i < nr; i++)
		paths[i] = profdb_profile_path(p, i);
	return paths;
}

/* Is a file that the user named this image? It is if the identities agree, or, without one, the
 * names. */
static bool is_image(const struct image_query *q, struct image *img, const char *file)
{
	struct base_id id;

	if (q->id.len && q->known == IMAGE_BY_ID)
		return base_id_equal(&q->id, image_id(img)) ||
		       (image_identify_second(file, &id) >= 0 && base_id_equal(&q->id, &id));
	for (size_t i = 0; q->paths[i]; i++)
		if (strcmp(base_path_name(q->paths[i]), base_path_name(file)) == 0)
			return true;
	return false;
}

static int open_named(struct analysis *a, const struct image_query *q, struct image **out)
{
	for (size_t i = 0; i < a->sources.nr_files; i++) {
		struct image *img;

		if (image_open_path(a->sources.files[i], q->kind, &img, NULL) < 0)
			continue;
		if (is_image(q, img, a->sources.files[i])) {
			*out = img;
			return 0;
		}
		image_close(img);
	}
	return -DCPI_ENOIMAGE;
}

/* A map may be older than what it names. */
static int open_mapped(struct analysis *a, const struct image_query *q, struct image **out)
{
	const struct image_map_entry *e = NULL;

	if (q->id.len && q->known == IMAGE_BY_ID)
		e = image_map_find(&a->sources.map, &q->id);
	for (; e && e < a->sources.map.v + a->sources.map.nr && base_id_equal(&e->id, &q->id);
	     e++) {
		struct image_query at = *q;
		const char *paths[] = { e->path, NULL };

		at.paths = paths;
		if (image_open(a->sources.store, &at, out, NULL) >= 0)
			return 0;
	}
	return -DCPI_ENOIMAGE;
}

int analysis_image_open(struct analysis *a, struct analysis_image *ai, struct image **out,
			struct base_err *err)
{
	struct image_query q = { .kind = kind_of(ai->kind) };
	struct base_err why = { 0 };
	const char **paths;
	int r;

	if (ai->kind == PROFDB_NAMED)
		return -ENOENT;
	paths = paths_of(ai->profile);
	if (!paths)
		return base_fail_errno(err, -ENOMEM, "cannot open image");
	q.known = image_known_by(profdb_profile_word(ai->profile, "identity"));
	q.id = *profdb_profile_image(ai->profile);
	q.text = profdb_profile_word(ai->profile, "text");
	q.paths = paths;
	r = image_open(a->sources.store, &q, out, &why);
	if (r < 0 && (open_named(a, &q, out) >= 0 || open_mapped(a, &q, out) >= 0)) {
		memset(&why, 0, sizeof(why));
		r = 0;
	}
	free(paths);
	if (r >= 0 && (r = image_symbols_load(*out, &why)) < 0) {
		image_close(*out);
		*out = NULL;
	}
	ai->state = r >= 0 ? ANALYSIS_OPEN : state_of(r);
	ai->why = why;
	ai->guessed |= r >= 0 && image_guessed(*out);
	ai->stripped |= r >= 0 && ai->kind == PROFDB_FILE && image_stripped(*out);
	if (r >= 0 && ai->kind == PROFDB_DYNAMIC)
		name_dynamic(ai, *out);
	if (ai->state == ANALYSIS_UNREADABLE && ai->kind == PROFDB_DYNAMIC)
		name_unreadable(a, ai);
	if (r < 0 && err && !err->code)
		*err = why;
	return r;
}

bool analysis_image_has_text(struct analysis *a, const struct analysis_image *ai, const char *text)
{
	struct image_query q = { .kind = kind_of(ai->kind),
				 .id = *profdb_profile_image(ai->profile),
				 .text = text,
				 .text_of_other = true };
	const char **paths = paths_of(ai->profile);
	struct image *img = NULL;

	q.paths = paths;
	if (paths && image_open(a->sources.store, &q, &img, NULL) >= 0)
		image_close(img);
	free(paths);
	return img;
}

const char *analysis_image_label(const struct analysis_image *ai)
{
	if (ai->kind == PROFDB_NAMED)
		return ai->name;
	switch (ai->state) {
	case ANALYSIS_MISSING:
		return "(image missing)";
	case ANALYSIS_CHANGED:
		return "(image changed)";
	case ANALYSIS_UNREADABLE:
		return "(image not readable)";
	case ANALYSIS_DAMAGED:
		return "(image damaged)";
	case ANALYSIS_UNOPENED:
	case ANALYSIS_OPEN:
		break;
	}
	return "(no symbol)";
}

int analysis_image_paths(struct analysis_image *ai, struct image *img, const struct paths **out,
			 struct base_err *err)
{
	int r = 0;

	if (!ai->paths_made)
		r = paths_make(ai->profile, img, &ai->paths, NULL);
	if (r == -ENOMEM)
		return base_fail_errno(err, r, "cannot follow the traces of '%s'", ai->name);
	ai->paths_made = true;
	*out = ai->paths;
	return 0;
}

const struct profdb_event *analysis_image_event(const struct analysis_image *ai, size_t event)
{
	for (size_t i = 0; i < profdb_profile_nr_events(ai->profile); i++)
		if (ai->event_of[i] == event)
			return profdb_profile_event(ai->profile, i);
	return NULL;
}

double analysis_sample_units(const struct analysis *a, const struct analysis_image *ai,
			     size_t event)
{
	const struct profdb_event *e = analysis_image_event(ai, event);
	double period;

	for (size_t i = 0; !e && i < a->nr_images; i++)
		e = analysis_image_event(a->images[i], event);
	period = e && e->period ? (double)e->period : 1;
	return e && e->enabled > 0 ? period / e->enabled : period;
}

bool analysis_entry_wanted(const struct analysis_image *ai, const struct profdb_entry *e)
{
	for (size_t i = 0; i < profdb_profile_nr_events(ai->profile); i++)
		if (ai->event_of[i] != SIZE_MAX && e->count[i])
			return true;
	return false;
}

void analysis_entry_add(const struct analysis_image *ai, const struct profdb_entry *e,
			uint64_t *count, uint64_t *total)
{
	for (size_t i = 0; i < profdb_profile_nr_events(ai->profile); i++) {
		size_t to = ai->event_of[i];

		if (to == SIZE_MAX)
			continue;
		count[to] += e->count[i];
		if (total)
			total[to] += e->count[i];
	}
}

static bool id_starts_with(const struct base_id *id, const char *prefix)
{
	char text[BASE_ID_TEXT_LEN];
	size_t len = strlen(prefix);

	return len >= 4 && id->len && len <= 2 * (size_t)id->len &&
	       strncasecmp(base_id_text(id, text), prefix, len) == 0;
}

/* Compares with the file name, which begins with the facility; characters that a name may not
 * have are "_" there. */
static bool may_be_facility(const struct analysis_image *ai, const char *what)
{
	const char *path = profdb_profile_path(ai->profile, 0);
	const char *name = path ? base_path_name(path) : what;

	while (*what && *name && (*name == *what || *name == '_')) {
		name++;
		what++;
	}
	return !*what;
}

/*
 * The facility and process of a pseudo-image are known once it is open. A failure to open it is no
 * error here, as the user may mean another image.
 */
static bool dynamic_match(struct analysis *a, struct analysis_image *ai, const char *what)
{
	enum analysis_state state = ai->state;
	const struct image_process *p;
	struct image *img = NULL;
	bool yes;

	if (analysis_image_open(a, ai, &img, NULL) < 0) {
		yes = strcmp(ai->name, what) == 0;
		if (!yes && !may_be_facility(ai, what))
			ai->state = state;
		return yes;
	}
	p = image_process(img);
	yes = (p && strcmp(p->facility, what) == 0) || strcmp(ai->name, what) == 0 ||
	      id_starts_with(image_id(img), what);
	image_close(img);
	return yes;
}

static bool path_match(const struct analysis_image *ai, const char *what)
{
	char *real = strchr(what, '/') ? realpath(what, NULL) : NULL;
	const char *path;
	bool yes = false;

	for (size_t i = 0; real && !yes && (path = profdb_profile_path(ai->profile, i)); i++)
		yes = strcmp(path, real) == 0;
	free(real);
	return yes;
}

bool analysis_image_match(struct analysis *a, struct analysis_image *ai, const char *what)
{
	const char *path;

	if (strcmp(ai->name, what) == 0 || path_match(ai, what))
		return true;
	for (size_t i = 0; (path = profdb_profile_path(ai->profile, i)); i++)
		if (strcmp(path, what) == 0 || strcmp(base_path_name(path), what) == 0)
			return true;
	if (id_starts_with(profdb_profile_image(ai->profile), what))
		return true;
	return ai->kind == PROFDB_DYNAMIC && dynamic_match(a, ai, what);
}

int analysis_image_unknown(struct analysis *a, const char *what, struct base_err *err)
{
	const char *near = NULL;
	unsigned int best = 1 + (unsigned int)strlen(base_path_name(what)) / 2;

	for (size_t i = 0; i < a->nr_images; i++) {
		const char *name = base_path_name(a->images[i]->name);
		unsigned int d = base_name_distance(name, base_path_name(what));

		if (strncmp(name, what, strlen(what)) == 0)
			d = 0;
		if (d < best) {
			best = d;
			near = a->images[i]->name;
		}
	}
	base_fail(err, -DCPI_ENOIMAGE, "no samples in an image '%s'", what);
	if (near)
		base_hint(err, "did you mean '%s'? 'dcpiprof -i' lists the images", near);
	else
		base_hint(err, "'dcpiprof -i' lists the images");
	return -DCPI_ENOIMAGE;
}
