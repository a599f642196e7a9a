/* SPDX-License-Identifier: BSD-2-Clause */
/* A service's control group is divided, so that its helpers have limits of their own. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "group.h"

/*
 * Ten helpers are usual. Four of them work at the same time: those of the main loop, of the tables
 * of call paths, and of traces.
 */
enum { TASKS = 48, CPUS = 4, PERIOD_US = 100000 };
/* The group of all may have so many times the memory of the helpers. */
enum { PART = 2 };

static int read_text(int dir, const char *name, char *text, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : read(fd, text, size - 1);

	if (fd >= 0 && n < 0)
		n = -errno;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n < 0 ? (int)n : 0;
}

static int write_text(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* ---- whose it is ----------------------------------------------------------------------------- */

bool group_own(const char *root, char *path, size_t size)
{
	char text[PATH_MAX], *at;

	if (read_text(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) < 0)
		return false;
	/* The hierarchy of version 2 is number 0. */
	at = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
	if (!at)
		return false;
	at = strstr(at, "0::/") + 3;
	at[strcspn(at, "\n")] = '\0';
	return snprintf(path, size, "%s%s", root, at) < (int)size;
}

/* As systemd marks it, from version 251 on. */
static bool is_delegated(const char *path)
{
	char mark[2] = "";

	return getxattr(path, "user.delegate", mark, sizeof(mark)) == 1 && mark[0] == '1';
}

/* ---- the two groups -------------------------------------------------------------------------- */

static int make(int dir, const char *name)
{
	int fd;

	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* "max" where no limit was set. */
static uint64_t memory_of(int dir)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	char text[32];
	uint64_t most;

	if (read_text(dir, "memory.max", text, sizeof(text)) < 0)
		return all;
	text[strcspn(text, "\n")] = '\0';
	return base_number_parse(text, &most) && most < all ? most : all;
}

static int limit(int dir, int helpers)
{
	char memory[32], tasks[32], cpu[48];
	const struct {
		const char *file, *text;
	} limits[] = { { "memory.max", memory }, { "pids.max", tasks }, { "cpu.max", cpu } };
	int r = 0;

	snprintf(memory, sizeof(memory), "%" PRIu64, memory_of(dir) / PART);
	snprintf(tasks, sizeof(tasks), "%d", TASKS);
	snprintf(cpu, sizeof(cpu), "%d %d", CPUS * PERIOD_US, PERIOD_US);
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		int one = write_text(helpers, limits[i].file, limits[i].text);

		/* A manager may have kept a controller for itself. */
		r = one < 0 && one != -ENOENT && r == 0 ? one : r;
	}
	return r;
}

/* Controllers can be given to the two when this process has left the group itself. */
static int divide(int dir, int own, int helpers)
{
	static const char *const controllers[] = { "+memory", "+pids", "+cpu" };
	int r = write_text(own, "cgroup.procs", "0");

	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(controllers) / sizeof(*controllers); i++)
		(void)write_text(dir, "cgroup.subtree_control", controllers[i]);
	return limit(dir, helpers);
}

int group_divide(const char *path, struct base_err *err)
{
	int dir, own = -1, helpers = -1, fd = -1, r = 0;

	if (!is_delegated(path))
		return -ENOENT;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return base_fail_errno(err, -errno, "cannot open control group '%s'", path);
	own = r = make(dir, "dcpid");
	if (r >= 0)
		helpers = r = make(dir, "helpers");
	if (r >= 0)
		r = divide(dir, own, helpers);
	if (r >= 0) {
		fd = openat(helpers, "cgroup.procs", O_WRONLY | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	if (helpers >= 0)
		close(helpers);
	if (own >= 0)
		close(own);
	close(dir);
	return r < 0 ? base_fail_errno(err, r, "cannot divide control group '%s'", path) : fd;
}

void group_open(void)
{
	struct base_err err = { 0 };
	char path[PATH_MAX];
	int fd;

	if (!group_own("/sys/fs/cgroup", path, sizeof(path)))
		return;
	fd = group_divide(path, &err);
	if (fd < 0 && err.code)
		base_log(BASE_LOG_WARN, "helpers have no limits of their own: %s", err.text);
	if (fd < 0)
		return;
	base_group_set(fd);
	base_log(BASE_LOG_INFO, "helpers have a control group of their own");
}
