/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpitar's two ways: a database's epochs into an archive, and out of it into another database. */
#ifndef DCPI_TAR_H
#define DCPI_TAR_H

#include "tarball.h"
#include "profdb.h"
#include "select.h"

/* Totals of the files in each part of a database. */
struct tar_sum {
	uint64_t nr[PROFDB_NR_PARTS], bytes[PROFDB_NR_PARTS];
};

/* 0 or -EINVAL: something is in it that is no part of a database, told in @err. */
int tar_sum(const struct tarball_list *list, struct tar_sum *out, struct base_err *err);

/* Files that are packed on request only. */
struct tar_also {
	bool images, values;
};

/*
 * Pack the files that @sel selects into the archive @file. Missing or unreadable ones are reported
 * on stderr; if one is a part of the database itself, 0 becomes 1. @sum: totals of the packed
 * files.
 */
int tar_pack(const char *prog, const struct select *sel, const struct tar_also *also,
	     const char *file, struct tar_sum *sum, struct base_err *err);
/* @sum: what the archive has; @kept: how many files the database had already. */
int tar_unpack(const char *file, const char *db, struct tar_sum *sum, uint64_t *kept,
	       struct base_err *err);

#endif
