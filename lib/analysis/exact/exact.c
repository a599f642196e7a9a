/* SPDX-License-Identifier: BSD-2-Clause */
/* Exact counts of instructions and edges by image: construction, sorting and queries. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exact.h"

/* ---- making ---------------------------------------------------------------------------------- */

int exact_run_add(struct exact *e, const struct exact_run *run)
{
	struct exact_run *to;
	int r = base_grow(&e->runs, &e->cap_runs, e->nr_runs + 1, sizeof(*e->runs));

	if (r < 0)
		return r;
	to = &e->runs[e->nr_runs];
	*to = *run;
	to->counter = strdup(run->counter);
	to->command = strdup(run->command);
	e->nr_runs++;
	return to->counter && to->command ? 0 : -ENOMEM;
}

/* The key by which counts belong to one image: kind, and identity, pid or path. */
static int image_key(enum exact_kind kind, const struct base_id *id, uint32_t pid, const char *path,
		     struct base_buf *key)
{
	const uint8_t head[2] = { (uint8_t)kind, id->len };
	int r = base_buf_append(key, head, sizeof(head));

	if (r < 0)
		return r;
	if (id->len)
		return base_buf_append(key, id->bytes, id->len);
	r = base_buf_append(key, &pid, sizeof(pid));
	return r < 0 || kind == EXACT_PROCESS ? r : base_buf_append(key, path, strlen(path));
}

static int path_add(struct exact_image *x, const char *path)
{
	int r;

	for (size_t i = 0; i < x->nr_paths; i++)
		if (strcmp(x->paths[i], path) == 0)
			return 0;
	r = base_grow(&x->paths, &x->cap_paths, x->nr_paths + 1, sizeof(*x->paths));
	if (r < 0)
		return r;
	x->paths[x->nr_paths] = strdup(path);
	return x->paths[x->nr_paths++] ? 0 : -ENOMEM;
}

static int image_new(struct exact *e, const struct base_buf *key, struct exact_image **out)
{
	struct exact_image *x;
	int r = base_grow(&e->images, &e->cap_images, e->nr_images + 1,
			  sizeof(struct exact_image *));

	if (r < 0)
		return r;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	e->images[e->nr_images++] = x;
	*out = x;
	return base_map_set(&e->by_key, key->data, key->len, x);
}

int exact_image_add(struct exact *e, enum exact_kind kind, const struct base_id *id, uint32_t pid,
		    const char *path, struct exact_image **out)
{
	struct base_buf key = { 0 };
	struct exact_image *x = NULL;
	int r = image_key(kind, id, pid, path, &key);

	if (r >= 0)
		x = base_map_get(&e->by_key, key.data, key.len);
	if (r >= 0 && !x)
		r = image_new(e, &key, &x);
	base_buf_release(&key);
	if (r < 0)
		return r;
	x->kind = kind;
	x->id = *id;
	x->pid = pid;
	*out = x;
	return path_add(x, path);
}

/* Orders counts by offset; 0: they are of one instruction. */
static int by_off(const void *a, const void *b)
{
	const struct exact_count *x = a, *y = b;

	return x->off < y->off ? -1 : x->off > y->off;
}

