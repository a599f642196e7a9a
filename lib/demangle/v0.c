/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rust's newer scheme, "_R…": RFC 2603, and "v0 Symbol Format" of the rustc book. What is read is
 * written at once, in the same order; the hashes of crates are left out, as in the older scheme.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "demangle_internal.h"

struct v0 {
	const char *begin, *p, *end;
	bool failed;
	bool quiet; /* read on, write nothing */
	unsigned int steps, depth;
	uint64_t lifetimes; /* that binders around here have */
	size_t len;
	char text[DEMANGLE_MAX];
};

static void put_bytes(struct v0 *r, const char *bytes, size_t len)
{
	if (r->quiet || r->failed)
		return;
	if (len > sizeof(r->text) - r->len) {
		r->failed = true;
		return;
	}
	memcpy(r->text + r->len, bytes, len);
	r->len += len;
}

static void put(struct v0 *r, const char *text)
{
	put_bytes(r, text, strlen(text));
}

static void put_number(struct v0 *r, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	put(r, text);
}

static char peek(const struct v0 *r)
{
	return !r->failed && r->p < r->end ? *r->p : '\0';
}

static char next(struct v0 *r)
{
	char c = peek(r);

	if (c)
		r->p++;
	else
		r->failed = true;
	return c;
}

static bool take(struct v0 *r, char c)
{
	if (peek(r) != c)
		return false;
	r->p++;
	return true;
}

static bool enter(struct v0 *r)
{
	if (++r->depth > DEM_DEPTH || ++r->steps > DEM_STEPS)
		r->failed = true;
	return !r->failed;
}

/* ---- numbers and words ----------------------------------------------------------------------- */

/* "_" 0, "0_" 1, … */
static uint64_t base62(struct v0 *r)
{
	uint64_t n = 0;
	bool any = false;

	for (char c; (c = next(r)) != '_' && !r->failed; any = true) {
		uint64_t digit = dem_digit(c)		     ? (uint64_t)(c - '0')
				 : islower((unsigned char)c) ? (uint64_t)(c - 'a') + 10
				 : isupper((unsigned char)c) ? (uint64_t)(c - 'A') + 36
							     : 62;

		if (digit == 62 || __builtin_mul_overflow(n, 62, &n) ||
		    __builtin_add_overflow(n, digit, &n))
			r->failed = true;
	}
	if (any && ++n == 0)
		r->failed = true;
	return r->failed ? 0 : n;
}

/* A number behind @mark, from 1 on; 0 where there is none. */
static uint64_t marked(struct v0 *r, char mark)
{
	uint64_t n;

	if (!take(r, mark))
		return 0;
	n = base62(r);
	if (n == UINT64_MAX)
		r->failed = true;
	return n + 1;
}

struct word {
	const char *at;
	size_t len;
	bool coded; /* in Punycode */
};

static struct word word(struct v0 *r)
{
	struct word w = { .coded = take(r, 'u') };

	if (!dem_digit(peek(r)))
		r->failed = true;
	if (!take(r, '0'))
		while (dem_digit(peek(r)) && w.len <= DEMANGLE_MAX)
			w.len = w.len * 10 + (size_t)(next(r) - '0');
	take(r, '_');
	w.at = r->p;
	if (r->failed || w.len > (size_t)(r->end - r->p)) {
		r->failed = true;
		return (struct word){ .at = r->p };
	}
	r->p += w.len;
	return w;
}

static void put_word(struct v0 *r, struct word w)
{
	put(r, w.coded ? "punycode{" : "");
	put_bytes(r, w.at, w.len);
	put(r, w.coded ? "}" : "");
}

/* @one again, of what stands where "B" says: before it, so that it ends. */
static void again(struct v0 *r, void (*one)(struct v0 *r, bool arg), bool arg)
{
	const char *from = r->p - 1, *to;
	uint64_t at = base62(r);

	if (r->failed || at >= (uint64_t)(from - r->begin)) {
		r->failed = true;
		return;
	}
	if (r->quiet)
		return;
	to = r->p;
	r->p = r->begin + at;
	one(r, arg);
	r->p = to;
}

