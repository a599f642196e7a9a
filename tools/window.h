/* SPDX-License-Identifier: BSD-2-Clause */
/* The window of time that -since and -until choose, and what heads of reports say of it. */
#ifndef DCPI_WINDOW_H
#define DCPI_WINDOW_H

#include <json.h>
#include <stdio.h>

#include "select.h"
#include "workload.h"

/* The window of the options, in whole minutes, into @sel. 0 or -DCPI_EUSAGE with @err. */
int window_choose(const struct select *s, struct analysis_selection *sel, struct base_err *err);
/* The epochs of @db that @s selects, as profdb_epoch_select; those of its time as a whole. */
int window_epochs(const struct select *s, struct profdb *db, char ***out, struct base_err *err);
/* Whether @a, which was opened with it, is to be restricted to minutes. */
bool window_cuts(const struct select *s, const struct analysis *a);
/* Notes in @a the epochs that count as a whole, where what is shown has no minutes. */
void window_whole(const struct select *s, struct analysis *a);
/* Its lines of a report's head, none without a window; the same as a member of @root. */
void window_head(const struct analysis *a, FILE *to);
void window_json(const struct analysis *a, struct json_object *root);

#endif
