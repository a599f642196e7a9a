/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compact JSON that may stand inside of HTML. Texts may hold any bytes; they are written such that
 * nothing in them acts: '<' is escaped, and what a reader cannot see (controls, marks that turn or
 * join text) and what is no UTF-8 is spelled: "<U+202E>", "<FF>".
 */
#ifndef DCPI_JWRITE_H
#define DCPI_JWRITE_H

#include "base.h"

/* Zero-initialize but for @to. The first failure stays in @r, and nothing is written after it. */
struct jwrite {
	struct base_buf *to;
	bool comma; /* the next value needs one */
	int r;
};

/* Each writes a value, after a key unless that is NULL. @bracket: '{' or '[', then '}' or ']'. */
void jwrite_open(struct jwrite *j, const char *key, char bracket);
void jwrite_close(struct jwrite *j, char bracket);
void jwrite_text(struct jwrite *j, const char *key, const char *text); /* NULL: null */
/* A part of a text, without its end where it is longer than @max bytes. */
void jwrite_part(struct jwrite *j, const char *key, const char *text, size_t len, size_t max);
void jwrite_count(struct jwrite *j, const char *key, uint64_t n);
void jwrite_int(struct jwrite *j, const char *key, int64_t n);
/* With four digits, or as many as are needed; what is no finite number is null. */
void jwrite_real(struct jwrite *j, const char *key, double value);
void jwrite_null(struct jwrite *j, const char *key);
/* Only for hexadecimal digits: "1f". */
void jwrite_hex(struct jwrite *j, const char *key, uint64_t n);
/* A value that is JSON already. */
void jwrite_raw(struct jwrite *j, const char *key, const struct base_buf *json);
/* A new line, for those who read the text. */
void jwrite_line(struct jwrite *j);

#endif
