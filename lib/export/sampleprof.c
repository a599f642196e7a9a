/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The exporter of execution counts of source lines as the sample profiles that clang and gcc read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sampleprof.h"

struct sampleprof_place {
	uint32_t line, block;
};

struct sampleprof_spot {
	struct sampleprof_place at;
	uint32_t owner; /* the procedure that it comes from */
	uint64_t count;
};

struct sampleprof_target {
	struct sampleprof_place at;
	char *name;
	uint64_t count;
};

struct sampleprof_part {
	struct sampleprof_place at;
	struct sampleprof_routine *routine;
};

/* A procedure, or an inlined copy of one. */
struct sampleprof_routine {
	char *name;
	uint64_t head, total;
	struct sampleprof_spot *spots;
	size_t nr_spots, cap_spots;
	struct sampleprof_target *targets;
	size_t nr_targets, cap_targets;
	struct sampleprof_part *parts;
	size_t nr_parts, cap_parts;
};

struct sampleprof {
	struct sampleprof_routine **v;
	size_t nr, cap;
	struct base_map by_name;
	uint32_t nr_owners;
};

static inline bool sampleprof_same(const struct sampleprof_place *a,
				   const struct sampleprof_place *b)
{
	return a->line == b->line && a->block == b->block;
}

/* The format has 16 bits for a line. */
enum { LINE_MASK = 0xffff };

/* ---- discriminators -------------------------------------------------------------------------- */

/* Decodes a number of 1, 7 or 14 bits: the lowest bit says that it is 0, another one that it is
 * long. */
static unsigned int unpack(unsigned int d)
{
	if (d & 1)
		return 0;
	d >>= 1;
	return d & 0x20 ? ((d >> 1) & 0xfe0) | (d & 0x1f) : d & 0x1f;
}

static unsigned int behind(unsigned int d)
{
	if (d & 1)
		return d >> 1;
	return d >> (d & 0x40 ? 14 : 7);
}

unsigned int sampleprof_block_of(unsigned int discriminator)
{
	return unpack(discriminator);
}

unsigned int sampleprof_copies_of(unsigned int discriminator)
{
	unsigned int copies = unpack(behind(discriminator));

	return copies ? copies : 1;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Suffixes that compilers append to the names of a routine's copies and parts; the source does
 * not have them. */
static const char *const suffixes[] = { ".cold",      ".part.", ".constprop.", ".isra.",
					".lto_priv.", ".llvm.", "@plt" };

static char *source_name(const char *name)
{
	size_t len = strlen(name);
	char *copy;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		const char *at = strstr(name, suffixes[i]);

		if (at && at != name && (size_t)(at - name) < len)
			len = (size_t)(at - name);
	}
	copy = strndup(name, len);
	return copy ? base_text_clean(copy) : NULL; /* the text stays on its line */
}

/* Is it the name of a part that control enters from the rest of its routine? */
static bool is_part(const char *name)
{
	return strstr(name, ".cold") || strstr(name, ".part.");
}

/* ---- making ---------------------------------------------------------------------------------- */

static void routine_free(struct sampleprof_routine *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nr_targets; i++)
		free(r->targets[i].name);
	for (size_t i = 0; i < r->nr_parts; i++)
		routine_free(r->parts[i].routine);
	free(r->spots);
	free(r->targets);
	free(r->parts);
	free(r->name);
	free(r);
}

int sampleprof_new(struct sampleprof **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void sampleprof_free(struct sampleprof *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr; i++)
		routine_free(s->v[i]);
	base_map_release(&s->by_name);
	free(s->v);
	free(s);
}

/* Takes over @name, also on failure. */
static struct sampleprof_routine *routine_new(char *name)
{
	struct sampleprof_routine *r = name ? calloc(1, sizeof(*r)) : NULL;

	if (r)
		r->name = name;
	else
		free(name);
	return r;
}

