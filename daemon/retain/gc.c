/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Epochs are chosen for removal. Mark: what the profiles of all epochs refer to. Sweep: under a
 * lock that keeps daemons from writing images, and only what is still the file that was looked at.
 * A daemon makes the images that it has samples for newer than its last flush before each flush
 * (write.c), so that no profile that comes in between can refer to one that goes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gc_epoch.h"
#include "image.h"
#include "kernel.h"

enum { BLOCK = 4096, DEPTH = 4 };

/* ---- how much epochs take -------------------------------------------------------------------- */

/* File systems report blocks late, or packed: a size for a total is computed from the length. */
static uint64_t block_len(uint64_t len)
{
	return base_align_up(len, BLOCK);
}

static uint64_t tree_len(int dir_fd, const char *name, int depth)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint64_t sum = BLOCK;
	struct stat st;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && depth)
			sum += tree_len(fd, entry->d_name, depth - 1);
		else if (S_ISREG(st.st_mode))
			sum += block_len((uint64_t)st.st_size);
	}
	closedir(dir);
	return sum;
}

uint64_t gc_tree_len(int dir_fd, const char *name)
{
	return tree_len(dir_fd, name, DEPTH);
}

/* ---- which epochs go ------------------------------------------------------------------------- */

static int by_name(const void *name, const void *item)
{
	return strcmp(name, ((const struct gc_epoch *)item)->name);
}

/* NULL: it is none of them. */
static const struct gc_epoch *epochs_find(const struct gc_epochs *e, const char *name)
{
	return e->nr ? bsearch(name, e->v, e->nr, sizeof(*e->v), by_name) : NULL;
}

static void note_old(void *ctx, const char *name)
{
	/* Found in what the caller owns. */
	struct gc_epoch *epoch = (struct gc_epoch *)epochs_find(ctx, name);

	if (epoch)
		epoch->old = true;
}

static int add_epoch(struct profdb *db, bool sized, const char *name, struct gc_epochs *out)
{
	int r = base_grow(&out->v, &out->cap, out->nr + 1, sizeof(*out->v));
	struct gc_epoch *e;

	if (r < 0)
		return r;
	e = &out->v[out->nr];
	*e = (struct gc_epoch){ .name = strdup(name), .rank = GC_STAYS };
	if (!e->name)
		return -ENOMEM;
	out->nr++;
	if (sized) {
		e->len = gc_tree_len(profdb_dir_fd(db), name);
		e->finished = profdb_epoch_finished(db, name);
	}
	return 0;
}

/* The old ones first: of the others those go that are too much, and only then. */
static void give_ranks(struct gc_epochs *e)
{
	size_t rank = 0;

	for (size_t i = 0; i < e->nr; i++)
		if (e->v[i].old)
			e->v[i].rank = ++rank;
	e->removed = rank;
	for (size_t i = 0; i < e->nr; i++)
		if (!e->v[i].old && e->v[i].finished)
			e->v[i].rank = ++rank;
}

/* All that there are, with their ranks: the old ones if @config wants them, then, with a size,
 * finished ones. 0 or negative. */
static int epochs_list(struct profdb *db, const struct gc_config *config, struct gc_epochs *out,
		       struct base_err *err)
{
	char **names = profdb_epochs(db, err);
	int r = names ? 0 : -EIO;

	for (size_t i = 0; r == 0 && names[i]; i++)
		r = add_epoch(db, config->size, names[i], out);
	if (names && r < 0)
		base_fail_errno(err, r, "cannot list epochs");
	free(names);
	if (r == 0 && config->old)
		r = profdb_epochs_expire(db, config->now, true, note_old, out, err);
	give_ranks(out);
	return r < 0 ? r : 0;
}

static void epochs_release(struct gc_epochs *e)
{
	for (size_t i = 0; i < e->nr; i++)
		free(e->v[i].name);
	free(e->v);
	*e = (struct gc_epochs){ 0 };
}

static uint64_t len_of_rank(const struct gc_epochs *e, size_t rank)
{
	for (size_t i = 0; i < e->nr; i++)
		if (e->v[i].rank == rank)
			return e->v[i].len;
	return 0;
}

/* Bytes that are freed with the epoch of @rank (0: without any reference). */
static uint64_t freed_with(const struct gc_file *files, size_t nr, uint64_t young_ns, size_t rank)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < nr; i++)
		if (files[i].last == rank && files[i].time_ns < young_ns)
			sum += block_len(files[i].len);
	return sum;
}

