/* SPDX-License-Identifier: BSD-2-Clause */
/* A control group of the helpers' own (group.c). */
#ifndef DCPI_DAEMON_GROUP_H
#define DCPI_DAEMON_GROUP_H

#include "base.h"

/*
 * The control group of this process, as a folder of the hierarchy of version 2 (cgroups(7)) that is
 * mounted at @root. False: there is none.
 */
bool group_own(const char *root, char *path, size_t size);
/*
 * Divide the group @path, if its manager left it to this process (Delegate= of a unit): the process
 * goes into "dcpid" in it, and "helpers", which has limits of memory, tasks and CPU time, is for
 * helper programs. A descriptor, for whoever writes the ids of these; -ENOENT: it was not left to
 * this process, and nothing is changed; or another -errno with @err.
 */
int group_divide(const char *path, struct base_err *err);

/* Divide the group of this process, and have helpers started in their part of it from now on: one
 * that takes too much is what ends then, not dcpid. */
void group_open(void);

#endif