static int root_of(struct sampleprof *s, const char *symbol, struct sampleprof_routine **out)
{
	char *name = source_name(symbol);
	int r;

	*out = name ? base_map_get(&s->by_name, name, strlen(name)) : NULL;
	if (*out) {
		free(name);
		return 0;
	}
	*out = routine_new(name);
	r = *out ? base_grow(&s->v, &s->cap, s->nr + 1, sizeof(struct sampleprof_routine *))
		 : -ENOMEM;
	if (r < 0) {
		routine_free(*out);
		return r;
	}
	s->v[s->nr++] = *out;
	return base_map_set(&s->by_name, name, strlen(name), *out);
}

/* Finds or adds the copy of @name that is inlined at @at. */
static int part_of(struct sampleprof_routine *in, const struct sampleprof_place *at,
		   const char *symbol, struct sampleprof_routine **out)
{
	char *name = source_name(symbol);
	int r = name ? 0 : -ENOMEM;

	for (size_t i = in->nr_parts; r >= 0 && i-- > 0;) {
		*out = in->parts[i].routine;
		if (sampleprof_same(&in->parts[i].at, at) && strcmp((*out)->name, name) == 0) {
			free(name);
			return 0;
		}
	}
	if (r >= 0)
		r = base_grow(&in->parts, &in->cap_parts, in->nr_parts + 1, sizeof(*in->parts));
	if (r < 0) {
		free(name);
		return r;
	}
	*out = routine_new(name);
	if (!*out)
		return -ENOMEM;
	in->parts[in->nr_parts++] = (struct sampleprof_part){ *at, *out };
	return 0;
}

static int add_spot(struct sampleprof_routine *in, const struct sampleprof_place *at,
		    uint32_t owner, uint64_t count)
{
	struct sampleprof_spot *last = in->nr_spots ? &in->spots[in->nr_spots - 1] : NULL;
	int r;

	if (last && last->owner == owner && sampleprof_same(&last->at, at)) {
		last->count = last->count > count ? last->count : count;
		return 0;
	}
	r = base_grow(&in->spots, &in->cap_spots, in->nr_spots + 1, sizeof(*in->spots));
	if (r >= 0)
		in->spots[in->nr_spots++] = (struct sampleprof_spot){ *at, owner, count };
	return r;
}

static int add_target(struct sampleprof_routine *in, const struct sampleprof_place *at,
		      const char *symbol, uint64_t count)
{
	struct sampleprof_target t = { .at = *at, .count = count };
	int r;

	if (!count || strpbrk(symbol, " \t\n:"))
		return 0;
	r = base_grow(&in->targets, &in->cap_targets, in->nr_targets + 1, sizeof(*in->targets));
	if (r >= 0 && !(t.name = source_name(symbol)))
		r = -ENOMEM;
	if (r >= 0)
		in->targets[in->nr_targets++] = t;
	return r;
}

/* ---- a procedure ----------------------------------------------------------------------------- */

struct adding {
	struct sampleprof *s;
	struct image *img;
	const struct runs_procedure *p;
	struct sampleprof_routine *root;
	bool any;
};

/* The place of a frame within its routine. False: the line, or the routine's first line, is not
 * known. */
static bool place_of(const struct image_frame *f, struct sampleprof_place *out)
{
	out->line = (f->at.line - f->begins) & LINE_MASK;
	out->block = sampleprof_block_of(f->at.discriminator);
	return f->at.line && f->begins;
}

/* Finds the inlined copy that an instruction belongs to, and the place in it: 1, 0 (not known),
 * or -ENOMEM. */
static int find_place(struct adding *a, const struct image_frame *frames, size_t nr,
		      struct sampleprof_routine **in, struct sampleprof_place *at)
{
	int r = 0;

	*in = a->root;
	for (size_t i = nr; i-- > 0 && r >= 0;) {
		if (!place_of(&frames[i], at))
			return 0;
		if (i)
			r = part_of(*in, at,
				    frames[i - 1].linkage ? frames[i - 1].linkage
							  : frames[i - 1].name,
				    in);
	}
	return r < 0 ? r : 1;
}

