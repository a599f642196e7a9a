/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The build-id (law 7): machine, routines, bytes, lines, files and raw DST by image offset; no
 * addresses, process, host, time, nor the order in which things were told.
 */
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

static void add_seq(struct base_sha256 *s, const struct pseudoimg_model *m,
		    const struct pseudoimg_seq *seq)
{
	add_place(s, m, 'L', &seq->at);
	add_uint(s, seq->nr_rows);
	for (uint32_t i = 0; i < seq->nr_rows; i++) {
		const struct pseudoimg_row *row = &m->rows.v[seq->first_row + i];

		add_uint(s, (uint64_t)row->off << 32 | row->line);
		add_uint(s, row->file);
	}
}

void pseudoimg_ident(const struct pseudoimg_model *m, uint8_t id[20])
{
	static const char what[] = "dcpi pseudo-image 1";
	struct base_sha256 s;
	uint8_t hash[32];

	base_sha256_init(&s);
	base_sha256_add(&s, what, sizeof(what));
	add_uint(&s, m->image->machine);
	for (size_t i = 0; i < m->routines.nr; i++) {
		const struct pseudoimg_routine *r = &m->routines.v[i];

		add_place(&s, m, 'R', &r->at);
		add_counted(&s, r->name.p, r->name.len);
		add_counted(&s, r->code, r->code ? r->at.len : 0);
	}
	for (size_t i = 0; i < m->ranges.nr; i++) {
		add_place(&s, m, 'B', &m->ranges.v[i].at);
		add_counted(&s, m->ranges.v[i].bytes, m->ranges.v[i].at.len);
	}
	for (size_t i = 0; i < m->seqs.nr; i++)
		add_seq(&s, m, &m->seqs.v[i]);
	for (size_t i = 0; i < m->files.nr; i++)
		add_counted(&s, m->files.v[i].p, m->files.v[i].len);
	for (size_t i = 0; i < m->dst.nr; i++)
		add_counted(&s, m->dst.v[i].copy, m->dst.v[i].len);
	base_sha256_end(&s, hash);
	memcpy(id, hash, 20);
}
