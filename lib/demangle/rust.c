/* SPDX-License-Identifier: BSD-2-Clause */
/* Rust's older scheme: words as C++ has them in a nested name, the last one a hash. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "demangle_internal.h"

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

/* Moves *@at behind a word and its length. False: there is none. */
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

/* "$u7e$": one character of ASCII that can be seen, or a blank. */
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

/* What stands between two "$". Empty: nothing known. */
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

/* Never longer than the word was. */
static void put_word(const char *word, size_t len, char **to)
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

/* The number of words, the hash left out; 0: no name of Rust. *@rest: what stands behind it. */
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

char *dem_rust(const char *name)
{
	const char *at = name + 3, *word, *rest;
	size_t nr, len;
	char *text, *to;

	if (strncmp(name, "_ZN", 3) != 0 || !(nr = count_words(at, &rest)))
		return NULL;
	if (*rest && *rest != '.')
		return NULL;
	/* A separator takes as much as a length of one digit and "::" more at most. */
	text = to = malloc(2 * strlen(name) + 16);
	for (size_t i = 0; text && i < nr && next_word(&at, &word, &len); i++) {
		if (i) {
			*to++ = ':';
			*to++ = ':';
		}
		put_word(word, len, &to);
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
