/* SPDX-License-Identifier: BSD-2-Clause */
/* Matches the source lines of two versions of a procedure: by function and text, or distance. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "align.h"

/* Lines of a function beyond the last with code, and of all that are compared by text. */
enum { BEHIND = 16, TEXT_MAX = 4096 };

/* The lines of a function in a file, in one version. */
struct part {
	const char *file; /* NULL: it has none of it */
	unsigned int first, last;
};

/* A function that both versions have, or one. */
struct function {
	struct part part[2];
	/* With text: the line of the other version by the distance from the first one, 0: none. */
	unsigned int *other[2];
};

struct align {
	const struct analysis_listing *l[2];
	struct function *v;
	size_t nr, cap;
	struct base_map by_name; /* by file and name: index + 1 */
	size_t by_text, by_distance;
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

static void widen(struct part *p, const char *file, unsigned int line)
{
	if (!p->file)
		*p = (struct part){ file, line, line };
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
		widen(&al->v[at - 1].part[set], l->files[u->file], u->line);
		if (f && f->begins && f->begins < u->line)
			widen(&al->v[at - 1].part[set], l->files[u->file], f->begins);
	}
	return r;
}

/* ---- text ------------------------------------------------------------------------------------ */

struct lines {
	struct image_source *text;
	unsigned int first, nr;
};

static int open_lines(const struct part *p, const char *source_path, struct lines *out)
{
	const char *own = image_source_path;
	size_t len;
	int r;

	image_source_path = source_path;
	r = image_source_open(p->file, false, &out->text, NULL);
	image_source_path = own;
	if (r < 0)
		return r;
	out->first = p->first;
	out->nr = p->last - p->first + 1;
	/* A source that ends before is another one. */
	if (!image_source_line(out->text, p->last, &len))
		return -ENOENT;
	for (int i = 0; i < BEHIND && image_source_line(out->text, p->last + i + 1, &len); i++)
		out->nr++;
	return 0;
}

static const char *trimmed(const struct lines *s, unsigned int at, size_t *len)
{
	const char *text = image_source_line(s->text, s->first + at, len);

	for (; text && *len && (*text == ' ' || *text == '\t'); text++)
		--*len;
	while (text && *len && (text[*len - 1] == ' ' || text[*len - 1] == '\t'))
		--*len;
	return text;
}

static bool same_line(const struct lines s[2], unsigned int i, unsigned int k)
{
	size_t len_a, len_b;
	const char *a = trimmed(&s[0], i, &len_a), *b = trimmed(&s[1], k, &len_b);

	return a && b && len_a == len_b && memcmp(a, b, len_a) == 0;
}

/* The longest common subsequence: @length has room for a table of both, with one more each. */
static void match(const struct lines s[2], uint16_t *length, struct function *f)
{
	size_t row = s[1].nr + 1;
	unsigned int i = 0, k = 0;

	for (unsigned int a = s[0].nr; a-- > 0;)
		for (unsigned int b = s[1].nr; b-- > 0;) {
			uint16_t down = length[(a + 1) * row + b], right = length[a * row + b + 1];

			length[a * row + b] =
				same_line(s, a, b) ? (uint16_t)(length[(a + 1) * row + b + 1] + 1)
				: down > right	   ? down
						   : right;
		}
	while (i < s[0].nr && k < s[1].nr) {
		if (same_line(s, i, k)) {
			f->other[0][i] = s[1].first + k;
			f->other[1][k] = s[0].first + i;
			i++;
			k++;
		} else if (length[(i + 1) * row + k] >= length[i * row + k + 1]) {
			i++;
		} else {
			k++;
		}
	}
}

/* One path is one file, and that is one version's at most. */
static bool is_one_place(const struct function *f, const char *const source_path[2])
{
	const char *a = source_path[0] ? source_path[0] : "";

	return strcmp(f->part[0].file, f->part[1].file) == 0 &&
	       strcmp(a, source_path[1] ? source_path[1] : "") == 0;
}

/* 0: matched; -ENOENT: not by text. */
static int match_by_text(struct function *f, const char *const source_path[2])
{
	struct lines s[2] = { 0 };
	uint16_t *length = NULL;
	int r = is_one_place(f, source_path) ? -ENOENT : 0;

	for (int set = 0; set < 2 && r >= 0; set++)
		r = open_lines(&f->part[set], source_path[set], &s[set]);
	if (r >= 0 && (s[0].nr > TEXT_MAX || s[1].nr > TEXT_MAX))
		r = -ENOENT;
	if (r >= 0) {
		length = calloc((size_t)(s[0].nr + 1) * (s[1].nr + 1), sizeof(*length));
		for (int set = 0; set < 2; set++)
			f->other[set] = calloc(s[set].nr + 1, sizeof(*f->other[set]));
		r = length && f->other[0] && f->other[1] ? 0 : -ENOMEM;
	}
	if (r >= 0)
		match(s, length, f);
	image_source_close(s[0].text);
	image_source_close(s[1].text);
	free(length);
	return r == -ENOMEM ? r : r < 0 ? -ENOENT : 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

int align_open(const struct analysis_listing *const l[2], const char *const source_path[2],
	       struct align **out)
{
	struct align *al = calloc(1, sizeof(*al));
	int r = al ? 0 : -ENOMEM;

	for (int set = 0; set < 2 && r >= 0; set++) {
		al->l[set] = l[set];
		r = add_units(al, set);
	}
	for (size_t i = 0; r >= 0 && i < al->nr; i++) {
		if (!al->v[i].part[0].file || !al->v[i].part[1].file)
			continue;
		r = match_by_text(&al->v[i], source_path);
		al->by_text += r == 0;
		al->by_distance += r == -ENOENT;
		r = r == -ENOENT ? 0 : r;
	}
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
	size_t at = function_at(al, set, u);
	const struct function *f = at ? &al->v[at - 1] : NULL;

	if (!f || !f->part[!set].file)
		return 0;
	if (f->other[0])
		return f->other[set][u->line - f->part[set].first];
	return u->line - f->part[set].first + f->part[!set].first;
}

size_t align_nr_by_text(const struct align *al)
{
	return al->by_text;
}

size_t align_nr_by_distance(const struct align *al)
{
	return al->by_distance;
}
