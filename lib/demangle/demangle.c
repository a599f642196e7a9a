/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "demangle_internal.h"

struct dem_text dem_fail(struct dem *d)
{
	d->failed = true;
	return (struct dem_text){ 0 };
}

struct dem_text dem_bytes(struct dem *d, const char *bytes, size_t len)
{
	struct dem_text t = { d->used, (uint32_t)len };

	if (d->failed || len > DEM_TEXT - d->used)
		return dem_fail(d);
	memcpy(d->text + d->used, bytes, len);
	d->used += (uint32_t)len;
	return t;
}

struct dem_text dem_lit(struct dem *d, const char *text)
{
	return dem_bytes(d, text, strlen(text));
}

/* What was made last is only made longer. */
static struct dem_text movable(struct dem *d, struct dem_text a)
{
	return a.at + a.len == d->used ? a : dem_bytes(d, d->text + a.at, a.len);
}

struct dem_text dem_join(struct dem *d, struct dem_text a, struct dem_text b)
{
	if (!b.len)
		return a;
	if (!a.len)
		return b;
	if (a.at + a.len == b.at) {
		a.len += b.len;
		return a;
	}
	a = movable(d, a);
	a.len += dem_bytes(d, d->text + b.at, b.len).len;
	return a;
}

struct dem_text dem_add(struct dem *d, struct dem_text a, const char *text)
{
	if (!a.len)
		return dem_lit(d, text);
	a = movable(d, a);
	a.len += dem_lit(d, text).len;
	return a;
}

char dem_last(const struct dem *d, struct dem_text t)
{
	return t.len ? d->text[t.at + t.len - 1] : '\0';
}

bool dem_enter(struct dem *d)
{
	if (++d->depth > DEM_DEPTH || ++d->steps > DEM_STEPS)
		d->failed = true;
	return !d->failed;
}

void dem_leave(struct dem *d)
{
	d->depth--;
}

char dem_peek(const struct dem *d, size_t ahead)
{
	return !d->failed && ahead < (size_t)(d->end - d->p) ? d->p[ahead] : '\0';
}

bool dem_take(struct dem *d, const char *word)
{
	size_t len = strlen(word);

	if (d->failed || len > (size_t)(d->end - d->p) || memcmp(d->p, word, len) != 0)
		return false;
	d->p += len;
	return true;
}

bool dem_digit(char c)
{
	return c >= '0' && c <= '9';
}

uint32_t dem_number(struct dem *d)
{
	uint32_t n = 0;

	if (!dem_digit(dem_peek(d, 0)))
		d->failed = true;
	while (dem_digit(dem_peek(d, 0)) && n < 100000000)
		n = n * 10 + (uint32_t)(*d->p++ - '0');
	return n;
}

uint32_t dem_sequence(struct dem *d, unsigned int base)
{
	uint32_t n = 0;
	bool any = false;

	for (char c; (c = dem_peek(d, 0)) != '_'; d->p++, any = true) {
		unsigned int digit = dem_digit(c)	    ? (unsigned int)(c - '0')
				     : c >= 'A' && c <= 'Z' ? (unsigned int)(c - 'A') + 10
							    : 99;

		if (digit >= base || n > 1000000) {
			d->failed = true;
			return 0;
		}
		n = n * base + digit;
	}
	d->p++;
	return any ? n + 1 : 0;
}

/* ---- what is made by the compiler ------------------------------------------------------------ */

static void skip_offset(struct dem *d)
{
	dem_take(d, "n");
	dem_number(d);
	if (!dem_take(d, "_"))
		d->failed = true;
}

static struct dem_text thunk(struct dem *d, const char *text)
{
	return dem_join(d, dem_lit(d, text), dem_encoding(d, DEM_WHOLE));
}

static void skip_adjustment(struct dem *d)
{
	if (dem_take(d, "h")) {
		skip_offset(d);
	} else if (dem_take(d, "v")) {
		skip_offset(d);
		skip_offset(d);
	} else {
		d->failed = true;
	}
}

