/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C++ names of the Itanium ABI: nested and local names, substitutions, types, and the values and
 * expressions in template arguments.
 *
 * The usual libraries (libstdc++'s, LLVM's) first build a graph in which a repeated part stands
 * once, and then write that graph out: a name of some hundred bytes can become more text than
 * there is memory, or take years without writing anything. Names come from hostile files. This
 * reader turns each part into text as it reads it: all text goes into one buffer of fixed size,
 * each thing read counts as a step, and the end of either ends the attempt
 * (docs/decisions/readable-names.md).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "demangle_internal.h"

enum {
	DEM_TEXT = 64 * 1024, /* capacity of the text buffer in bytes */
	DEM_STEPS = 20000,
	DEM_DEPTH = 160,
	DEM_SUBS = 256,
	DEM_ARGS = 512,
};

/* A range of the text buffer, whose bytes never change. */
struct dem_text {
	uint32_t at, len;
};

enum dem_kind { DEM_PLAIN, DEM_FUNCTION, DEM_ARRAY };

/* A type, which is written around a declarator: "int (*" name ") [3]". */
struct dem_type {
	struct dem_text left, right;
	enum dem_kind kind;
	bool nothing;	/* a pack without elements */
	bool module;	/* no type, but the name of a module */
	uint32_t param; /* a template parameter by itself: its index + 1; 0: another type */
	/* The context in which the text is valid: the arguments that "T_" in it refers to
	 * (@dependent; in a lambda: "auto"), and the expansion whose element it contains (0:
	 * any). */
	bool dependent, in_lambda;
	uint32_t args, pack;
	uint32_t from; /* for another context the type is read again from so many bytes before the
			  end; 0: no type */
};

struct dem_arg {
	struct dem_type type;
	bool is_pack;
	uint32_t first, next; /* the elements of a pack: indices in args + 1, 0: end */
};

struct dem {
	const char *p, *end;
	bool failed;
	unsigned int steps, depth;
	uint32_t nr_subs, nr_args;
	uint32_t template_args; /* the arguments that T_ refers to: index of the first, + 1 */
	bool dependent;		/* the part being read contains T_ */
	bool in_lambda;		/* T_ is a parameter "auto" */
	bool in_conversion; /* arguments behind T_ are the operator's, not those of a template T_ */
	uint32_t expansion; /* the expansion being written: the position of its pattern, + 1 */
	uint32_t pack_at,
		pack_nr;      /* index of the element being written, and the number of elements */
	bool pack_met;	      /* the pattern contains a pack, as far as it is read */
	struct dem_text base; /* the last unqualified name, which constructors repeat */
	uint32_t used;
	/* The arrays are not cleared; only the counted elements are valid. */
	struct dem_type subs[DEM_SUBS];
	struct dem_arg args[DEM_ARGS];
	char text[DEM_TEXT];
};

/* Every function goes on after a failure: what is read once @failed is set is empty. */
static struct dem_text dem_fail(struct dem *d)
{
	d->failed = true;
	return (struct dem_text){ 0 };
}

static struct dem_text dem_bytes(struct dem *d, const char *bytes, size_t len)
{
	struct dem_text t = { d->used, (uint32_t)len };

	if (d->failed || len > DEM_TEXT - d->used)
		return dem_fail(d);
	memcpy(d->text + d->used, bytes, len);
	d->used += (uint32_t)len;
	return t;
}

static struct dem_text dem_lit(struct dem *d, const char *text)
{
	return dem_bytes(d, text, strlen(text));
}

/* Text at the end of the buffer is extended in place, other text is copied there first. */
static struct dem_text movable(struct dem *d, struct dem_text a)
{
	return a.at + a.len == d->used ? a : dem_bytes(d, d->text + a.at, a.len);
}

static struct dem_text dem_join(struct dem *d, struct dem_text a, struct dem_text b)
{
	if (!b.len)
		return a;
	if (!a.len)
		return b;
	if (a.at + a.len == b.at) {
		a.len += b.len;
		return a;
	}
	a = movable(d, a);
	a.len += dem_bytes(d, d->text + b.at, b.len).len;
	return a;
}

static struct dem_text dem_add(struct dem *d, struct dem_text a, const char *text)
{
	if (!a.len)
		return dem_lit(d, text);
	a = movable(d, a);
	a.len += dem_lit(d, text).len;
	return a;
}

static char dem_last(const struct dem *d, struct dem_text t)
{
	return t.len ? d->text[t.at + t.len - 1] : '\0';
}

/* Enters one thing of the grammar; false: a limit is reached. dem_leave follows in any case. */
static bool dem_enter(struct dem *d)
{
	if (++d->depth > DEM_DEPTH || ++d->steps > DEM_STEPS)
		d->failed = true;
	return !d->failed;
}

static void dem_leave(struct dem *d)
{
	d->depth--;
}

static char dem_peek(const struct dem *d, size_t ahead)
{
	return !d->failed && ahead < (size_t)(d->end - d->p) ? d->p[ahead] : '\0';
}

static bool dem_take(struct dem *d, const char *word)
{
	size_t len = strlen(word);

	if (d->failed || len > (size_t)(d->end - d->p) || memcmp(d->p, word, len) != 0)
		return false;
	d->p += len;
	return true;
}

/* Reads a decimal number; 0 with @failed set where there is none. */
static uint32_t dem_number(struct dem *d)
{
	uint32_t n = 0;

	if (!dem_digit(dem_peek(d, 0)))
		d->failed = true;
	while (dem_digit(dem_peek(d, 0)) && n < 100000000)
		n = n * 10 + (uint32_t)(*d->p++ - '0');
	return n;
}

/* Reads a sequence number in that base: "_" is 0, "0_" is 1, and so on. */
static uint32_t dem_sequence(struct dem *d, unsigned int base)
{
	uint32_t n = 0;
	bool any = false;

	for (char c; (c = dem_peek(d, 0)) != '_'; d->p++, any = true) {
		unsigned int digit = dem_digit(c)	    ? (unsigned int)(c - '0')
				     : c >= 'A' && c <= 'Z' ? (unsigned int)(c - 'A') + 10
							    : 99;

		if (digit >= base || n > 1000000) {
			d->failed = true;
			return 0;
		}
		n = n * base + digit;
	}
	d->p++;
	return any ? n + 1 : 0;
}

/* ---- the grammar ----------------------------------------------------------------------------- */

enum dem_part { DEM_WHOLE, DEM_NO_RETURN, DEM_NAME };

struct dem_name {
	struct dem_text text;
	struct dem_text behind; /* " const", "&" */
	bool is_template;	/* it ends with template arguments */
	bool no_return; /* constructors, destructors and conversions are encoded without a return
			   type */
};

/* An operator by its code of two letters. */
struct dem_operator {
	char code[3];
	uint8_t operands; /* in expressions; 0: the expression has a form of its own */
	const char *text;
};

/* The grammar is recursive: these are called before they are defined. */
static struct dem_name dem_name(struct dem *d, bool tag);
/* Reads an unqualified name; its own word stays in d->base. */
static struct dem_text dem_unqualified(struct dem *d, struct dem_name *of);
static struct dem_type dem_type(struct dem *d);
static struct dem_type dem_substitution(struct dem *d, bool spelled);
static struct dem_type dem_param(struct dem *d);
/* Keeps a type as a candidate for substitutions. @from: where the type begins, or NULL. */
static void dem_sub(struct dem *d, struct dem_type t, const char *from);
/* Reads template arguments from "I" to "E": "<int, 5>". @tag: T_ means these from then on. */
static struct dem_text dem_template_args(struct dem *d, bool tag);
/* Reads a pack expansion: calls @one for each element of the pack that it meets. */
static struct dem_type dem_expansion(struct dem *d, struct dem_type (*one)(struct dem *d));
static struct dem_text dem_expr(struct dem *d);
static struct dem_text dem_literal(struct dem *d);
/* The operator whose code the next two bytes are, or NULL. The bytes are not consumed. */
static const struct dem_operator *dem_operator(const struct dem *d);