static const struct image_symbol *starts_at(struct image *img, uint64_t vaddr)
{
	const struct image_symbol *s = image_symbol_at(img, vaddr);

	return s && s->vaddr == vaddr ? s : NULL;
}

static int add_indirect(struct adding *a, const struct insn *insn, struct sampleprof_routine *in,
			const struct sampleprof_place *at)
{
	const struct exact_view *v = a->p->view;
	const struct exact_edge *edges;
	uint64_t off, to;
	size_t nr = 0;
	int r = 0;

	if (v && v->img && image_off(v->img, insn->vaddr, &off) == 0)
		nr = exact_edges_of(v->image, off, &edges);
	for (size_t i = 0; i < nr && r >= 0; i++) {
		const struct image_symbol *s = NULL;

		if (image_vaddr(v->img, edges[i].to, &to) == 0)
			s = starts_at(a->img, to);
		if (s)
			r = add_target(in, at, s->name, edges[i].count);
	}
	return r;
}

/* A jump to another procedure's start is a call in the source. */
static int add_call(struct adding *a, const struct insn *insn, struct sampleprof_routine *in,
		    const struct sampleprof_place *at, uint64_t count)
{
	const struct image_symbol *s;

	if (insn->flow == INSN_INDIRECT_CALL)
		return add_indirect(a, insn, in, at);
	if (insn->flow != INSN_CALL &&
	    (insn->flow != INSN_JUMP || flow_block_at(a->p->flow, insn->target) != FLOW_OUTSIDE))
		return 0;
	s = starts_at(a->img, insn->target);
	return s && !is_part(s->name) ? add_target(in, at, s->name, count) : 0;
}

static uint64_t whole(double count)
{
	return count < 0x1p63 ? (uint64_t)(count + 0.5) : (uint64_t)1 << 63;
}

static int add_insn(struct adding *a, const struct insn *insn, double count)
{
	struct image_frame frames[IMAGE_FRAMES_MAX];
	size_t nr = image_frames_at(a->img, insn->vaddr, frames, IMAGE_FRAMES_MAX);
	struct sampleprof_routine *in;
	struct sampleprof_place at;
	int r = nr ? find_place(a, frames, nr, &in, &at) : 0;

	if (r <= 0)
		return r;
	a->any = true;
	r = add_spot(in, &at, a->s->nr_owners,
		     whole(count * sampleprof_copies_of(frames[0].at.discriminator)));
	return r < 0 ? r : add_call(a, insn, in, &at, whole(count));
}

int sampleprof_add(struct sampleprof *s, struct image *img, const struct runs_procedure *p)
{
	struct adding a = { .s = s, .img = img, .p = p };
	const struct flow *f = p->flow;
	int r = root_of(s, p->symbol->name, &a.root);

	for (uint32_t b = 0; b < f->nr_blocks; b++)
		for (uint32_t i = 0; r >= 0 && p->block[b] >= 0 && i < f->blocks[b].nr_insns; i++)
			r = add_insn(&a, &f->insns[f->blocks[b].insn + i], p->block[b]);
	s->nr_owners++;
	if (r < 0 || !a.any)
		return r < 0 ? r : 0;
	if (p->entered > 0 && !is_part(p->symbol->name))
		a.root->head += whole(p->entered);
	return 1;
}

static int compare_places(const struct sampleprof_place *a, const struct sampleprof_place *b)
{
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return (a->block > b->block) - (a->block < b->block);
}

static int by_spot(const void *pa, const void *pb)
{
	const struct sampleprof_spot *a = pa, *b = pb;
	int r = compare_places(&a->at, &b->at);

	return r ? r : (a->owner > b->owner) - (a->owner < b->owner);
}

static int by_target(const void *pa, const void *pb)
{
	const struct sampleprof_target *a = pa, *b = pb;
	int r = compare_places(&a->at, &b->at);

	return r ? r : strcmp(a->name, b->name);
}