/* ---- lifetimes ------------------------------------------------------------------------------- */

/* By how many binders further out it is declared, from 1 on; 0 is one without a name. */
static void put_lifetime(struct v0 *r, uint64_t n)
{
	char name[4] = "'";

	if (!n) {
		put(r, "'_");
	} else if (n > r->lifetimes) {
		r->failed = true;
	} else if (r->lifetimes - n < 26) {
		name[1] = (char)('a' + (r->lifetimes - n));
		put(r, name);
	} else {
		put(r, "'_");
		put_number(r, r->lifetimes - n);
	}
}

/* "for<'a, 'b> ". Returns how many, which hold until the caller takes them off. */
static uint64_t binder(struct v0 *r)
{
	uint64_t nr = marked(r, 'G');

	if (nr > DEMANGLE_MAX) {
		r->failed = true;
		return 0;
	}
	for (uint64_t i = 0; i < nr; i++) {
		r->lifetimes++;
		put(r, i ? ", " : "for<");
		put_lifetime(r, 1);
	}
	put(r, nr ? "> " : "");
	return nr;
}

/* ---- constants ------------------------------------------------------------------------------- */

/* Up to "_": how many digits; of at most 16, their value. */
static size_t hex(struct v0 *r, const char **digits, uint64_t *value)
{
	size_t len;

	*value = 0;
	take(r, '0');
	*digits = r->p;
	while (isxdigit((unsigned char)peek(r)) && !isupper((unsigned char)peek(r))) {
		char c = next(r);

		*value = *value << 4 | (uint64_t)(dem_digit(c) ? c - '0' : c - 'a' + 10);
	}
	len = (size_t)(r->p - *digits);
	if (!take(r, '_'))
		r->failed = true;
	return len;
}

static void put_integer(struct v0 *r)
{
	const char *digits;
	uint64_t value;
	size_t len = hex(r, &digits, &value);

	if (len <= 16) {
		put_number(r, value);
	} else {
		put(r, "0x");
		put_bytes(r, digits, len);
	}
}

static void put_character(struct v0 *r)
{
	const char *digits;
	uint64_t value;
	size_t len = hex(r, &digits, &value);
	char text[24];

	if (len > 8)
		r->failed = true;
	else if (value == '\'' || value == '\\')
		snprintf(text, sizeof(text), "'\\%c'", (char)value);
	else if (value >= ' ' && value < 0x7f)
		snprintf(text, sizeof(text), "'%c'", (char)value);
	else
		snprintf(text, sizeof(text), "'\\u{%llx}'", (unsigned long long)value);
	put(r, r->failed ? "" : text);
}

static void constant(struct v0 *r, bool unused)
{
	char c = next(r);

	(void)unused;
	if (!enter(r)) {
	} else if (c == 'p') {
		put(r, "_");
	} else if (c == 'B') {
		again(r, constant, false);
	} else if (c == 'b') {
		put(r, take(r, '0') ? "false" : take(r, '1') ? "true" : "");
		r->failed |= !take(r, '_');
	} else if (c == 'c') {
		put_character(r);
	} else if (c && strchr("hjmotyailnsx", c)) {
		put(r, strchr("ailnsx", c) && take(r, 'n') ? "-" : "");
		put_integer(r);
	} else {
		r->failed = true;
	}
	r->depth--;
}

/* ---- paths and types ------------------------------------------------------------------------- */

static void path(struct v0 *r, bool value);
static void type(struct v0 *r, bool unused);

static void argument(struct v0 *r)
{
	if (take(r, 'L'))
		put_lifetime(r, base62(r));
	else if (take(r, 'K'))
		constant(r, false);
	else
		type(r, false);
}

