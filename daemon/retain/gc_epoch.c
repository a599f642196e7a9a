/* SPDX-License-Identifier: BSD-2-Clause */
/* The epochs of a database are listed, measured, and chosen for removal. */
#include "gc_epoch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 4096, DEPTH = 4 };

/* ---- how much -------------------------------------------------------------------------------- */

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

/* ---- which ----------------------------------------------------------------------------------- */

static int by_name(const void *name, const void *item)
{
	return strcmp(name, ((const struct gc_epoch *)item)->name);
}

const struct gc_epoch *gc_epochs_find(const struct gc_epochs *e, const char *name)
{
	return e->nr ? bsearch(name, e->v, e->nr, sizeof(*e->v), by_name) : NULL;
}

static void note_old(void *ctx, const char *name)
{
	/* Found in what the caller owns. */
	struct gc_epoch *epoch = (struct gc_epoch *)gc_epochs_find(ctx, name);

	if (epoch)
		epoch->old = true;
}

static int add(struct profdb *db, bool sized, const char *name, struct gc_epochs *out)
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

int gc_epochs_list(struct profdb *db, const struct gc_config *config, struct gc_epochs *out,
		   struct base_err *err)
{
	char **names = profdb_epochs(db, err);
	int r = names ? 0 : -EIO;

	for (size_t i = 0; r == 0 && names[i]; i++)
		r = add(db, config->size, names[i], out);
	if (names && r < 0)
		base_fail_errno(err, r, "cannot list epochs");
	free(names);
	if (r == 0 && config->old)
		r = profdb_epochs_expire(db, config->now, true, note_old, out, err);
	give_ranks(out);
	return r < 0 ? r : 0;
}

void gc_epochs_release(struct gc_epochs *e)
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
