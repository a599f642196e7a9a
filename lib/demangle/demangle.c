/* SPDX-License-Identifier: BSD-2-Clause */
/* A readable name for the linker's name, by whichever scheme made it, and names as reports show
 * them. */
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "demangle_internal.h"

/* ".cold", ".constprop.0": what the compiler made of it besides. */
static struct dem_text clones(struct dem *d, struct dem_text t)
{
	while (!d->failed && dem_peek(d, 0) == '.') {
		const char *from = d->p++;

		if (!isalnum((unsigned char)dem_peek(d, 0)) && dem_peek(d, 0) != '_')
			return dem_fail(d);
		while (isalnum((unsigned char)dem_peek(d, 0)) || dem_peek(d, 0) == '_')
			d->p++;
		while (dem_peek(d, 0) == '.' && dem_digit(dem_peek(d, 1)))
			for (d->p++; dem_digit(dem_peek(d, 0));)
				d->p++;
		t = dem_add(d, t, " [clone ");
		t = dem_join(d, t, dem_bytes(d, from, (size_t)(d->p - from)));
		t = dem_add(d, t, "]");
	}
	return t;
}

/* Of @len bytes, and @rest behind it. */
static char *cxx(const char *linkage, size_t len, const char *rest)
{
	struct dem *d = malloc(sizeof(*d));
	struct dem_text t;
	char *name = NULL;

	if (!d)
		return NULL;
	memset(d, 0, offsetof(struct dem, subs));
	d->p = linkage + 2;
	d->end = linkage + len;
	t = clones(d, dem_encoding(d, DEM_WHOLE));
	if (d->p == d->end && t.len)
		t = dem_add(d, t, rest);
	if (!d->failed && d->p == d->end && t.len && t.len <= DEMANGLE_MAX)
		name = strndup(d->text + t.at, t.len);
	free(d);
	return name;
}

/* Does it begin as a name that can be read? */
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
	if (linkage[1] == 'R')
		return dem_v0(linkage);
	name = dem_rust(linkage);
	if (name)
		return name;
	own = strcspn(linkage, "@"); /* "name@plt" */
	return cxx(linkage, own, linkage + own);
}

bool demangle_off;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct base_map names; /* linker's to readable; to "" where there is none */

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

/* ---- what users type ------------------------------------------------------------------------- */

/* Are they the same but for blanks? @len: of @name. */
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

/* The word "operator" at @at in @name and its own characters, which open and close nothing. */
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
 * Where the function's own name stands: up to the parenthesis, on the outmost level, that is the
 * last to open; from behind the last blank on that level in front of it.
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
