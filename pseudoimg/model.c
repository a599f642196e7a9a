/* SPDX-License-Identifier: BSD-2-Clause */
/* A job's records become routines, ranges and lines, each at its place. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pseudoimg_internal.h"

/* ---- reading records ------------------------------------------------------------------------- */

static int add_run(struct pseudoimg_model *m, const struct wire_run *run, uint64_t order)
{
	struct pseudoimg_span *to = PSEUDOIMG_PUSH(&m->runs);

	if (!to)
		return -ENOMEM;
	*to = (struct pseudoimg_span){
		.start = run->vaddr, .len = run->len, .order = order, .img_off = run->img_off
	};
	return 0;
}

static int add_routine(struct pseudoimg_model *m, const struct wire_head *rec, uint64_t order)
{
	struct pseudoimg_routine *to = PSEUDOIMG_PUSH(&m->routines);
	struct wire_routine_view view;

	if (!to)
		return -ENOMEM;
	wire_routine_parse(rec, &view); /* wire_check found it good */
	*to = (struct pseudoimg_routine){
		.at = { .start = view.rec->addr, .len = view.rec->code_len, .order = order },
		.name = { view.name, view.rec->name_len },
		.code = view.code,
		.rec = view.rec,
	};
	return 0;
}

/* Whether the reader left trailing zeros out must make no difference. */
static size_t trimmed(const uint8_t *p, size_t len)
{
	while (len && !p[len - 1])
		len--;
	return len;
}

static int add_code(struct pseudoimg_model *m, const struct wire_bytes *b, uint64_t order)
{
	struct pseudoimg_range *to = PSEUDOIMG_PUSH(&m->ranges);
	const uint8_t *bytes = (const uint8_t *)(b + 1);

	if (!to)
		return -ENOMEM;
	*to = (struct pseudoimg_range){
		.at = { .start = b->vaddr, .len = trimmed(bytes, b->bytes_len), .order = order },
		.bytes = bytes,
		.range_base = b->range_base,
		.range_len = b->range_len,
		.facility = b->facility,
	};
	return 0;
}

/* Parts of a range that is longer than a record follow each other. */
static int add_dst(struct pseudoimg_model *m, const struct wire_bytes *b)
{
	struct pseudoimg_dst_range *to = m->dst.nr ? &m->dst.v[m->dst.nr - 1] : NULL;

	if (b->vaddr == b->range_base) {
		to = PSEUDOIMG_PUSH(&m->dst);
		if (!to)
			return -ENOMEM;
		*to = (struct pseudoimg_dst_range){ .facility = b->facility,
						    .range_base = b->range_base,
						    .range_len = b->range_len };
	} else if (!to || b->range_base != to->range_base || b->range_len != to->range_len ||
		   b->vaddr - b->range_base != to->sent.len) {
		m->nr_bad++;
		return 0;
	}
	return base_buf_append(&to->sent, b + 1, b->bytes_len);
}

static int add_bytes(struct pseudoimg_model *m, const struct wire_bytes *b, uint64_t order)
{
	switch (b->kind) {
	case WIRE_RANGE_CODE:
		return add_code(m, b, order);
	case WIRE_RANGE_DST:
		return add_dst(m, b);
	default:
		m->nr_bad++;
		return 0;
	}
}

static int add_replaces(struct pseudoimg_model *m, const struct wire_replaces *rec)
{
	const struct wire_replaces **to = PSEUDOIMG_PUSH(&m->replaces);

	if (!to)
		return -ENOMEM;
	*to = rec;
	return 0;
}

static int add_record(struct pseudoimg_model *m, const struct wire_head *rec, uint64_t order)
{
	if (wire_check(rec) < 0) {
		m->nr_bad++;
		return 0;
	}
	switch (rec->type) {
	case WIRE_IMAGE: /* there is one, the first */
		m->nr_bad++;
		return 0;
	case WIRE_RUN:
		return add_run(m, (const void *)rec, order);
	case WIRE_ROUTINE:
		return add_routine(m, rec, order);
	case WIRE_BYTES:
		return add_bytes(m, (const void *)rec, order);
	case WIRE_REPLACES:
		return add_replaces(m, (const void *)rec);
	default:
		return 0;
	}
}

