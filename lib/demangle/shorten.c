/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes readable names fit into a width: arguments in brackets go first, then the middle. */
#include <stdlib.h>
#include <string.h>

#include "demangle.h"

static const char left_out[] = "\xe2\x80\xa6"; /* three dots in one character */

enum { SIGN = 3 }; /* characters of the longest sign of an operator: <=>, <<=, ->* */

static bool begins_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

/* An arrow, or the sign of an operator, is no bracket. */
static bool is_sign(const char *name, const char *at)
{
	static const char word[] = "operator";
	const char *before = at;

	if (*at != '<' && *at != '>')
		return false;
	if (*at == '>' && at > name && at[-1] == '-')
		return true;
	while (before > name && at - before < SIGN - 1 && strchr("<>=-", before[-1]))
		before--;
	return before - name >= (ptrdiff_t)(sizeof(word) - 1) &&
	       strncmp(before - (sizeof(word) - 1), word, sizeof(word) - 1) == 0;
}

static int change_of(const char *name, const char *at, const char *brackets)
{
	if (*at == brackets[0] && !is_sign(name, at))
		return 1;
	return *at == brackets[1] && !is_sign(name, at) ? -1 : 0;
}

static size_t deepest(const char *name, const char *brackets)
{
	size_t depth = 0, most = 0;

	for (const char *at = name; *at; at++) {
		int change = change_of(name, at, brackets);

		if (change > 0 && ++depth > most)
			most = depth;
		if (change < 0 && depth)
			depth--;
	}
	return most;
}

/* Into @out: the name without what stands more than @levels brackets deep. */
static void collapse(const char *name, const char *brackets, size_t levels, char *out)
{
	size_t depth = 0;

	for (const char *at = name; *at; at++) {
		int change = change_of(name, at, brackets);

		if (change < 0 && depth)
			depth--;
		if (depth <= levels)
			*out++ = *at;
		if (change > 0 && depth++ == levels && at[1] != brackets[1]) {
			memcpy(out, left_out, sizeof(left_out) - 1);
			out += sizeof(left_out) - 1;
		}
	}
	*out = '\0';
}

/* Behind @n characters. */
static char *behind(char *text, size_t n)
{
	while (*text && n) {
		text++;
		n -= begins_character(*text) || !*text;
	}
	return text;
}

/* The last part of a path says most, both ends of a name do. */
static void cut_middle(char *text, size_t width)
{
	size_t n = base_text_width(text), head = (width - 1) / 2;
	const char *slash = strrchr(text, '/');
	char *from, *to;

	if (*text == '/' && base_text_width(slash) < width)
		head = width - 1 - base_text_width(slash);
	from = behind(text, head);
	to = behind(text, n - (width - 1 - head));
	/* One character becomes another, of three bytes, and at least one more is dropped. */
	memmove(from + sizeof(left_out) - 1, to, strlen(to) + 1);
	memcpy(from, left_out, sizeof(left_out) - 1);
}

/*
 * Into @text: the name with as many levels of brackets as fit into the width, none if even that
 * does not fit. Fewer levels never take more columns. A hostile name has thousands of levels.
 */
static void collapse_to(const char *name, const char *brackets, size_t width, char *text)
{
	size_t fits = 0, high = deepest(name, brackets);

	if (!high || base_text_width(name) <= width)
		return;
	while (high - fits > 1) {
		size_t middle = fits + (high - fits) / 2;

		collapse(name, brackets, middle, text);
		if (base_text_width(text) <= width)
			fits = middle;
		else
			high = middle;
	}
	collapse(name, brackets, fits, text);
}

char *demangle_cut(const char *text, size_t width)
{
	/* One character becomes another, of three bytes. */
	char *out = malloc(strlen(text) + sizeof(left_out));

	if (!out)
		return NULL;
	strcpy(out, text);
	if (width && base_text_width(out) > width)
		strcpy(behind(out, width - 1), left_out);
	return out;
}

/* "(image changed)" says nothing without its contents. */
static bool is_bracketed(const char *name)
{
	const char *end = *name == '(' ? strchr(name, ')') : NULL;

	return end && !end[1];
}

char *demangle_shorten(const char *name, size_t width)
{
	static const char *const brackets[] = { "<>", "()" };
	/* Each bracket with contents may become longer by two bytes, and so may the middle. */
	char *text = malloc(3 * strlen(name) + 8), *from = text ? strdup(name) : NULL;

	if (!from) {
		free(text);
		return NULL;
	}
	strcpy(text, name);
	for (size_t i = 0; i < 2 && *name != '/' && !is_bracketed(name); i++) {
		collapse_to(from, brackets[i], width, text);
		free(from);
		from = strdup(text);
		if (!from)
			break;
	}
	if (base_text_width(text) > width)
		cut_middle(text, width);
	free(from);
	return text;
}
