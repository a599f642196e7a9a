/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of text, taken one after the other from a buffer. */
#include <errno.h>
#include <string.h>

#include "base.h"
#include "line.h"

int line_take(const char **at, const char *end, char **text, size_t *cap, const char **why)
{
	const char *newline;
	size_t len;

	if (*at == end)
		return 0;
	newline = memchr(*at, '\n', (size_t)(end - *at));
	if (!newline) {
		*why = "it has no end";
		return -DCPI_EFORMAT;
	}
	len = (size_t)(newline - *at);
	if (base_grow(text, cap, len + 1, 1) < 0)
		return -ENOMEM;
	memcpy(*text, *at, len);
	(*text)[len] = '\0';
	*at = newline + 1;
	if (strlen(*text) != len) {
		*why = "it holds a NUL byte";
		return -DCPI_EFORMAT;
	}
	base_text_clean(*text);
	return 1;
}
