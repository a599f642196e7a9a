/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths as a file: a header and footer as a profile's, and between them images with their
 * frames, and the tree. docs/format/callpaths.md */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

static const char images_tag[] = "IMGS", tree_tag[] = "TREE";

/* Frames of a file, ascending by image and offset; nodes name them by their index. */
struct frames {
	struct profdb_frame *v;
	size_t nr, cap;
};

struct reader {
	struct profdb_callpaths *c;
	struct frames frames;
	bool has_images, has_workloads, has_tree;
	struct base_err *err;
};

/* ---- reading images and frames --------------------------------------------------------------- */

static int add_frame(struct frames *f, uint32_t image, uint64_t off)
{
	if (base_grow(&f->v, &f->cap, f->nr + 1, sizeof(*f->v)) < 0)
		return -ENOMEM;
	f->v[f->nr++] = (struct profdb_frame){ image, off };
	return 0;
}

/* How many, then of each the gap to the one before. */
static int get_frames(struct reader *r, const struct profdb_payload *s, size_t *pos)
{
	uint64_t nr, gap, off = 0;
	int e = profdb_varint_get(s, pos, &nr);

	for (uint64_t i = 0; e >= 0 && i < nr; i++) {
		e = profdb_varint_get(s, pos, &gap);
		if (e < 0 || (i && !gap) || base_add_overflow(off, gap, &off))
			return -DCPI_EFORMAT;
		e = add_frame(&r->frames, (uint32_t)r->c->images.nr - 1, off);
	}
	return e;
}

static int take_images(struct reader *r, const struct profdb_payload *s)
{
	size_t pos = 0, at = 0;
	int e = r->has_images ? -DCPI_EFORMAT : 0;

	r->has_images = true;
	while (e >= 0 && pos < s->len) {
		at = pos;
		e = profdb_image_table_get(&r->c->images, s, &pos);
		if (e >= 0)
			e = get_frames(r, s, &pos);
	}
	return e < 0 ? base_fail_errno(r->err, e, "images of call paths, byte %zu", at) : 0;
}

/* Paths are kept by program and user: two that differ in the rest alone would be one workload. */
static bool are_whole(const struct profdb_workloads *w)
{
	for (size_t i = 0; i < w->nr; i++)
		if (w->v[i].pid || *w->v[i].thread || w->v[i].processes)
			return false;
	return true;
}

static int take_workloads(struct reader *r, const struct profdb_payload *s)
{
	bool first = !r->has_workloads && !r->has_tree;
	size_t at = 0;
	int e = first ? profdb_workloads_get(r->c->whose, s, &at) : -DCPI_EFORMAT;

	r->has_workloads = true;
	e = e < 0 || are_whole(r->c->whose) ? e : -DCPI_EFORMAT;
	return e < 0 ? base_fail_errno(r->err, e, "workloads of call paths, byte %zu", at) : 0;
}

/* ---- reading the tree ------------------------------------------------------------------------ */

/* Where the next node stands. */
struct place {
	uint32_t parent; /* node below which it does */
	bool has_before; /* it has a sibling before it, of frame number: */
	uint64_t before;
};

/* The node before is the parent (@up 0), its sibling (1), or one of so many levels higher. */
static int climb(const struct profdb_calltree *t, const uint32_t *numbers, uint32_t last,
		 uint64_t up, struct place *out)
{
	*out = (struct place){ .parent = last };
	for (; up; up--) {
		if (out->parent < PROFDB_NR_CALLPATH_ENDS)
			return -DCPI_EFORMAT;
		out->has_before = true;
		out->before = numbers[out->parent];
		out->parent = t->nodes[out->parent].parent;
	}
	return 0;
}

static int get_counts(struct reader *r, const struct profdb_payload *s, size_t *pos,
		      uint64_t *count)
{
	struct profdb_profile *h = r->c->header;
	bool any = false;

	for (size_t i = 0; i < h->nr_events; i++) {
		int e = profdb_varint_get(s, pos, &count[i]);

		if (e < 0 || base_add_overflow(h->events[i].sum, count[i], &h->events[i].sum))
			return -DCPI_EFORMAT;
		any = any || count[i];
	}
	return any ? 0 : -DCPI_EFORMAT;
}

/* The node of number @frame; workloads are numbered behind the frames, and stand below ends. */
static int get_frame(const struct reader *r, uint64_t frame, uint32_t parent, bool counted,
		     struct profdb_callnode *out)
{
	uint64_t workload = frame - r->frames.nr;

