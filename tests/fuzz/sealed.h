/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that end with a checksum. */
#ifndef SEALED_H
#define SEALED_H

#include <stdlib.h>
#include <string.h>

#include "base.h"

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x))                                                                          \
			abort();                                                                   \
	} while (0)

typedef void sealed_try_fn(const uint8_t *data, size_t len);

/* As it is, and with the checksum (CRC-32C in its last four bytes) put right, which stops nearly
 * all mutations. */
static inline void sealed_try(sealed_try_fn *try, const uint8_t *data, size_t len)
{
	uint8_t *sealed;
	uint32_t crc;

	try(data, len);
	if (len < 4)
		return;
	sealed = malloc(len);
	CHECK(sealed);
	memcpy(sealed, data, len);
	crc = base_crc32c(0, sealed, len - 4);
	for (size_t i = 0; i < 4; i++)
		sealed[len - 4 + i] = (uint8_t)(crc >> 8 * i);
	try(sealed, len);
	free(sealed);
}

#endif
