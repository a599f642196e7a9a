/* SPDX-License-Identifier: BSD-2-Clause */
/* The facts that dcpix learns about a run from valgrind's log: apart for the unit test of them. */
#ifndef DCPIX_H
#define DCPIX_H

#include "callgrind.h"

struct dcpix_process {
	uint32_t pid;
	struct callgrind_maps maps;
	size_t nr_inherited; /* the number of these that a fork copied from the parent; they come
				first */
	char *reading;	     /* image named last */
	char *dumping;	     /* dump being written */
	bool last;	     /* that one is its last */
	bool ended;
};

struct dcpix_run {
	char *folder; /* our temporary folder: holds the log, a FIFO, and the dumps */
	int log_fd;
	struct base_buf log; /* the last, unfinished line */
	struct dcpix_process *processes;
	size_t nr_processes, cap_processes;
	struct callgrind_dump *dumps;
	size_t nr_dumps, cap_dumps;
	char *alarm; /* valgrind's first message about something that it cannot do */
	int64_t utc; /* when it began */
};

/* Make the folder. 0 or negative with @err. */
int dcpix_run_open(struct dcpix_run *run, struct base_err *err);
/* Removes the folder too. */
void dcpix_run_close(struct dcpix_run *run);
/* Wait for the log, at most @timeout_ms, and take all that is there. 0 or negative with @err. */
int dcpix_log_read(struct dcpix_run *run, int timeout_ms, struct base_err *err);
size_t dcpix_nr_open(const struct dcpix_run *run); /* number of processes whose end was not seen */

#endif
