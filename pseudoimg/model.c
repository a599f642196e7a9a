/* SPDX-License-Identifier: BSD-2-Clause */
/* A job's records become routines, ranges and lines, each at its place. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "pseudoimg_internal.h"

/* ---- the order of routines ------------------------------------------------------------------- */

/* As pseudoimg_span_compare. */
static int compare(const void *a, const void *b)
{
	const struct pseudoimg_node *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->len != y->len)
		return x->len > y->len ? -1 : 1;
	return (x->ref > y->ref) - (x->ref < y->ref);
}

/* Mostly they come in order; qsort would take as much memory again. */
void pseudoimg_nodes_sort(struct pseudoimg_model *m)
{
	struct pseudoimg_node *v = m->nodes.v;

	for (size_t i = 1; i < m->nodes.nr; i++)
		if (compare(&v[i - 1], &v[i]) > 0) {
			qsort(v, m->nodes.nr, sizeof(*v), compare);
			return;
		}
}

/* Nodes that overlap earlier ones are refused and counted. */
static void pseudoimg_nodes_settle(struct pseudoimg_model *m)
{
	struct pseudoimg_node *v = m->nodes.v;
	size_t kept = 0;

	pseudoimg_nodes_sort(m);
	for (size_t i = 0; i < m->nodes.nr; i++) {
		if (kept && v[i].start < v[kept - 1].start + v[kept - 1].len) {
			if (v[i].ref < v[kept - 1].ref)
				v[kept - 1] = v[i];
			continue;
		}
		v[kept++] = v[i];
	}
	m->nr_bad += (uint32_t)(m->nodes.nr - kept);
	m->nr_overlaps += (uint32_t)(m->nodes.nr - kept);
	m->nodes.nr = kept;
}

/* ---- image offsets of addresses -------------------------------------------------------------- */

static void swap_keys(struct pseudoimg_model *m)
{
	for (size_t i = 0; i < m->runs.nr; i++) {
		uint64_t start = m->runs.v[i].start;

		m->runs.v[i].start = m->runs.v[i].img_off;
		m->runs.v[i].img_off = start;
	}
}

static void merge_neighbours(struct pseudoimg_model *m)
{
	struct pseudoimg_span *v = m->runs.v;
	size_t kept = 0;

	for (size_t i = 0; i < m->runs.nr; i++) {
		if (kept && pseudoimg_span_end(&v[kept - 1]) == v[i].start &&
		    v[kept - 1].img_off + v[kept - 1].len == v[i].img_off)
			v[kept - 1].len += v[i].len;
		else
			v[kept++] = v[i];
	}
	m->runs.nr = kept;
}

static int order_by_off(struct pseudoimg_model *m)
{
	struct pseudoimg_span *copy = calloc(m->runs.nr + 1, sizeof(*copy));
	int r = copy ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < m->runs.nr; i++) {
		copy[i] = m->runs.v[i];
		copy[i].order = i;
	}
	if (r >= 0 && m->runs.nr)
		qsort(copy, m->runs.nr, sizeof(*copy), pseudoimg_span_by_off);
	for (size_t i = 0; r >= 0 && i < m->runs.nr; i++) {
		uint32_t *to = PSEUDOIMG_PUSH(&m->runs_by_off);

		if (!to)
			r = -ENOMEM;
		else
			*to = (uint32_t)copy[i].order;
	}
	free(copy);
	return r;
}

/* Bad runs dropped, the rest sorted, neighbours merged. 0 or -ENOMEM; counts what was refused. */
static int pseudoimg_runs_settle(struct pseudoimg_model *m)
{
	size_t before = m->runs.nr, left;

	/* Neither may an address have two offsets nor an offset two addresses. */
	m->runs.nr = pseudoimg_span_disjoint(m->runs.v, m->runs.nr, sizeof(*m->runs.v));
	swap_keys(m);
	m->runs.nr = pseudoimg_span_disjoint(m->runs.v, m->runs.nr, sizeof(*m->runs.v));
	swap_keys(m);
	left = pseudoimg_span_disjoint(m->runs.v, m->runs.nr, sizeof(*m->runs.v));
	m->runs.nr = left;
	merge_neighbours(m);
	m->nr_bad += (uint32_t)(before - left);
	m->nr_overlaps += (uint32_t)(before - left);
	return order_by_off(m);
}

