/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CALC_LEXER_H
#define CALC_LEXER_H

#include "calc_internal.h"

/* Operators and brackets of one character stand for themselves; these are the rest. */
enum calc_token {
	CALC_TOK_END = 0,
	CALC_TOK_NAME = 256,
	CALC_TOK_INTEGER,
	CALC_TOK_REAL,
	CALC_TOK_TEXT,
	/* Operators of two and three characters. */
	CALC_TOK_EQ,
	CALC_TOK_NE,
	CALC_TOK_LE,
	CALC_TOK_GE,
	CALC_TOK_AND,
	CALC_TOK_OR,
	CALC_TOK_ADD_TO,
	CALC_TOK_SUB_TO,
	CALC_TOK_MUL_TO,
	CALC_TOK_DIV_TO,
	CALC_TOK_MOD_TO,
	CALC_TOK_DOTS,
	/* Words, in the order of the table in lexer.c. */
	CALC_TOK_BREAK,
	CALC_TOK_CONTINUE,
	CALC_TOK_DOUBLE,
	CALC_TOK_ELSE,
	CALC_TOK_EXTERN,
	CALC_TOK_FOR,
	CALC_TOK_FUNC,
	CALC_TOK_IF,
	CALC_TOK_INT,
	CALC_TOK_INT32,
	CALC_TOK_RETURN,
	CALC_TOK_SHARES,
	CALC_TOK_STRING,
	CALC_TOK_VAR,
	CALC_TOK_WHILE,
};

struct calc_lexer {
	struct calc *c;
	const char *at;
	const char *end;
	struct calc_pos next_pos;
	/* The current token. */
	int token;
	struct calc_pos pos;
	const char *text; /* of a name, or of a string without its quotes; in the arena */
	union calc_value value;
};

/* @text stays the caller's. Stands before the first token. */
void calc_lexer_init(struct calc_lexer *lx, struct calc *c, const char *text, size_t len);
/* Go to the next token; what is none fails (calc_fail). After the end it stays at the end. */
void calc_lexer_next(struct calc_lexer *lx);
/* "'while'", "name", "end of file": for messages; static, or valid until the next call. */
const char *calc_token_name(int token);

#endif
