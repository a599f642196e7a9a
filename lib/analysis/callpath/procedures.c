/* SPDX-License-Identifier: BSD-2-Clause */
/* Names the procedures that are on call paths, each one once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callpath_internal.h"

/* The mark that stands where a path ends. */
static void name_end(size_t end, char *text, size_t len)
{
	if (end == CALLPATH_OUTERMOST)
		snprintf(text, len, "(outermost)");
	else if (end == CALLPATH_NO_PATH)
		snprintf(text, len, "(no path kept)");
	else
		snprintf(text, len, "(%s)",
			 profdb_callpath_end_text((enum profdb_callpath_end)end));
}

static int add_procedure(struct callpath_tree *t, enum callpath_kind kind, const char *name)
{
	size_t nr_events = t->a->nr_events + 1;
	struct callpath_procedure p = { .kind = kind, .name = strdup(name) };
	int r = base_grow(&t->procedures, &t->cap_procedures, t->nr_procedures + 1,
			  sizeof(*t->procedures));

	p.flat = calloc(nr_events, sizeof(*p.flat));
	p.paths = calloc(nr_events, sizeof(*p.paths));
	if (r < 0 || !p.name || !p.flat || !p.paths || t->nr_procedures == UINT32_MAX) {
		free(p.name);
		free(p.flat);
		free(p.paths);
		return -ENOMEM;
	}
	t->procedures[t->nr_procedures++] = p;
	return 0;
}

int procedures_begin(struct callpath_tree *t)
{
	char name[32];
	int r = 0;

	for (size_t i = 0; i < CALLPATH_NR_ENDS && r >= 0; i++) {
		name_end(i, name, sizeof(name));
		r = add_procedure(t, CALLPATH_END, name);
	}
	return r;
}

/* ---- groups of images ------------------------------------------------------------------------ */

static int add_group(struct callpath_tree *t, const char *facility, struct callpath_group **out)
{
	struct callpath_group *g = calloc(1, sizeof(*g));
	int r = g ? base_grow(&t->groups, &t->cap_groups, t->nr_groups + 1, sizeof(*t->groups))
		  : -ENOMEM;

	if (r < 0) {
		free(g);
		return r;
	}
	t->groups[t->nr_groups++] = *out = g;
	if (!facility)
		return 0;
	g->facility = strdup(facility);
	return g->facility ? base_map_set(&t->by_facility, facility, strlen(facility), g) : -ENOMEM;
}

/* The image was opened, or cannot be: its facility is known. */
int procedures_group(struct callpath_tree *t, struct analysis_image *ai,
		     struct callpath_group **out)
{
	const char *facility = ai->facility;
	int r = 0;

	*out = facility ? base_map_get(&t->by_facility, facility, strlen(facility)) : NULL;
	if (!*out)
		r = add_group(t, facility, out);
	if (r >= 0)
		(*out)->nr_images++;
	return r;
}

const char *callpath_image_name(const struct callpath_procedure *p)
{
	if (!p->image || p->image->kind == PROFDB_NAMED)
		return "";
	if (p->group->facility && p->group->nr_images > 1)
		return p->group->facility;
	return p->image->name;
}

int procedures_compare(const struct callpath_tree *t, uint32_t a, uint32_t b)
{
	const struct callpath_procedure *p = &t->procedures[a], *q = &t->procedures[b];
	int r = strcmp(p->name, q->name);

	if (!r)
		r = strcmp(callpath_image_name(p), callpath_image_name(q));
	return r ? r : (p->vaddr > q->vaddr) - (p->vaddr < q->vaddr);
}

/* ---- procedures ------------------------------------------------------------------------------ */

/* An image alone has its procedures by address, a facility by name; other code has neither. */
static int make_key(struct base_buf *key, const struct analysis_image *ai, const char *facility,
		    const char *name, uint64_t vaddr)
{
	char kind = !name ? '-' : facility ? 'n' : 'a';
	int r = base_buf_append(key, &kind, 1);

	if (r >= 0 && facility)
		r = base_buf_append(key, facility, strlen(facility) + 1);
	else if (r >= 0)
		r = base_buf_append(key, &ai, sizeof(struct analysis_image *));
	if (r >= 0 && name && facility)
		r = base_buf_append(key, name, strlen(name));
	else if (r >= 0 && name)
		r = base_buf_append(key, &vaddr, sizeof(vaddr));
	return r;
}

