/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists one procedure's instructions with their samples, source lines and inlined routines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "code.h"
#include "demangle.h"
#include "listing.h"
#include "procedures.h"
#include "search.h"

enum { CODE_MAX = 16 << 20 };

/* Samples of the procedure at one address, before they are matched with instructions. */
struct hit {
	uint64_t vaddr;
	const struct profdb_entry *entry;
	const struct analysis_image *image;
};

struct hits {
	struct hit *v;
	size_t nr, cap;
};

/* A procedure in one of the images. */
struct place {
	struct analysis_image *image;
	struct image *img;
	struct image_symbol symbol;
};

static bool stands_in(struct image *img, const struct image_symbol *symbol, uint64_t vaddr)
{
	const struct image_symbol *s;

	if (vaddr - symbol->vaddr >= symbol->len)
		return false;
	s = image_symbol_at(img, vaddr);
	return s && s->vaddr == symbol->vaddr;
}

static bool belongs(struct analysis_listing *l, uint64_t vaddr)
{
	return stands_in(l->img, &l->symbol, vaddr);
}

static int by_vaddr(const void *pa, const void *pb)
{
	const struct hit *a = pa, *b = pb;

	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* ---- instruction samples --------------------------------------------------------------------- */

static int tell(struct analysis_listing *l, const struct place *from, const struct profdb_insn *m)
{
	size_t event = from->image->event_of[m->event];
	uint64_t vaddr;
	int r;

	if (m->off == PROFDB_OUTSIDE || event == SIZE_MAX ||
	    image_vaddr(from->img, m->off, &vaddr) < 0 ||
	    !stands_in(from->img, &from->symbol, vaddr))
		return 0;
	r = base_grow(&l->told, &l->cap_told, l->nr_told + 1, sizeof(*l->told));
	if (r < 0)
		return r;
	vaddr = l->symbol.vaddr + (vaddr - from->symbol.vaddr);
	l->told[l->nr_told++] = (struct analysis_told){ vaddr, m, event };
	return 0;
}

static int collect_told(struct analysis_listing *l, const struct place *from)
{
	const struct profdb_profile *p = from->image->profile;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < profdb_profile_nr_insns(p); i++)
		r = tell(l, from, profdb_profile_insn(p, i));
	return r;
}