uint64_t gc_epochs_choose(struct gc_epochs *e, const struct gc_file *files, size_t nr,
			  uint64_t young_ns, uint64_t total, uint64_t size)
{
	size_t last = 0;
	uint64_t freed;

	for (size_t i = 0; i < e->nr; i++)
		if (e->v[i].rank != GC_STAYS && e->v[i].rank > last)
			last = e->v[i].rank;
	for (size_t rank = 0; rank <= last; rank++) {
		if (rank > e->removed && total <= size)
			break;
		/* Files that went since they were listed (folding, a quota) are not in @total. */
		freed = len_of_rank(e, rank) + freed_with(files, nr, young_ns, rank);
		total -= freed < total ? freed : total;
		e->removed = rank > e->removed ? rank : e->removed;
	}
	return total;
}

/* ---- marks ----------------------------------------------------------------------------------- */

/* The references of all profiles, each with the rank of the last epoch that has it. */
struct gc_marks {
	struct base_map ids, names; /* referenced images by id, and by name */
	/* Kernels, by as much of an id as a file name of <db>/kernel has. */
	struct base_map kernels;
	/* A profile cannot be read that may refer to any of them, the first of these: @why. */
	bool all_kernels, all_costs, all_copies;
	struct base_err why;
};

/* The map's values are ranks, not addresses; 0 is that of what is not in it. */
static int refer(struct base_map *to, const void *key, size_t len, size_t rank)
{
	uintptr_t had = (uintptr_t)base_map_get(to, key, len);

	return had >= rank ? 0 : base_map_set(to, key, len, (void *)(uintptr_t)rank);
}

static size_t rank_in(const struct base_map *m, const void *key, size_t len)
{
	return (size_t)(uintptr_t)base_map_get(m, key, len);
}

static size_t kernel_len(const struct base_id *id)
{
	return id->len < KERNEL_FILE_ID ? id->len : KERNEL_FILE_ID;
}

/* 0 or -ENOMEM. */
static int gc_marks_id(struct gc_marks *m, size_t rank, const struct base_id *id)
{
	int r = id->len ? refer(&m->ids, id->bytes, id->len, rank) : 0;

	return r < 0 || !id->len ? r : refer(&m->kernels, id->bytes, kernel_len(id), rank);
}

static int mark_name(struct gc_marks *m, size_t rank, const char *path)
{
	path = base_path_name(path);
	return *path ? refer(&m->names, path, strlen(path), rank) : 0;
}

/* 0 or -ENOMEM. The name too, where nothing else tells: a note holds only so many of the build-ids
 * that its image had, and old profiles may hold none. */
static int gc_marks_profile(struct gc_marks *m, size_t rank, const struct profdb_profile *p)
{
	const struct base_id *id = profdb_profile_image(p);
	const char *path;
	int r = gc_marks_id(m, rank, id);

	if (profdb_profile_kind(p) != PROFDB_DYNAMIC && id->len)
		return r;
	for (size_t i = 0; r == 0 && (path = profdb_profile_path(p, i)); i++)
		r = mark_name(m, rank, path);
	return r;
}

/* 0 or -ENOMEM. Traces went where no sample was; who called is no pseudo-image for sure, but may be
 * one. */
static int gc_marks_values(struct gc_marks *m, size_t rank, const struct profdb_values *v)
{
	int r = gc_marks_profile(m, rank, profdb_values_header(v));
	struct base_id id;
	const char *path;

	for (size_t i = 1; r == 0 && (path = profdb_values_image(v, i, &id)); i++) {
		r = gc_marks_id(m, rank, &id);
		r = r < 0 ? r : mark_name(m, rank, path);
	}
	return r;
}

/* One of a file about all images. */
static int gc_marks_image(struct gc_marks *m, size_t rank, const struct profdb_image_ref *i)
{
	int r = gc_marks_id(m, rank, &i->id);

	if (r == 0 && (i->kind == PROFDB_DYNAMIC || !i->id.len))
		r = mark_name(m, rank, i->path);
	if (r == 0 && i->stem)
		r = mark_name(m, rank, i->stem);
	return r;
}

/*
 * An unreadable file whose name is that of another kind refers to no pseudo-image; values may have
 * callers in one.
 */
static bool is_other(const char *file)
{
	static const char *const kinds[] = { ".file.", ".kernel.", ".vdso.", ".named." };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strstr(file, kinds[i]) && !strstr(file, ".dynamic") && !strstr(file, ".values"))
			return true;
	return false;
}