/* Reads a function or anything else that has a name. All of it is read; @part of it is written. */
static struct dem_text dem_encoding(struct dem *d, enum dem_part part);

static struct dem_type dem_plain(struct dem_text t)
{
	return (struct dem_type){ .left = t };
}

static struct dem_text dem_type_text(struct dem *d)
{
	struct dem_type t = dem_type(d);

	return dem_join(d, t.left, t.right);
}

/* ---- types ----------------------------------------------------------------------------------- */

static const char *builtin(char c)
{
	static const char *const names[] = {
		['a' - 'a'] = "signed char", ['b' - 'a'] = "bool",
		['c' - 'a'] = "char",	     ['d' - 'a'] = "double",
		['e' - 'a'] = "long double", ['f' - 'a'] = "float",
		['g' - 'a'] = "__float128",  ['h' - 'a'] = "unsigned char",
		['i' - 'a'] = "int",	     ['j' - 'a'] = "unsigned int",
		['l' - 'a'] = "long",	     ['m' - 'a'] = "unsigned long",
		['n' - 'a'] = "__int128",    ['o' - 'a'] = "unsigned __int128",
		['s' - 'a'] = "short",	     ['t' - 'a'] = "unsigned short",
		['v' - 'a'] = "void",	     ['w' - 'a'] = "wchar_t",
		['x' - 'a'] = "long long",   ['y' - 'a'] = "unsigned long long",
		['z' - 'a'] = "...",
	};

	return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static const char *builtin_d(char c)
{
	static const struct {
		char code;
		const char *name;
	} names[] = {
		{ 'n', "decltype(nullptr)" }, { 'a', "auto" },
		{ 'c', "decltype(auto)" },    { 'i', "char32_t" },
		{ 's', "char16_t" },	      { 'u', "char8_t" },
		{ 'd', "decimal64" },	      { 'e', "decimal128" },
		{ 'f', "decimal32" },	      { 'h', "half" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].code == c)
			return names[i].name;
	return NULL;
}

static bool ends_with(const struct dem *d, struct dem_text t, const char *text)
{
	size_t len = strlen(text);

	return t.len >= len && memcmp(d->text + t.at + t.len - len, text, len) == 0;
}

/* Adds @text to a declarator; that of a function or an array is enclosed in "(" and ")". */
static struct dem_type declare(struct dem *d, struct dem_type t, const char *text)
{
	if (t.kind != DEM_PLAIN) {
		t.left = dem_add(d, t.left, t.kind == DEM_ARRAY ? " (" : "(");
		t.right = dem_join(d, dem_lit(d, ")"), t.right);
		t.kind = DEM_PLAIN;
	}
	t.left = dem_add(d, t.left, text);
	t.param = 0;
	return t;
}

static struct dem_type reference(struct dem *d, bool rvalue)
{
	struct dem_type t = dem_type(d);

	if (t.nothing)
		return t;
	t.param = 0;
	if (!rvalue && t.kind == DEM_PLAIN && ends_with(d, t.left, "&&"))
		t.left.len--;
	else if (t.kind != DEM_PLAIN || dem_last(d, t.left) != '&')
		t = declare(d, t, rvalue ? "&&" : "&");
	return t;
}

static struct dem_type function(struct dem *d);

static struct dem_type qualified(struct dem *d)
{
	bool r = dem_take(d, "r"), v = dem_take(d, "V"), k = dem_take(d, "K");
	/* A qualifier of a function type belongs to the function. */
	struct dem_type t = dem_take(d, "F") ? function(d) : dem_type(d);
	struct dem_text *to = t.kind == DEM_FUNCTION ? &t.right : &t.left;

	if (t.nothing)
		return t;
	t.param = 0;
	if (k && !ends_with(d, *to, " const"))
		*to = dem_add(d, *to, " const");
	if (v && !ends_with(d, *to, " volatile"))
		*to = dem_add(d, *to, " volatile");
	if (r)
		*to = dem_add(d, *to, " restrict");
	return t;
}

/* Reads types up to "E", the end or a clone's suffix: "int, char"; "v" alone is no type. */
static struct dem_text dem_params(struct dem *d)
{
	struct dem_text t = { 0 };
	bool any = false;

	if (dem_peek(d, 0) == 'v' && (!dem_peek(d, 1) || strchr("E.RO", dem_peek(d, 1)))) {
		d->p++;
		return t;
	}
	for (;;) {
		char c = dem_peek(d, 0);
		struct dem_type one;

		if (!c || c == 'E' || c == '.' || ((c == 'R' || c == 'O') && dem_peek(d, 1) == 'E'))
			return t;
		/* The comma is written first, so that the next text follows it in the buffer and
		 * is not copied. */
		if (any)
			t = dem_add(d, t, ", ");
		one = dem_type(d);
		if (one.nothing) {
			t.len -= any && !d->failed ? 2 : 0;
			continue;
		}
		t = dem_join(d, dem_join(d, t, one.left), one.right);
		any = true;
	}
}

static struct dem_type function(struct dem *d)
{
	struct dem_type back, t = { .kind = DEM_FUNCTION };
	const char *reference = "";

	dem_take(d, "Y");
	back = dem_type(d);
	t.left = back.right.len ? back.left : dem_add(d, back.left, " ");
	t.right = dem_join(d, dem_lit(d, "("), dem_params(d));
	if (dem_take(d, "R"))
		reference = " &";
	else if (dem_take(d, "O"))
		reference = " &&";
	if (!dem_take(d, "E"))
		d->failed = true;
	t.right = dem_join(d, dem_add(d, dem_add(d, t.right, ")"), reference), back.right);
	return t;
}

static struct dem_type array(struct dem *d)
{
	struct dem_text size = { 0 };
	struct dem_type t;
	const char *from = d->p;

	if (dem_digit(dem_peek(d, 0))) {
		dem_number(d);
		size = dem_bytes(d, from, (size_t)(d->p - from));
	} else if (dem_peek(d, 0) != '_') {
		size = dem_expr(d);
	}
	if (!dem_take(d, "_"))
		d->failed = true;
	t = dem_type(d);
	t.param = 0;
	size = dem_add(d, dem_join(d, dem_lit(d, t.kind == DEM_ARRAY ? "[" : " ["), size), "]");
	if (t.kind == DEM_ARRAY && t.right.len) /* after the blank at its start */
		size = dem_join(d, dem_lit(d, " "), size), t.right.at++, t.right.len--;
	t.right = dem_join(d, size, t.right);
	t.kind = DEM_ARRAY;
	return t;
}

static struct dem_type member(struct dem *d)
{
	struct dem_text of = dem_type_text(d);
	struct dem_type t = dem_type(d);

	if (t.kind == DEM_PLAIN)
		t.left = dem_add(d, t.left, " ");
	t = declare(d, t, "");
	t.left = dem_add(d, dem_join(d, t.left, of), "::*");
	return t;
}

static struct dem_type vector(struct dem *d)
{
	struct dem_text size;
	struct dem_type t;
	const char *from = d->p;

	if (dem_take(d, "_")) {
		size = dem_expr(d);
	} else {
		dem_number(d);
		size = dem_bytes(d, from, (size_t)(d->p - from));
	}
	if (!dem_take(d, "_"))
		d->failed = true;
	t = dem_type(d);
	t.left = dem_add(d, dem_join(d, dem_add(d, t.left, " __vector("), size), ")");
	t.param = 0;
	return t;
}

static struct dem_type decltype_of(struct dem *d)
{
	struct dem_text t = dem_join(d, dem_lit(d, "decltype ("), dem_expr(d));

	if (!dem_take(d, "E"))
		d->failed = true;
	return dem_plain(dem_add(d, t, ")"));
}

static struct dem_type vendor(struct dem *d)
{
	struct dem_name n = { 0 };
	struct dem_text word = dem_unqualified(d, &n);
	struct dem_type t;

	if (dem_peek(d, 0) == 'I')
		word = dem_join(d, word, dem_template_args(d, false));
	t = dem_type(d);
	t.left = dem_join(d, dem_add(d, t.left, " "), word);
	t.param = 0;
	return t;
}

/* Reads the type "F16_": _Float16. */
static struct dem_type sized_float(struct dem *d)
{
	char text[32];

	snprintf(text, sizeof(text), "_Float%u", dem_number(d));
	if (!dem_take(d, "_") && !dem_take(d, "x") && !dem_take(d, "b"))
		d->failed = true;
	return dem_plain(dem_lit(d, text));
}

/* Reads the type behind "D". *@kept: it is a candidate for substitutions. */
static struct dem_type type_d(struct dem *d, bool *kept)
{
	const char *name = builtin_d(dem_peek(d, 0));
	struct dem_type t;

	*kept = !name;
	if (name) {
		d->p++;
		return dem_plain(dem_lit(d, name));
	}
	if (dem_take(d, "p"))
		return dem_expansion(d, dem_type);
	if (dem_take(d, "t") || dem_take(d, "T"))
		return decltype_of(d);
	if (dem_take(d, "v"))
		return vector(d);
	if (dem_take(d, "F")) {
		*kept = false;
		return sized_float(d);
	}
	if (dem_take(d, "oF")) {
		t = function(d);
		t.right = dem_add(d, t.right, " noexcept");
		return t;
	}
	return dem_plain(dem_fail(d));
}

/* Reads a template parameter or its substitution; a template's arguments follow. */
static struct dem_type with_args(struct dem *d, struct dem_type t, bool fresh)
{
	if (dem_peek(d, 0) != 'I')
		return t;
	if (fresh)
		dem_sub(d, t, NULL);
	t.left = dem_join(d, t.left, dem_template_args(d, false));
	t.param = 0;
	return t;
}

static struct dem_type type_s(struct dem *d, bool *kept)
{
	const char *from = d->p;
	struct dem_type t;

	if (dem_peek(d, 1) == 't')
		return dem_plain(dem_name(d, false).text);
	t = dem_substitution(d, false);
	if (t.module) {
		d->p = from;
		return dem_plain(dem_name(d, false).text);
	}
	*kept = dem_peek(d, 0) == 'I';
	return with_args(d, t, false);
}

static struct dem_type type_t(struct dem *d)
{
	char next = dem_peek(d, 1);

	if (next == 's' || next == 'u' || next == 'e') { /* struct, union, enum */
		d->p += 2;
		return dem_plain(dem_name(d, false).text);
	}
	return d->in_conversion ? dem_param(d) : with_args(d, dem_param(d), true);
}

static struct dem_type named(struct dem *d)
{
	struct dem_name n = dem_name(d, false);

	return dem_plain(dem_join(d, n.text, n.behind));
}

static struct dem_type pointer(struct dem *d)
{
	struct dem_type t = dem_type(d);

	return t.nothing ? t : declare(d, t, "*");
}

static struct dem_type suffixed(struct dem *d, const char *text)
{
	struct dem_type t = dem_type(d);

	t.left = dem_add(d, t.left, text);
	t.param = 0;
	return t;
}

static struct dem_type compound(struct dem *d, bool *kept)
{
	switch (*d->p++) {
	case 'P':
		return pointer(d);
	case 'R':
		return reference(d, false);
	case 'O':
		return reference(d, true);
	case 'C':
		return suffixed(d, " _Complex");
	case 'G':
		return suffixed(d, " _Imaginary");
	case 'F':
		return function(d);
	case 'A':
		return array(d);
	case 'M':
		return member(d);
	case 'U':
		return vendor(d);
	case 'D':
		return type_d(d, kept);
	case 'u': {
		struct dem_name n = { 0 };

		return dem_plain(dem_unqualified(d, &n));
	}
	}
	d->p--;
	return named(d);
}

static struct dem_type dem_type(struct dem *d)
{
	char c = dem_peek(d, 0);
	const char *name = builtin(c);
	struct dem_text base = d->base;
	const char *from = d->p;
	struct dem_type t = { 0 };
	bool kept = true, outer = d->dependent;

	d->dependent = false;
	if (!dem_enter(d) || !c) {
		d->failed = true;
	} else if (name && c != 'r') {
		d->p++;
		t = dem_plain(dem_lit(d, name));
		kept = false;
	} else if (c == 'r' || c == 'V' || c == 'K') {
		t = qualified(d);
	} else if (c == 'S') {
		t = type_s(d, &kept);
	} else if (c == 'T') {
		t = type_t(d);
	} else {
		t = compound(d, &kept);
	}
	if (kept && !d->failed)
		dem_sub(d, t, from);
	d->dependent |= outer;
	d->base = base;
	dem_leave(d);
	return t;
}

/* ---- values and expressions ------------------------------------------------------------------ */

static struct dem_text number_text(struct dem *d)
{
	struct dem_text t = { 0 };
	const char *from;

	if (dem_take(d, "n"))
		t = dem_lit(d, "-");
	for (from = d->p; dem_peek(d, 0) && dem_peek(d, 0) != 'E';)
		d->p++;
	return dem_join(d, t, dem_bytes(d, from, (size_t)(d->p - from)));
}

static struct dem_text typed_literal(struct dem *d)
{
	static const struct {
		char code;
		const char *suffix;
	} suffixes[] = { { 'i', "" },	{ 'j', "u" },  { 'l', "l" },
			 { 'm', "ul" }, { 'x', "ll" }, { 'y', "ull" } };
	char c = dem_peek(d, 0);
	struct dem_text t;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		if (suffixes[i].code != c)
			continue;
		d->p++;
		return dem_add(d, number_text(d), suffixes[i].suffix);
	}
	t = dem_add(d, dem_join(d, dem_lit(d, "("), dem_type_text(d)), ")");
	return dem_join(d, t, number_text(d));
}

