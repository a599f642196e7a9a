/* SPDX-License-Identifier: BSD-2-Clause */
/* Shortens readable names: what stands in brackets is left out, and so is a type before the name.
 */
#include <stdlib.h>
#include <string.h>

#include "demangle.h"

static const char left_out[] = "\xe2\x80\xa6"; /* three dots in one character */

/* A copy that a compiler made of a function for some of its calls: "f(int) [clone .isra.0]". */
static const char clone[] = " [clone ";

struct shortening {
	const char *at;
	char *out;
	size_t len;
	size_t name; /* where in @out the function's name with its scopes begins */
	bool ended;  /* its parameters were met */
};

static void put(struct shortening *s, const char *text, size_t len)
{
	memcpy(s->out + s->len, text, len);
	s->len += len;
}

/* The length of an operator's name at @at, with the blank that some have behind it; 0: there is
 * none. Its signs are no brackets. */
static size_t operator_len(const char *at)
{
	static const char word[] = "operator";
	size_t len = sizeof(word) - 1;

	if (strncmp(at, word, len) != 0)
		return 0;
	if (strncmp(at + len, "()", 2) == 0)
		return len + 2;
	return len + strspn(at + len, "<>=!-+*/%^&|~[],");
}

/* Behind the bracket that closes the one at @at, or the end. */
static const char *behind(const char *at)
{
	size_t depth = 0;

	for (; *at; at++) {
		if (strchr("<({", *at))
			depth++;
		if (strchr(">)}", *at) && (*at != '>' || at[-1] != '-') && --depth == 0)
			return at + 1;
	}
	return at;
}

static void put_bracket(struct shortening *s)
{
	static const char anonymous[] = "(anonymous namespace)";
	char open = *s->at, close = open == '<' ? '>' : ')';

	if (strncmp(s->at, anonymous, sizeof(anonymous) - 1) == 0) {
		put(s, s->at, sizeof(anonymous) - 1);
		s->at += sizeof(anonymous) - 1;
		return;
	}
	s->ended |= open == '(';
	if (s->at[1] == close) {
		put(s, s->at, 2);
		s->at += 2;
		return;
	}
	s->at = behind(s->at);
	put(s, &open, 1);
	put(s, left_out, sizeof(left_out) - 1);
	put(s, &close, 1);
}

char *demangle_short(const char *name)
{
	/* A bracket with contents has 3 bytes at least and becomes 5; one at the end may lack its
	 * other half. */
	struct shortening s = { .at = name, .out = malloc(3 * strlen(name) + 8) };

	/* "<Type as Trait>::name", of Rust. */
	if (s.out && *name == '<') {
		s.ended = true;
		put(&s, s.at++, 1);
	}
	while (s.out && *s.at && strncmp(s.at, clone, sizeof(clone) - 1) != 0) {
		size_t len = operator_len(s.at);

		if (!len && strchr("<(", *s.at)) {
			put_bracket(&s);
			continue;
		}
		if (*s.at == ' ' && !s.ended &&
		    (s.len < 8 || memcmp(s.out + s.len - 8, "operator", 8) != 0))
			s.name = s.len + 1;
		len = len ? len : 1;
		put(&s, s.at, len);
		s.at += len;
		if (len > 1 && strncmp(s.at, " <", 2) == 0) /* "operator< <" */
			s.at++;
	}
	if (!s.out)
		return NULL;
	s.out[s.len] = '\0';
	memmove(s.out, s.out + s.name, s.len - s.name + 1);
	return s.out;
}