/* False: it may be of a pseudo-image. */
static bool gc_marks_unreadable(struct gc_marks *m, const char *file, const struct base_err *why)
{
	if (!is_other(file))
		return false;
	if (!m->all_costs)
		m->why = *why;
	m->all_costs = true;
	m->all_copies |= strstr(file, ".file.") != NULL;
	m->all_kernels |= strstr(file, ".kernel.") || strstr(file, ".vdso.");
	return true;
}

static void gc_marks_release(struct gc_marks *m)
{
	base_map_release(&m->ids);
	base_map_release(&m->names);
	base_map_release(&m->kernels);
}

/* 0: none does. */
static size_t gc_marks_id_rank(const struct gc_marks *m, const struct base_id *id)
{
	return rank_in(&m->ids, id->bytes, id->len);
}

/* 0: none does. */
static size_t gc_marks_name_rank(const struct gc_marks *m, const char *name)
{
	return rank_in(&m->names, name, strlen(name));
}

/*
 * The rank of <db>/kernel/@file: @id is the part of an id in its name, @stem_len bytes stand before
 * it.
 */
static size_t gc_marks_kernel_rank(const struct gc_marks *m, const char *file, size_t stem_len,
				   const struct base_id *id)
{
	size_t a = rank_in(&m->kernels, id->bytes, kernel_len(id)),
	       b = rank_in(&m->names, file, stem_len);

	return a > b ? a : b;
}

/* A daemon writes its images within this time, but for very many. */
enum { LOCK_MS = 60000, ATTEMPTS = 20 };
/* Costs of blocks stay so long whatever is sampled. */
#define COSTS_NS (7 * UINT64_C(86400000000000))

struct gc {
	struct profdb *db;
	const struct gc_config *config;
	struct gc_epochs epochs;
	const struct gc_epoch *epoch; /* being read; NULL: it came since, and stays */
	const char *name, *platform;  /* names of the profile that is being read */
	struct gc_marks marks;
	struct gc_file *files;
	size_t nr, cap;
	uint64_t now_ns, young_ns; /* times by the file system's clock */
	bool has_costs;		   /* there are files of costs */
	struct base_err *err;
	int error;
};

static uint64_t time_of(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
}

/* ---- what is referred to --------------------------------------------------------------------- */

static size_t rank_now(const struct gc *gc)
{
	return gc->epoch ? gc->epoch->rank : GC_STAYS;
}

static int mark(void *ctx, const char *file, struct profdb_profile *p)
{
	struct gc *gc = ctx;
	int r = gc_marks_profile(&gc->marks, rank_now(gc), p);

	(void)file;
	profdb_profile_free(p);
	return r;
}

static int mark_values(void *ctx, const char *file, struct profdb_values *v)
{
	struct gc *gc = ctx;
	int r = gc_marks_values(&gc->marks, rank_now(gc), v);

	(void)file;
	profdb_values_free(v);
	return r;
}

static void unreadable(void *ctx, const char *file, const struct base_err *why)
{
	struct gc *gc = ctx;
	struct base_err placed = { 0 };

	base_fail(&placed, why->code, "%s (epoch %s, platform %s)", why->text, gc->name,
		  gc->platform);
	/* A profile that will be removed anyway keeps nothing. */
	if (gc->error || rank_now(gc) <= gc->epochs.removed ||
	    gc_marks_unreadable(&gc->marks, file, &placed))
		return;
	gc->error = base_fail(gc->err, -DCPI_EFORMAT,
			      "cannot tell which pseudo-images '%s/%s/%s' refers to: %s",
			      profdb_path(gc->db), gc->name, gc->platform, why->text);
	base_hint(gc->err, "nothing was removed; %s first",
		  *file == '.' ? "move it, and '.new-' files beside it, out of the database"
			       : "repair or remove that file");
}

/* An image that has callers alone has no profile. */
static int mark_callpaths(struct gc *gc, const char *epoch, const char *platform)
{
	const struct profdb_image_ref *i;
	struct base_err why = { 0 };
	struct profdb_callpaths *c;
	int r = profdb_callpaths_load(gc->db, epoch, platform, &c, &why);

	if (r == -ENOMEM || r == -ENOENT)
		return r == -ENOENT ? 0 : r;
	if (r < 0) {
		unreadable(gc, "callpaths", &why);
		return 0;
	}
	r = 0;
	for (size_t n = 0; r == 0 && (i = profdb_callpaths_image(c, n)); n++)
		r = gc_marks_image(&gc->marks, rank_now(gc), i);
	profdb_callpaths_free(c);
	return r;
}

