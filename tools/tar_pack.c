/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a database that an archive needs are chosen and packed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "image.h"
#include "report.h"
#include "tar.h"
#include "window.h"

/* An image that some profile is of. */
struct wanted {
	enum profdb_kind kind;
	struct base_id id;
	enum image_known known;
	char text[BASE_ID_TEXT_LEN]; /* the profile's word; "" for none */
	char **paths;		     /* NULL-terminated, one allocation */
};

struct pack {
	const char *prog;
	struct profdb *db;
	struct image_store *store;
	struct tarball_writer *w;
	struct base_map known; /* kind, identity, first path -> wanted */
	struct wanted *wanted;
	size_t nr_wanted, cap_wanted;
	const char *epoch, *platform; /* being packed */
	bool values;
	bool lacks; /* something that the database should have */
	bool met;   /* a platform that is meant */
};

static void warn(const struct pack *p, const struct base_err *err)
{
	fprintf(stderr, "%s: warning: ", p->prog);
	report_print_clean(stderr, err->text);
	fputc('\n', stderr);
}

static void on_bad(void *ctx, const char *file, const struct base_err *err)
{
	struct pack *p = ctx;

	(void)file;
	warn(p, err);
	p->lacks = true;
}

/* ---- profiles -------------------------------------------------------------------------------- */

static char **copy_paths(const struct profdb_profile *profile)
{
	size_t nr = 0, len = 0;
	char **list, *text;

	for (; profdb_profile_path(profile, nr); nr++)
		len += strlen(profdb_profile_path(profile, nr)) + 1;
	list = malloc((nr + 1) * sizeof(*list) + len);
	if (!list)
		return NULL;
	text = (char *)(list + nr + 1);
	for (size_t i = 0; i < nr; i++) {
		list[i] = strcpy(text, profdb_profile_path(profile, i));
		text += strlen(text) + 1;
	}
	list[nr] = NULL;
	return list;
}

/* Each image once, of however many profiles. */
static int want(struct pack *p, const struct profdb_profile *profile)
{
	const char *first = profdb_profile_path(profile, 0);
	const char *text = profdb_profile_word(profile, "text");
	struct wanted new = { .kind = profdb_profile_kind(profile),
			      .id = *profdb_profile_image(profile),
			      .known = image_known_by(profdb_profile_word(profile, "identity")) };
	char key[BASE_ID_TEXT_LEN + 300], id[BASE_ID_TEXT_LEN];
	int r;

	if (new.kind == PROFDB_NAMED)
		return 0;
	snprintf(new.text, sizeof(new.text), "%s", text ? text : "");
	snprintf(key, sizeof(key), "%d %s %.280s", (int)new.kind, base_id_text(&new.id, id),
		 first ? first : "");
	if (base_map_get(&p->known, key, strlen(key)))
		return 0;
	r = base_grow(&p->wanted, &p->cap_wanted, p->nr_wanted + 1, sizeof(*p->wanted));
	if (r < 0 || !(new.paths = copy_paths(profile)))
		return -ENOMEM;
	p->wanted[p->nr_wanted++] = new;
	return base_map_set(&p->known, key, strlen(key), p);
}

