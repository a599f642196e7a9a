/* SPDX-License-Identifier: BSD-2-Clause */
/* Types of C++, and the values and expressions in template arguments. */
#include <string.h>

#include "demangle_internal.h"

struct dem_type dem_plain(struct dem_text t)
{
	return (struct dem_type){ .left = t };
}

struct dem_text dem_type_text(struct dem *d)
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

/* "(*" … ")" where a function or an array is meant. */
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
	/* Of a function it is no qualifier of a type that stands by itself. */
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

struct dem_text dem_params(struct dem *d)
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
		/* First the comma: what follows it in the buffer need not be moved there. */
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
	if (t.kind == DEM_ARRAY && t.right.len) /* after the blank that begins it */
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

/* "F16_": _Float16. */
static struct dem_type sized_float(struct dem *d)
{
	char text[32];

	snprintf(text, sizeof(text), "_Float%u", dem_number(d));
	if (!dem_take(d, "_") && !dem_take(d, "x") && !dem_take(d, "b"))
		d->failed = true;
	return dem_plain(dem_lit(d, text));
}

/* Behind "D". *@kept: others can refer to it. */
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

/* A template parameter or what stands for one, perhaps of a template: with its arguments. */
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
	return with_args(d, dem_param(d), true);
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

struct dem_type dem_type(struct dem *d)
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

/* ---- values and expressions ---------------------------------------------------------------- */

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

/* It has template arguments of its own. */
static struct dem_text inner_encoding(struct dem *d, enum dem_part part)
{
	uint32_t args = d->template_args;
	struct dem_text t = dem_encoding(d, part);

	d->template_args = args;
	return t;
}

/* From "L" to "E". */
struct dem_text dem_literal(struct dem *d)
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

/* Up to and with "E". */
static struct dem_text list(struct dem *d)
{
	struct dem_text t = { 0 };

	while (!d->failed && !dem_take(d, "E")) {
		struct dem_text one = dem_expr(d);

		if (t.len && one.len)
			t = dem_add(d, t, ", ");
		t = dem_join(d, t, one);
	}
	return t;
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

/* Behind "sr": "T::name"; what is longer, or begins with a plain name, has an "E" before the last.
 */
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

	dem_take(d, "_"); /* ++ and -- in front */
	if (*text == '&' && dem_take(d, "L_Z")) {
		of = inner_encoding(d, DEM_NAME);
		if (!dem_take(d, "E"))
			return dem_fail(d);
	} else {
		of = operand(d);
	}
	return dem_join(d, dem_lit(d, text + (*text == ' ')), of);
}

static struct dem_text binary(struct dem *d, const char *text)
{
	struct dem_text t = operand(d);
	bool compares = *text == '>';

	t = dem_join(d, dem_add(d, t, text), operand(d));
	return compares ? around(d, "(", t, ")") : t;
}

/* "(... && x)": left and right, with and without a first value. */
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

static struct dem_text of_values(struct dem *d, bool *known)
{
	*known = true;
	if (dem_take(d, "sz"))
		return around(d, "sizeof (", dem_expr(d), ")");
	if (dem_take(d, "az"))
		return around(d, "alignof (", dem_expr(d), ")");
	if (dem_take(d, "nx"))
		return around(d, "noexcept(", dem_expr(d), ")");
	if (dem_take(d, "sZ"))
		return around(d, "sizeof...(", dem_type_text(d), ")");
	if (dem_take(d, "sp"))
		return dem_expansion(d, expr_type).left;
	if (dem_take(d, "il"))
		return around(d, "{", list(d), "}");
	if (dem_take(d, "cl"))
		return call(d);
	if (dem_take(d, "dt"))
		return selected(d, ".");
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

struct dem_text dem_expr(struct dem *d)
{
	struct dem_text t = { 0 };

	if (dem_enter(d))
		t = expr(d);
	dem_leave(d);
	return t;
}
