/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C source with each token on a line of its own, so that the line of an instruction names a token,
 * and the map that leads back from these lines: docs/format/cmap.md. DCPI's dcpicc made both.
 *
 * The source is what a preprocessor printed (cc -E): without that, macros that make strings of
 * their arguments or use __LINE__ would mean something else once blanks and lines are added.
 */
#ifndef DCPI_CMAP_H
#define DCPI_CMAP_H

#include "base.h"

/* What stands on one line of the tokenized file. */
struct cmap_token {
	unsigned int line;   /* of the tokenized file, from 1; ascending */
	uint32_t file;	     /* index in files */
	unsigned int from;   /* line in that file, from 1; 0: not known */
	unsigned int column; /* from 1, in bytes; 0: not known */
	char *text;	     /* its first line, cut where it is long */
};

struct cmap {
	char *tokenized; /* the tokenized file, as debug information has it */
	char **files;
	size_t nr_files, cap_files;
	struct cmap_token *tokens;
	size_t nr_tokens, cap_tokens;
};

/*
 * Append to @out the tokens of the preprocessed source in @text. @name: the file that @out is going
 * to be, as the compiler will be told. Any bytes are taken: what is no token is kept as it is.
 * Directives stay whole, but those that tell lines, which are followed; comments go. Columns are
 * those of the preprocessor's output: cmap_columns knows better. 0 or -ENOMEM.
 */
int cmap_tokenize(const char *text, size_t len, const char *name, struct base_buf *out,
		  struct cmap **map);
/*
 * Correct the columns of @file's tokens by its source. Of each line, the longest sequence of tokens
 * that it has in common with what the preprocessor printed is matched; what a macro made gets the
 * column of what stands there in its place. 0 or -ENOMEM.
 */
int cmap_columns(struct cmap *map, uint32_t file, const char *source, size_t len);
void cmap_free(struct cmap *map);

/* As text (cmap_file.c). Append to @to: 0 or -ENOMEM. */
int cmap_write(const struct cmap *map, struct base_buf *to);
/* Any bytes. -DCPI_EFORMAT or -DCPI_EVERSION with the line in @err, -ENOMEM. */
int cmap_read(const char *text, size_t len, struct cmap **out, struct base_err *err);
/* The token on @line of the tokenized file, or NULL. */
const struct cmap_token *cmap_at(const struct cmap *map, unsigned int line);

#endif
