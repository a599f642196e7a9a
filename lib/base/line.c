/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of text, taken one after the other from a buffer. */
#include <errno.h>
#include <stdlib.h>
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

/* ---- a text line by line --------------------------------------------------------------------- */

int base_lines_open(struct base_lines *l, const void *text, size_t len)
{
	*l = (struct base_lines){ .text = malloc(len + 1) };
	if (!l->text)
		return -ENOMEM;
	memcpy(l->text, text, len);
	l->text[len] = '\0';
	l->at = l->text;
	l->end = l->text + strlen(l->text);
	if (l->end == l->text + len)
		return 0;
	for (char *c = l->text; c <= l->end; c++)
		l->number += c == l->text || c[-1] == '\n';
	return -DCPI_EFORMAT;
}

char *base_lines_next(struct base_lines *l)
{
	char *line = l->at, *newline;

	if (line == l->end)
		return NULL;
	newline = strchr(line, '\n');
	l->cut = !newline;
	l->at = newline ? newline + 1 : l->end;
	l->number++;
	if (newline)
		*newline = '\0';
	return line;
}

void base_lines_close(struct base_lines *l)
{
	free(l->text);
	*l = (struct base_lines){ 0 };
}

/* ---- texts with a checksum ------------------------------------------------------------------- */

enum { SEAL_LEN = sizeof("crc 12345678\n") - 1 };

static void seal_of(const void *text, size_t len, char seal[SEAL_LEN + 1])
{
	snprintf(seal, SEAL_LEN + 1, "crc %08x\n", base_crc32c(0, text, len));
}

int base_buf_seal(struct base_buf *b)
{
	char seal[SEAL_LEN + 1];

	seal_of(b->data, b->len, seal);
	return base_buf_append(b, seal, SEAL_LEN);
}

int base_lines_sealed(struct base_lines *l, const char *first, const void *text, size_t len)
{
	size_t head = strlen(first), body = len - SEAL_LEN;
	char seal[SEAL_LEN + 1];
	int r;

	*l = (struct base_lines){ 0 };
	if (len <= head || memcmp(text, first, head) != 0 || ((const char *)text)[head] != '\n')
		return -DCPI_EVERSION;
	if (len <= head + SEAL_LEN)
		return -DCPI_ECHECKSUM;
	seal_of(text, body, seal);
	if (memcmp((const char *)text + body, seal, SEAL_LEN) != 0)
		return -DCPI_ECHECKSUM;
	if (((const char *)text)[body - 1] != '\n')
		return -DCPI_EFORMAT;
	r = base_lines_open(l, text, body);
	if (r >= 0)
		base_lines_next(l);
	return r;
}
