/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of text formats: of a text in memory, and of files whose last line is a checksum. */
#ifndef DCPI_BASE_LINE_H
#define DCPI_BASE_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base.h"

/*
 * The line that begins at *@at, before @end, into *@text of *@cap bytes (malloc'd, grown as needed,
 * the caller's): NUL-terminated, without its newline, cleaned by base_text_clean. *@at goes behind
 * it. 1; 0: there is none; -ENOMEM; -DCPI_EFORMAT, and *@why says what is wrong with it.
 */
int line_take(const char **at, const char *end, char **text, size_t *cap, const char **why);

/* A copy of a text, line by line. */
struct base_lines {
	char *text, *at, *end;
	size_t number; /* of the last line that was taken, from 1 */
	bool cut;      /* that line has no newline, so it is the last one */
};

/* 0, -ENOMEM, or -DCPI_EFORMAT: the line @number holds a NUL. Close it in any case. */
int base_lines_open(struct base_lines *l, const void *text, size_t len);
/*
 * The same for a text that begins with the line @first and ends with the line that base_buf_seal
 * adds; the lines between them are taken. -DCPI_EVERSION: it begins otherwise; -DCPI_ECHECKSUM;
 * errors of base_lines_open.
 */
int base_lines_sealed(struct base_lines *l, const char *first, const void *text, size_t len);
/* The next line without its newline, which may be changed, or NULL. */
char *base_lines_next(struct base_lines *l);
void base_lines_close(struct base_lines *l);
/* Append the checksum of all that is in @b as its last line. 0 or -ENOMEM. */
int base_buf_seal(struct base_buf *b);

#endif
