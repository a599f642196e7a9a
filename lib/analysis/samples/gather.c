/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the profiles of the chosen epochs and platforms and merges them by image. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "estimate.h"
#include "paths.h"
#include "progress.h"
#include "samples.h"

static void analysis_forget_headers(struct analysis *a);
static int analysis_walk(struct analysis *a, const struct analysis_selection *sel,
			 struct base_err *err);

static void image_free(struct analysis_image *ai)
{
	if (!ai)
		return;
	profdb_profile_free(ai->profile);
	paths_free(ai->paths);
	free(ai->name);
	free(ai->facility);
	free(ai->count);
	free(ai);
}

/*
 * The key by which profiles belong to one image. A pseudo-image changes its build-id while it grows
 * and keeps its file name; others have an identity by content, or at least a path. @text (may be
 * NULL) tells the code of files apart that claim one identity. @a says what else is kept apart;
 * NULL: nothing.
 */
static int identity(const struct profdb_profile *p, const struct analysis *a, const char *text,
		    struct base_buf *key)
{
	const struct base_id *id = profdb_profile_image(p);
	enum profdb_kind kind = profdb_profile_kind(p);
	const char *path = profdb_profile_path(p, 0);
	const char *process = a && a->apart ? profdb_profile_word(p, "process") : NULL;
	const char *label = a && a->by_label ? profdb_profile_word(p, "label") : NULL;
	int r = base_buf_append(key, &kind, sizeof(kind));

	if (r >= 0 && label)
		r = base_buf_append(key, label, strlen(label) + 1);
	if (r >= 0 && process)
		r = base_buf_append(key, process, strlen(process) + 1);
	if (r >= 0 && kind == PROFDB_DYNAMIC && path)
		return base_buf_append(key, base_path_name(path), strlen(base_path_name(path)));
	if (r >= 0 && kind != PROFDB_NAMED && id->len) {
		r = base_buf_append(key, id->bytes, id->len);
		return r < 0 || !text ? r : base_buf_printf(key, "\n%s", text);
	}
	if (r >= 0 && path)
		r = base_buf_append(key, path, strlen(path));
	return r;
}

/* The name of a bucket is put in parentheses, so that it is not taken for a file. */
static char *shown_name(const struct profdb_profile *p, bool apart)
{
	const char *path = profdb_profile_path(p, 0), *process;
	char *name = NULL;

	if (!path)
		return strdup("?");
	if (profdb_profile_kind(p) == PROFDB_DYNAMIC)
		return strdup(base_path_name(path));
	process = apart ? profdb_profile_word(p, "process") : NULL;
	/* Only the pid is shown; the text behind it tells apart processes that had the same pid. */
	if (process) {
		int len = (int)strcspn(process, "-");

		return asprintf(&name, "%s[%.*s]", path, len, process) < 0 ? NULL : name;
	}
	if (profdb_profile_kind(p) != PROFDB_NAMED || path[0] == '(')
		return strdup(path);
	return asprintf(&name, "(%s)", path) < 0 ? NULL : name;
}

static int add_image(struct analysis *a, const struct base_buf *key, struct profdb_profile *p)
{
	struct analysis_image *ai = calloc(1, sizeof(*ai));
	int r = ai ? base_grow(&a->images, &a->cap_images, a->nr_images + 1, sizeof(*a->images))
		   : -ENOMEM;

	if (r < 0) {
		free(ai);
		profdb_profile_free(p);
		return r;
	}
	a->images[a->nr_images++] = ai;
	ai->kind = profdb_profile_kind(p);
	ai->profile = p;
	ai->name = shown_name(p, a->apart);
	if (!ai->name)
		return -ENOMEM;
	return base_map_set(&a->by_identity, key->data, key->len, ai);
}

/* Merges the samples of an image from another epoch or platform; the newer identity has its
 * current path. */
