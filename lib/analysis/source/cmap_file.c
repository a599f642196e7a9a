/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cmap.h"
#include "line.h"

/* ---- writing ------------------------------------------------------------------------------- */

static int put_text(struct base_buf *to, const char *before, const char *text)
{
	char *copy = strdup(text);
	int r = copy ? base_buf_printf(to, "%s%s\n", before, base_text_clean(copy)) : -ENOMEM;

	free(copy);
	return r;
}

int cmap_write(const struct cmap *map, struct base_buf *to)
{
	char before[64];
	int r = base_buf_printf(to, "dcpi-cmap 1\n");

	if (r >= 0)
		r = put_text(to, "tokenized ", map->tokenized);
	for (size_t i = 0; i < map->nr_files && r >= 0; i++)
		r = put_text(to, "file ", map->files[i]);
	for (size_t i = 0; i < map->nr_tokens && r >= 0; i++) {
		const struct cmap_token *t = &map->tokens[i];

		snprintf(before, sizeof(before), "%u %" PRIu32 ":%u:%u ", t->line, t->file, t->from,
			 t->column);
		r = put_text(to, before, t->text);
	}
	return r;
}

/* ---- reading ------------------------------------------------------------------------------- */

struct reader {
	const char *at, *end;
	size_t line;
	char *text; /* the current line; owned */
	size_t cap;
	struct cmap *map;
	struct base_err *err;
};

static int bad(struct reader *r, const char *why)
{
	return base_fail(r->err, -DCPI_EFORMAT, "line %zu of the map is wrong: %s", r->line, why);
}

static int no_memory(struct reader *r)
{
	return base_fail_errno(r->err, -ENOMEM, "cannot read the map");
}

/* 1, 0 at the end, or negative. */
static int next_line(struct reader *r)
{
	const char *why = NULL;
	int got;

	r->line += r->at != r->end;
	got = line_take(&r->at, r->end, &r->text, &r->cap, &why);
	if (got < 0)
		return why ? bad(r, why) : no_memory(r);
	return got;
}

/* Digits, then @behind. */
static bool take(const char **at, char behind, unsigned int *out)
{
	unsigned long long n;
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	n = strtoull(*at, &end, 10);
	if (errno || n > UINT_MAX || *end != behind)
		return false;
	*out = (unsigned int)n;
	*at = end + 1;
	return true;
}

static int read_file(struct reader *r, const char *name)
{
	struct cmap *map = r->map;

	if (!*name || map->nr_tokens)
		return bad(r, "a file needs a name, and stands before the tokens");
	if (base_grow(&map->files, &map->cap_files, map->nr_files + 1, sizeof(*map->files)) < 0)
		return no_memory(r);
	map->files[map->nr_files] = strdup(name);
	return map->files[map->nr_files++] ? 0 : no_memory(r);
}

static int read_token(struct reader *r, const char *at)
{
	struct cmap *map = r->map;
	struct cmap_token t = { 0 };

	if (!take(&at, ' ', &t.line) || !take(&at, ':', &t.file) || !take(&at, ':', &t.from) ||
	    !take(&at, ' ', &t.column) || !*at)
		return bad(r, "a token is LINE FILE:LINE:COLUMN TEXT");
	if (t.file >= map->nr_files)
		return bad(r, "no such file");
	if (t.line <= (map->nr_tokens ? map->tokens[map->nr_tokens - 1].line : 0))
		return bad(r, "the lines do not ascend");
	if (base_grow(&map->tokens, &map->cap_tokens, map->nr_tokens + 1, sizeof(*map->tokens)) < 0)
		return no_memory(r);
	t.text = strdup(at);
	if (!t.text)
		return no_memory(r);
	map->tokens[map->nr_tokens++] = t;
	return 0;
}

static int read_head(struct reader *r)
{
	const char *at;
	unsigned int version;
	int n = next_line(r);

	if (n < 0)
		return n;
	at = r->text;
	if (n == 0 || strncmp(at, "dcpi-cmap ", 10) != 0) {
		n = base_fail(r->err, -DCPI_EFORMAT, "this is no token map");
		base_hint(r->err, "it begins with 'dcpi-cmap 1', as dcpicc writes it");
		return n;
	}
	at += 10;
	if (!take(&at, '\0', &version))
		return bad(r, "no version");
	if (version != 1)
		return base_fail(r->err, -DCPI_EVERSION, "the map has version %u, known is 1",
				 version);
	n = next_line(r);
	if (n < 0)
		return n;
	if (n == 0 || strncmp(r->text, "tokenized ", 10) != 0 || !r->text[10])
		return bad(r, "the name of the tokenized file is missing");
	r->map->tokenized = strdup(r->text + 10);
	return r->map->tokenized ? 0 : no_memory(r);
}

int cmap_read(const char *text, size_t len, struct cmap **out, struct base_err *err)
{
	struct reader r = {
		.at = text, .end = text + len, .map = calloc(1, sizeof(*r.map)), .err = err
	};
	int n = r.map ? read_head(&r) : no_memory(&r);

	while (n >= 0 && (n = next_line(&r)) > 0)
		n = strncmp(r.text, "file ", 5) == 0 ? read_file(&r, r.text + 5)
						     : read_token(&r, r.text);
	free(r.text);
	if (n < 0)
		cmap_free(r.map);
	else
		*out = r.map;
	return n;
}