/* Reads an encoding inside another one; it has its own template arguments. */
static struct dem_text inner_encoding(struct dem *d, enum dem_part part)
{
	uint32_t args = d->template_args;
	struct dem_text t = dem_encoding(d, part);

	d->template_args = args;
	return t;
}

/* Reads a literal from "L" to "E". */
static struct dem_text dem_literal(struct dem *d)
{
	struct dem_text t;

	if (dem_take(d, "Lb0E"))
		return dem_lit(d, "false");
	if (dem_take(d, "Lb1E"))
		return dem_lit(d, "true");
	if (!dem_take(d, "L"))
		return dem_fail(d);
	if (dem_take(d, "_Z") || dem_take(d, "Z")) {
		t = inner_encoding(d, DEM_WHOLE);
	} else {
		t = typed_literal(d);
	}
	return dem_take(d, "E") ? t : dem_fail(d);
}

static bool simple(const struct dem *d, struct dem_text t)
{
	for (uint32_t i = 0; i < t.len; i++)
		if (strchr(" ()<>+-*/%&|^!=,?", d->text[t.at + i]))
			return false;
	return t.len && !dem_digit(d->text[t.at]);
}

static struct dem_text enclosed(struct dem *d, struct dem_text t)
{
	return simple(d, t) ? t : dem_add(d, dem_join(d, dem_lit(d, "("), t), ")");
}

