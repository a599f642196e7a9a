/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lexer.h"

#define MAX_NAME   64
#define MAX_NUMBER 64
#define MAX_TEXT   1024

static const char *const words[] = {
	"break", "continue", "double", "else",	 "extern", "for", "func",  "if",
	"int",	 "int32",    "return", "shares", "string", "var", "while",
};

static const struct {
	char text[4];
	enum calc_token token;
} operators[] = {
	{ "...", CALC_TOK_DOTS },  { "==", CALC_TOK_EQ },     { "!=", CALC_TOK_NE },
	{ "<=", CALC_TOK_LE },	   { ">=", CALC_TOK_GE },     { "&&", CALC_TOK_AND },
	{ "||", CALC_TOK_OR },	   { "+=", CALC_TOK_ADD_TO }, { "-=", CALC_TOK_SUB_TO },
	{ "*=", CALC_TOK_MUL_TO }, { "/=", CALC_TOK_DIV_TO }, { "%=", CALC_TOK_MOD_TO },
};

#define NR_WORDS     (sizeof(words) / sizeof(words[0]))
#define NR_OPERATORS (sizeof(operators) / sizeof(operators[0]))

void calc_lexer_init(struct calc_lexer *lx, struct calc *c, const char *text, size_t len)
{
	*lx = (struct calc_lexer){
		.c = c,
		.at = text,
		.end = text + len,
		.next_pos = { 1, 1 },
	};
}

/* The character at @ahead, 0 past the end (and for a NUL, which no token may hold). */
static int peek(const struct calc_lexer *lx, size_t ahead)
{
	return (size_t)(lx->end - lx->at) > ahead ? (unsigned char)lx->at[ahead] : 0;
}

static void advance(struct calc_lexer *lx, size_t nr)
{
	for (; nr > 0; nr--, lx->at++) {
		if (*lx->at == '\n') {
			lx->next_pos.line++;
			lx->next_pos.col = 1;
		} else {
			lx->next_pos.col++;
		}
	}
}

static bool is_name_char(int ch)
{
	return isalnum(ch) || ch == '_';
}

static void skip_blanks(struct calc_lexer *lx)
{
	for (;;) {
		int ch = peek(lx, 0);

		if (ch == '#' || (ch == '/' && peek(lx, 1) == '/')) {
			const char *eol = memchr(lx->at, '\n', (size_t)(lx->end - lx->at));

			advance(lx, (size_t)((eol ? eol : lx->end) - lx->at));
		} else if (ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r') {
			advance(lx, 1);
		} else {
			return;
		}
	}
}

static const char *keep(struct calc_lexer *lx, const char *text, size_t len)
{
	char *copy = calc_alloc(lx->c, lx->pos, len + 1);

	memcpy(copy, text, len);
	return copy;
}

static void read_name(struct calc_lexer *lx)
{
	size_t len = 0;

	while (is_name_char(peek(lx, len)))
		len++;
	if (len > MAX_NAME)
		calc_fail(lx->c, lx->pos, "name of more than %d characters", MAX_NAME);
	lx->token = CALC_TOK_NAME;
	for (size_t i = 0; i < NR_WORDS; i++)
		if (strlen(words[i]) == len && memcmp(words[i], lx->at, len) == 0)
			lx->token = CALC_TOK_BREAK + (int)i;
	if (lx->token == CALC_TOK_NAME)
		lx->text = keep(lx, lx->at, len);
	advance(lx, len);
}

static size_t number_len(const struct calc_lexer *lx, bool *real)
{
	size_t len = 0;

	while (isdigit(peek(lx, len)))
		len++;
	*real = peek(lx, len) == '.';
	if (*real)
		for (len++; isdigit(peek(lx, len)); len++)
			;
	if (peek(lx, len) == 'e' || peek(lx, len) == 'E') {
		size_t sign = peek(lx, len + 1) == '+' || peek(lx, len + 1) == '-';

		if (isdigit(peek(lx, len + 1 + sign)))
			for (*real = true, len += 1 + sign; isdigit(peek(lx, len)); len++)
				;
	}
	return len;
}

