/* SPDX-License-Identifier: BSD-2-Clause */
/* Sections of counts and of minutes of workloads begin and end here: a number of rows, and what the
 * range coder made of these. One code both writes and reads a row. docs/format/workloads.md */
#include <errno.h>
#include <stdlib.h>

#include "profdb_internal.h"

enum { HEAD = 8 };

void profdb_workload_code(struct profdb_workload_coder *c, size_t model, uint64_t *v)
{
	if (c->error < 0)
		*v = 0;
	else if (c->writes)
		profdb_range_put(&c->to, &c->models[model], *v);
	else
		c->error = profdb_range_get(&c->from, &c->models[model], v);
}

void profdb_workload_coder_release(struct profdb_workload_coder *c)
{
	free(c->models);
}

int profdb_workload_coder_write(struct profdb_workload_coder *c, size_t nr_models, uint64_t nr_rows,
				struct base_buf *out)
{
	uint8_t head[HEAD];
	int r;

	*c = (struct profdb_workload_coder){ .writes = true,
					     .models = profdb_range_models(nr_models),
					     .nr_rows = nr_rows,
					     .start = out->len };
	profdb_put64(head, nr_rows);
	r = c->models ? base_buf_append(out, head, sizeof(head)) : -ENOMEM;
	profdb_range_begin(&c->to, out);
	return r;
}

/* A section that the range coder made shorter than a reader would trust is filled up. */
int profdb_workload_coder_end(struct profdb_workload_coder *c)
{
	struct base_buf *out = c->to.out;
	int r = c->error < 0 ? c->error : profdb_range_end(&c->to);
	size_t len = out->len - c->start;

	if (r < 0 || len >= profdb_range_least(c->nr_rows))
		return r;
	return base_buf_extend(out, (size_t)profdb_range_least(c->nr_rows) - len, NULL);
}

int profdb_workload_coder_read(struct profdb_workload_coder *c, size_t nr_models,
			       const struct profdb_payload *s)
{
	*c = (struct profdb_workload_coder){ 0 };
	if (s->len < HEAD || profdb_range_open(&c->from, s->data + HEAD, s->len - HEAD) < 0)
		return -DCPI_EFORMAT;
	c->nr_rows = profdb_get64(s->data);
	if (s->len < profdb_range_least(c->nr_rows))
		return -DCPI_EFORMAT;
	c->models = profdb_range_models(nr_models);
	return c->models ? 0 : -ENOMEM;
}

bool profdb_workload_coder_done(const struct profdb_workload_coder *c)
{
	for (size_t i = c->from.pos; i < c->from.len; i++)
		if (c->from.data[i])
			return false;
	return c->error >= 0 && c->from.pos <= c->from.len;
}
