/* SPDX-License-Identifier: BSD-2-Clause */
/* The targets of indirect jumps. */
#ifndef DCPI_FLOW_TABLES_H
#define DCPI_FLOW_TABLES_H

#include "walk.h"

/* Looks for the targets of each unresolved indirect jump. Returns the number of jumps resolved,
 * or -ENOMEM. */
int flow_tables_find(struct flow_walk *w, const struct flow *f);

#endif
