/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks callers of call paths against their code, one image after the other. */
#include <errno.h>
#include <stdlib.h>

#include "callpath_internal.h"
#include "height.h"

/* A frame and its caller's, which is to be checked. */
struct edge {
	uint32_t image;	 /* of the caller: its number in the paths */
	uint32_t callee; /* procedure */
	uint32_t node;
	bool interpreter; /* the caller may have pushed its return address itself */
	uint64_t off;
};

struct check {
	struct callpath_tree *t;
	const struct frames *frames;
	uint8_t *verdict;
	bool *walked;	    /* by procedure: some path goes on to its caller */
	struct edge *edges; /* ascending by image, offset and callee */
	size_t nr;
	/* The image of the callers that are checked now. */
	struct analysis_image *ai;
	struct image *img;
	struct insn_decoder *decoder;
	struct height *height; /* NULL: none was needed, or there is none for this machine */
	uint64_t asked; /* the last routine of that image that code was looked at for, or 0 */
	bool pushes;	/* it pushes return addresses by hand */
};

static int by_place(const void *pa, const void *pb)
{
	const struct edge *a = pa, *b = pb;

	if (a->image != b->image)
		return a->image > b->image ? 1 : -1;
	if (a->off != b->off)
		return a->off > b->off ? 1 : -1;
	return (a->callee > b->callee) - (a->callee < b->callee);
}

/* The kernel's own unwinder answers for its frames, and its code changes while it runs. */
static bool in_kernel(const struct analysis_image *ai)
{
	return ai && ai->kind == PROFDB_KERNEL;
}

/* The procedure itself, in which others may be inlined. */
static uint32_t procedure_of(const struct check *c, size_t node)
{
	const struct frame_chain *chain = &c->frames->of[node];

	return c->frames->procedures[chain->first + chain->nr - 1];
}

static void find_walked(struct check *c, const struct profdb_callpaths *paths)
{
	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(paths); i++)
		if (profdb_callpaths_node(paths, i).parent >= PROFDB_NR_CALLPATH_ENDS)
			c->walked[procedure_of(c, i)] = true;
}

/* An interpreter whose code its process wrote pushes what is returned to, and calls by a jump. One
 * whose frames have no rules ends each path. */
static bool is_interpreter(const struct check *c, size_t node,
			   const struct profdb_callpath_node *caller)
{
	const struct analysis_image *ai = c->frames->images[caller->frame.image];

	return caller->parent == PROFDB_CALLPATH_NO_ROWS && ai && ai->kind == PROFDB_DYNAMIC &&
	       !c->walked[procedure_of(c, node)];
}

static void list_edges(struct check *c, const struct profdb_callpaths *paths)
{
	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(paths); i++) {
		const struct profdb_callpath_node n = profdb_callpaths_node(paths, i);
		const struct frame_chain *callee = &c->frames->of[i];
		const uint32_t procedure = procedure_of(c, i);
		struct profdb_callpath_node caller;

		if (n.parent < PROFDB_NR_CALLPATH_ENDS)
			continue;
		caller = profdb_callpaths_node(paths, n.parent);
		/* The kernel calls a signal's handler, and so that what it has interrupted. */
		if (callee->sigreturn || c->frames->of[n.parent].sigreturn ||
		    in_kernel(c->t->procedures[procedure].image))
			continue;
		c->edges[c->nr++] =
			(struct edge){ .image = caller.frame.image,
				       .callee = procedure,
				       .node = (uint32_t)i,
				       .interpreter = is_interpreter(c, n.parent, &caller),
				       .off = caller.frame.off };
	}
	qsort(c->edges, c->nr, sizeof(*c->edges), by_place);
}

/* ---- one image ------------------------------------------------------------------------------- */

static int no_row(void *ctx, uint64_t addr, const struct unwind_rule *rule)
{
	(void)ctx;
	(void)addr;
	(void)rule;
	return 0;
}

