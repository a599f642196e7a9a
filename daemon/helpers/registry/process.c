/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "registry.h"

/* Fields of /proc/PID/stat, counted from 1 as proc(5) does. */
enum { STARTTIME = 22, STARTCODE = 26, ENDCODE = 27, STARTSTACK = 28, NR_FIELDS = 28 };

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

int registry_process_life(int32_t pid, uint64_t *start_time_ns, uint64_t *life)
{
	uint64_t value[NR_FIELDS + 1] = { 0 }, key[5];
	long hz = sysconf(_SC_CLK_TCK);
	char path[64], text[1024];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -ESRCH;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0 || hz <= 0)
		return -ESRCH;
	text[n] = '\0';
	if (stat_fields(text, value) < 0)
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
