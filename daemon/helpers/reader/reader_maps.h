/* SPDX-License-Identifier: BSD-2-Clause */
/* In the reader process: the mappings of a process (maps.c). */
#ifndef DCPI_READER_MAPS_H
#define DCPI_READER_MAPS_H

#include "base.h"

/* The text of /proc/@pid/maps onto @out; nothing where it has no address space. 0 or -errno. */
int reader_maps_read(int32_t pid, struct base_buf *out);

#endif
