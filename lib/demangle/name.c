/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "demangle_internal.h"

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

const struct dem_operator *dem_operator(const struct dem *d)
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

static struct dem_text conversion(struct dem *d, struct dem_name *of)
{
	struct dem_text t = dem_join(d, dem_lit(d, "operator "), dem_type_text(d));

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

/* "[a, b]" of a declaration that takes something apart. */
static struct dem_text binding(struct dem *d)
{
	struct dem_text t = dem_lit(d, "[");

	for (bool first = true; !d->failed && !dem_take(d, "E"); first = false)
		t = dem_join(d, first ? t : dem_add(d, t, ", "), source_name(d));
	return dem_add(d, t, "]");
}

struct dem_text dem_module(struct dem *d, struct dem_text m)
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

struct dem_text dem_unqualified(struct dem *d, struct dem_name *of)
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

/* True: taken. */
static bool structor(struct dem *d, struct dem_name *n)
{
	char c = dem_peek(d, 0), which = dem_peek(d, 1);
	struct dem_text own = d->base;

	if (c == 'C' && which == 'I' && strchr("12", dem_peek(d, 2)) && dem_peek(d, 2)) {
		d->p += 3;
		dem_type_text(d); /* whose constructor it was */
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

/* What was there before; false, as in part: not a new one in that module. */
static bool known_part(struct dem *d, struct dem_name *n)
{
	bool first = !n->text.len, spelled;
	struct dem_type t;

	if (first && dem_take(d, "St")) {
		n->text = dem_lit(d, "std");
		return false;
	}
	/* Constructors of the abbreviated ones are called as these are in full. */
	spelled = dem_peek(d, 2) == 'C' || dem_peek(d, 2) == 'D';
	t = dem_substitution(d, spelled);
	if (t.module) {
		n->is_template = false;
		n->text = within(d, n->text, unqualified(d, n, t.left));
		return true;
	}
	if (!first) /* types only to begin with */
		dem_fail(d);
	n->text = t.left;
	return false;
}

/* A part of it; false: none that others can refer to. */
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
		dem_take(d, "M"); /* in front of a closure: of a member's initializer */
		if (popped)
			dem_sub(d, dem_plain(n.text), NULL);
	}
	/* All of it is no part of itself. */
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

struct dem_name dem_name(struct dem *d, bool tag)
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
