/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where tokens of C end. To put each on a line of its own, one that is taken too long does no harm,
 * one that is cut does: in doubt they stay together.
 */
#ifndef DCPI_CTOKEN_H
#define DCPI_CTOKEN_H

#include "base.h"

enum ctoken_kind {
	CTOKEN_END,
	CTOKEN_TEXT,
	CTOKEN_DIRECTIVE, /* from '#' to the end of its line, continued ones included */
};

struct ctoken {
	enum ctoken_kind kind;
	const char *text;
	size_t len;
	unsigned int row, column; /* where it begins, from 1; columns in bytes */
};

struct ctoken_reader {
	const char *at, *end, *line; /* @line: where the current row begins */
	unsigned int row;
	bool started; /* something stood in this row already */
};

void ctoken_init(struct ctoken_reader *r, const char *text, size_t len);
/* The next one; blanks and comments are skipped. Any bytes; each call but the last goes on. */
void ctoken_next(struct ctoken_reader *r, struct ctoken *out);

#endif