static int by_ends(const void *a, const void *b)
{
	const struct exact_edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

int exact_count_add(struct exact_image *x, uint64_t off, uint64_t count)
{
	const struct exact_count c = { off, count };
	int r;

	if (!count)
		return 0;
	r = base_grow(&x->counts, &x->cap_counts, x->nr_counts + 1, sizeof(*x->counts));
	if (r < 0)
		return r;
	x->dirty |= x->nr_counts && by_off(&x->counts[x->nr_counts - 1], &c) >= 0;
	x->counts[x->nr_counts++] = c;
	return 0;
}

int exact_edge_add(struct exact_image *x, uint64_t from, uint64_t to, uint64_t count)
{
	const struct exact_edge edge = { from, to, count };
	int r;

	if (!count)
		return 0;
	r = base_grow(&x->edges, &x->cap_edges, x->nr_edges + 1, sizeof(*x->edges));
	if (r < 0)
		return r;
	x->dirty |= x->nr_edges && by_ends(&x->edges[x->nr_edges - 1], &edge) >= 0;
	x->edges[x->nr_edges++] = edge;
	return 0;
}

int exact_procedure_add(struct exact_image *x, const struct exact_procedure *p)
{
	struct exact_procedure *to;
	int r = base_grow(&x->procedures, &x->cap_procedures, x->nr_procedures + 1,
			  sizeof(*x->procedures));

	if (r < 0)
		return r;
	to = &x->procedures[x->nr_procedures];
	*to = *p;
	to->name = strdup(p->name);
	if (!to->name)
		return -ENOMEM;
	x->dirty |= x->nr_procedures && to[-1].off >= to->off;
	x->nr_procedures++;
	return 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int sort_counts(struct exact_image *x)
{
	size_t nr = 0;

	if (x->nr_counts)
		qsort(x->counts, x->nr_counts, sizeof(*x->counts), by_off);
	for (size_t i = 0; i < x->nr_counts; i++) {
		struct exact_count *last = nr ? &x->counts[nr - 1] : NULL;

		if (!last || last->off != x->counts[i].off)
			x->counts[nr++] = x->counts[i];
		else if (base_add_overflow(last->count, x->counts[i].count, &last->count))
			return -DCPI_EOVERFLOW;
	}
	x->nr_counts = nr;
	return 0;
}

static int sort_edges(struct exact_image *x)
{
	size_t nr = 0;

	if (x->nr_edges)
		qsort(x->edges, x->nr_edges, sizeof(*x->edges), by_ends);
	for (size_t i = 0; i < x->nr_edges; i++) {
		struct exact_edge *last = nr ? &x->edges[nr - 1] : NULL;

		if (!last || by_ends(last, &x->edges[i]) != 0)
			x->edges[nr++] = x->edges[i];
		else if (base_add_overflow(last->count, x->edges[i].count, &last->count))
			return -DCPI_EOVERFLOW;
	}
	x->nr_edges = nr;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct exact_procedure *x = a, *y = b;

	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void sort_procedures(struct exact_image *x)
{
	size_t nr = 0;

	if (x->nr_procedures)
		qsort(x->procedures, x->nr_procedures, sizeof(*x->procedures), by_start);
	for (size_t i = 0; i < x->nr_procedures; i++) {
		if (nr && by_start(&x->procedures[nr - 1], &x->procedures[i]) == 0)
			free(x->procedures[i].name);
		else
			x->procedures[nr++] = x->procedures[i];
	}
	x->nr_procedures = nr;
}

int exact_sort(struct exact *e)
{
	int r;

	for (size_t i = 0; i < e->nr_images; i++) {
		struct exact_image *x = e->images[i];

		if (!x->dirty)
			continue;
		if ((r = sort_counts(x)) < 0 || (r = sort_edges(x)) < 0)
			return r;
		sort_procedures(x);
		x->dirty = false;
	}
	return 0;
}

static void image_free(struct exact_image *x)
{
	for (size_t i = 0; i < x->nr_paths; i++)
		free(x->paths[i]);
	for (size_t i = 0; i < x->nr_procedures; i++)
		free(x->procedures[i].name);
	free(x->paths);
	free(x->counts);
	free(x->edges);
	free(x->procedures);
	free(x);
}

void exact_release(struct exact *e)
{
	for (size_t i = 0; i < e->nr_images; i++)
		image_free(e->images[i]);
	for (size_t i = 0; i < e->nr_runs; i++) {
		free(e->runs[i].counter);
		free(e->runs[i].command);
	}
	base_map_release(&e->by_key);
	free(e->images);
	free(e->runs);
	memset(e, 0, sizeof(*e));
}

/* ---- asking ---------------------------------------------------------------------------------- */

const struct exact_image *exact_find(const struct exact *e, const struct base_id *id)
{
	for (size_t i = 0; i < e->nr_images; i++)
		if (id->len && base_id_equal(&e->images[i]->id, id))
			return e->images[i];
	return NULL;
}

uint64_t exact_executions(const struct exact_image *x, uint64_t off)
{
	const struct exact_count key = { off, 0 };
	const struct exact_count *found =
		x->nr_counts ? bsearch(&key, x->counts, x->nr_counts, sizeof(key), by_off) : NULL;

	return found ? found->count : 0;
}

uint64_t exact_taken(const struct exact_image *x, uint64_t from, uint64_t to)
{
	const struct exact_edge key = { from, to, 0 };
	const struct exact_edge *found =
		x->nr_edges ? bsearch(&key, x->edges, x->nr_edges, sizeof(key), by_ends) : NULL;

	return found ? found->count : 0;
}

size_t exact_edges_of(const struct exact_image *x, uint64_t from, const struct exact_edge **out)
{
	size_t lo = 0, hi = x->nr_edges, nr = 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (x->edges[mid].from < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo + nr < x->nr_edges && x->edges[lo + nr].from == from)
		nr++;
	*out = nr ? x->edges + lo : NULL;
	return nr;
}

uint64_t exact_fall(const struct exact_image *x, uint64_t from, uint64_t next)
{
	uint64_t rest = exact_executions(x, from);
	const struct exact_edge *v;
	size_t nr = exact_edges_of(x, from, &v);

	for (size_t i = 0; i < nr; i++)
		if (v[i].to != next)
			rest -= v[i].count < rest ? v[i].count : rest;
	return rest;
}

/* ---- procedures of an image at hand ---------------------------------------------------------- */

static bool alike(const struct exact_procedure *p, const struct image_symbol *symbol,
		  const struct image_hashes *hashes, bool masked)
{
	if (!p->hashed || p->len != symbol->len || strcmp(p->name, symbol->name) != 0)
		return false;
	return masked ? memcmp(p->hashes.masked, hashes->masked, sizeof(hashes->masked)) == 0
		      : memcmp(p->hashes.exact, hashes->exact, sizeof(hashes->exact)) == 0;
}

static bool view_routine(const struct exact_image *x, const struct image_symbol *symbol,
			 const struct image_hashes *hashes, bool masked, struct exact_view *out)
{
	for (size_t i = 0; i < x->nr_procedures; i++) {
		if (!alike(&x->procedures[i], symbol, hashes, masked))
			continue;
		*out = (struct exact_view){ .image = x,
					    .move = x->procedures[i].off - symbol->vaddr };
		return true;
	}
	return false;
}

/* Finds a routine by its hash; equal bytes are preferred to bytes that differ in operands. */
static int view_by_hash(const struct exact *e, struct image *img, const struct image_symbol *symbol,
			struct exact_view *out)
{
	const struct image_process *process = image_process(img);
	struct image_hashes hashes;

	if (!process || image_symbol_hashes(img, symbol, &hashes) < 0)
		return -ENOENT;
	for (int masked = 0; masked < 2; masked++) {
		for (size_t i = 0; i < e->nr_images; i++) {
			const struct exact_image *x = e->images[i];

			if (x->kind == EXACT_DYNAMIC &&
			    strcmp(x->paths[0], process->facility) == 0 &&
			    view_routine(x, symbol, &hashes, masked, out))
				return 0;
		}
	}
	return -ENOENT;
}

int exact_view(const struct exact *e, struct image *img, const struct base_id *id,
	       const struct image_symbol *symbol, struct exact_view *out)
{
	const struct exact_image *x = exact_find(e, id);
	bool moved = image_process(img) && !base_id_equal(id, image_id(img));

	/* Offsets in a replaced pseudo-image do not fit this one, but its routines are found by
	 * hash. */
	if (!x || moved)
		return view_by_hash(e, img, symbol, out);
	*out = (struct exact_view){ .image = x, .img = img };
	return 0;
}

static bool view_off(const struct exact_view *v, uint64_t vaddr, uint64_t *off)
{
	if (v->img)
		return image_off(v->img, vaddr, off) == 0;
	*off = vaddr + v->move;
	return true;
}

uint64_t exact_view_executions(const struct exact_view *v, uint64_t vaddr)
{
	uint64_t off;

	return view_off(v, vaddr, &off) ? exact_executions(v->image, off) : 0;
}

uint64_t exact_view_taken(const struct exact_view *v, uint64_t from, uint64_t to)
{
	uint64_t from_off, to_off;

	if (!view_off(v, from, &from_off) || !view_off(v, to, &to_off))
		return 0;
	return exact_taken(v->image, from_off, to_off);
}

uint64_t exact_view_fall(const struct exact_view *v, uint64_t from, uint64_t next)
{
	uint64_t from_off, next_off;

	if (!view_off(v, from, &from_off) || !view_off(v, next, &next_off))
		return 0;
	return exact_fall(v->image, from_off, next_off);
}
