/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps each text of an export once, and makes it harmless. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export_internal.h"

/* Length of the mark at @p that turns the direction of text or ends its line, in UTF-8; 0: there is
 * none. (Unicode 15: Bidi_Control, U+2028, U+2029.) */
static size_t mark_len(const unsigned char *p)
{
	if (p[0] == 0xd8 && p[1] == 0x9c)
		return 2;
	if (p[0] != 0xe2 || !p[1])
		return 0;
	if (p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xa8 && p[2] <= 0xae)))
		return 3;
	return p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9 ? 3 : 0;
}

static void drop_marks(char *text)
{
	unsigned char *from = (unsigned char *)text, *to = from;

	while (*from) {
		size_t len = mark_len(from);

		*to++ = len ? '?' : *from;
		from += len ? len : 1;
	}
	*to = 0;
}

void export_clean(char *text)
{
	drop_marks(base_text_clean(text));
}

int export_text(struct export *x, const char *text, uint32_t *out)
{
	char *copy = strdup(text);
	uintptr_t at;
	int r;

	if (!copy)
		return -ENOMEM;
	export_clean(copy);
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