static int by_part(const void *pa, const void *pb)
{
	const struct sampleprof_part *a = pa, *b = pb;
	int r = compare_places(&a->at, &b->at);

	return r ? r : strcmp(a->routine->name, b->routine->name);
}

static int by_total(const void *pa, const void *pb)
{
	const struct sampleprof_routine *a = *(struct sampleprof_routine *const *)pa,
					*b = *(struct sampleprof_routine *const *)pb;

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Adds with saturation, as LLVM does. */
static void add_to(uint64_t *sum, uint64_t count)
{
	if (base_add_overflow(*sum, count, sum))
		*sum = UINT64_MAX;
}

/* A spot has the largest count of one procedure's instructions, and the sum of several
 * procedures. */
static void sum_spots(struct sampleprof_routine *r)
{
	size_t nr = 0;

	if (r->nr_spots)
		qsort(r->spots, r->nr_spots, sizeof(*r->spots), by_spot);
	for (size_t i = 0; i < r->nr_spots;) {
		struct sampleprof_spot sum = { .at = r->spots[i].at };

		while (i < r->nr_spots && sampleprof_same(&r->spots[i].at, &sum.at)) {
			uint32_t owner = r->spots[i].owner;
			uint64_t most = 0;

			for (; i < r->nr_spots && r->spots[i].owner == owner &&
			       sampleprof_same(&r->spots[i].at, &sum.at);
			     i++)
				most = most > r->spots[i].count ? most : r->spots[i].count;
			add_to(&sum.count, most);
		}
		add_to(&r->total, sum.count);
		r->spots[nr++] = sum;
	}
	r->nr_spots = nr;
}

static void sum_targets(struct sampleprof_routine *r)
{
	size_t nr = 0;

	if (r->nr_targets)
		qsort(r->targets, r->nr_targets, sizeof(*r->targets), by_target);
	for (size_t i = 0; i < r->nr_targets; i++) {
		if (!nr || by_target(&r->targets[nr - 1], &r->targets[i]) != 0) {
			r->targets[nr++] = r->targets[i];
			continue;
		}
		add_to(&r->targets[nr - 1].count, r->targets[i].count);
		free(r->targets[i].name);
	}
	r->nr_targets = nr;
}

static void sum_routine(struct sampleprof_routine *r)
{
	r->total = 0;
	sum_spots(r);
	sum_targets(r);
	if (r->nr_parts)
		qsort(r->parts, r->nr_parts, sizeof(*r->parts), by_part);
	for (size_t i = 0; i < r->nr_parts; i++) {
		sum_routine(r->parts[i].routine);
		add_to(&r->total, r->parts[i].routine->total);
	}
}

static int put_place(struct base_buf *out, int depth, const struct sampleprof_place *at)
{
	if (at->block)
		return base_buf_printf(out, "%*s%u.%u: ", depth, "", at->line, at->block);
	return base_buf_printf(out, "%*s%u: ", depth, "", at->line);
}

static int put_spot(struct base_buf *out, int depth, const struct sampleprof_routine *in,
		    const struct sampleprof_spot *spot, size_t *target)
{
	int r = put_place(out, depth, &spot->at);

	if (r >= 0)
		r = base_buf_printf(out, "%" PRIu64, spot->count);
	for (; r >= 0 && *target < in->nr_targets &&
	       sampleprof_same(&in->targets[*target].at, &spot->at);
	     ++*target)
		r = base_buf_printf(out, " %s:%" PRIu64, in->targets[*target].name,
				    in->targets[*target].count);
	return r < 0 ? r : base_buf_printf(out, "\n");
}

/* An empty routine was created for a place that proved to be unknown. */
static bool sampleprof_empty(const struct sampleprof_routine *r)
{
	return !r->nr_spots && !r->nr_parts;
}

static int put_body(struct base_buf *out, int depth, const struct sampleprof_routine *in)
{
	size_t target = 0;
	int r = 0;

	for (size_t i = 0; i < in->nr_spots && r >= 0; i++)
		r = put_spot(out, depth, in, &in->spots[i], &target);
	for (size_t i = 0; i < in->nr_parts && r >= 0; i++) {
		const struct sampleprof_routine *part = in->parts[i].routine;

		if (sampleprof_empty(part))
			continue;
		r = put_place(out, depth, &in->parts[i].at);
		if (r >= 0)
			r = base_buf_printf(out, "%s:%" PRIu64 "\n", part->name, part->total);
		if (r >= 0)
			r = put_body(out, depth + 1, part);
	}
	return r;
}

/* Adds up and sorts all that was added, once; functions with the largest counts first. */
static void sampleprof_sum(struct sampleprof *s)
{
	for (size_t i = 0; i < s->nr; i++)
		sum_routine(s->v[i]);
	if (s->nr)
		qsort(s->v, s->nr, sizeof(struct sampleprof_routine *), by_total);
}

int sampleprof_format(struct sampleprof *s, struct base_buf *out)
{
	int r = 0;

	sampleprof_sum(s);
	for (size_t i = 0; i < s->nr && r >= 0; i++) {
		const struct sampleprof_routine *root = s->v[i];

		if (sampleprof_empty(root))
			continue;
		r = base_buf_printf(out, "%s:%" PRIu64 ":%" PRIu64 "\n", root->name, root->total,
				    root->head);
		if (r >= 0)
			r = put_body(out, 1, root);
	}
	return r;
}

/* ---- gcc's file ------------------------------------------------------------------------------ */

#define MAGIC	    0x67636461 /* "gcda" */
#define VERSION	    2
#define TAG_NAMES   0xaa000000
#define TAG_ROUTINE 0xac000000
#define TAG_MODULES 0xae000000
#define COUNT_MAX   ((uint64_t)1 << 48)
#define HIST_CALLS  7 /* a histogram of the targets of calls; gcc does not look at the number */

struct gcov {
	struct base_buf names; /* the table of strings, without its head */
	struct base_map by_name;
	uint32_t nr_names;
	struct base_buf routines;
	uint32_t nr_routines;
};

/* Little-endian, as gcc for the machines that are sampled. */
static int put32(struct base_buf *out, uint32_t value)
{
	const uint8_t bytes[] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
				  (uint8_t)(value >> 24) };

	return base_buf_append(out, bytes, sizeof(bytes));
}

