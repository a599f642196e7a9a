/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads call paths for a report, and says how far they can be trusted. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"
#include "callpaths.h"

static const char *const checks[CALLPATH_NR_CHECKS] = {
	[CALLPATH_AGREES] = "callers_agree",
	[CALLPATH_UNCHECKED] = "callers_unchecked",
	[CALLPATH_CONTRADICTED] = "callers_contradicted",
};

static int read_all(const struct select *sel, const struct callpath_how *how, struct callpaths *x,
		    struct profdb_callpaths **paths, struct base_err *err)
{
	int r;

	if (sel->apart)
		return base_fail(err, -DCPI_EUSAGE, "call paths are not kept by process");
	r = callpath_load(x->a, false, paths, err);
	return r < 0 ? r : callpath_tree_make(x->a, *paths, how, &x->tree, err);
}

int callpaths_read(const struct select *sel, const struct callpath_how *how, struct callpaths *x,
		   struct base_err *err)
{
	struct profdb_callpaths *paths = NULL;
	int r = read_all(sel, how, x, &paths, err);

	profdb_callpaths_free(paths);
	return r;
}

/* ---- what the user chose --------------------------------------------------------------------- */

static int choose_event(struct callpaths *x, const char *name, struct base_err *err)
{
	int event = name ? analysis_event_find(x->a, name, err) : 0;

	if (event < 0)
		return event;
	x->event = name ? (size_t)event : analysis_event_default(x->a);
	if (x->a->nr_events && !callpath_paths(x->tree, x->event)) {
		base_fail(err, -ENOENT, "no call paths of event '%s' were kept",
			  x->a->events[x->event].name);
		base_hint(err, "-s EVENT shows another one's");
		return -ENOENT;
	}
	return 0;
}

static bool match_image(struct callpaths *x, const char *what, bool *wanted)
{
	bool found = false;

	for (size_t i = 0; i < x->a->nr_images; i++) {
		if (!analysis_image_match(x->a, x->a->images[i], what))
			continue;
		for (size_t p = 0; p < x->tree->nr_procedures; p++)
			if (x->tree->procedures[p].image == x->a->images[i])
				found = wanted[p] = true;
	}
	return found;
}

static int choose_images(struct callpaths *x, const struct base_opt_list *images,
			 struct base_err *err)
{
	bool *wanted = calloc(x->tree->nr_procedures, sizeof(*wanted));
	int r = wanted ? 0 : -ENOMEM;

	for (size_t i = 0; i < images->nr && r >= 0; i++)
		if (!match_image(x, images->items[i], wanted))
			r = analysis_image_unknown(x->a, images->items[i], err);
	if (r >= 0 && images->nr)
		r = callpath_keep(x->tree, wanted);
	free(wanted);
	return r < 0 ? base_fail_errno(err, r, "cannot choose images") : 0;
}

/* A user names a procedure by its name, or by an address in it. */
static bool is_named(const struct callpath_procedure *p, const char *what)
{
	char *end;
	uint64_t vaddr = strtoull(what, &end, 16);

	if (demangle_is(p->name, what))
		return true;
	return strncmp(what, "0x", 2) == 0 && !*end && p->kind == CALLPATH_PROCEDURE &&
	       vaddr >= p->vaddr && vaddr - p->vaddr < p->len;
}

static int unknown_procedure(const struct callpaths *x, const char *what, struct base_err *err)
{
	unsigned int best = 1 + (unsigned int)strlen(what) / 3;
	const char *near = NULL;

	for (size_t i = CALLPATH_NR_ENDS; i < x->tree->nr_procedures; i++) {
		const char *name = demangle_shown(x->tree->procedures[i].name);
		unsigned int d = base_name_distance(name, what);

		if (strlen(what) > 2 && strstr(name, what))
			d = 0;
		if (d < best) {
			best = d;
			near = name;
		}
	}
	base_fail(err, -DCPI_ENOSYMBOL, "no procedure '%s' on a call path", what);
	if (near)
		base_hint(err, "did you mean '%s'?", near);
	return -DCPI_ENOSYMBOL;
}

static int choose_procedures(struct callpaths *x, size_t nr, const char *const *what,
			     struct base_err *err)
{
	bool found;

