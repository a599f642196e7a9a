/* SPDX-License-Identifier: BSD-2-Clause */
/* Files are read whole, and written so that readers see the old file or the new one, here. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/utsname.h>
#include <sys/vfs.h>
#endif

#include "base.h"

int base_standard_fill(int mode)
{
	int fd;

	do {
		fd = open("/dev/null", mode | O_CLOEXEC);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int base_output_end(struct base_err *err)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return base_fail_errno(err, errno ? -errno : -EIO, "cannot write the output");
}

int base_write_all(int fd, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int base_read_all(int fd, void *data, size_t len)
{
	uint8_t *p = data;

	while (len) {
		ssize_t n = read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -DCPI_ETRUNCATED;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int read_at(int fd, uint64_t off, uint8_t *to, size_t len, size_t *done)
{
	for (*done = 0; *done < len;) {
		ssize_t n = pread(fd, to + *done, len - *done, (off_t)(off + *done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -DCPI_ETRUNCATED;
		*done += (size_t)n;
	}
	return 0;
}

int base_read_at(int fd, uint64_t off, void *data, size_t len)
{
	size_t done;

	return read_at(fd, off, data, len, &done);
}

size_t base_read_part(int fd, uint64_t off, void *data, size_t len)
{
	size_t done;

	read_at(fd, off, data, len, &done);
	return done;
}

int base_wait_readable(int fd, unsigned int *left_ms)
{
	enum { STEP_MS = 20 };
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (;;) {
		unsigned int step_ms = *left_ms < STEP_MS ? *left_ms : STEP_MS;
		uint64_t before = base_now_ns(), took_ms;
		int n = poll(&p, 1, (int)step_ms);

		took_ms = (base_now_ns() - before) / 1000000;
		*left_ms -= took_ms < step_ms ? (unsigned int)took_ms : step_ms;
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (!*left_ms)
			return -ETIMEDOUT;
	}
}

const char *base_path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Fresh descriptor of the folder of @path, its last part into @name. */
static int open_folder(int dir_fd, const char *path, char name[256])
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
	size_t len = slash ? (size_t)(slash - path) : 0;
	char folder[4096] = ".";
	int fd;

	if (!*last || !strcmp(last, ".") || !strcmp(last, ".."))
		return -EISDIR;
	if (strlen(last) > 255 || len >= sizeof(folder))
		return -ENAMETOOLONG;
	strcpy(name, last);
	if (slash) {
		len = len ? len : 1;
		memcpy(folder, path, len);
		folder[len] = '\0';
	}
	/* Opened anew, not dup'ed: the caller's may be AT_FDCWD, or O_PATH, which cannot sync. */
	fd = openat(dir_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A leftover of an earlier process with our pid may hold a name: take the next. */
static int open_tmp(struct base_file *f, mode_t mode)
{
	static atomic_uint serial;
	int tries = 0;

	do {
		/* NAME is cut so that a final name of full length still has a temporary one. */
		snprintf(f->tmp, sizeof(f->tmp), ".tmp-%ld-%u-%.200s", (long)getpid(),
			 atomic_fetch_add(&serial, 1), f->name);
		f->fd = openat(f->dir_fd, f->tmp,
			       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	} while (f->fd < 0 && errno == EEXIST && ++tries < 1000);
	if (f->fd >= 0)
		return 0;
	f->tmp[0] = '\0';
	return -errno;
}

/*
 * A field that was never filled is zero, and so are descriptors of a zeroed object: tmp[0] tells
 * them apart from open ones.
 */
static void close_all(struct base_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->dir_fd >= 0)
		close(f->dir_fd);
	f->fd = f->dir_fd = -1;
	f->tmp[0] = '\0';
}

int base_file_create(struct base_file *f, int dir_fd, const char *path, mode_t mode,
		     struct base_err *err)
{
	int r;

	*f = (struct base_file){ .dir_fd = -1, .fd = -1 };
	r = open_folder(dir_fd, path, f->name);
	if (r < 0)
		goto out;
	f->dir_fd = r;
	r = open_tmp(f, mode);
out:
	if (r < 0) {
		close_all(f);
		base_fail_errno(err, r, "cannot create '%s'", path);
	}
	return r;
}

int base_sync_dir(int dir_fd)
{
	/* Some file systems cannot sync a folder and say EINVAL: nothing more can be done there. */
	return fsync(dir_fd) < 0 && errno != EINVAL ? -errno : 0;
}

void base_sync_begin(int fd)
{
#ifdef SYNC_FILE_RANGE_WRITE
	/* A hint: whether it lasts, the sync that follows tells. */
	(void)!sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
#else
	(void)fd;
#endif
}

#ifdef __linux__
/* As of statfs(2). */
#define EXT4_MAGIC  UINT32_C(0xef53)
#define XFS_MAGIC   UINT32_C(0x58465342)
#define BTRFS_MAGIC UINT32_C(0x9123683e)

/* On disks of this machine: others may do less for a file system than for a file. */
static bool is_local(int fd)
{
	struct statfs s;

	if (fstatfs(fd, &s) < 0)
		return false;
	return (uint32_t)s.f_type == EXT4_MAGIC || (uint32_t)s.f_type == XFS_MAGIC ||
	       (uint32_t)s.f_type == BTRFS_MAGIC;
}

/* Before Linux 5.8 it said nothing of failures. */
static bool sync_tells(void)
{
	unsigned int major, minor;
	struct utsname u;

	return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 8));
}
#endif