static int merge_image(struct analysis_image *ai, struct profdb_profile *p)
{
	int r = profdb_profile_merge(ai->profile, p);

	if (r >= 0 && profdb_profile_image(p)->len)
		profdb_profile_set_image(ai->profile, profdb_profile_image(p));
	profdb_profile_free(p);
	return r;
}

/* ---- files of one build-id ------------------------------------------------------------------- */

static struct analysis_image *find(struct analysis *a, const struct analysis_image *ai,
				   const char *text, struct base_buf *key)
{
	base_buf_clear(key);
	return identity(ai->profile, a, text, key) < 0
		       ? NULL
		       : base_map_get(&a->by_identity, key->data, key->len);
}

/*
 * A copy of a file that root has installed is one with it where its code is the same. 1: it was
 * merged, and is no more; 0; negative.
 */
static int merge_copy(struct analysis *a, struct analysis_image *ai, struct base_buf *key)
{
	const char *text = profdb_profile_word(ai->profile, "text");
	struct analysis_image *roots;
	int r;

	if (!text || strlen(text) != IMAGE_TEXT_LEN || ai->kind != PROFDB_FILE)
		return 0;
	roots = find(a, ai, NULL, key);
	if (!roots || !analysis_image_has_text(a, roots, text))
		return 0;
	r = profdb_profile_merge(roots->profile, ai->profile);
	if (r >= 0)
		r = profdb_profile_set_word(roots->profile, "text", NULL);
	if (r < 0)
		return r;
	if (find(a, ai, text, key) == ai)
		base_map_del(&a->by_identity, key->data, key->len);
	image_free(ai);
	return 1;
}

static int note_twin(struct base_map *by_id, struct analysis_image *ai)
{
	const struct base_id *id = profdb_profile_image(ai->profile);

	if (ai->kind != PROFDB_FILE || !id->len)
		return 0;
	ai->twin = base_map_get(by_id, id, sizeof(*id));
	/* One of several processes' (apart) is no other file. */
	if (ai->twin && !profdb_profile_word(ai->profile, "text") &&
	    !profdb_profile_word(ai->twin->profile, "text"))
		ai->twin = NULL;
	return base_map_set(by_id, id, sizeof(*id), ai) < 0 ? -ENOMEM : 0;
}

static int settle_copies(struct analysis *a)
{
	struct base_map by_id = { 0 };
	struct base_buf key = { 0 };
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < a->nr_images; i++) {
		int merged = r < 0 ? 0 : merge_copy(a, a->images[i], &key);

		r = merged < 0 ? merged : r;
		if (merged > 0)
			continue;
		a->images[kept++] = a->images[i];
		if (r >= 0)
			r = note_twin(&by_id, a->images[i]);
	}
	a->nr_images = kept;
	base_map_release(&by_id);
	base_buf_release(&key);
	return r;
}

int analysis_event_add(struct analysis *a, const struct profdb_event *ev)
{
	struct analysis_event *known;
	int r;

	for (size_t i = 0; i < a->nr_events; i++) {
		if (strcmp(a->events[i].name, ev->name) != 0)
			continue;
		if (a->events[i].period != ev->period)
			a->events[i].mixed = true;
		return 0;
	}
	if (a->nr_events == ANALYSIS_NR_EVENTS)
		return -DCPI_ELIMIT;
	r = base_grow(&a->events, &a->cap_events, a->nr_events + 1, sizeof(*a->events));
	if (r < 0)
		return r;
	known = &a->events[a->nr_events++];
	memset(known, 0, sizeof(*known));
	memcpy(known->name, ev->name, sizeof(known->name));
	known->period = ev->period;
	return 0;
}

static bool is_labelled(struct analysis *a, const char *label)
{
	bool yes = !a->labels.nr;

	/* The user may have given a label twice. */
	for (size_t i = 0; label && i < a->labels.nr; i++)
		if (strcmp(a->labels.v[i], label) == 0)
			yes = a->labels.seen[i] = true;
	return yes;
}

