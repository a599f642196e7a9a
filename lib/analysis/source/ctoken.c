/* SPDX-License-Identifier: BSD-2-Clause */
/* The tokenizer of C sources. */
#include <string.h>

#include "ctoken.h"

void ctoken_init(struct ctoken_reader *r, const char *text, size_t len)
{
	*r = (struct ctoken_reader){
		.at = text, .end = len ? text + len : text, .line = text, .row = 1
	};
}

static size_t left(const struct ctoken_reader *r)
{
	return (size_t)(r->end - r->at);
}

static bool stands(const struct ctoken_reader *r, const char *text)
{
	size_t len = strlen(text);

	return left(r) >= len && memcmp(r->at, text, len) == 0;
}

/* Advances by one byte and counts rows. */
static void step(struct ctoken_reader *r)
{
	if (*r->at++ == '\n') {
		r->row++;
		r->line = r->at;
	}
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Is the character one of identifiers? Universal names and bytes that are not ASCII count as
 * such. */
static bool is_name(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       c == '$' || c == '\\' || (unsigned char)c >= 0x80;
}

/* The length of a line continuation (backslash and newline), or 0. */
static size_t splice(const struct ctoken_reader *r)
{
	if (stands(r, "\\\n"))
		return 2;
	return stands(r, "\\\r\n") ? 3 : 0;
}

static void skip_line(struct ctoken_reader *r)
{
	while (left(r) && *r->at != '\n') {
		size_t n = splice(r);

		for (step(r); n > 1; n--)
			step(r);
	}
}

static void skip_comment(struct ctoken_reader *r)
{
	r->at += 2;
	while (left(r) && !stands(r, "*/"))
		step(r);
	r->at += left(r) ? 2 : 0;
}

static void skip_blank(struct ctoken_reader *r)
{
	for (;;) {
		size_t n = splice(r);

		if (stands(r, "/*")) {
			skip_comment(r);
		} else if (stands(r, "//")) {
			skip_line(r);
		} else if (n) {
			for (; n; n--)
				step(r);
		} else if (left(r) && strchr(" \t\r\v\f\n", *r->at) && *r->at) {
			if (*r->at == '\n')
				r->started = false;
			step(r);
		} else {
			return;
		}
	}
}

/* To the closing quote; one that the line does not close is a token of its own. */
static void skip_quoted(struct ctoken_reader *r)
{
	struct ctoken_reader start = *r;
	char quote = *r->at++;

	while (left(r) && *r->at != quote && *r->at != '\n') {
		if (*r->at == '\\' && left(r) > 1)
			step(r);
		step(r);
	}
	if (!left(r) || *r->at != quote)
		*r = start;
	r->at++;
}

/* Skips a raw string R"delimiter( … )delimiter"; @r is at its quote. Without an end it is read
 * as an ordinary string. */
static void skip_raw(struct ctoken_reader *r)
{
	const char *open = memchr(r->at, '(', left(r) < 18 ? left(r) : 18);
	size_t len = open ? (size_t)(open - r->at - 1) : 0;

	for (const char *p = open; p && (size_t)(r->end - p) > len + 1; p++) {
		if (*p == ')' && memcmp(p + 1, r->at + 1, len) == 0 && p[1 + len] == '"') {
			while (r->at < p + 2 + len)
				step(r);
			return;
		}
	}
	skip_quoted(r);
}

static bool is_prefix(const char *text, size_t len, bool *raw)
{
	static const char *const prefixes[] = { "L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (strlen(prefixes[i]) == len && memcmp(prefixes[i], text, len) == 0) {
			*raw = text[len - 1] == 'R';
			return true;
		}
	}
	return false;
}

static void skip_name(struct ctoken_reader *r)
{
	const char *start = r->at;
	bool raw = false;

	while (left(r) && is_name(*r->at) && !splice(r))
		r->at++;
	if (!left(r) || (*r->at != '"' && *r->at != '\'') ||
	    !is_prefix(start, (size_t)(r->at - start), &raw))
		return;
	if (raw && *r->at == '"')
		skip_raw(r);
	else
		skip_quoted(r);
}

/* Skips a preprocessing number: 1e+5, 0x1p-3, 1.5f, 1'000. */
static void skip_number(struct ctoken_reader *r)
{
	while (left(r)) {
		bool exponent = strchr("eEpP", *r->at) && *r->at;

		if (exponent && left(r) > 1 && (r->at[1] == '+' || r->at[1] == '-'))
			r->at += 2;
		else if (*r->at == '\'' && left(r) > 1 && is_name(r->at[1]))
			r->at += 2;
		else if ((is_name(*r->at) || *r->at == '.') && !splice(r))
			r->at++;
		else
			return;
	}
}

static void skip_punctuator(struct ctoken_reader *r)
{
	static const char *const all[] = {
		"%:%:", "...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=",
		">=",	"==",  "!=",  "&&",  "||", "*=", "/=", "%=", "+=", "-=",
		"&=",	"^=",  "|=",  "##",  "<:", ":>", "<%", "%>", "%:", "::",
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (stands(r, all[i])) {
			r->at += strlen(all[i]);
			return;
		}
	}
	r->at++;
}

static void skip_token(struct ctoken_reader *r)
{
	char c = *r->at;

	if (c == '"' || c == '\'')
		skip_quoted(r);
	else if (is_digit(c) || (c == '.' && left(r) > 1 && is_digit(r->at[1])))
		skip_number(r);
	else if (is_name(c))
		skip_name(r);
	else
		skip_punctuator(r);
}

void ctoken_next(struct ctoken_reader *r, struct ctoken *out)
{
	skip_blank(r);
	*out = (struct ctoken){ .text = r->at,
				.row = r->row,
				.column = (unsigned int)(r->at - r->line) + 1 };
	if (!left(r))
		return;
	if (!r->started && (*r->at == '#' || stands(r, "%:"))) {
		out->kind = CTOKEN_DIRECTIVE;
		skip_line(r);
	} else {
		out->kind = CTOKEN_TEXT;
		r->started = true;
		skip_token(r);
	}
	out->len = (size_t)(r->at - out->text);
}