/* gcc adds counts up in 64 bits with a sign, and keeps 61. */
static uint64_t bounded(uint64_t count)
{
	return count < COUNT_MAX ? count : COUNT_MAX;
}

static int put64(struct base_buf *out, uint64_t value)
{
	int r = put32(out, (uint32_t)value);

	return r < 0 ? r : put32(out, (uint32_t)(value >> 32));
}

/* The number of @name in the table, which it is added to. */
static int put_name(struct gcov *g, struct base_buf *out, const char *name, bool is_long)
{
	uintptr_t known = (uintptr_t)base_map_get(&g->by_name, name, strlen(name));
	uint32_t len = (uint32_t)strlen(name) + 1;
	int r = 0;

	if (!known) {
		known = ++g->nr_names;
		r = base_map_set(&g->by_name, name, len - 1, (void *)known);
		if (r >= 0)
			r = put32(&g->names, len);
		if (r >= 0)
			r = base_buf_append(&g->names, name, len);
	}
	if (r < 0)
		return r;
	return is_long ? put64(out, known - 1) : put32(out, (uint32_t)known - 1);
}

/* A line's place; where its code lies in parts, they have one count. */
static uint32_t offset_of(const struct sampleprof_place *at)
{
	return at->line << 16;
}

static size_t nr_of_line(const struct sampleprof_routine *in, size_t i, uint64_t *count)
{
	size_t first = i;

	*count = 0;
	for (; i < in->nr_spots && in->spots[i].at.line == in->spots[first].at.line; i++)
		*count = *count > in->spots[i].count ? *count : in->spots[i].count;
	return i - first;
}