static struct dem_text construction(struct dem *d)
{
	struct dem_text of = dem_type_text(d), in;

	dem_number(d);
	if (!dem_take(d, "_"))
		return dem_fail(d);
	in = dem_type_text(d);
	return dem_join(
		d, dem_add(d, dem_join(d, dem_lit(d, "construction vtable for "), in), "-in-"), of);
}

static struct dem_text temporary(struct dem *d)
{
	struct dem_text name = dem_name(d, true).text;
	char head[64];

	snprintf(head, sizeof(head), "reference temporary #%u for ",
		 d->p < d->end ? dem_sequence(d, 36) : 0);
	return dem_join(d, dem_lit(d, head), name);
}

static struct dem_text initializer(struct dem *d)
{
	struct dem_text module = dem_module(d, (struct dem_text){ 0 });

	return module.len ? dem_join(d, dem_lit(d, "initializer for module "), module)
			  : dem_fail(d);
}

static struct dem_text special(struct dem *d)
{
	static const struct {
		const char *code, *text;
		bool of_type;
	} words[] = {
		{ "TV", "vtable for ", true },
		{ "TT", "VTT for ", true },
		{ "TI", "typeinfo for ", true },
		{ "TS", "typeinfo name for ", true },
		{ "TW", "TLS wrapper function for ", false },
		{ "TH", "TLS init function for ", false },
		{ "GV", "guard variable for ", false },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (dem_take(d, words[i].code))
			return dem_join(d, dem_lit(d, words[i].text),
					words[i].of_type ? dem_type_text(d)
							 : dem_name(d, true).text);
	if (dem_take(d, "TC"))
		return construction(d);
	if (dem_take(d, "GR"))
		return temporary(d);
	if (dem_take(d, "GI"))
		return initializer(d);
	if (dem_take(d, "GTt") || dem_take(d, "GTn"))
		return thunk(d, "transaction clone for ");
	if (dem_take(d, "Tc")) {
		skip_adjustment(d);
		skip_adjustment(d);
		return thunk(d, "covariant return thunk to ");
	}
	if (dem_take(d, "Th")) {
		skip_offset(d);
		return thunk(d, "non-virtual thunk to ");
	}
	if (dem_take(d, "Tv")) {
		skip_offset(d);
		skip_offset(d);
		return thunk(d, "virtual thunk to ");
	}
	return dem_fail(d);
}

/* ---- functions and data ---------------------------------------------------------------------- */

static bool at_end(const struct dem *d)
{
	char c = dem_peek(d, 0);

	return !c || c == 'E' || c == '.';
}

static struct dem_text function(struct dem *d, enum dem_part part)
{
	struct dem_name name = dem_name(d, true);
	struct dem_type back = { 0 };
	struct dem_text t, params;

	if (at_end(d))
		return dem_join(d, name.text, name.behind);
	if (name.is_template && !name.no_return)
		back = dem_type(d);
	params = dem_params(d);
	if (part == DEM_NAME)
		return name.text;
	if (part == DEM_NO_RETURN)
		back = (struct dem_type){ 0 };
	t = back.left;
	if (t.len && !back.right.len)
		t = dem_add(d, t, " ");
	t = dem_join(d, t, name.text);
	t = dem_add(d, t, "(");
	t = dem_join(d, t, params);
	t = dem_add(d, t, ")");
	return dem_join(d, dem_join(d, t, name.behind), back.right);
}

struct dem_text dem_encoding(struct dem *d, enum dem_part part)
{
	char c = dem_peek(d, 0);
	struct dem_text t = { 0 };

	if (dem_enter(d))
		t = c == 'T' || c == 'G' ? special(d) : function(d, part);
	dem_leave(d);
	return t;
}

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

bool dem_may(const char *linkage)
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
