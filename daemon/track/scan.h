/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc tells of processes (scan.c). */
#ifndef DCPI_DAEMON_SCAN_H
#define DCPI_DAEMON_SCAN_H

#include "attrib.h"

/* Read one process from /proc: start time, uid, name, mappings. -ESRCH where it is gone, -ESTALE
 * where another one has its pid. */
int scan_process(struct attrib *a, struct process *p);
/* Start time, parent, uid and name alone. -ESTALE: that pid is another process's by now, and
 * nothing is written; -ESRCH where it is gone. */
int scan_describe(struct process *p);
/* 0: all of the process's uids are @uid; -EPERM; -ESRCH. */
int scan_check_owner(int32_t pid, uint32_t uid);
/* 0: all of [start, end) is executable memory of the process; -ENOENT; -errno. */
int scan_check_code(int32_t pid, uint64_t start, uint64_t end);
/* Read all of them; returns how many. */
int scan_all(struct attrib *a);
/* Read those again that are known, and end those whose pid is another process's. */
void scan_known(struct attrib *a);
/* Forget processes that /proc no longer has (their end was lost). */
void scan_sweep(struct attrib *a);
/*
 * Calls @fn with the executable memory of @p that is in no file, as it is now, and what adjoins it
 * of other such memory: runtimes reserve more than they use yet.
 */
void scan_dynamic(const struct process *p, void (*fn)(void *ctx, uint64_t start, uint64_t end),
		  void *ctx);
/* One line of /proc/PID/maps into @l (path points into @line, which is changed): 1 executable, 0
 * other, -DCPI_EFORMAT. */
int scan_parse_line(char *line, struct driver_load *l);

#endif