static bool is_name(const struct dem *d)
{
	char c = dem_peek(d, 0), next = dem_peek(d, 1);

	return dem_digit(c) || (c == 's' && next == 'r') || (c == 'o' && next == 'n');
}

static struct dem_text operand(struct dem *d)
{
	bool name = is_name(d);
	struct dem_text t = dem_expr(d);

	return name ? t : enclosed(d, t);
}

static struct dem_type expr_type(struct dem *d)
{
	struct dem_text t = dem_expr(d);

	return (struct dem_type){ .left = t, .nothing = !t.len };
}

/* Reads a list of expressions that this letter ends. */
static struct dem_text list_to(struct dem *d, char end)
{
	struct dem_text t = { 0 };

	while (!d->failed && dem_peek(d, 0) != end) {
		struct dem_text one = dem_expr(d);

		if (t.len && one.len)
			t = dem_add(d, t, ", ");
		t = dem_join(d, t, one);
	}
	d->p += !d->failed;
	return t;
}

static struct dem_text list(struct dem *d)
{
	return list_to(d, 'E');
}

static struct dem_text around(struct dem *d, const char *head, struct dem_text t, const char *tail)
{
	return dem_add(d, dem_join(d, dem_lit(d, head), t), tail);
}

static struct dem_text name_with_args(struct dem *d)
{
	struct dem_name n = { 0 };
	struct dem_text t;

	dem_take(d, "on");
	t = dem_unqualified(d, &n);
	return dem_peek(d, 0) == 'I' ? dem_join(d, t, dem_template_args(d, false)) : t;
}

/* Reads the name behind "sr": "T::name". A longer one, or one that begins with a plain name, has
 * an "E" before its last part. */
static struct dem_text scoped(struct dem *d)
{
	bool plain = dem_digit(dem_peek(d, 0)), longer = dem_take(d, "N") || plain;
	struct dem_text t = plain ? name_with_args(d) : dem_type_text(d);

	while (longer && !d->failed && !dem_take(d, "E"))
		t = dem_join(d, dem_add(d, t, "::"), name_with_args(d));
	return dem_join(d, dem_add(d, t, "::"), name_with_args(d));
}

static struct dem_text parameter(struct dem *d)
{
	char text[32];

	if (dem_take(d, "T"))
		return dem_lit(d, "this");
	if (dem_digit(dem_peek(d, 0)) || dem_peek(d, 0) == '_') {
		snprintf(text, sizeof(text), "{parm#%u}", dem_sequence(d, 10) + 1);
		return dem_lit(d, text);
	}
	return dem_fail(d);
}

static struct dem_text cast(struct dem *d)
{
	struct dem_text t = around(d, "(", dem_type_text(d), ")");
	struct dem_text of;

	if (dem_take(d, "_"))
		of = around(d, "(", list(d), ")");
	else
		of = operand(d);
	return dem_join(d, t, of);
}

static struct dem_text named_cast(struct dem *d, const char *word)
{
	struct dem_text t = around(d, word, dem_type_text(d), ">(");

	return dem_add(d, dem_join(d, t, dem_expr(d)), ")");
}

static struct dem_text call(struct dem *d)
{
	struct dem_text t = dem_add(d, operand(d), "(");

	return dem_add(d, dem_join(d, t, list(d)), ")");
}

static struct dem_text selected(struct dem *d, const char *by)
{
	struct dem_text t = operand(d);

	return dem_join(d, dem_add(d, t, by), dem_expr(d));
}

static struct dem_text chosen(struct dem *d)
{
	struct dem_text t = dem_add(d, operand(d), "?");

	t = dem_add(d, dem_join(d, t, operand(d)), ":");
	return dem_join(d, t, operand(d));
}

static struct dem_text unary(struct dem *d, const char *text)
{
	struct dem_text of;

	if ((!strcmp(text, "++") || !strcmp(text, "--")) && !dem_take(d, "_"))
		return dem_add(d, operand(d), text);
	if (*text == '&' && dem_take(d, "L_Z")) {
		of = inner_encoding(d, DEM_NAME);
		if (!dem_take(d, "E"))
			return dem_fail(d);
	} else {
		of = operand(d);
	}
	if (*text != ' ')
		return dem_join(d, dem_lit(d, text), of);
	return dem_join(d, dem_add(d, dem_lit(d, text + 1), " "), of);
}

static struct dem_text binary(struct dem *d, const char *text)
{
	struct dem_text t = operand(d);
	bool compares = *text == '>';

	t = dem_join(d, dem_add(d, t, text), operand(d));
	return compares ? around(d, "(", t, ")") : t;
}

/* Reads a fold expression such as "(... && x)": left or right, with or without an initial value. */
static struct dem_text fold(struct dem *d)
{
	char which = *d->p++;
	const struct dem_operator *o = dem_operator(d);
	struct dem_text a, b;

	if (!o)
		return dem_fail(d);
	d->p += 2;
	a = operand(d);
	if (which == 'l')
		return dem_add(d, dem_join(d, dem_add(d, dem_lit(d, "(..."), o->text), a), ")");
	a = dem_add(d, dem_add(d, around(d, "(", a, ""), o->text), "...");
	if (which == 'r')
		return dem_add(d, a, ")");
	b = operand(d);
	return dem_add(d, dem_join(d, dem_add(d, a, o->text), b), ")");
}

static struct dem_text of_types(struct dem *d, bool *known)
{
	struct dem_text t;

	*known = true;
	if (dem_take(d, "st"))
		return around(d, "sizeof (", dem_type_text(d), ")");
	if (dem_take(d, "at"))
		return around(d, "alignof (", dem_type_text(d), ")");
	if (dem_take(d, "ti"))
		return around(d, "typeid (", dem_type_text(d), ")");
	if (dem_take(d, "cv"))
		return cast(d);
	if (dem_take(d, "dc"))
		return named_cast(d, "dynamic_cast<");
	if (dem_take(d, "sc"))
		return named_cast(d, "static_cast<");
	if (dem_take(d, "cc"))
		return named_cast(d, "const_cast<");
	if (dem_take(d, "rc"))
		return named_cast(d, "reinterpret_cast<");
	if (dem_take(d, "tl")) {
		t = dem_add(d, dem_type_text(d), "{");
		return dem_add(d, dem_join(d, t, list(d)), "}");
	}
	*known = false;
	return (struct dem_text){ 0 };
}

/* Reads the places, the type and the initial values of "new". */
static struct dem_text created(struct dem *d, const char *word)
{
	struct dem_text t = dem_lit(d, word);

	if (!dem_take(d, "_"))
		t = dem_join(d, t, around(d, "(", list_to(d, '_'), ") "));
	t = dem_join(d, t, dem_type_text(d));
	if (dem_take(d, "pi"))
		return dem_join(d, t, around(d, "(", list(d), ")"));
	if (!dem_take(d, "E"))
		return dem_fail(d);
	return t;
}