const struct pseudoimg_span *pseudoimg_runs_find(const struct pseudoimg_model *m, uint64_t vaddr)
{
	const struct pseudoimg_span *run = pseudoimg_span_find(m->runs.v, m->runs.nr, vaddr);

	return run && vaddr - run->start < run->len ? run : NULL;
}

bool pseudoimg_runs_place(const struct pseudoimg_model *m, struct pseudoimg_span *at)
{
	const struct pseudoimg_span *run = pseudoimg_runs_find(m, at->start), *end;

	if (!run)
		return false;
	end = m->runs.v + m->runs.nr;
	at->img_off = run->img_off + (at->start - run->start);
	while (pseudoimg_span_end(run) < pseudoimg_span_end(at)) {
		if (run + 1 == end || run[1].start != pseudoimg_span_end(run))
			return false;
		run++;
	}
	return true;
}

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

static int add_routine(struct pseudoimg_model *m, const struct wire_head *rec, uint64_t off)
{
	const struct wire_routine *r = (const void *)rec;
	struct pseudoimg_node *to;

	if (off / 8 >= PSEUDOIMG_DST_REF)
		return -DCPI_ELIMIT;
	to = PSEUDOIMG_PUSH(&m->nodes);
	if (!to)
		return -ENOMEM;
	*to = (struct pseudoimg_node){
		.start = r->addr,
		.len = (uint32_t)r->code_len,
		.code = (rec->flags & WIRE_ROUTINE_CODE) != 0,
		.lines = r->nr_lines > 0,
		.inlines = r->nr_inlines > 0,
		.ref = (uint32_t)(off / 8),
	};
	return 0;
}

/* Whether the reader left trailing zeros out must make no difference. */
static int trim(struct pseudoimg_job *job, uint64_t off, uint64_t *len)
{
	uint8_t chunk[4096];

	while (*len) {
		size_t n = *len < sizeof(chunk) ? *len : sizeof(chunk), left = n;
		int r = pseudoimg_job_read(job, off + *len - n, chunk, n);

		if (r < 0)
			return r;
		while (left && !chunk[left - 1])
			left--;
		*len -= n - left;
		if (left)
			break;
	}
	return 0;
}

static int add_code(struct pseudoimg_model *m, const struct wire_bytes *b, uint64_t off)
{
	struct pseudoimg_range *to = PSEUDOIMG_PUSH(&m->ranges);

	if (!to)
		return -ENOMEM;
	*to = (struct pseudoimg_range){
		.at = { .start = b->vaddr, .len = b->bytes_len, .order = off },
		.bytes_off = off + sizeof(*b),
		.range_base = b->range_base,
		.range_len = b->range_len,
		.facility = b->facility,
	};
	return trim(m->job, to->bytes_off, &to->at.len);
}

/* Parts of a range that is longer than a record follow each other. */
static int add_dst(struct pseudoimg_model *m, const struct wire_bytes *b, uint64_t off)
{
	struct pseudoimg_dst_range *to = m->dst.nr ? &m->dst.v[m->dst.nr - 1] : NULL;
	size_t len = (size_t)b->bytes_len;
	void *space;
	int r;

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
	r = base_buf_extend(&to->sent, len, &space);
	return r < 0 ? r : pseudoimg_job_read(m->job, off + sizeof(*b), space, len);
}

static int add_bytes(struct pseudoimg_model *m, const struct wire_bytes *b, uint64_t off)
{
	const struct wire_bytes copy = *b; /* the record goes where the next bytes come */

	switch (copy.kind) {
	case WIRE_RANGE_CODE:
		return add_code(m, &copy, off);
	case WIRE_RANGE_DST:
		return add_dst(m, &copy, off);
	default:
		m->nr_bad++;
		return 0;
	}
}

