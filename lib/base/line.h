/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of the text formats of graphs and maps. */
#ifndef DCPI_BASE_LINE_H
#define DCPI_BASE_LINE_H

#include <stddef.h>

/*
 * The line that begins at *@at, before @end, into *@text of *@cap bytes (malloc'd, grown as needed,
 * the caller's): NUL-terminated, without its newline, cleaned by base_text_clean. *@at goes behind
 * it. 1; 0: there is none; -ENOMEM; -DCPI_EFORMAT, and *@why says what is wrong with it.
 */
int line_take(const char **at, const char *end, char **text, size_t *cap, const char **why);

#endif
