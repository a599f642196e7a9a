/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of what was installed: any bytes; no path of an entry leads upwards. */
#include <stdlib.h>
#include <string.h>

#include "manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct manifest m = { 0 };

	manifest_parse(&m, (const char *)data, len, NULL);
	for (size_t i = 0; i < m.nr; i++) {
		const struct manifest_entry *e = &m.v[i];

		if (!*e->path || !strcmp(e->path, "..") || !strncmp(e->path, "../", 3) ||
		    strstr(e->path, "/../") || (e->kind == MANIFEST_LINK && !*e->target))
			abort();
	}
	manifest_release(&m);
	return 0;
}
