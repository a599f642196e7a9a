/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs as text, and calls of their functions, for the tests of calc. */
#ifndef CALC_PROGRAM_H
#define CALC_PROGRAM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "calc.h"

/* The program with an empty main added, so that a test shows only what it is about. */
static inline struct calc *program(const char *text)
{
	static char whole[65536];
	struct calc_err err = { "" };
	struct calc *c = NULL;

	snprintf(whole, sizeof(whole), "%.65000s\nfunc main() {}\n", text);
	if (calc_new(&c, "t.calc", whole, strlen(whole), NULL, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

static inline union calc_value call(struct calc *c, const char *name, size_t nr,
				    const union calc_value *args)
{
	struct calc_err err = { "" };
	union calc_value result = { 0 };

	if (calc_call(c, name, args, nr, &result, &err) < 0)
		fail_msg("%s", err.text);
	return result;
}

/* name(a, b) of ints. */
static inline int64_t call_ints(struct calc *c, const char *name, int64_t a, int64_t b)
{
	return call(c, name, 2, (union calc_value[]){ { .i = a }, { .i = b } }).i;
}

/* The function f() of a program of its own, returning int or double. */
static inline union calc_value run(const char *text)
{
	struct calc *c = program(text);
	union calc_value result = call(c, "f", 0, NULL);

	calc_free(c);
	return result;
}

static inline int64_t run_int(const char *expr)
{
	char text[4096];

	snprintf(text, sizeof(text), "func f(): int { return %s; }", expr);
	return run(text).i;
}

static inline double run_double(const char *expr)
{
	char text[4096];

	snprintf(text, sizeof(text), "func f(): double { return %s; }", expr);
	return run(text).d;
}

/* The message of a program that is refused; or whose function f() ends in a run-time error. */
static inline const char *error_of(const char *text)
{
	static struct calc_err err;
	struct calc *c = NULL;

	memset(&err, 0, sizeof(err));
	if (calc_new(&c, "t.calc", text, strlen(text), NULL, &err) < 0)
		return err.text;
	if (calc_call(c, "f", NULL, 0, NULL, &err) == 0)
		strcpy(err.text, "no error");
	calc_free(c);
	return err.text;
}

#endif
