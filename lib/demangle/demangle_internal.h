/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the demangler only. Libraries that do this (libstdc++'s, LLVM's) first make a graph in
 * which a repeated part stands once, and write that out: a name of some hundred bytes may so become
 * more text than there is memory, or take years without writing anything; and names come from
 * hostile files. Here each part becomes text as it is read: all text that is ever made goes into
 * one buffer, each thing read counts as a step, and the end of either ends the attempt
 * (docs/decisions/readable-names.md).
 */
#ifndef DCPI_DEMANGLE_INTERNAL_H
#define DCPI_DEMANGLE_INTERNAL_H

#include "demangle.h"

enum {
	DEM_TEXT = 64 * 1024, /* bytes made on the way */
	DEM_STEPS = 20000,
	DEM_DEPTH = 160,
	DEM_SUBS = 256,
	DEM_ARGS = 512,
};

/* Bytes of the buffer; they never change. */
struct dem_text {
	uint32_t at, len;
};

enum dem_kind { DEM_PLAIN, DEM_FUNCTION, DEM_ARRAY };

/* A type is written around what has it: "int (*" name ") [3]". */
struct dem_type {
	struct dem_text left, right;
	enum dem_kind kind;
	bool nothing;	/* a pack without elements */
	bool module;	/* no type: what a module is called */
	uint32_t param; /* "T_" by itself: which, + 1 */
	/* What it holds for: the arguments that "T_" in it means (dependent; of a lambda: "auto"),
	 * the expansion whose element it has (0: any). */
	bool dependent, in_lambda;
	uint32_t args, pack;
	uint32_t from; /* to read it again for others: so far before the end; 0: no type */
};

struct dem_arg {
	struct dem_type type;
	bool is_pack;
	uint32_t first, next; /* of a pack, its elements; indices in args + 1, 0: end */
};

struct dem_name {
	struct dem_text text;
	struct dem_text behind; /* " const", "&" */
	bool is_template;	/* it ends with template arguments */
	bool no_return;		/* of constructors, destructors, conversions no type is told */
};

struct dem {
	const char *p, *end;
	bool failed;
	unsigned int steps, depth;
	uint32_t nr_subs, nr_args;
	uint32_t template_args;	   /* those that T_ means: the first, + 1 */
	bool dependent;		   /* T_ was met in what is being read */
	bool in_lambda;		   /* T_ is a parameter "auto" */
	uint32_t expansion;	   /* that is written: where its pattern begins, + 1 */
	uint32_t pack_at, pack_nr; /* its element, and how many there are */
	bool pack_met;		   /* in the pattern, so far */
	struct dem_text base;	   /* the last name by itself: what constructors are called */
	uint32_t used;
	/* Nothing of these was written beyond what is counted above. */
	struct dem_type subs[DEM_SUBS];
	struct dem_arg args[DEM_ARGS];
	char text[DEM_TEXT];
};

/* Nothing fails by itself: what is read after @failed was set is empty. */
struct dem_text dem_fail(struct dem *d);
struct dem_text dem_bytes(struct dem *d, const char *bytes, size_t len);
struct dem_text dem_lit(struct dem *d, const char *text);
struct dem_text dem_join(struct dem *d, struct dem_text a, struct dem_text b);
struct dem_text dem_add(struct dem *d, struct dem_text a, const char *text);
char dem_last(const struct dem *d, struct dem_text t);
/* Enters one thing; false: enough. dem_leave is called in any case. */
bool dem_enter(struct dem *d);
void dem_leave(struct dem *d);
char dem_peek(const struct dem *d, size_t ahead);
bool dem_take(struct dem *d, const char *word);
bool dem_digit(char c);
/* Decimal, or 0 with @failed. */
uint32_t dem_number(struct dem *d);
/* "_" 0, "0_" 1, … in that base. */
uint32_t dem_sequence(struct dem *d, unsigned int base);

enum dem_part { DEM_WHOLE, DEM_NO_RETURN, DEM_NAME };

/* A function or what else has a name; all is read, so much of it written. */
struct dem_text dem_encoding(struct dem *d, enum dem_part part);
struct dem_name dem_name(struct dem *d, bool tag);
/* Its own word stays in @base. */
struct dem_text dem_unqualified(struct dem *d, struct dem_name *of);
struct dem_type dem_type(struct dem *d);
struct dem_text dem_type_text(struct dem *d);
struct dem_type dem_substitution(struct dem *d, bool spelled);
struct dem_type dem_param(struct dem *d);
/* @from: where the type begins, or NULL. */
void dem_sub(struct dem *d, struct dem_type t, const char *from);
struct dem_type dem_plain(struct dem_text t);
/* From "I" to "E": "<int, 5>". @tag: T_ means these from then on. */
struct dem_text dem_template_args(struct dem *d, bool tag);
/* Types up to "E", the end or a clone's suffix: "int, char"; "v" alone is none. */
struct dem_text dem_params(struct dem *d);
/* What @one reads, for each element of the pack in it. */
struct dem_type dem_expansion(struct dem *d, struct dem_type (*one)(struct dem *d));
struct dem_text dem_expr(struct dem *d);
struct dem_text dem_literal(struct dem *d);

struct dem_operator {
	char code[3];
	uint8_t operands; /* in expressions; 0: it has a form of its own */
	const char *text;
};
/* NULL where the next two bytes are none. Not taken. */
const struct dem_operator *dem_operator(const struct dem *d);

/* Rust's older scheme: NULL where @name is not of it. */
char *dem_rust(const char *name);
/* Its newer one: @name begins with "_R". NULL where it cannot be read. */
char *dem_v0(const char *name);

#endif