static uint32_t nr_lines(const struct sampleprof_routine *in)
{
	uint32_t nr = 0;
	uint64_t count;

	for (size_t i = 0; i < in->nr_spots; i += nr_of_line(in, i, &count))
		nr++;
	return nr;
}

/* Targets are sorted by line, as counts are; those of a line without a count are left out. */
static int put_targets(struct gcov *g, const struct sampleprof_routine *in, uint32_t line,
		       uint64_t count)
{
	size_t from = 0, to;
	int r;

	while (from < in->nr_targets && in->targets[from].at.line < line)
		from++;
	for (to = from; to < in->nr_targets && in->targets[to].at.line == line;)
		to++;
	r = put32(&g->routines, (uint32_t)(to - from));
	if (r >= 0)
		r = put64(&g->routines, bounded(count));
	for (; from < to && r >= 0; from++) {
		r = put32(&g->routines, HIST_CALLS);
		if (r >= 0)
			r = put_name(g, &g->routines, in->targets[from].name, true);
		if (r >= 0)
			r = put64(&g->routines, bounded(in->targets[from].count));
	}
	return r;
}

static uint32_t nr_parts(const struct sampleprof_routine *in)
{
	uint32_t nr = 0;

	for (size_t i = 0; i < in->nr_parts; i++)
		nr += !sampleprof_empty(in->parts[i].routine);
	return nr;
}

static int put_routine(struct gcov *g, const struct sampleprof_routine *in)
{
	struct base_buf *out = &g->routines;
	int r = put_name(g, out, in->name, false);
	size_t nr;

	if (r >= 0)
		r = put32(out, nr_lines(in));
	if (r >= 0)
		r = put32(out, nr_parts(in));
	for (size_t i = 0; i < in->nr_spots && r >= 0; i += nr) {
		uint64_t count;

		nr = nr_of_line(in, i, &count);
		r = put32(out, offset_of(&in->spots[i].at));
		if (r >= 0)
			r = put_targets(g, in, in->spots[i].at.line, count);
	}
	for (size_t i = 0; i < in->nr_parts && r >= 0; i++) {
		if (sampleprof_empty(in->parts[i].routine))
			continue;
		r = put32(out, offset_of(&in->parts[i].at));
		if (r >= 0)
			r = put_routine(g, in->parts[i].routine);
	}
	return r;
}

static int put_section(struct base_buf *out, uint32_t tag, uint32_t nr, const struct base_buf *v)
{
	int r = put32(out, tag);

	if (r >= 0)
		r = put32(out, (uint32_t)(v->len / 4 + 1));
	if (r >= 0)
		r = put32(out, nr);
	return r < 0 ? r : base_buf_append(out, v->data, v->len);
}

static int put_all(const struct gcov *g, struct base_buf *out)
{
	static const struct base_buf none;
	int r = put32(out, MAGIC);

	if (r >= 0)
		r = put32(out, VERSION);
	if (r >= 0)
		r = put32(out, 0);
	if (r >= 0)
		r = put_section(out, TAG_NAMES, g->nr_names, &g->names);
	if (r >= 0)
		r = put_section(out, TAG_ROUTINE, g->nr_routines, &g->routines);
	return r < 0 ? r : put_section(out, TAG_MODULES, 0, &none);
}

int sampleprof_format_gcov(struct sampleprof *s, struct base_buf *out)
{
	struct gcov g = { 0 };
	int r = 0;

	sampleprof_sum(s);
	for (size_t i = 0; i < s->nr && r >= 0; i++) {
		if (sampleprof_empty(s->v[i]))
			continue;
		g.nr_routines++;
		r = put64(&g.routines, bounded(s->v[i]->head));
		if (r >= 0)
			r = put_routine(&g, s->v[i]);
	}
	if (r >= 0)
		r = put_all(&g, out);
	base_map_release(&g.by_name);
	base_buf_release(&g.names);
	base_buf_release(&g.routines);
	return r;
}
