/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks frames of call paths against the code: does a caller's call lead to its callee? */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callpath_internal.h"
#include "height.h"

/* ---- a call ---------------------------------------------------------------------------------- */

enum {
	CALL_MAX = 9,	     /* bytes of a call, with its prefixes */
	JUMPS_MAX = 4,	     /* procedures that jump on, one to the next */
	PROCEDURES_MAX = 16, /* that are looked through for that */
	CODE_MAX = 64 << 10, /* bytes of one */
};

/* The search for a way from a call's target to the procedure. */
struct search {
	struct insn_decoder *d;
	struct image *caller;
	const struct image_symbol *to;
	bool here;
	uint64_t seen[PROCEDURES_MAX];
	size_t nr_seen;
};

/* A stub of the linker's, which has the name of what it jumps to: "NAME@plt". */
static size_t stub_name_len(const struct image_symbol *s)
{
	const char *at = strstr(s->name, "@plt");

	return at ? (size_t)(at - s->name) : 0;
}

static enum called leads_on(struct search *s, uint64_t target, unsigned int depth);

/* Where the instruction @i of procedure @p goes, outside of @p. */
static enum called goes_on(struct search *s, const struct image_symbol *p, const struct insn *i,
			   unsigned int depth)
{
	uint64_t next = i->vaddr + i->len;

	if (i->flow == INSN_INDIRECT_JUMP)
		return CALLED_UNCHECKED;
	if ((i->flow == INSN_JUMP || i->flow == INSN_BRANCH) && i->target - p->vaddr >= p->len)
		return leads_on(s, i->target, depth + 1);
	/* The last one of a procedure that runs into the next. */
	if (next - p->vaddr >= p->len && i->flow <= INSN_BRANCH)
		return leads_on(s, next, depth + 1);
	return CALLED_CONTRADICTED;
}

/* The jumps of procedure @p from @vaddr on. */
static enum called jumps_on(struct search *s, const struct image_symbol *p, uint64_t vaddr,
			    unsigned int depth)
{
	const uint64_t left = p->vaddr + p->len - vaddr;
	uint8_t *code = left <= CODE_MAX ? malloc((size_t)left) : NULL;
	size_t len = code ? image_bytes(s->caller, vaddr, code, (size_t)left) : 0, at = 0;
	enum called result = len == left ? CALLED_CONTRADICTED : CALLED_UNCHECKED;

	while (at < len && result != CALLED_AGREES) {
		enum called one;
		struct insn i;

		insn_decode_flow(s->d, code + at, len - at, vaddr + at, &i);
		at += i.len;
		one = goes_on(s, p, &i, depth);
		if (one < result)
			result = one;
	}
	free(code);
	return result;
}

static enum called leads_on(struct search *s, uint64_t target, unsigned int depth)
{
	const struct image_symbol *p = image_symbol_at(s->caller, target);
	size_t stub = p ? stub_name_len(p) : 0;

	if (s->here && target - s->to->vaddr < s->to->len)
		return CALLED_AGREES;
	if (stub)
		return strlen(s->to->name) == stub && strncmp(s->to->name, p->name, stub) == 0
			       ? CALLED_AGREES
			       : CALLED_UNCHECKED;
	if (!p || depth == JUMPS_MAX || s->nr_seen == PROCEDURES_MAX)
		return CALLED_UNCHECKED;
	for (size_t i = 0; i < s->nr_seen; i++)
		if (s->seen[i] == target)
			return CALLED_CONTRADICTED;
	s->seen[s->nr_seen++] = target;
	return jumps_on(s, p, target, depth);
}

/* The verdict by the one instruction that would be the call. */
static enum called by_call(struct search *s, const struct insn *call, bool patched)
{
	enum called result;

	if (call->flow == INSN_INDIRECT_CALL)
		return CALLED_AGREES;
	if (!s->to)
		return CALLED_UNCHECKED;
	s->nr_seen = 0;
	result = leads_on(s, call->target, 0);
	return patched && result == CALLED_CONTRADICTED ? CALLED_UNCHECKED : result;
}

enum called analysis_called(struct insn_decoder *d, struct image *caller, uint64_t last,
			    const struct image_symbol *to, bool here, bool patched)
{
	struct search s = { .d = d, .caller = caller, .to = to, .here = here };
	enum called result = CALLED_CONTRADICTED;
	uint8_t code[CALL_MAX];

	if (image_bytes(caller, last, code, 1) != 1)
		return CALLED_UNCHECKED;
	/* The bytes before it may be read in several ways: any that is a call may be the one. */
	for (uint32_t len = 1; len <= CALL_MAX && len <= last && result != CALLED_AGREES; len++) {
		const uint64_t start = last + 1 - len;
		enum called one;
		struct insn i;

		if (image_bytes(caller, start, code, len) != len)
			break;
		insn_decode_flow(d, code, len, start, &i);
		if (i.len != len || (i.flow != INSN_CALL && i.flow != INSN_INDIRECT_CALL))
			continue;
		one = by_call(&s, &i, patched);
		if (one < result)
			result = one;
	}
	return result;
}

/* ---- all callers ----------------------------------------------------------------------------- */

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
		if (profdb_callpaths_frame(paths, i).parent >= PROFDB_NR_CALLPATH_ENDS)
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
		const struct profdb_callpath_node n = profdb_callpaths_frame(paths, i);
		const struct frame_chain *callee = &c->frames->of[i];
		struct profdb_callpath_node caller;
		uint32_t procedure;

		if (n.parent < PROFDB_NR_CALLPATH_ENDS)
			continue;
		procedure = procedure_of(c, i);
		caller = profdb_callpaths_frame(paths, n.parent);
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
