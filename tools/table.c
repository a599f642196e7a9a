/* SPDX-License-Identifier: BSD-2-Clause */
/* A table is printed with its columns aligned, or with commas. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

char *table_clean(char *text)
{
	return base_text_clean(text);
}

static size_t width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void add(struct table *t, char *text)
{
	if (!text || base_grow(&t->cells, &t->cap_cells, t->nr_cells + 1, sizeof(*t->cells)) < 0) {
		free(text);
		t->failed = true;
		return;
	}
	t->cells[t->nr_cells++] = table_clean(text);
}

void table_column(struct table *t, bool left, const char *head)
{
	if (left)
		t->left |= 1ull << t->nr_columns;
	t->nr_columns++;
	add(t, strdup(head));
}

void table_cell(struct table *t, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	add(t, text);
}

static void print_row(const struct table *t, size_t first, const size_t *widths, FILE *to)
{
	size_t last = t->nr_columns, owed = 0;

	while (last && !*t->cells[first + last - 1])
		last--;
	for (size_t c = 0; c < last; c++) {
		const char *cell = t->cells[first + c];
		size_t pad = width(cell) < widths[c] ? widths[c] - width(cell) : 0;
		bool left = t->left >> c & 1;

		fprintf(to, "%*s%s%s", (int)(owed + (left ? 0 : pad)), "", cell,
			c + 1 < last ? "  " : "");
		owed = left ? pad : 0;
	}
	fputc('\n', to);
}

int table_print(const struct table *t, bool heads, FILE *to)
{
	size_t *widths = calloc(t->nr_columns + 1, sizeof(*widths));

	if (t->failed || !widths) {
		free(widths);
		return -ENOMEM;
	}
	for (size_t i = heads ? 0 : t->nr_columns; i < t->nr_cells; i++) {
		size_t w = width(t->cells[i]);

		/* One name of a hundred characters must not push all else off the screen. */
		if (w > TABLE_WIDEST)
			w = TABLE_WIDEST;
		if (w > widths[i % t->nr_columns])
			widths[i % t->nr_columns] = w;
	}
	for (size_t i = heads ? 0 : t->nr_columns; i + t->nr_columns <= t->nr_cells;
	     i += t->nr_columns)
		print_row(t, i, widths, to);
	free(widths);
	return 0;
}

static void print_quoted(const char *cell, FILE *to)
{
	if (!strpbrk(cell, ",\"")) {
		fputs(cell, to);
		return;
	}
	fputc('"', to);
	for (; *cell; cell++)
		fputs(*cell == '"' ? "\"\"" : (char[]){ *cell, '\0' }, to);
	fputc('"', to);
}

int table_print_csl(const struct table *t, bool heads, FILE *to)
{
	if (t->failed)
		return -ENOMEM;
	for (size_t i = heads ? 0 : t->nr_columns; i < t->nr_cells; i++) {
		print_quoted(t->cells[i], to);
		fputc((i + 1) % t->nr_columns ? ',' : '\n', to);
	}
	return 0;
}

void table_release(struct table *t)
{
	for (size_t i = 0; i < t->nr_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	memset(t, 0, sizeof(*t));
}
