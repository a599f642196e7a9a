/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_ROUTINE_FILE_H
#define TESTS_ROUTINE_FILE_H

#include "wire.h"

/* File @index of a parsed routine: its bytes and length, or NULL. */
static inline const char *routine_file(const struct wire_routine_view *view, uint32_t index,
				       size_t *len)
{
	const char *name;
	size_t pos = 0;

	do {
		name = wire_file_next(view, &pos, len);
	} while (name && index--);
	return name;
}

#endif
