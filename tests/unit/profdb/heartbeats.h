/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts how often a lock is kept alive (link with --wrap=profdb_lock_heartbeat). */
#ifndef DCPI_TESTS_PROFDB_BEATS_H
#define DCPI_TESTS_PROFDB_BEATS_H

#include "profdb.h"

static int nr_heartbeats;

void __real_profdb_lock_heartbeat(struct profdb *db);
void __wrap_profdb_lock_heartbeat(struct profdb *db);
void __wrap_profdb_lock_heartbeat(struct profdb *db)
{
	nr_heartbeats++;
	__real_profdb_lock_heartbeat(db);
}

#endif
