/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mark: what the profiles of all epochs refer to. Sweep: under a lock that keeps daemons from
 * writing images, and only what is still the file that was looked at. A daemon makes the images
 * that it has samples for newer than its last flush before each flush (dyn.c), so that no profile
 * that comes in between can refer to one that goes.
 */
#include "gc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gc_epoch.h"
#include "image.h"

/* A daemon writes its images within this time, but for very many. */
enum { LOCK_MS = 60000, ATTEMPTS = 20 };

struct gc {
	struct profdb *db;
	const struct gc_config *config;
	struct gc_epochs epochs;
	const struct gc_epoch *epoch; /* being read; NULL: it came since, and stays */
	struct base_map ids, names;   /* what profiles refer to: the ranks of the last that do */
	struct gc_file *files;
	size_t nr, cap;
	uint64_t young_ns;
	struct base_err *err;
	int error;
};

static uint64_t time_of(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
}

/* ---- what is referred to --------------------------------------------------------------------- */

/* Ranks are no addresses, but fit: 0 is what is not in the map. */
static int refer(const struct gc *gc, struct base_map *to, const void *key, size_t len)
{
	size_t rank = gc->epoch ? gc->epoch->rank : GC_STAYS;
	uintptr_t had = (uintptr_t)base_map_get(to, key, len);

	return had >= rank ? 0 : base_map_set(to, key, len, (void *)(uintptr_t)rank);
}

/* The name too: a note holds only so many of the build-ids that its image had. */
static int mark_image(struct gc *gc, const struct base_id *id, const char *path)
{
	int r = id->len ? refer(gc, &gc->ids, id->bytes, id->len) : 0;

	path = path ? base_path_name(path) : "";
	return r < 0 || !*path ? r : refer(gc, &gc->names, path, strlen(path));
}

static int mark_header(struct gc *gc, const struct profdb_profile *p)
{
	const struct base_id *id = profdb_profile_image(p);
	const char *path;
	int r;

	if (profdb_profile_kind(p) != PROFDB_DYNAMIC)
		return 0;
	r = mark_image(gc, id, NULL);
	for (size_t i = 0; r == 0 && (path = profdb_profile_path(p, i)); i++)
		r = mark_image(gc, id, path);
	return r;
}

static int mark(void *ctx, const char *file, struct profdb_profile *p)
{
	int r = mark_header(ctx, p);

	(void)file;
	profdb_profile_free(p);
	return r;
}

/* Windows went where no sample was; who called is no pseudo-image for sure, but may be one. */
static int mark_values(void *ctx, const char *file, struct profdb_values *v)
{
	int r = mark_header(ctx, profdb_values_header(v));
	struct base_id id;
	const char *path;

	(void)file;
	for (size_t i = 1; r == 0 && (path = profdb_values_image(v, i, &id)); i++)
		r = mark_image(ctx, &id, path);
	profdb_values_free(v);
	return r;
}

/* By its name a profile that cannot be read is none of a pseudo-image. */
static bool is_other(const char *file)
{
	static const char *const kinds[] = { ".file.", ".kernel.", ".vdso.", ".named." };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strstr(file, kinds[i]) && !strstr(file, ".dynamic"))
			return true;
	return false;
}

static void unreadable(void *ctx, const char *file, const struct base_err *why)
{
	struct gc *gc = ctx;

	/* What goes anyway keeps nothing. */
	if (gc->error || is_other(file) || (gc->epoch && gc->epoch->rank <= gc->epochs.removed))
		return;
	gc->error = base_fail(gc->err, -DCPI_EFORMAT,
			      "cannot tell which pseudo-images an epoch refers to: %s", why->text);
	base_hint(gc->err, "nothing was removed; repair or remove that file first");
}

static int mark_platform(struct gc *gc, const char *epoch, const char *platform)
{
	struct base_err own = { 0 };
	int r = profdb_walk(gc->db, epoch, platform, mark, unreadable, gc, &own);

	if (r >= 0)
		r = profdb_walk_values(gc->db, epoch, platform, NULL, mark_values, unreadable, gc,
				       &own);
	/* Somebody removes epochs at this moment. */
	if (r == -ENOENT)
		return 0;
	if (r < 0 && !gc->err->code)
		*gc->err = own;
	return r < 0 ? r : gc->error;
}

/* What a daemon wrote since its last flush may be referred to by the next one. */
static void spare_young(struct gc *gc, const char *epoch, const char *platform)
{
	uint64_t written_ns;

	if (!profdb_epoch_open(gc->db, epoch, platform) || !profdb_lock_held(gc->db, platform))
		return;
	written_ns = profdb_epoch_written(gc->db, epoch, platform);
	if (written_ns < gc->young_ns)
		gc->young_ns = written_ns;
}

