/* SPDX-License-Identifier: BSD-2-Clause */
/* The words that .xct and .tab files are made of (exact_text.c). */
#ifndef DCPI_EXACT_INTERNAL_H
#define DCPI_EXACT_INTERNAL_H

#include "exact.h"

struct exact_text {
	const char *at, *end; /* of the line: no newline, no NUL */
};

/* Each takes a word, and the blank before it, off the line: 0 or -DCPI_EFORMAT. */
int exact_text_number(struct exact_text *t, unsigned int base, uint64_t *out);
int exact_text_signed(struct exact_text *t, int64_t *out);
int exact_text_word(struct exact_text *t, char *out, size_t len); /* with its NUL */
/* Hex digits, or "-" for none. */
int exact_text_id(struct exact_text *t, struct base_id *out);
int exact_text_hash(struct exact_text *t, uint8_t out[20]);
/* The rest of the line, not empty, escapes resolved; to be freed. Or -ENOMEM. */
int exact_text_rest(struct exact_text *t, char **out);
bool exact_text_is(const struct exact_text *t, const char *word); /* is the next one */

/* Text with what would break a line escaped. */
int exact_text_put(struct base_buf *out, const char *text);
int exact_text_put_hex(struct base_buf *out, const uint8_t *bytes, size_t len);

#endif
