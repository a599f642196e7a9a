/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as preprocessed C: its tokens hold all of it but blanks, comments and directives, each
 * on the line that the map says; tokenized once more it is the same. Then as the map itself.
 */
#include <stdlib.h>
#include <string.h>

#include "cmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Tokens of @a without directives, one behind the other. */
static size_t flat(const char *a, size_t len, struct base_buf *out)
{
	struct ctoken_reader r;
	struct ctoken t;
	size_t nr = 0;

	ctoken_init(&r, a, len);
	for (ctoken_next(&r, &t); t.kind != CTOKEN_END; ctoken_next(&r, &t)) {
		if (!t.len || !t.row || !t.column || t.text < a || t.text + t.len > a + len)
			abort();
		if (t.kind == CTOKEN_TEXT && (base_buf_append(out, t.text, t.len) < 0 || !++nr))
			abort();
	}
	return nr;
}

static void check_again(const struct cmap *map)
{
	struct base_buf first = { 0 }, second = { 0 };
	struct base_err err = { 0 };
	struct cmap *again = NULL;

	if (cmap_write(map, &first) < 0 ||
	    cmap_read((const char *)first.data, first.len, &again, &err) < 0 ||
	    cmap_write(again, &second) < 0 || first.len != second.len ||
	    memcmp(first.data, second.data, first.len) != 0)
		abort();
	for (size_t i = 0; i < map->nr_tokens; i++)
		if (cmap_at(map, map->tokens[i].line) != &map->tokens[i])
			abort();
	cmap_free(again);
	base_buf_release(&first);
	base_buf_release(&second);
}

static void as_source(const char *text, size_t len)
{
	struct base_buf out = { 0 }, before = { 0 }, after = { 0 };
	struct cmap *map = NULL;

	if (cmap_tokenize(text, len, "/t/x.i", &out, &map) < 0)
		abort();
	if (flat(text, len, &before) != flat((const char *)out.data, out.len, &after) ||
	    before.len != after.len || (before.len && memcmp(before.data, after.data, before.len)))
		abort();
	if (cmap_columns(map, 0, text, len) < 0)
		abort();
	check_again(map);
	cmap_free(map);
	base_buf_release(&out);
	base_buf_release(&before);
	base_buf_release(&after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct base_err err = { 0 };
	struct cmap *map = NULL;
	int r = cmap_read((const char *)data, len, &map, &err);

	if (r < 0 && (!err.text[0] || err.code != r))
		abort();
	if (r >= 0)
		check_again(map);
	cmap_free(map);
	as_source((const char *)data, len);
	return 0;
}