static int find_or_add(struct callpath_tree *t, struct base_buf *key, enum callpath_kind kind,
		       const char *name, uint32_t *out)
{
	uintptr_t at = (uintptr_t)base_map_get(&t->by_key, key->data, key->len);
	int r = 0;

	if (!at) {
		r = add_procedure(t, kind, name);
		at = t->nr_procedures;
		if (r >= 0)
			r = base_map_set(&t->by_key, key->data, key->len, (void *)at);
	}
	*out = (uint32_t)(at - 1);
	return r;
}

static void describe(struct callpath_tree *t, uint32_t at, struct callpath_group *group,
		     struct analysis_image *ai, const struct image_symbol *symbol)
{
	struct callpath_procedure *p = &t->procedures[at];

	if (p->image)
		return;
	p->image = ai;
	p->group = group;
	p->vaddr = symbol ? symbol->vaddr : 0;
	p->len = symbol ? symbol->len : 0;
}

int procedures_place(struct callpath_tree *t, struct callpath_group *group,
		     struct analysis_image *ai, const struct image_symbol *symbol, uint32_t *out)
{
	struct base_buf key = { 0 };
	int r = make_key(&key, ai, group->facility, symbol ? symbol->name : NULL,
			 symbol ? symbol->vaddr : 0);

	if (r >= 0)
		r = find_or_add(t, &key, symbol ? CALLPATH_PROCEDURE : CALLPATH_NO_SYMBOL,
				symbol ? symbol->name : analysis_image_label(ai), out);
	if (r >= 0)
		describe(t, *out, group, ai, symbol);
	base_buf_release(&key);
	return r;
}

/* The only procedure of that name, or NULL: static functions may share one. */
static const struct image_symbol *only_symbol(struct image *img, const char *name)
{
	size_t pos = 0;
	const struct image_symbol *s = image_symbol_find(img, name, &pos);

	return s && !image_symbol_find(img, name, &pos) ? s : NULL;
}

/* Where the function also stands alone in its image it is that procedure. */
int procedures_inlined(struct callpath_tree *t, struct callpath_group *group,
		       struct analysis_image *ai, struct image *img, const char *name,
		       uint32_t *out)
{
	const struct image_symbol *s = only_symbol(img, name);
	struct base_buf key = { 0 };
	int r;

	if (s)
		return procedures_place(t, group, ai, s, out);
	r = make_key(&key, ai, group->facility, NULL, 0);
	if (r >= 0)
		r = base_buf_printf(&key, "i%s", name);
	if (r >= 0)
		r = find_or_add(t, &key, CALLPATH_INLINED, name, out);
	if (r >= 0)
		describe(t, *out, group, ai, NULL);
	base_buf_release(&key);
	return r;
}

int64_t callpath_procedure_find(const struct callpath_tree *t, const struct analysis_image *ai,
				const char *facility, const char *name, uint64_t vaddr)
{
	struct base_buf key = { 0 };
	int r = make_key(&key, ai, facility, name, vaddr);
	uintptr_t at = r < 0 ? 0 : (uintptr_t)base_map_get(&t->by_key, key.data, key.len);

	base_buf_release(&key);
	return at ? (int64_t)at - 1 : -ENOENT;
}

void procedures_release(struct callpath_tree *t)
{
	for (size_t i = 0; i < t->nr_procedures; i++) {
		free(t->procedures[i].name);
		free(t->procedures[i].flat);
		free(t->procedures[i].paths);
	}
	for (size_t i = 0; i < t->nr_groups; i++) {
		free(t->groups[i]->facility);
		free(t->groups[i]);
	}
	base_map_release(&t->by_key);
	base_map_release(&t->by_facility);
	free(t->procedures);
	free(t->groups);
}
