/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The build-id (invariant 7): machine, routines, bytes, lines, files and raw DST by image offset;
 * no addresses, process, host, time, nor the order in which things were told.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pseudoimg_internal.h"

static void add_uint(struct base_sha256 *s, uint64_t v)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(v >> 8 * i);
	base_sha256_add(s, bytes, sizeof(bytes));
}

static void add_counted(struct base_sha256 *s, const void *data, size_t len)
{
	add_uint(s, len);
	if (len)
		base_sha256_add(s, data, len);
}

/* Where it stands: every piece, should the runs tear it apart. */
static void add_place(struct base_sha256 *s, const struct pseudoimg_model *m, char kind,
		      const struct pseudoimg_span *at)
{
	uint64_t done = 0, off, n;
	const struct pseudoimg_span *run;

	base_sha256_add(s, &kind, 1);
	add_uint(s, at->len);
	do {
		run = pseudoimg_runs_find(m, at->start + done);
		if (!run)
			break;
		off = at->start + done - run->start;
		n = run->len - off < at->len - done ? run->len - off : at->len - done;
		add_uint(s, run->img_off + off);
		add_uint(s, n);
		done += n;
	} while (done < at->len);
}

/* ---- hashes on their way into the file ------------------------------------------------------- */

/* They are made by image offset and stand by address: mostly the same. */
struct hash_out {
	int fd;
	uint64_t off;
	size_t first, nr;
	struct pseudoimg_hashes v[512];
};

static int hashes_flush(struct hash_out *o)
{
	size_t nr = o->nr;

	o->nr = 0;
	if (o->fd < 0 || !nr)
		return 0;
	return pseudoimg_put_at(o->fd, o->v, nr * sizeof(*o->v), o->off + o->first * sizeof(*o->v));
}

static int hashes_put(struct hash_out *o, size_t index, const struct pseudoimg_hashes *h)
{
	int r = 0;

	if (o->nr == sizeof(o->v) / sizeof(o->v[0]) || (o->nr && index != o->first + o->nr))
		r = hashes_flush(o);
	if (!o->nr)
		o->first = index;
	o->v[o->nr++] = *h;
	return r;
}

/* ---- routines and lines, by image offset ----------------------------------------------------- */

struct walk {
	struct pseudoimg_model *m;
	struct base_sha256 s;
	struct hash_out hashes;
	size_t *seqs; /* sequences of DST, by image offset */
	size_t next_seq;
};

/* The name is that of a file of the line table. 0 or -ENOMEM. */
static int number_file(struct pseudoimg_names *n, uint32_t name)
{
	uint32_t *file;

	if (n->v.v[name].file)
		return 0;
	file = PSEUDOIMG_PUSH(&n->files);
	if (!file)
		return -ENOMEM;
	*file = name;
	n->v.v[name].file = (uint32_t)n->files.nr;
	return 0;
}

static int number_row(struct pseudoimg_model *m, const struct pseudoimg_row *row)
{
	return row->line ? number_file(&m->names, row->file) : 0;
}

static int number_seq(struct pseudoimg_model *m, const struct pseudoimg_seq *seq)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < seq->nr_rows; i++)
		r = number_row(m, &seq->rows[i]);
	return r;
}

/* Number the sequences of DST that come before @next (NULL: all). */
static int number_dst(struct walk *w, const struct pseudoimg_span *next)
{
	int r = 0;

	for (; r >= 0 && w->next_seq < w->m->seqs.nr; w->next_seq++) {
		struct pseudoimg_seq seq = pseudoimg_model_seq(w->m, w->seqs[w->next_seq]);

		if (next && pseudoimg_span_by_off(&seq.at, next) > 0)
			break;
		r = number_seq(w->m, &seq);
	}
	return r;
}

static int number_inlines(struct pseudoimg_model *m, const struct pseudoimg_loaded *l)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < l->view.rec->nr_inlines; i++) {
		const struct wire_inline *in = &l->view.inlines[i];

		if (in->call_line && l->names[in->call_file] != PSEUDOIMG_NO_FILE)
			r = number_file(&m->names, l->names[in->call_file]);
	}
	return r;
}

static int add_routine(struct walk *w, size_t index)
{
	const struct pseudoimg_node *node = &w->m->nodes.v[index];
	struct pseudoimg_span at = pseudoimg_node_span(node);
	struct pseudoimg_loaded l;
	struct pseudoimg_hashes h;
	int r = pseudoimg_model_load_lines(w->m, node, &l);

	if (r >= 0 && l.seq.nr_rows)
		r = number_dst(w, &l.seq.at);
	if (r >= 0)
		r = number_seq(w->m, &l.seq);
	if (r >= 0 && node->inlines)
		r = number_inlines(w->m, &l);
	if (r >= 0)
		r = pseudoimg_hash(w->m, node, &l, &h);
	if (r < 0)
		return r;
	add_place(&w->s, w->m, 'R', &at);
	base_sha256_add(&w->s, h.exact, sizeof(h.exact));
	return hashes_put(&w->hashes, index, &h);
}