static int take_file(struct pack *p, const char *file, mode_t mode, const struct base_buf *bytes,
		     const struct profdb_profile *header)
{
	struct base_err err = { 0 };
	char path[TARBALL_PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/%s/%s", p->epoch, p->platform, file);
	r = tarball_add_data(p->w, path, mode, time(NULL), bytes->data, bytes->len, &err);
	if (r == -EINVAL) {
		on_bad(p, file, &err);
		return 0;
	}
	return r < 0 ? r : want(p, header);
}

static int take_profile(void *ctx, const char *file, const struct base_buf *bytes,
			const struct profdb_profile *profile)
{
	return take_file(ctx, file, 0644, bytes, profile);
}

static int take_values(void *ctx, const char *file, const struct base_buf *bytes,
		       const struct profdb_profile *header)
{
	return take_file(ctx, file, 0600, bytes, header);
}

/* ---- files about all images ------------------------------------------------------------------ */

static int want_image(struct pack *p, const struct profdb_image_ref *i)
{
	struct profdb_profile *profile = profdb_profile_new(i->kind, &i->id, i->path);
	int r = profile ? want(p, profile) : -ENOMEM;

	profdb_profile_free(profile);
	return r;
}

/* Images that are on call paths alone have no profile in the pack. */
static int want_callpaths(struct pack *p, const struct base_buf *bytes, struct base_err *err)
{
	const struct profdb_image_ref *i;
	struct profdb_callpaths *c;
	int r = profdb_callpaths_parse(bytes->data, bytes->len, &c, err);

	for (size_t n = 0; r >= 0 && (i = profdb_callpaths_image(c, n)); n++)
		r = want_image(p, i);
	profdb_callpaths_free(c);
	return r;
}

static int want_workloads(struct pack *p, const struct base_buf *bytes, struct base_err *err)
{
	const struct profdb_image_ref *i;
	struct profdb_workloads *w;
	int r = profdb_workloads_parse(bytes->data, bytes->len, &w, err);

	for (size_t n = 0; r >= 0 && (i = profdb_workloads_image(w, n)); n++)
		r = want_image(p, i);
	profdb_workloads_free(w);
	return r;
}

/* The kinds of files of which an epoch and platform has one. */
static const struct whole {
	const char *name, *what;
	int (*bytes)(struct profdb *db, const char *epoch, const char *platform,
		     struct base_buf *out, struct base_err *err);
	int (*want)(struct pack *p, const struct base_buf *bytes, struct base_err *err);
} wholes[] = {
	{ "callpaths", "call paths", profdb_callpaths_bytes, want_callpaths },
	{ "workloads", "workloads", profdb_workloads_bytes, want_workloads },
};

static int add_whole(struct pack *p, const struct whole *kind, const struct base_buf *bytes,
		     struct base_err *err)
{
	struct base_err why = { 0 };
	char path[TARBALL_PATH_MAX];
	int r = kind->want(p, bytes, &why);

	snprintf(path, sizeof(path), "%s/%s/%s", p->epoch, p->platform, kind->name);
	if (r < 0)
		return base_fail(err, r, "cannot read %s '%s': %s", kind->what, path,
				 why.code ? why.text : base_strerror(r));
	return tarball_add_data(p->w, path, 0644, time(NULL), bytes->data, bytes->len, err);
}

static int pack_whole(struct pack *p, const struct whole *kind, struct base_err *err)
{
	struct base_buf bytes = { 0 };
	struct base_err why = { 0 };
	int r = kind->bytes(p->db, p->epoch, p->platform, &bytes, &why);

	if (r >= 0)
		r = add_whole(p, kind, &bytes, &why);
	base_buf_release(&bytes);
	if (r >= 0 || r == -ENOENT)
		return 0;
	if (r == -ENOMEM || r == -ENOSPC || r == -EIO)
		return base_fail(err, r, "%s", why.text[0] ? why.text : base_strerror(r));
	on_bad(p, NULL, &why);
	return 0;
}

static int pack_platform(struct pack *p, const char *epoch, const char *platform,
			 struct base_err *err)
{
	struct base_err why = { 0 };
	int r;

	if (profdb_epoch_open(p->db, epoch, platform)) {
		base_fail(&why, -EBUSY, "'%s/%s' is not finished: packed as of its last flush",
			  epoch, platform);
		warn(p, &why);
	}
	p->epoch = epoch;
	p->platform = platform;
	p->met = true;
	r = profdb_walk_files(p->db, epoch, platform, false, take_profile, on_bad, p, err);
	if (r >= 0 && p->values)
		r = profdb_walk_files(p->db, epoch, platform, true, take_values, on_bad, p, err);
	for (size_t i = 0; r >= 0 && i < sizeof(wholes) / sizeof(wholes[0]); i++)
		r = pack_whole(p, &wholes[i], err);
	return r;
}

/* *@seen collects the platforms' names for the hint of an error. */
static int pack_epoch(struct pack *p, const char *epoch, const char *only, struct base_buf *seen,
		      struct base_err *err)
{
	char **platforms = profdb_platforms(p->db, epoch, err);
	int r = platforms ? 0 : -EIO;

	for (size_t i = 0; r >= 0 && platforms[i]; i++) {
		r = analysis_platform_seen(seen, platforms[i]);
		if (r >= 0 && (!only || profdb_platform_has(only, platforms[i])))
			r = pack_platform(p, epoch, platforms[i], err);
	}
	free(platforms);
	return r;
}

static int pack_epochs(struct pack *p, const struct select *sel, struct base_err *err)
{
	struct base_buf seen = { 0 };
	char **epochs;
	int r = window_epochs(sel, p->db, &epochs, err);

	for (size_t i = 0; r >= 0 && epochs[i]; i++)
		r = pack_epoch(p, epochs[i], sel->platform, &seen, err);
	free(epochs);
	if (r >= 0 && sel->platform && !p->met)
		r = analysis_no_platform(sel->platform, &seen, err);
	base_buf_release(&seen);
	if (r >= 0 && !tarball_added(p->w)->nr)
		r = base_fail(err, -ENOENT, "there are no profiles to pack");
	return r < 0 ? r : 0;
}

/* ---- images ---------------------------------------------------------------------------------- */

static int add_once(struct pack *p, const char *path, int dir_fd, const char *file,
		    struct base_err *err)
{
	return tarball_has(p->w, path) ? 0 : tarball_add_file(p->w, path, dir_fd, file, err);
}

/* A kernel's bytes stand beside its symbols. */
static int add_beside(struct pack *p, const char *elf, const char *end, struct base_err *err)
{
	size_t len = strlen(elf);
	char name[256], path[300];

	if (len < 5 || strcmp(elf + len - 4, ".elf") != 0)
		return 0;
	snprintf(name, sizeof(name), "%.*s%s", (int)(len - 4), elf, end);
	snprintf(path, sizeof(path), "kernel/%s", name);
	if (faccessat(profdb_kernel_fd(p->db), name, F_OK, 0) < 0)
		return 0;
	return add_once(p, path, profdb_kernel_fd(p->db), name, err);
}

static int add_stored(struct pack *p, const struct wanted *w, const char *name,
		      struct base_err *err)
{
	bool dyn = w->kind == PROFDB_DYNAMIC;
	int r, fd = dyn ? profdb_dyn_fd(p->db) : profdb_kernel_fd(p->db);
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", dyn ? "dyn" : "kernel", name);
	r = add_once(p, path, fd, name, err);
	if (r >= 0 && !dyn)
		r = add_beside(p, name, ".code", err);
	if (r >= 0 && !dyn)
		r = add_beside(p, name, ".text", err);
	return r;
}

static int add_ordinary(struct pack *p, const struct wanted *w, const char *file,
			struct base_err *err)
{
	char path[128];

	profdb_image_path(&w->id, path);
	return add_once(p, path, AT_FDCWD, file, err);
}

static enum image_kind image_kind_of(enum profdb_kind kind)
{
	return kind == PROFDB_KERNEL	? IMAGE_KERNEL
	       : kind == PROFDB_DYNAMIC ? IMAGE_DYNAMIC
	       : kind == PROFDB_VDSO	? IMAGE_VDSO
					: IMAGE_FILE;
}

/* A file that cannot be read is reported: the rest is worth packing. */
static int pack_image(struct pack *p, const struct wanted *w, struct base_err *err)
{
	const struct image_query q = { .kind = image_kind_of(w->kind),
				       .id = w->id,
				       .known = w->known,
				       .text = w->text,
				       .paths = (const char *const *)w->paths };
	struct base_err why = { 0 };
	struct image *img;
	int r;

	if (image_open(p->store, &q, &img, &why) < 0) {
		warn(p, &why);
		p->lacks |= w->kind != PROFDB_FILE;
		return 0;
	}
	r = w->kind == PROFDB_FILE ? add_ordinary(p, w, image_path(img), &why)
				   : add_stored(p, w, image_path(img), &why);
	image_close(img);
	if (r == -ENOMEM || r == -ENOSPC || r == -EIO)
		return base_fail(err, r, "%s", why.text);
	if (r < 0)
		on_bad(p, NULL, &why);
	return 0;
}

static int pack_costs(struct pack *p, const struct wanted *w, struct base_err *err)
{
	char **files = profdb_costs_files(p->db, &w->id), path[300];
	int r = files ? 0 : base_fail_errno(err, -ENOMEM, "cannot pack costs");

	for (size_t i = 0; r >= 0 && files[i]; i++) {
		snprintf(path, sizeof(path), "costs/%s", files[i]);
		r = add_once(p, path, profdb_dir_fd(p->db), path, err);
	}
	free(files);
	return r;
}

static int pack_images(struct pack *p, bool images, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->nr_wanted; i++) {
		const struct wanted *w = &p->wanted[i];

		/* Without an identity nobody could tell that a copy is the image. */
		if (w->kind != PROFDB_FILE || (images && w->id.len > 1 && w->known == IMAGE_BY_ID))
			r = pack_image(p, w, err);
		if (r >= 0)
			r = pack_costs(p, w, err);
	}
	return r;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int pack_all(struct pack *p, const struct select *sel, bool images, struct base_err *err)
{
	char *dir;
	int r = pack_epochs(p, sel, err);

	if (r >= 0)
		r = image_store_open(profdb_dyn_fd(p->db), profdb_kernel_fd(p->db), &p->store);
	if (r >= 0 && asprintf(&dir, "%s/" PROFDB_IMAGES, profdb_path(p->db)) >= 0) {
		r = image_store_images(p->store, dir);
		free(dir);
	}
	return r < 0 ? r : pack_images(p, images, err);
}

static void release(struct pack *p)
{
	for (size_t i = 0; i < p->nr_wanted; i++)
		free(p->wanted[i].paths);
	free(p->wanted);
	base_map_release(&p->known);
	image_store_close(p->store);
	tarball_discard(p->w);
	profdb_close(p->db);
}

int tar_pack(const char *prog, const struct select *sel, const struct tar_also *also,
	     const char *file, struct tar_sum *sum, struct base_err *err)
{
	struct pack p = { .prog = prog, .values = also->values };
	int r = profdb_open(sel->db, false, &p.db, err), lock = -1;

	if (r >= 0)
		r = tarball_create(file, &p.w, err);
	/* No pseudo-image goes meanwhile; who may not write the database cannot see to that. */
	if (r >= 0)
		lock = profdb_dyn_lock(p.db, false, 10000, NULL);
	if (r >= 0)
		r = pack_all(&p, sel, also->images, err);
	if (lock >= 0)
		close(lock);
	if (r >= 0)
		r = tarball_finish(p.w, err);
	if (r >= 0)
		r = tar_sum(tarball_added(p.w), sum, err);
	release(&p);
	return r < 0 ? base_fail_errno(err, r, "cannot pack '%s'", sel->db) : p.lacks;
}
