/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C source with each token on a line of its own, so that the line of an instruction names a token,
 * and the map that leads back from these lines: docs/format/cmap.md. dcpicc makes both.
 *
 * The source is the output of a preprocessor (cc -E): without it, macros that make strings of their
 * arguments or use __LINE__ would change their meaning once blanks and lines are added.
 */
#ifndef DCPI_CMAP_H
#define DCPI_CMAP_H

#include "base.h"

/* The token on one line of the tokenized file. */
struct cmap_token {
	unsigned int line;   /* line of the tokenized file, from 1; ascending */
	uint32_t file;	     /* index in files */
	unsigned int from;   /* line in that file, from 1; 0: not known */
	unsigned int column; /* from 1, in bytes; 0: not known */
	char *text;	     /* the first line of the token, truncated if it is long */
};

struct cmap {
	char *tokenized; /* name of the tokenized file, as in debug information */
	char **files;
	size_t nr_files, cap_files;
	struct cmap_token *tokens;
	size_t nr_tokens, cap_tokens;
};

/*
 * Appends the tokens of the preprocessed source @text to @out. @name is the file name that @out
 * will get, as the compiler sees it. Any bytes are accepted; bytes that form no token are kept.
 * Directives stay on one line, except line markers, which are interpreted; comments are dropped.
 * Columns are those of the preprocessor's output until cmap_columns corrects them. 0 or -ENOMEM.
 */
int cmap_tokenize(const char *text, size_t len, const char *name, struct base_buf *out,
		  struct cmap **map);
/*
 * Corrects the columns of @file's tokens by its source text. For each line, the longest common
 * subsequence of its tokens and those of the preprocessor's output is matched; a token that a macro
 * made gets the column of the macro. 0 or -ENOMEM.
 */
int cmap_columns(struct cmap *map, uint32_t file, const char *source, size_t len);
void cmap_free(struct cmap *map);

/* Appends the map's text to @to. 0 or -ENOMEM. */
int cmap_write(const struct cmap *map, struct base_buf *to);
/* Parses the untrusted text of a map into *@out, which the caller frees. 0 or, with @err naming
 * the line, -DCPI_EFORMAT, -DCPI_EVERSION or -ENOMEM. */
int cmap_read(const char *text, size_t len, struct cmap **out, struct base_err *err);
/* Returns the token on @line of the tokenized file, or NULL. */
const struct cmap_token *cmap_at(const struct cmap *map, unsigned int line);

/* ---- tokens of C ----------------------------------------------------------------------------- */

/*
 * A tokenizer of C. Each token gets a line of its own later: a token that is too long does no harm,
 * a token that is split does. Where the end is uncertain, tokens stay together.
 */

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