	if (!nr)
		return 0;
	x->wanted = calloc(x->tree->nr_procedures, sizeof(*x->wanted));
	if (!x->wanted)
		return base_fail_errno(err, -ENOMEM, "cannot choose procedures");
	for (size_t i = 0; i < nr; i++) {
		found = false;
		for (size_t p = 1; p < x->tree->nr_procedures; p++)
			if (is_named(&x->tree->procedures[p], what[i]))
				found = x->wanted[p] = true;
		if (!found)
			return unknown_procedure(x, what[i], err);
	}
	return 0;
}

int callpaths_open(const struct select *sel, const struct callpaths_options *o,
		   const struct callpath_how *how, int nr, char **what, struct callpaths *out,
		   struct base_err *err)
{
	struct select whole = *sel;
	int r;

	whole.whole = true;
	r = fleet_use(&whole, FLEET_PATHS, 0, NULL, err);
	if (r >= 0)
		r = report_open(&whole, &out->a, err);
	out->full_names = o->full_names;
	if (r >= 0)
		r = callpaths_read(sel, how, out, err);
	if (r >= 0)
		r = choose_event(out, o->event, err);
	if (r >= 0)
		r = choose_images(out, &o->images, err);
	if (r >= 0)
		r = choose_procedures(out, (size_t)nr, (const char *const *)what, err);
	return r;
}

void callpaths_close(struct callpaths *x)
{
	for (size_t i = 0; x->names && i < x->tree->nr_procedures; i++)
		free(x->names[i]);
	free(x->names);
	callpath_tree_free(x->tree);
	free(x->wanted);
	analysis_close(x->a);
}

int callpaths_restrict(const struct select *s, struct analysis *a, struct base_err *err)
{
	const struct callpath_how how = { .inlined = true, .check = !s->unchecked };
	struct profdb_callpaths *paths = NULL;
	struct callpaths x = { .a = a };
	int r = read_all(s, &how, &x, &paths, err);

	if (r >= 0)
		r = choose_procedures(&x, s->callers.nr, s->callers.items, err);
	if (r >= 0) {
		a->callers = s->callers.items;
		a->nr_callers = s->callers.nr;
		r = callpath_only(x.tree, paths, x.wanted, a->caller_paths);
		if (r < 0)
			base_fail_errno(err, r, "cannot choose samples by their callers");
	}
	callpath_tree_free(x.tree);
	profdb_callpaths_free(paths);
	free(x.wanted);
	return r;
}

int callpaths_problems(const char *prog, const struct callpaths *x, int r, FILE *to)
{
	return r < 0 ? report_bad(prog, x->a, to) : report_problems(prog, x->a, to);
}

const char *callpaths_name(struct callpaths *x, uint32_t procedure, size_t len)
{
	const struct callpath_procedure *p = &x->tree->procedures[procedure];
	const char *name = demangle_shown(p->name);

	if (x->full_names || strlen(name) <= len || p->kind > CALLPATH_INLINED)
		return name;
	if (!x->names)
		x->names = calloc(x->tree->nr_procedures, sizeof(*x->names));
	if (x->names && !x->names[procedure])
		x->names[procedure] = demangle_short(name);
	return x->names && x->names[procedure] ? x->names[procedure] : name;
}

/* ---- the head -------------------------------------------------------------------------------- */

