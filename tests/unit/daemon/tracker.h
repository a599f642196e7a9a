/* SPDX-License-Identifier: BSD-2-Clause */
/* A tracker (dyn) with its helpers and a database; we are the process that it follows. */
#ifndef TRACKER_H
#define TRACKER_H

#include "jit_internal.h"

struct tracker {
	char dir[64], db_path[128]; /* one within the other */
	struct profdb *db;
	struct images *images;
	struct reader *reader;
	struct dyn *dyn;
	struct process p;
};

/* For a test of cmocka. *@state stays NULL where the helpers cannot be run. */
int tracker_setup(void **state);
int tracker_teardown(void **state);
/* Where a test has closed t->dyn. */
void tracker_open_dyn(struct tracker *t, const char *helper_dir);

#define TRACKER(state)                                                                             \
	struct tracker *t = *(state);                                                              \
	if (!t)                                                                                    \
	skip()

#endif
