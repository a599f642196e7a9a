/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps each text of an export once, and makes it harmless. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export_internal.h"

int export_text(struct export *x, const char *text, uint32_t *out)
{
	uintptr_t at = (uintptr_t)base_map_get(&x->by_text, text, strlen(text));
	char *copy;
	int r;

	/* A text that is kept is harmless, and most come many times. */
	if (at) {
		*out = (uint32_t)(at - 1);
		return 0;
	}
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	base_text_clean(copy);
	at = (uintptr_t)base_map_get(&x->by_text, copy, strlen(copy));
	if (at) {
		free(copy);
		*out = (uint32_t)(at - 1);
		return 0;
	}
	r = base_grow(&x->texts, &x->cap_texts, x->nr_texts + 1, sizeof(char *));
	if (r < 0 || x->nr_texts >= EXPORT_NONE) {
		free(copy);
		return -ENOMEM;
	}
	*out = (uint32_t)x->nr_texts;
	x->texts[x->nr_texts++] = copy;
	return base_map_set(&x->by_text, copy, strlen(copy), (void *)x->nr_texts);
}