/* Up to "E". Returns how many. */
static size_t list(struct v0 *r, void (*one)(struct v0 *r), const char *between)
{
	size_t nr = 0;

	for (; !r->failed && !take(r, 'E'); nr++) {
		put(r, nr ? between : "");
		one(r);
	}
	return nr;
}

static void one_type(struct v0 *r)
{
	type(r, false);
}

/* What an implementation is in, which its type tells well enough. */
static void skip_place(struct v0 *r)
{
	bool quiet = r->quiet;

	r->quiet = true;
	marked(r, 's');
	path(r, false);
	r->quiet = quiet;
}

static void of_type(struct v0 *r, bool has_trait)
{
	put(r, "<");
	type(r, false);
	if (has_trait) {
		put(r, " as ");
		path(r, false);
	}
	put(r, ">");
}

/* "::name", or of what has none by itself "::{closure#0}", "::{shim:name#0}". */
static void nested(struct v0 *r, bool value)
{
	char space = next(r), text[2] = { space };
	uint64_t nr;
	struct word w;

	if (!isalpha((unsigned char)space))
		r->failed = true;
	path(r, value);
	nr = marked(r, 's');
	w = word(r);
	if (islower((unsigned char)space)) {
		put(r, w.len ? "::" : "");
		put_word(r, w);
		return;
	}
	put(r, "::{");
	put(r, space == 'C' ? "closure" : space == 'S' ? "shim" : text);
	put(r, w.len ? ":" : "");
	put_word(r, w);
	put(r, "#");
	put_number(r, nr);
	put(r, "}");
}

/* @value: of a function rather than a type, "f::<T>". */
static void path(struct v0 *r, bool value)
{
	char c = next(r);

	if (!enter(r)) {
	} else if (c == 'C') {
		marked(r, 's');
		put_word(r, word(r));
	} else if (c == 'M' || c == 'X') {
		skip_place(r);
		of_type(r, c == 'X');
	} else if (c == 'Y') {
		of_type(r, true);
	} else if (c == 'N') {
		nested(r, value);
	} else if (c == 'I') {
		path(r, value);
		put(r, value ? "::<" : "<");
		list(r, argument, ", ");
		put(r, ">");
	} else if (c == 'B') {
		again(r, path, value);
	} else {
		r->failed = true;
	}
	r->depth--;
}

