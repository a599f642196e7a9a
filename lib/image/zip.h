/* SPDX-License-Identifier: BSD-2-Clause */
/* One member of a zip archive. */
#ifndef DCPI_IMAGE_ZIP_H
#define DCPI_IMAGE_ZIP_H

#include "base.h"

/*
 * The member of that name, or else of that name in one folder, of an archive of @size bytes, into
 * @out; and where in the archive it stands. -ENOENT; -DCPI_EFORMAT: damaged, or packed in another
 * way than deflate; -DCPI_ECHECKSUM; -DCPI_ELIMIT: it has more than @max bytes; -errno. Fuzzed.
 */
int zip_read(int fd, uint64_t size, const char *name, size_t max, struct base_buf *out,
	     uint64_t *where);

#endif
