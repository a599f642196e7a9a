/* SPDX-License-Identifier: BSD-2-Clause */
/* In the reader process: where a process has the descriptors of GDB's JIT interface (foreign.h). */
#ifndef DCPI_READER_GDB_H
#define DCPI_READER_GDB_H

#include "reader_internal.h"

/*
 * Ask each file that process @q has mapped for code; what a file answered is remembered. Heads go
 * to @g, in order of their files' mappings, whose other fields become 0. 0; 1: there was no time
 * for all of them, ask again; -errno.
 */
int reader_gdb_find(const struct reader_request *q, uint64_t deadline_ns, struct foreign_gdb *g);

#endif
