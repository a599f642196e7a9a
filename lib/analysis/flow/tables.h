/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding the targets of indirect jumps. */
#ifndef DCPI_FLOW_TABLES_H
#define DCPI_FLOW_TABLES_H

#include "walk.h"

/* Try each indirect jump whose targets are not known. Returns how many were found. */
int flow_tables_find(struct flow_walk *w, const struct flow *f);

#endif
