/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The syntax tree. The parser makes it, check.c resolves its names and gives each expression its
 * type, gen.c turns it into code. All of it lives in the program's arena and dies with it.
 */
#ifndef CALC_AST_H
#define CALC_AST_H

#include "calc.h"

struct calc_pos {
	unsigned int line;
	unsigned int col;
};

enum calc_kind {
	CALC_VOID,
	CALC_INT,   /* 64 bits, wraps around */
	CALC_INT32, /* C's int: only in the signatures of C functions */
	CALC_DOUBLE,
	CALC_STRING,
	CALC_INT_ARRAY, /* address of element 0; the length stands before it */
	CALC_DOUBLE_ARRAY,
	CALC_INT_PTR, /* an address that came from C: no length is known */
	CALC_DOUBLE_PTR,
	CALC_FUNC, /* a C function pointer: only as a parameter of a C function */
};

struct calc_type {
	enum calc_kind kind;
	const struct calc_signature *signature; /* of CALC_FUNC */
};

struct calc_signature {
	struct calc_type result;
	unsigned int nr_params;
	bool variadic;
	struct calc_type params[CALC_MAX_PARAMS];
};

/* Where a variable lives. */
enum calc_where {
	CALC_LOCAL,  /* a slot of the frame */
	CALC_PARAM,  /* where the caller put it */
	CALC_GLOBAL, /* an entry of the runtime's data */
};

struct calc_place {
	enum calc_where where;
	unsigned int index;
};

enum calc_op {
	CALC_ADD,
	CALC_SUB,
	CALC_MUL,
	CALC_DIV,
	CALC_MOD,
	CALC_EQ,
	CALC_NE,
	CALC_LT,
	CALC_LE,
	CALC_GT,
	CALC_GE,
	CALC_AND,
	CALC_OR,
	CALC_NOT,
	CALC_NEG,
	CALC_DEREF,
	CALC_NO_OP,
};

enum calc_expr_kind {
	CALC_EXPR_INT,
	CALC_EXPR_DOUBLE,
	CALC_EXPR_STRING,
	CALC_EXPR_NAME,	   /* a variable; or, as an argument of a C function, a function */
	CALC_EXPR_UNARY,   /* op left */
	CALC_EXPR_BINARY,  /* left op right */
	CALC_EXPR_CONVERT, /* left, as this node's type */
	CALC_EXPR_CALL,	   /* text(args) */
	CALC_EXPR_INDEX,   /* left[right] */
	CALC_EXPR_NEW,	   /* an array of left elements */
};

enum calc_builtin {
	CALC_NO_BUILTIN,
	CALC_PRINT,
	CALC_LEN,
};

struct calc_expr {
	enum calc_expr_kind kind;
	enum calc_op op;
	enum calc_builtin builtin;
	struct calc_pos pos;
	struct calc_type type;
	unsigned int height; /* of the tree below; bounded, since the passes recurse */
	bool has_call;	     /* evaluating it may leave the routine, so no register survives */
	union calc_value value;
	const char *text; /* name, string */
	struct calc_expr *left;
	struct calc_expr *right;
	struct calc_expr *args;
	struct calc_expr *next; /* in a list of arguments */
	unsigned int nr_args;
	struct calc_place place;
	struct calc_function *function; /* that is called, or whose address is taken */
	struct calc_site *site;		/* of a C function's call */
	const void *closure;		/* the C function pointer for @function */
};

enum calc_stmt_kind {
	CALC_STMT_BLOCK,  /* body */
	CALC_STMT_VAR,	  /* place = value */
	CALC_STMT_ASSIGN, /* target op= value */
	CALC_STMT_EXPR,	  /* value */
	CALC_STMT_IF,	  /* if value body else other */
	CALC_STMT_LOOP,	  /* for init; value; step body. while: without init and step */
	CALC_STMT_RETURN, /* value, may be NULL */
	CALC_STMT_BREAK,
	CALC_STMT_CONTINUE,
};

struct calc_stmt {
	enum calc_stmt_kind kind;
	enum calc_op op;
	struct calc_pos pos;
	const char *name; /* var */
	struct calc_type type;
	struct calc_place place;
	struct calc_expr *target;
	struct calc_expr *value;
	struct calc_stmt *init;
	struct calc_stmt *step;
	struct calc_stmt *body;
	struct calc_stmt *other;
	struct calc_stmt *next; /* in a block */
};

struct calc_function {
	const char *name;
	struct calc_pos pos;
	struct calc_signature signature;
	const char *params[CALC_MAX_PARAMS];
	struct calc_stmt *body; /* NULL: a C function */
	struct calc_pos end;	/* its closing brace */
	unsigned int index;
	unsigned int nr_locals;
	const char *symbol; /* C's name for it */
	void *address;	    /* of a C function */
	unsigned int share; /* from 1: its place in "shares"; 0: not there */
	bool compiled;
};

struct calc_global {
	const char *name;
	struct calc_pos pos;
	struct calc_type type;
	struct calc_expr *value; /* a constant, or NULL */
	union calc_value first;
};

#endif
