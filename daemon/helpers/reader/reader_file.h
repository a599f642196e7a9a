/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In the reader process: files that processes have mapped, or write their code's names into. To
 * open one can wait, and can do things (devices), so each is looked at first; and it may be another
 * one than was meant.
 */
#ifndef DCPI_READER_FILE_H
#define DCPI_READER_FILE_H

#include <sys/stat.h>

#include "reader_internal.h"

/* Where /proc has the mapping of @q. */
static inline void reader_map_file(const struct reader_request *q, char path[64])
{
	snprintf(path, 64, "/proc/%d/map_files/%llx-%llx", q->pid, (unsigned long long)q->addr,
		 (unsigned long long)q->end);
}
/*
 * The file that mapping @q was of, in two steps: only looked at (O_PATH), for the mapping, or the
 * path, may lead to another one by now; and what was looked at opened to read. -ESTALE, -EINVAL:
 * not a regular file, -errno.
 */
int reader_mapped_look(const struct reader_request *q);
int reader_looked_open(int fd);
/*
 * The file that mapping @q is of, if no name leads to it any more, or path @q->path leads to it in
 * a container alone: looked at as above. *@st is its status, with the rights that users outside
 * have. *@twin is -1, or the caller's: another file, looked at too, that the path leads to outside;
 * if that one has the same identity, the file is no container's alone. -EEXIST: it can be found;
 * -EREMOTE: on a file system on which reading it could wait; -EFBIG: larger than READER_COPY_MAX.
 */
int reader_removed_look(const struct reader_request *q, struct stat *st, int *twin);
/*
 * Is @fd one that its runtime writes code into, to be followed by dcpid: a jitdump file, as which
 * it
 * @begins_so, or too short to be anything yet? 1, 0; -EREMOTE: on a file system on which reading it
 * could wait.
 */
int reader_is_dump(int fd, bool begins_so);
/*
 * The perf map of process @q->ns_pid below @root (O_PATH). -EPERM: it is not of user @q->uid;
 * -ELOOP: a link; -EINVAL: not a regular file; -EREMOTE; -ENOENT, also where it is older than
 * @q->since_ns: another process had that number; -errno.
 */
int reader_perfmap_open(const struct reader_request *q, int root);

#endif