uint64_t callpaths_total(const struct callpaths *x)
{
	return x->a->nr_events ? x->tree->nodes.total[x->event] : 0;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static const uint64_t *ends_of(const struct callpaths *x, size_t event)
{
	return x->tree->ends + event * PROFDB_NR_CALLPATH_ENDS;
}

static void print_ends(const struct callpaths *x, FILE *to)
{
	uint64_t paths = callpath_paths(x->tree, x->event);
	const char *sep = "           ";

	for (size_t i = PROFDB_CALLPATH_COMPLETE + 1; i < PROFDB_NR_CALLPATH_ENDS; i++) {
		uint64_t n = ends_of(x, x->event)[i];

		if (n)
			fprintf(to, "%s%.2f%% %s", sep, percent(n, paths),
				profdb_callpath_end_text((enum profdb_callpath_end)i));
		sep = n ? ", " : sep;
	}
	if (paths > ends_of(x, x->event)[PROFDB_CALLPATH_COMPLETE])
		fputc('\n', to);
}

static const uint64_t *checks_of(const struct callpaths *x, size_t event)
{
	return x->tree->checks + event * CALLPATH_NR_CHECKS;
}

/* How many callers there are on the paths, and what their code says. */
static void print_checks(const struct callpaths *x, FILE *to)
{
	const uint64_t *n = checks_of(x, x->event);
	uint64_t all = n[CALLPATH_AGREES] + n[CALLPATH_UNCHECKED] + n[CALLPATH_CONTRADICTED];

	if (!all)
		return;
	fprintf(to,
		"callers    %" PRIu64
		" in processes, %.2f%% agree with their code, %.2f%% unchecked",
		all, percent(n[CALLPATH_AGREES], all), percent(n[CALLPATH_UNCHECKED], all));
	if (n[CALLPATH_CONTRADICTED])
		fprintf(to, "\n           %" PRIu64 " contradicted", n[CALLPATH_CONTRADICTED]);
	fputc('\n', to);
}

void callpaths_print(const struct callpaths *x, FILE *to)
{
	const struct analysis_event *ev = &x->a->events[x->event];
	uint64_t paths = callpath_paths(x->tree, x->event), alone = x->tree->alone[x->event];

	fprintf(to, "paths      %" PRIu64, paths);
	if (paths)
		fprintf(to, " (one in %.3g samples), %.2f%% complete",
			(double)ev->sum / (double)paths,
			percent(ends_of(x, x->event)[PROFDB_CALLPATH_COMPLETE], paths));
	fputc('\n', to);
	print_ends(x, to);
	print_checks(x, to);
	if (alone)
		fprintf(to,
			"           %" PRIu64 " samples (%.2f%%) are of procedures that no path "
			"ends in\n",
			alone, percent(alone, ev->sum));
}

void callpaths_head(const struct callpaths *x, FILE *to)
{
	report_head(x->a, to);
	report_events(x->a, x->tree->nodes.total, to);
	if (x->a->nr_events) {
		report_seconds_line(x->a, x->event, x->tree->nodes.total[x->event], to);
		callpaths_print(x, to);
	}
}

void callpaths_json(const struct callpaths *x, struct json_object *root)
{
	struct json_object *all = json_object_new_object();

	for (size_t e = 0; e < x->a->nr_events; e++) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "paths",
				       json_object_new_uint64(callpath_paths(x->tree, e)));
		for (size_t i = 0; i < PROFDB_NR_CALLPATH_ENDS; i++)
			json_object_object_add(
				o, profdb_callpath_end_word((enum profdb_callpath_end)i),
				json_object_new_uint64(ends_of(x, e)[i]));
		for (size_t i = 0; i < CALLPATH_NR_CHECKS; i++)
			json_object_object_add(o, checks[i],
					       json_object_new_uint64(checks_of(x, e)[i]));
		json_object_object_add(o, "unused", json_object_new_uint64(x->tree->unused[e]));
		json_object_object_add(o, "without", json_object_new_uint64(x->tree->alone[e]));
		json_object_object_add(all, x->a->events[e].name, o);
	}
	json_object_object_add(root, "paths", all);
}

struct json_object *callpaths_json_head(const struct callpaths *x, const char *schema)
{
	struct json_object *root = report_json(schema, x->a, x->tree->nodes.total);

	callpaths_json(x, root);
	json_object_object_add(root, "event",
			       x->a->nr_events ? report_json_text(x->a->events[x->event].name)
					       : NULL);
	return root;
}

void callpaths_json_procedure(const struct callpath_procedure *p, struct json_object *o)
{
	static const char *const kinds[] = { "procedure", "inlined", "no symbol", "end" };
	bool named = p->kind == CALLPATH_PROCEDURE || p->kind == CALLPATH_INLINED;
	bool bucket = p->image && p->image->kind == PROFDB_NAMED;

	report_json_procedure(o, named ? p->name : NULL);
	json_object_object_add(o, "label", report_json_text(demangle_shown(p->name)));
	json_object_object_add(o, "kind", json_object_new_string(kinds[p->kind]));
	json_object_object_add(
		o, "image",
		p->image ? report_json_text(bucket ? p->image->name : callpath_image_name(p))
			 : NULL);
	report_json_build_id(o, p->group && p->group->nr_images > 1 ? NULL : p->image);
}
