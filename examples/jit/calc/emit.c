/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "emit.h"

#define UNBOUND UINT32_MAX

/* Every label and every jump comes with some bytes of code, so their number is bounded by those. */
struct emit *emit_new(size_t cap)
{
	struct emit *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->cap = cap;
	e->buf = malloc(cap);
	e->labels = malloc(cap / 2 * sizeof(*e->labels));
	e->fixups = malloc(cap / 2 * sizeof(*e->fixups));
	if (!e->buf || !e->labels || !e->fixups) {
		emit_free(e);
		return NULL;
	}
	return e;
}

void emit_free(struct emit *e)
{
	if (!e)
		return;
	free(e->buf);
	free(e->labels);
	free(e->fixups);
	free(e);
}

void emit_reset(struct emit *e)
{
	e->len = 0;
	e->failed = false;
	e->nr_labels = 0;
	e->nr_fixups = 0;
}

void emit_bytes(struct emit *e, const void *bytes, size_t len)
{
	if (e->failed || e->cap - e->len < len) {
		e->failed = true;
		return;
	}
	memcpy(e->buf + e->len, bytes, len);
	e->len += len;
}

emit_label emit_label_new(struct emit *e)
{
	if (e->nr_labels == e->cap / 2) {
		e->failed = true;
		return 0;
	}
	e->labels[e->nr_labels] = UNBOUND;
	return e->nr_labels++;
}

void emit_label_bind(struct emit *e, emit_label label)
{
	e->labels[label] = (uint32_t)e->len;
}

void emit_label_use(struct emit *e, uint32_t at, emit_label label)
{
	if (e->nr_fixups == e->cap / 2)
		e->failed = true;
	if (!e->failed)
		e->fixups[e->nr_fixups++] = (struct emit_fixup){ at, label };
}

void emit_finish(struct emit *e)
{
	for (unsigned int i = 0; i < e->nr_fixups && !e->failed; i++)
		emit_patch(e, e->fixups[i].at, e->labels[e->fixups[i].label]);
}
