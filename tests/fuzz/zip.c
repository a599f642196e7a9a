/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of a zip archive of sources. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const names[] = { "java/lang/Text.java",
					     "java.desktop/java/awt/Stored.java", "Plain.java",
					     "" };
	enum { MOST = 1 << 16 };
	struct base_buf out = { 0 };
	uint64_t where;
	int fd = memfd_create("zip", MFD_CLOEXEC);

	if (fd < 0 || base_write_all(fd, data, len) < 0)
		abort();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (zip_read(fd, len, names[i], MOST, &out, &where) >= 0 && out.len > MOST)
			abort();
	base_buf_release(&out);
	close(fd);
	return 0;
}
