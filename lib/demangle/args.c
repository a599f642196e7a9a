/* SPDX-License-Identifier: BSD-2-Clause */
/* What stands for something that was read before: substitutions, template parameters, packs. */
#include <string.h>

#include "demangle_internal.h"

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