/* Records a label for the hint of an error, once. */
static int note_label(struct analysis *a, const char *label)
{
	const char *at = (const char *)a->labels.others.data, *end;
	size_t len = strlen(label);

	for (end = at ? at + a->labels.others.len : at; at < end; at += strcspn(at, " ")) {
		at += strspn(at, " ");
		if (strncmp(at, label, len) == 0 && strchr(" ", at[len]))
			return 0;
	}
	return base_buf_printf(&a->labels.others, " %s", label);
}

/* Merges a profile into its image, which takes it over. @out (may be NULL) stays unset if the
 * profile's label is not chosen. 0 or negative. */
static int analysis_take_profile(struct analysis *a, struct profdb_profile *p,
				 struct analysis_image **out)
{
	struct analysis_image *ai;
	const char *label = profdb_profile_word(p, "label");
	struct base_buf key = { 0 };
	int r = 0;

	if (!is_labelled(a, label)) {
		r = label ? note_label(a, label) : 0;
		profdb_profile_free(p);
		return r;
	}
	for (size_t i = 0; i < profdb_profile_nr_events(p) && r >= 0; i++)
		r = analysis_event_add(a, profdb_profile_event(p, i));
	if (r >= 0)
		r = identity(p, a, profdb_profile_word(p, "text"), &key);
	if (r < 0) {
		profdb_profile_free(p);
	} else {
		ai = base_map_get(&a->by_identity, key.data, key.len);
		r = ai ? merge_image(ai, p) : add_image(a, &key, p);
		if (r >= 0 && out)
			*out = base_map_get(&a->by_identity, key.data, key.len);
	}
	base_buf_release(&key);
	return r;
}

/* Drops everything that was read. */
static void analysis_forget(struct analysis *a)
{
	for (size_t i = 0; i < a->nr_images; i++)
		image_free(a->images[i]);
	for (size_t i = 0; i < a->nr_epochs; i++)
		free(a->epochs[i].name);
	for (size_t i = 0; i < a->nr_platforms; i++)
		free(a->platforms[i]);
	for (size_t i = 0; i < a->nr_bad; i++)
		free(a->bad[i].file);
	a->nr_images = a->nr_epochs = a->nr_platforms = a->nr_bad = a->nr_events = 0;
	base_map_release(&a->by_identity);
	base_buf_clear(&a->labels.others);
	for (size_t i = 0; a->labels.seen && i < a->labels.nr; i++)
		a->labels.seen[i] = false;
	analysis_forget_headers(a);
}

/* Keeps one event: the others leave the table, and so every sum. */
static int keep_event(struct analysis *a, const char *name, struct base_err *err)
{
	int i = analysis_event_find(a, name, err);

	if (i < 0)
		return i;
	a->events[0] = a->events[i];
	a->nr_events = 1;
	return 0;
}

static int sum_image(struct analysis *a, struct analysis_image *ai)
{
	ai->count = calloc(a->nr_events ? a->nr_events : 1, sizeof(*ai->count));
	if (!ai->count)
		return -ENOMEM;
	for (size_t i = 0; i < PROFDB_NR_EVENTS; i++)
		ai->event_of[i] = SIZE_MAX;
	for (size_t i = 0; i < profdb_profile_nr_events(ai->profile); i++) {
		const struct profdb_event *ev = profdb_profile_event(ai->profile, i);
		int at = analysis_event_find(a, ev->name, NULL);

		if (at < 0)
			continue;
		ai->event_of[i] = (size_t)at;
		ai->count[at] += ev->sum;
		if (base_add_overflow(a->events[at].sum, ev->sum, &a->events[at].sum))
			return -DCPI_EOVERFLOW;
		a->events[at].whole += ev->enabled > 0 ? (double)ev->sum / ev->enabled : 0;
	}
	return 0;
}