	if (frame < r->frames.nr) {
		*out = (struct profdb_callnode){ parent, r->frames.v[frame].image,
						 r->frames.v[frame].off };
		return 0;
	}
	*out = (struct profdb_callnode){ parent, PROFDB_CALLPATH_WORKLOAD, workload };
	return workload < r->c->whose->nr && parent < PROFDB_NR_CALLPATH_ENDS && !counted
		       ? 0
		       : -DCPI_EFORMAT;
}

/* How far up, and whether it has counts; its frame, or the gap to that of the sibling before. */
static int get_node(struct reader *r, const struct profdb_payload *s, size_t *pos, uint32_t last,
		    uint32_t **numbers, size_t *cap)
{
	struct profdb_calltree *t = &r->c->tree;
	uint64_t head, frame, count[PROFDB_NR_EVENTS] = { 0 };
	struct profdb_callnode node;
	struct place p;
	int e = profdb_varint_get(s, pos, &head);

	if (e >= 0)
		e = profdb_varint_get(s, pos, &frame);
	if (e >= 0)
		e = climb(t, *numbers, last, head >> 1, &p);
	if (e < 0 || (p.has_before && !frame) || base_add_overflow(frame, p.before, &frame) ||
	    get_frame(r, frame, p.parent, head & 1, &node) < 0)
		return -DCPI_EFORMAT;
	if (head & 1)
		e = get_counts(r, s, pos, count);
	if (e >= 0)
		e = base_grow(numbers, cap, t->nr + 1, sizeof(**numbers));
	if (e < 0)
		return e;
	(*numbers)[t->nr] = (uint32_t)frame;
	return profdb_calltree_append(t, &node, count, r->c->header->nr_events);
}

/* The nodes below each end: how many, then they, each behind its parent. */
static int get_nodes(struct reader *r, const struct profdb_payload *s, size_t *pos)
{
	uint32_t *numbers = NULL;
	size_t cap = 0;
	uint64_t nr;
	int e = 0;

	for (uint32_t end = 0; e >= 0 && end < PROFDB_NR_CALLPATH_ENDS; end++) {
		uint32_t last = end;

		e = profdb_varint_get(s, pos, &nr);
		for (; e >= 0 && nr; nr--) {
			e = get_node(r, s, pos, last, &numbers, &cap);
			last = (uint32_t)r->c->tree.nr - 1;
		}
	}
	free(numbers);
	return e < 0 ? e : *pos == s->len ? 0 : -DCPI_EFORMAT;
}

static int take_tree(struct reader *r, const struct profdb_payload *s)
{
	struct profdb_profile *h = r->c->header;
	size_t pos = 0;
	int e = r->has_tree || !r->has_images ? -DCPI_EFORMAT : 0;

	r->has_tree = true;
	if (e >= 0)
		e = profdb_calltree_widen(&r->c->tree, h->nr_events);
	if (e >= 0)
		e = get_nodes(r, s, &pos);
	return e < 0 ? base_fail_errno(r->err, e, "tree of call paths, byte %zu", pos) : 0;
}

/* ---- reading a file -------------------------------------------------------------------------- */

static int take_section(struct reader *r, const struct profdb_payload *s)
{
	if (profdb_section_is(s, images_tag))
		return take_images(r, s);
	if (profdb_section_is(s, PROFDB_WORKLOADS_TAG))
		return take_workloads(r, s);
	if (profdb_section_is(s, tree_tag))
		return take_tree(r, s);
	return profdb_section_keep(r->c->header, s, r->err);
}

static int check_totals(const struct reader *r, const struct profdb_payload *foot)
{
	const struct profdb_profile *h = r->c->header;

	if (!r->has_tree)
		return base_fail(r->err, -DCPI_EFORMAT, "no section '%s': it holds no call paths",
				 tree_tag);
	if (profdb_get64(foot->data) != r->c->tree.nr)
		return base_fail(r->err, -DCPI_EFORMAT, "footer tells of %llu nodes, not %zu",
				 (unsigned long long)profdb_get64(foot->data), r->c->tree.nr);
	for (size_t i = 0; i < h->nr_events; i++)
		if (profdb_get64(foot->data + 8 + 8 * i) != h->events[i].sum)
			return base_fail(r->err, -DCPI_EFORMAT, "counts of '%s' do not sum",
					 h->events[i].name);
	return 0;
}

static int take_sections(struct reader *r, const uint8_t *file, size_t len, size_t pos)
{
	struct profdb_payload foot, s;
	int e = profdb_format1_footer(file, len, pos, r->c->header->nr_events, &foot, r->err);

	while (e >= 0 && (e = profdb_section_next(file, len, &pos, &s, r->err)) >= 0 &&
	       !profdb_section_is(&s, "FOOT"))
		e = take_section(r, &s);
	return e < 0 ? e : check_totals(r, &foot);
}