static int read_job(struct pseudoimg_model *m, const void *job, size_t len, struct base_err *err)
{
	const struct wire_head *rec;
	size_t pos = 0;
	int r = 0;

	if ((uintptr_t)job % 8)
		return base_fail(err, -EINVAL, "cannot read pseudo-image job: not aligned");
	rec = wire_next(job, len, &pos);
	if (!rec || rec->type != WIRE_IMAGE || wire_check(rec) < 0)
		return base_fail(err, -DCPI_EFORMAT,
				 "cannot read pseudo-image job: it does not begin with its head");
	m->image = (const void *)rec;
	if (!pseudoimg_machine_known(m->image->machine))
		return base_fail(err, -DCPI_EUNSUPPORTED,
				 "cannot write code of machine %u: neither x86-64, aarch64 nor "
				 "riscv64",
				 (unsigned int)m->image->machine);
	for (uint64_t order = 0; r >= 0 && (rec = wire_next(job, len, &pos)); order++)
		r = add_record(m, rec, order);
	if (r < 0)
		return base_fail_errno(err, r, "cannot read pseudo-image job");
	if (pos != len)
		return base_fail(err, -DCPI_EFORMAT,
				 "cannot read pseudo-image job: malformed record at offset %zu",
				 pos);
	return 0;
}

/* ---- places ---------------------------------------------------------------------------------- */

static void place_ranges(struct pseudoimg_model *m)
{
	size_t nr = m->ranges.nr, kept = 0;

	for (size_t i = 0; i < nr; i++)
		if (pseudoimg_runs_place(m, &m->ranges.v[i].at))
			m->ranges.v[kept++] = m->ranges.v[i];
	m->ranges.nr = pseudoimg_span_disjoint(m->ranges.v, kept, sizeof(*m->ranges.v));
	m->nr_bad += (uint32_t)(nr - m->ranges.nr);
}

static void place_routines(struct pseudoimg_model *m)
{
	size_t nr = m->routines.nr, kept = 0;

	for (size_t i = 0; i < nr; i++)
		if (pseudoimg_runs_place(m, &m->routines.v[i].at))
			m->routines.v[kept++] = m->routines.v[i];
	m->routines.nr = pseudoimg_span_disjoint(m->routines.v, kept, sizeof(*m->routines.v));
	m->nr_bad += (uint32_t)(nr - m->routines.nr);
}

/* ---- lines of routine records ---------------------------------------------------------------- */

int64_t pseudoimg_model_file(struct pseudoimg_model *m, const char *name, size_t len)
{
	uintptr_t known = (uintptr_t)base_map_get(&m->file_index, name, len);
	struct pseudoimg_str *file;
	int r;

	if (known)
		return (int64_t)known - 1;
	file = PSEUDOIMG_PUSH(&m->files);
	if (!file)
		return -ENOMEM;
	*file = (struct pseudoimg_str){ name, len };
	r = base_map_set(&m->file_index, name, len, (void *)(uintptr_t)m->files.nr);
	return r < 0 ? r : (int64_t)m->files.nr - 1;
}

/* The record's files by their number there; those without a name stand for no source. */
static int record_files(struct pseudoimg_model *m, const struct wire_routine_view *view,
			struct base_buf *out)
{
	size_t pos = 0, len = 0;
	uint32_t *numbers;
	void *room;
	int r;

	base_buf_clear(out);
	r = base_buf_extend(out, view->rec->nr_files * sizeof(uint32_t), &room);
	if (r < 0)
		return r;
	numbers = room;
	for (uint32_t i = 0; i < view->rec->nr_files; i++) {
		const char *name = wire_file_next(view, &pos, &len);
		int64_t file = PSEUDOIMG_NO_FILE;

		if (name && len && (file = pseudoimg_model_file(m, name, len)) < 0)
			return (int)file;
		numbers[i] = (uint32_t)file;
	}
	return 0;
}

static int record_rows(struct pseudoimg_model *m, const struct pseudoimg_routine *routine,
		       const struct wire_routine_view *view, const uint32_t *files)
{
	uint32_t nr = view->rec->nr_lines, first = view->lines[0].code_off;
	struct pseudoimg_seq *seq = PSEUDOIMG_PUSH(&m->seqs);
	struct pseudoimg_row *row;

	if (!seq)
		return -ENOMEM;
	*seq = (struct pseudoimg_seq){ .at = routine->at, .first_row = m->rows.nr, .nr_rows = nr };
	seq->at.start += first;
	seq->at.len -= first;
	pseudoimg_runs_place(m, &seq->at);
	for (uint32_t i = 0; i < nr; i++) {
		const struct wire_line *l = &view->lines[i];
		uint32_t file = l->line ? files[l->file] : PSEUDOIMG_NO_FILE;

		row = PSEUDOIMG_PUSH(&m->rows);
		if (!row)
			return -ENOMEM;
		*row = (struct pseudoimg_row){ .off = l->code_off - first };
		if (file != PSEUDOIMG_NO_FILE) {
			row->line = l->line;
			row->file = file;
		}
	}
	return 0;
}

