/* SPDX-License-Identifier: BSD-2-Clause */
/* Matches the source lines of two versions of a procedure: by code, by function and text, or
 * distance. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "align.h"
#include "listing.h"

/* The lines of a function, in a file of a listing. */
struct texts_part {
	uint32_t file; /* index in the listing's files */
	unsigned int first, last;
};

/* The sources of both listings; each is read once. */
struct texts;

/* ---- lines by their text --------------------------------------------------------------------- */

/* Lines behind a function's last one with code that are compared, too. */
enum { BEHIND = 16 };
/*
 * The largest table of pairs of lines, so that lengths fit into 16 bits; the cost of all functions
 * in such pairs; and of a line that is compared by its text.
 */
enum { TABLE_MAX = 1 << 24, COST_MAX = 1 << 26, LINE_COST = 16 };

struct source {
	bool tried;
	struct image_source *text; /* NULL: it is not here */
};

struct texts {
	const struct analysis_listing *l[2];
	const char *source_path[2];
	struct source *sources[2]; /* by file */
	uint64_t left;		   /* of COST_MAX */
};

/* ---- lines ----------------------------------------------------------------------------------- */

struct lines {
	const struct image_source *text;
	unsigned int first, nr;
};

static const struct image_source *source_of(struct texts *t, int set, uint32_t file)
{
	struct source *s = &t->sources[set][file];
	const char *own = image_source_path;

	if (!s->tried) {
		image_source_path = t->source_path[set];
		if (image_source_open(t->l[set]->files[file], image_program(t->l[set]->img), false,
				      &s->text, NULL) < 0)
			s->text = NULL;
		image_source_path = own;
		s->tried = true;
	}
	return s->text;
}

