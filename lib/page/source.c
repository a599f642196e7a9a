/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines of a source file that have code, and some around them, for the page. */
#include <errno.h>

#include "page_internal.h"

enum {
	LINE_MAX_LEN = 300, /* bytes of a line */
	CONTEXT = 3,	    /* lines without code that are shown beside others */
	TAB = 4,
};

static void put_line(struct jwrite *j, const char *from, size_t len)
{
	char text[LINE_MAX_LEN + TAB + 2];
	size_t n = 0;

	for (size_t i = 0; i < len && n <= LINE_MAX_LEN; i++) {
		size_t to = from[i] == '\t' ? (n / TAB + 1) * TAB : n + 1;

		if (from[i] == '\r' && i + 1 == len)
			break;
		for (; n < to; n++)
			text[n] = from[i] == '\t' ? ' ' : from[i];
	}
	jwrite_part(j, NULL, text, n, LINE_MAX_LEN);
}

/* [number, text, number, text, …] */
static void put_lines(struct jwrite *j, const struct image_source *src, const unsigned int *line,
		      size_t nr)
{
	unsigned int next = 1;

	jwrite_open(j, "lines", '[');
	for (size_t i = 0; i < nr; i++) {
		unsigned int from = line[i] > CONTEXT ? line[i] - CONTEXT : 1;

		for (unsigned int n = from > next ? from : next; n <= line[i] + CONTEXT; n++) {
			size_t len = 0;
			const char *text = image_source_line(src, n, &len);

			next = n + 1;
			if (!text)
				break;
			jwrite_count(j, NULL, n);
			put_line(j, text, len);
		}
	}
	jwrite_close(j, ']');
}

int page_source_lines(struct jwrite *j, struct image *img, const char *name,
		      const unsigned int *line, size_t nr)
{
	struct image_source *src = NULL;
	int r = image_source_open(name, image_program(img), !image_source_trusted(img), &src, NULL);

	jwrite_open(j, NULL, '{');
	jwrite_text(j, "name", name);
	if (r >= 0)
		put_lines(j, src, line, nr);
	else if (r == -EACCES)
		jwrite_count(j, "private", 1);
	image_source_close(src);
	jwrite_close(j, '}');
	return j->r;
}