static struct dem_text of_values(struct dem *d, bool *known)
{
	*known = true;
	if (dem_take(d, "nw"))
		return created(d, "new ");
	if (dem_take(d, "na"))
		return created(d, "new[] ");
	if (dem_take(d, "tw"))
		return dem_join(d, dem_lit(d, "throw "), operand(d));
	if (dem_take(d, "tr"))
		return dem_lit(d, "throw");
	if (dem_take(d, "sz"))
		return around(d, "sizeof (", dem_expr(d), ")");
	if (dem_take(d, "az"))
		return around(d, "alignof (", dem_expr(d), ")");
	if (dem_take(d, "nx"))
		return around(d, "noexcept(", dem_expr(d), ")");
	if (dem_take(d, "sZ"))
		return around(d, "sizeof...(", dem_take(d, "fp") ? parameter(d) : dem_type_text(d),
			      ")");
	if (dem_take(d, "sp"))
		return dem_expansion(d, expr_type).left;
	if (dem_take(d, "il"))
		return around(d, "{", list(d), "}");
	if (dem_take(d, "cl"))
		return call(d);
	if (dem_take(d, "dt"))
		return selected(d, ".");
	if (dem_take(d, "ds"))
		return selected(d, ".*");
	if (dem_take(d, "pt"))
		return selected(d, "->");
	if (dem_take(d, "qu"))
		return chosen(d);
	if (dem_take(d, "ix")) {
		struct dem_text t = dem_add(d, operand(d), "[");

		return dem_add(d, dem_join(d, t, dem_expr(d)), "]");
	}
	*known = false;
	return (struct dem_text){ 0 };
}

static struct dem_text operation(struct dem *d)
{
	const struct dem_operator *o;
	struct dem_text t;
	bool known;

	t = of_types(d, &known);
	if (known)
		return t;
	t = of_values(d, &known);
	if (known)
		return t;
	o = dem_operator(d);
	if (!o || !o->operands)
		return dem_fail(d);
	d->p += 2;
	return o->operands == 1 ? unary(d, o->text) : binary(d, o->text);
}

static struct dem_text expr(struct dem *d)
{
	char c = dem_peek(d, 0), next = dem_peek(d, 1);
	struct dem_type t;

	if (c == 'T') {
		t = dem_param(d);
		return dem_join(d, t.left, t.right);
	}
	if (c == 'L')
		return dem_literal(d);
	if (dem_take(d, "fp"))
		return parameter(d);
	if (c == 'f' && next && strchr("lrLR", next)) {
		d->p++;
		return fold(d);
	}
	if (dem_digit(c) || (c == 'o' && next == 'n'))
		return name_with_args(d);
	if (dem_take(d, "sr"))
		return scoped(d);
	if (dem_take(d, "gs"))
		return dem_join(d, dem_lit(d, "::"), dem_expr(d));
	return operation(d);
}

static struct dem_text dem_expr(struct dem *d)
{
	struct dem_text t = { 0 };

	if (dem_enter(d))
		t = expr(d);
	dem_leave(d);
	return t;
}

/* ---- references to earlier parts ------------------------------------------------------------- */

static void dem_sub(struct dem *d, struct dem_type t, const char *from)
{
	if (d->nr_subs == DEM_SUBS) {
		d->failed = true;
		return;
	}
	t.pack = d->pack_met ? d->expansion : 0;
	t.dependent = d->dependent;
	t.in_lambda = d->in_lambda;
	t.args = d->template_args;
	t.from = from ? (uint32_t)(d->end - from) : 0;
	d->subs[d->nr_subs++] = t;
}

/* ---- abbreviations and substitutions --------------------------------------------------------- */

static const struct {
	char code;
	const char *text, *spelled, *base;
} abbreviations[] = {
	{ 'a', "std::allocator", "std::allocator", "allocator" },
	{ 'b', "std::basic_string", "std::basic_string", "basic_string" },
	{ 's', "std::string",
	  "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
	  "basic_string" },
	{ 'i', "std::istream", "std::basic_istream<char, std::char_traits<char> >",
	  "basic_istream" },
	{ 'o', "std::ostream", "std::basic_ostream<char, std::char_traits<char> >",
	  "basic_ostream" },
	{ 'd', "std::iostream", "std::basic_iostream<char, std::char_traits<char> >",
	  "basic_iostream" },
};

static struct dem_type param(struct dem *d, uint32_t n);

static struct dem_type read_again(struct dem *d, uint32_t from)
{
	const char *p = d->p;
	uint32_t nr_subs = d->nr_subs;
	struct dem_type t;

	d->p = d->end - from;
	t = dem_type(d);
	d->p = p;
	d->nr_subs = nr_subs;
	return t;
}

/* A type with "T_" from another name's template, or from a lambda, is read again with the
 * arguments in force here. */
static struct dem_type again(struct dem *d, const struct dem_type *t)
{
	bool here =
		(!t->dependent || (t->args == d->template_args && t->in_lambda == d->in_lambda)) &&
		(!t->pack || t->pack == d->expansion);

	if (t->module)
		return *t;
	if (!here && t->param)
		return param(d, t->param - 1);
	if (!here)
		return t->from ? read_again(d, t->from) : dem_plain(dem_fail(d));
	d->dependent |= t->dependent;
	d->pack_met |= t->pack != 0;
	return *t;
}

static struct dem_type dem_substitution(struct dem *d, bool spelled)
{
	char c;
	uint32_t i;

	if (!dem_take(d, "S"))
		return dem_plain(dem_fail(d));
	c = dem_peek(d, 0);
	for (size_t a = 0; a < sizeof(abbreviations) / sizeof(*abbreviations); a++) {
		if (abbreviations[a].code != c)
			continue;
		d->p++;
		d->base = dem_lit(d, abbreviations[a].base);
		return dem_plain(
			dem_lit(d, spelled ? abbreviations[a].spelled : abbreviations[a].text));
	}
	i = dem_sequence(d, 36);
	return d->failed || i >= d->nr_subs ? dem_plain(dem_fail(d)) : again(d, &d->subs[i]);
}

static struct dem_arg *argument(struct dem *d, uint32_t n)
{
	uint32_t i = d->template_args;

	while (i && n--)
		i = d->args[i - 1].next;
	return i ? &d->args[i - 1] : NULL;
}

static struct dem_type element(struct dem *d, const struct dem_arg *pack)
{
	uint32_t i = pack->first;

	if (!d->expansion) /* a pack outside of an expansion stands for all its elements, as in
			      sizeof... */
		return pack->type;
	d->pack_met = true;
	d->pack_nr = 0;
	for (uint32_t n = i; n; n = d->args[n - 1].next)
		d->pack_nr++;
	for (uint32_t n = d->pack_at; i && n--;)
		i = d->args[i - 1].next;
	return i ? d->args[i - 1].type : (struct dem_type){ .nothing = true };
}

static struct dem_type param(struct dem *d, uint32_t n)
{
	struct dem_type t = { 0 };
	struct dem_arg *a;
	char text[24];

	d->dependent = true;
	snprintf(text, sizeof(text), "auto:%u", n + 1);
	a = d->failed || d->in_lambda ? NULL : argument(d, n);
	if (a)
		t = a->is_pack ? element(d, a) : a->type;
	else if (d->in_lambda)
		t = dem_plain(dem_lit(d, text));
	else
		dem_fail(d);
	t.param = n + 1;
	return t;
}

static struct dem_type dem_param(struct dem *d)
{
	if (!dem_take(d, "T"))
		return dem_plain(dem_fail(d));
	return param(d, dem_sequence(d, 36));
}

/* ---- template arguments ---------------------------------------------------------------------- */

