/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of C++: nested and local ones, what stands for an earlier one, functions with their types.
 */
#include <string.h>

#include "demangle_internal.h"

/* ---- references to what was read before ---------------------------------------------------- */

void dem_sub(struct dem *d, struct dem_type t, const char *from)
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

/* ---- what stands for something --------------------------------------------------------------- */

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

/* "T_" that was met in another name's template, or in a lambda, means this one's here. */
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

struct dem_type dem_substitution(struct dem *d, bool spelled)
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

	if (!d->expansion) /* by itself: all of it, as in sizeof... */
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

struct dem_type dem_param(struct dem *d)
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

/* A new argument's index + 1, 0 where it failed. */
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

/* Up to and with "E". The first one's index + 1. */
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

struct dem_text dem_template_args(struct dem *d, bool tag)
{
	struct dem_text inner = { 0 }, t;
	bool lambda = d->in_lambda;
	uint32_t first;

	if (!dem_take(d, "I"))
		return dem_fail(d);
	first = read_args(d, &inner);
	d->in_lambda = lambda;
	if (tag)
		d->template_args = first;
	t = dem_join(d, dem_lit(d, "<"), inner);
	return dem_add(d, t, dem_last(d, inner) == '>' ? " >" : ">");
}

struct dem_type dem_expansion(struct dem *d, struct dem_type (*one)(struct dem *d))
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
		if (!d->pack_met) { /* of what is not known */
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

/* From "W" on, of C++20's modules: "a.b:c", or empty. @m: what was read of it. */
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

/* ---- functions, data, and what the compiler makes ------------------------------------------ */

/* ---- what is made by the compiler ------------------------------------------------------------ */

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

static struct dem_text function(struct dem *d, enum dem_part part)
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

struct dem_text dem_encoding(struct dem *d, enum dem_part part)
{
	char c = dem_peek(d, 0);
	struct dem_text t = { 0 };

	if (dem_enter(d))
		t = c == 'T' || c == 'G' ? special(d) : function(d, part);
	dem_leave(d);
	return t;
}