static int take_file(struct reader *r, const void *data, size_t len)
{
	size_t binary;
	int e = profdb_whole_header(&profdb_whole_callpaths, data, len, &r->c->header, &binary,
				    r->err);

	return e < 0 ? e : take_sections(r, data, len, binary);
}

int profdb_callpaths_parse(const void *data, size_t len, struct profdb_callpaths **out,
			   struct base_err *err)
{
	struct reader r = { .c = profdb_callpaths_new(), .err = err };
	int e;

	*out = NULL;
	if (!r.c)
		return base_fail_errno(err, -ENOMEM, "cannot read call paths");
	e = take_file(&r, data, len);
	free(r.frames.v);
	if (e < 0) {
		profdb_callpaths_free(r.c);
		return e;
	}
	*out = r.c;
	return 0;
}

int profdb_callpaths_parse_shown(const struct base_buf *bytes, const char *shown,
				 struct profdb_callpaths **out, struct base_err *err)
{
	struct base_err why = { 0 };
	int r = profdb_callpaths_parse(bytes->data, bytes->len, out, &why);

	if (r < 0)
		base_fail(err, r, "cannot read call paths '%s': %s", shown, why.text);
	if (r < 0 && why.hint[0])
		base_hint(err, "%s", why.hint);
	return r;
}

