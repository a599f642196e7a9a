/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts how often a lock is kept alive (link with --wrap=profdb_lock_beat). */
#ifndef DCPI_TESTS_PROFDB_BEATS_H
#define DCPI_TESTS_PROFDB_BEATS_H

#include "profdb.h"

static int nr_beats;

void __real_profdb_lock_beat(struct profdb *db);
void __wrap_profdb_lock_beat(struct profdb *db);
void __wrap_profdb_lock_beat(struct profdb *db)
{
	nr_beats++;
	__real_profdb_lock_beat(db);
}

#endif
