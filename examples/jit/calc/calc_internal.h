/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of calc share: the program object, and each part's few entry points. */
#ifndef CALC_INTERNAL_H
#define CALC_INTERNAL_H

#include <setjmp.h>
#include <stdarg.h>

#include "ast.h"

#define CALC_MAX_FUNCTIONS 512
#define CALC_MAX_GLOBALS   256
#define CALC_MAX_DATA	   2048 /* globals and constants; with the functions within 32 KiB */
#define CALC_MAX_LOCALS	   200
#define CALC_MAX_SHARES	   16
#define CALC_MAX_DEPTH	   100 /* nested blocks and brackets */
#define CALC_MAX_HEIGHT	   200 /* of an expression's tree */
#define CALC_MAX_SLOTS	   500 /* of a frame: what one aarch64 instruction can subtract */
#define CALC_MAX_CODE	   (16 * 1024 * 1024)
#define CALC_MAX_ROUTINE   (256 * 1024)		   /* a conditional aarch64 branch reaches 1 MiB */
#define CALC_MAX_ARRAYS	   (1024 * 1024 * 1024ull) /* bytes in arrays at once */

/* C functions that compiled code calls as helper(runtime, args, data); see runtime.c. */
enum calc_helper {
	CALC_HELPER_RESOLVE, /* not so: resolve(runtime, function), from the lazy stubs */
	CALC_HELPER_TRAP,
	CALC_HELPER_PRINT_INT,
	CALC_HELPER_PRINT_DOUBLE,
	CALC_HELPER_PRINT_STRING,
	CALC_HELPER_NEW_ARRAY,
	CALC_HELPER_C_INT,
	CALC_HELPER_C_DOUBLE,
	CALC_HELPER_SHARE_ENTER,
	CALC_HELPER_SHARE_LEAVE,
	CALC_NR_HELPERS,
};

/*
 * What compiled code sees, through one register. All addresses that code needs come from here, so
 * the code itself holds none: it can lie anywhere and has the same bytes in every run.
 */
struct calc_runtime {
	uintptr_t stack_limit;
	const void *helpers[CALC_NR_HELPERS];
	const void *entry[CALC_MAX_FUNCTIONS]; /* the code, or the stub that makes it */
	union calc_value data[CALC_MAX_DATA];
	struct calc *calc;
};

/* Executable memory, never writable and executable at once; code.c. */
struct calc_code {
	uint8_t *base;
	size_t used;
};

/* Why compiled code gives up. */
enum calc_trap {
	CALC_TRAP_DIVIDE,
	CALC_TRAP_INDEX,
	CALC_TRAP_CONVERT,
	CALC_TRAP_STACK,
	CALC_TRAP_POINTER,
	CALC_TRAP_RETURN,
};

/* From C into compiled code: copies CALC_MAX_PARAMS arguments. Doubles come back as doubles. */
typedef int64_t (*calc_enter_int)(struct calc_runtime *, const void *code,
				  const union calc_value *args);
typedef double (*calc_enter_double)(struct calc_runtime *, const void *code,
				    const union calc_value *args);

struct calc {
	struct calc_options opts;
	char *path;	/* as given, for messages */
	char *abs_path; /* for the line tables */
	struct calc_err *err;
	jmp_buf *out; /* where calc_fail goes */
	struct calc_block *arena;
	struct calc_function *functions[CALC_MAX_FUNCTIONS];
	unsigned int nr_functions;
	struct calc_global globals[CALC_MAX_GLOBALS];
	unsigned int nr_globals;
	unsigned int nr_data;

	struct calc_code code;
	struct emit *emit;
	const void *enter;
	struct calc_array *arrays;
	uint64_t arrays_len;
	struct calc_closure *closures;

	struct {
		const char *name;
		struct calc_pos pos;
	} shares[CALC_MAX_SHARES];
	unsigned int nr_shares;
	uint64_t share_ns[CALC_MAX_SHARES + 1]; /* [0] everything else */
	uint64_t share_since;			/* thread CPU time */
	unsigned int share_now;

	struct calc_runtime runtime;
};

#define CALC_DATA_ROUND 0 /* the entry of runtime.data that round() returns */

/* program.c. Fail: fills the error, and goes back to the entry point that was called. */
_Noreturn void calc_fail(struct calc *c, struct calc_pos pos, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Zeroed, aligned to 8, freed with the program. Never NULL: fails at @pos instead. */
void *calc_alloc(struct calc *c, struct calc_pos pos, size_t len);
struct calc_function *calc_function_find(struct calc *c, const char *name);
const struct calc_global *calc_global_find(struct calc *c, const char *name, unsigned int *index);
/* An entry of runtime.data that holds @value and is never written; the same one if there is. */
unsigned int calc_data_add(struct calc *c, struct calc_pos pos, union calc_value value);

/* parser.c, check.c */
void calc_parse(struct calc *c, const char *text, size_t len);
void calc_check(struct calc *c);
enum calc_builtin calc_builtin_find(const char *name);
/* "int[]", "double" …; static text. */
const char *calc_type_name(struct calc_type type);
const char *calc_op_name(enum calc_op op);

/* gen.c: compile one function into c->emit; the lines live as long as the program. */
struct calc_line *calc_gen_function(struct calc *c, struct calc_function *f, size_t *nr_lines);

/* code.c. 0 or -errno. */
int calc_code_open(struct calc_code *code);
void calc_code_close(struct calc_code *code);
/* Copy @len bytes to the next free place and make them executable; NULL: full, or refused. */
void *calc_code_place(struct calc_code *code, const void *bytes, size_t len);

/* jit.c */
int calc_jit_open(struct calc *c);
void calc_jit_close(struct calc *c);
void calc_jit_compile(struct calc *c, struct calc_function *f);
/* What a lazy stub calls: the code of a function. */
const void *calc_jit_resolve(struct calc_runtime *rt, uint32_t function);
/* Run a function, compiling it if need be; @args has CALC_MAX_PARAMS entries. */
union calc_value calc_jit_enter(struct calc *c, struct calc_function *f,
				const union calc_value *args);

/* runtime.c */
void calc_runtime_open(struct calc *c);
void calc_runtime_close(struct calc *c);
void calc_runtime_reset(struct calc *c); /* free arrays, set globals to their first values */
void calc_runtime_limit_stack(struct calc *c);
/* What an array variable holds that was given none: no elements, but an address. */
const void *calc_runtime_empty_array(void);
void calc_share_start(struct calc *c);
void calc_share_stop(struct calc *c);

/* foreign.c: C functions called, and calling back, through libffi. */
struct calc_site *calc_site_new(struct calc *c, const struct calc_expr *call);
int64_t calc_site_call_int(struct calc_runtime *rt, const union calc_value *args, const void *site);
double calc_site_call_double(struct calc_runtime *rt, const union calc_value *args,
			     const void *site);
/* A C function pointer with which C can call the program's function @f; freed with the program. */
const void *calc_closure_new(struct calc *c, struct calc_pos pos, struct calc_function *f,
			     const struct calc_signature *signature);
void calc_closures_free(struct calc *c);

#endif
