/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpitar's two ways: a database's epochs into an archive, and out of it into another database. */
#ifndef DCPI_TAR_H
#define DCPI_TAR_H

#include "archive.h"
#include "profdb.h"
#include "select.h"

/* What an archive has of each part of a database. */
struct tar_sum {
	uint64_t nr[PROFDB_NR_PARTS], bytes[PROFDB_NR_PARTS];
};

/* 0 or -EINVAL: something is in it that is no part of a database, told in @err. */
int tar_sum(const struct archive_list *list, struct tar_sum *out, struct base_err *err);

/* What is packed on request alone. */
struct tar_also {
	bool images, values;
};

/*
 * What @sel selects into the archive @file. What is missing or cannot be read is told on stderr; a
 * part of the database itself among it makes 1 of 0. @sum: what was packed.
 */
int tar_pack(const char *prog, const struct select *sel, const struct tar_also *also,
	     const char *file, struct tar_sum *sum, struct base_err *err);
/* @sum: what the archive has; @kept: how many files the database had already. */
int tar_unpack(const char *file, const char *db, struct tar_sum *sum, uint64_t *kept,
	       struct base_err *err);

#endif
