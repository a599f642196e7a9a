/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that takes over a second shows a bar on the user's terminal, and the time left. For one
 * thread.
 */
#ifndef DCPI_PROGRESS_H
#define DCPI_PROGRESS_H

#include <stdint.h>
#include <stdio.h>

/* From here on progress is shown on a copy of descriptor @fd, if that is a terminal. */
void progress_begin(int fd);
/*
 * @done of @total parts of @what ("reading profiles") are done; it is drawn when a second has
 * passed since the first part, and removed when all are done. Nothing happens unless progress_begin
 * was called.
 */
void progress_show(const char *what, uint64_t done, uint64_t total);
/* "reading profiles [#######-------] 50 %, 3 s left" */
void progress_text(const char *what, uint64_t done, uint64_t total, uint64_t elapsed_ns, char *buf,
		   size_t buf_len);

#endif
