/* SPDX-License-Identifier: BSD-2-Clause */
/* Matches the lines of a function in two versions of its source by their text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "texts.h"

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
		if (image_source_open(t->l[set]->files[file], false, &s->text, NULL) < 0)
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

int texts_match(struct texts *t, const struct texts_part part[2], unsigned int *other[2])
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

struct texts *texts_open(const struct analysis_listing *const l[2],
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

void texts_close(struct texts *t)
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
