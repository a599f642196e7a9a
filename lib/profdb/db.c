/* SPDX-License-Identifier: BSD-2-Clause */
/* A database is opened, checked, reopened after its folder was removed, and closed here. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profdb_internal.h"

/* The marker that makes a folder a database and tells its layout. */
#define MARKER	    "dcpi-database"
#define MARKER_LINE "dcpi-database 1\n"

/* ---- is it a database? ----------------------------------------------------------------------- */

static int refuse_marker(const struct profdb *db, const struct base_buf *text, struct base_err *err)
{
	static const char first[] = "dcpi-database ";
	size_t len = strlen(first);

	if (text->len > len && !memcmp(text->data, first, len)) {
		base_fail(err, -DCPI_EVERSION,
			  "cannot open database '%s': layout of '%s/%s' is not known", db->path,
			  db->path, MARKER);
		base_hint(err, "a newer DCPI made this database");
		return -DCPI_EVERSION;
	}
	base_fail(err, -DCPI_EFORMAT, "cannot open database '%s': '%s/%s' is damaged", db->path,
		  db->path, MARKER);
	base_hint(err, "if it is one, the file has one line: '%s1'", first);
	return -DCPI_EFORMAT;
}

/* 1: yes, 0: no marker, negative: a marker that we cannot go by. */
static int check_marker(struct profdb *db, struct base_err *err)
{
	struct base_err why = { 0 };
	struct base_buf buf = { 0 };
	int r = base_file_read(db->fd, MARKER, 4096, &buf, &why);

	if (r == -ENOENT) {
		r = 0;
	} else if (r < 0) {
		base_fail(err, r, "cannot open database '%s': %s", db->path, why.text);
	} else if (buf.len < strlen(MARKER_LINE) ||
		   memcmp(buf.data, MARKER_LINE, strlen(MARKER_LINE))) {
		r = refuse_marker(db, &buf, err);
	} else {
		r = 1;
	}
	base_buf_release(&buf);
	return r;
}

/* A fresh file system is not empty either, and the hosts file may come before any daemon. */
static bool counts_as_content(const char *name)
{
	return *name != '.' && strcmp(name, "lost+found") != 0 && strcmp(name, "hosts") != 0;
}

/* 1: an epoch's folder is there, 0: nothing is, -DCPI_ENOTDB: other things. */
static int check_content(struct profdb *db)
{
	struct profdb_names all = { 0 };
	int r = profdb_names_list(&all, db->fd, ".");

	for (size_t i = 0; r >= 0 && i < all.nr && r != 1; i++) {
		if (profdb_epoch_name_ok(all.items[i]) && profdb_is_dir(db->fd, all.items[i]))
			r = 1;
	}
	for (size_t i = 0; r == 0 && i < all.nr; i++) {
		if (counts_as_content(all.items[i]))
			r = -DCPI_ENOTDB;
	}
	profdb_names_release(&all);
	return r;
}

static int make_folders(struct profdb *db, struct base_err *err)
{
	static const char *const names[] = { "dyn", "kernel" };

	for (int i = 0; i < 2; i++) {
		int r = profdb_make_folder(db->fd, names[i]);

		if (r < 0 && r != -EEXIST)
			return base_fail_errno(err, r, "cannot make '%s/%s'", db->path, names[i]);
		if (profdb_is_dir(db->fd, names[i]))
			continue;
		base_fail_errno(err, -ENOTDIR, "cannot use '%s/%s'", db->path, names[i]);
		base_hint(err, "links are not followed here: mount what is elsewhere");
		return -ENOTDIR;
	}
	return 0;
}

static int not_a_db(struct profdb *db, bool create, struct base_err *err)
{
	base_fail_errno(err, -DCPI_ENOTDB, "cannot open database '%s'", db->path);
	if (create)
		base_hint(err, "give an empty or a new folder: this one has other files in it");
	else
		base_hint(err, "a database has a file '%s'; dcpid makes one", MARKER);
	return -DCPI_ENOTDB;
}

/* The marker comes first: a folder that we began to fill must be known as ours afterwards. */
static int check(struct profdb *db, bool create, struct base_err *err)
{
	int r = check_marker(db, err);

	if (r < 0)
		return r;
	if (r == 0) {
		r = check_content(db);
		if (r == -DCPI_ENOTDB || (r == 0 && !create))
			return not_a_db(db, create, err);
		if (r < 0)
			return base_fail_errno(err, r, "cannot list '%s'", db->path);
		if (create)
			r = profdb_file_write(db->fd, MARKER, MARKER_LINE, strlen(MARKER_LINE),
					      NULL);
		if (r < 0)
			base_fail_errno(err, r, "cannot make '%s/%s'", db->path, MARKER);
	}
	if (r >= 0 && create)
		r = make_folders(db, err);
	return r;
}

enum how { READ, WRITE, CREATE }; /* WRITE: in a folder that is there */