static int mark_workloads(struct gc *gc, const char *epoch, const char *platform)
{
	const struct profdb_image_ref *i;
	struct base_err why = { 0 };
	struct profdb_workloads *w;
	int r = profdb_workloads_load_images(gc->db, epoch, platform, &w, &why);

	if (r == -ENOMEM || r == -ENOENT)
		return r == -ENOENT ? 0 : r;
	if (r < 0) {
		unreadable(gc, "workloads", &why);
		return 0;
	}
	r = 0;
	for (size_t n = 0; r == 0 && (i = profdb_workloads_image(w, n)); n++)
		r = gc_marks_image(&gc->marks, rank_now(gc), i);
	profdb_workloads_free(w);
	return r;
}

static int mark_platform(struct gc *gc, const char *epoch, const char *platform)
{
	struct base_err own = { 0 };
	int r;

	gc->name = epoch;
	gc->platform = platform;
	r = profdb_walk(gc->db, epoch, platform, mark, unreadable, gc, &own);
	if (r >= 0)
		r = profdb_walk_values(gc->db, epoch, platform, NULL, mark_values, unreadable, gc,
				       &own);
	if (r >= 0)
		r = mark_callpaths(gc, epoch, platform);
	if (r >= 0)
		r = mark_workloads(gc, epoch, platform);
	/* Another process is removing epochs at this moment. */
	if (r == -ENOENT)
		return 0;
	if (r < 0 && !gc->err->code)
		*gc->err = own;
	return r < 0 ? r : gc->error;
}

/* A file written since a daemon's last flush may be referred to by the next one. */
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
		gc->epoch = epochs_find(&gc->epochs, epochs[i]);
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

static int folder_fd(const struct gc *gc, enum gc_folder folder)
{
	switch (folder) {
	case GC_KERNEL:
		return profdb_kernel_fd(gc->db);
	case GC_COSTS:
		return profdb_costs_fd(gc->db);
	default:
		return profdb_dyn_fd(gc->db);
	}
}

/* Complete ones, and what is left of writing when a daemon is killed. */
static bool is_ours(enum gc_folder folder, const char *name)
{
	size_t len = strlen(name);
	struct base_id id;

	if (strncmp(name, ".tmp-", 5) == 0)
		return true;
	if (folder == GC_KERNEL)
		return kernel_file_id(name, &id) >= 0;
	if (folder == GC_COSTS)
		return profdb_costs_file_id(name, &id) >= 0;
	return base_copy_id(name, &id) == 0 ||
	       (len > 4 && name[0] != '.' && strcmp(name + len - 4, ".dyn") == 0);
}