static void read_number(struct calc_lexer *lx)
{
	char digits[MAX_NUMBER + 1];
	bool real;
	size_t len = number_len(lx, &real);

	if (len > MAX_NUMBER)
		calc_fail(lx->c, lx->pos, "number of more than %d characters", MAX_NUMBER);
	if (is_name_char(peek(lx, len)))
		calc_fail(lx->c, lx->pos, "number runs into a name");
	memcpy(digits, lx->at, len);
	digits[len] = '\0';
	errno = 0;
	if (real)
		lx->value.d = strtod(digits, NULL);
	else
		lx->value.i = strtoll(digits, NULL, 10);
	/* A real that is too small for its type is 0, or nearly so, and good enough. */
	if (errno == ERANGE && (!real || lx->value.d > 1))
		calc_fail(lx->c, lx->pos, "number '%s' is too large", digits);
	lx->token = real ? CALC_TOK_REAL : CALC_TOK_INTEGER;
	advance(lx, len);
}

static char read_escape(struct calc_lexer *lx)
{
	int ch = peek(lx, 1);

	switch (ch) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case '"':
	case '\\':
		return (char)ch;
	default:
		calc_fail(lx->c, lx->next_pos,
			  "unknown escape in a string (there are \\n \\t \\\" \\\\)");
	}
}

static void read_text(struct calc_lexer *lx)
{
	char text[MAX_TEXT];
	size_t len = 0;

	for (advance(lx, 1); peek(lx, 0) != '"'; len++) {
		int ch = peek(lx, 0);

		if (ch == 0 || ch == '\n')
			calc_fail(lx->c, lx->pos, "string has no closing '\"' on its line");
		if (len == sizeof(text))
			calc_fail(lx->c, lx->pos, "string of more than %d bytes", MAX_TEXT);
		text[len] = ch == '\\' ? read_escape(lx) : (char)ch;
		advance(lx, ch == '\\' ? 2 : 1);
	}
	advance(lx, 1);
	lx->token = CALC_TOK_TEXT;
	lx->text = keep(lx, text, len);
}

static void read_operator(struct calc_lexer *lx)
{
	int ch = peek(lx, 0);

	for (size_t i = 0; i < NR_OPERATORS; i++) {
		size_t len = strlen(operators[i].text);

		if ((size_t)(lx->end - lx->at) >= len &&
		    memcmp(lx->at, operators[i].text, len) == 0) {
			lx->token = operators[i].token;
			advance(lx, len);
			return;
		}
	}
	if (ch == 0 || !strchr("+-*/%<>=!(){}[],;:", ch)) {
		if (isprint(ch))
			calc_fail(lx->c, lx->pos, "unexpected character '%c'", ch);
		calc_fail(lx->c, lx->pos, "unexpected byte 0x%02x", (unsigned int)ch);
	}
	lx->token = ch;
	advance(lx, 1);
}

void calc_lexer_next(struct calc_lexer *lx)
{
	int ch;

	skip_blanks(lx);
	lx->pos = lx->next_pos;
	ch = peek(lx, 0);
	if (lx->at == lx->end)
		lx->token = CALC_TOK_END;
	else if (isdigit(ch))
		read_number(lx);
	else if (is_name_char(ch))
		read_name(lx);
	else if (ch == '"')
		read_text(lx);
	else
		read_operator(lx);
}

const char *calc_token_name(int token)
{
	static char buf[16];
	const char *text = NULL;

	switch (token) {
	case CALC_TOK_END:
		return "end of file";
	case CALC_TOK_NAME:
		return "name";
	case CALC_TOK_INTEGER:
	case CALC_TOK_REAL:
		return "number";
	case CALC_TOK_TEXT:
		return "string";
	}
	for (size_t i = 0; i < NR_OPERATORS; i++)
		if ((int)operators[i].token == token)
			text = operators[i].text;
	if (token >= CALC_TOK_BREAK)
		text = words[token - CALC_TOK_BREAK];
	if (text)
		snprintf(buf, sizeof(buf), "'%.12s'", text);
	else
		snprintf(buf, sizeof(buf), "'%c'", token);
	return buf;
}