int analysis_sum(struct analysis *a)
{
	int r = 0;

	for (size_t e = 0; e < a->nr_events; e++) {
		a->events[e].sum = 0;
		a->events[e].whole = 0;
	}
	for (size_t i = 0; i < a->nr_images && r >= 0; i++) {
		free(a->images[i]->count);
		r = sum_image(a, a->images[i]);
	}
	return r;
}

/* Uses copies of programs and libraries inside the database (dcpitar -images). */
static int use_images(struct analysis *a)
{
	char *dir;
	int r = asprintf(&dir, "%s/" PROFDB_IMAGES, profdb_path(a->db));

	if (r < 0)
		return -ENOMEM;
	r = image_store_images(a->sources.store, dir);
	free(dir);
	return r;
}

/* Takes over @p, also on failure. */
static int add_unsampled(struct analysis *a, struct profdb_profile *p, struct analysis_image **out)
{
	struct base_buf key = { 0 };
	int r = identity(p, NULL, NULL, &key);

	if (r < 0)
		profdb_profile_free(p);
	else
		r = add_image(a, &key, p);
	if (r >= 0) {
		*out = a->images[a->nr_images - 1];
		r = sum_image(a, *out);
	}
	base_buf_release(&key);
	return r;
}

static struct analysis_image *image_by_id(const struct analysis *a, const struct base_id *id)
{
	for (size_t i = 0; i < a->nr_images; i++)
		if (base_id_equal(profdb_profile_image(a->images[i]->profile), id))
			return a->images[i];
	return NULL;
}

/* Records the file as one more path of the image. */
static int image_of_file(struct analysis *a, const char *path, const struct base_id *id,
			 struct analysis_image **out)
{
	char *real = realpath(path, NULL);
	struct profdb_profile *p = profdb_profile_new(PROFDB_FILE, id, real ? real : path);

	free(real);
	if (!p)
		return -ENOMEM;
	*out = image_by_id(a, id);
	return *out ? merge_image(*out, p) : add_unsampled(a, p, out);
}

int analysis_image_add(struct analysis *a, const char *path, struct analysis_image **out,
		       struct base_err *err)
{
	struct base_id id, second;
	int r = image_identify(AT_FDCWD, path, &id, err);

	if (r < 0)
		return r;
	if (image_identify_second(path, &second) >= 0 && image_by_id(a, &second))
		id = second;
	r = image_of_file(a, path, &id, out);
	return r < 0 ? base_fail_errno(err, r, "cannot take '%s'", path) : 0;
}

/* A file that is kept apart from another one of its build-id has a key of its own: its path tells.
 */
static struct analysis_image *image_by_path(const struct analysis *a, const struct base_id *id,
					    const char *path)
{
	struct analysis_image *found = NULL;

	for (size_t i = 0; i < a->nr_images && !found; i++) {
		const struct profdb_profile *p = a->images[i]->profile;
		const char *one;

		if (a->images[i]->kind != PROFDB_FILE ||
		    !base_id_equal(profdb_profile_image(p), id))
			continue;
		for (size_t k = 0; !found && (one = profdb_profile_path(p, k)); k++)
			if (strcmp(one, path) == 0)
				found = a->images[i];
	}
	return found;
}

int analysis_image_of(struct analysis *a, enum profdb_kind kind, const struct base_id *id,
		      const char *path, struct analysis_image **out)
{
	struct profdb_profile *p = profdb_profile_new(kind, id, path);
	struct base_buf key = { 0 };
	int r = p ? identity(p, NULL, NULL, &key) : -ENOMEM;

	*out = kind == PROFDB_FILE && id->len ? image_by_path(a, id, path) : NULL;
	if (r >= 0 && !*out)
		*out = base_map_get(&a->by_identity, key.data, key.len);
	if (r >= 0 && !*out)
		r = add_unsampled(a, p, out);
	else
		profdb_profile_free(p);
	base_buf_release(&key);
	return r;
}