static uint32_t new_arg(struct dem *d)
{
	if (d->nr_args == DEM_ARGS) {
		d->failed = true;
		return 0;
	}
	memset(&d->args[d->nr_args], 0, sizeof(d->args[0]));
	return ++d->nr_args;
}

static uint32_t read_args(struct dem *d, struct dem_text *text);

/* Reads an argument. Its index + 1, or 0 after a failure. */
static uint32_t read_arg(struct dem *d)
{
	uint32_t i = new_arg(d), first;
	struct dem_type t = { 0 };

	if (!i || !dem_enter(d)) {
		i = 0;
	} else if (dem_take(d, "J")) {
		first = read_args(d, &t.left);
		t.nothing = !t.left.len;
		d->args[i - 1] = (struct dem_arg){ .type = t, .is_pack = true, .first = first };
	} else {
		if (dem_take(d, "X")) {
			t.left = dem_expr(d);
			if (!dem_take(d, "E"))
				d->failed = true;
		} else if (dem_peek(d, 0) == 'L') {
			t.left = dem_literal(d);
		} else {
			t = dem_type(d);
		}
		d->args[i - 1].type = t;
	}
	dem_leave(d);
	return i;
}

/* Reads arguments up to "E". The index + 1 of the first one. */
static uint32_t read_args(struct dem *d, struct dem_text *text)
{
	uint32_t first = 0, last = 0;

	while (!d->failed && !dem_take(d, "E")) {
		uint32_t i = read_arg(d);
		const struct dem_type *t;

		if (!i)
			break;
		if (last)
			d->args[last - 1].next = i;
		else
			first = i;
		last = i;
		t = &d->args[i - 1].type;
		if (t->nothing)
			continue;
		if (text->len)
			*text = dem_add(d, *text, ", ");
		*text = dem_join(d, dem_join(d, *text, t->left), t->right);
	}
	return first;
}

static struct dem_text dem_template_args(struct dem *d, bool tag)
{
	struct dem_text inner = { 0 }, t;
	bool lambda = d->in_lambda, converts = d->in_conversion;
	uint32_t first;

	if (!dem_take(d, "I"))
		return dem_fail(d);
	d->in_conversion = false;
	first = read_args(d, &inner);
	d->in_conversion = converts;
	d->in_lambda = lambda;
	if (tag)
		d->template_args = first;
	t = dem_join(d, dem_lit(d, "<"), inner);
	return dem_add(d, t, dem_last(d, inner) == '>' ? " >" : ">");
}

static struct dem_type dem_expansion(struct dem *d, struct dem_type (*one)(struct dem *d))
{
	uint32_t expansion = d->expansion, at = d->pack_at, nr = d->pack_nr, subs = d->nr_subs;
	struct dem_type all = { .nothing = true };
	const char *from = d->p;
	bool met = d->pack_met;

	d->expansion = (uint32_t)(d->end - d->p) + 1;
	d->pack_nr = 1;
	for (d->pack_at = 0; !d->failed && d->pack_at < (d->pack_nr ? d->pack_nr : 1);
	     d->pack_at++) {
		struct dem_type t;

		d->p = from;
		d->nr_subs = subs;
		d->pack_met = false;
		t = one(d);
		if (!d->pack_met) { /* a pack that is not known */
			all = dem_plain(dem_join(d, t.left, t.right));
			if (d->in_lambda)
				all.left = dem_add(d, dem_join(d, dem_lit(d, "("), all.left), ")");
			all.left = dem_add(d, all.left, "...");
			break;
		}
		if (!d->pack_nr || t.nothing)
			continue;
		if (!all.nothing)
			all.left = dem_add(d, all.left, ", ");
		all.left = dem_join(d, dem_join(d, all.left, t.left), t.right);
		all.nothing = false;
	}
	d->expansion = expansion;
	d->pack_at = at;
	d->pack_nr = nr;
	d->pack_met = met;
	return all;
}

static const struct dem_operator operators[] = {
	{ "nw", 0, " new" },	  { "na", 0, " new[]" }, { "dl", 1, " delete" },
	{ "da", 1, " delete[]" }, { "ps", 1, "+" },	 { "ng", 1, "-" },
	{ "ad", 1, "&" },	  { "de", 1, "*" },	 { "co", 1, "~" },
	{ "pl", 2, "+" },	  { "mi", 2, "-" },	 { "ml", 2, "*" },
	{ "dv", 2, "/" },	  { "rm", 2, "%" },	 { "an", 2, "&" },
	{ "or", 2, "|" },	  { "eo", 2, "^" },	 { "aS", 2, "=" },
	{ "pL", 2, "+=" },	  { "mI", 2, "-=" },	 { "mL", 2, "*=" },
	{ "dV", 2, "/=" },	  { "rM", 2, "%=" },	 { "aN", 2, "&=" },
	{ "oR", 2, "|=" },	  { "eO", 2, "^=" },	 { "ls", 2, "<<" },
	{ "rs", 2, ">>" },	  { "lS", 2, "<<=" },	 { "rS", 2, ">>=" },
	{ "eq", 2, "==" },	  { "ne", 2, "!=" },	 { "lt", 2, "<" },
	{ "gt", 2, ">" },	  { "le", 2, "<=" },	 { "ge", 2, ">=" },
	{ "ss", 2, "<=>" },	  { "nt", 1, "!" },	 { "aa", 2, "&&" },
	{ "oo", 2, "||" },	  { "pp", 1, "++" },	 { "mm", 1, "--" },
	{ "cm", 2, "," },	  { "pm", 2, "->*" },	 { "pt", 0, "->" },
	{ "cl", 0, "()" },	  { "ix", 0, "[]" },	 { "qu", 0, "?" },
	{ "aw", 1, " co_await" },
};

static const struct dem_operator *dem_operator(const struct dem *d)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++)
		if (dem_peek(d, 0) == operators[i].code[0] &&
		    dem_peek(d, 1) == operators[i].code[1])
			return &operators[i];
	return NULL;
}

static struct dem_text source_name(struct dem *d)
{
	static const char anonymous[] = "_GLOBAL_";
	uint32_t len = dem_number(d);
	struct dem_text t;

	if (d->failed || !len || len > (size_t)(d->end - d->p))
		return dem_fail(d);
	if (len >= 10 && memcmp(d->p, anonymous, 8) == 0 && strchr("._$", d->p[8]) &&
	    d->p[9] == 'N')
		t = dem_lit(d, "(anonymous namespace)");
	else
		t = dem_bytes(d, d->p, len);
	d->p += len;
	return t;
}

static struct dem_text numbered(struct dem *d, struct dem_text t)
{
	char text[16];

	snprintf(text, sizeof(text), "#%u}", dem_sequence(d, 10) + 1);
	return dem_add(d, t, text);
}

static struct dem_text lambda(struct dem *d)
{
	bool outer = d->in_lambda;
	struct dem_text t;

	d->in_lambda = true;
	t = dem_join(d, dem_lit(d, "{lambda("), dem_params(d));
	d->in_lambda = outer;
	if (!dem_take(d, "E"))
		return dem_fail(d);
	return numbered(d, dem_add(d, t, ")"));
}

/* Reads the type of a conversion. Where its own template arguments follow, its parameters are
 * these: they are read first, and once more by the caller. */
static struct dem_text conversion(struct dem *d, struct dem_name *of)
{
	uint32_t nr_subs = d->nr_subs, args = d->template_args;
	bool lambda = d->in_lambda, converts = d->in_conversion;
	const char *from = d->p;
	struct dem_text t;

