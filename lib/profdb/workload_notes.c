/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes of the daemon beside workloads: why time has no samples, or twice as many, and for how long
 * the CPUs idled. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

/* The order is one of all that they hold, so that a file does not depend on how it was merged. */
static int earlier_first(const void *pa, const void *pb)
{
	const struct profdb_note *a = pa, *b = pb;

	if (a->utc != b->utc)
		return a->utc < b->utc ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	return a->of < b->of ? -1 : a->of > b->of;
}

/* Their order is no part of what they say: sorting does not change const ones. */
static void sort(const struct profdb_workloads *w)
{
	struct profdb_notes *t = (struct profdb_notes *)&w->notes;

	if (!t->sorted && t->nr)
		qsort(t->v, t->nr, sizeof(*t->v), earlier_first);
	t->sorted = true;
}

/* Readers add and subtract times, and none of these runs over. */
#define FARTHEST (INT64_MAX / 4)

static bool is_valid(const struct profdb_note *n)
{
	if (n->utc < 0 || n->utc > FARTHEST || n->n > FARTHEST || n->n < -FARTHEST)
		return false;
	if (n->kind == PROFDB_NOTE_IDLE)
		return n->n >= 0 && n->of <= FARTHEST && (uint64_t)n->n <= n->of;
	return n->kind < PROFDB_NR_NOTE_KINDS && !n->of &&
	       (n->n >= 0 || n->kind == PROFDB_NOTE_CLOCK);
}

int profdb_workloads_note(struct profdb_workloads *w, const struct profdb_note *n)
{
	struct profdb_notes *t = &w->notes;
	int r;

	if (!is_valid(n))
		return -EINVAL;
	if (t->nr >= PROFDB_NR_NOTES)
		return 0;
	r = base_grow(&t->v, &t->cap, t->nr + 1, sizeof(*t->v));
	if (r < 0)
		return r;
	t->v[t->nr++] = *n;
	t->sorted = false;
	return 0;
}

size_t profdb_workloads_nr_notes(const struct profdb_workloads *w)
{
	return w->notes.nr;
}

const struct profdb_note *profdb_workloads_note_at(const struct profdb_workloads *w, size_t index)
{
	sort(w);
	return index < w->notes.nr ? &w->notes.v[index] : NULL;
}

int profdb_notes_merge(struct profdb_workloads *to, const struct profdb_workloads *from)
{
	int r = 0;

	for (size_t i = 0; i < from->notes.nr && r >= 0; i++)
		r = profdb_workloads_note(to, &from->notes.v[i]);
	return r;
}

/* ---- the section ----------------------------------------------------------------------------- */

/* The sign is the lowest bit, as a clock is set back as well as ahead. */
static uint64_t folded(int64_t n)
{
	return n < 0 ? (uint64_t) - (n + 1) << 1 | 1 : (uint64_t)n << 1;
}

static int64_t unfolded(uint64_t v)
{
	return v & 1 ? -(int64_t)(v >> 1) - 1 : (int64_t)(v >> 1);
}

static int get_note(const struct profdb_payload *s, size_t *pos, int64_t *last,
		    struct profdb_note *out)
{
	uint64_t gap, kind, n;
	int r = profdb_varint_get(s, pos, &gap);

	*out = (struct profdb_note){ 0 };
	if (r >= 0)
		r = profdb_varint_get(s, pos, &kind);
	if (r >= 0)
		r = profdb_varint_get(s, pos, &n);
	if (r < 0 || kind >= PROFDB_NR_NOTE_KINDS || gap > (uint64_t)(INT64_MAX - *last))
		return -DCPI_EFORMAT;
	out->utc = *last += (int64_t)gap;
	out->kind = (enum profdb_note_kind)kind;
	out->n = unfolded(n);
	if (out->kind == PROFDB_NOTE_IDLE)
		r = profdb_varint_get(s, pos, &out->of);
	return r < 0 || !is_valid(out) ? -DCPI_EFORMAT : 0;
}

int profdb_notes_parse(struct profdb_workloads *w, const struct profdb_payload *s)
{
	struct profdb_note n;
	int64_t last = 0;
	size_t pos = 0;
	int r = w->notes.nr || !s->len ? -DCPI_EFORMAT : 0;

	while (r >= 0 && pos < s->len) {
		r = get_note(s, &pos, &last, &n);
		if (r >= 0)
			r = profdb_workloads_note(w, &n);
	}
	return r;
}

static int put_note(const struct profdb_note *n, int64_t last, struct base_buf *out)
{
	int r = base_buf_append_leb128(out, (uint64_t)(n->utc - last));

	if (r >= 0)
		r = base_buf_append_leb128(out, (uint64_t)n->kind);
	if (r >= 0)
		r = base_buf_append_leb128(out, folded(n->n));
	if (r >= 0 && n->kind == PROFDB_NOTE_IDLE)
		r = base_buf_append_leb128(out, n->of);
	return r;
}

int profdb_notes_print(const struct profdb_workloads *w, struct base_buf *out)
{
	int64_t last = 0;
	size_t at;
	int r;

	if (!w->notes.nr)
		return 0;
	sort(w);
	r = profdb_section_begin(out, PROFDB_NOTES_TAG, &at);
	for (size_t i = 0; r >= 0 && i < w->notes.nr; i++) {
		r = put_note(&w->notes.v[i], last, out);
		last = w->notes.v[i].utc;
	}
	return r < 0 ? r : profdb_section_end(out, at);
}
