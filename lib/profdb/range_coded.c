/* SPDX-License-Identifier: BSD-2-Clause */
/* Many counts of a profile, in half the room: the numbers of CNTS through range_coder.c, with a
 * model for the gaps, and one for each event's counts. docs/format/dcpiformat.md */
#include <errno.h>
#include <stdlib.h>

#include "profdb_internal.h"

enum { HEAD = 8 };

int profdb_range_coded_print(const struct profdb_profile *p, struct base_buf *out)
{
	struct profdb_range_model *m = profdb_range_models(1 + p->nr_events);
	struct profdb_range_encoder e;
	uint64_t next = 0;
	uint8_t head[HEAD];

	if (!m)
		return -ENOMEM;
	profdb_range_begin(&e, out);
	profdb_put64(head, p->counts.nr);
	e.error = base_buf_append(out, head, sizeof(head));
	for (size_t i = 0; e.error >= 0 && i < p->counts.nr; i++) {
		const struct profdb_entry *row = profdb_profile_entry(p, i);

		profdb_range_put(&e, &m[0], row->off - next);
		for (size_t k = 0; k < p->nr_events; k++)
			profdb_range_put(&e, &m[1 + k], row->count[k]);
		next = row->off + 1;
	}
	free(m);
	return profdb_range_end(&e);
}

static int get_row(struct profdb_range_decoder *d, struct profdb_range_model *m,
		   struct profdb_rows *rows)
{
	uint64_t gap, count[PROFDB_NR_EVENTS];
	int r = profdb_range_get(d, m, &gap);

	for (size_t k = 0; r >= 0 && k < rows->p->nr_events; k++)
		r = profdb_range_get(d, &m[1 + k], &count[k]);
	return r < 0 ? r : profdb_rows_take(rows, gap, count);
}

static int get_rows(struct profdb_range_decoder *d, uint64_t nr, struct profdb_profile *p)
{
	struct profdb_range_model *m = profdb_range_models(1 + p->nr_events);
	struct profdb_rows rows = { .p = p };
	int r = m ? 0 : -ENOMEM;

	for (uint64_t i = 0; r >= 0 && i < nr; i++)
		r = get_row(d, m, &rows);
	free(m);
	return r;
}

int profdb_range_coded_parse(const uint8_t *data, size_t len, struct profdb_profile *p)
{
	struct profdb_range_decoder d;
	uint64_t nr;
	int r;

	if (len < HEAD || profdb_range_open(&d, data + HEAD, len - HEAD) < 0)
		return -DCPI_EFORMAT;
	nr = profdb_get64(data);
	if (len < profdb_range_least(nr))
		return -DCPI_EFORMAT;
	r = get_rows(&d, nr, p);
	return r < 0 ? r : d.pos == d.len ? 0 : -DCPI_EFORMAT;
}
