/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calc: a small language that is compiled to machine code as it runs. This is what its command and
 * its tests use; README.md describes the language, and how the code is told to libdbgdyn.
 *
 * One object is one program. It belongs to the thread that made it: programs run on that thread's
 * stack, and errors come back over it.
 */
#ifndef CALC_H
#define CALC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CALC_MAX_PARAMS 16
#define CALC_MAX_SOURCE (1024 * 1024)

struct calc;

/* "file:line:col: message", the only way in which anything here fails. */
struct calc_err {
	char text[512];
};

/* From code_off on (up to the next entry) the code is of this line. */
struct calc_line {
	uint32_t code_off;
	uint32_t line; /* 0: no source */
};

/* A piece of machine code that has just been made, and has not run. */
struct calc_routine {
	const char *name;
	const void *code;
	size_t code_len;
	const struct calc_line *lines;
	size_t nr_lines;
	const char *path; /* of the source file, absolute where it could be found */
};

struct calc_layout;

struct calc_options {
	FILE *out;	     /* where print() writes; NULL: stdout */
	bool measure_shares; /* measure the CPU time of the functions named by "shares" */
	/* Code that ran seldom in an earlier run stands behind the rest; NULL: none is. */
	const struct calc_layout *layout;
	/* Called with each routine before it first runs; may be NULL. */
	void (*made)(void *arg, const struct calc_routine *routine);
	void *arg;
};

union calc_value {
	int64_t i;
	double d;
	const void *p;
};

/*
 * Parse and check a program. @path names it in messages. @text: @len bytes, needed only during the
 * call. @opts may be NULL. Returns 0 with *@calc set, or -1 with @err.
 */
int calc_new(struct calc **calc, const char *path, const char *text, size_t len,
	     const struct calc_options *opts, struct calc_err *err);
/* calc_new of a file's contents; a file that cannot be read is an error like any other. */
int calc_open(struct calc **calc, const char *path, const struct calc_options *opts,
	      struct calc_err *err);
void calc_free(struct calc *calc);

/* Write the program's syntax tree to @out. */
void calc_print_ast(struct calc *calc, FILE *out);

/* Compile every function now, instead of each at its first call. 0 or -1. */
int calc_compile_all(struct calc *calc, struct calc_err *err);

/*
 * One round: set the global variables to their first values, run main, free the arrays it made.
 * *@status is what main returned, 0 if it returns nothing. 0 or -1 (a run-time error).
 */
int calc_run(struct calc *calc, int64_t *status, struct calc_err *err);

/*
 * Call one function, with arguments of the types that it declares. *@result (may be NULL) holds its
 * result by its type. Arrays live until the next calc_run or calc_free. 0 or -1.
 */
int calc_call(struct calc *calc, const char *name, const union calc_value *args, size_t nr_args,
	      union calc_value *result, struct calc_err *err);

/*
 * What the functions named by "shares" used of the CPU time of all rounds, in percent; the rest of
 * the time, under the name "-", comes last. Only with measure_shares, and where there is "shares".
 * Returns false past the end.
 */
bool calc_share(const struct calc *calc, unsigned int index, const char **name, double *percent);

#endif