int base_sync_file_system(int fd)
{
#ifdef __linux__
	if (is_local(fd) && sync_tells())
		return syncfs(fd) < 0 ? -errno : 1;
#endif
	(void)fd;
	return 0;
}

static int publish(struct base_file *f)
{
	int fd = f->fd;

	if (!f->brief && fsync(fd) < 0)
		return -errno;
	f->fd = -1;
	/* Linux closes even when it says EINTR. */
	if (close(fd) < 0 && errno != EINTR)
		return -errno;
	if (renameat(f->dir_fd, f->tmp, f->dir_fd, f->name) < 0)
		return -errno;
	f->tmp[0] = '\0';
	return f->brief ? 0 : base_sync_dir(f->dir_fd);
}

static int commit_in_place(struct base_file *f, struct base_err *err)
{
	int fd = f->fd;

	*f = (struct base_file){ .dir_fd = -1, .fd = -1 };
	if (close(fd) < 0 && errno != EINTR)
		return base_fail_errno(err, -errno, "cannot complete the output");
	return 0;
}

int base_file_commit(struct base_file *f, struct base_err *err)
{
	int r;

	if (f->in_place)
		return commit_in_place(f, err);
	if (!f->tmp[0])
		return base_fail(err, -EBADF, "cannot complete a file: none is open");
	r = publish(f);
	if (r < 0)
		base_fail_errno(err, r, "cannot complete '%s'", f->name);
	if (f->tmp[0])
		unlinkat(f->dir_fd, f->tmp, 0);
	close_all(f);
	return r;
}

void base_file_abort(struct base_file *f)
{
	if (f->in_place)
		commit_in_place(f, NULL);
	if (!f->tmp[0])
		return;
	unlinkat(f->dir_fd, f->tmp, 0);
	close_all(f);
}

static int fill(struct base_file *f, const char *path, const void *data, size_t len,
		struct base_err *err)
{
	int r = base_write_all(f->fd, data, len);

	if (r < 0)
		base_fail_errno(err, r, "cannot write '%s'", path);
	else
		r = base_file_commit(f, err);
	base_file_abort(f);
	return r;
}

int base_file_write(int dir_fd, const char *path, mode_t mode, const void *data, size_t len,
		    struct base_err *err)
{
	struct base_file f;
	int r = base_file_create(&f, dir_fd, path, mode, err);