static int each_platform(struct gc *gc, bool marking)
{
	char **epochs = profdb_epochs(gc->db, gc->err);
	int r = epochs ? 0 : -EIO;

	for (size_t i = 0; r == 0 && epochs[i]; i++) {
		struct base_err own = { 0 };
		char **platforms = profdb_platforms(gc->db, epochs[i], &own);

		if (!platforms && own.code != -ENOENT) {
			*gc->err = gc->err->code ? *gc->err : own;
			r = own.code < 0 ? own.code : -EIO;
		}
		gc->epoch = gc_epochs_find(&gc->epochs, epochs[i]);
		for (size_t k = 0; r == 0 && platforms && platforms[k]; k++) {
			if (marking)
				r = mark_platform(gc, epochs[i], platforms[k]);
			else
				spare_young(gc, epochs[i], platforms[k]);
		}
		free(platforms);
	}
	free(epochs);
	return r;
}

/* Once more where epochs were joined meanwhile: one may have been read before, the other after. */
static int mark_all(struct gc *gc)
{
	int r;

	for (int i = 0; i < ATTEMPTS; i++) {
		r = each_platform(gc, true);
		if (!profdb_epochs_changed(gc->db))
			return r;
		gc->error = 0;
		*gc->err = (struct base_err){ 0 };
	}
	return base_fail(gc->err, -DCPI_EBUSY, "epochs are being joined all the time");
}

/* ---- what there is --------------------------------------------------------------------------- */

/* Complete ones, and what is left of writing when a daemon is killed. */
static bool is_ours(const char *name)
{
	size_t len = strlen(name);

	return strncmp(name, ".tmp-", 5) == 0 ||
	       (len > 4 && name[0] != '.' && strcmp(name + len - 4, ".dyn") == 0);
}