int analysis_open(const struct analysis_selection *sel, struct analysis **out, struct base_err *err)
{
	struct analysis *a = calloc(1, sizeof(*a));
	int r;

	if (a) {
		a->apart = sel->apart;
		a->by_label = sel->by_label;
		a->sums = sel->sums;
		a->shown = sel->shown;
		a->labels.v = sel->labels;
		a->labels.nr = sel->nr_labels;
		a->labels.seen = calloc(sel->nr_labels + 1, sizeof(*a->labels.seen));
		a->sources.files = sel->files;
		a->sources.nr_files = sel->nr_files;
	}
	r = a && a->labels.seen ? profdb_open(sel->db, false, &a->db, err) : -ENOMEM;
	if (r >= 0)
		r = image_store_open(profdb_dyn_fd(a->db), profdb_kernel_fd(a->db),
				     &a->sources.store);
	if (r >= 0)
		r = use_images(a);
	for (size_t i = 0; r >= 0 && i < sel->nr_maps; i++)
		r = image_map_read(&a->sources.map, sel->maps[i], err);
	if (r >= 0)
		image_store_index(a->sources.store, profdb_index_fd(a->db));
	if (r >= 0)
		r = analysis_walk(a, sel, err);
	if (r >= 0)
		r = settle_copies(a);
	if (r >= 0 && sel->event)
		r = keep_event(a, sel->event, err);
	if (r >= 0)
		r = analysis_sum(a);
	if (r < 0) {
		analysis_close(a);
		return base_fail_errno(err, r, "cannot read database '%s'", sel->db);
	}
	*out = a;
	return 0;
}

const char *analysis_database(const struct analysis *a)
{
	return a->shown ? a->shown : profdb_path(a->db);
}

/* A folder that cannot be opened tells why when an image is looked for in it. */
int analysis_open_empty(const char *db, const char *const *files, size_t nr_files,
			struct analysis **out, struct base_err *err)
{
	struct analysis *a = calloc(1, sizeof(*a));
	int r = a && db ? profdb_open(db, false, &a->db, NULL) : -ENOENT;
	int dyn_fd = r, kernel_fd = r;

	if (!a)
		return base_fail_errno(err, -ENOMEM, "cannot sum samples");
	a->sources.files = files;
	a->sources.nr_files = nr_files;
	if (a->db) {
		dyn_fd = profdb_dyn_fd(a->db);
		kernel_fd = profdb_kernel_fd(a->db);
	}
	r = image_store_open(dyn_fd, kernel_fd, &a->sources.store);
	if (r >= 0)
		image_store_index(a->sources.store, a->db ? profdb_index_fd(a->db) : -1);
	if (r >= 0 && a->db)
		r = use_images(a);
	if (r < 0) {
		analysis_close(a);
		return base_fail_errno(err, r, "cannot sum samples");
	}
	*out = a;
	return 0;
}

void analysis_close(struct analysis *a)
{
	if (!a)
		return;
	analysis_forget(a);
	base_buf_release(&a->labels.others);
	base_buf_release(&a->remarks);
	base_map_release(&a->owners);
	free(a->labels.seen);
	free(a->kept);
	image_map_release(&a->sources.map);
	free(a->images);
	free(a->epochs);
	free(a->platforms);
	free(a->bad);
	free(a->events);
	image_store_close(a->sources.store);
	profdb_close(a->db);
	free(a);
}

const char *analysis_remark_next(const struct analysis *a, const char *last)
{
	const char *begin = (const char *)a->remarks.data, *end = begin + a->remarks.len;

	if (!a->remarks.len)
		return NULL;
	last = last ? last + strlen(last) + 1 : begin;
	return last < end ? last : NULL;
}