	return r < 0 ? r : fill(&f, path, data, len, err);
}

/* A descriptor, or -ENOENT: a file is to be made. */
static int open_in_place(const char *path)
{
	struct stat st, own;
	int fd;

	if (stat(path, &st) < 0 || S_ISDIR(st.st_mode))
		return -ENOENT;
	if (fstat(STDOUT_FILENO, &own) == 0 && own.st_dev == st.st_dev && own.st_ino == st.st_ino)
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	else if (S_ISREG(st.st_mode))
		return -ENOENT;
	else
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

int base_output_create(struct base_file *f, const char *path, mode_t mode, struct base_err *err)
{
	int fd = open_in_place(path);

	if (fd == -ENOENT)
		return base_file_create(f, AT_FDCWD, path, mode, err);
	*f = (struct base_file){ .dir_fd = -1, .fd = fd, .in_place = fd >= 0 };
	return fd < 0 ? base_fail_errno(err, fd, "cannot create '%s'", path) : 0;
}

int base_output_write(const char *path, mode_t mode, const void *data, size_t len,
		      struct base_err *err)
{
	struct base_file f;
	int r = base_output_create(&f, path, mode, err);

	return r < 0 ? r : fill(&f, path, data, len, err);
}

static int check_regular(const struct stat *st)
{
	return S_ISREG(st->st_mode) ? 0 : S_ISDIR(st->st_mode) ? -EISDIR : -EINVAL;
}

/*
 * The type of the file is checked before the open, and again after it, since the name may lead to
 * another file by then.
 */
int base_regular_open(int dir_fd, const char *path, struct stat *st)
{
	int fd, r;

	if (fstatat(dir_fd, path, st, 0) < 0)
		return -errno;
	r = check_regular(st);
	if (r < 0)
		return r;
	fd = openat(dir_fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	r = fstat(fd, st) < 0 ? -errno : check_regular(st);
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

/* To the end, whatever size fstat told: files of /proc say 0, others grow. */
static int read_to_end(int fd, size_t max, struct base_buf *out)
{
	uint8_t beyond;

	for (;;) {
		size_t space = max - out->len, want;
		ssize_t n;

		if (space && base_grow(&out->data, &out->cap, out->len + 1, 1) < 0)
			return -ENOMEM;
		want = out->cap - out->len < space ? out->cap - out->len : space;
		n = space ? read(fd, out->data + out->len, want) : read(fd, &beyond, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		if (!space)
			return -DCPI_ELIMIT;
		out->len += (size_t)n;
	}
}

int base_dir_open(int dir_fd, const char *name, DIR **out)
{
	/* Opened anew: a shared descriptor would share its place in the listing. */
	int r, fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*out = fdopendir(fd);
	if (*out)
		return 0;
	r = -errno;
	close(fd);
	return r;
}

int base_file_read(int dir_fd, const char *path, size_t max, struct base_buf *out,
		   struct base_err *err)
{
	struct stat st;
	int r, fd = base_regular_open(dir_fd, path, &st);

	out->len = 0;
	if (fd == -EINVAL || fd == -EISDIR)
		return base_fail(err, fd, "cannot read '%s': not a regular file", path);
	if (fd < 0)
		return base_fail_errno(err, fd, "cannot open '%s'", path);
	/* One byte more than expected: the end is seen without growing again. */
	r = (uint64_t)st.st_size > max ? -DCPI_ELIMIT : 0;
	if (r == 0)
		r = base_grow(&out->data, &out->cap, st.st_size ? (size_t)st.st_size + 1 : 4096, 1);
	if (r == 0)
		r = read_to_end(fd, max, out);
	if (r == -DCPI_ELIMIT)
		base_fail(err, r, "cannot read '%s': larger than %zu bytes", path, max);
	else if (r < 0)
		base_fail_errno(err, r, "cannot read '%s'", path);
	if (r < 0)
		out->len = 0;
	close(fd);
	return r;
}