/* The note must not grow with each process that is folded: of most only their number is kept. */
static int add_instance(struct pseudoimg_model *m, const struct wire_instance *rec)
{
	bool more = rec->head.flags & WIRE_INSTANCE_MORE;

	if (!more && m->nr_instances < PSEUDOIMG_INSTANCES_MAX) {
		m->nr_instances++;
		return base_buf_append(&m->notes, rec, rec->head.len);
	}
	m->nr_more += more ? rec->pid : 1;
	return 0;
}

static int put_more(struct pseudoimg_model *m)
{
	struct wire_instance rec = {
		.head = { .len = sizeof(rec), .type = WIRE_INSTANCE, .flags = WIRE_INSTANCE_MORE }
	};

	if (!m->nr_more)
		return 0;
	rec.pid = m->nr_more < UINT32_MAX ? (uint32_t)m->nr_more : UINT32_MAX;
	return base_buf_append(&m->notes, &rec, sizeof(rec));
}

static int add_record(struct pseudoimg_model *m, const struct wire_head *rec, uint64_t off)
{
	switch (rec->type) {
	case WIRE_IMAGE: /* there is one, the first */
	case WIRE_RUN:
	case WIRE_ROUTINE:
	case WIRE_BYTES:
	case WIRE_REPLACES:
	case WIRE_PLACE:
	case WIRE_INSTANCE:
		break;
	default:
		return 0;
	}
	if (rec->type == WIRE_IMAGE || wire_check(rec) < 0) {
		m->nr_bad++;
		return 0;
	}
	switch (rec->type) {
	case WIRE_RUN:
		return add_run(m, (const void *)rec, off);
	case WIRE_ROUTINE:
		return add_routine(m, rec, off);
	case WIRE_BYTES:
		return add_bytes(m, (const void *)rec, off);
	case WIRE_INSTANCE:
		return add_instance(m, (const void *)rec);
	default:
		return base_buf_append(&m->notes, rec, rec->len);
	}
}

static int read_head(struct pseudoimg_model *m, uint64_t *pos, struct base_err *err)
{
	const struct wire_head *rec;
	int r = pseudoimg_job_next(m->job, pos, &rec);

	if (r < 0 && r != -DCPI_EFORMAT)
		return base_fail_errno(err, r, "cannot read pseudo-image job");
	if (r <= 0 || rec->type != WIRE_IMAGE || wire_check(rec) < 0)
		return base_fail(err, -DCPI_EFORMAT,
				 "cannot read pseudo-image job: it does not begin with its head");
	m->image = malloc(rec->len);
	if (!m->image)
		return base_fail_errno(err, -ENOMEM, "cannot read pseudo-image job");
	memcpy(m->image, rec, rec->len);
	if (!pseudoimg_machine_known(m->image->machine))
		return base_fail(err, -DCPI_EUNSUPPORTED,
				 "cannot write code of machine %u: neither x86-64, aarch64 nor "
				 "riscv64",
				 (unsigned int)m->image->machine);
	return 0;
}

static int read_job(struct pseudoimg_model *m, struct base_err *err)
{
	const struct wire_head *rec;
	uint64_t pos = 0, off;
	int r;

	if ((uintptr_t)m->job->data % 8)
		return base_fail(err, -EINVAL, "cannot read pseudo-image job: not aligned");
	r = read_head(m, &pos, err);
	if (r < 0)
		return r;
	for (off = pos; (r = pseudoimg_job_next(m->job, &pos, &rec)) > 0; off = pos) {
		r = add_record(m, rec, off);
		if (r < 0)
			break;
	}
	if (r == -DCPI_EFORMAT)
		return base_fail(err, r,
				 "cannot read pseudo-image job: malformed record at offset %llu",
				 (unsigned long long)off);
	return r < 0 ? base_fail_errno(err, r, "cannot read pseudo-image job") : 0;
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
	m->nr_overlaps += (uint32_t)(kept - m->ranges.nr);
}

