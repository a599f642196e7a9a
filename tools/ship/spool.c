/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder where batches wait, and the list of epochs that became some. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ship.h"

#define SHIPPED_FILE "shipped"
#define HELD	     ".held-"
enum { SHIPPED_MAX = 1 << 26 };

static int lock(struct spool *s, struct base_err *err)
{
	s->lock_fd = openat(s->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->lock_fd < 0)
		return base_fail_errno(err, -errno, "cannot lock '%s'", s->path);
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return base_fail(err, -EBUSY, "another dcpiship uses '%s'", s->path);
}

static int read_shipped(struct spool *s)
{
	char *save = NULL, *line;
	struct base_buf names = { 0 };
	int r = base_file_read(s->dir_fd, SHIPPED_FILE, SHIPPED_MAX, &names, NULL);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = base_buf_append(&names, "", 1);
	line = r < 0 ? NULL : strtok_r((char *)names.data, "\n", &save);
	for (; line && r >= 0; line = strtok_r(NULL, "\n", &save))
		r = base_map_set(&s->shipped, line, strlen(line), s);
	base_buf_release(&names);
	return r;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	known_release(&s->known);
	base_map_release(&s->shipped);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	free(s->path);
	free(s);
}

int spool_append(int dir_fd, const char *file, const void *data, size_t len)
{
	int fd = openat(dir_fd, file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;
	int r;

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0 ? -errno : base_write_all(fd, data, len);
	if (r >= 0 && fdatasync(fd) < 0)
		r = -errno;
	/* The next record must not continue one that is cut. */
	if (r < 0 && ftruncate(fd, st.st_size) < 0)
		r = -errno;
	close(fd);
	return r;
}

/*
 * A note is "EPOCH/PLATFORM"; with a minus before it where it is left out, and of a joined epoch
 * "+EPOCH/PLATFORM/PARTS" besides.
 */
#define NAME_LEN (PROFDB_EPOCH_LEN + PROFDB_PLATFORM_MAX + 24)

static void name_of(const char *epoch, const char *platform, const char *sign, char name[NAME_LEN])
{
	snprintf(name, NAME_LEN, "%s%s/%s", sign, epoch, platform);
}

static void name_of_joined(const char *epoch, const char *platform, size_t nr, char name[NAME_LEN])
{
	snprintf(name, NAME_LEN, "+%s/%s/%zu", epoch, platform, nr);
}

static bool is_noted(const struct spool *s, const char *name)
{
	return base_map_get(&s->shipped, name, strlen(name));
}

static int note(struct spool *s, const char *name, struct base_err *err)
{
	char line[NAME_LEN + 1];
	int r;

	snprintf(line, sizeof(line), "%s\n", name);
	r = spool_append(s->dir_fd, SHIPPED_FILE, line, strlen(line));
	if (r >= 0)
		r = base_map_set(&s->shipped, name, strlen(name), s);
	return r < 0 ? base_fail_errno(err, r, "cannot note that '%s' was shipped", name) : 0;
}

bool spool_is_shipped(const struct spool *s, const char *epoch, const char *platform)
{
	char name[NAME_LEN];

	name_of(epoch, platform, "", name);
	return is_noted(s, name);
}

int spool_set_shipped(struct spool *s, const char *epoch, const char *platform,
		      struct base_err *err)
{
	char name[NAME_LEN], keys[128];
	int r;

	name_of(epoch, platform, "", name);
	r = note(s, name, err);
	spool_keys_name(epoch, platform, keys);
	if (r >= 0)
		unlinkat(s->dir_fd, keys, 0);
	return r;
}

bool spool_is_begun(const struct spool *s, const char *epoch, const char *platform)
{
	char keys[128];

	spool_keys_name(epoch, platform, keys);
	return spool_is_shipped(s, epoch, platform) ||
	       faccessat(s->dir_fd, keys, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The note of the first part ends that of a joined epoch. */
bool spool_is_joined(const struct spool *s, const char *epoch, const char *platform, size_t nr)
{
	char name[NAME_LEN];

	name_of_joined(epoch, platform, nr, name);
	return is_noted(s, name) && spool_is_shipped(s, epoch, platform);
}

/* The note of the first part comes last: alone it would say that a part was sent before. */
int spool_set_joined(struct spool *s, const char *epoch, const char *platform, size_t nr,
		     struct base_err *err)
{
	char name[NAME_LEN];
	int r;

	name_of_joined(epoch, platform, nr, name);
	r = note(s, name, err);
	return r < 0 ? r : spool_set_shipped(s, epoch, platform, err);
}

bool spool_is_left_out(const struct spool *s, const char *epoch, const char *platform)
{
	char name[NAME_LEN];

	name_of(epoch, platform, "-", name);
	return is_noted(s, name);
}

int spool_leave_out(struct spool *s, const char *epoch, const char *platform, struct base_err *err)
{
	char name[NAME_LEN];

	name_of(epoch, platform, "-", name);
	return note(s, name, err);
}

void spool_keys_name(const char *epoch, const char *platform, char name[128])
{
	snprintf(name, 128, "open-%s-%s", epoch, platform);
}

bool spool_is_batch(const char *name)
{
	size_t len = strlen(name), suffix = strlen(SHIP_SUFFIX);

	return name[0] != '.' && len > suffix && strcmp(name + len - suffix, SHIP_SUFFIX) == 0;
}

uint64_t spool_waiting(const struct spool *s, size_t *nr)
{
	uint64_t sum = 0;
	struct dirent *e;
	struct stat st;
	DIR *d;

	*nr = 0;
	if (base_dir_open(s->dir_fd, ".", &d) < 0)
		return 0;
	while ((e = readdir(d))) {
		if (!spool_is_batch(e->d_name) ||
		    fstatat(s->dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		sum += (uint64_t)st.st_size;
		++*nr;
	}
	closedir(d);
	return sum;
}

static int check_limit(const struct spool *s, size_t more, struct base_err *err)
{
	size_t nr;

	if (spool_waiting(s, &nr) + more <= s->limit)
		return 0;
	base_fail(err, -ENOSPC, "%zu batches wait in '%s', which is as much as may be there", nr,
		  s->path);
	base_hint(err, "the rest stays in the database; -spool-limit allows more");
	return -ENOSPC;
}

static void held_name(const char *name, char held[SPOOL_NAME + 8])
{
	snprintf(held, SPOOL_NAME + 8, HELD "%s", name);
}

static bool exists(const struct spool *s, const char *name)
{
	return faccessat(s->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int spool_hold(struct spool *s, const char *epoch, const char *platform, uint64_t ver,
	       const struct store_batch *b, char name[SPOOL_NAME], struct base_err *err)
{
	char held[SPOOL_NAME + 8];
	struct base_buf file = { 0 };
	unsigned int i = 0;
	int r = store_batch_format(b, &file);

	if (r < 0)
		base_fail_errno(err, r, "cannot make a batch");
	if (r >= 0)
		r = check_limit(s, file.len, err);
	/* One that waits may have images that this one takes for known. */
	do
		snprintf(name, SPOOL_NAME, "%s-%s-%016" PRIx64 "-%03u" SHIP_SUFFIX, epoch, platform,
			 ver, i++);
	while (exists(s, name));
	held_name(name, held);
	if (r >= 0)
		r = base_file_write(s->dir_fd, held, 0600, file.data, file.len, err);
	base_buf_release(&file);
	return r;
}

int spool_show(struct spool *s, const char *name, struct base_err *err)
{
	char held[SPOOL_NAME + 8];

	held_name(name, held);
	if (renameat(s->dir_fd, held, s->dir_fd, name) < 0)
		return base_fail_errno(err, -errno, "cannot finish batch '%s'", name);
	return 0;
}

void spool_drop(struct spool *s, const char *name)
{
	char held[SPOOL_NAME + 8];

	held_name(name, held);
	unlinkat(s->dir_fd, held, 0);
}

/* ---- what a killed dcpiship has left -----------------------------------------------------------
 */

/* Splits a batch's name behind its epoch, which has no '-', and before its version. */
static bool take_name(char *name, char **platform, uint64_t *ver)
{
	char *at = strchr(name, '-'), *tail = strrchr(name, '-');

	if (!at || tail == at)
		return false;
	*at = 0;
	*tail = 0;
	*platform = at + 1;
	tail = strrchr(*platform, '-');
	if (!tail)
		return false;
	*tail = 0;
	*ver = strtoull(tail + 1, NULL, 16);
	return true;
}

/* The version that the file of an open epoch's keys begins with is @ver. */
static bool keys_are_of(const struct spool *s, const char *epoch, const char *platform,
			uint64_t ver)
{
	struct base_buf file = { 0 };
	uint64_t noted = 0;
	char keys[128];

	spool_keys_name(epoch, platform, keys);
	if (base_file_read(s->dir_fd, keys, 1 << 28, &file, NULL) >= 0 && file.len >= sizeof(noted))
		memcpy(&noted, file.data, sizeof(noted));
	base_buf_release(&file);
	return noted == ver;
}

static void finish_held(struct spool *s, const char *name)
{
	char parts[SPOOL_NAME + 8], *platform;
	uint64_t ver;

	snprintf(parts, sizeof(parts), "%s", name);
	if (take_name(parts, &platform, &ver) &&
	    (spool_is_shipped(s, parts, platform) || keys_are_of(s, parts, platform, ver)))
		spool_show(s, name, NULL);
	else
		spool_drop(s, name);
}

static void finish_begun(struct spool *s)
{
	struct dirent *e;
	DIR *d;

	if (base_dir_open(s->dir_fd, ".", &d) < 0)
		return;
	while ((e = readdir(d))) {
		if (strncmp(e->d_name, HELD, strlen(HELD)) == 0)
			finish_held(s, e->d_name + strlen(HELD));
		else if (strncmp(e->d_name, ".tmp-", 5) == 0)
			unlinkat(s->dir_fd, e->d_name, 0);
	}
	closedir(d);
}

/* ---- opening -----------------------------------------------------------------------------------
 */

static int open_spool(const char *path, uint64_t limit, bool look, struct spool **out,
		      struct base_err *err)
{
	struct spool *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s || !(s->path = strdup(path))) {
		free(s);
		return base_fail_errno(err, -ENOMEM, "cannot open '%s'", path);
	}
	s->limit = limit;
	s->lock_fd = -1;
	if (!look && mkdir(path, 0700) < 0 && errno != EEXIST)
		r = base_fail_errno(err, -errno, "cannot make '%s'", path);
	s->dir_fd = r < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r >= 0 && s->dir_fd < 0)
		r = base_fail_errno(err, -errno, "cannot open '%s'", path);
	if (r >= 0 && !look)
		r = lock(s, err);
	if (r >= 0)
		r = known_open(&s->known, s->dir_fd, err);
	if (r >= 0)
		r = read_shipped(s);
	if (r >= 0 && !look)
		finish_begun(s);
	if (r < 0) {
		base_fail_errno(err, r, "cannot open '%s'", path);
		spool_close(s);
		return r;
	}
	*out = s;
	return 0;
}

int spool_open(const char *path, uint64_t limit, struct spool **out, struct base_err *err)
{
	return open_spool(path, limit, false, out, err);
}

int spool_look(const char *path, struct spool **out, struct base_err *err)
{
	return open_spool(path, 0, true, out, err);
}
