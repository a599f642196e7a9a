/* SPDX-License-Identifier: BSD-2-Clause */
/* Readable names of linker symbols of any scheme, their cache, and their comparison with names
 * that users type. */
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "demangle_internal.h"

/* Does the name begin like one of a known scheme? */
static bool dem_may(const char *linkage)
{
	return linkage[0] == '_' && (linkage[1] == 'Z' || linkage[1] == 'R');
}

char *demangle_name(const char *linkage)
{
	size_t len = strnlen(linkage, DEMANGLE_MAX + 1), own;
	char *name;

	if (!dem_may(linkage) || len > DEMANGLE_MAX)
		return NULL;
	name = dem_rust(linkage);
	if (name || linkage[1] == 'R')
		return name;
	own = strcspn(linkage, "@"); /* "name@plt" */
	return dem_cxx(linkage, own, linkage + own);
}

bool demangle_off;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct base_map names; /* linker's name to readable name, or to "" if it has none */

static const char *made(const char *linkage)
{
	size_t len = strlen(linkage);
	char *name = base_map_get(&names, linkage, len);

	if (name)
		return name;
	name = demangle_name(linkage);
	if (!name)
		name = strdup("");
	if (name && base_map_set(&names, linkage, len, name) < 0) {
		free(name);
		name = NULL;
	}
	return name;
}

const char *demangle_shown(const char *linkage)
{
	const char *name;

	if (demangle_off || !linkage || !dem_may(linkage))
		return linkage;
	pthread_mutex_lock(&lock);
	name = made(linkage);
	pthread_mutex_unlock(&lock);
	return name && *name ? name : linkage;
}

/* ---- names that users type ------------------------------------------------------------------- */

/* Are the names equal, apart from blanks? @len: length of @name. */
static bool same(const char *name, size_t len, const char *what)
{
	const char *end = name + len;

	for (;;) {
		while (name < end && *name == ' ')
			name++;
		while (*what == ' ')
			what++;
		if (name == end || !*what)
			return name == end && !*what;
		if (*name++ != *what++)
			return false;
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
