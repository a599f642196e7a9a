/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpiscan's maps: any bytes; what could be read reads as itself again. */
#include <stdlib.h>
#include <string.h>

#include "image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct image_map m = { 0 }, again = { 0 };
	struct base_buf text = { 0 }, same = { 0 };

	if (image_map_parse(&m, (const char *)data, len, NULL) >= 0) {
		if (image_map_format(&m, &text) < 0 ||
		    image_map_parse(&again, (char *)text.data, text.len, NULL) < 0 ||
		    image_map_format(&again, &same) < 0 || text.len != same.len ||
		    memcmp(text.data, same.data, text.len) != 0)
			abort();
	}
	base_buf_release(&text);
	base_buf_release(&same);
	image_map_release(&m);
	image_map_release(&again);
	return 0;
}
