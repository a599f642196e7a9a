/* SPDX-License-Identifier: BSD-2-Clause */
/* The tree of calls of a page: nodes with few samples are one with others of the same caller. */
#include <errno.h>
#include <stdlib.h>

#include "callpath.h"
#include "demangle.h"
#include "page_internal.h"

/* A node has about so many bytes, a procedure's name among them. */
enum { NODE_LEN = 40 };

struct calls {
	struct page *p;
	struct callpath_tree *t;
	uint64_t least;	     /* nodes with fewer samples are left out */
	uint32_t *number;    /* indexed by node: its number in the page + 1; 0: left out */
	uint32_t *procedure; /* indexed by procedure: the same */
	uint32_t nr;
};

static uint64_t self_of(const struct calls *c, uint32_t node)
{
	return c->t->nodes.self[node * c->t->nodes.nr_events + c->p->o->event];
}

static uint64_t total_of(const struct calls *c, uint32_t node)
{
	return c->t->nodes.total[node * c->t->nodes.nr_events + c->p->o->event];
}

static size_t nr_above(const struct calls *c, uint64_t least)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < c->t->nodes.nr; i++)
		nr += total_of(c, i) >= least;
	return nr;
}

/* Parents come before their children. */
static void number_nodes(struct calls *c, size_t size)
{
	c->least = 1;
	while (nr_above(c, c->least) > size / NODE_LEN)
		c->least += c->least / 2 + 1;
	for (uint32_t i = 0; i < c->t->nodes.nr; i++)
		if (total_of(c, i) >= c->least)
			c->number[i] = ++c->nr;
}

static void put_ends(const struct calls *c, struct jwrite *j)
{
	jwrite_open(j, "ends", '{');
	for (size_t i = 0; i < PROFDB_NR_CALLPATH_ENDS; i++)
		jwrite_count(j, profdb_callpath_end_text((enum profdb_callpath_end)i),
			     c->t->ends[c->p->o->event * PROFDB_NR_CALLPATH_ENDS + i]);
	jwrite_close(j, '}');
}

/* [name, image, kind] of those that are on a node, in the order of the nodes. */
static void put_procedures(struct calls *c, struct jwrite *j)
{
	uint32_t nr = 0;

	jwrite_open(j, "procedures", '[');
	for (uint32_t i = 0; i < c->t->nodes.nr; i++) {
		uint32_t at = c->t->nodes.v[i].procedure;
		const struct callpath_procedure *p = &c->t->procedures[at];

		if (!c->number[i] || c->procedure[at])
			continue;
		c->procedure[at] = ++nr;
		jwrite_line(j);
		jwrite_open(j, NULL, '[');
		jwrite_text(j, NULL, demangle_shown(p->name));
		jwrite_text(j, NULL, callpath_image_name(p));
		jwrite_count(j, NULL, (uint64_t)p->kind);
		jwrite_close(j, ']');
	}
	jwrite_close(j, ']');
}

/* parent, procedure, own samples, samples of calls that are left out; for each node. */
static int put_nodes(struct calls *c, struct jwrite *j)
{
	uint64_t *lost = calloc(c->t->nodes.nr + 1, sizeof(*lost));

	for (uint32_t i = 1; lost && i < c->t->nodes.nr; i++)
		if (!c->number[i] && c->number[c->t->nodes.v[i].parent])
			lost[c->t->nodes.v[i].parent] += total_of(c, i);
	jwrite_line(j);
	jwrite_open(j, "nodes", '[');
	for (uint32_t i = 0; lost && i < c->t->nodes.nr; i++) {
		const struct callpath_node *n = &c->t->nodes.v[i];

		if (!c->number[i])
			continue;
		jwrite_int(j, NULL, i ? (int64_t)c->number[n->parent] - 1 : -1);
		jwrite_count(j, NULL, c->procedure[n->procedure] - 1);
		jwrite_count(j, NULL, self_of(c, i));
		jwrite_count(j, NULL, lost[i]);
	}
	jwrite_close(j, ']');
	free(lost);
	return lost ? j->r : -ENOMEM;
}

static int put_tree(struct calls *c, struct jwrite *j, size_t size)
{
	int r;

	c->number = calloc(c->t->nodes.nr + 1, sizeof(*c->number));
	c->procedure = calloc(c->t->nr_procedures + 1, sizeof(*c->procedure));
	if (!c->number || !c->procedure)
		return -ENOMEM;
	number_nodes(c, size);
	jwrite_open(j, "paths", '{');
	jwrite_count(j, "number", callpath_paths(c->t, c->p->o->event));
	jwrite_count(j, "without", c->t->alone[c->p->o->event]);
	jwrite_count(j, "least", c->least);
	put_ends(c, j);
	put_procedures(c, j);
	r = put_nodes(c, j);
	jwrite_close(j, '}');
	return r;
}

static int make_tree(struct calls *c, struct base_err *why)
{
	const struct callpath_how how = { .inlined = true,
					  .fold = true,
					  .check = c->p->o->checked };
	struct profdb_callpaths *paths = NULL;
	int r;

	if (analysis_is_part(c->p->a))
		return base_fail(why, -ENOENT,
				 "call paths are not kept by label, workload or minute");
	r = callpath_load(c->p->a, &paths, why);
	if (r >= 0)
		r = callpath_tree_make(c->p->a, paths, &how, &c->t, why);
	profdb_callpaths_free(paths);
	if (r >= 0 && (!c->p->a->nr_events || !callpath_paths(c->t, c->p->o->event)))
		r = base_fail(why, -ENOENT, "no call paths of this event were kept");
	return r;
}

int page_calls(struct page *p, struct jwrite *j, size_t size, struct base_err *err)
{
	struct calls c = { .p = p };
	struct base_err why = { 0 };
	int r = make_tree(&c, &why);

	jwrite_line(j);
	if (r >= 0)
		r = put_tree(&c, j, size);
	else if (r != -ENOMEM)
		jwrite_text(j, "no_paths", why.text);
	free(c.number);
	free(c.procedure);
	callpath_tree_free(c.t);
	return r == -ENOMEM ? base_fail_errno(err, r, "cannot make the tree of calls") : j->r;
}