	d->in_conversion = d->in_lambda = true;
	dem_type(d);
	d->in_lambda = lambda;
	if (dem_peek(d, 0) == 'I')
		dem_template_args(d, true);
	d->p = from;
	d->nr_subs = nr_subs;
	t = dem_join(d, dem_lit(d, "operator "), dem_type_text(d));
	d->in_conversion = converts;
	d->template_args = args;
	of->no_return = true;
	return t;
}

static struct dem_text operator_name(struct dem *d, struct dem_name *of)
{
	const struct dem_operator *o;

	if (dem_take(d, "cv"))
		return conversion(d, of);
	if (dem_take(d, "li"))
		return dem_join(d, dem_lit(d, "operator\"\" "), source_name(d));
	o = dem_operator(d);
	if (!o)
		return dem_fail(d);
	d->p += 2;
	return dem_add(d, dem_lit(d, "operator"), o->text);
}

/* Reads the structured binding "[a, b]". */
static struct dem_text binding(struct dem *d)
{
	struct dem_text t = dem_lit(d, "[");

	for (bool first = true; !d->failed && !dem_take(d, "E"); first = false)
		t = dem_join(d, first ? t : dem_add(d, t, ", "), source_name(d));
	return dem_add(d, t, "]");
}

/* Reads a C++20 module from "W" on: "a.b:c", or empty. @m: the part that was already read. */
static struct dem_text dem_module(struct dem *d, struct dem_text m)
{
	while (!d->failed && dem_take(d, "W")) {
		const char *behind = dem_take(d, "P") ? ":" : m.len ? "." : "";
		struct dem_type t = { .module = true };

		m = dem_join(d, dem_add(d, m, behind), source_name(d));
		t.left = m;
		dem_sub(d, t, NULL);
	}
	return m;
}

static struct dem_text unqualified(struct dem *d, struct dem_name *of, struct dem_text module)
{
	struct dem_text t;

	of->no_return = false;
	module = dem_module(d, module);
	dem_take(d, "L");
	if (dem_digit(dem_peek(d, 0)))
		t = source_name(d);
	else if (dem_take(d, "Ul"))
		t = lambda(d);
	else if (dem_take(d, "Ut"))
		t = numbered(d, dem_lit(d, "{unnamed type"));
	else if (dem_take(d, "DC"))
		t = binding(d);
	else
		t = operator_name(d, of);
	d->base = t;
	if (module.len)
		t = dem_join(d, dem_add(d, t, "@"), module);
	while (dem_take(d, "B"))
		t = dem_add(d, dem_join(d, dem_add(d, t, "[abi:"), source_name(d)), "]");
	return t;
}

static struct dem_text dem_unqualified(struct dem *d, struct dem_name *of)
{
	return unqualified(d, of, (struct dem_text){ 0 });
}

/* ---- nested ---------------------------------------------------------------------------------- */

static struct dem_text within(struct dem *d, struct dem_text outer, struct dem_text inner)
{
	return outer.len ? dem_join(d, dem_add(d, outer, "::"), inner) : inner;
}

static struct dem_text behind(struct dem *d)
{
	struct dem_text t = { 0 };
	bool r = dem_take(d, "r"), v = dem_take(d, "V"), k = dem_take(d, "K");

	if (k)
		t = dem_add(d, t, " const");
	if (v)
		t = dem_add(d, t, " volatile");
	if (r)
		t = dem_add(d, t, " restrict");
	if (dem_take(d, "R"))
		t = dem_add(d, t, " &");
	else if (dem_take(d, "O"))
		t = dem_add(d, t, " &&");
	return t;
}

/* Reads a constructor or destructor. False: there is none. */
static bool structor(struct dem *d, struct dem_name *n)
{
	char c = dem_peek(d, 0), which = dem_peek(d, 1);
	struct dem_text own = d->base;

	if (c == 'C' && which == 'I' && strchr("12", dem_peek(d, 2)) && dem_peek(d, 2)) {
		d->p += 3;
		dem_type_text(d); /* the class of an inherited constructor */
		d->base = own;
	} else if (which &&
		   ((c == 'C' && strchr("12345", which)) || (c == 'D' && strchr("01245", which)))) {
		d->p += 2;
	} else {
		return false;
	}
	if (!own.len)
		d->failed = true;
	n->text = dem_add(d, n->text, c == 'C' ? "::" : "::~");
	n->text = dem_join(d, n->text, own);
	while (dem_take(d, "B"))
		n->text =
			dem_add(d, dem_join(d, dem_add(d, n->text, "[abi:"), source_name(d)), "]");
	n->no_return = true;
	return true;
}

static struct dem_text template_args_of(struct dem *d, struct dem_text t, bool tag)
{
	struct dem_text base = d->base;

	if (dem_last(d, t) == '<')
		t = dem_add(d, t, " ");
	t = dem_join(d, t, dem_template_args(d, tag));
	d->base = base;
	return t;
}

/* Reads a reference to an earlier part. False, as in part: the result is no new candidate. */
static bool known_part(struct dem *d, struct dem_name *n)
{
	bool first = !n->text.len, spelled;
	struct dem_type t;

	if (first && dem_take(d, "St")) {
		n->text = dem_lit(d, "std");
		return false;
	}
	/* Constructors of abbreviated classes repeat the class's full name. */
	spelled = dem_peek(d, 2) == 'C' || dem_peek(d, 2) == 'D';
	t = dem_substitution(d, spelled);
	if (t.module) {
		n->is_template = false;
		n->text = within(d, n->text, unqualified(d, n, t.left));
		return true;
	}
	if (!first) /* types may only begin a nested name */
		dem_fail(d);
	n->text = t.left;
	return false;
}

/* Reads a part of a nested name. False: it is no candidate for substitutions. */
static bool part(struct dem *d, struct dem_name *n, bool tag)
{
	char c = dem_peek(d, 0), next = dem_peek(d, 1);

	if (c == 'S')
		return known_part(d, n);
	if (c == 'I') {
		n->text = template_args_of(d, n->text, tag);
		n->is_template = true;
		return true;
	}
	n->is_template = false;
	if (c == 'T' || (c == 'D' && (next == 't' || next == 'T'))) {
		struct dem_type t = c == 'T' ? dem_param(d) : dem_type(d);

		n->text = dem_join(d, t.left, t.right);
		return c == 'T';
	}
	if (n->text.len && structor(d, n))
		return true;
	n->text = within(d, n->text, dem_unqualified(d, n));
	return true;
}

static struct dem_name nested(struct dem *d, bool tag)
{
	struct dem_name n = { .behind = behind(d) };
	bool popped = false;

	while (!d->failed && !dem_take(d, "E")) {
		popped = part(d, &n, tag);
		dem_take(d, "M"); /* precedes a closure in a member's initializer */
		if (popped)
			dem_sub(d, dem_plain(n.text), NULL);
	}
	/* The whole nested name is no candidate among its own parts. */
	if (popped && d->nr_subs)
		d->nr_subs--;
	if (!n.text.len)
		d->failed = true;
	return n;
}

/* ---- local ----------------------------------------------------------------------------------- */

static void skip_discriminator(struct dem *d)
{
	if (dem_take(d, "__")) {
		dem_number(d);
		dem_take(d, "_");
	} else if (dem_peek(d, 0) == '_' && dem_digit(dem_peek(d, 1))) {
		d->p += 2;
	}
}

static struct dem_name local(struct dem *d)
{
	struct dem_text outer = dem_encoding(d, DEM_NO_RETURN);
	struct dem_name n = { 0 };

