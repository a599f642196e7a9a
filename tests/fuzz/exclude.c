/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of exclusions. */
#include <stdlib.h>

#include "exclude.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct exclude x = { 0 };
	struct base_err err = { 0 };
	int r = exclude_parse(&x, (const char *)data, len, "fuzz", &err);

	if (r > 0 || (r < 0) != (err.text[0] != '\0') || exclude_has_pid(&x, 0) ||
	    exclude_has_image(&x, ""))
		abort();
	for (size_t i = 0; i < x.nr_pids; i++)
		if (x.pids[i].first < 1 || !exclude_has_pid(&x, x.pids[i].first) ||
		    !exclude_has_pid(&x, x.pids[i].last))
			abort();
	exclude_release(&x);
	return 0;
}