static int add_file(struct gc *gc, enum gc_folder folder, const char *name)
{
	struct gc_file file = { .folder = folder };
	struct stat st;
	int r;

	if (fstatat(folder_fd(gc, folder), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
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

static int list_folder(struct gc *gc, enum gc_folder folder)
{
	struct dirent *entry = NULL;
	DIR *dir;
	int r = base_dir_open(folder_fd(gc, folder), ".", &dir);

	if (r < 0)
		return r;
	while (r == 0 && (errno = 0, entry = readdir(dir)))
		if (is_ours(folder, entry->d_name))
			r = add_file(gc, folder, entry->d_name);
	if (r == 0 && !entry)
		r = -errno;
	closedir(dir);
	return r;
}

/* A quota is one of pseudo-images. */
static int list_files(struct gc *gc)
{
	int r = list_folder(gc, GC_DYN);

	for (int i = GC_DYN + 1; i < GC_NR_FOLDERS && r == 0 && !gc->config->quota; i++)
		if (folder_fd(gc, (enum gc_folder)i) >= 0)
			r = list_folder(gc, (enum gc_folder)i);
	return r;
}

int gc_measure(struct profdb *db, uint64_t *len, size_t *nr)
{
	struct gc gc = { .db = db };
	int r = profdb_dyn_fd(db) < 0 ? 0 : list_folder(&gc, GC_DYN);

	*len = 0;
	*nr = gc.nr;
	for (size_t i = 0; i < gc.nr; i++) {
		*len += gc.files[i].len;
		free(gc.files[i].name);
	}
	free(gc.files);
	return r;
}

static int add_user(struct quota_user **users, size_t *nr, size_t *cap, struct quota_user add)
{
	size_t i = 0;
	int r = 0;

	while (i < *nr && (*users)[i].uid != add.uid)
		i++;
	if (i == *nr)
		r = base_grow(users, cap, *nr + 1, sizeof(**users));
	if (r < 0)
		return r;
	if (i == *nr)
		(*users)[(*nr)++] = (struct quota_user){ .uid = add.uid };
	(*users)[i].len += add.len;
	return 0;
}

int gc_measure_users(struct profdb *db, struct quota_user **users, size_t *nr)
{
	struct gc gc = { .db = db };
	int r = profdb_dyn_fd(db) < 0 ? 0 : list_folder(&gc, GC_DYN);
	size_t cap = 0;

	*users = NULL;
	*nr = 0;
	for (size_t i = 0; i < gc.nr; i++) {
		struct quota_user u = { base_reader_of(profdb_dyn_fd(db), gc.files[i].name),
					gc.files[i].len };

		u.uid = u.uid == UINT32_MAX ? geteuid() : u.uid;
		if (r >= 0)
			r = add_user(users, nr, &cap, u);
		free(gc.files[i].name);
	}
	free(gc.files);
	return r;
}

/* Its costs, under whatever build-id it had, stay as long as it does. */
static int mark_known_as(struct gc *gc, const struct image *img, size_t rank)
{
	struct base_id id;
	int r = 0;

	for (size_t i = 0; r == 0 && rank && image_known_as(img, i, &id); i++)
		r = gc_marks_id(&gc->marks, rank, &id);
	return r;
}

/* One that cannot be read may be anybody's, and stays. */
static size_t last_use_dyn(struct gc *gc, const struct gc_file *file)
{
	size_t rank, last = gc_marks_name_rank(&gc->marks, file->name);
	char path[64 + 256];
	struct base_err why = { 0 };
	struct image *img = NULL;
	struct base_id id;

	if (file->name[0] == '.' || (last == GC_STAYS && !gc->has_costs))
		return last;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", profdb_dyn_fd(gc->db), file->name);
	if (image_open_path(path, IMAGE_DYNAMIC, &img, &why) == -ENOENT)
		return GC_STAYS;
	if (!img) {
		struct base_err err = { 0 };

		base_fail(&err, why.code, "'%s' stays: %s", file->name, base_strerror(why.code));
		if (gc->config->kept && last != GC_STAYS)
			gc->config->kept(gc->config->ctx, &err);
		return GC_STAYS;
	}
	for (size_t i = 0; last != GC_STAYS && image_known_as(img, i, &id); i++) {
		rank = gc_marks_id_rank(&gc->marks, &id);
		last = rank > last ? rank : last;
	}
	if (mark_known_as(gc, img, last) < 0)
		gc->marks.all_costs = true;
	image_close(img);
	return last;
}

/* It may say of itself that it is anything: its name tells. */
static size_t last_use_copy(const struct gc *gc, const struct base_id *id)
{
	return gc->marks.all_copies ? GC_STAYS : gc_marks_id_rank(&gc->marks, id);
}

/* Symbols and code of one kernel stay together: dcpikdiff may just have added one to the other. */
static void mark_young_kernels(struct gc *gc)
{
	struct base_id id;

	for (size_t i = 0; i < gc->nr; i++)
		if (gc->files[i].folder == GC_KERNEL && gc->files[i].time_ns >= gc->young_ns &&
		    kernel_file_id(gc->files[i].name, &id) >= 0 &&
		    gc_marks_id(&gc->marks, GC_STAYS, &id) < 0)
			gc->marks.all_kernels = true;
}

static size_t last_use_kernel(const struct gc *gc, const struct gc_file *file)
{
	struct base_id id;
	int len = kernel_file_id(file->name, &id);

	/*
	 * A killed daemon left a half-written file, whose name belongs to another image from here
	 * on.
	 */
	if (len < 0 || file->name[0] == '.')
		return 0;
	if (gc->marks.all_kernels)
		return GC_STAYS;
	return gc_marks_kernel_rank(&gc->marks, file->name, (size_t)len, &id);
}

/* Users measured them, often before the first sample. */
static size_t last_use_costs(const struct gc *gc, const struct gc_file *file)
{
	struct base_id id;

	if (gc->marks.all_costs || file->time_ns + COSTS_NS >= gc->now_ns)
		return GC_STAYS;
	return profdb_costs_file_id(file->name, &id) < 0 ? 0 : gc_marks_id_rank(&gc->marks, &id);
}

static size_t last_use(struct gc *gc, const struct gc_file *file)
{
	struct base_id id;

	if (file->folder == GC_DYN && base_copy_id(file->name, &id) == 0)
		return last_use_copy(gc, &id);
	switch (file->folder) {
	case GC_KERNEL:
		return last_use_kernel(gc, file);
	case GC_COSTS:
		return last_use_costs(gc, file);
	default:
		return last_use_dyn(gc, file);
	}
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
	int r = 0;

	for (size_t i = 0; i < gc->nr; i++) {
		const struct gc_file *file = &gc->files[i];
		int dir = folder_fd(gc, file->folder);
		struct stat st = { 0 };
		bool gone;

		/* Another process removed it, or a daemon removed its own. */
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
	for (int i = 0; i < GC_NR_FOLDERS && result->nr_removed && !gc->config->dry_run; i++)
		if (folder_fd(gc, (enum gc_folder)i) >= 0)
			(void)base_sync_dir(folder_fd(gc, (enum gc_folder)i));
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

static void say_stays(const struct gc *gc, const char *what)
{
	const struct gc_config *c = gc->config;
	struct base_err err = { 0 };

	base_fail(&err, gc->marks.why.code, "%s stays: %s", what, gc->marks.why.text);
	if (c->kept)
		c->kept(c->ctx, &err);
}

static void say_unreadable(const struct gc *gc)
{
	bool kernels = false, costs = false, copies = false;
	struct base_id id;

	for (size_t i = 0; i < gc->nr; i++) {
		kernels |= gc->files[i].folder == GC_KERNEL && gc->marks.all_kernels;
		costs |= gc->files[i].folder == GC_COSTS && gc->marks.all_costs;
		copies |= gc->marks.all_copies && base_copy_id(gc->files[i].name, &id) == 0;
	}
	if (kernels || costs)
		say_stays(gc, !costs	? "all of 'kernel'"
			      : kernels ? "all of 'kernel' and 'costs'"
					: "all of 'costs'");
	if (copies)
		say_stays(gc, "each copy of a removed file");
}

/* Files that can be made again are removed before an epoch is. */
static uint64_t choose_epochs(struct gc *gc, uint64_t size)
{
	uint64_t total = gc_tree_len(profdb_dir_fd(gc->db), "."), rest;

	rest = gc_epochs_choose(&gc->epochs, gc->files, gc->nr, gc->young_ns, total, UINT64_MAX);
	if (rest > size)
		total -= profdb_index_shrink(gc->db, rest - size, gc->config->dry_run);
	return gc_epochs_choose(&gc->epochs, gc->files, gc->nr, gc->young_ns, total, size);
}

/* After all has been read; the pseudo-images first, which costs are of. */
static void choose(struct gc *gc, struct gc_result *result)
{
	const struct gc_config *c = gc->config;

	mark_young_kernels(gc);
	for (size_t i = 0; i < gc->nr; i++)
		gc->has_costs |= gc->files[i].folder == GC_COSTS;
	for (size_t i = 0; i < gc->nr; i++) {
		gc->files[i].last = last_use(gc, &gc->files[i]);
		profdb_lock_heartbeat(gc->db);
	}
	say_unreadable(gc);
	if (c->size)
		result->size = choose_epochs(gc, c->size);
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

	/*
	 * A process that may not write there cannot remove either; and not all file systems know
	 * files without names.
	 */
	if (fd < 0)
		fd = profdb_dyn_lock(gc->db, false, LOCK_MS, NULL);
	if (fd < 0)
		r = fd;
	else if (futimens(fd, NULL) < 0 || fstat(fd, &st) < 0)
		r = -errno;
	gc->young_ns = r == 0 ? time_of(&st) : UINT64_MAX;
	gc->now_ns = r == 0 ? gc->young_ns : (uint64_t)time(NULL) * 1000000000;
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
		r = profdb_keep_removing(db, err);
	/* In this order: what is old now, which daemons' flushes count, then what they refer to. */
	if (r == 0 && profdb_dyn_fd(db) >= 0) {
		r = start_time(&gc);
		if (r == 0)
			r = list_files(&gc);
		if (r < 0)
			base_fail_errno(err, r, "cannot look through the images of '%s'",
					profdb_path(db));
	}
	if (r == 0)
		r = each_platform(&gc, false);
	if (r == 0)
		r = epochs_list(db, config, &gc.epochs, err);
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
	epochs_release(&gc.epochs);
	gc_marks_release(&gc.marks);
	return r;
}
