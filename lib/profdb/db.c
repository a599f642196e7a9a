/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profdb_internal.h"

/* What makes a folder a database, and says which layout it has. */
#define MARKER	    "dcpi-database"
#define MARKER_LINE "dcpi-database 1\n"

/* Through no link: who owns a database may have planted it, and we may be root. */
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* No link to one: an epoch would count twice, or be anybody's folder. */
static bool is_dir(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* ---- whose it is ----------------------------------------------------------------------------- */

/* Only what root made, and of files only what has one name: another may lead out of the database.
 */
static void give(int fd, const struct stat *folder)
{
	struct stat st;

	if (geteuid() != 0 || folder->st_uid == 0 || fstat(fd, &st) < 0 || st.st_uid != 0 ||
	    (!S_ISDIR(st.st_mode) && st.st_nlink != 1))
		return;
	if (fchown(fd, folder->st_uid, folder->st_gid) < 0)
		return;
}

void profdb_give(int dir_fd, int fd)
{
	struct stat st;

	if (fstat(dir_fd, &st) == 0)
		give(fd, &st);
}

int profdb_make_folder(int dir_fd, const char *path)
{
	struct stat st;
	int fd;

	if (mkdirat(dir_fd, path, 0755) < 0)
		return -errno;
	fd = geteuid() == 0 ? openat(dir_fd, path, FOLDER_FLAGS) : -1;
	if (fd < 0)
		return 0;
	if (fstatat(fd, "..", &st, 0) == 0)
		give(fd, &st);
	close(fd);
	return 0;
}

int profdb_folder_open(int dir_fd, const char *path)
{
	int r, next, fd = openat(dir_fd, ".", FOLDER_FLAGS);
	char name[256];

	r = fd < 0 ? -errno : 0;
	for (size_t len; r == 0 && *path; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		snprintf(name, sizeof(name), "%.*s", (int)len, path);
		r = profdb_make_folder(fd, name);
		r = r == -EEXIST ? 0 : r;
		next = r < 0 ? -1 : openat(fd, name, FOLDER_FLAGS);
		if (r == 0 && next < 0)
			r = -errno;
		close(fd);
		fd = next;
	}
	return r < 0 ? r : fd;
}

int profdb_file_write(int dir_fd, const char *name, const void *data, size_t len,
		      struct base_err *err)
{
	struct base_file f;
	int r = base_file_create(&f, dir_fd, name, 0644, err);

	if (r < 0)
		return r;
	profdb_give(dir_fd, f.fd);
	r = base_write_all(f.fd, data, len);
	if (r < 0)
		base_fail_errno(err, r, "cannot write '%s'", name);
	else
		r = base_file_commit(&f, err);
	base_file_abort(&f);
	return r;
}

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
		if (profdb_epoch_name_ok(all.items[i]) && is_dir(db->fd, all.items[i]))
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
		if (is_dir(db->fd, names[i]))
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
	db->fd = db->dyn_fd = db->kernel_fd = db->costs_fd = -1;
	db->index_fd = db->lock_fd = db->epoch_fd = -1;
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

int profdb_open(const char *path, bool create, struct profdb **out, struct base_err *err)
{
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
	close_fd(&db->index_fd);
	close_fd(&db->costs_fd);
	close_fd(&db->kernel_fd);
	close_fd(&db->dyn_fd);
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

const char *profdb_path(const struct profdb *db)
{
	return db->path;
}

int profdb_dir_fd(const struct profdb *db)
{
	return db->fd;
}

/* ---- what was removed ------------------------------------------------------------------------ */

static bool is_removed(int fd)
{
	struct stat st;

	return fd >= 0 && (fstat(fd, &st) < 0 ? errno == ESTALE : st.st_nlink == 0);
}

bool profdb_is_gone(const struct profdb *db)
{
	return is_removed(db->fd) || is_removed(db->epoch_fd) || is_removed(db->dyn_fd) ||
	       is_removed(db->kernel_fd);
}

/* The lock file may have gone with what was removed. */
static int lock_again(struct profdb *db, struct base_err *err)
{
	char platform[PROFDB_PLATFORM_MAX + 1];

	if (!db->platform[0] || (db->lock_fd >= 0 && profdb_lock_check(db, NULL) >= 0))
		return 0;
	strcpy(platform, db->platform);
	profdb_unlock(db);
	return profdb_lock(db, platform, err);
}

/* Its own folder is there, some in it are not. */
static int mend(struct profdb *db, struct base_err *err)
{
	bool lost = is_removed(db->dyn_fd) || is_removed(db->kernel_fd);
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

/* Whoever holds @db goes on with it. */
static int replace(struct profdb *db, struct base_err *err)
{
	struct profdb *other = NULL, was = *db;
	int r = open_database(db->path, WRITE, &other, err);

	if (r >= 0)
		profdb_set_watching(other, db->watching, db->watching_ctx);
	if (r >= 0 && db->platform[0])
		r = profdb_lock(other, db->platform, err);
	if (r < 0) {
		profdb_close(other);
		return r;
	}
	*db = *other;
	*other = was;
	db->format = was.format;
	db->cpu_mhz = was.cpu_mhz;
	db->nr_cpus = was.nr_cpus;
	db->alive = was.alive;
	db->alive_ctx = was.alive_ctx;
	/* Its lock file went with it, or is ours in the folder that is open now. */
	close_fd(&other->lock_fd);
	profdb_close(other);
	return 1;
}

int profdb_reopen(struct profdb *db, struct base_err *err)
{
	int r = is_removed(db->fd) ? replace(db, err) : mend(db, err);

	/* So that it is seen when they go, too. */
	if (r >= 0) {
		profdb_dyn_fd(db);
		profdb_kernel_fd(db);
	}
	return r;
}

/* ---- folders --------------------------------------------------------------------------------- */

static int folder_fd(struct profdb *db, const char *name, int *fd)
{
	if (*fd < 0)
		*fd = openat(db->fd, name, FOLDER_FLAGS);
	return *fd < 0 ? -errno : *fd;
}

int profdb_dyn_fd(struct profdb *db)
{
	return folder_fd(db, "dyn", &db->dyn_fd);
}

int profdb_kernel_fd(struct profdb *db)
{
	return folder_fd(db, "kernel", &db->kernel_fd);
}

int profdb_costs_fd(struct profdb *db)
{
	return folder_fd(db, "costs", &db->costs_fd);
}

int profdb_index_fd(struct profdb *db)
{
	bool first = db->index_fd < 0;
	int fd;

	mkdirat(db->fd, "index", 0755);
	fd = folder_fd(db, "index", &db->index_fd);
	/* That of an earlier version is root's still. */
	if (first && fd >= 0)
		profdb_give(db->fd, fd);
	return fd;
}

/* ---- lists ----------------------------------------------------------------------------------- */

bool profdb_platform_name_ok(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++) {
		bool letter = (name[i] | 32) >= 'a' && (name[i] | 32) <= 'z';

		if (!letter && !(name[i] >= '0' && name[i] <= '9') && !strchr("._-", name[i]))
			return false;
	}
	return len && len <= PROFDB_PLATFORM_MAX && *name != '.';
}

/* Of the database: a joined epoch is under another name until its own is free. */
static int epoch_dir(const struct profdb *db, const char *epoch)
{
	const struct profdb_commit *c = &db->join;
	char name[256];
	int fd = -1;

	if (c->seq && c->files.nr == 1 && !strcmp(c->files.items[0], epoch))
		fd = openat(db->fd, profdb_new_name(c->seq, epoch, name), FOLDER_FLAGS);
	if (fd < 0)
		fd = openat(db->fd, epoch, FOLDER_FLAGS);
	return fd < 0 ? -errno : fd;
}

/* Folders in @dir_fd whose name @ok likes, added to @good. */
static int take_folders(int dir_fd, bool (*ok)(const char *name), struct profdb_names *good)
{
	struct profdb_names all = { 0 };
	int r = profdb_names_list(&all, dir_fd, ".");

	for (size_t i = 0; r >= 0 && i < all.nr; i++) {
		if (ok(all.items[i]) && is_dir(dir_fd, all.items[i]))
			r = profdb_names_add(good, all.items[i]);
	}
	profdb_names_release(&all);
	return r;
}

static char **pack(struct profdb *db, struct profdb_names *good, const char *in, int r,
		   struct base_err *err)
{
	char **list = NULL;

	if (r >= 0) {
		profdb_names_sort(good);
		list = profdb_names_pack(good, 0, good->nr);
		r = list ? 0 : -ENOMEM;
	}
	if (r < 0)
		base_fail_errno(err, r, "cannot list '%s/%s'", db->path, in);
	profdb_names_release(good);
	return list;
}

static bool is_listed(const struct profdb_names *n, const char *name)
{
	for (size_t i = 0; i < n->nr; i++)
		if (!strcmp(n->items[i], name))
			return true;
	return false;
}

/* As if what was committed had been completed already. */
static int apply_join(const struct profdb_commit *c, struct profdb_names *epochs)
{
	size_t kept = 0;

	for (size_t i = 0; i < epochs->nr; i++) {
		if (is_listed(&c->gone, epochs->items[i]))
			free(epochs->items[i]);
		else
			epochs->items[kept++] = epochs->items[i];
	}
	epochs->nr = kept;
	return profdb_names_add(epochs, c->files.items[0]);
}

char **profdb_epochs(struct profdb *db, struct base_err *err)
{
	struct profdb_names good = { 0 };
	bool pending;
	int r;

	/* Asked before the list is made: what is completed meanwhile may be half in it. */
	profdb_join_load(db);
	pending = profdb_join_pending(db, &db->join);
	r = take_folders(db->fd, profdb_epoch_name_ok, &good);
	if (r >= 0 && pending)
		r = apply_join(&db->join, &good);
	return pack(db, &good, ".", r, err);
}

char **profdb_platforms(struct profdb *db, const char *epoch, struct base_err *err)
{
	struct profdb_names good = { 0 };
	int fd, r;

	if (!profdb_epoch_name_ok(epoch)) {
		base_fail(err, -EINVAL, "'%.40s' is no epoch's name", epoch);
		return NULL;
	}
	fd = r = epoch_dir(db, epoch);
	if (fd >= 0) {
		r = take_folders(fd, profdb_platform_name_ok, &good);
		close(fd);
	}
	return pack(db, &good, epoch, r, err);
}

int profdb_platform_open(const struct profdb *db, const char *epoch, const char *platform)
{
	int dir, fd, r;

	if (!profdb_epoch_name_ok(epoch) || !profdb_platform_name_ok(platform))
		return -EINVAL;
	dir = epoch_dir(db, epoch);
	if (dir < 0)
		return dir;
	fd = openat(dir, platform, FOLDER_FLAGS);
	r = fd < 0 ? -errno : fd;
	close(dir);
	return r;
}

bool profdb_epoch_open(struct profdb *db, const char *epoch, const char *platform)
{
	struct stat st;
	int fd = profdb_platform_open(db, epoch, platform);
	bool open;

	if (fd < 0)
		return false;
	open = fstatat(fd, PROFDB_OPEN_NAME, &st, 0) == 0;
	close(fd);
	return open;
}

bool profdb_epoch_damaged(struct profdb *db, const char *epoch, const char *platform,
			  struct base_err *why)
{
	struct profdb_commit c = { 0 };
	int r, fd = profdb_platform_open(db, epoch, platform);

	if (fd < 0)
		return false;
	r = profdb_commit_read(fd, &c, why);
	profdb_commit_release(&c);
	close(fd);
	return profdb_error_is_content(r);
}

uint64_t profdb_epoch_written(struct profdb *db, const char *epoch, const char *platform)
{
	static const char *const names[] = { PROFDB_COMMIT_NAME, PROFDB_OPEN_NAME, "." };
	int r = -1, fd = profdb_platform_open(db, epoch, platform);
	struct stat st;

	for (int i = 0; fd >= 0 && r < 0 && i < 3; i++)
		r = fstatat(fd, names[i], &st, 0);
	if (fd >= 0)
		close(fd);
	return r < 0 ? 0 : (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
}