static int by_told_vaddr(const void *pa, const void *pb)
{
	const struct analysis_told *a = pa, *b = pb;

	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

uint64_t analysis_unit_runs(const struct analysis_listing *l, const struct analysis_unit *unit,
			    size_t event)
{
	uint64_t sum = 0;

	if (!estimate_by_retired(l->a, event))
		return unit->count ? unit->count[event] : 0;
	for (size_t i = analysis_told_at(l, unit->vaddr);
	     i < l->nr_told && l->told[i].vaddr == unit->vaddr; i++)
		if (l->told[i].event == event && estimate_is_retired(l->told[i].insn))
			sum += l->told[i].insn->count;
	return sum;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Collects the samples of a place, at the corresponding addresses of the listed procedure. */
static int collect(struct analysis_listing *l, const struct place *from, struct hits *hits)
{
	const struct profdb_profile *p = from->image->profile;
	uint64_t vaddr;
	int r = base_grow(&l->places, &l->cap_places, l->nr_places + 1, sizeof(*l->places));

	if (r < 0)
		return r;
	l->places[l->nr_places++] =
		(struct analysis_place){ .image = from->image, .vaddr = from->symbol.vaddr };
	for (size_t i = 0; i < profdb_profile_nr_entries(p); i++) {
		const struct profdb_entry *e = profdb_profile_entry(p, i);

		if (!analysis_entry_wanted(from->image, e) ||
		    image_vaddr(from->img, e->off, &vaddr) < 0 ||
		    !stands_in(from->img, &from->symbol, vaddr))
			continue;
		vaddr = l->symbol.vaddr + (vaddr - from->symbol.vaddr);
		r = base_grow(&hits->v, &hits->cap, hits->nr + 1, sizeof(*hits->v));
		if (r < 0)
			return r;
		hits->v[hits->nr++] = (struct hit){ vaddr, e, from->image };
	}
	return collect_told(l, from);
}

static int collect_found(struct analysis_listing *l, const struct analysis_found *f,
			 struct hits *hits)
{
	struct place from = { .image = f->image };
	const struct image_symbol *symbol;
	int r = 0;

	if (f->image == l->ai && f->vaddr == l->symbol.vaddr)
		return 0;
	if (analysis_image_open(l->a, f->image, &from.img, NULL) < 0)
		return 0;
	symbol = image_symbol_at(from.img, f->vaddr);
	if (symbol) {
		from.symbol = *symbol;
		r = collect(l, &from, hits);
	}
	image_close(from.img);
	return r;
}

static int collect_all(struct analysis_listing *l, const struct analysis_founds *also,
		       struct hits *hits)
{
	struct place own = { l->ai, l->img, l->symbol };
	int r = collect(l, &own, hits);

	for (size_t i = 0; also && i < also->nr && r >= 0; i++)
		r = collect_found(l, &also->v[i], hits);
	if (hits->nr)
		qsort(hits->v, hits->nr, sizeof(*hits->v), by_vaddr);
	if (l->nr_told)
		qsort(l->told, l->nr_told, sizeof(*l->told), by_told_vaddr);
	return r;
}

static int file_index(struct analysis_listing *l, const char *file, uint32_t *out)
{
	int r;

	for (size_t i = l->nr_files; i-- > 0;) {
		if (strcmp(l->files[i], file) == 0) {
			*out = (uint32_t)i;
			return 0;
		}
	}
	r = base_grow(&l->files, &l->cap_files, l->nr_files + 1, sizeof(*l->files));
	if (r < 0)
		return r;
	l->files[l->nr_files] = strdup(file);
	if (!l->files[l->nr_files])
		return -ENOMEM;
	*out = (uint32_t)l->nr_files++;
	return 0;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Stacks are equal if their call places are; the line of the innermost routine is the unit's
 * own. */
static bool same_stack(const struct analysis_stack *s, const struct image_frame *v, size_t nr)
{
	if (s->nr != nr)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (!same_text(s->v[i].name, v[i].name) ||
		    (i && (s->v[i].at.line != v[i].at.line ||
			   !same_text(s->v[i].at.file, v[i].at.file))))
			return false;
	return true;
}

/* Finds or adds the stack; neighbours mostly have the same one. */
static int find_stack(struct analysis_listing *l, uint64_t vaddr, size_t *out)
{
	struct image_frame v[IMAGE_FRAMES_MAX];
	size_t nr = image_frames_at(l->img, vaddr, v, IMAGE_FRAMES_MAX);
	struct analysis_stack *s;
	int r;

	*out = 0;
	if (nr < 2)
		return 0;
	if (l->nr_stacks && same_stack(&l->stacks[l->nr_stacks - 1], v, nr)) {
		*out = l->nr_stacks;
		return 0;
	}
	r = base_grow(&l->stacks, &l->cap_stacks, l->nr_stacks + 1, sizeof(*l->stacks));
	if (r < 0)
		return r;
	s = &l->stacks[l->nr_stacks];
	s->v = malloc(nr * sizeof(*v));
	if (!s->v)
		return -ENOMEM;
	memcpy(s->v, v, nr * sizeof(*v));
	s->nr = nr;
	*out = ++l->nr_stacks;
	return 0;
}

static int add_unit(struct analysis_listing *l, enum analysis_unit_kind kind, uint64_t vaddr,
		    uint32_t len)
{
	struct analysis_unit u = { .kind = kind, .vaddr = vaddr, .len = len };
	struct image_line line;
	int r = base_grow(&l->units, &l->cap_units, l->nr_units + 1, sizeof(*l->units));

	if (r >= 0 && image_line_at(l->img, vaddr, &line) >= 0) {
		u.line = line.line;
		r = file_index(l, line.file, &u.file);
	}
	if (r >= 0)
		r = find_stack(l, vaddr, &u.stack);
	if (r >= 0)
		l->units[l->nr_units++] = u;
	return r;
}

static int add_counts(struct analysis_listing *l, const struct hit *hit)
{
	struct analysis_unit *u = &l->units[l->nr_units - 1];

	if (!u->count)
		u->count = calloc(l->a->nr_events + 1, sizeof(*u->count));
	if (!u->count)
		return -ENOMEM;
	analysis_entry_add(hit->image, hit->entry, u->count, l->total);
	return 0;
}

/* Adds samples up to @end that are not at a unit's start: each address has a line of its own. */
static int add_strays(struct analysis_listing *l, const struct hits *hits, size_t *next,
		      enum analysis_unit_kind kind, uint64_t end)
{
	int r = 0;

	while (r >= 0 && *next < hits->nr && hits->v[*next].vaddr < end) {
		const struct hit *h = &hits->v[*next];
		const struct analysis_unit *last = l->nr_units ? &l->units[l->nr_units - 1] : NULL;

		if (!last || last->vaddr != h->vaddr)
			r = add_unit(l, kind, h->vaddr, 0);
		if (r >= 0)
			r = add_counts(l, h);
		++*next;
	}
	return r;
}

/* The distance to the end of the nested procedure over @vaddr: its code is not listed here, and
 * linear decoding might not stop at its end. */
static size_t behind_inner(struct analysis_listing *l, uint64_t vaddr)
{
	const struct image_symbol *s = image_symbol_at(l->img, vaddr);
	uint64_t end = s ? s->vaddr + s->len : 0;

	return (end > vaddr ? end : vaddr + 1) - l->symbol.vaddr;
}

static int add_instructions(struct analysis_listing *l, const struct hits *hits, size_t *next)
{
	struct insn_line insn;
	size_t off = 0;
	int r = 0;

	while (r >= 0 && l->disasm && off < l->code_len) {
		uint64_t vaddr = l->symbol.vaddr + off;

		if (!belongs(l, vaddr)) {
			off = behind_inner(l, vaddr);
			continue;
		}
		insn_disasm_one(l->disasm, l->code + off, l->code_len - off, vaddr, &insn);
		off += insn.len;
		r = add_unit(l, ANALYSIS_UNIT_INSN, vaddr, insn.len);
		while (r >= 0 && *next < hits->nr && hits->v[*next].vaddr == vaddr)
			r = add_counts(l, &hits->v[(*next)++]);
		if (r >= 0)
			r = add_strays(l, hits, next, ANALYSIS_UNIT_STRAY, vaddr + insn.len);
	}
	return r;
}

static int read_code(struct analysis_listing *l)
{
	size_t len = l->symbol.len < CODE_MAX ? l->symbol.len : CODE_MAX;

	l->code = malloc(len + 1);
	l->total = calloc(l->a->nr_events + 1, sizeof(*l->total));
	if (!l->code || !l->total)
		return -ENOMEM;
	l->code_len = analysis_code_bytes(l->img, l->symbol.vaddr, l->code, len);
	/* Code of an unknown machine is listed by address, as code without bytes is. */
	if (l->code_len && insn_disasm_open(image_machine(l->img), &l->disasm, NULL) == -ENOMEM)
		return -ENOMEM;
	return 0;
}

int analysis_listing_open(struct analysis *a, struct analysis_image *ai, struct image *img,
			  const struct image_symbol *symbol, const struct analysis_founds *also,
			  struct analysis_listing **out, struct base_err *err)
{
	struct analysis_listing *l = calloc(1, sizeof(*l));
	struct hits hits = { 0 };
	size_t next = 0;
	int r = -ENOMEM;

	if (!l) {
		base_fail_errno(err, r, "cannot list '%s'", symbol->name);
		image_close(img);
		return r;
	}
	l->a = a;
	l->ai = ai;
	l->img = img;
	l->symbol = *symbol;
	r = read_code(l);
	if (r >= 0)
		r = collect_all(l, also, &hits);
	if (r >= 0)
		r = add_instructions(l, &hits, &next);
	if (r >= 0)
		r = add_strays(l, &hits, &next, ANALYSIS_UNIT_BYTES, UINT64_MAX);
	free(hits.v);
	if (r < 0) {
		base_fail_errno(err, r, "cannot list '%s'", symbol->name);
		analysis_listing_close(l);
		return r;
	}
	*out = l;
	return 0;
}

struct image *analysis_listing_take_image(struct analysis_listing *l)
{
	struct image *img = l->img;

	l->img = NULL;
	return img;
}

void analysis_listing_close(struct analysis_listing *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->nr_units; i++)
		free(l->units[i].count);
	for (size_t i = 0; i < l->nr_files; i++)
		free(l->files[i]);
	for (size_t i = 0; i < l->nr_stacks; i++)
		free(l->stacks[i].v);
	free(l->stacks);
	free(l->places);
	free(l->told);
	free(l->units);
	free(l->files);
	free(l->code);
	free(l->total);
	insn_disasm_close(l->disasm);
	image_close(l->img);
	free(l);
}

enum { WHERE_NAME_MAX = 200 };

/* Formats an address as "name", "name+0x12", or "0x4012". */
static void where_is(struct image *img, uint64_t vaddr, char *buf, size_t buf_len)
{
	const struct image_symbol *s = image_symbol_at(img, vaddr);
	const char *name = s ? demangle_shown(s->name) : "", *more = "";
	int len = (int)strnlen(name, WHERE_NAME_MAX + 1);

	if (len > WHERE_NAME_MAX) {
		len = WHERE_NAME_MAX - 3;
		more = "...";
	}
	/* A procedure without a name is named by its address; a named one says more. */
	if (!s || strncmp(s->name, "0x", 2) == 0)
		snprintf(buf, buf_len, "0x%llx", (unsigned long long)vaddr);
	else if (s->vaddr == vaddr)
		snprintf(buf, buf_len, "%.*s%s", len, name, more);
	else
		snprintf(buf, buf_len, "%.*s%s+0x%llx", len, name, more,
			 (unsigned long long)(vaddr - s->vaddr));
}

void analysis_insn_text(struct image *img, const struct insn_line *insn, char *buf, size_t buf_len)
{
	char where[256];

	if (!insn->has_target) {
		snprintf(buf, buf_len, "%s", insn->text);
		return;
	}
	where_is(img, insn->target, where, sizeof(where));
	snprintf(buf, buf_len, "%.*s%s%s", (int)insn->target_at, insn->text, where,
		 insn->text + insn->target_at + insn->target_len);
}

void analysis_unit_text(const struct analysis_listing *l, const struct analysis_unit *unit,
			char *buf, size_t buf_len)
{
	uint64_t off = unit->vaddr - l->symbol.vaddr;
	struct insn_line insn;

	if (unit->kind == ANALYSIS_UNIT_STRAY) {
		snprintf(buf, buf_len, "(inside the instruction above)");
	} else if (!l->disasm && off < l->code_len) {
		snprintf(buf, buf_len, "(this code cannot be disassembled here)");
	} else if (unit->kind == ANALYSIS_UNIT_BYTES || !l->disasm) {
		snprintf(buf, buf_len, "(no bytes of this code)");
	} else {
		insn_disasm_one(l->disasm, l->code + off, l->code_len - off, unit->vaddr, &insn);
		analysis_insn_text(l->img, &insn, buf, buf_len);
	}
}