int profdb_callpaths_read(const char *path, struct profdb_callpaths **out, struct base_err *err)
{
	struct base_buf buf = { 0 };
	int r = base_file_read(AT_FDCWD, path, PROFDB_FILE_MAX, &buf, err);

	*out = NULL;
	if (r >= 0)
		r = profdb_callpaths_parse_shown(&buf, path, out, err);
	base_buf_release(&buf);
	return r;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Arrays have for each node: the number of its frame, its first child and the next one of its
 * parent (0: none), children ascending by frame. */
struct order {
	uint32_t *frame, *child, *next;
	struct frames frames;
};

static void order_release(struct order *o)
{
	free(o->frame);
	free(o->child);
	free(o->next);
	free(o->frames.v);
}

/* Nodes by image and offset, workloads last: @v and @space are of @t->nr. */
static struct base_sort_item *by_frame(const struct profdb_calltree *t, struct base_sort_item *v,
				       struct base_sort_item *space)
{
	size_t nr = t->nr - PROFDB_NR_CALLPATH_ENDS;
	struct base_sort_item *sorted;

	for (size_t i = 0; i < nr; i++) {
		const struct profdb_callnode *n = &t->nodes[i + PROFDB_NR_CALLPATH_ENDS];

		v[i] = (struct base_sort_item){ n->off, n };
	}
	sorted = base_sort(v, space, nr);
	for (size_t i = 0; i < nr; i++)
		sorted[i].key = ((const struct profdb_callnode *)sorted[i].of)->image;
	return base_sort(sorted, sorted == v ? space : v, nr);
}

static int number_frames(const struct profdb_calltree *t, const struct base_sort_item *sorted,
			 struct order *o)
{
	for (size_t i = 0; i < t->nr - PROFDB_NR_CALLPATH_ENDS; i++) {
		const struct profdb_callnode *n = sorted[i].of, *last = i ? sorted[i - 1].of : NULL;

		if (n->image == PROFDB_CALLPATH_WORKLOAD) {
			o->frame[n - t->nodes] = (uint32_t)(o->frames.nr + n->off);
			continue;
		}
		if (!last || last->image != n->image || last->off != n->off)
			if (add_frame(&o->frames, n->image, n->off) < 0)
				return -ENOMEM;
		o->frame[n - t->nodes] = (uint32_t)o->frames.nr - 1;
	}
	return 0;
}

/* From the last frame down, each in front of its siblings. */
static void link_children(const struct profdb_calltree *t, const struct base_sort_item *sorted,
			  struct order *o)
{
	for (size_t i = t->nr - PROFDB_NR_CALLPATH_ENDS; i-- > 0;) {
		const struct profdb_callnode *n = sorted[i].of;
		uint32_t node = (uint32_t)(n - t->nodes);

		o->next[node] = o->child[n->parent];
		o->child[n->parent] = node;
	}
}

static int make_order(const struct profdb_calltree *t, struct order *o)
{
	struct base_sort_item *items = calloc(2 * t->nr, sizeof(*items)), *sorted;
	int r = -ENOMEM;

	*o = (struct order){
		.frame = calloc(t->nr, sizeof(*o->frame)),
		.child = calloc(t->nr, sizeof(*o->child)),
		.next = calloc(t->nr, sizeof(*o->next)),
	};
	if (items && o->frame && o->child && o->next) {
		sorted = by_frame(t, items, items + t->nr);
		r = number_frames(t, sorted, o);
		if (r >= 0)
			link_children(t, sorted, o);
	}
	free(items);
	return r;
}

/* Frames of one image are written, from *@at on. */
static int put_frames(const struct frames *f, uint32_t image, size_t *at, struct base_buf *out)
{
	size_t end = *at;
	uint64_t before = 0;
	int r;

	while (end < f->nr && f->v[end].image == image)
		end++;
	r = base_buf_append_leb128(out, end - *at);
	for (; r >= 0 && *at < end; ++*at) {
		r = base_buf_append_leb128(out, f->v[*at].off - before);
		before = f->v[*at].off;
	}
	return r;
}

static int put_images(const struct profdb_callpaths *c, const struct order *o, struct base_buf *out)
{
	size_t at, frame = 0;
	int r = profdb_section_begin(out, images_tag, &at);

	for (uint32_t i = 0; r >= 0 && i < c->images.nr; i++) {
		r = profdb_image_put(&c->images.v[i], out);
		if (r >= 0)
			r = put_frames(&o->frames, i, &frame, out);
	}
	return r < 0 ? r : profdb_section_end(out, at);
}

/* @before: frame of the sibling before, or 0. */
static int put_node(const struct profdb_callpaths *c, const struct order *o, uint32_t node,
		    uint64_t up, uint32_t before, struct base_buf *out)
{
	uint8_t bytes[(2 + PROFDB_NR_EVENTS) * PROFDB_VARINT_MAX];
	const uint64_t *count = profdb_calltree_counts(&c->tree, node);
	bool any = false;
	size_t n;

	for (size_t i = 0; i < c->header->nr_events; i++)
		any = any || count[i];
	n = profdb_varint_put(bytes, up << 1 | any);
	n += profdb_varint_put(bytes + n, o->frame[node] - before);
	for (size_t i = 0; any && i < c->header->nr_events; i++)
		n += profdb_varint_put(bytes + n, count[i]);
	return base_buf_append(out, bytes, n);
}

/* The node behind @node in preorder below @end, how far up it is, and the sibling before it; 0:
 * there is none. */
static uint32_t next_node(const struct profdb_calltree *t, const struct order *o, uint32_t node,
			  uint64_t *up, uint32_t *sibling)
{
	*up = 0;
	*sibling = 0;
	if (o->child[node])
		return o->child[node];
	for (*up = 1; node >= PROFDB_NR_CALLPATH_ENDS && !o->next[node]; ++*up)
		node = t->nodes[node].parent;
	*sibling = node;
	return node < PROFDB_NR_CALLPATH_ENDS ? 0 : o->next[node];
}

static int put_below(const struct profdb_callpaths *c, const struct order *o, uint32_t end,
		     struct base_buf *out, uint64_t *nr)
{
	uint32_t sibling, node = end;
	uint64_t up;
	int r = 0;

	*nr = 0;
	while (r >= 0 && (node = next_node(&c->tree, o, node, &up, &sibling))) {
		r = put_node(c, o, node, up, sibling ? o->frame[sibling] : 0, out);
		++*nr;
	}
	return r;
}

static int put_tree(const struct profdb_callpaths *c, const struct order *o, struct base_buf *out)
{
	struct base_buf nodes = { 0 };
	size_t at;
	uint64_t nr;
	int r = profdb_section_begin(out, tree_tag, &at);

	for (uint32_t end = 0; r >= 0 && end < PROFDB_NR_CALLPATH_ENDS; end++) {
		base_buf_clear(&nodes);
		r = put_below(c, o, end, &nodes, &nr);
		if (r >= 0)
			r = base_buf_append_leb128(out, nr);
		if (r >= 0)
			r = base_buf_append(out, nodes.data, nodes.len);
	}
	base_buf_release(&nodes);
	return r < 0 ? r : profdb_section_end(out, at);
}

int profdb_callpaths_format(const struct profdb_callpaths *c, struct base_buf *out,
			    struct base_err *err)
{
	size_t start = out->len;
	struct order o;
	int r = make_order(&c->tree, &o);

	if (r >= 0)
		r = profdb_header_print(c->header, PROFDB_FORMAT_1, 0, out, err);
	if (r >= 0)
		r = put_images(c, &o, out);
	if (r >= 0 && c->whose->nr)
		r = profdb_workloads_put(c->whose, out);
	if (r >= 0)
		r = put_tree(c, &o, out);
	if (r >= 0)
		r = profdb_format1_end(c->header, c->tree.nr, out, start);
	order_release(&o);
	return r < 0 ? base_fail_errno(err, r, "cannot write call paths") : 0;
}