static void place_routines(struct pseudoimg_model *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->nodes.nr; i++) {
		struct pseudoimg_span at = pseudoimg_node_span(&m->nodes.v[i]);

		if (pseudoimg_runs_place(m, &at))
			m->nodes.v[kept++] = m->nodes.v[i];
	}
	m->nr_bad += (uint32_t)(m->nodes.nr - kept);
	m->nodes.nr = kept;
	pseudoimg_nodes_settle(m);
}

/* A place of its own must be one of the image's. */
static void check_notes(struct pseudoimg_model *m)
{
	const struct wire_head *rec;
	size_t pos = 0, kept = 0;

	while ((rec = wire_next(m->notes.data, m->notes.len, &pos))) {
		const struct wire_place *place = (const void *)rec;
		struct pseudoimg_span at;

		if (rec->type == WIRE_PLACE) {
			at = (struct pseudoimg_span){ .start = place->elf, .len = place->len };
			if (!pseudoimg_runs_place(m, &at)) {
				m->nr_bad++;
				continue;
			}
		}
		uint32_t len = rec->len;

		memmove(m->notes.data + kept, rec, len);
		kept += len;
	}
	m->notes.len = kept;
}

/* ---- one routine ----------------------------------------------------------------------------- */

size_t pseudoimg_model_from(const struct pseudoimg_model *m, uint64_t vaddr)
{
	return BASE_LOWER_BOUND(m->nodes.v, m->nodes.nr, start, vaddr);
}

int pseudoimg_model_load(struct pseudoimg_model *m, const struct pseudoimg_node *node,
			 struct pseudoimg_loaded *out)
{
	const struct wire_head *rec;
	int r;

	*out = (struct pseudoimg_loaded){ 0 };
	if (node->ref >= PSEUDOIMG_DST_REF) {
		out->name = m->dst_names.v[node->ref - PSEUDOIMG_DST_REF];
		return 0;
	}
	r = pseudoimg_job_at(m->job, (uint64_t)node->ref * 8, &rec);
	if (r < 0)
		return r;
	/* A file may change under its reader, who then must not trip. */
	if (wire_routine_parse(rec, &out->view) < 0 || out->view.rec->addr != node->start ||
	    out->view.rec->code_len != node->len || !out->view.code != !node->code)
		return -DCPI_EFORMAT;
	out->name = (struct pseudoimg_str){ out->view.name, out->view.rec->name_len };
	return 0;
}

static bool has_locations(const struct wire_routine_view *v)
{
	return v->rec->head.flags & WIRE_ROUTINE_LOCATIONS && v->rec->nr_lines == 1 &&
	       v->rec->nr_files == 2 && !v->lines[0].file;
}

/* The record's files by their number there; those without a name stand for no source. */
static int load_names(struct pseudoimg_model *m, struct pseudoimg_loaded *l)
{
	uint32_t nr = l->view.rec->nr_files, *names;
	size_t pos = 0, len = 0;
	void *space;
	int r;

	base_buf_clear(&m->loaded_names);
	r = base_buf_extend(&m->loaded_names, nr * sizeof(*names), &space);
	if (r < 0)
		return r;
	names = space;
	for (uint32_t i = 0; i < nr; i++) {
		const char *name = wire_file_next(&l->view, &pos, &len);
		int64_t index = PSEUDOIMG_NO_FILE;

		if (i == nr - 1 && has_locations(&l->view)) {
			l->locations = (const uint8_t *)name;
			l->locations_len = len;
			name = NULL;
		}
		if (name && len && (index = pseudoimg_names_put(&m->names, name, len)) < 0)
			return (int)index;
		names[i] = (uint32_t)index;
	}
	l->names = names;
	return 0;
}

