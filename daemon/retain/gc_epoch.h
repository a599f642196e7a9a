/* SPDX-License-Identifier: BSD-2-Clause */
/* Which epochs go, in which order: inside gc.c, and for its tests. */
#ifndef DCPI_DAEMON_GC_EPOCH_H
#define DCPI_DAEMON_GC_EPOCH_H

#include "retain.h"

struct gc_epoch {
	char *name;
	uint64_t len; /* bytes, in blocks */
	bool old, finished;
	size_t rank; /* from 1 on, by the order in which they go; GC_STAYS */
};

#define GC_STAYS SIZE_MAX

struct gc_epochs {
	struct gc_epoch *v; /* ascending by name */
	size_t nr, cap;
	size_t removed; /* entries up to this rank are removed */
};

/*
 * How many of them go (removed), of a database of @total bytes, when the files that only they refer
 * to go with them; those that are older than @young_ns. What is left then.
 */
uint64_t gc_epochs_choose(struct gc_epochs *e, const struct gc_file *files, size_t nr,
			  uint64_t young_ns, uint64_t total, uint64_t size);
/* Bytes of all files in folder @name of @dir_fd, in blocks, and of the folders below. */
uint64_t gc_tree_len(int dir_fd, const char *name);

#endif
