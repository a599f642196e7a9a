/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two halves of the parser share: declarations and statements, and expressions. */
#ifndef CALC_PARSER_H
#define CALC_PARSER_H

#include "lexer.h"

struct calc_parser {
	struct calc *c;
	struct calc_lexer lx;
	unsigned int depth;	   /* of nested blocks and brackets */
	struct calc_pos block_end; /* the closing brace of the block parsed last */
};

/* Is it the current token? Then go past it. */
bool calc_parser_accept(struct calc_parser *p, int token);
/* Go past the token that must stand here. */
void calc_parser_expect(struct calc_parser *p, int token, const char *where);
/* A name, that must stand here. */
const char *calc_parser_name(struct calc_parser *p, const char *what);
_Noreturn void calc_parser_unexpected(struct calc_parser *p, const char *want);
/* Around whatever nests, so that no input makes the parser (or a later pass) recurse too deep. */
void calc_parser_enter(struct calc_parser *p);
void calc_parser_leave(struct calc_parser *p);

struct calc_expr *calc_parse_expr(struct calc_parser *p);

#endif