static bool is_of_parts(struct check *c, const struct image_symbol *s)
{
	struct height_report report = { .proof = HEIGHT_BY_NOTHING };
	uint8_t *code = s->len <= HEIGHT_MAX_LEN ? malloc(s->len + 1) : NULL;

	if (!c->height && height_open(image_machine(c->img), &c->height) < 0)
		c->height = NULL;
	if (code && c->height && image_bytes(c->img, s->vaddr, code, s->len) == s->len &&
	    height_rows(c->height, code, s->len, s->vaddr, no_row, NULL, &report) < 0)
		report.proof = HEIGHT_BY_NOTHING;
	free(code);
	return report.proof == HEIGHT_BY_PARTS;
}

/* HotSpot's interpreter has rules, and calls as is said above: no call stands before the places
 * that are returned to. */
static bool pushes_returns(struct check *c, uint64_t vaddr)
{
	const struct image_symbol *s =
		c->ai->kind == PROFDB_DYNAMIC ? image_symbol_at(c->img, vaddr) : NULL;

	if (!s)
		return false;
	if (s->vaddr != c->asked)
		c->pushes = is_of_parts(c, s);
	c->asked = s->vaddr;
	return c->pushes;
}

static enum called check_edge(struct check *c, const struct edge *e)
{
	const struct callpath_procedure *p = &c->t->procedures[e->callee];
	const struct image_symbol to = { .name = p->name, .vaddr = p->vaddr, .len = p->len };
	const bool known = p->kind == CALLPATH_PROCEDURE, here = p->image == c->ai;
	enum called result;
	uint64_t vaddr;

	if (image_vaddr(c->img, e->off, &vaddr) < 0)
		return CALLED_UNCHECKED;
	result = analysis_called(c->decoder, c->img, vaddr, known ? &to : NULL, here,
				 c->ai->kind == PROFDB_DYNAMIC);
	return result == CALLED_CONTRADICTED && pushes_returns(c, vaddr) ? CALLED_UNCHECKED
									 : result;
}

static void check_edges(struct check *c, const struct edge *first, size_t nr)
{
	enum called result = CALLED_UNCHECKED;

	for (size_t i = 0; i < nr; i++) {
		if (i == 0 || by_place(&first[i], &first[i - 1]) != 0)
			result = check_edge(c, &first[i]);
		c->verdict[first[i].node] = first[i].interpreter && result == CALLED_CONTRADICTED
						    ? CALLED_UNCHECKED
						    : (uint8_t)result;
	}
}

/* Callers in an image that is not here stay unchecked. */
static void check_image(struct check *c, const struct edge *first, size_t nr)
{
	c->img = NULL;
	c->decoder = NULL;
	c->asked = 0;
	if (!c->ai || in_kernel(c->ai) || analysis_image_open(c->t->a, c->ai, &c->img, NULL) < 0)
		return;
	if (insn_decoder_open(image_machine(c->img), &c->decoder, NULL) >= 0)
		check_edges(c, first, nr);
	insn_decoder_close(c->decoder);
	image_close(c->img);
}

int callpath_check(struct callpath_tree *t, const struct profdb_callpaths *paths,
		   const struct frames *frames, uint8_t *verdict)
{
	struct check c = { .t = t, .frames = frames, .verdict = verdict };
	size_t nr;

	c.edges = calloc(profdb_callpaths_nr_nodes(paths) + 1, sizeof(*c.edges));
	c.walked = calloc(t->nr_procedures + 1, sizeof(*c.walked));
	if (!c.edges || !c.walked) {
		free(c.edges);
		free(c.walked);
		return -ENOMEM;
	}
	find_walked(&c, paths);
	list_edges(&c, paths);
	for (size_t i = 0; i < c.nr; i += nr) {
		const uint32_t image = c.edges[i].image;

		for (nr = 1; i + nr < c.nr && c.edges[i + nr].image == image;)
			nr++;
		c.ai = frames->images[image];
		check_image(&c, &c.edges[i], nr);
	}
	height_close(c.height);
	free(c.edges);
	free(c.walked);
	return 0;
}