/* Lines of the record, from @first on. */
static int load_lines(struct pseudoimg_model *m, const struct pseudoimg_loaded *l, uint32_t first)
{
	uint32_t nr = l->view.rec->nr_lines;
	struct pseudoimg_row *rows;
	void *space;
	int r = base_buf_extend(&m->loaded_rows, nr * sizeof(*rows), &space);
	if (r < 0)
		return r;
	rows = space;
	for (uint32_t i = 0; i < nr; i++) {
		const struct wire_line *from = &l->view.lines[i];
		uint32_t file = from->line ? l->names[from->file] : PSEUDOIMG_NO_FILE;

		rows[i].off = from->code_off - first;
		if (file != PSEUDOIMG_NO_FILE) {
			rows[i].line = from->line;
			rows[i].file = file;
			rows[i].column = from->column;
			rows[i].discriminator = from->discriminator;
		}
	}
	return 0;
}

static int load_rows(struct pseudoimg_model *m, const struct pseudoimg_node *node,
		     struct pseudoimg_loaded *l)
{
	uint32_t first = l->view.rec->nr_lines ? l->view.lines[0].code_off : 0;
	int r;

	base_buf_clear(&m->loaded_rows);
	if (l->locations) {
		first = 0;
		r = pseudoimg_locations_read(l->locations, l->locations_len, l->view.lines[0].line,
					     node->len, l->names[0], &m->loaded_rows);
	} else {
		r = load_lines(m, l, first);
	}
	if (r < 0)
		return r;
	l->seq = (struct pseudoimg_seq){ .at = pseudoimg_node_span(node),
					 .rows = (const void *)m->loaded_rows.data,
					 .nr_rows = (uint32_t)(m->loaded_rows.len /
							       sizeof(struct pseudoimg_row)) };
	l->seq.at.start += first;
	l->seq.at.len -= first;
	pseudoimg_runs_place(m, &l->seq.at);
	return 0;
}

int pseudoimg_model_load_lines(struct pseudoimg_model *m, const struct pseudoimg_node *node,
			       struct pseudoimg_loaded *out)
{
	int r = pseudoimg_model_load(m, node, out);

	if (r < 0 || !out->view.rec)
		return r;
	r = load_names(m, out);
	return r < 0 ? r : load_rows(m, node, out);
}

struct pseudoimg_seq pseudoimg_model_seq(const struct pseudoimg_model *m, size_t index)
{
	struct pseudoimg_seq seq = m->seqs.v[index];

	seq.rows = m->rows.v + seq.first_row;
	return seq;
}

/* ---- the whole ------------------------------------------------------------------------------- */

int pseudoimg_model_read(struct pseudoimg_model *m, struct pseudoimg_job *job, struct base_err *err)
{
	int r;

	m->job = job;
	r = read_job(m, err);
	if (r < 0)
		return r;
	r = pseudoimg_runs_settle(m);
	if (r >= 0) {
		place_ranges(m);
		place_routines(m);
		check_notes(m);
		r = put_more(m);
	}
	if (r >= 0)
		r = pseudoimg_model_dst(m);
	if (r >= 0 && m->seqs.nr)
		qsort(m->seqs.v, m->seqs.nr, sizeof(*m->seqs.v), pseudoimg_span_compare);
	return r < 0 ? base_fail_errno(err, r, "cannot read pseudo-image job") : 0;
}

void pseudoimg_model_release(struct pseudoimg_model *m)
{
	for (size_t i = 0; i < m->dst.nr; i++) {
		pseudoimg_dst_release(&m->dst.v[i].dst);
		free(m->dst.v[i].copy);
		base_buf_release(&m->dst.v[i].sent);
	}
	free(m->image);
	free(m->runs.v);
	free(m->runs_by_off.v);
	free(m->nodes.v);
	free(m->ranges.v);
	free(m->dst_names.v);
	free(m->seqs.v);
	free(m->rows.v);
	free(m->dst.v);
	base_buf_release(&m->notes);
	base_buf_release(&m->loaded_rows);
	base_buf_release(&m->loaded_names);
	base_buf_release(&m->loaded_text);
	base_buf_release(&m->loaded_code);
	base_buf_release(&m->hashed);
	pseudoimg_names_release(&m->names);
	memset(m, 0, sizeof(*m));
}
