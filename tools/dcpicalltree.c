/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpicalltree: which calls led to the samples, as a tree from either end. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "callpaths.h"
#include "terminal.h"
#include "tools.h"

static struct select sel;
static struct callpaths_options opt;
static int64_t depth;
static double cut = 1;
static bool up;

static const struct base_opt options[] = {
	SELECT_OPTIONS(sel),
	SELECT_OPTION_UNCHECKED(sel),
	CALLPATHS_OPTIONS(opt),
	{ "up", BASE_OPT_FLAG, &up, NULL,
	  "Bottom-up: the procedures with most samples, and below each its callers.", 0, 0 },
	{ "cut", BASE_OPT_DOUBLE, &cut, "PERCENT",
	  "Leave out what has less of all samples shown (default: 1).", 0, 100 },
	{ "depth", BASE_OPT_INT, &depth, "N", "At most N calls deep (default: all).", 1, 1000000 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpicalltree",
	.summary = "show the calls that led to samples as a tree",
	.operands = "[PROCEDURE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpicalltree -image /usr/bin/node",
			  "Where the time of a program went, from its beginning on." },
			{ "dcpicalltree -up -cut 2",
			  "The hottest procedures of the whole system, and the ways that lead "
			  "there." },
			{ "dcpicalltree -up memcpy", "All ways to a procedure." },
			{ "dcpicalltree -up -s wait",
			  "What threads waited for, and where (dcpid -wait)." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

/* A line has room for about so many bytes of a name. */
enum { NAME_LEN = 60 };

/* A line: a node, or several children of it that are left out. */
struct line {
	uint32_t node;
	uint32_t depth; /* number of its callers */
	uint32_t level; /* of indentation */
	bool sole;	/* the line above called nothing else */
	/* Number of children left out, and the first of them in children.child; 0: the node itself.
	 */
	uint32_t others, from;
};

struct calltree {
	struct callpaths x;
	struct callpath_nodes other; /* another tree than the whole one */
	const struct callpath_nodes *n;
	struct callpath_children children;
	struct line *waiting, *lines;
	size_t nr_waiting, cap_waiting, nr, cap;
};

/* ---- lines ----------------------------------------------------------------------------------- */

static uint64_t number(const struct calltree *c, const uint64_t *counts, uint32_t node)
{
	return counts[node * c->n->nr_events + c->x.event];
}

static bool is_small(const struct calltree *c, uint64_t count)
{
	return (double)count * 100 < cut * (double)callpaths_total(&c->x);
}

/* Samples of the children that are left out. */
static uint64_t sum_others(const struct calltree *c, const struct line *l, size_t event)
{
	uint64_t sum = 0;

	for (uint32_t i = l->from; i < l->from + l->others; i++)
		sum += c->n->total[c->children.child[i] * c->n->nr_events + event];
	return sum;
}

/* Children with samples stand first. */
static uint32_t nr_sampled(const struct calltree *c, uint32_t node, uint32_t from)
{
	uint32_t end = c->children.first[node + 1];

	while (end > from && !number(c, c->n->total, c->children.child[end - 1]))
		end--;
	return end - from;
}

static uint32_t first_other(const struct calltree *c, uint32_t node, uint32_t at_depth)
{
	uint32_t i = c->children.first[node];

	if (depth && at_depth >= (uint64_t)depth)
		return i;
	while (i < c->children.first[node + 1] && number(c, c->n->total, c->children.child[i]) &&
	       !is_small(c, number(c, c->n->total, c->children.child[i])))
		i++;
	return i;
}

static int wait_for(struct calltree *c, struct line line)
{
	int r = base_grow(&c->waiting, &c->cap_waiting, c->nr_waiting + 1, sizeof(*c->waiting));

	if (r >= 0)
		c->waiting[c->nr_waiting++] = line;
	return r;
}

/* The children of a line that was taken; what comes first is put on the stack last. */
static int expand(struct calltree *c, const struct line *l)
{
	uint32_t first = c->children.first[l->node], end = first_other(c, l->node, l->depth);
	uint32_t next = l->node ? l->depth + 1 : 1, level = l->node ? l->level + 1 : 0;
	struct line rest = { l->node, next, level, false, nr_sampled(c, l->node, end), end };
	bool has_rest = rest.others && !is_small(c, sum_others(c, &rest, c->x.event));
	bool sole = l->node && end == first + 1 && !has_rest &&
		    (up || is_small(c, number(c, c->n->self, l->node)));
	int r = 0;

	if (has_rest)
		r = wait_for(c, rest);
	while (end-- > first && r >= 0)
		r = wait_for(c, (struct line){ c->children.child[end], next,
					       sole && l->sole ? l->level : level, sole, 0, 0 });
	return r;
}

static int make_lines(struct calltree *c)
{
	int r = expand(c, &(struct line){ 0 });

	while (c->nr_waiting && r >= 0) {
		struct line l = c->waiting[--c->nr_waiting];

		r = base_grow(&c->lines, &c->cap, c->nr + 1, sizeof(*c->lines));
		if (r < 0)
			break;
		c->lines[c->nr++] = l;
		if (!l.others)
			r = expand(c, &l);
	}
	return r;
}

static int make_tree(struct calltree *c)
{
	int r = 0;

	c->n = &c->x.tree->nodes;
	if (up)
		r = callpath_above(c->x.tree, c->x.wanted, &c->other);
	else if (c->x.wanted)
		r = callpath_below(c->x.tree, c->x.wanted, &c->other);
	if (up || c->x.wanted)
		c->n = &c->other;
	if (r >= 0)
		r = callpath_children_make(c->x.tree, c->n, c->x.event, &c->children);
	return r < 0 ? r : make_lines(c);
}

/* ---- text ------------------------------------------------------------------------------------ */

static const struct callpath_procedure *procedure_of(const struct calltree *c, uint32_t node)
{
	return &c->x.tree->procedures[c->n->v[node].procedure];
}

/* Is the procedure among those that lead to the node? */
static bool is_again(const struct calltree *c, uint32_t node)
{
	uint32_t at = c->n->v[node].parent, p = c->n->v[node].procedure;

	while (at != CALLPATH_NO_NODE && c->n->v[at].procedure != p)
		at = c->n->v[at].parent;
	return c->n->v[node].recursive || at != CALLPATH_NO_NODE;
}

/* An image is named where it is another one than that of the line above. */
static const char *new_image(const struct calltree *c, uint32_t node)
{
	const char *image = callpath_image_name(procedure_of(c, node));
	uint32_t parent = c->n->v[node].parent;

	return parent && strcmp(callpath_image_name(procedure_of(c, parent)), image) == 0 ? ""
											  : image;
}

/* Columns of a terminal behind the numbers; 0: there is no limit. */
static size_t room(void)
{
	enum { LEAST = 40 };
	size_t taken = up ? 19 : 29, all = terminal_wide ? 0 : terminal_columns();

	return !all ? 0 : all > taken + LEAST ? all - taken : LEAST;
}

/* Marks of the levels, of which the innermost are seen where all would leave no room for a name.
 * Returns the columns that are left, as room() has them. */
static size_t print_levels(const struct line *l)
{
	enum { NAME_LEAST = 24 };
	size_t left = room(), most = (left - NAME_LEAST) / 2, first = 0;

	if (left && l->level > most)
		first = l->level - most;
	for (size_t i = first; i < l->level; i++)
		fputs(first && i == first	     ? "\xe2\x80\xa6 "
		      : i + 1 == l->level && l->sole ? "> "
						     : "| ",
		      stdout);
	return left ? left - 2 * (l->level - first) : 0;
}

/* A text from outside in at most @width columns. */
static void print_short(const char *text, size_t width)
{
	char *copy = strdup(text), *fit = copy ? demangle_shorten(table_clean(copy), width) : NULL;

	fputs(fit ? fit : "?", stdout);
	free(copy);
	free(fit);
}

/* @left: as of print_levels. The image is shortened before the name, which is read and pasted. */
static void print_node(struct calltree *c, uint32_t node, size_t left)
{
	enum { NAME_LEAST = 12, IMAGE_LEAST = 12 };
	const char *name = callpaths_name(&c->x, c->n->v[node].procedure, NAME_LEN);
	const char *image = base_path_name(new_image(c, node));
	const char *how = c->n->v[node].inlined
				  ? is_again(c, node) ? " (inlined) (recursive)" : " (inlined)"
			  : is_again(c, node) ? " (recursive)"
					      : "";
	size_t taken = strlen(how) + (*image ? 4 : 0);
	size_t of_image = base_text_width(image), of_name = base_text_width(name);

	if (!left || of_name + of_image + taken <= left) {
		of_name = of_image = SIZE_MAX;
	} else {
		left = left > taken ? left - taken : 0;
		if (of_image > IMAGE_LEAST)
			of_image = left > of_name + IMAGE_LEAST ? left - of_name : IMAGE_LEAST;
		/* What is no procedure's name is short, and says nothing in part. */
		if (procedure_of(c, node)->kind <= CALLPATH_INLINED)
			of_name = left > of_image + NAME_LEAST ? left - of_image : NAME_LEAST;
	}
	print_short(name, of_name);
	fputs(how, stdout);
	if (!*image)
		return;
	fputs("  [", stdout);
	print_short(image, of_image);
	putchar(']');
}

static void print_others(const struct line *l)
{
	printf("(%" PRIu32 " other%s%s)", l->others, l->others == 1 ? "" : "s",
	       depth && l->depth > depth ? ", deeper" : "");
}

static uint64_t samples_of(const struct calltree *c, const struct line *l, size_t event)
{
	return l->others ? sum_others(c, l, event) : c->n->total[l->node * c->n->nr_events + event];
}

static void print_line(struct calltree *c, const struct line *l)
{
	uint64_t all = callpaths_total(&c->x), count = samples_of(c, l, c->x.event);
	size_t left;

	printf("%6.2f%% %9" PRIu64, 100.0 * (double)count / (double)all, count);
	if (!up && !l->others && number(c, c->n->self, l->node))
		printf(" %9" PRIu64 "  ", number(c, c->n->self, l->node));
	else
		printf("%*s", up ? 2 : 12, "");
	left = print_levels(l);
	if (l->others)
		print_others(l);
	else
		print_node(c, l->node, left);
	putchar('\n');
}

static void print_text(struct calltree *c)
{
	if (!opt.no_header)
		callpaths_head(&c->x, stdout);
	if (!c->nr)
		return;
	if (!opt.no_header)
		printf("\n%7s %9s%s  procedure%s\n", "%", "samples", up ? "" : "      self",
		       up ? ", below it its callers" : ", below it what it called");
	for (size_t i = 0; i < c->nr; i++)
		print_line(c, &c->lines[i]);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_line(const struct calltree *c, const struct line *l)
{
	struct json_object *o = json_object_new_object();
	uint64_t count[ANALYSIS_NR_EVENTS];

	json_object_object_add(o, "depth", json_object_new_uint64(l->depth));
	json_object_object_add(o, "others", l->others ? json_object_new_uint64(l->others) : NULL);
	for (size_t e = 0; e < c->x.a->nr_events; e++)
		count[e] = samples_of(c, l, e);
	json_object_object_add(o, "samples", report_json_counts(c->x.a, count));
	if (l->others)
		return o;
	json_object_object_add(o, "self",
			       report_json_counts(c->x.a, c->n->self + l->node * c->n->nr_events));
	callpaths_json_procedure(procedure_of(c, l->node), o);
	json_object_object_add(o, "inlined", json_object_new_boolean(c->n->v[l->node].inlined));
	json_object_object_add(o, "recursive", json_object_new_boolean(is_again(c, l->node)));
	return o;
}

static int print_json(const struct calltree *c, struct base_err *err)
{
	struct json_object *root = callpaths_json_head(&c->x, "dcpicalltree/1");
	struct json_object *rows = json_object_new_array();
	int r;

	for (size_t i = 0; i < c->nr; i++)
		json_object_array_add(rows, json_line(c, &c->lines[i]));
	json_object_object_add(root, "up", json_object_new_boolean(up));
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "total", report_json_counts(c->x.a, c->x.tree->nodes.total));
	r = report_json_print(root, c->x.a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

static void release(struct calltree *c)
{
	callpath_children_release(&c->children);
	callpath_nodes_release(&c->other);
	free(c->waiting);
	free(c->lines);
	callpaths_close(&c->x);
}

static int run(int nr, char **what, struct base_err *err)
{
	const struct callpath_how how = { .inlined = !opt.no_inline,
					  .fold = true,
					  .check = !sel.unchecked };
	struct calltree c = { 0 };
	int code = BASE_EXIT_OK, r = callpaths_open(&sel, &opt, &how, nr, what, &c.x, err);

	if (r >= 0 && c.x.a->nr_events)
		r = make_tree(&c);
	if (r == -ENOMEM)
		base_fail_errno(err, r, "cannot make the tree");
	if (r >= 0 && sel.json)
		r = print_json(&c, err);
	else if (r >= 0)
		print_text(&c);
	if (c.x.a)
		code = callpaths_problems(cmd.name, &c.x, r, stderr);
	release(&c);
	return r < 0 ? r : code;
}

static int dcpicalltree_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}

const struct tool dcpicalltree_tool = { .cmd = &cmd, .main = dcpicalltree_main };
