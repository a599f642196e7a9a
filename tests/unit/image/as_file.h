/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes that a test made, as the ELF file that they are. */
#ifndef AS_FILE_H
#define AS_FILE_H

#include "image_internal.h"

/* To be closed by image_elf_close. */
void as_file(struct image_elf *elf, const void *bytes, size_t len);

#endif
