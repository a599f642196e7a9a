/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind tables of files (unwind.h), from what compilers wrote into them. */
#ifndef DCPI_IMAGE_UNWIND_ROWS_H
#define DCPI_IMAGE_UNWIND_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base.h"

struct unwind_table;

/*
 * The table of the executable segments of an ELF file, by .eh_frame. A place that this says nothing
 * of has UNWIND_NONE, but for three: the entry point is an outermost frame, code that returns from
 * signals is known by its bytes, and routines of which symbols tell may show by their instructions
 * what they do with the stack (lib/height; x86-64).
 *
 * Time and memory are bounded whatever the file holds. -DCPI_ELIMIT: it needs more than these
 * bounds, with a text that says which. -DCPI_EUNSUPPORTED: not of x86-64 or aarch64.
 * -DCPI_EFORMAT, -DCPI_ETRUNCATED: no ELF file, or damaged. -ENOMEM. @name is for messages.
 *
 * The descriptor of a regular file stays open.
 */
int image_rows_read(int fd, const char *name, struct unwind_table **out, struct base_err *err);
/* The same, but it closes the descriptor, whatever comes of it: for who may make no other one. */
int image_rows_take(int fd, const char *name, struct unwind_table **out, struct base_err *err);
/* The same of a file that lies in memory, as the vdso does. It is not changed. */
int image_rows_of_bytes(const void *data, size_t len, const char *name, struct unwind_table **out,
			struct base_err *err);

#endif
