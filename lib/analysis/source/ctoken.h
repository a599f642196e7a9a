/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tokenizer of C. Each token gets a line of its own later: a token that is too long does no harm,
 * a token that is split does. Where the end is uncertain, tokens stay together.
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
	unsigned int row, column; /* its start, from 1; columns in bytes */
};

struct ctoken_reader {
	const char *at, *end, *line; /* @line: the start of the current row */
	unsigned int row;
	bool started; /* this row has a token already */
};

void ctoken_init(struct ctoken_reader *r, const char *text, size_t len);
/* Reads the next token of any bytes, after blanks and comments. Each call but the last advances. */
void ctoken_next(struct ctoken_reader *r, struct ctoken *out);

#endif