static int add_record_lines(struct pseudoimg_model *m)
{
	struct wire_routine_view view;
	struct base_buf files = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < m->routines.nr; i++) {
		const struct pseudoimg_routine *routine = &m->routines.v[i];

		if (!routine->rec || !routine->rec->nr_lines)
			continue;
		r = wire_routine_parse(&routine->rec->head, &view);
		if (r >= 0)
			r = record_files(m, &view, &files);
		if (r >= 0)
			r = record_rows(m, routine, &view, (const uint32_t *)(void *)files.data);
	}
	base_buf_release(&files);
	return r;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int by_img_off(const void *a, const void *b)
{
	const struct pseudoimg_span *x = a, *y = b;

	if (x->img_off != y->img_off)
		return x->img_off < y->img_off ? -1 : 1;
	if (x->len != y->len)
		return x->len > y->len ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static void sort_all(struct pseudoimg_model *m, int (*compare)(const void *, const void *))
{
	if (m->routines.nr)
		qsort(m->routines.v, m->routines.nr, sizeof(*m->routines.v), compare);
	if (m->ranges.nr)
		qsort(m->ranges.v, m->ranges.nr, sizeof(*m->ranges.v), compare);
	if (m->seqs.nr)
		qsort(m->seqs.v, m->seqs.nr, sizeof(*m->seqs.v), compare);
}

void pseudoimg_model_sort(struct pseudoimg_model *m)
{
	sort_all(m, pseudoimg_span_compare);
}

/* Files get their numbers in the order of their first line, unused ones none. */
static int number_files(struct pseudoimg_model *m)
{
	struct pseudoimg_str *files = calloc(m->files.nr + 1, sizeof(*files));
	uint32_t *number = calloc(m->files.nr + 1, sizeof(*number));
	uint32_t nr = 0;

	if (!files || !number) {
		free(files);
		free(number);
		return -ENOMEM;
	}
	for (size_t i = 0; i < m->seqs.nr; i++) {
		for (uint32_t k = 0; k < m->seqs.v[i].nr_rows; k++) {
			struct pseudoimg_row *row = &m->rows.v[m->seqs.v[i].first_row + k];

			if (!row->line)
				continue;
			if (!number[row->file]) {
				files[nr] = m->files.v[row->file];
				number[row->file] = ++nr;
			}
			row->file = number[row->file] - 1;
		}
	}
	free(number);
	free(m->files.v);
	m->files.v = files;
	m->files.nr = nr;
	m->files.cap = nr + 1;
	return 0;
}

int pseudoimg_model_read(struct pseudoimg_model *m, const void *job, size_t job_len,
			 struct base_err *err)
{
	int r = read_job(m, job, job_len, err);

	if (r < 0)
		return r;
	m->nr_bad += pseudoimg_runs_settle(m);
	place_ranges(m);
	place_routines(m);
	r = pseudoimg_model_dst(m);
	if (r >= 0)
		r = add_record_lines(m);
	if (r >= 0) {
		sort_all(m, by_img_off);
		r = number_files(m);
	}
	return r < 0 ? base_fail_errno(err, r, "cannot read pseudo-image job") : 0;
}

void pseudoimg_model_release(struct pseudoimg_model *m)
{
	for (size_t i = 0; i < m->dst.nr; i++) {
		pseudoimg_dst_release(&m->dst.v[i].dst);
		free(m->dst.v[i].copy);
		base_buf_release(&m->dst.v[i].sent);
	}
	free(m->runs.v);
	free(m->routines.v);
	free(m->ranges.v);
	free(m->seqs.v);
	free(m->rows.v);
	free(m->files.v);
	free(m->dst.v);
	free(m->replaces.v);
	base_map_release(&m->file_index);
	memset(m, 0, sizeof(*m));
}