static int find_lines(struct texts *t, int set, const struct texts_part *p, struct lines *out)
{
	size_t len;

	out->text = source_of(t, set, p->file);
	out->first = p->first;
	out->nr = p->last - p->first + 1;
	/* A source that ends before is another one. */
	if (!out->text || !image_source_line(out->text, p->last, &len))
		return -ENOENT;
	for (unsigned int i = 1; i <= BEHIND && image_source_line(out->text, p->last + i, &len);
	     i++)
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

/* ---- what differs ---------------------------------------------------------------------------- */

/* The lines between the common ones at both ends. */
struct middle {
	unsigned int first, nr[2];
	uint64_t *hash[2];
	uint16_t *length; /* of the longest common subsequence from each pair of lines on */
};

static void pair(const struct lines s[2], unsigned int *const other[2], unsigned int i,
		 unsigned int k)
{
	other[0][i] = s[1].first + k;
	other[1][k] = s[0].first + i;
}

static struct middle match_ends(const struct lines s[2], unsigned int *const other[2])
{
	struct middle m = { .nr = { s[0].nr, s[1].nr } };

	for (; m.nr[0] && m.nr[1] && same_line(s, m.first, m.first); m.nr[0]--, m.nr[1]--) {
		pair(s, other, m.first, m.first);
		m.first++;
	}
	for (; m.nr[0] && m.nr[1]; m.nr[0]--, m.nr[1]--) {
		unsigned int i = m.first + m.nr[0] - 1, k = m.first + m.nr[1] - 1;

		if (!same_line(s, i, k))
			break;
		pair(s, other, i, k);
	}
	return m;
}

/* The sizes of the table are one more each. */
static int open_table(struct middle *m, const struct lines s[2])
{
	m->length = calloc(((size_t)m->nr[0] + 1) * (m->nr[1] + 1), sizeof(*m->length));
	for (int set = 0; set < 2; set++) {
		m->hash[set] = calloc(m->nr[set], sizeof(*m->hash[set]));
		for (unsigned int i = 0; m->hash[set] && i < m->nr[set]; i++) {
			size_t len = 0;
			const char *text = trimmed(&s[set], m->first + i, &len);

			m->hash[set][i] = base_hash64(text ? text : "", len);
		}
	}
	return m->length && m->hash[0] && m->hash[1] ? 0 : -ENOMEM;
}

static void fill_table(struct middle *m)
{
	size_t row = (size_t)m->nr[1] + 1;

	for (unsigned int a = m->nr[0]; a-- > 0;) {
		uint16_t *here = m->length + a * row, *next = here + row;

		for (unsigned int b = m->nr[1]; b-- > 0;)
			here[b] = m->hash[0][a] == m->hash[1][b] ? (uint16_t)(next[b + 1] + 1)
				  : next[b] > here[b + 1]	 ? next[b]
								 : here[b + 1];
	}
}

static void follow_table(const struct middle *m, const struct lines s[2],
			 unsigned int *const other[2])
{
	size_t row = (size_t)m->nr[1] + 1;
	unsigned int i = 0, k = 0;

	while (i < m->nr[0] && k < m->nr[1]) {
		if (m->hash[0][i] == m->hash[1][k])
			pair(s, other, m->first + i++, m->first + k++);
		else if (m->length[(i + 1) * row + k] >= m->length[i * row + k + 1])
			i++;
		else
			k++;
	}
}

static int match_middle(struct middle *m, const struct lines s[2], unsigned int *const other[2])
{
	int r = open_table(m, s);

	if (r >= 0) {
		fill_table(m);
		follow_table(m, s, other);
	}
	free(m->hash[0]);
	free(m->hash[1]);
	free(m->length);
	return r;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int spend(struct texts *t, uint64_t cost)
{
	if (cost > t->left)
		return -E2BIG;
	t->left -= cost;
	return 0;
}

static int match(struct texts *t, const struct lines s[2], unsigned int *const other[2])
{
	struct middle m = match_ends(s, other);
	uint64_t pairs = ((uint64_t)m.nr[0] + 1) * ((uint64_t)m.nr[1] + 1);
	int r;

	if (!m.nr[0] || !m.nr[1])
		return 0;
	r = pairs > TABLE_MAX ? -E2BIG : spend(t, pairs);
	return r < 0 ? r : match_middle(&m, s, other);
}

/*
 * Sets other[set] to an array with the line of the other version for each line from the first one
 * to the last, 0: none. The caller frees both. 0; -ENOENT: the sources are not both here, or are
 * one file, which is one version's at most; -E2BIG: too much differs, in this function or in those
 * before it; or -ENOMEM.
 */
static int texts_match(struct texts *t, const struct texts_part part[2], unsigned int *other[2])
{
	struct lines s[2] = { 0 };
	int r = 0;

	for (int set = 0; set < 2 && r >= 0; set++)
		r = find_lines(t, set, &part[set], &s[set]);
	if (r >= 0 && image_source_same(s[0].text, s[1].text))
		r = -ENOENT;
	if (r >= 0)
		r = spend(t, ((uint64_t)s[0].nr + s[1].nr) * LINE_COST);
	if (r < 0)
		return r;
	for (int set = 0; set < 2; set++)
		other[set] = calloc(s[set].nr, sizeof(*other[set]));
	r = other[0] && other[1] ? match(t, s, other) : -ENOMEM;
	for (int set = 0; set < 2 && r < 0; set++) {
		free(other[set]);
		other[set] = NULL;
	}
	return r;
}

static void texts_close(struct texts *t)
{
	if (!t)
		return;
	for (int set = 0; set < 2; set++) {
		for (size_t i = 0; t->sources[set] && i < t->l[set]->nr_files; i++)
			image_source_close(t->sources[set][i].text);
		free(t->sources[set]);
	}
	free(t);
}

/*
 * @source_path (image_source_path): the folders of the sets in which their sources are looked for.
 * NULL: no memory. The listings and paths outlive the texts, which the caller closes.
 */
static struct texts *texts_open(const struct analysis_listing *const l[2],
				const char *const source_path[2])
{
	struct texts *t = calloc(1, sizeof(*t));
	bool ok = t;

	for (int set = 0; set < 2 && ok; set++) {
		t->l[set] = l[set];
		t->source_path[set] = source_path[set];
		t->sources[set] = calloc(l[set]->nr_files + 1, sizeof(*t->sources[set]));
		ok = t->sources[set];
	}
	if (!ok) {
		texts_close(t);
		return NULL;
	}
	t->left = COST_MAX;
	return t;
}

/* ---- lines ----------------------------------------------------------------------------------- */

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
