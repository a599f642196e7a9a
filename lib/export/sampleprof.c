/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampleprof_internal.h"

/* Lines are told by 16 bits. */
enum { LINE_MASK = 0xffff };

/* ---- discriminators -------------------------------------------------------------------------- */

/* A number in a bit, 7 bits or 14: the lowest says that it is 0, another one that it is long. */
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

/* What compilers append to the names of a routine's copies and parts, which the source has not. */
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
	return copy ? base_text_clean(copy) : NULL; /* no line of its own */
}

/* These are entered from the rest of their routine. */
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

/* The copy of @name that was inlined there. */
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

/* False: the routine's first line is not known, or this one. */
static bool place_of(const struct image_frame *f, struct sampleprof_place *out)
{
	out->line = (f->at.line - f->begins) & LINE_MASK;
	out->block = sampleprof_block_of(f->at.discriminator);
	return f->at.line && f->begins;
}

/* The inlined copy that an instruction is of, and the place in it: 1, 0: not known, -ENOMEM. */
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
