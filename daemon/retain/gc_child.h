/* SPDX-License-Identifier: BSD-2-Clause */
/* A child of the daemon's that runs gc: it reads what applications made, and takes as long as the
 * database is large. */
#ifndef DCPI_DAEMON_GC_CHILD_H
#define DCPI_DAEMON_GC_CHILD_H

#include "gc.h"

/*
 * It closes every descriptor, keeps no right but that to remove files, ends with the daemon, and
 * exits with 0 or BASE_EXIT_FAILED. @config's functions are not called. What it did, or why it
 * could not, it writes to *@report as a line, whose reading end the caller owns; NULL: nowhere.
 * Lines before that begin with GC_CHILD_NOTE: warnings. Its pid, or -errno.
 */
#define GC_CHILD_NOTE "note: "
int32_t gc_child_start(const char *path, const struct gc_config *config, int *report);

#endif