static int open_folder(struct profdb *db, enum how how, struct base_err *err)
{
	int r;

	if (how == CREATE && mkdir(db->path, 0755) < 0 && errno != EEXIST)
		return base_fail_errno(err, -errno, "cannot make database '%s'", db->path);
	db->fd = open(db->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (db->fd >= 0)
		return 0;
	r = base_fail_errno(err, -errno, "cannot open database '%s'", db->path);
	if (r == -ENOENT && how == READ)
		base_hint(err, "give the database's folder by -db or in DCPIDB; dcpid makes one");
	return r;
}

static int open_database(const char *path, enum how how, struct profdb **out, struct base_err *err)
{
	struct profdb *db = calloc(1, sizeof(*db));
	int r = -ENOMEM;

	*out = NULL;
	if (!db || !(db->path = strdup(path))) {
		free(db);
		return base_fail_errno(err, r, "cannot open database '%s'", path);
	}
	db->fd = db->folders.dyn = db->folders.kernel = db->folders.costs = -1;
	db->folders.index = db->lock.fd = db->epoch.fd = -1;
	r = open_folder(db, how, err);
	if (r >= 0)
		r = check(db, how != READ, err);
	if (r < 0) {
		profdb_close(db);
		return r;
	}
	*out = db;
	return 0;
}

bool profdb_is_store(const char *path)
{
	return strncmp(path, "clickhouse://", 13) == 0 || strncmp(path, "clickhouses://", 14) == 0;
}

int profdb_refuse_store(const char *path, struct base_err *err)
{
	if (!profdb_is_store(path))
		return 0;
	base_fail(err, -DCPI_EUSAGE, "'%s' is the store of a fleet, and no database", path);
	base_hint(err,
		  "name a folder, by -db where there is such an option; 'dcpifetch -o DIR' copies "
		  "a part of a store into one");
	return -DCPI_EUSAGE;
}

int profdb_open(const char *path, bool create, struct profdb **out, struct base_err *err)
{
	int r = profdb_refuse_store(path, err);

	*out = NULL;
	if (r < 0)
		return r;
	return open_database(path, create ? CREATE : READ, out, err);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_folders(struct profdb *db)
{
	close_fd(&db->folders.index);
	close_fd(&db->folders.costs);
	close_fd(&db->folders.kernel);
	close_fd(&db->folders.dyn);
}

void profdb_close(struct profdb *db)
{
	if (!db)
		return;
	profdb_flush_abort(db);
	profdb_epoch_leave(db);
	profdb_commit_release(&db->join);
	profdb_unlock(db);
	close_folders(db);
	close_fd(&db->fd);
	free(db->path);
	free(db);
}

/* ---- what was removed ------------------------------------------------------------------------ */

static bool is_removed(int fd)
{
	struct stat st;

	return fd >= 0 && (fstat(fd, &st) < 0 ? errno == ESTALE : st.st_nlink == 0);
}

bool profdb_is_gone(const struct profdb *db)
{
	return is_removed(db->fd) || is_removed(db->epoch.fd) || is_removed(db->folders.dyn) ||
	       is_removed(db->folders.kernel);
}

/* The lock file may have gone with what was removed. */
static int lock_again(struct profdb *db, struct base_err *err)
{
	char platform[PROFDB_PLATFORM_MAX + 1];

	if (!db->platform[0] || (db->lock.fd >= 0 && profdb_lock_check(db, NULL) >= 0))
		return 0;
	strcpy(platform, db->platform);
	profdb_unlock(db);
	return profdb_lock(db, platform, err);
}

/* Its own folder is there, some in it are not. */
static int recover(struct profdb *db, struct base_err *err)
{
	bool lost = is_removed(db->folders.dyn) || is_removed(db->folders.kernel);
	int r = check(db, true, err);

	if (r >= 0)
		r = lock_again(db, err);
	if (r < 0)
		return r;
	profdb_flush_abort(db);
	profdb_epoch_leave(db);
	close_folders(db);
	return lost;
}

/* Swap the folder in place, so that holders of @db continue with the new one. */
static int replace(struct profdb *db, struct base_err *err)
{
	struct profdb *other = NULL, was = *db;
	int r = open_database(db->path, WRITE, &other, err);

	if (r >= 0)
		profdb_set_watching(other, db->lock.watching, db->lock.watching_ctx);
	if (r >= 0 && db->platform[0])
		r = profdb_lock(other, db->platform, err);
	if (r < 0) {
		profdb_close(other);
		return r;
	}
	*db = *other;
	*other = was;
	db->flush.format = was.flush.format;
	db->flush.cpu_mhz = was.flush.cpu_mhz;
	db->flush.nr_cpus = was.flush.nr_cpus;
	db->flush.alive = was.flush.alive;
	db->flush.alive_ctx = was.flush.alive_ctx;
	/* Its lock file went with it, or is ours in the folder that is open now. */
	close_fd(&other->lock.fd);
	profdb_close(other);
	return 1;
}

int profdb_reopen(struct profdb *db, struct base_err *err)
{
	int r = is_removed(db->fd) ? replace(db, err) : recover(db, err);

	/* So that it is seen when they go, too. */
	if (r >= 0) {
		profdb_dyn_fd(db);
		profdb_kernel_fd(db);
	}
	return r;
}
