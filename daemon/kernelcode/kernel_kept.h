/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads back the file of text.c. Apart, since lib/image calls its objects images as well. */
#ifndef DCPI_KERNEL_KEPT_H
#define DCPI_KERNEL_KEPT_H

#include <stddef.h>
#include <stdint.h>

/* @fn is called for each routine of the image @path, until it returns negative. No file: nothing.
 */
void kernel_kept_read(const char *path,
		      int (*fn)(void *ctx, const char *name, uint64_t off, const uint8_t *code,
				size_t len),
		      void *ctx);

#endif
