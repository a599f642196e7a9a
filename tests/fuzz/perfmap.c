/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reader of perf maps: see growing.h. Where the third byte is odd, a line that is almost too
 * long begins the file.
 */
#include <stdlib.h>

#include "growing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { ALMOST = 65500, MORE = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t all[2 + ALMOST + MORE];
	size_t before = len >= 3 && data[2] & 1 ? ALMOST : 0;
	uint32_t cut;

	if (len < 3 || len - 3 > MORE)
		return 0;
	cut = (uint32_t)(data[0] | data[1] << 8);
	/* Near the end of that line, where it matters. */
	cut = before ? 65400 + cut % 136 : cut;
	all[0] = (uint8_t)cut;
	all[1] = (uint8_t)(cut >> 8);
	memset(all + 2, '1', before);
	memcpy(all + 2 + before, data + 3, len - 3);
	return growing_check(foreign_perfmap_read, all, 2 + before + len - 3);
}
