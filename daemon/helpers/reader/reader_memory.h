/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In the reader process: the memory of the process that a request is about, and of no other. It is
 * opened once; after an exec the opened memory is the old one, or reads nothing, whatever the
 * process has become.
 */
#ifndef DCPI_READER_MEMORY_H
#define DCPI_READER_MEMORY_H

#include "reader_internal.h"

/*
 * A descriptor of the memory of process @q, which stays this module's; -1 where it is not to be
 * read: it is not that life any more, not user @q->uid's alone, not to be dumped, or, where
 * @registry is not -1, has not mapped that file. All of that is asked after it was opened.
 */
int reader_memory_open(const struct reader_request *q, int registry);
/* The caller's, of whatever program @pid runs; or -errno. */
int reader_memory_open_any(int32_t pid);
/* Is it so still? To be asked before what was read is given away. */
bool reader_memory_good(const struct reader_request *q);
/* As struct registry_memory has it; @ctx is a pointer to the descriptor. -ESRCH: the program is
 * gone. */
ssize_t reader_memory_read(void *ctx, uint64_t addr, void *to, size_t len);

#endif
