/* SPDX-License-Identifier: BSD-2-Clause */
/* An unwind table is made from what a process's routines do with their stack. */
#include <errno.h>
#include <stdlib.h>

#include "height.h"
#include "reader_code.h"
#include "reader_routine.h"
#include "unwind.h"

enum { ROUTINE_LEN_MAX = HEIGHT_MAX_LEN };

struct making {
	struct unwind_builder *builder;
	struct height *height;
	const struct registry_memory *memory;
	uint64_t start, end;
	uint8_t *code; /* ROUTINE_LEN_MAX */
	uint64_t at;   /* the last row's, or the end of the last routine */
};

static int row(void *ctx, uint64_t addr, const struct unwind_rule *rule)
{
	struct making *m = ctx;

	if (addr >= m->end)
		addr = m->end;
	return unwind_builder_add(m->builder, addr > m->start ? addr : m->start, rule);
}

static int add_routine(struct making *m, const struct reader_routine *q)
{
	const struct unwind_rule none = { .how = UNWIND_NONE };
	ssize_t n;
	int r = 0;

	if (q->addr < m->at || base_add_overflow(q->addr, q->len, &m->at))
		return -EINVAL;
	if (!q->len || q->len > ROUTINE_LEN_MAX || q->addr >= m->end)
		return 0;
	n = m->memory->read(m->memory->ctx, q->addr, m->code, q->len);
	if (n == (ssize_t)q->len)
		r = height_rows(m->height, m->code, q->len, q->addr, row, m, NULL);
	return r < 0 ? r : row(m, q->addr + q->len, &none);
}

static int add_routines(struct making *m, int fd)
{
	struct reader_routine q;
	int r = 0;

	for (uint64_t i = 0; r >= 0 && i < READER_ROUTINES_MAX; i++) {
		if (base_read_part(fd, i * sizeof(q), &q, sizeof(q)) < sizeof(q))
			break;
		r = add_routine(m, &q);
	}
	return r;
}

int reader_code_table(int fd, uint64_t start, uint64_t end, const struct registry_memory *memory,
		      struct unwind_table **out)
{
	struct making m = { .memory = memory, .start = start, .end = end };
	int r = height_open(REGISTRY_MACHINE, &m.height);

	*out = NULL;
	m.builder = unwind_builder_new();
	m.code = malloc(ROUTINE_LEN_MAX);
	if (r >= 0 && (!m.builder || !m.code))
		r = -ENOMEM;
	if (r >= 0)
		r = add_routines(&m, fd);
	if (r >= 0)
		r = unwind_builder_done(m.builder, out);
	unwind_builder_free(m.builder);
	height_close(m.height);
	free(m.code);
	return r;
}