static int add_routines(struct walk *w)
{
	const struct pseudoimg_model *m = w->m;
	int r = 0;

	for (size_t k = 0; k < m->runs_by_off.nr; k++) {
		const struct pseudoimg_span *run = &m->runs.v[m->runs_by_off.v[k]];
		size_t i = pseudoimg_model_from(m, run->start);

		for (; r >= 0 && i < m->nodes.nr; i++) {
			if (m->nodes.v[i].start >= pseudoimg_span_end(run))
				break;
			r = add_routine(w, i);
		}
	}
	if (r >= 0)
		r = hashes_flush(&w->hashes);
	return r < 0 ? r : number_dst(w, NULL);
}

static void add_seqs(struct walk *w)
{
	for (size_t i = 0; i < w->m->seqs.nr; i++) {
		struct pseudoimg_seq seq = pseudoimg_model_seq(w->m, w->seqs[i]);

		add_place(&w->s, w->m, 'L', &seq.at);
		add_uint(&w->s, seq.nr_rows);
		for (uint32_t k = 0; k < seq.nr_rows; k++) {
			const struct pseudoimg_row *row = &seq.rows[k];

			add_uint(&w->s, (uint64_t)row->off << 32 | row->line);
			add_uint(&w->s, row->line ? w->m->names.v.v[row->file].file : 0);
		}
	}
}

/* ---- owned ranges ---------------------------------------------------------------------------- */

struct by_off {
	struct pseudoimg_span at;
	size_t index;
};

/* Spans of @nr elements of @len bytes as indices by image offset, or NULL without memory. */
static size_t *sorted(const void *array, size_t nr, size_t len)
{
	struct by_off *v = calloc(nr + 1, sizeof(*v));
	size_t *out = calloc(nr + 1, sizeof(*out));

	if (!v || !out) {
		free(v);
		free(out);
		return NULL;
	}
	for (size_t i = 0; i < nr; i++) {
		memcpy(&v[i].at, (const uint8_t *)array + i * len, sizeof(v[i].at));
		v[i].index = i;
	}
	if (nr)
		qsort(v, nr, sizeof(*v), pseudoimg_span_by_off);
	for (size_t i = 0; i < nr; i++)
		out[i] = v[i].index;
	free(v);
	return out;
}

static int add_range(struct base_sha256 *s, const struct pseudoimg_model *m,
		     const struct pseudoimg_range *range)
{
	uint8_t chunk[4096];
	int r = 0;

	add_place(s, m, 'B', &range->at);
	add_uint(s, range->at.len);
	for (uint64_t done = 0; r >= 0 && done < range->at.len; done += sizeof(chunk)) {
		size_t n = sizeof(chunk);

		if (n > range->at.len - done)
			n = (size_t)(range->at.len - done);
		r = pseudoimg_job_read(m->job, range->bytes_off + done, chunk, n);
		base_sha256_add(s, chunk, n);
	}
	return r;
}

static int add_ranges(struct base_sha256 *s, const struct pseudoimg_model *m)
{
	size_t *order = sorted(m->ranges.v, m->ranges.nr, sizeof(*m->ranges.v));
	int r = order ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < m->ranges.nr; i++)
		r = add_range(s, m, &m->ranges.v[order[i]]);
	free(order);
	return r;
}

/* ---- the whole ------------------------------------------------------------------------------- */

int pseudoimg_ident(struct pseudoimg_model *m, int fd, uint64_t hashes_off, uint8_t id[20])
{
	static const char what[] = "dcpi pseudo-image 2";
	struct walk *w = calloc(1, sizeof(*w));
	uint8_t hash[32];
	int r = -ENOMEM;

	if (!w)
		return r;
	w->m = m;
	w->hashes.fd = fd;
	w->hashes.off = hashes_off;
	w->seqs = sorted(m->seqs.v, m->seqs.nr, sizeof(*m->seqs.v));
	if (!w->seqs)
		goto out;
	base_sha256_init(&w->s);
	base_sha256_add(&w->s, what, sizeof(what));
	add_uint(&w->s, m->image->machine);
	r = add_routines(w);
	if (r >= 0)
		r = add_ranges(&w->s, m);
	if (r < 0)
		goto out;
	add_seqs(w);
	for (size_t i = 0; i < m->names.files.nr; i++) {
		const char *name = pseudoimg_names_text(&m->names, m->names.files.v[i]);

		add_counted(&w->s, name, strlen(name));
	}
	for (size_t i = 0; i < m->dst.nr; i++)
		add_counted(&w->s, m->dst.v[i].copy, m->dst.v[i].len);
	base_sha256_end(&w->s, hash);
	memcpy(id, hash, 20);
out:
	free(w->seqs);
	free(w);
	return r < 0 ? r : 0;
}
