/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of Rust: the legacy scheme, which looks like C++, and the newer one, "v0". */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "demangle_internal.h"

/* ---- the legacy scheme: nested names as C++ has them, the last word a hash ------------------- */

enum { HASH_LEN = 17 }; /* "h" and 16 digits */

static bool is_hash(const char *word, size_t len)
{
	if (len != HASH_LEN || *word != 'h')
		return false;
	for (size_t i = 1; i < len; i++)
		if (!dem_digit(word[i]) && (word[i] < 'a' || word[i] > 'f'))
			return false;
	return true;
}

/* Reads a word and its length, and moves *@at behind it. False: there is no word. */
static bool next_word(const char **at, const char **word, size_t *len)
{
	char *end;

	if (!dem_digit(**at))
		return false;
	*len = strtoul(*at, &end, 10);
	*word = end;
	if (*len > strlen(end))
		return false;
	*at = end + *len;
	return true;
}

/* Decodes an escape such as "$u7e$": a printable ASCII character or a blank. */
static char by_number(const char *text, size_t len)
{
	char digits[3] = { 0 }, *end;
	unsigned long c;

	if (len != 3 || *text != 'u')
		return '\0';
	memcpy(digits, text + 1, 2);
	c = strtoul(digits, &end, 16);
	return !*end && c >= ' ' && c < 0x7f ? (char)c : '\0';
}

/* Decodes the text between two "$". Empty: it is not known. */
static const char *escaped(const char *text, size_t len, char one[2])
{
	static const struct {
		const char *code, *text;
	} known[] = { { "SP", "@" }, { "BP", "*" }, { "RF", "&" }, { "LT", "<" },
		      { "GT", ">" }, { "LP", "(" }, { "RP", ")" }, { "C", "," } };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strlen(known[i].code) == len && memcmp(known[i].code, text, len) == 0)
			return known[i].text;
	one[0] = by_number(text, len);
	one[1] = '\0';
	return one;
}

static size_t put_escaped(const char *word, size_t len, char **to)
{
	const char *close = memchr(word + 1, '$', len - 1), *text;
	char one[2];

	text = close ? escaped(word + 1, (size_t)(close - word - 1), one) : "";
	if (!*text) {
		*(*to)++ = *word;
		return 1;
	}
	*(*to)++ = *text;
	return (size_t)(close - word) + 1;
}

/* Writes the word with its escapes decoded, which is never longer than the word. */
static void put_legacy_word(const char *word, size_t len, char **to)
{
	if (len >= 2 && word[0] == '_' && word[1] == '$') {
		word++;
		len--;
	}
	for (size_t i = 0; i < len;) {
		if (word[i] == '$') {
			i += put_escaped(word + i, len - i, to);
		} else if (word[i] == '.' && i + 1 < len && word[i + 1] == '.') {
			*(*to)++ = ':';
			*(*to)++ = ':';
			i += 2;
		} else {
			*(*to)++ = word[i++];
		}
	}
}

/* Counts the words without the hash; 0: this is no name of Rust. *@rest: the text behind the
 * words. */
static size_t count_words(const char *name, const char **rest)
{
	const char *word;
	size_t len, nr = 0;
	bool hash = false;

	while (next_word(&name, &word, &len)) {
		hash = is_hash(word, len);
		nr++;
	}
	*rest = name + 1;
	return *name == 'E' && hash ? nr - 1 : 0;
}

static char *legacy_name(const char *name)
{
	const char *at = name + 3, *word, *rest;
	size_t nr, len;
	char *text, *to;

	if (strncmp(name, "_ZN", 3) != 0 || !(nr = count_words(at, &rest)))
		return NULL;
	if (*rest && *rest != '.')
		return NULL;
	/* A separator "::" takes at most one byte more than a length of one digit. */
	text = to = malloc(2 * strlen(name) + 16);
	for (size_t i = 0; text && i < nr && next_word(&at, &word, &len); i++) {
		if (i) {
			*to++ = ':';
			*to++ = ':';
		}
		put_legacy_word(word, len, &to);
	}
	if (!text)
		return NULL;
	if (*rest && strncmp(rest, ".llvm.", 6) != 0) {
		memcpy(to, rest, strlen(rest));
		to += strlen(rest);
	}
	*to = '\0';
	return text;
}

/* ---- v0: RFC 2603, and "v0 Symbol Format" of the rustc book ---------------------------------- */

/* Limits of one name: things read, and how deep they nest. */
enum { MAX_STEPS = 20000, MAX_DEPTH = 160 };

/*
 * The reader writes text in the order in which it reads. Hashes of crates are left out, as in the
 * legacy scheme.
 */
struct v0 {
	const char *begin, *p, *end;
	bool failed;
	bool quiet; /* read without writing */
	unsigned int steps, depth;
	uint64_t lifetimes; /* lifetimes that the enclosing binders declare */
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
	if (++r->depth > MAX_DEPTH || ++r->steps > MAX_STEPS)
		r->failed = true;
	return !r->failed;
}

/* ---- numbers and words ----------------------------------------------------------------------- */

/* Reads a number of base 62: "_" is 0, "0_" is 1, and so on. */
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

/* Reads a number behind @mark, from 1 on; 0: there is none. */
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

/* Reads a back reference "B" with @one. It must point to an earlier place, so that reading ends. */
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

/* Writes a lifetime. @n counts the binders out to its declaration, from 1 on; 0 is a lifetime
 * without a name. */
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

/* Reads "for<'a, 'b> ". Returns the number of lifetimes, which hold until the caller removes
 * them. */
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

/* Reads hex digits up to "_". Returns their number; *@value is set if there are at most 16. */
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

/* Reads a list up to "E". Returns the number of its elements. */
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

/* Skips the place of an implementation, as its type identifies it well enough. */
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

/* Reads the last part of a nested path: "::name", or "::{closure#0}" or "::{shim:name#0}" for a
 * part without a name. */
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

/* Reads a path. @value: it is that of a function rather than a type, "f::<T>". */
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

/* Reads a trait's path. True: its argument list is still open, as in "Iterator<", to which "Item
 * = T>" is added. */
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

/* Reads the whole name. The crate that instantiates a generic function is not shown. */
static bool whole(struct v0 *r)
{
	path(r, true);
	if (isupper((unsigned char)peek(r))) {
		r->quiet = true;
		path(r, false);
	}
	return !r->failed && r->len;
}

static char *v0_name(const char *name)
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

char *dem_rust(const char *name)
{
	return name[1] == 'R' ? v0_name(name) : legacy_name(name);
}
