/* SPDX-License-Identifier: BSD-2-Clause */
/* CPython in an ELF file. */
#ifndef DCPI_IMAGE_PYTHON_FIND_H
#define DCPI_IMAGE_PYTHON_FIND_H

#include "image_internal.h"
#include "python.h"

/*
 * *@out describes the CPython in the file, if there is a known one, for its executable segment,
 * whose addresses are @above offsets in the file. Else its version is 0.
 */
void image_python_find(const struct image_elf *f, uint64_t above, struct unwind_python *out);

#endif
