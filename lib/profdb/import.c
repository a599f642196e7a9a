/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles are gathered in ".import-PID" and renamed into place last; all else appears file by
 * file, as the daemon writes it too: what no profile refers to yet harms nobody.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profdb_internal.h"

struct profdb_import {
	struct profdb *db;
	struct profdb_names folders; /* "EPOCH/PLATFORM" */
	size_t nr_done;		     /* number of those in place */
	char name[32];
	int fd;
};

/* ---- places ---------------------------------------------------------------------------------- */

static bool name_ok(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (name[i] == '/' || (unsigned char)name[i] <= ' ' || name[i] == 0x7f)
			return false;
	return len && len <= 240 && name[0] != '.';
}

static bool is_hex(const char *text, size_t min, size_t max)
{
	size_t len = strspn(text, "0123456789abcdef");

	return !text[len] && len >= min && len <= max && !(len & 1);
}

/* "images/.build-id/xx/NAME" */
static int parse_image(const char *path, struct profdb_place *out)
{
	static const char top[] = "images/.build-id/";
	size_t len = strlen(top);

	if (strncmp(path, top, len) != 0 || strlen(path) < len + 3 || path[len + 2] != '/')
		return -EINVAL;
	out->part = PROFDB_PART_IMAGE;
	snprintf(out->folder, sizeof(out->folder), "%.*s/", (int)(len + 2), path);
	if (strspn(path + len, "0123456789abcdef") != 2 || !is_hex(path + len + 3, 2, 62))
		return -EINVAL;
	snprintf(out->name, sizeof(out->name), "%s", path + len + 3);
	return 0;
}

static int parse_profile(const char *path, struct profdb_place *out)
{
	const char *platform = strchr(path, '/'),
		   *name = platform ? strchr(platform + 1, '/') : NULL;

	if (!name || platform - path > PROFDB_EPOCH_LEN ||
	    name - platform - 1 > PROFDB_PLATFORM_MAX || strlen(name + 1) >= sizeof(out->name))
		return -EINVAL;
	snprintf(out->epoch, sizeof(out->epoch), "%.*s", (int)(platform - path), path);
	snprintf(out->platform, sizeof(out->platform), "%.*s", (int)(name - platform - 1),
		 platform + 1);
	snprintf(out->name, sizeof(out->name), "%s", name + 1);
	if (profdb_values_name(out->name, NULL))
		out->part = PROFDB_PART_VALUES;
	else if (!strcmp(out->name, PROFDB_CALLPATHS))
		out->part = PROFDB_PART_CALLPATHS;
	else if (!strcmp(out->name, PROFDB_WORKLOADS))
		out->part = PROFDB_PART_WORKLOADS;
	return profdb_epoch_name_ok(out->epoch) && profdb_platform_name_ok(out->platform) &&
			       profdb_file_name_ok(out->name)
		       ? 0
		       : -EINVAL;
}

static bool ends_as_dyn(const char *name)
{
	size_t len = strlen(name);

	return len > 4 && !strcmp(name + len - 4, ".dyn");
}

int profdb_place_parse(const char *path, struct profdb_place *out)
{
	static const struct {
		const char *folder;
		enum profdb_part part;
	} folders[] = {
		{ "dyn/", PROFDB_PART_DYN },
		{ "kernel/", PROFDB_PART_KERNEL },
		{ "costs/", PROFDB_PART_COSTS },
	};

	*out = (struct profdb_place){ 0 };
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t len = strlen(folders[i].folder);

		if (strncmp(path, folders[i].folder, len) != 0)
			continue;
		if (!name_ok(path + len) ||
		    (folders[i].part == PROFDB_PART_DYN && !ends_as_dyn(path)))
			return -EINVAL;
		out->part = folders[i].part;
		snprintf(out->folder, sizeof(out->folder), "%s", folders[i].folder);
		snprintf(out->name, sizeof(out->name), "%s", path + len);
		return 0;
	}
	return parse_image(path, out) == 0 ? 0 : parse_profile(path, out);
}

void profdb_image_path(const struct base_id *id, char path[128])
{
	char text[BASE_ID_TEXT_LEN];

	base_id_text(id, text);
	snprintf(path, 128, "images/.build-id/%.2s/%s", text, text + 2);
}

/* ---- what is there --------------------------------------------------------------------------- */

static bool is_of_epoch(const struct profdb_place *place)
{
	return place->epoch[0];
}

static int add_folder(struct profdb_import *i, const char *path, struct base_err *err)
{
	char folder[PROFDB_EPOCH_LEN + PROFDB_PLATFORM_MAX + 2];
	struct profdb_place place;
	int r = profdb_place_parse(path, &place);

	if (r < 0)
		return base_fail(err, r, "'%.300s' is no part of a database", path);
	if (!is_of_epoch(&place))
		return 0;
	snprintf(folder, sizeof(folder), "%s/%s", place.epoch, place.platform);
	if (i->folders.nr && !strcmp(i->folders.items[i->folders.nr - 1], folder))
		return 0;
	r = profdb_names_add(&i->folders, folder);
	return r < 0 ? base_fail_errno(err, r, "cannot take in '%s'", path) : 0;
}

