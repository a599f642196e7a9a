/* SPDX-License-Identifier: BSD-2-Clause */
/* Values in template arguments, and what decltype and conditions on templates are made of. */
#include <string.h>

#include "demangle_internal.h"

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