	if (!dem_take(d, "E"))
		d->failed = true;
	if (dem_take(d, "s")) {
		n.text = dem_add(d, outer, "::string literal");
	} else {
		if (dem_take(d, "d"))
			outer = numbered(d, dem_add(d, outer, "::{default arg"));
		n = dem_name(d, true);
		n.text = within(d, outer, n.text);
	}
	skip_discriminator(d);
	return n;
}

static struct dem_name unscoped(struct dem *d, bool tag)
{
	struct dem_name n = { 0 };
	bool std = dem_take(d, "St"), known = false;

	if (!std && dem_peek(d, 0) == 'S') {
		struct dem_type t = dem_substitution(d, false);

		known = !t.module;
		n.text = known ? t.left : unqualified(d, &n, t.left);
		if (known && dem_peek(d, 0) != 'I')
			d->failed = true;
	} else {
		n.text = dem_unqualified(d, &n);
		if (std)
			n.text = within(d, dem_lit(d, "std"), n.text);
	}
	if (dem_peek(d, 0) == 'I') {
		if (!known)
			dem_sub(d, dem_plain(n.text), NULL);
		n.text = template_args_of(d, n.text, tag);
		n.is_template = true;
	}
	return n;
}

static struct dem_name dem_name(struct dem *d, bool tag)
{
	struct dem_name n = { 0 };

	if (!dem_enter(d))
		n.is_template = false;
	else if (dem_take(d, "N"))
		n = nested(d, tag);
	else if (dem_take(d, "Z"))
		n = local(d);
	else
		n = unscoped(d, tag);
	dem_leave(d);
	return n;
}

/* ---- functions, data, and symbols that the compiler makes ------------------------------------ */

/* ---- special names --------------------------------------------------------------------------- */

static void skip_offset(struct dem *d)
{
	dem_take(d, "n");
	dem_number(d);
	if (!dem_take(d, "_"))
		d->failed = true;
}

static struct dem_text thunk(struct dem *d, const char *text)
{
	return dem_join(d, dem_lit(d, text), dem_encoding(d, DEM_WHOLE));
}

static void skip_adjustment(struct dem *d)
{
	if (dem_take(d, "h")) {
		skip_offset(d);
	} else if (dem_take(d, "v")) {
		skip_offset(d);
		skip_offset(d);
	} else {
		d->failed = true;
	}
}

static struct dem_text construction(struct dem *d)
{
	struct dem_text of = dem_type_text(d), in;

	dem_number(d);
	if (!dem_take(d, "_"))
		return dem_fail(d);
	in = dem_type_text(d);
	return dem_join(
		d, dem_add(d, dem_join(d, dem_lit(d, "construction vtable for "), in), "-in-"), of);
}

static struct dem_text temporary(struct dem *d)
{
	struct dem_text name = dem_name(d, true).text;
	char head[64];

	snprintf(head, sizeof(head), "reference temporary #%u for ",
		 d->p < d->end ? dem_sequence(d, 36) : 0);
	return dem_join(d, dem_lit(d, head), name);
}

static struct dem_text initializer(struct dem *d)
{
	struct dem_text module = dem_module(d, (struct dem_text){ 0 });

	return module.len ? dem_join(d, dem_lit(d, "initializer for module "), module)
			  : dem_fail(d);
}

static struct dem_text special(struct dem *d)
{
	static const struct {
		const char *code, *text;
		bool of_type;
	} words[] = {
		{ "TV", "vtable for ", true },
		{ "TT", "VTT for ", true },
		{ "TI", "typeinfo for ", true },
		{ "TS", "typeinfo name for ", true },
		{ "TW", "TLS wrapper function for ", false },
		{ "TH", "TLS init function for ", false },
		{ "GV", "guard variable for ", false },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (dem_take(d, words[i].code))
			return dem_join(d, dem_lit(d, words[i].text),
					words[i].of_type ? dem_type_text(d)
							 : dem_name(d, true).text);
	if (dem_take(d, "TC"))
		return construction(d);
	if (dem_take(d, "GR"))
		return temporary(d);
	if (dem_take(d, "GI"))
		return initializer(d);
	if (dem_take(d, "GTt") || dem_take(d, "GTn"))
		return thunk(d, "transaction clone for ");
	if (dem_take(d, "Tc")) {
		skip_adjustment(d);
		skip_adjustment(d);
		return thunk(d, "covariant return thunk to ");
	}
	if (dem_take(d, "Th")) {
		skip_offset(d);
		return thunk(d, "non-virtual thunk to ");
	}
	if (dem_take(d, "Tv")) {
		skip_offset(d);
		skip_offset(d);
		return thunk(d, "virtual thunk to ");
	}
	return dem_fail(d);
}

/* ---- functions and data ---------------------------------------------------------------------- */

static bool at_end(const struct dem *d)
{
	char c = dem_peek(d, 0);

	return !c || c == 'E' || c == '.';
}

static struct dem_text typed_name(struct dem *d, enum dem_part part)
{
	struct dem_name name = dem_name(d, true);
	struct dem_type back = { 0 };
	struct dem_text t, params;

	if (at_end(d))
		return dem_join(d, name.text, name.behind);
	if (name.is_template && !name.no_return)
		back = dem_type(d);
	params = dem_params(d);
	if (part == DEM_NAME)
		return name.text;
	if (part == DEM_NO_RETURN)
		back = (struct dem_type){ 0 };
	t = back.left;
	if (t.len && !back.right.len)
		t = dem_add(d, t, " ");
	t = dem_join(d, t, name.text);
	t = dem_add(d, t, "(");
	t = dem_join(d, t, params);
	t = dem_add(d, t, ")");
	return dem_join(d, dem_join(d, t, name.behind), back.right);
}

static struct dem_text dem_encoding(struct dem *d, enum dem_part part)
{
	char c = dem_peek(d, 0);
	struct dem_text t = { 0 };

	if (dem_enter(d))
		t = c == 'T' || c == 'G' ? special(d) : typed_name(d, part);
	dem_leave(d);
	return t;
}

/* Reads suffixes of copies and parts that the compiler made: ".cold", ".constprop.0". */
static struct dem_text clones(struct dem *d, struct dem_text t)
{
	while (!d->failed && dem_peek(d, 0) == '.') {
		const char *from = d->p++;

		if (!isalnum((unsigned char)dem_peek(d, 0)) && dem_peek(d, 0) != '_')
			return dem_fail(d);
		while (isalnum((unsigned char)dem_peek(d, 0)) || dem_peek(d, 0) == '_')
			d->p++;
		while (dem_peek(d, 0) == '.' && dem_digit(dem_peek(d, 1)))
			for (d->p++; dem_digit(dem_peek(d, 0));)
				d->p++;
		t = dem_add(d, t, " [clone ");
		t = dem_join(d, t, dem_bytes(d, from, (size_t)(d->p - from)));
		t = dem_add(d, t, "]");
	}
	return t;
}

char *dem_cxx(const char *linkage, size_t len, const char *rest)
{
	struct dem *d = malloc(sizeof(*d));
	struct dem_text t;
	char *name = NULL;

	if (!d)
		return NULL;
	memset(d, 0, offsetof(struct dem, subs));
	d->p = linkage + 2;
	d->end = linkage + len;
	t = clones(d, dem_encoding(d, DEM_WHOLE));
	if (d->p == d->end && t.len)
		t = dem_add(d, t, rest);
	if (!d->failed && d->p == d->end && t.len && t.len <= DEMANGLE_MAX)
		name = strndup(d->text + t.at, t.len);
	free(d);
	return name;
}