static int add_file(struct gc *gc, const char *name)
{
	struct gc_file file = { 0 };
	struct stat st;
	int r;

	if (fstatat(profdb_dyn_fd(gc->db), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	r = base_grow(&gc->files, &gc->cap, gc->nr + 1, sizeof(*gc->files));
	if (r < 0)
		return r;
	file.name = strdup(name);
	if (!file.name)
		return -ENOMEM;
	file.len = (uint64_t)st.st_size;
	file.time_ns = time_of(&st);
	file.ino = st.st_ino;
	gc->files[gc->nr++] = file;
	return 0;
}

static int list_files(struct gc *gc)
{
	int fd = openat(profdb_dyn_fd(gc->db), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	while (r == 0 && (errno = 0, entry = readdir(dir)))
		if (is_ours(entry->d_name))
			r = add_file(gc, entry->d_name);
	if (r == 0 && !entry)
		r = -errno;
	closedir(dir);
	return r;
}

int gc_measure(struct profdb *db, uint64_t *len, size_t *nr)
{
	struct gc gc = { .db = db };
	int r = profdb_dyn_fd(db) < 0 ? 0 : list_files(&gc);

	*len = 0;
	*nr = gc.nr;
	for (size_t i = 0; i < gc.nr; i++) {
		*len += gc.files[i].len;
		free(gc.files[i].name);
	}
	free(gc.files);
	return r;
}

static size_t rank_in(const struct base_map *m, const void *key, size_t len)
{
	return (size_t)(uintptr_t)base_map_get(m, key, len);
}

/* One that cannot be read may be anybody's, and stays. */
static size_t last_use(struct gc *gc, const struct gc_file *file)
{
	size_t rank, last = rank_in(&gc->names, file->name, strlen(file->name));
	char path[64 + 256];
	struct base_err why = { 0 };
	struct image *img = NULL;
	struct base_id id;

	if (last == GC_STAYS || file->name[0] == '.')
		return last;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", profdb_dyn_fd(gc->db), file->name);
	if (image_open_path(path, IMAGE_DYNAMIC, &img, &why) == -ENOENT)
		return GC_STAYS;
	if (!img) {
		struct base_err err = { 0 };

		base_fail(&err, why.code, "'%s' stays: %s", file->name, base_strerror(why.code));
		if (gc->config->kept)
			gc->config->kept(gc->config->ctx, &err);
		return GC_STAYS;
	}
	for (size_t i = 0; last != GC_STAYS && image_known_as(img, i, &id); i++) {
		rank = rank_in(&gc->ids, id.bytes, id.len);
		last = rank > last ? rank : last;
	}
	image_close(img);
	return last;
}

/* ---- choosing and removing ------------------------------------------------------------------- */

static int by_age(const void *a, const void *b)
{
	const struct gc_file *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

void gc_choose(struct gc_file *files, size_t nr, uint64_t young_ns, uint64_t quota)
{
	uint64_t left = 0;

	if (nr)
		qsort(files, nr, sizeof(*files), by_age);
	for (size_t i = 0; i < nr; i++)
		left += files[i].len;
	for (size_t i = 0; i < nr; i++) {
		files[i].remove =
			!files[i].used && files[i].time_ns < young_ns && (!quota || left > quota);
		left -= files[i].remove ? files[i].len : 0;
	}
}

/* It was written or found in use since: then it is another matter. */
static bool is_same(const struct gc_file *file, const struct stat *st)
{
	return st->st_ino == file->ino && time_of(st) == file->time_ns;
}

static int sweep(struct gc *gc, struct gc_result *result)
{
	int dir = profdb_dyn_fd(gc->db), r = 0;

	for (size_t i = 0; i < gc->nr; i++) {
		const struct gc_file *file = &gc->files[i];
		struct stat st = { 0 };
		bool gone;

		/* Somebody else removed it, or a daemon its own. */
		if (fstatat(dir, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
			continue;
		gone = file->remove && r == 0 && is_same(file, &st);
		if (gone && !gc->config->dry_run && unlinkat(dir, file->name, 0) < 0) {
			r = base_fail_errno(gc->err, -errno, "cannot remove '%s'", file->name);
			gone = false;
		}
		*(gone ? &result->nr_removed : &result->nr_left) += 1;
		*(gone ? &result->removed_len : &result->left_len) += file->len;
		if (gone)
			gc->config->removed(gc->config->ctx, file);
	}
	if (result->nr_removed && !gc->config->dry_run)
		(void)base_sync_dir(dir);
	return r;
}

/* Epochs before what they refer to: who is killed between leaves nothing that leads nowhere. */
static int remove_epochs(struct gc *gc, struct gc_result *result)
{
	int r = 0;

	for (size_t rank = 1; r == 0 && rank <= gc->epochs.removed; rank++) {
		const struct gc_epoch *e = gc->epochs.v;

		while (e->rank != rank)
			e++;
		if (!gc->config->dry_run)
			r = profdb_epoch_remove(gc->db, e->name, gc->err);
		if (r == 0) {
			gc->config->removed_epoch(gc->config->ctx, e->name);
			result->nr_epochs++;
		}
	}
	return r;
}

static int sweep_locked(struct gc *gc, struct gc_result *result)
{
	int lock = -1, r = remove_epochs(gc, result);

	if (r == 0 && !gc->config->dry_run)
		lock = r = profdb_dyn_lock(gc->db, true, LOCK_MS, gc->err);
	if (r >= 0)
		r = sweep(gc, result);
	if (lock >= 0)
		close(lock);
	return r;
}

/* After all has been read. */
static void choose(struct gc *gc, struct gc_result *result)
{
	const struct gc_config *c = gc->config;

	for (size_t i = 0; i < gc->nr; i++)
		gc->files[i].last = last_use(gc, &gc->files[i]);
	if (c->size)
		result->size = gc_epochs_choose(&gc->epochs, gc->files, gc->nr, gc->young_ns,
						gc_tree_len(profdb_dir_fd(gc->db), "."), c->size);
	for (size_t i = 0; i < gc->nr; i++)
		gc->files[i].used = gc->files[i].last > gc->epochs.removed;
	gc_choose(gc->files, gc->nr, gc->young_ns, c->quota);
}

/* The clock of the file system, which may be another machine's. */
static int start_time(struct gc *gc)
{
	struct stat st;
	int fd = openat(profdb_dyn_fd(gc->db), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int r = 0;

	/* Who may not write there removes nothing either; and not all know files without names. */
	if (fd < 0)
		fd = profdb_dyn_lock(gc->db, false, LOCK_MS, NULL);
	if (fd < 0)
		r = fd;
	else if (futimens(fd, NULL) < 0 || fstat(fd, &st) < 0)
		r = -errno;
	gc->young_ns = r == 0 ? time_of(&st) : UINT64_MAX;
	if (gc->config->dry_run)
		r = 0;
	if (fd >= 0)
		close(fd);
	return r;
}

int gc_run(struct profdb *db, const struct gc_config *config, struct gc_result *result,
	   struct base_err *err)
{
	struct gc gc = { .db = db, .config = config, .err = err };
	int r = 0;

	*result = (struct gc_result){ 0 };
	if ((config->old || config->size) && !config->dry_run)
		r = profdb_keep(db, err);
	/* In this order: what is old now, which daemons' flushes count, then what they refer to. */
	if (r == 0 && profdb_dyn_fd(db) >= 0) {
		r = start_time(&gc);
		if (r == 0)
			r = list_files(&gc);
		if (r < 0)
			base_fail_errno(err, r, "cannot look through '%s/dyn'", profdb_path(db));
	}
	if (r == 0)
		r = each_platform(&gc, false);
	if (r == 0)
		r = gc_epochs_list(db, config, &gc.epochs, err);
	if (r == 0)
		r = mark_all(&gc);
	if (r == 0) {
		choose(&gc, result);
		r = sweep_locked(&gc, result);
	}
	if (r == 0 && config->old && !config->dry_run)
		profdb_index_expire(db, config->now);
	for (size_t i = 0; i < gc.nr; i++)
		free(gc.files[i].name);
	free(gc.files);
	gc_epochs_release(&gc.epochs);
	base_map_release(&gc.ids);
	base_map_release(&gc.names);
	return r;
}
