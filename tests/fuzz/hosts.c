/* SPDX-License-Identifier: BSD-2-Clause */
/* A hosts file of any bytes, its first line the host: refused, or a platform's name, or none. */
#include <stdlib.h>
#include <string.h>

#include "profdb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *end = len ? memchr(data, '\n', len) : NULL;
	char host[300] = "", platform[PROFDB_PLATFORM_MAX + 1] = "?";
	size_t n = end ? (size_t)(end - data) : 0;
	struct base_err err = { 0 };
	int r;

	memcpy(host, data, n < sizeof(host) ? n : sizeof(host) - 1);
	n += end != NULL;
	r = profdb_hosts_find((const char *)data + n, len - n, host, platform, &err);
	/* A name leads out of no folder. */
	if (r > 1 || (r == 1) == !strcmp(platform, "?") || strchr(platform, '/') ||
	    *platform == '.' || (r < 0) != (err.code < 0))
		abort();
	return 0;
}
