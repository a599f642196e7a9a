/* SPDX-License-Identifier: BSD-2-Clause */
/* An unwind table is made from what a process's routines do with their stack. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "height.h"
#include "reader_code.h"
#include "reader_routine.h"
#include "unwind.h"
#include "wire.h"

enum { ROUTINE_LEN_MAX = HEIGHT_MAX_LEN, PART_MAX = 1 << 20, KEPT_BYTES = 64 << 20 };

struct kept_row {
	uint32_t off;
	struct unwind_rule rule;
};

/* Its rows hold wherever such code stands. */
struct reader_code_routine {
	struct kept_row *rows;
	size_t nr, cap;
	size_t len;
	uint8_t code[];
};

struct making {
	struct unwind_builder *builder;
	struct reader_code_kept *kept;
	const struct registry_memory *memory;
	uint64_t start, end;
	int fd;
	uint64_t frames_off;	      /* frames begin there in the file */
	struct height_entry *entries; /* READER_ROUTINE_FRAMES_MAX */
	uint8_t *part; /* the memory from start on, as far as it could be read at once */
	size_t part_len;
	uint8_t *code; /* ROUTINE_LEN_MAX: of a routine that is not all there */
	uint64_t at;   /* the last row's, or the end of the last routine */
};

static int row(void *ctx, uint64_t addr, const struct unwind_rule *rule)
{
	struct making *m = ctx;

	if (addr >= m->end)
		addr = m->end;
	return unwind_builder_add(m->builder, addr > m->start ? addr : m->start, rule);
}

/* The routine's bytes, or NULL. */
static const uint8_t *code_of(const struct making *m, const struct reader_routine *q)
{
	uint64_t off = q->addr - m->start;

	if (q->addr >= m->start && off <= m->part_len && q->len <= m->part_len - off)
		return m->part + off;
	return m->memory->read(m->memory->ctx, q->addr, m->code, q->len) == (ssize_t)q->len
		       ? m->code
		       : NULL;
}

/* ---- kept ------------------------------------------------------------------------------------ */

static void free_routine(struct reader_code_routine *k)
{
	if (k)
		free(k->rows);
	free(k);
}

static void clear(struct reader_code_kept *kept)
{
	for (size_t i = 0; i < READER_CODE_SLOTS; i++) {
		free_routine(kept->slots[i]);
		kept->slots[i] = NULL;
	}
	kept->bytes = 0;
}

/* The routine is taken to begin at address 0. */
static int kept_row(void *ctx, uint64_t addr, const struct unwind_rule *rule)
{
	struct reader_code_routine *k = ctx;

	if (base_grow(&k->rows, &k->cap, k->nr + 1, sizeof(*k->rows)) < 0)
		return -ENOMEM;
	k->rows[k->nr++] = (struct kept_row){ (uint32_t)addr, *rule };
	return 0;
}

static struct reader_code_routine *make_routine(struct reader_code_kept *kept, const uint8_t *code,
						size_t len)
{
	struct reader_code_routine *k = calloc(1, sizeof(*k) + len);

	if (!k)
		return NULL;
	k->len = len;
	memcpy(k->code, code, len);
	if (height_rows(kept->height, k->code, len, 0, kept_row, k, NULL) >= 0)
		return k;
	free_routine(k);
	return NULL;
}

static size_t bytes_of(const struct reader_code_routine *k)
{
	return k ? sizeof(*k) + k->len + k->cap * sizeof(*k->rows) : 0;
}

/* The routine with that code, whose rules are found now if they were not before. NULL: no memory.
 */
static const struct reader_code_routine *routine_of(struct reader_code_kept *kept,
						    const uint8_t *code, size_t len)
{
	struct reader_code_routine **slot =
		&kept->slots[base_hash64(code, len) % READER_CODE_SLOTS];

	if (*slot && (*slot)->len == len && memcmp((*slot)->code, code, len) == 0)
		return *slot;
	if (kept->bytes > KEPT_BYTES)
		clear(kept);
	kept->bytes -= bytes_of(*slot);
	free_routine(*slot);
	*slot = make_routine(kept, code, len);
	kept->bytes += bytes_of(*slot);
	return *slot;
}

/* ---- a table --------------------------------------------------------------------------------- */

static int add_rows(struct making *m, const uint8_t *code, const struct reader_routine *q)
{
	const struct reader_code_routine *k = routine_of(m->kept, code, q->len);
	int r = k ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < k->nr; i++)
		r = row(m, q->addr + k->rows[i].off, &k->rows[i].rule);
	return r;
}

