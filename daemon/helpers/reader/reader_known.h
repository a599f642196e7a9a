/* SPDX-License-Identifier: BSD-2-Clause */
/* In the reader process: what files were identified as, for as long as nothing changes them. */
#ifndef DCPI_READER_KNOWN_H
#define DCPI_READER_KNOWN_H

#include <sys/stat.h>

#include "base.h"

struct reader_known {
	struct base_id id;
	struct base_id text; /* len 0: not asked for yet */
	struct base_extent extent;
	bool elf;
};

bool reader_known_find(const struct stat *st, struct reader_known *out);
/* @st is from before the file was read. What has changed just now is not remembered. */
void reader_known_add(const struct stat *st, const struct reader_known *k);
/* It may have other contents than it had at @since_ns (CLOCK_REALTIME; 0: false). */
bool reader_written_since(const struct stat *st, uint64_t since_ns);

#endif