int analysis_event_find(const struct analysis *a, const char *name, struct base_err *err)
{
	char names[200] = "";
	size_t len = 0;

	for (size_t i = 0; i < a->nr_events; i++)
		if (strcmp(a->events[i].name, name) == 0)
			return (int)i;
	for (size_t i = 0; i < a->nr_events && len < sizeof(names); i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, " %s", a->events[i].name);
	base_fail(err, -ENOENT, "no samples of event '%s'", name);
	if (a->nr_events)
		base_hint(err, "events there:%s", names);
	return -ENOENT;
}

/* Finds an event by its plain name, or else with additions such as cycles:u. Negative: neither. */
static int find_kind(const struct analysis *a, const char *name)
{
	int at = analysis_event_find(a, name, NULL);

	for (size_t i = 0; i < a->nr_events && at < 0; i++)
		if (estimate_event_is(a->events[i].name, name))
			at = (int)i;
	return at;
}

size_t analysis_event_default(const struct analysis *a)
{
	static const char *const preferred[] = {
		"cycles",     "cpu-cycles",   "ref-cycles", "cpu-clock",
		"task-clock", "thread-clock", "tick",
	};

	for (size_t i = 0; i < sizeof(preferred) / sizeof(preferred[0]); i++) {
		int at = find_kind(a, preferred[i]);

		if (at >= 0)
			return (size_t)at;
	}
	return 0;
}

/* ---- the walk over epochs -------------------------------------------------------------------- */

enum { ATTEMPTS = 20 };

struct walk {
	struct analysis *a;
	const char *epoch, *platform;
	struct profdb_sums *sums; /* sums of the platform being read; NULL: not wanted */
};

static int on_profile(void *ctx, const char *file, struct profdb_profile *p)
{
	struct walk *w = ctx;

	(void)file;
	/* A platform without sums is only slower to read the next time. */
	if (w->sums && profdb_sums_add(w->sums, p) < 0)
		w->sums = NULL;
	return analysis_take_profile(w->a, p, NULL);
}

/* ---- profiles known from an index ------------------------------------------------------------ */

/* A header that was read. Most headers occur in all epochs with the same bytes, so each is read
 * once. */
struct known_header {
	struct analysis_image *ai; /* NULL: its label is not chosen */
	struct base_id id; /* the build-id; a pseudo-image's changes, and the newest is kept */
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
		r = analysis_event_add(a, &s->events[i]);
		if (r >= 0)
			r = profdb_profile_add_sum(h->ai->profile, &s->events[i]);
	}
	if (r >= 0 && h->id.len)
		profdb_profile_set_image(h->ai->profile, &h->id);
	return r;
}

static void analysis_forget_headers(struct analysis *a)
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
	epoch->lost += profdb_epoch_lost(a->db, epoch->name, platform);
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

/* Is all of the epoch in the window? A flush may make it longer at any time. */
static bool is_inside(const struct analysis *a, const char *epoch)
{
	int64_t begin, end;

	profdb_epoch_span(a->db, epoch, &begin, &end);
	return !a->window.chosen || (begin >= a->window.since && end <= a->window.until);
}

static int add_epoch(struct analysis *a, const char *name, struct base_err *err)
{
	int r = base_grow(&a->epochs, &a->cap_epochs, a->nr_epochs + 1, sizeof(*a->epochs));

	if (r >= 0) {
		a->epochs[a->nr_epochs] = (struct analysis_epoch){ .inside = is_inside(a, name) };
		a->epochs[a->nr_epochs].name = strdup(name);
		if (!a->epochs[a->nr_epochs].name)
			r = -ENOMEM;
	}
	if (r < 0)
		return base_fail_errno(err, r, "cannot gather profiles");
	a->nr_epochs++;
	return 0;
}

