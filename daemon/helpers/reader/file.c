/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that processes name (mapped files, dumps, perf maps, roots) are opened and checked. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "reader_file.h"

/* Not in every libc's headers. */
#define FS_BTRFS    0x9123683eu
#define FS_XFS	    0x58465342u
#define FS_OVERLAY  0x794c7630u
#define FS_F2FS	    0xf2f52010u
#define FS_ZFS	    0x2fc12fc1u
#define FS_TMPFS    0x01021994u
#define FS_EXT	    0xef53u
#define FS_RAMFS    0x858458f6u
#define FS_BCACHEFS 0xca451a4eu
#define FS_SQUASHFS 0x73717368u
#define FS_EROFS    0xe0f5e1e2u

/* Shorter than any image; a jitdump file's head alone is 40. */
enum { SHORT_LEN = 40 };

/* Whether /proc/PID/maps has, from @q->addr on, the file that is meant. */
static bool map_is(const struct reader_request *q)
{
	char name[64], *line = NULL;
	uint64_t start, inode;
	uint32_t major, minor;
	bool found = false, is = false;
	size_t cap = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", q->pid);
	f = fopen(name, "re");
	while (f && !found && getline(&line, &cap, f) > 0) {
		found = sscanf(line, "%" SCNx64 "-%*x %*s %*x %" SCNx32 ":%" SCNx32 " %" SCNu64,
			       &start, &major, &minor, &inode) == 4 &&
			start == q->addr;
		is = found && major == q->dev_major && minor == q->dev_minor && inode == q->inode;
	}
	free(line);
	if (f)
		fclose(f);
	return is;
}

