/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of jitdump files: see growing.h. */
#include "growing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	return growing_check(foreign_jitdump_read, data, len);
}