/* Reads an epoch. *@seen collects the platforms' names for the hint of an error. */
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
		else if (!only || profdb_platform_has(only, platforms[i]))
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
	for (size_t i = 0; i < a->labels.nr; i++) {
		if (a->labels.seen[i])
			continue;
		base_fail(err, -ENOENT, "no samples with label '%s' in the chosen epochs",
			  a->labels.v[i]);
		if (a->labels.others.len)
			base_hint(err, "labels there:%.*s", (int)a->labels.others.len,
				  (const char *)a->labels.others.data);
		else
			base_hint(err, "none there has a label: choose others by -epoch");
		return -ENOENT;
	}
	return 0;
}

/* Traces of a part of what is chosen would tell nothing about the rest. */
static int on_profile_again(void *ctx, const char *file, struct profdb_profile *p)
{
	if (((struct walk *)ctx)->a->moves_dropped)
		profdb_profile_details_clear(p);
	return on_profile(ctx, file, p);
}

int analysis_add_again(struct analysis *a, const char *epoch, const char *platform,
		       struct base_err *err)
{
	struct walk w = { a, epoch, platform, NULL };
	size_t nr_events = a->nr_events;
	/* Files that cannot be read have been noted. */
	int r = profdb_walk(a->db, epoch, platform, on_profile_again, NULL, &w, err);

	/* The others were not chosen. */
	a->nr_events = nr_events;
	return r < 0 ? r : settle_copies(a);
}

/* Leaves those with a part of the window that was chosen. */
static int choose_time(struct analysis *a, const struct analysis_selection *sel, char **epochs,
		       struct base_err *err)
{
	char first[PROFDB_EPOCH_LEN + 1] = "", last[PROFDB_EPOCH_LEN + 1] = "";

	/* A flush that came some seconds late makes no epoch one of the next hour. */
	int64_t less = sel->whole ? 59 : 0;
	int64_t since = sel->since == INT64_MIN ? INT64_MIN : sel->since + less;
	int64_t until = sel->until == INT64_MAX ? INT64_MAX : sel->until - less;

	for (size_t i = 0; epochs[i]; i++)
		snprintf(i ? last : first, sizeof(last), "%s", epochs[i]);
	if (profdb_epochs_within(a->db, epochs, since, until))
		return 0;
	base_fail(err, -ENOENT, "no epoch has samples of this time");
	base_hint(err, "epochs are named by the minute in which they began, UTC: there %s %s%s%s",
		  *last ? "are" : "is", first, *last ? " to " : "", last);
	return -ENOENT;
}

static int choose_epochs(struct analysis *a, const struct analysis_selection *sel, char ***out,
			 struct base_err *err)
{
	const char *spec = sel->epoch || !sel->timed ? sel->epoch : "all";
	int r = profdb_epoch_select(a->db, spec, out, err);

	a->window.chosen = sel->timed;
	a->window.since = sel->since;
	a->window.until = sel->until;
	return r < 0 || !sel->timed ? r : choose_time(a, sel, *out, err);
}

static int walk_all(struct analysis *a, const struct analysis_selection *sel, struct base_err *err)
{
	struct base_buf seen = { 0 };
	char **epochs = NULL;
	size_t nr = 0;
	int r = choose_epochs(a, sel, &epochs, err);

	while (r >= 0 && epochs && epochs[nr])
		nr++;
	for (size_t i = 0; r >= 0 && i < nr; i++) {
		progress_show("reading epochs", i, nr);
		r = walk_epoch(a, epochs[i], sel->platform, &seen, err);
	}
	progress_show("reading epochs", nr, nr);
	if (r >= 0 && sel->platform && !a->nr_platforms)
		r = analysis_no_platform(sel->platform, &seen, err);
	if (r >= 0)
		r = check_labels(a, err);
	free(epochs); /* one allocation, see profdb.h */
	base_buf_release(&seen);
	return r < 0 ? r : 0;
}

/* Reads every chosen profile. If epochs were joined meanwhile, some may be read twice and others
 * not at all: then reading starts again. */
static int analysis_walk(struct analysis *a, const struct analysis_selection *sel,
			 struct base_err *err)
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