static const char *basic(char c)
{
	static const char *const names[26] = {
		['a' - 'a'] = "i8",   ['b' - 'a'] = "bool",  ['c' - 'a'] = "char",
		['d' - 'a'] = "f64",  ['e' - 'a'] = "str",   ['f' - 'a'] = "f32",
		['h' - 'a'] = "u8",   ['i' - 'a'] = "isize", ['j' - 'a'] = "usize",
		['l' - 'a'] = "i32",  ['m' - 'a'] = "u32",   ['n' - 'a'] = "i128",
		['o' - 'a'] = "u128", ['p' - 'a'] = "_",     ['s' - 'a'] = "i16",
		['t' - 'a'] = "u16",  ['u' - 'a'] = "()",    ['v' - 'a'] = "...",
		['x' - 'a'] = "i64",  ['y' - 'a'] = "u64",   ['z' - 'a'] = "!",
	};

	return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static void reference(struct v0 *r, const char *mut)
{
	uint64_t lifetime = take(r, 'L') ? base62(r) : 0;

	put(r, "&");
	if (lifetime) {
		put_lifetime(r, lifetime);
		put(r, " ");
	}
	put(r, mut);
	type(r, false);
}

static void put_abi(struct v0 *r)
{
	struct word w = { "C", 1, false };

	if (!take(r, 'C'))
		w = word(r);
	put(r, "extern \"");
	for (size_t i = 0; i < w.len; i++)
		put_bytes(r, w.at[i] == '_' ? "-" : w.at + i, 1);
	put(r, "\" ");
}

static void function(struct v0 *r)
{
	uint64_t bound = binder(r);

	put(r, take(r, 'U') ? "unsafe " : "");
	if (take(r, 'K'))
		put_abi(r);
	put(r, "fn(");
	list(r, one_type, ", ");
	put(r, ")");
	if (!take(r, 'u')) {
		put(r, " -> ");
		type(r, false);
	}
	r->lifetimes -= bound;
}

/* A trait's path, and whether its arguments are still open: "Iterator<", to which "Item = T>"
 * comes. */
static bool open_path(struct v0 *r)
{
	bool open = false;

	if (!enter(r)) {
	} else if (take(r, 'B')) {
		const char *from = r->p - 1, *to;
		uint64_t at = base62(r);

		if (r->failed || at >= (uint64_t)(from - r->begin)) {
			r->failed = true;
		} else if (!r->quiet) {
			to = r->p;
			r->p = r->begin + at;
			open = open_path(r);
			r->p = to;
		}
	} else if (take(r, 'I')) {
		path(r, false);
		put(r, "<");
		list(r, argument, ", ");
		open = true;
	} else {
		path(r, false);
	}
	r->depth--;
	return open;
}

static void trait(struct v0 *r)
{
	bool open = open_path(r);

	while (take(r, 'p')) {
		put(r, open ? ", " : "<");
		open = true;
		put_word(r, word(r));
		put(r, " = ");
		type(r, false);
	}
	put(r, open ? ">" : "");
}

static void traits(struct v0 *r)
{
	uint64_t bound, lifetime;

	put(r, "dyn ");
	bound = binder(r);
	list(r, trait, " + ");
	r->lifetimes -= bound;
	if (!take(r, 'L'))
		r->failed = true;
	lifetime = base62(r);
	if (lifetime) {
		put(r, " + ");
		put_lifetime(r, lifetime);
	}
}

static void tuple(struct v0 *r)
{
	put(r, "(");
	put(r, list(r, one_type, ", ") == 1 ? ",)" : ")");
}

static void array(struct v0 *r, bool has_length)
{
	put(r, "[");
	type(r, false);
	if (has_length) {
		put(r, "; ");
		constant(r, false);
	}
	put(r, "]");
}

static void pointer(struct v0 *r, const char *sort)
{
	put(r, sort);
	type(r, false);
}

static void type(struct v0 *r, bool unused)
{
	char c = next(r);

	(void)unused;
	if (!enter(r)) {
	} else if (basic(c)) {
		put(r, basic(c));
	} else if (c == 'A' || c == 'S') {
		array(r, c == 'A');
	} else if (c == 'T') {
		tuple(r);
	} else if (c == 'R' || c == 'Q') {
		reference(r, c == 'Q' ? "mut " : "");
	} else if (c == 'P' || c == 'O') {
		pointer(r, c == 'P' ? "*const " : "*mut ");
	} else if (c == 'F') {
		function(r);
	} else if (c == 'D') {
		traits(r);
	} else if (c == 'B') {
		again(r, type, false);
	} else if (!r->failed) {
		r->p--;
		path(r, false);
	}
	r->depth--;
}

/* The crate that made this instance of a generic function is not shown. */
static bool whole(struct v0 *r)
{
	path(r, true);
	if (isupper((unsigned char)peek(r))) {
		r->quiet = true;
		path(r, false);
	}
	return !r->failed && r->len;
}

char *dem_v0(const char *name)
{
	struct v0 *r = malloc(sizeof(*r));
	char *text = NULL;
	const char *rest;

	if (!r)
		return NULL;
	memset(r, 0, offsetof(struct v0, text));
	r->begin = r->p = name + 2;
	r->end = name + strlen(name);
	if (whole(r) && (r->p == r->end || strchr(".$@", *r->p))) {
		rest = strncmp(r->p, ".llvm.", 6) == 0 ? r->end : r->p;
		r->quiet = false;
		put(r, rest);
		text = r->failed ? NULL : strndup(r->text, r->len);
	}
	free(r);
	return text;
}