/* Take the routine's frames, as its runtime told of them; *@fallback: they count only where the
 * code proves nothing. -EINVAL: there are not so many. */
static int read_frames(const struct making *m, const struct reader_routine *q, bool *fallback)
{
	*fallback = false;
	for (uint32_t i = 0; i < q->nr_frames; i++) {
		uint64_t at =
			m->frames_off + ((uint64_t)q->first_frame + i) * sizeof(struct wire_frame);
		struct wire_frame f;

		if (i == READER_ROUTINE_FRAMES_MAX ||
		    base_read_part(m->fd, at, &f, sizeof(f)) < sizeof(f) || wire_frame_fault(&f))
			return -EINVAL;
		*fallback |= f.flags & WIRE_FRAME_FALLBACK;
		m->entries[i] = (struct height_entry){ .off = f.code_off,
						       .by_fp = f.flags & WIRE_FRAME_BY_FP,
						       .cfa = f.cfa_off,
						       .fp = f.fp_off,
						       .link = f.link_off };
	}
	return 0;
}

/* Told frames are of this routine, not of its code: the rules are not kept. */
static int told_rows(struct making *m, const struct reader_routine *q, const uint8_t *code)
{
	struct height_report report;
	bool fallback;
	int r = read_frames(m, q, &fallback);

	if (r < 0)
		return r;
	if (!fallback)
		height_set_entries(m->kept->height, m->entries, q->nr_frames);
	r = height_rows(m->kept->height, code, q->len, q->addr, row, m, &report);
	if (r < 0 || !fallback || report.refused != HEIGHT_NO_PROOF ||
	    report.proof != HEIGHT_BY_NOTHING)
		return r;
	height_set_entries(m->kept->height, m->entries, q->nr_frames);
	return height_rows(m->kept->height, code, q->len, q->addr, row, m, NULL);
}

static int add_routine(struct making *m, const struct reader_routine *q)
{
	const struct unwind_rule none = { .how = UNWIND_NONE };
	const uint8_t *code;
	int r = 0;

	if (q->addr < m->at || base_add_overflow(q->addr, q->len, &m->at))
		return -EINVAL;
	if (!q->len || q->len > ROUTINE_LEN_MAX || q->addr >= m->end)
		return 0;
	code = code_of(m, q);
	if (code)
		r = q->nr_frames ? told_rows(m, q, code) : add_rows(m, code, q);
	return r < 0 ? r : row(m, q->addr + q->len, &none);
}

static void read_part(struct making *m)
{
	ssize_t n = m->memory->read(m->memory->ctx, m->start, m->part, m->end - m->start);

	m->part_len = n > 0 ? (size_t)n : 0;
}

static int add_routines(struct making *m, uint64_t nr)
{
	struct reader_routine q;
	int r = 0;

	read_part(m);
	for (uint64_t i = 0; r >= 0 && i < nr; i++) {
		if (base_read_part(m->fd, i * sizeof(q), &q, sizeof(q)) < sizeof(q))
			return -EINVAL;
		r = add_routine(m, &q);
	}
	return r;
}

int reader_code_table(const struct reader_code_part *part, const struct registry_memory *memory,
		      struct reader_code_kept *kept, struct unwind_table **out)
{
	struct making m = { .kept = kept,
			    .memory = memory,
			    .start = part->start,
			    .end = part->end,
			    .fd = part->fd,
			    .frames_off = part->nr * sizeof(struct reader_routine) };
	int r = 0;

	*out = NULL;
	if (m.end <= m.start || m.end - m.start > PART_MAX || part->nr > READER_ROUTINES_MAX)
		return -EINVAL;
	if (!kept->height)
		r = height_open(REGISTRY_MACHINE, &kept->height);
	m.part = malloc(m.end - m.start);
	m.builder = unwind_builder_new();
	m.code = malloc(ROUTINE_LEN_MAX);
	m.entries = calloc(READER_ROUTINE_FRAMES_MAX, sizeof(*m.entries));
	if (r >= 0 && (!m.builder || !m.code || !m.part || !m.entries))
		r = -ENOMEM;
	if (r >= 0)
		r = add_routines(&m, part->nr);
	if (r >= 0)
		r = unwind_builder_done(m.builder, out);
	unwind_builder_free(m.builder);
	free(m.entries);
	free(m.code);
	free(m.part);
	return r;
}
