/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that users type are compared with readable names. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "demangle_internal.h"

static const char anything[] = "\xe2\x80\xa6";

static const char *behind_blanks(const char *at, const char *end)
{
	while (at < end && *at == ' ')
		at++;
	return at;
}

static bool is_anything(const char *at, const char *end)
{
	size_t len = sizeof(anything) - 1;

	return (size_t)(end - at) >= len && memcmp(at, anything, len) == 0;
}

/* Are the names equal, apart from blanks and what "…" stands for? @len: length of @name. */
static bool same(const char *name, size_t len, const char *what)
{
	const char *end = name + len, *what_end = what + strlen(what);
	const char *from = NULL, *mark = NULL; /* behind the last "…", and what it stands before */

	for (;;) {
		name = behind_blanks(name, end);
		what = behind_blanks(what, what_end);
		if (is_anything(what, what_end)) {
			from = what += sizeof(anything) - 1;
			mark = name;
		} else if (name < end && what < what_end && *name == *what) {
			name++;
			what++;
		} else if (name == end && what == what_end) {
			return true;
		} else if (from && mark < end) {
			name = ++mark;
			what = from;
		} else {
			return false;
		}
	}
}

static bool opens(char c)
{
	return c == '(' || c == '<' || c == '[' || c == '{';
}

static bool closes(char c)
{
	return c == ')' || c == '>' || c == ']' || c == '}';
}

/* The length of the word "operator" at @at in @name with its symbol, whose brackets do not nest. */
static size_t operator_len(const char *name, const char *at)
{
	size_t len = strlen("operator");

	if (strncmp(at, "operator", len) != 0 ||
	    (at > name && (at[-1] == '_' || isalnum((unsigned char)at[-1]))))
		return 0;
	if (strncmp(at + len, "()", 2) == 0 || strncmp(at + len, "[]", 2) == 0)
		return len + 2;
	return len + strspn(at + len, "<>=-");
}

/*
 * Finds the function's own name: it ends at the parenthesis of the outermost level that opens last,
 * and begins behind the last blank of that level before it.
 */
static void own_name(const char *name, const char **from, const char **end)
{
	unsigned int depth = 0;
	const char *begin = name;

	*from = name;
	*end = NULL;
	for (const char *at = name; *at; at++) {
		size_t skip = depth ? 0 : operator_len(name, at);

		if (skip) {
			at += skip;
			if (*at == ' ') /* "operator new", "operator int", "operator< <int>" */
				at++;
			if (!*at)
				break;
		}
		if (*at == ' ' && !depth && at[1] != '[')
			begin = at + 1;
		if (*at == '(' && !depth && at != begin) {
			*end = at;
			*from = begin;
		}
		if (opens(*at))
			depth++;
		else if (closes(*at) && depth)
			depth--;
	}
	if (!*end)
		*end = name + strlen(name);
}

bool demangle_is(const char *linkage, const char *what)
{
	char *name;
	bool yes;

	if (strcmp(linkage, what) == 0)
		return true;
	if (dem_may(what) || !(name = demangle_name(linkage)))
		return false;
	yes = demangle_match(name, what);
	free(name);
	return yes;
}

bool demangle_match(const char *name, const char *what)
{
	const char *from, *end;

	if (same(name, strlen(name), what))
		return true;
	own_name(name, &from, &end);
	return same(from, (size_t)(end - from), what) || same(name, (size_t)(end - name), what);
}

/* ---- names that do not match as a whole ------------------------------------------------------ */

/* Into @out: @name without template arguments. */
static void drop_arguments(const char *name, char *out)
{
	unsigned int depth = 0;

	for (const char *at = name; *at; at++) {
		size_t skip = depth ? 0 : operator_len(name, at);

		for (; skip && *at; skip--)
			*out++ = *at++;
		if (!*at)
			break;
		if (*at == '<')
			depth++;
		if (!depth)
			*out++ = *at;
		if (*at == '>' && depth)
			depth--;
	}
	*out = '\0';
}

static bool unargued(const char *name, const char *what)
{
	char *bare = strchr(name, '<') ? malloc(strlen(name) + 1) : NULL;
	bool yes = false;

	if (bare) {
		drop_arguments(name, bare);
		yes = demangle_match(bare, what);
	}
	free(bare);
	return yes;
}

static bool in_word(char c)
{
	return c == '_' || c == '$' || isalnum((unsigned char)c);
}

enum demangle_fit demangle_fit(const char *name, const char *what)
{
	size_t len = strlen(what);
	enum demangle_fit fit = DEMANGLE_NONE;

	if (demangle_match(name, what))
		return DEMANGLE_MATCHES;
	if (unargued(name, what))
		return DEMANGLE_UNARGUED;
	for (const char *at = name; len >= 3 && (at = strstr(at, what)); at++) {
		fit = DEMANGLE_PART;
		if ((at == name || !in_word(at[-1])) && !in_word(at[len]))
			return DEMANGLE_WORDS;
	}
	return fit;
}