/* Not opened yet: to open a device can do things, and to open a FIFO waits. */
static int look_at(const char *path, struct stat *st)
{
	int fd = open(path, O_PATH | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = fstat(fd, st) < 0 ? -errno : S_ISREG(st->st_mode) ? 0 : -EINVAL;
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

/* The build-id is compared when the file was read. */
static bool is_meant(const struct reader_request *q, const struct stat *st)
{
	return q->id.len ||
	       (st->st_ino == q->inode && st->st_dev == makedev(q->dev_major, q->dev_minor));
}

static int stale(int fd)
{
	close(fd);
	return -ESTALE;
}

/*
 * map_files takes a right that may be missing. Of file systems that have several devices stat(2)
 * tells another one than the kernel's maps do: then these are asked, before and afterwards.
 */
static int look_at_map(const struct reader_request *q)
{
	struct stat st;
	char path[64];
	int fd;

	reader_map_file(q, path);
	fd = look_at(path, &st);
	if (fd < 0 || is_meant(q, &st))
		return fd;
	stale(fd);
	if (!map_is(q))
		return -ESTALE;
	fd = look_at(path, &st);
	return fd < 0 || map_is(q) ? fd : stale(fd);
}

/* @mapped: such file systems too, for the process may have it mapped still. */
static int look_at_path(const struct reader_request *q, const char *root, bool mapped)
{
	char path[sizeof(q->path) + 64];
	struct stat st;
	int fd;

	if (q->path[0] != '/')
		return -ENOENT;
	snprintf(path, sizeof(path), "%s%s", root, q->path);
	fd = look_at(path, &st);
	if (fd < 0 || is_meant(q, &st) || (mapped && st.st_ino == q->inode && map_is(q)))
		return fd;
	return stale(fd);
}

/*
 * The mapping may be another file's by now, and so may the path; and the process may be gone: then
 * the path may lead there in our own root.
 */
int reader_mapped_look(const struct reader_request *q)
{
	char path[64];
	int fd = look_at_map(q);

	snprintf(path, sizeof(path), "/proc/%d/root", q->pid);
	if (fd < 0)
		fd = look_at_path(q, path, true);
	return fd < 0 ? look_at_path(q, "", false) : fd;
}

int reader_looked_open(int fd)
{
	char path[64];
	int readable;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	readable = open(path, O_RDONLY | O_CLOEXEC);
	return readable < 0 ? -errno : readable;
}

/* ---- files that runtimes write --------------------------------------------------------------- */

/*
 * A file system that lives in a process (FUSE), or on another machine, can make each reading wait
 * for as long as a request may take. The layers of an overlay are not known: it is believed, and
 * refused when it holds the helper.
 */
static bool is_local(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	switch ((uint32_t)fs.f_type) {
	case FS_TMPFS:
	case FS_RAMFS:
	case FS_EXT:
	case FS_XFS:
	case FS_BTRFS:
	case FS_BCACHEFS:
	case FS_F2FS:
	case FS_ZFS:
	case FS_OVERLAY:
	case FS_SQUASHFS: /* images of containers; root alone mounts one */
	case FS_EROFS:
		return true;
	}
	return false;
}

/* Do paths of process @pid lead elsewhere than ours, by a mount namespace or root folder of its
 * own?
 */
static bool is_elsewhere(int32_t pid)
{
	char path[64], root[2];
	struct stat its, ours;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	if (stat(path, &its) < 0 || stat("/proc/self/ns/mnt", &ours) < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	return its.st_ino != ours.st_ino || its.st_dev != ours.st_dev ||
	       readlink(path, root, sizeof(root)) != 1;
}

/*
 * Does the path of its mapping lead to no such file here? *@twin: another file of that size, which
 * its identity alone tells from it, as builds and images may give all files one time; else -1.
 */
static bool is_hidden(const struct reader_request *q, const struct stat *st, int *twin)
{
	struct stat here;
	int fd;

	if (q->path[0] != '/' || !is_elsewhere(q->pid))
		return false;
	fd = look_at(q->path, &here);
	if (fd < 0)
		return true;
	if (here.st_dev == st->st_dev && here.st_ino == st->st_ino) {
		close(fd);
		return false;
	}
	if (here.st_size == st->st_size && is_local(fd))
		*twin = fd;
	else
		close(fd);
	return true;
}

int reader_removed_look(const struct reader_request *q, struct stat *st, int *twin)
{
	int fd = look_at_map(q), r = 0;

	*twin = -1;
	if (fd < 0)
		return fd;
	if (fstat(fd, st) < 0)
		r = -errno;
	else if (st->st_nlink && !is_hidden(q, st, twin))
		r = -EEXIST;
	else if (!is_local(fd))
		r = -EREMOTE;
	else if (st->st_size > READER_COPY_MAX)
		r = -EFBIG;
	/* Users outside of the container could read nothing of such a file. */
	if (r == 0 && st->st_nlink)
		st->st_mode &= ~(mode_t)S_IRWXO;
	if (r == 0)
		return fd;
	if (*twin >= 0)
		close(*twin);
	close(fd);
	return r;
}

int reader_is_dump(int fd, bool begins_so)
{
	struct stat st;
	bool is = begins_so || (fstat(fd, &st) == 0 && st.st_size < SHORT_LEN);

	return is && !is_local(fd) ? -EREMOTE : is;
}

/* Without the call below: then no link is followed on the way either. */
static int look_in_tmp(int root, const char *name)
{
	int tmp = openat(root, "tmp", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), fd;

	if (tmp < 0)
		return -errno;
	fd = openat(tmp, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	close(tmp);
	return fd;
}

/*
 * Links on the way stay below @root; the file itself must be none. A service that may make no
 * set-user-ID files (RestrictSUIDSGID= of a unit) is told that there is no such call.
 */
static int look_below(int root, const char *base)
{
	char name[64];
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd;

	snprintf(name, sizeof(name), "tmp/%s", base);
	fd = (int)syscall(SYS_openat2, root, name, &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS)
		return look_in_tmp(root, base);
	return fd < 0 ? -errno : fd;
}

static bool is_older(const struct stat *st, uint64_t since_ns)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec <
	       since_ns;
}

int reader_perfmap_open(const struct reader_request *q, int root)
{
	char name[48];
	struct stat st;
	int fd, r = 0;

	snprintf(name, sizeof(name), "perf-%d.map", q->ns_pid);
	fd = look_below(root, name);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = S_ISLNK(st.st_mode) ? -ELOOP : -EINVAL;
	else if (is_older(&st, q->since_ns))
		r = -ENOENT;
	else if (st.st_uid != q->uid)
		r = -EPERM;
	else if (!is_local(fd))
		r = -EREMOTE;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}
