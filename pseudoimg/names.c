/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of files and of inlined routines: each kept once, as it is written. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pseudoimg_internal.h"

static uint32_t *find(const struct pseudoimg_names *n, const char *text, size_t len)
{
	size_t i = base_hash64_seeded(n->seed, text, len) & (n->cap - 1);

	for (; n->table[i]; i = (i + 1) & (n->cap - 1)) {
		const char *other = pseudoimg_names_text(n, n->table[i] - 1);

		if (!strcmp(other, text))
			break;
	}
	return &n->table[i];
}

/* Names come from anybody: who does not know the seed cannot make them collide. */
static int grow(struct pseudoimg_names *n)
{
	size_t cap = n->cap ? n->cap * 2 : 64;
	uint32_t *table = calloc(cap, sizeof(*table));

	if (!table)
		return -ENOMEM;
	if (!n->seed)
		n->seed = base_hash_seed();
	free(n->table);
	n->table = table;
	n->cap = cap;
	for (size_t i = 0; i < n->v.nr; i++) {
		const char *text = pseudoimg_names_text(n, (uint32_t)i);

		*find(n, text, strlen(text)) = (uint32_t)i + 1;
	}
	return 0;
}

int64_t pseudoimg_names_put(struct pseudoimg_names *n, const char *name, size_t len)
{
	struct pseudoimg_name *to;
	size_t at = n->text.len;
	uint32_t *slot;
	int r = 0;

	if (n->v.nr * 2 >= n->cap)
		r = grow(n);
	if (r >= 0)
		r = pseudoimg_file_name_put(&n->text, name, len);
	if (r >= 0 && (n->text.len > UINT32_MAX || n->v.nr >= PSEUDOIMG_NO_FILE / 2))
		r = -DCPI_ELIMIT;
	if (r < 0)
		return r;
	slot = find(n, (const char *)n->text.data + at, n->text.len - at - 1);
	if (*slot) {
		n->text.len = at;
		return *slot - 1;
	}
	to = PSEUDOIMG_PUSH(&n->v);
	if (!to)
		return -ENOMEM;
	*to = (struct pseudoimg_name){ .at = (uint32_t)at };
	*slot = (uint32_t)n->v.nr;
	return *slot - 1;
}

int pseudoimg_names_number(struct pseudoimg_names *n, uint32_t name)
{
	uint32_t *file;

	if (n->v.v[name].file)
		return 0;
	file = PSEUDOIMG_PUSH(&n->files);
	if (!file)
		return -ENOMEM;
	*file = name;
	n->v.v[name].file = (uint32_t)n->files.nr;
	return 0;
}

void pseudoimg_names_release(struct pseudoimg_names *n)
{
	free(n->v.v);
	free(n->files.v);
	free(n->table);
	base_buf_release(&n->text);
	memset(n, 0, sizeof(*n));
}
