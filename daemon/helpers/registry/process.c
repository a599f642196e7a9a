/* SPDX-License-Identifier: BSD-2-Clause */
/* A client as /proc tells it: its life, its user, and what it has mapped. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "registry.h"

/* Fields of /proc/PID/stat, counted from 1 as proc(5) does. */
enum { STARTTIME = 22, VSIZE = 23, STARTCODE = 26, ENDCODE = 27, STARTSTACK = 28, NR_FIELDS = 28 };

/* The name (field 2) may hold blanks and parentheses: fields count from its last parenthesis. */
static int stat_fields(char *text, uint64_t value[NR_FIELDS + 1])
{
	char *p = strrchr(text, ')');

	for (int field = 2; p && field < NR_FIELDS; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
		value[field + 1] = p ? strtoull(p, NULL, 10) : 0;
	}
	return p ? 0 : -ESRCH;
}

static int read_stat(int32_t pid, uint64_t value[NR_FIELDS + 1])
{
	char path[64], text[1024];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -ESRCH;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	return stat_fields(text, value);
}

bool registry_process_has_ended(int32_t pid)
{
	uint64_t value[NR_FIELDS + 1] = { 0 };

	return read_stat(pid, value) < 0 || !value[VSIZE];
}

int registry_process_life(int32_t pid, uint64_t *start_time_ns, uint64_t *life)
{
	uint64_t value[NR_FIELDS + 1] = { 0 }, key[5];
	long hz = sysconf(_SC_CLK_TCK);

	if (hz <= 0 || read_stat(pid, value) < 0)
		return -ESRCH;
	if (start_time_ns)
		*start_time_ns = value[STARTTIME] * (1000000000ull / (unsigned long)hz);
	key[0] = (uint32_t)pid;
	key[1] = value[STARTTIME];
	key[2] = value[STARTCODE];
	key[3] = value[ENDCODE];
	key[4] = value[STARTSTACK];
	if (life)
		*life = base_hash64(key, sizeof(key)) | 1;
	return 0;
}

int registry_process_check(int32_t pid, uint32_t uid)
{
	unsigned int real, effective, saved;
	char path[64], *line = NULL;
	size_t cap = 0;
	int r = -ESRCH;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && r == -ESRCH && getline(&line, &cap, f) > 0)
		if (sscanf(line, "Uid: %u %u %u", &real, &effective, &saved) == 3)
			r = real == uid && effective == uid && saved == uid ? 0 : -EPERM;
	free(line);
	if (f)
		fclose(f);
	return r;
}

/* The kernel makes root the owner of the files of a process that may not be dumped. */
bool registry_process_open(int32_t pid, uint32_t uid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return stat(path, &st) == 0 && st.st_uid == uid;
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* A line of its maps, in the order of addresses: true when all of @part was found, of which what
 * lies before *@at was already. */
static bool line_ends(const char *line, const struct stat *file, const struct registry_part *part,
		      uint64_t *at)
{
	uint64_t start, end, off, inode;
	unsigned int major, minor;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %x:%x %" SCNu64, &start, &end,
		   &off, &major, &minor, &inode) != 6 ||
	    inode != file->st_ino || makedev(major, minor) != file->st_dev)
		return false;
	if (part->len && start <= *at && end > *at &&
	    *at - start + off == *at - part->addr + part->off)
		*at = end;
	return *at >= part->addr + part->len;
}

/* 1, 0, or -ENODATA: it has no address space. */
static int maps_have(const char *path, const struct stat *file, const struct registry_part *part)
{
	FILE *f = fopen(path, "re");
	uint64_t at = part->addr;
	char *line = NULL;
	int r = -ENODATA;
	size_t cap = 0;

	while (f && r != 1 && getline(&line, &cap, f) > 0)
		r = line_ends(line, file, part, &at);
	free(line);
	if (f)
		fclose(f);
	return r;
}

/* Where the main thread has ended, the others show what there is. */
bool registry_process_maps(int32_t pid, const struct stat *file, const struct registry_part *part)
{
	char path[64], name[400];
	struct dirent *entry;
	DIR *task;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	r = maps_have(path, file, part);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	task = r == -ENODATA ? opendir(path) : NULL;
	while (task && r == -ENODATA && (entry = readdir(task))) {
		snprintf(name, sizeof(name), "%s/%s/maps", path, entry->d_name);
		r = maps_have(name, file, part);
	}
	if (task)
		closedir(task);
	return r == 1;
}
