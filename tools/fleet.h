/* SPDX-License-Identifier: BSD-2-Clause */
/* A fleet's store in place of a database: -db clickhouse://HOST/DATABASE. */
#ifndef DCPI_TOOLS_FLEET_H
#define DCPI_TOOLS_FLEET_H

#include <limits.h>

#include "select.h"

/* The detail that a report needs of a store. */
enum fleet_detail {
	FLEET_PLATFORM,	       /* samples of each machine */
	FLEET_WORKLOAD,	       /* samples by workload, without pids and threads */
	FLEET_ROUTINE,	       /* samples by routine, of all machines together */
	FLEET_REPLICATES,      /* the same, and once more by replicate */
	FLEET_OFFSET,	       /* samples by instruction, of all machines together */
	FLEET_INSN_REPLICATES, /* the same, and once more by replicate */
	FLEET_PATHS,	       /* samples with call paths */
	FLEET_FILES,	       /* all that each machine has, with call paths and workloads */
};

/*
 * Where @s names a store, dcpifetch copies what is chosen of it, of the images @what alone if some
 * are given, into a database that is removed when this process ends. Afterwards @s names that
 * database, and chooses all of it. @detail is what the report itself needs: where @s chooses
 * callers or workloads, the copy has all images and the files that tell these. 0, at once where @s
 * names no store, or negative with @err.
 */
int fleet_use(struct select *s, enum fleet_detail detail, int nr, char *const *what,
	      struct base_err *err);
/* -DCPI_EUSAGE where @s names a store and the command needs a database. Else 0. */
int fleet_refuse(const struct select *s, struct base_err *err);
/* Are the workloads of the database at @path replicates, called "replicate N"? */
bool fleet_has_replicates(const char *path);
/* Copies all symbols of the images with these build-ids, without samples, from the store that the
 * database at @path was copied from: into @folder/kernel/ID.symbols, for the time of this process.
 * 0 or negative with @err. */
int fleet_symbols(const char *path, size_t nr, char *const *ids, char folder[PATH_MAX],
		  struct base_err *err);
/* The store that the database at @path was copied from, as the user named it; else NULL. */
const char *fleet_name(const char *path);

#endif