static int refuse_double(struct profdb_import *i, struct base_err *err)
{
	for (size_t f = 0; f < i->folders.nr; f++) {
		const char *folder = i->folders.items[f];

		if (faccessat(i->db->fd, folder, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		base_fail(err, -EEXIST, "database '%s' has '%s' already", i->db->path, folder);
		base_hint(err,
			  "its samples would count twice: extract into another database, or "
			  "remove '%s/%s' first",
			  i->db->path, folder);
		return -EEXIST;
	}
	return 0;
}

static bool has(const struct profdb_names *n, const char *name)
{
	for (size_t i = 0; i < n->nr; i++)
		if (!strcmp(n->items[i], name))
			return true;
	return false;
}

/* Refuse profiles that are a part of @epoch already. */
static int refuse_joined(struct profdb_import *i, const char *epoch, struct base_err *err)
{
	struct profdb_names joined = { 0 };
	int r = profdb_joined_read(i->db, epoch, &joined);

	if (r < 0)
		base_fail_errno(err, r, "cannot tell what '%s/%s' was made of", i->db->path, epoch);
	for (size_t f = 0; r >= 0 && f < i->folders.nr; f++) {
		if (!has(&joined, i->folders.items[f]))
			continue;
		r = base_fail(err, -EEXIST, "database '%s' has '%s' already, as a part of '%s'",
			      i->db->path, i->folders.items[f], epoch);
		base_hint(err,
			  "its samples would count twice: extract into another database, or "
			  "remove '%s/%s' first",
			  i->db->path, epoch);
	}
	profdb_names_release(&joined);
	return r;
}

static int refuse_all_joined(struct profdb_import *i, struct base_err *err)
{
	char **epochs = i->folders.nr ? profdb_epochs(i->db, err) : NULL;
	int r = i->folders.nr && !epochs ? -EIO : 0;

	for (size_t e = 0; r >= 0 && epochs && epochs[e]; e++)
		r = refuse_joined(i, epochs[e], err);
	free(epochs);
	return r;
}

/* Where the profiles wait. */
static int make_waiting(struct profdb_import *i, struct base_err *err)
{
	int r;

	snprintf(i->name, sizeof(i->name), PROFDB_IMPORT_PREFIX "%ld", (long)getpid());
	r = profdb_make_folder(i->db->fd, i->name);
	if (r == 0)
		r = i->fd = profdb_folder_open(i->db->fd, i->name);
	for (size_t f = 0; r >= 0 && f < i->folders.nr; f++) {
		int fd = r = profdb_folder_open(i->fd, i->folders.items[f]);

		if (fd >= 0)
			close(fd);
	}
	return r < 0 ? base_fail_errno(err, r, "cannot write into '%s'", i->db->path) : 0;
}

int profdb_import_begin(struct profdb *db, const char *const *paths, size_t nr,
			struct profdb_import **out, struct base_err *err)
{
	struct profdb_import *i = calloc(1, sizeof(*i));
	int r = 0;

	if (!i)
		return base_fail_errno(err, -ENOMEM, "cannot take in files");
	*i = (struct profdb_import){ .db = db, .fd = -1 };
	for (size_t p = 0; r >= 0 && p < nr; p++)
		r = add_folder(i, paths[p], err);
	profdb_names_sort(&i->folders);
	/* An epoch that something is added to must not become part of another one meanwhile. */
	if (r >= 0)
		r = profdb_keep(db, err);
	if (r >= 0)
		r = refuse_double(i, err);
	if (r >= 0)
		r = refuse_all_joined(i, err);
	if (r >= 0)
		r = make_waiting(i, err);
	if (r < 0) {
		profdb_import_end(i);
		return r;
	}
	*out = i;
	return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* 1: the file has this sum, 0: another, or it cannot be read, -ENOENT. */
static int has_sum(int dir_fd, const char *name, const uint8_t sum[32])
{
	struct stat st;
	int fd = base_regular_open(dir_fd, name, &st), r = fd;

	if (fd >= 0) {
		r = base_sha256_is(fd, sum);
		close(fd);
	}
	return r == -ENOENT ? r : r > 0;
}

/* Another pseudo-image has the name: tools find it by its identity under any other. */
static void other_name(struct profdb_place *place, const uint8_t sum[32])
{
	char stem[220], text[17];

	for (int i = 0; i < 8; i++)
		snprintf(text + 2 * i, 3, "%02x", sum[i]);
	snprintf(stem, sizeof(stem), "%.*s", (int)(strlen(place->name) - strlen(".dyn")),
		 place->name);
	snprintf(place->name, sizeof(place->name), "%s-%s.dyn", stem, text);
}

/* 0: to be written as @place->name, 1: it need not be. */
static int find_space(int dir_fd, struct profdb_place *place, const uint8_t sum[32])
{
	int r = has_sum(dir_fd, place->name, sum);

	if (r == 0 && place->part == PROFDB_PART_DYN) {
		other_name(place, sum);
		r = has_sum(dir_fd, place->name, sum);
	}
	/* Lock it: maintenance must not remove it before the profile that needs it is there. */
	if (r != -ENOENT)
		utimensat(dir_fd, place->name, NULL, AT_SYMLINK_NOFOLLOW);
	return r == -ENOENT ? 0 : 1;
}

/* The readers of values on another machine are other users here, so none gets access. */
static int create(int dir_fd, const char *name, bool values, mode_t mode, struct base_file *f,
		  struct base_err *err)
{
	int r = base_file_create(f, dir_fd, name, values ? 0600 : mode, err);

	if (r >= 0 && !values)
		profdb_give(f->dir_fd, f->fd);
	return r;
}

/* The folder for @place, through no link. */
static int open_folder(struct profdb_import *i, const struct profdb_place *place,
		       struct base_err *err)
{
	char folder[PROFDB_EPOCH_LEN + PROFDB_PLATFORM_MAX + 2];
	int r;

	if (is_of_epoch(place)) {
		snprintf(folder, sizeof(folder), "%s/%s", place->epoch, place->platform);
		r = profdb_folder_open(i->fd, folder);
	} else {
		r = profdb_folder_open(i->db->fd, place->folder);
	}
	if (r >= 0)
		return r;
	base_fail_errno(err, r, "cannot make '%s/%s'", i->db->path,
			is_of_epoch(place) ? folder : place->folder);
	if (r == -ENOTDIR)
		base_hint(err, "links are not followed here: mount what is elsewhere");
	return r;
}

int profdb_import_file(struct profdb_import *i, const char *path, const uint8_t sum[32],
		       mode_t mode, struct base_file *f, struct base_err *err)
{
	struct profdb_place place;
	int fd, r = profdb_place_parse(path, &place);

	profdb_lock_heartbeat(i->db);
	if (r < 0)
		return base_fail(err, r, "'%.300s' is no part of a database", path);
	fd = open_folder(i, &place, err);
	if (fd < 0)
		return fd;
	r = is_of_epoch(&place) ? 0 : find_space(fd, &place, sum);
	if (r == 0)
		r = create(fd, place.name, place.part == PROFDB_PART_VALUES, mode, f, err);
	close(fd);
	return r;
}

/* ---- the last step --------------------------------------------------------------------------- */

/* "EPOCH/PLATFORM" */
static int move_folder(int from_fd, int to_fd, const char *folder)
{
	char epoch[PROFDB_EPOCH_LEN + 1];
	const char *platform = base_path_name(folder);
	int from, to, r;

	snprintf(epoch, sizeof(epoch), "%.*s", (int)strcspn(folder, "/"), folder);
	from = r = profdb_folder_open(from_fd, epoch);
	to = r < 0 ? r : profdb_folder_open(to_fd, epoch);
	r = to < 0 ? to : renameat(from, platform, to, platform) < 0 ? -errno : 0;
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return r;
}

/* That they are there lasts. */
static int sync_all(const struct profdb_import *i)
{
	int r = 0;

	for (size_t f = 0; r >= 0 && f < i->folders.nr; f++) {
		char epoch[PROFDB_EPOCH_LEN + 1];
		int fd;

		snprintf(epoch, sizeof(epoch), "%.*s", (int)strcspn(i->folders.items[f], "/"),
			 i->folders.items[f]);
		r = fd = profdb_folder_open(i->db->fd, epoch);
		if (fd < 0)
			break;
		r = base_sync_dir(fd);
		close(fd);
	}
	return r < 0 ? r : base_sync_dir(i->db->fd);
}

int profdb_import_commit(struct profdb_import *i, struct base_err *err)
{
	int r = profdb_keep(i->db, err);

	if (r < 0)
		return r;
	while (r == 0 && i->nr_done < i->folders.nr) {
		r = move_folder(i->fd, i->db->fd, i->folders.items[i->nr_done]);
		i->nr_done += r == 0;
	}
	if (r < 0)
		base_fail_errno(err, r, "cannot put '%s/%s' into place", i->db->path,
				i->folders.items[i->nr_done]);
	while (r < 0 && i->nr_done)
		move_folder(i->db->fd, i->fd, i->folders.items[--i->nr_done]);
	return r < 0 ? r : sync_all(i);
}

void profdb_import_end(struct profdb_import *i)
{
	if (!i)
		return;
	if (i->fd >= 0) {
		close(i->fd);
		profdb_remove_tree(i->db->fd, i->name, PROFDB_DEPTH);
	}
	profdb_names_release(&i->folders);
	free(i);
}
