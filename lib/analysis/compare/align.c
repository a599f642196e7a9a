/* SPDX-License-Identifier: BSD-2-Clause */
/* Matches the source lines of two versions of a procedure: by code, by function and text, or
 * distance. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "align.h"
#include "texts.h"

/* A function that both versions have, or one. */
struct function {
	bool has[2];
	struct texts_part part[2];
	/* With text: the line of the other version by the distance from the first one, 0: none. */
	unsigned int *other[2];
};

struct align {
	const struct analysis_listing *l[2];
	bool same_code;
	struct function *v;
	size_t nr, cap;
	struct base_map by_name; /* by file and name: index + 1 */
	size_t by_text, absent, too_long;
};

/* ---- functions ------------------------------------------------------------------------------- */

static const struct image_frame *inlined(const struct analysis_listing *l,
					 const struct analysis_unit *u)
{
	return u->stack ? &l->stacks[u->stack - 1].v[0] : NULL;
}

static int key_of(const struct analysis_listing *l, const struct analysis_unit *u,
		  struct base_buf *key)
{
	const struct image_frame *f = inlined(l, u);
	const char *file = base_path_name(l->files[u->file]);
	int r = base_buf_append(key, file, strlen(file) + 1);

	return r >= 0 && f && f->name ? base_buf_append(key, f->name, strlen(f->name)) : r;
}

static size_t function_at(const struct align *al, int set, const struct analysis_unit *u)
{
	struct base_buf key = { 0 };
	size_t at = 0;

	if (key_of(al->l[set], u, &key) >= 0)
		at = (size_t)(uintptr_t)base_map_get(&al->by_name, key.data, key.len);
	base_buf_release(&key);
	return at;
}

static int add_function(struct align *al, int set, const struct analysis_unit *u)
{
	struct base_buf key = { 0 };
	int r = key_of(al->l[set], u, &key);

	if (r >= 0)
		r = base_grow(&al->v, &al->cap, al->nr + 1, sizeof(*al->v));
	if (r >= 0)
		r = base_map_set(&al->by_name, key.data, key.len, (void *)(uintptr_t)(al->nr + 1));
	if (r >= 0)
		al->v[al->nr++] = (struct function){ 0 };
	base_buf_release(&key);
	return r;
}

static void widen(struct function *f, int set, uint32_t file, unsigned int line)
{
	struct texts_part *p = &f->part[set];

	if (!f->has[set])
		*p = (struct texts_part){ file, line, line };
	f->has[set] = true;
	p->first = line < p->first ? line : p->first;
	p->last = line > p->last ? line : p->last;
}

static int add_units(struct align *al, int set)
{
	const struct analysis_listing *l = al->l[set];
	int r = 0;

	for (size_t i = 0; i < l->nr_units && r >= 0; i++) {
		const struct analysis_unit *u = &l->units[i];
		const struct image_frame *f = inlined(l, u);
		size_t at;

		if (!u->line)
			continue;
		at = function_at(al, set, u);
		if (!at) {
			r = add_function(al, set, u);
			at = al->nr;
		}
		if (r < 0)
			break;
		widen(&al->v[at - 1], set, u->file, u->line);
		if (f && f->begins && f->begins < u->line)
			widen(&al->v[at - 1], set, u->file, f->begins);
	}
	return r;
}

/* ---- code ------------------------------------------------------------------------------------ */

/* The line of the other version's code at the same distance from the procedure's start; 0: none. */
static unsigned int line_there(const struct analysis_listing *const l[2], int set,
			       const struct analysis_unit *u)
{
	const struct analysis_listing *own = l[set], *other = l[!set];
	uint64_t vaddr = u->vaddr - own->symbol.vaddr + other->symbol.vaddr;
	struct image_line line;

	if (image_line_at(other->img, vaddr, &line) < 0)
		return 0;
	return strcmp(base_path_name(line.file), base_path_name(own->files[u->file])) == 0
		       ? line.line
		       : 0;
}

bool align_same_lines(const struct analysis_listing *const l[2])
{
	for (int set = 0; set < 2; set++)
		for (size_t i = 0; i < l[set]->nr_units; i++) {
			const struct analysis_unit *u = &l[set]->units[i];

			if (u->line && line_there(l, set, u) != u->line)
				return false;
		}
	return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int match_function(struct align *al, struct texts *t, struct function *f)
{
	int r = f->has[0] && f->has[1] ? texts_match(t, f->part, f->other) : 1;

	al->by_text += r == 0;
	al->absent += r == -ENOENT;
	al->too_long += r == -E2BIG;
	return r == -ENOMEM ? r : 0;
}

static int match_functions(struct align *al, const char *const source_path[2])
{
	struct texts *t;
	int r = add_units(al, 0);

	if (r >= 0)
		r = add_units(al, 1);
	if (r < 0)
		return r;
	t = texts_open(al->l, source_path);
	r = t ? 0 : -ENOMEM;
	for (size_t i = 0; r >= 0 && i < al->nr; i++)
		r = match_function(al, t, &al->v[i]);
	texts_close(t);
	return r;
}

int align_open(const struct analysis_listing *const l[2], bool same_code,
	       const char *const source_path[2], struct align **out)
{
	struct align *al = calloc(1, sizeof(*al));
	int r;

	if (!al)
		return -ENOMEM;
	al->l[0] = l[0];
	al->l[1] = l[1];
	al->same_code = same_code;
	r = same_code ? 0 : match_functions(al, source_path);
	if (r < 0)
		align_close(al);
	else
		*out = al;
	return r;
}

void align_close(struct align *al)
{
	if (!al)
		return;
	for (size_t i = 0; i < al->nr; i++) {
		free(al->v[i].other[0]);
		free(al->v[i].other[1]);
	}
	base_map_release(&al->by_name);
	free(al->v);
	free(al);
}

unsigned int align_other(const struct align *al, int set, const struct analysis_unit *u)
{
	size_t at = al->same_code ? 0 : function_at(al, set, u);
	const struct function *f = at ? &al->v[at - 1] : NULL;

	if (al->same_code)
		return line_there(al->l, set, u);
	if (!f || !f->has[!set])
		return 0;
	if (f->other[0])
		return f->other[set][u->line - f->part[set].first];
	return u->line - f->part[set].first + f->part[!set].first;
}

const char *align_text(const struct align *al)
{
	/* Indexed by whether some match by text, and by why others do not. */
	static const char *const texts[2][4] = {
		{ "their function",
		  "their function and distance from its beginning, as not both sources are here",
		  "their function and distance from its beginning, as too much of the text differs",
		  "their function and distance from its beginning, as not both sources are here or "
		  "too much of the text differs" },
		{ "their function and text",
		  "their function and text, or distance from its beginning where not both sources "
		  "are here",
		  "their function and text, or distance from its beginning where too much of the "
		  "text differs",
		  "their function and text, or distance from its beginning where not both sources "
		  "are here or too much of the text differs" },
	};

	if (al->same_code)
		return "their instructions, as the code is the same";
	return texts[al->by_text > 0][(al->absent > 0) + 2 * (al->too_long > 0)];
}
