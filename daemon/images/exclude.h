/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpiexclusions(5): whose samples are not stored. A text of lines: '#' and what follows to the end
 * of a line is a comment; "PID n" or "PID n-m" a process or several; else an image's short name.
 */
#ifndef DCPI_EXCLUDE_H
#define DCPI_EXCLUDE_H

#include <string.h>

#include "base.h"

#define EXCLUDE_FILE_MAX (256u << 10)
#define EXCLUDE_NAME_MAX 255

struct exclude_pids {
	int32_t first, last;
};

struct exclude {
	struct base_map images; /* excluded images, by name */
	struct exclude_pids *pids;
	size_t nr_pids, cap_pids;
};

/* Add what @text says. 0; -DCPI_EUSAGE with the line in @err; -DCPI_ELIMIT; -ENOMEM. */
int exclude_parse(struct exclude *x, const char *text, size_t len, const char *name,
		  struct base_err *err);
/* The same of a file. Also what base_file_read returns. */
int exclude_read(struct exclude *x, const char *path, struct base_err *err);
void exclude_release(struct exclude *x);
bool exclude_has_pid(const struct exclude *x, int32_t pid);
/* Whether the last part of @path is excluded; a facility has only one part. */
static inline bool exclude_has_image(const struct exclude *x, const char *path)
{
	const char *name = base_path_name(path);

	return x->images.nr && base_map_get(&x->images, name, strlen(name));
}

#endif
